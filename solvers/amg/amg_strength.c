/* The strength of couplings:
 *
 *   strong   c_ij > strength min(max_k c_ik, max_k c_jk), with c_ij = |a_ij| / sqrt(a_ii a_jj).
 *
 * F, the filtered matrix, has the strong couplings of A; the weak ones are added to its diagonal.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

static struct amg_strength arguments_of(const struct amg *amg, const struct amg_level *l)
{
    const struct amg_strength s = {.a = amg_rows_of(&l->a),
                                   .f = amg_rows_of(&l->f),
                                   .nnz = l->a.nnz,
                                   .diagonal = l->diagonal,
                                   .root = l->root,
                                   .threshold = amg->strength,
                                   .strongest = l->strongest,
                                   .all_strong = l->f.val == l->a.val};
    return s;
}

/* Memory for the reciprocals of F's diagonal, and for the numbers whose largest bounds the eigenvalues of
 * D^-1 F. */
static spmv_status alloc_bound(const struct amg *amg, struct amg_level *l, struct amg_strength *s)
{
    spmv_status st = SPMV_OK;
    TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->f_inverse));
    TRY(amg_alloc_vector(amg, &l->work, l->rows, &s->ratio));
    s->inverse = l->f_inverse;
done:
    return st;
}

static spmv_status find_bound(const struct amg *amg, const struct amg_level *l, const struct amg_strength *s)
{
    return spmv_reduce(amg->ctx, SPMV_MAX, amg->type, s->ratio, &amg->cells->bound, l->rows);
}

spmv_status amg_find_strong(struct amg *amg, const struct amg_level *level, struct amg_level *l, int64_t *counts)
{
    spmv_status st = SPMV_OK;
    struct amg_strength s = arguments_of(amg, l);
    struct amg_cells found = {0};
    int64_t *offsets = NULL;
    if (l->strongest == NULL) {
        TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest));
        s.strongest = l->strongest;
        TRY(run_strongest(amg, &s, l->rows));
    }
    s.count = counts;
    TRY(alloc_bound(amg, l, &s));
    TRY(run_strong_count(amg, &s, l->rows));
    TRY(find_bound(amg, l, &s));
    TRY(amg_alloc(&l->pool, (l->rows + 1) * 8, (void **)&offsets));
    TRY(spmv_expand_offsets(amg->ctx, counts, 64, offsets, l->rows));
    TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_I64, offsets + l->rows, &amg->cells->total, 1));
    TRY(amg_read(amg, amg->cells, sizeof found, &found));
    TRY(amg_judge_read(amg, level, found.least));
    l->f_bound = real_at(amg->type, &found.bound, 0);
    TRY(amg_new_entries(amg, l, l->rows, offsets, found.total, l->rows, l->a.nnz - 1, &l->f, &l->f_values));
    if (l->f.nnz < l->a.nnz) {
        s.f = amg_rows_of(&l->f);
        TRY(run_strong_fill(amg, &s, l->rows));
    } else {
        l->f = l->a;
    }
done:
    return st;
}

spmv_status amg_find_strong_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    double bound = 0;
    if (l->f_values == NULL) /* all couplings are strong */
        l->f.val = l->a.val;
    struct amg_strength s = arguments_of(amg, l);
    TRY(alloc_bound(amg, l, &s));
    TRY(run_strong_values(amg, &s, l->rows));
    if (l->nulls > 0) { /* F is A */
        l->f_bound = l->bound;
        return SPMV_OK;
    }
    TRY(find_bound(amg, l, &s));
    TRY(amg_read(amg, &amg->cells->bound, 8, &bound));
    l->f_bound = real_at(amg->type, &bound, 0);
done:
    return st;
}
