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
    key = (load, name, sources, functions, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
           arch, target, defines)
    module = _load.remembered(key) if is_python_module and not verbose else None
    if module is not None:
        return module
    files = _load.paths("sources", sources)
    if not files:
        raise ArgumentError("sources is empty: name at least one file")
    _refuse(with_sycl, is_standalone, extra_sycl_cflags)
    return _run(key, name, files, (), functions, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
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
    key = (load_inline, name, cpp_sources, cuda_sources, functions, extra_cflags, extra_cuda_cflags, extra_ldflags,
           extra_include_paths, build_directory, no_implicit_headers, arch, target, defines)
    module = _load.remembered(key) if is_python_module and not verbose else None
    if module is not None:
        return module
    _refuse(with_sycl, False, extra_sycl_cflags, sycl_sources)
    base = name.rpartition(".")[2] if isinstance(name, str) else name
    texts = _load.join(base, ".cpp", _load.texts("cpp_sources", cpp_sources), "" if no_implicit_headers else _load.HOST_HEADERS)
    texts += _load.join(base, ".cu", _load.texts("cuda_sources", cuda_sources), "")
    if not texts:
        raise ArgumentError("there is no source: cpp_sources and cuda_sources are both empty")
    return _run(key, name, (), texts, functions, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
                verbose, is_python_module, arch, target, defines)


def _refuse(with_sycl, is_standalone, *sycl):
    if with_sycl or any(sycl):
        raise UnsupportedError("SYCL is not supported; there are C, C++ and CUDA")
    if is_standalone:
        raise UnsupportedError("is_standalone=True (an executable) is not supported; a module is what can be made")


def _run(key, name, files, texts, functions, cflags, cuda_cflags, ldflags, include_paths, build_directory, verbose,
         is_python_module, arch, target, defines):
    module = _load.load({
        "name": name,
        "files": files,
        "texts": texts,
        "functions": _load.wishes(functions),
        "cflags": _load.texts("extra_cflags", cflags),
        "cuda_cflags": _load.texts("extra_cuda_cflags", cuda_cflags),
        "ldflags": _load.texts("extra_ldflags", ldflags),
        "include_paths": _load.paths("extra_include_paths", include_paths),
        "defines": _load.defines(defines),
        "arch": arch,
        "target": target,
        "verbose": bool(verbose),
    }, build_directory)
    if is_python_module:
        _load.remember(key, module)
        return module
    _kept.append(module)  # what it registers lives on
    return module.__file__


_kept = []


def _not_yet(what):
    raise UnsupportedError(f"{what} is not there yet: modules are made at run time, with load and load_inline")


def CppExtension(name, sources, *args, **kwargs):
    _not_yet("CppExtension")


def CUDAExtension(name, sources, *args, **kwargs):
    _not_yet("CUDAExtension")


class BuildExtension:
    def __init__(self, *args, **kwargs):
        _not_yet("BuildExtension")
