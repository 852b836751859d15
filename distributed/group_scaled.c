/* R A C of the matrix of a group, for corrections of a solution whose rows are of very different sizes
 * (solvers/solver_accuracy.c). R and C are those of one rank that has all rows: the largest entries of columns
 * are maxima over ranks, which have no order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/hypot.h"
#include "core/reals.h"
#include "distributed/group_internal.h"
#include "distributed/group_levels.h"
#include "formats/matrix_internal.h"
#include "solvers/prepare/prepared_system.h"

static const char *const what = "a scaled matrix of a group";

/* Columns are places in the layout of the halo. */
struct lines {
    spmv_group_matrix *m;
    struct level *level; /* the halo */
    double *others, *arrived;
};

/* Numbers of columns of other ranks go to their owners, and the largest come back. */
static spmv_status join(void *self, double *in_col)
{
    spmv_status st = SPMV_OK;
    const struct lines *const l = self;
    const struct halo *const h = &l->level->m.halo;
    double *const own = in_col + h->room, *const before = own - h->before, *const after = own + l->level->halo.own;
    if (l->level->m.all_ghosts == 0)
        return SPMV_OK;
    for (int64_t i = 0; i < h->before + h->after; i++)
        l->others[i] = i < h->before ? before[i] : after[i - h->before];
    TRY(group_level_swap_back(l->level, l->others, l->arrived, 8));
    for (int64_t i = 0; i < h->count; i++)
        own[h->index[i]] = fmax(own[h->index[i]], l->arrived[i]);
    for (int64_t i = 0; i < h->count; i++)
        l->arrived[i] = own[h->index[i]];
    TRY(group_level_swap(l->level, l->arrived, NULL, l->others, NULL, 8));
    for (int64_t i = 0; i < h->before + h->after; i++)
        *(i < h->before ? before + i : after + i - h->before) = l->others[i];
done:
    return st;
}

static spmv_status largest(void *self, double *most)
{
    return group_largest(((struct lines *)self)->m, most);
}

/* The modulus of entry k. */
static double modulus_of(const spmv_group_matrix *m, int64_t k)
{
    const spmv_type part = type_part(m->own.type);
    if (m->pattern)
        return 1;
    return type_is_complex(m->own.type) ? real_hypot(real_at(part, m->val, 2 * k), real_at(part, m->val, 2 * k + 1))
                                        : fabs(real_at(part, m->val, k));
}

/* The entries of own rows that are not 0. */
static spmv_status take_magnitudes(const spmv_group_matrix *m, struct magnitudes *to)
{
    spmv_status st = SPMV_OK;
    int64_t at = 0;
    TRY(host_alloc(m->ctx, (m->own.rows + 1) * 8, what, (void **)&to->ptr));
    TRY(host_alloc(m->ctx, max_i64(1, m->own.nnz) * 4, what, (void **)&to->col));
    TRY(host_alloc(m->ctx, max_i64(1, m->own.nnz) * 8, what, (void **)&to->log2));
    to->rows = m->own.rows;
    for (int64_t i = 0; i < m->own.rows; i++) {
        to->ptr[i] = at;
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            if (modulus_of(m, k) > 0) {
                to->col[at] = m->col[k];
                to->log2[at++] = log2(modulus_of(m, k));
            }
    }
    to->ptr[m->own.rows] = at;
done:
    return st;
}

/* row, col: exponents of R and of C, the latter in the layout of the halo. */
static spmv_status find_exponents(spmv_group_matrix *m, struct lines *l, int64_t cols, double *row, double *col)
{
    spmv_status st = SPMV_OK;
    struct magnitudes a = {.rows = 0};
    const struct halo *const h = &l->level->m.halo;
    const struct magnitudes_ranks ranks = {.self = l, .cols = cols, .join = join, .largest = largest};
    st = take_magnitudes(m, &a);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, max_i64(1, h->before + h->after) * 8, what, (void **)&l->others);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, max_i64(1, h->count) * 8, what, (void **)&l->arrived);
    TRY(spmv_group_agree(m->group, st));
    TRY(prepare_equilibrate(m->ctx, &a, &ranks, row, col));
done:
    host_free_all(a.ptr, a.col, a.log2, l->others, l->arrived);
    return st;
}

/* The values of own rows, in the type of the vectors. */
static spmv_status scale_values(const spmv_group_matrix *m, const double *row, const double *col, void **val)
{
    const spmv_type part = type_part(m->type), from = type_part(m->own.type);
    const int parts = type_parts(m->type);
    const spmv_status st = host_alloc(m->ctx, max_i64(1, m->own.nnz) * (int64_t)spmv_type_size(m->type), what, val);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < m->own.rows; i++)
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            for (int p = 0; p < parts; p++) {
                const double value = m->pattern ? (double)(p == 0) : real_at(from, m->val, k * parts + p);
                real_set(part, *val, k * parts + p, ldexp(value, (int)lrint(row[i]) + (int)lrint(col[m->col[k]])));
            }
    return SPMV_OK;
}

spmv_status group_matrix_scale(spmv_group_matrix *m, int *own_row, int *own_col, spmv_group_matrix **made)
{
    spmv_status st = SPMV_OK;
    struct rank_first first = {.halo = NULL};
    struct lines l = {.m = m};
    struct group_own_rows rows = {.col = NULL};
    double *row = NULL;
    void *val = NULL;
    TRY(group_rank_tools.first(m, SPMV_F64, &first));
    l.level = group_level_of(first.halo);
    const int64_t n = m->own.rows, cols = first.halo->room + first.halo->own + first.halo->after;
    st = group_take_rows(m, false, &rows);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, max_i64(1, n + cols) * 8, what, (void **)&row);
    TRY(spmv_group_agree(m->group, st));
    double *const col = row + n;
    TRY(find_exponents(m, &l, cols, row, col));
    for (int64_t i = 0; i < n; i++) {
        own_row[i] = (int)lrint(row[i]);
        own_col[i] = (int)lrint(col[first.halo->room + i]);
    }
    TRY(spmv_group_agree(m->group, scale_values(m, row, col, &val)));
    rows.view.val = val;
    rows.view.type = m->type;
    TRY(group_matrix_like(m, &rows.view, rows.wide_col, made));
done:
    if (first.halo != NULL)
        group_rank_tools.close(first.halo);
    group_own_rows_release(&rows);
    host_free_all(row, val);
    return st;
}
