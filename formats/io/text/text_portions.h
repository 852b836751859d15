/* Makes long texts with all threads, portion by portion, and writes them in order. Portions are
 * compressed one by one; readers of each compression join them. The end of a portion depends only on
 * the items, so the bytes do not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_PORTIONS_H
#define TEXT_PORTIONS_H

#include "formats/io/output_file.h"
#include "formats/io/packed/packed.h"

struct text_portions {
    /* Writes the text of items first <= k < end at p; returns the byte after it. Called from any
     * thread. */
    char *(*make)(const void *user, int64_t first, int64_t end, char *p);
    const void *user;
    int64_t items;
    int64_t item_bytes; /* upper bound for the text of an item */
    enum compression compression;
};

/* Writes all portions, with progress. Errors: as output_put; SPMV_ERROR_MEMORY. */
spmv_status text_portions_write(struct output_file *output, const struct text_portions *text);

/* Writes n bytes of text before the portions. */
spmv_status text_portions_head(struct output_file *output, const char *text, int64_t n, enum compression compression);

#endif
