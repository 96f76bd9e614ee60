/* test_cuda.c — the target "cuda" against a driver that fails on command: contexts, images, launches, what is said when it goes wrong.
 *
 * A device error that kills a device, a driver that cannot start and a fork are for the life of a process: each is tried in a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../stubs/cuda_stub.h"
#include "base/error.h"
#include "device/target.h"

static struct {
    stub_state *(*get)(void);
    void (*reset)(void);
    void (*refuse)(const char *, int, int);
    void (*params)(const char *, int, const size_t *);
    void (*static_shared)(int);
    void (*set_current)(int);
    int (*current)(void);
} stub;
static const jtn_target *gpu;
static const char image[] = "\177ELF image";

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static int set_up_all(void **state)
{
    void *library;

    setenv("JITNEY_LIBCUDA", JTN_STUB_DIR "/libcuda_stub.so", 1);
    if (!(library = dlopen(JTN_STUB_DIR "/libcuda_stub.so", RTLD_NOW)))
        return -1;
    *(void **)&stub.get = dlsym(library, "stub_get");
    *(void **)&stub.reset = dlsym(library, "stub_reset");
    *(void **)&stub.refuse = dlsym(library, "stub_fail");
    *(void **)&stub.params = dlsym(library, "stub_params");
    *(void **)&stub.static_shared = dlsym(library, "stub_static_shared");
    *(void **)&stub.set_current = dlsym(library, "stub_set_current");
    *(void **)&stub.current = dlsym(library, "stub_current");
    gpu = jtn__target_cuda();
    return 0;
}

static int set_up(void **state)
{
    stub.reset();
    return 0;
}

/* A loaded image with one kernel; names differ so that nothing is remembered from another test. */
typedef struct sample {
    jtn_loaded *loaded;
    jtn_kernel *kernel;
} sample;

static sample sample_open(const char *name)
{
    sample s = {0};

    if (gpu->load(image, sizeof image, "sample", &s.loaded) != JTN_OK || gpu->kernel(s.loaded, name, name, &s.kernel) != JTN_OK)
        fail_msg("%s", jtn__error_message());
    return s;
}

static jtn_launch_config config_of(unsigned grid, unsigned block, int device)
{
    return (jtn_launch_config){
        .struct_size = sizeof(jtn_launch_config), .grid = {grid, 1, 1}, .block = {block, 1, 1}, .device = device};
}

static void assert_launches(sample s, const jtn_launch_config *config)
{
    if (gpu->launch(s.kernel, config, NULL) != JTN_OK)
        fail_msg("%s", jtn__error_message());
}

/* ---------------------------------------------------------------- devices and contexts ---- */

static void devices_are_counted_without_a_context(void **state)
{
    char arch[16];

    assert_int_equal(gpu->device_count(), STUB_DEVICES);
    assert_int_equal(gpu->arch(1, arch), JTN_OK);
    assert_string_equal(arch, "sm_90");
    assert_int_equal(stub.get()->retained[0] + stub.get()->retained[1], 0);
    assert_true(gpu->arch(STUB_DEVICES, arch) != JTN_OK);
}

static void the_current_device_is_that_of_the_threads_context(void **state)
{
    assert_int_equal(gpu->current_device(), 0);
    stub.set_current(1);
    assert_int_equal(gpu->current_device(), 1);
}

static void loading_sends_nothing_to_a_gpu_and_keeps_our_bytes(void **state)
{
    sample s = sample_open("idle");

    assert_int_equal(stub.get()->options, 1 << 1); /* CU_LIBRARY_BINARY_IS_PRESERVED */
    assert_int_equal(stub.get()->loads_uncovered, 0);
    assert_int_equal(stub.get()->capture_depth, 0);
    assert_int_equal(stub.current(), -1);
    gpu->unload(s.loaded);
    assert_int_equal(stub.get()->libraries, 0);
}

static void a_thread_without_a_context_launches_and_has_none_afterwards(void **state)
{
    sample s = sample_open("bare");
    jtn_launch_config config = config_of(2, 32, 1);

    assert_launches(s, &config);
    assert_int_equal(stub.get()->last.device, 1);
    assert_int_equal(stub.current(), -1);
    gpu->unload(s.loaded);
}

static void somebody_elses_context_is_left_as_it_was(void **state)
{
    sample s = sample_open("guest");
    jtn_launch_config config = config_of(2, 32, 0);

    stub.set_current(-2);
    assert_launches(s, &config);
    assert_int_equal(stub.current(), -2);
    stub.refuse("cuLaunchKernel", 1, 1);
    assert_int_not_equal(gpu->launch(s.kernel, &config, NULL), JTN_OK);
    assert_int_equal(stub.current(), -2); /* after a failure too */
    gpu->unload(s.loaded);
}

static void the_primary_context_is_retained_once_for_each_device(void **state)
{
    sample s = sample_open("often");
    jtn_launch_config config = config_of(1, 32, 0);

    for (int i = 0; i < 10; i++) {
        config.device = i % 2;
        assert_launches(s, &config);
    }
    assert_true(stub.get()->retained[0] <= 1);
    assert_true(stub.get()->retained[1] <= 1);
    gpu->unload(s.loaded);
}

/* ---------------------------------------------------------------- launches ---- */

static void a_launch_hands_over_grid_block_stream_and_parameters(void **state)
{
    sample s = sample_open("full");
    jtn_launch_config config = config_of(7, 128, 0);
    float a = 1.5f;
    void *x = &config;
    int n = -3;
    void *params[] = {&a, &x, &n};

    stub.params("full", 3, (size_t[]){4, 8, 4});
    config.grid[1] = 5;
    config.block[1] = 2;
    config.shared_bytes = 96;
    config.stream = (void *)0x77;
    if (gpu->launch(s.kernel, &config, params) != JTN_OK)
        fail_msg("%s", jtn__error_message());
    stub_launch *last = &stub.get()->last;
    assert_string_equal(last->kernel, "full");
    assert_memory_equal(last->grid, ((unsigned[]){7, 5, 1}), sizeof last->grid);
    assert_memory_equal(last->block, ((unsigned[]){128, 2, 1}), sizeof last->block);
    assert_int_equal(last->shared_bytes, 96);
    assert_ptr_equal(last->stream, (void *)0x77);
    assert_int_equal(last->extended, 0);
    assert_int_equal(last->size, 16);
    assert_memory_equal(last->bytes, &a, 4);
    assert_memory_equal(last->bytes + 4, &x, 8);
    assert_memory_equal(last->bytes + 12, &n, 4);
    gpu->unload(s.loaded);
}

static void clusters_and_cooperation_go_through_the_extended_launch(void **state)
{
    sample s = sample_open("cluster");
    jtn_launch_config config = config_of(4, 32, 0);

    config.flags = JTN_LAUNCH_COOPERATIVE;
    config.cluster[0] = 2;
    assert_launches(s, &config);
    assert_int_equal(stub.get()->last.extended, 1);
    assert_int_equal(stub.get()->last.cooperative, 1);
    assert_memory_equal(stub.get()->last.cluster, ((unsigned[]){2, 1, 1}), 12);
    gpu->unload(s.loaded);
}

static void a_cooperative_grid_that_does_not_fit_is_told_how_much_fits(void **state)
{
    sample s = sample_open("coop");
    jtn_launch_config config = config_of(9, 32, 0);

    config.flags = JTN_LAUNCH_COOPERATIVE;
    assert_int_not_equal(gpu->launch(s.kernel, &config, NULL), JTN_OK);
    assert_has(jtn__error_message(), "coop");
    assert_has(jtn__error_message(), "9");
    assert_has(jtn__error_message(), "8"); /* what fits */
    gpu->unload(s.loaded);
}

static void too_many_threads_are_explained(void **state)
{
    sample s = sample_open("wide");
    jtn_launch_config config = config_of(1, 2048, 0);

    assert_int_not_equal(gpu->launch(s.kernel, &config, NULL), JTN_OK);
    assert_has(jtn__error_message(), "wide");
    assert_has(jtn__error_message(), "2048");
    assert_has(jtn__error_message(), "1024");
    assert_has(jtn__error_message(), "32 registers");
    config.block[0] = 32;
    assert_launches(s, &config); /* no trace is left */
    gpu->unload(s.loaded);
}

static void shared_memory_is_opted_in_when_static_and_dynamic_exceed_the_default(void **state)
{
    sample s;
    jtn_launch_config config = config_of(1, 32, 0);

    stub.static_shared(1024);
    s = sample_open("shared");
    config.shared_bytes = 48 * 1024; /* alone it would fit */
    assert_launches(s, &config);
    config.device = 1; /* granted for each device */
    assert_launches(s, &config);
    config.shared_bytes = 16;
    assert_launches(s, &config);
    config.shared_bytes = 300000;
    assert_int_equal(gpu->launch(s.kernel, &config, NULL), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "300000");
    assert_has(jtn__error_message(), "232448");
    gpu->unload(s.loaded);
}

static void a_device_that_is_not_there_is_named(void **state)
{
    sample s = sample_open("nowhere");
    jtn_launch_config config = config_of(1, 32, 5);

    assert_int_not_equal(gpu->launch(s.kernel, &config, NULL), JTN_OK);
    assert_has(jtn__error_message(), "5");
    assert_has(jtn__error_message(), "2");
    gpu->unload(s.loaded);
}

static void a_first_launch_during_a_capture_relaxes_it(void **state)
{
    sample s = sample_open("captured");
    jtn_launch_config config = config_of(1, 32, 0);

    assert_launches(s, &config);
    assert_int_equal(stub.get()->loads_uncovered, 0);
    assert_int_equal(stub.get()->capture_depth, 0);
    gpu->unload(s.loaded);
}

static void *launch_often(void *arg)
{
    jtn_launch_config config = config_of(1, 32, 0);

    for (int i = 0; i < 200; i++) {
        config.device = i % 2;
        if (gpu->launch(arg, &config, NULL) != JTN_OK)
            return (void *)1;
    }
    return NULL;
}

static void threads_launch_at_once(void **state)
{
    sample s = sample_open("many");
    pthread_t threads[4];
    void *failed;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, s.kernel), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(stub.get()->launches, 800);
    gpu->unload(s.loaded);
}

/* ---------------------------------------------------------------- kernels, globals, attributes ---- */

static void a_kernel_that_is_not_in_the_image_is_named(void **state)
{
    jtn_loaded *loaded;
    jtn_kernel *kernel;

    assert_int_equal(gpu->load(image, sizeof image, "sample", &loaded), JTN_OK);
    assert_int_not_equal(gpu->kernel(loaded, "missing", "absent", &kernel), JTN_OK);
    assert_has(jtn__error_message(), "missing");
    assert_has(jtn__error_message(), "CUDA_ERROR_NOT_FOUND (500)");
    gpu->unload(loaded);
}

static void an_image_of_another_architecture_says_both(void **state)
{
    jtn_loaded *loaded;

    stub.refuse("cuLibraryLoadData", 209, 1);
    assert_int_equal(gpu->load(image, sizeof image, "sample (sm_100)", &loaded), JTN_ERROR_DEVICE);
    assert_has(jtn__error_message(), "sm_100");
    assert_has(jtn__error_message(), "sm_90");
    assert_has(jtn__error_message(), "12.4");
    assert_int_equal(stub.get()->capture_depth, 0);
}

static void globals_have_an_address_on_each_device(void **state)
{
    sample s = sample_open("global");
    void *zero, *one;
    size_t size;

    assert_int_equal(gpu->global(s.loaded, "c", "c", 0, &zero, &size), JTN_OK);
    assert_int_equal(gpu->global(s.loaded, "c", "c", 1, &one, &size), JTN_OK);
    assert_ptr_not_equal(zero, one);
    assert_int_equal(size, 16);
    assert_int_equal(stub.current(), -1);
    assert_int_not_equal(gpu->global(s.loaded, "missing", "gone", 0, &zero, &size), JTN_OK);
    assert_has(jtn__error_message(), "gone");
    gpu->unload(s.loaded);
}

static void attributes_have_names(void **state)
{
    sample s = sample_open("told");
    int64_t value;

    assert_int_equal(gpu->attribute(s.kernel, "registers", 0, &value), JTN_OK);
    assert_int_equal(value, 32);
    assert_int_equal(gpu->attribute(s.kernel, "binary_version", 1, &value), JTN_OK);
    assert_int_equal(value, 90);
    assert_int_equal(gpu->attribute(s.kernel, "colour", 0, &value), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "max_dynamic_shared_bytes");
    gpu->unload(s.loaded);
}

static void parameter_sizes_come_from_the_image(void **state)
{
    sample s = sample_open("sized");
    size_t sizes[8] = {0};

    stub.params("sized", 3, (size_t[]){4, 8, 24});
    assert_int_equal(gpu->param_sizes(s.kernel, sizes, 2), 3);
    assert_int_equal(sizes[1], 8);
    assert_int_equal(sizes[2], 0); /* no further than the capacity */
    gpu->unload(s.loaded);
}

static void memory_is_allocated_copied_and_given_back(void **state)
{
    char back[4] = "";
    void *there;

    assert_int_equal(gpu->allocate(1, 4, &there), JTN_OK);
    assert_int_equal(gpu->copy(there, "abc", 4, NULL), JTN_OK);
    assert_int_equal(gpu->copy(back, there, 4, NULL), JTN_OK);
    assert_string_equal(back, "abc");
    gpu->release(1, there);
    assert_int_equal(stub.get()->memory, 0);
    assert_int_equal(stub.current(), -1);
    stub.refuse("cuMemAlloc_v2", 2, 1);
    assert_int_not_equal(gpu->allocate(0, 1 << 20, &there), JTN_OK);
    assert_has(jtn__error_message(), "1048576");
}

/* ---------------------------------------------------------------- once in a life ---- */

/* Runs check in a child; it returns NULL, or what was wrong. */
static void assert_in_child(const char *(*check)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        const char *wrong = check();

        if (wrong)
            fprintf(stderr, "%s; the message was: %s\n", wrong, jtn__error_message());
        _exit(wrong != NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const char *die(void)
{
    char arch[16];
    jtn_loaded *loaded;
    jtn_kernel *kernel;
    jtn_launch_config config = config_of(1, 32, 0);
    char first[1024];

    if (gpu->load(image, sizeof image, "sample", &loaded) || gpu->kernel(loaded, "killer", "killer", &kernel) ||
        gpu->launch(kernel, &config, NULL))
        return "the kernel does not run";
    stub.refuse("cuCtxSynchronize", 700, 1);
    if (gpu->synchronize(0) != JTN_ERROR_DEVICE)
        return "the error is not told";
    if (!strstr(jtn__error_message(), "killer") || !strstr(jtn__error_message(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"))
        return "kernel and error are not named";
    snprintf(first, sizeof first, "%s", jtn__error_message());
    if (gpu->launch(kernel, &config, NULL) != JTN_ERROR_DEVICE || stub.get()->launches != 1)
        return "a launch on a dead device reaches the driver";
    if (!strstr(jtn__error_message(), "killer"))
        return "the first text is not told again";
    config.device = 1;
    if (gpu->launch(kernel, &config, NULL) != JTN_OK)
        return "the other device is refused too";
    gpu->unload(loaded);
    return gpu->arch(0, arch) == JTN_OK ? NULL : "what needs no context is refused";
}

static const char *start_in_parent(void)
{
    int status;
    pid_t child;
    jtn_loaded *loaded;

    if (gpu->device_count() != STUB_DEVICES)
        return "the driver does not start";
    child = fork();
    if (child == 0) {
        if (gpu->device_count() != 0)
            _exit(1);
        if (!strstr(jtn__error_message(), "fork") && !strstr(jtn__error_message(), "child"))
            _exit(2);
        _exit(gpu->load(image, sizeof image, "sample", &loaded) == JTN_ERROR_DEVICE ? 0 : 3);
    }
    waitpid(child, &status, 0);
    return status == 0 ? NULL : "the child was let through, or not told why";
}

static const char *no_gpu(void)
{
    stub.refuse("cuInit", 100, -1);
    if (gpu->device_count() != 0)
        return "devices are counted";
    if (!strstr(jtn__error_message(), "GPU") || !strstr(jtn__error_message(), "CUDA_VISIBLE_DEVICES"))
        return "it is not said what to look at";
    return gpu->device_count() == 0 && strstr(jtn__error_message(), "GPU") ? NULL : "the second time it is told otherwise";
}

static const char *no_driver(void)
{
    setenv("JITNEY_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    if (gpu->device_count() != 0)
        return "devices are counted";
    return strstr(jtn__error_message(), "/nowhere/libcuda.so.1") ? NULL : "the library looked for is not named";
}

static void a_missing_driver_is_told_with_its_name(void **state)
{
    assert_in_child(no_driver);
}

static void a_machine_without_a_gpu_is_told_so_each_time(void **state)
{
    assert_in_child(no_gpu);
}

static void a_child_of_a_process_that_used_the_gpu_is_refused(void **state)
{
    assert_in_child(start_in_parent);
}

static void a_sticky_error_names_the_kernel_and_kills_its_device_alone(void **state)
{
    assert_in_child(die);
}

int main(void)
{
    /* those in children first: this process has not started the driver yet */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_missing_driver_is_told_with_its_name, set_up),
        cmocka_unit_test_setup(a_machine_without_a_gpu_is_told_so_each_time, set_up),
        cmocka_unit_test_setup(a_child_of_a_process_that_used_the_gpu_is_refused, set_up),
        cmocka_unit_test_setup(a_sticky_error_names_the_kernel_and_kills_its_device_alone, set_up),
        cmocka_unit_test_setup(devices_are_counted_without_a_context, set_up),
        cmocka_unit_test_setup(the_current_device_is_that_of_the_threads_context, set_up),
        cmocka_unit_test_setup(loading_sends_nothing_to_a_gpu_and_keeps_our_bytes, set_up),
        cmocka_unit_test_setup(a_thread_without_a_context_launches_and_has_none_afterwards, set_up),
        cmocka_unit_test_setup(somebody_elses_context_is_left_as_it_was, set_up),
        cmocka_unit_test_setup(the_primary_context_is_retained_once_for_each_device, set_up),
        cmocka_unit_test_setup(a_launch_hands_over_grid_block_stream_and_parameters, set_up),
        cmocka_unit_test_setup(clusters_and_cooperation_go_through_the_extended_launch, set_up),
        cmocka_unit_test_setup(a_cooperative_grid_that_does_not_fit_is_told_how_much_fits, set_up),
        cmocka_unit_test_setup(too_many_threads_are_explained, set_up),
        cmocka_unit_test_setup(shared_memory_is_opted_in_when_static_and_dynamic_exceed_the_default, set_up),
        cmocka_unit_test_setup(a_device_that_is_not_there_is_named, set_up),
        cmocka_unit_test_setup(a_first_launch_during_a_capture_relaxes_it, set_up),
        cmocka_unit_test_setup(threads_launch_at_once, set_up),
        cmocka_unit_test_setup(a_kernel_that_is_not_in_the_image_is_named, set_up),
        cmocka_unit_test_setup(an_image_of_another_architecture_says_both, set_up),
        cmocka_unit_test_setup(globals_have_an_address_on_each_device, set_up),
        cmocka_unit_test_setup(attributes_have_names, set_up),
        cmocka_unit_test_setup(parameter_sizes_come_from_the_image, set_up),
        cmocka_unit_test_setup(memory_is_allocated_copied_and_given_back, set_up),
    };
    return cmocka_run_group_tests(tests, set_up_all, NULL);
}
