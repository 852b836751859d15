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

#endif
