/* An arrow matrix: a long first row, a long first column, and a few entries around the diagonal.
 *
 * Row 0 has column 0 and LEN - 1 random other columns. Column 0 has the same rows. Every other row
 * has OTHERS entries: column 0 if column 0 has this row, and consecutive columns from 1 on with the
 * diagonal in their middle, shifted inwards at the ends. So the matrix has LEN + (ROWS - 1) OTHERS
 * entries. By default LEN is ROWS and OTHERS is 2: the diagonal, the first row and the first
 * column.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/columns.h"
#include "formats/generate/gen_rows.h"

enum { STREAM_COLUMNS = 0x617277 };

struct arrow {
    int64_t rows, others, head_length;
    int32_t *head; /* the columns of row 0 */
};

static int64_t arrow_length(const void *rule, int64_t row)
{
    const struct arrow *a = rule;
    return row == 0 ? a->head_length : a->others;
}

static bool in_head(const struct arrow *a, int64_t row)
{
    const int64_t k = first_column_from(a->head, 0, a->head_length, row);
    return k < a->head_length && a->head[k] == row;
}

static void arrow_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct arrow *a = rule;
    if (row == 0) {
        memcpy(col, a->head, (size_t)length * sizeof *col);
        return;
    }
    if (in_head(a, row)) {
        *col++ = 0;
        length--;
    }
    const int64_t from = max_i64(1, min_i64(row - (length - 1) / 2, a->rows - length));
    for (int64_t k = 0; k < length; k++)
        col[k] = (int32_t)(from + k);
}

spmv_status generate_arrow(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument argument[3];
    int given = 0;
    void *head = NULL;
    TRY(generator_arguments(ctx, request, "n?nn", "with integers from 1", argument, &given));
    struct arrow a = {.rows = argument[0].n,
                      .head_length = given > 1 ? argument[1].n : argument[0].n,
                      .others = given > 2 ? argument[2].n : 2};
    TRY(generator_columns(ctx, request, a.rows));
    /* A row without column 0 has one column less to choose from. */
    if (a.head_length > a.rows ||
        (a.rows > 1 && (a.others < 2 || a.others > a.rows - (a.head_length < a.rows ? 1 : 0)))) {
        st = generator_fail(ctx, request, "with LEN up to ROWS and OTHERS from 2 to ROWS - 1 (to ROWS if LEN is ROWS)");
        goto done;
    }
    const double entries = (double)a.head_length + (double)(a.rows - 1) * (double)a.others;
    TRY(generator_fits(ctx, request, a.rows, a.rows, entries, 0));
    TRY(host_alloc(ctx, a.head_length * (int64_t)sizeof *a.head, "the first row of an arrow", &head));
    a.head = head;
    a.head[0] = 0;
    sample_columns(request->seed, STREAM_COLUMNS, 0, a.head_length - 1, a.rows - 1, NULL, a.head + 1);
    for (int64_t k = 1; k < a.head_length; k++)
        a.head[k]++;
    const struct generator_rows rows = {
        .rows = a.rows, .cols = a.rows, .entries = entries, .rule = &a, .length = arrow_length, .fill = arrow_fill};
    TRY(generator_build(ctx, request, &rows, matrix));
done:
    host_free(head);
    return st;
}
