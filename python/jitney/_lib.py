"""libjitney through ctypes: declarations of include/jitney/jitney.h, and nothing else."""
import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p, py_object

from . import errors

_STATUS = {
    1: errors.ArgumentError, 2: errors.CompileError, 3: errors.DeviceError, 4: errors.CacheError, 5: errors.NotFoundError,
    6: errors.ToolError, 7: errors.UnsupportedError, 8: errors.CallError, 9: errors.JitneyError, 10: MemoryError,
    11: errors.JitneyError,
}
_SEVERITY = ("note", "warning", "error")

CFLAGS, CUDA_CFLAGS, LDFLAGS, INCLUDE_DIR, DEFINE, ARCH, TARGET, VERBOSE = range(8)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("cache_dir", c_char_p), ("cache_mode", c_char_p), ("search_path", c_char_p),
                ("data_dir", c_char_p), ("host_abi", c_char_p), ("log", c_void_p), ("log_arg", c_void_p)]


class DiagnosticStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("file", c_char_p), ("line", c_int), ("column", c_int), ("severity", c_int),
                ("message", c_char_p), ("excerpt", c_char_p)]


LogFn = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


def _find():
    here = os.path.dirname(os.path.abspath(__file__))
    given = os.environ.get("JITNEY_LIBRARY")
    places = [given] if given else [os.path.join(here, "lib", "libjitney.so"),
                                    os.path.join(here, "..", "..", "build", "libjitney.so")]
    for place in places:
        if os.path.isfile(place):
            return os.path.abspath(place)
    raise ImportError("libjitney.so was not found (looked for " + ", ".join(places) + "); install the package again, or set "
                      "JITNEY_LIBRARY to the file")


path = _find()
lib = ctypes.CDLL(path)    # the lock of Python is released during these calls: builds take long
held = ctypes.PyDLL(path)  # … and held during these, which touch Python's objects or are very short

_out = POINTER(c_void_p)
_DECLARATIONS = {
    # name: (library, result, arguments); result None: a jtn_status that is checked
    "jtn_open": (lib, None, [POINTER(Options), _out]),
    "jtn_last_error": (held, c_char_p, []),
    "jtn_diagnostic_count": (held, c_size_t, []),
    "jtn_diagnostic_at": (held, c_int, [c_size_t, POINTER(DiagnosticStruct)]),
    "jtn_last_log": (held, c_char_p, []),
    "jtn_unit_new": (held, None, [c_void_p, c_char_p, _out]),
    "jtn_unit_free": (held, c_void_p, [c_void_p]),
    "jtn_unit_add_file": (held, None, [c_void_p, c_char_p]),
    "jtn_unit_add_text": (held, None, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "jtn_unit_add_function": (held, None, [c_void_p, c_char_p, c_char_p]),
    "jtn_unit_add_option": (held, None, [c_void_p, c_int, c_char_p]),
    "jtn_load": (lib, None, [c_void_p, c_void_p, _out]),
    "jtn_module_close": (held, c_void_p, [c_void_p]),
    "jtn_module_path": (held, c_char_p, [c_void_p]),
    "jtn_module_origin": (held, c_char_p, [c_void_p]),
    "jtn_module_fresh": (held, c_int, [c_void_p]),
    "jtn_module_find": (lib, None, [c_void_p, c_char_p, _out]),
    "jtn_module_global": (lib, None, [c_void_p, c_char_p, c_int, _out, POINTER(c_size_t)]),
    "jtn_synchronize": (lib, None, [c_void_p, c_int]),
    "jtn_gpu_available": (lib, c_int, [c_void_p]),
    "jtn_python_init": (held, py_object, [c_void_p, py_object]),
    "jtn_python_module": (held, py_object, [c_void_p, c_char_p]),
    "jtn_python_function": (held, py_object, [c_void_p, c_void_p]),
    "jtn_version": (held, c_char_p, []),
}


def check(status):
    """Raises what a failed call recorded."""
    message = held.jtn_last_error().decode("utf-8", "replace")
    if status != 2:
        raise _STATUS.get(status, errors.JitneyError)(message)
    diagnostics = []
    for index in range(held.jtn_diagnostic_count()):
        d = DiagnosticStruct(ctypes.sizeof(DiagnosticStruct))
        if held.jtn_diagnostic_at(index, ctypes.byref(d)) == 0:
            diagnostics.append(errors.Diagnostic(d.file.decode("utf-8", "replace"), d.line, d.column, _SEVERITY[d.severity],
                                                 d.message.decode("utf-8", "replace"), d.excerpt.decode("utf-8", "replace")))
    raise errors.CompileError(message, diagnostics, held.jtn_last_log().decode("utf-8", "replace"))


def _checked(function):
    def call(*args):
        status = function(*args)
        if status:
            check(status)
    return call


class _Api:
    pass


api = _Api()
for _name, (_library, _result, _arguments) in _DECLARATIONS.items():
    _function = getattr(_library, _name)
    _function.argtypes = _arguments
    _function.restype = c_int if _result is None else _result
    setattr(api, _name[4:], _checked(_function) if _result is None else _function)


def _say(arg, level, line):
    # A notebook replaces sys.stderr; the library's own stderr would never be seen there.
    try:
        stream = sys.stderr
        if stream is not None:
            stream.write(line.decode("utf-8", "replace") + "\n")
            stream.flush()
    except Exception:  # a broken stream must not break a build
        pass


_log = LogFn(_say)  # kept for the life of the process


def _search_path():
    """The folders where wheels put NVRTC and the CUDA headers."""
    return ":".join(p for p in sys.path if p and os.path.isdir(os.path.join(p, "nvidia")))


def open_runtime():
    options = Options(ctypes.sizeof(Options), search_path=_search_path().encode(), log=ctypes.cast(_log, c_void_p))
    runtime = c_void_p()
    api.open(ctypes.byref(options), ctypes.byref(runtime))
    return runtime
