/* What a file of the binary form says about the matrix beside its arrays: symmetry and comments, at
 * the file's end. Readers that do not know of notes do not look there.
 * docs/binary-form.md describes them byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_NOTES_H
#define BINARY_NOTES_H

#include <spmv/io.h>

#include "runtime.h"

/* The bytes to append, in memory for the caller to release with host_free; none (NULL, 0) for a
 * general matrix without comments. */
spmv_status binary_notes_make(spmv_context *ctx, spmv_symmetry symmetry, const char *comments, void **notes,
                              int64_t *bytes);

/* The notes of the file of so many bytes opened as fd: SPMV_SYMMETRY_GENERAL and "" where it has
 * none, or damaged ones. *comments: for the caller to release with host_free; comments NULL: not
 * wanted. SPMV_ERROR_MEMORY. */
spmv_status binary_notes_read(spmv_context *ctx, int fd, int64_t file_bytes, spmv_symmetry *symmetry, char **comments);

#endif
