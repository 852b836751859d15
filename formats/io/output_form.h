/* What is written to a file of a name: the ending says it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OUTPUT_FORM_H
#define OUTPUT_FORM_H

#include "packed.h"

enum output_content { OUTPUT_OTHER, OUTPUT_MTX, OUTPUT_BINARY }; /* .mtx; .spmv */

struct output_form {
    enum output_content content; /* without the compression's ending */
    enum packing packing;
};

/* *form by the ending of path; "-" is no compression and OUTPUT_OTHER. Errors:
 * SPMV_ERROR_ARGUMENT (an ending of what is not written: .zip, .tar.gz, .spmv.gz),
 * SPMV_ERROR_UNSUPPORTED (libarchive lacks the compression). */
spmv_status output_form_of(spmv_context *ctx, const char *path, struct output_form *form);

/* Whether a path ends so, in upper or lower case, and has a name before it. */
bool path_ends_with(const char *path, const char *ending);

#endif
