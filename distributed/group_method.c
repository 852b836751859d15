/* The choice of the products' method on GPUs: the same for all ranks, and for any number of them.
 *
 * slices adds the entries of a row in the order of their columns, whatever other rows a slice has; so
 * does vector in its own order. Which of the two is used decides about bits, so it follows from the
 * whole matrix: from the slots that slices would have (slices.cuh). Chunks begin at multiples of a
 * slice's rows, so these are the same slices for any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "core/choice.h"
#include "core/threads.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

enum { SLICE = SLICE_ROWS };
_Static_assert((int)PLAN_TILE_ROWS % (int)SLICE == 0, "chunks begin where slices begin");

/* A set of the offsets (column - row) of a slice: a hash table with linear probing. An entry belongs to
 * the slice whose number it has. */
struct offsets {
    int64_t *offset, *slice, room;
};

/* Makes room for count offsets, twice as many places. */
static bool make_room(struct offsets *set, int64_t count)
{
    if (2 * count <= set->room)
        return true;
    int64_t room = 1024;
    while (room < 2 * count)
        room *= 2;
    free(set->offset);
    free(set->slice);
    set->offset = malloc((size_t)room * sizeof *set->offset);
    set->slice = malloc((size_t)room * sizeof *set->slice);
    set->room = set->offset != NULL && set->slice != NULL ? room : 0;
    for (int64_t i = 0; i < set->room; i++)
        set->slice[i] = -1;
    return set->room > 0;
}

/* Adds the offset; returns 1 if it is new, else 0. */
static int add(struct offsets *set, int64_t slice, int64_t offset)
{
    uint64_t at = (uint64_t)offset * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    for (;; at++) {
        const int64_t i = (int64_t)(at & (uint64_t)(set->room - 1));
        if (set->slice[i] != slice) {
            set->slice[i] = slice;
            set->offset[i] = offset;
            return 1;
        }
        if (set->offset[i] == offset)
            return 0;
    }
}

/* Counts the slots of a slice: the distinct offsets of its rows. -1: a row's columns do not ascend
 * strictly. Most rows have the offsets of the row before, which are compared first. */
static int64_t count_slots(const spmv_group_matrix *m, int64_t slice, struct offsets *set)
{
    const int64_t *row_ptr = m->row_ptr;
    const int64_t first = slice * SLICE, end = min_i64(first + SLICE, m->own.rows);
    int64_t slots = 0;
    for (int64_t i = first; i < end; i++) {
        const int64_t length = row_ptr[i + 1] - row_ptr[i];
        const int32_t *col = m->col + row_ptr[i];
        const int32_t *above = i > first && length == row_ptr[i] - row_ptr[i - 1] ? m->col + row_ptr[i - 1] : NULL;
        for (int64_t k = 0; k < length; k++) {
            if (k > 0 && col[k] <= col[k - 1])
                return -1;
            if (above == NULL || col[k] - 1 != above[k])
                slots += add(set, slice, col[k] - i);
        }
    }
    return slots;
}

/* What the choice follows from: sums over all slices of a rank. */
struct census {
    int64_t slots, slices, unsorted;
};

static spmv_status count(const spmv_group_matrix *m, struct census *own)
{
    const int64_t slices = ceil_divide(m->own.rows, SLICE);
    int64_t slots = 0, unsorted = 0, refused = 0;
#pragma omp parallel num_threads(host_team(m->ctx, m->own.nnz)) reduction(+ : slots, unsorted, refused)
    {
        struct offsets set = {.offset = NULL};
#pragma omp for schedule(dynamic, 256)
        for (int64_t s = 0; s < slices; s++) {
            const int64_t begin = m->row_ptr[s * SLICE], end = m->row_ptr[min_i64((s + 1) * SLICE, m->own.rows)];
            const bool room = make_room(&set, end - begin);
            const int64_t its = room ? count_slots(m, s, &set) : 0;
            refused += !room;
            unsorted += its < 0;
            slots += its > 0 ? its : 0;
        }
        free(set.offset);
        free(set.slice);
    }
    *own = (struct census){slots, slices, unsorted};
    return refused == 0 ? SPMV_OK
                        : context_fail(m->ctx, SPMV_ERROR_MEMORY, "no memory to choose the method of a group");
}

/* The method for all ranks, by the facts of the whole matrix and the table of the backend. */
static const char *method_of(const spmv_group_matrix *m, const struct census *all, int compression)
{
    const bool complex_values = m->val != NULL && type_is_complex(m->own.type);
    const struct facts facts = {.ranks = true,
                                .whole = true,
                                .rows = m->ranks.rows,
                                .nnz = m->ranks.nnz,
                                .value_bytes = m->val != NULL ? (int)spmv_type_size(m->own.type) : 0,
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
    if (m->own.nnz == 0) /* it has no slices */
        m->method = "vector";
done:
    host_free(of_ranks);
    return st;
}
