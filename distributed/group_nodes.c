/* Nodes of several rows, as in elasticity: found in the pattern of the whole matrix, so that no
 * node is cut between ranks. As amg_find_block (solvers/amg/amg_nodes.c) finds nodes of one size
 * without ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "core/threads.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_nodes_rows.h"

enum { MOST = 8 }; /* rows of a node: AMG_NULLS */

/* What the neighbours of a rank need of its first and last row: the number of nodes of the row's entries, for each
 * size of nodes. Whole rows are compared on a rank. */
struct end_row {
    int64_t nodes[MOST + 1];
    int64_t entries;
};

/* What a rank says: its ends, and which sizes its own rows allow. */
struct own_nodes {
    struct end_row first, last;
    int64_t rows;
    bool alike[MOST + 1];
};

static int64_t entries_of(const spmv_csr *a, int64_t row)
{
    return row_first(a, row + 1) - row_first(a, row);
}

/* Whether row i has entries in the same nodes as the row before. */
static bool is_like(const spmv_csr *a, int64_t i, int block)
{
    return amg_same_nodes(a->col, row_first(a, i - 1), row_first(a, i), row_first(a, i + 1), block);
}

static bool are_alike(spmv_context *ctx, const spmv_csr *own, int64_t first, int block)
{
    enum { FEW = 64 };
    bool alike = true;
    for (int64_t i = 1; i < own->rows && i < FEW && alike; i++) /* most matrices have no nodes */
        alike = (first + i) % block == 0 || is_like(own, i, block);
    if (!alike)
        return false;
#pragma omp parallel for num_threads(host_team(ctx, own->nnz)) schedule(static) reduction(&& : alike)
    for (int64_t i = FEW; i < own->rows; i++)
        alike = alike && ((first + i) % block == 0 || is_like(own, i, block));
    return alike;
}

static struct end_row end_of(const spmv_csr *a, int64_t row)
{
    struct end_row end = {.entries = entries_of(a, row)};
    for (int block = 2; block <= MOST; block++) {
        int64_t before = -1;
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            if (a->col[k] / block != before) {
                before = a->col[k] / block;
                end.nodes[block]++;
            }
    }
    return end;
}

/* Whether the rows at the ends of ranks allow nodes of this size. */
static bool ends_are_alike(const struct own_nodes *all, int ranks, int block)
{
    const struct end_row *before = NULL;
    int64_t first = 0;
    for (int r = 0; r < ranks; r++) {
        if (all[r].rows == 0)
            continue;
        const struct end_row *const here = &all[r].first;
        if (before != NULL && first % block != 0 && before->entries > 1 && here->entries > 1 &&
            llabs(before->nodes[block] - here->nodes[block]) * AMG_NODES_ALONE >
                max_i64(before->nodes[block], here->nodes[block]))
            return false;
        before = &all[r].last;
        first += all[r].rows;
    }
    return true;
}

spmv_status group_find_nodes(spmv_group *group, const spmv_csr *own, int64_t first, int64_t rows, int *block)
{
    spmv_status st = SPMV_OK;
    const int ranks = group->transport.ranks;
    struct own_nodes mine, *all = NULL;
    memset(&mine, 0, sizeof mine);
    mine.rows = own->rows;
    if (own->rows > 0) {
        mine.first = end_of(own, 0);
        mine.last = end_of(own, own->rows - 1);
    }
    for (int b = 2; b <= MOST; b++)
        mine.alike[b] = rows % b == 0 && are_alike(group->ctx, own, first, b);
    TRY(spmv_group_agree(group,
                         host_alloc(group->ctx, ranks * (int64_t)sizeof *all, "the nodes of a matrix", (void **)&all)));
    TRY(group_gather_equal(group, &mine, all, sizeof mine));
    *block = MOST;
    for (bool alike = false; *block > 1; *block -= !alike) {
        alike = ends_are_alike(all, ranks, *block);
        for (int r = 0; r < ranks; r++)
            alike = alike && all[r].alike[*block];
        if (alike)
            break;
    }
done:
    host_free(all);
    return st;
}
