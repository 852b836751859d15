/* Names the number that is not finite where a solve fails because of one: an element of b, of the
 * start x, or a value of A. It is searched only after such a failure, so a good solve pays nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/krylov/not_finite.h"

/* Elements that are copied to host memory at once. */
enum { AT_ONCE = 1 << 16 };

/* The first of n real numbers in the context's memory that is not finite; *at = n: none is. */
static spmv_status find(spmv_context *ctx, spmv_type type, const void *numbers, int64_t n, int64_t *at, double *value)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(type);
    void *host = NULL;
    *at = n;
    TRY(host_alloc(ctx, min_i64(AT_ONCE, max_i64(1, n)) * size, "a search for numbers that are not finite", &host));
    for (int64_t first = 0; first < n && *at == n; first += AT_ONCE) {
        const int64_t count = min_i64(AT_ONCE, n - first);
        TRY(spmv_download(ctx, (const char *)numbers + first * size, host, count * size));
        for (int64_t i = 0; i < count && *at == n; i++)
            if (!isfinite(real_at(type, host, i))) {
                *at = first + i;
                *value = isnan(real_at(type, host, i)) ? NAN : real_at(type, host, i); /* without a sign */
            }
    }
done:
    host_free(host);
    return st;
}

/* Whether the vector has a number that is not finite; then stores the message. */
static bool name_vector(const struct krylov *s, const char *name, const void *vector)
{
    const struct plan_ranks *const ranks = s->plan->ranks;
    const int64_t parts = type_parts(s->type), columns = s->info.vectors, n = s->info.rows * columns * parts;
    int64_t at = n;
    double value = 0;
    char of[64] = "";
    if (find(s->ctx, type_part(s->type), vector, n, &at, &value) != SPMV_OK || at == n)
        return false;
    const int64_t element = at / parts, row = element / columns + (ranks != NULL ? ranks->first_row : 0);
    if (columns > 1)
        snprintf(of, sizeof of, " of right-hand side %lld of %lld", (long long)(element % columns) + 1,
                 (long long)columns);
    (void)context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "%s: %s has %g in row %lld%s%s", s->call, name, value,
                       context_number(s->ctx, row), of, context_counted(s->ctx));
    return true;
}

/* The row of entry k; row offsets may be on a device. */
static spmv_status row_of(const struct krylov *s, int64_t k, int64_t *row)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr a = s->plan->a;
    a.col = NULL;
    a.val = NULL;
    TRY(csr_to_host(s->ctx, &a, false, &a, &copies));
    *row = row_of_entry(&a, k);
done:
    csr_free_host(&copies);
    return st;
}

/* The same for the values of A. Columns of a rank have other numbers than those of the matrix. */
static bool name_value(const struct krylov *s)
{
    const spmv_csr *const a = &s->plan->a;
    const struct plan_ranks *const ranks = s->plan->ranks;
    const int64_t parts = type_parts(a->type), n = a->nnz * parts;
    int64_t at = n, row = 0;
    int32_t column = 0;
    double value = 0;
    char behind[48] = "";
    if (a->val == NULL || find(s->ctx, type_part(a->type), a->val, n, &at, &value) != SPMV_OK || at == n ||
        row_of(s, at / parts, &row) != SPMV_OK ||
        spmv_download(s->ctx, a->col + at / parts, &column, sizeof column) != SPMV_OK)
        return false;
    if (ranks == NULL)
        snprintf(behind, sizeof behind, ", column %lld", context_number(s->ctx, column));
    (void)context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "%s: A has %g in row %lld%s%s", s->call, value,
                       context_number(s->ctx, row + (ranks != NULL ? ranks->first_row : 0)), behind,
                       context_counted(s->ctx));
    return true;
}

bool krylov_find_not_finite(const struct krylov *s, const void *b, bool zero_start)
{
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", spmv_last_error(s->ctx));
    /* x is the start where no step was taken */
    if (name_value(s) || name_vector(s, "b", b) || (!zero_start && name_vector(s, "the start x", s->x)))
        return true;
    (void)context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "%s", kept); /* a search without memory has its own */
    return false;
}

spmv_status krylov_name_not_finite(const struct krylov *s, const void *b, bool zero_start, spmv_status st)
{
    if (st == SPMV_ERROR_NOT_FINITE)
        (void)krylov_find_not_finite(s, b, zero_start);
    return st;
}
