"""Jitney: C, C++ and CUDA source in, callables out, remembered on disk.

    import jitney
    mod = jitney.load_inline("axpy", cuda_sources=source)
    mod.axpy[grid, block](2.0, x, y, n)

`jitney.cpp_extension` has torch.utils.cpp_extension's functions; `load` and `load_inline` here are the same ones.
"""
from . import _lib, errors
from ._module import Module
from .errors import (ArgumentError, CacheError, CallError, CompileError, DeviceError, JitneyError, NotFoundError, ToolError,
                     UnsupportedError)
from . import _load

__version__ = _lib.api.version().decode()

# Copied module files look for this capsule when they are imported.
_import_api = _lib.api.python_init(_load.runtime, {
    "ArgumentError": ArgumentError, "CompileError": CompileError, "DeviceError": DeviceError, "CacheError": CacheError,
    "NotFoundError": NotFoundError, "ToolError": ToolError, "UnsupportedError": UnsupportedError, "CallError": CallError,
    "JitneyError": JitneyError, "Module": Module,
})

from .cpp_extension import load, load_inline  # noqa: E402  (needs the bridge)


def gpu_available():
    """True when a CUDA driver and a GPU answer. Starts the driver."""
    return bool(_lib.api.gpu_available(_load.runtime))


def synchronize(device=-1):
    """Waits for all work of a GPU (-1: the current one). Raises DeviceError, naming the last kernel launched there."""
    _lib.api.synchronize(_load.runtime, device)


__all__ = ["load", "load_inline", "gpu_available", "synchronize", "Module", "JitneyError", "ArgumentError", "CacheError", "CallError",
           "CompileError", "DeviceError", "NotFoundError", "ToolError", "UnsupportedError"]
