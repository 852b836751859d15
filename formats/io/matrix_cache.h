/* Matrices kept in the binary form in a folder, so that a file is parsed once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_CACHE_H
#define MATRIX_CACHE_H

#include <spmv/io.h>

#include "runtime.h"

/* What tells whether a kept matrix is that of a file. */
struct cache_key {
    char *place; /* where it is kept; NULL: nowhere (standard input, a pipe) */
    uint64_t path_sum;
};

/* The key of the file at path, opened as fd, read as values of the type: the file's whole path, its size, its time and
 * a checksum of all its bytes, which are read for it. cache_key_free in any case. */
spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key);
void cache_key_free(struct cache_key *key);

/* The kept matrix; *matrix NULL when there is none that is whole. */
void cache_find(spmv_context *ctx, const struct cache_key *key, spmv_type type, spmv_matrix **matrix);

/* Keeps it; what was kept of the same path before goes. Where that fails a warning says so; SPMV_CANCELLED from its
 * callback. */
spmv_status cache_keep(spmv_context *ctx, const char *folder, const struct cache_key *key, const spmv_matrix *matrix);

#endif
