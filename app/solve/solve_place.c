/* spmv solve --backend auto: an estimate of the time on the CPU, against the start of CUDA and the
 * time on a GPU.
 *
 * The table `kinds` has the work that a system of a kind usually takes. The first row that applies is
 * taken. An estimate is steps x bytes of a step / bandwidth, and on a GPU also the start of CUDA,
 * set-up and launches. It may be wrong by a factor of some 3, in both directions. Close to the
 * border both places take about as long. Far from it, a needless start of CUDA would multiply the
 * time of a small system; and a long solve on the CPU is avoided by step counts that are not
 * optimistic.
 *
 * The numbers are from an H200 with 16 cores: docs/notebook/preconditioners.md#where-solve-runs has the solves.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/solve/solve_place.h"
#include "core/choice.h"
#include "core/plural.h"

/* Starting CUDA in a program: 200 to 300 ms. */
static const double START_MS = 250;

/* A step on a GPU reads and writes its bytes at this rate: GB/s. */
static const double GPU_BANDWIDTH = 2000;

/* Bandwidth of the threads of a CPU, GB/s. Between the rows it is interpolated; above the last it
 * stays. */
static const struct {
    int threads;
    double bandwidth;
} cpus[] = {{1, 12}, {2, 20}, {4, 36}, {8, 65}, {16, 110}, {32, 180}, {64, 250}};
enum { CPUS = sizeof cpus / sizeof cpus[0] };

/* Loops over fewer elements run on one thread: TEAM_WORTH_AWAKE of core/threads.h. */
enum { PARALLEL = 1 << 16 };

/* ---------------------------------------------------------------- kinds of systems */

static bool is_named(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static bool by_all(const struct solve_facts *f)
{
    return strcmp(f->precond, "all") == 0;
}

static bool by_triangles(const struct solve_facts *f)
{
    static const char *const names[] = {"ilu0", "ilut", NULL};
    return is_named(f->precond, names);
}

static bool by_amg(const struct solve_facts *f)
{
    return strcmp(f->precond, "amg") == 0;
}

static bool is_general(const struct solve_facts *f)
{
    return !f->symmetric && choice_is_auto(f->precond);
}

static bool is_indefinite(const struct solve_facts *f)
{
    return f->symmetric && f->indefinite;
}

static bool by_name(const struct solve_facts *f)
{
    return !choice_is_auto(f->precond);
}

static bool otherwise(const struct solve_facts *f)
{
    (void)f;
    return true;
}

/* steps: iterations, and the set-up in units of them. vectors: of a step, read or written. On a GPU:
 * setup_ms, and launch_us, which a step takes beside its bytes; with incomplete factors that is
 * waiting in triangular solves. */
static const struct kind {
    const char *name;
    bool (*when)(const struct solve_facts *);
    double steps, vectors;
    double setup_ms, launch_us;
} kinds[] = {
    {"every preconditioner in turn", by_all, 6000, 16, 100, 200},
    {"incomplete factors", by_triangles, 400, 16, 50, 500},
    {"multigrid", by_amg, 500, 6, 10, 20},
    /* several solvers follow each other, the last ones with ilut */
    {"a general matrix", is_general, 400, 16, 10, 500},
    {"a symmetric indefinite matrix", is_indefinite, 3000, 16, 5, 100},
    {"a preconditioner of few numbers a row", by_name, 1500, 8, 5, 20},
    /* conjugate gradients with jacobi, or multigrid where that would take more steps */
    {"a symmetric matrix", otherwise, 500, 6, 10, 20},
};

/* A large diagonal bounds the steps: the eigenvalues of D^-1 A lie within 1 - heaviest and
 * 1 + heaviest, which gives sqrt(condition number) log(2e8) / 2 steps for a tolerance of 1e-8. More
 * steps than rows are rare, and so are solves that need the limit of --max-iterations. */
static double steps_of(const struct solve_facts *f, const struct kind *kind)
{
    double steps = fmin(kind->steps, (double)f->rows);
    if (f->heaviest < 1)
        steps = fmin(steps, 9.6 * sqrt((1 + f->heaviest) / (1 - f->heaviest)) + 1);
    return f->most_steps > 0 ? fmin(steps, (double)f->most_steps) : steps;
}

/* ---------------------------------------------------------------- estimates */

static double bandwidth_of(int threads)
{
    int i = 0;
    while (i + 1 < CPUS && cpus[i + 1].threads < threads)
        i++;
    if (threads <= cpus[0].threads)
        return cpus[0].bandwidth;
    if (i + 1 == CPUS)
        return cpus[i].bandwidth;
    const double part = (double)(threads - cpus[i].threads) / (cpus[i + 1].threads - cpus[i].threads);
    return cpus[i].bandwidth + part * (cpus[i + 1].bandwidth - cpus[i].bandwidth);
}

/* Milliseconds to move the bytes, in loops over so many elements. */
static double cpu_ms(const struct solve_facts *f, int64_t elements, double bytes)
{
    return bytes / bandwidth_of(elements < PARALLEL ? 1 : f->threads) * 1e-6;
}

/* "less than 1 ms", "about 250 ms", "about 3.1 s" */
static void tell_time(double ms, char *text, size_t size)
{
    if (ms < 1)
        snprintf(text, size, "less than 1 ms");
    else if (ms < 10)
        snprintf(text, size, "about %.0f ms", ms);
    else if (ms < 995)
        snprintf(text, size, "about %.0f ms", 10 * round(ms / 10));
    else if (ms < 9950)
        snprintf(text, size, "about %.1f s", 1e-3 * ms);
    else
        snprintf(text, size, "about %.0f s", 1e-3 * ms);
}

struct solve_place solve_place(const struct solve_facts *f)
{
    const struct kind *kind = kinds;
    while (!kind->when(f))
        kind++;
    const double columns = f->columns > 1 ? f->columns : 1;
    const double matrix = (double)f->entries * (4 + f->matrix_bytes); /* and a column index */
    const double vectors = kind->vectors * (double)f->rows * f->vector_bytes * columns;
    struct solve_place place = {.kind = kind->name, .steps = steps_of(f, kind)};
    place.cpu_ms = place.steps * (cpu_ms(f, f->entries, matrix) + cpu_ms(f, f->rows, vectors));
    place.gpu_ms =
        START_MS + kind->setup_ms + place.steps * (1e-3 * kind->launch_us + (matrix + vectors) / GPU_BANDWIDTH * 1e-6);
    if (f->cpu_only != NULL) {
        snprintf(place.why, sizeof place.why, "%.80s is for the CPU only", f->cpu_only);
        return place;
    }
    char cpu[40], gpu[40];
    place.gpu = place.cpu_ms > place.gpu_ms;
    tell_time(place.cpu_ms, cpu, sizeof cpu);
    tell_time(place.gpu_ms, gpu, sizeof gpu);
    snprintf(place.why, sizeof place.why, "%s of work, %s than a GPU with its start: %s", cpu,
             place.gpu ? "more" : "less", gpu);
    return place;
}
