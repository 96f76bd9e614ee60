"""python -m jitney doctor: what was found, and what to do about what was not."""
import os
import sys


def doctor():
    import jitney
    from . import _lib
    print(f"jitney {jitney.__version__}: {_lib.path}")
    print(f"cache: {os.environ.get('JITNEY_CACHE_DIR') or os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'jitney')}")
    healthy = True
    probes = (
        ("host compiler", dict(cpp_sources="int probe() { return 1; }", functions=["probe"])),
        ("NVRTC", dict(cuda_sources="__global__ void probe() {}", arch="sm_90")),
    )
    for what, arguments in probes:
        try:
            module = jitney.load_inline("jitney_doctor", **arguments)
            print(f"{what}: works ({module.origin})")
        except jitney.JitneyError as error:
            healthy = False
            print(f"{what}: {error}")
    try:
        available = jitney.gpu_available()
        print("GPU: works" if available else f"GPU: {_lib.api.last_error().decode()}")
    except jitney.JitneyError as error:
        print(f"GPU: {error}")
    return 0 if healthy else 1


def main():
    if sys.argv[1:] == ["doctor"]:
        return doctor()
    print("usage: python -m jitney doctor", file=sys.stderr)
    return 2


sys.exit(main())
