/* The choice of the products' method on GPUs: the same for all ranks, and for any number of them.
 *
 * It is the first of the backend's table (product/cuda/choose.c) that has the same bits for any number of ranks and
 * that the whole matrix suits, by what all ranks count of their rows. Chunks begin at multiples of PLAN_TILE_ROWS, so
 * slices and groups of rows are the same for any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/choice.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

_Static_assert((int)PLAN_TILE_ROWS % (int)SLICE_ROWS == 0, "chunks begin where slices begin");

/* Adds what a rank has counted. All sums are of whole numbers. */
static void add(struct facts *all, const struct facts *own)
{
    all->slots += own->slots;
    all->slices += own->slices;
    all->unsorted = all->unsorted || own->unsorted;
    all->groups += own->groups;
    all->longest = max_i64(all->longest, own->longest);
    all->padded_bytes += own->padded_bytes;
}

/* Sets the facts that a method asks for from those of all ranks. Together. */
static spmv_status count(void *matrix, const struct spmv_method *method, struct facts *facts)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const int ranks = m->group->transport.ranks;
    struct facts own = {.ranks = true}, *of_ranks = NULL;
    st = host_alloc(m->ctx, ranks * (int64_t)sizeof *of_ranks, "the method of a group", (void **)&of_ranks);
    if (st == SPMV_OK)
        st = method->count(m->ctx, &m->there, &own);
    TRY(spmv_group_agree(m->group, st));
    TRY(group_gather_equal(m->group, &own, of_ranks, sizeof own));
    for (int r = 0; r < ranks; r++)
        add(facts, &of_ranks[r]);
    facts->memory_speed = of_ranks[0].memory_speed; /* GPUs may differ */
done:
    host_free(of_ranks);
    return st;
}

static struct facts facts_of(const spmv_group_matrix *m, int compression)
{
    return (struct facts){.ranks = true,
                          .whole = true,
                          .rows = m->ranks.rows,
                          .cols = m->cols,
                          .nnz = m->ranks.nnz,
                          .value_bytes = !m->pattern ? (int)spmv_type_size(m->own.type) : 0,
                          .offset_bytes = m->ranks.nnz <= INT32_MAX ? 4 : 8,
                          .compression = compression != SPMV_COMPRESSION_NONE,
                          .many_patterns = true};
}

spmv_status group_choose_method(spmv_group_matrix *m, const char *name, int compression)
{
    spmv_status st = SPMV_OK;
    struct facts facts = facts_of(m, compression);
    const struct spmv_method *method = NULL;
    const bool complex_values = !m->pattern && type_is_complex(m->own.type);
    if (!context_on_device(m->ctx))
        return SPMV_OK;
    if (choice_is_auto(name)) {
        TRY(method_of_facts(SPMV_BACKEND_CUDA, METHOD_RANKS | (complex_values ? METHOD_COMPLEX : 0), &facts, count, m,
                            &method));
    } else {
        method = method_named(SPMV_BACKEND_CUDA, name);
        if (method == NULL || (method->can & METHOD_RANKS) == 0)
            return SPMV_OK; /* the plan refuses it */
        if (strcmp(method->name, "slices") == 0)
            TRY(count(m, method, &facts));
        m->group->settled = true; /* all ranks see the same */
        if (facts.unsorted)
            TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                             "spmv_group_matrix_create: method slices needs columns that ascend strictly in each row"));
        m->group->settled = false;
    }
    m->method = method->name;
    m->ranks.leaves_parts = method->part_rows > 0;
    if (m->own.nnz == 0 && method->suits != NULL) /* it would decline */
        m->method = "vector";
done:
    return st;
}
