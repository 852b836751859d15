/* The analysis of the matrix for method "tiles" of the backend omp (see spmv_omp.c): where the
 * tiles begin, which rows have the columns of the row before them, whether columns fit in 16 bits,
 * and whether they are scattered over x.
 *
 * One thread analyses a tile, and the place of its results is fixed by the matrix. The processor and the
 * number of threads affect only what depends on caches: 16-bit columns, streaming stores, prefetches of x.
 * None of them changes the bits of a product.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "core/threads.h"
#include "product/omp/spmv_omp_variants.h"

/* The least number of tiles of one vector that are worth a team: a single thread takes some 50 microseconds. The team
 * has all threads, since another size than that of the loop before costs far more (core/threads.h). */
enum { TILES_OF_TEAM = 16 };

/* The cost of the search for the start of a tile, in elements of a simple loop. */
enum { A_SEARCH = 256 };

/* The least number of columns that a stretch must leave unread: its start and end are mispredicted, which
 * costs as much as reading some 100 columns. Where x is far more, since only plain rows prefetch it. */
enum { LEAST_SAVED = 160, LEAST_SAVED_FAR = 640 };

/* The least number of rows of a stretch where columns are not packed. There, gaps in the columns
 * read cost more than they save in shorter stretches. */
enum { LEAST_ROWS = 16 };

/* The most stretches of a tile: a regular stretch takes more than LEAST_SAVED entries, and a plain
 * one lies between two of them. */
enum { MOST_STRETCHES = 2 * (TILE_WORK / LEAST_SAVED) + 1 };

/* Forms pay off with at least ROWS_A_FORM rows each. They replace a REGULAR stretch, which needs
 * not even a byte a row, only if it has fewer than LONG_STRETCH rows and leaves
 * FORMS_OVER_STRETCHES times fewer columns unread. */
enum { ROWS_A_FORM = 16, FORMS_OVER_STRETCHES = 2, LONG_STRETCH = 64 };

/* Sorting a stretch by length pays off with at least LEAST_SORTED rows and enough mispredicted row ends: more than one
 * for each two lengths, and at least one in so many entries. A misprediction costs some 20 cycles, reading the terms of
 * an entry again half a cycle, or a quarter if they have 4 bytes. */
enum { LEAST_SORTED = 64, ENTRIES_A_SURPRISE_OF_8 = 32, ENTRIES_A_SURPRISE_OF_4 = 128 };

/* The range of 16-bit columns. */
enum { SPAN = 1 << 16 };

/* x is far where the columns of a tile span more than FAR_CACHES times the second-level cache, at least
 * LEAST_FAR bytes, and at least every second entry lies in another 64-byte cache line than the one before it. */
enum { FAR_CACHES = 2, LEAST_FAR = 1 << 20 };

/* Lanes pay off where the values, x and y take at most seven eighths of the second-level caches of the threads. In the
 * third-level cache, rows by diagonals take as long in the order of the matrix. Where x is gathered, lanes pay off up
 * to LANES_CACHES times the second level. */
enum { LANES_CACHES = 8 };

/* Reads the number at the start of a file on a cache of the first processor; 0 if there is none. *last: the
 * number after a '-', as in "0-7". */
static int64_t cache_number(int level, const char *name, int64_t *last)
{
    char path[80], line[80] = "", *end = line;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", level, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    const int64_t number = strtoll(line, &end, 10);
    *last = *end == '-' ? strtoll(end + 1, NULL, 10) : number;
    return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

/* The files are read once in a process: a plan of a small matrix takes less time than they do. 0: not yet. Two threads
 * may both read them, and find the same. */
static atomic_llong third_level, third_level_threads, second_level;

enum { UNKNOWN = -1 };

/* The bytes of the third-level caches of this many threads. sysconf(_SC_LEVEL3_CACHE_SIZE) would
 * return the sum over the package, even where this process may use only the processors of one of
 * its caches. */
static int64_t cache_bytes(int threads)
{
    int64_t last = 0, bytes = atomic_load(&third_level);
    if (bytes == 0) {
        bytes = cache_number(3, "size", &last);
        const int64_t first = cache_number(3, "shared_cpu_list", &last);
        atomic_store(&third_level_threads, max_i64(1, last - first + 1));
        atomic_store(&third_level, bytes > 0 ? bytes : UNKNOWN);
    }
    if (bytes <= 0)
        return (int64_t)32 << 20; /* default where the system does not provide it */
    return bytes * ceil_divide(threads, max_i64(1, atomic_load(&third_level_threads)));
}

/* The bytes of the second-level cache of a processor; UNKNOWN: the system does not provide them. */
static int64_t second_level_bytes(void)
{
    int64_t last = 0, bytes = atomic_load(&second_level);
    if (bytes == 0) {
        bytes = cache_number(2, "size", &last);
        atomic_store(&second_level, bytes > 0 ? bytes : UNKNOWN);
    }
    return bytes > 0 ? bytes : UNKNOWN;
}

/* The bytes of x from which on it is far. */
static int64_t far_bytes(void)
{
    const int64_t bytes = second_level_bytes();
    return bytes != UNKNOWN ? max_i64(LEAST_FAR, FAR_CACHES * bytes) : (int64_t)4 << 20;
}

/* The matrix and x beside the caches. */
struct caches {
    bool large;        /* the matrix exceeds them */
    int64_t far_bytes; /* of x, from which on it is far */
    bool second;       /* the values, x and y fit in seven eighths of those of the second level */
};

static bool avx2_here(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* Whether the processor has AVX-512 with gather instructions that are faster than single loads: from the fourth
 * generation of Xeon on. The fix of the side channel "gather data sampling" slows down those before it, and processors of
 * other makers have slow ones; these take AVX2. */
static bool avx512_here(void)
{
#ifdef __x86_64__
    enum { AVX512_FP16 = 1 << 23 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AVX512_FP16) != 0;
#else
    return false;
#endif
}

/* The position of the merge path after the given number of steps: the first row whose end lies
 * beyond the nonzeros taken. A row end comes before the nonzero of the same number. */
static struct position path_at(const spmv_csr *a, int64_t steps)
{
    int64_t low = max_i64(0, steps - a->nnz), high = min_i64(steps, a->rows);
    while (low < high) {
        const int64_t row = low + (high - low) / 2;
        if (offset_at(a->row_ptr, a->row_ptr_bits, row + 1) <= steps - row - 1)
            low = row + 1;
        else
            high = row;
    }
    return (struct position){.row = low, .k = steps - low};
}

/* Whether the row to finish next has nonzeros before this position. */
static bool begun_before(const spmv_csr *a, struct position p)
{
    return p.row < a->rows && offset_at(a->row_ptr, a->row_ptr_bits, p.row) < p.k;
}

/* How the n columns of a row from k on follow from those of the row before: STRETCH_REGULAR, with
 * STRETCH_SHIFTED, or STRETCH_PLAIN if they do not. Rows with equal columns come in short blocks,
 * so they count only where columns are packed. */
static int follows(const int32_t *col, int64_t k, int64_t n, bool narrow)
{
    if (n == 0)
        return STRETCH_PLAIN;
    const int32_t *here = col + k, *before = col + k - n;
    const int64_t step = (int64_t)here[0] - before[0];
    if (step != 1 && !(narrow && step == 0))
        return STRETCH_PLAIN;
    for (int64_t j = 1; j < n; j++)
        if ((int64_t)here[j] - before[j] != step)
            return STRETCH_PLAIN;
    return STRETCH_REGULAR | (step == 1 ? STRETCH_SHIFTED : 0);
}

static int consecutive_of(const int32_t *col, int64_t n)
{
    for (int64_t j = 1; j < n; j++)
        if (col[j] != (int64_t)col[0] + j)
            return 0;
    return STRETCH_CONSECUTIVE;
}

static int64_t length_of(const spmv_csr *a, int64_t row)
{
    return offset_at(a->row_ptr, a->row_ptr_bits, row + 1) - offset_at(a->row_ptr, a->row_ptr_bits, row);
}

/* The result of the analysis of one tile. */
struct look {
    struct stretch stretch[MOST_STRETCHES];
    int count;
    int64_t least; /* columns that a stretch must leave unread */
    /* columns left unread in its regular stretches, and the rows of these */
    int64_t saved, regular;
    int64_t formed;          /* entries of its formed stretches, which keep no columns */
    int64_t spots, codes;    /* of its formed stretches */
    int64_t buckets, places; /* of its sorted stretches */
};

static void add_stretch(struct look *look, int64_t begin, int kind, int64_t n)
{
    if (kind == STRETCH_PLAIN && look->count > 0 && look->stretch[look->count - 1].kind == STRETCH_PLAIN)
        return;
    look->stretch[look->count++] = (struct stretch){.begin = (uint16_t)begin, .kind = (uint16_t)kind, .n = (uint16_t)n};
}

/* Adds a formed stretch of whole rows from begin on if that pays off more than a stretch that
 * leaves `saved` columns unread. Returns its end, or begin if there is none. *tried: rows before it
 * were examined without success and are skipped. */
static int64_t look_at_forms(const spmv_csr *a, int64_t first, int64_t begin, int64_t last, int64_t saved,
                             struct look *look, int64_t *tried)
{
    struct forms forms;
    const int64_t n = length_of(a, begin);
    if (begin < *tried || n == 0 || n > MOST_FORMED)
        return begin;
    const int64_t end = forms_reach(a, begin, last, &forms, NULL);
    const int64_t rows = end - begin, its = (rows - forms.count) * n;
    *tried = end;
    if (rows < ROWS_A_FORM * forms.count || its < look->least || its < FORMS_OVER_STRETCHES * saved)
        return begin;
    add_stretch(look, begin - first, STRETCH_FORMED, n);
    struct stretch *stretch = &look->stretch[look->count - 1];
    stretch->forms = (uint16_t)forms.count;
    stretch->spot = (uint16_t)look->spots;
    stretch->code = (uint16_t)look->codes;
    look->formed += rows * n;
    look->spots += forms.count * spots_of(n);
    look->codes += rows;
    return end;
}

/* Adds the stretches of whole rows first ... last - 1. Greedy: a stretch continues while the next
 * row follows in the same way as its second row. */
static void look_at_rows(const spmv_csr *a, int64_t first, int64_t last, bool narrow, struct look *look)
{
    const int bits = a->row_ptr_bits;
    int64_t tried = first;
    for (int64_t row = first; row < last;) {
        const int64_t k = offset_at(a->row_ptr, bits, row), n = length_of(a, row);
        int64_t end = row + 1;
        int kind = STRETCH_PLAIN;
        while (end < last && length_of(a, end) == n) {
            const int next = follows(a->col, k + (end - row) * n, n, narrow);
            if (next == STRETCH_PLAIN || (end > row + 1 && next != kind))
                break;
            kind = next;
            end++;
        }
        const int64_t saved = (end - row - 1) * n;
        const bool pays = saved >= look->least && (narrow || end - row >= LEAST_ROWS);
        /* Forms cannot extend beyond rows of equal length either. */
        const bool as_far = end == last || length_of(a, end) != n;
        const int64_t formed = pays && (end - row >= LONG_STRETCH || as_far)
                                   ? row
                                   : look_at_forms(a, first, row, last, pays ? saved : 0, look, &tried);
        if (formed > row) {
            end = formed;
        } else if (pays) {
            add_stretch(look, row - first, kind | consecutive_of(a->col + k, n), n);
            look->saved += saved;
            look->regular += end - row;
        } else {
            /* The last row may begin a better stretch. */
            end = max_i64(row + 1, kind == STRETCH_PLAIN ? end : end - 1);
            add_stretch(look, row - first, STRETCH_PLAIN, 0);
        }
        row = end;
    }
    if (look->saved + look->formed == 0)
        look->count = 0;
}

/* rows_of[n] = the number of whole rows first ... last - 1 of a tile with n entries. Returns the
 * length of the longest row. */
static int64_t count_lengths(const spmv_csr *a, int64_t first, int64_t last, uint16_t rows_of[TILE_WORK + 1])
{
    int64_t begin = offset_at(a->row_ptr, a->row_ptr_bits, first), longest = 0;
    memset(rows_of, 0, (TILE_WORK + 1) * sizeof *rows_of);
    for (int64_t row = first; row < last; row++) {
        const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
        rows_of[end - begin]++;
        longest = max_i64(longest, end - begin);
        begin = end;
    }
    return longest;
}

/* The number of rows whose length a branch predictor would miss. The model predicts the length that
 * followed the last time after two rows of the same lengths. */
static int64_t count_surprises(const spmv_csr *a, int64_t first, int64_t last)
{
    enum { HISTORIES = 1024 };
    uint16_t after[HISTORIES] = {0};
    int64_t begin = offset_at(a->row_ptr, a->row_ptr_bits, first), before = 0, surprises = 0;
    int64_t at = 0;
    for (int64_t row = first; row < last; row++) {
        const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1), n = end - begin;
        surprises += after[at] != n;
        after[at] = (uint16_t)n;
        at = (31 * before + n) % HISTORIES;
        before = n;
        begin = end;
    }
    return surprises;
}

/* The number of buckets of whole rows first ... last - 1 by length; 0 if sorting does not pay
 * off. */
static int64_t buckets_of(const spmv_csr *a, int64_t first, int64_t last)
{
    uint16_t rows_of[TILE_WORK + 1];
    int64_t buckets = 0;
    if (last - first < LEAST_SORTED)
        return 0;
    const int64_t surprises = count_surprises(a, first, last);
    const int64_t entries =
        offset_at(a->row_ptr, a->row_ptr_bits, last) - offset_at(a->row_ptr, a->row_ptr_bits, first);
    const bool of_8 = a->val != NULL && spmv_type_size(a->type) == 8; /* a pattern has even fewer bytes */
    if (surprises == 0 || entries > (of_8 ? ENTRIES_A_SURPRISE_OF_8 : ENTRIES_A_SURPRISE_OF_4) * surprises)
        return 0;
    const int64_t longest = count_lengths(a, first, last, rows_of);
    for (int64_t n = 0; n <= longest; n++)
        buckets += rows_of[n] != 0;
    return 2 * surprises > buckets ? buckets : 0;
}

/* Turns plain stretches of a tile's whole rows first ... last - 1 into sorted ones where that pays
 * off. */
static void look_at_lengths(const spmv_csr *a, int64_t first, int64_t last, struct look *look)
{
    if (look->count == 0)
        add_stretch(look, 0, STRETCH_PLAIN, 0);
    for (int i = 0; i < look->count; i++) {
        struct stretch *stretch = &look->stretch[i];
        const int64_t begin = first + stretch->begin;
        const int64_t end = i + 1 < look->count ? first + stretch[1].begin : last;
        const int64_t buckets = stretch->kind == STRETCH_PLAIN ? buckets_of(a, begin, end) : 0;
        if (buckets > 0) {
            stretch->kind = STRETCH_SORTED;
            stretch->n = (uint16_t)buckets;
            stretch->bucket = (uint16_t)look->buckets;
            stretch->place = (uint16_t)look->places;
            look->buckets += buckets;
            look->places += end - begin;
        }
    }
    if (look->count == 1 && look->stretch[0].kind == STRETCH_PLAIN)
        look->count = 0;
}

/* Finds the least and the greatest column of a tile and counts the entries that jump. */
static void look_at_columns(const spmv_csr *a, const struct caches *caches, struct tile *tile, int64_t value_size)
{
    const int64_t begin = tile->begin.k, end = tile[1].begin.k;
    const int near = value_size == 8 ? 3 : 4; /* 2^near values fill a cache line */
    int32_t least = begin < end ? a->col[begin] : 0, most = least;
    int64_t jumps = 0;
    for (int64_t k = begin + 1; k < end; k++) {
        const int32_t c = a->col[k];
        least = c < least ? c : least;
        most = c > most ? c : most;
        jumps += c >> near != a->col[k - 1] >> near;
    }
    tile->base = least;
    tile->narrow = begin < end && (int64_t)most - least < SPAN;
    tile->far = ((int64_t)most - least) * value_size > caches->far_bytes && 2 * jumps > end - begin;
}

/* Stores the stretches of all tiles, one tile after the other, and computes where the data of each
 * tile begin. found: the stretches of each tile, MOST_STRETCHES apart. */
static spmv_status keep_stretches(spmv_plan *plan, struct omp_tiles *tiles, const struct stretch *found)
{
    spmv_status st = SPMV_OK;
    int64_t stretches = 0, columns = 0, buckets = 0, places = 0, spots = 0, codes = 0;
    for (int64_t t = 0; t <= tiles->count; t++) {
        struct tile *tile = &tiles->tile[t];
        const struct tile its = *tile;
        tile->stretch = stretches;
        tile->col = columns;
        tile->bucket = buckets;
        tile->place = places;
        tile->spot = spots;
        tile->code = codes;
        stretches += its.stretch;
        columns += its.col;
        buckets += its.bucket;
        places += its.place;
        spots += its.spot;
        codes += its.code;
    }
    TRY(plan_alloc(plan, stretches * (int64_t)sizeof *tiles->stretch, (void **)&tiles->stretch));
    /* never NULL: pointers into them are computed for every tile */
    TRY(plan_alloc(plan, max_i64(columns, 1) * (int64_t)sizeof *tiles->col, (void **)&tiles->col));
    TRY(plan_alloc(plan, max_i64(buckets, 1) * (int64_t)sizeof *tiles->bucket, (void **)&tiles->bucket));
    TRY(plan_alloc(plan, max_i64(places, 1) * (int64_t)sizeof *tiles->place, (void **)&tiles->place));
    TRY(plan_alloc(plan, max_i64(spots, 1) * (int64_t)sizeof *tiles->spot, (void **)&tiles->spot));
    TRY(plan_alloc(plan, max_i64(codes, 1) * (int64_t)sizeof *tiles->code, (void **)&tiles->code));
    for (int64_t t = 0; t < tiles->count; t++) {
        const int64_t count = tiles->tile[t + 1].stretch - tiles->tile[t].stretch;
        if (count > 0)
            memcpy(tiles->stretch + tiles->tile[t].stretch, found + t * MOST_STRETCHES, (size_t)count * sizeof *found);
    }
done:
    return st;
}

/* Writes columns begin ... end - 1 in 16 bits and returns the position after them. */
static uint16_t *pack(const int32_t *col, int32_t base, int64_t begin, int64_t end, uint16_t *to)
{
    for (int64_t k = begin; k < end; k++)
        *to++ = (uint16_t)(col[k] - base);
    return to;
}

/* Writes the buckets and places of one stretch, whole rows begin ... end - 1 of a tile whose first
 * whole row is `first`, by a counting sort. */
static void sort_rows(const spmv_csr *a, const struct tile *tile, int64_t first, int64_t begin, int64_t end,
                      struct bucket *bucket, struct place *place)
{
    uint16_t at[TILE_WORK + 1]; /* where the next row of each length goes */
    const int64_t longest = count_lengths(a, begin, end, at);
    uint16_t rows = 0;
    for (int64_t n = 0; n <= longest; n++) {
        const uint16_t its = at[n];
        if (its != 0)
            *bucket++ = (struct bucket){.n = (uint16_t)n, .rows = its};
        at[n] = rows;
        rows = (uint16_t)(rows + its);
    }
    for (int64_t row = begin; row < end; row++) {
        const int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, row);
        const int64_t n = offset_at(a->row_ptr, a->row_ptr_bits, row + 1) - k;
        place[at[n]++] = (struct place){.row = (uint16_t)(row - first), .k = (uint16_t)(k - tile->begin.k)};
    }
}

/* Writes what the stretches of a tile keep: columns in 16 bits, buckets and places, forms. */
static void fill_tile(const spmv_csr *a, const struct omp_tiles *tiles, int64_t t)
{
    const struct tile *tile = &tiles->tile[t];
    const int64_t first = tile->begin.row + tile->begun, end = tile[1].stretch;
    const int32_t base = tile->narrow ? tile->base : 0;
    uint16_t *to = tiles->col + tile->col;
    int64_t k = tile->begin.k; /* the first entry whose column is not yet written or left out */
    for (int64_t i = tile->stretch; i < end; i++) {
        const struct stretch stretch = tiles->stretch[i];
        const int64_t row = first + stretch.begin;
        const int64_t next = i + 1 < end ? first + tiles->stretch[i + 1].begin : tile[1].begin.row;
        if (stretch.kind == STRETCH_SORTED)
            sort_rows(a, tile, first, row, next, tiles->bucket + tile->bucket + stretch.bucket,
                      tiles->place + tile->place + stretch.place);
        if (stretch.kind == STRETCH_FORMED) {
            struct forms forms;
            forms_reach(a, row, next, &forms, tiles->code + tile->code + stretch.code);
            forms_spots(a, &forms, row, stretch.n, base, tiles->spot + tile->spot + stretch.spot);
        }
        if (tile->narrow && (stretch.kind & (STRETCH_REGULAR | STRETCH_FORMED)) != 0) {
            const int64_t begin = offset_at(a->row_ptr, a->row_ptr_bits, row);
            to = pack(a->col, base, k, begin + (stretch.kind == STRETCH_FORMED ? 0 : stretch.n), to);
            k = begin + (next - row) * stretch.n;
        }
    }
    if (tile->narrow)
        pack(a->col, base, k, tile[1].begin.k, to);
}

/* The static schedule lets the threads that will read this data write it. */
static void fill_tiles(const spmv_plan *plan, const struct omp_tiles *tiles)
{
#pragma omp parallel for schedule(static) num_threads(host_team(plan->ctx, tiles->count *TILE_WORK))
    for (int64_t t = 0; t < tiles->count; t++)
        fill_tile(&plan->a, tiles, t);
}

/* Sums over all tiles: columns that stretches leave unread, columns kept in 16 bits, rows taken by
 * length, columns of rows in forms. */
struct found {
    int64_t saved, packed, sorted, formed, lanes;
};

/* The bytes that the product of a tile reads of the matrix and writes to y. */
static int64_t bytes_of(const spmv_plan *plan, const struct tile *tile, const struct look *look)
{
    const spmv_csr *a = &plan->a;
    const int64_t rows = tile[1].begin.row - tile->begin.row, entries = tile[1].begin.k - tile->begin.k;
    const int64_t stored = a->val != NULL ? (int64_t)spmv_type_size(a->type) : 0;
    const int64_t columns = entries - look->saved - look->formed, offsets = rows - look->regular - look->codes;
    return entries * stored + columns * (tile->narrow ? 2 : 4) + offsets * (a->row_ptr_bits / 8) + look->codes +
           rows * plan->vectors * (int64_t)spmv_type_size(plan->type);
}

/* Replaces the bytes of each tile by the bytes of the tiles before it. */
static void sum_bytes(struct omp_tiles *tiles)
{
    int64_t sum = 0;
    for (int64_t t = 0; t <= tiles->count; t++) {
        const int64_t its = tiles->tile[t].bytes;
        tiles->tile[t].bytes = sum;
        sum += its;
    }
}

/* Analyses all tiles. */
static spmv_status look(spmv_plan *plan, struct omp_tiles *tiles, const struct caches *caches, struct found *sum)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &plan->a;
    const int64_t value_size = (int64_t)spmv_type_size(plan->type);
    const enum spmv_compression compression = plan->compression;
    struct stretch *found = NULL;
    int64_t saved = 0, packed = 0, sorted = 0, formed = 0, lanes = 0;
    TRY(host_alloc(plan->ctx, tiles->count * MOST_STRETCHES * (int64_t)sizeof *found, "a plan", (void **)&found));
#pragma omp parallel for schedule(static) num_threads(heavy_team(plan->ctx, tiles->count * TILE_WORK))                     \
    reduction(+ : saved, packed, sorted, formed, lanes)
    for (int64_t t = 0; t < tiles->count; t++) {
        struct look look = {.count = 0};
        struct tile *tile = &tiles->tile[t];
        const int64_t entries = tile[1].begin.k - tile->begin.k;
        look_at_columns(a, caches, tile, value_size);
        const int64_t in_lanes = tiles->lanes.tile != NULL && !tile->far ? lanes_look(a, tiles, t, !caches->second) : 0;
        if (in_lanes > 0) {
            tile->narrow = false; /* in the loops for other tiles */
            tile->bytes = in_lanes + (tile[1].begin.row - tile->begin.row) * value_size;
            lanes += entries;
            continue;
        }
        look.least = tile->far ? LEAST_SAVED_FAR : LEAST_SAVED;
        if (compression != SPMV_COMPRESSION_NONE)
            look_at_rows(a, tile->begin.row + tile->begun, tile[1].begin.row, tile->narrow, &look);
        look_at_lengths(a, tile->begin.row + tile->begun, tile[1].begin.row, &look);
        memcpy(found + t * MOST_STRETCHES, look.stretch, (size_t)look.count * sizeof *found);
        /* Writing packed columns costs as much as two products save. So if the matrix fits in the
         * caches, columns are packed only where few of them are kept. */
        tile->narrow =
            tile->narrow && compression != SPMV_COMPRESSION_NONE &&
            (compression == SPMV_COMPRESSION_COLUMNS || caches->large || 2 * (look.saved + look.formed) >= entries);
        tile->stretch = look.count;
        tile->col = tile->narrow ? entries - look.saved - look.formed : 0;
        tile->bucket = look.buckets;
        tile->place = look.places;
        tile->spot = look.spots;
        tile->code = look.codes;
        tile->bytes = bytes_of(plan, tile, &look);
        saved += look.saved;
        formed += look.formed;
        packed += tile->col;
        sorted += look.places;
    }
    *sum = (struct found){.saved = saved, .packed = packed, .sorted = sorted, .formed = formed, .lanes = lanes};
    TRY(lanes_keep(plan, tiles));
    /* Vectors of 64 bytes slow down the loops of other tiles. Slices are cut for them all the same. */
    tiles->lanes.avx512 = tiles->lanes.avx512 && 2 * lanes >= a->nnz;
    TRY(keep_stretches(plan, tiles, found));
    fill_tiles(plan, tiles);
done:
    host_free(found);
    return st;
}

/* Adds the findings to plan->why. */
static void say(spmv_plan *plan, struct found found)
{
    const double nnz = (double)max_i64(plan->a.nnz, 1);
    size_t used = strlen(plan->why);
    if (found.saved + found.packed > 0)
        snprintf(plan->why + used, sizeof plan->why - used,
                 "; %.0f %% of the columns are derived from the previous row, %.0f %% are stored in 16 bits",
                 100 * (double)found.saved / nnz, 100 * (double)found.packed / nnz);
    used = strlen(plan->why);
    if (found.formed > 0)
        snprintf(plan->why + used, sizeof plan->why - used, "; %.0f %% of the columns are in rows of a few forms",
                 100 * (double)found.formed / nnz);
    used = strlen(plan->why);
    if (found.lanes > 0)
        snprintf(plan->why + used, sizeof plan->why - used,
                 "; %.0f %% of the values are also stored in the order of the lanes of vectors",
                 100 * (double)found.lanes / nnz);
    used = strlen(plan->why);
    if (found.sorted > 0)
        snprintf(plan->why + used, sizeof plan->why - used, "; %.0f %% of the rows are processed by length",
                 100 * (double)found.sorted / (double)plan->a.rows);
}

/* Where row `row` begins on the merge path. */
static int64_t steps_to(const spmv_csr *a, int64_t row)
{
    return row + offset_at(a->row_ptr, a->row_ptr_bits, row);
}

/* The chunks of a plan: of one without ranks, all rows. */
static int64_t chunks_of(const spmv_plan *plan)
{
    return plan->ranks != NULL ? plan->ranks->chunks : 1;
}

static int64_t chunk_begin(const spmv_plan *plan, int64_t chunk)
{
    return plan->ranks != NULL ? plan->ranks->chunk[chunk] : chunk == 0 ? 0 : plan->a.rows;
}

/* The number of tiles of a chunk. */
static int64_t tiles_in(const spmv_plan *plan, int64_t chunk)
{
    return ceil_divide(steps_to(&plan->a, chunk_begin(plan, chunk + 1)) - steps_to(&plan->a, chunk_begin(plan, chunk)),
                       TILE_WORK);
}

/* Sets where the tiles begin: every TILE_WORK steps from the start of each chunk. */
static void cut_tiles(const spmv_plan *plan, struct omp_tiles *tiles)
{
    const spmv_csr *a = &plan->a;
    int64_t before = 0; /* tiles of the chunks before */
    for (int64_t chunk = 0; chunk < chunks_of(plan); chunk++) {
        const int64_t count = tiles_in(plan, chunk), start = steps_to(a, chunk_begin(plan, chunk));
#pragma omp parallel for num_threads(host_team(plan->ctx, count *A_SEARCH))
        for (int64_t t = 0; t < count; t++) {
            struct tile *tile = &tiles->tile[before + t];
            tile->begin = path_at(a, start + t * TILE_WORK);
            tile->begun = begun_before(a, tile->begin);
        }
        before += count;
    }
    tiles->tile[before].begin = (struct position){.row = a->rows, .k = a->nnz};
}

/* Allocates what lanes need of all tiles, if some may pay off. */
static spmv_status allow_lanes(spmv_plan *plan, struct omp_tiles *tiles, struct caches *caches)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &plan->a;
    struct lanes *lanes = &tiles->lanes;
    const int64_t size = (int64_t)spmv_type_size(plan->sums),
                  tile_bytes = (tiles->count + 1) * (int64_t)sizeof *lanes->tile;
    const int64_t bytes = a->nnz * (int64_t)spmv_type_size(a->type) + (a->rows + a->cols) * size;
    const int64_t caches_bytes = second_level_bytes() * tiles->threads;
    const bool compress = plan->compression == SPMV_COMPRESSION_AUTO || plan->compression == SPMV_COMPRESSION_VALUES;
    if (!tiles->avx2 || !compress || a->val == NULL || a->rows > INT32_MAX || bytes > LANES_CACHES * caches_bytes)
        return SPMV_OK;
    caches->second = bytes <= caches_bytes - caches_bytes / 8;
    lanes->rows = (int)(LANE_BYTES / size);
    lanes->avx512 = avx512_here();
    TRY(plan_alloc(plan, tile_bytes, (void **)&lanes->tile));
    memset(lanes->tile, 0, (size_t)tile_bytes);
done:
    return st;
}

spmv_status tiles_omp_prepare(spmv_plan *plan)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &plan->a;
    const int64_t size = (int64_t)spmv_type_size(plan->sums);
    const int64_t stored = a->val != NULL ? (int64_t)spmv_type_size(a->type) : 0;
    const int64_t bytes = a->nnz * (4 + stored) + a->rows * (a->row_ptr_bits / 8 + size);
    const int64_t cache = cache_bytes(plan->ctx->threads);
    struct caches caches = {.large = bytes > cache, .far_bytes = far_bytes()};
    struct found found = {0};
    struct omp_tiles *tiles = NULL;
    TRY(plan_new_state(plan, sizeof *tiles));
    tiles = plan->state;
    for (int64_t chunk = 0; chunk < chunks_of(plan); chunk++)
        tiles->count += tiles_in(plan, chunk);
    tiles->avx2 = avx2_here();
    tiles->first_step = columns_first_step();
    tiles->columns = (plan_needs(plan) & (METHOD_VECTORS | METHOD_COMPLEX | METHOD_HALF)) != 0;
    tiles->threads = team_threads(plan->ctx, tiles->count * plan->vectors, TILES_OF_TEAM);
    TRY(plan_alloc(plan, (tiles->count + 1) * (int64_t)sizeof *tiles->tile, (void **)&tiles->tile));
    TRY(plan_alloc(plan, tiles->count * plan->vectors * size, &tiles->head));
    TRY(plan_alloc(plan, tiles->count * plan->vectors * size, &tiles->tail));
    if (plan->vectors == 1)
        TRY(plan_alloc(plan, tiles->count * size, &tiles->dots));
    TRY(plan_alloc(plan, plan->ctx->threads * (int64_t)sizeof *tiles->share, (void **)&tiles->share));
    memset(tiles->tile, 0, (size_t)(tiles->count + 1) * sizeof *tiles->tile);
    cut_tiles(plan, tiles);
    if (tiles->columns) { /* these products read plain CSR */
        const struct look nothing = {.count = 0};
        for (int64_t t = 0; t < tiles->count; t++)
            tiles->tile[t].bytes = bytes_of(plan, &tiles->tile[t], &nothing);
        sum_bytes(tiles);
        goto done;
    }
    TRY(allow_lanes(plan, tiles, &caches));
    TRY(look(plan, tiles, &caches, &found));
    /* Streaming stores pay off where no cache would keep y until the next product, and where most
     * rows are regular, so that their results come without stalls. */
    tiles->stream = bytes > 2 * cache && 2 * found.saved >= a->nnz;
    say(plan, found);
    sum_bytes(tiles);
done:
    return st;
}
