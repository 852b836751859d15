/* Conjugate gradients with inner iterations in f32: half the bytes, with the accuracy of f64.
 *
 * Idea: the recurrence runs in f32 on the correction d, A d = r, from a residual r = b - A x
 * computed in f64. Whenever its residual has shrunk a hundredfold, x += d in f64, and r is computed
 * anew and replaces the recurrence's residual. The direction p is kept, so the replacement is no
 * restart from the beginning. All numbers of the recurrence are scaled by one power of two, so that
 * ||b|| is about 1 and squares fit f32. H. A. van der Vorst, Q. Ye, "Residual replacement
 * strategies for Krylov subspace iterative methods", SIAM J. Sci. Comput. 22(3), 2000; M. A. Clark
 * et al., "Solving lattice QCD systems of equations using mixed precision solvers on GPUs", Comput.
 * Phys. Commun. 181, 2010 ("reliable updates").
 *
 * Any rung runs the recurrence. Vectors are converted on the host, a few times in a solve.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "solvers/cg/cg_internal.h"

/* x is updated whenever the residual has shrunk by this factor, which is well above the roundoff of
 * f32. */
static const double REPLACE = 1e-2;

struct inner {
    struct cg cg; /* in f32: b is the residual, x the correction */
    spmv_cg_result result;
    double scale;
    void *b, *x;
    double *f64; /* n elements each, in host memory */
    float *f32;
};

/* The callback of the inner rung: reports the residual in units of b. */
static int on_iteration(int64_t iteration, double residual, void *user)
{
    struct cg *outer = user;
    const struct inner *in = outer->state;
    return krylov_tell(&outer->s, iteration, residual / in->scale) != SPMV_OK;
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    struct inner *in = NULL;
    TRY(host_alloc(s->ctx, sizeof *in, "conjugate gradients", &cg->state));
    in = cg->state;
    *in = (struct inner){.result = *s->result};
    in->cg = (struct cg){.s = {.call = s->call,
                               .ctx = s->ctx,
                               .plan = cg->s.inner,
                               .precond = s->precond,
                               .max_iterations = s->max_iterations,
                               .on_iteration = s->on_iteration != NULL ? on_iteration : NULL,
                               .user = cg,
                               .rung = s->rung,
                               .result = &in->result},
                         .keeps = true};
    TRY(spmv_plan_describe(cg->s.inner, &in->cg.s.info, sizeof in->cg.s.info));
    TRY(spmv_alloc(s->ctx, s->n * (int64_t)sizeof(float), &in->b));
    TRY(spmv_alloc(s->ctx, s->n * (int64_t)sizeof(float), &in->x));
    in->cg.s.b = in->b;
    in->cg.s.x = in->x;
    TRY(cg_open(&in->cg));
    TRY(host_alloc(s->ctx, s->n * (int64_t)sizeof(double), "conjugate gradients", (void **)&in->f64));
    TRY(host_alloc(s->ctx, s->n * (int64_t)sizeof(float), "conjugate gradients", (void **)&in->f32));
    s->result->rung = in->result.rung;
    memcpy(s->result->why, in->result.why, sizeof s->result->why);
done:
    return st;
}

static void release(struct cg *cg)
{
    struct inner *in = cg->state;
    cg_close(&in->cg);
    spmv_free(cg->s.ctx, in->b);
    spmv_free(cg->s.ctx, in->x);
    host_free(in->f64);
    host_free(in->f32);
}

/* to = factor * from, f64 to f32. */
static spmv_status narrow(const struct cg *cg, const void *from, double factor, void *to)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(spmv_download(cg->s.ctx, from, in->f64, cg->s.n * (int64_t)sizeof(double)));
    for (int64_t i = 0; i < cg->s.n; i++)
        in->f32[i] = (float)(factor * in->f64[i]);
    TRY(spmv_upload(cg->s.ctx, in->f32, to, cg->s.n * (int64_t)sizeof(float)));
done:
    return st;
}

/* to = factor * from, f32 to f64. */
static spmv_status widen(const struct cg *cg, const void *from, double factor, void *to)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(spmv_download(cg->s.ctx, from, in->f32, cg->s.n * (int64_t)sizeof(float)));
    for (int64_t i = 0; i < cg->s.n; i++)
        in->f64[i] = factor * (double)in->f32[i];
    TRY(spmv_upload(cg->s.ctx, in->f64, to, cg->s.n * (int64_t)sizeof(double)));
done:
    return st;
}

/* Decides what p'Ap <= 0 in f32, or the same of M, means; the context has its message. If p'Ap <= 0
 * for the same p in f64, A is not positive definite; otherwise f32 is too coarse. */
static spmv_status judge(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct inner *in = cg->state;
    double pq = 0;
    char sentence[200];
    if (in->cg.column->rz <= 0)
        return SPMV_ERROR_NOT_POSITIVE;
    snprintf(sentence, sizeof sentence, "p'Ap = %.3g at iteration %lld", in->cg.column->pq,
             (long long)in->result.iterations);
    TRY(widen(cg, in->cg.p, 1, cg->p));
    TRY(cg_multiply(cg, cg->p, s->q, s->cells));
    TRY(krylov_read(s, s->cells, 1, &pq));
    if (pq <= 0)
        st =
            context_fail(s->ctx, SPMV_ERROR_NOT_POSITIVE, "spmv_cg: %s: the matrix is not positive definite", sentence);
    else
        st = context_fail(s->ctx, SPMV_ERROR_STAGNATION,
                          "spmv_cg: %s in f32, and %.3g in f64: solve without inner iterations", sentence, pq);
done:
    return st;
}

/* x += the correction of the inner iterations */
static spmv_status correct(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(widen(cg, in->x, 1 / in->scale, cg->s.q));
    TRY(spmv_map_axpby(cg->s.ctx, cg->s.type, NULL, cg->s.q, NULL, cg->s.x, cg->s.n));
done:
    return st;
}

/* Runs the inner iterations to this residual, in units of b. Returns their status, with its
 * message. */
static spmv_status run_inner(struct cg *cg, double tolerance)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    struct inner *in = cg->state;
    struct krylov *inner = &in->cg.s;
    TRY(narrow(cg, s->r, in->scale, in->b));
    TRY(spmv_map_index(s->ctx, SPMV_F32, &(const float){0}, NULL, in->x, s->n));
    *inner->column = (struct krylov_column){.tolerance = in->scale * tolerance,
                                            .start_residual = INFINITY,
                                            .limit = s->max_iterations - s->result->iterations - s->column->iterations,
                                            .stop = COLUMN_RUNS};
    inner->iterations = in->result.iterations = s->iterations;
    inner->failed = cg_run(inner);
    TRY(spmv_status_class(inner->failed) < 7 ? inner->failed : SPMV_OK);
    snprintf(inner->sentence, sizeof inner->sentence, "%s", spmv_last_error(s->ctx));
    krylov_collect(inner);
    s->column->iterations += inner->column->iterations;
    s->iterations = in->result.iterations;
    st = krylov_verdict(inner, 0);
done:
    return st;
}

static spmv_status run(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    struct inner *in = cg->state;
    struct krylov_column *c = s->column;
    const double norm_b = s->result->norm_b;
    double before = INFINITY;
    int exponent = 0;
    frexp(norm_b, &exponent);
    in->scale = isfinite(norm_b) ? ldexp(1, -exponent) : 1;
    in->cg.continues = false;
    for (;;) {
        TRY(krylov_norms(s, s->r, &c->residual));
        if (!in->cg.continues) {
            c->start_residual = c->residual;
            c->enough = krylov_enough(s->type, c);
        }
        if (!isfinite(c->residual)) {
            st = context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "spmv_cg: r'r = %g at iteration %lld",
                              c->residual * c->residual, (long long)s->iterations);
            goto done;
        }
        c->stop = COLUMN_DONE; /* or f32 gains no more; the front finds out which */
        if (c->residual <= c->enough || !(c->residual <= 0.5 * before))
            goto done;
        c->stop = COLUMN_RUNS;
        before = c->residual;
        st = run_inner(cg, fmax(0.5 * c->enough, REPLACE * c->residual));
        if (st != SPMV_OK && spmv_status_class(st) < 7)
            goto done;
        if (st == SPMV_ERROR_NOT_POSITIVE)
            st = judge(cg);
        const spmv_status verdict = st;
        TRY(correct(cg));
        TRY(krylov_residual(s, s->r));
        if (verdict != SPMV_OK) {
            TRY(krylov_norms(s, s->r, &c->residual));
            c->stop = verdict == SPMV_ERROR_ITERATIONS ? COLUMN_LIMIT : COLUMN_RUNS;
            st = c->stop == COLUMN_LIMIT ? SPMV_OK : verdict;
            goto done;
        }
        in->cg.continues = true;
    }
done:
    return st;
}

const struct cg_rung cg_inner = {.name = "inner",
                                 .why = "",
                                 .backends = 0,
                                 .least_columns = 1,
                                 .most_columns = 1,
                                 .prepare = prepare,
                                 .run = run,
                                 .release = release};
