/* The exercise spmv: y = A x for a matrix in CSR form.
 *
 * Values are small integers, so every order of the additions gives the same y. One matrix has a huge
 * row before a small one: a sum over all rows from which sums before are subtracted loses the small
 * one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/exercise/exercise.h"

typedef void product(int64_t rows, const int64_t *row_ptr, const int32_t *col, const double *val, const double *x,
                     double *y);

enum { ROWS_MOST = 100003, SHOWN = 8 };

/* How many entries a row has. */
enum lengths { EMPTY, ONE, UP_TO_8, FIRST_EMPTY, LAST_EMPTY, SECOND_EMPTY, HOLES, ALL_IN_ONE, HUGE_THEN_SMALL };

static const struct matrix_case {
    const char *name;
    int64_t rows, cols;
    enum lengths lengths;
} matrices[] = {{"no rows", 0, 3, ONE},
                {"one row with one entry", 1, 1, ONE},
                {"one entry in each row", 3, 3, ONE},
                {"the second row is empty", 3, 3, SECOND_EMPTY},
                {"the first row is empty", 4, 4, FIRST_EMPTY},
                {"the last row is empty", 4, 4, LAST_EMPTY},
                {"all rows are empty", 3, 3, EMPTY},
                {"no columns", 2, 0, EMPTY},
                {"a huge row, then a small one", 2, 2, HUGE_THEN_SMALL},
                {"more columns than rows", 5, 9, UP_TO_8},
                {"more rows than columns", 33, 7, UP_TO_8},
                {"empty rows between others", 65, 31, HOLES},
                {"all entries in one row", 1024, 1025, ALL_IN_ONE},
                {"rows of 0 to 7 entries", 1025, 1023, UP_TO_8},
                {"rows of 0 to 7 entries", ROWS_MOST, ROWS_MOST, UP_TO_8}};

static int64_t length_of(const struct matrix_case *m, int64_t i, uint64_t *state)
{
    switch (m->lengths) {
    case EMPTY:
        return 0;
    case ONE:
    case HUGE_THEN_SMALL:
        return 1;
    case FIRST_EMPTY:
        return i == 0 ? 0 : 2;
    case LAST_EMPTY:
        return i == m->rows - 1 ? 0 : 2;
    case SECOND_EMPTY:
        return i == 1 ? 0 : 2;
    case HOLES:
        return random_below(state, 3) == 0 ? 5 : 0;
    case ALL_IN_ONE:
        return i == m->rows / 2 ? m->cols : 0;
    default:
        return random_below(state, m->cols < 8 ? m->cols : 8);
    }
}

static int64_t *row_ptr;
static int32_t *col;
static double *val, *x, *y;

/* Makes the arrays above; columns ascend within a row. y = A x, row by row. */
static void make(const struct matrix_case *m)
{
    uint64_t state = 2007 + (uint64_t)m->rows;
    row_ptr = case_scratch(m->rows + 1, sizeof *row_ptr);
    row_ptr[0] = 0;
    for (int64_t i = 0; i < m->rows; i++)
        row_ptr[i + 1] = row_ptr[i] + length_of(m, i, &state);
    col = case_scratch(row_ptr[m->rows], sizeof *col);
    val = case_scratch(row_ptr[m->rows], sizeof *val);
    x = case_scratch(m->cols, sizeof *x);
    y = case_scratch(m->rows, sizeof *y);
    for (int64_t j = 0; j < m->cols; j++)
        x[j] = (double)(1 + random_below(&state, 9));
    for (int64_t i = 0; i < m->rows; i++) {
        const int64_t begin = row_ptr[i], length = row_ptr[i + 1] - begin;
        const int64_t step = length > 0 ? m->cols / length : 1, shift = random_below(&state, step);
        y[i] = 0;
        for (int64_t k = begin; k < begin + length; k++) {
            col[k] = (int32_t)((k - begin) * step + shift);
            val[k] = m->lengths == HUGE_THEN_SMALL && i == 0 ? 1e30 : (double)(1 + random_below(&state, 9));
            y[i] += val[k] * x[col[k]];
        }
    }
}

static void show_vector(struct table *t, const char *name, const double *v, int64_t n)
{
    table_numbers(t, name, v, 0, n < SHOWN ? n : SHOWN);
}

/* Complains of row i. A small matrix is shown in full, else the row. */
static void wrong_row(const struct matrix_case *m, const double *found, int64_t i)
{
    struct table t = {.length = 0};
    const int64_t begin = row_ptr[i], length = row_ptr[i + 1] - begin, nnz = row_ptr[m->rows];
    if (nnz <= SHOWN && m->rows < SHOWN) {
        int64_t wide[SHOWN];
        for (int64_t k = 0; k < nnz; k++)
            wide[k] = col[k];
        table_integers(&t, "row_ptr", row_ptr, 0, m->rows + 1);
        table_integers(&t, "col", wide, 0, nnz);
        show_vector(&t, "val", val, nnz);
        show_vector(&t, "x", x, m->cols);
        show_vector(&t, "expected", y, m->rows);
        show_vector(&t, "found", found, m->rows);
    }
    table_add(&t, "  row %lld has %lld entr%s, from row_ptr[%lld] = %lld on\n", (long long)i, (long long)length,
              length == 1 ? "y" : "ies", (long long)i, (long long)begin);
    if (!case_is_set(&found[i], sizeof *found))
        case_wrong(t.text, "y[%lld] is not written", (long long)i);
    case_wrong(t.text, "y[%lld] is %g, expected %g", (long long)i, found[i], y[i]);
}

static void run_product(void *const *functions)
{
    product *student;
    memcpy(&student, functions, sizeof student); /* C has no cast from an object pointer to a function pointer */
    for (size_t k = 0; k < sizeof matrices / sizeof matrices[0]; k++) {
        const struct matrix_case *const m = &matrices[k];
        case_begin("%lld x %lld, %s", (long long)m->rows, (long long)m->cols, m->name);
        make(m);
        const int64_t nnz = row_ptr[m->rows];
        double *const found = case_output("y", m->rows, sizeof *found);
        student(m->rows, case_input("row_ptr", row_ptr, m->rows + 1, sizeof *row_ptr),
                case_input("col", col, nnz, sizeof *col), case_input("val", val, nnz, sizeof *val),
                case_input("x", x, m->cols, sizeof *x), found);
        case_end();
        for (int64_t i = 0; i < m->rows; i++)
            if (!(found[i] == y[i]))
                wrong_row(m, found, i);
    }
    case_passed("0 to 100003 rows, empty and long rows, a huge row before a small one");
}

const struct exercise exercise_spmv = {
    "spmv",
    "4-spmv.md",
    "y = A x by gather, map and segmented scan",
    {"spmv"},
    true,
    run_product,
    "/* Exercise spmv (docs/lessons/4-spmv.md): y = A x for a sparse matrix in CSR form.\n"
    " *\n"
    " * Row i has the entries k = row_ptr[i] ... row_ptr[i + 1] - 1: value val[k] in column col[k].\n"
    " * row_ptr[rows] is the number of entries. An empty row gives y[i] = 0.\n"
    " *\n"
    " * Write it in four passes: gather, map, segmented scan, gather. Only the last one is a loop over\n"
    " * rows, and it has no loop inside.\n"
    " *\n"
    " * Test it: spmv exercise spmv spmv.c */\n"
    "#include <stdint.h>\n"
    "#include <stdlib.h>\n"
    "\n"
    "void spmv(int64_t rows, const int64_t *row_ptr, const int32_t *col, const double *val, const double *x,\n"
    "          double *y)\n"
    "{\n"
    "    const int64_t nnz = row_ptr[rows];\n"
    "    double *scanned = malloc((nnz + 1) * sizeof *scanned);\n"
    "\n"
    "    for (int64_t k = 0; k < nnz; k++)\n"
    "        scanned[k] = val[k] * x[col[k]]; /* gather and map */\n"
    "\n"
    "    /* Your code here: head flags from row_ptr, and the segmented scan. */\n"
    "\n"
    "    for (int64_t i = 0; i < rows; i++)\n"
    "        y[i] = scanned[row_ptr[i]]; /* and here: y[i] is the last element of row i, if it has one */\n"
    "    free(scanned);\n"
    "}\n"};
