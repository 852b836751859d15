/* The stable parallel counting sort used for coordinate entries and for the transpose.
 *
 * The list of entries is cut into shares in order. Each share counts its entries per bin (counts).
 * The counts become the position of the share's first entry in each bin (counting_offsets). Each
 * share then moves its entries to consecutive positions of their bins. An entry lands after all
 * earlier entries of its bin, so the result equals the serial one for any number of shares. M.
 * Zagha, G. E. Blelloch, "Radix sort for vector multiprocessors", Supercomputing 1991.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COUNTING_H
#define COUNTING_H

#include "formats/matrix_internal.h"

struct counting {
    int64_t entries, bins, shares;
    int64_t *counts; /* shares x bins */
};

/* Chooses the number of shares: at least one, at most as many as threads are useful, and with
 * counts that fit in budget bytes (the size of the result's entries). Release with counting_end. */
spmv_status counting_begin(spmv_context *ctx, int64_t entries, int64_t bins, int64_t budget, struct counting *counting);
void counting_end(struct counting *counting);

/* Share p holds the entries counting_first(p) <= k < counting_first(p + 1). */
static inline int64_t counting_first(const struct counting *c, int64_t p)
{
    return c->entries / c->shares * p + min_i64(p, c->entries % c->shares);
}

/* The counts of share p: bins cells. The share sets them to 0 before it counts. */
static inline int64_t *counting_of(const struct counting *c, int64_t p)
{
    return c->bins > 0 ? c->counts + p * c->bins : NULL;
}

/* offsets[b]: the first position of bin b; offsets[bins]: the number of entries. Each count becomes
 * the position of its share's first entry of the bin. */
spmv_status counting_offsets(spmv_context *ctx, struct counting *counting, int64_t *offsets);

#endif
