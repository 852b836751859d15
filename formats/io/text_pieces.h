/* Makes long texts with all threads, piece by piece, and writes them in order. Pieces are
 * compressed one by one; readers of each compression join them. The end of a piece depends only on
 * the items, so the bytes do not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_PIECES_H
#define TEXT_PIECES_H

#include "output_file.h"
#include "packed.h"

struct text_pieces {
    /* Writes the text of items first <= k < end at p; returns the byte after it. Called from any
     * thread. */
    char *(*make)(const void *user, int64_t first, int64_t end, char *p);
    const void *user;
    int64_t items;
    int64_t item_bytes; /* upper bound for the text of an item */
    enum compression compression;
};

/* Writes all pieces, with progress. Errors: as output_put; SPMV_ERROR_MEMORY. */
spmv_status text_pieces_write(struct output_file *output, const struct text_pieces *text);

/* Writes n bytes of text before the pieces. */
spmv_status text_pieces_head(struct output_file *output, const char *text, int64_t n, enum compression compression);

#endif
