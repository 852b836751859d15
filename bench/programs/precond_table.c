/* Compares preconditioners: conjugate gradients with each, on matrices from files or SPECs, on
 * OpenMP or a GPU. b = A x for a random x, rtol 1e-8, the matrix in the context's memory. Prints one
 * CSV line per matrix and preconditioner. Each is tried several times; seconds are the medians.
 *
 *   setup_seconds  spmv_solver_create: plan and preconditioner, of that spmv_preconditioner_create
 *   solve_seconds  spmv_solver_solve
 *   cpu_seconds    processor time of both, of all threads
 *   error          ||x computed - x|| / ||x||
 *
 * usage: precond_table THREADS|cuda NAME[,NAME...] MATRIX...
 * NAME: of spmv_preconditioner_name, "auto", "all"
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/timing.h"
#include "core/choice.h"
#include "core/splitmix.h"

enum { REPEATS = 5 };

/* No further repeat after so many seconds. */
static const double ENOUGH = 10;

struct trial {
    spmv_context *ctx;
    spmv_csr a;
    void *b, *x;               /* in the context's memory */
    double *solution, *solved; /* in host memory */
};

static double median(double *samples, int count)
{
    return timing_summary(samples, count).median;
}

static double error_of(const struct trial *t)
{
    double error = 0, norm = 0;
    if (spmv_download(t->ctx, t->x, t->solved, t->a.rows * 8) != SPMV_OK)
        return NAN;
    for (int64_t i = 0; i < t->a.rows; i++) {
        error += (t->solved[i] - t->solution[i]) * (t->solved[i] - t->solution[i]);
        norm += t->solution[i] * t->solution[i];
    }
    return sqrt(error / norm);
}

/* One preconditioner; prints its line. */
static void try(const struct trial *t, const char *matrix, const char *name)
{
    double create[REPEATS], precond[REPEATS], solve[REPEATS], processor[REPEATS], all = 0;
    spmv_solver_result result = {.size = sizeof result};
    char layout[512] = "";
    spmv_status st = SPMV_OK;
    int repeat = 0;
    for (; repeat < REPEATS && (repeat == 0 || all < ENOUGH); repeat++) {
        spmv_solver *solver = NULL;
        spmv_solver_options o;
        spmv_solver_options_init(&o, sizeof o);
        o.method = "cg";
        o.precond = name;
        o.zero_start = 1;
        o.symmetry_check = SPMV_SYMMETRY_TRUST; /* the systems are known to be symmetric */
        const double used = processor_seconds(), begin = monotonic_seconds();
        if (spmv_solver_create(t->ctx, &t->a, &o, &solver) != SPMV_OK) {
            printf("%s,%lld,%lld,%s,,,,,,,,not made,\"%s\"\n", matrix, (long long)t->a.rows, (long long)t->a.nnz, name,
                   spmv_last_error(t->ctx));
            return;
        }
        create[repeat] = monotonic_seconds() - begin;
        st = spmv_solver_solve(solver, t->b, t->x, &result, sizeof result);
        const double whole = monotonic_seconds() - begin;
        solve[repeat] = whole - create[repeat];
        processor[repeat] = processor_seconds() - used;
        all += whole;
        spmv_solver_info info;
        spmv_preconditioner_info made;
        if (spmv_solver_describe(solver, &info, sizeof info) == SPMV_OK &&
            spmv_preconditioner_describe(info.precond, &made, sizeof made) == SPMV_OK) {
            precond[repeat] = made.seconds;
            snprintf(layout, sizeof layout, "%s%s%s", made.layout, choice_is_auto(name) ? "; auto: " : "",
                     choice_is_auto(name) ? made.name : "");
        } else {
            precond[repeat] = NAN;
        }
        spmv_solver_destroy(solver);
    }
    printf("%s,%lld,%lld,%s,%lld,%.6f,%.6f,%.6f,%.6f,%.3g,%.3g,%s,\"%s\"\n", matrix, (long long)t->a.rows,
           (long long)t->a.nnz, name, (long long)result.iterations, median(create, repeat), median(precond, repeat),
           median(solve, repeat), median(processor, repeat), result.true_residual / result.norm_b, error_of(t),
           st == SPMV_OK ? "ok" : spmv_status_name(st), layout);
    fflush(stdout);
}

static void try_names(const struct trial *t, const char *matrix, const char *names)
{
    if (strcmp(names, "all") == 0) {
        for (int k = 0; spmv_preconditioner_name(k) != NULL; k++)
            try(t, matrix, spmv_preconditioner_name(k));
        return;
    }
    while (*names != '\0') {
        char name[64];
        const size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        try(t, matrix, name);
        names += length + (names[length] == ',');
    }
}

/* x is uniform in [-1, 1), the same as that of spmv solve --solution random. */
static spmv_status make_vectors(struct trial *t)
{
    spmv_plan *plan = NULL;
    const int64_t n = t->a.rows;
    uint64_t seed = 1;
    t->solution = malloc((size_t)n * sizeof *t->solution + 1);
    t->solved = malloc((size_t)n * sizeof *t->solved + 1);
    if (t->solution == NULL || t->solved == NULL)
        return SPMV_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        t->solution[i] = (double)(int64_t)splitmix_next(&seed) * 0x1p-63;
    spmv_status st = spmv_alloc(t->ctx, n * 8, &t->b);
    if (st == SPMV_OK)
        st = spmv_alloc(t->ctx, n * 8, &t->x);
    if (st == SPMV_OK)
        st = spmv_upload(t->ctx, t->solution, t->x, n * 8);
    if (st == SPMV_OK)
        st = spmv_plan_create(t->ctx, &t->a, NULL, &plan);
    if (st == SPMV_OK)
        st = spmv_apply(plan, NULL, t->x, NULL, t->b);
    spmv_plan_destroy(plan);
    return st;
}

static spmv_status run(spmv_context *ctx, const char *matrix, const char *names)
{
    spmv_matrix *host = NULL, *there = NULL;
    spmv_csr view;
    struct trial t = {.ctx = ctx};
    spmv_status st = spmv_spec_known(matrix) ? spmv_matrix_generate(ctx, matrix, SPMV_F64, &host)
                                             : spmv_matrix_read(ctx, matrix, NULL, &host, NULL, 0);
    if (st == SPMV_OK) {
        spmv_matrix_view(host, &view);
        st = spmv_matrix_copy(ctx, &view, SPMV_MEMORY_CONTEXT, &there);
    }
    if (st == SPMV_OK) {
        spmv_matrix_destroy(host);
        host = NULL;
        spmv_matrix_view(there, &t.a);
        st = make_vectors(&t);
    }
    if (st == SPMV_OK)
        try_names(&t, matrix, names);
    else
        fprintf(stderr, "%s: %s\n", matrix, spmv_last_error(ctx));
    spmv_free(ctx, t.b);
    spmv_free(ctx, t.x);
    free(t.solution);
    free(t.solved);
    spmv_matrix_destroy(host);
    spmv_matrix_destroy(there);
    return st;
}

int main(int argc, char **argv)
{
    const bool gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
    if (argc < 4 || (!gpu && atoi(argv[1]) < 1)) {
        fprintf(stderr, "usage: precond_table THREADS|cuda NAME[,NAME...] MATRIX...\n");
        return 1;
    }
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = gpu ? SPMV_BACKEND_CUDA : SPMV_BACKEND_OMP;
    if (!gpu)
        options.threads = atoi(argv[1]);
    spmv_context *ctx = NULL;
    if (spmv_context_create(&options, &ctx) != SPMV_OK) {
        fprintf(stderr, "%s\n", spmv_last_error(NULL));
        return 1;
    }
    int failed = 0;
    printf("matrix,rows,nnz,preconditioner,iterations,setup_seconds,precond_seconds,solve_seconds,cpu_seconds,"
           "true_residual,error,status,layout\n");
    for (int i = 3; i < argc; i++)
        failed |= run(ctx, argv[i], argv[2]) != SPMV_OK;
    spmv_context_destroy(ctx);
    return failed;
}
