/* The way of entries to their ranks. A rank gets whole buckets (coo_buckets.h): since all ranks
 * know how many entries each rank has in each bucket, all compute the same cut, and the length of
 * each message. Messages of bounded size go around in steps; what has been sent is released. So a
 * rank never holds much more than its entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "distributed/group_entries.h"

#include <string.h>

#include "formats/coo/rows.h"

static const char *const what = "entries of a file";

/* Bytes that a rank sends in a step, to all ranks together and to one. */
enum { STEP_BYTES = 8 << 20, MOST_TO_ONE = 1 << 20, LEAST_TO_ONE = 16 << 10 };

spmv_status group_entries_begin(spmv_group *group, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                                int64_t entries, struct group_entries *e)
{
    spmv_status st = SPMV_OK;
    *e = (struct group_entries){.group = group};
    TRY(coo_buckets_begin_ranks(group->ctx, rows, cols, type, pattern, entries, spmv_context_threads(group->ctx),
                                group->transport.ranks, &e->buckets));
    TRY(host_alloc(group->ctx, e->buckets.count * (int64_t)sizeof *e->told, what, (void **)&e->told));
    memset(e->told, 0, (size_t)e->buckets.count * sizeof *e->told);
done:
    return st;
}

void group_entries_free(struct group_entries *e)
{
    coo_buckets_free(&e->buckets);
    host_free(e->told);
    host_free(e->counts);
    e->told = NULL;
    e->counts = NULL;
}

spmv_status group_entries_turn(struct group_entries *e)
{
    const int64_t count = e->buckets.count;
    spmv_context *ctx = e->group->ctx;
    if (e->turns == e->room) {
        uint32_t *more = NULL;
        const int64_t room = 2 * e->room + 1;
        const spmv_status st = host_alloc(ctx, room * count * (int64_t)sizeof *more, what, (void **)&more);
        if (st != SPMV_OK)
            return st;
        if (e->turns > 0)
            memcpy(more, e->counts, (size_t)(e->turns * count) * sizeof *more);
        host_free(e->counts);
        e->counts = more;
        e->room = room;
    }
    for (int64_t b = 0; b < count; b++) {
        const int64_t now = coo_bucket_entries(&e->buckets, b), its = now - e->told[b];
        if (its > UINT32_MAX)
            return context_fail(ctx, SPMV_ERROR_LIMIT, "%lld entries in few rows: use more ranks", (long long)its);
        e->counts[e->turns * count + b] = (uint32_t)its;
        e->told[b] = now;
    }
    e->turns++;
    return SPMV_OK;
}

/* ------------------------------------------------------------- the cut */

/* The way of all entries. all: the entries of each rank in each bucket. */
struct way {
    struct group_entries *e;
    struct coo_buckets own;
    int64_t *all;
    int64_t *first; /* ranks + 1: the first bucket of each rank */
    int64_t step;   /* entries of a message */
    int64_t steps;
    struct transport_parcel *send, *receive;
    char *sent, *received;   /* step entries for each rank */
    struct coo_drain *drain; /* of each rank */
    /* of each rank that sends: the bucket of its next entry, and how many are left in it */
    int64_t *bucket, *left;
};

static int64_t ranks_of(const struct way *w)
{
    return w->e->group->transport.ranks;
}

static int64_t entries_of(const struct way *w, int64_t rank, int64_t bucket)
{
    return w->all[rank * w->e->buckets.count + bucket];
}

/* The entries that rank `from` sends to rank `to`. */
static int64_t entries_between(const struct way *w, int64_t from, int64_t to)
{
    int64_t entries = 0;
    for (int64_t b = w->first[to]; b < w->first[to + 1]; b++)
        entries += entries_of(w, from, b);
    return entries;
}

/* Rank r begins with the bucket that is nearest to r fair shares of rows and entries. */
static void cut(struct way *w)
{
    const struct coo_buckets *const b = &w->e->buckets;
    const int64_t ranks = ranks_of(w), whole = (int64_t)1 << b->shape.col_bits;
    int64_t all = b->rows, before = 0, r = 1;
    for (int64_t i = 0; i < ranks * b->count; i++)
        all += w->all[i];
    w->first[0] = 0;
    for (int64_t i = 0; i < b->count; i += whole) { /* buckets i to i + whole - 1 have whole rows */
        int64_t work = coo_bucket_row(b, i + whole) - coo_bucket_row(b, i);
        for (int64_t k = i; k < i + whole; k++)
            for (int64_t from = 0; from < ranks; from++)
                work += entries_of(w, from, k);
        for (; r < ranks && all / ranks * r + all % ranks * r / ranks < before + work; r++)
            w->first[r] = all / ranks * r + all % ranks * r / ranks - before <= work / 2 ? i : i + whole;
        before += work;
    }
    for (; r <= ranks; r++)
        w->first[r] = b->count;
}

/* ------------------------------------------------------------- the messages */

/* Tells each rank how many entries of each turn it gets for each of its buckets. */
static spmv_status tell_counts(struct way *w)
{
    spmv_status st = SPMV_OK;
    struct group_entries *const e = w->e;
    spmv_context *ctx = e->group->ctx;
    const int rank = e->group->transport.rank, ranks = (int)ranks_of(w);
    const int64_t count = e->buckets.count, own = w->first[rank + 1] - w->first[rank], turns = e->turns;
    uint32_t *tell = NULL, *hear = NULL, *to = NULL;
    int sends = 0, receives = 0;
    st = host_alloc(ctx, max_i64(1, turns * count) * (int64_t)sizeof *tell, what, (void **)&tell);
    if (st == SPMV_OK)
        st = host_alloc(ctx, max_i64(1, turns * own * ranks) * (int64_t)sizeof *hear, what, (void **)&hear);
    if (st == SPMV_OK)
        st = coo_tiles_begin(&w->own, (int)(turns * ranks));
    TRY(spmv_group_agree(e->group, st));
    to = tell;
    for (int r = 0; r < ranks; r++) {
        const int64_t its = w->first[r + 1] - w->first[r];
        if (its > 0)
            w->send[sends++] = (struct transport_parcel){r, to, turns * its * (int64_t)sizeof *to};
        for (int64_t turn = 0; turn < turns && its > 0; turn++, to += its)
            memcpy(to, e->counts + turn * count + w->first[r], (size_t)its * sizeof *to);
        if (own > 0)
            w->receive[receives++] =
                (struct transport_parcel){r, hear + r * turns * own, turns * own * (int64_t)sizeof *hear};
    }
    TRY(group_start(e->group, w->send, sends, w->receive, receives));
    TRY(group_finish(e->group));
    for (int64_t turn = 0; turn < turns && own > 0; turn++)
        for (int r = 0; r < ranks; r++)
            coo_tile_set(&w->own, (int)(turn * ranks + r), r, hear + (r * turns + turn) * own);
done:
    host_free(tell);
    host_free(hear);
    return st;
}

/* Puts n entries of a rank, which come bucket after bucket, to their buckets. */
static bool put(struct way *w, int from, const char *entries, int64_t n)
{
    const int rank = w->e->group->transport.rank;
    while (n > 0) {
        if (w->left[from] == 0) {
            w->left[from] = entries_of(w, from, w->bucket[from]++);
            continue;
        }
        const int64_t some = min_i64(n, w->left[from]);
        if (!coo_put(&w->own, from, w->bucket[from] - 1 - w->first[rank], entries, some))
            return false;
        entries += some * (int64_t)w->own.entry_size;
        w->left[from] -= some;
        n -= some;
    }
    return true;
}

/* The entries of a message of a step. */
static int64_t in_step(const struct way *w, int64_t step, int64_t from, int64_t to)
{
    return max_i64(0, min_i64(w->step, entries_between(w, from, to) - step * w->step));
}

static spmv_status send_entries(struct way *w)
{
    spmv_status st = SPMV_OK;
    struct group_entries *const e = w->e;
    const int rank = e->group->transport.rank, ranks = (int)ranks_of(w);
    const int64_t size = (int64_t)e->buckets.entry_size;
    bool room = true;
    for (int64_t step = 0; step < w->steps; step++) {
        int sends = 0, receives = 0;
        for (int r = 0; r < ranks; r++) {
            char *const from = w->sent + r * w->step * size, *const to = w->received + r * w->step * size;
            const int64_t out = in_step(w, step, rank, r), in = in_step(w, step, r, rank);
            if (out > 0) {
                coo_drain_take(&w->drain[r], from, out);
                w->send[sends++] = (struct transport_parcel){r, from, out * size};
            }
            if (in > 0)
                w->receive[receives++] = (struct transport_parcel){r, to, in * size};
        }
        TRY(group_start(e->group, w->send, sends, w->receive, receives));
        TRY(group_finish(e->group));
        /* without memory, the others go on sending, and learn of it at the end */
        for (int i = 0; i < receives && room; i++)
            room = put(w, w->receive[i].rank, w->receive[i].memory, w->receive[i].bytes / size);
    }
done:
    return st != SPMV_OK || room ? st : context_fail(e->group->ctx, SPMV_ERROR_MEMORY, "no memory for more entries");
}

/* Makes the cut, and the buffers. Together. */
static spmv_status prepare(struct way *w)
{
    spmv_status st = SPMV_OK;
    struct group_entries *const e = w->e;
    spmv_context *ctx = e->group->ctx;
    const int rank = e->group->transport.rank;
    const int64_t ranks = ranks_of(w), count = e->buckets.count, size = (int64_t)e->buckets.entry_size;
    int64_t longest = 0;
    st = host_alloc(ctx, ranks * count * (int64_t)sizeof *w->all, what, (void **)&w->all);
    if (st == SPMV_OK)
        st = host_alloc(ctx, (ranks + 1) * (int64_t)sizeof *w->first, what, (void **)&w->first);
    TRY(spmv_group_agree(e->group, st));
    TRY(group_gather_equal(e->group, e->told, w->all, count * (int64_t)sizeof *w->all));
    cut(w);
    for (int64_t i = 0; i < ranks; i++)
        for (int64_t j = 0; j < ranks; j++)
            longest = max_i64(longest, entries_between(w, i, j));
    w->step = max_i64(LEAST_TO_ONE, min_i64(MOST_TO_ONE, STEP_BYTES / ranks)) / size;
    w->step = max_i64(1, min_i64(w->step, longest));
    w->steps = ceil_divide(longest, w->step);
    st = coo_buckets_begin_rows(&e->buckets, w->first[rank], w->first[rank + 1] - w->first[rank], (int)ranks,
                                spmv_context_threads(ctx), &w->own);
    void **const arrays[] = {(void **)&w->send,  (void **)&w->receive, (void **)&w->sent, (void **)&w->received,
                             (void **)&w->drain, (void **)&w->bucket,  (void **)&w->left};
    const int64_t each[] = {sizeof *w->send,  sizeof *w->receive, w->step * size, w->step * size,
                            sizeof *w->drain, sizeof *w->bucket,  sizeof *w->left};
    for (size_t i = 0; i < sizeof each / sizeof *each && st == SPMV_OK; i++) {
        st = host_alloc(ctx, ranks * each[i], what, arrays[i]);
        if (st == SPMV_OK && i >= 4)
            memset(*arrays[i], 0, (size_t)(ranks * each[i]));
    }
    for (int64_t r = 0; r < ranks && st == SPMV_OK; r++) {
        w->bucket[r] = w->first[rank];
        st = coo_drain_begin(&e->buckets, w->first[r], w->first[r + 1], &w->drain[r]);
    }
    TRY(spmv_group_agree(e->group, st));
done:
    return st;
}

static void release(struct way *w)
{
    for (int64_t r = 0; r < ranks_of(w) && w->drain != NULL; r++)
        coo_drain_end(&w->drain[r]);
    coo_buckets_free(&w->own);
    host_free_all(w->all, w->first, w->send, w->receive, w->sent, w->received, w->drain, w->bucket, w->left);
}

spmv_status group_entries_matrix(struct group_entries *e, int64_t max_bytes, spmv_matrix **matrix,
                                 int64_t duplicates[2])
{
    spmv_status st = SPMV_OK;
    struct way w = {.e = e};
    struct repeats repeats = {0, 0};
    int64_t own[2], *all = NULL;
    const int64_t ranks = ranks_of(&w);
    *matrix = NULL;
    TRY(prepare(&w));
    TRY(tell_counts(&w));
    TRY(spmv_group_agree(e->group, send_entries(&w)));
    coo_buckets_free(&e->buckets);
    st = coo_buckets_matrix(&w.own, max_bytes, matrix, &repeats);
    if (st == SPMV_OK)
        st = host_alloc(e->group->ctx, ranks * (int64_t)sizeof own, what, (void **)&all);
    TRY(spmv_group_agree(e->group, st));
    own[0] = repeats.all;
    own[1] = repeats.lower;
    TRY(group_gather_equal(e->group, own, all, sizeof own));
    duplicates[0] = duplicates[1] = 0;
    for (int64_t i = 0; i < 2 * ranks; i++)
        duplicates[i % 2] += all[i];
done:
    release(&w);
    host_free(all);
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    return st;
}
