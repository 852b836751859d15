/* The number of threads (threads.h).
 *
 * libgomp ends the process if it cannot start a thread, or if a stack is too small. So both are
 * tested before the first team: as many threads as the team will have are started and ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/system_limits.h"

/* Stack that a thread of the library needs: 48 KB were enough for all commands; the rest is for
 * unoptimised builds. */
enum { LEAST_STACK = 128 << 10 };

/* ---------------------------------------------------------------- stacks */

/* The value of OMP_STACKSIZE or GOMP_STACKSIZE in bytes, as defined in OpenMP 5.2, section 21.2.2:
 * a number of kilobytes, or a number with a unit B, K, M or G. -1: not set, or not valid, which
 * libgomp ignores. */
static int64_t stack_asked(const char *text)
{
    char *end = NULL;
    if (text == NULL)
        return -1;
    const long long number = strtoll(text, &end, 10);
    if (end == text || number < 0)
        return -1;
    end += strspn(end, " \t");
    const char *const units = "bBkKmMgG";
    const char *const unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (*end != '\0' && (unit == NULL || end[1 + strspn(end + 1, " \t")] != '\0'))
        return -1;
    const int shift = unit != NULL ? 10 * (int)((unit - units) / 2) : 10;
    return number <= INT64_MAX >> shift ? (int64_t)number << shift : -1;
}

/* Sets the attributes with which libgomp starts its threads. *bytes: the stack size. */
static void set_stack(pthread_attr_t *attributes, int64_t *bytes, const char **setting)
{
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    size_t standard = 0;
    pthread_attr_getstacksize(attributes, &standard);
    *bytes = (int64_t)standard;
    *setting = "ulimit -s";
    for (int i = 0; i < 2; i++) {
        const int64_t asked = stack_asked(getenv(names[i]));
        if (asked >= 0 && pthread_attr_setstacksize(attributes, (size_t)asked) == 0) {
            *bytes = asked;
            *setting = names[i];
            return;
        }
    }
}

/* ---------------------------------------------------------------- a trial */

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* How many of n threads can run at the same time in addition to this one. */
static int count_startable(const pthread_attr_t *attributes, int n)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *const thread = malloc((size_t)n * sizeof *thread);
    int started = 0;
    pthread_mutex_lock(&gate);
    while (thread != NULL && started < n && pthread_create(&thread[started], attributes, wait_at_gate, &gate) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int t = 0; t < started; t++)
        pthread_join(thread[t], NULL);
    pthread_mutex_destroy(&gate);
    free(thread);
    return started;
}

static bool space_is_limited(void)
{
    struct rlimit space;
    return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
}

/* Starts OpenMP's threads now, and they stay: with limited address space, arrays could later occupy
 * the space that the stacks need. */
static void start_team(int threads)
{
#pragma omp parallel num_threads(threads)
    {
    }
}

/* *most: how many of `threads` > 1 threads can run. */
static spmv_status try_threads(spmv_context *ctx, int threads, int *most)
{
    static atomic_int proven; /* by an earlier context of this process */
    pthread_attr_t attributes;
    int64_t stack = 0;
    const char *setting = "";
    *most = threads;
    if (atomic_load(&proven) >= threads)
        return SPMV_OK;
    pthread_attr_init(&attributes);
    set_stack(&attributes, &stack, &setting);
    if (stack >= LEAST_STACK)
        *most = 1 + count_startable(&attributes, threads - 1);
    pthread_attr_destroy(&attributes);
    if (stack < LEAST_STACK)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "OpenMP threads have stacks of %lld bytes (%s), at least %d are needed: set a larger "
                            "size, or use one thread",
                            (long long)stack, setting, LEAST_STACK);
    if (*most == threads)
        atomic_store(&proven, threads);
    if (space_is_limited())
        start_team(*most);
    return SPMV_OK;
}

/* ---------------------------------------------------------------- the choice */

/* The default of OpenMP, limited by the CPU quota if it is the number of processors. A number that
 * the user has set is not limited. */
static int default_threads(void)
{
    const int offered = omp_get_max_threads(), processors = omp_get_num_procs();
    const int most = offered == processors ? (int)min_i64(offered, machine_cpu_quota("")) : offered;
    return (int)max_i64(1, min_i64(most, SPMV_MAX_THREADS));
}

spmv_status context_set_threads(spmv_context *ctx, int asked)
{
    int most = 1;
    ctx->threads = asked > 0 ? asked : default_threads();
    const spmv_status st = ctx->threads > 1 ? try_threads(ctx, ctx->threads, &most) : SPMV_OK;
    if (st != SPMV_OK || most >= ctx->threads)
        return st;
    if (asked > 0)
        return context_fail(ctx, SPMV_ERROR_MEMORY,
                            "%d threads: the system allows only %d (limits of processes, ulimit -u, of memory, "
                            "ulimit -v, or of the control group): use fewer",
                            asked, most);
    const int wanted = ctx->threads;
    ctx->threads = most;
    return context_warn(ctx,
                        "only %d of OpenMP's %d threads can run here (limits of processes, ulimit -u, of memory, "
                        "ulimit -v, or of the control group)",
                        most, wanted);
}
