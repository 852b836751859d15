/* Bit-identical results while the device does other work: every rung of reduce and scan, segmented
 * scan and segmented reduce, a map in a reduce, compact, expand, sort, histogram, the dot product.
 *
 * Values have full mantissas, so that another parenthesization or order changes the bits. Each
 * result is compared with the first one, byte for byte, after the output was overwritten. The rung
 * `atomic` of reduce is left out, because its bits may differ.
 *
 * argv[2] selects the amount of work: a few repetitions by default; "repeat": 200 of each; "none":
 * only checks for a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

static spmv_context *context;
static int repeats;

enum { BINS = 6000 }; /* more than the threads of one block, less than fits in its shared memory */

/* Inputs and outputs of the calls, in the context's memory. */
struct data {
    spmv_type type;
    int64_t size, n, few; /* few: length for the rungs with n^2 operations */
    void *in, *other, *out;
    void *flags, *starts, *index, *counts, *offsets;
    int64_t segments, made;
};

/* One call: queues it and sets *bytes to the bytes of `out` that it writes. name: of a rung or a
 * form. */
typedef spmv_status call_fn(const struct data *d, const char *name, int64_t *bytes);

/* Concurrent work on another stream: memory traffic, and a scan whose blocks wait for each
 * other. */
struct noise {
    spmv_context *ctx;
    void *values, *sums;
    int64_t n;
};

static void make_more(const struct noise *noise)
{
    assert_ok(noise->ctx, spmv_map(noise->ctx, SPMV_MAP_SQRT, SPMV_F64, noise->values, noise->values, noise->n));
    assert_ok(noise->ctx,
              spmv_scan(noise->ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, noise->values, noise->sums, noise->n));
}

static void *get(int64_t bytes)
{
    void *const memory = malloc((size_t)bytes + 1);
    assert_non_null(memory);
    return memory;
}

static const struct noise *noise;
static void *first, *again, *poison; /* host buffers for any result */

static void check(const struct data *d, const char *what, const char *name, call_fn *call)
{
    for (int repeat = 0; repeat < repeats; repeat++) {
        int64_t bytes = 0;
        make_more(noise);
        assert_ok(context, spmv_upload(context, poison, d->out, d->size * d->n));
        const spmv_status st = call(d, name, &bytes);
        if (st != SPMV_OK)
            fail_msg("%s %s: %s", what, name, spmv_last_error(context));
        assert_true(bytes > 0);
        assert_ok(context, spmv_download(context, d->out, repeat == 0 ? first : again, bytes));
        if (repeat == 0 && memcmp(first, poison, (size_t)bytes) == 0)
            fail_msg("%s %s wrote nothing", what, name);
        if (repeat > 0 && memcmp(first, again, (size_t)bytes) != 0)
            fail_msg("%s %s, %s: other bits at run %d", what, name, spmv_type_name(d->type), repeat + 1);
    }
}

/* ------------------------------------------------------------------- the calls */

static spmv_status scan(const struct data *d, const char *name, int64_t *bytes)
{
    const int64_t n = strcmp(name, "definition") == 0 ? d->few : d->n;
    *bytes = n * d->size;
    return spmv_scan_rung(context, name, SPMV_INCLUSIVE, SPMV_ADD, d->type, d->in, d->out, n);
}

static spmv_status exclusive_scan(const struct data *d, const char *name, int64_t *bytes)
{
    const int64_t n = strcmp(name, "definition") == 0 ? d->few : d->n;
    *bytes = n * d->size;
    return spmv_scan_rung(context, name, SPMV_EXCLUSIVE, SPMV_ADD, d->type, d->in, d->out, n);
}

static spmv_status reduce(const struct data *d, const char *name, int64_t *bytes)
{
    *bytes = d->size;
    return spmv_reduce_rung(context, name, SPMV_ADD, d->type, d->in, d->out, d->n);
}

static spmv_status map_reduce(const struct data *d, const char *name, int64_t *bytes)
{
    (void)name;
    *bytes = d->size;
    return spmv_map_reduce(context, SPMV_MAP_SQUARE, SPMV_ADD, d->type, d->in, d->out, d->n);
}

static spmv_status dot(const struct data *d, const char *name, int64_t *bytes)
{
    (void)name;
    *bytes = d->size;
    return spmv_dot(context, d->type, d->in, d->other, d->out, d->n);
}

static spmv_segments segments_of(const struct data *d, const char *form)
{
    if (strcmp(form, "flags") == 0)
        return (spmv_segments){.form = SPMV_SEGMENT_FLAGS, .heads = d->flags, .bits = 8};
    return (spmv_segments){.form = SPMV_SEGMENT_STARTS, .heads = d->starts, .bits = 32, .count = d->segments};
}

static spmv_status segscan(const struct data *d, const char *name, int64_t *bytes)
{
    const spmv_segments segments = segments_of(d, name);
    *bytes = d->n * d->size;
    return spmv_segscan(context, SPMV_INCLUSIVE, SPMV_ADD, d->type, &segments, d->in, d->out, d->n);
}

static spmv_status exclusive_segscan(const struct data *d, const char *name, int64_t *bytes)
{
    const spmv_segments segments = segments_of(d, name);
    *bytes = d->n * d->size;
    return spmv_segscan(context, SPMV_EXCLUSIVE, SPMV_ADD, d->type, &segments, d->in, d->out, d->n);
}

/* One rung by name; the teaching rungs support sums only. */
static spmv_status segscan_rung(const struct data *d, const char *name, int64_t *bytes)
{
    const int64_t n = strcmp(name, "definition") == 0 ? d->few : d->n;
    *bytes = n * d->size;
    return spmv_segscan_rung(context, name, SPMV_INCLUSIVE, SPMV_ADD, d->type, d->flags, d->in, d->out, n);
}

static spmv_status segreduce(const struct data *d, const char *name, int64_t *bytes)
{
    const spmv_segments segments = segments_of(d, name);
    *bytes = d->segments * d->size;
    return spmv_segreduce(context, SPMV_ADD, d->type, &segments, d->in, d->out, d->n);
}

static spmv_status compact(const struct data *d, const char *name, int64_t *bytes)
{
    *bytes = d->n * d->size; /* the memory after the kept elements must not change either */
    return spmv_compact_by(context, name, d->type, d->in, d->flags, d->out, d->counts, d->n);
}

static spmv_status expand(const struct data *d, const char *name, int64_t *bytes)
{
    const spmv_expand_form form = strcmp(name, "scatter") == 0 ? SPMV_EXPAND_SCATTER : SPMV_EXPAND_GATHER;
    *bytes = d->made * d->size;
    return spmv_expand(context, form, d->type, d->in, d->offsets, d->few, 32, d->out, NULL, NULL, d->made);
}

static spmv_status sort(const struct data *d, const char *name, int64_t *bytes)
{
    *bytes = d->n * d->size;
    return spmv_sort_rung(context, name, d->type, 0, (int)d->size * 8, d->in, NULL, 0, d->out, NULL, d->n);
}

static spmv_status histogram(const struct data *d, const char *name, int64_t *bytes)
{
    *bytes = BINS * 4;
    return spmv_histogram_rung(context, name, SPMV_I32, d->index, d->out, BINS, NULL, d->n);
}

/* -------------------------------------------------------------------- the data */

/* Segments of 0 to 60 elements, a flag at the head of each non-empty one, 0 to 3 outputs for each
 * element of expand. */
static struct data make_data(spmv_type type, int64_t n, int64_t few)
{
    struct data d = {.type = type, .size = (int64_t)spmv_type_size(type), .n = n, .few = few};
    uint64_t random = 71;
    double *const values = get(2 * n * 8);
    float *const narrow = get(2 * n * 4);
    unsigned char *const flags = get(n);
    int32_t *const starts = get(n * 4), *const index = get(n * 4), *const counts = get(few * 4);
    for (int64_t i = 0; i < 2 * n; i++) {
        values[i] = support_uniform(&random);
        narrow[i] = (float)values[i];
    }
    for (int64_t i = 0; i < n; i++) {
        index[i] = (int32_t)(support_random(&random) % (BINS + BINS / 8)) - 5;
        flags[i] = 0;
    }
    for (int64_t at = 0; at < n && d.segments < n; at += (int64_t)(support_random(&random) % 61)) {
        flags[at] = 1;
        starts[d.segments++] = (int32_t)at;
    }
    for (int64_t i = 0; i < few; i++)
        d.made += counts[i] = (int32_t)(support_random(&random) % 4);
    assert_true(d.made <= n && n * d.size >= BINS * 4);
    const void *const elements = type == SPMV_F32 ? (void *)narrow : (void *)values;
    d.in = support_upload(context, elements, n * d.size);
    d.other = support_upload(context, (const char *)elements + n * d.size, n * d.size);
    d.out = support_upload(context, elements, n * d.size);
    d.flags = support_upload(context, flags, n);
    d.starts = support_upload(context, starts, d.segments * 4);
    d.index = support_upload(context, index, n * 4);
    d.counts = support_upload(context, counts, few * 4);
    assert_ok(context, spmv_alloc(context, (few + 1) * 8, &d.offsets));
    assert_ok(context, spmv_expand_offsets(context, d.counts, 32, d.offsets, few));
    support_free(values, narrow, flags, starts, index, counts);
    return d;
}

static void free_data(struct data *d)
{
    void *const all[] = {d->in, d->other, d->out, d->flags, d->starts, d->index, d->counts, d->offsets};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        spmv_free(context, all[k]);
}

/* ------------------------------------------------------------------- the tests */

static struct data data[2];

#define FOR_DATA(d) for (const struct data *d = data; d < data + 2; d++)
#define FOR_NAMES(name, list)                                                                                          \
    for (int k_ = 0; k_ >= 0; k_ = -1)                                                                                 \
        for (const char *name; (name = list(support_backend, k_)) != NULL; k_++)

/* There is more than one rung to test. */
static void rungs_are_listed(void **state)
{
    (void)state;
    assert_non_null(spmv_scan_rung_name(support_backend, 1));
    assert_non_null(spmv_reduce_rung_name(support_backend, 1));
}

static void scans_repeat(void **state)
{
    (void)state;
    FOR_DATA(d)
    {
        check(d, "scan", "auto", scan);
        check(d, "exclusive scan", "auto", exclusive_scan);
        FOR_NAMES(name, spmv_scan_rung_name)
        {
            check(d, "scan", name, scan);
            check(d, "exclusive scan", name, exclusive_scan);
        }
    }
}

static void segments_repeat(void **state)
{
    (void)state;
    static const char *const forms[] = {"flags", "positions"};
    FOR_DATA(d)
    {
        for (int f = 0; f < 2; f++) {
            check(d, "segscan by", forms[f], segscan);
            check(d, "exclusive segscan by", forms[f], exclusive_segscan);
        }
        check(d, "segreduce by", "positions", segreduce);
        FOR_NAMES(name, spmv_segscan_rung_name)
        check(d, "segscan", name, segscan_rung);
    }
}

static void reduces_repeat(void **state)
{
    (void)state;
    FOR_DATA(d)
    {
        check(d, "reduce", "auto", reduce);
        check(d, "map_reduce", "", map_reduce);
        check(d, "dot", "", dot);
        FOR_NAMES(name, spmv_reduce_rung_name)
        if (strcmp(name, "atomic") != 0)
            check(d, "reduce", name, reduce);
    }
}

static void compactions_repeat(void **state)
{
    (void)state;
    FOR_DATA(d)
    {
        FOR_NAMES(name, spmv_compact_rung_name)
        check(d, "compact", name, compact);
        check(d, "expand", "scatter", expand);
        check(d, "expand", "gather", expand);
    }
}

static void sorts_and_histograms_repeat(void **state)
{
    (void)state;
    FOR_DATA(d)
    {
        FOR_NAMES(name, spmv_sort_rung_name)
        check(d, "sort", name, sort);
        FOR_NAMES(name, spmv_histogram_rung_name)
        check(d, "histogram", name, histogram);
    }
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    context = support_context();
    const bool playing = support_host_plays(context);
    const int64_t n = playing ? 7001 : 1000003, few = playing ? 700 : 20011;
    repeats = playing ? 3 : argc > 2 && strcmp(argv[2], "repeat") == 0 ? 200 : 20;
    first = get(8 * n);
    again = get(8 * n);
    poison = get(8 * n);
    memset(poison, 0xa5, (size_t)n * 8);
    data[0] = make_data(SPMV_F32, n, few);
    data[1] = make_data(SPMV_F64, n, few);
    struct noise other = {.ctx = support_context(), .n = playing ? 1000 : 4000000};
    const double one = 1;
    assert_ok(other.ctx, spmv_alloc(other.ctx, other.n * 8, &other.values));
    assert_ok(other.ctx, spmv_alloc(other.ctx, other.n * 8, &other.sums));
    assert_ok(other.ctx, spmv_map_index(other.ctx, SPMV_F64, &one, &one, other.values, other.n));
    noise = &other;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rungs_are_listed),   cmocka_unit_test(scans_repeat),
        cmocka_unit_test(segments_repeat),    cmocka_unit_test(reduces_repeat),
        cmocka_unit_test(compactions_repeat), cmocka_unit_test(sorts_and_histograms_repeat),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    support_free_in(other.ctx, other.values, other.sums);
    spmv_context_destroy(other.ctx);
    free_data(&data[0]);
    free_data(&data[1]);
    spmv_context_destroy(context);
    support_free(first, again, poison);
    return failed;
}
