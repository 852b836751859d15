/* What minres, gmres, bicgstab, cocg and direct share: the interface between their common run
 * (krylov_loop.c) and the recurrences (krylov_minres.c, krylov_gmres.c, krylov_bicgstab.c,
 * krylov_cocg.c, krylov_direct.c). struct krylov_solver: krylov.h.
 * Statuses, restarts, the true residual and scaling: krylov.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_LOOP_H
#define KRYLOV_LOOP_H

#include "solvers/krylov/krylov.h"
#include "solvers/krylov/krylov_passes.h"

struct direct;
struct krylov_persistent;
struct krylov_queue;

/* One solve. */
struct krylov_loop {
    struct krylov s; /* must be first: a pointer to one is a pointer to the other */
    struct krylov_vectors v;
    struct krylov_state host; /* the last copy of the state */
    /* Least squares for several columns: the last copies of their states, which lie side by side from v.state on; host
     * then has the iterations of the longest, the largest residual, and whether all have ended. NULL: one column. */
    struct krylov_state *states;
    int columns;                /* of states */
    struct krylov_queue *queue; /* cuda; NULL with persistent */
    struct krylov_persistent *persistent;
    /* Queues a kernel of many steps, fewer than the ring has; begins: the first one after the solver's begin. NULL: none */
    spmv_status (*many_steps)(struct krylov_loop *g, bool begins);
    void *small;          /* memory of the state, its arrays and the parts of sums */
    void *vectors;        /* memory of the solver's vectors, `stride` elements apart, the first after `room` */
    int64_t stride, room; /* with ranks, each vector has room for elements of others */
    void *z;              /* M^-1 of a vector; without M the vector itself is used */
    void *shown;          /* gmres with on_iterate: the iterate */
};

/* The vectors that a kernel of many steps works on, besides x. */
struct krylov_persistent_vectors {
    void *p, *basis, *directions; /* gmres; directions: M^-1 of the basis, NULL without M */
    void *r, *r0, *v;             /* bicgstab, and p; minres: r, with M, and v */
    void *v_old, *w, *w_old;      /* minres */
};

/* Vector number k of the workspace. */
static inline void *krylov_loop_vector(const struct krylov_loop *g, int k)
{
    return (char *)g->vectors + (size_t)(g->room + k * g->stride) * spmv_type_size(g->s.type);
}

/* y = A x, for a step */
spmv_status krylov_loop_multiply(const struct krylov_loop *g, const void *x, void *y);

/* *z = M^-1 r in g->z, or r without M */
spmv_status krylov_loop_precondition(const struct krylov_loop *g, const void *r, const void **z);

/* Fills vectors first to first + count - 1 with 0. */
spmv_status krylov_loop_clear(const struct krylov_loop *g, int first, int count);

/* Steps until none follows, or the callback cancels; the state is written. It reports the iterations of
 * this run from *next on; base iterations came before. g->host is then the state. */
spmv_status krylov_loop_steps(struct krylov_loop *g, int64_t base, int64_t *next);

/* The function solve of these solvers. */
spmv_status krylov_loop_solve(const struct krylov *asked);

/* ------------------------------------------------------------- krylov_queue.cu */

/* Steps in a batch on cuda: far from the end, and near it. */
enum { KRYLOV_LONG_BATCH = 8, KRYLOV_SHORT_BATCH = 2 };

/* Steps on cuda, queued ahead in batches of the same few lengths, which are replayed as CUDA graphs.
 * Each is followed by a copy of the state. */
spmv_status krylov_queue_open(struct krylov_loop *g, struct krylov_queue **queue) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
void krylov_queue_close(struct krylov_queue *queue) CUDA_ONLY();

/* Queues steps from number `first` (KRYLOV_LONG_BATCH, or always the same other number), and a copy of the state to place `which` (0 or 1). */
spmv_status krylov_queue_steps(struct krylov_queue *queue, int64_t first, int steps, int which)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Waits for that copy, of g->columns states with g->states. */
spmv_status krylov_queue_await(struct krylov_queue *queue, int which, struct krylov_state *state)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* ------------------------------------------------------------- krylov_persistent.cu */

/* Many steps in one kernel. *persistent stays NULL if the solver or the system is not suited. */
spmv_status krylov_persistent_open(struct krylov_loop *g, struct krylov_persistent **persistent)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
void krylov_persistent_close(struct krylov_loop *g, struct krylov_persistent *persistent) CUDA_ONLY();

/* Queues a kernel that runs until the end of the cycle, or for less than KRYLOV_RING steps. begins: the first one after
 * the solver's begin. */
spmv_status krylov_persistent_steps(struct krylov_loop *g, bool begins) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
