/* The product of a tile for one vector of reals, from the sum of a row to the variants, included
 * once for each pair of types (each_plan_type.h). A struct reading is constant after inlining.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* ------------------------------------------------------------------ the sum of a row */

/* A position among the entries: its values, its columns, and x, shifted by the offset of the
 * columns. */
struct TYPED(entries) {
    const STORED *val;
    const void *col;
    const T *x;
};

static ALWAYS_INLINE T TYPED(term)(struct TYPED(entries) e, struct reading how, int64_t j)
{
    const T x = e.x[column_at(e.col, how.narrow, j)];
    return how.pattern ? x : e.val[j] * x;
}

/* So many terms at once. x is read one element after the other, which takes less time than the gather
 * instruction of some processors. */
typedef T TYPED(pack) __attribute__((vector_size(PACK_BYTES)));
enum { TYPED(PACK) = PACK_BYTES / sizeof(T) };

static ALWAYS_INLINE void TYPED(add_terms)(TYPED(pack) * sum, struct TYPED(entries) e, struct reading how, int64_t j)
{
    TYPED(pack) x = {0}, val = {0};
    for (int i = 0; i < TYPED(PACK); i++)
        x[i] = e.x[column_at(e.col, how.narrow, j + i)];
    if (how.pattern) {
        *sum += x;
        return;
    }
    if (sizeof(STORED) == sizeof(T)) {
        memcpy(&val, e.val + j, sizeof val);
    } else {
        for (int i = 0; i < TYPED(PACK); i++)
            val[i] = e.val[j + i];
    }
    *sum += val * x;
}

/* The sum of n entries. */
static ALWAYS_INLINE T TYPED(dot)(struct TYPED(entries) e, struct reading how, int64_t n)
{
    int64_t j = 0;
    if (n <= SERIAL) {
        T sum = 0;
        for (; j + AT_ONCE <= n; j += AT_ONCE)
            for (int i = 0; i < AT_ONCE; i++) {
                if (how.far)
                    __builtin_prefetch(&e.x[column_at(e.col, how.narrow, j + i + AHEAD)]);
                sum += TYPED(term)(e, how, j + i);
            }
        for (; j < n; j++) {
            if (how.far)
                __builtin_prefetch(&e.x[column_at(e.col, how.narrow, j + AHEAD)]);
            sum += TYPED(term)(e, how, j);
        }
        return sum;
    }
    TYPED(pack) sum[LANES / TYPED(PACK)] = {{0}};
    for (; j + LANES <= n; j += LANES) {
        if (how.far)
            for (int i = 0; i < LANES; i++)
                __builtin_prefetch(&e.x[column_at(e.col, how.narrow, j + i + AHEAD)]);
        if (!how.pattern)
            prefetch(e.val + j, VALUES_AHEAD);
        for (int p = 0; p < LANES / TYPED(PACK); p++)
            TYPED(add_terms)(&sum[p], e, how, j + p * TYPED(PACK));
    }
    T rest = 0, s[LANES];
    memcpy(s, sum, sizeof s);
    for (; j < n; j++)
        rest += TYPED(term)(e, how, j);
    return TYPED(tree)(s) + rest;
}

/* The same for consecutive columns; x begins at the first of them. */
static ALWAYS_INLINE T TYPED(dot_consecutive)(const STORED *val, const T *x, bool pattern, int64_t n)
{
    int64_t j = 0;
    if (n <= SERIAL) {
        T sum = 0;
        for (; j < n; j++)
            sum += pattern ? x[j] : val[j] * x[j];
        return sum;
    }
    T s[LANES] = {0};
    for (; j + LANES <= n; j += LANES) {
        if (!pattern)
            prefetch(val + j, VALUES_AHEAD);
        for (int i = 0; i < LANES; i++)
            s[i] += pattern ? x[j + i] : val[j + i] * x[j + i];
    }
    T rest = 0;
    for (; j < n; j++)
        rest += pattern ? x[j] : val[j] * x[j];
    return TYPED(tree)(s) + rest;
}

/* ------------------------------------------------------------------ rows of each kind */

static ALWAYS_INLINE void TYPED(store)(T *y, T value, bool stream)
{
#ifdef __x86_64__
    if (stream) {
        const union {
            T value;
            long long of_8;
            int of_4;
        } bits = {.value = value};
        if (sizeof bits.value == 8)
            _mm_stream_si64((long long *)(void *)y, bits.of_8);
        else
            _mm_stream_si32((int *)(void *)y, bits.of_4);
        return;
    }
#endif
    (void)stream;
    *y = value;
}

static ALWAYS_INLINE void TYPED(finish)(struct TYPED(factors) f, bool stream, T sum, T *y)
{
    TYPED(store)(y, TYPED(scaled)(f, sum, y), stream);
}

static ALWAYS_INLINE struct TYPED(entries)
    TYPED(entries_at)(const struct TYPED(source) * s, struct reading how, int64_t k)
{
    return (struct TYPED(entries)){.val = how.pattern ? NULL : (const STORED *)s->val + k,
                                   .col = (const char *)s->col + (how.narrow ? 2 : 4) * (k - s->left_out),
                                   .x = s->x};
}

/* Prefetches the values and columns of later rows. */
static ALWAYS_INLINE void TYPED(prefetch)(struct TYPED(entries) e, struct reading how)
{
    if (!how.pattern)
        prefetch(e.val, VALUES_AHEAD);
    prefetch(e.col, VALUES_AHEAD / 2);
}

/* Rows of any kind. bits: of a row offset, a constant after inlining. source is copied because y
 * could alias it. */
static ALWAYS_INLINE void TYPED(plain_rows)(const struct TYPED(source) * source, struct reading how, int bits,
                                            int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    const void *row_ptr = s.a->row_ptr;
    T *const y = s.y;
    int64_t begin = offset_at(row_ptr, bits, first);
    for (int64_t row = first; row < last; row++) {
        const int64_t end = offset_at(row_ptr, bits, row + 1);
        const struct TYPED(entries) e = TYPED(entries_at)(&s, how, begin);
        TYPED(prefetch)(e, how);
        TYPED(finish)(s.f, how.stream, TYPED(dot)(e, how, end - begin), &y[row]);
        begin = end;
    }
}

static ALWAYS_INLINE void TYPED(plain)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                       int64_t k, int64_t first, int64_t last)
{
    (void)stretch, (void)k;
    if (s->a->row_ptr_bits == 32)
        TYPED(plain_rows)(s, how, 32, first, last);
    else
        TYPED(plain_rows)(s, how, 64, first, last);
}

/* Rows of n entries each, from entry k on, in the columns of the first row, shifted by step from
 * row to row. n is a constant for short rows. */
static ALWAYS_INLINE void TYPED(regular_rows)(const struct TYPED(source) * source, struct reading how, bool consecutive,
                                              int64_t step, int64_t n, int64_t k, int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    struct TYPED(entries) e = TYPED(entries_at)(&s, how, k);
    const T *x = e.x + (consecutive ? column_at(e.col, how.narrow, 0) : 0);
    T *const y = s.y;
    how.far = false;
    for (int64_t row = first; row < last; row++) {
        e.x = x;
        if (!how.pattern && n <= SERIAL)
            for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + j, VALUES_AHEAD);
        TYPED(finish)
        (s.f, how.stream, consecutive ? TYPED(dot_consecutive)(e.val, x, how.pattern, n) : TYPED(dot)(e, how, n),
         &y[row]);
        e.val = how.pattern ? NULL : e.val + n;
        x += step;
    }
}

/* The same for rows of up to SERIAL entries, two rows at a time: each column is loaded once for
 * both, and the two sums hide each other's latency. */
static ALWAYS_INLINE void TYPED(regular_pairs)(const struct TYPED(source) * source, struct reading how, int64_t step,
                                               int64_t n, int64_t k, int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    struct TYPED(entries) e = TYPED(entries_at)(&s, how, k), f = e;
    T *const y = s.y;
    int64_t row = first;
    how.far = false;
    for (; row + 2 <= last; row += 2) {
        T a = 0, b = 0;
        f.val = how.pattern ? NULL : e.val + n;
        f.x = e.x + step;
        if (!how.pattern)
            for (int64_t i = 0; i < 2 * n; i += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + i, VALUES_AHEAD);
        for (int64_t j = 0; j < n; j++) {
            a += TYPED(term)(e, how, j);
            b += TYPED(term)(f, how, j);
        }
        TYPED(finish)(s.f, how.stream, a, &y[row]);
        TYPED(finish)(s.f, how.stream, b, &y[row + 1]);
        e.val = how.pattern ? NULL : f.val + n;
        e.x = f.x + step;
    }
    if (row < last)
        TYPED(finish)(s.f, how.stream, TYPED(dot)(e, how, n), &y[row]);
}

static ALWAYS_INLINE void TYPED(regular)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                         int64_t k, int64_t first, int64_t last)
{
    const int64_t n = stretch.n, step = (stretch.kind & STRETCH_SHIFTED) != 0;
    if ((stretch.kind & STRETCH_CONSECUTIVE) != 0 && n > 1) {
        TYPED(regular_rows)(s, how, true, step, n, k, first, last);
        return;
    }
    switch (n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(regular_rows)(s, how, length == 1, step, length, k, first, last);                                        \
        break;
        LENGTHS_9(CASE)
#undef CASE
    default:
        if (n <= SERIAL)
            TYPED(regular_pairs)(s, how, step, n, k, first, last);
        else
            TYPED(regular_rows)(s, how, false, step, n, k, first, last);
    }
}

/* A bucket of a SORTED stretch: rows of n entries, a constant for short rows. left: the number of
 * places of this bucket and the buckets after it. k: the tile's first entry. y: of the tile's first
 * whole row. The hardware prefetcher cannot follow this order, so each row also prefetches n
 * entries of the next tile, from *ahead on. */
static ALWAYS_INLINE void TYPED(bucket)(const struct TYPED(source) * source, struct reading how,
                                        const struct place *place, int64_t n, int64_t rows, int64_t left, int64_t k,
                                        T *y, int64_t *ahead)
{
    const struct TYPED(source) s = *source;
    int64_t next = *ahead;
    const int64_t far = n > 0 ? min_i64(AHEAD, (AHEAD + n - 1) / n) : 0;
    const struct reading near = {how.pattern, how.narrow, false, false};
    for (int64_t i = 0; i < rows; i++) {
        const struct TYPED(entries) behind = TYPED(entries_at)(&s, how, next);
        for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof(STORED)) {
            if (!how.pattern)
                prefetch(behind.val, j * (int64_t)sizeof(STORED));
            prefetch(behind.col, (how.narrow ? 2 : 4) * j);
        }
        next += n;
        if (how.far) {
            const struct TYPED(entries) later = TYPED(entries_at)(&s, how, k + place[min_i64(i + far, left - 1)].k);
            for (int64_t j = 0; j < n; j++)
                __builtin_prefetch(&later.x[column_at(later.col, how.narrow, j)]);
        }
        TYPED(finish)
        (s.f, false, TYPED(dot)(TYPED(entries_at)(&s, how, k + place[i].k), near, n), &y[place[i].row]);
    }
    *ahead = next;
}

static ALWAYS_INLINE void TYPED(sorted)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                        int64_t k, int64_t first, int64_t last)
{
    const struct bucket *bucket = s->tiles->bucket + s->tile->bucket + stretch.bucket;
    const struct place *place = s->tiles->place + s->tile->place + stretch.place;
    T *const y = s->y + own_rows_of(s->tile).first;
    int64_t rows = last - first, next = s->tile[1].begin.k;
    k = s->tile->begin.k;
    for (const struct bucket *end = bucket + stretch.n; bucket < end; bucket++) {
        switch (bucket->n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(bucket)(s, how, place, length, bucket->rows, rows, k, y, &next);                                         \
        break;
            CASE(0)
            LENGTHS_8(CASE)
#undef CASE
        default:
            TYPED(bucket)(s, how, place, bucket->n, bucket->rows, rows, k, y, &next);
        }
        place += bucket->rows;
        rows -= bucket->rows;
    }
}

/* Rows of n entries from entry k on; n is a constant after inlining. y: of the first row. The
 * columns of a row are generated first, SPOTS at a time, and then read like stored ones. */
static ALWAYS_INLINE void TYPED(forms)(const struct TYPED(source) * source, struct reading how,
                                       const struct spots *spot, const uint8_t *code, int64_t n, int64_t rows,
                                       int64_t k, T *y)
{
    const struct TYPED(source) s = *source;
    int32_t col[MOST_FORMED + SPOTS];
    struct TYPED(entries) e = {.val = how.pattern ? NULL : (const STORED *)s.val + k, .col = col, .x = s.x};
    how.narrow = how.far = false;
    for (int32_t row = 0; row < (int32_t)rows; row++) {
        const struct spots *form = spot + code[row] * spots_of(n);
        const pack_i32 by = {row, row, row, row};
        for (int64_t p = 0; p < spots_of(n); p++) {
            pack_i32 column, moves;
            memcpy(&column, form[p].column, sizeof column);
            memcpy(&moves, form[p].moves, sizeof moves);
            column += by & moves;
            memcpy(&col[p * SPOTS], &column, sizeof column);
        }
        if (!how.pattern)
            for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + j, VALUES_AHEAD);
        TYPED(finish)(s.f, how.stream, TYPED(dot)(e, how, n), &y[row]);
        e.val = how.pattern ? NULL : e.val + n;
    }
}

static ALWAYS_INLINE void TYPED(formed)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                        int64_t k, int64_t first, int64_t last)
{
    const struct spots *spot = s->tiles->spot + s->tile->spot + stretch.spot;
    const uint8_t *code = s->tiles->code + s->tile->code + stretch.code;
    switch (stretch.n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(forms)(s, how, spot, code, length, last - first, k, s->y + first);                                       \
        break;
        LENGTHS_6(CASE)
#undef CASE
    }
    _Static_assert(MOST_FORMED == 6, "a case for each length");
}

/* ------------------------------------------------------------------ a tile */

/* Prefetches what a stretch reads besides values. The hardware prefetcher does not, because of the
 * gaps that are left out. */
static ALWAYS_INLINE void TYPED(prefetch_stretch)(const struct TYPED(source) * s, struct reading how,
                                                  struct stretch stretch, int64_t k, int64_t first)
{
    if (stretch.kind == STRETCH_PLAIN)
        prefetch(s->a->row_ptr, first * (s->a->row_ptr_bits / 8));
    if (!how.narrow && stretch.kind != STRETCH_FORMED)
        for (int64_t j = 0; j <= stretch.n; j += 16)
            prefetch(s->col, 4 * (k + j));
}

/* The functions for a stretch of each kind: rows first ... last - 1, from entry k on. */
typedef void TYPED(rows_function)(const struct TYPED(source) *, struct stretch, int64_t k, int64_t first, int64_t last);
struct TYPED(rows) {
    TYPED(rows_function) * plain, *regular, *sorted, *formed;
};

/* One tile: rows that begin and end in it go to y. The part of a row begun before goes to *head,
 * the part of a row that ends later to *tail. */
static ALWAYS_INLINE void TYPED(tile)(struct TYPED(source) source, struct reading how, struct TYPED(rows) rows, T *head,
                                      T *tail)
{
    struct TYPED(source) *const s = &source;
    const struct omp_tiles *tiles = s->tiles;
    const struct tile *tile = s->tile;
    const struct position from = tile->begin, to = tile[1].begin;
    const void *row_ptr = s->a->row_ptr;
    const int bits = s->a->row_ptr_bits;
    int64_t first = from.row, k = from.k;
    *head = 0;
    if (first < to.row && tile->begun) {
        *head = TYPED(dot)(TYPED(entries_at)(s, how, k), how, offset_at(row_ptr, bits, first + 1) - k);
        k = offset_at(row_ptr, bits, ++first);
    }
    const int64_t end = tile[1].stretch;
    if (first < to.row && tile->stretch == end) {
        rows.plain(s, (struct stretch){.kind = STRETCH_PLAIN}, k, first, to.row);
        k = offset_at(row_ptr, bits, to.row);
    }
    for (int64_t i = tile->stretch; i < end; i++) {
        const struct stretch stretch = tiles->stretch[i];
        const int64_t begin = first + stretch.begin, next = i + 1 < end ? first + tiles->stretch[i + 1].begin : to.row;
        const int64_t entries = (next - begin) * stretch.n; /* REGULAR, FORMED */
        if ((stretch.kind & STRETCH_REGULAR) != 0) {
            if (i + 1 < end)
                TYPED(prefetch_stretch)(s, how, tiles->stretch[i + 1], k + entries, next);
            rows.regular(s, stretch, k, begin, next);
            k += entries;
            if (how.narrow)
                s->left_out += entries - stretch.n;
            continue;
        }
        if (stretch.kind == STRETCH_PLAIN) {
            rows.plain(s, stretch, k, begin, next);
        } else if (stretch.kind == STRETCH_FORMED) {
            rows.formed(s, stretch, k, begin, next);
            if (how.narrow)
                s->left_out += entries;
        } else {
            rows.sorted(s, stretch, k, begin, next);
        }
        k = offset_at(row_ptr, bits, next);
    }
    *tail = TYPED(dot)(TYPED(entries_at)(s, how, k), how, to.k - k);
}

/* The epilogue of the tile's own rows. kept: NULL, or their y, which is then copied to y. */
static ALWAYS_INLINE void TYPED(finish_tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(source) * s,
                                             const T *kept)
{
    const struct own_rows rows = own_rows_of(&tiles->tile[t]);
    T *y = s->y + rows.first;
    for (int64_t i = 0; kept != NULL && i < rows.last - rows.first; i++)
        TYPED(store)(&y[i], kept[i], true);
    ((T *)tiles->dots)[t] = TYPED(epilogue)(s->epilogue, s->y, kept != NULL ? kept : y, rows.first, rows.last);
}

/* The functions of a tile for each way to read its columns. */
typedef void TYPED(reading_function)(const struct TYPED(source) *, T *head, T *tail);
struct TYPED(readings) {
    TYPED(reading_function) * narrow, *far, *near;
};

static ALWAYS_INLINE void TYPED(any_tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(source) * s,
                                          struct TYPED(readings) read, bool stream)
{
    const struct tile *tile = &tiles->tile[t];
    T *head = (T *)tiles->head + t, *tail = (T *)tiles->tail + t;
    struct TYPED(source) moved = *s;
    T kept[TILE_WORK];
    moved.tile = tile;
    if (s->keep) /* row i is y[i] there too */
        moved.y = (T *)((uintptr_t)kept - (uintptr_t)own_rows_of(tile).first * sizeof *kept);
    if (tile->narrow) {
        moved.col = tiles->col;
        moved.left_out = tile->begin.k - tile->col;
        moved.x = s->x + tile->base;
        read.narrow(&moved, head, tail);
    } else if (tile->far && tile[1].begin.k + AHEAD <= s->a->nnz) {
        read.far(&moved, head, tail);
    } else {
        read.near(&moved, head, tail);
    }
    if (s->epilogue != NULL)
        TYPED(finish_tile)(tiles, t, s, s->keep ? kept : NULL);
#ifdef __x86_64__
    if (stream || s->keep)
        _mm_sfence(); /* completes the streaming stores before later writes */
#else
    (void)stream;
#endif
}

/* ------------------------------------------------------------------ the variants */

/* Thin functions that pass the constants of a variant on. They are not inlined, because a compiler
 * that inlines a whole tile runs out of registers in the innermost loops. Of equal functions it
 * keeps one.
 *
 * The functions of a variant (spmv_omp_variants.h) named tile_avx2, in f64, are
 *   tile_avx2_f64          any tile
 *   tile_avx2_narrow_f64   a tile whose columns are read in this way; also _far, _near
 *   tile_avx2_narrow_plain_f64   its rows of this kind; also _regular, _sorted, _formed
 *
 * With SPMV_QUICK_LOOPS, for tests without a GPU, the variants of an instruction set share one
 * function for each kind of rows, which takes their properties as arguments: a fifth of the time to
 * compile. */
#ifdef SPMV_QUICK_LOOPS
#define SHARED_FUNCTION(kind, name, target)                                                                            \
    static NOINLINE target void TYPED(name)(const struct TYPED(source) * s, struct reading how,                        \
                                            struct stretch stretch, int64_t k, int64_t first, int64_t last)            \
    {                                                                                                                  \
        TYPED(kind)(s, how, stretch, k, first, last);                                                                  \
    }
#define SHARED_FUNCTIONS(kind)                                                                                         \
    SHARED_FUNCTION(kind, kind##_baseline, BASELINE) WITH_AVX2(SHARED_FUNCTION(kind, kind##_avx2, AVX2))
SHARED_FUNCTIONS(plain)
SHARED_FUNCTIONS(regular)
SHARED_FUNCTIONS(sorted)
SHARED_FUNCTIONS(formed)
#define ROWS_OF(kind, avx2, ...)                                                                                       \
    do {                                                                                                               \
        WITH_AVX2(if (avx2) TYPED(kind##_avx2)(__VA_ARGS__); else) TYPED(kind##_baseline)(__VA_ARGS__);                \
    } while (0)
#else
#define ROWS_OF(kind, avx2, ...) TYPED(kind)(__VA_ARGS__)
#endif

#define ROWS_FUNCTION(kind, name, target, avx2, how)                                                                   \
    static NOINLINE target void TYPED(name)(const struct TYPED(source) * s, struct stretch stretch, int64_t k,         \
                                            int64_t first, int64_t last)                                               \
    {                                                                                                                  \
        ROWS_OF(kind, avx2, s, how, stretch, k, first, last);                                                          \
    }

#define READING_FUNCTION(name, target, avx2, how)                                                                      \
    ROWS_FUNCTION(plain, name##_plain, target, avx2, how)                                                              \
    ROWS_FUNCTION(regular, name##_regular, target, avx2, how)                                                          \
    ROWS_FUNCTION(sorted, name##_sorted, target, avx2, how)                                                            \
    ROWS_FUNCTION(formed, name##_formed, target, avx2, how)                                                            \
    static NOINLINE target void TYPED(name)(const struct TYPED(source) * s, T * head, T * tail)                        \
    {                                                                                                                  \
        const struct TYPED(rows)                                                                                       \
            rows = {TYPED(name##_plain), TYPED(name##_regular), TYPED(name##_sorted), TYPED(name##_formed)};           \
        TYPED(tile)(*s, how, rows, head, tail);                                                                        \
    }

#define VARIANT_FUNCTION(name, target, avx2, pattern, stream)                                                          \
    READING_FUNCTION(name##_narrow, target, avx2, READING(pattern, true, false, stream))                               \
    READING_FUNCTION(name##_far, target, avx2, READING(pattern, false, true, stream))                                  \
    READING_FUNCTION(name##_near, target, avx2, READING(pattern, false, false, stream))                                \
    static target void TYPED(name)(const struct omp_tiles *tiles, int64_t t, const void *source)                       \
    {                                                                                                                  \
        const struct TYPED(readings) read = {TYPED(name##_narrow), TYPED(name##_far), TYPED(name##_near)};             \
        TYPED(any_tile)(tiles, t, source, read, stream);                                                               \
    }

VECTOR_VARIANTS(VARIANT_FUNCTION)

#define ENTRY(name, target, avx2, pattern, stream) [avx2][pattern][stream] = TYPED(name),
static tile_function *const TYPED(variants)[2][2][2] = {VECTOR_VARIANTS(ENTRY)};

#undef SHARED_FUNCTION
#undef SHARED_FUNCTIONS
#undef ROWS_OF
#undef ROWS_FUNCTION
#undef READING_FUNCTION
#undef VARIANT_FUNCTION
#undef ENTRY
