/* Limits of processors and memory, from files in the form of Linux's that this test writes; limits
 * on the memory of jobs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include <limits.h>
#include <sys/stat.h>

#include "core/system_limits.h"
#include "core/threads.h"

static char root[64];

/* Writes the file root/path and creates its folders. */
static void put(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", root, path);
    for (char *slash = strchr(name + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(name, 0700);
        *slash = '/';
    }
    FILE *const file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int new_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/spmv-machine-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void put_version_2(const char *path, const char *part)
{
    char line[256];
    snprintf(line, sizeof line, "0::%s\n", path);
    put("proc/self/cgroup", line);
    snprintf(line, sizeof line, "30 20 0:26 %s /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", part);
    put("proc/self/mountinfo", line);
}

/* The quota of processors after this file has this text. */
static void check_quota(const char *file, const char *text, int expected)
{
    put(file, text);
    assert_int_equal(machine_cpu_quota(root), expected);
}

static void quota_of_version_2(void **state)
{
    (void)state;
    assert_int_equal(machine_cpu_quota(root), INT_MAX);
    put_version_2("/a/b", "/");
    assert_int_equal(machine_cpu_quota(root), INT_MAX);
    check_quota("sys/fs/cgroup/a/b/cpu.max", "max 100000\n", INT_MAX);
    check_quota("sys/fs/cgroup/a/cpu.max", "250000 100000\n", 3); /* the parent group */
    check_quota("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n", 2);
    check_quota("sys/fs/cgroup/a/b/cpu.max", "1000 100000\n", 1);
}

/* A container sees its own part of the hierarchy at the mount point. */
static void quota_in_a_container(void **state)
{
    (void)state;
    put_version_2("/docker/0123/job", "/docker/0123");
    check_quota("sys/fs/cgroup/job/cpu.max", "400000 100000\n", 4);
    check_quota("sys/fs/cgroup/cpu.max", "150000 50000\n", 3);
    put_version_2("/../other", "/");
    assert_int_equal(machine_cpu_quota(root), 3);
}

static void limits_of_version_1(void **state)
{
    (void)state;
    const char *limit = NULL;
    put("proc/self/cgroup", "5:cpuacct,cpu:/g\n4:memory:/g/h\n1:name=systemd:/\n");
    put("proc/self/mountinfo", "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                               "32 20 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n");
    put("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "-1\n");
    check_quota("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n", INT_MAX);
    check_quota("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "510000\n", 6);
    put("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   90 kB\nSwapFree: 5 kB\n");
    put("sys/fs/cgroup/memory/g/h/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(machine_memory_available(root, &limit), 95 * 1024);
    assert_string_equal(limit, "the free memory of this machine");
    put("sys/fs/cgroup/memory/g/memory.limit_in_bytes", "60000\n");
    put("sys/fs/cgroup/memory/g/memory.usage_in_bytes", "50000\n");
    put("sys/fs/cgroup/memory/g/memory.stat", "cache 1\ninactive_file 7\ntotal_inactive_file 20000\n");
    assert_int_equal(machine_memory_available(root, &limit), 30000);
    assert_string_equal(limit, "the memory limit of the control group");
}

static void memory_of_version_2(void **state)
{
    (void)state;
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 500000 kB\nSwapFree: 0 kB\n");
    put_version_2("/a", "/");
    put("sys/fs/cgroup/a/memory.max", "100000000\n");
    assert_int_equal(machine_memory_available(root, NULL), 100000000);
    put("sys/fs/cgroup/a/memory.current", "30000000\n");
    assert_int_equal(machine_memory_available(root, NULL), 70000000);
    put("sys/fs/cgroup/a/memory.stat", "anon 20000000\ninactive_file 4000000\nactive_file 0\n");
    assert_int_equal(machine_memory_available(root, NULL), 74000000);
    put("sys/fs/cgroup/a/memory.current", "999000000\n"); /* more than the limit: nothing is left */
    assert_int_equal(machine_memory_available(root, NULL), 0);
}

static void of_this_machine(void **state)
{
    (void)state;
    int64_t used = 0;
    const char *limit = NULL;
    assert_true(spmv_memory_available(&used, &limit) > 0);
    assert_true(used > 0);
    assert_non_null(limit);
    assert_true(spmv_memory_available(NULL, NULL) > 0);
}

struct asked {
    spmv_matrix_size size;
    int64_t answer;
};

static int64_t answer(const spmv_matrix_size *size, void *user)
{
    struct asked *const asked = user;
    asked->size = *size;
    return asked->answer;
}

static void a_job_is_held_to_its_limit(void **state)
{
    (void)state;
    struct asked asked = {.answer = 1001};
    spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 2);
    spmv_matrix *matrix = NULL;
    spmv_generate_options options = support_generate_options();
    options.type = SPMV_F32;
    options.max_bytes = 1000;
    options.job_bytes = answer;
    options.user = &asked;
    assert_fails(ctx, spmv_matrix_generate_within(ctx, "dense:3,5", &options, &matrix), SPMV_ERROR_MEMORY,
                 "3 x 5 matrix of 15 stored entries");
    assert_null(matrix);
    assert_int_equal(asked.size.rows, 3);
    assert_int_equal(asked.size.cols, 5);
    assert_int_equal(asked.size.entries, 15);
    assert_int_equal(asked.size.type, SPMV_F32);
    assert_int_equal(asked.size.matrix_bytes, 4 * 8 + 15 * (4 + 4));
    asked.answer = 1000;
    assert_ok(ctx, spmv_matrix_generate_within(ctx, "dense:3,5", &options, &matrix));
    spmv_matrix_destroy(matrix);
    options.job_bytes = NULL;
    options.max_bytes = 100;
    assert_fails(ctx, spmv_matrix_generate_within(ctx, "dense:3,5", &options, &matrix), SPMV_ERROR_MEMORY, "100");
    options.max_bytes = -1;
    assert_fails(ctx, spmv_matrix_generate_within(ctx, "dense:3,5", &options, &matrix), SPMV_ERROR_ARGUMENT, "-1");
    assert_ok(ctx, spmv_matrix_generate_within(ctx, "dense:3,5", NULL, &matrix));
    spmv_matrix_destroy(matrix);

    put("A.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n1 1\n2 1\n4 3\n");
    char path[128];
    snprintf(path, sizeof path, "%s/A.mtx", root);
    spmv_read_options read = support_read_options();
    read.max_bytes = 1000;
    read.job_bytes = answer;
    read.user = &asked;
    asked.answer = 1001;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &read, &matrix, NULL, 0), SPMV_ERROR_MEMORY,
                 "A.mtx:2:1: with a 4 x 4");
    assert_null(matrix);
    assert_int_equal(asked.size.entries, 6);
    assert_int_equal(asked.size.pattern, 1);
    assert_true(asked.size.load_bytes >= asked.size.matrix_bytes);
    asked.answer = 0;
    assert_ok(ctx, spmv_matrix_read(ctx, path, &read, &matrix, NULL, 0));
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

static void too_many_threads(void **state)
{
    (void)state;
    spmv_context *ctx = NULL;
    spmv_context_options options = support_context_options();
    const spmv_backend backends[] = {SPMV_BACKEND_REF, SPMV_BACKEND_OMP, SPMV_BACKEND_AUTO};
    for (int b = 0; b < 3; b++) {
        options.backend = backends[b];
        options.threads = 100000;
        assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_ARGUMENT);
        assert_null(ctx);
        assert_non_null(strstr(spmv_last_error(NULL), "100000 threads: must be from 1 to 1024"));
    }
}

/* Loops use all threads or one, never a team of another size. */
static void teams_have_one_size(void **state)
{
    spmv_context *ctx = *state;
    assert_int_equal(team_threads(ctx, TEAM_WORTH_AWAKE - 1, TEAM_WORTH_AWAKE), 1);
    assert_int_equal(team_threads(ctx, TEAM_WORTH_AWAKE, TEAM_WORTH_AWAKE), 3);
    assert_int_equal(host_team(ctx, TEAM_WORTH_ASLEEP - 1), 1);
    assert_int_equal(host_team(ctx, TEAM_WORTH_ASLEEP), 3);
}

SUPPORT_MAIN(cmocka_unit_test_setup_teardown(quota_of_version_2, new_root, remove_root),
             cmocka_unit_test_setup_teardown(quota_in_a_container, new_root, remove_root),
             cmocka_unit_test_setup_teardown(limits_of_version_1, new_root, remove_root),
             cmocka_unit_test_setup_teardown(memory_of_version_2, new_root, remove_root),
             cmocka_unit_test_setup_teardown(a_job_is_held_to_its_limit, new_root, remove_root),
             cmocka_unit_test(of_this_machine), cmocka_unit_test(too_many_threads), with_omp(teams_have_one_size, 3))
