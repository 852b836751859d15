/* The choice of the products' method on GPUs, and of its runs of tiles: the same for all ranks, and for any number of
 * them.
 *
 * It is the first of the backend's table (product/cuda/choose.c) that has the same bits for any number of ranks and
 * that the whole matrix suits, by what all ranks count of their rows. Chunks begin at multiples of PLAN_TILE_ROWS, so
 * slices and groups of rows are the same for any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/choice.h"
#include "core/reals.h"
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
    m->takes_runs = method->table != NULL;
    if (m->own.nnz == 0 && method->suits != NULL) /* it would decline */
        m->method = "vector";
done:
    return st;
}

/* ------------------------------------------------------------- runs of tiles */

/* The distinct values of a rank's matrix. */
enum { VALUES = 256 };
struct values {
    int64_t count; /* VALUES + 1: more, or no table */
    double value[VALUES];
};

static spmv_status own_values(const spmv_group_matrix *m, struct values *own)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = m->plan->type;
    union {
        float f32[VALUES];
        double f64[VALUES];
    } numbers;
    int count = 0;
    memset(own, 0, sizeof *own);
    if (m->own.nnz == 0 || m->pattern)
        return SPMV_OK;
    const void *const table = m->plan->method->table(m->plan, &count);
    own->count = count > 0 ? count : VALUES + 1;
    TRY(spmv_download(m->ctx, table, &numbers, count * (int64_t)spmv_type_size(type)));
    for (int i = 0; i < count; i++)
        own->value[i] = real_at(type, &numbers, i);
done:
    return st;
}

/* The number of distinct values of all ranks. */
static int64_t count_values(const struct values *all, int ranks)
{
    struct values sum = {.count = 0};
    for (int r = 0; r < ranks; r++) {
        if (all[r].count > VALUES)
            return all[r].count;
        for (int64_t i = 0; i < all[r].count; i++) {
            int64_t k = 0;
            while (k < sum.count && memcmp(&sum.value[k], &all[r].value[i], sizeof *sum.value) != 0)
                k++;
            if (k == VALUES)
                return VALUES + 1;
            if (k == sum.count)
                sum.value[sum.count++] = all[r].value[i];
        }
    }
    return sum.count;
}

/* Runs `each` of a chunk, as equal as they can be; which are the longer ones, changes from chunk to chunk, since a
 * block gets runs at equal distances. The last run may end within a tile. */
static spmv_status make_runs(spmv_group_matrix *m, int each)
{
    spmv_status st = SPMV_OK;
    const int64_t chunks = max_i64(1, m->ranks.chunks), bytes = 2 * chunks * each * (int64_t)sizeof(int32_t);
    const int64_t none = ceil_divide(m->own.rows, PLAN_TILE_ROWS);
    int32_t *run = NULL;
    TRY(host_alloc(m->ctx, bytes, "the runs of a group", (void **)&run));
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t first = m->ranks.chunks > 0 ? ceil_divide(m->chunk[c], PLAN_TILE_ROWS) : 0;
        const int64_t tiles = m->ranks.chunks > 0 ? ceil_divide(m->chunk[c + 1], PLAN_TILE_ROWS) - first : 0;
        const int64_t more = tiles % each, turn = (m->chunk_of_rank[m->group->transport.rank] + c) % each;
        int64_t begin = first;
        for (int64_t j = 0; j < each; j++) {
            const int64_t end = first + tiles / each * (j + 1) + more * (j + 1 + turn) / each - more * turn / each;
            int32_t *const to = run + 2 * (c * each + j);
            to[0] = (int32_t)(begin < end ? begin : none);
            to[1] = (int32_t)(begin < end ? end : none + 1);
            begin = end;
        }
    }
    TRY(context_alloc(m->ctx, bytes, &m->context_run));
    TRY(spmv_upload(m->ctx, run, m->context_run, bytes));
    m->ranks.run = m->context_run;
    m->ranks.runs = each;
done:
    host_free(run);
    return st;
}

spmv_status group_find_runs(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    const int64_t tiles = ceil_divide(m->ranks.rows, PLAN_TILE_ROWS) / max_i64(1, m->all_chunks);
    struct values own, *all = NULL;
    if (!context_on_device(m->ctx) || m->method == NULL || !m->ranks.leaves_parts || !m->takes_runs)
        return SPMV_OK;
    st = host_alloc(m->ctx, ranks * (int64_t)sizeof *all, "the runs of a group", (void **)&all);
    if (st == SPMV_OK)
        st = own_values(m, &own);
    TRY(spmv_group_agree(m->group, st));
    TRY(group_gather_equal(m->group, &own, all, sizeof own));
    if (count_values(all, ranks) <= VALUES)
        TRY(spmv_group_agree(m->group, make_runs(m, (int)max_i64(1, min_i64(tiles, PLAN_RUNS)))));
done:
    host_free(all);
    return st;
}
