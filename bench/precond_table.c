/* Compares preconditioners: conjugate gradients with each, on matrices from files or SPECs, b = A *
 * ones, rtol 1e-8, on OpenMP or a GPU. Prints one CSV line per matrix and preconditioner:
 * iterations, and seconds of set-up and solve (the best of three if they are short).
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

#include "timing.h"

struct trial {
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_csr a;
    void *b, *x;
};

/* One solve with one preconditioner; prints its line. */
static void try(const struct trial *t, const char *matrix, const char *name)
{
    enum { REPEATS = 3 };
    double solve = INFINITY, setup = INFINITY;
    spmv_cg_result result = {.size = sizeof result};
    spmv_preconditioner_info info = {.name = name, .layout = ""};
    const char *status = "ok";
    for (int repeat = 0; repeat < REPEATS && (repeat == 0 || solve + setup < 2); repeat++) {
        spmv_preconditioner *m = NULL;
        spmv_preconditioner_options options;
        spmv_preconditioner_options_init(&options, sizeof options);
        options.plan = t->plan;
        if (spmv_preconditioner_create(t->ctx, name, &t->a, &options, &m) != SPMV_OK) {
            printf("%s,%lld,%lld,%s,,,,,not made,\"%s\"\n", matrix, (long long)t->a.rows, (long long)t->a.nnz, name,
                   spmv_last_error(t->ctx));
            return;
        }
        spmv_cg_options cg;
        spmv_cg_options_init(&cg, sizeof cg);
        cg.symmetry_check = SPMV_SYMMETRY_TRUST; /* the systems are known to be symmetric */
        cg.zero_start = 1;
        cg.precond = m;
        const double begin = monotonic_seconds();
        const spmv_status st = spmv_cg(t->plan, t->b, t->x, &cg, &result, sizeof result);
        solve = fmin(solve, monotonic_seconds() - begin);
        status = st == SPMV_OK ? "ok" : spmv_status_name(st);
        (void)spmv_preconditioner_describe(m, &info, sizeof info);
        setup = fmin(setup, info.seconds);
        if (repeat + 1 == REPEATS || solve + setup >= 2)
            printf("%s,%lld,%lld,%s,%lld,%.6f,%.6f,%.3g,%s,\"%s%s%s\"\n", matrix, (long long)t->a.rows,
                   (long long)t->a.nnz, name, (long long)result.iterations, setup, solve, result.true_residual, status,
                   info.layout, strcmp(name, "auto") == 0 ? "; auto: " : "",
                   strcmp(name, "auto") == 0 ? info.name : "");
        spmv_preconditioner_destroy(m);
    }
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

static spmv_status run(spmv_context *ctx, const char *matrix, const char *names)
{
    spmv_matrix *owner = NULL;
    struct trial t = {.ctx = ctx};
    const double one = 1;
    spmv_status st = spmv_spec_known(matrix) ? spmv_matrix_generate(ctx, matrix, SPMV_F64, &owner)
                                             : spmv_matrix_read(ctx, matrix, NULL, &owner, NULL, 0);
    if (st == SPMV_OK) {
        spmv_matrix_view(owner, &t.a);
        st = spmv_plan_create(ctx, &t.a, NULL, &t.plan);
    }
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, t.a.rows * 8, &t.b);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, t.a.rows * 8, &t.x);
    if (st == SPMV_OK)
        st = spmv_map_index(ctx, SPMV_F64, &one, NULL, t.x, t.a.rows);
    if (st == SPMV_OK)
        st = spmv_apply(t.plan, NULL, t.x, NULL, t.b);
    if (st == SPMV_OK)
        try_names(&t, matrix, names);
    else
        fprintf(stderr, "%s: %s\n", matrix, spmv_last_error(ctx));
    spmv_free(ctx, t.b);
    spmv_free(ctx, t.x);
    spmv_plan_destroy(t.plan);
    spmv_matrix_destroy(owner);
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
    printf("matrix,rows,nnz,preconditioner,iterations,setup_seconds,solve_seconds,true_residual,status,layout\n");
    for (int i = 3; i < argc; i++)
        failed |= run(ctx, argv[i], argv[2]) != SPMV_OK;
    spmv_context_destroy(ctx);
    return failed;
}
