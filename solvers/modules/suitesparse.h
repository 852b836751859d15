/* What the modules of SuiteSparse share: memory that counts, and calls with BLAS on one thread (blas_calls.h).
 *
 * Memory: SuiteSparse calls the functions of SuiteSparse_config. The first module of a process replaces them, if they
 * are those of the C library, by functions that count the memory of the modules' calls against the limit
 * of the process. In other calls and threads they do what the C library does, and all blocks are
 * blocks of the C library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITESPARSE_H
#define SUITESPARSE_H

#include <SuiteSparse_config.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "solvers/modules/blas_calls.h"

_Static_assert(sizeof(SuiteSparse_long) == sizeof(int64_t), "arrays are passed to SuiteSparse without a copy");

/* SuiteSparse takes arrays that it does not modify without const. */
static inline SuiteSparse_long *integers(const int64_t *array)
{
    return (SuiteSparse_long *)array;
}

/* ------------------------------------------------------------------- memory */

/* The problem of the call that this thread is in; NULL: none. */
static _Thread_local const struct direct_problem *current;

static bool take(int64_t bytes)
{
    return current == NULL || current->take(current->user, bytes);
}

/* The new size of a block takes the place of `before` bytes, of which `taken` more were taken. */
static void *settled(void *block, int64_t before, int64_t taken)
{
    take(block != NULL ? -(taken + before - (int64_t)malloc_usable_size(block)) : -taken);
    return block;
}

static void *counted_malloc(size_t bytes)
{
    return take((int64_t)bytes) ? settled(malloc(bytes), 0, (int64_t)bytes) : NULL;
}

static void *counted_calloc(size_t count, size_t size)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return take(bytes) ? settled(calloc(count, size), 0, bytes) : NULL;
}

static void *counted_realloc(void *block, size_t bytes)
{
    const int64_t before = (int64_t)malloc_usable_size(block), more = (int64_t)bytes - before;
    const int64_t taken = more > 0 ? more : 0;
    return take(taken) ? settled(realloc(block, bytes), before, taken) : NULL;
}

static void counted_free(void *block)
{
    take(-(int64_t)malloc_usable_size(block));
    free(block);
}

static void count_for(const struct direct_problem *problem)
{
    current = problem;
}

/* With the lock. */
static inline void count_memory(struct direct_shared *shared)
{
#if SUITESPARSE_MAIN_VERSION >= 7
    if (SuiteSparse_config_malloc_func_get() == malloc && SuiteSparse_config_calloc_func_get() == calloc &&
        SuiteSparse_config_realloc_func_get() == realloc && SuiteSparse_config_free_func_get() == free) {
        SuiteSparse_config_malloc_func_set(counted_malloc);
        SuiteSparse_config_calloc_func_set(counted_calloc);
        SuiteSparse_config_realloc_func_set(counted_realloc);
        SuiteSparse_config_free_func_set(counted_free);
        shared->count_for = count_for;
    }
#else
    struct SuiteSparse_config_struct *const c = &SuiteSparse_config;
    if (c->malloc_func == malloc && c->calloc_func == calloc && c->realloc_func == realloc && c->free_func == free) {
        c->malloc_func = counted_malloc;
        c->calloc_func = counted_calloc;
        c->realloc_func = counted_realloc;
        c->free_func = counted_free;
        shared->count_for = count_for;
    }
#endif
}

/* ------------------------------------------------------------------- calls */

/* A call for this problem begins. */
static inline void begin_call(const struct direct_problem *problem)
{
    struct direct_shared *const shared = problem->shared;
    pthread_mutex_lock(&shared->lock);
    count_memory(shared);
    blas_on_one_thread(shared);
    pthread_mutex_unlock(&shared->lock);
    if (shared->count_for != NULL)
        shared->count_for(problem);
}

static inline void end_call(const struct direct_problem *problem)
{
    struct direct_shared *const shared = problem->shared;
    if (shared->count_for != NULL)
        shared->count_for(NULL);
    pthread_mutex_lock(&shared->lock);
    blas_on_all_threads(shared);
    pthread_mutex_unlock(&shared->lock);
}

#endif
