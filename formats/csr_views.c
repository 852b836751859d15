/* The arrays of a matrix in the other memory: on the host for code that reads them there, in the
 * context for kernels. Where they can be used as they are, nothing is copied.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"

static int64_t values_bytes(const spmv_csr *a)
{
    return a->nnz * (int64_t)value_size(a->type, a->val == NULL);
}

/* Copies an array to host memory. */
static spmv_status copy_to_host(spmv_context *ctx, const spmv_csr *a, const void *from, int64_t bytes, const char *what,
                                void **copy)
{
    const spmv_status st = host_alloc(ctx, bytes, what, copy);
    if (st != SPMV_OK || bytes == 0)
        return st;
    if (a->memory == SPMV_MEMORY_CONTEXT)
        return spmv_download(ctx, from, *copy, bytes);
    memcpy(*copy, from, (size_t)bytes);
    return SPMV_OK;
}

/* Sets the arrays of a view that were copied. An array without elements stays: if val were NULL,
 * the matrix would be a pattern. */
static void set_arrays(const struct csr_copies *copies, spmv_csr *view)
{
    if (copies->row_ptr != NULL)
        view->row_ptr = copies->row_ptr;
    if (copies->col != NULL)
        view->col = copies->col;
    if (copies->val != NULL)
        view->val = copies->val;
}

spmv_status csr_to_host(spmv_context *ctx, const spmv_csr *a, bool always, spmv_csr *host, struct csr_copies *copies)
{
    spmv_status st = SPMV_OK;
    const spmv_csr from = *a; /* host may be a */
    *copies = (struct csr_copies){0};
    *host = from;
    host->memory = SPMV_MEMORY_HOST;
    if (!always && !csr_on_device(ctx, &from))
        return st;
    TRY(copy_to_host(ctx, &from, from.row_ptr, (from.rows + 1) * (from.row_ptr_bits / 8), "row offsets",
                     &copies->row_ptr));
    if (from.col != NULL)
        TRY(copy_to_host(ctx, &from, from.col, from.nnz * (int64_t)sizeof *from.col, "columns", (void **)&copies->col));
    if (from.val != NULL)
        TRY(copy_to_host(ctx, &from, from.val, values_bytes(&from), "values", &copies->val));
    set_arrays(copies, host);
done:
    return st;
}

void csr_free_host(struct csr_copies *copies)
{
    host_free_all(copies->row_ptr, copies->col, copies->val);
    *copies = (struct csr_copies){0};
}

/* Copies a host array to the context's memory. */
static spmv_status copy_to_context(spmv_context *ctx, const void *from, int64_t bytes, struct csr_copies *copies,
                                   void **copy)
{
    const spmv_status st = context_alloc(ctx, bytes, copy);
    if (st != SPMV_OK || bytes == 0)
        return st;
    copies->bytes += bytes;
    return spmv_upload(ctx, from, *copy, bytes);
}

spmv_status csr_to_context(spmv_context *ctx, const spmv_csr *a, bool narrow, spmv_csr *there,
                           struct csr_copies *copies)
{
    spmv_status st = SPMV_OK;
    int32_t *offsets = NULL;
    *copies = (struct csr_copies){0};
    *there = *a;
    there->memory = SPMV_MEMORY_CONTEXT;
    if (a->memory == SPMV_MEMORY_CONTEXT)
        return st;
    if (narrow && a->row_ptr_bits == 64 && a->nnz <= INT32_MAX) {
        TRY(host_alloc(ctx, (a->rows + 1) * (int64_t)sizeof *offsets, "row offsets", (void **)&offsets));
        offsets_to_32(a->row_ptr, offsets, a->rows + 1);
        there->row_ptr_bits = 32;
    }
    TRY(copy_to_context(ctx, offsets != NULL ? offsets : a->row_ptr, (a->rows + 1) * (there->row_ptr_bits / 8), copies,
                        &copies->row_ptr));
    TRY(copy_to_context(ctx, a->col, a->nnz * (int64_t)sizeof *a->col, copies, (void **)&copies->col));
    if (a->val != NULL)
        TRY(copy_to_context(ctx, a->val, values_bytes(a), copies, &copies->val));
    set_arrays(copies, there);
done:
    host_free(offsets);
    return st;
}

void csr_free_context(spmv_context *ctx, struct csr_copies *copies)
{
    context_free_all(ctx, copies->row_ptr, copies->col, copies->val);
    *copies = (struct csr_copies){0};
}
