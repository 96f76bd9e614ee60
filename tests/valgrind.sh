#!/bin/sh
# Runs the C tests that stay in one process and finish soon under valgrind: any error or lost block fails.
# Usage: tests/valgrind.sh BUILD_FOLDER
set -u
build=$1
status=0
ran=0
for test in "$build"/tests/test_base_* "$build"/tests/test_model_* "$build"/tests/test_source_* "$build"/tests/test_cache_entry* \
            "$build"/tests/test_call_* "$build"/tests/test_device_*; do
    [ -x "$test" ] || continue
    if JITNEY_TEST_VALGRIND=1 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        --trace-children=no "$test" >"$build/valgrind.log" 2>&1; then
        ran=$((ran + 1))
    else
        cat "$build/valgrind.log"
        echo "valgrind: $test failed"
        status=1
    fi
done
echo "valgrind: $ran programs clean"
[ "$ran" -gt 0 ] || status=1
exit $status
