/* The choice of the products' method on GPUs: the same for all ranks, and for any number of them.
 *
 * slices adds the entries of a row in the order of their columns, whatever other rows a slice has; so
 * does vector in its own order. Which of the two is used decides about bits, so it follows from the
 * whole matrix: from the slots that slices would have (slices.cuh). Chunks begin at multiples of a
 * slice's rows, so these are the same slices for any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/choice.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

_Static_assert((int)PLAN_TILE_ROWS % (int)SLICE_ROWS == 0, "chunks begin where slices begin");

/* What the choice follows from: sums over all slices of a rank. */
struct census {
    int64_t slots, slices, unsorted;
};

static spmv_status count(const spmv_group_matrix *m, struct census *own)
{
    struct facts facts = {.ranks = true};
    const spmv_status st = m->there.nnz > 0 ? slices_cuda_count(m->ctx, &m->there, &facts) : SPMV_OK;
    *own = (struct census){facts.slots, facts.slices, facts.unsorted};
    return st;
}

/* The method for all ranks, by the facts of the whole matrix and the table of the backend. */
static const char *method_of(const spmv_group_matrix *m, const struct census *all, int compression)
{
    const bool complex_values = !m->pattern && type_is_complex(m->own.type);
    const struct facts facts = {.ranks = true,
                                .whole = true,
                                .rows = m->ranks.rows,
                                .nnz = m->ranks.nnz,
                                .value_bytes = !m->pattern ? (int)spmv_type_size(m->own.type) : 0,
                                .compression = compression != SPMV_COMPRESSION_NONE,
                                .slots = all->slots,
                                .slices = all->slices,
                                .many_patterns = true,
                                .unsorted = all->unsorted > 0};
    return method_of_facts(SPMV_BACKEND_CUDA, &facts, METHOD_RANKS | (complex_values ? METHOD_COMPLEX : 0));
}

spmv_status group_choose_method(spmv_group_matrix *m, const char *name, int compression)
{
    spmv_status st = SPMV_OK;
    struct census own = {0}, all = {0}, *of_ranks = NULL;
    const bool any = choice_is_auto(name), slices = !any && strcmp(name, "slices") == 0;
    if (!context_on_device(m->ctx) || (!any && !slices))
        return SPMV_OK;
    st = host_alloc(m->ctx, m->group->transport.ranks * (int64_t)sizeof *of_ranks, "the method of a group",
                    (void **)&of_ranks);
    if (st == SPMV_OK)
        st = count(m, &own);
    TRY(spmv_group_agree(m->group, st));
    TRY(group_gather_equal(m->group, &own, of_ranks, sizeof own));
    for (int r = 0; r < m->group->transport.ranks; r++) {
        all.slots += of_ranks[r].slots;
        all.slices += of_ranks[r].slices;
        all.unsorted += of_ranks[r].unsorted;
    }
    m->group->settled = true; /* all ranks see the same */
    if (slices && all.unsorted > 0)
        TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                         "spmv_group_matrix_create: method slices needs columns that ascend strictly in each row"));
    m->group->settled = false;
    m->method = slices ? "slices" : method_of(m, &all, compression);
    m->ranks.leaves_parts = strcmp(m->method, "slices") == 0;
    if (m->own.nnz == 0) /* it has no slices */
        m->method = "vector";
done:
    host_free(of_ranks);
    return st;
}
