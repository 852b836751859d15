/* Long texts made by all threads, piece by piece, and written in order; compressed, a piece is one that gzip's readers
 * join.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_PIECES_H
#define TEXT_PIECES_H

#include "output_file.h"

struct text_pieces {
    /* The text of items first <= k < end at p; the byte behind it. Any thread. */
    char *(*make)(const void *user, int64_t first, int64_t end, char *p);
    const void *user;
    int64_t items;
    int64_t item_bytes; /* an item's text has at most so many */
    bool gzip;
};

/* Writes them, with progress. Errors as output_put; SPMV_ERROR_MEMORY. */
spmv_status text_pieces_write(struct output_file *output, const struct text_pieces *text);

/* Writes n bytes of text in front of them. */
spmv_status text_pieces_head(struct output_file *output, const char *text, int64_t n, bool gzip);

/* Whether the name of a file says that its text is compressed: *gzip. SPMV_ERROR_UNSUPPORTED without libarchive. */
spmv_status text_pieces_gzip(spmv_context *ctx, const char *path, bool *gzip);

/* Whether a path ends so and has a name before it. */
bool path_ends_with(const char *path, const char *ending);

#endif
