/* Forms of rows, for method "tiles" of the backend omp. In a FORMED stretch (spmv_omp.h) each row
 * has one of a few forms, so one byte a row, the number of its form, replaces its columns. A form
 * states for each column of a row whether it stays or moves on with the row. Example: an arrow
 * matrix, whose rows have the first column and three around the diagonal, has one form; if some
 * rows lack the first column, it has two.
 *
 * One pass over the rows finds the forms by comparing each row with the forms found so far. The
 * second row of a form determines which columns move; all later rows must agree with both. The
 * result is exact and depends on the rows alone.
 *
 * J. Willcock, A. Lumsdaine, "Accelerating sparse matrix computations via data compression", ICS
 * 2006, use forms in which all columns move.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/omp/spmv_omp.h"

/* Whether a row of n entries fits a form. The second row of a form settles its moving columns. */
static bool fits(struct form *form, const int32_t *col, int64_t row, int64_t k, int64_t n)
{
    const int32_t *here = col + k, *first = col + form->k;
    const int32_t by = (int32_t)(row - form->row);
    if (form->settled_k < 0) {
        for (int64_t j = 0; j < n; j++)
            if (here[j] != first[j] && here[j] - first[j] != by)
                return false;
        form->settled_k = k;
        return true;
    }
    const int32_t *second = col + form->settled_k;
    for (int64_t j = 0; j < n; j++)
        if (here[j] - first[j] != (second[j] == first[j] ? 0 : by))
            return false;
    return true;
}

int64_t forms_reach(const spmv_csr *a, int64_t begin, int64_t last, struct forms *forms, uint8_t *code)
{
    const int bits = a->row_ptr_bits;
    int64_t k = offset_at(a->row_ptr, bits, begin), row = begin;
    const int64_t n = offset_at(a->row_ptr, bits, begin + 1) - k;
    forms->count = 0;
    for (; row < last && offset_at(a->row_ptr, bits, row + 1) - k == n; row++, k += n) {
        int f = 0;
        while (f < forms->count && !fits(&forms->form[f], a->col, row, k, n))
            f++;
        if (f == MOST_FORMS)
            break;
        if (f == forms->count)
            forms->form[forms->count++] = (struct form){.row = row, .k = k, .settled_k = -1};
        if (code != NULL)
            *code++ = (uint8_t)f;
    }
    return row;
}

void forms_spots(const spmv_csr *a, const struct forms *forms, int64_t begin, int64_t n, int32_t base,
                 struct spots *spot)
{
    for (int f = 0; f < forms->count; f++, spot += spots_of(n)) {
        const struct form *form = &forms->form[f];
        const int32_t *first = a->col + form->k, *second = form->settled_k < 0 ? first : a->col + form->settled_k;
        for (int64_t j = 0; j < spots_of(n) * SPOTS; j++) {
            const bool moves = j < n && second[j] != first[j];
            spot[j / SPOTS].column[j % SPOTS] =
                j < n ? first[j] - base - (moves ? (int32_t)(form->row - begin) : 0) : 0;
            spot[j / SPOTS].moves[j % SPOTS] = moves ? -1 : 0;
        }
    }
}
