/* Long texts made by all threads, piece by piece, and written in order. Pieces are compressed one
 * by one; the readers of each compression join them. Where a piece ends depends on the items alone,
 * so the bytes do not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_PIECES_H
#define TEXT_PIECES_H

#include "output_file.h"
#include "packed.h"

struct text_pieces {
    /* The text of items first <= k < end at p; the byte behind it. Any thread. */
    char *(*make)(const void *user, int64_t first, int64_t end, char *p);
    const void *user;
    int64_t items;
    int64_t item_bytes; /* an item's text has at most so many */
    enum packing packing;
};

/* Writes them, with progress. Errors as output_put; SPMV_ERROR_MEMORY. */
spmv_status text_pieces_write(struct output_file *output, const struct text_pieces *text);

/* Writes n bytes of text in front of them. */
spmv_status text_pieces_head(struct output_file *output, const char *text, int64_t n, enum packing packing);

#endif
