/* spmv solve, before the solver: the options, the matrix, the vectors and the plan.
 *
 * The matrix must be square, for cg and minres also symmetric. Without b, b = A times a known
 * solution is computed, and checked like any product.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/job_memory.h"
#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "app/solve/solve_job.h"
#include "core/choice.h"
#include "core/plural.h"
#include "core/reals.h"

spmv_status job_check_options(const struct options *o, struct wish *wish)
{
    const int count = wish->count;
    spmv_status st = check_standard_input(o, wish->arguments, count);
    if (st != SPMV_OK)
        return st;
    if (o->history != NULL && (o->history[0] == '\0' || strcmp(o->history, "-") == 0))
        return report(SPMV_ERROR_ARGUMENT, "--history needs a file name");
    if (option_given(o, "solution") && count > 1)
        return report(SPMV_ERROR_ARGUMENT, "--solution cannot be used with b: it selects how b is generated");
    if (o->vectors.count > 1)
        return report(SPMV_ERROR_ARGUMENT, "--vectors: a solve has one number of right-hand sides");
    if (o->vectors.count > 0 && count > 1)
        return report(SPMV_ERROR_ARGUMENT,
                      "--vectors cannot be used with b: it is the number of generated right-hand sides");
    if (strcmp(o->solution, "ones") != 0 && strcmp(o->solution, "random") != 0) {
        complain("--solution %s: must be ones or random", o->solution);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->damp > 0 && !is_least_squares_name(o->solver) && !choice_is_auto(o->solver)) {
        complain("--damp is for least squares: --solver %s has no damping", o->solver);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->near_null != NULL && o->coordinates != NULL)
        return report(SPMV_ERROR_ARGUMENT, "--near-null and --coordinates exclude each other: the rigid body modes of "
                                           "the coordinates are the near-null-space vectors");
    if (o->inner && (o->type != SPMV_F64 || o->mixed))
        return report(SPMV_ERROR_TYPE, "--inner needs --type f64: its inner iterations are in f32");
    if (o->plot != NULL)
        st = solve_plot_ready(o->plot);
    return st == SPMV_OK ? choose_answer(o, "x", &wish->answer) : st;
}

/* All ranks refuse alike; none ends before rank 0 has said why. */
static spmv_status refuse(const struct job *job, spmv_status st)
{
    job_tell_next(job, NULL, st);
    return place_agree(job->place, st);
}

/* Whether the options ask for a solver for symmetric matrices only. */
static const char *symmetric_solver(const struct job *job)
{
    const char *const solver = job->o->solver;
    if (strcmp(solver, "minres") == 0)
        return "minres needs a symmetric matrix";
    return strcmp(solver, "cg") == 0 || (choice_is_auto(solver) && (job->o->inner || job->rung != NULL))
               ? "conjugate gradients need a symmetric positive definite matrix"
               : NULL;
}

/* Options of least squares, which have no effect on a square matrix without damping. */
static spmv_status check_options(const struct job *job)
{
    static const char *const others[] = {"conlim", "scaling"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (option_given(job->o, others[i]) && !(i == 1 && job->o->scaling == SPMV_SCALING_AUTO)) {
            complain("--%s is for least squares: %s is square; --solver lsmr, lsqr or cgls, or --damp, asks for them",
                     others[i], job->in.argument);
            return refuse(job, SPMV_ERROR_UNSUPPORTED);
        }
    return SPMV_OK;
}

/* Checks that the matrix is square. */
static spmv_status check_matrix(struct job *job)
{
    const spmv_csr *const a = &job->in.view;
    spmv_statistics *s = &job->statistics;
    spmv_status st = SPMV_OK;
    if (!place_on_ranks(job->place))
        st = place_passed(job->place, spmv_matrix_statistics(job->place->ctx, a, s, sizeof *s));
    if (st != SPMV_OK || a->rows == a->cols)
        return st != SPMV_OK ? st : check_options(job);
    complain("%s is %lld x %lld: a system A x = b needs a square matrix", job->in.argument, (long long)a->rows,
             (long long)a->cols);
    return refuse(job, SPMV_ERROR_NOT_SQUARE);
}

/* Checks that the matrix is symmetric if the solver needs that. On ranks the solver checks a sample. */
static spmv_status check_symmetry(struct job *job)
{
    const spmv_statistics *s = &job->statistics;
    const char *const needs = symmetric_solver(job);
    if (needs == NULL || place_on_ranks(job->place) || job_is_symmetric(job))
        return SPMV_OK;
    complain("%s is not %s (%s): %s", job->in.argument, type_is_complex(job->type) ? "Hermitian" : "symmetric",
             s->skew_symmetric      ? "it is skew-symmetric"
             : s->pattern_symmetric ? "the pattern is symmetric, the values are not"
                                    : "an entry a_ij has no a_ji",
             needs);
    return refuse(job, SPMV_ERROR_NOT_SYMMETRIC);
}

/* Computes b = A solution and checks it: with a wrong b, a right x would appear wrong. */
spmv_status job_make_b(struct job *job)
{
    struct product *p = &job->p;
    void *solution = NULL;
    const double began = monotonic_seconds();
    spmv_status st =
        place_known_vectors(job->place, job->type, job->in.view.cols, job->columns, job_is_random(job), &solution);
    p->x = solution;
    if (st == SPMV_OK)
        st = product_run(p);
    if (st == SPMV_OK && job->o->verify != VERIFY_OFF) {
        st = product_check(job->o, p);
        if (st == SPMV_ERROR_CHECK)
            tell_check(p, job_is_random(job) ? "b = A solution" : "b = A ones");
    }
    place_free(job->place, solution);
    job->b = job->b_made = p->y;
    p->y = NULL;
    job->made_seconds = monotonic_seconds() - began;
    return st;
}

/* Lists the preconditioners to try: the named one, or all. A rung that was named runs as it is, and
 * some rungs support few preconditioners; those of ranks support all. */
static spmv_status list_attempts(struct job *job)
{
    const bool bare = job->rung != NULL && !place_on_ranks(job->place);
    const char *name = bare && !option_given(job->o, "precond") ? "none" : job->o->precond;
    const bool all = strcmp(name, "all") == 0;
    while (all && spmv_preconditioner_name(job->attempts) != NULL)
        job->attempts++;
    job->attempts = all ? job->attempts : 1;
    const spmv_status st =
        place_agree(job->place, allocate("the solves", job->attempts, sizeof *job->attempt, (void **)&job->attempt));
    for (int i = 0; i < job->attempts && st == SPMV_OK; i++)
        job->attempt[i] = (struct attempt){.name = all ? spmv_preconditioner_name(i) : name,
                                           .columns = job->columns,
                                           .differs = job->columns,
                                           .result = {.solver = "", .rung = ""}};
    job->best = -1;
    return st;
}

/* Reads b and x0, which determine the number of right-hand sides. */
static spmv_status load_vectors(struct job *job, const char *b_path)
{
    const struct options *o = job->o;
    const int64_t n = job->in.view.rows;
    char why[256];
    snprintf(why, sizeof why, "%.180s is %lld x %lld", job->in.argument, (long long)n, (long long)n);
    spmv_status st = SPMV_OK;
    job->columns = o->vectors.most;
    if (b_path != NULL)
        st = place_load_vectors(job->place, SPMV_GROUP_ROWS, b_path, job->type, n, "b", why, &job->b_read,
                                &job->columns);
    if (st == SPMV_OK && o->x0 != NULL)
        st = place_load_vectors(job->place, SPMV_GROUP_COLS, o->x0, job->type, n, "x0", why, &job->x0, &job->columns);
    if (st != SPMV_OK)
        return st;
    job->b = job->b_read;
    job->columns = job->columns > 0 ? job->columns : 1;
    if (o->inner && job->columns > 1) {
        complain("--inner supports only one right-hand side, not %d", job->columns);
        return refuse(job, SPMV_ERROR_UNSUPPORTED);
    }
    return SPMV_OK;
}

/* The vectors of an option. */
struct given_vectors {
    const char *option, *path;
    int most;
    void **there; /* in the context's memory */
    int *count;
};

static spmv_status check_vectors(const struct job *job, const struct given_vectors *g, int64_t rows, int64_t cols)
{
    if (rows == job->in.view.rows && cols <= g->most)
        return SPMV_OK;
    complain("%s %s is %lld x %lld: %.180s has %lld row%s, and up to %d vectors are possible", g->option, g->path,
             (long long)rows, (long long)cols, job->in.argument, (long long)job->in.view.rows,
             plural(job->in.view.rows), g->most);
    return SPMV_ERROR_SIZE;
}

/* The dense matrix of a SPEC, row by row. */
static spmv_status generate_vectors(struct job *job, const struct given_vectors *g, void **values)
{
    struct input in = {0};
    spmv_status st = input_load(job->place->ctx, job->o, JOB_LOOK, g->path, &in);
    const spmv_csr *const a = &in.view;
    if (st == SPMV_OK)
        st = check_vectors(job, g, a->rows, a->cols);
    if (st == SPMV_OK)
        st = allocate(g->option, a->rows * a->cols, spmv_type_size(job->type), values);
    if (st == SPMV_OK)
        memset(*values, 0, (size_t)(a->rows * a->cols) * spmv_type_size(job->type));
    for (int64_t i = 0; st == SPMV_OK && i < a->rows; i++)
        for (int64_t k = row_begin(a, i); k < row_begin(a, i + 1); k++)
            real_set(job->type, *values, i * a->cols + a->col[k], real_at(a->type, a->val, k));
    *g->count = (int)a->cols;
    input_free(&in);
    return st;
}

/* The vectors of a file, of the type of x. */
static spmv_status read_vectors(struct job *job, const struct given_vectors *g, void **values)
{
    const int64_t rows = job->in.view.rows;
    char why[256];
    snprintf(why, sizeof why, "%.180s has %lld row%s", job->in.argument, (long long)rows, plural(rows));
    spmv_status st = vectors_load(job->place->ctx, g->path, job->type, rows, g->option, why, values, g->count);
    if (st == SPMV_OK)
        st = check_vectors(job, g, rows, *g->count);
    for (int64_t k = 0; st == SPMV_OK && k < rows * *g->count; k++)
        if (!isfinite(real_at(job->type, *values, k))) {
            complain("%s: %s needs finite numbers, row %lld of vector %lld has %g", g->path, g->option,
                     (long long)(k / *g->count) + 1, (long long)(k % *g->count) + 1, real_at(job->type, *values, k));
            st = SPMV_ERROR_NOT_FINITE;
        }
    return st;
}

/* Vectors of the type of x, in the context's memory. Each rank reads all, and keeps its rows. */
static spmv_status load_given(struct job *job, const struct given_vectors *g)
{
    void *read = NULL, *made = NULL;
    if (type_is_complex(job->type)) {
        complain("%s is for real matrices", g->option);
        return SPMV_ERROR_UNSUPPORTED;
    }
    spmv_status st = spmv_spec_known(g->path) ? generate_vectors(job, g, &made) : read_vectors(job, g, &read);
    if (place_on_ranks(job->place))
        st = place_agree(job->place, st);
    if (st == SPMV_OK) {
        const bool all = !place_on_ranks(job->place);
        const int64_t row_bytes = *g->count * (int64_t)spmv_type_size(job->type);
        const int64_t bytes = (all ? job->in.view.rows : job->place->part.own_rows) * row_bytes;
        const char *const from = read != NULL ? read : made;
        st = send_array(job->place->ctx, from + (all ? 0 : job->place->part.first_row * row_bytes), bytes, g->there);
        st = st == SPMV_OK ? spmv_synchronize(job->place->ctx) : st;
        st = st == SPMV_OK ? st : place_passed(job->place, st);
    }
    spmv_host_free(read);
    free(made);
    return st;
}

/* --near-null and --null. */
static spmv_status load_given_vectors(struct job *job)
{
    const struct options *const o = job->o;
    const struct given_vectors near_null = {"--near-null", o->near_null, 8, &job->near_null, &job->near_nulls},
                               null = {"--null", o->null_space, 64, &job->null_space, &job->null_vectors};
    const bool ones = o->null_space != NULL && strcmp(o->null_space, "ones") == 0;
    spmv_status st = near_null.path != NULL ? load_given(job, &near_null) : SPMV_OK;
    if (ones)
        job->null_block = o->block > 0 ? o->block : 1;
    return st == SPMV_OK && null.path != NULL && !ones ? load_given(job, &null) : st;
}

/* A coordinate file has rows nodes and cols dimensions. */
static spmv_status check_coordinates(const struct job *job, int64_t rows, int64_t cols)
{
    const char *const path = job->o->coordinates;
    const int64_t n = job->in.view.rows;
    if (cols != 2 && cols != 3)
        complain("%s has %lld x %lld numbers: --coordinates needs a row for each node, with 2 or 3 columns%s", path,
                 (long long)rows, (long long)cols,
                 rows == 2 || rows == 3 ? ": here rows and columns are exchanged" : "");
    else if (rows == 0 || n % rows != 0)
        complain("%s has the coordinates of %lld node%s: %.180s has %lld row%s, which is not a multiple", path,
                 (long long)rows, plural(rows), job->in.argument, (long long)n, plural(n));
    else
        return SPMV_OK;
    return SPMV_ERROR_SIZE;
}

static spmv_status read_coordinates(struct job *job)
{
    spmv_context *const ctx = job->place->ctx;
    int64_t cols = 0;
    if (type_is_complex(job->type))
        return report(SPMV_ERROR_UNSUPPORTED, "--coordinates is for real matrices");
    const spmv_status st = spmv_vectors_read(ctx, job->o->coordinates, SPMV_F64, &job->coordinates, &job->nodes, &cols);
    progress_end();
    if (st != SPMV_OK)
        return report(st, spmv_last_error(ctx));
    job->dimensions = cols == 2 ? 2 : 3;
    return check_coordinates(job, job->nodes, cols);
}

/* --coordinates: in host memory. Each rank reads all. */
static spmv_status load_coordinates(struct job *job)
{
    if (job->o->coordinates == NULL)
        return SPMV_OK;
    const spmv_status st = read_coordinates(job);
    return place_on_ranks(job->place) ? place_agree(job->place, st) : st;
}

/* --fields: one number for each row. The library checks which fields there are. */
static spmv_status load_fields(struct job *job)
{
    const char *const path = job->o->fields;
    const int64_t rows = job->in.view.rows;
    void *read = NULL;
    char why[256];
    int count = 1;
    if (path == NULL)
        return SPMV_OK;
    snprintf(why, sizeof why, "%.180s has %lld row%s", job->in.argument, (long long)rows, plural(rows));
    spmv_status st = vectors_load(job->place->ctx, path, SPMV_F64, rows, "--fields", why, &read, &count);
    if (st == SPMV_OK)
        st = allocate("the fields", rows, sizeof *job->fields, (void **)&job->fields);
    for (int64_t i = 0; st == SPMV_OK && i < rows; i++) {
        const double number = real_at(SPMV_F64, read, i);
        if (number != 0 && number != 1 && number != 2) {
            complain("%s: --fields needs 1 or 2 (or 0 and 1) for each row, row %lld has %g", path, (long long)i + 1,
                     number);
            st = SPMV_ERROR_ARGUMENT;
        } else {
            job->fields[i] = (int32_t)number;
        }
    }
    spmv_host_free(read);
    return st;
}

/* --schur: a form, or a matrix, of the type of A. */
static spmv_status load_schur(struct job *job)
{
    static const char *const forms[] = {"diagonal", "simple", "commutator"};
    const char *const given = job->o->schur;
    struct options reading = *job->o;
    if (given == NULL)
        return SPMV_OK;
    if (type_is_complex(job->type))
        return report(SPMV_ERROR_UNSUPPORTED, "--schur is for real matrices");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(given, forms[i]) == 0) {
            job->schur_form = forms[i];
            return SPMV_OK;
        }
    reading.type = job->in.view.val != NULL ? job->in.view.type : job->type;
    const spmv_status st = input_load(job->place->ctx, &reading, JOB_INFO, given, &job->schur);
    if (st != SPMV_OK || job->schur.view.rows == job->schur.view.cols)
        return st;
    complain("%s is %lld x %lld: --schur needs a square matrix, with a row for each row of the second field", given,
             (long long)job->schur.view.rows, (long long)job->schur.view.cols);
    return SPMV_ERROR_NOT_SQUARE;
}

spmv_status job_make_plan(struct job *job)
{
    const struct options *const o = job->o;
    job->p =
        (struct product){.place = job->place,
                         .a = &job->in.view,
                         .method = o->method,
                         .compression = plan_compression(o, spmv_context_backend(job->place->ctx), job->columns == 1),
                         .type = job->type,
                         .vectors = job->columns,
                         .alpha = 1};
    return product_plan(job->place->ctx, &job->p);
}

static spmv_status prepare(struct job *job, const char *b_path)
{
    spmv_status st = load_vectors(job, b_path);
    if (st == SPMV_OK)
        st = job_decide(job);
    if (st == SPMV_OK)
        st = load_given_vectors(job);
    if (st == SPMV_OK)
        st = load_coordinates(job);
    if (st == SPMV_OK)
        st = load_fields(job);
    if (st == SPMV_OK)
        st = load_schur(job);
    if (st == SPMV_OK)
        st = job_make_plan(job);
    if (st == SPMV_OK)
        st = check_symmetry(job);
    if (st == SPMV_OK)
        st = list_attempts(job);
    return st == SPMV_OK && b_path == NULL ? job_make_b(job) : st;
}

/* Copies b to the context's memory and allocates x there. */
static spmv_status send_vectors(struct job *job)
{
    const double began = monotonic_seconds();
    spmv_status st = send_array(job->place->ctx, job->b, job_vector_bytes(job), &job->context_b);
    if (st == SPMV_OK)
        st = spmv_alloc(job->place->ctx, job_vector_bytes(job), &job->context_x);
    job->upload_seconds = job->p.upload_seconds + monotonic_seconds() - began;
    return st == SPMV_OK ? st : place_passed(job->place, st);
}

/* Sets the tolerance shown in the progress line. If ||b|| overflows, only atol is used. */
static void set_goal(struct job *job)
{
    const struct options *o = job->o;
    job->goal = INFINITY;
    for (int v = 0; v < job->columns; v++) {
        const double norm = job_norm(job, job->b, v);
        if (norm != 0 || job->columns == 1)
            job->goal = fmin(job->goal, fmax(isfinite(norm) ? o->rtol * norm : 0, o->atol));
    }
}

spmv_status job_load(struct job *job)
{
    const spmv_status st = place_load(job->place, JOB_SOLVE, job->wish->arguments[0], job->o->method, true, &job->in);
    if (st == SPMV_OK)
        job->type = place_on_ranks(job->place) ? job->place->part.type : input_type(job->o, &job->in);
    return st;
}

spmv_status job_begin(struct job *job)
{
    const struct wish *const wish = job->wish;
    job->rung = choice_is_auto(job->o->rung) ? NULL : job->o->rung;
    const double began = monotonic_seconds();
    spmv_status st = check_matrix(job);
    job->look_seconds = monotonic_seconds() - began;
    if (st == SPMV_OK)
        st = prepare(job, wish->count > 1 ? wish->arguments[1] : NULL);
    if (st != SPMV_OK || place_on_ranks(job->place))
        return st;
    st = send_vectors(job);
    if (st == SPMV_OK)
        set_goal(job);
    /* x, the residual, its reference, and the offsets of the checker's plan */
    memory_keep(4 * job_vector_bytes(job) + 8 * job->in.view.rows);
    return st;
}
