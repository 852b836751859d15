/* Matrices kept in the binary form in a folder, so that a file is parsed once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_CACHE_H
#define MATRIX_CACHE_H

#include <spmv/io.h>

#include "text_source.h"

/* What tells whether a kept matrix is that of a file. */
struct cache_key {
    char *place; /* where it is kept; NULL: nowhere (standard input, a pipe) */
    uint64_t path_sum;
};

/* What a reading tells beside the matrix: it stands at the end of the kept file, little-endian, without gaps. */
struct cache_facts {
    char magic[8];
    uint32_t version, field, symmetry, array; /* all but version as in spmv_read_info; so are the next three */
    int64_t bytes, entries, duplicates;
    int64_t warnings_bytes;
    char warnings[TEXT_WARNINGS]; /* as in text_source */
    uint64_t sum;                 /* of all before it */
};

/* The key of the file at path, opened as fd, read as values of the type: the file's whole path, its name as given
 * (which decides what the matrix of an archive is), its size, its time and a checksum of all its bytes, which are read
 * for it. cache_key_free in any case. */
spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key);
void cache_key_free(struct cache_key *key);

/* The kept matrix and its facts; *matrix NULL when there is none that is whole. */
void cache_find(spmv_context *ctx, const struct cache_key *key, spmv_type type, int64_t max_bytes, spmv_matrix **matrix,
                struct cache_facts *facts);

/* Keeps it; facts: all but magic, version and sum. What was kept of the same path before goes. Where that fails a
 * warning says so; SPMV_CANCELLED from its callback. */
spmv_status cache_keep(spmv_context *ctx, const char *folder, const struct cache_key *key, const spmv_matrix *matrix,
                       struct cache_facts *facts);

#endif
