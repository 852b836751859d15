/* What a plan of rung 4 has of hubs (spmv_4_tiles_hubs.cuh), and the calls that make and use them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_HUBS_FORM_CUH
#define SPMV_4_TILES_HUBS_FORM_CUH

#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles.cuh"

/* The least number of nonzeros. Tests build with less, and with a limit for the number of hubs. */
#ifndef SPMV_TILES_HUBS_FROM
#define SPMV_TILES_HUBS_FROM (1 << 22)
#endif
#ifndef SPMV_TILES_MOST_HUBS
#define SPMV_TILES_MOST_HUBS (1 << 20)
#endif

namespace tiles
{

/* The hubs of a plan; arrays are in one block of memory. */
struct plan_hubs {
    void *memory;     /* NULL: no hubs */
    int32_t *columns; /* encoded, one for each nonzero */
    int32_t *column;  /* of each hub, ascending */
    void *x;          /* of each hub, in a product */
    int32_t count;
    int shared_bytes; /* of a block */
    double share;     /* of the nonzeros */
    bool refused;     /* there is no memory for them */
};

/* Makes hubs if they pay off and there is memory. Waits. */
spmv_status make_hubs(spmv_plan *plan, plan_hubs *h);

/* A product with hubs. m.col: the matrix's own columns. */
template <typename T, typename Stored>
spmv_status multiply_with_hubs(spmv_context *ctx, matrix<T, Stored> m, const plan_hubs &h, const T *x,
                               store_scaled<T> store);

} // namespace tiles

#endif
