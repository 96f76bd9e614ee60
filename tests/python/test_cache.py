"""What is remembered, when it is rebuilt, and what happens to a cache that is damaged, shared or closed."""
import os
import shutil
import sys
import textwrap

import pytest

import jitney

PRELUDE = """
import os, sys, jitney
from jitney.cpp_extension import load, load_inline
def answer(n, name="answer", **options):
    # a plain C function without headers: what is built is of no matter here, and this takes a tenth of a second
    return load_inline(name, cpp_sources=f'extern "C" int f() {{ return {n}; }}', functions="int f()", no_implicit_headers=True, **options)
"""


def entries(cache):
    return sorted(p for p in cache.rglob("*.so") if p.is_file())


def run(child, script, *args, **options):
    return child(PRELUDE + textwrap.dedent(script), *args, **options)


def builds(*finished):
    return sum(done.err.count("compiled in") for done in finished)


ONE = "m = answer(1); print(m.origin, m.f())"


def test_built_then_memory_then_disk(child):
    assert run(child, ONE + "\ndel m\nm = answer(1); print(m.origin)").out.split()[:2] == ["built", "1"]
    assert run(child, ONE).out.split() == ["disk", "1"]


def test_going_back_to_an_earlier_text_is_a_hit(child):
    done = run(child, "for n in (1, 2, 1): m = answer(n); print(m.f())", env={"JITNEY_VERBOSE": "1"})
    assert done.out.split() == ["1", "2", "1"] and builds(done) == 2, done
    done = run(child, "for n in (1, 2, 1): m = answer(n); print(m.f())", env={"JITNEY_COMPILE": "never"})
    assert done.out.split() == ["1", "2", "1"], done


def test_the_same_call_again_is_the_same_module():
    call = dict(name="again", cpp_sources="int f() { return 1; }", functions=["f"])
    a = jitney.load_inline(**call)
    assert jitney.load_inline(**call) is a
    assert jitney.load_inline(**dict(call, functions=("f",))).f() == 1
    assert jitney.load_inline(**dict(call, extra_cflags=["-DX=1"])) is not a


def test_what_changes_the_result_is_another_entry(child):
    done = run(child, """
        calls = [dict(), dict(extra_cflags="-O1"), dict(defines={"X": 1}), dict(defines={"X": 2}), dict(name="other"), dict(extra_ldflags="-lm")]
        print(len({answer(1, **call).__file__ for call in calls}))
        """)
    assert done.out.split() == ["6"], done


@pytest.mark.parametrize("ending, reads", [("cpp", "m.f()"), ("cu", "m.k.params[0][1]")])
def test_an_edited_header_rebuilds_in_the_same_process(child, tmp_path, nvrtc, ending, reads):
    (tmp_path / "user.cpp").write_text('#include "value.h"\nextern "C" int f() { return sizeof(value); }')
    (tmp_path / "user.cu").write_text('#include "value.h"\n__global__ void k(value *p) {}')
    (tmp_path / "value.h").write_text("typedef short value;")
    done = run(child, f"""
        def call(): return load("edited", "user.{ending}", functions=["int f()"] if "{ending}" == "cpp" else None, arch="sm_90")
        m = call(); print({reads})
        open("value.h", "w").write("typedef double value;")
        m = call(); print({reads})
        open("value.h", "w").write("typedef short value;")
        m = call(); print({reads}, m.origin)
        """)
    words = done.out.splitlines()
    want = ["2", "8", "2"] if ending == "cpp" else ["short *", "double *", "short *"]
    assert [words[0], words[1], words[2].rsplit(" ", 1)[0]] == want, done
    assert not words[2].endswith("built"), done


def test_a_header_that_appears_earlier_on_the_path_rebuilds(child, tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    (tmp_path / "second" / "value.h").write_text("#define VALUE 2")
    done = run(child, """
        def call(): return load_inline("shadow", cpp_sources='#include <value.h>\\nextern "C" int f() { return VALUE; }',
                                       functions="int f()", no_implicit_headers=True,
                                       extra_include_paths=["first", "second"])
        print(call().f())
        open("first/value.h", "w").write("#define VALUE 1")
        print(call().f())
        """)
    assert done.out.split() == ["2", "1"], done


def test_a_tree_that_moved_is_a_hit(child, tmp_path):
    (tmp_path / "old" / "include").mkdir(parents=True)
    (tmp_path / "old" / "user.cpp").write_text('#include "value.h"\nextern "C" int f() { return VALUE; }')
    (tmp_path / "old" / "include" / "value.h").write_text("#define VALUE 3")
    script = 'm = load("moved", "user.cpp", functions="int f()", extra_include_paths=["include"]); print(m.origin, m.f())'
    absolute = 'm = load("moved2", os.path.abspath("user.cpp"), functions="int f()", extra_include_paths=[os.path.abspath("include")]); print(m.origin, m.f())'
    first = run(child, script + "\n" + absolute, cwd=tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    second = run(child, script + "\n" + absolute, cwd=tmp_path / "new")
    assert first.out.split() == ["built", "3", "built", "3"], first
    assert second.out.split() == ["disk", "3", "disk", "3"], second


# ---- damage ----

def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "flipped":
        for at in range(len(data) // 3, len(data), max(1, len(data) // 7)):
            data[at] ^= 0xFF
    elif how == "cut":
        data = data[:len(data) // 2]
    elif how == "empty":
        data = b""
    elif how == "garbage":
        data = os.urandom(len(data))
    path.chmod(0o644)
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "garbage"])
def test_a_damaged_entry_is_built_again(child, how):
    run(child, ONE)
    (path,) = entries(child.cache)
    damage(path, how)
    assert run(child, ONE).out.split() == ["built", "1"]
    assert run(child, ONE).out.split() == ["disk", "1"]


def test_any_damaged_file_of_the_cache_does_no_harm(child):
    run(child, ONE)
    files = sorted(p for p in child.cache.rglob("*") if p.is_file())
    for path in files:
        if path.exists():
            damage(path, "flipped")
    assert run(child, ONE).out.split()[1] == "1"


def test_entries_that_were_deleted_are_built_again(child):
    run(child, ONE)
    for path in entries(child.cache):
        path.unlink()
    assert run(child, ONE).out.split() == ["built", "1"]


# ---- modes ----

@pytest.mark.parametrize("mode", ["read", "off"])
def test_a_cache_that_must_not_be_written_stays_as_it_is(child, mode):
    child.cache.mkdir()
    done = run(child, "m = answer(1); print(m.f())", env={"JITNEY_CACHE": mode})
    assert done.out.split() == ["1"], done
    assert not entries(child.cache), entries(child.cache)
    run(child, ONE)
    before = entries(child.cache)
    done = run(child, "m = answer(1); print(m.f(), m.origin); m = answer(2); print(m.f())", env={"JITNEY_CACHE": mode})
    assert done.out.split() == ["1", "disk" if mode == "read" else "built", "2"], done
    assert entries(child.cache) == before


def test_an_unknown_mode_is_an_error_that_lists_the_modes(child):
    done = child.attempt(PRELUDE + ONE, env={"JITNEY_CACHE": "sometimes"})
    assert done.code != 0 and "sometimes" in done.err and "read" in done.err and "off" in done.err, done


def test_a_cache_folder_that_cannot_be_written_still_works(child, tmp_path):
    (tmp_path / "file").write_text("")
    done = run(child, ONE, env={"JITNEY_CACHE_DIR": tmp_path / "file" / "below"})
    assert done.out.split() == ["built", "1"], done


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_folder_still_works(child):
    run(child, ONE)
    for path in [child.cache, *child.cache.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert run(child, ONE).out.split() == ["disk", "1"]
        assert run(child, "print(answer(2).f())").out.split() == ["2"]
    finally:
        for path in [child.cache, *child.cache.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)


def test_never_compiling_is_an_error_that_says_so(child):
    done = child.attempt(PRELUDE + ONE, env={"JITNEY_COMPILE": "never"})
    assert done.code != 0 and "CacheError" in done.err and "JITNEY_COMPILE" in done.err, done


def test_a_warm_load_prints_nothing(child):
    run(child, ONE)
    done = run(child, ONE, env={"JITNEY_COMPILE": "never"})
    assert (done.out.split(), done.err) == (["disk", "1"], ""), done


def test_a_warm_load_needs_no_compiler(child, no_compiler):
    run(child, ONE)
    done = run(child, ONE, env={"JITNEY_COMPILE": "never", **no_compiler})
    assert (done.out.split(), done.err) == (["disk", "1"], ""), done


def test_a_warm_kernel_needs_no_compiler(child, no_compiler, nvrtc):
    script = 'm = load_inline("kernel", cuda_sources="__global__ void k(int n) {}", arch="sm_90"); print(m.origin, m.k.params)'
    run(child, script)
    done = run(child, script, env={"JITNEY_COMPILE": "never", **no_compiler})
    assert done.out.startswith("disk") and done.err == "", done


# ---- at once ----

def finish(processes):
    from conftest import Finished
    done = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        done.append(Finished(process.returncode, out, err))
    return done


def test_six_processes_with_one_key_build_once(child):
    done = finish([child.start(PRELUDE + ONE, env={"JITNEY_VERBOSE": "1"}) for _ in range(6)])
    assert all(d.code == 0 and d.out.split()[1] == "1" for d in done), done
    assert sum(d.out.split()[0] == "built" for d in done) == 1, done
    assert builds(*done) == 1, done


def test_different_texts_of_one_name_at_once_are_each_right(child):
    done = finish([child.start(PRELUDE + "import sys; print(answer(int(sys.argv[1])).f())", str(n)) for n in range(6)])
    assert [d.out.split() for d in done] == [[str(n)] for n in range(6)], done


def test_threads_with_one_key_get_one_module():
    from concurrent.futures import ThreadPoolExecutor
    call = lambda n: jitney.load_inline("threads", cpp_sources="int f() { return 5; }", functions="f")
    with ThreadPoolExecutor(6) as pool:
        modules = list(pool.map(call, range(6)))
    assert {m.f() for m in modules} == {5} and len({m.__file__ for m in modules}) == 1


def test_a_killed_builder_does_not_block_the_next(child):
    import time
    process = child.start(PRELUDE + ONE)
    time.sleep(0.2)
    process.kill()
    process.communicate()
    assert run(child, ONE, timeout=60).out.split()[1] == "1"


def test_a_child_that_was_forked_loads_and_calls(child):
    done = run(child, """
        m = answer(1)
        pid = os.fork()
        if pid == 0:
            os._exit(0 if m.f() == 1 and answer(1).f() == 1 and answer(2).f() == 2 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """)
    assert done.out.split() == ["0"], done


# ---- the module's file ----

def test_the_file_is_importable_without_a_cache(child, tmp_path):
    done = run(child, "import shutil; m = answer(1); shutil.copy(m.__file__, 'answer.so')")
    shutil.rmtree(child.cache)
    done = child("import answer; print(answer.f(), answer.__name__)")
    assert done.out.split() == ["1", "answer"], done


def test_build_directory_gets_the_file(child, tmp_path):
    (tmp_path / "out").mkdir()
    done = run(child, "m = answer(1, build_directory='out'); print(m.__file__)\nm = answer(2, build_directory='out'); print(m.f())")
    assert done.out.split()[1] == "2" and (tmp_path / "out" / "answer.so").samefile(tmp_path / done.out.split()[0]), done
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["answer.so"]
    assert child("import sys; sys.path.insert(0, 'out'); import answer; print(answer.f())").out.split() == ["2"]


def test_is_python_module_false_returns_a_path_and_runs_static_code(child):
    done = run(child, """
        path = load_inline("path", cpp_sources='#include <cstdlib>\\nstatic int r = setenv("RAN", "1", 1);', is_python_module=False,
                           no_implicit_headers=True)
        import ctypes
        libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p
        print(type(path).__name__, os.path.isfile(path), libc.getenv(b"RAN"))
        """)
    assert done.out.split() == ["str", "True", "b'1'"], done


def test_verbose_says_what_it_does_on_pythons_stderr(capsys):
    jitney.load_inline("talks", cpp_sources="int f() { return 17; }", functions="f", verbose=True)
    out, err = capsys.readouterr()
    assert out == "" and "talks" in err and "compiled in" in err, (out, err)
