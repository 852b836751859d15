/* Shared by the fuzz targets: the entry of libFuzzer, a check, and a context.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <spmv/spmv.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program with both texts unless the condition holds. */
static inline void require(int holds, const char *what, const char *sentence)
{
    if (!holds) {
        fprintf(stderr, "%s: \"%s\"\n", what, sentence);
        abort();
    }
}

/* A context on ref, the same one for all inputs. */
static inline spmv_context *fuzz_context(void)
{
    static spmv_context *ctx;
    if (ctx == NULL) {
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.backend = SPMV_BACKEND_REF;
        require(spmv_context_create(&options, &ctx) == SPMV_OK, "no context", spmv_last_error(NULL));
    }
    return ctx;
}

/* The matrix is valid, and its columns ascend strictly in each row. */
static inline void check_matrix(spmv_context *ctx, const spmv_matrix *matrix)
{
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    require(spmv_matrix_check(ctx, &a) == SPMV_OK, "an invalid matrix", spmv_last_error(ctx));
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t k = ((const int64_t *)a.row_ptr)[i] + 1; k < ((const int64_t *)a.row_ptr)[i + 1]; k++)
            require(a.col[k - 1] < a.col[k], "columns out of order", "");
}

#endif
