/* Hashes of arrays of a context, for tests that compare bits (FNV-1a).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_HASH_H
#define SUPPORT_HASH_H

#include "tests/support/support.h"

/* A copy on the host, with room for one element more; free it. */
static inline void *fetch(spmv_context *ctx, const void *from, int64_t bytes)
{
    void *const host = support_zeros(bytes + 8, 1);
    assert_ok(ctx, spmv_download(ctx, from, host, bytes));
    return host;
}

static inline uint64_t hash_bytes(uint64_t hash, const void *data, int64_t bytes)
{
    const unsigned char *const byte = data;
    for (int64_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t hash_array(spmv_context *ctx, uint64_t hash, const void *from, int64_t bytes)
{
    void *const host = fetch(ctx, from, bytes);
    hash = hash_bytes(hash, host, bytes);
    free(host);
    return hash;
}

#endif
