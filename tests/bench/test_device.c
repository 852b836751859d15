/* Devices of the benchmark: runs are counted and timed, caches are flushed, bandwidths are
 * measured, bytes are filled, copied and compared, failures return their message.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/device.h"

#include <stdbool.h>
#include <unistd.h>

#include "bench/timing.h"
#include "tests/support/support.h"

enum { ELEMENTS = 1 << 16, REPEATS = 7 };

/* A run: a scan, or a failure at call number fails_at. */
struct work {
    spmv_context *ctx;
    void *in, *out;
    int calls, fails_at;
};

static int run(void *state)
{
    struct work *const w = state;
    if (++w->calls == w->fails_at)
        return -1;
    return spmv_scan(w->ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, w->in, w->out, ELEMENTS) == SPMV_OK ? 0 : -1;
}

/* The device of a test, and what it runs. */
static struct device device;
static struct work w;
static char why[WHY_SIZE];

static int open_device(void **unused)
{
    (void)unused;
    why[0] = '\0';
    const int failed =
        support_backend == SPMV_BACKEND_CUDA ? device_open_cuda(-1, &device, why) : device_open_cpu(2, &device, why);
    if (failed != 0)
        print_error("no device: %s\n", why);
    return failed;
}

static int close_device(void **unused)
{
    (void)unused;
    device_close(&device);
    return 0;
}

#define on_device(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)

static void begin_work(void)
{
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    options.stream = device.stream;
    w = (struct work){0};
    assert_int_equal(spmv_context_create(&options, &w.ctx), SPMV_OK);
    const int64_t bytes = ELEMENTS * (int64_t)sizeof(double);
    double *const host = calloc(ELEMENTS, sizeof *host);
    assert_non_null(host);
    assert_int_equal(spmv_alloc(w.ctx, bytes, &w.in), SPMV_OK);
    assert_int_equal(spmv_alloc(w.ctx, bytes, &w.out), SPMV_OK);
    assert_int_equal(spmv_upload(w.ctx, host, w.in, bytes), SPMV_OK);
    free(host);
}

static void end_work(void)
{
    support_free_in(w.ctx, w.in, w.out);
    spmv_context_destroy(w.ctx);
}

static void test_describes(void **unused)
{
    (void)unused;
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    assert_true(strlen(device.name) > 0);
    assert_true(device.memory_bytes > 0);
    assert_int_equal(device.threads, gpu ? 0 : 2);
    assert_true((device.stream != NULL) == gpu);
    assert_true((strstr(device.software, "CUDA ") != NULL) == gpu);
    assert_true(gpu ? device.cache_bytes > 0 : device.cache_bytes >= 0);
    device_close(&device);
    assert_null(device.functions);
    device_close(&device); /* closing again does nothing */
}

/* The time covers the runs: it is positive and at most the elapsed time. */
static void test_batch(void **unused)
{
    (void)unused;
    begin_work();
    for (int repeats = 1; repeats <= 64; repeats *= 8) {
        double seconds = 0;
        w.calls = 0;
        const double began = monotonic_seconds();
        assert_int_equal(device.functions->time_batch(&device, run, &w, repeats, &seconds, why), 0);
        const double passed = monotonic_seconds() - began;
        assert_int_equal(w.calls, repeats);
        assert_true(seconds > 0);
        assert_true(seconds <= 1.01 * passed + 1e-5);
    }
    end_work();
}

static void test_flushed(void **unused)
{
    (void)unused;
    double samples[REPEATS + 1];
    begin_work();
    for (int i = 0; i <= REPEATS; i++)
        samples[i] = -1;
    assert_int_equal(device.functions->time_flushed(&device, run, &w, REPEATS, samples, why), 0);
    assert_int_equal(w.calls, REPEATS);
    for (int i = 0; i < REPEATS; i++)
        assert_true(samples[i] > 0);
    assert_true(samples[REPEATS] == -1);
    assert_int_equal(device.functions->flush(&device, why), 0);
    assert_int_equal(device.functions->wait(&device, why), 0);
    end_work();
}

/* A failing run ends the measurement with its message; the device stays usable. */
static void test_failing_run(void **unused)
{
    (void)unused;
    double seconds = 0, samples[REPEATS];
    begin_work();
    w.fails_at = 3;
    assert_int_equal(device.functions->time_batch(&device, run, &w, 5, &seconds, why), -1);
    assert_int_equal(w.calls, 3);
    assert_string_equal(why, "run 3 of 5 failed");
    w.calls = 0;
    why[0] = '\0';
    assert_int_equal(device.functions->time_flushed(&device, run, &w, REPEATS, samples, why), -1);
    assert_int_equal(w.calls, 3);
    assert_non_null(strstr(why, "failed"));
    w.fails_at = 0;
    assert_int_equal(device.functions->time_batch(&device, run, &w, 5, &seconds, why), 0);
    assert_true(seconds > 0);
    end_work();
}

static void test_bytes(void **unused)
{
    enum { BYTES = 1037 }; /* no whole words */
    (void)unused;
    begin_work();
    const struct device_functions *const f = device.functions;
    unsigned char *const a = w.in, *const b = w.out;
    unsigned char host[BYTES];
    static const int places[] = {0, 15, 16, 1023, 1024, 1036};
    bool same = false;
    assert_int_equal(f->fill(&device, 0xa5, a, BYTES, why), 0);
    assert_int_equal(f->copy(&device, a, b, BYTES, why), 0);
    assert_int_equal(f->same(&device, a, b, BYTES, &same, why), 0);
    assert_true(same);
    assert_ok(w.ctx, spmv_download(w.ctx, b, host, BYTES));
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(host[i], 0xa5);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const unsigned char other = 0xa4;
        assert_ok(w.ctx, spmv_upload(w.ctx, &other, b + places[i], 1));
        assert_int_equal(f->same(&device, a, b, BYTES, &same, why), 0);
        assert_false(same);
        assert_int_equal(f->same(&device, a, b, places[i], &same, why), 0);
        assert_true(same);
        assert_int_equal(f->copy(&device, a, b, BYTES, why), 0);
    }
    end_work();
}

static void test_bandwidth(void **unused)
{
    (void)unused;
    struct bandwidth b;
    if (device.functions->bandwidth(&device, &b, why) != 0)
        fail_msg("%s", why);
    print_message("copy %.4g GB/s, read %.4g GB/s, arrays of %lld bytes\n", b.copy_gbs, b.read_gbs,
                  (long long)b.array_bytes);
    assert_true(b.copy_gbs > 0);
    assert_true(b.read_gbs > 0);
    if (support_backend == SPMV_BACKEND_CUDA) {
        assert_true(b.triad_gbs == 0);
        assert_true(b.array_bytes > 2 * device.cache_bytes);
    } else {
        assert_true(b.triad_gbs > 0);
        assert_int_equal(b.threads, 2);
        assert_int_equal(b.array_bytes, bandwidth_array_bytes());
    }
}

/* Arrays are four times the last-level caches and at least 64 MiB. The environment variable that
 * other tests use overrides the size of the caches and removes the lower limit. */
static void test_caches(void **unused)
{
    (void)unused;
    assert_int_equal(unsetenv("SPMV_TEST_CACHE_BYTES"), 0); /* run_tests.sh sets it */
    const int64_t real = last_level_cache_bytes();
    const int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 16;
    assert_true(real >= 0);
    assert_int_equal(setenv("SPMV_TEST_CACHE_BYTES", "25165824", 1), 0);
    assert_int_equal(last_level_cache_bytes(), 25165824);
    assert_int_equal(bandwidth_array_bytes(), most < 100663296 ? most : 100663296);
    assert_int_equal(setenv("SPMV_TEST_CACHE_BYTES", "1048576", 1), 0);
    assert_int_equal(least_array_bytes(), 0);
    assert_int_equal(bandwidth_array_bytes(), 4194304);
    assert_int_equal(setenv("SPMV_TEST_CACHE_BYTES", "none", 1), 0);
    assert_int_equal(last_level_cache_bytes(), real);
    assert_int_equal(unsetenv("SPMV_TEST_CACHE_BYTES"), 0);
    assert_int_equal(least_array_bytes(), 67108864);
    assert_true(bandwidth_array_bytes() >= (most < 67108864 ? most : 67108864));
}

static void test_no_such_gpu(void **unused)
{
    (void)unused;
    static const int wrong[] = {1000, -2};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why[0] = '\0';
        assert_int_equal(device_open_cuda(wrong[i], &device, why), -1);
        assert_non_null(strstr(why, "no ")); /* such GPU; usable GPU; CUDA */
        assert_null(device.functions);
        device_close(&device);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        on_device(test_describes),          on_device(test_batch),         on_device(test_flushed),
        on_device(test_failing_run),        on_device(test_bytes),         on_device(test_bandwidth),
        cmocka_unit_test(test_no_such_gpu), cmocka_unit_test(test_caches),
    };
    support_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
