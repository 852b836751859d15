/* Random columns of a row, random row lengths, random orders: each is a function of (seed, stream,
 * row).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GEN_SAMPLE_H
#define GEN_SAMPLE_H

#include "core/runtime.h"
#include "formats/generate/random.h"

/* A random order of 0 .. size-1 that needs no memory: an invertible hash of b bits, 2^b >= size >
 * 2^(b-1), applied until the result is below size. J. Black, P. Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002 (cycle walking). */
enum { PERMUTATION_ROUNDS = 4 };
struct permutation {
    uint64_t size, mask;
    int shift;
    uint64_t factor[PERMUTATION_ROUNDS], term[PERMUTATION_ROUNDS];
};
struct permutation permutation_make(uint64_t seed, uint64_t stream, int64_t size);

/* The image of i, 0 <= i < size. Each step is invertible in b bits: an odd factor, a sum, a right
 * shift. */
static inline int64_t permutation_at(const struct permutation *p, int64_t i)
{
    uint64_t x = (uint64_t)i;
    do {
        for (int r = 0; r < PERMUTATION_ROUNDS; r++) {
            x = (x * p->factor[r] + p->term[r]) & p->mask;
            x ^= x >> p->shift;
        }
    } while (x >= p->size);
    return (int64_t)x;
}

/* Draws n distinct columns out of cols, ascending, 0 <= n <= cols <= INT32_MAX. If hubs is NULL,
 * every set of n is equally likely. Otherwise column permutation_at(hubs, rank) is drawn with a
 * probability that falls as (rank + 1)^(-2/3), if n <= cols / SAMPLE_DENSE; longer rows are
 * uniform. */
enum { SAMPLE_DENSE = 16 };
void sample_columns(uint64_t seed, uint64_t stream, int64_t row, int64_t n, int64_t cols,
                    const struct permutation *hubs, int32_t *col);

/* Sorts in ascending order, in place. 0 <= col[k] < cols. */
void sort_columns(int32_t *col, int64_t n, int64_t cols);

/* The binomial distribution of trials with this mean (0 <= mean <= trials), as a table of its
 * distribution function. Release with binomial_free. */
struct binomial {
    int64_t least, count;
    double *upto; /* upto[k]: the probability of at most least + k */
};
spmv_status binomial_make(spmv_context *ctx, int64_t trials, double mean, struct binomial *law);
void binomial_free(struct binomial *law);
int64_t binomial_draw(const struct binomial *law, uint64_t bits);

#endif
