/* Limits the spinning of OpenMP's waiting threads.
 *
 * A waiting thread of libgomp spins for 300,000 rounds, some milliseconds, before it sleeps. If
 * other programs need the cores too, a spinning thread may occupy the core of the thread that it
 * waits for. A limit of some hundred microseconds is long enough for threads that are needed again
 * at once, and short enough to do no harm. spmv solve poisson2d:300 on two cores, seconds (median of
 * pairs of runs; docs/notebook/cpu-threads.md):
 *
 *                                300,000 rounds   3000 rounds
 *   cores to itself                        0.16          0.18
 *   beside 1.7 busy cores                   4.9          0.77
 *   two busy processes more                10.1          1.2
 *
 * libgomp reads GOMP_SPINCOUNT before main. So the program sets it and executes itself once; the
 * variable is then set. If the user has set it, or OMP_WAIT_POLICY, nothing is changed.
 *
 * Also before main, libgomp binds the first thread to its place if OMP_PLACES or OMP_PROC_BIND ask for it. A
 * program that is executed inherits that mask, and all its threads would share the one place. So the
 * processors of all places are allowed again first.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* CPU_SET, sched_setaffinity */
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/spinning.h"

/* Rounds of 20 to 50 ns each, depending on the processor's pause instruction. */
#define SPIN_ROUNDS "3000"

/* The path of this program's file; false if it is unknown or was replaced meanwhile. The path is
 * executed instead of /proc/self/exe, because it becomes the name of the process. */
static bool own_file(char *path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", path, size);
    if (n <= 0 || (size_t)n >= size)
        return false;
    path[n] = '\0';
    return path[0] == '/' && access(path, X_OK) == 0;
}

/* Allows this thread the processors of all places of OpenMP: those that the program was started with, or those of
 * OMP_PLACES. False if some cannot be told or set. */
static bool leave_place(void)
{
    enum { MOST_PROCESSORS = 1 << 16, MOST_IN_PLACE = 4096 };
    const int places = omp_get_num_places();
    if (places == 0)
        return true; /* nothing was bound */
    const size_t size = CPU_ALLOC_SIZE(MOST_PROCESSORS);
    cpu_set_t *const allowed = CPU_ALLOC(MOST_PROCESSORS);
    if (allowed == NULL)
        return false;
    CPU_ZERO_S(size, allowed);
    bool known = true;
    for (int p = 0; p < places; p++) {
        int processors[MOST_IN_PLACE];
        const int n = omp_get_place_num_procs(p);
        known = known && n <= MOST_IN_PLACE;
        if (!known)
            break;
        omp_get_place_proc_ids(p, processors);
        for (int k = 0; k < n; k++)
            if (processors[k] < MOST_PROCESSORS)
                CPU_SET_S(processors[k], size, allowed);
    }
    const bool set = known && sched_setaffinity(0, size, allowed) == 0;
    CPU_FREE(allowed);
    return set;
}

void bound_spinning(const struct options *o, char **argv)
{
    char path[4096];
    if (o->threads == 1 || omp_get_num_procs() == 1 || getenv("GOMP_SPINCOUNT") != NULL ||
        getenv("OMP_WAIT_POLICY") != NULL || !own_file(path, sizeof path) || !leave_place())
        return;
    if (setenv("GOMP_SPINCOUNT", SPIN_ROUNDS, 1) != 0)
        return;
    execv(path, argv); /* returns only after a failure; then the default is kept */
    unsetenv("GOMP_SPINCOUNT");
}
