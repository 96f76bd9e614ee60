"""The class of loaded modules."""
import ctypes
import types

from . import _lib


class Module(types.ModuleType):
    """A loaded module: its functions and kernels are attributes.

    `module["scale<float, 4>"]` gives an instance of a kernel template, compiled when first asked for; any function or kernel can
    be asked for like that. `module.get_global("c")` gives a `__constant__` or `__device__` variable. `module.origin` says how the
    module came to be: "built", "disk" or "memory".
    """

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise _lib.errors.ArgumentError(f"a function's name must be a str, got {type(name).__name__}")
        known = self.__dict__.setdefault("_instances", {})
        function = known.get(name)
        if function is None:
            handle = ctypes.c_void_p()
            _lib.api.module_find(self._handle, name.encode(), ctypes.byref(handle))
            function = known[name] = _lib.api.python_function(self._handle, handle)
        return function

    def get_global(self, name, device=-1):
        """(address, size in bytes) of a `__constant__` or `__device__` variable on a GPU (-1: the current one)."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        _lib.api.module_global(self._handle, name.encode(), device, ctypes.byref(address), ctypes.byref(size))
        return address.value, size.value

    @property
    def origin(self):
        return _lib.api.module_origin(self._handle).decode()

    def __reduce__(self):
        raise TypeError("a compiled module cannot be pickled; load it again where it is needed: the cache has it")
