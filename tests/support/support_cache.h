/* A smaller last-level cache of the GPU, for tests of what plans choose by its size.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_CACHE_H
#define SUPPORT_CACHE_H

#ifdef SPMV_HAVE_CUDA
#include "core/runtime_cuda.h"
#endif
#include "tests/support/support_one_context.h" /* last: its ctx would be shadowed by parameters of the headers */

/* Sets the size of the last-level cache for new plans and returns the old one. With a small cache
 * no part of a matrix is retained in it, and products use other kernels. */
static int64_t change_cache(int64_t bytes)
{
#ifdef SPMV_HAVE_CUDA
    struct cuda_state *const cuda = ctx->device;
    const int64_t before = cuda->cache_bytes;
    cuda->cache_bytes = bytes;
    return before;
#else
    return bytes;
#endif
}

#endif
