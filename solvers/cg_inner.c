/* Conjugate gradients with inner iterations in f32: the work is done at half the bytes, the answer has the accuracy of
 * f64.
 *
 * Idea: the recurrence runs in f32 on the correction d, A d = r, from a residual r = b - A x that was computed in f64.
 * Whenever its residual has shrunk a hundredfold, x += d in f64, r is computed anew and takes the place of the
 * recurrence's, while the direction p is kept: so the replaced residual costs no start from the beginning. All numbers
 * of the recurrence are scaled by one power of two, so that ||b|| is about 1 and squares stay within f32. H. A. van der
 * Vorst, Q. Ye, "Residual replacement strategies for Krylov subspace iterative methods", SIAM J. Sci. Comput. 22(3),
 * 2000; M. A. Clark et al., "Solving lattice QCD systems of equations using mixed precision solvers on GPUs", Comput.
 * Phys. Commun. 181, 2010 ("reliable updates").
 *
 * Any rung runs the recurrence. Vectors are converted on the host, some times a solve.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "cg_internal.h"

/* x is brought up to date whenever the residual has shrunk by this: f32 has it some digits more exact. */
static const double REPLACE = 1e-2;

struct inner {
    struct cg cg; /* in f32: b is the residual, x the correction */
    spmv_cg_options options;
    spmv_cg_result result;
    double scale;
    void *b, *x;
    double *f64; /* n elements in host memory, and so f32 */
    float *f32;
};

/* What the rung tells, in units of b. */
static int on_iteration(int64_t iteration, double residual, void *user)
{
    const struct cg *outer = user;
    const struct inner *in = outer->state;
    return outer->options->on_iteration(iteration, residual / in->scale, outer->options->user);
}

static spmv_status supports(const struct cg *cg)
{
    (void)cg;
    return SPMV_OK;
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = cg->ctx;
    struct inner *in = NULL;
    TRY(host_alloc(ctx, sizeof *in, "conjugate gradients", &cg->state));
    in = cg->state;
    *in = (struct inner){.options = *cg->options, .result = *cg->result};
    in->cg = (struct cg){.ctx = ctx,
                         .plan = cg->options->inner,
                         .precond = cg->precond,
                         .keeps = true,
                         .options = &in->options,
                         .result = &in->result};
    if (cg->options->on_iteration != NULL) {
        in->options.on_iteration = on_iteration;
        in->options.user = cg;
    }
    TRY(spmv_plan_describe(cg->options->inner, &in->cg.info, sizeof in->cg.info));
    TRY(cg_open(&in->cg));
    TRY(spmv_alloc(ctx, cg->n * (int64_t)sizeof(float), &in->b));
    TRY(spmv_alloc(ctx, cg->n * (int64_t)sizeof(float), &in->x));
    TRY(host_alloc(ctx, cg->n * (int64_t)sizeof(double), "conjugate gradients", (void **)&in->f64));
    TRY(host_alloc(ctx, cg->n * (int64_t)sizeof(float), "conjugate gradients", (void **)&in->f32));
    in->cg.b = in->b;
    in->cg.x = in->x;
    cg->result->method = in->result.method;
    memcpy(cg->result->why, in->result.why, sizeof cg->result->why);
done:
    return st;
}

static void release(struct cg *cg)
{
    struct inner *in = cg->state;
    if (in == NULL)
        return;
    cg_close(&in->cg);
    spmv_free(cg->ctx, in->b);
    spmv_free(cg->ctx, in->x);
    host_free(in->f64);
    host_free(in->f32);
    host_free(in);
    cg->state = NULL;
}

/* to = factor * from, f64 to f32. */
static spmv_status narrow(const struct cg *cg, const void *from, double factor, void *to)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(spmv_download(cg->ctx, from, in->f64, cg->n * (int64_t)sizeof(double)));
    for (int64_t i = 0; i < cg->n; i++)
        in->f32[i] = (float)(factor * in->f64[i]);
    TRY(spmv_upload(cg->ctx, in->f32, to, cg->n * (int64_t)sizeof(float)));
done:
    return st;
}

/* to = factor * from, f32 to f64. */
static spmv_status widen(const struct cg *cg, const void *from, double factor, void *to)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(spmv_download(cg->ctx, from, in->f32, cg->n * (int64_t)sizeof(float)));
    for (int64_t i = 0; i < cg->n; i++)
        in->f64[i] = factor * (double)in->f32[i];
    TRY(spmv_upload(cg->ctx, in->f64, to, cg->n * (int64_t)sizeof(double)));
done:
    return st;
}

/* The recurrence met p'Ap <= 0, or M the like, in f32. Where the same p says so in f64, A is not positive definite;
 * else f32 is too coarse for it. */
static spmv_status judge(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    double pq = 0;
    char sentence[200];
    spmv_epilogue dot;
    if (in->cg.rz <= 0)
        return SPMV_ERROR_NOT_POSITIVE; /* the sentence is there */
    snprintf(sentence, sizeof sentence, "p'Ap = %.3g at iteration %lld", in->cg.pq, (long long)cg->result->iterations);
    TRY(widen(cg, in->cg.p, 1, cg->p));
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = cg->p;
    dot.dot = cg_scalar(cg, SPARE);
    TRY(spmv_apply_with(cg->plan, NULL, cg->p, NULL, cg->q, &dot));
    TRY(cg_read_scalars(cg, SPARE, 1, &pq));
    if (pq <= 0)
        st = context_fail(cg->ctx, SPMV_ERROR_NOT_POSITIVE, "spmv_cg: %s: the matrix is not positive definite",
                          sentence);
    else
        st = context_fail(cg->ctx, SPMV_ERROR_STAGNATION,
                          "spmv_cg: %s in f32, and %.3g in f64: solve without inner iterations", sentence, pq);
done:
    return st;
}

/* x += what the inner iterations found */
static spmv_status correct(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct inner *in = cg->state;
    TRY(widen(cg, in->x, 1 / in->scale, cg->q));
    TRY(spmv_map_axpby(cg->ctx, cg->type, NULL, cg->q, NULL, cg->x, cg->n));
done:
    return st;
}

static spmv_status run(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    struct inner *in = cg->state;
    spmv_cg_result *result = cg->result;
    double before = INFINITY;
    int exponent = 0;
    frexp(result->norm_b, &exponent);
    in->scale = isfinite(result->norm_b) ? ldexp(1, -exponent) : 1;
    in->cg.continues = false;
    TRY(cg_start(cg));
    for (;;) {
        TRY(cg_norm(cg, cg->r, &result->recurrence_residual));
        const double now = result->recurrence_residual;
        if (!in->cg.continues)
            cg->start_residual = now;
        cg->rr = now * now;
        if (!isfinite(now)) {
            st = context_fail(cg->ctx, SPMV_ERROR_NOT_FINITE, "spmv_cg: r'r = %g at iteration %lld", cg->rr,
                              (long long)result->iterations);
            goto done;
        }
        /* done, or what f32 can do is done: the front sees which */
        if (now <= cg_enough(cg) || !(now <= 0.5 * before))
            goto done;
        before = now;
        TRY(narrow(cg, cg->r, in->scale, in->b));
        TRY(spmv_map_index(cg->ctx, SPMV_F32, &(const float){0}, NULL, in->x, cg->n));
        in->result.tolerance = in->scale * fmax(0.5 * cg_enough(cg), REPLACE * now);
        in->result.iterations = result->iterations;
        const spmv_status stop = in->cg.method->run(&in->cg, max_iterations);
        result->iterations = in->result.iterations;
        st = stop;
        if (st != SPMV_OK && spmv_status_class(st) < 7)
            goto done;
        if (stop == SPMV_ERROR_NOT_POSITIVE)
            st = judge(cg);
        const spmv_status verdict = st;
        TRY(correct(cg));
        TRY(cg_residual(cg, cg->r));
        if (verdict != SPMV_OK) {
            const spmv_status known = cg_norm(cg, cg->r, &result->recurrence_residual);
            st = known != SPMV_OK ? known : verdict == SPMV_ERROR_ITERATIONS ? cg_fail_limit(cg) : verdict;
            goto done;
        }
        in->cg.continues = true;
    }
done:
    return st;
}

const struct cg_method cg_inner = {.name = "inner",
                                   .why = "",
                                   .backends = 0,
                                   .supports = supports,
                                   .prepare = prepare,
                                   .run = run,
                                   .release = release};
