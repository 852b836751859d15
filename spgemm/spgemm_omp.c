/* Method "rows" of the backend omp: Gustavson's algorithm by rows.
 *
 * The rows of A are cut into tasks of about equal numbers of products, which the threads draw from
 * a counter. A row of C is computed by one thread, so no sum depends on the number of threads.
 *
 * Symbolic. A thread marks the columns of a row of C in a tree of bits with three levels: one bit
 * for a column, one for 64 columns, one for 4096. Reading the tree gives the columns in ascending
 * order without a sort, and clears it. The columns of a task go to memory of its own, until the
 * lengths of all rows are known.
 *
 * Where there are many products for each column, a thread stamps columns with the number of the row
 * instead, which needs no branch for each product, and sorts the columns found.
 *
 * Numeric. The columns of a row are known, so its sums start from -0, which does not change the
 * first product (floating_typed.h), and no branch asks whether a column is new. A thread has an
 * array with a sum for each column between the first and the last one of a row. Hash tables with
 * the columns of a row only were slower on banded, random and power-law matrices of up to 2.5
 * million columns.
 *
 * F. G. Gustavson, ACM TOMS 4(3), 1978.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "spgemm/spgemm_omp.h"

/* Products of a task: enough to hide the cost of drawing it, and at least TASKS_EACH tasks for
 * each thread if there are so many products. */
enum { TASK_LEAST = 1 << 12, TASK_MOST = 1 << 18, TASKS_EACH = 16 };

/* Stamps take 4 bytes for each column of B, in a cache. */
enum { STAMPS_MOST = 1 << 20 };

struct rows_state {
    struct row_tasks tasks;
    /* sums of the numeric phase, `room` bytes for each of the threads that it uses */
    char *memory;
    int64_t room;
    int threads;
};

/* ------------------------------------------------------------------------------ tasks */

/* The cost of the rows before row i: their products, and 1 for each row. */
static int64_t cost(const struct spmv_spgemm_plan *plan, int64_t i)
{
    return spgemm_products_before(plan, i) + i;
}

/* The first row i with a cost of at least this. */
static int64_t row_at(const struct spmv_spgemm_plan *plan, int64_t wanted)
{
    int64_t low = 0, high = plan->a.rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (cost(plan, middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

spmv_status spgemm_cut_rows(const struct spmv_spgemm_plan *plan, struct row_tasks *tasks)
{
    const int64_t rows = plan->a.rows, all = cost(plan, rows);
    const int64_t wanted = all / ((int64_t)TASKS_EACH * plan->ctx->threads);
    const int64_t each = max_i64(TASK_LEAST, min_i64(TASK_MOST, wanted));
    tasks->n = min_i64(rows, ceil_divide(all, each));
    const spmv_status st = host_alloc(plan->ctx, (tasks->n + 1) * (int64_t)sizeof *tasks->first_row,
                                      "the tasks of a product", (void **)&tasks->first_row);
    for (int64_t c = 0; st == SPMV_OK && c <= tasks->n; c++)
        tasks->first_row[c] = c == tasks->n ? rows : row_at(plan, c * each);
    return st;
}

int64_t spgemm_task_most(const struct spmv_spgemm_plan *plan, const struct row_tasks *tasks, int64_t c)
{
    const int64_t from = tasks->first_row[c], end = tasks->first_row[c + 1];
    int64_t dense = 0;
    if (!multiply_fits(end - from, plan->b.cols, &dense))
        dense = INT64_MAX;
    return min_i64(spgemm_products_before(plan, end) - spgemm_products_before(plan, from), dense);
}

int64_t spgemm_tasks_most(const struct spmv_spgemm_plan *plan, const struct row_tasks *tasks)
{
    int64_t most = 1;
    for (int64_t c = 0; c < tasks->n; c++)
        most = max_i64(most, spgemm_task_most(plan, tasks, c));
    return most;
}

/* --------------------------------------------------------------------- symbolic phase */

/* Which columns the present row has: those whose number is that of the row. */
struct stamps {
    uint32_t *of; /* a number for each column; NULL: not made yet */
    uint32_t row; /* counts the rows of the thread */
    bool used;    /* for the next row */
};

/* The next row; false: there is no memory. */
static bool next_stamp(struct stamps *s, int64_t cols)
{
    if (s->of == NULL)
        host_zeros(NULL, cols * (int64_t)sizeof *s->of, "", (void **)&s->of);
    else if (s->row == UINT32_MAX)
        memset(s->of, 0, (size_t)cols * sizeof *s->of);
    s->row = s->of != NULL && s->row < UINT32_MAX ? s->row + 1 : 1;
    return s->of != NULL;
}

/* The last one of the entries from k on, before `end`, whose columns follow each other. Their rows of B
 * are one after the other in memory. */
static inline int64_t last_consecutive(const int32_t *col, int64_t k, int64_t end)
{
    while (k + 1 < end && col[k + 1] == col[k] + 1)
        k++;
    return k;
}

/* Writes each column of the products of entries begin ... end - 1 of A once, in the order of the
 * products, without a branch for each product. Returns their number. */
static __attribute__((noinline)) int64_t stamped_columns(const spmv_csr *a, const spmv_csr *b, int64_t begin,
                                                         int64_t end, struct stamps *s, int32_t *col)
{
    int64_t n = 0;
    uint32_t *const of = s->of;
    const uint32_t row = s->row;
    for (int64_t k = begin; k < end; k++) {
        const int64_t first = row_first(b, a->col[k]);
        k = last_consecutive(a->col, k, end);
        const int64_t last = row_first(b, a->col[k] + 1);
        for (int64_t l = first; l < last; l++) {
            const int32_t j = b->col[l];
            col[n] = j;
            n += of[j] != row;
            of[j] = row;
        }
    }
    return n;
}

/* Writes the columns of row i of C and returns their number. col has room for one more than the
 * products. */
static int64_t row_columns(const spmv_csr *a, const spmv_csr *b, int64_t i, struct marks *m, struct stamps *s,
                           int32_t *col)
{
    const int64_t begin = row_first(a, i), end = row_first(a, i + 1);
    if (end - begin == 1) { /* a row of B */
        const int64_t first = row_first(b, a->col[begin]), n = row_first(b, a->col[begin] + 1) - first;
        if (n > 0)
            memcpy(col, b->col + first, (size_t)n * sizeof *col);
        return n;
    }
    if (s->used && next_stamp(s, b->cols)) {
        const int64_t n = stamped_columns(a, b, begin, end, s, col);
        sort_columns(col, n, m->column, b->cols);
        return n;
    }
    for (int64_t k = begin; k < end; k++) {
        const int64_t last = row_first(b, a->col[k] + 1);
        for (int64_t l = row_first(b, a->col[k]); l < last; l++)
            mark(m, b->col[l]);
    }
    return take_marks(m, col);
}

/* What the threads share in the symbolic phase. */
struct symbolic {
    const struct spmv_spgemm_plan *plan;
    const struct rows_state *state;
    bool stamps;         /* may be used */
    int64_t *lengths;    /* of the rows of C */
    int32_t **found;     /* the columns of each task */
    int64_t most;        /* columns that a task may have before they are counted */
    int64_t limit;       /* entries of C that the memory can hold */
    atomic_llong so_far; /* entries found */
    atomic_int failed;   /* 1: an allocation failed, 2: too many entries */
};

/* Finds the columns of one task. col: room for s->most columns and one more. The next task of the
 * thread uses stamps if this one had many products for each column. */
static void find_columns(struct symbolic *s, int64_t task, struct marks *m, struct stamps *stamps, int32_t *col)
{
    enum { MANY = 3 };
    const int64_t first = s->state->tasks.first_row[task], end = s->state->tasks.first_row[task + 1];
    int64_t n = 0;
    for (int64_t i = first; i < end; i++) {
        s->lengths[i] = row_columns(&s->plan->a, &s->plan->b, i, m, stamps, col + n);
        n += s->lengths[i];
    }
    stamps->used =
        s->stamps && spgemm_products_before(s->plan, end) - spgemm_products_before(s->plan, first) >= MANY * n;
    if (atomic_fetch_add(&s->so_far, n) + n > s->limit)
        atomic_store(&s->failed, 2);
    else if (host_alloc(NULL, n * (int64_t)sizeof *col, "", (void **)&s->found[task]) != SPMV_OK)
        atomic_store(&s->failed, 1);
    else if (n > 0)
        memcpy(s->found[task], col, (size_t)n * sizeof *col);
}

static void find_all_columns(struct symbolic *s, int threads)
{
    const int64_t cols = s->plan->b.cols;
#pragma omp parallel num_threads(threads)
    {
        uint64_t *memory = NULL;
        struct marks m = {.column = NULL};
        struct stamps stamps = {.of = NULL};
        int32_t *col = NULL;
        if (host_zeros(NULL, marks_words(cols) * (int64_t)sizeof *memory, "", (void **)&memory) != SPMV_OK ||
            host_alloc(NULL, (s->most + 1) * (int64_t)sizeof *col, "", (void **)&col) != SPMV_OK)
            atomic_store(&s->failed, 1);
        else
            m = marks_in(memory, cols);
#pragma omp for schedule(dynamic, 1)
        for (int64_t c = 0; c < s->state->tasks.n; c++)
            if (atomic_load_explicit(&s->failed, memory_order_relaxed) == 0)
                find_columns(s, c, &m, &stamps, col);
        host_free(memory);
        host_free(stamps.of);
        host_free(col);
    }
}

/* Moves the columns of all tasks to their place. */
static void join_columns(struct symbolic *s, int32_t *col, const int64_t *row_ptr)
{
#pragma omp parallel for num_threads(heavy_team(s->plan->ctx, s->plan->nnz)) schedule(dynamic, 1)
    for (int64_t c = 0; c < s->state->tasks.n; c++) {
        const int64_t from = row_ptr[s->state->tasks.first_row[c]],
                      n = row_ptr[s->state->tasks.first_row[c + 1]] - from;
        if (n > 0)
            memcpy(col + from, s->found[c], (size_t)n * sizeof *col);
        host_free(s->found[c]);
        s->found[c] = NULL;
    }
}

/* Threads of the symbolic phase: fewer than the context has if their marks exceed max_bytes.
 * *bytes: the working memory without the columns found. */
static int symbolic_threads(const struct spmv_spgemm_plan *plan, const struct symbolic *s, int64_t *bytes)
{
    const int64_t each = marks_words(plan->b.cols) * (int64_t)sizeof(uint64_t) +
                         (s->most + 1) * (int64_t)sizeof(int32_t) + (s->stamps ? 4 * plan->b.cols : 0);
    const int64_t fixed = (plan->a.rows + 1) * (int64_t)sizeof(int64_t) + s->state->tasks.n * (int64_t)sizeof *s->found;
    int threads = heavy_team(plan->ctx, plan->products);
    while (plan->max_bytes > 0 && threads > 1 && threads * each + fixed > plan->max_bytes)
        threads--;
    *bytes = threads * each + fixed;
    return threads;
}

/* ----------------------------------------------------------- memory of the numeric phase */

/* Room for the sums of the row with the largest distance from its first to its last column. The
 * memory is not touched here, so a thread uses only the pages that it needs. Fewer threads work if
 * the sums of all would take more than half of what is available. */
static spmv_status numeric_memory(struct spmv_spgemm_plan *plan, struct rows_state *state)
{
    int64_t span = 0;
#pragma omp parallel for num_threads(host_team(plan->ctx, plan->a.rows)) schedule(static) reduction(max : span)
    for (int64_t i = 0; i < plan->a.rows; i++) {
        const int64_t first = plan->row_ptr[i], end = plan->row_ptr[i + 1];
        if (end > first)
            span = max_i64(span, (int64_t)plan->col[end - 1] - plan->col[first] + 1);
    }
    state->room = ceil_divide(span * (int64_t)spmv_type_size(plan->type), 64) * 64;
    state->threads = heavy_team(plan->ctx, plan->products);
    while (state->threads > 1 && (!spgemm_host_has(2 * state->room * state->threads) ||
                                  (plan->max_bytes > 0 && state->room * state->threads > plan->max_bytes)))
        state->threads /= 2;
    const int64_t bytes = state->room * state->threads;
    plan->state_bytes = bytes + (state->tasks.n + 1) * (int64_t)sizeof *state->tasks.first_row;
    const spmv_status st = spgemm_working_bytes(plan, bytes);
    return st != SPMV_OK ? st : host_alloc(plan->ctx, bytes, "sums of a product", (void **)&state->memory);
}

#define TEMPLATE "spgemm/spgemm_omp_typed.h"
#include "core/each/each_floating.h"

/* ------------------------------------------------------------------------- the method */

spmv_status spgemm_rows_symbolic_omp(struct spmv_spgemm_plan *plan)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    struct rows_state *state = NULL;
    struct symbolic s = {.plan = plan};
    int64_t bytes = 0, tasks = 0;
    TRY(host_alloc(ctx, sizeof *state, "a plan", &plan->state));
    memset(plan->state, 0, sizeof *state);
    state = plan->state;
    TRY(spgemm_alloc_row_ptr(plan));
    TRY(spgemm_cut_rows(plan, &state->tasks));
    s.state = state;
    s.lengths = plan->row_ptr;
    s.most = spgemm_tasks_most(plan, &state->tasks);
    s.stamps = plan->b.cols <= STAMPS_MOST && plan->max_bytes == 0;
    s.limit = INT64_MAX;
    if (plan->products > INT64_MAX / 8 || !spgemm_host_has(8 * plan->products))
        s.limit = spmv_memory_available(NULL, NULL) / (2 * (int64_t)sizeof *plan->col);
    const int threads = symbolic_threads(plan, &s, &bytes);
    TRY(spgemm_working_bytes(plan, bytes));
    if (plan->max_bytes > 0)
        s.limit = min_i64(s.limit, (plan->max_bytes - bytes) / (int64_t)sizeof *plan->col);
    tasks = state->tasks.n;
    TRY(host_alloc(ctx, tasks * (int64_t)sizeof *s.found, "the tasks of a product", (void **)&s.found));
    memset(s.found, 0, (size_t)tasks * sizeof *s.found);
    find_all_columns(&s, threads);
    const int64_t found = atomic_load(&s.so_far);
    TRY(spgemm_working_bytes(plan, bytes + found * (int64_t)sizeof *plan->col));
    if (atomic_load(&s.failed) == 2)
        TRY(context_fail_memory(ctx, "spmv_spgemm: the columns of C, and twice that while they are found, at least",
                                2 * found * (int64_t)sizeof *plan->col));
    if (atomic_load(&s.failed) == 1)
        TRY(context_fail_memory(ctx, "spmv_spgemm: the columns of C", found * (int64_t)sizeof *plan->col + bytes));
    TRY(offsets_from_counts(ctx, plan->row_ptr, plan->a.rows));
    plan->nnz = plan->row_ptr[plan->a.rows];
    TRY(context_alloc(ctx, plan->nnz * (int64_t)sizeof *plan->col, (void **)&plan->col));
    pages_ask_large(plan->col, plan->nnz * (int64_t)sizeof *plan->col);
    join_columns(&s, plan->col, plan->row_ptr);
    TRY(numeric_memory(plan, state));
done:
    for (int64_t c = 0; c < tasks && s.found != NULL; c++)
        host_free(s.found[c]);
    host_free(s.found);
    return st;
}

spmv_status spgemm_rows_numeric_omp(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    static void (*const numeric[SPMV_TYPE_LIMIT])(const struct spmv_spgemm_plan *, const void *, const void *, void *) =
        FLOATING_TABLE(numeric);
    numeric[plan->type](plan, a, b, c);
    return SPMV_OK;
}

void spgemm_rows_destroy_omp(struct spmv_spgemm_plan *plan)
{
    struct rows_state *const state = plan->state;
    if (state == NULL)
        return;
    host_free(state->tasks.first_row);
    host_free(state->memory);
    host_free(state);
    plan->state = NULL;
}
