/* The methods of the product on a GPU, in the order in which a plan tries them, and every limit of the
 * choice.
 *
 * A plan that chooses its method goes down the table and takes the first row that
 *   - can do what the plan needs (can) and is not for use by name only (why),
 *   - suits the matrix by what is known before a look at it (suits),
 *   - pays off by what its preparation counts on the device (pays),
 *   - and has the memory that it needs (prepare).
 * Each of the last three may decline with a reason, which `spmv info` prints. A method that the caller
 * names declines only where it is impossible; the plan then takes tiles or, for several vectors, columns,
 * which never decline.
 * Ranks take one method together. It follows from the facts of the whole matrix and the same table
 * (method_of_facts).
 *
 * The limits below were measured (docs/notebook/gpu-products.md). To change the choice, change a limit, a
 * function that uses it, or the order of the table.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime_cuda.h"
#include "product/plan_internal.h"

/* ------------------------------------------------------------------------- slices */

enum {
    /* Places per nonzero: with more, most of what is read are places without an entry. */
    SLICES_MOST_PLACES = 2,
    /* By name: memory sets the limit. */
    SLICES_MOST_PLACES_NAMED = 16
};

int slices_most_places(const struct facts *f)
{
    return f->ranks ? SLICE_ROWS : f->named ? SLICES_MOST_PLACES_NAMED : SLICES_MOST_PLACES;
}

double slices_bytes(const struct facts *f, double value)
{
    enum { HEAD = 8, SLOT = 16 }; /* bytes for a slice, and for a slot in its list */
    return (double)f->slots * SLICE_ROWS * value + HEAD * (double)f->slices +
           (f->many_patterns ? SLOT * (double)f->slots : 0);
}

/* The bytes that a product by rows reads of the matrix, with so many for a column and a row offset. */
static double bytes_by_rows(const struct facts *f, int column, int offset)
{
    return (double)f->nnz * (f->value_bytes + column) + (double)f->rows * offset;
}

/* Those of tiles if all columns have 16 bits. */
static double tiles_bytes(const struct facts *f)
{
    return bytes_by_rows(f, 2, f->offset_bytes);
}

static const char *slices_suits(const struct facts *f)
{
    return !f->compression                                       ? "compression is off"
           : f->nnz == 0                                         ? "no nonzeros"
           : f->rows > INT32_MAX - 2 * SLICE_ROWS && !f->whole   ? "more than 2^31 rows"
           : f->nnz < SPMV_TILES_LARGE && !f->named && !f->whole ? "a small matrix"
                                                                 : NULL;
}

static const char *slices_pays(const struct facts *f)
{
    const int most = f->whole ? (int)SLICES_MOST_PLACES : slices_most_places(f);
    return f->unsorted                                        ? "the columns of a row do not ascend"
           : f->many_slots                                    ? "neighbouring rows have different offsets"
           : f->slots > INT32_MAX && !f->whole                ? "too many slots"
           : f->named                                         ? NULL
           : f->slots * SLICE_ROWS > most * f->nnz            ? "half of the places would be empty"
           : slices_bytes(f, f->value_bytes) > tiles_bytes(f) ? "they would need more bytes"
                                                              : NULL;
}

/* --------------------------------------------------------------------------- long */

/* The least nonzeros for long: about a unit for each warp that an H200 runs at once. Tests build with
 * less. */
#ifndef SPMV_LONG_LEAST
#define SPMV_LONG_LEAST (3 << 20)
#endif

enum {
    /* The least entries per row on average. Shorter rows end so often that tiles is faster. */
    LONG_MEAN = 192,
    /* The same with x in global memory, where the gathers of a long row read lines from all over x. */
    LONG_MEAN_GLOBAL = 2000,
    /* At most one row in so many is short, because the end of a row takes a warp as long as a step. */
    LONG_MOST_SHORT = 8
};

static const char *long_suits(const struct facts *f)
{
    return f->rows > INT32_MAX            ? "more than 2^31 rows"
           : f->named                     ? NULL
           : f->nnz < SPMV_LONG_LEAST     ? "a small matrix"
           : f->rows > f->nnz / LONG_MEAN ? "rows are not long"
           : f->wants_table               ? "a table of values may save more"
                                          : NULL;
}

static const char *long_pays(const struct facts *f)
{
    return f->named ? NULL
           : !f->x_in_shared && f->rows > f->nnz / LONG_MEAN_GLOBAL
               ? "x does not fit in shared memory, or its copies do not pay off"
           : LONG_MOST_SHORT * f->short_rows > f->rows ? "many rows are short"
                                                       : NULL;
}

/* ------------------------------------------------------------------------- groups */

enum {
    /* At least one row in so many has the columns of the row before: otherwise a count is wasted. */
    GROUPS_LEAST_SAME = 3,
    /* The least entries of a group on average: a subwarp takes about as long to begin and end a group. */
    GROUPS_ENTRIES = 64,
    /* The longest row has at most so many times the mean length, because a subwarp has it alone. */
    GROUPS_MOST_TIMES = 16
};

int groups_least_same(const struct facts *f, int sampled)
{
    return f->named ? 0 : sampled / GROUPS_LEAST_SAME;
}

static const char *groups_suits(const struct facts *f)
{
    return f->value_bytes == 0                 ? "no values"
           : f->nnz == 0                       ? "no nonzeros"
           : f->nnz > INT32_MAX                ? "more than 2^31 nonzeros"
           : f->rows > INT32_MAX - GROUPS_TILE ? "more than 2^31 rows"
           : f->named                          ? NULL
           : f->nnz < SPMV_TILES_LARGE         ? "a small matrix"
           : long_suits(f) == NULL             ? "rows are long"
                                               : NULL;
}

static const char *groups_pays(const struct facts *f)
{
    const double nnz = (double)f->nnz;
    return f->named                                                         ? NULL
           : f->same < groups_least_same(f, f->sampled)                     ? "neighbouring rows have different columns"
           : nnz < (double)GROUPS_ENTRIES * (double)f->groups               ? "groups of equal rows have few entries"
           : (double)f->longest * (double)f->rows > GROUPS_MOST_TIMES * nnz ? "a row is long"
           : f->table_values > 0                                            ? "a table of values needs fewer bytes"
                                                                            : NULL;
}

/* ------------------------------------------------------------------------- padded */

/* Padded is taken if it takes at most PADDED_TIME of the time of tiles, by the bytes that both read.
 * Products of padded reach PADDED_SPEED of the memory's speed. Tiles has so many instructions that a
 * multiprocessor needs 1/3 + size / 18 clocks for a nonzero; with memory as slow as that, tiles are as
 * fast as their bytes. In the last-level cache they take PADDED_CACHED times as long. */
static const double PADDED_TIME = 0.9, PADDED_SPEED = 0.88, PADDED_CACHED = 1.25;

enum {
    /* Entries of a row on average. Shorter rows have many empty places. Longer ones keep a warp busy for
     * as long as the whole product may take. */
    PADDED_LEAST_MEAN = 16,
    PADDED_MOST_MEAN = LONG_MEAN,
    PADDED_MOST_NAMED = 16 /* by name: times the bytes of tiles; memory sets the limit */
};

double padded_most_bytes(const struct facts *f)
{
    const double in_tiles = tiles_bytes(f);
    const double clocks = 1.0 / 3 + (double)f->value_bytes / 18;
    const double of_memory = clocks * PADDED_SPEED * f->memory_speed * (double)f->nnz / in_tiles;
    const double least = in_tiles <= (double)f->cache_bytes ? PADDED_CACHED : 1.0;
    return f->named ? PADDED_MOST_NAMED : PADDED_TIME * (of_memory > least ? of_memory : least);
}

static const char *padded_suits(const struct facts *f)
{
    return !f->compression                              ? "compression is off"
           : f->nnz == 0                                ? "no nonzeros"
           : f->value_bytes == 0                        ? "no values"
           : f->rows > (int64_t)INT32_MAX * PADDED_ROWS ? "too many rows"
           : f->named                                   ? NULL
           : f->nnz < SPMV_TILES_LARGE                  ? "a small matrix"
           : f->rows > f->nnz / PADDED_LEAST_MEAN       ? "rows are short"
           : f->rows <= f->nnz / PADDED_MOST_MEAN       ? "rows are long"
                                                        : NULL;
}

static const char *padded_pays(const struct facts *f)
{
    return padded_most_bytes(f) <= 1       ? "tiles are as fast as the memory"
           : f->table_values > 0           ? "a table of values"
           : f->uneven                     ? "too many places would be empty"
           : f->plain_slices && f->borrows ? "new values would be borrowed, and slices have columns all over x"
           : !f->named && f->padded_bytes > padded_most_bytes(f) * tiles_bytes(f) ? "they would need more bytes"
                                                                                  : NULL;
}

/* ------------------------------------------------------------------------ blocked */

enum {
    /* Both launches take as long for a nonzero as tiles takes for the bytes that they move and so many
     * more, on an H100. */
    BLOCKED_OVERHEAD = 16,
    BLOCKED_LEAST_GAIN = 15 /* percent of their time that tiles takes longer */
};

static const char *blocked_suits(const struct facts *f)
{
    return f->named                                      ? NULL
           : f->complex_values                           ? "complex values"
           : !f->compression                             ? "compression is off"
           : f->wants_table                              ? "a table of values may save more"
           : f->nnz == 0                                 ? "no nonzeros"
           : f->cols * f->vector_bytes <= f->cache_bytes ? "x fits in the last-level cache"
                                                         : NULL;
}

/* Compares the bytes for each nonzero, without what both read of the matrix and its rows. A run is taken
 * to be as long as if columns were evenly distributed. */
static const char *blocked_pays(const struct facts *f)
{
    const double size = f->vector_bytes, nnz = (double)f->nnz, cols = (double)f->cols;
    const double run = fmax(1.0, (double)f->tile_entries * fmin(1.0, f->block_columns / cols));
    const double of_tiles = 4 + f->x_bytes;
    const double here = 4 + 2 * size + (SECTOR_BYTES + (double)f->offset_bytes) / run + cols * size / nnz;
    return f->named || 100 * of_tiles > (100 + BLOCKED_LEAST_GAIN) * (here + BLOCKED_OVERHEAD)
               ? NULL
               : "gathers find much of x in the caches";
}

/* ------------------------------------------- panels, abreast, octets and wide */

enum {
    /* Vectors: with fewer, the lanes of columns load as much of x at once. */
    WIDE_LEAST = 8,
    /* Bytes of a row of x, and vectors, up to which octets, and columns if rows are alike, are faster than wide. */
    OCTETS_MOST_BYTES = 64,
    OCTETS_MOST = 16
};

static bool takes_octets(const struct facts *f)
{
    return f->vectors <= OCTETS_MOST && f->vectors * f->vector_bytes <= OCTETS_MOST_BYTES;
}

/* Bytes of a row of x. */
static double row_bytes(const struct facts *f)
{
    return (double)f->vectors * f->vector_bytes;
}

/* What a pass over the matrix moves: entries, `gathered` rows of x and the rows of y, of which it has at most `block`
 * bytes at a time. */
static double pass_bytes(const struct facts *f, double gathered, int block)
{
    return bytes_by_rows(f, 4, f->offset_bytes) + fmin(row_bytes(f), block) * (gathered + (double)f->rows);
}

enum {
    /* Bytes of a row of x that abreast has at a time: more of them need fewer lookups, but then fewer rows of x are in
     * the last-level cache. With up to ABREAST_NARROW, lanes suffice for all at once. */
    ABREAST_NARROW = 128,
    ABREAST_WIDE = 256
};

enum {
    /* The least bytes of as many rows of x as the matrix has: a subwarp has a panel and as many lanes as a row of x has
     * packs of 16 bytes, and these must fill a quarter of the device; all of it with two lanes, for which columns is
     * nearly as fast. */
    PANELS_LEAST_BYTES = 2 * SPMV_TILES_LARGE,
    PANELS_LEAST_BYTES_OF_TWO = 8 * SPMV_TILES_LARGE,
    /* Columns of panels for a hundred entries: with more, few rows of x serve several rows. Rows of x of up to
     * ABREAST_NARROW bytes stay in the first-level cache, so abreast is nearly as fast where fewer are shared. */
    PANELS_MOST_COLUMNS = 50,
    PANELS_MOST_COLUMNS_NARROW = 40,
    /* The longest panel has at most so many columns, or takes no longer than a pass, because one subwarp multiplies it:
     * a column in the time in which the device moves so many bytes through its last-level cache. */
    PANELS_LONGEST = 256,
    PANELS_COLUMN_BYTES = 640000,
    PANELS_BLOCK_BYTES = 512
};

static const char *panels_suits(const struct facts *f)
{
    const double bytes = (double)f->rows * row_bytes(f);
    return f->far_rows                 ? "rows of x are 2^32 bytes or more apart"
           : f->nnz > INT32_MAX        ? "2^31 nonzeros or more"
           : f->named                  ? NULL
           : !f->compression           ? "compression is off"
           : f->vectors < WIDE_LEAST   ? "few vectors"
           : f->nnz < SPMV_TILES_LARGE ? "a small matrix"
           : bytes < (row_bytes(f) < 64 ? PANELS_LEAST_BYTES_OF_TWO : PANELS_LEAST_BYTES)
               ? "too few rows for so few vectors"
               : NULL;
}

static const char *panels_pays(const struct facts *f)
{
    const double pass = pass_bytes(f, f->panel_columns * (double)f->nnz, PANELS_BLOCK_BYTES);
    const int most = row_bytes(f) <= ABREAST_NARROW ? PANELS_MOST_COLUMNS_NARROW : PANELS_MOST_COLUMNS;
    return f->named                        ? NULL
           : 100 * f->panel_columns > most ? "neighbouring rows share few columns"
           : f->longest_panel > PANELS_LONGEST && (double)f->longest_panel * PANELS_COLUMN_BYTES > pass
               ? "a row is far longer than the others"
               : NULL;
}

enum {
    /* Nonzeros and rows: a warp goes on beyond the ends of its shorter rows, with numbers of 32 bits. */
    ABREAST_MOST = 1 << 30,
    /* A subwarp multiplies 8 entries in the time in which the device moves 5 MB through its last-level cache: 0.7 us on
     * an H200. The longest row takes at most a third of the time of a pass over the matrix. */
    ABREAST_ENTRY_BYTES = 3 * 640000,
    /* A subwarp loads 8 rows of x together: with fewer entries in a row, most of them are for nothing. */
    ABREAST_LEAST_MEAN = 4,
    /* Rows of a warp, each taken as long as the longest of them, have at most so many entries for a hundred. With two
     * lanes a warp has 16 rows, and columns is ahead where they differ or are long. */
    ABREAST_MOST_PLACES = 175,
    ABREAST_MOST_PLACES_OF_TWO = 140,
    ABREAST_MEAN_OF_TWO = 32
};

static int abreast_bytes(const struct facts *f)
{
    return row_bytes(f) <= ABREAST_NARROW || f->mean_span * ABREAST_WIDE > (double)f->cache_bytes ? ABREAST_NARROW
                                                                                                  : ABREAST_WIDE;
}

int abreast_lanes_log(const struct facts *f)
{
    int log = 1;
    while (16 << log < abreast_bytes(f) && 16 << log < row_bytes(f))
        log++;
    return log;
}

bool abreast_in_blocks(const struct facts *f)
{
    return row_bytes(f) > ABREAST_NARROW;
}

static const char *abreast_suits(const struct facts *f)
{
    return f->far_rows               ? "rows of x are 2^32 bytes or more apart"
           : f->nnz == 0             ? "no nonzeros"
           : f->nnz > ABREAST_MOST   ? "more than 2^30 nonzeros"
           : f->rows > ABREAST_MOST  ? "more than 2^30 rows"
           : f->named                ? NULL
           : f->vectors < WIDE_LEAST ? "few vectors"
           : row_bytes(f) < 32       ? "few bytes of x"
                                     : NULL;
}

void facts_of_rows(struct facts *f, const struct row_counts *found)
{
    f->longest = (int64_t)found->longest;
    f->abreast_places = (double)found->places;
    f->mean_span = (double)found->spans / (double)f->rows;
}

const char *rows_unfit(const struct facts *f, int block_bytes)
{
    const double nnz = (double)f->nnz, rows = (double)f->rows;
    return (double)f->longest * ABREAST_ENTRY_BYTES > pass_bytes(f, nnz, block_bytes)
               ? "a row is long for so few gathers"
           : nnz < ABREAST_LEAST_MEAN * rows                     ? "rows are short"
           : 100 * f->abreast_places > ABREAST_MOST_PLACES * nnz ? "neighbouring rows differ in length"
                                                                 : NULL;
}

static const char *abreast_pays(const struct facts *f)
{
    const double nnz = (double)f->nnz;
    const char *const unfit = rows_unfit(f, abreast_bytes(f));
    const bool two = abreast_lanes_log(f) == 1;
    return f->named                                                            ? NULL
           : unfit != NULL                                                     ? unfit
           : two && nnz > ABREAST_MEAN_OF_TWO * (double)f->rows                ? "rows are long, and few bytes of x"
           : two && 100 * f->abreast_places > ABREAST_MOST_PLACES_OF_TWO * nnz ? "neighbouring rows differ in length"
                                                                               : NULL;
}

static const char *octets_suits(const struct facts *f)
{
    return f->far_rows               ? "rows of x are 2^32 bytes or more apart"
           : f->rows > INT32_MAX     ? "more than 2^31 rows"
           : f->named                ? NULL
           : f->vectors < WIDE_LEAST ? "few vectors"
           : !takes_octets(f)        ? "more than 64 bytes or 16 vectors in a row of x"
                                     : NULL;
}

static const char *octets_pays(const struct facts *f)
{
    return f->named || (double)f->longest * (double)f->rows > ROWS_ALIKE * (double)f->nnz
               ? NULL
               : "rows are alike, and few bytes of x";
}

static const char *wide_suits(const struct facts *f)
{
    return f->far_rows               ? "rows of x are 2^32 bytes or more apart"
           : f->named                ? NULL
           : f->vectors < WIDE_LEAST ? "few vectors"
           : takes_octets(f)         ? "rows are alike, and few bytes of x"
                                     : NULL;
}

/* ---------------------------------------------------------------------- the table */

const struct spmv_method cuda_methods[] = {
    {.name = "slices",
     .why = "neighbouring rows have the same offsets, which slices of rows store once",
     .can = METHOD_MIXED | METHOD_TABLE | METHOD_EPILOGUE | METHOD_RANKS | METHOD_SUBSETS | METHOD_HALF,
     .suits = slices_suits,
     .pays = slices_pays,
     .count = slices_cuda_count,
     .prepare = slices_cuda_prepare,
     .update = slices_cuda_update,
     .apply = slices_cuda_apply,
     .dot_parts = slices_cuda_parts,
     .part_rows = PLAN_TILE_ROWS,
     .release = slices_cuda_release},
    {.name = "long",
     .why = "rows have hundreds of entries: warps sum units of equal work in registers",
     .can = METHOD_MIXED,
     .suits = long_suits,
     .pays = long_pays,
     .prepare = long_cuda_prepare,
     .apply = long_cuda_apply,
     .release = long_cuda_release},
    {.name = "groups",
     .why = "neighbouring rows have equal columns, which groups of rows read once",
     .can = METHOD_MIXED | METHOD_EPILOGUE | METHOD_RANKS,
     .suits = groups_suits,
     .pays = groups_pays,
     .count = groups_cuda_count,
     .prepare = groups_cuda_prepare,
     .apply = groups_cuda_apply,
     .dot_parts = groups_cuda_parts,
     .release = groups_cuda_release},
    {.name = "padded",
     .why = "neighbouring rows have nearly the same length, and their columns are near to each other",
     .can = METHOD_MIXED | METHOD_EPILOGUE | METHOD_RANKS | METHOD_HALF,
     .suits = padded_suits,
     .pays = padded_pays,
     .count = padded_cuda_count,
     .prepare = padded_cuda_prepare,
     .update = padded_cuda_update,
     .apply = padded_cuda_apply,
     .dot_parts = padded_cuda_parts,
     .part_rows = PADDED_BLOCK_ROWS,
     .release = padded_cuda_release},
    {.name = "blocked",
     .why = "gathers from all over an x larger than the last-level cache; blocks of columns keep them in shared memory",
     .can = METHOD_MIXED | METHOD_COMPLEX,
     .suits = blocked_suits,
     .pays = blocked_pays,
     .prepare = blocked_cuda_prepare,
     .update = blocked_cuda_update,
     .apply = blocked_cuda_apply,
     .release = blocked_cuda_release},
    {.name = "tiles", /* for every matrix: the one that never declines */
     .why = "tiles of whole rows keep all threads busy whatever the row lengths, in one launch",
     .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_TABLE | METHOD_EPILOGUE | METHOD_RANKS | METHOD_HALF,
     .prepare = tiles_cuda_prepare,
     .update = tiles_cuda_update,
     .apply = tiles_cuda_apply,
     .dot_parts = tiles_cuda_parts,
     .release = tiles_cuda_release},
    {.name = "panels", /* for many vectors */
     .why = "neighbouring rows share columns, so a row of x that is loaded once serves several rows",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_HALF,
     .suits = panels_suits,
     .pays = panels_pays,
     .prepare = panels_cuda_prepare,
     .update = panels_cuda_update,
     .apply = panels_cuda_apply,
     .release = panels_cuda_release},
    {.name = "abreast", /* for many vectors */
     .why = "neighbouring rows are about equally long, so a block multiplies them in step and they share rows of x",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_HALF,
     .suits = abreast_suits,
     .pays = abreast_pays,
     .prepare = abreast_cuda_prepare,
     .apply = abreast_cuda_apply,
     .release = abreast_cuda_release},
    {.name = "octets", /* for several vectors */
     .why = "lanes work on 16 bytes of a row of x, in octets of entries, of which a warp multiplies several at once",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_HALF,
     .suits = octets_suits,
     .pays = octets_pays,
     .prepare = octets_cuda_prepare,
     .apply = octets_cuda_apply,
     .release = octets_cuda_release},
    {.name = "wide", /* for many vectors */
     .why = "lanes work on 16 bytes of a row of x, in shares of equal work whatever the row lengths",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_HALF,
     .suits = wide_suits,
     .prepare = wide_cuda_prepare,
     .apply = wide_cuda_apply,
     .release = wide_cuda_release},
    {.name = "columns", /* for a few vectors and for strides: the one that never declines */
     .why = "lanes work on adjacent columns of x, so the matrix is read once for all of them",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_HALF,
     .prepare = columns_cuda_prepare,
     .apply = columns_cuda_apply,
     .column_parts = columns_cuda_parts,
     .release = columns_cuda_release},
    /* by name only: the steps that lead to tiles */
    {.name = "scalar", .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_RANKS, .apply = scalar_cuda_apply},
    {.name = "vector", .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_RANKS, .apply = vector_cuda_apply},
    {.name = "fused",
     .can = METHOD_MIXED | METHOD_COMPLEX,
     .prepare = fused_cuda_prepare,
     .apply = fused_cuda_apply,
     .release = fused_cuda_release},
    {.name = "staged", .prepare = staged_prepare, .apply = staged_apply, .release = staged_release},
    {.name = NULL}};
_Static_assert(sizeof cuda_methods / sizeof cuda_methods[0] <= PLAN_MOST_METHODS, "a plan keeps a reason for each");

void plan_find_facts_cuda(spmv_plan *plan)
{
    const spmv_csr *const a = &plan->a;
    plan->facts = (struct facts){.rows = a->rows,
                                 .cols = a->cols,
                                 .nnz = a->nnz,
                                 .value_bytes = a->val != NULL ? (int)spmv_type_size(a->type) : 0,
                                 .vector_bytes = (int)spmv_type_size(plan->type),
                                 .offset_bytes = a->row_ptr_bits / 8,
                                 .vectors = plan->vectors,
                                 .far_rows = plan->x_stride > UINT32_MAX / (int64_t)spmv_type_size(plan->type),
                                 .cache_bytes = ((const struct cuda_state *)plan->ctx->device)->cache_bytes,
                                 .complex_values = type_is_complex(plan->type),
                                 .compression = plan->compression != SPMV_COMPRESSION_NONE,
                                 .wants_table = plan->compression == SPMV_COMPRESSION_VALUES && a->val != NULL &&
                                                !type_is_half(a->type),
                                 .borrows = plan->updates && plan->val == NULL,
                                 .named = plan->named,
                                 .ranks = plan->ranks != NULL};
}

void plan_values_changed_cuda(spmv_plan *plan)
{
    plan->values_unseen = plan->values_unseen || cuda_is_capturing(plan->ctx);
    cuda_next_in_order(plan->ctx);
}
