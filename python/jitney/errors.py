"""The exceptions. All derive from JitneyError; the message says what happened, to what, and what to do."""


class JitneyError(Exception):
    """Base of everything Jitney raises on its own account."""


class Diagnostic:
    """One finding of a compiler, in the user's own coordinates."""

    __slots__ = ("file", "line", "column", "severity", "message", "excerpt")

    def __init__(self, file, line, column, severity, message, excerpt):
        self.file = file  # as the user named it; "" when the compiler named none
        self.line = line  # from 1; 0 when unknown
        self.column = column
        self.severity = severity  # "error", "warning" or "note"
        self.message = message
        self.excerpt = excerpt  # the source line, a newline, the caret line

    def __repr__(self):
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"


class CompileError(JitneyError, RuntimeError):
    """A compiler refused the source. `diagnostics`: a list of Diagnostic; `log`: all that the compilers said."""

    def __init__(self, message, diagnostics=(), log=""):
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        self.log = log

    def __reduce__(self):
        return type(self), (self.args[0], self.diagnostics, self.log)


class ArgumentError(JitneyError, TypeError):
    """An argument does not fit; says which, what it got, what is wanted."""


class DeviceError(JitneyError, RuntimeError):
    """The CUDA driver, a GPU or a launch failed."""


class CacheError(JitneyError, RuntimeError):
    """A module file is damaged or not Jitney's, or JITNEY_COMPILE=never met something that is not cached."""


class NotFoundError(JitneyError, LookupError):
    """A source, a function or a variable does not exist; says what there is."""


class ToolError(JitneyError, RuntimeError):
    """A compiler, NVRTC or the driver is missing; says what was looked for, where, and the command that helps."""


class UnsupportedError(JitneyError, NotImplementedError):
    """Known and not done here; says the way around."""


class CallError(JitneyError, RuntimeError):
    """A compiled function, or a module's body, failed."""
