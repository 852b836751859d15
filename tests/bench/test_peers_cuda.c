/* GPU peers: every module has the peers that the list of modules names, and every peer computes the
 * requested result on many kinds of matrices and lengths. Results are filled with NaN before each
 * run.
 *
 *   test_peers_cuda exports      opens the modules; needs no GPU
 *   test_peers_cuda cuda         runs the peers
 *
 * A result of k terms passes if it is within 2 (k + 3) u S of the sum in long double, where u is
 * the unit roundoff and S the sum of the magnitudes of the terms. Every summation order meets this
 * bound (docs/design/product.md, Checking a product).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <unistd.h>

#include "bench/devices/device.h"
#include "bench/peers/peer.h"
#include "bench/peers/peer_list.h"
#include "tests/support/support.h"
#include "tests/support/support_factors.h"
#include "tests/support/support_solve.h"

struct row {
    const char *name;
    spmv_backend backend;
    const char *peers;
};

#define ROW_(name, backend, peers, operations, brings) {#name, SPMV_BACKEND_##backend, peers},
static const struct row rows[] = {PEER_MODULE_LIST(ROW_)};
#undef ROW_
enum { MODULES = sizeof rows / sizeof rows[0] };

/* SPMV_CUDA_PEERS: the modules of this build, each followed by a blank. */
static bool is_built(const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "%s ", name);
    return strstr(SPMV_CUDA_PEERS, word) != NULL;
}

/* Opens the module beside this program, in a build or a bundle. Returns NULL, with a message, only
 * if NVIDIA's library, which is part of the machine, is missing or too old. */
static const struct peer_module *open_module(const char *name)
{
    static const char *const folders[] = {"../bench/peers", "../lib/spmv/peers"};
    char program[PATH_MAX], path[PATH_MAX + 128];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        snprintf(path, sizeof path, "%s/%s/spmv_peer_%s.so", program, folders[f], name);
        if (access(path, R_OK) != 0)
            continue;
        void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            const char *const why = dlerror();
            const bool old = strstr(why, "undefined symbol: cusparse") != NULL;
            if (strncmp(name, "cusparse", strlen("cusparse")) != 0 || (strstr(why, "spmv_peer_") != NULL && !old))
                fail_msg("%s", why);
            print_message("not tested: %s: %s\n", name, why);
            return NULL;
        }
        const struct peer_module *(*ask)(void) = NULL;
        *(void **)&ask = dlsym(library, "spmv_peer_module");
        assert_non_null(ask);
        return ask();
    }
    fail_msg("there is no spmv_peer_%s.so beside %s", name, program);
    return NULL;
}

/* The name of the module comes first, with hyphens for underscores. */
static bool is_of_module(const char *peer, const char *module)
{
    size_t i = 0;
    while (module[i] != '\0' && (peer[i] == module[i] || (peer[i] == '-' && module[i] == '_')))
        i++;
    return module[i] == '\0';
}

/* ---------------------------------------------------------------- exports */

static void test_exports(void **unused)
{
    (void)unused;
    int opened = 0;
    for (int m = 0; m < MODULES; m++) {
        if (rows[m].backend != SPMV_BACKEND_CUDA || !is_built(rows[m].name))
            continue;
        const struct peer_module *const module = open_module(rows[m].name);
        if (module == NULL)
            continue;
        char names[1024] = "";
        opened++;
        assert_int_equal(module->abi, PEER_ABI);
        assert_true(strlen(module->library) > 0);
        for (int p = 0; p < module->count; p++) {
            const struct peer *const peer = &module->peers[p];
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", p == 0 ? "" : " ", peer->name);
            assert_true(is_of_module(peer->name, rows[m].name));
            assert_true(strlen(peer->settings) > 0);
            assert_int_equal((peer->flags & PEER_PROBE) != 0, strcmp(rows[m].name, "probe") == 0);
            assert_non_null(peer->open);
            assert_non_null(peer->run);
            assert_non_null(peer->close);
            assert_null(peer->run_timed);
            peer->close(NULL);
        }
        assert_string_equal(names, rows[m].peers);
        print_message("%s: %s\n", module->library, names);
    }
    assert_true(opened >= 2); /* cub and probe need nothing that a machine may lack */
}

/* ------------------------------------------------------------------ arrays */

struct place {
    struct device device;
    spmv_context *ctx;
};

static void open_place(struct place *place)
{
    char why[WHY_SIZE] = "";
    if (device_open_cuda(-1, &place->device, why) != 0)
        fail_msg("%s", why);
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_CUDA;
    options.stream = place->device.stream;
    assert_int_equal(spmv_context_create(&options, &place->ctx), SPMV_OK);
}

static void close_place(struct place *place)
{
    spmv_context_destroy(place->ctx);
    device_close(&place->device);
}

/* A copy on the device, at least one byte. */
static void *sent(struct place *place, const void *host, int64_t bytes)
{
    void *memory = NULL;
    assert_int_equal(spmv_alloc(place->ctx, bytes > 0 ? bytes : 1, &memory), SPMV_OK);
    if (bytes > 0)
        assert_int_equal(spmv_upload(place->ctx, host, memory, bytes), SPMV_OK);
    return memory;
}

/* Sets all bits on the device: NaN in both types. */
static void *poison(struct place *place, int64_t bytes, void *memory)
{
    void *const host = malloc((size_t)bytes + 1);
    assert_non_null(host);
    memset(host, 0xff, (size_t)bytes + 1);
    if (memory == NULL)
        memory = sent(place, host, bytes);
    else if (bytes > 0)
        assert_int_equal(spmv_upload(place->ctx, host, memory, bytes), SPMV_OK);
    free(host);
    return memory;
}

static double value_at(const void *values, spmv_type type, int64_t i)
{
    return type == SPMV_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

/* Values of both signs, no two neighbours equal, most not representable in few digits. */
static void *some_values(spmv_type type, int64_t n)
{
    void *const values = malloc((size_t)(n > 0 ? n : 1) * spmv_type_size(type));
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) {
        const double value = (double)(i * 7919 % 2003 - 1001) / 769 + 1e-3;
        if (type == SPMV_F32)
            ((float *)values)[i] = (float)value;
        else
            ((double *)values)[i] = value;
    }
    return values;
}

static void assert_near(const char *peer, spmv_type type, int64_t i, double got, long double sum, long double sizes,
                        int64_t terms)
{
    const long double roundoff = type == SPMV_F32 ? 0x1p-24L : 0x1p-53L;
    const long double bound = 2 * ((long double)terms + 3) * roundoff * sizes;
    if (!(fabsl((long double)got - sum) <= bound))
        fail_msg("%s %s: element %lld is %.17g instead of %.17Lg, further off than %.3Lg", peer, spmv_type_name(type),
                 (long long)i, got, sum, bound);
}

/* ---------------------------------------------------------------- products */

static int64_t one(int64_t row)
{
    return row >= 0;
}

static int64_t none(int64_t row)
{
    return row < 0;
}

static int64_t up_to_six(int64_t row)
{
    return row % 7;
}

static int64_t one_long(int64_t row)
{
    return row == 1234 ? 30000 : 3;
}

static int64_t all_long(int64_t row)
{
    return 2000 + row % 3;
}

static int64_t mostly_empty(int64_t row)
{
    return row % 50 == 0 ? 5 : 0;
}

static const struct shape {
    const char *name;
    int64_t rows, cols;
    int64_t (*length)(int64_t row);
    bool may_refuse;
} shapes[] = {
    {"1 x 1", 1, 1, one, false},
    {"no nonzeros", 3, 5, none, true},
    {"one column", 33, 1, one, false},
    {"up to 6 a row", 1000, 1000, up_to_six, false},
    {"one long row", 5000, 40000, one_long, false},
    {"long rows", 257, 100000, all_long, false},
    {"mostly empty", 40000, 50, mostly_empty, false},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct matrix {
    int64_t rows, cols, nnz;
    int32_t *row_ptr, *col;
    void *val, *x, *y, *w;
    int k; /* number of vectors */
};

static void make_matrix(const struct shape *shape, spmv_type type, int k, struct matrix *a)
{
    *a = (struct matrix){.rows = shape->rows, .cols = shape->cols, .k = k};
    for (int64_t r = 0; r < a->rows; r++)
        a->nnz += shape->length(r);
    a->row_ptr = malloc((size_t)(a->rows + 1) * sizeof(int32_t));
    a->col = malloc((size_t)(a->nnz + 1) * sizeof(int32_t));
    a->val = some_values(type, a->nnz);
    a->x = some_values(type, a->cols * k);
    a->y = some_values(type, a->rows * k + 1);
    a->w = some_values(type, a->rows);
    assert_true(a->row_ptr != NULL && a->col != NULL);
    a->row_ptr[0] = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t n = shape->length(r);
        for (int64_t j = 0; j < n; j++) /* ascending, because n <= cols */
            a->col[a->row_ptr[r] + j] = (int32_t)(j * a->cols / n);
        a->row_ptr[r + 1] = (int32_t)(a->row_ptr[r] + n);
    }
}

static void free_matrix(struct matrix *a)
{
    support_free(a->row_ptr, a->col, a->val, a->x, a->y, a->w);
}

static void check_product(const struct peer *peer, spmv_type type, const struct matrix *a)
{
    for (int64_t i = 0; i < a->rows * a->k; i++) { /* row by row */
        const int64_t r = i / a->k, v = i % a->k;
        long double sum = 0, sizes = 0;
        for (int64_t k = a->row_ptr[r]; k < a->row_ptr[r + 1]; k++) {
            const long double term =
                (long double)value_at(a->val, type, k) * value_at(a->x, type, (int64_t)a->col[k] * a->k + v);
            sum += term;
            sizes += fabsl(term);
        }
        assert_near(peer->name, type, i, value_at(a->y, type, i), sum, sizes, a->row_ptr[r + 1] - a->row_ptr[r]);
    }
}

/* Checks the dot product that follows y. */
static void check_dot(const struct peer *peer, spmv_type type, const struct matrix *a)
{
    long double sum = 0, sizes = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        const long double term = (long double)value_at(a->w, type, r) * value_at(a->y, type, r);
        sum += term;
        sizes += fabsl(term);
    }
    assert_near(peer->name, type, a->rows, value_at(a->y, type, a->rows), sum, sizes, a->rows);
}

static void run_and_wait(struct place *place, const struct peer *peer, void *state)
{
    char why[WHY_SIZE] = "";
    if (peer->run(state) != 0)
        fail_msg("%s: the run failed", peer->name);
    if (place->device.functions->wait(&place->device, why) != 0)
        fail_msg("%s: %s", peer->name, why);
}

/* The problem with an n x m matrix in the memory of the device and without vectors. */
static struct peer_problem problem_on(struct place *place, const struct peer *peer, spmv_type type, int64_t n,
                                      int64_t m, int64_t nnz, const int32_t *row_ptr, const int32_t *col,
                                      const void *val)
{
    return (struct peer_problem){.op = peer->op,
                                 .type = type,
                                 .stream = place->device.stream,
                                 .rows = n,
                                 .cols = m,
                                 .nnz = nnz,
                                 .row_ptr = sent(place, row_ptr, (n + 1) * 4),
                                 .col = sent(place, col, nnz * 4),
                                 .val = sent(place, val, nnz * (int64_t)spmv_type_size(type))};
}

static void free_problem(struct place *place, const struct peer_problem *p)
{
    const void *const memory[] = {p->row_ptr, p->col, p->val, p->x, p->y, p->w, p->b};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        spmv_free(place->ctx, (void *)memory[i]);
}

static void test_product(struct place *place, const struct peer *peer, spmv_type type, const struct shape *shape)
{
    struct matrix a;
    make_matrix(shape, type, peer->op == PEER_SPMM ? 3 : 1, &a);
    const bool dot = peer->op == PEER_SPMV_DOT;
    const int64_t size = (int64_t)spmv_type_size(type), y_bytes = (a.rows * a.k + dot) * size;
    struct peer_problem problem = problem_on(place, peer, type, a.rows, a.cols, a.nnz, a.row_ptr, a.col, a.val);
    problem.x = sent(place, a.x, a.cols * a.k * size);
    problem.y = poison(place, y_bytes, NULL);
    problem.vectors = a.k;
    problem.w = sent(place, a.w, a.rows * size);
    char why[WHY_SIZE] = "";
    void *state = NULL;
    if (peer->open(&problem, &state, why, sizeof why) != 0) {
        if (!shape->may_refuse)
            fail_msg("%s %s on %s: %s", peer->name, spmv_type_name(type), shape->name, why);
        assert_true(strlen(why) > 0);
        assert_null(state);
        print_message("%s refuses %s: %s\n", peer->name, shape->name, why);
    } else {
        for (int run = 0; run < 3; run++) {
            poison(place, y_bytes, problem.y);
            run_and_wait(place, peer, state);
            assert_true(peer->fetch == NULL || peer->fetch(state) == 0);
            assert_int_equal(spmv_download(place->ctx, problem.y, a.y, y_bytes), SPMV_OK);
            if ((peer->flags & PEER_PROBE) == 0)
                check_product(peer, type, &a);
            if (dot)
                check_dot(peer, type, &a);
        }
        peer->close(state);
    }
    free_problem(place, &problem);
    free_matrix(&a);
}

/* -------------------------------------------------------------- primitives */

/* All host data that a primitive reads, and the result. */
struct input {
    int64_t n, segments, kept;
    void *in, *out;
    int32_t *segment, *offsets, *index;
    uint8_t *flags;
};

enum { BINS = 77 };

/* Segments of 0 to 40 elements, a few of 1000. */
static int64_t segment_length(int64_t s)
{
    return s % 5 == 4 ? 0 : s % 97 == 3 ? 1000 : 1 + s % 40;
}

static void make_input(spmv_type type, int64_t n, struct input *input)
{
    *input = (struct input){.n = n, .in = some_values(type, n), .out = some_values(type, n)};
    input->segment = malloc((size_t)(n + 1) * sizeof(int32_t));
    input->offsets = malloc((size_t)(2 * n + 2) * sizeof(int32_t));
    input->flags = malloc((size_t)n + 1);
    input->index = malloc((size_t)(n + 1) * sizeof(int32_t));
    assert_true(input->segment != NULL && input->offsets != NULL && input->flags != NULL && input->index != NULL);
    input->offsets[0] = 0;
    for (int64_t i = 0; i < n; input->segments++) {
        const int64_t wanted = segment_length(input->segments), end = i + wanted < n ? i + wanted : n;
        for (; i < end; i++)
            input->segment[i] = (int32_t)input->segments;
        input->offsets[input->segments + 1] = (int32_t)end;
    }
    for (int64_t i = 0; i < n; i++) {
        input->flags[i] = i * 31 % 7 < 3;
        input->index[i] = (int32_t)(i * i % 1009 % BINS);
    }
}

static void free_input(struct input *input)
{
    support_free(input->in, input->out, input->segment, input->offsets, input->flags, input->index);
}

static void check_scan(const struct peer *peer, spmv_type type, const struct input *input)
{
    long double sum = 0, sizes = 0;
    int64_t terms = 0;
    for (int64_t i = 0; i < input->n; i++) {
        if (peer->op == PEER_SEGSCAN && i > 0 && input->segment[i] != input->segment[i - 1])
            sum = sizes = terms = 0;
        const long double term = value_at(input->in, type, i);
        sum += term;
        sizes += fabsl(term);
        assert_near(peer->name, type, i, value_at(input->out, type, i), sum, sizes, ++terms);
    }
}

static void check_sum(const struct peer *peer, spmv_type type, const struct input *input, int64_t begin, int64_t end,
                      int64_t result)
{
    long double sum = 0, sizes = 0;
    for (int64_t i = begin; i < end; i++) {
        const long double term = value_at(input->in, type, i);
        sum += term;
        sizes += fabsl(term);
    }
    assert_near(peer->name, type, result, value_at(input->out, type, result), sum, sizes, end - begin);
}

static void check_compact(const struct peer *peer, spmv_type type, const struct input *input)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < input->n; i++) {
        if (input->flags[i] == 0)
            continue;
        assert_near(peer->name, type, kept, value_at(input->out, type, kept), value_at(input->in, type, i), 0, 0);
        kept++;
    }
    assert_int_equal(input->kept, kept);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_sorted(const struct peer *peer, spmv_type type, const struct input *input)
{
    double *const right = malloc((size_t)input->n * sizeof *right);
    assert_non_null(right);
    for (int64_t i = 0; i < input->n; i++)
        right[i] = value_at(input->in, type, i);
    qsort(right, (size_t)input->n, sizeof *right, ascending);
    for (int64_t i = 0; i < input->n; i++)
        assert_near(peer->name, type, i, value_at(input->out, type, i), right[i], 0, 0);
    free(right);
}

static void check_histogram(const struct peer *peer, const struct input *input)
{
    int32_t right[BINS] = {0};
    for (int64_t i = 0; i < input->n; i++)
        right[input->index[i]]++;
    for (int b = 0; b < BINS; b++)
        if (((const int32_t *)input->out)[b] != right[b])
            fail_msg("%s: %d in bin %d, not %d", peer->name, ((const int32_t *)input->out)[b], b, right[b]);
}

static void check_primitive(const struct peer *peer, spmv_type type, const struct input *input)
{
    switch (peer->op) {
    case PEER_SCAN:
    case PEER_SEGSCAN:
        check_scan(peer, type, input);
        break;
    case PEER_REDUCE:
        check_sum(peer, type, input, 0, input->n, 0);
        break;
    case PEER_SEGREDUCE:
        for (int64_t s = 0; s < input->segments; s++)
            check_sum(peer, type, input, input->offsets[s], input->offsets[s + 1], s);
        break;
    case PEER_COMPACT:
        check_compact(peer, type, input);
        break;
    case PEER_SORT:
        check_sorted(peer, type, input);
        break;
    case PEER_HISTOGRAM:
        check_histogram(peer, input);
        break;
    default:
        fail_msg("%s: an op without a check", peer->name);
    }
}

/* Number of elements that the peer writes to `out`: all for compact, of which only the first count;
 * the number of bins for a histogram. */
static int64_t results(const struct peer *peer, const struct input *input)
{
    if (peer->op == PEER_HISTOGRAM)
        return BINS;
    return peer->op == PEER_REDUCE ? 1 : peer->op == PEER_SEGREDUCE ? input->segments : input->n;
}

static void test_primitive(struct place *place, const struct peer *peer, spmv_type type, int64_t n)
{
    struct input input;
    make_input(type, n, &input);
    const int64_t size = (int64_t)spmv_type_size(type), most = n > BINS ? n : BINS,
                  out_bytes = (input.segments > most ? input.segments : most) * size;
    input.out = realloc(input.out, (size_t)out_bytes);
    assert_non_null(input.out);
    void *const in = sent(place, input.in, n * size), *const out = poison(place, out_bytes, NULL),
                *const segment = sent(place, input.segment, n * 4),
                *const offsets = sent(place, input.offsets, (input.segments + 1) * 4),
                *const index = sent(place, input.index, n * 4), *const flags = sent(place, input.flags, n),
                *const kept = poison(place, (int64_t)sizeof(int64_t), NULL);
    const struct peer_problem problem = {.op = peer->op,
                                         .type = type,
                                         .stream = place->device.stream,
                                         .n = n,
                                         .in = in,
                                         .out = out,
                                         .segment = segment,
                                         .segments = input.segments,
                                         .offsets = offsets,
                                         .flags = flags,
                                         .kept = kept,
                                         .index = index,
                                         .bins = BINS};
    char why[WHY_SIZE] = "";
    void *state = NULL;
    if (peer->open(&problem, &state, why, sizeof why) != 0)
        fail_msg("%s %s, %lld elements: %s", peer->name, spmv_type_name(type), (long long)n, why);
    for (int run = 0; run < 2; run++) {
        poison(place, out_bytes, out);
        run_and_wait(place, peer, state);
        assert_int_equal(spmv_download(place->ctx, out, input.out, results(peer, &input) * size), SPMV_OK);
        assert_int_equal(spmv_download(place->ctx, kept, &input.kept, (int64_t)sizeof input.kept), SPMV_OK);
        check_primitive(peer, type, &input);
    }
    peer->close(state);
    void *const memory[] = {in, out, segment, offsets, flags, kept, index};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        spmv_free(place->ctx, memory[i]);
    free_input(&input);
}

/* ----------------------------------------------------------------- solvers */

static void test_solve(struct place *place, const struct peer *peer, spmv_type type, const struct system_of *of,
                       int64_t limit)
{
    struct linear_system s = make_system(of, type);
    struct peer_solved solved = {.iterations = -1, .residual = -1};
    const int64_t size = (int64_t)spmv_type_size(type);
    struct peer_problem problem = problem_on(place, peer, type, s.rows, s.rows, s.nnz, s.row_ptr, s.col, s.val);
    void *const x = problem.y = poison(place, s.rows * size, NULL);
    problem.b = sent(place, s.b, s.rows * size);
    problem.rtol = tolerance_to_solve(type);
    problem.max_iterations = limit;
    problem.solved = &solved;
    char why[WHY_SIZE] = "";
    void *state = NULL;
    if (peer->open(&problem, &state, why, sizeof why) != 0)
        fail_msg("%s %s on %s: %s", peer->name, spmv_type_name(type), of->name, why);
    for (int run = 0; run < 3; run++) {
        poison(place, s.rows * size, x);
        solved = (struct peer_solved){.iterations = -1, .residual = -1};
        run_and_wait(place, peer, state);
        assert_int_equal(spmv_download(place->ctx, x, s.x, s.rows * size), SPMV_OK);
        check_solve(&s, s.x, &problem, peer->name, of->name);
    }
    peer->close(state);
    free_problem(place, &problem);
    free_system(&s);
}

static void test_peer(struct place *place, const struct peer *peer)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_F32};
    static const int64_t lengths[] = {1, 31, 1000, 100003, 1000001};
    for (int t = 0; t < 2; t++) {
        if (peer->op == PEER_SPMV || peer->op == PEER_SPMM || peer->op == PEER_SPMV_DOT)
            for (int s = 0; s < SHAPES; s++)
                test_product(place, peer, types[t], &shapes[s]);
        else if (support_has_factors(peer->op))
            for (int s = 0; s < SUPPORT_FACTOR_SPECS; s++)
                support_factors(place->ctx, peer, types[t], 1, support_factor_specs[s]);
        else if (peer->op == PEER_CG)
            for (int s = 0; s < SYSTEMS_TO_SOLVE; s++)
                for (int l = 0; l < (systems_to_solve[s].side == 60 ? LIMITS_TO_SOLVE : 1); l++)
                    test_solve(place, peer, types[t], &systems_to_solve[s], limits_to_solve[l]);
        else
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
                test_primitive(place, peer, types[t], lengths[l]);
    }
}

static void test_results(void **unused)
{
    (void)unused;
    struct place place;
    int tested = 0;
    open_place(&place);
    for (int m = 0; m < MODULES; m++) {
        if (rows[m].backend != SPMV_BACKEND_CUDA || !is_built(rows[m].name))
            continue;
        const struct peer_module *const module = open_module(rows[m].name);
        for (int p = 0; module != NULL && p < module->count; p++, tested++)
            test_peer(&place, &module->peers[p]);
    }
    close_place(&place);
    print_message("%d peers tested\n", tested);
    assert_true(tested >= 8); /* those of cub and probe */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest exports[] = {cmocka_unit_test(test_exports)};
    const struct CMUnitTest results_of_peers[] = {cmocka_unit_test(test_results)};
    if (argc > 1 && strcmp(argv[1], "exports") == 0)
        return cmocka_run_group_tests(exports, NULL, NULL);
    support_begin(argc, argv);
    return cmocka_run_group_tests(results_of_peers, NULL, NULL);
}
