/* Conjugate gradients, rung 2 on OpenMP: the whole solve in one parallel region.
 *
 * Idea:       a thread keeps its share of the product's tiles (product/omp/spmv_omp.c), and so of
 *             the rows of all vectors, for the whole solve, so it finds in its caches what it wrote
 *             in the phase before. An iteration has three phases instead of seven parallel regions:
 *             1. q = A p, with the parts of p'q of each tile;  then alpha = rho / p'q
 *             2. rows that cross tiles; r -= alpha q, with parts of r'r and r'M^-1 r;  then
 *                beta = rho_new / rho
 *             3. x += alpha p, p = M^-1 r + beta p
 *             A phase ends when its work is done, not when all threads have arrived: the thread
 *             that finishes the last chunk adds the parts, computes the scalars, and opens the next
 *             phase. A finished thread takes chunks from the others, so a descheduled thread delays
 *             only the chunks it holds.
 * Bytes:      vector passes read or written a step, besides the product: 3 (r, q) + 5 (x, p, r) =
 *             8, two fewer than rung 1. The preconditioner "jacobi" adds two, of its diagonal; z is
 *             never stored.
 * Changed:    since rung 1, one parallel region and fewer passes.
 * Wins when:  the plan's method is tiles; most where an iteration takes some microseconds.
 * Bits:       the parts of chunks, whose size depends on the matrix alone, are added in
 *             order, so the bits are the same for any number of threads. They differ from those of
 *             rung 1, which cuts r'r elsewhere. With several ranks, one of several right-hand sides has
 *             the bits that it has alone.
 *
 * Several right-hand sides run side by side, each with its own recurrence; a finished one stops
 * while the others continue. The matrix is read once for all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "product/omp/spmv_omp.h"
#include "product/plan_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/precond/precond_internal.h"

/* The least number of tiles for each thread. A change of phase costs about as much as one tile. */
enum { TILES_A_THREAD = 4 };

/* With at least CHUNKS_FROM tiles, a chunk is CHUNK tiles, which leaves fewer
 * parts to add between phases. */
enum { CHUNK = 8, CHUNKS_FROM = 256 };

/* A claim takes one in CLAIMED of the chunks that are left: large claims first, so that there are
 * few, small ones last, so that all threads end together. */
enum { CLAIMED = 4 };

/* The number of polls of a waiting thread before it helps the others (about 1 us) and before it
 * sleeps (about 10 us). A phase that takes longer waits for a thread without a core. */
enum { HELPS_AFTER = 40, SLEEPS_AFTER = 500 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The phases. In TELL, the calling thread calls the user's function. With several ranks, PRODUCT
 * is for chunks that need no elements of other ranks, which are on their way, and EDGE for the
 * others. A phase's number is 8 times the number of phases before it, plus its kind. */
enum kind { START, PRODUCT, EDGE, RESIDUAL, DIRECTION, TELL, STOP, KINDS = 8 };

/* The chunks of one thread: phase << 32 | the next chunk to claim. A claim succeeds only if both
 * are unchanged, so a late thread cannot claim a chunk of a phase that has ended. */
struct claims {
    _Alignas(64) atomic_llong next;
};

struct workspace {
    _Alignas(64) atomic_llong phase;
    _Alignas(64) atomic_llong done; /* chunks of the phase that are done */
    _Alignas(64) atomic_int sleepers;
    pthread_mutex_t lock; /* for sleeping threads */
    pthread_cond_t opened;
    struct claims *claims; /* one for each thread */
    struct tile_loop product;
    spmv_epilogue dot; /* for one column: p'q of a tile's own rows */
    int64_t chunks;
    int64_t *first_tile; /* chunks + 1: the tiles of each chunk */
    /* With several ranks, whose chunks these are. order: the chunks, those without elements of other
     * ranks first, whose number is inner. NULL, and inner is chunks: one rank. */
    const struct plan_ranks *ranks;
    int64_t *order, inner;
    spmv_status failed;  /* of a call that ranks make together */
    void *turned, *sums; /* with several ranks: the parts that are added, by columns, and their sums */
    int threads;
    void *pq, *rr, *rz; /* parts of the sums: chunks for each column */
    int *active;        /* the running columns */
    int count;
    const void *inverse_diagonal; /* n elements of the preconditioner "jacobi"; NULL: none */
};

/* The chunks of a phase: first ... last - 1, in the order of w->order. */
static int64_t phase_first(const struct workspace *w, enum kind kind)
{
    return kind == EDGE ? w->inner : 0;
}

static int64_t phase_last(const struct workspace *w, enum kind kind)
{
    return kind == PRODUCT ? w->inner : w->chunks;
}

/* The first chunk of a thread's share. */
static int64_t share_begin(const struct workspace *w, enum kind kind, int thread)
{
    const int64_t first = phase_first(w, kind);
    return first + (phase_last(w, kind) - first) * thread / w->threads;
}

/* Opens the next phase. Earlier writes are visible to threads that claim chunks of it. */
static void open_phase(struct workspace *w, enum kind kind)
{
    const long long number = atomic_load_explicit(&w->phase, memory_order_relaxed) / KINDS + 1;
    const long long phase = number * KINDS + (long long)kind;
    atomic_store_explicit(&w->done, 0, memory_order_relaxed);
    for (int p = 0; p < w->threads; p++)
        atomic_store_explicit(&w->claims[p].next,
                              (long long)(((uint64_t)phase & UINT32_MAX) << 32 | (uint64_t)share_begin(w, kind, p)),
                              memory_order_relaxed);
    atomic_store(&w->phase, phase);
    if (atomic_load(&w->sleepers) > 0) {
        pthread_mutex_lock(&w->lock); /* after this, no thread is between its check and its sleep */
        pthread_mutex_unlock(&w->lock);
        pthread_cond_broadcast(&w->opened);
    }
}

/* Claims chunks *begin ... *end - 1 of thread p. Returns false if none are left. */
static bool claim(struct workspace *w, int p, long long phase, int64_t *begin, int64_t *end)
{
    const int64_t limit = share_begin(w, (enum kind)(phase % KINDS), p + 1);
    long long seen = atomic_load_explicit(&w->claims[p].next, memory_order_relaxed);
    do {
        *begin = (int64_t)((uint64_t)seen & UINT32_MAX);
        if ((uint64_t)seen >> 32 != ((uint64_t)phase & UINT32_MAX) || *begin >= limit)
            return false;
        *end = w->threads == 1 ? limit : *begin + max_i64(1, (limit - *begin) / CLAIMED);
    } while (!atomic_compare_exchange_weak_explicit(&w->claims[p].next, &seen, seen + (*end - *begin),
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Sleeps until the phase changes. */
static void sleep_through(struct workspace *w, long long phase)
{
    pthread_mutex_lock(&w->lock);
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->phase) == phase)
        pthread_cond_wait(&w->opened, &w->lock);
    atomic_fetch_sub(&w->sleepers, 1);
    pthread_mutex_unlock(&w->lock);
}

/* Polls up to `looks` times. Returns true once the phase has changed. */
static bool phase_passes(const struct workspace *w, long long phase, int looks)
{
    for (; looks > 0; looks--) {
        if (atomic_load_explicit(&w->phase, memory_order_acquire) != phase)
            return true;
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    return false;
}

#define VALUE double
#define TYPED(name) name##_f64
#include "solvers/cg/cg_2_fused_omp_typed.h"
#undef VALUE
#undef TYPED
#define VALUE float
#define TYPED(name) name##_f32
#include "solvers/cg/cg_2_fused_omp_typed.h"
#undef VALUE
#undef TYPED

static spmv_status supports(const struct cg *cg)
{
    const char *plan = cg->s.info.method;
    if (strcmp(plan, "tiles") != 0)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: rung fused needs a plan of the method tiles, not %s", plan);
    if (cg->s.precond != NULL && precond_inverse_diagonal(cg->s.precond) == NULL)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: rung fused supports only the preconditioner jacobi; textbook supports all");
    return SPMV_OK;
}

/* With several ranks, the chunks of this rank, or one without tiles. */
static spmv_status cut_chunks(const struct cg *cg, struct workspace *w)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = cg->s.ctx;
    const struct omp_tiles *tiles = w->product.tiles;
    const struct plan_ranks *ranks = cg->s.plan->ranks;
    const int64_t chunk = tiles->count >= CHUNKS_FROM ? CHUNK : 1;
    w->ranks = ranks;
    w->chunks = max_i64(1, ranks != NULL ? ranks->chunks : ceil_divide(tiles->count, chunk));
    TRY(host_alloc(ctx, (w->chunks + 1) * (int64_t)sizeof *w->first_tile, "conjugate gradients",
                   (void **)&w->first_tile));
    for (int64_t g = 0, t = 0; g <= w->chunks; g++) {
        if (ranks == NULL)
            t = min_i64(g * chunk, tiles->count);
        else /* no tile crosses the bounds of a chunk */
            while (t < tiles->count && (g >= ranks->chunks || tiles->tile[t].begin.row < ranks->chunk[g]))
                t++;
        w->first_tile[g] = t;
    }
    w->inner = w->chunks;
    if (ranks == NULL)
        goto done;
    TRY(host_alloc(ctx, w->chunks * (int64_t)sizeof *w->order, "conjugate gradients", (void **)&w->order));
    w->inner = 0;
    for (int edge = 0, next = 0; edge < 2; edge++)
        for (int64_t g = 0; g < w->chunks; g++)
            if ((g < ranks->chunks && ranks->edge[g]) == (edge != 0)) {
                w->order[next++] = g;
                w->inner += edge == 0;
            }
done:
    return st;
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    struct workspace *w = NULL;
    TRY(host_alloc(s->ctx, sizeof *w, "conjugate gradients", &cg->state));
    w = cg->state;
    *w = (struct workspace){.lock = PTHREAD_MUTEX_INITIALIZER,
                            .opened = PTHREAD_COND_INITIALIZER,
                            .inverse_diagonal = s->precond != NULL ? precond_inverse_diagonal(s->precond) : NULL};
    const int k = s->columns;
    tiles_omp_loop(s->plan, plan_x_of(s->plan, cg->p), s->q, k == 1 ? &w->dot : NULL, &w->product);
    const int64_t count = w->product.tiles->count;
    TRY(cut_chunks(cg, w));
    w->threads = (int)max_i64(1, min_i64(s->ctx->threads, min_i64(w->chunks, count * k / TILES_A_THREAD)));
    const int64_t parts = w->chunks * k * (int64_t)spmv_type_size(s->type);
    TRY(host_alloc(s->ctx, parts, "conjugate gradients", &w->pq));
    TRY(host_alloc(s->ctx, 2 * parts, "conjugate gradients", &w->rr));
    w->rz = (char *)w->rr + parts;
    if (w->ranks != NULL) {
        TRY(host_alloc(s->ctx, 2 * parts, "conjugate gradients", &w->turned));
        TRY(host_alloc(s->ctx, 2 * k * (int64_t)spmv_type_size(s->type), "conjugate gradients", &w->sums));
    }
    TRY(host_alloc(s->ctx, k * (int64_t)sizeof *w->active, "conjugate gradients", (void **)&w->active));
    TRY(host_alloc(s->ctx, w->threads * (int64_t)sizeof *w->claims, "conjugate gradients", (void **)&w->claims));
    for (int p = 0; p < w->threads; p++)
        atomic_init(&w->claims[p].next, 0);
    spmv_epilogue_init(&w->dot, sizeof w->dot);
    w->dot.w = cg->p;
    w->dot.dot = w->pq; /* not written: the tiles keep their parts */
done:
    return st;
}

static void release(struct cg *cg)
{
    struct workspace *w = cg->state;
    host_free_all(w->pq, w->rr, w->first_tile, w->order, w->active, w->claims, w->turned, w->sums);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->opened);
}

static spmv_status run(struct cg *cg)
{
    switch ((int)cg->s.type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        run_##name(cg);                                                                                                \
        break;
        REAL_LIST(CASE)
#undef CASE
    }
    return ((const struct workspace *)cg->state)->failed;
}

const struct cg_rung cg_fused_omp = {
    .name = "fused",
    .why = "one parallel region for the whole solve: the plan is of the method tiles, the "
           "preconditioner none or jacobi",
    .backends = 1u << SPMV_BACKEND_OMP,
    .least_columns = 1,
    .most_columns = CG_ANY_COLUMNS,
    .supports = supports,
    .prepare = prepare,
    .run = run,
    .release = release,
    .shows_x = true,
    .for_ranks = true};
