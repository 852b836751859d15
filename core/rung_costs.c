/* The costs and the source files of the rungs: one table, which spmv_rung_describe returns.
 * docs/ladder.md repeats the rows of scan; a test compares them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/runtime.h"

/* n: elements; B: elements of a block; p: threads. Rungs of several backends may share a name; they
 * then share a row, with the source file of the first backend. */
static const struct row {
    const char *primitive, *rung, *source, *work, *depth;
} rows[] = {
    {"scan", "sequential", "primitives/scan/scan_0_definition.cuh", "n - 1", "n - 1"},
    {"scan", "definition", "primitives/scan/scan_0_definition.cuh", "n (n - 1) / 2", "n - 1"},
    {"scan", "hillis-steele", "primitives/scan/scan_1_hillis_steele.cuh", "n log2 B - n + n/B",
     "2 log2 B barriers per level"},
    {"scan", "hillis-steele-double", "primitives/scan/scan_1_hillis_steele.cuh", "n log2 B - n + n/B",
     "log2 B barriers per level"},
    {"scan", "blelloch-divergent", "primitives/scan/scan_2_blelloch.cuh", "2 n per level", "2 log2 B per level"},
    {"scan", "blelloch", "primitives/scan/scan_2_blelloch.cuh", "2 n per level", "2 log2 B per level"},
    {"scan", "reduce-scan", "primitives/scan/scan_3_chunks.cuh", "2 n", "n / 2^19 + log"},
    {"scan", "chained", "primitives/scan/scan_4_chained.cuh", "3 n", "block scan + n / B"},
    {"scan", "look-back", "primitives/scan/scan_5_lookback.cuh", "2 n", "a tile + n / tile"},
    {"scan", "single-pass", "primitives/scan/scan_6_pipeline.cuh", "2 n", "a tile + n / tile"},
    {"scan", "tiles", "primitives/scan/scan_omp.c", "2 n", "n / threads"},
    /* segmented scan: its other rungs are those of scan, on pairs */
    {"segscan", "serial", "primitives/segscan/segscan_ref.c", "n - 1", "n - 1"},
    {"segscan", "reduce-scan", "primitives/segscan/segscan_3_chunks.cuh", "2 n", "n / 2^19 + log"},
    {"segscan", "single-pass", "primitives/segscan/segscan_6_pipeline.cuh", "2 n", "a tile + n / tile"},
    {"segscan", "tiles", "primitives/segscan/segscan_omp.c", "2 n", "n / threads"},
    {"reduce", "serial", "primitives/reduce/reduce_ref.c", "n - 1", "n - 1"},
    {"reduce", "tree", "primitives/reduce/reduce_1_tree.cuh", "n - 1", "log2 n"},
    {"reduce", "divergent", "primitives/reduce/reduce_2_block.cuh", "n - 1", "log2 n"},
    {"reduce", "sequential", "primitives/reduce/reduce_2_block.cuh", "n - 1", "log2 n"},
    {"reduce", "chunked", "primitives/reduce/reduce_3_chunked.cuh", "n - 1", "n / p + log2 p"},
    {"reduce", "atomic", "primitives/reduce/reduce_4_atomic.cuh", "n - 1", "n / p + log2 256 + blocks"},
    {"reduce", "shuffles", "primitives/reduce/reduce_5_shuffles.cuh", "n - 1", "n / 2^19 + log"},
    {"reduce", "packs", "primitives/reduce/reduce_6_packs.cuh", "n - 1", "n / 2^19 + log"},
    {"reduce", "tiles", "primitives/reduce/reduce_omp.c", "n - 1", "n / threads"},
    {"expand", "scatter", "primitives/compact/expand_1_scatter.cuh", "n + total", "most outputs of an element"},
    {"expand", "gather", "primitives/compact/expand_2_gather.cuh", "n + total log2 n", "log2 n"},
    {"gather", "direct", "primitives/gather/gather_1_direct.cuh", "n", "1"},
    {"sort", "definition", "primitives/sort/sort_ref.c", "n log2 n", "n log2 n"},
    {"sort", "tiles", "primitives/sort/sort_omp.c", "2 n each digit", "n / threads, each digit"},
    {"sort", "split", "primitives/sort/sort_1_split.cuh", "4 n each bit", "that of a scan, each bit"},
    {"sort", "radix", "primitives/sort/sort_2_radix.cuh", "30 n each digit of 8 bits", "n / 2^19 + log, each digit"},
    {"sort", "onesweep", "primitives/sort/sort_3_onesweep.cuh", "25 n each digit of 8 bits", "n / 2^21, each digit"},
    {"histogram", "definition", "primitives/histogram/histogram_ref.c", "n", "n"},
    {"histogram", "pieces", "primitives/histogram/histogram_omp.c", "n + threads bins", "n / threads + bins"},
    {"histogram", "atomic", "primitives/histogram/histogram_1_atomic.cuh", "n", "that of the fullest bin"},
    {"histogram", "private", "primitives/histogram/histogram_2_private.cuh", "n + blocks bins",
     "that of a block's fullest bin + blocks"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct row *find(const char *primitive, const char *rung, size_t length)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].primitive, primitive) == 0 && strlen(rows[i].rung) == length &&
            memcmp(rows[i].rung, rung, length) == 0)
            return &rows[i];
    return strcmp(primitive, "segscan") == 0 ? find("scan", rung, length) : NULL;
}

spmv_status spmv_rung_describe(spmv_context *ctx, const char *primitive, const char *rung, spmv_rung_info *info,
                               size_t size)
{
    const spmv_status st = result_begin(ctx, "spmv_rung_describe", info, size);
    if (st != SPMV_OK)
        return st;
    if (primitive == NULL || rung == NULL)
        return context_need(ctx, "spmv_rung_describe", primitive == NULL ? "primitive" : "rung", NULL);
    const struct row *const row = find(primitive, rung, strcspn(rung, ":"));
    if (row == NULL)
        return context_fail(ctx, SPMV_ERROR_METHOD, "spmv_rung_describe: %.32s has no rung \"%.64s\"", primitive, rung);
    const spmv_rung_info full = {.size = sizeof full, .source = row->source, .work = row->work, .depth = row->depth};
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}
