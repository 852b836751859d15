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

/* val: NULL if all values are 1. */
static ALWAYS_INLINE void TYPED(add_products)(TYPED(pack) * sum, const TYPED(pack) * x, const STORED *val)
{
    TYPED(pack) its = {0};
    if (val == NULL) {
        *sum += *x;
        return;
    }
    if (sizeof(STORED) == sizeof(T)) {
        memcpy(&its, val, sizeof its);
    } else {
        for (int i = 0; i < TYPED(PACK); i++)
            its[i] = val[i];
    }
    *sum += its * *x;
}

static ALWAYS_INLINE void TYPED(add_terms)(TYPED(pack) * sum, struct TYPED(entries) e, struct reading how, int64_t j)
{
    TYPED(pack) x = {0};
    for (int i = 0; i < TYPED(PACK); i++)
        x[i] = e.x[column_at(e.col, how.narrow, j + i)];
    TYPED(add_products)(sum, &x, how.pattern ? NULL : e.val + j);
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
    TYPED(pack) sum[LANES / TYPED(PACK)] = {{0}};
    for (; j + LANES <= n; j += LANES) {
        if (!pattern)
            prefetch(val + j, VALUES_AHEAD);
        for (int p = 0; p < LANES / TYPED(PACK); p++) {
            TYPED(pack) its;
            memcpy(&its, x + j + p * TYPED(PACK), sizeof its);
            TYPED(add_products)(&sum[p], &its, pattern ? NULL : val + j + p * TYPED(PACK));
        }
    }
    T rest = 0, s[LANES];
    memcpy(s, sum, sizeof s);
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

/* The same for PACK rows, except the first `again`. */
static ALWAYS_INLINE void TYPED(finish_pack)(struct TYPED(factors) f, bool stream, const TYPED(pack) * sum,
                                             int64_t again, T *y)
{
    TYPED(pack) result = f.alpha * *sum, before;
    if (!f.beta_zero) {
        memcpy(&before, y, sizeof before);
        result += f.beta * before;
    }
    if (again == 0 && !stream) {
        memcpy(y, &result, sizeof result);
        return;
    }
    for (int64_t i = again; i < TYPED(PACK); i++)
        TYPED(store)(&y[i], result[i], stream);
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
 * row to row. consecutive: the first row reads n elements from x on. n is a constant for short rows. */
static ALWAYS_INLINE void TYPED(regular_rows)(const struct TYPED(source) * source, struct reading how, bool consecutive,
                                              const T *x, int64_t step, int64_t n, int64_t k, int64_t first,
                                              int64_t last)
{
    const struct TYPED(source) s = *source;
    struct TYPED(entries) e = TYPED(entries_at)(&s, how, k);
    T *const y = s.y;
    x = consecutive ? x : e.x;
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

/* column[j] = values j of PACK rows of n entries, for VALUES values from val on. */
static ALWAYS_INLINE void TYPED(columns_of)(const STORED *val, int64_t n, TYPED(pack) column[TYPED(VALUES)])
{
    TYPED(values) row[TYPED(PACK)];
    for (int i = 0; i < TYPED(PACK); i++)
        memcpy(&row[i], val + i * n, sizeof row[i]);
    TYPED(transpose)(row, column);
}

/* column[j] = values j of PACK rows of n entries, for all n. */
static ALWAYS_INLINE void TYPED(all_columns_of)(const STORED *val, int64_t n, TYPED(pack) * column)
{
    enum { VALUES = TYPED(VALUES) };
    int64_t j = 0;
    for (; j + VALUES <= n; j += VALUES)
        TYPED(columns_of)(val + j, n, column + j);
    if (n >= VALUES && j < n) { /* the last columns, loaded with some before them */
        TYPED(pack) last[VALUES];
        TYPED(columns_of)(val + n - VALUES, n, last);
        for (; j < n; j++)
            column[j] = last[j - (n - VALUES)];
    }
    for (; j < n; j++)
        for (int64_t i = 0; i < TYPED(PACK); i++)
            column[j][i] = val[i * n + j];
}

/* Adds columns j + first ... j + VALUES - 1 of PACK rows of n entries to *sum, or to one sum each if apart is 1. x of
 * these rows is contiguous. */
static ALWAYS_INLINE void TYPED(add_columns)(TYPED(pack) * sum, int64_t apart, struct TYPED(entries) e,
                                             struct reading how, int64_t n, int64_t j, int64_t first)
{
    TYPED(pack) val[TYPED(VALUES)] = {{0}};
    if (!how.pattern)
        TYPED(columns_of)(e.val + j, n, val);
    for (int64_t i = first; i < TYPED(VALUES); i++) {
        TYPED(pack) x;
        memcpy(&x, e.x + column_at(e.col, how.narrow, j + i), sizeof x);
        sum[i * apart] += how.pattern ? x : val[i] * x;
    }
}

/* Adds columns j ... n - 1 of PACK rows. */
static ALWAYS_INLINE void TYPED(add_rest)(TYPED(pack) * sum, struct TYPED(entries) e, struct reading how, int64_t n,
                                          int64_t j)
{
    enum { VALUES = TYPED(VALUES) };
    for (; j + VALUES <= n; j += VALUES)
        TYPED(add_columns)(sum, 0, e, how, n, j, 0);
    if (n >= VALUES) { /* the last columns, loaded with some before them */
        if (n - j == 1)
            TYPED(add_columns)(sum, 0, e, how, n, n - VALUES, VALUES - 1);
        else if (VALUES == 4 && n - j == 2)
            TYPED(add_columns)(sum, 0, e, how, n, n - VALUES, 2);
        else if (VALUES == 4 && n - j == 3)
            TYPED(add_columns)(sum, 0, e, how, n, n - VALUES, 1);
        return;
    }
    for (; j < n; j++) {
        TYPED(pack) x, val = {0};
        memcpy(&x, e.x + column_at(e.col, how.narrow, j), sizeof x);
        for (int i = 0; !how.pattern && i < TYPED(PACK); i++)
            val[i] = e.val[i * n + j];
        *sum += how.pattern ? x : val * x;
    }
}

/* The sums of PACK rows, each as in dot. */
static ALWAYS_INLINE void TYPED(dots)(TYPED(pack) * result, struct TYPED(entries) e, struct reading how, int64_t n)
{
    int64_t j = 0;
    TYPED(pack) rest = {0};
    if (n <= SERIAL) {
        TYPED(add_rest)(&rest, e, how, n, 0);
        *result = rest;
        return;
    }
    TYPED(pack) s[LANES] = {{0}};
    for (; j + LANES <= n; j += LANES)
        for (int i = 0; i < LANES; i += TYPED(VALUES))
            TYPED(add_columns)(s + i, 1, e, how, n, j + i, 0);
    TYPED(add_rest)(&rest, e, how, n, j);
    *result = (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))) + rest;
}

/* Rows as in regular_rows, shifted by one from row to row, PACK rows at a time. Returns the number of rows that are
 * left. */
static ALWAYS_INLINE int64_t TYPED(regular_packs)(const struct TYPED(source) * source, struct reading how, int64_t n,
                                                  int64_t k, int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    struct TYPED(entries) e = TYPED(entries_at)(&s, how, k);
    int64_t rows = last - first;
    T *y = s.y + first;
    for (; rows >= TYPED(PACK); rows -= TYPED(PACK)) {
        TYPED(pack) sum;
        if (!how.pattern)
            for (int64_t i = 0; i < TYPED(PACK) * n; i += 64 / (int64_t)sizeof *e.val)
                prefetch(e.val + i, VALUES_AHEAD);
        TYPED(dots)(&sum, e, how, n);
        TYPED(finish_pack)(s.f, how.stream, &sum, 0, y);
        e.val = how.pattern ? NULL : e.val + TYPED(PACK) * n;
        e.x += TYPED(PACK);
        y += TYPED(PACK);
    }
    return rows;
}

/* The rows that are left of at least PACK: the last PACK rows, of which only these are written. */
static ALWAYS_INLINE void TYPED(regular_last)(const struct TYPED(source) * source, struct reading how, int64_t n,
                                              int64_t k, int64_t first, int64_t last, int64_t left)
{
    struct TYPED(entries) e = TYPED(entries_at)(source, how, k);
    const int64_t row = last - TYPED(PACK);
    TYPED(pack) sum;
    e.val = how.pattern ? NULL : e.val + (row - first) * n;
    e.x += row - first;
    TYPED(dots)(&sum, e, how, n);
    TYPED(finish_pack)(source->f, how.stream, &sum, TYPED(PACK) - left, &source->y[row]);
}

static ALWAYS_INLINE void TYPED(regular)(const struct TYPED(source) * s, struct reading how, struct stretch stretch,
                                         int64_t k, int64_t first, int64_t last)
{
    const int64_t n = stretch.n, step = (stretch.kind & STRETCH_SHIFTED) != 0;
    const bool consecutive = (stretch.kind & STRETCH_CONSECUTIVE) != 0;
    if (how.wide && step != 0 && last - first >= TYPED(PACK) && !(consecutive && n > SERIAL)) {
        int64_t left;
        switch (n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        left = TYPED(regular_packs)(s, how, length, k, first, last);                                                   \
        break;
            LENGTHS_9(CASE)
#undef CASE
        default:
            if (n <= SERIAL) /* two loops, since long rows need more registers */
                left = TYPED(regular_packs)(s, how, n, k, first, last);
            else
                left = TYPED(regular_packs)(s, how, n, k, first, last);
        }
        if (left > 0)
            TYPED(regular_last)(s, how, n, k, first, last, left);
        return;
    }
    const struct TYPED(entries) e = TYPED(entries_at)(s, how, k);
    T same[TILE_WORK / 2];
    const T *x = consecutive ? e.x + column_at(e.col, how.narrow, 0) : e.x;
    if (step == 0 && !consecutive) { /* x of at least two rows that fit in a tile */
        for (int64_t j = 0; j < n; j++)
            same[j] = x[column_at(e.col, how.narrow, j)];
        x = same;
    }
    if (step == 0 || (consecutive && n > 1)) {
        TYPED(regular_rows)(s, how, true, x, step, n, k, first, last);
        return;
    }
    switch (how.wide ? 0 : n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(regular_rows)(s, how, length == 1, x, step, length, k, first, last);                                     \
        break;
        LENGTHS_9(CASE)
#undef CASE
    default:
        if (n <= SERIAL)
            TYPED(regular_pairs)(s, how, step, n, k, first, last);
        else
            TYPED(regular_rows)(s, how, false, x, step, n, k, first, last);
    }
}

/* terms[i] = term i of `count` terms from e on. */
static ALWAYS_INLINE void TYPED(write_terms)(struct TYPED(entries) e, struct reading how, int64_t count, T *terms)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        if (!how.pattern)
            prefetch(e.val + i, VALUES_AHEAD);
        prefetch((const char *)e.col + (how.narrow ? 2 : 4) * i, VALUES_AHEAD / 2);
        if (how.far)
            for (int64_t l = i; l < i + LANES; l++)
                __builtin_prefetch(&e.x[column_at(e.col, how.narrow, l + AHEAD)]);
        for (int64_t l = i; l < i + LANES; l += TYPED(HALF)) {
            TYPED(half) x, val = {0};
            TYPED(pick)(&x, e.x, e.col, how.narrow, l);
            if (how.pattern) {
                memcpy(terms + l, &x, sizeof x);
                continue;
            }
            if (sizeof(STORED) == sizeof(T))
                memcpy(&val, e.val + l, sizeof val);
            else
                for (int h = 0; h < TYPED(HALF); h++)
                    val[h] = e.val[l + h];
            val *= x;
            memcpy(terms + l, &val, sizeof val);
        }
    }
    for (; i < count; i++)
        terms[i] = TYPED(term)(e, how, i);
}

/* column[i] = terms j + i of the rows that begin at at[0], at[1] ... */
static ALWAYS_INLINE void TYPED(terms_of)(const T *const at[TYPED(PACK)], int64_t j, TYPED(pack) column[TYPED(HALF)])
{
    TYPED(half) row[TYPED(PACK)];
    for (int i = 0; i < TYPED(PACK); i++)
        memcpy(&row[i], at[i] + j, sizeof row[i]);
    TYPED(transpose_sums)(row, column);
}

/* The sums of PACK rows of n <= SERIAL terms each. Reads up to HALF - 1 terms after a row. */
static ALWAYS_INLINE void TYPED(sum_terms)(TYPED(pack) * sum, const T *const at[TYPED(PACK)], int64_t n)
{
    TYPED(pack) s = {0}, column[TYPED(HALF)];
    int64_t j = 0;
    for (; j + TYPED(HALF) <= n; j += TYPED(HALF)) {
        TYPED(terms_of)(at, j, column);
        for (int i = 0; i < TYPED(HALF); i++)
            s += column[i];
    }
    if (j < n) {
        TYPED(terms_of)(at, j, column);
        s += column[0];
        if (TYPED(HALF) == 4 && j + 1 < n)
            s += column[1];
        if (TYPED(HALF) == 4 && j + 2 < n)
            s += column[2];
    }
    *sum = s;
}

/* Writes y of these rows, at most PACK, which have n terms each. */
static ALWAYS_INLINE void TYPED(sum_places)(struct TYPED(factors) f, const struct place *place, int64_t rows, int64_t n,
                                            const T *terms, T *y)
{
    const T *at[TYPED(PACK)];
    TYPED(pack) sum;
    for (int64_t i = 0; i < TYPED(PACK); i++)
        at[i] = terms + place[min_i64(i, rows - 1)].k;
    TYPED(sum_terms)(&sum, at, n);
    sum *= f.alpha;
    for (int64_t i = 0; i < rows; i++) {
        T *const own = &y[place[i].row];
        *own = f.beta_zero ? sum[i] : sum[i] + f.beta * *own;
    }
}

/* Rows of n terms each, one after the other. n is a constant for short rows. */
static ALWAYS_INLINE void TYPED(sum_each)(struct TYPED(factors) f, const struct place *place, int64_t rows, int64_t n,
                                          const T *terms, T *y)
{
    for (int64_t i = 0; i < rows; i++)
        TYPED(finish)(f, false, TYPED(dot_consecutive)(NULL, terms + place[i].k, true, n), &y[place[i].row]);
}

/* A bucket of a SORTED stretch: rows of n entries. terms: from the tile's first entry on. y: of the tile's first whole
 * row. */
static ALWAYS_INLINE void TYPED(bucket)(struct TYPED(factors) f, struct reading how, const struct place *place,
                                        int64_t n, int64_t rows, const T *terms, T *y)
{
    int64_t i = 0;
    switch (n) {
#define CASE(length)                                                                                                   \
    case length:                                                                                                       \
        TYPED(sum_each)(f, place, rows, length, terms, y);                                                             \
        return;
        CASE(0)
        LENGTHS_4(CASE)
#undef CASE
    default:
        break;
    }
    if (how.wide && n <= SERIAL) {
        for (; i + TYPED(PACK) <= rows; i += TYPED(PACK))
            TYPED(sum_places)(f, place + i, TYPED(PACK), n, terms, y);
        if (i < rows)
            TYPED(sum_places)(f, place + i, rows - i, n, terms, y);
    } else {
        TYPED(sum_each)(f, place, rows, n, terms, y);
    }
}

/* All terms are computed first, in the order of the matrix, which the hardware prefetcher follows; then the rows are
 * summed in the order of their lengths. */
static ALWAYS_INLINE void TYPED(sorted)(const struct TYPED(source) * source, struct reading how, struct stretch stretch,
                                        int64_t k, int64_t first, int64_t last)
{
    const struct TYPED(source) s = *source;
    const struct bucket *bucket = s.tiles->bucket + s.tile->bucket + stretch.bucket;
    const struct place *place = s.tiles->place + s.tile->place + stretch.place;
    T *const y = s.y + own_rows_of(s.tile).first;
    T terms[TILE_WORK + TYPED(HALF)];
    /* place counts from the tile's first entry */
    const T *from = (const T *)((uintptr_t)terms - (uintptr_t)(k - s.tile->begin.k) * sizeof *terms);
    (void)first;
    TYPED(write_terms)(TYPED(entries_at)(&s, how, k), how, offset_at(s.a->row_ptr, s.a->row_ptr_bits, last) - k, terms);
    for (const struct bucket *end = bucket + stretch.n; bucket < end; bucket++) {
        TYPED(bucket)(s.f, how, place, bucket->n, bucket->rows, from, y);
        place += bucket->rows;
    }
}

/* Whether PACK rows have the same form. */
static ALWAYS_INLINE bool TYPED(one_form)(const uint8_t *code)
{
    bool same = true;
    for (int i = 1; i < TYPED(PACK); i++)
        same = same && code[i] == code[0];
    return same;
}

/* The sums of PACK rows of this form, from row `row` of the stretch on. */
static ALWAYS_INLINE void TYPED(formed_dots)(TYPED(pack) * sum, struct TYPED(entries) e, struct reading how,
                                             const struct spots *form, int64_t n, int32_t row)
{
    TYPED(pack) s = {0}, val[MOST_FORMED + TYPED(VALUES)] = {{0}};
    if (!how.pattern)
        TYPED(all_columns_of)(e.val, n, val);
    for (int64_t j = 0; j < n; j++) {
        const T *at = e.x + form[j / SPOTS].column[j % SPOTS];
        TYPED(pack) x = {0};
        if (form[j / SPOTS].moves[j % SPOTS] != 0)
            memcpy(&x, at + row, sizeof x);
        else
            for (int i = 0; i < TYPED(PACK); i++)
                x[i] = *at;
        s += how.pattern ? x : val[j] * x;
    }
    *sum = s;
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
        if (how.wide && row + TYPED(PACK) <= (int32_t)rows && TYPED(one_form)(code + row)) {
            TYPED(pack) sum;
            if (!how.pattern)
                for (int64_t i = 0; i < TYPED(PACK) * n; i += 64 / (int64_t)sizeof *e.val)
                    prefetch(e.val + i, VALUES_AHEAD);
            TYPED(formed_dots)(&sum, e, how, form, n, row);
            TYPED(finish_pack)(s.f, how.stream, &sum, 0, &y[row]);
            e.val = how.pattern ? NULL : e.val + TYPED(PACK) * n;
            row += TYPED(PACK) - 1;
            continue;
        }
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

/* The functions for slices: with AVX2, with AVX-512. */
typedef void TYPED(lanes_function)(const struct TYPED(source) *, TYPED(rows_function) * plain);
#ifdef __x86_64__
#define PART_BYTES 32
#define LANES_SET AVX2
#include "product/omp/spmv_omp_lanes.h"
#undef PART_BYTES
#undef LANES_SET
#define PART_BYTES 64
#define LANES_SET AVX512
#include "product/omp/spmv_omp_lanes.h"
#undef PART_BYTES
#undef LANES_SET
static TYPED(lanes_function) *const TYPED(lanes)[2] = {TYPED(lanes_32), TYPED(lanes_64)};
#else
static TYPED(lanes_function) *const TYPED(lanes)[2] = {NULL, NULL};
#endif

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
    if (tile_has_lanes(tiles, tile - tiles->tile)) {
        TYPED(lanes)[tiles->lanes.avx512](s, rows.plain);
        k = offset_at(row_ptr, bits, to.row);
    } else if (first < to.row && tile->stretch == end) {
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
    READING_FUNCTION(name##_narrow, target, avx2, READING(pattern, true, false, stream, avx2))                         \
    READING_FUNCTION(name##_far, target, avx2, READING(pattern, false, true, stream, avx2))                            \
    READING_FUNCTION(name##_near, target, avx2, READING(pattern, false, false, stream, avx2))                          \
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
