/* Contexts of the backend cuda: the caller's device, streams, captures, too little memory, contexts
 * after a device error, no GPU. Runs on a GPU and on the host emulation of CUDA (HOST_CUDA), where
 * drivers and devices fail on demand.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_stream.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/backend.h"

static const double numbers[] = {3, 1, 7, 0, 4, 1, 6, 3};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static int current_device(void)
{
    int device = -1;
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    return device;
}

static int device_count(void)
{
    int count = 0;
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    return count;
}

/* Negates the numbers, to check that the context works. */
static void negate(spmv_context *ctx)
{
    double back[NUMBERS];
    void *memory = support_upload(ctx, numbers, sizeof numbers);
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
    assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
    for (int i = 0; i < NUMBERS; i++)
        assert_true(back[i] == -numbers[i]);
    spmv_free(ctx, memory);
}

/* A context without options is on this backend, and its description says this. */
static void check_default(spmv_backend backend, const char *says)
{
    spmv_context *ctx = support_context_by_default();
    assert_int_equal(spmv_context_backend(ctx), backend);
    assert_non_null(strstr(spmv_context_describe(ctx), says));
    assert_string_equal(spmv_last_error(ctx), "");
    spmv_context_destroy(ctx);
}

static void describes_the_device(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_of(-1, NULL);
    struct cudaDeviceProp properties;
    assert_int_equal(cudaGetDeviceProperties(&properties, current_device()), cudaSuccess);
    assert_non_null(strstr(spmv_context_describe(ctx), properties.name));
    assert_non_null(strstr(spmv_context_describe(ctx), "sm_"));
    assert_non_null(strstr(spmv_context_describe(ctx), "GiB"));
    spmv_context_destroy(ctx);
    check_default(SPMV_BACKEND_CUDA, "GiB");
}

static void callers_device_is_restored(void **state)
{
    (void)state;
    const int devices = device_count();
    for (int mine = 0; mine < devices && mine < 2; mine++) {
        for (int callers = 0; callers < devices && callers < 2; callers++) {
            assert_int_equal(cudaSetDevice(callers), cudaSuccess);
            spmv_context *ctx = support_context_of(mine, NULL);
            assert_int_equal(current_device(), callers);
            negate(ctx);
            assert_int_equal(current_device(), callers);
            assert_ok(ctx, spmv_synchronize(ctx));
            assert_int_equal(current_device(), callers);
            spmv_context_destroy(ctx);
            assert_int_equal(current_device(), callers);
        }
    }
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

static void devices_that_are_not_there(void **state)
{
    (void)state;
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_CUDA;
    options.device = 1000;
    spmv_context *ctx = NULL;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_NO_DEVICE);
    assert_null(ctx);
    assert_non_null(strstr(spmv_last_error(NULL), "1000"));
    options.device = -2;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_ARGUMENT);
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* the application's last error is clean */
}

static void application_streams(void **state)
{
    (void)state;
    cudaStream_t stream = support_stream();
    spmv_context *ctx = support_context_of(-1, stream);
    assert_ptr_equal(spmv_context_stream(ctx), stream);
    negate(ctx);
    spmv_context_destroy(ctx);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess); /* still the application's */
    if (device_count() > 1) {
        spmv_context_options options = support_context_options();
        options.backend = SPMV_BACKEND_CUDA;
        options.device = 1;
        options.stream = stream;
        assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_ARGUMENT);
        assert_non_null(strstr(spmv_last_error(NULL), "device 0"));
    }
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);

    ctx = support_context_of(-1, cudaStreamLegacy);
    assert_ptr_equal(spmv_context_stream(ctx), cudaStreamLegacy);
    negate(ctx);
    spmv_context_destroy(ctx);
}

static void own_stream(void **state)
{
    (void)state;
    spmv_context *a = support_context_of(-1, NULL), *b = support_context_of(-1, NULL);
    assert_non_null(spmv_context_stream(a));
    assert_ptr_not_equal(spmv_context_stream(a), spmv_context_stream(b));
    negate(a);
    spmv_context_destroy(a);
    negate(b);
    spmv_context_destroy(b);
}

/* A context whose stream changes: to the caller's, back to its own, to the default stream. */
static void streams_change(void **state)
{
    (void)state;
    cudaStream_t one = support_stream(), two = support_stream();
    for (int owned = 0; owned < 2; owned++) {
        spmv_context *ctx = support_context_of(-1, owned ? NULL : one);
        void *const first = spmv_context_stream(ctx);
        double back[NUMBERS];
        void *memory = support_upload(ctx, numbers, sizeof numbers);
        void *const streams[] = {two, two, NULL, cudaStreamLegacy, one, NULL};
        for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
            assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
            assert_ok(ctx, spmv_context_set_stream(ctx, streams[i]));
            if (streams[i] != NULL)
                assert_ptr_equal(spmv_context_stream(ctx), streams[i]);
            else if (owned)
                assert_ptr_equal(spmv_context_stream(ctx), first);
            else
                assert_ptr_not_equal(spmv_context_stream(ctx), one);
        }
        assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
        for (int i = 0; i < NUMBERS; i++)
            assert_true(back[i] == numbers[i]); /* negated six times */
        if (device_count() > 1) {
            void *const now = spmv_context_stream(ctx);
            assert_int_equal(cudaSetDevice(1), cudaSuccess);
            cudaStream_t other = support_stream();
            assert_int_equal(cudaSetDevice(0), cudaSuccess);
            assert_fails(ctx, spmv_context_set_stream(ctx, other), SPMV_ERROR_ARGUMENT, "device 1");
            assert_ptr_equal(spmv_context_stream(ctx), now);
            assert_int_equal(cudaStreamDestroy(other), cudaSuccess);
        }
        negate(ctx);
#ifdef HOST_CUDA
        void *const before = spmv_context_stream(ctx);
        host_cuda.capturing = 1;
        assert_fails(ctx, spmv_context_set_stream(ctx, two), SPMV_ERROR_CAPTURE, "changing the stream");
        host_cuda.capturing = 0;
        assert_false(host_cuda.capture_broken);
        assert_ptr_equal(spmv_context_stream(ctx), before);
#endif
        spmv_free(ctx, memory);
        spmv_context_destroy(ctx);
    }
    assert_int_equal(cudaStreamDestroy(one), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(two), cudaSuccess);
}

#ifndef HOST_CUDA
/* A graph captured before its context changes the stream still computes; so does one that is
 * captured on a stream that the context takes for the capture. */
static void graphs_outlive_their_stream(void **state)
{
    (void)state;
    cudaStream_t one = support_stream(), two = support_stream();
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    double back[NUMBERS];
    for (int during = 0; during < 2; during++) {
        spmv_context *ctx = support_context_of(-1, one);
        void *memory = support_upload(ctx, numbers, sizeof numbers);
        negate(ctx); /* loads the kernel */
        assert_int_equal(cudaStreamBeginCapture(during ? two : one, cudaStreamCaptureModeRelaxed), cudaSuccess);
        if (during)
            assert_ok(ctx, spmv_context_set_stream(ctx, two));
        assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
        assert_int_equal(cudaStreamEndCapture(during ? two : one, &graph), cudaSuccess);
        assert_int_equal(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
        assert_ok(ctx, spmv_context_set_stream(ctx, during ? one : two));
        assert_int_equal(cudaGraphLaunch(replay, during ? one : two), cudaSuccess);
        assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
        for (int i = 0; i < NUMBERS; i++)
            assert_true(back[i] == -numbers[i]);
        assert_int_equal(cudaGraphExecDestroy(replay), cudaSuccess);
        assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
        spmv_free(ctx, memory);
        spmv_context_destroy(ctx);
    }
    assert_int_equal(cudaStreamDestroy(one), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(two), cudaSuccess);
}
#endif

static void too_much_memory(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_of(-1, NULL);
    void *memory = &ctx;
    assert_fails(ctx, spmv_alloc(ctx, INT64_MAX, &memory), SPMV_ERROR_MEMORY, "9223372036854775807");
    assert_null(memory);
    struct cudaDeviceProp properties;
    assert_int_equal(cudaGetDeviceProperties(&properties, current_device()), cudaSuccess);
    /* the size of the whole device memory, some of which is in use */
    assert_fails(ctx, spmv_alloc(ctx, (int64_t)properties.totalGlobalMem, &memory), SPMV_ERROR_MEMORY, "device memory");
    assert_null(memory);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    negate(ctx); /* the context still works */
    spmv_context_destroy(ctx);
}

/* Memory for queued work: from a pool if the device has one, else from the device; both are freed
 * the same way. */
static void memory_for_queued_work(void **state)
{
    (void)state;
    double back[NUMBERS] = {0};
    struct cudaDeviceProp properties;
    assert_int_equal(cudaGetDeviceProperties(&properties, current_device()), cudaSuccess);
#ifdef HOST_CUDA
    for (int without = 0; without < 2; without++) {
        const struct host_cuda before = host_cuda;
        host_cuda.without_pools = without;
#endif
        spmv_context *ctx = support_context_of(-1, NULL);
        void *memory = &ctx;
        for (int twice = 0; twice < 2; twice++) {
            assert_ok(ctx, context_alloc(ctx, sizeof numbers, &memory));
            assert_ok(ctx, spmv_upload(ctx, numbers, memory, sizeof numbers));
            assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
            assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
            for (int i = 0; i < NUMBERS; i++)
                assert_true(back[i] == -numbers[i]);
            context_keep_freed(ctx, twice == 0);
            (twice == 0 ? spmv_free : context_free)(ctx, memory);
        }
        context_free(ctx, NULL);
        assert_fails(ctx, context_alloc(ctx, (int64_t)properties.totalGlobalMem, &memory), SPMV_ERROR_MEMORY,
                     "device memory");
        assert_null(memory);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
        assert_ok(ctx, context_alloc(ctx, 0, &memory));
        assert_null(memory);
        negate(ctx); /* the context still works */
        spmv_context_destroy(ctx);
#ifdef HOST_CUDA
        /* the last one twice */
        assert_int_equal(host_cuda.from_pools - before.from_pools, without ? 0 : 4);
        assert_int_equal(host_cuda.trims - before.trims, without ? 0 : 1);
        assert_int_equal(host_cuda.allocations, before.allocations);
        assert_int_equal(host_cuda.others, before.others);
        host_cuda.without_pools = 0;
    }
#endif
}

/* While the stream is captured, calls that wait or allocate are refused and leave the capture
 * valid; calls that only queue are recorded. */
static void captures(void **state)
{
    (void)state;
    cudaStream_t stream = support_stream();
    spmv_context *ctx = support_context_of(-1, stream);
    double back[NUMBERS] = {0};
    void *const memory = support_upload(ctx, numbers, sizeof numbers), *const spare = support_upload(ctx, numbers, 8);
    /* loads the kernels; negating twice restores the numbers */
    for (int twice = 0; twice < 2; twice++)
        assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, memory, memory, NUMBERS));
#ifdef HOST_CUDA
    host_cuda.capturing = 1;
#else
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
#endif
    void *more = NULL;
    assert_fails(ctx, spmv_alloc(ctx, 64, &more), SPMV_ERROR_CAPTURE, "before the capture");
    assert_null(more);
    assert_fails(ctx, context_scratch(ctx, (int64_t)1 << 24, &more), SPMV_ERROR_CAPTURE, "before the capture");
    assert_fails(ctx, spmv_upload(ctx, numbers, memory, 8), SPMV_ERROR_CAPTURE, "upload");
    assert_fails(ctx, spmv_download(ctx, memory, back, 8), SPMV_ERROR_CAPTURE, "download");
    assert_fails(ctx, spmv_synchronize(ctx), SPMV_ERROR_CAPTURE, "waiting");
    spmv_free(ctx, spare); /* deferred */
    /* the scratch of the primitives exists already */
    assert_ok(ctx, context_scratch(ctx, (int64_t)1 << 20, &more));
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, memory, memory, NUMBERS));
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
#ifdef HOST_CUDA
    host_cuda.capturing = 0;
    assert_false(host_cuda.capture_broken);
    const int64_t allocations = host_cuda.allocations;
    assert_ok(ctx, spmv_synchronize(ctx));
    assert_int_equal(host_cuda.allocations, allocations - 1); /* the deferred release is done */
#else
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    for (int times = 1; times <= 3; times++) {
        assert_int_equal(cudaGraphLaunch(replay, stream), cudaSuccess);
        assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
        for (int i = 0; i < NUMBERS; i++)
            assert_true(back[i] == (times % 2 ? -numbers[i] : numbers[i]));
    }
    assert_int_equal(cudaGraphExecDestroy(replay), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
#endif
    assert_ok(ctx, spmv_download(ctx, memory, back, sizeof back));
    spmv_free(ctx, memory);
    spmv_context_destroy(ctx);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

/* After a device error every call fails with the first error and the name of the queued kernel.
 * Destroying the context still works. */
static void expect_dead(spmv_context *ctx, void *memory)
{
    double number = 0;
    assert_fails(ctx, spmv_synchronize(ctx), SPMV_ERROR_DEVICE, "map_packs");
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, 1), SPMV_ERROR_DEVICE, "earlier");
    assert_fails(ctx, spmv_download(ctx, memory, &number, 8), SPMV_ERROR_DEVICE, "map_packs");
    assert_fails(ctx, spmv_alloc(ctx, 8, &memory), SPMV_ERROR_DEVICE, "map_packs");
}

#ifdef HOST_CUDA

static void dead_contexts(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_of(-1, NULL);
    void *memory = support_upload(ctx, numbers, sizeof numbers);
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, NUMBERS));
    host_cuda.sticky_error = cudaErrorIllegalAddress;
    expect_dead(ctx, memory);
    host_cuda.sticky_error = cudaSuccess;
    expect_dead(ctx, memory); /* it stays dead */
    spmv_free(ctx, memory);
    spmv_context_destroy(ctx);
    assert_int_equal(host_cuda.allocations, 0);
    cudaGetLastError();

    ctx = support_context_of(-1, NULL);
    memory = support_upload(ctx, numbers, sizeof numbers);
    host_cuda.launch_error = cudaErrorInvalidValue;
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, memory, memory, 1), SPMV_ERROR_DEVICE, "map_packs (map)");
    host_cuda.launch_error = cudaSuccess;
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    spmv_free(ctx, memory);
    spmv_context_destroy(ctx);
    assert_int_equal(host_cuda.allocations, 0);
}

/* "auto" falls back to OpenMP and reports why, whatever makes the GPU unusable; no memory leaks. */
static void auto_falls_back(void **state)
{
    (void)state;
    for (int fault = 0; fault < 5; fault++) {
        const struct host_cuda before = host_cuda;
        const char *const why[] = {"error 35", "no usable CUDA device", "needs sm_80", "error 209",
                                   "no NVIDIA driver found"};
        host_cuda.no_driver = fault == 4;
        if (fault == 0 || fault == 4)
            host_cuda.driver_error = cudaErrorInsufficientDriver;
        else if (fault == 1)
            host_cuda.devices = 0;
        else if (fault == 2)
            host_cuda.major = 7;
        else
            host_cuda.launch_error = cudaErrorNoKernelImageForDevice;
        spmv_context *ctx = NULL;
        check_default(SPMV_BACKEND_OMP, why[fault]);
        spmv_context_options options = support_context_options();
        options.backend = SPMV_BACKEND_CUDA;
        assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_NO_DEVICE);
        assert_non_null(strstr(spmv_last_error(NULL), why[fault]));
        assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
        assert_int_equal(host_cuda.allocations, before.allocations);
        assert_int_equal(host_cuda.others, before.others);
        host_cuda = before;
    }
}

/* A device that is there but full is not a missing device: a test fails, and is not skipped. */
static void full_device(void **state)
{
    (void)state;
    const struct host_cuda before = host_cuda;
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_CUDA;
    options.device = 1;
    for (int granted = 0; granted < 3; granted++) {
        spmv_context *ctx = NULL;
        host_cuda.granted = granted;
        host_cuda.refused = 1;
        assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_MEMORY);
        assert_null(ctx);
        assert_non_null(strstr(spmv_last_error(NULL), "CUDA device 1 is there, but its memory is full: "));
        assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
        assert_int_equal(host_cuda.allocations, before.allocations);
        assert_int_equal(host_cuda.others, before.others);
    }
    host_cuda.granted = 0;
    host_cuda.refused = 1;
    check_default(SPMV_BACKEND_OMP, "its memory is full");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        host_cuda.refused = 1;
        support_begin(3, (char *[]){"test", "cuda", "none"});
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    host_cuda = before;
}

/* A device with pools that fail, or whose threshold cannot be set, is still used. */
static void pools_that_fail(void **state)
{
    (void)state;
    for (int fault = 0; fault < 2; fault++) {
        const struct host_cuda before = host_cuda;
        *(fault == 0 ? &host_cuda.pool_error : &host_cuda.pool_attribute_error) = cudaErrorInvalidValue;
        spmv_context *ctx = support_context_of(-1, NULL);
        void *memory = NULL;
        assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
        assert_ok(ctx, context_alloc(ctx, sizeof numbers, &memory));
        assert_non_null(memory);
        assert_int_equal(host_cuda.from_pools - before.from_pools, fault);
        spmv_free(ctx, memory);
        negate(ctx);
        spmv_context_destroy(ctx);
        assert_int_equal(host_cuda.allocations, before.allocations);
        assert_int_equal(host_cuda.others, before.others);
        host_cuda = before;
    }
}

/* The block that a context keeps from its last solve is released for its scratch, too. */
static void kept_blocks_give_way(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_of(-1, NULL);
    const int64_t bytes = (int64_t)1 << 24;
    void *kept = NULL, *scratch = NULL;
    assert_ok(ctx, context_lend(ctx, bytes, &kept));
    context_take_back(ctx, kept);
    const int64_t allocations = host_cuda.allocations;
    host_cuda.refused = 2; /* the second attempt comes after the pool is trimmed */
    assert_ok(ctx, context_scratch(ctx, bytes, &scratch));
    assert_non_null(scratch);
    assert_string_equal(spmv_last_error(ctx), "");
    assert_int_equal(host_cuda.refused, 0);
    /* less the kept block; the new scratch replaces the old one */
    assert_int_equal(host_cuda.allocations, allocations - 1);
    spmv_context_destroy(ctx);
}

#else

/* Runs this program with the argument, in a process of its own; hidden: without visible devices. */
static void run_again(const char *argument, bool hidden)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (hidden)
            setenv("CUDA_VISIBLE_DEVICES", "", 1);
        execl("/proc/self/exe", "test_cuda_context", argument, (char *)NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In its own process, because the error ends the process's use of the device. */
static void dead_contexts(void **state)
{
    (void)state;
    run_again("dead", false);
}

/* Uses an array at an invalid address. */
static void dies(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_of(-1, NULL);
    void *memory = support_upload(ctx, numbers, sizeof numbers);
    (void)spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, (const void *)(uintptr_t)4096, memory, 1);
    expect_dead(ctx, memory);
    spmv_free(ctx, memory);
    spmv_context_destroy(ctx);
}

/* A driver without visible devices. Also runs without a GPU. */
static void auto_falls_back(void **state)
{
    (void)state;
    run_again("hidden", true);
}

static void falls_back(void **state)
{
    (void)state;
    spmv_context *ctx = NULL;
    check_default(SPMV_BACKEND_OMP, "no usable CUDA device");
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_CUDA;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_NO_DEVICE);
    assert_non_null(strstr(spmv_last_error(NULL), "no usable CUDA device"));
}

#endif

int main(int argc, char **argv)
{
#ifndef HOST_CUDA
    if (argc > 1 && strcmp(argv[1], "dead") == 0) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(dies)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    if (argc > 1 && strcmp(argv[1], "hidden") == 0) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(falls_back)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
#endif
    const struct CMUnitTest anywhere[] = {cmocka_unit_test(auto_falls_back)};
    const int failed = cmocka_run_group_tests(anywhere, NULL, NULL);
    if (failed != 0)
        return failed;
    support_begin(argc, argv); /* skipped from here on without a GPU */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_contexts),
        cmocka_unit_test(describes_the_device),
        cmocka_unit_test(callers_device_is_restored),
        cmocka_unit_test(devices_that_are_not_there),
        cmocka_unit_test(application_streams),
        cmocka_unit_test(own_stream),
        cmocka_unit_test(streams_change),
#ifndef HOST_CUDA
        cmocka_unit_test(graphs_outlive_their_stream),
#endif
        cmocka_unit_test(too_much_memory),
        cmocka_unit_test(memory_for_queued_work),
        cmocka_unit_test(captures),
#ifdef HOST_CUDA
        cmocka_unit_test(full_device),
        cmocka_unit_test(pools_that_fail),
        cmocka_unit_test(kept_blocks_give_way),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
