/* Reads matrices and vectors from text in memory, and matrices with several ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MTX_READ_H
#define MTX_READ_H

#include <spmv/io.h>

#include "formats/io/mtx/mtx_header.h"

/* As spmv_matrix_read, spmv_vector_read and spmv_vectors_read, for size bytes at text (not NULL)
 * instead of a file. name: for messages. max_bytes: as in spmv_read_options. */
spmv_status matrix_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size,
                               const spmv_read_options *options, spmv_matrix **matrix, spmv_read_info *info,
                               size_t info_size);
spmv_status vector_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                               int64_t max_bytes, void **host_values, int64_t *n);
spmv_status vectors_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                                int64_t max_bytes, void **host_values, int64_t *n, int64_t *k);

/* How several ranks read a file. Rank 0 calls matrix_read_shared; the functions are called when it
 * is known what the file holds, and make the rows that rank 0 gets. */
struct read_sharing {
    void *self;
    int ranks;
    /* The entries of a coordinate file, which follow in the source. */
    spmv_status (*coordinates)(void *self, struct text_source *source, const struct mtx_header *header, spmv_type type,
                               int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates);
    /* A file in binary form, opened as fd. *taken false: the caller reads the whole file. */
    spmv_status (*binary)(void *self, const char *name, int fd, int64_t bytes, spmv_type type, spmv_matrix **matrix,
                          bool *taken);
};

/* As spmv_matrix_read. Arrays, and files with a cache, are read as a whole. max_bytes: for each
 * rank. */
spmv_status matrix_read_shared(spmv_context *ctx, const char *path, const spmv_read_options *options,
                               const struct read_sharing *sharing, spmv_matrix **matrix, spmv_read_info *info,
                               size_t info_size);

#endif
