/* The typed part of cg_2_fused_omp.c, included once for each type: VALUE, TYPED(name).
 *
 * Vectors hold k columns side by side; k = 1 is a constant for the compiler. list: the running
 * columns; NULL: all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The arguments of the phases, for one thread. */
struct TYPED(job) {
    const struct omp_tiles *tiles;
    int k, count; /* columns; running columns */
    const int *list;
    VALUE *x, *r, *p, *q;
    const VALUE *d;
    struct krylov_column *state;
    struct cg_column *column;
    VALUE *rr, *rz; /* the parts of one chunk, k each */
    bool eight;     /* sums of several columns have the order of those of one */
};

enum { TYPED(SUMS) = 8 };

/* The sum of eight, as in the epilogue of a product. */
static ALWAYS_INLINE VALUE TYPED(tree)(const VALUE *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* r -= alpha q if step is set; then the parts of r'r and r'z, z = d r, for rows first ... last - 1
 * of one column. Row i, counted from first, is added to sum i mod 8. */
static ALWAYS_INLINE void TYPED(residual_rows)(const struct TYPED(job) * job, bool step, bool jacobi, int64_t first,
                                               int64_t last)
{
    enum { SUMS = TYPED(SUMS) };
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

/* Calls some(..., first column, width) for runs of neighbouring columns among the running ones, cut
 * into widths that are constants for the compiler: scalars and sums of these columns stay in
 * vectors of the processor over all rows. */
enum { TYPED(WIDEST) = 8 };
#define EACH_WIDTH(some, begin, end, ...)                                                                              \
    for (int v_ = (begin), w_ = 0; v_ < (end); v_ += w_) {                                                             \
        const int left_ = (end)-v_;                                                                                    \
        w_ = left_ >= 8 ? 8 : left_ >= 4 ? 4 : left_ >= 2 ? 2 : 1;                                                     \
        if (w_ == 8)                                                                                                   \
            some(__VA_ARGS__, v_, 8);                                                                                  \
        else if (w_ == 4)                                                                                              \
            some(__VA_ARGS__, v_, 4);                                                                                  \
        else if (w_ == 2)                                                                                              \
            some(__VA_ARGS__, v_, 2);                                                                                  \
        else                                                                                                           \
            some(__VA_ARGS__, v_, 1);                                                                                  \
    }

/* The end of the run of neighbouring columns that begins with running column a. */
static inline int TYPED(run_end)(const struct TYPED(job) * job, int a)
{
    while (a + 1 < job->count && job->list[a + 1] == job->list[a] + 1)
        a++;
    return a + 1;
}

/* The sums of `width` columns from c on over some rows. With eight, they have the order of one column, which ranks
 * promise. Otherwise the first goes on from what is there, which takes less time. */
struct TYPED(sums) {
    VALUE of[TYPED(SUMS)][TYPED(WIDEST)];
};

static ALWAYS_INLINE struct TYPED(sums) TYPED(begin_sums)(bool eight, const VALUE *from, int c, int width)
{
    struct TYPED(sums) s;
    for (int j = 0; j < (eight ? TYPED(SUMS) : 1); j++)
        for (int v = 0; v < width; v++)
            s.of[j][v] = eight ? 0 : from[c + v];
    return s;
}

static ALWAYS_INLINE void TYPED(end_sums)(const struct TYPED(sums) * s, bool eight, VALUE *to, int c, int width)
{
    for (int v = 0; v < width; v++) {
        VALUE its[TYPED(SUMS)];
        for (int j = 0; j < (eight ? TYPED(SUMS) : 1); j++)
            its[j] = s->of[j][v];
        to[c + v] = eight ? to[c + v] + TYPED(tree)(its) : its[0];
    }
}

/* The same for `width` columns from c on. */
static ALWAYS_INLINE void TYPED(residual_some)(const struct TYPED(job) * job, bool step, bool jacobi, bool eight,
                                               int64_t first, int64_t last, int c, int width)
{
    const int k = job->k;
    const VALUE *q = job->q + c, *d = job->d;
    VALUE *restrict r = job->r + c;
    VALUE alpha[TYPED(WIDEST)];
    struct TYPED(sums) rr = TYPED(begin_sums)(eight, job->rr, c, width);
    struct TYPED(sums) rz = TYPED(begin_sums)(eight, job->rz, c, width);
    for (int v = 0; v < width; v++)
        alpha[v] = (VALUE)job->column[c + v].alpha;
    for (int64_t row = first; row < last; row++) {
        const int64_t j = eight ? (row - first) % TYPED(SUMS) : 0;
        VALUE value[TYPED(WIDEST)];
        for (int v = 0; v < width; v++) {
            value[v] = step ? r[row * k + v] - alpha[v] * q[row * k + v] : r[row * k + v];
            rr.of[j][v] += value[v] * value[v];
        }
        for (int v = 0; v < width; v++)
            r[row * k + v] = value[v];
        if (jacobi)
            for (int v = 0; v < width; v++)
                rz.of[j][v] += value[v] * (d[row] * value[v]);
    }
    TYPED(end_sums)(&rr, eight, job->rr, c, width);
    TYPED(end_sums)(&rz, eight, job->rz, c, width);
}

static ALWAYS_INLINE void TYPED(residual_columns)(const struct TYPED(job) * job, bool step, bool jacobi, int64_t first,
                                                  int64_t last)
{
    for (int a = 0, end = 0; a < job->count; a = end) {
        end = TYPED(run_end)(job, a);
        if (job->eight)
            EACH_WIDTH(TYPED(residual_some), job->list[a], job->list[a] + end - a, job, step, jacobi, true, first, last)
        else
            EACH_WIDTH(TYPED(residual_some), job->list[a], job->list[a] + end - a, job, step, jacobi, false, first,
                       last)
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

static ALWAYS_INLINE void TYPED(direction_some)(const struct TYPED(job) * job, bool jacobi, int64_t first, int64_t last,
                                                int c, int width)
{
    const int k = job->k;
    const VALUE *r = job->r + c, *d = job->d;
    VALUE *restrict x = job->x + c, *restrict p = job->p + c;
    VALUE alpha[TYPED(WIDEST)], beta[TYPED(WIDEST)];
    for (int v = 0; v < width; v++) {
        alpha[v] = (VALUE)job->column[c + v].alpha;
        beta[v] = (VALUE)job->column[c + v].beta;
    }
    for (int64_t row = first; row < last; row++)
        for (int v = 0; v < width; v++) {
            const int64_t i = row * k + v;
            const VALUE old = p[i];
            x[i] += alpha[v] * old;
            p[i] = (jacobi ? d[row] * r[i] : r[i]) + beta[v] * old;
        }
}

static ALWAYS_INLINE void TYPED(direction_columns)(const struct TYPED(job) * job, bool jacobi, int64_t first,
                                                   int64_t last)
{
    for (int a = 0, end = 0; a < job->count; a = end) {
        end = TYPED(run_end)(job, a);
        EACH_WIDTH(TYPED(direction_some), job->list[a], job->list[a] + end - a, job, jacobi, first, last);
    }
}

/* p = z for all columns */
static void TYPED(first_directions)(const struct TYPED(job) * job, int64_t first, int64_t last)
{
    const int k = job->k;
    for (int64_t row = first; row < last; row++)
        for (int v = 0; v < k; v++)
            job->p[row * k + v] = job->d != NULL ? job->d[row] * job->r[row * k + v] : job->r[row * k + v];
}

static ALWAYS_INLINE void TYPED(products_some)(const struct TYPED(job) * job, bool eight, int64_t first, int64_t last,
                                               VALUE *pq, int c, int width)
{
    const int k = job->k;
    const VALUE *p = job->p + c, *q = job->q + c;
    struct TYPED(sums) s = TYPED(begin_sums)(eight, pq, c, width);
    for (int64_t row = first; row < last; row++)
        for (int v = 0; v < width; v++)
            s.of[eight ? (row - first) % TYPED(SUMS) : 0][v] += p[row * k + v] * q[row * k + v];
    TYPED(end_sums)(&s, eight, pq, c, width);
}

/* p'q of a tile's own rows, for several columns. The parts of rows that cross its ends are added
 * elsewhere. */
static ALWAYS_INLINE void TYPED(products)(const struct TYPED(job) * job, int64_t t, VALUE *pq)
{
    const struct own_rows rows = own_rows_of(&job->tiles->tile[t]);
    if (job->eight)
        EACH_WIDTH(TYPED(products_some), 0, job->k, job, true, rows.first, rows.last, pq)
    else
        EACH_WIDTH(TYPED(products_some), 0, job->k, job, false, rows.first, rows.last, pq)
}

/* The loops for one column and for several, with and without a diagonal. */
static ALWAYS_INLINE void TYPED(residual)(const struct TYPED(job) * job, bool step, int64_t first, int64_t last)
{
    if (job->k > 1 && job->d != NULL)
        TYPED(residual_columns)(job, step, true, first, last);
    else if (job->k > 1)
        TYPED(residual_columns)(job, step, false, first, last);
    else if (job->d != NULL)
        TYPED(residual_rows)(job, step, true, first, last);
    else if (step)
        TYPED(residual_rows)(job, true, false, first, last);
    else
        TYPED(residual_rows)(job, false, false, first, last);
}

static ALWAYS_INLINE void TYPED(direction)(const struct TYPED(job) * job, int64_t first, int64_t last)
{
    if (job->k > 1 && job->d != NULL)
        TYPED(direction_columns)(job, true, first, last);
    else if (job->k > 1)
        TYPED(direction_columns)(job, false, first, last);
    else if (job->d != NULL)
        TYPED(direction_rows)(job, true, first, last);
    else
        TYPED(direction_rows)(job, false, first, last);
}

#define PASSES(name, target)                                                                                           \
    static target void TYPED(residual_##name)(const struct TYPED(job) * job, bool step, int64_t first, int64_t last)   \
    {                                                                                                                  \
        TYPED(residual)(job, step, first, last);                                                                       \
    }                                                                                                                  \
    static target void TYPED(direction_##name)(const struct TYPED(job) * job, int64_t first, int64_t last)             \
    {                                                                                                                  \
        TYPED(direction)(job, first, last);                                                                            \
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
#undef EACH_WIDTH

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

/* Completes q of the row that ends in tile t but began before it. */
static void TYPED(finish_row)(const struct TYPED(job) * job, int64_t t)
{
    const struct omp_tiles *tiles = job->tiles;
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

/* q = A p for one chunk of tiles, and the chunk's part of p'q. Of a row that crosses tiles, each
 * tile contributes its own partial sum. */
static void TYPED(product_chunk)(const struct workspace *w, const struct TYPED(job) * job, struct TYPED(passes) passes,
                                 int64_t begin, int64_t end, VALUE *pq)
{
    const struct omp_tiles *tiles = job->tiles;
    const VALUE *head = tiles->head, *tail = tiles->tail, *dots = tiles->dots;
    const int k = job->k;
    for (int v = 0; v < k; v++)
        pq[v] = 0;
    for (int64_t t = begin; t < end; t++) {
        const struct tile *tile = &tiles->tile[t];
        w->product.function(tiles, t, w->product.source);
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

/* Adds the parts of all chunks in order. */
static VALUE TYPED(sum_up)(const VALUE *parts, int64_t chunks, int k, int v)
{
    VALUE sum = 0;
    for (int64_t g = 0; g < chunks; g++)
        sum += parts[g * k + v];
    return sum;
}

/* The sums over all ranks of the parts of the running columns, `sets` of them, to w->sums: of each set one for each
 * running column. After a failure they are NaN, so the run ends. */
static void TYPED(sum_ranks)(struct workspace *w, const void *parts, int sets, int k)
{
    const int count = sets * w->count;
    VALUE *const turned = w->turned, *const sums = w->sums;
    for (int i = 0; i < count; i++) {
        const VALUE *const from =
            (const VALUE *)parts + (int64_t)(i / w->count) * w->chunks * k + w->active[i % w->count];
        for (int64_t g = 0; g < w->chunks; g++)
            turned[i * w->chunks + g] = from[g * k];
    }
    if (w->failed == SPMV_OK)
        w->failed =
            w->ranks->sum(w->ranks->self, sizeof *sums == 8 ? SPMV_F64 : SPMV_F32, turned, w->chunks, count, sums);
    for (int i = 0; i < count && w->failed != SPMV_OK; i++)
        sums[i] = NAN;
}

/* rr and rz of the running columns, from the parts. */
static void TYPED(read_squares)(struct workspace *w, const struct TYPED(job) * job)
{
    const VALUE *const sums = w->sums;
    const bool jacobi = job->d != NULL;
    if (w->ranks != NULL && w->count > 0)
        TYPED(sum_ranks)(w, w->rr, jacobi ? 2 : 1, job->k);
    for (int a = 0; a < w->count; a++) {
        const int v = w->active[a];
        struct cg_column *c = &job->column[v];
        c->rr = (double)(w->ranks != NULL ? sums[a] : TYPED(sum_up)(w->rr, w->chunks, job->k, v));
        c->rz = !jacobi            ? c->rr
                : w->ranks != NULL ? (double)sums[w->count + a]
                                   : (double)TYPED(sum_up)(w->rz, w->chunks, job->k, v);
        job->state[v].residual = sqrt(c->rr);
    }
}

/* Phase 2 of one chunk; without step, the work before the first iteration. */
static void TYPED(residual_chunk)(const struct workspace *w, struct TYPED(job) * job, struct TYPED(passes) passes,
                                  int64_t g, int64_t begin, int64_t end, bool step)
{
    const struct tile *tile = job->tiles->tile;
    job->rr = (VALUE *)w->rr + g * job->k;
    job->rz = (VALUE *)w->rz + g * job->k;
    for (int v = 0; v < job->k; v++)
        job->rr[v] = job->rz[v] = 0;
    for (int64_t t = begin; t < end; t++) {
        if (step)
            TYPED(finish_row)(job, t);
        passes.residual(job, step, tile[t].begin.row, tile[t + 1].begin.row);
    }
}

/* The work of one chunk in a phase. */
static void TYPED(work)(const struct cg *cg, struct TYPED(job) * job, struct TYPED(passes) passes, enum kind kind,
                        int64_t g)
{
    const struct workspace *w = cg->state;
    const struct tile *tile = job->tiles->tile;
    g = w->order != NULL ? w->order[g] : g;
    const int64_t begin = w->first_tile[g], end = w->first_tile[g + 1];
    job->count = w->count;
    switch (kind) {
    case START:
        TYPED(residual_chunk)(w, job, passes, g, begin, end, false);
        if (!cg->continues)
            TYPED(first_directions)(job, tile[begin].begin.row, tile[end].begin.row);
        break;
    case PRODUCT:
    case EDGE:
        TYPED(product_chunk)(w, job, passes, begin, end, (VALUE *)w->pq + g * job->k);
        break;
    case RESIDUAL:
        TYPED(residual_chunk)(w, job, passes, g, begin, end, true);
        break;
    default:
        passes.direction(job, tile[begin].begin.row, tile[end].begin.row);
    }
}

/* Lists the columns that still run. */
static void TYPED(list_running)(struct workspace *w, const struct TYPED(job) * job)
{
    w->count = 0;
    for (int v = 0; v < job->k; v++)
        if (job->state[v].stop == COLUMN_RUNS)
            w->active[w->count++] = v;
}

/* After phase 1: alpha = rz / pq; stops the columns that cannot continue. */
static void TYPED(after_product)(struct workspace *w, const struct TYPED(job) * job)
{
    const VALUE *const sums = w->sums;
    if (w->ranks != NULL && w->count > 0)
        TYPED(sum_ranks)(w, w->pq, 1, job->k);
    for (int a = 0; a < w->count; a++) {
        const int v = w->active[a];
        struct cg_column *c = &job->column[v];
        c->pq = (double)(w->ranks != NULL ? sums[a] : TYPED(sum_up)(w->pq, w->chunks, job->k, v));
        c->alpha = (double)((VALUE)c->rz / (VALUE)c->pq);
        if (cg_is_broken(c) || cg_has_diverged(&job->state[v]))
            job->state[v].stop = COLUMN_BROKEN;
        else if (job->state[v].iterations >= job->state[v].limit)
            job->state[v].stop = COLUMN_LIMIT;
    }
    TYPED(list_running)(w, job);
}

/* After phase 2: beta = rz / old rz. */
static void TYPED(after_residual)(struct workspace *w, const struct TYPED(job) * job)
{
    for (int a = 0; a < w->count; a++)
        job->column[w->active[a]].beta = job->column[w->active[a]].rz;
    TYPED(read_squares)(w, job);
    for (int a = 0; a < w->count; a++) {
        struct cg_column *c = &job->column[w->active[a]];
        cg_error_step(&c->error, c->beta, c->pq, c->rz);
        c->beta = (double)((VALUE)c->rz / (VALUE)c->beta);
        job->state[w->active[a]].iterations++;
    }
}

/* Before the first iteration: the start residuals. */
static void TYPED(after_start)(const struct cg *cg, const struct TYPED(job) * job)
{
    struct workspace *w = cg->state;
    TYPED(read_squares)(w, job);
    for (int a = 0; a < w->count; a++) {
        struct krylov_column *c = &job->state[w->active[a]];
        cg_error_begin(&job->column[w->active[a]].error);
        c->start_residual = c->residual;
        c->enough = krylov_enough(cg->s.type, c);
    }
}

/* The product is complete: the next phase. */
static void TYPED(end_product)(struct workspace *w, const struct TYPED(job) * job)
{
    TYPED(after_product)(w, job);
    open_phase(w, w->count > 0 ? RESIDUAL : STOP);
}

/* Waits for the elements of other ranks and opens the phase for the chunks that need them. */
static void TYPED(open_edge)(struct workspace *w, const struct TYPED(job) * job)
{
    if (w->failed == SPMV_OK)
        w->failed = w->ranks->fetch_finish(w->ranks->self, job->p, job->k);
    if (w->failed != SPMV_OK)
        open_phase(w, STOP);
    else if (w->inner < w->chunks)
        open_phase(w, EDGE);
    else
        TYPED(end_product)(w, job);
}

/* The same for the phases of a product: starts to fetch elements of other ranks. */
static void TYPED(open_product)(struct workspace *w, const struct TYPED(job) * job)
{
    w->failed = w->ranks->fetch_start(w->ranks->self, job->p, job->k);
    if (w->failed == SPMV_OK && w->inner > 0)
        open_phase(w, PRODUCT);
    else
        TYPED(open_edge)(w, job);
}

/* After an iteration: reports the running columns to the callback and stops those with a small
 * enough residual. Called by the calling thread if there is a callback. */
static void TYPED(look_around)(struct cg *cg, const struct TYPED(job) * job, bool tell)
{
    struct workspace *w = cg->state;
    const bool cancelled = tell && krylov_tell_running(&cg->s) != SPMV_OK;
    for (int a = 0; a < w->count && !cancelled; a++) {
        struct krylov_column *c = &job->state[w->active[a]];
        if (isfinite(c->residual) && c->residual <= c->enough)
            c->stop = COLUMN_DONE;
    }
    TYPED(list_running)(w, job);
    if (w->count == 0 || cancelled || w->failed != SPMV_OK)
        open_phase(w, STOP);
    else if (w->ranks == NULL)
        open_phase(w, PRODUCT);
    else
        TYPED(open_product)(w, job);
}

/* Called by the thread that finished the last chunk of a phase: the work between it and the next
 * phase. */
static void TYPED(go_on)(struct cg *cg, const struct TYPED(job) * job, enum kind kind, int me)
{
    struct workspace *w = cg->state;
    if (kind == PRODUCT && w->ranks != NULL) {
        TYPED(open_edge)(w, job);
        return;
    }
    if (kind == PRODUCT || kind == EDGE) {
        TYPED(end_product)(w, job);
        return;
    }
    if (kind == RESIDUAL) {
        TYPED(after_residual)(w, job);
        open_phase(w, DIRECTION);
        return;
    }
    if (kind == START)
        TYPED(after_start)(cg, job);
    else
        cg->s.iterations++;
    /* a run that continues another one has been reported already */
    const bool tells = cg->s.on_iteration != NULL || cg->s.on_iterate != NULL;
    const bool tell = tells && (kind == DIRECTION || cg->s.iterations == 0);
    if (tell && me != 0)
        open_phase(w, TELL);
    else
        TYPED(look_around)(cg, job, tell);
}

/* Processes the remaining chunks of one thread's share. Returns their number. */
static int64_t TYPED(work_on)(struct cg *cg, struct TYPED(job) * job, struct TYPED(passes) passes, long long phase,
                              int part)
{
    int64_t done = 0, begin = 0, end = 0;
    while (claim(cg->state, part, phase, &begin, &end))
        for (done += end - begin; begin < end; begin++)
            TYPED(work)(cg, job, passes, (enum kind)(phase % KINDS), begin);
    return done;
}

/* The parallel region of one thread. */
static void TYPED(thread)(struct cg *cg, int me)
{
    struct workspace *w = cg->state;
    struct TYPED(job) job = {.tiles = w->product.tiles,
                             .k = cg->s.columns,
                             .list = w->active,
                             .x = cg->s.x,
                             .r = cg->s.r,
                             .p = cg->p,
                             .q = cg->s.q,
                             .d = w->inverse_diagonal,
                             .eight = w->ranks != NULL,
                             .state = cg->s.column,
                             .column = cg->column};
    const struct TYPED(passes) passes = TYPED(passes_for)(w->product.tiles->avx2);
    for (;;) {
        const long long phase = atomic_load_explicit(&w->phase, memory_order_acquire);
        const enum kind kind = (enum kind)(phase % KINDS);
        if (kind == STOP)
            return;
        if (kind == TELL && me == 0) {
            TYPED(look_around)(cg, &job, true);
            continue;
        }
        /* First the thread's own chunks; then, if the phase still lasts, the remaining chunks of
         * the others. */
        for (int i = 0; i < w->threads && kind != TELL; i++) {
            const int64_t done = TYPED(work_on)(cg, &job, passes, phase, (me + i) % w->threads);
            if (done > 0 && atomic_fetch_add(&w->done, done) + done == phase_last(w, kind) - phase_first(w, kind))
                TYPED(go_on)(cg, &job, kind, me);
            if (i == 0 && phase_passes(w, phase, HELPS_AFTER))
                break;
        }
        if (!phase_passes(w, phase, SLEEPS_AFTER))
            sleep_through(w, phase);
    }
}

static void TYPED(run)(struct cg *cg)
{
    struct workspace *w = cg->state;
    struct TYPED(job) job = {.k = cg->s.columns, .state = cg->s.column, .column = cg->column};
    TYPED(list_running)(w, &job);
    open_phase(w, START);
#pragma omp parallel num_threads(w->threads)
    TYPED(thread)(cg, omp_get_thread_num());
}
