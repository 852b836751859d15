/* The typed part of spmv_omp.c, included once for each pair of types: VALUE (of vectors and sums),
 * VALUE_BITS (the unsigned integer of its size), STORED (of the matrix's values), and TYPED(name),
 * the name with both types in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Rows of up to SERIAL entries are summed one entry after the other. In longer rows, LANES
 * independent sums hide the latency of the additions and fill a vector: entry k goes to sum k %
 * LANES in all complete groups of LANES entries. The sums are added as a tree, then the sum of the
 * remaining entries. The assignment of entries to sums depends on the length alone. */
enum { TYPED(SERIAL) = 32, TYPED(LANES) = 8 };

/* A position among the entries: its values, its columns, and x, shifted by the offset of the
 * columns. */
struct TYPED(entries) {
    const STORED *val;
    const void *col;
    const VALUE *x;
};

static ALWAYS_INLINE VALUE TYPED(term)(struct TYPED(entries) e, struct reading how, int64_t j)
{
    const VALUE x = e.x[column_at(e.col, how.narrow, j)];
    return how.pattern ? x : e.val[j] * x;
}

static ALWAYS_INLINE VALUE TYPED(tree)(const VALUE *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* The sum of n entries. */
static ALWAYS_INLINE VALUE TYPED(dot)(struct TYPED(entries) e, struct reading how, int64_t n)
{
    enum { L = TYPED(LANES) };
    int64_t j = 0;
    if (n <= TYPED(SERIAL)) {
        VALUE sum = 0;
        for (; j < n; j++) {
            if (how.far)
                __builtin_prefetch(&e.x[column_at(e.col, how.narrow, j + AHEAD)]);
            sum += TYPED(term)(e, how, j);
        }
        return sum;
    }
    VALUE s[L] = {0};
    for (; j + L <= n; j += L) {
        if (how.far)
            for (int i = 0; i < L; i++)
                __builtin_prefetch(&e.x[column_at(e.col, how.narrow, j + i + AHEAD)]);
        if (!how.pattern)
            prefetch(e.val + j, VALUES_AHEAD);
        for (int i = 0; i < L; i++)
            s[i] += TYPED(term)(e, how, j + i);
    }
    VALUE rest = 0;
    for (; j < n; j++)
        rest += TYPED(term)(e, how, j);
    return TYPED(tree)(s) + rest;
}

/* The same for consecutive columns; x begins at the first of them. */
static ALWAYS_INLINE VALUE TYPED(dot_run)(const STORED *val, const VALUE *x, bool pattern, int64_t n)
{
    enum { L = TYPED(LANES) };
    int64_t j = 0;
    if (n <= TYPED(SERIAL)) {
        VALUE sum = 0;
        for (; j < n; j++)
            sum += pattern ? x[j] : val[j] * x[j];
        return sum;
    }
    VALUE s[L] = {0};
    for (; j + L <= n; j += L) {
        if (!pattern)
            prefetch(val + j, VALUES_AHEAD);
        for (int i = 0; i < L; i++)
            s[i] += pattern ? x[j + i] : val[j + i] * x[j + i];
    }
    VALUE rest = 0;
    for (; j < n; j++)
        rest += pattern ? x[j] : val[j] * x[j];
    return TYPED(tree)(s) + rest;
}

/* alpha and beta, loaded once: y could alias them. */
struct TYPED(factors) {
    VALUE alpha, beta;
    bool beta_zero;
};

static ALWAYS_INLINE void TYPED(store)(VALUE *y, VALUE value, bool stream)
{
#ifdef __x86_64__
    if (stream) {
        VALUE_BITS bits;
        memcpy(&bits, &value, sizeof bits);
        if (sizeof bits == 8)
            _mm_stream_si64((long long *)(void *)y, (long long)bits);
        else
            _mm_stream_si32((int *)(void *)y, (int)bits);
        return;
    }
#endif
    (void)stream;
    *y = value;
}

static ALWAYS_INLINE void TYPED(finish)(struct TYPED(factors) f, bool stream, VALUE sum, VALUE *y)
{
    TYPED(store)(y, f.beta_zero ? f.alpha * sum : f.alpha * sum + f.beta * *y, stream);
}

#include "product/omp/spmv_omp_epilogue.h"

/* The matrix as one tile reads it. The column of entry k is col[k - left_out]; x is shifted by the
 * base of 16-bit columns. keep: a tile's rows of y wait in the first-level cache for the epilogue,
 * then streaming stores write them. */
struct TYPED(source) {
    const spmv_csr *a;
    const void *val, *col;
    int64_t left_out;
    const VALUE *x;
    VALUE *y;
    struct TYPED(factors) f;
    const spmv_epilogue *epilogue; /* NULL: none */
    bool keep;
};

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
    VALUE *const y = s.y;
    int64_t begin = offset_at(row_ptr, bits, first);
    for (int64_t row = first; row < last; row++) {
        const int64_t end = offset_at(row_ptr, bits, row + 1);
        const struct TYPED(entries) e = TYPED(entries_at)(&s, how, begin);
        TYPED(prefetch)(e, how);
        TYPED(finish)(s.f, how.stream, TYPED(dot)(e, how, end - begin), &y[row]);
        begin = end;
    }
}

/* Rows of n entries each, from entry k on, in the columns of the first row, shifted by step from
 * row to row. n is a constant for short rows. */
static ALWAYS_INLINE void TYPED(regular_rows)(const struct TYPED(source) * source, struct reading how, bool run,
                                              int64_t step, int64_t n, int64_t k, int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    struct TYPED(entries) e = TYPED(entries_at)(&s, how, k);
    const VALUE *x = e.x + (run ? column_at(e.col, how.narrow, 0) : 0);
    VALUE *const y = s.y;
    how.far = false;
    for (int64_t row = first; row < last; row++) {
        e.x = x;
        if (!how.pattern && n <= TYPED(SERIAL))
            for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + j, VALUES_AHEAD);
        TYPED(finish)
        (s.f, how.stream, run ? TYPED(dot_run)(e.val, x, how.pattern, n) : TYPED(dot)(e, how, n), &y[row]);
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
    VALUE *const y = s.y;
    int64_t row = first;
    how.far = false;
    for (; row + 2 <= last; row += 2) {
        VALUE a = 0, b = 0;
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

/* A group of a SORTED stretch: rows of n entries, a constant for short rows. left: the number of
 * places of this group and the groups after it. k: the tile's first entry. y: of the tile's first
 * whole row. The hardware prefetcher cannot follow this order, so each row also prefetches n
 * entries of the next tile, from *ahead on. */
static ALWAYS_INLINE void TYPED(group)(const struct TYPED(source) * source, struct reading how,
                                       const struct place *place, int64_t n, int64_t rows, int64_t left, int64_t k,
                                       VALUE *y, int64_t *ahead)
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

/* A SORTED stretch. next: the first entry of the next tile. */
static ALWAYS_INLINE void TYPED(sorted_rows)(const struct TYPED(source) * s, struct reading how,
                                             const struct group *group, int64_t groups, const struct place *place,
                                             int64_t rows, int64_t k, int64_t next, VALUE *y)
{
    for (const struct group *end = group + groups; group < end; group++) {
        switch (group->n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(group)(s, how, place, length, group->rows, rows, k, y, &next);                                           \
        break;
            CASE(0)
            LENGTHS_8(CASE)
#undef CASE
        default:
            TYPED(group)(s, how, place, group->n, group->rows, rows, k, y, &next);
        }
        place += group->rows;
        rows -= group->rows;
    }
}

/* A FORMED stretch of rows of n entries from entry k on; n is a constant after inlining. y: of the
 * first row. The columns of a row are generated first, SPOTS at a time, and then read like stored
 * ones. */
static ALWAYS_INLINE void TYPED(forms)(const struct TYPED(source) * source, bool pattern, bool stream,
                                       const struct spots *spot, const uint8_t *code, int64_t n, int64_t rows,
                                       int64_t k, VALUE *y)
{
    const struct TYPED(source) s = *source;
    const struct reading how = {pattern, false, false, stream};
    int32_t col[MOST_FORMED + SPOTS];
    struct TYPED(entries) e = {.val = pattern ? NULL : (const STORED *)s.val + k, .col = col, .x = s.x};
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
        if (!pattern)
            for (int64_t j = 0; j < n; j += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + j, VALUES_AHEAD);
        TYPED(finish)(s.f, stream, TYPED(dot)(e, how, n), &y[row]);
        e.val = pattern ? NULL : e.val + n;
    }
}

static ALWAYS_INLINE void TYPED(formed_rows)(const struct TYPED(source) * s, bool pattern, bool stream,
                                             const struct spots *spot, const uint8_t *code, int64_t n, int64_t rows,
                                             int64_t k, VALUE *y)
{
    switch (n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(forms)(s, pattern, stream, spot, code, length, rows, k, y);                                              \
        break;
        LENGTHS_6(CASE)
#undef CASE
    }
    _Static_assert(MOST_FORMED == 6, "a case for each length");
}

/* The functions for the rows of a tile. They are not inlined because a compiler that inlines a
 * whole tile runs out of registers in the innermost loops. */
struct TYPED(rows) {
    int64_t (*regular)(const struct TYPED(source) *, struct stretch, int64_t k, int64_t first, int64_t last);
    void (*plain)(const struct TYPED(source) *, int64_t first, int64_t last);
    void (*sorted)(const struct TYPED(source) *, const struct group *, int64_t groups, const struct place *,
                   int64_t rows, int64_t k, int64_t next, VALUE *y);
    void (*formed)(const struct TYPED(source) *, const struct spots *, const uint8_t *code, int64_t n, int64_t rows,
                   int64_t k, VALUE *y);
};

/* A REGULAR stretch, whose first entry is k. Returns its end. */
static ALWAYS_INLINE int64_t TYPED(stretch)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                            int64_t k, int64_t first, int64_t last)
{
    const int64_t n = stretch.n, step = (stretch.kind & STRETCH_SHIFTED) != 0, end = k + (last - first) * n;
    if ((stretch.kind & STRETCH_RUN) != 0 && n > 1) {
        TYPED(regular_rows)(s, how, true, step, n, k, first, last);
        return end;
    }
    switch (n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(regular_rows)(s, how, length == 1, step, length, k, first, last);                                        \
        break;
        LENGTHS_9(CASE)
#undef CASE
    default:
        if (n <= TYPED(SERIAL))
            TYPED(regular_pairs)(s, how, step, n, k, first, last);
        else
            TYPED(regular_rows)(s, how, false, step, n, k, first, last);
    }
    return end;
}

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

/* One tile: rows that begin and end in it go to y. The part of a row begun before goes to *head,
 * the part of a row that ends later to *tail. */
static ALWAYS_INLINE void TYPED(tile)(const struct omp_tiles *tiles, int64_t t, struct TYPED(source) source,
                                      struct reading how, struct TYPED(rows) rows, VALUE *head, VALUE *tail)
{
    struct TYPED(source) *const s = &source;
    const struct tile *tile = &tiles->tile[t];
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
    const struct group *group = tiles->group + tile->group;
    const struct place *place = tiles->place + tile->place;
    if (first < to.row && tile->stretch == end) {
        rows.plain(s, first, to.row);
        k = offset_at(row_ptr, bits, to.row);
    }
    for (int64_t i = tile->stretch; i < end; i++) {
        const struct stretch stretch = tiles->stretch[i];
        const int64_t begin = first + stretch.begin, next = i + 1 < end ? first + tiles->stretch[i + 1].begin : to.row;
        if ((stretch.kind & STRETCH_REGULAR) == 0) {
            if (stretch.kind == STRETCH_PLAIN) {
                rows.plain(s, begin, next);
            } else if (stretch.kind == STRETCH_FORMED) {
                rows.formed(s, tiles->spot + tile->spot + stretch.spot, tiles->code + tile->code + stretch.code,
                            stretch.n, next - begin, k, s->y + begin);
                if (how.narrow)
                    s->left_out += (next - begin) * stretch.n;
            } else {
                rows.sorted(s, group, stretch.n, place, next - begin, from.k, to.k, s->y + first);
                group += stretch.n;
                place += next - begin;
            }
            k = offset_at(row_ptr, bits, next);
            continue;
        }
        if (i + 1 < end)
            TYPED(prefetch_stretch)(s, how, tiles->stretch[i + 1], k + (next - begin) * stretch.n, next);
        k = rows.regular(s, stretch, k, begin, next);
        if (how.narrow)
            s->left_out += (next - begin - 1) * stretch.n;
    }
    *tail = TYPED(dot)(TYPED(entries_at)(s, how, k), how, to.k - k);
}

/* The epilogue of the tile's own rows. kept: NULL, or their y, which is then copied to y. */
static ALWAYS_INLINE void TYPED(finish_tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(source) * s,
                                             const VALUE *kept)
{
    const struct own_rows rows = own_rows_of(&tiles->tile[t]);
    VALUE *y = s->y + rows.first;
    for (int64_t i = 0; kept != NULL && i < rows.last - rows.first; i++)
        TYPED(store)(&y[i], kept[i], true);
    ((VALUE *)tiles->dots)[t] = TYPED(epilogue)(s->epilogue, s->y, kept != NULL ? kept : y, rows.first, rows.last);
}

/* The three ways to read a tile. */
struct TYPED(ways) {
    void (*narrow)(const struct omp_tiles *, int64_t t, const struct TYPED(source) *, VALUE *head, VALUE *tail);
    void (*far)(const struct omp_tiles *, int64_t t, const struct TYPED(source) *, VALUE *head, VALUE *tail);
    void (*near)(const struct omp_tiles *, int64_t t, const struct TYPED(source) *, VALUE *head, VALUE *tail);
};

static ALWAYS_INLINE void TYPED(any_tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(source) * s,
                                          struct TYPED(ways) ways, bool stream)
{
    const struct tile *tile = &tiles->tile[t];
    VALUE *head = (VALUE *)tiles->head + t, *tail = (VALUE *)tiles->tail + t;
    struct TYPED(source) moved = *s;
    VALUE kept[TILE_WORK];
    if (s->keep) /* row i is y[i] there too */
        moved.y = (VALUE *)((uintptr_t)kept - (uintptr_t)own_rows_of(tile).first * sizeof *kept);
    if (tile->narrow) {
        moved.col = tiles->col;
        moved.left_out = tile->begin.k - tile->col;
        moved.x = s->x + tile->base;
        ways.narrow(tiles, t, &moved, head, tail);
    } else if (tile->far && tile[1].begin.k + AHEAD <= s->a->nnz) {
        ways.far(tiles, t, &moved, head, tail);
    } else {
        ways.near(tiles, t, &moved, head, tail);
    }
    if (s->epilogue != NULL)
        TYPED(finish_tile)(tiles, t, s, s->keep ? kept : NULL);
#ifdef __x86_64__
    if (stream || s->keep)
        _mm_sfence(); /* completes the streaming stores before later writes */
#endif
}

#define TARGET
#define PATTERN false
#define STREAM false
#define TILE(name) TYPED(tile_plain##name)
#include "product/omp/spmv_omp_tile.h"
#define PATTERN true
#define STREAM false
#define TILE(name) TYPED(tile_pattern_plain##name)
#include "product/omp/spmv_omp_tile.h"
#define PATTERN false
#define STREAM true
#define TILE(name) TYPED(tile_stream_plain##name)
#include "product/omp/spmv_omp_tile.h"
#undef TARGET
#ifdef __x86_64__
#define TARGET __attribute__((target("avx2")))
#define PATTERN false
#define STREAM false
#define TILE(name) TYPED(tile_avx2##name)
#include "product/omp/spmv_omp_tile.h"
#define PATTERN true
#define STREAM false
#define TILE(name) TYPED(tile_pattern_avx2##name)
#include "product/omp/spmv_omp_tile.h"
#define PATTERN false
#define STREAM true
#define TILE(name) TYPED(tile_stream_avx2##name)
#include "product/omp/spmv_omp_tile.h"
#undef TARGET
#endif

static tile_function *TYPED(tile_function_for)(bool avx2, bool pattern, bool stream)
{
#ifdef __x86_64__
    if (avx2)
        return pattern ? TYPED(tile_pattern_avx2) : stream ? TYPED(tile_stream_avx2) : TYPED(tile_avx2);
#endif
    (void)avx2;
    return pattern ? TYPED(tile_pattern_plain) : stream ? TYPED(tile_stream_plain) : TYPED(tile_plain);
}

/* Adds the partial sums of rows that cross tiles, in tile order, and the epilogue's sums, in the
 * order of the rows. */
static void TYPED(join)(const struct omp_tiles *tiles, const struct TYPED(source) * s)
{
    const VALUE *head = tiles->head, *tail = tiles->tail, *dots = tiles->dots;
    const spmv_epilogue *e = s->epilogue;
    VALUE open = 0, dot = 0;
    for (int64_t t = 0; t < tiles->count; t++) {
        const struct position from = tiles->tile[t].begin, to = tiles->tile[t + 1].begin;
        const bool continues = tiles->tile[t].begun;
        if (from.row == to.row) {
            open = continues ? open + tail[t] : tail[t];
            continue;
        }
        if (continues) {
            TYPED(finish)(s->f, false, open + head[t], &s->y[from.row]);
            if (e != NULL)
                dot += TYPED(epilogue)(e, s->y, &s->y[from.row], from.row, from.row + 1);
        }
        if (e != NULL)
            dot += dots[t];
        open = tail[t];
    }
    if (e != NULL && e->w != NULL)
        *(VALUE *)e->dot = dot;
}

static struct TYPED(source) TYPED(source_of)(const spmv_plan *plan, const struct plan_product *p)
{
    const struct omp_tiles *tiles = plan->state;
    const spmv_csr *a = &plan->a;
    return (struct TYPED(source)){.a = a,
                                  /* never NULL: pointers into them are computed also without entries */
                                  .val = a->nnz > 0 ? a->val : a,
                                  .col = a->nnz > 0 ? (const void *)a->col : a,
                                  .x = p->x,
                                  .y = p->y,
                                  .f = {.alpha = *(const VALUE *)p->alpha,
                                        .beta = p->beta_zero ? 0 : *(const VALUE *)p->beta,
                                        .beta_zero = p->beta_zero},
                                  .epilogue = p->epilogue,
                                  .keep = p->epilogue != NULL && tiles->stream && p->beta_zero && a->val != NULL};
}

static void TYPED(product)(const spmv_plan *plan, const struct plan_product *p)
{
    struct omp_tiles *tiles = plan->state;
    const spmv_csr *a = &plan->a;
    const bool stream = tiles->stream && p->beta_zero && a->val != NULL;
    const struct TYPED(source) source = TYPED(source_of)(plan, p);
    tiles_share_out(tiles, TYPED(tile_function_for)(tiles->avx2, a->val == NULL, stream && p->epilogue == NULL),
                    &source);
    TYPED(join)(tiles, &source);
}

static void TYPED(loop)(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                        struct tile_loop *loop)
{
    static const VALUE one = 1;
    const struct omp_tiles *tiles = plan->state;
    const struct plan_product product = {
        .alpha = &one, .beta = &one, .beta_zero = true, .x = x, .y = y, .epilogue = epilogue};
    const struct TYPED(source) source = TYPED(source_of)(plan, &product);
    const bool stream = tiles->stream && plan->a.val != NULL && epilogue == NULL;
    _Static_assert(sizeof source <= sizeof loop->source, "room for a source");
    memcpy(loop->source, &source, sizeof source);
    loop->function = TYPED(tile_function_for)(tiles->avx2, plan->a.val == NULL, stream);
}
