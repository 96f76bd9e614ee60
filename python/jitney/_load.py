"""From torch's parameters to a unit, and from a unit to a Python module."""
import ctypes
import os
import shutil
import tempfile
import weakref

from . import _lib
from .errors import ArgumentError

_memo = {}  # arguments → a weak reference to their module, for the same call again

HOST_HEADERS = "#include <torch/extension.h>\n"


# ---- arguments ----

def texts(name, value):
    """A str, or a list or tuple of them, as a tuple of str."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        for item in value:
            if not isinstance(item, str):
                raise ArgumentError(f"{name} must hold str, got {type(item).__name__}: {item!r:.80}")
        return tuple(value)
    raise ArgumentError(f"{name} must be a str or a list of str, got {type(value).__name__}: {value!r:.80}")


def paths(name, value):
    """Like texts, for anything that names a file."""
    if value is None:
        return ()
    items = value if isinstance(value, (list, tuple)) else (value,)
    result = []
    for item in items:
        if not isinstance(item, (str, os.PathLike)):
            raise ArgumentError(f"{name} must be a path or a list of paths, got {type(item).__name__}: {item!r:.80}")
        result.append(os.fspath(item))
    return tuple(result)


def wishes(functions):
    """functions= as a tuple of (name or prototype, doc)."""
    if functions is None:
        return ()
    if isinstance(functions, dict):
        for key, doc in functions.items():
            if not isinstance(key, str) or not isinstance(doc, str):
                raise ArgumentError(f"functions must map names to docstrings, got {key!r:.60}: {doc!r:.60}")
        return tuple(functions.items())
    return tuple((name, "") for name in texts("functions", functions))


def defines(given):
    """defines= as a tuple of NAME or NAME=VALUE."""
    if isinstance(given, dict):
        return tuple(str(k) if v is None else f"{k}={v}" for k, v in given.items())
    return texts("defines", given)


# ---- units ----

class _Unit:
    """A jtn_unit for the time of one load."""

    def __init__(self, name):
        if not isinstance(name, str):
            raise ArgumentError(f"name must be a str, got {type(name).__name__}")
        self.handle = ctypes.c_void_p()
        _lib.api.unit_new(runtime, name.encode(), ctypes.byref(self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _lib.api.unit_free(self.handle)

    def add_text(self, name, text):
        data = text.encode("utf-8", "surrogateescape")
        _lib.api.unit_add_text(self.handle, name.encode(), data, len(data))

    def add_options(self, kind, values):
        for value in values:
            _lib.api.unit_add_option(self.handle, kind, os.fsencode(value))


def _fill(unit, request):
    for path in request["files"]:
        _lib.api.unit_add_file(unit.handle, os.fsencode(path))
    for name, text in request["texts"]:
        unit.add_text(name, text)
    for function, doc in request["functions"]:
        _lib.api.unit_add_function(unit.handle, function.encode(), doc.encode() or None)
    unit.add_options(_lib.CFLAGS, request["cflags"])
    unit.add_options(_lib.CUDA_CFLAGS, request["cuda_cflags"])
    unit.add_options(_lib.LDFLAGS, request["ldflags"])
    unit.add_options(_lib.INCLUDE_DIR, request["include_paths"])
    unit.add_options(_lib.DEFINE, request["defines"])
    if request["arch"] is not None:
        unit.add_options(_lib.ARCH, (str(request["arch"]),))
    if request["target"] is not None:
        unit.add_options(_lib.TARGET, (str(request["target"]),))
    if request["verbose"]:
        unit.add_options(_lib.VERBOSE, ("1",))


def _build(request):
    with _Unit(request["name"]) as unit:
        _fill(unit, request)
        module = ctypes.c_void_p()
        _lib.api.load(runtime, unit.handle, ctypes.byref(module))
    return module


def _publish(path, folder, name):
    """Puts a copy of the module's file into the caller's build_directory, in one step."""
    target = os.path.join(folder, name.rpartition(".")[2] + ".so")
    if os.path.exists(target) and os.path.getsize(target) == os.path.getsize(path):
        with open(target, "rb") as a, open(path, "rb") as b:
            if a.read() == b.read():
                return target
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    os.close(handle)
    try:
        shutil.copyfile(path, temporary)
        os.chmod(temporary, 0o755)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return target


def load(request, build_directory):
    """The module of a request, a dict of plain values."""
    if build_directory is not None and not isinstance(build_directory, (str, os.PathLike)):
        raise ArgumentError(f"build_directory must be a path, got {type(build_directory).__name__}: {build_directory!r:.80}")
    if build_directory is not None and not os.path.isdir(build_directory):
        raise ArgumentError(f"build_directory {os.fspath(build_directory)!r} is not a folder; make it first")
    handle = _build(request)
    module = _lib.api.python_module(handle, request["name"].encode())
    if build_directory is not None:
        module.__file__ = _publish(module.__file__, os.fspath(build_directory), request["name"])
    return module


# ---- the same call again ----

_module_fresh = _lib.api.module_fresh


def _frozen(key):
    """The key with lists and dicts made hashable."""
    return tuple([item if type(item) is str or item is None else tuple(item) if type(item) is list
                  else tuple(item.items()) if type(item) is dict else item for item in key])


def remembered(key):
    """The module of the same call before, when its files are unchanged and it is still in use."""
    try:
        reference = _memo.get(key)
    except TypeError:
        try:
            reference = _memo.get(_frozen(key))
        except TypeError:  # something that cannot be compared: loaded the long way, where it is complained about
            return None
    if reference is None:
        return None
    module = reference()
    return module if module is not None and _module_fresh(module._handle) else None


def remember(key, module):
    key = _frozen(key)
    try:
        hash(key)
    except TypeError:
        return
    if len(_memo) > 4096:
        for old in [k for k, reference in _memo.items() if reference() is None]:
            del _memo[old]
    _memo[key] = weakref.ref(module)


# ---- load_inline's texts ----

def join(name, ending, pieces, headers):
    """torch compiles a list as one text; here each piece keeps its own name and line numbers.

    The headers put before carry a name nobody mistakes for the user's file.
    """
    if not pieces or not any(piece.strip() for piece in pieces):
        return ()
    names = [f"{name}{ending}"] + [f"{name}_{i}{ending}" for i in range(1, len(pieces))]
    if len(pieces) == 1 and not headers:
        return ((names[0], pieces[0]),)
    joined = [f'#line 1 "jitney headers"\n{headers}'] if headers else []
    joined += [f'#line 1 "{piece_name}"\n{piece}' for piece_name, piece in zip(names, pieces)]
    return ((names[0], "\n".join(joined) + "\n"),)


runtime = _lib.open_runtime()
