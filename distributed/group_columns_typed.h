/* The columns of a rank that are not renumbered yet, of 32 or 64 bits; included by group_halo.c: T, TYPED(name).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Columns below 2^bits; the first `sorted` of them ascend strictly. */
struct TYPED(columns) {
    T *col;
    int64_t count, sorted, room;
    int bits;
    bool refused; /* no memory for more */
};

/* Sorts by digits of 11 bits; `other` has the same room. */
static void TYPED(sort_digits)(T *list, T *other, int64_t n, int bits)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    T *col = list;
    for (int shift = 0; shift < bits; shift += BITS) {
        int64_t at[DIGITS] = {0}, before = 0;
        for (int64_t i = 0; i < n; i++)
            at[(uint64_t)col[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            const int64_t its = at[d];
            at[d] = before;
            before += its;
        }
        for (int64_t i = 0; i < n; i++)
            other[at[(uint64_t)col[i] >> shift & (DIGITS - 1)]++] = col[i];
        T *const swap = col;
        col = other;
        other = swap;
    }
    if (col != list)
        memcpy(list, col, (size_t)n * sizeof *col);
}

/* Sorts the list and drops repeats. */
static void TYPED(sort_columns)(struct TYPED(columns) * c)
{
    T *const other = c->count > c->sorted ? malloc((size_t)c->count * sizeof *other) : NULL;
    int64_t kept = 0;
    if (c->count == c->sorted)
        return;
    if (other == NULL) {
        c->refused = true;
        return;
    }
    TYPED(sort_digits)(c->col, other, c->count, c->bits);
    free(other);
    for (int64_t i = 0; i < c->count; i++)
        if (kept == 0 || c->col[i] != c->col[kept - 1])
            c->col[kept++] = c->col[i];
    c->count = c->sorted = kept;
}

static void TYPED(add_column)(struct TYPED(columns) * c, T column)
{
    enum { LEAST = 4096 };
    if (c->refused)
        return;
    if (c->count == c->room) {
        TYPED(sort_columns)(c);
        if (c->refused || 2 * c->sorted <= c->room - 1)
            goto put; /* half of them were repeats */
        const int64_t room = c->room == 0 ? LEAST : 2 * c->room;
        T *const more = realloc(c->col, (size_t)room * sizeof *more);
        c->refused = more == NULL;
        c->col = more != NULL ? more : c->col;
        c->room = more != NULL ? room : c->room;
    }
put:
    if (!c->refused)
        c->col[c->count++] = column;
}

/* Lists the columns of a chunk that others own. Returns whether there are any. A row often has
 * the columns of the row before, moved by one, so a column that was just listed is rare, and one
 * in a small table is not listed again. */
static bool TYPED(list_chunk)(const spmv_group_matrix *m, const T *col, struct range own, int64_t c,
                              struct TYPED(columns) * to)
{
    enum { RECENT = 1 << 10 };
    T recent[RECENT];
    bool any = false;
    memset(recent, -1, sizeof recent);
    for (int64_t k = m->row_ptr[m->chunk[c]]; k < m->row_ptr[m->chunk[c + 1]]; k++) {
        const T column = col[k];
        if (is_in(own, column))
            continue;
        any = true;
        T *const place = &recent[(uint32_t)column % RECENT];
        if (*place != column)
            TYPED(add_column)(to, column);
        *place = column;
    }
    return any;
}

/* Lists the columns that others own, and rows of this rank need. Sets m->edge. */
static void TYPED(list_rows)(spmv_group_matrix *m, const T *col, struct TYPED(columns) * all)
{
    const struct range own = own_columns(m);
#pragma omp parallel num_threads(host_team(m->ctx, m->own.nnz))
    {
        struct TYPED(columns) mine = {.bits = all->bits};
#pragma omp for schedule(dynamic, 8)
        for (int64_t c = 0; c < m->ranks.chunks; c++)
            m->edge[c] = TYPED(list_chunk)(m, col, own, c, &mine);
        TYPED(sort_columns)(&mine);
#pragma omp critical(group_halo_list)
        {
            for (int64_t i = 0; i < mine.count; i++)
                TYPED(add_column)(all, mine.col[i]);
            all->refused = all->refused || mine.refused;
        }
        free(mine.col);
    }
    TYPED(sort_columns)(all);
}

/* *list: the columns, for host_free; *count of them. Releases them. */
static spmv_status TYPED(take_columns)(spmv_context *ctx, struct TYPED(columns) * all, T **list, int64_t *count)
{
    spmv_status st = all->refused ? context_fail(ctx, SPMV_ERROR_MEMORY, "no memory for %s", what) : SPMV_OK;
    if (st == SPMV_OK)
        st = host_alloc(ctx, all->count * (int64_t)sizeof **list, what, (void **)list);
    if (st == SPMV_OK && all->count > 0)
        memcpy(*list, all->col, (size_t)all->count * sizeof **list);
    *count = all->count;
    free(all->col);
    return st;
}

/* The place of a column in a vector with room. near: the number in the list of a column that was
 * found before. */
static int32_t TYPED(place_of)(const struct halo *h, const T *ghost, struct range own, int64_t column, int64_t *near)
{
    int64_t begin = column < own.begin ? 0 : h->before, end = column < own.begin ? h->before : h->before + h->after;
    if (is_in(own, column))
        return (int32_t)(h->room + column - own.begin);
    if (begin <= *near && *near < end && ghost[*near] <= column) { /* most often it or one of the next */
        begin = *near;
        for (int64_t step = 1; begin + step < end && ghost[begin + step] <= column; step *= 2)
            begin += step;
    }
    while (end - begin > 1) {
        const int64_t middle = begin + (end - begin) / 2;
        if (ghost[middle] <= column)
            begin = middle;
        else
            end = middle;
    }
    *near = begin;
    return (int32_t)(begin < h->before ? h->room - h->before + begin
                                       : h->room + own.end - own.begin + begin - h->before);
}

/* Columns of the whole matrix become places in a vector with room; `to` may be `col`. */
static void TYPED(renumber)(const spmv_group_matrix *m, const T *ghost, const T *col, int32_t *to)
{
    const struct halo *h = &m->halo;
    const struct range own = own_columns(m);
    enum { AT_ONCE = 1 << 16 };
#pragma omp parallel for num_threads(host_team(m->ctx, m->own.nnz)) schedule(static)
    for (int64_t first = 0; first < m->own.nnz; first += AT_ONCE) {
        const int64_t end = min_i64(m->own.nnz, first + AT_ONCE);
        int64_t near = 0;
        for (int64_t k = first; k < end; k++)
            to[k] = TYPED(place_of)(h, ghost, own, col[k], &near);
    }
}
