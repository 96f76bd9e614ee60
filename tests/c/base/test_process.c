/* test_process.c — programs run to their end, with their output, and never for longer than asked. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/process.h"

static jtn_status run_in(const char *script, const char *cwd, int timeout_ms, size_t ceiling, jtn_buf *output, int *code)
{
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};

    jtn__buf_init(output, ceiling);
    *code = -1;
    return jtn__process_run(argv, cwd, timeout_ms, output, code);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void output_error_and_exit_code_are_collected(void **state)
{
    jtn_buf output;
    int code;

    assert_int_equal(run_in("echo out; echo err >&2; exit 3", NULL, -1, 0, &output, &code), JTN_OK);
    assert_int_equal(code, 3);
    assert_string_equal(output.data, "out\nerr\n");
    jtn__buf_deinit(&output);
}

static void a_program_killed_by_a_signal_gives_128_and_its_number(void **state)
{
    jtn_buf output;
    int code;

    assert_int_equal(run_in("kill -9 $$", NULL, -1, 0, &output, &code), JTN_OK);
    assert_int_equal(code, 128 + 9);
    jtn__buf_deinit(&output);
}

static void it_runs_in_its_folder_in_one_language_with_no_input(void **state)
{
    jtn_buf output;
    int code;

    assert_int_equal(run_in("pwd; echo $LC_ALL; cat", "/usr", -1, 0, &output, &code), JTN_OK);
    assert_string_equal(output.data, "/usr\nC\n");
    jtn__buf_deinit(&output);
}

static void output_over_the_ceiling_is_dropped_without_blocking(void **state)
{
    jtn_buf output;
    int code;

    assert_int_equal(run_in("yes | head -c 1000000; exit 5", NULL, -1, 1000, &output, &code), JTN_OK);
    assert_int_equal(code, 5);
    assert_in_range(output.size, 900, 1000);
    jtn__buf_deinit(&output);
}

static void a_program_over_its_time_is_killed_with_all_it_started(void **state)
{
    double begin = seconds();
    jtn_buf output;
    int code, child;

    assert_int_equal(run_in("sleep 60 & echo $!; wait", NULL, 300, 0, &output, &code), JTN_ERROR_CALL);
    assert_true(seconds() - begin < 10);
    child = atoi(output.data);
    assert_true(child > 0);
    for (int i = 0; i < 100 && kill(child, 0) == 0; i++)
        usleep(20000);
    assert_int_equal(kill(child, 0), -1);
    jtn__buf_deinit(&output);
}

static void what_a_program_leaves_behind_is_not_waited_for(void **state)
{
    double begin = seconds();
    jtn_buf output;
    int code, child;

    assert_int_equal(run_in("sleep 60 & echo $!", NULL, -1, 0, &output, &code), JTN_OK);
    assert_int_equal(code, 0);
    assert_true(seconds() - begin < 10);
    child = atoi(output.data);
    assert_true(child > 0);
    kill(child, SIGKILL);
    jtn__buf_deinit(&output);
}

static void a_program_that_is_not_there_is_a_tool_error_that_names_it(void **state)
{
    char *argv[] = {"no-such-program-here", NULL};
    jtn_process process;

    assert_int_equal(jtn__process_start(argv, NULL, &process), JTN_ERROR_TOOL);
    assert_non_null(strstr(jtn__error_message(), "no-such-program-here"));
}

static void an_argument_reaches_the_program_as_it_is(void **state)
{
    char *argv[] = {"printf", "%s", "a b'\"$(x)*\xff", NULL};
    jtn_buf output;
    int code;

    jtn__buf_init(&output, 0);
    assert_int_equal(jtn__process_run(argv, NULL, -1, &output, &code), JTN_OK);
    assert_string_equal(output.data, "a b'\"$(x)*\xff");
    jtn__buf_deinit(&output);
}

static void an_unknowable_end_is_an_error_and_no_success(void **state)
{
    jtn_buf output;
    int code;
    jtn_status status;

    signal(SIGCHLD, SIG_IGN);
    status = run_in("exit 1", NULL, -1, 0, &output, &code);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(status, JTN_ERROR_TOOL);
    assert_non_null(strstr(jtn__error_message(), "SIGCHLD"));
    jtn__buf_deinit(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_error_and_exit_code_are_collected),
        cmocka_unit_test(a_program_killed_by_a_signal_gives_128_and_its_number),
        cmocka_unit_test(it_runs_in_its_folder_in_one_language_with_no_input),
        cmocka_unit_test(output_over_the_ceiling_is_dropped_without_blocking),
        cmocka_unit_test(a_program_over_its_time_is_killed_with_all_it_started),
        cmocka_unit_test(what_a_program_leaves_behind_is_not_waited_for),
        cmocka_unit_test(a_program_that_is_not_there_is_a_tool_error_that_names_it),
        cmocka_unit_test(an_argument_reaches_the_program_as_it_is),
        cmocka_unit_test(an_unknowable_end_is_an_error_and_no_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
