/* Preconditioners none (M = I, a copy) and jacobi (M = D): one map an application. With the option
 * general, diagonal entries have either sign.
 *
 * Jacobi: C. G. J. Jacobi, Astronomische Nachrichten 22, 1845; as a preconditioner, Saad 2003,
 * section 10.2. It compensates for different scales of rows; it has no effect if all diagonal
 * entries are equal. Traffic an application: 3 vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "solvers/precond/precond_loops.h"

static spmv_status apply_none(void *self, const void *r, void *z)
{
    const spmv_preconditioner *m = self;
    return m->ctx->backend->map(m->ctx, SPMV_MAP_COPY, m->type, r, z, m->rows);
}

spmv_status precond_make_none(spmv_preconditioner *m, struct precond_source *source)
{
    (void)source;
    m->self = m;
    m->apply = apply_none;
    m->identity = true;
    return SPMV_OK;
}

static spmv_status apply_jacobi(void *self, const void *r, void *z)
{
    const spmv_preconditioner *m = self;
    return m->ctx->backend->map_binary(m->ctx, SPMV_MUL, m->type, r, m->inverse_diagonal, z, m->rows);
}

static void destroy_jacobi(void *self)
{
    const spmv_preconditioner *m = self;
    spmv_free(m->ctx, (void *)m->inverse_diagonal);
}

spmv_status precond_check_reciprocal(const spmv_preconditioner *m, int64_t row, double diagonal)
{
    if (isfinite(diagonal) && isfinite(real_rounded(m->type, 1 / diagonal)))
        return SPMV_OK;
    return context_fail(m->ctx, diagonal == 0 ? SPMV_ERROR_SINGULAR : SPMV_ERROR_NOT_FINITE,
                        "preconditioner %s: the diagonal entry of row %lld%s is %g%s", m->name,
                        context_number(m->ctx, row), context_counted(m->ctx), diagonal,
                        diagonal != 0 && isfinite(diagonal) ? ", and its reciprocal overflows" : "");
}

/* From a positive diagonal on the device. The reciprocals are not negative, so their bits as
 * integers are below those of infinity, or equal if they overflow. */
static spmv_status make_reciprocals_on_device(spmv_preconditioner *m, const double *diagonal, void **reciprocals)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    const int bits = 8 * (int)spmv_type_size(m->type);
    const int64_t infinity = bits == 32 ? INT64_C(0x7f800000) : INT64_C(0x7ff0000000000000);
    void *scratch = NULL;
    int64_t first = m->rows, value = 0;
    TRY(precond_alloc(m, m->rows * bits / 8, reciprocals));
    TRY(precond_reciprocals_cuda(ctx, m->type, diagonal, *reciprocals, m->rows));
    TRY(context_scratch(ctx, ctx->backend->index_check_scratch(ctx, m->rows), &scratch));
    TRY(ctx->backend->index_check(ctx, *reciprocals, bits, 0, infinity, m->rows, &first, &value, scratch));
    if (first < m->rows) {
        double entry = 0;
        TRY(spmv_download(ctx, diagonal + first, &entry, sizeof entry));
        st = precond_check_reciprocal(m, first, entry);
    }
done:
    return st;
}

spmv_status precond_upload_reciprocals(spmv_preconditioner *m, const struct precond_source *source, void **reciprocals)
{
    spmv_status st = SPMV_OK;
    const double *diagonal = source->diagonal;
    double *inverse = NULL;
    if (diagonal == NULL && source->device_diagonal != NULL && source->bad >= m->rows)
        return make_reciprocals_on_device(m, source->device_diagonal, reciprocals);
    TRY(host_alloc(m->ctx, m->rows * 8, "reciprocals of a diagonal", (void **)&inverse));
    if (diagonal == NULL && m->rows > 0) {
        TRY(spmv_download(m->ctx, source->device_diagonal, inverse, m->rows * 8));
        diagonal = inverse;
    }
    for (int64_t i = 0; i < m->rows; i++) {
        TRY(precond_check_reciprocal(m, i, diagonal[i]));
        inverse[i] = 1 / diagonal[i];
    }
    TRY(precond_upload(m, inverse, m->rows, reciprocals));
done:
    host_free(inverse);
    return st;
}

spmv_status precond_make_jacobi(spmv_preconditioner *m, struct precond_source *source)
{
    void *reciprocals = NULL;
    const spmv_status st = precond_upload_reciprocals(m, source, &reciprocals);
    if (st != SPMV_OK) {
        spmv_free(m->ctx, reciprocals);
        return st;
    }
    m->inverse_diagonal = reciprocals;
    m->self = m;
    m->apply = apply_jacobi;
    m->destroy = destroy_jacobi;
    snprintf(m->layout, sizeof m->layout, "the reciprocals of the diagonal");
    return SPMV_OK;
}
