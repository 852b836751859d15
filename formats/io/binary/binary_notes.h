/* Data at the end of a file in binary form that its arrays do not contain: symmetry and comments.
 * Readers without support for notes ignore them. docs/binary-form.md describes them byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_NOTES_H
#define BINARY_NOTES_H

#include <spmv/io.h>

#include "core/runtime.h"

/* The bytes to append (release with host_free); NULL and 0 for a general matrix without
 * comments. */
spmv_status binary_notes_make(spmv_context *ctx, spmv_symmetry symmetry, const char *comments, void **notes,
                              int64_t *bytes);

/* Reads the notes of the file of file_bytes bytes opened as fd. Without valid notes:
 * SPMV_SYMMETRY_GENERAL and "". *comments: release with host_free; comments NULL: not wanted.
 * Error: SPMV_ERROR_MEMORY. */
spmv_status binary_notes_read(spmv_context *ctx, int fd, int64_t file_bytes, spmv_symmetry *symmetry, char **comments);

#endif
