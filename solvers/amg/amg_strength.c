/* The strength of couplings:
 *
 *   strong   c_ij > strength min(max_k c_ik, max_k c_jk), with c_ij = -a_ij / sqrt(a_ii a_jj).
 *
 * An error that the smoother leaves is nearly constant along negative entries, but not along positive ones, which
 * elements of higher order and tetrahedra have. So positive entries are weak.
 *
 * On stretched grids of quadrilaterals and hexahedra that is not enough: entries across the strong direction are
 * positive, and those beside them negative. Their sum is small, so the error may jump across. There, a positive
 * entry is first moved to the entries beside it (moved_of), and the means of the a_ij and a_ji are compared. A sample
 * of the first matrix tells whether this makes a difference; then all levels do it.
 *
 * With a near-null-space vector of the caller, whose signs may
 * differ, and between nodes, c_ij has |a_ij|.
 *
 * F, the filtered matrix, has the strong couplings of A; the weak ones are added to its diagonal.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

static struct amg_strength arguments_of(const struct amg *amg, const struct amg_level *l)
{
    const struct amg_strength s = {.a = amg_rows_of(&l->a),
                                   .f = amg_rows_of(&l->f),
                                   .own_begin = amg_room(l),
                                   .own_end = amg_room(l) + amg_own_rows(l),
                                   .nnz = l->a.nnz,
                                   .diagonal = l->diagonal,
                                   .root = l->root,
                                   .threshold = amg->strength,
                                   .strongest = l->strongest,
                                   .all_strong = l->f.val == l->a.val};
    return s;
}

spmv_status amg_choose_strength(struct amg *amg, const struct amg_level *l)
{
    enum { SAMPLE = 1 << 12, LEAST = 1 << 8, SHORT = 16 }; /* fewer rows if they have more than SHORT entries */
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_strength s = arguments_of(amg, l);
    int64_t balance = 0;
    amg->moves = false;
    if (l->strongest == NULL || l->near_null != NULL)
        return SPMV_OK;
    const int64_t length = max_i64(ceil_divide(l->all_nnz, l->all_rows), SHORT);
    s.stride = ceil_divide(l->all_rows, max_i64(LEAST, SAMPLE * SHORT * SHORT / (length * length)));
    const int64_t sample = amg_own_sample(l, s.stride, &s.begin);
    if (l->halo != NULL) {
        TRY(amg_alloc(&work, sample * AMG_MOVE_MOST * 4, (void **)&s.needed));
        TRY(run_move_needed(amg, &s, sample));
    }
    TRY(amg_fetch_others(amg, l, l->a.val, s.needed, sample * AMG_MOVE_MOST, &work, &s.others));
    TRY(amg_alloc_vector(amg, &work, l->a.nnz, &s.moved));
    TRY(amg_alloc(&work, sample * 8, (void **)&s.balance));
    TRY(run_move_sample(amg, &s, sample));
    TRY(amg_reduce(amg, &work, SPMV_ADD, SPMV_I64, s.balance, sample, &balance));
    TRY(amg_add_ranks(amg, l, &balance));
    amg->moves = balance < 0;
done:
    amg_release(&work);
    return st;
}

/* s->measure, and with it s->strongest. */
static spmv_status move_positive(struct amg *amg, struct amg_level *l, struct amg_strength *s)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    TRY(amg_alloc_vector(amg, &l->work, l->a.nnz, &s->moved));
    TRY(amg_alloc_vector(amg, &l->work, l->a.nnz, &s->measure));
    TRY(amg_fetch_others(amg, l, l->a.val, NULL, 0, &work, &s->others));
    TRY(run_move(amg, s, l->rows));
    TRY(amg_fetch_others(amg, l, s->moved, NULL, 0, &work, &s->others));
    TRY(run_move_mean(amg, s, l->rows));
    struct amg_strength moved = *s;
    moved.a.val = s->measure;
    TRY(run_strongest(amg, &moved, l->rows));
    TRY(amg_fetch_vector(amg, l, s->strongest));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_find_strong(struct amg *amg, const struct amg_level *level, struct amg_level *l, int64_t *counts)
{
    spmv_status st = SPMV_OK;
    struct amg_strength s = arguments_of(amg, l);
    struct amg_cells found = {0};
    int64_t *offsets = NULL;
    s.either = level != l || l->near_null != NULL;
    if (l->strongest == NULL) {
        TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest));
        s.strongest = l->strongest;
        TRY(run_strongest(amg, &s, l->rows));
        TRY(amg_fetch_vector(amg, l, l->strongest));
    }
    if (amg->moves)
        TRY(move_positive(amg, l, &s));
    s.count = counts;
    TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->f_inverse));
    s.inverse = l->f_inverse;
    TRY(run_strong_count(amg, &s, l->rows));
    TRY(amg_alloc(&l->pool, (l->rows + 1) * 8, (void **)&offsets));
    TRY(spmv_expand_offsets(amg->ctx, counts, 64, offsets, l->rows));
    TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_I64, offsets + l->rows, &amg->cells->total, 1));
    TRY(amg_read(amg, amg->cells, sizeof found, &found));
    TRY(amg_judge_read(amg, level, found.least));
    TRY(amg_new_entries(amg, &l->pool, l->rows, offsets, found.total, l->rows, l->a.nnz - 1, &l->f, &l->f_values));
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
    if (l->f_values == NULL) /* all couplings are strong */
        l->f.val = l->a.val;
    struct amg_strength s = arguments_of(amg, l);
    s.by_diagonal = l->nulls > 0; /* F is A */
    TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->f_inverse));
    s.inverse = l->f_inverse;
    TRY(run_strong_values(amg, &s, l->rows));
done:
    return st;
}
