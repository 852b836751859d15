/* How long OpenMP's threads spin while they wait.
 *
 * libgomp lets a waiting thread spin for 300,000 rounds, some milliseconds, before it sleeps. On a machine whose cores
 * other programs need as well, a spinning thread holds the core that the thread it waits for should run on: a solve
 * takes several times as long (docs/cpu.md, "Threads"). A bounded number of rounds, some hundred microseconds, is
 * enough for threads that are needed again at once, and short enough to do no harm.
 *
 * libgomp reads GOMP_SPINCOUNT before main. So the program sets it and executes itself, once: the variable is there
 * afterwards. A user who has set it, or OMP_WAIT_POLICY, is left alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

/* Rounds of some 20 to 50 ns each, as the processor's pause takes. */
#define SPIN_ROUNDS "3000"

/* The name of this program's file; false where the system does not tell, or it has been replaced meanwhile. The name
 * and not /proc/self/exe is executed, because it becomes the name of the process. */
static bool own_file(char *path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", path, size);
    if (n <= 0 || (size_t)n >= size)
        return false;
    path[n] = '\0';
    return path[0] == '/' && access(path, X_OK) == 0;
}

void bound_spinning(const struct options *o, char **argv)
{
    char path[4096];
    if (o->threads == 1 || omp_get_num_procs() == 1 || getenv("GOMP_SPINCOUNT") != NULL ||
        getenv("OMP_WAIT_POLICY") != NULL || !own_file(path, sizeof path))
        return;
    if (setenv("GOMP_SPINCOUNT", SPIN_ROUNDS, 1) != 0)
        return;
    execv(path, argv); /* returns only when it fails: the default it is then */
    unsetenv("GOMP_SPINCOUNT");
}
