/* Tells the fields of a saddle point system apart, and takes its blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/spgemm.h>

#include "core/threads.h"
#include "solvers/precond/fields.h"
#include "solvers/precond/precond_internal.h"

/* ------------------------------------------------------------------ telling them apart */

/* By the signs of the diagonal. */
static spmv_status find(spmv_context *ctx, const char *name, const spmv_csr *a, const double *diagonal,
                        struct fields *f)
{
    int64_t count[3] = {0, 0, 0}; /* negative, zero, positive */
    for (int64_t i = 0; i < a->rows; i++)
        count[(diagonal[i] > 0) - (diagonal[i] < 0) + 1]++;
    f->sign = count[2] > 0 ? 1 : -1;
    f->found = true;
    if (count[0] == a->rows || count[1] == a->rows || count[2] == a->rows)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner %s: every diagonal entry is %s, so the rows of two fields cannot be told "
                            "apart: give the field of each row (fields)",
                            name,
                            count[0] == a->rows   ? "negative"
                            : count[1] == a->rows ? "0"
                                                  : "positive");
    for (int64_t i = 0; i < a->rows; i++)
        f->of[i] = f->sign * diagonal[i] <= 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); diagonal[i] == 0 && k < row_first(a, i + 1); k++)
            if (f->of[a->col[k]] == 1 && a->col[k] != i && precond_value(a, k) != 0)
                return context_fail(
                    ctx, SPMV_ERROR_UNSUPPORTED,
                    "preconditioner %s: row %lld, whose diagonal entry is 0, has an entry in column %lld%s, whose "
                    "diagonal entry is not %s either: these rows are not the second field of a saddle point; give the "
                    "field of each row (fields)",
                    name, context_number(ctx, i), context_number(ctx, a->col[k]), context_counted(ctx),
                    f->sign > 0 ? "positive" : "negative");
    return SPMV_OK;
}

/* As the caller says. */
static spmv_status take(spmv_context *ctx, const char *name, const spmv_csr *a, const double *diagonal,
                        const int32_t *given, struct fields *f)
{
    int32_t least = 2, most = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        if (given[i] < 0 || given[i] > 2)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                                "preconditioner %s: the field of row %lld%s is %d: it must be 1 or 2 (or 0 or 1)", name,
                                context_number(ctx, i), context_counted(ctx), (int)given[i]);
        least = given[i] < least ? given[i] : least;
        most = given[i] > most ? given[i] : most;
    }
    int64_t zeros = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        f->of[i] = given[i] != least;
        zeros += given[i] == 1;
    }
    if (most == least || (most - least == 2 && zeros > 0))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "preconditioner %s: the rows have %s: exactly two are needed, 1 and 2 (or 0 and 1)", name,
                            most == least ? "one field" : "the fields 0, 1 and 2");
    for (int64_t i = 0; i < a->rows; i++) {
        if (f->of[i] == 1)
            continue;
        if (f->sign == 0)
            f->sign = diagonal[i] < 0 ? -1 : 1;
        if (!(f->sign * diagonal[i] > 0))
            return context_fail(ctx, SPMV_ERROR_NOT_POSITIVE,
                                "preconditioner %s: the diagonal entry of row %lld%s, of the first field, is %g: those "
                                "of this field must have one sign",
                                name, context_number(ctx, i), context_counted(ctx), diagonal[i]);
    }
    return SPMV_OK;
}

/* Sets the numbers of the rows of both fields, and their places. */
static spmv_status number(spmv_context *ctx, const double *diagonal, struct fields *f)
{
    spmv_status st = SPMV_OK;
    const int64_t n = f->a.rows;
    for (int64_t i = 0; i < n; i++)
        f->rows[f->of[i]]++;
    for (int k = 0; k < 2; k++)
        TRY(host_alloc(ctx, max_i64(1, f->rows[k]) * (int64_t)sizeof *f->row[k], "rows of a field",
                       (void **)&f->row[k]));
    TRY(host_alloc(ctx, n * (int64_t)sizeof *f->place, "rows of a field", (void **)&f->place));
    int64_t next[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        const int k = f->of[i];
        f->zeros += k == 1 && diagonal[i] == 0;
        f->place[i] = (int32_t)next[k];
        f->row[k][next[k]++] = (int32_t)i;
    }
done:
    return st;
}

static bool columns_ascend(const spmv_csr *a)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i) + 1; k < row_first(a, i + 1); k++)
            if (a->col[k] <= a->col[k - 1])
                return false;
    return true;
}

/* f->a = a, with ascending columns. */
static spmv_status order(spmv_context *ctx, const spmv_csr *a, struct fields *f)
{
    spmv_status st = SPMV_OK;
    int64_t *row = NULL, added = 0;
    f->a = *a;
    if (columns_ascend(a))
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, a->nnz) * (int64_t)sizeof *row, "row numbers", (void **)&row));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            row[k] = i;
    TRY(spmv_matrix_from_coo(ctx, a->rows, a->cols, a->nnz, row, a->col, a->val, a->type, &f->ordered, &added));
    spmv_matrix_view(f->ordered, &f->a);
done:
    host_free(row);
    return st;
}

spmv_status fields_tell(spmv_context *ctx, const char *name, const spmv_csr *a, const double *diagonal,
                        const int32_t *given, struct fields *f)
{
    spmv_status st = SPMV_OK;
    *f = (struct fields){.sign = 0};
    for (int64_t i = 0; i < a->rows; i++)
        if (!isfinite(diagonal[i]))
            return context_fail(ctx, SPMV_ERROR_NOT_FINITE, "preconditioner %s: the diagonal entry of row %lld%s is %g",
                                name, context_number(ctx, i), context_counted(ctx), diagonal[i]);
    TRY(host_alloc(ctx, max_i64(1, a->rows), "fields", (void **)&f->of));
    TRY(given != NULL ? take(ctx, name, a, diagonal, given, f) : find(ctx, name, a, diagonal, f));
    TRY(order(ctx, a, f));
    TRY(number(ctx, diagonal, f));
done:
    return st;
}

void fields_release(struct fields *f)
{
    host_free_all(f->row[0], f->row[1], f->of, f->place);
    spmv_matrix_destroy(f->ordered);
    *f = (struct fields){.sign = 0};
}

/* ------------------------------------------------------------------ blocks */

static bool is_in(const struct fields *f, int j, int64_t k)
{
    return (j < 0 || f->of[f->a.col[k]] == j) && precond_value(&f->a, k) != 0;
}

/* On a GPU the matrix moves to its memory. */
static spmv_status settle(spmv_context *ctx, spmv_matrix **matrix)
{
    spmv_csr view;
    spmv_matrix *there = NULL;
    if (!context_on_device(ctx))
        return SPMV_OK;
    spmv_matrix_view(*matrix, &view);
    const spmv_status st = spmv_matrix_copy(ctx, &view, SPMV_MEMORY_CONTEXT, &there);
    spmv_matrix_destroy(*matrix);
    *matrix = there;
    return st;
}

/* A matrix that the host can write, later of the context. */
static spmv_status allocate(spmv_context *ctx, const struct fields *f, int64_t rows, int64_t cols, int64_t nnz,
                            spmv_matrix **matrix)
{
    return matrix_allocate_in(ctx, context_on_device(ctx) ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT, rows, cols, nnz,
                              f->a.val != NULL ? f->a.type : SPMV_F64, false, matrix);
}

spmv_status fields_block(spmv_context *ctx, const struct fields *f, int i, int j, double factor, spmv_matrix **block)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &f->a;
    const int64_t rows = f->rows[i];
    int64_t *offset = NULL;
    *block = NULL;
    TRY(host_alloc(ctx, (rows + 1) * (int64_t)sizeof *offset, "row offsets", (void **)&offset));
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, a->nnz))
    for (int64_t p = 0; p < rows; p++) {
        int64_t count = 0;
        for (int64_t k = row_first(a, f->row[i][p]); k < row_first(a, f->row[i][p] + 1); k++)
            count += is_in(f, j, k);
        offset[p] = count;
    }
    TRY(offsets_from_counts(ctx, offset, rows));
    TRY(allocate(ctx, f, rows, j < 0 ? a->cols : f->rows[j], offset[rows], block));
    memcpy((*block)->row_ptr, offset, (size_t)(rows + 1) * sizeof *offset);
    int32_t *const col = (*block)->col;
    void *const val = (*block)->val;
    const spmv_type type = (*block)->type;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, a->nnz))
    for (int64_t p = 0; p < rows; p++) {
        int64_t at = offset[p];
        for (int64_t k = row_first(a, f->row[i][p]); k < row_first(a, f->row[i][p] + 1); k++)
            if (is_in(f, j, k)) {
                col[at] = j < 0 ? a->col[k] : f->place[a->col[k]];
                real_set(type, val, at++, factor * precond_value(a, k));
            }
    }
    TRY(settle(ctx, block));
done:
    host_free(offset);
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*block);
        *block = NULL;
    }
    return st;
}

bool fields_have_second_block(const struct fields *f)
{
    for (int64_t p = 0; p < f->rows[1]; p++)
        for (int64_t k = row_first(&f->a, f->row[1][p]); k < row_first(&f->a, f->row[1][p] + 1); k++)
            if (is_in(f, 1, k))
                return true;
    return false;
}

bool fields_are_coupled(const struct fields *f)
{
    bool coupled = f->rows[1] > 0;
    for (int64_t p = 0; coupled && p < f->rows[1]; p++) {
        bool any = false;
        for (int64_t k = row_first(&f->a, f->row[1][p]); !any && k < row_first(&f->a, f->row[1][p] + 1); k++)
            any = is_in(f, 0, k);
        coupled = any;
    }
    return coupled;
}

double fields_heaviest(const struct fields *f, const double *of_rows)
{
    const spmv_csr *const a = &f->a;
    double heaviest = 0;
    for (int64_t p = 0; p < f->rows[0]; p++) {
        const int64_t row = f->row[0][p];
        double beside = 0;
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            beside += f->of[a->col[k]] == 0 && a->col[k] != row ? fabs(precond_value(a, k)) : 0;
        heaviest = fmax(heaviest, beside / fabs(of_rows[row]));
    }
    return heaviest;
}

int fields_components(const struct fields *f)
{
    const spmv_csr *const a = &f->a;
    for (int b = 3; b > 1; b--) {
        bool apart = f->rows[0] % b == 0 && f->rows[0] > 0;
        for (int64_t p = 0; apart && p < f->rows[0]; p++)
            for (int64_t k = row_first(a, f->row[0][p]); apart && k < row_first(a, f->row[0][p] + 1); k++)
                apart = !is_in(f, 0, k) || f->place[a->col[k]] % b == p % b;
        if (apart)
            return b;
    }
    return 1;
}

/* ------------------------------------------------------------------ the Schur complement */

/* Both have ascending columns. */
static bool are_equal(const spmv_csr *a, const spmv_csr *b)
{
    bool equal = a->rows == b->rows && a->nnz == b->nnz;
    for (int64_t i = 0; equal && i <= a->rows; i++)
        equal = row_first(a, i) == row_first(b, i);
    for (int64_t k = 0; equal && k < a->nnz; k++)
        equal = a->col[k] == b->col[k] && precond_value(a, k) == precond_value(b, k);
    return equal;
}

spmv_status fields_schur_diagonal(spmv_context *ctx, const struct fields *f, const double *of_rows, double *diagonal,
                                  bool *symmetric)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &f->a;
    spmv_matrix *turned = NULL;
    spmv_csr t;
    double *column = NULL; /* of K_12, over D */
    TRY(csr_transpose(ctx, a, &turned));
    spmv_matrix_view(turned, &t);
    *symmetric = are_equal(a, &t);
    TRY(host_alloc(ctx, max_i64(1, a->rows) * 8, "a column", (void **)&column));
    memset(column, 0, (size_t)a->rows * sizeof *column);
    for (int64_t p = 0; p < f->rows[1]; p++) {
        const int64_t row = f->row[1][p];
        double sum = 0;
        for (int64_t k = row_first(&t, row); k < row_first(&t, row + 1); k++)
            if (f->of[t.col[k]] == 0)
                column[t.col[k]] = precond_value(&t, k) / of_rows[t.col[k]];
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            sum += f->of[a->col[k]] == 0 ? precond_value(a, k) * column[a->col[k]]
                   : a->col[k] == row    ? -precond_value(a, k)
                                         : 0;
        diagonal[p] = sum;
        for (int64_t k = row_first(&t, row); k < row_first(&t, row + 1); k++)
            column[t.col[k]] = 0;
    }
done:
    host_free(column);
    spmv_matrix_destroy(turned);
    return st;
}

/* *right = factor D^-1 K_12 in the rows of the first field, and -factor I in those of the second: then
 * [K_21 K_22] right is the Schur complement. */
static spmv_status make_right(spmv_context *ctx, const struct fields *f, const double *of_rows, double factor,
                              spmv_matrix **right)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &f->a;
    int64_t *offset = NULL;
    TRY(host_alloc(ctx, (a->rows + 1) * (int64_t)sizeof *offset, "row offsets", (void **)&offset));
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t count = f->of[i] == 1;
        for (int64_t k = row_first(a, i); f->of[i] == 0 && k < row_first(a, i + 1); k++)
            count += is_in(f, 1, k);
        offset[i] = count;
    }
    TRY(offsets_from_counts(ctx, offset, a->rows));
    TRY(allocate(ctx, f, a->rows, f->rows[1], offset[a->rows], right));
    spmv_matrix *const r = *right;
    memcpy(r->row_ptr, offset, (size_t)(a->rows + 1) * sizeof *offset);
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t at = offset[i];
        if (f->of[i] == 1) {
            r->col[at] = f->place[i];
            real_set(r->type, r->val, at, -factor);
        }
        for (int64_t k = row_first(a, i); f->of[i] == 0 && k < row_first(a, i + 1); k++)
            if (is_in(f, 1, k)) {
                r->col[at] = f->place[a->col[k]];
                real_set(r->type, r->val, at++, factor * precond_value(a, k) / of_rows[i]);
            }
    }
    TRY(settle(ctx, right));
done:
    host_free(offset);
    return st;
}

spmv_status fields_schur(spmv_context *ctx, const struct fields *f, const double *of_rows, double factor,
                         spmv_matrix **schur)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *left = NULL, *right = NULL;
    spmv_csr l, r;
    *schur = NULL;
    TRY(fields_block(ctx, f, 1, -1, 1, &left));
    TRY(make_right(ctx, f, of_rows, factor, &right));
    spmv_matrix_view(left, &l);
    spmv_matrix_view(right, &r);
    TRY(spmv_spgemm(ctx, &l, &r, NULL, schur));
done:
    spmv_matrix_destroy(left);
    spmv_matrix_destroy(right);
    return st;
}
