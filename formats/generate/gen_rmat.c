/* R-MAT graphs with the parameters of Graph500: D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a
 * recursive model for graph mining", SIAM Data Mining 2004; Graph500 specification, kernel 1
 * (graph500.org).
 *
 * An edge falls into one of the four quarters of the matrix with probabilities A, B, C and 1 - A -
 * B - C, then into one of that quarter's quarters, and so on down to a cell. The vertices are then
 * renumbered at random, as Graph500 requires, so that a vertex's number does not depend on its
 * degree. The row is the start of an edge. Repeated edges become one entry; edges from a vertex to
 * itself stay.
 *
 * Edges are sorted by row with a counting sort (counting.h) that draws each edge twice, which is
 * cheaper than storing it. Then each row is sorted.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "formats/coo/counting.h"
#include "formats/coo/rows.h"
#include "formats/generate/gen_sample.h"
#include "formats/generate/generate.h"

enum { STREAM_EDGES = 0x726d65, STREAM_ORDER = 0x726d6f };

struct rmat {
    uint64_t seed;
    int scale;
    struct permutation order;
};

struct edge {
    int64_t row;
    int32_t col;
};

/* A, A + B and A + B + C as shares of 2^32: one 64-bit random number serves two levels. */
static const uint32_t UPTO_A = (uint32_t)(0.57 * 4294967296.0), UPTO_B = (uint32_t)(0.76 * 4294967296.0),
                      UPTO_C = (uint32_t)(0.95 * 4294967296.0);

/* Selects the quarter of a number without a branch that could be mispredicted. Row bits are 0 0 1
 * 1, column bits 0 1 0 1. */
static inline void descend(uint32_t number, uint32_t *row, uint32_t *col)
{
    const uint32_t b = number >= UPTO_A, c = number >= UPTO_B, d = number >= UPTO_C;
    *row = *row << 1 | c;
    *col = *col << 1 | (b ^ c ^ d);
}

static inline struct edge draw_edge(const struct rmat *r, int64_t k)
{
    const uint64_t key = random_bits(r->seed, STREAM_EDGES, (uint64_t)k);
    uint32_t row = 0, col = 0;
    int level = 0;
    for (uint64_t i = 1; level < r->scale; i++) {
        const uint64_t bits = splitmix_mix(key + i * SPLITMIX_GAMMA);
        descend((uint32_t)bits, &row, &col);
        if (++level < r->scale) {
            descend((uint32_t)(bits >> 32), &row, &col);
            level++;
        }
    }
    return (struct edge){permutation_at(&r->order, row), (int32_t)permutation_at(&r->order, col)};
}

/* Fills m->row_ptr and m->col with the edges, each row in the order drawn. */
static spmv_status sort_edges(spmv_context *ctx, const struct rmat *r, spmv_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct counting counting = {0};
    TRY(counting_begin(ctx, m->nnz, m->rows, m->nnz * (int64_t)sizeof *m->col, &counting));
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static, 1)
    for (int64_t p = 0; p < counting.shares; p++) {
        int64_t *const count = counting_of(&counting, p);
        memset(count, 0, (size_t)m->rows * sizeof *count);
        for (int64_t k = counting_first(&counting, p); k < counting_first(&counting, p + 1); k++)
            count[draw_edge(r, k).row]++;
    }
    TRY(counting_offsets(ctx, &counting, m->row_ptr));
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static, 1)
    for (int64_t p = 0; p < counting.shares; p++) {
        int64_t *const next = counting_of(&counting, p);
        for (int64_t k = counting_first(&counting, p); k < counting_first(&counting, p + 1); k++) {
            const struct edge e = draw_edge(r, k);
            m->col[next[e.row]++] = e.col;
        }
    }
done:
    counting_end(&counting);
    return st;
}

/* Adds values to a pattern, when their number is known. */
static spmv_status add_values(spmv_context *ctx, const struct generator_request *request, spmv_matrix *m)
{
    void *val = NULL;
    char what[64];
    snprintf(what, sizeof what, "%lld values", (long long)m->nnz);
    const int64_t bytes = m->nnz * (int64_t)spmv_type_size(request->type);
    spmv_status st = matrix_memory_check(ctx, what, bytes);
    if (st == SPMV_OK)
        st = host_alloc(ctx, bytes, what, &val);
    if (st != SPMV_OK)
        return st;
    m->val = val;
    m->pattern = false;
    generator_fill_values(ctx, request, 0, m);
    return SPMV_OK;
}

spmv_status generate_rmat(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    enum { SCALE_MAX = 30 }; /* 2^31 columns exceed INT32_MAX */
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    struct repeats repeats;
    int64_t n[2];
    TRY(generator_integers(ctx, request, 2, n));
    if (n[0] > SCALE_MAX) {
        st = context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"rmat:%s\": 2^%lld columns, at most 2^%d are possible",
                          request->arguments, (long long)n[0], SCALE_MAX);
        goto done;
    }
    const int64_t vertices = (int64_t)1 << n[0];
    TRY(generator_fits(ctx, request, vertices, vertices, (double)vertices * (double)n[1], 0));
    const struct rmat r = {
        .seed = request->seed, .scale = (int)n[0], .order = permutation_make(request->seed, STREAM_ORDER, vertices)};
    TRY(matrix_allocate(ctx, vertices, vertices, vertices * n[1], request->type, true, &m));
    TRY(sort_edges(ctx, &r, m));
    TRY(rows_sort(ctx, m, INT64_MAX, &repeats));
    if (repeats.all > 0)
        rows_merge(ctx, m, repeats.all);
    TRY(add_values(ctx, request, m));
    *matrix = m;
done:
    if (st != SPMV_OK)
        spmv_matrix_destroy(m);
    return st;
}
