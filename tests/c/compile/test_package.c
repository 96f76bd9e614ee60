/* test_package.c — the stub renamed: the dynamic linker finds PyInit_<name> in it, whatever the name. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "compile/package.h"

#define DATA_DIR JTN_BINARY_DIR "/share/jitney"

static void *load_stub_named(const char *name)
{
    char path[] = "/tmp/jtn-package-XXXXXX";
    int fd = mkstemp(path);
    void *handle;
    jtn_buf file;

    assert_true(fd >= 0);
    jtn__buf_init(&file, 0);
    assert_int_equal(jtn__package_stub(DATA_DIR, name, &file), JTN_OK);
    assert_int_equal(write(fd, file.data, file.size), (ssize_t)file.size);
    close(fd);
    jtn__buf_deinit(&file);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    unlink(path);
    return handle;
}

static void any_name_is_found_and_no_other(void **state)
{
    char longest[151];
    const char *names[] = {"a", "axpy", "demo", "print_array", "x1", longest};

    memset(longest, 'n', 150);
    longest[150] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char symbol[200];
        void *handle = load_stub_named(names[i]);

        snprintf(symbol, sizeof symbol, "PyInit_%s", names[i]);
        assert_non_null(dlsym(handle, symbol));
        assert_ptr_equal(dlsym(handle, symbol), dlsym(handle, "jtn_ext_pyinit"));
        strcat(symbol, "_");
        assert_null(dlsym(handle, symbol));
        dlclose(handle);
    }
}

static void a_missing_or_foreign_stub_is_said(void **state)
{
    char folder[] = "/tmp/jtn-package-XXXXXX", path[64];
    jtn_buf file;
    FILE *foreign;

    assert_non_null(mkdtemp(folder));
    jtn__buf_init(&file, 0);
    assert_int_equal(jtn__package_stub(folder, "a", &file), JTN_ERROR_TOOL);
    assert_non_null(strstr(jtn_last_error(), folder));
    snprintf(path, sizeof path, "%s/stub.so", folder);
    foreign = fopen(path, "w");
    fputs("\177ELF and nothing else of one, but long enough for a header: xxxxxxxxxxxxxxxxxxxxx", foreign);
    fclose(foreign);
    assert_int_equal(jtn__package_stub(folder, "a", &file), JTN_ERROR_INTERNAL);
    jtn__buf_deinit(&file);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_name_is_found_and_no_other),
        cmocka_unit_test(a_missing_or_foreign_stub_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
