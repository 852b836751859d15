/* Entries of a coordinate file, which ranks have read in parts, on their way to the ranks that make
 * rows of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_ENTRIES_H
#define GROUP_ENTRIES_H

#include "distributed/group_internal.h"
#include "formats/coo/coo_buckets.h"

/* The entries that a rank has read so far. The text is read in turns; in each turn the ranks read
 * parts of it that follow one another. */
struct group_entries {
    spmv_group *group;
    struct coo_buckets buckets; /* the same ones on all ranks */
    int64_t turns;
    int64_t *told;    /* of each bucket: entries up to the last turn */
    uint32_t *counts; /* turns x buckets: entries of each turn */
    int64_t room;     /* turns that fit */
};

/* The matrix whose entries are read; entries: an estimate. Call group_entries_free in any case. */
spmv_status group_entries_begin(spmv_group *group, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                                int64_t entries, struct group_entries *e);
void group_entries_free(struct group_entries *e);

/* Ends a turn. */
spmv_status group_entries_turn(struct group_entries *e);

/* Together: sends the entries to their ranks. Each gets consecutive rows with an equal share of
 * rows and entries, and makes a matrix of them, as coo_buckets_matrix. The entries of e are
 * released. duplicates[0], [1]: of all ranks, as all and lower of struct repeats. */
spmv_status group_entries_matrix(struct group_entries *e, int64_t max_bytes, spmv_matrix **matrix,
                                 int64_t duplicates[2]);

#endif
