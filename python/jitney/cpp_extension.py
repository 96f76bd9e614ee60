"""torch.utils.cpp_extension's functions, with its parameters in its order."""
from . import _load
from .errors import ArgumentError, UnsupportedError

__all__ = ["load", "load_inline", "CppExtension", "CUDAExtension", "BuildExtension"]


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
         extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None, is_python_module=True,
         is_standalone=False, keep_intermediates=True, *, functions=None, arch=None, target=None, defines=None):
    """Compiles source files and returns the module; a file read when nothing changed.

    sources: a path or a list of them; `.cu` and `.cuh` are CUDA, `.c` is C, anything else C++. Flags are strings or lists of
    strings, several flags in one string are fine, nvcc's spellings in extra_cuda_cflags are translated. Beyond torch: functions
    (names or C prototypes to bind), arch ("sm_90"; default: the GPU present), target, defines.

    Returns the module, or with is_python_module=False the path of its file.
    Raises CompileError, ArgumentError, ToolError, NotFoundError, UnsupportedError, DeviceError (no GPU and no arch).
    """
    files = _load.paths("sources", sources)
    if not files:
        raise ArgumentError("sources is empty: name at least one file")
    _refuse(with_sycl, is_standalone, extra_sycl_cflags)
    return _run(name, files, (), (), functions, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
                verbose, is_python_module, arch, target, defines)


def load_inline(name, cpp_sources=None, cuda_sources=None, sycl_sources=None, functions=None, extra_cflags=None,
                extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None, build_directory=None,
                verbose=False, with_cuda=None, with_sycl=None, is_python_module=True, with_pytorch_error_handling=True,
                keep_intermediates=True, use_pch=False, no_implicit_headers=False, *, arch=None, target=None, defines=None):
    """Compiles source texts and returns the module; a file read when nothing changed.

    cpp_sources, cuda_sources: a text or a list, compiled as one. functions: a name, a list, or a dict name → docstring, bound besides
    what the texts bind themselves; kernels (`__global__`) are found by themselves and may be named too; a C prototype makes a plain C
    function callable. The rest as in `load`.
    """
    cpp, cuda = _load.texts("cpp_sources", cpp_sources), _load.texts("cuda_sources", cuda_sources)
    _refuse(with_sycl, False, extra_sycl_cflags, sycl_sources)
    return _run(name, (), (cpp, not no_implicit_headers), cuda, functions, extra_cflags, extra_cuda_cflags, extra_ldflags,
                extra_include_paths, build_directory, verbose, is_python_module, arch, target, defines)


def _refuse(with_sycl, is_standalone, *sycl):
    if with_sycl or any(sycl):
        raise UnsupportedError("SYCL is not supported; there are C, C++ and CUDA")
    if is_standalone:
        raise UnsupportedError("is_standalone=True (an executable) is not supported; a module is what can be made")


def _run(name, files, cpp, cuda, functions, cflags, cuda_cflags, ldflags, include_paths, build_directory, verbose,
         is_python_module, arch, target, defines):
    key = _key(name, files, cpp, cuda, functions, cflags, cuda_cflags, ldflags, include_paths, build_directory, arch, target, defines)
    module = _load.remembered(key) if key is not None and not verbose else None
    if module is None:
        request = _request(name, files, cpp, cuda, functions, cflags, cuda_cflags, ldflags, include_paths, verbose, arch, target, defines)
        module = _load.load(request, build_directory, is_python_module)
        if key is not None:
            _load.remember(key, module)
    if is_python_module:
        return module
    _kept.append(module)  # what it registers lives on
    return module.__file__


_kept = []


def _freeze(value):
    return tuple(value) if isinstance(value, list) else tuple(value.items()) if isinstance(value, dict) else value


def _key(*arguments):
    key = tuple(_freeze(a) for a in arguments)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _request(name, files, cpp, cuda, functions, cflags, cuda_cflags, ldflags, include_paths, verbose, arch, target, defines):
    pieces, headers = cpp if cpp else ((), False)
    base = name.rpartition(".")[2] if isinstance(name, str) else name
    wanted = _load.wishes(functions)
    sources = _load.join(base, ".cpp", pieces, _load._HOST_HEADERS if headers else "")
    sources += _load.join(base, ".cu", cuda, "")
    if not files and not sources:
        raise ArgumentError("there is no source: cpp_sources and cuda_sources are both empty")
    return {
        "name": name,
        "files": files,
        "texts": sources,
        "functions": wanted,
        "cflags": _load.texts("extra_cflags", cflags),
        "cuda_cflags": _load.texts("extra_cuda_cflags", cuda_cflags),
        "ldflags": _load.texts("extra_ldflags", ldflags),
        "include_paths": _load.paths("extra_include_paths", include_paths),
        "defines": _load._defines(defines),
        "arch": arch,
        "target": target,
        "verbose": bool(verbose),
    }


def _not_yet(what):
    raise UnsupportedError(f"{what} is not there yet: modules are made at run time, with load and load_inline")


def CppExtension(name, sources, *args, **kwargs):
    _not_yet("CppExtension")


def CUDAExtension(name, sources, *args, **kwargs):
    _not_yet("CUDAExtension")


class BuildExtension:
    def __init__(self, *args, **kwargs):
        _not_yet("BuildExtension")
