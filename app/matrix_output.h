/* A matrix as the answer of a command: a file, a message, JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_OUTPUT_H
#define MATRIX_OUTPUT_H

#include "app/input.h"
#include "app/options.h"

/* Writes the matrix with the symmetry and the comments of its file, and prints a message. made:
 * "read", "generated". */
spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path, const char *made);

/* The answer of gen and convert: the matrix (path NULL: not written), and what --json prints. */
spmv_status write_matrix_and_json(spmv_context *ctx, const struct options *o, const struct input *in, const char *path,
                                  const char *made);

#endif
