/* The form of an output file, derived from the ending of its name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OUTPUT_FORM_H
#define OUTPUT_FORM_H

#include "formats/io/exchange/exchange.h"
#include "formats/io/packed/packed.h"

enum output_content { OUTPUT_OTHER, OUTPUT_MTX, OUTPUT_BINARY, OUTPUT_EXCHANGE }; /* .mtx; .spmv; of another program */

struct output_form {
    enum output_content content; /* without the compression's ending */
    enum compression compression;
    const struct exchange_format *exchange; /* of OUTPUT_EXCHANGE */
};

/* Derives *form from the ending of path; "-" is OUTPUT_OTHER without compression. Errors:
 * SPMV_ERROR_ARGUMENT (the ending of a kind that is not written: .zip, .tar.gz, .spmv.gz),
 * SPMV_ERROR_UNSUPPORTED (libarchive lacks the compression). */
spmv_status output_form_of(spmv_context *ctx, const char *path, struct output_form *form);

#endif
