/* The primitives as operations: n elements; the operator, if any, is a sum.
 *
 * Results are checked on elements -1, 0 and 1, whose sums are exact in any order, so every bit must
 * be right. The runs are timed on random numbers with full mantissas. The checker's backend
 * computes the right result, which is the state of these operations.
 *
 * Counted bytes, with v the size of an element:
 *
 *   map, scan         2 n v
 *   reduce            n v
 *   segmented scan    2 n v + n (flags)
 *   segmented reduce  n v + 4 (segments + 1) + segments v
 *   gather, scatter   n (2 v + 4)
 *   compact           n v + n (flags) + kept v
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work.h"
#include "core/choice.h"
#include "formats/generate/random.h"

enum { STREAM_IN = 0x696e, STREAM_SEGMENTS = 0x736567, STREAM_ORDER = 0x6f7264, STREAM_FLAGS = 0x666c67 };

static int64_t element_bytes(const struct work *work)
{
    return (int64_t)spmv_type_size(work->type);
}

/* ---------------------------------------------------------------- arrays */

/* Allocates in and out of n elements. results: the number of elements of out that a run writes. */
static spmv_status setup_elements(struct work *work, int64_t results)
{
    struct peer_problem *const p = &work->problem;
    const int64_t n = work->operand->n, size = element_bytes(work);
    p->n = n;
    work->state = work_keep(work, malloc((size_t)(n + 1) * (size_t)size));
    if (work->state == NULL)
        return work_out_of_memory(work, "the right result", (n + 1) * size);
    spmv_status st = work_array(work, NULL, n * size, &p->in);
    if (st == SPMV_OK)
        st = work_array(work, NULL, (n > results ? n : results) * size, (const void **)&p->out);
    work->result = p->out;
    work->result_bytes = results * size;
    return st;
}

static spmv_status setup_map(struct work *work)
{
    work->model_bytes = 2 * (double)work->operand->n * (double)element_bytes(work);
    return setup_elements(work, work->operand->n);
}

static spmv_status setup_reduce(struct work *work)
{
    work->model_bytes = (double)work->operand->n * (double)element_bytes(work);
    return setup_elements(work, 1);
}

/* Host arrays that describe segments. Lengths are uniform from 1 to 2 mean - 1. */
struct cuts {
    int32_t *offsets, *segment; /* count + 1; n */
    uint8_t *flags;             /* n: 1 at a segment's head */
    int64_t count;
};

static void free_cuts(struct cuts *cuts)
{
    free(cuts->offsets);
    free(cuts->segment);
    free(cuts->flags);
}

static spmv_status make_cuts(struct work *work, struct cuts *cuts)
{
    const int64_t n = work->operand->n, mean = work->operand->mean_segment;
    *cuts = (struct cuts){.offsets = malloc((size_t)(n + 1) * sizeof *cuts->offsets),
                          .segment = malloc((size_t)n * sizeof *cuts->segment + 1),
                          .flags = calloc((size_t)n + 1, 1)};
    if (cuts->offsets == NULL || cuts->segment == NULL || cuts->flags == NULL)
        return work_out_of_memory(work, "the segments", n * 9);
    for (int64_t at = 0; at < n; cuts->count++) {
        const uint64_t bits = random_bits(work->operand->seed, STREAM_SEGMENTS, (uint64_t)cuts->count);
        const int64_t length = 1 + (int64_t)random_below(bits, (uint64_t)(2 * mean - 1));
        const int64_t end = length < n - at ? at + length : n;
        cuts->offsets[cuts->count] = (int32_t)at;
        cuts->flags[at] = 1;
        for (; at < end; at++)
            cuts->segment[at] = (int32_t)cuts->count;
    }
    cuts->offsets[cuts->count] = (int32_t)n;
    return SPMV_OK;
}

/* Makes offsets and segment numbers, because spmv's methods and peers need different forms.
 * reduced: one result per segment. */
static spmv_status setup_segments(struct work *work, bool reduced)
{
    struct peer_problem *const p = &work->problem;
    const int64_t n = work->operand->n;
    const double v = (double)element_bytes(work);
    struct cuts cuts = {0};
    if (n > INT32_MAX) {
        snprintf(work->error, sizeof work->error, "%lld elements in segments: at most %d are possible", (long long)n,
                 INT32_MAX);
        return SPMV_ERROR_LIMIT;
    }
    spmv_status st = make_cuts(work, &cuts);
    p->segments = cuts.count;
    if (st == SPMV_OK)
        st = setup_elements(work, reduced ? cuts.count : n);
    if (st == SPMV_OK)
        st = work_array(work, cuts.offsets, (cuts.count + 1) * 4, (const void **)&p->offsets);
    if (st == SPMV_OK && !reduced)
        st = work_array(work, cuts.segment, n * 4, (const void **)&p->segment);
    if (st == SPMV_OK && !reduced)
        st = work_array(work, cuts.flags, n, (const void **)&p->flags);
    free_cuts(&cuts);
    work->model_bytes = reduced ? (double)n * v + 4 * ((double)p->segments + 1) + (double)p->segments * v
                                : 2 * (double)n * v + (double)n;
    return st;
}

static spmv_status setup_segscan(struct work *work)
{
    return setup_segments(work, false);
}

static spmv_status setup_segreduce(struct work *work)
{
    return setup_segments(work, true);
}

/* The image of i in a permutation of 0 .. n - 1: rounds of invertible steps within the next power
 * of two, repeated until the image is below n. */
static uint64_t permuted(uint64_t i, uint64_t n, int bits, uint64_t key)
{
    const uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
    const int shift = bits / 2 > 0 ? bits / 2 : 1;
    do {
        for (int round = 0; round < 3; round++) {
            i = (i * 0x9e3779b97f4a7c15u + key) & mask; /* an odd factor */
            i ^= i >> shift;
        }
    } while (i >= n);
    return i;
}

/* The positions of the elements, each once, in random order or in ascending order. */
static spmv_status setup_places(struct work *work, bool in_order)
{
    const int64_t n = work->operand->n;
    const uint64_t key = random_bits(work->operand->seed, STREAM_ORDER, 0);
    int bits = 0;
    if (n > INT32_MAX) {
        snprintf(work->error, sizeof work->error, "%lld indices: at most %d are possible", (long long)n, INT32_MAX);
        return SPMV_ERROR_LIMIT;
    }
    int32_t *const index = malloc((size_t)n * sizeof *index + 1);
    if (index == NULL)
        return work_out_of_memory(work, "the indices", n * 4);
    while (((int64_t)1 << bits) < n)
        bits++;
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < n; i++)
        index[i] = in_order ? (int32_t)i : (int32_t)permuted((uint64_t)i, (uint64_t)n, bits, key);
    spmv_status st = setup_elements(work, n);
    if (st == SPMV_OK)
        st = work_array(work, index, n * 4, (const void **)&work->problem.index);
    free(index);
    work->model_bytes = (double)n * (2 * (double)element_bytes(work) + 4);
    return st;
}

static spmv_status setup_moves(struct work *work)
{
    return setup_places(work, false);
}

static spmv_status setup_sequential(struct work *work)
{
    return setup_places(work, true);
}

/* Keeps half of the elements, at random. */
static spmv_status setup_compact(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t n = work->operand->n;
    uint8_t *const flags = malloc((size_t)n + 1);
    int64_t kept = 0;
    if (flags == NULL)
        return work_out_of_memory(work, "the flags", n);
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static) reduction(+ : kept)
    for (int64_t i = 0; i < n; i++) {
        flags[i] = (uint8_t)(random_bits(work->operand->seed, STREAM_FLAGS, (uint64_t)i) & 1);
        kept += flags[i];
    }
    spmv_status st = setup_elements(work, kept);
    if (st == SPMV_OK)
        st = work_array(work, flags, n, (const void **)&p->flags);
    if (st == SPMV_OK)
        st = work_array(work, NULL, sizeof *p->kept, (const void **)&p->kept);
    free(flags);
    work->model_bytes =
        (double)n * (double)element_bytes(work) + (double)n + (double)kept * (double)element_bytes(work);
    return st;
}

/* ---------------------------------------------------------------- runs */

/* An operation on the arrays of one context. */
typedef spmv_status compute_fn(spmv_context *ctx, const struct peer_problem *p);

static spmv_status compute_map(spmv_context *ctx, const struct peer_problem *p)
{
    return spmv_map(ctx, SPMV_MAP_SQUARE, p->type, p->in, p->out, p->n);
}

static spmv_status compute_reduce(spmv_context *ctx, const struct peer_problem *p)
{
    return spmv_reduce(ctx, SPMV_ADD, p->type, p->in, p->out, p->n);
}

static spmv_status compute_scan(spmv_context *ctx, const struct peer_problem *p)
{
    return spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, p->type, p->in, p->out, p->n);
}

static spmv_status compute_segscan(spmv_context *ctx, const struct peer_problem *p)
{
    const spmv_segments flags = {.form = SPMV_SEGMENT_FLAGS, .heads = p->flags, .bits = 8};
    return spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, p->type, &flags, p->in, p->out, p->n);
}

static spmv_status compute_segreduce(spmv_context *ctx, const struct peer_problem *p)
{
    const spmv_segments offsets = {.form = SPMV_SEGMENT_OFFSETS, .heads = p->offsets, .bits = 32, .count = p->segments};
    return spmv_segreduce(ctx, SPMV_ADD, p->type, &offsets, p->in, p->out, p->n);
}

static spmv_status compute_gather(spmv_context *ctx, const struct peer_problem *p)
{
    return spmv_gather(ctx, p->type, p->in, p->n, p->index, 32, p->out, p->n);
}

static spmv_status compute_scatter(spmv_context *ctx, const struct peer_problem *p)
{
    return spmv_scatter(ctx, p->type, p->in, p->index, 32, p->out, p->n, p->n);
}

/* All rungs except the definition, which does n^2 / 2 operations and is measured only if it is
 * named. */
static const char *rung_but_definition(const char *(*rung)(spmv_backend, int), spmv_backend backend, int index)
{
    const char *name;
    for (int k = 0; (name = rung(backend, k)) != NULL; k++)
        if (strcmp(name, "definition") != 0 && index-- == 0)
            return name;
    return NULL;
}

static const char *scan_names(spmv_backend backend, int index)
{
    return rung_but_definition(spmv_scan_rung_name, backend, index);
}

static const char *segscan_names(spmv_backend backend, int index)
{
    return rung_but_definition(spmv_segscan_rung_name, backend, index);
}

/* A call with n = 0 reports whether the rung exists. */
static spmv_status open_scan(struct work *work, const char *name, struct method *method)
{
    const spmv_status st = spmv_scan_rung(work->ctx, name, SPMV_INCLUSIVE, SPMV_ADD, work->type, NULL, NULL, 0);
    return work_open_rung(work, name, st, method);
}

static spmv_status open_segscan(struct work *work, const char *name, struct method *method)
{
    const spmv_status st =
        spmv_segscan_rung(work->ctx, name, SPMV_INCLUSIVE, SPMV_ADD, work->type, NULL, NULL, NULL, 0);
    return work_open_rung(work, name, st, method);
}

static spmv_status open_reduce(struct work *work, const char *name, struct method *method)
{
    const struct peer_problem *const p = &work->problem;
    const spmv_status st = spmv_reduce_rung(work->ctx, name, SPMV_ADD, p->type, p->in, p->out, 0);
    if (work_open_rung(work, name, st, method) != SPMV_OK)
        return st;
    method->why = method->state == NULL ? "the fastest rung for every size" : "requested by name";
    method->figures.bits_may_differ = strcmp(name, "atomic") == 0;
    return SPMV_OK;
}

static spmv_status apply_scan(spmv_context *ctx, const char *rung, const struct peer_problem *p)
{
    return spmv_scan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, p->type, p->in, p->out, p->n);
}

static spmv_status apply_segscan(spmv_context *ctx, const char *rung, const struct peer_problem *p)
{
    return spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, p->type, p->flags, p->in, p->out, p->n);
}

static spmv_status apply_reduce(spmv_context *ctx, const char *rung, const struct peer_problem *p)
{
    return spmv_reduce_rung(ctx, rung, SPMV_ADD, p->type, p->in, p->out, p->n);
}

#define DEFINE_RUN(name)                                                                                               \
    static int run_##name(void *state)                                                                                 \
    {                                                                                                                  \
        const struct method *const method = state;                                                                     \
        const struct work *const work = method->work;                                                                  \
        return apply_##name(work->ctx, method->state, &work->problem) == SPMV_OK ? 0 : -1;                             \
    }
DEFINE_RUN(scan)
DEFINE_RUN(segscan)
DEFINE_RUN(reduce)
#undef DEFINE_RUN

#define DEFINE_RUN(name)                                                                                               \
    static int run_##name(void *state)                                                                                 \
    {                                                                                                                  \
        const struct work *const work = ((const struct method *)state)->work;                                          \
        return compute_##name(work->ctx, &work->problem) == SPMV_OK ? 0 : -1;                                          \
    }
DEFINE_RUN(map)
DEFINE_RUN(segreduce)
DEFINE_RUN(gather)
DEFINE_RUN(scatter)
#undef DEFINE_RUN

/* compact has named methods. */
static spmv_status open_compact(struct work *work, const char *asked, struct method *method)
{
    const spmv_backend backend = spmv_context_backend(work->ctx);
    struct names names = {.on = spmv_backend_name(backend)};
    names_add_row(&names, "auto", spmv_compact_rung_name(backend, 0));
    for (int m = 0; spmv_compact_rung_name(backend, m) != NULL; m++)
        names_add_row(&names, spmv_compact_rung_name(backend, m), spmv_compact_rung_name(backend, m));
    const int at = names_find(&names, asked, strlen(asked));
    if (at < 0) {
        names_unknown(&names, "method of compact", asked, strlen(asked), NULL, work->error, sizeof work->error);
        return SPMV_ERROR_METHOD;
    }
    *method = (struct method){
        .name = names.row[at], .why = choice_is_auto(asked) ? "the default" : "requested", .work = work};
    return SPMV_OK;
}

static int run_compact(void *state)
{
    const struct method *const method = state;
    const struct peer_problem *const p = &method->work->problem;
    return spmv_compact_by(method->work->ctx, method->name, p->type, p->in, p->flags, p->out, p->kept, p->n) == SPMV_OK
               ? 0
               : -1;
}

/* ---------------------------------------------------------------- checks */

/* Copies an array to host memory; NULL stays NULL. */
static spmv_status host_copy(struct work *work, const void *from, int64_t bytes, void **to)
{
    *to = NULL;
    if (from == NULL)
        return SPMV_OK;
    *to = malloc((size_t)bytes + 1);
    if (*to == NULL)
        return work_out_of_memory(work, "the checker's arrays", bytes);
    const spmv_status st = bytes > 0 ? spmv_download(work->ctx, from, *to, bytes) : SPMV_OK;
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

/* Copies the elements with a flag, in order. */
static void compact_on_host(const struct work *work, const void *in, const uint8_t *flags, void *out)
{
    const size_t size = (size_t)element_bytes(work);
    char *to = out;
    for (int64_t i = 0; i < work->operand->n; i++) {
        if (flags[i] != 0) {
            memcpy(to, (const char *)in + (size_t)i * size, size);
            to += size;
        }
    }
}

/* Computes the right result for the elements in host_in. compute NULL: compact. */
static spmv_status expect(struct work *work, const void *host_in, compute_fn *compute)
{
    const struct peer_problem *const p = &work->problem;
    void *flags = NULL, *offsets = NULL, *index = NULL;
    spmv_status st = host_copy(work, p->flags, p->n, &flags);
    if (st == SPMV_OK)
        st = host_copy(work, p->offsets, (p->segments + 1) * 4, &offsets);
    if (st == SPMV_OK)
        st = host_copy(work, p->index, p->n * 4, &index);
    if (st == SPMV_OK && compute == NULL) {
        compact_on_host(work, host_in, flags, work->state);
    } else if (st == SPMV_OK) {
        struct peer_problem on_host = *p;
        on_host.in = host_in;
        on_host.out = work->state;
        on_host.flags = flags;
        on_host.offsets = offsets;
        on_host.index = index;
        st = compute(work->checker, &on_host);
        if (st != SPMV_OK)
            work_fail(work, work->checker, st);
    }
    free(flags);
    free(offsets);
    free(index);
    return st;
}

static spmv_status fill(struct work *work, bool exact, compute_fn *compute)
{
    const int64_t n = work->operand->n, bytes = n * element_bytes(work);
    void *const host_in = work_values(work, n, STREAM_IN, exact);
    if (host_in == NULL)
        return work_out_of_memory(work, "the elements", bytes);
    spmv_status st = bytes > 0 ? spmv_upload(work->ctx, host_in, (void *)work->problem.in, bytes) : SPMV_OK;
    if (st != SPMV_OK)
        work_fail(work, work->ctx, st);
    else if (exact)
        st = expect(work, host_in, compute);
    free(host_in);
    return st;
}

#define DEFINE_FILL(name)                                                                                              \
    static spmv_status fill_##name(struct work *work, bool exact)                                                      \
    {                                                                                                                  \
        return fill(work, exact, compute_##name);                                                                      \
    }
DEFINE_FILL(map)
DEFINE_FILL(reduce)
DEFINE_FILL(scan)
DEFINE_FILL(segscan)
DEFINE_FILL(segreduce)
DEFINE_FILL(gather)
DEFINE_FILL(scatter)
#undef DEFINE_FILL

static spmv_status fill_compact(struct work *work, bool exact)
{
    return fill(work, exact, NULL);
}

/* Every bit must match, since the elements make every result exact. */
static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    return work_check_cells(work, host_result, work->state, element_bytes(work), check);
}

/* Also checks the number of elements kept. */
static spmv_status check_compact(struct work *work, const void *host_result, struct check *found)
{
    const int64_t flagged = work->result_bytes / element_bytes(work);
    int64_t kept = -1;
    spmv_status st = spmv_download(work->ctx, work->problem.kept, &kept, sizeof kept);
    if (st != SPMV_OK)
        return work_fail(work, work->ctx, st);
    if (kept == flagged)
        return check(work, host_result, found);
    *found = (struct check){.ratio = INFINITY};
    snprintf(work->error, sizeof work->error, "compact: %lld elements kept, but %lld have a flag", (long long)kept,
             (long long)flagged);
    return SPMV_ERROR_CHECK;
}

/* ---------------------------------------------------------------- the operations */

/* names, opener: spmv's methods and how they are opened */
#define OPERATION_BY(row, title, text, an_operator, a_kind, peers, names, opener, checker)                             \
    const struct operation operation_##row = {                                                                         \
        .name = (title),                                                                                               \
        .formula = (text),                                                                                             \
        .operator_name = (an_operator),                                                                                \
        .kind = (a_kind),                                                                                              \
        .peer_op = (peers),                                                                                            \
        .methods = {names, opener, run_##row, NULL, NULL},                                                             \
        .setup = setup_##row,                                                                                          \
        .fill = fill_##row,                                                                                            \
        .check = checker,                                                                                              \
    };
#define OPERATION(row, text, an_operator, a_kind, peers)                                                               \
    OPERATION_BY(row, #row, text, an_operator, a_kind, peers, work_no_names, work_open_only, check)
#define setup_scan setup_map
#define setup_gather setup_moves
#define setup_scatter setup_moves
#define setup_gather_sequential setup_sequential
#define fill_gather_sequential fill_gather
#define run_gather_sequential run_gather
OPERATION(map, "out[i] = in[i]^2", "square", NULL, -1)
OPERATION_BY(reduce, "reduce", "out = in[0] + ... + in[n-1]", "add", NULL, PEER_REDUCE, spmv_reduce_rung_name,
             open_reduce, check)
OPERATION_BY(scan, "scan", "out[i] = in[0] + ... + in[i]", "add", "inclusive", PEER_SCAN, scan_names, open_scan, check)
OPERATION_BY(segscan, "segscan", "out[i] = the sum of in from its segment's head to i", "add", "inclusive",
             PEER_SEGSCAN, segscan_names, open_segscan, check)
OPERATION(segreduce, "out[s] = the sum of in over segment s", "add", NULL, PEER_SEGREDUCE)
OPERATION(gather, "out[i] = in[index[i]]", NULL, NULL, -1)
OPERATION(scatter, "out[index[i]] = in[i]", NULL, NULL, -1)
OPERATION_BY(compact, "compact", "out = the in[i] with a flag, in order", NULL, NULL, PEER_COMPACT,
             spmv_compact_rung_name, open_compact, check_compact)
OPERATION_BY(gather_sequential, "gather-sequential", "out[i] = in[index[i]], index[i] = i", NULL, NULL, -1,
             work_no_names, work_open_only, check)
