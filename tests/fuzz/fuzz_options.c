/* libFuzzer target for the options of solvers, preconditioners and plans. The input gives a small
 * matrix and every option, in and out of its range. A solver is made or refused with a sentence; a
 * solve that succeeds has a residual within its tolerance, computed here.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 8, MOST_VECTORS = 3 };

struct input {
    const uint8_t *data;
    size_t size, at;
};

static int next(struct input *in)
{
    return in->at < in->size ? in->data[in->at++] : 0;
}

/* One of a few numbers, most of them valid for some option. 0: the default stays. */
static double number(struct input *in, double otherwise)
{
    static const double numbers[] = {0,   1,   2,      3,    -1,   -2,        9,    64,   65,      200,
                                     201, 0.5, 1e-300, 1e10, 1e30, INT32_MAX, -0.1, 0.25, 1000000, INT32_MIN};
    const int k = next(in) % 64;
    const double special = k == 60 ? NAN : k == 61 ? INFINITY : otherwise;
    return k < (int)(sizeof numbers / sizeof *numbers) ? numbers[k] : special;
}

static int integer(struct input *in, int otherwise)
{
    const double value = number(in, otherwise);
    return isfinite(value) && fabs(value) <= INT32_MAX ? (int)value : otherwise;
}

static const char *name(struct input *in, const char *const *names, int count)
{
    const int k = next(in) % (count + 1);
    return k < count ? names[k] : NULL;
}

struct system {
    spmv_csr a;
    int64_t row_ptr[MOST_ROWS + 1];
    int32_t col[MOST_ROWS * MOST_ROWS];
    double val[MOST_ROWS * MOST_ROWS];
};

/* Symmetric or not, with a dominant diagonal or not, without some diagonal entries or not. */
static void take_matrix(struct input *in, struct system *s)
{
    const int n = next(in) % (MOST_ROWS + 1), form = next(in);
    double dense[MOST_ROWS][MOST_ROWS] = {{0}};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j && (j > i || (form & 1) == 0) && next(in) % 3 == 0)
                dense[i][j] = next(in) / 32.0 - 4;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            dense[i][j] = (form & 1) != 0 ? dense[j][i] : dense[i][j];
    for (int i = 0; i < n; i++)
        dense[i][i] = (form & 2) != 0 ? 32 : next(in) / 16.0 - 4;
    s->a = (spmv_csr){.rows = n,
                      .cols = n,
                      .row_ptr = s->row_ptr,
                      .row_ptr_bits = 64,
                      .col = s->col,
                      .val = s->val,
                      .type = SPMV_F64,
                      .memory = SPMV_MEMORY_CONTEXT};
    s->row_ptr[0] = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (dense[i][j] != 0) {
                s->col[s->a.nnz] = j;
                s->val[s->a.nnz++] = dense[i][j];
            }
        s->row_ptr[i + 1] = s->a.nnz;
    }
}

static void take_options(struct input *in, spmv_solver_options *o, spmv_preconditioner_options *p)
{
    enum { NODES = 8 };
    static const double places[3 * NODES] = {0, 1, 4, 2, 2, 1, 0, 3, 3, 5, 1, 7, 2, 8, 8, 1};
    static const char *const solvers[] = {"auto", "cg", "minres", "gmres", "bicgstab", "direct", "no such"};
    static const char *const preconds[] = {"auto", "none", "jacobi", "block-jacobi", "chebyshev", "ic0",   "cholesky",
                                           "ilu0", "ilut", "amg",    "fsai",         "isai",      "schur", "no such"};
    static const char *const rungs[] = {"auto", "textbook", "fused"};
    static const char *const smoothers[] = {"chebyshev", "l1-jacobi", "no such"};
    spmv_solver_options_init(o, sizeof *o);
    spmv_preconditioner_options_init(p, sizeof *p);
    o->solver = name(in, solvers, 7);
    o->precond = name(in, preconds, 14);
    o->rung = next(in) % 4 == 0 ? name(in, rungs, 3) : NULL;
    o->vectors = next(in) % 2 == 0 ? 1 : integer(in, 1);
    o->inner = next(in) % 4 == 0 ? integer(in, 0) : 0;
    o->rtol = number(in, 1e-8);
    o->atol = number(in, 0);
    o->max_iterations = integer(in, 0);
    o->zero_start = next(in) % 8 == 0 ? integer(in, 1) : 1;
    o->symmetry_check = next(in) % 8 == 0 ? integer(in, 1) : 1;
    o->restart = next(in) % 4 == 0 ? integer(in, 0) : 0;
    o->type = (spmv_type)(next(in) % 8 == 0 ? integer(in, 0) : 0);
    p->block = integer(in, 0);
    p->degree = integer(in, -1);
    p->steps = integer(in, 0);
    p->shift = number(in, 0);
    p->strength = number(in, 0);
    p->drop = number(in, -1);
    p->fill = number(in, 0);
    p->general = next(in) % 8 == 0 ? integer(in, 0) : 0;
    p->update_values = next(in) % 4 == 0 ? integer(in, 0) : 0;
    p->near_nulls = next(in) % 8 == 0 ? integer(in, 0) : 0;
    p->smoother = next(in) % 4 == 0 ? name(in, smoothers, 3) : NULL;
    p->coordinates = next(in) % 8 == 0 ? places : NULL;
    p->nodes = p->coordinates != NULL ? 1 + next(in) % NODES : 0;
    p->dimensions = p->coordinates != NULL ? integer(in, 2) : 0;
    o->precond_options = p;
}

/* A plan of the caller, with any strides and layouts. */
static spmv_plan *take_plan(struct input *in, spmv_context *ctx, const spmv_csr *a)
{
    spmv_plan_options o;
    spmv_plan *plan = NULL;
    spmv_plan_options_init(&o, sizeof o);
    if (next(in) % 4 != 0)
        return NULL;
    o.operation = (spmv_operation)(next(in) % 8 == 0 ? integer(in, 0) : 0);
    o.vectors = next(in) % 2 == 0 ? 1 : integer(in, 1) % (MOST_VECTORS + 1);
    o.x_stride = next(in) % 2 == 0 ? 0 : integer(in, 0);
    o.y_stride = next(in) % 2 == 0 ? 0 : integer(in, 0);
    o.update_values = integer(in, 0);
    o.x_layout = next(in) % 4 == 0 ? integer(in, 0) : 0;
    o.y_layout = next(in) % 4 == 0 ? integer(in, 0) : 0;
    const spmv_status st = spmv_plan_create(ctx, a, &o, &plan);
    require((st == SPMV_OK) == (plan != NULL) && (st == SPMV_OK || spmv_last_error(ctx)[0] != '\0'), "a plan",
            spmv_status_name(st));
    return plan;
}

/* The residual of column v is within the tolerance, up to the rounding of this sum. */
static void check(const spmv_csr *a, const double *b, const double *x, int k, int v, const spmv_solver_result *r)
{
    long double square = 0, rounding = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        long double sum = b[i * k + v], size = fabsl(sum);
        for (int64_t e = ((const int64_t *)a->row_ptr)[i]; e < ((const int64_t *)a->row_ptr)[i + 1]; e++) {
            const long double term = (long double)((const double *)a->val)[e] * x[a->col[e] * k + v];
            sum -= term;
            size += fabsl(term);
        }
        square += sum * sum;
        rounding += size;
    }
    require(sqrtl(square) <= 1.001L * r->tolerance + 32 * DBL_EPSILON * rounding, "success with a wrong x", r->solver);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = data, .size = size};
    spmv_context *const ctx = fuzz_context();
    struct system s = {.a = {0}};
    spmv_solver_options o;
    spmv_preconditioner_options p;
    spmv_solver *solver = NULL;
    spmv_solver_result result[MOST_VECTORS];
    double b[MOST_ROWS * MOST_VECTORS], x[MOST_ROWS * MOST_VECTORS] = {0};
    take_matrix(&in, &s);
    take_options(&in, &o, &p);
    o.plan = take_plan(&in, ctx, &s.a);
    if (o.plan == NULL && o.vectors > MOST_VECTORS) /* a valid number, but more than there is room for */
        o.vectors = MOST_VECTORS;
    for (int i = 0; i < MOST_ROWS * MOST_VECTORS; i++)
        b[i] = next(&in) - 100;
    const spmv_status made = spmv_solver_create(ctx, &s.a, &o, &solver);
    require((made == SPMV_OK) == (solver != NULL), "a solver", spmv_status_name(made));
    require(made == SPMV_OK || spmv_last_error(ctx)[0] != '\0', "no sentence", spmv_status_name(made));
    if (made == SPMV_OK && (o.type == SPMV_TYPE_DEFAULT || o.type == SPMV_F64)) {
        spmv_plan_info info = {.vectors = o.vectors};
        if (o.plan != NULL)
            require(spmv_plan_describe(o.plan, &info, sizeof info) == SPMV_OK, "no description", "");
        const spmv_status st = spmv_solver_solve(solver, b, x, result, sizeof *result);
        require(st == SPMV_OK || spmv_last_error(ctx)[0] != '\0', "no sentence", spmv_status_name(st));
        for (int v = 0; v < info.vectors; v++)
            if (result[v].status == SPMV_OK)
                check(&s.a, b, x, info.vectors, v, &result[v]);
    }
    spmv_solver_destroy(solver);
    spmv_plan_destroy(o.plan);
    return 0;
}
