/* A sample of a matrix: what a solve with it takes tells which preconditioner suits the whole.
 *
 * The sample is two balls: the rows that a breadth-first search reaches first, from the middle row and from row 0,
 * together a sixteenth to a sixty-fourth of all, with the entries between them. It is positive definite if A is. A
 * solve with it costs that part of one with as many iterations, and each preconditioner meets there the coefficients,
 * the unknowns of a node and the neighbours that it meets in A. So the share of the iterations that a preconditioner
 * saves is about that of A, which no count of signs and sums tells.
 *
 * The number of iterations grows with the balls. A second sample, of a quarter of the rows, shows by how much, for each
 * preconditioner: multigrid's stays, that of others grows with the diameter, or its square. Two more such steps lead to
 * the whole. Unknowns beyond a ball are taken as fixed, all around; a domain is mostly fixed at a part of its boundary,
 * which doubles the longest wave of its errors, and with it the iterations that grow, but for multigrid, which reduces
 * long waves as well. Those of gmres are not doubled: they vary by a factor of three, the residuals of the solve tell
 * more, and soon.
 *
 * All is counted, nothing is timed: the same for any number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/solver_sample.h"

#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "formats/matrix_internal.h"

/* The sample has this part of the rows, or so many rows, but no more than the larger part. */
enum { PART = 64, LARGER_PART = 16, ROWS = 1024, BALLS = 2 };

/* The rows of the ball within the ball; iterations that grow are doubled, see above; by less than this they do not. */
enum { INNER_PART = 4, HALF_WAVES = 2 };
static const double GROWS = 1.1;

/* A candidate may take so many iterations on a ball; what cannot take so many is not tried. Work that is counted is at
 * least this share of the usual one. ilut solves a ball nearly exactly, but not the whole: it takes so many at least. */
enum { MOST = 1000, MOST_OF_GMRES = 100, FEWEST = 8, ILUT_FEWEST = 8 };
static const double LEAST_SHARE = 0.5;

/* Multigrid inverts a ball of so many rows (AMG_INVERSE_ROWS): that tells nothing of it, and the whole has few rows for
 * a hierarchy. */
enum { FEW_OF_AMG = 100 };

/* With gmres, what takes up to so many times as much may be the rival. */
static const double SLACK = 1.5;

/* A ball: a matrix of its own. */
struct ball {
    spmv_csr a;
    int64_t *row_ptr;
    int32_t *col;
    void *val;
    spmv_plan *plan;
    void *b, *x;
};

struct sample {
    spmv_context *ctx;
    spmv_preconditioner_options options;
    spmv_type type; /* of vectors */
    double rtol;
    const spmv_csr *source; /* the whole */
    int64_t rows;           /* of it */
    struct ball outer, inner;
};

static void close_ball(spmv_context *ctx, struct ball *ball)
{
    spmv_plan_destroy(ball->plan);
    host_free_all(ball->row_ptr, ball->col, ball->val);
    context_take_back(ctx, ball->b);
    context_take_back(ctx, ball->x);
}

static void close_sample(struct sample *sample)
{
    close_ball(sample->ctx, &sample->outer);
    close_ball(sample->ctx, &sample->inner);
}

/* Appends rows to the order up to `end`, as a search from `seed` reaches them; where it ends, another one begins.
 * place: at least 0 of rows that are in the order. */
static void search(const spmv_csr *a, int64_t seed, int64_t begin, int64_t end, int32_t *order, int32_t *place)
{
    for (int64_t last = begin; last < end;) {
        while (place[seed] >= 0)
            seed = seed + 1 < a->rows ? seed + 1 : 0;
        place[seed] = 0;
        order[last++] = (int32_t)seed;
        for (; begin < last; begin++)
            for (int64_t k = row_first(a, order[begin]); k < row_first(a, order[begin] + 1) && last < end; k++)
                if (place[a->col[k]] < 0) {
                    place[a->col[k]] = 0;
                    order[last++] = a->col[k];
                }
    }
}

/* The rows of two balls: around the middle row, and around the first one, which often is at a corner. */
static void take_balls(const spmv_csr *a, int64_t rows, int32_t *order, int32_t *place)
{
    memset(place, 0xff, (size_t)a->rows * sizeof *place);
    search(a, a->rows / 2, 0, rows / BALLS, order, place);
    search(a, 0, rows / BALLS, rows, order, place);
}

/* The matrix of balls with so many rows, which stay in the order of A. order, place: scratch of all rows. */
static spmv_status cut(struct sample *sample, const spmv_csr *a, int64_t rows, int32_t *order, int32_t *place,
                       struct ball *ball)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = sample->ctx;
    const size_t size = a->val != NULL ? spmv_type_size(a->type) : 0;
    int64_t nnz = 0, row = 0;
    take_balls(a, rows, order, place);
    memset(place, 0xff, (size_t)a->rows * sizeof *place);
    for (int64_t i = 0; i < rows; i++) {
        place[order[i]] = 0;
        nnz += row_first(a, order[i] + 1) - row_first(a, order[i]);
    }
    for (int64_t i = 0; i < a->rows; i++)
        if (place[i] >= 0)
            place[i] = (int32_t)row++;
    TRY(host_alloc(ctx, (rows + 1) * (int64_t)sizeof *ball->row_ptr, "a sample", (void **)&ball->row_ptr));
    TRY(host_alloc(ctx, nnz * (int64_t)sizeof *ball->col, "a sample", (void **)&ball->col));
    if (a->val != NULL)
        TRY(host_alloc(ctx, nnz * (int64_t)size, "a sample", &ball->val));
    ball->row_ptr[0] = nnz = row = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        if (place[i] < 0)
            continue;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (place[a->col[k]] >= 0) {
                if (size > 0)
                    memcpy((char *)ball->val + (size_t)nnz * size, (const char *)a->val + (size_t)k * size, size);
                ball->col[nnz++] = place[a->col[k]];
            }
        ball->row_ptr[++row] = nnz;
    }
    ball->a = csr_of(rows, rows, nnz, ball->row_ptr, ball->col, ball->val, a->type, SPMV_MEMORY_CONTEXT);
done:
    return st;
}

/* The plan, and b = A x for numbers x that look random, so that all errors occur. */
static spmv_status open_ball(const struct sample *sample, struct ball *ball)
{
    spmv_status st = SPMV_OK;
    const int64_t rows = ball->a.rows, bytes = rows * (int64_t)spmv_type_size(sample->type);
    spmv_plan_options options;
    uint64_t number = 1;
    spmv_plan_options_init(&options, sizeof options);
    options.type = sample->type;
    TRY(spmv_plan_create(sample->ctx, &ball->a, &options, &ball->plan));
    TRY(context_lend(sample->ctx, bytes, &ball->b));
    TRY(context_lend(sample->ctx, bytes, &ball->x));
    for (int64_t i = 0; i < rows; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u; /* D. Knuth, MMIX */
        real_set(sample->type, ball->x, i, (double)(number >> 11) * 0x1p-52 - 1);
    }
    TRY(spmv_apply(ball->plan, NULL, ball->x, NULL, ball->b));
done:
    return st;
}

static spmv_status open_sample(spmv_context *ctx, const struct sample_source *source, struct sample *sample)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = source->a;
    const int64_t rows = max_i64(ceil_divide(a->rows, PART), min_i64(ROWS, ceil_divide(a->rows, LARGER_PART)));
    int32_t *order = NULL, *place = NULL;
    *sample =
        (struct sample){.ctx = ctx, .options = *source->options, .type = source->type, .source = a, .rows = a->rows};
    sample->options.type = source->type;
    sample->options.plan = NULL;
    sample->options.update_values = 0;
    sample->options.near_null = NULL;
    sample->options.near_nulls = 0;
    sample->options.coordinates = NULL;
    sample->options.nodes = sample->options.dimensions = 0;
    /* a tolerance that each type reaches */
    sample->rtol = fmax(source->rtol > 0 ? source->rtol : 1e-8, 64 * real_limits_of(source->type).roundoff);
    TRY(host_alloc(ctx, rows * (int64_t)sizeof *order, "a sample", (void **)&order));
    TRY(host_alloc(ctx, a->rows * (int64_t)sizeof *place, "a sample", (void **)&place));
    TRY(cut(sample, a, rows, order, place, &sample->outer));
    TRY(cut(sample, a, ceil_divide(rows, INNER_PART), order, place, &sample->inner));
    TRY(open_ball(sample, &sample->outer));
    TRY(open_ball(sample, &sample->inner));
done:
    host_free_all(order, place);
    return st;
}

/* *taken: the iterations; more than `most` if they do not suffice or there is no such preconditioner. */
static spmv_status solve(const struct sample *sample, const struct ball *ball, const struct krylov_solver *solver,
                         const char *name, int64_t most, int64_t *taken, int64_t *work)
{
    spmv_context *const ctx = sample->ctx;
    const int64_t budget = ctx->budget, pace = ctx->pace, paced = ctx->paced;
    spmv_solver_options options;
    spmv_solver_result result = {.iterations = 0};
    spmv_solver *s = NULL;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = solver->name;
    options.precond = name;
    options.precond_options = &sample->options;
    options.plan = ball->plan;
    options.rtol = sample->rtol;
    options.max_iterations = most;
    options.zero_start = 1;
    options.symmetry_check = SPMV_SYMMETRY_TRUST;
    context_budget(ctx, 0);
    context_pace(ctx, INT64_MAX / 2); /* counts */
    spmv_status st = spmv_solver_create(ctx, &ball->a, &options, &s);
    *work = ctx->paced;
    ctx->budget = budget;
    ctx->pace = pace;
    ctx->paced = paced;
    if (st == SPMV_OK) {
        s->corrects = true; /* rows are not checked */
        st = spmv_solver_solve(s, ball->b, ball->x, &result, sizeof result);
    }
    spmv_solver_destroy(s);
    *taken = st == SPMV_OK ? max_i64(1, result.iterations) : most + 1;
    return st == SPMV_CANCELLED ? st : SPMV_OK;
}

/* For each entry and row. */
static double work_of(const struct ball *ball, int64_t work)
{
    return (double)work / (double)(ball->a.rows + ball->a.nnz);
}

/* A factor has at most `fill` times the entries of A, so half of that in each triangle; each entry of the lower one
 * takes a row of the upper one. */
static double most_work(const struct sample *sample, const struct ball *ball)
{
    enum { USUAL_FILL = 10 };
    const double fill = sample->options.fill > 0 ? sample->options.fill : USUAL_FILL;
    return 0.5 * fill * fill * (double)ball->a.nnz / (double)ball->a.rows;
}

/* From the inner to the outer ball the iterations, and the fill-in of ilut, grow by a factor; that goes on to the
 * whole. */
static double whole_of(const struct sample *sample, double of_inner, double of_outer, double share)
{
    const double times = log(BALLS * (double)sample->rows / (double)sample->outer.a.rows) / log(INNER_PART);
    return of_outer * pow(fmax(1, of_outer / of_inner), share * times);
}

static double steps_of(const struct sample *sample, const struct krylov_solver *solver, const char *name,
                       int64_t of_inner, int64_t of_outer)
{
    if (strcmp(name, "amg") == 0) /* grow with the levels at most */
        return whole_of(sample, (double)of_inner, (double)of_outer, 0.5);
    const double steps = whole_of(sample, (double)of_inner, (double)of_outer, 1);
    const bool doubles = solver != &krylov_gmres && (double)of_outer > GROWS * (double)of_inner;
    return fmax(strcmp(name, "ilut") == 0 ? ILUT_FEWEST : 1, doubles ? HALF_WAVES * steps : steps);
}

/* Candidates whose set-up counts its work: that of the whole, for each entry and row. */
static double work_of_whole(const struct sample *sample, const char *name, int64_t of_inner, int64_t of_outer)
{
    const double inner = work_of(&sample->inner, of_inner), outer = work_of(&sample->outer, of_outer);
    return strcmp(name, "ilut") == 0 ? fmin(whole_of(sample, inner, outer, 1), most_work(sample, &sample->outer))
                                     : outer;
}

/* Tries one; its steps become INFINITY if it cannot be made, or takes more than `best`. */
static spmv_status try_one(const struct sample *sample, const struct krylov_solver *first, const char *name,
                           double best, struct precond_cost *cost)
{
    spmv_status st = SPMV_OK;
    const int64_t rows = sample->source->rows, nnz = sample->source->nnz;
    const enum precond_for purpose = solver_purpose(first);
    const struct krylov_solver *const solver = solver_with_precond(first, name);
    const bool counted = precond_work_of(purpose, name, rows, nnz, 1) > 0;
    const double least = counted ? LEAST_SHARE * cost->setup : cost->setup;
    const int64_t most = (int64_t)fmin(first->symmetric ? MOST : MOST_OF_GMRES, (best - least) / cost->step);
    int64_t inner = 0, outer = 0, work_inner = 0, work_outer = 0;
    cost->steps = INFINITY;
    if (most < FEWEST || (strcmp(name, "amg") == 0 && sample->inner.a.rows <= FEW_OF_AMG))
        return SPMV_OK;
    TRY(solve(sample, &sample->inner, solver, name, most, &inner, &work_inner));
    if (counted)
        cost->setup =
            precond_cost_sampled(purpose, name, rows, nnz, work_of(&sample->inner, work_inner), INFINITY).setup;
    if (inner > most || (counted && LEAST_SHARE * cost->setup > best))
        return SPMV_OK;
    TRY(solve(sample, &sample->outer, solver, name, most, &outer, &work_outer));
    if (outer > most)
        return SPMV_OK;
    cost->steps = steps_of(sample, solver, name, inner, outer);
    if (counted)
        cost->setup = precond_cost_sampled(purpose, name, rows, nnz,
                                           work_of_whole(sample, name, work_inner, work_outer), cost->steps)
                          .setup;
done:
    return st;
}

spmv_status solver_sample_try(spmv_context *ctx, const struct sample_source *source, const struct krylov_solver *solver,
                              struct precond_estimate *candidates, int count, char *words, size_t size)
{
    spmv_status st = SPMV_OK;
    struct sample sample = {.ctx = ctx};
    double best = INFINITY;
    TRY(open_sample(ctx, source, &sample));
    size_t used = (size_t)snprintf(words, size, "a sample of %lld rows predicts", (long long)sample.outer.a.rows);
    for (int i = 0; i < count; i++) {
        struct precond_estimate *const one = &candidates[i];
        if (strcmp(one->name, "cholesky") == 0)
            continue;
        TRY(try_one(&sample, solver, one->name, solver->symmetric ? best : SLACK * best, &one->cost));
        if (isfinite(one->cost.steps) && used < size)
            used += (size_t)snprintf(words + used, size - used, "%s about %.2g iterations with %s",
                                     isfinite(best) ? "," : "", one->cost.steps, one->name);
        best = fmin(best, precond_cost_of_all(&one->cost));
    }
done:
    close_sample(&sample);
    return st;
}
