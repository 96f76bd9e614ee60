"""What the bridge asks of the array libraries: called from C, by name, when an op makes or copies a tensor, and for streams."""
import sys

_CODES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
          (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
          (4, 16): "bfloat16", (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool"}
_CUDA = 2


def _framework(wanted, device_type):
    """The library that new tensors come from: that of the call's tensors, else whatever is there and fits the device."""
    if wanted in ("torch", "numpy", "cupy") and not (wanted == "numpy" and device_type == _CUDA):
        return wanted
    if sys.modules.get("torch"):  # None: its import is blocked
        return "torch"
    if device_type == _CUDA:
        return "cupy" if sys.modules.get("cupy") else "torch"
    return "numpy"


def _dtype_name(code, bits):
    try:
        return _CODES[code, bits]
    except KeyError:
        raise TypeError(f"no array library has a dtype of code {code} and {bits} bits") from None


def empty(wanted, sizes, strides, code, bits, device_type, device_id, pinned, requires_grad):
    """A new uninitialised tensor; strides None: row-major; device_id -1: the current device."""
    framework = _framework(wanted, device_type)
    name = _dtype_name(code, bits)
    if framework == "torch":
        import torch
        device = torch.device("cpu") if device_type != _CUDA else torch.device("cuda", device_id if device_id >= 0 else torch.cuda.current_device())
        options = dict(dtype=getattr(torch, name), device=device, requires_grad=bool(requires_grad))
        if pinned:
            options["pin_memory"] = True
        return torch.empty(sizes, **options) if strides is None else torch.empty_strided(sizes, strides, **options)
    if requires_grad:
        raise RuntimeError(f"{framework} arrays have no gradients; requires_grad needs PyTorch")
    if framework == "cupy":
        import cupy
        with cupy.cuda.Device(device_id if device_id >= 0 else cupy.cuda.runtime.getDevice()):
            return _strided_new(cupy, sizes, strides, cupy.dtype(name))
    import numpy
    return _strided_new(numpy, sizes, strides, _numpy_dtype(numpy, name))


def _numpy_dtype(numpy, name):
    if name == "bfloat16":
        import ml_dtypes  # NumPy itself has no bfloat16
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(name)


def _strided_new(library, sizes, strides, dtype):
    if strides is None:
        return library.empty(sizes, dtype)
    span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if all(sizes) else 0
    return as_strided(library.empty(span, dtype), sizes, strides, 0)


def as_strided(base, sizes, strides, offset):
    """A view whose first element is the base's element number `offset`; strides count elements."""
    if type(base).__module__.partition(".")[0] == "cupy":
        import cupy
        flat = cupy.ndarray(sizes, base.dtype, base.data + offset * base.dtype.itemsize, [s * base.dtype.itemsize for s in strides])
        return flat
    if hasattr(base, "as_strided"):
        return base.as_strided(sizes, strides, base.storage_offset() + offset)
    import numpy
    first = numpy.ndarray((), base.dtype, base) if base.ndim == 0 else base.reshape(-1)[:0] if base.size == 0 else base
    if base.size == 0 or base.ndim == 0:
        return numpy.lib.stride_tricks.as_strided(first, sizes, [s * base.dtype.itemsize for s in strides])
    # an array over the base's memory that begins at the element asked for
    interface = dict(base.__array_interface__)
    address, read_only = interface["data"]
    interface.update(data=(address + offset * base.dtype.itemsize, read_only), shape=tuple(sizes),
                     strides=tuple(s * base.dtype.itemsize for s in strides))
    return numpy.asarray(_Holder(interface, base))


class _Holder:
    """Keeps the base of a view alive."""

    def __init__(self, interface, base):
        self.__array_interface__ = interface
        self.base = base


def copy(dst, src, non_blocking):
    """dst[...] = src, across dtypes, shapes that broadcast, and devices."""
    if hasattr(dst, "copy_"):
        dst.copy_(src if type(src) is type(dst) else _as_torch(src), non_blocking=bool(non_blocking))
    else:
        dst[...] = src


def _as_torch(array):
    import torch
    return torch.as_tensor(array)


def fill(tensor, value):
    if hasattr(tensor, "fill_"):
        tensor.fill_(value)
    else:
        tensor[...] = value


def device_of(array):
    """The GPU number of an array that only speaks __cuda_array_interface__."""
    device = getattr(array, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    return number if isinstance(number, int) else 0


def dlpack_of(array):
    """The capsule of any array that speaks DLPack."""
    try:
        return array.__dlpack__(max_version=(1, 1))
    except TypeError:
        return array.__dlpack__()


def current_stream(framework, device):
    """The address of the framework's current stream on that GPU; 0 is the legacy default."""
    if framework == "cupy":
        import cupy
        return cupy.cuda.get_current_stream(device).ptr
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return torch.cuda.current_stream(device).cuda_stream


def stream_of(stream):
    """The address of a stream given as torch's, CuPy's, or anything that speaks __cuda_stream__."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if isinstance(value, int):
            return value
    from .errors import ArgumentError
    raise ArgumentError(f"stream must be a torch or CuPy stream, an object with __cuda_stream__, or an int (an address); got {stream!r:.100}")
