/* The common run of minres, gmres, bicgstab and cocg: workspace, the loop over steps, the callback, and
 * the message of a breakdown.
 *
 * The scalars of a recurrence are in the context's memory (krylov_scalars.h). On ref and omp a step
 * is done when its function returns. On cuda steps are queued ahead of need: kernels of steps after
 * the last return at once, and the host reads copies of the state while later steps run. With several
 * ranks, where a pass waits for the sums of the others, each step is waited for.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_loop.h"

#include <spmv/primitives.h>

#include "product/plan_internal.h"
#include "solvers/precond/precond_internal.h"

/* A cycle of gmres must reduce the residual by this factor, or the run ends. */
static const double CYCLE_PROGRESS = 0.999;

/* ------------------------------------------------------------- for the recurrences */

spmv_status krylov_loop_multiply(const struct krylov_loop *g, const void *x, void *y)
{
    struct plan_product product = plan_product_of(g->s.plan, NULL, x, NULL, y);
    product.stop = &g->v.state->ending;
    return g->s.plan->ranks != NULL ? plan_multiply_together(g->s.plan, product) : plan_multiply(g->s.plan, &product);
}

spmv_status krylov_loop_precondition(const struct krylov_loop *g, const void *r, const void **z)
{
    *z = g->s.precond != NULL ? g->z : r;
    return g->s.precond != NULL ? spmv_preconditioner_apply(g->s.precond, r, g->z) : SPMV_OK;
}

spmv_status krylov_loop_clear(const struct krylov_loop *g, int first, int count)
{
    /* all bits 0, also as floats */
    return spmv_map_index(g->s.ctx, g->s.part, &(const double){0}, NULL, krylov_loop_vector(g, first),
                          count * g->stride * type_parts(g->s.type));
}

/* ------------------------------------------------------------- the state */

enum { ALIGNED = 256 };

static int64_t padded(int64_t bytes)
{
    return ceil_divide(bytes, ALIGNED) * ALIGNED;
}

/* Lays out the arrays of gmres behind the state, and returns the bytes of all. base NULL: only
 * counts. */
static int64_t place_arrays(struct krylov_state *state, char *base, int64_t most)
{
    struct krylov_scalar **const arrays[] = {&state->pass, &state->h, &state->g, &state->sines, &state->r};
    const int64_t count[] = {most + 1, most + 1, most + 1, most + 1, most * most};
    int64_t at = padded((int64_t)sizeof *state);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = base != NULL ? (struct krylov_scalar *)(void *)(base + at) : NULL;
        at = padded(at + count[i] * (int64_t)sizeof(struct krylov_scalar));
    }
    state->cosines = base != NULL ? (double *)(void *)(base + at) : NULL;
    return padded(at + (most + 1) * (int64_t)sizeof *state->cosines);
}

/* Writes the state of a new run. */
static spmv_status write_state(struct krylov_loop *g)
{
    const struct krylov_column *c = g->s.column;
    struct krylov_state *const state = &g->host;
    const double largest = state->largest; /* 0 before the first run */
    memset(state, 0, sizeof *state);
    state->largest = largest;
    place_arrays(state, g->small, g->s.restart);
    state->tolerance = c->tolerance;
    state->roundoff = real_limits_of(g->s.part).roundoff;
    state->limit = c->limit;
    state->first = 1;
    state->plain = g->s.precond == NULL;
    state->even = g->queue != NULL; /* batches of steps begin with an even one */
    state->most = g->s.restart;
    state->c[C_ONE] = scalar_of(1);
    return spmv_upload(g->s.ctx, state, g->v.state, (int64_t)sizeof *state);
}

/* ------------------------------------------------------------- the loop */

/* Where copies of the state arrive. */
static struct krylov_state *copies_of(struct krylov_loop *g)
{
    return g->states != NULL ? g->states : &g->host;
}

/* After a copy: host, of several states. */
static void sum_up(struct krylov_loop *g)
{
    struct krylov_state *const all = &g->host;
    if (g->states == NULL)
        return;
    all->ending = 1;
    all->iterations = -1;
    all->residual = 0;
    for (int v = 0; v < g->columns; v++) {
        const struct krylov_state *const one = &g->states[v];
        all->ending = all->ending && one->ending;
        all->enough = one->enough;
        all->iterations = max_i64(all->iterations, one->iterations);
        if (!one->ending && !(one->residual <= all->residual))
            all->residual = one->residual;
    }
}

/* Reports the iterations up to the last one made. *next: the first that was not reported; base
 * iterations came before the run. */
static spmv_status tell(struct krylov_loop *g, int64_t base, int64_t *next)
{
    spmv_status st = SPMV_OK;
    struct krylov *const s = &g->s;
    for (; *next <= g->host.iterations && s->told == SPMV_OK; ++*next) {
        void *const x = s->x;
        const void *iterate = x;
        if (s->on_iterate != NULL && g->s.solver->iterate != NULL)
            TRY(g->s.solver->iterate(g, &iterate));
        s->x = (void *)iterate; /* on_iterate reads it */
        if (g->s.solver->tell != NULL)
            g->s.solver->tell(g, base, *next);
        else
            krylov_tell(s, base + *next, g->host.history[*next % KRYLOV_RING]);
        s->x = x;
    }
done:
    return st;
}

/* Steps until none follows, each one waited for. first: 1 if an odd number of steps came before. */
static spmv_status run_each(struct krylov_loop *g, int64_t first, int64_t base, int64_t *next)
{
    spmv_status st = SPMV_OK;
    for (int64_t k = first;; k++) {
        TRY(spmv_download(g->s.ctx, g->v.state, copies_of(g),
                          (g->states != NULL ? g->columns : 1) * (int64_t)sizeof g->host));
        sum_up(g);
        TRY(tell(g, base, next));
        if (g->host.ending || g->s.told != SPMV_OK)
            break;
        TRY(g->s.solver->step(g, k));
    }
done:
    return st;
}

enum { AHEAD = 2 }; /* batches in flight */

/* Whether the residuals predict that fewer steps are left than are queued at a time. */
static bool near_end(const struct krylov_loop *g, double before, int steps)
{
    const struct krylov_state *const state = &g->host;
    const double fall = log(before / state->residual), left = log(state->residual / state->enough);
    return fall > 0 && left / fall * steps < (AHEAD + 1) * KRYLOV_LONG_BATCH;
}

/* The same, queued ahead. A cycle of gmres has a known number of steps at most. */
static spmv_status run_queued(struct krylov_loop *g, int64_t base, int64_t *next)
{
    spmv_status st = SPMV_OK;
    const bool costly = g->s.precond != NULL && precond_inverse_diagonal(g->s.precond) == NULL;
    const int64_t most = g->s.restart > 0 ? g->s.restart : INT64_MAX;
    const int few = costly && !g->s.solver->two_steps ? 1 : KRYLOV_SHORT_BATCH;
    int steps = costly ? few : KRYLOV_LONG_BATCH, before_steps = 0, last = 0;
    double before = 0;
    for (int64_t k = 0, batch = 0; k < most; batch++) {
        const int queued = most - k < steps ? few : steps; /* steps after the last do nothing */
        last = (int)(batch % AHEAD);
        TRY(krylov_queue_steps(g->queue, k, queued, last));
        k += queued;
        if (batch >= AHEAD - 1) {
            TRY(krylov_queue_await(g->queue, (last + 1) % AHEAD, copies_of(g)));
            sum_up(g);
            TRY(tell(g, base, next));
            if (g->host.ending || g->s.told != SPMV_OK)
                break;
            if (!costly)
                steps = before > 0 && near_end(g, before, before_steps) ? few : KRYLOV_LONG_BATCH;
            before = g->host.residual;
        }
        before_steps = queued;
    }
    TRY(krylov_queue_await(g->queue, last, copies_of(g)));
    sum_up(g);
    TRY(tell(g, base, next));
done:
    return st;
}

/* The same, many steps in each kernel. */
static spmv_status run_persistent(struct krylov_loop *g, int64_t base, int64_t *next)
{
    spmv_status st = SPMV_OK;
    bool begins = true;
    do {
        TRY(g->many_steps(g, begins));
        TRY(spmv_download(g->s.ctx, g->v.state, &g->host, (int64_t)sizeof g->host));
        TRY(tell(g, base, next));
        begins = false;
    } while (!g->host.ending && g->s.told == SPMV_OK);
done:
    return st;
}

spmv_status krylov_loop_steps(struct krylov_loop *g, int64_t base, int64_t *next)
{
    if (g->many_steps != NULL)
        return run_persistent(g, base, next);
    if (g->queue != NULL && g->s.on_iterate == NULL)
        return run_queued(g, base, next);
    return run_each(g, g->s.solver->two_steps ? g->host.iterations % 2 : 0, base, next);
}

/* The true residual of x. *follows: that of the recurrence says the same. */
static spmv_status true_residual(const struct krylov_loop *g, double *norm, bool *follows)
{
    spmv_status st = SPMV_OK;
    const struct krylov *const s = &g->s;
    TRY(krylov_residual(s, s->q));
    TRY(krylov_norms(s, s->q, norm));
    *follows = *norm <= 2 * g->host.residual;
done:
    return st;
}

/* Whether x is better than one with the residual `best`. While x grows without bound along a null vector,
 * its residual changes by rounding errors only. */
static bool is_better(double norm, bool follows, double best)
{
    return norm < (follows ? 0.9999 : 0.9) * best;
}

/* After a pause of minres: compares the residual with the true one. *best: the smallest true residual
 * so far, that of start_x, which becomes x if that is better. Sets g->host.paused if the steps go on;
 * otherwise the true residual has not followed, and the run breaks. */
static spmv_status look_at_residual(struct krylov_loop *g, double *best)
{
    spmv_status st = SPMV_OK;
    struct krylov *const s = &g->s;
    struct krylov_state *const state = &g->host;
    double now = 0;
    bool follows = false;
    TRY(true_residual(g, &now, &follows));
    state->paused = 0;
    if (is_better(now, follows, *best)) {
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->x, s->start_x, s->count));
        *best = now;
    } else if (!follows) {
        state->stop = KRYLOV_BROKEN;
        state->broken = BROKEN_LEAST_SQUARES;
        goto done;
    }
    state->pause_residual = state->residual;
    state->pause_iteration = state->iterations;
    state->ending = 0;
    TRY(spmv_upload(s->ctx, state, g->v.state, (int64_t)sizeof *state));
    state->paused = 1;
done:
    return st;
}

/* If the steps have paused, x becomes start_x unless x is better. */
static spmv_status return_to_best(const struct krylov_loop *g, double best)
{
    spmv_status st = SPMV_OK;
    const struct krylov *const s = &g->s;
    double now = 0;
    bool follows = false;
    if (g->host.pause_residual == 0 && g->host.broken != BROKEN_LEAST_SQUARES)
        return SPMV_OK;
    TRY(true_residual(g, &now, &follows));
    if (!is_better(now, follows, best))
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->start_x, s->x, s->count));
done:
    return st;
}

static spmv_status run(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    struct krylov_loop *const g = (struct krylov_loop *)s;
    struct krylov_column *const c = s->column;
    const int64_t base = s->iterations;
    int64_t next = base > 0; /* a restart has reported its first residual already */
    bool again = false;
    TRY(krylov_start(s));
    TRY(write_state(g));
    double before = INFINITY;
    do {
        TRY(g->s.solver->begin(g));
        TRY(krylov_loop_steps(g, base, &next));
        double best = g->host.start;
        while (g->host.paused && s->told == SPMV_OK) {
            TRY(look_at_residual(g, &best));
            if (g->host.paused)
                TRY(krylov_loop_steps(g, base, &next));
        }
        if (s->told == SPMV_OK)
            TRY(return_to_best(g, best));
        if (g->s.solver->end != NULL)
            TRY(g->s.solver->end(g));
        again = g->host.stop == KRYLOV_RUNS && !g->host.paused && s->told == SPMV_OK;
        if (again && g->host.residual > CYCLE_PROGRESS * before) { /* the next cycle would be like this one */
            g->host.stop = KRYLOV_DONE;
            again = false;
        }
        before = g->host.residual;
        if (again)
            TRY(krylov_residual(s, s->r));
    } while (again);
    c->start_residual = g->host.start;
    c->enough = g->host.enough;
    c->residual = g->host.residual;
    c->iterations = g->host.iterations;
    c->stop = (enum column_stop)g->host.stop;
    if (s->told != SPMV_OK && base + c->iterations >= s->told_at)
        c->stop = COLUMN_RUNS;
    s->iterations = base + c->iterations;
done:
    return st;
}

/* ------------------------------------------------------------- breakdown */

static spmv_status fail_broken(const struct krylov *s, int v)
{
    const struct krylov_loop *const g = (const struct krylov_loop *)s;
    const long long k = (long long)(s->iterations_before + s->result[v].iterations);
    const double culprit = krylov_unscaled_square(s, g->host.culprit);
    switch ((enum krylov_broken)g->host.broken) {
    case BROKEN_NOT_POSITIVE:
        return context_fail(s->ctx, SPMV_ERROR_NOT_POSITIVE,
                            "%s: minres: r'M^-1 r = %g < 0 at iteration %lld: the preconditioner is not positive "
                            "definite; gmres takes any",
                            s->call, culprit, k);
    case BROKEN_SINGULAR:
        return context_fail(s->ctx, SPMV_ERROR_BREAKDOWN,
                            "%s: %s: the Krylov space ends at iteration %lld without a solution: the matrix is "
                            "singular, or the preconditioner is",
                            s->call, g->s.solver->name, k);
    case BROKEN_LEAST_SQUARES:
        return context_fail(s->ctx, SPMV_ERROR_INCONSISTENT,
                            "%s: minres: A is singular, or nearly so, and b has a part that no x reaches: at iteration "
                            "%lld the residual is nearly a null vector of A, so x is a least-squares solution%s",
                            s->call, k, g->host.plain ? "" : " in the norm of the preconditioner's inverse");
    case BROKEN_SHADOW:
        return context_fail(s->ctx, SPMV_ERROR_BREAKDOWN,
                            "%s: bicgstab: a product with the first residual is %g at iteration %lld; try gmres",
                            s->call, culprit, k);
    case BROKEN_NO_STABILISATION:
        return context_fail(s->ctx, SPMV_ERROR_BREAKDOWN, "%s: bicgstab: omega is 0 at iteration %lld; try gmres",
                            s->call, k);
    case BROKEN_QUASI_NULL:
        return context_fail(
            s->ctx, SPMV_ERROR_BREAKDOWN,
            "%s: cocg: a product without conjugation is %g at iteration %lld, of vectors that are not 0; "
            "try gmres",
            s->call, culprit, k);
    case BROKEN_GROWTH:
        return context_fail(
            s->ctx, SPMV_ERROR_BREAKDOWN,
            "%s: cocg: the residual before smoothing has grown to %.3g at iteration %lld, so its digits "
            "are lost; try gmres",
            s->call, krylov_unscaled(s, g->host.culprit), k);
    default:
        return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "%s: %s: a sum is %g at iteration %lld", s->call,
                            g->s.solver->name, culprit, k);
    }
}

/* ------------------------------------------------------------- the solve */

static spmv_status open(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    struct krylov *const s = &g->s;
    const int64_t line = 32; /* elements, so that each vector is aligned like memory of its own */
    s->run = g->s.solver->run != NULL ? g->s.solver->run : run;
    s->fail_broken = fail_broken;
    TRY(krylov_open(s));
    const int64_t size = (int64_t)spmv_type_size(s->type);
    const int basis = g->s.restart > 0 ? g->s.restart + 1 : 0, vectors = g->s.solver->vectors(g);
    const int64_t state_bytes = place_arrays(&g->host, NULL, g->s.restart);
    const struct plan_ranks *const ranks = s->plan->ranks;
    const int64_t parts_bytes = krylov_parts_bytes(s->ctx, s->n, basis, ranks);
    g->room = ranks != NULL ? ranks->before : 0;
    g->stride = ceil_divide(g->room + s->n + (ranks != NULL ? ranks->after : 0), line) * line;
    TRY(context_lend(s->ctx, state_bytes + parts_bytes, &g->small));
    TRY(context_lend(s->ctx, (g->room + vectors * g->stride) * size, &g->vectors));
    if (s->precond != NULL)
        TRY(krylov_lend(s, s->part, s->count, &g->z));
    if (ranks != NULL)
        TRY(host_alloc(s->ctx, krylov_rank_parts_bytes(ranks, basis), s->call, (void **)&g->v.rank_parts));
    if (s->on_iterate != NULL && g->s.solver->iterate != NULL)
        TRY(context_lend(s->ctx, s->n * size, &g->shown));
    /* all bits 0, also as floats */
    TRY(spmv_map_index(s->ctx, SPMV_F64, &(const double){0}, NULL, g->small, (state_bytes + parts_bytes) / 8));
    g->v = (struct krylov_vectors){.ctx = s->ctx,
                                   .type = s->type,
                                   .n = s->n,
                                   .state = g->small,
                                   .parts = (char *)g->small + state_bytes,
                                   .ranks = ranks,
                                   .rank_parts = g->v.rank_parts};
    if (context_on_device(s->ctx) && ranks == NULL && g->s.solver->step != NULL && !plan_is_operator(s->plan)) {
        TRY(krylov_persistent_open(g, &g->persistent));
        if (g->persistent != NULL)
            g->many_steps = krylov_persistent_steps;
        if (g->persistent == NULL)
            TRY(krylov_queue_open(g, &g->queue));
    }
done:
    return st;
}

static void close(struct krylov_loop *g)
{
    if (context_on_device(g->s.ctx)) {
        krylov_queue_close(g->queue);
        krylov_persistent_close(g, g->persistent);
    }
    void *const lent[] = {g->small, g->vectors, g->shown};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(g->s.ctx, lent[i]);
    krylov_take_back(&g->s, g->s.part, g->z);
    host_free(g->v.rank_parts);
    krylov_close(&g->s);
}

spmv_status krylov_loop_solve(const struct krylov *asked)
{
    spmv_status st = SPMV_OK;
    struct krylov_loop g = {.s = *asked};
    struct krylov *const s = &g.s;
    TRY(krylov_check(s));
    TRY(krylov_take_precond(s, s->info.type));
    if ((s->solver->symmetric || s->solver->bilinear) && s->symmetry_check == SPMV_SYMMETRY_SAMPLED)
        TRY(krylov_check_symmetry(s, s->solver->bilinear));
    if (krylov_rows(s) == 0)
        return krylov_solve_empty(s);
    st = open(&g);
    if (st == SPMV_OK) {
        const void *const b = s->b;
        const bool zero_start = s->zero_start;
        st = krylov_name_not_finite(s, b, zero_start, krylov_solve(s));
        close(&g);
        return st;
    }
    close(&g);
done:
    s->result->status = st;
    return st;
}
