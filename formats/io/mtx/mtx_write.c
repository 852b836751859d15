/* Writes matrices to Matrix Market coordinate files, also compressed, or to the binary form, by the
 * ending of the name. A text of a symmetric, skew-symmetric or hermitian matrix has only the lower
 * triangle, provided that the upper one follows from it bit by bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/io.h>
#include <stdio.h>

#include "core/reals.h"
#include "formats/columns.h"
#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/binary_notes.h"
#include "formats/io/mtx/mmio_banner.h"
#include "formats/io/output_form.h"
#include "formats/io/text/numbers.h"
#include "formats/io/text/text_portions.h"
#include "formats/matrix_internal.h"

/* "ROW COL VALUE\n": 19 and 10 digits, and the two parts of a complex value. */
enum { LINE = 19 + 1 + 10 + 1 + NUMBER_TEXT + 1 + NUMBER_TEXT + 1 };

/* Number of real numbers in a value. */
static int parts(const spmv_csr *a)
{
    return type_is_complex(a->type) ? 2 : 1;
}

/* Real number k among all values. */
static double part_at(const spmv_csr *a, int64_t k)
{
    return real_at(type_part(a->type), a->val, k);
}

/* The index of the first real number that is not finite; their count if there is none. */
static int64_t first_not_finite(spmv_context *ctx, const spmv_csr *a)
{
    const int64_t n = a->nnz * parts(a);
    int64_t bad = n;
    if (a->val == NULL)
        return bad;
#pragma omp parallel for num_threads(host_team(ctx, n)) schedule(static) reduction(min : bad)
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(part_at(a, k)))
            bad = min_i64(bad, k);
    return bad;
}

/* The format does not define inf and nan, and other readers reject them. */
static spmv_status check_finite(spmv_context *ctx, const spmv_csr *a, const char *path, const char *format)
{
    const int64_t number = first_not_finite(ctx, a), k = number / parts(a);
    if (k == a->nnz)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                        "%s: the matrix contains %g (entry %lld, column %lld%s), which %s cannot represent", path,
                        part_at(a, number), context_number(ctx, k), context_number(ctx, a->col[k]),
                        context_counted(ctx), format);
}

/* What is written, and in which form. */
struct text {
    const spmv_csr *a;
    spmv_symmetry symmetry;
    const char *comments;
};

static bool is_lower(const struct text *text, int64_t row, int64_t k)
{
    return text->symmetry == SPMV_SYMMETRY_GENERAL || text->a->col[k] <= row;
}

/* The number of entries that are written. */
static int64_t count_entries(spmv_context *ctx, const struct text *text)
{
    const spmv_csr *const a = text->a;
    int64_t n = 0;
    if (text->symmetry == SPMV_SYMMETRY_GENERAL)
        return a->nnz;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static) reduction(+ : n)
    for (int64_t row = 0; row < a->rows; row++)
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            n += is_lower(text, row, k);
    return n;
}

/* ---------------------------------------------------------------- symmetry */

/* The position of the column in a row with ascending columns; -1 if it is missing. */
static int64_t find_entry(const spmv_csr *a, int64_t row, int64_t col)
{
    const int64_t end = row_first(a, row + 1), k = first_column_from(a->col, row_first(a, row), end, col);
    return k < end && a->col[k] == col ? k : -1;
}

/* Whether a reader would make entry other, bit by bit, as the mirror of entry k. */
static bool is_mirror(const spmv_csr *a, spmv_symmetry symmetry, int64_t k, int64_t other)
{
    const size_t size = spmv_type_size(type_part(a->type));
    for (int i = 0; a->val != NULL && i < parts(a); i++) {
        const char *const at = (const char *)a->val;
        uint64_t want = 0, have = 0;
        memcpy(&want, at + (size_t)(k * parts(a) + i) * size, size);
        memcpy(&have, at + (size_t)(other * parts(a) + i) * size, size);
        const bool turned =
            symmetry == SPMV_SYMMETRY_SKEW || (symmetry == SPMV_SYMMETRY_HERMITIAN && i == 1 && parts(a) == 2);
        if (turned)
            want ^= (uint64_t)1 << (8 * size - 1); /* flip the sign bit */
        if (want != have)
            return false;
    }
    return true;
}

/* Whether entry k, on the diagonal, is allowed by the symmetry. */
static bool fits_diagonal(const spmv_csr *a, spmv_symmetry symmetry, int64_t k)
{
    for (int i = symmetry == SPMV_SYMMETRY_SKEW ? 0 : 1; symmetry != SPMV_SYMMETRY_SYMMETRIC && i < parts(a); i++)
        if (part_at(a, k * parts(a) + i) != 0)
            return false;
    return true;
}

/* The first row with an entry that contradicts the symmetry; rows: none. */
static int64_t first_not_mirrored(spmv_context *ctx, const spmv_csr *a, spmv_symmetry symmetry)
{
    int64_t bad = a->rows;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(dynamic, 1024) reduction(min : bad)
    for (int64_t row = 0; row < a->rows; row++)
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++) {
            const int64_t other = a->col[k] == row ? k : find_entry(a, a->col[k], row);
            if (other == k ? !fits_diagonal(a, symmetry, k) : other < 0 || !is_mirror(a, symmetry, k, other))
                bad = min_i64(bad, row);
        }
    return bad;
}

static spmv_status check_symmetry(spmv_context *ctx, const struct text *text, const char *path)
{
    static const char *const names[] = {[SPMV_SYMMETRY_SYMMETRIC] = "symmetric",
                                        [SPMV_SYMMETRY_SKEW] = "skew-symmetric",
                                        [SPMV_SYMMETRY_HERMITIAN] = "hermitian"};
    const spmv_csr *const a = text->a;
    if (text->symmetry == SPMV_SYMMETRY_GENERAL)
        return SPMV_OK;
    if (a->rows != a->cols)
        return context_fail(ctx, SPMV_ERROR_NOT_SYMMETRIC, "%.400s: a %lld x %lld matrix is not %s", path,
                            (long long)a->rows, (long long)a->cols, names[text->symmetry]);
    if (csr_check(ctx, path, a, CSR_SORTED) != SPMV_OK)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "%.400s: writing a %s matrix needs ascending columns in each row", path,
                            names[text->symmetry]);
    const bool no_signs = a->val == NULL && text->symmetry == SPMV_SYMMETRY_SKEW;
    const int64_t row = no_signs ? 0 : first_not_mirrored(ctx, a, text->symmetry);
    if (row == a->rows && !no_signs)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_NOT_SYMMETRIC, "%.400s: the matrix is not %s, bit by bit, in row %lld%s", path,
                        names[text->symmetry], context_number(ctx, row), context_counted(ctx));
}

/* ---------------------------------------------------------------- text */

static spmv_status make_banner(spmv_context *ctx, const struct text *text, char banner[BANNER_TEXT])
{
    MM_typecode code;
    mm_initialize_typecode(&code);
    mm_set_matrix(&code);
    mm_set_coordinate(&code);
    if (text->a->val == NULL)
        mm_set_pattern(&code);
    else if (type_is_complex(text->a->type))
        mm_set_complex(&code);
    else
        mm_set_real(&code);
    if (text->symmetry == SPMV_SYMMETRY_SYMMETRIC)
        mm_set_symmetric(&code);
    else if (text->symmetry == SPMV_SYMMETRY_SKEW)
        mm_set_skew(&code);
    else if (text->symmetry == SPMV_SYMMETRY_HERMITIAN)
        mm_set_hermitian(&code);
    return banner_write(ctx, code, banner);
}

/* Writes the comments, with a percent sign before each line that lacks one. Returns the byte after
 * them. */
static char *write_comments(const char *comments, char *p)
{
    while (*comments != '\0') {
        const size_t length = strcspn(comments, "\n");
        if (*comments != '%')
            *p++ = '%';
        memcpy(p, comments, length);
        p += length;
        *p++ = '\n';
        comments += length + (comments[length] == '\n');
    }
    return p;
}

/* Makes banner, comments and size line; release with host_free. */
static spmv_status make_head(spmv_context *ctx, const struct text *text, char **head, int64_t *bytes)
{
    enum { SIZE_LINE = 3 * 21 + 1 };
    const spmv_csr *const a = text->a;
    char banner[BANNER_TEXT];
    void *memory = NULL;
    spmv_status st = make_banner(ctx, text, banner);
    if (st == SPMV_OK) /* worst case: each byte of the comments is an empty line */
        st = host_alloc(ctx, BANNER_TEXT + SIZE_LINE + 2 * (int64_t)strlen(text->comments) + 2, "writing a file",
                        &memory);
    if (st != SPMV_OK)
        return st;
    char *p = memory;
    p += sprintf(p, "%s\n", banner);
    p = write_comments(text->comments, p);
    p += sprintf(p, "%lld %lld %lld\n", (long long)a->rows, (long long)a->cols, (long long)count_entries(ctx, text));
    *head = memory;
    *bytes = p - (char *)memory;
    return SPMV_OK;
}

static char *write_count(char *p, int64_t value)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

/* Writes entries first <= k < end, one per line. */
static char *write_entries(const void *user, int64_t first, int64_t end, char *p)
{
    const struct text *const text = user;
    const spmv_csr *const a = text->a;
    const spmv_type part = type_part(a->type);
    const int64_t part_bytes = (int64_t)spmv_type_size(part);
    const int count = a->val == NULL ? 0 : parts(a);
    int64_t row = row_of_entry(a, first);
    for (int64_t k = first; k < end; k++) {
        while (row_first(a, row + 1) <= k)
            row++;
        if (!is_lower(text, row, k))
            continue;
        p = write_count(p, row + 1);
        *p++ = ' ';
        p = write_count(p, (int64_t)a->col[k] + 1);
        for (int i = 0; i < count; i++) {
            *p++ = ' ';
            p = number_write(p, part, (const char *)a->val + (k * count + i) * part_bytes);
        }
        *p++ = '\n';
    }
    return p;
}

static spmv_status write_text(spmv_context *ctx, const struct text *text, enum compression compression,
                              const char *path)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    struct text_portions entries = {
        .make = write_entries, .user = text, .items = text->a->nnz, .item_bytes = LINE, .compression = compression};
    char *head = NULL;
    int64_t bytes = 0;
    TRY(check_finite(ctx, text->a, path, "a Matrix Market file"));
    TRY(check_symmetry(ctx, text, path));
    TRY(make_head(ctx, text, &head, &bytes));
    TRY(output_open(ctx, path, text->a->nnz, &output));
    TRY(text_portions_head(&output, head, bytes, compression));
    TRY(text_portions_write(&output, &entries));
done:
    host_free(head);
    return output_close(&output, st);
}

static spmv_status write_binary(spmv_context *ctx, const struct text *text, const char *path)
{
    void *notes = NULL;
    int64_t bytes = 0;
    spmv_status st = check_symmetry(ctx, text, path);
    if (st == SPMV_OK)
        st = binary_notes_make(ctx, text->symmetry, text->comments, &notes, &bytes);
    if (st == SPMV_OK)
        st = binary_form_write_with(ctx, text->a, path, notes, bytes);
    host_free(notes);
    return st;
}

static spmv_status write_exchange(spmv_context *ctx, const struct text *text, const struct output_form *form,
                                  const char *path)
{
    const struct exchange_matrix matrix = {ctx, path, text->a, text->symmetry};
    spmv_status st = check_symmetry(ctx, text, path);
    if (st == SPMV_OK && form->exchange->finite)
        st = check_finite(ctx, text->a, path, form->exchange->name);
    return st == SPMV_OK ? exchange_write_matrix(form->exchange, form->compression, &matrix) : st;
}

void spmv_write_options_init(spmv_write_options *options, size_t size)
{
    const spmv_write_options defaults = {.size = sizeof defaults, .symmetry = SPMV_SYMMETRY_GENERAL};
    result_write(options, size, &defaults, sizeof defaults);
}

static spmv_status check_options(spmv_context *ctx, const spmv_write_options *given, struct text *text)
{
    spmv_write_options options;
    spmv_write_options_init(&options, sizeof options);
    const spmv_status st = options_take(ctx, "write", &options, sizeof options, given);
    if (st != SPMV_OK)
        return st;
    if (options.symmetry < SPMV_SYMMETRY_GENERAL || options.symmetry > SPMV_SYMMETRY_HERMITIAN)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "write options: unknown symmetry %d", (int)options.symmetry);
    text->symmetry = options.symmetry;
    text->comments = options.comments != NULL ? options.comments : "";
    return SPMV_OK;
}

spmv_status spmv_matrix_write_as(spmv_context *ctx, const spmv_csr *a, const char *path,
                                 const spmv_write_options *options)
{
    struct output_form form;
    struct text text = {.a = a};
    if (ctx == NULL || a == NULL || path == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_write: %s is NULL", a ? "path" : "matrix");
    if (a->val != NULL && !type_is_floating(a->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "matrices are written from f64, f32, c128 or c64, not from %s",
                            spmv_type_name(a->type));
    spmv_status st = check_options(ctx, options, &text);
    /* The conjugate of a real number is the number itself. */
    if (text.symmetry == SPMV_SYMMETRY_HERMITIAN && (a->val == NULL || !type_is_complex(a->type)))
        text.symmetry = SPMV_SYMMETRY_SYMMETRIC;
    if (st == SPMV_OK)
        st = csr_check(ctx, "spmv_matrix_write", a, CSR_ANY_ORDER);
    if (st == SPMV_OK)
        st = output_form_of(ctx, path, &form);
    if (st != SPMV_OK)
        return st;
    return form.content == OUTPUT_BINARY     ? write_binary(ctx, &text, path)
           : form.content == OUTPUT_EXCHANGE ? write_exchange(ctx, &text, &form, path)
                                             : write_text(ctx, &text, form.compression, path);
}

spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    return spmv_matrix_write_as(ctx, a, path, NULL);
}
