/* The typed part of cg_2_fused_omp.c, included once a type: VALUE, TYPED(name).
 *
 * Vectors hold k columns side by side; one alone is a constant to the compiler. list: the columns that run; NULL: all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* What the phases work with, of one thread. */
struct TYPED(job) {
    const struct tiles *tiles;
    int k, count; /* columns, those that run */
    const int *list;
    VALUE *x, *r, *p, *q;
    const VALUE *d;
    const struct cg_column *column;
    VALUE *rr, *rz; /* the parts of one group, k each */
};

/* The sum of eight, as the epilogue of a product has it. */
static ALWAYS_INLINE VALUE TYPED(tree)(const VALUE *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* r -= alpha q where step says so; then the parts of r'r and r'z, z = d r, of rows first ... last - 1 of one column.
 * Row i goes to sum i mod 8, counted from first. */
static ALWAYS_INLINE void TYPED(residual_rows)(const struct TYPED(job) * job, bool step, bool jacobi, int64_t first,
                                               int64_t last)
{
    enum { SUMS = 8 };
    const VALUE alpha = (VALUE)job->column->alpha, *q = job->q + first, *d = jacobi ? job->d + first : NULL;
    VALUE *restrict r = job->r + first;
    const int64_t n = last - first;
    VALUE s[SUMS] = {0}, sz[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) {
            const VALUE value = step ? r[i + j] - alpha * q[i + j] : r[i + j];
            r[i + j] = value;
            s[j] += value * value;
            if (jacobi)
                sz[j] += value * (d[i + j] * value);
        }
    for (int j = 0; i + j < n; j++) {
        const VALUE value = step ? r[i + j] - alpha * q[i + j] : r[i + j];
        r[i + j] = value;
        s[j] += value * value;
        if (jacobi)
            sz[j] += value * (d[i + j] * value);
    }
    job->rr[0] += TYPED(tree)(s);
    if (jacobi)
        job->rz[0] += TYPED(tree)(sz);
}

/* The same of several columns, each summed row by row. */
static ALWAYS_INLINE void TYPED(residual_columns)(const struct TYPED(job) * job, bool step, bool jacobi, int64_t first,
                                                  int64_t last)
{
    const int k = job->k;
    for (int64_t row = first; row < last; row++)
        for (int a = 0; a < job->count; a++) {
            const int v = job->list[a];
            VALUE value = job->r[row * k + v];
            if (step)
                value -= (VALUE)job->column[v].alpha * job->q[row * k + v];
            job->r[row * k + v] = value;
            job->rr[v] += value * value;
            if (jacobi)
                job->rz[v] += value * (job->d[row] * value);
        }
}

/* x += alpha p, p = z + beta p */
static ALWAYS_INLINE void TYPED(direction_rows)(const struct TYPED(job) * job, bool jacobi, int64_t first, int64_t last)
{
    const VALUE alpha = (VALUE)job->column->alpha, beta = (VALUE)job->column->beta;
    const VALUE *r = job->r, *d = job->d;
    VALUE *restrict x = job->x, *restrict p = job->p;
    for (int64_t i = first; i < last; i++) {
        const VALUE old = p[i];
        x[i] += alpha * old;
        p[i] = (jacobi ? d[i] * r[i] : r[i]) + beta * old;
    }
}

static ALWAYS_INLINE void TYPED(direction_columns)(const struct TYPED(job) * job, bool jacobi, int64_t first,
                                                   int64_t last)
{
    const int k = job->k;
    for (int64_t row = first; row < last; row++)
        for (int a = 0; a < job->count; a++) {
            const int v = job->list[a];
            const int64_t i = row * k + v;
            const VALUE old = job->p[i];
            job->x[i] += (VALUE)job->column[v].alpha * old;
            job->p[i] = (jacobi ? job->d[row] * job->r[i] : job->r[i]) + (VALUE)job->column[v].beta * old;
        }
}

/* p = z of all columns */
static void TYPED(first_directions)(const struct TYPED(job) * job, int64_t first, int64_t last)
{
    const int k = job->k;
    for (int64_t row = first; row < last; row++)
        for (int v = 0; v < k; v++)
            job->p[row * k + v] = job->d != NULL ? job->d[row] * job->r[row * k + v] : job->r[row * k + v];
}

/* p'q of a tile of several columns: the rows of its own, and of those that cross its ends the parts it has. */
static ALWAYS_INLINE void TYPED(products)(const struct TYPED(job) * job, int64_t t, VALUE *pq)
{
    const struct own_rows rows = own_rows_of(&job->tiles->tile[t]);
    const int k = job->k;
    for (int64_t row = rows.first; row < rows.last; row++)
        for (int v = 0; v < k; v++)
            pq[v] += job->p[row * k + v] * job->q[row * k + v];
}

#define PASSES(name, target)                                                                                           \
    static target void TYPED(residual_##name)(const struct TYPED(job) * job, bool step, int64_t first, int64_t last)   \
    {                                                                                                                  \
        if (job->k > 1)                                                                                                \
            TYPED(residual_columns)(job, step, job->d != NULL, first, last);                                           \
        else if (job->d != NULL)                                                                                       \
            TYPED(residual_rows)(job, step, true, first, last);                                                        \
        else if (step)                                                                                                 \
            TYPED(residual_rows)(job, true, false, first, last);                                                       \
        else                                                                                                           \
            TYPED(residual_rows)(job, false, false, first, last);                                                      \
    }                                                                                                                  \
    static target void TYPED(direction_##name)(const struct TYPED(job) * job, int64_t first, int64_t last)             \
    {                                                                                                                  \
        if (job->k > 1)                                                                                                \
            TYPED(direction_columns)(job, job->d != NULL, first, last);                                                \
        else if (job->d != NULL)                                                                                       \
            TYPED(direction_rows)(job, true, first, last);                                                             \
        else                                                                                                           \
            TYPED(direction_rows)(job, false, first, last);                                                            \
    }                                                                                                                  \
    static target void TYPED(products_##name)(const struct TYPED(job) * job, int64_t t, VALUE * pq)                    \
    {                                                                                                                  \
        TYPED(products)(job, t, pq);                                                                                   \
    }
PASSES(plain, )
#ifdef __x86_64__
PASSES(avx2, __attribute__((target("avx2"))))
#endif
#undef PASSES

struct TYPED(passes) {
    void (*residual)(const struct TYPED(job) *, bool step, int64_t first, int64_t last);
    void (*direction)(const struct TYPED(job) *, int64_t first, int64_t last);
    void (*products)(const struct TYPED(job) *, int64_t t, VALUE *pq);
};

static struct TYPED(passes) TYPED(passes_for)(bool avx2)
{
#ifdef __x86_64__
    if (avx2)
        return (struct TYPED(passes)){TYPED(residual_avx2), TYPED(direction_avx2), TYPED(products_avx2)};
#endif
    (void)avx2;
    return (struct TYPED(passes)){TYPED(residual_plain), TYPED(direction_plain), TYPED(products_plain)};
}

/* q of the row that ends in tile t and began before it. */
static void TYPED(finish_row)(const struct TYPED(job) * job, int64_t t)
{
    const struct tiles *tiles = job->tiles;
    const int64_t from = tiles_open_row(tiles, t);
    const VALUE *head = tiles->head, *tail = tiles->tail;
    const int k = job->k;
    for (int v = 0; v < k && from < t; v++) {
        VALUE sum = tail[from * k + v];
        for (int64_t u = from + 1; u < t; u++)
            sum += tail[u * k + v];
        job->q[tiles->tile[t].begin.row * k + v] = sum + head[t * k + v];
    }
}

/* q = A p of one group of tiles, and its part of p'q. Of rows that cross tiles each tile has the part that it added
 * up. */
static void TYPED(product_group)(const struct workspace *w, const struct TYPED(job) * job, struct TYPED(passes) passes,
                                 int64_t begin, int64_t end, VALUE *pq)
{
    const struct tiles *tiles = job->tiles;
    const VALUE *head = tiles->head, *tail = tiles->tail, *dots = tiles->dots;
    const int k = job->k;
    for (int v = 0; v < k; v++)
        pq[v] = 0;
    for (int64_t t = begin; t < end; t++) {
        const struct tile *tile = &tiles->tile[t];
        w->pieces.function(tiles, t, w->pieces.source);
        if (k == 1)
            pq[0] += dots[t];
        else
            passes.products(job, t, pq);
        for (int v = 0; v < k; v++) {
            if (tile->begun && tile->begin.row < tile[1].begin.row)
                pq[v] += job->p[tile->begin.row * k + v] * head[t * k + v];
            if (tile[1].begun)
                pq[v] += job->p[tile[1].begin.row * k + v] * tail[t * k + v];
        }
    }
}

/* The parts of all groups, in their order. */
static VALUE TYPED(sum_up)(const VALUE *parts, int64_t groups, int k, int v)
{
    VALUE sum = 0;
    for (int64_t g = 0; g < groups; g++)
        sum += parts[g * k + v];
    return sum;
}

/* rr and rz of the columns that run, from the parts. */
static void TYPED(read_squares)(const struct workspace *w, const struct TYPED(job) * job, struct cg_column *column)
{
    for (int a = 0; a < job->count; a++) {
        const int v = job->k == 1 ? 0 : job->list[a];
        column[v].rr = (double)TYPED(sum_up)(w->rr, w->groups, job->k, v);
        column[v].rz = job->d != NULL ? (double)TYPED(sum_up)(w->rz, w->groups, job->k, v) : column[v].rr;
    }
}

/* Phase 2 of a thread, or, without a step, what comes before the first iteration. */
static void TYPED(residuals)(const struct workspace *w, struct TYPED(job) * job, struct TYPED(passes) passes,
                             struct share share, bool step)
{
    const struct tile *tile = job->tiles->tile;
    for (int64_t g = share.begin; g < share.end; g++) {
        const int64_t end = min_i64((g + 1) * w->group, job->tiles->count);
        job->rr = (VALUE *)w->rr + g * job->k;
        job->rz = (VALUE *)w->rz + g * job->k;
        for (int v = 0; v < job->k; v++)
            job->rr[v] = job->rz[v] = 0;
        for (int64_t t = g * w->group; t < end; t++) {
            if (step)
                TYPED(finish_row)(job, t);
            passes.residual(job, step, tile[t].begin.row, tile[t + 1].begin.row);
        }
    }
}

/* The columns that run, after some have stopped. */
static void TYPED(list_running)(struct TYPED(job) * job, int *list)
{
    job->count = 0;
    for (int v = 0; v < job->k; v++)
        if (job->column[v].stop == CG_RUNS)
            list[job->count++] = v;
}

/* Stops those whose residual is small enough. */
static void TYPED(stop_done)(const struct TYPED(job) * job, struct cg_column *column)
{
    for (int a = 0; a < job->count; a++) {
        struct cg_column *c = &column[job->list[a]];
        if (isfinite(c->rr) && sqrt(c->rr) <= c->enough)
            c->stop = CG_DONE;
    }
}

/* Stops those that cannot go on; alpha of the others. */
static void TYPED(stop_broken)(const struct TYPED(job) * job, struct cg_column *column, bool limit)
{
    for (int a = 0; a < job->count; a++) {
        struct cg_column *c = &column[job->list[a]];
        if (!isfinite(c->rr) || !isfinite(c->rz) || !isfinite(c->pq) || c->rz <= 0 || c->pq <= 0)
            c->stop = CG_BROKEN;
        else if (limit)
            c->stop = CG_LIMIT;
        c->alpha = (double)((VALUE)c->rz / (VALUE)c->pq);
    }
}

/* The largest residual of the columns that run, to the caller's function; by the thread that called. */
static void TYPED(tell)(struct cg_region *region, const struct TYPED(job) * job)
{
    struct workspace *w = region->state;
    const spmv_cg_options *o = region->options;
    double most = 0;
    if (o->on_iteration == NULL)
        return;
    for (int a = 0; a < job->count; a++) {
        const double residual = sqrt(job->column[job->list[a]].rr);
        most = residual <= most ? most : residual;
    }
    w->cancelled = o->on_iteration(region->iterations, most, o->user) != 0;
}

/* The region, seen by one thread. All threads come to the same decisions, as they add up the same numbers. */
static void TYPED(thread)(struct cg_region *region, int me, int team)
{
    struct workspace *w = region->state;
    const struct tiles *tiles = w->pieces.tiles;
    const int k = region->columns;
    struct cg_column *column = w->column + (int64_t)me * k;
    int *list = w->active + (int64_t)me * k;
    struct TYPED(job) job = {.tiles = tiles,
                             .k = k,
                             .list = list,
                             .x = region->x,
                             .r = region->r,
                             .p = region->p,
                             .q = region->q,
                             .d = region->inverse_diagonal,
                             .column = column};
    const struct TYPED(passes) passes = TYPED(passes_for)(tiles->avx2);
    const struct share share = {w->groups * me / team, w->groups * (me + 1) / team};
    const int64_t first = tiles->tile[min_i64(share.begin * w->group, tiles->count)].begin.row;
    const int64_t last = tiles->tile[min_i64(share.end * w->group, tiles->count)].begin.row;
    const double roundoff = sizeof(VALUE) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    memcpy(column, region->column, (size_t)k * sizeof *column);
    TYPED(list_running)(&job, list);
    /* rr = r'r, rz = r'z, p = z */
    TYPED(residuals)(w, &job, passes, share, false);
    if (!region->keeps_p)
        TYPED(first_directions)(&job, first, last);
    wait_for_all(&w->barrier, team);
    TYPED(read_squares)(w, &job, column);
    for (int a = 0; a < job.count; a++) {
        struct cg_column *c = &column[list[a]];
        c->start_residual = sqrt(c->rr);
        c->enough = fmax(c->tolerance, roundoff * c->start_residual);
    }
    if (me == 0 && region->iterations == 0)
        TYPED(tell)(region, &job);
    for (int64_t done = 0;; done++) {
        wait_for_all(&w->barrier, team);
        if (w->cancelled)
            break;
        TYPED(stop_done)(&job, column);
        TYPED(list_running)(&job, list);
        if (job.count == 0)
            break;
        /* q = A p, pq = p'q */
        for (int64_t g = share.begin; g < share.end; g++)
            TYPED(product_group)
        (w, &job, passes, g * w->group, min_i64((g + 1) * w->group, tiles->count), (VALUE *)w->pq + g * k);
        wait_for_all(&w->barrier, team);
        /* alpha = rz / pq */
        for (int a = 0; a < job.count; a++)
            column[list[a]].pq = (double)TYPED(sum_up)(w->pq, w->groups, k, list[a]);
        TYPED(stop_broken)(&job, column, done >= region->max_iterations);
        TYPED(list_running)(&job, list);
        if (job.count == 0)
            break;
        /* r = r - alpha q, rr = r'r, rz = r'z */
        TYPED(residuals)(w, &job, passes, share, true);
        wait_for_all(&w->barrier, team);
        /* beta = rz / old rz */
        for (int a = 0; a < job.count; a++)
            column[list[a]].beta = column[list[a]].rz;
        TYPED(read_squares)(w, &job, column);
        for (int a = 0; a < job.count; a++) {
            struct cg_column *c = &column[list[a]];
            c->beta = (double)((VALUE)c->rz / (VALUE)c->beta);
            c->iterations++;
        }
        /* x = x + alpha p, p = z + beta p */
        passes.direction(&job, first, last);
        if (me == 0) {
            region->iterations++;
            TYPED(tell)(region, &job);
        }
    }
    if (me == 0) {
        memcpy(region->column, column, (size_t)k * sizeof *column);
        region->told = w->cancelled ? SPMV_CANCELLED : SPMV_OK;
    }
}

static void TYPED(run)(struct cg_region *region)
{
    struct workspace *w = region->state;
#pragma omp parallel num_threads(w->threads)
    TYPED(thread)(region, omp_get_thread_num(), omp_get_num_threads());
}
