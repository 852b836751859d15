/* Both phases of the method "rows" of the backend omp in one pass over the products.
 *
 * A thread has a sum and a byte for each column of B. The first product of a column sets the byte and
 * lists the column; later ones are added. Then the columns of the row are sorted and their sums
 * stored. The sum starts with its first product and k ascends, so the bits are those of the two
 * phases.
 *
 * Rows whose columns are probably known from the row before (struct guess) have no branch for a new
 * column and no sort: sums start from -0, and afterwards none may be -0 and no column new.
 *
 * Rows with many products and long rows of B have no list: sums start from -0, each product sets the
 * byte, and the bytes are read from the row's first column to its last one. No branch depends on
 * whether a column is new, and nothing is sorted.
 *
 * C gets room for all products; the system provides only pages that are written, and unused ones are
 * given back. A task is written to its place in C if the lengths of all tasks before it are known,
 * as they always are with one thread. Otherwise it goes to a buffer, and the thread that finishes the
 * last task before it moves it to its place. So C is not held twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <stdlib.h>

#include "spgemm/spgemm_omp.h"

/* The row of B of so many entries of A later is loaded into a cache. */
enum { AHEAD = 16 };

/* Room for the entries of a task outside C. */
struct task_buffer {
    int32_t *col;
    char *val;
    int64_t n;
};

/* What the threads share. */
struct at_once {
    const struct spmv_spgemm_plan *plan;
    const void *a, *b; /* values */
    struct row_tasks tasks;
    int64_t size;                /* bytes of a value */
    int64_t most;                /* entries that a task may have */
    int64_t room;                /* entries of col and val */
    int32_t *col;                /* of C */
    char *val;                   /* of C */
    int64_t known;               /* start[c] is known for c <= known */
    int64_t *start;              /* tasks.n + 1: the first entry of each task */
    int64_t *length;             /* tasks.n: entries of each task; -1: not known yet */
    struct task_buffer *waiting; /* tasks.n: finished before their place was known; col NULL: not waiting */
    struct task_buffer *spare;   /* tasks.n: buffers that were moved from */
    int64_t spares;
    atomic_int failed; /* an allocation failed */
};

/* Columns whose bytes in `found` are read at a time. */
enum { BLOCK = 64 };

/* What a thread has. */
struct worker {
    uint8_t *found; /* for each column of B, in whole blocks: 1 if the present row has it, else 0 */
    void *sums;     /* for each column of B */
    uint64_t *marks;
    bool neutral; /* between rows all sums are -0, so that rows need no list of their columns */
};

/* Bit b of the result is byte b of the block, which is 0 or 1. Clears the block. The product moves the
 * bits of 8 bytes to the highest byte. */
static inline uint64_t take_found(uint8_t *found)
{
    uint64_t words[BLOCK / 8], any = 0, bits = 0;
    memcpy(words, found, BLOCK);
    for (int w = 0; w < BLOCK / 8; w++)
        any |= words[w];
    if (any == 0)
        return 0;
    memset(found, 0, BLOCK);
    for (int w = 0; w < BLOCK / 8; w++) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        words[w] = __builtin_bswap64(words[w]);
#endif
        bits |= (words[w] * UINT64_C(0x0102040810204080)) >> 56 << 8 * w;
    }
    return bits;
}

/* The first and the last column of a row of C. */
struct span {
    int64_t first, last;
};

/* Whether row i of C is computed without a list of its columns: rows of B are so long that it costs
 * little to look at their ends first, and the bytes of all columns are not many for its products.
 * *span: its columns. */
static inline bool is_dense(const struct spmv_spgemm_plan *plan, int64_t i, struct span *span)
{
    enum { LEAST = 128, LEAST_EACH = 16, COLUMNS_EACH = 16 };
    const int64_t products = spgemm_products_before(plan, i + 1) - spgemm_products_before(plan, i);
    const int64_t begin = row_first(&plan->a, i), end = row_first(&plan->a, i + 1);
    if (products < LEAST || products < LEAST_EACH * (end - begin))
        return false;
    *span = (struct span){INT64_MAX, -1};
    for (int64_t k = begin; k < end; k++) {
        const int64_t row = plan->a.col[k], first = row_first(&plan->b, row), last = row_first(&plan->b, row + 1) - 1;
        if (first <= last) {
            span->first = min_i64(span->first, plan->b.col[first]);
            span->last = max_i64(span->last, plan->b.col[last]);
        }
    }
    return span->last - span->first < COLUMNS_EACH * products;
}

/* Where columns repeat from row to row, as those of a mesh, the columns of a row are those of the row
 * before, moved by the difference of their first products. Their bytes are set before the products are
 * added, so that none is new, and they are in order. A wrong guess costs a second pass over the columns. */
struct guess {
    const int32_t *col; /* n columns of the row before, in ascending order */
    int64_t n;
    int64_t first; /* column of the first product of the row before */
    int64_t shift; /* is added to the columns of the row before */
    int64_t hits;  /* so many rows in turn agreed with the rows before them */
};

/* The first column of the row of B of entry k of A; 0: there is none. */
static inline int64_t first_column(const struct spmv_spgemm_plan *plan, int64_t k)
{
    const int64_t row = plan->a.col[k], l = row_first(&plan->b, row);
    return l < row_first(&plan->b, row + 1) ? plan->b.col[l] : 0;
}

/* Sets the bytes of the columns that a row with the entries begin <= k < end of A probably has. false: it
 * makes no guess, because the last rows did not agree with those before, or because columns would not
 * exist. */
static inline bool make_guess(struct guess *guess, const struct spmv_spgemm_plan *plan, int64_t begin, int64_t end,
                              uint8_t *restrict found)
{
    enum { HITS = 3 };
    const int64_t first = begin < end ? first_column(plan, begin) : 0;
    guess->shift = first - guess->first;
    guess->first = first;
    if (guess->hits < HITS || guess->col[0] + guess->shift < 0 ||
        guess->col[guess->n - 1] + guess->shift >= plan->b.cols)
        return false;
    for (int64_t e = 0; e < guess->n; e++)
        found[guess->col[e] + guess->shift] = 1;
    return true;
}

/* Whether the guess for a row with these n columns was right, or would have been. */
static inline void judge_guess(struct guess *guess, const int32_t *col, int64_t n)
{
    bool right = n == guess->n && n > INSERTION_MOST;
    for (int64_t e = 0; right && e < n; e++)
        right = col[e] == guess->col[e] + guess->shift;
    guess->hits = right ? guess->hits + 1 : 0;
}

/* Lists the columns of a row after a wrong guess, and returns their number. */
static __attribute__((noinline)) int64_t list_again(const struct spmv_spgemm_plan *plan, int64_t begin, int64_t end,
                                                    const struct guess *guess, uint8_t *restrict found,
                                                    int32_t *restrict col)
{
    int64_t n = 0;
    for (int64_t e = 0; e < guess->n; e++)
        found[guess->col[e] + guess->shift] = 0;
    for (int64_t k = begin; k < end; k++) {
        const int64_t last = row_first(&plan->b, plan->a.col[k] + 1);
        for (int64_t l = row_first(&plan->b, plan->a.col[k]); l < last; l++) {
            const int32_t j = plan->b.col[l];
            if (found[j] == 0) {
                found[j] = 1;
                col[n++] = j;
            }
        }
    }
    return n;
}

/* What add_products does with a column that has no byte in found. */
enum new_columns { NEW_LISTED, NEW_MARKED, NEW_SEEN };

#define TEMPLATE "spgemm/spgemm_omp_at_once_typed.h"
#include "core/each/each_floating.h"

static void free_buffer(struct task_buffer *buffer)
{
    host_free(buffer->col);
    host_free(buffer->val);
    *buffer = (struct task_buffer){NULL, NULL, 0};
}

static bool take_buffer(struct at_once *s, struct task_buffer *buffer)
{
    *buffer = (struct task_buffer){NULL, NULL, 0};
#pragma omp critical(spgemm_at_once)
    if (s->spares > 0)
        *buffer = s->spare[--s->spares];
    if (buffer->col != NULL)
        return true;
    if (host_alloc(NULL, s->most * (int64_t)sizeof *buffer->col, "", (void **)&buffer->col) == SPMV_OK &&
        host_alloc(NULL, s->most * s->size, "", (void **)&buffer->val) == SPMV_OK)
        return true;
    free_buffer(buffer);
    return false;
}

/* ------------------------------------------------------------------------ places in C */

/* The place of a task; -1: not known. */
static int64_t place_of(const struct at_once *s, int64_t c)
{
    int64_t at = -1;
#pragma omp critical(spgemm_at_once)
    if (c <= s->known)
        at = s->start[c];
    return at;
}

/* Task c has buffer->n entries, in the buffer or, with col NULL, in their place. Moves all tasks
 * whose place is now known. */
static void finish_task(struct at_once *s, int64_t c, const struct task_buffer *buffer)
{
    int64_t first = 0, end = 0;
#pragma omp critical(spgemm_at_once)
    {
        s->length[c] = buffer->n;
        s->waiting[c] = *buffer;
        first = s->known;
        for (; s->known < s->tasks.n && s->length[s->known] >= 0; s->known++)
            s->start[s->known + 1] = s->start[s->known] + s->length[s->known];
        end = s->known;
    }
    for (int64_t m = first; m < end; m++) {
        const struct task_buffer from = s->waiting[m];
        if (from.col == NULL)
            continue;
        memcpy(s->col + s->start[m], from.col, (size_t)from.n * sizeof *from.col);
        memcpy(s->val + s->start[m] * s->size, from.val, (size_t)(from.n * s->size));
        s->waiting[m].col = NULL;
#pragma omp critical(spgemm_at_once)
        s->spare[s->spares++] = from;
    }
}

/* ------------------------------------------------------------------------- the threads */

/* threads: at least as many as there are workers */
static spmv_status make_worker(const struct at_once *s, int threads, struct worker *w)
{
    static void (*const neutral[SPMV_TYPE_LIMIT])(void *, int64_t) = FLOATING_TABLE(neutral_sums);
    const int64_t cols = s->plan->b.cols;
    spmv_status st = SPMV_OK;
    TRY(host_zeros(NULL, ceil_divide(cols, BLOCK) * BLOCK, "", (void **)&w->found));
    TRY(host_zeros(NULL, marks_words(cols) * (int64_t)sizeof *w->marks, "", (void **)&w->marks));
    w->neutral = cols <= s->plan->products / threads; /* so that it pays to write all sums */
    TRY(host_alloc(NULL, cols * s->size, "", &w->sums));
    if (w->neutral)
        neutral[s->plan->type](w->sums, cols);
done:
    return st;
}

static void compute_task(struct at_once *s, int64_t c, struct worker *w)
{
    static int64_t (*const compute[SPMV_TYPE_LIMIT])(const struct at_once *, int64_t, const struct worker *, int32_t *,
                                                     void *) = FLOATING_TABLE(task_at_once);
    const int64_t at = place_of(s, c);
    struct task_buffer buffer = {NULL, NULL, 0};
    if (at >= 0) {
        buffer.n = compute[s->plan->type](s, c, w, s->col + at, s->val + at * s->size);
    } else if (take_buffer(s, &buffer)) {
        buffer.n = compute[s->plan->type](s, c, w, buffer.col, buffer.val);
    } else {
        atomic_store(&s->failed, 1);
        return;
    }
    finish_task(s, c, &buffer);
}

static void compute_all(struct at_once *s, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        struct worker w = {.found = NULL};
        if (make_worker(s, threads, &w) != SPMV_OK)
            atomic_store(&s->failed, 1);
#pragma omp for schedule(dynamic, 1)
        for (int64_t c = 0; c < s->tasks.n; c++)
            if (atomic_load_explicit(&s->failed, memory_order_relaxed) == 0)
                compute_task(s, c, &w);
        host_free(w.found);
        host_free(w.marks);
        host_free(w.sums);
    }
}

/* ------------------------------------------------------------------------- the method */

/* Whether the memory suffices for as many entries as products, and for what the threads need. A limit
 * of the working memory asks for the two phases, which need less. */
static bool has_room(struct at_once *s, int threads)
{
    const struct spmv_spgemm_plan *const plan = s->plan;
    const int64_t entry = (int64_t)sizeof *s->col + s->size;
    int64_t bytes = 0, columns = 0;
    s->room = 0;
    for (int64_t c = 0; c < s->tasks.n; c++)
        s->room += spgemm_task_most(plan, &s->tasks, c);
    return plan->max_bytes == 0 && multiply_fits(s->room, 2 * entry, &bytes) &&
           multiply_fits(threads * plan->b.cols, s->size + 2, &columns) && bytes <= INT64_MAX - columns &&
           spgemm_host_has(bytes + columns);
}

static spmv_status alloc_shared(struct spmv_spgemm_plan *plan, struct at_once *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = plan->ctx;
    const int64_t n = s->tasks.n;
    TRY(spgemm_alloc_row_ptr(plan));
    TRY(context_alloc(ctx, s->room * (int64_t)sizeof *s->col, (void **)&s->col));
    TRY(context_alloc(ctx, s->room * s->size, (void **)&s->val));
    pages_ask_large(s->col, s->room * (int64_t)sizeof *s->col);
    pages_ask_large(s->val, s->room * s->size);
    TRY(host_alloc(ctx, (n + 1) * (int64_t)sizeof *s->start, "the tasks of a product", (void **)&s->start));
    TRY(host_alloc(ctx, n * (int64_t)sizeof *s->length, "the tasks of a product", (void **)&s->length));
    TRY(host_alloc(ctx, n * (int64_t)sizeof *s->spare, "the tasks of a product", (void **)&s->spare));
    TRY(host_alloc(ctx, n * (int64_t)sizeof *s->waiting, "the tasks of a product", (void **)&s->waiting));
    s->start[0] = 0;
    for (int64_t c = 0; c < n; c++) {
        s->length[c] = -1;
        s->waiting[c] = (struct task_buffer){NULL, NULL, 0};
    }
done:
    return st;
}

/* Computes C in memory that alloc_shared has made. */
static spmv_status compute(struct spmv_spgemm_plan *plan, struct at_once *s, int threads)
{
    compute_all(s, threads);
    if (atomic_load(&s->failed) != 0)
        return context_fail_memory(plan->ctx, "spmv_spgemm: entries of C of a thread",
                                   s->most * ((int64_t)sizeof *s->col + s->size));
    const int64_t unused = s->room - s->start[s->tasks.n];
    plan->nnz = s->start[s->tasks.n];
    pages_give_back(s->col + plan->nnz, unused * (int64_t)sizeof *s->col);
    pages_give_back(s->val + plan->nnz * s->size, unused * s->size);
    return offsets_from_counts(plan->ctx, plan->row_ptr, plan->a.rows);
}

static void release(const struct spmv_spgemm_plan *plan, struct at_once *s)
{
    for (int64_t i = 0; i < s->tasks.n && s->waiting != NULL; i++)
        if (s->waiting[i].col != NULL)
            free_buffer(&s->waiting[i]);
    for (int64_t i = 0; i < s->spares; i++)
        free_buffer(&s->spare[i]);
    host_free(s->waiting);
    host_free(s->spare);
    host_free(s->start);
    host_free(s->length);
    host_free(s->tasks.first_row);
    spmv_free(plan->ctx, s->col);
    spmv_free(plan->ctx, s->val);
}

spmv_status spgemm_rows_at_once_omp(struct spmv_spgemm_plan *plan, const void *a, const void *b, void **c)
{
    const int threads = heavy_team(plan->ctx, plan->products);
    struct at_once s = {.plan = plan, .a = a, .b = b, .size = (int64_t)spmv_type_size(plan->type)};
    bool fits = false;
    spmv_status st = spgemm_cut_rows(plan, &s.tasks);
    if (st == SPMV_OK && has_room(&s, threads)) {
        st = alloc_shared(plan, &s);
        fits = st == SPMV_OK;
        if (st == SPMV_ERROR_MEMORY) { /* the address space is limited */
            spmv_free(plan->ctx, plan->row_ptr);
            plan->row_ptr = NULL;
            plan->ctx->error[0] = '\0';
            st = SPMV_OK;
        }
    }
    if (st == SPMV_OK && fits) {
        s.most = spgemm_tasks_most(plan, &s.tasks);
        st = compute(plan, &s, threads);
    }
    if (st == SPMV_OK && fits) {
        plan->col = s.col;
        *c = s.val;
        s.col = NULL;
        s.val = NULL;
    }
    release(plan, &s);
    return st == SPMV_OK && !fits ? spgemm_rows_symbolic_omp(plan) : st;
}
