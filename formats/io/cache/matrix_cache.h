/* A cache of matrices in binary form in a folder, so that a file is parsed only once.
 *
 * Files that others can write are not trusted: the folder and its entries must belong to the
 * effective user, and nobody else may have write permission. The folder must not be a link, and an
 * entry must be a regular file. An untrusted folder is not used, with a warning; an untrusted entry
 * is replaced.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_CACHE_H
#define MATRIX_CACHE_H

#include <spmv/io.h>

#include "formats/io/text/text_source.h"

/* The place of a file's matrix in the cache. The name of the entry identifies the present contents
 * of the file. */
struct cache_key {
    char *folder; /* without a slash at its end */
    /* folder/name; NULL: not cached (standard input, a pipe, an untrusted folder) */
    char *place;
    const char *name; /* part of place */
};

/* Facts of a reading besides the matrix, at the end of the cached file, little-endian, without
 * gaps. */
struct cache_facts {
    char magic[8];
    /* as in spmv_read_info, except version; so are the next three */
    uint32_t version, field, symmetry, array;
    int64_t bytes, entries, duplicates;
    int64_t warnings_bytes;
    char warnings[TEXT_WARNINGS]; /* as in text_source */
    uint64_t sum;                 /* checksum of all members before it */
};

/* Makes the key of the file at path, opened as fd, for values of the type. It consists of the
 * file's absolute path, its name as given (which selects the matrix of an archive), size, time and
 * a checksum of all bytes, which are read for this. Warns of an untrusted folder. Call
 * cache_key_free also after an error. */
spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key);
void cache_key_free(struct cache_key *key);

/* Reads the cached matrix and its facts. *matrix is NULL if there is no complete, trusted entry. */
void cache_find(spmv_context *ctx, const struct cache_key *key, spmv_type type, int64_t max_bytes, spmv_matrix **matrix,
                struct cache_facts *facts);

/* Stores the matrix. A missing folder is created with mode 0700. facts: all members except magic,
 * version and sum. Removes older entries of the same path. A failure is only a warning;
 * SPMV_CANCELLED comes from the callback. */
spmv_status cache_keep(spmv_context *ctx, const struct cache_key *key, const spmv_matrix *matrix,
                       struct cache_facts *facts);

#endif
