/* The facts of the whole matrix by which "auto" chooses a preconditioner: maxima, counts, and a
 * search from a row. All ranks find the same, and what one rank finds that has all rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "core/reals.h"
#include "core/threads.h"
#include "distributed/group_facts.h"
#include "distributed/group_internal.h"
#include "distributed/group_levels.h"
#include "formats/matrix_internal.h"

static const char *const what = "the facts of a matrix of a group";

static double value_of(const spmv_group_matrix *m, int64_t k)
{
    return m->val == NULL ? 1 : real_at(m->own.type, m->val, k);
}

static double diagonal_of(const spmv_group_matrix *m, int64_t i)
{
    double sum = 0;
    for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
        if (m->col[k] - m->halo.room == i)
            sum += value_of(m, k);
    return sum;
}

/* Rows with the columns of the row before in the same chunk: no cut divides a chunk. */
static int64_t count_alike(const spmv_group_matrix *m)
{
    int64_t alike = 0;
    for (int64_t c = 0; c < m->ranks.chunks; c++)
        for (int64_t i = m->ranks.chunk[c] + 1; i < m->ranks.chunk[c + 1]; i++)
            alike += precond_row_is_alike(m->col, m->row_ptr[i - 1], m->row_ptr[i], m->row_ptr[i + 1]);
    return alike;
}

/* As look_on_host (precond_choose.c), of own rows. The envelope has no use here. */
static struct precond_look look(const spmv_group_matrix *m)
{
    double heaviest = 0, smallest = INFINITY, largest = 0;
    int64_t beside = 0, positive = 0, mixed = 0, balanced = 0, weights = 0;
#pragma omp parallel for schedule(static) num_threads(host_team(m->ctx, m->own.nnz))                                   \
    reduction(max : heaviest, largest) reduction(min : smallest) reduction(+ : beside, positive, mixed, balanced, weights)
    for (int64_t i = 0; i < m->own.rows; i++) {
        const double diagonal = diagonal_of(m, i);
        struct precond_row row = {0};
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            if (m->col[k] - m->halo.room != i)
                precond_row_add(&row, value_of(m, k));
        beside += row.beside;
        positive += row.positive;
        mixed += precond_row_is_mixed(&row, diagonal);
        balanced += precond_row_is_balanced(&row, diagonal);
        weights += precond_weight(row.sum / diagonal);
        if (row.sum > heaviest * diagonal)
            heaviest = row.sum / diagonal;
        smallest = diagonal < smallest ? diagonal : smallest;
        largest = diagonal > largest ? diagonal : largest;
    }
    return (struct precond_look){.heaviest = heaviest,
                                 .smallest = smallest,
                                 .largest = largest,
                                 .beside = beside,
                                 .positive = positive,
                                 .mixed = mixed,
                                 .balanced = balanced,
                                 .weights = weights,
                                 .alike = count_alike(m)};
}

/* The first row of the whole matrix whose diagonal entry is not positive, or not finite. */
static void find_bad(const spmv_group_matrix *m, struct group_facts *f)
{
    for (int64_t i = 0; i < m->own.rows && f->bad == INT64_MAX; i++) {
        const double diagonal = diagonal_of(m, i);
        if (!(diagonal > 0 && isfinite(diagonal))) {
            f->bad = m->ranks.first_row + i;
            f->bad_value = diagonal;
        }
    }
}

/* The facts of own rows. */
static spmv_status find_own_facts(spmv_group_matrix *m, struct group_facts *own)
{
    spmv_status st = SPMV_OK;
    struct group_arrays arrays = {0};
    spmv_csr diagonal;
    int64_t bad = 0;
    *own = (struct group_facts){.bad = INT64_MAX};
    if (context_on_device(m->ctx)) {
        TRY(group_rows_block(m, true, &arrays, &diagonal));
        TRY(precond_look_at_rows(m->ctx, &diagonal, &m->there, m->halo.room, &own->look, &bad, &own->bad_value));
        own->bad = bad < m->own.rows ? m->ranks.first_row + bad : INT64_MAX;
    } else {
        find_bad(m, own);
        if (own->bad == INT64_MAX)
            own->look = look(m);
    }
done:
    group_arrays_release(m->ctx, &arrays);
    return st;
}

spmv_status group_find_facts(spmv_group_matrix *m, struct group_facts *facts)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    struct group_facts own, *all = NULL;
    st = find_own_facts(m, &own);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, ranks * (int64_t)sizeof *all, what, (void **)&all);
    TRY(spmv_group_agree(m->group, st));
    TRY(group_gather_equal(m->group, &own, all, sizeof own));
    *facts = all[0];
    for (int r = 1; r < ranks; r++) {
        struct precond_look *const to = &facts->look;
        const struct precond_look *const its = &all[r].look;
        to->heaviest = fmax(to->heaviest, its->heaviest);
        to->largest = fmax(to->largest, its->largest);
        to->smallest = fmin(to->smallest, its->smallest);
        to->beside += its->beside;
        to->positive += its->positive;
        to->mixed += its->mixed;
        to->balanced += its->balanced;
        to->weights += its->weights;
        to->alike += its->alike;
        if (facts->bad == INT64_MAX && all[r].bad != INT64_MAX) {
            facts->bad = all[r].bad;
            facts->bad_value = all[r].bad_value;
        }
    }
    facts->bad = min_i64(facts->bad, m->ranks.rows);
done:
    host_free(all);
    return st;
}

/* ------------------------------------------------------------- the search */

/* Rows that the search has reached: all of them, and those of the last step. */
struct search {
    char *seen; /* of all rows */
    int32_t *front, *found;
    int64_t fronts, founds, room;
    /* own rows of the front */
    int32_t *own;
    int64_t *begin; /* and their entries: columns in a vector with room */
    int32_t *col;
};

/* The entries of own rows in GPU memory, to s->begin and s->col. */
static spmv_status read_rows_there(const spmv_group_matrix *m, struct search *s, int64_t rows)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = m->ctx;
    const spmv_csr *const a = &m->there;
    int32_t *index = NULL, *packed = NULL;
    int64_t *there = NULL, sum = 0;
    TRY(context_alloc(ctx, rows * 4, (void **)&index));
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)&there));
    TRY(spmv_upload(ctx, s->own, index, rows * 4));
    const struct group_elements e = {index, rows, 1};
    TRY(group_row_lengths_cuda(ctx, &e, a->row_ptr, a->row_ptr_bits, there));
    TRY(spmv_download(ctx, there, s->begin, rows * 8));
    for (int64_t i = 0; i <= rows; i++) {
        const int64_t its = i < rows ? s->begin[i] : 0;
        s->begin[i] = sum;
        sum += its;
    }
    TRY(host_alloc(ctx, max_i64(1, sum) * 4, what, (void **)&s->col));
    if (sum == 0)
        goto done;
    TRY(context_alloc(ctx, sum * 4, (void **)&packed));
    TRY(spmv_upload(ctx, s->begin, there, (rows + 1) * 8));
    TRY(group_take_rows_cuda(ctx, &e, a->row_ptr, a->row_ptr_bits, there, a->col, packed));
    TRY(spmv_download(ctx, packed, s->col, sum * 4));
done:
    context_free_all(ctx, index, there, packed);
    return st;
}

/* Lists the rows beside own rows of the front, each once: at most PRECOND_BALL, which ends the
 * search. */
static spmv_status step(const spmv_group_matrix *m, struct search *s)
{
    spmv_status st = SPMV_OK;
    const bool device = context_on_device(m->ctx);
    int64_t rows = 0;
    s->founds = 0;
    for (int64_t f = 0; f < s->fronts; f++) {
        const int64_t i = s->front[f] - m->ranks.first_row;
        if (i >= 0 && i < m->own.rows)
            s->own[rows++] = (int32_t)i;
    }
    if (device && rows > 0)
        TRY(read_rows_there(m, s, rows));
    for (int64_t f = 0; f < rows; f++) {
        const int64_t *const begin = device ? s->begin + f : m->row_ptr + s->own[f];
        const int32_t *const col = device ? s->col : m->col;
        for (int64_t k = begin[0]; k < begin[1] && s->founds < PRECOND_BALL; k++) {
            const int32_t column = (int32_t)group_number_of(m, col[k]);
            if (s->seen[column] == 0) {
                s->seen[column] = 2; /* others may find it too */
                s->found[s->founds++] = column;
            }
        }
    }
done:
    host_free(s->col);
    s->col = NULL;
    return st;
}

/* Adds what all ranks have found. */
static spmv_status join(spmv_group_matrix *m, struct search *s, int64_t *counts, int32_t *all)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    int64_t *const offset = counts + ranks;
    TRY(group_gather_equal(m->group, &s->founds, counts, sizeof s->founds));
    offset[0] = 0;
    for (int r = 0; r < ranks; r++)
        offset[r + 1] = offset[r] + counts[r] * (int64_t)sizeof *all;
    TRY(group_gather(m->group, s->found, all, offset));
    s->fronts = 0;
    for (int64_t k = 0; k < offset[ranks] / (int64_t)sizeof *all; k++)
        if (s->seen[all[k]] != 1) {
            s->seen[all[k]] = 1;
            s->front[s->fronts++] = all[k];
        }
done:
    return st;
}

/* As ball_from (precond_choose.c). */
static spmv_status search_from(spmv_group_matrix *m, struct search *s, int64_t row, int64_t *counts, int32_t *all,
                               struct precond_ball *ball)
{
    spmv_status st = SPMV_OK;
    int32_t steps = 0, reached[PRECOND_BALL_STEPS + 1];
    int64_t end = 1;
    s->seen[row] = 1;
    s->front[0] = (int32_t)row;
    s->fronts = 1;
    reached[0] = 1;
    while (s->fronts > 0 && end <= PRECOND_BALL && steps < PRECOND_BALL_STEPS) {
        TRY(spmv_group_agree(m->group, step(m, s)));
        TRY(join(m, s, counts, all));
        end += s->fronts;
        if (s->fronts > 0 && end <= PRECOND_BALL)
            reached[++steps] = (int32_t)end;
    }
    *ball = (struct precond_ball){steps, reached[steps], reached[steps / 2], s->fronts == 0};
done:
    return st;
}

spmv_status group_find_ball(void *matrix, struct precond_ball *ball)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const int64_t ranks = m->group->transport.ranks, rows = m->ranks.rows;
    struct search s = {.room = ranks * PRECOND_BALL};
    int64_t *counts = NULL;
    int32_t *all = NULL;
    st = host_zeros(m->ctx, rows, what, (void **)&s.seen);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, s.room * 4, what, (void **)&s.front);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, s.room * 4, what, (void **)&s.found);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, s.room * 4, what, (void **)&all);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, s.room * 4, what, (void **)&s.own);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, (s.room + 1) * 8, what, (void **)&s.begin);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, (2 * ranks + 1) * 8, what, (void **)&counts);
    TRY(spmv_group_agree(m->group, st));
    TRY(search_from(m, &s, 0, counts, all, ball));
    if (ball->ended && ball->rows < rows / 2)
        TRY(search_from(m, &s, rows / 2, counts, all, ball));
done:
    host_free_all(s.seen, s.front, s.found, s.own, s.begin, counts, all);
    return st;
}
