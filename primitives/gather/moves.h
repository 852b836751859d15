/* Shared by gather and scatter: the public fronts, and for the host backends the loops over ranges
 * of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOVES_H
#define MOVES_H

#include "core/backend.h"

enum move_kind { MOVE_GATHER, MOVE_SCATTER };

/* Check the arguments and move all elements, those with a mask, or those that a predicate takes.
 * ctx may be NULL. */
spmv_status move_all(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move);
spmv_status move_masked(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move,
                        const uint8_t *mask);
spmv_status move_if(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move,
                    spmv_predicate predicate, int when, const void *host_scalar);

/* The loop for from <= i < to; with a filter, to - from <= HOST_TILE. */
typedef void move_range(const struct move *move, int64_t from, int64_t to);
move_range gather_range;
move_range scatter_range;

/* Runs the ranges of a move one after the other, or distributes them over the threads of a team. */
void move_serially(const struct move *move, move_range *range);
void move_in_tiles(const spmv_context *ctx, const struct move *move, move_range *range);

#endif
