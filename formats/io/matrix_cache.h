/* Matrices kept in the binary form in a folder, so that a file is parsed once.
 *
 * What others can write to is not trusted: the folder and its entries are used only where they belong to the effective
 * user and nobody else may write to them. The folder must be no link, an entry a regular file. A folder that fails this
 * is left alone, with a warning; an entry that does is replaced.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_CACHE_H
#define MATRIX_CACHE_H

#include <spmv/io.h>

#include "text_source.h"

/* Where the matrix of a file is kept: the name of the entry tells whether it is that of the file as it is now. */
struct cache_key {
    char *folder;     /* without a slash at its end */
    char *place;      /* folder/name; NULL: nowhere (standard input, a pipe, a folder that is not to be trusted) */
    const char *name; /* in place */
};

/* The facts of a reading beside the matrix. They stand at the end of the kept file, little-endian, without gaps. */
struct cache_facts {
    char magic[8];
    uint32_t version, field, symmetry, array; /* all but version as in spmv_read_info; so are the next three */
    int64_t bytes, entries, duplicates;
    int64_t warnings_bytes;
    char warnings[TEXT_WARNINGS]; /* as in text_source */
    uint64_t sum;                 /* checksum of all members before it */
};

/* Makes the key of the file at path, opened as fd, for values of the type. It is made of the file's whole path, its
 * name as given (which decides what the matrix of an archive is), its size, its time and a checksum of all its bytes,
 * which are read for that. Warns of a folder that is not to be trusted. cache_key_free in any case. */
spmv_status cache_key_make(spmv_context *ctx, const char *folder, const char *path, int fd, spmv_type type,
                           struct cache_key *key);
void cache_key_free(struct cache_key *key);

/* Reads the kept matrix and its facts. *matrix is NULL when there is none, or none that is whole and trusted. */
void cache_find(spmv_context *ctx, const struct cache_key *key, spmv_type type, int64_t max_bytes, spmv_matrix **matrix,
                struct cache_facts *facts);

/* Keeps the matrix, in a folder that is made with mode 0700 where it is missing. facts: all but magic, version and sum.
 * Removes what was kept of the same path before. A failure is a warning; SPMV_CANCELLED comes from its callback. */
spmv_status cache_keep(spmv_context *ctx, const struct cache_key *key, const spmv_matrix *matrix,
                       struct cache_facts *facts);

#endif
