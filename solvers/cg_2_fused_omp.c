/* Conjugate gradients, rung 2 on OpenMP: the whole solve in one parallel region.
 *
 * Idea: a thread keeps its share of the tiles of the product (spmv/spmv_omp.c), and so of the rows of all vectors, from
 * the first iteration to the last; what it wrote in one phase it finds in its caches in the next. Three barriers take
 * the place of seven regions begun and ended:
 *   1. q = A p, the parts of p'q a tile riding along;                         barrier: alpha = rho / p'q
 *   2. rows that cross tiles; r -= alpha q, parts of r'r and r'M^-1 r;        barrier: beta = rho_new / rho
 *   3. x += alpha p, p = M^-1 r + beta p;                                     barrier, as the next product reads all p
 * Every thread adds up the parts by itself, in the same order, so scalars need no barrier of their own.
 * Vector passes read or written a step, beside the product: 3 (r, q) + 5 (x, p, r) = 8, two fewer than the textbook.
 * With the preconditioner "jacobi" two more, of its diagonal; z is never stored.
 *
 * The parts are those of tiles, added by groups of so many that the matrix alone says, in order: the bits are the same
 * for any number of threads. They are not the textbook's, whose r'r is cut at other places.
 *
 * Several right-hand sides run side by side, each with its own recurrence; one that is done stands still while the
 * others go on. The matrix is read once for all.
 *
 * Wins everywhere the method "tiles" is used, most where an iteration takes some microseconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

#include "cg_fused_omp.h"
#include "precond_internal.h"
#include "spmv_omp.h"

/* A thread is worth having for so many tiles: three barriers cost as much as about one. */
enum { TILES_A_THREAD = 4 };

/* Parts are added in groups of so many tiles where there are many: what a thread reads of others' shrinks by as much.
 */
enum { GROUP = 8, GROUPED_FROM = 256 };

/* Rounds at a barrier before a thread that waits lets others run: some ten microseconds. */
enum { PATIENCE = 500 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Threads wait until all are there. Phases last microseconds, so they look without sleeping; but one that waits for
 * long, perhaps for a thread that the system has put aside, gives its core away. */
struct barrier {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_int round;
};

static void wait_for_all(struct barrier *barrier, int team)
{
    if (team == 1)
        return;
    const int round = atomic_load_explicit(&barrier->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) == team - 1) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&barrier->round, round + 1, memory_order_release);
        return;
    }
    for (int tries = 1; atomic_load_explicit(&barrier->round, memory_order_acquire) == round; tries++) {
        if (tries % PATIENCE == 0)
            sched_yield();
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

struct workspace {
    struct barrier barrier;
    struct pieces pieces;
    spmv_epilogue dot;     /* of one column: p'q of a tile's own rows */
    int64_t groups, group; /* of so many tiles */
    int threads;
    void *pq, *rr, *rz;       /* parts: groups a column each */
    struct cg_column *column; /* a copy of all columns for each thread: all the same */
    int *active;              /* the columns that run, for each thread */
    bool cancelled;
};

/* A thread's share: groups begin ... end - 1. */
struct share {
    int64_t begin, end;
};

#define VALUE double
#define TYPED(name) name##_f64
#include "cg_2_fused_omp_typed.h"
#undef VALUE
#undef TYPED
#define VALUE float
#define TYPED(name) name##_f32
#include "cg_2_fused_omp_typed.h"
#undef VALUE
#undef TYPED

spmv_status cg_region_supports(spmv_context *ctx, const spmv_plan_info *info, const spmv_preconditioner *precond)
{
    if (strcmp(info->method, "tiles") != 0)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: method fused needs a plan of the method tiles, and this one is of %s",
                            info->method);
    if (precond != NULL && precond_inverse_diagonal(precond) == NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: method fused has no preconditioner but jacobi: textbook takes all");
    return SPMV_OK;
}

spmv_status cg_region_open(struct cg_region *region)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = region->ctx;
    struct workspace *w = NULL;
    TRY(host_alloc(ctx, sizeof *w, "conjugate gradients", &region->state));
    w = region->state;
    *w = (struct workspace){.threads = 0};
    const int k = region->columns;
    tiles_omp_pieces(region->plan, region->p, region->q, k == 1 ? &w->dot : NULL, &w->pieces);
    const int64_t count = w->pieces.tiles->count;
    w->group = count >= GROUPED_FROM ? GROUP : 1;
    w->groups = ceil_divide(count, w->group);
    w->threads = (int)max_i64(1, min_i64(ctx->threads, min_i64(w->groups, count * k / TILES_A_THREAD)));
    const int64_t parts = w->groups * k * (int64_t)spmv_type_size(region->type);
    const int64_t copies = (int64_t)w->threads * k;
    TRY(host_alloc(ctx, parts, "conjugate gradients", &w->pq));
    TRY(host_alloc(ctx, parts, "conjugate gradients", &w->rr));
    TRY(host_alloc(ctx, parts, "conjugate gradients", &w->rz));
    TRY(host_alloc(ctx, copies * (int64_t)sizeof *w->column, "conjugate gradients", (void **)&w->column));
    TRY(host_alloc(ctx, copies * (int64_t)sizeof *w->active, "conjugate gradients", (void **)&w->active));
    spmv_epilogue_init(&w->dot, sizeof w->dot);
    w->dot.w = region->p;
    w->dot.dot = w->pq; /* not written: tiles keep their parts */
done:
    return st;
}

void cg_region_close(struct cg_region *region)
{
    struct workspace *w = region->state;
    if (w == NULL)
        return;
    host_free(w->pq);
    host_free(w->rr);
    host_free(w->rz);
    host_free(w->column);
    host_free(w->active);
    host_free(w);
    region->state = NULL;
}

void cg_region_run(struct cg_region *region)
{
    struct workspace *w = region->state;
    w->cancelled = false;
    region->told = SPMV_OK;
    if (region->type == SPMV_F32)
        run_f32(region);
    else
        run_f64(region);
}

/* ------------------------------------------------------------- one right-hand side */

static spmv_status supports(const struct cg *cg)
{
    return cg_region_supports(cg->ctx, &cg->info, cg->precond);
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct cg_region *region = NULL;
    TRY(host_alloc(cg->ctx, sizeof *region, "conjugate gradients", &cg->state));
    region = cg->state;
    *region = (struct cg_region){.ctx = cg->ctx,
                                 .plan = cg->plan,
                                 .type = cg->type,
                                 .columns = 1,
                                 .inverse_diagonal = cg->precond != NULL ? precond_inverse_diagonal(cg->precond) : NULL,
                                 .r = cg->r,
                                 .p = cg->p,
                                 .q = cg->q,
                                 .options = cg->options};
    TRY(cg_region_open(region));
done:
    return st;
}

static void release(struct cg *cg)
{
    if (cg->state != NULL)
        cg_region_close(cg->state);
    host_free(cg->state);
    cg->state = NULL;
}

static spmv_status run(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    struct cg_region *region = cg->state;
    spmv_cg_result *result = cg->result;
    struct cg_column column = {.tolerance = result->tolerance, .stop = CG_RUNS};
    TRY(cg_start(cg));
    region->x = cg->x;
    region->keeps_p = cg->continues;
    region->max_iterations = max_iterations - result->iterations;
    region->iterations = result->iterations;
    region->column = &column;
    cg_region_run(region);
    result->iterations = region->iterations;
    result->recurrence_residual = sqrt(column.rr);
    cg->start_residual = column.start_residual;
    cg->rr = column.rr;
    cg->pq = column.pq;
    cg->rz = column.rz;
    TRY(region->told != SPMV_OK ? cg_fail_cancelled(cg) : SPMV_OK);
    if (column.stop == CG_BROKEN)
        st = cg_look_for_breakdown(cg);
    else if (column.stop == CG_LIMIT)
        st = cg_fail_limit(cg);
done:
    return st;
}

const struct cg_method cg_fused_omp = {.name = "fused",
                                       .why = "one parallel region for the whole solve: the plan is of tiles, and the "
                                              "preconditioner none or jacobi",
                                       .backends = 1u << SPMV_BACKEND_OMP,
                                       .supports = supports,
                                       .prepare = prepare,
                                       .run = run,
                                       .release = release};
