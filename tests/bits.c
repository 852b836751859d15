/* Prints a hash of each result of the library, one line per case: "NAME HASH", or "NAME STATUS"
 * where the call is refused.
 *
 * usage: bits BACKEND [--threads N] [--group NAME] [--only TEXT] [--flip NAME] [--check]
 *
 *   BACKEND      ref, omp or cuda. Exit status 77 if this machine does not have it.
 *   --threads N  maximum number of OpenMP threads
 *   --group NAME one group of cases: maps, moves, compacts, pairs, sorts, products, solves,
 *                multiplies, matrices or files
 *   --only TEXT  prints only the cases whose name contains TEXT
 *   --flip NAME  flips one bit of the first word of this case before hashing, to test a comparison
 *   --check      computes everything twice, with one thread and with three; fails if a hash differs
 *
 * scripts/checks/bits.py compares the listings of two versions of the library, made on one machine.
 *
 * Names of methods, rungs, operators, types, preconditioners and generators come from the lists of
 * the library, so a new one is a new case. Matrices and vectors are made here, so a changed
 * generator changes only the generator's cases. Only public headers are used, so the same source
 * compiles with older versions of the library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spmv/spmv.h>

enum { NAME_SIZE = 200, SKIPPED = 77 };

/* The host emulation of CUDA is about a thousand times slower than a GPU and uses smaller
 * chunks. */
#ifdef HOST_CUDA
static const int64_t sizes[] = {1, 33, 1025, 2503};
enum { MATRIX_ROWS = 211, LONG_ROW = 2003, MANY_COLS = 3001, GRID = 9, ITERATIONS = 6 };
#else
/* 8192 elements are one tile on the CPU; 70001 are more than eight tiles */
static const int64_t sizes[] = {1, 33, 8193, 70001};
enum {
    MATRIX_ROWS = 2003,
    LONG_ROW = 20011,
    MANY_COLS = 100003,
    GRID = 32,
    ITERATIONS = 40
}; /* MANY_COLS needs more than 16 bits */
#endif
enum { SIZES = sizeof sizes / sizeof sizes[0] };

#define VALUE_(NAME, name, value, ...) SPMV_##NAME,
static const spmv_type types[] = {SPMV_TYPES(VALUE_, )};
static const spmv_op ops[] = {SPMV_OPERATORS(VALUE_, )};
#undef VALUE_
#define VALUE_(NAME, name, value, ...) SPMV_MAP_##NAME,
static const spmv_function functions[] = {SPMV_FUNCTIONS(VALUE_, )};
#undef VALUE_
#define VALUE_(NAME, name, value, ...) SPMV_IS_##NAME,
static const spmv_predicate predicates[] = {SPMV_PREDICATES(VALUE_, )};
#undef VALUE_
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---------------------------------------------------------------- a run and its cases */

struct listing {
    uint64_t *hashes;
    int count, room;
};

static spmv_context *ctx;
static spmv_backend backend;
static const char *group, *only, *flip;
static struct listing *kept;           /* hashes are stored here, in order */
static const struct listing *expected; /* and compared with these; NULL: printed instead */
static int differences;

static char case_name[NAME_SIZE];
static uint64_t case_hash;
static bool case_flipped;

static void stop(const char *what)
{
    fprintf(stderr, "bits: %s: %s: %s\n", case_name, what, spmv_last_error(ctx));
    exit(1);
}

static void *allocate(int64_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (memory == NULL)
        stop("out of memory");
    return memory;
}

__attribute__((format(printf, 1, 2))) static void begin(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(case_name, sizeof case_name, format, values);
    va_end(values);
    case_hash = 0xcbf29ce484222325u;
    case_flipped = flip == NULL || strcmp(flip, case_name) != 0;
}

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo) on words of 8 bytes. A multiplication only moves bits
 * upwards, so a shift folds the high bits down. */
static void take(const void *bytes, int64_t n)
{
    const unsigned char *at = bytes;
    uint64_t word = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const size_t size = n - i < 8 ? (size_t)(n - i) : 8;
        word = 0;
        memcpy(&word, at + i, size);
        word ^= case_flipped ? 0 : 1;
        case_flipped = true;
        case_hash = (case_hash ^ word) * 0x100000001b3u;
        case_hash ^= case_hash >> 29;
    }
    case_hash = (case_hash ^ (uint64_t)n) * 0x100000001b3u;
}

static void keep_hash(void)
{
    if (kept->count == kept->room) {
        kept->room = 2 * kept->room + 1024;
        kept->hashes = realloc(kept->hashes, (size_t)kept->room * sizeof *kept->hashes);
        if (kept->hashes == NULL)
            stop("out of memory");
    }
    kept->hashes[kept->count++] = case_hash;
}

/* Ends the case. The result of a refused call is its status. */
static void end(spmv_status status)
{
    if (only != NULL && strstr(case_name, only) == NULL)
        return;
    if (status != SPMV_OK)
        case_hash = (uint64_t)status;
    keep_hash();
    if (expected != NULL && (kept->count > expected->count || expected->hashes[kept->count - 1] != case_hash)) {
        fprintf(stderr, "bits: %s: the result depends on the number of threads\n", case_name);
        differences++;
    }
    if (expected == NULL && status == SPMV_OK)
        printf("%s %016llx\n", case_name, (unsigned long long)case_hash);
    else if (expected == NULL)
        printf("%s %s\n", case_name, spmv_status_name(status));
}

/* ---------------------------------------------------------------- memory and numbers */

/* splitmix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014), as in splitmix.h. It stands here again
 * because this program is built with the public headers of earlier versions only. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Magnitude 0.75 to 1.25, either sign: products of many neither overflow nor vanish. */
static double random_real(uint64_t *state)
{
    const uint64_t bits = random_next(state);
    const double value = 0.75 + (double)(bits >> 11) * 0x1p-54;
    return bits & 1 ? -value : value;
}

static int parts_of(spmv_type type)
{
    return (int)(spmv_type_size(type) / (type == SPMV_F32 || type == SPMV_C64 ? sizeof(float) : sizeof(double)));
}

/* Fills n elements with random mantissas. zeros: a quarter of the elements is 0, for the operator
 * last and for predicates. */
static void fill(spmv_type type, void *elements, int64_t n, uint64_t seed, bool zeros)
{
    for (int64_t i = 0; i < n; i++) {
        const bool zero = zeros && random_next(&seed) % 4 == 0;
        if (type == SPMV_I32) {
            ((int32_t *)elements)[i] = zero ? 0 : (int32_t)(random_next(&seed) >> 32 | 1);
        } else if (type == SPMV_I64) {
            ((int64_t *)elements)[i] = zero ? 0 : (int64_t)(random_next(&seed) | 1);
        } else if (type == SPMV_F32 || type == SPMV_C64) {
            for (int part = 0, parts = parts_of(type); part < parts; part++)
                ((float *)elements)[i * parts + part] = zero ? 0 : (float)random_real(&seed);
        } else if (type == SPMV_SEGSUM_F64) { /* a number x is {x, x, x, x} */
            const double value = random_real(&seed);
            ((spmv_segsum_f64 *)elements)[i] = (spmv_segsum_f64){value, value, value, value};
        } else {
            for (int part = 0, parts = parts_of(type); part < parts; part++)
                ((double *)elements)[i * parts + part] = zero ? 0 : random_real(&seed);
        }
    }
}

static void *send(const void *host, int64_t bytes)
{
    void *memory = NULL;
    if (spmv_alloc(ctx, bytes, &memory) != SPMV_OK || (bytes > 0 && spmv_upload(ctx, host, memory, bytes) != SPMV_OK))
        stop("memory");
    return memory;
}

/* n random elements in context memory. */
static void *send_random(spmv_type type, int64_t n, uint64_t seed, bool zeros)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *host = allocate(bytes);
    fill(type, host, n, seed, zeros);
    void *memory = send(host, bytes);
    free(host);
    return memory;
}

/* Memory for a result, filled with 0x41 so that unwritten bytes show in the hash. */
static void *send_blank(int64_t bytes)
{
    void *host = allocate(bytes);
    memset(host, 0x41, (size_t)bytes);
    void *memory = send(host, bytes);
    free(host);
    return memory;
}

/* Adds a result to the hash and releases it. */
static void take_result(spmv_status status, void *memory, int64_t bytes)
{
    void *host = allocate(bytes);
    if (status == SPMV_OK && bytes > 0 && spmv_download(ctx, memory, host, bytes) != SPMV_OK)
        stop("download");
    if (status == SPMV_OK)
        take(host, bytes);
    free(host);
    spmv_free(ctx, memory);
}

static void end_with(spmv_status status, void *memory, int64_t bytes)
{
    take_result(status, memory, bytes);
    end(status);
}

/* n indices in [0, limit): one in eight is -1, the others are distinct (n <= limit). */
static void *send_places(int64_t n, int64_t limit, int bits)
{
    uint64_t seed = 5;
    int64_t *order = allocate(limit * 8);
    void *places = allocate(n * (bits / 8));
    for (int64_t i = 0; i < limit; i++)
        order[i] = i;
    for (int64_t i = 0; i < n; i++) {
        const int64_t other = i + (int64_t)(random_next(&seed) % (uint64_t)(limit - i)), place = order[other];
        order[other] = order[i];
        const int64_t value = i % 8 == 5 ? -1 : place;
        if (bits == 32)
            ((int32_t *)places)[i] = (int32_t)value;
        else
            ((int64_t *)places)[i] = value;
    }
    void *memory = send(places, n * (bits / 8));
    free(order);
    free(places);
    return memory;
}

/* n bytes; on average one in `every` is 1. */
static uint8_t *host_flags(int64_t n, uint64_t every)
{
    uint64_t seed = 6;
    uint8_t *flags = allocate(n);
    for (int64_t i = 0; i < n; i++)
        flags[i] = random_next(&seed) % every == 0;
    return flags;
}

static void *send_flags(int64_t n, uint64_t every)
{
    uint8_t *host = host_flags(n, every);
    void *flags = send(host, n);
    free(host);
    return flags;
}

/* ---------------------------------------------------------------- map, gather, scatter */

static void map_functions(spmv_type type, int64_t n)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *in = send_random(type, n, 1, false), *positive = NULL;
    for (int f = 0; f < COUNT(functions); f++) {
        if (!spmv_function_takes(functions[f], type))
            continue;
        if (functions[f] == SPMV_MAP_SQRT) {
            /* of the absolute values: the bits of a NaN are unspecified */
            positive = send_blank(bytes);
            if (spmv_map(ctx, SPMV_MAP_ABS, type, in, positive, n) != SPMV_OK)
                stop("abs");
        }
        begin("map.%s.%s.%lld", spmv_function_name(functions[f]), spmv_type_name(type), (long long)n);
        void *out = send_blank(bytes);
        end_with(spmv_map(ctx, functions[f], type, positive != NULL ? positive : in, out, n), out, bytes);
        spmv_free(ctx, positive);
        positive = NULL;
    }
    spmv_free(ctx, in);
}

static void map_operators(spmv_type type, int64_t n)
{
    const int64_t size = (int64_t)spmv_type_size(type), bytes = n * size;
    void *scalar = allocate(size);
    fill(type, scalar, 1, 3, false);
    for (int o = 0; o < COUNT(ops); o++) {
        if (!spmv_op_takes(ops[o], type))
            continue;
        void *a = send_random(type, n, 1, ops[o] == SPMV_LAST), *b = send_random(type, n, 2, ops[o] == SPMV_LAST);
        void *out = send_blank(bytes);
        begin("map_binary.%s.%s.%lld", spmv_op_name(ops[o]), spmv_type_name(type), (long long)n);
        end_with(spmv_map_binary(ctx, ops[o], type, a, b, out, n), out, bytes);
        out = send_blank(bytes);
        begin("map_scalar.%s.%s.%lld", spmv_op_name(ops[o]), spmv_type_name(type), (long long)n);
        end_with(spmv_map_scalar(ctx, ops[o], type, scalar, a, out, n), out, bytes);
        spmv_free(ctx, a);
        spmv_free(ctx, b);
    }
    free(scalar);
}

static void map_others(spmv_type type, int64_t n)
{
    const int64_t size = (int64_t)spmv_type_size(type), bytes = n * size;
    void *x = send_random(type, n, 1, false), *y = send_random(type, n, 2, false), *out = send_blank(bytes);
    void *scalars = allocate(2 * size), *alpha = send_random(type, 1, 7, false), *beta = send_random(type, 1, 8, false);
    fill(type, scalars, 2, 9, false);
    const char *name = spmv_type_name(type);
    begin("map_index.%s.%lld", name, (long long)n);
    end_with(spmv_map_index(ctx, type, scalars, (const char *)scalars + size, out, n), out, bytes);
    out = send_blank(bytes);
    begin("map_divide.%s.%lld", name, (long long)n);
    end_with(spmv_map_divide(ctx, type, x, y, out, n), out, bytes);
    out = send_blank(size);
    begin("dot.%s.%lld", name, (long long)n);
    end_with(spmv_dot(ctx, type, x, y, out, n), out, size);
    begin("map_axpby.%s.%lld", name, (long long)n);
    end_with(spmv_map_axpby(ctx, type, alpha, x, beta, y, n), y, bytes);
    spmv_free(ctx, x);
    spmv_free(ctx, alpha);
    spmv_free(ctx, beta);
    free(scalars);
}

static void maps(void)
{
    for (int t = 0; t < COUNT(types); t++)
        for (int s = 0; s < SIZES; s++) {
            map_functions(types[t], sizes[s]);
            map_operators(types[t], sizes[s]);
            map_others(types[t], sizes[s]);
        }
}

static void moves_of(spmv_type type, int64_t n, int bits)
{
    const int64_t room = n + n / 4, bytes = n * (int64_t)spmv_type_size(type);
    const int64_t room_bytes = room * (int64_t)spmv_type_size(type);
    void *in = send_random(type, room, 1, true), *index = send_places(n, room, bits), *mask = send_flags(n, 3);
    const char *name = spmv_type_name(type);
    void *out = send_blank(bytes);
    begin("gather.%s.%d.%lld", name, bits, (long long)n);
    end_with(spmv_gather(ctx, type, in, room, index, bits, out, n), out, bytes);
    out = send_blank(room_bytes);
    begin("scatter.%s.%d.%lld", name, bits, (long long)n);
    end_with(spmv_scatter(ctx, type, in, index, bits, out, room, n), out, room_bytes);
    out = send_blank(bytes);
    begin("gather_masked.%s.%d.%lld", name, bits, (long long)n);
    end_with(spmv_gather_masked(ctx, type, in, room, index, bits, mask, out, n), out, bytes);
    out = send_blank(room_bytes);
    begin("scatter_masked.%s.%d.%lld", name, bits, (long long)n);
    end_with(spmv_scatter_masked(ctx, type, in, index, bits, mask, out, room, n), out, room_bytes);
    char scalar[sizeof(spmv_segsum_f64)] = {0};
    for (int p = 0; p < COUNT(predicates); p++) {
        if (!spmv_predicate_takes(predicates[p], type))
            continue;
        out = send_blank(bytes);
        begin("gather_if.%s.%s.%d.%lld", spmv_predicate_name(predicates[p]), name, bits, (long long)n);
        end_with(spmv_gather_if(ctx, predicates[p], 1, type, scalar, in, room, index, bits, out, n), out, bytes);
        out = send_blank(room_bytes);
        begin("scatter_if.%s.%s.%d.%lld", spmv_predicate_name(predicates[p]), name, bits, (long long)n);
        end_with(spmv_scatter_if(ctx, predicates[p], 0, type, scalar, in, index, bits, out, room, n), out, room_bytes);
    }
    spmv_free(ctx, in);
    spmv_free(ctx, index);
    spmv_free(ctx, mask);
}

static void moves(void)
{
    for (int t = 0; t < COUNT(types); t++)
        for (int s = 0; s < SIZES; s++)
            for (int bits = 32; bits <= 64; bits += 32)
                moves_of(types[t], sizes[s], bits);
}

/* ---------------------------------------------------------------- compact, expand, flags */

static void end_compact(spmv_status status, void *out, int64_t bytes, void *count)
{
    take_result(status, count, 8);
    end_with(status, out, bytes);
}

static void compact_of(spmv_type type, int64_t n)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *in = send_random(type, n, 1, true), *flags = send_flags(n, 3), *bits = send_blank((n + 31) / 32 * 4);
    const char *name = spmv_type_name(type), *method;
    void *out, *count;
    for (int m = -1; (method = m < 0 ? "auto" : spmv_compact_rung_name(backend, m)) != NULL; m++) {
        out = send_blank(bytes);
        count = send_blank(8);
        begin("compact.%s.%s.%lld", method, name, (long long)n);
        end_compact(spmv_compact_by(ctx, method, type, in, flags, out, count, n), out, bytes, count);
    }
    char scalar[sizeof(spmv_segsum_f64)] = {0};
    for (int p = 0; p < COUNT(predicates); p++)
        if (spmv_predicate_takes(predicates[p], type)) {
            out = send_blank(bytes);
            count = send_blank(8);
            begin("compact_if.%s.%s.%lld", spmv_predicate_name(predicates[p]), name, (long long)n);
            end_compact(spmv_compact_if(ctx, predicates[p], 1, type, scalar, in, out, count, n), out, bytes, count);
        }
    if (spmv_flags_pack(ctx, flags, bits, n) != SPMV_OK)
        stop("flags");
    out = send_blank(bytes);
    count = send_blank(8);
    begin("compact_bits.%s.%lld", name, (long long)n);
    end_compact(spmv_compact_bits(ctx, type, in, bits, out, count, n), out, bytes, count);
    spmv_free(ctx, in);
    spmv_free(ctx, flags);
    spmv_free(ctx, bits);
}

static void expand_of(spmv_type type, const int64_t *offsets, int64_t n, int64_t total)
{
    void *in = send_random(type, n, 1, false);
    for (int form = SPMV_EXPAND_SCATTER; form <= SPMV_EXPAND_GATHER; form++)
        for (int bits = 32; bits <= 64; bits += 32) {
            const int64_t bytes = total * (int64_t)spmv_type_size(type), places = total * (bits / 8);
            void *out = send_blank(bytes), *source = send_blank(places), *rank = send_blank(places);
            begin("expand.%s.%s.%d.%lld", form == SPMV_EXPAND_SCATTER ? "scatter" : "gather", spmv_type_name(type),
                  bits, (long long)n);
            const spmv_status st =
                spmv_expand(ctx, (spmv_expand_form)form, type, in, offsets, n, bits, out, source, rank, total);
            take_result(st, source, places);
            take_result(st, rank, places);
            end_with(st, out, bytes);
        }
    spmv_free(ctx, in);
}

static void expands(int64_t n)
{
    int64_t *counts = allocate(n * 8), total = 0;
    for (int64_t i = 0; i < n; i++) {
        counts[i] = i % 7 == 3 ? -1 : i % 5;
        total += counts[i] > 0 ? counts[i] : 0;
    }
    void *there = send(counts, n * 8), *offsets = send_blank((n + 1) * 8), *host = allocate((n + 1) * 8);
    begin("expand_offsets.%lld", (long long)n);
    const spmv_status st = spmv_expand_offsets(ctx, there, 64, offsets, n);
    if (st != SPMV_OK || spmv_download(ctx, offsets, host, (n + 1) * 8) != SPMV_OK)
        stop("expand_offsets");
    take(host, (n + 1) * 8);
    end(st);
    for (int t = 0; t < COUNT(types); t++)
        expand_of(types[t], offsets, n, total);
    free(counts);
    free(host);
    spmv_free(ctx, there);
    spmv_free(ctx, offsets);
}

static void flag_bits(int64_t n)
{
    const int64_t words = (n + 31) / 32 * 4;
    void *flags = send_flags(n, 3), *bits = send_blank(words), *back = send_blank(n);
    begin("flags.%lld", (long long)n);
    spmv_status st = spmv_flags_pack(ctx, flags, bits, n);
    if (st == SPMV_OK)
        st = spmv_flags_unpack(ctx, bits, back, n);
    take_result(st, bits, words);
    end_with(st, back, n);
    spmv_free(ctx, flags);
}

static void compacts(void)
{
    for (int s = 0; s < SIZES; s++) {
        for (int t = 0; t < COUNT(types); t++)
            compact_of(types[t], sizes[s]);
        expands(sizes[s]);
        flag_bits(sizes[s]);
    }
}

/* ---------------------------------------------------------------- reduce, scan */

/* Input of every case of one operator and type. */
struct pair_case {
    spmv_op op;
    spmv_type type;
    int64_t n, size, bytes;
    const char *name; /* "add.f64" */
    void *in;         /* in context memory */
    void *host_in;
};

static const char *const kind_names[] = {[SPMV_INCLUSIVE] = "inclusive", [SPMV_EXCLUSIVE] = "exclusive"};

static void reduce_of(const struct pair_case *p)
{
    const char *rung;
    begin("reduce.%s.%lld", p->name, (long long)p->n);
    void *out = send_blank(p->size);
    end_with(spmv_reduce(ctx, p->op, p->type, p->in, out, p->n), out, p->size);
    for (int r = 0; (rung = spmv_reduce_rung_name(backend, r)) != NULL; r++) {
        /* primitives.h: sums and products of these types may differ from run to run */
        if (strcmp(rung, "atomic") == 0 && (p->type == SPMV_F32 || p->type == SPMV_F64) &&
            (p->op == SPMV_ADD || p->op == SPMV_MUL))
            continue;
        begin("reduce_rung.%s.%s.%lld", rung, p->name, (long long)p->n);
        out = send_blank(p->size);
        end_with(spmv_reduce_rung(ctx, rung, p->op, p->type, p->in, out, p->n), out, p->size);
    }
    void *host = allocate(p->size);
    begin("reduce_host.%s.%lld", p->name, (long long)p->n);
    const spmv_status st = spmv_reduce_host(ctx, p->op, p->type, p->host_in, host, p->n, NULL);
    take(host, p->size);
    end(st);
    free(host);
}

static void block_scan_of(const struct pair_case *p, spmv_scan_kind kind, const char *rung, const char *rung_name)
{
    enum { BLOCK = 64 };
    const int64_t blocks = (p->n + BLOCK - 1) / BLOCK;
    void *out = send_blank(p->bytes), *sums = send_blank(blocks * p->size), *later = send_blank(blocks * p->size);
    begin("block_scan.%s.%s.%s.%lld", rung_name, kind_names[kind], p->name, (long long)p->n);
    spmv_status st = spmv_block_scan(ctx, rung, kind, p->op, p->type, p->in, out, sums, BLOCK, p->n);
    if (st == SPMV_OK)
        st = spmv_block_sums(ctx, kind, p->op, p->type, p->in, out, later, BLOCK, p->n);
    take_result(st, sums, blocks * p->size);
    take_result(st, later, blocks * p->size);
    end_with(st, out, p->bytes);
}

/* A rung by name, then with a block size of 64. A rung without a block size refuses it, which is a
 * case too. */
static void scan_rung_of(const struct pair_case *p, spmv_scan_kind kind, const char *rung)
{
    char blocked[64];
    snprintf(blocked, sizeof blocked, "%s:64", rung);
    for (int form = 0; form < 2; form++) {
        const char *name = form == 0 ? rung : blocked;
        begin("scan_rung.%s.%s.%s.%lld", name, kind_names[kind], p->name, (long long)p->n);
        void *out = send_blank(p->bytes);
        end_with(spmv_scan_rung(ctx, name, kind, p->op, p->type, p->in, out, p->n), out, p->bytes);
    }
    block_scan_of(p, kind, rung, rung);
}

static void scan_of(const struct pair_case *p, spmv_scan_kind kind)
{
    const char *rung;
    begin("scan.%s.%s.%lld", kind_names[kind], p->name, (long long)p->n);
    void *out = send_blank(p->bytes);
    end_with(spmv_scan(ctx, kind, p->op, p->type, p->in, out, p->n), out, p->bytes);
    for (int f = 0; f < COUNT(functions); f++)
        if (functions[f] != SPMV_MAP_SQRT && spmv_function_takes(functions[f], p->type)) {
            begin("map_scan.%s.%s.%s.%lld", spmv_function_name(functions[f]), kind_names[kind], p->name,
                  (long long)p->n);
            out = send_blank(p->bytes);
            end_with(spmv_map_scan(ctx, functions[f], kind, p->op, p->type, p->in, out, p->n), out, p->bytes);
        }
    for (int r = 0; (rung = spmv_scan_rung_name(backend, r)) != NULL; r++)
        if (p->n <= 8193) /* the first rungs take n log n or n^2 steps */
            scan_rung_of(p, kind, rung);
    block_scan_of(p, kind, NULL, "auto");
    void *host = allocate(p->bytes);
    begin("scan_host.%s.%s.%lld", kind_names[kind], p->name, (long long)p->n);
    const spmv_status st = spmv_scan_host(ctx, kind, p->op, p->type, p->host_in, host, p->n, NULL);
    take(host, p->bytes);
    end(st);
    free(host);
}

/* Segments of 0 to 70 elements, and one with a third of all elements: count + 1 offsets. */
static int64_t *host_offsets(int64_t n, int64_t *count)
{
    uint64_t seed = 11;
    int64_t *offsets = allocate((n + 2) * 8), at = 0;
    *count = 0;
    while (at < n && *count < n) {
        offsets[(*count)++] = at;
        const uint64_t r = random_next(&seed);
        at += *count == 2 ? n / 3 : r % 4 == 0 ? 0 : (int64_t)(r / 4 % 71);
    }
    offsets[*count] = n;
    return offsets;
}

static void segments_of(const struct pair_case *p, const spmv_segments *segments, const char *form)
{
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        begin("segscan.%s.%s.%s.%lld", form, kind_names[kind], p->name, (long long)p->n);
        void *out = send_blank(p->bytes);
        end_with(spmv_segscan(ctx, (spmv_scan_kind)kind, p->op, p->type, segments, p->in, out, p->n), out, p->bytes);
    }
    if (segments->form == SPMV_SEGMENT_FLAGS)
        return;
    begin("segreduce.%s.%s.%lld", form, p->name, (long long)p->n);
    void *out = send_blank(segments->count * p->size);
    end_with(spmv_segreduce(ctx, p->op, p->type, segments, p->in, out, p->n), out, segments->count * p->size);
}

static void segscan_rungs(const struct pair_case *p, const void *flags)
{
    const char *rung;
    for (int r = 0; p->n <= 8193 && (rung = spmv_segscan_rung_name(backend, r)) != NULL; r++)
        for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
            begin("segscan_rung.%s.%s.%s.%lld", rung, kind_names[kind], p->name, (long long)p->n);
            void *out = send_blank(p->bytes);
            end_with(spmv_segscan_rung(ctx, rung, (spmv_scan_kind)kind, p->op, p->type, flags, p->in, out, p->n), out,
                     p->bytes);
        }
}

static void segmented(const struct pair_case *p)
{
    int64_t count = 0, *offsets = host_offsets(p->n, &count);
    int32_t *narrow = allocate((count + 1) * 4);
    for (int64_t i = 0; i <= count; i++)
        narrow[i] = (int32_t)offsets[i];
    void *wide = send(offsets, (count + 1) * 8), *thin = send(narrow, (count + 1) * 4);
    void *flags = send_flags(p->n, 37), *bits = send_blank((p->n + 31) / 32 * 4);
    if (spmv_flags_pack(ctx, flags, bits, p->n) != SPMV_OK)
        stop("flags");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_FLAGS, flags, 8, 0}, "bytes");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_FLAGS, bits, 1, 0}, "bits");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_STARTS, thin, 32, count}, "starts32");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_STARTS, wide, 64, count}, "starts64");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_OFFSETS, thin, 32, count}, "offsets32");
    segments_of(p, &(spmv_segments){SPMV_SEGMENT_OFFSETS, wide, 64, count}, "offsets64");
    segscan_rungs(p, flags);
    spmv_free(ctx, wide);
    spmv_free(ctx, thin);
    spmv_free(ctx, flags);
    spmv_free(ctx, bits);
    free(offsets);
    free(narrow);
}

static void pair(spmv_op op, spmv_type type, int64_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", spmv_op_name(op), spmv_type_name(type));
    struct pair_case p = {.op = op, .type = type, .n = n, .size = (int64_t)spmv_type_size(type), .name = name};
    p.bytes = n * p.size;
    p.in = send_random(type, n, 1, op == SPMV_LAST);
    p.host_in = allocate(p.bytes);
    fill(type, p.host_in, n, 1, op == SPMV_LAST);
    reduce_of(&p);
    scan_of(&p, SPMV_INCLUSIVE);
    scan_of(&p, SPMV_EXCLUSIVE);
    segmented(&p);
    spmv_free(ctx, p.in);
    free(p.host_in);
}

static void pairs(void)
{
    for (int o = 0; o < COUNT(ops); o++)
        for (int t = 0; t < COUNT(types); t++)
            for (int s = 0; spmv_op_takes(ops[o], types[t]) && s < SIZES; s++)
                pair(ops[o], types[t], sizes[s]);
}

/* ---------------------------------------------------------------- sort, histogram */

static void sort_of(spmv_type type, int64_t n, const char *rung)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    const int width = 8 * (int)spmv_type_size(type);
    const int ranges[][2] = {{0, width}, {3, 14}};
    for (int value_bytes = 0; value_bytes <= 8; value_bytes += 4)
        for (int r = 0; r < 2; r++) {
            void *keys = send_random(type, n, 1, true), *out = send_blank(bytes);
            void *values = value_bytes > 0 ? send_random(SPMV_I64, (n * value_bytes + 7) / 8, 2, false) : NULL;
            void *moved = value_bytes > 0 ? send_blank(n * value_bytes) : NULL;
            begin("sort.%s.%s.values%d.bits%d-%d.%lld", rung, spmv_type_name(type), value_bytes, ranges[r][0],
                  ranges[r][1], (long long)n);
            const spmv_status st =
                spmv_sort_rung(ctx, rung, type, ranges[r][0], ranges[r][1], keys, values, value_bytes, out, moved, n);
            take_result(st, moved, n * value_bytes);
            end_with(st, out, bytes);
            spmv_free(ctx, keys);
            spmv_free(ctx, values);
        }
}

static void histogram_of(spmv_type type, int64_t n, const char *rung)
{
    static const int64_t bins[] = {1, 100, 5003};
    uint64_t seed = 4;
    int32_t *host = allocate(n * 4);
    for (int b = 0; b < COUNT(bins); b++) {
        for (int64_t i = 0; i < n; i++)
            host[i] = (int32_t)(random_next(&seed) % (uint64_t)(bins[b] + bins[b] / 8 + 1)) - 1;
        const int64_t size = (int64_t)spmv_type_size(type), bytes = bins[b] * size;
        void *index = send(host, n * 4), *counts = send_blank(bytes), *left_out = send_blank(size);
        begin("histogram.%s.%s.%lld.%lld", rung, spmv_type_name(type), (long long)bins[b], (long long)n);
        const spmv_status st = spmv_histogram_rung(ctx, rung, type, index, counts, bins[b], left_out, n);
        take_result(st, left_out, size);
        end_with(st, counts, bytes);
        spmv_free(ctx, index);
    }
    free(host);
}

static void sorts(void)
{
    const char *rung;
    for (int t = 0; t < COUNT(types); t++)
        for (int s = 0; s < SIZES; s++) {
            for (int r = -1; (rung = r < 0 ? "auto" : spmv_sort_rung_name(backend, r)) != NULL; r++)
                sort_of(types[t], sizes[s], rung);
            for (int r = -1; (rung = r < 0 ? "auto" : spmv_histogram_rung_name(backend, r)) != NULL; r++)
                histogram_of(types[t], sizes[s], rung);
        }
}

/* ---------------------------------------------------------------- matrices made here */

struct sparse {
    spmv_csr view;
    int64_t *row_ptr;
    int32_t *col;
    double *val; /* two per entry, so that it serves complex types too */
};

/* Row lengths and columns of one named shape. */
struct shape {
    const char *name;
    int64_t rows, cols;
    int64_t (*length)(const struct shape *shape, int64_t row, uint64_t *seed);
    int64_t (*column)(const struct shape *shape, int64_t row, int64_t k, uint64_t *seed);
};

/* Lengths around the widths of vectors, warps and tiles, empty rows, and one row longer than
 * several tiles. */
static int64_t seam_length(const struct shape *shape, int64_t row, uint64_t *seed)
{
    static const int64_t lengths[] = {0, 1, 2, 7, 8, 9, 0, 0, 15, 16, 17, 31, 32, 33, 0, 63, 64, 65, 3, 5};
    (void)seed;
    if (row == shape->rows / 2)
        return LONG_ROW;
    return row > shape->rows - 20 ? 0 : lengths[row % COUNT(lengths)];
}

static int64_t short_length(const struct shape *shape, int64_t row, uint64_t *seed)
{
    (void)shape;
    (void)row;
    return (int64_t)(random_next(seed) % 7);
}

static int64_t block_length(const struct shape *shape, int64_t row, uint64_t *seed)
{
    (void)shape;
    (void)row;
    (void)seed;
    return 12;
}

static int64_t random_column(const struct shape *shape, int64_t row, int64_t k, uint64_t *seed)
{
    (void)row;
    (void)k;
    return (int64_t)(random_next(seed) % (uint64_t)shape->cols);
}

/* Columns near the diagonal: those of one tile fit in 16 bits, those of the matrix do not. */
static int64_t near_column(const struct shape *shape, int64_t row, int64_t k, uint64_t *seed)
{
    return (row + k + (int64_t)(random_next(seed) % 300)) % shape->cols;
}

/* Four neighbouring rows have the same columns, in blocks of four. */
static int64_t block_column(const struct shape *shape, int64_t row, int64_t k, uint64_t *seed)
{
    (void)seed;
    return (row / 4 * 4 + k / 4 * 20 + k % 4) % shape->cols;
}

static const struct shape shapes[] = {
    {"seams", MATRIX_ROWS, MATRIX_ROWS + 100, seam_length, random_column},
    {"short", 3 * MATRIX_ROWS, MANY_COLS, short_length, random_column},
    {"near", 3 * MATRIX_ROWS, MANY_COLS, short_length, near_column},
    {"blocks", MATRIX_ROWS, MATRIX_ROWS, block_length, block_column},
    {"row", 1, LONG_ROW, seam_length, random_column},
};

static void sparse_alloc(struct sparse *a, int64_t rows, int64_t cols, int64_t nnz)
{
    *a = (struct sparse){
        .row_ptr = allocate((rows + 1) * 8), .col = allocate(nnz * 4), .val = allocate(nnz * 2 * 8 + 16)};
    a->view = (spmv_csr){.rows = rows,
                         .cols = cols,
                         .nnz = nnz,
                         .row_ptr = a->row_ptr,
                         .row_ptr_bits = 64,
                         .col = a->col,
                         .val = a->val,
                         .type = SPMV_F64,
                         .memory = SPMV_MEMORY_HOST};
}

static void sparse_free(struct sparse *a)
{
    free(a->row_ptr);
    free(a->col);
    free(a->val);
}

static int compare_columns(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* sorted: columns ascend in each row without duplicates, as in a matrix that owns its storage. */
static void sparse_make(const struct shape *shape, bool sorted, struct sparse *a)
{
    uint64_t seed = 21, again = 21;
    int64_t nnz = 0;
    for (int64_t row = 0; row < shape->rows; row++)
        nnz += shape->length(shape, row, &seed);
    sparse_alloc(a, shape->rows, shape->cols, nnz);
    nnz = 0;
    uint64_t columns = 22;
    for (int64_t row = 0; row < shape->rows; row++) {
        const int64_t first = nnz, length = shape->length(shape, row, &again);
        for (int64_t k = 0; k < length; k++)
            a->col[nnz++] = (int32_t)shape->column(shape, row, k, &columns);
        if (sorted) {
            qsort(a->col + first, (size_t)length, sizeof *a->col, compare_columns);
            int64_t kept_columns = first;
            for (int64_t k = first; k < nnz; k++)
                if (k == first || a->col[k] != a->col[kept_columns - 1])
                    a->col[kept_columns++] = a->col[k];
            nnz = kept_columns;
        }
        a->row_ptr[row + 1] = nnz;
    }
    a->view.nnz = nnz;
    fill(SPMV_C128, a->val, nnz, 23, false);
}

/* A copy of the matrix's values in the type, which the caller frees; NULL for SPMV_TYPE_DEFAULT (a
 * pattern). */
static void *retype(const struct sparse *a, spmv_type type, spmv_csr *view)
{
    *view = a->view;
    view->val = NULL;
    if (type == SPMV_TYPE_DEFAULT)
        return NULL;
    const int parts = parts_of(type);
    const bool single = type == SPMV_F32 || type == SPMV_C64;
    void *val = allocate(a->view.nnz * (int64_t)spmv_type_size(type));
    for (int64_t i = 0; i < a->view.nnz * parts; i++)
        if (single)
            ((float *)val)[i] = (float)a->val[i];
        else
            ((double *)val)[i] = a->val[i];
    view->val = val;
    view->type = type;
    return val;
}

/* ---------------------------------------------------------------- products */

struct kinds {
    const char *name;
    spmv_type values, sums; /* values SPMV_TYPE_DEFAULT: a pattern */
};
static const struct kinds kinds[] = {{"f64", SPMV_F64, SPMV_F64},
                                     {"f32", SPMV_F32, SPMV_F32},
                                     {"mixed", SPMV_F32, SPMV_F64},
                                     {"c64", SPMV_C64, SPMV_C64},
                                     {"c128", SPMV_C128, SPMV_C128},
                                     {"pattern-f64", SPMV_TYPE_DEFAULT, SPMV_F64},
                                     {"pattern-f32", SPMV_TYPE_DEFAULT, SPMV_F32},
                                     {"pattern-c128", SPMV_TYPE_DEFAULT, SPMV_C128}};
static const char *const operation_names[] = {
    [SPMV_OPERATION_N] = "N", [SPMV_OPERATION_T] = "T", [SPMV_OPERATION_H] = "H"};

/* Parameters of a product besides method, type and operation. */
struct variant {
    const char *name;
    int vectors;
    int64_t pad; /* added to the strides */
    bool scaled; /* with alpha and beta */
    bool epilogue, update;
    int compression;
};
static const struct variant variants[] = {
    {"plain", 1, 0, false, false, false, -1},    {"scaled", 1, 0, true, false, false, -1},
    {"k3", 3, 2, true, false, false, -1},        {"k17", 17, 0, false, false, false, -1},
    {"epilogue", 1, 0, true, true, false, -1},   {"update", 1, 0, false, false, true, -1},
    {"compress0", 1, 0, false, false, false, 0}, {"compress1", 1, 0, false, false, false, 1},
    {"compress2", 1, 0, false, false, false, 2},
};

static spmv_status update_values(spmv_plan *plan, const spmv_csr *a, void **values)
{
    *values = send_random(a->val != NULL ? a->type : SPMV_F64, a->nnz, 31, false);
    return spmv_plan_update_values(plan, *values);
}

static spmv_status apply(spmv_plan *plan, const struct variant *variant, spmv_type type, int64_t rows, int64_t cols)
{
    const int64_t size = (int64_t)spmv_type_size(type), stride = variant->vectors + variant->pad;
    char scalars[2 * sizeof(spmv_c128)];
    fill(type, scalars, 2, 32, false);
    const void *alpha = variant->scaled ? scalars : NULL, *beta = variant->scaled ? scalars + size : NULL;
    void *x = send_random(type, cols * stride, 33, false), *y = send_random(type, rows * stride, 34, false);
    void *z = send_random(type, rows, 35, false), *w = send_random(type, rows, 36, false), *dot = send_blank(size);
    void *gamma = send_random(type, 1, 37, false);
    spmv_status st;
    if (variant->epilogue) {
        spmv_epilogue epilogue;
        spmv_epilogue_init(&epilogue, sizeof epilogue);
        epilogue.w = w;
        epilogue.dot = dot;
        epilogue.gamma = gamma;
        epilogue.z = z;
        st = spmv_apply_with(plan, alpha, x, beta, y, &epilogue);
    } else {
        st = spmv_apply(plan, alpha, x, beta, y);
    }
    take_result(st, y, rows * stride * size);
    take_result(st, z, rows * size);
    take_result(st, dot, size);
    spmv_free(ctx, x);
    spmv_free(ctx, w);
    spmv_free(ctx, gamma);
    return st;
}

static void product(const spmv_csr *a, const struct kinds *kind, spmv_operation operation, const char *method,
                    const struct variant *variant)
{
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.operation = operation;
    options.method = method;
    options.type = kind->sums;
    options.vectors = variant->vectors;
    options.update_values = variant->update;
    options.compression = variant->compression;
    options.x_stride = options.y_stride = variant->vectors + variant->pad;
    spmv_plan *plan = NULL;
    void *values = NULL;
    spmv_status st = spmv_plan_create(ctx, a, &options, &plan);
    if (st == SPMV_OK && variant->update)
        st = update_values(plan, a, &values);
    const bool turned = operation != SPMV_OPERATION_N;
    if (st == SPMV_OK)
        st = apply(plan, variant, kind->sums, turned ? a->cols : a->rows, turned ? a->rows : a->cols);
    end(st);
    spmv_plan_destroy(plan);
    spmv_free(ctx, values);
}

static void products_of(const struct shape *shape, const struct sparse *a, const struct kinds *kind)
{
    const char *method;
    const bool is_complex = kind->sums == SPMV_C64 || kind->sums == SPMV_C128;
    spmv_csr view;
    void *values = retype(a, kind->values, &view);
    for (int operation = SPMV_OPERATION_N; operation <= (is_complex ? SPMV_OPERATION_H : SPMV_OPERATION_T); operation++)
        for (int m = -1; (method = m < 0 ? "auto" : spmv_method_name(backend, m)) != NULL; m++)
            for (int v = 0; v < COUNT(variants); v++) {
                if (variants[v].update && kind->values == SPMV_TYPE_DEFAULT)
                    continue; /* a pattern has no values */
                begin("product.%s.%s.%s.%s.%s", shape->name, kind->name, operation_names[operation], method,
                      variants[v].name);
                product(&view, kind, (spmv_operation)operation, method, &variants[v]);
            }
    free(values);
}

static void products(void)
{
    for (int s = 0; s < COUNT(shapes); s++) {
        struct sparse a;
        sparse_make(&shapes[s], false, &a);
        for (int k = 0; k < COUNT(kinds); k++)
            products_of(&shapes[s], &a, &kinds[k]);
        sparse_free(&a);
    }
}

/* ---------------------------------------------------------------- conjugate gradients */

/* A diagonally dominant matrix. Regular: 4 neighbours on a grid. Irregular: random columns, 1 to
 * about 40 entries in a row. */
static void positive_definite(bool irregular, struct sparse *a)
{
    enum { N = GRID * GRID };
    double *dense = allocate((int64_t)N * N * 8);
    uint64_t seed = 41;
    for (int i = 0; i < N; i++) {
        const int links = irregular ? (i % 97 == 5 ? 40 : (int)(random_next(&seed) % 4)) : 2;
        for (int k = 0; k < links; k++) {
            const int j = irregular ? (int)(random_next(&seed) % N) : k == 0 ? i + 1 : i + GRID;
            if (j < N && j != i && (irregular || k == 1 || j % GRID != 0))
                dense[(int64_t)i * N + j] = dense[(int64_t)j * N + i] = irregular ? -fabs(random_real(&seed)) : -1;
        }
    }
    int64_t nnz = N;
    for (int64_t i = 0; i < (int64_t)N * N; i++)
        nnz += dense[i] != 0;
    sparse_alloc(a, N, N, nnz);
    nnz = 0;
    for (int i = 0; i < N; i++) {
        double sum = 0.01;
        for (int j = 0; j < N; j++)
            sum -= dense[(int64_t)i * N + j];
        dense[(int64_t)i * N + i] = sum;
        for (int j = 0; j < N; j++)
            if (dense[(int64_t)i * N + j] != 0) {
                a->col[nnz] = j;
                a->val[nnz++] = dense[(int64_t)i * N + j];
            }
        a->row_ptr[i + 1] = nnz;
    }
    free(dense);
}

/* Whether the preconditioner, which commits up to version 0.9.0 have, uses another library, whose bits
 * may change. */
static bool is_foreign(const char *precond)
{
    return strcmp(precond, "hypre-amg") == 0;
}

/* Hashes all figures of the result but not its texts, whose wording may change. */
static void take_solved(const spmv_cg_result *result)
{
    const double numbers[] = {(double)result->iterations, (double)result->restarts,    result->norm_b,
                              result->tolerance,          result->recurrence_residual, result->true_residual,
                              (double)result->status};
    take(numbers, sizeof numbers);
}

struct solve {
    const spmv_csr *a;
    spmv_type type;
    int k;
    const char *rung, *precond;
    bool inner; /* whether the recurrence is in f32 */
};

static void solve_with(const struct solve *s, spmv_plan *plan, spmv_plan *inner, spmv_preconditioner *m)
{
    const int64_t n = s->a->rows * s->k, bytes = n * (int64_t)spmv_type_size(s->type);
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = s->type == SPMV_F32 ? 1e-5 : 1e-10;
    options.max_iterations = ITERATIONS;
    options.rung = s->rung;
    options.precond = m;
    options.inner = inner;
    spmv_cg_result *results = allocate(s->k * (int64_t)sizeof *results);
    void *b = send_random(s->type, n, 51, false), *x = send_random(s->type, n, 52, false);
    const spmv_status st = spmv_cg(plan, b, x, &options, results, sizeof *results);
    const bool ran = st == SPMV_OK || st == SPMV_ERROR_ITERATIONS || st == SPMV_ERROR_STAGNATION;
    for (int v = 0; ran && v < s->k; v++)
        take_solved(&results[v]);
    take_result(ran ? SPMV_OK : st, x, bytes);
    end(ran ? SPMV_OK : st);
    spmv_free(ctx, b);
    free(results);
}

static void solve(const struct solve *s)
{
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.vectors = s->k;
    options.type = s->type;
    spmv_plan *plan = NULL, *inner = NULL;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options of_m;
    spmv_preconditioner_options_init(&of_m, sizeof of_m);
    of_m.type = s->inner ? SPMV_F32 : s->type;
    spmv_csr narrow = *s->a;
    float *values = NULL;
    spmv_status st = spmv_plan_create(ctx, s->a, &options, &plan);
    if (st == SPMV_OK && s->inner) {
        values = allocate(narrow.nnz * 4);
        for (int64_t i = 0; i < narrow.nnz; i++)
            values[i] = (float)((const double *)narrow.val)[i];
        narrow.val = values;
        narrow.type = SPMV_F32;
        options.type = SPMV_F32;
        st = spmv_plan_create(ctx, &narrow, &options, &inner);
    }
    if (st == SPMV_OK)
        st = spmv_preconditioner_create(ctx, s->precond, s->inner ? &narrow : s->a, &of_m, &m);
    if (st == SPMV_OK)
        solve_with(s, plan, inner, m);
    else
        end(st);
    spmv_preconditioner_destroy(m);
    spmv_plan_destroy(inner);
    spmv_plan_destroy(plan);
    free(values);
}

static void solves_of(const char *matrix, const spmv_csr *a, spmv_type type, const char *type_name, bool inner)
{
    static const int columns[] = {1, 3, 17};
    struct solve s = {.a = a, .type = type, .inner = inner};
    for (int r = -1; (s.rung = r < 0 ? "auto" : spmv_cg_rung_name(backend, r)) != NULL; r++)
        for (int p = 0; (s.precond = spmv_preconditioner_name(p)) != NULL; p++)
            for (int k = 0; k < COUNT(columns) && !is_foreign(s.precond); k++) {
                s.k = columns[k];
                begin("cg.%s.%s.%s.%s.k%d", matrix, type_name, s.rung, s.precond, s.k);
                solve(&s);
            }
}

static void precond_of(const char *matrix, const spmv_csr *a, spmv_type type, const char *name)
{
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(type);
    spmv_preconditioner_options options;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.type = type;
    spmv_preconditioner *m = NULL;
    void *r = send_random(type, a->rows, 61, false), *z = send_blank(bytes);
    begin("precond.%s.%s.%s", matrix, spmv_type_name(type), name);
    spmv_status st = spmv_preconditioner_create(ctx, name, a, &options, &m);
    if (st == SPMV_OK)
        st = spmv_preconditioner_apply(m, r, z);
    end_with(st, z, bytes);
    spmv_preconditioner_destroy(m);
    spmv_free(ctx, r);
}

/* minres of the matrix; gmres and bicgstab of it with a smaller lower triangle. Complex matrices have
 * imaginary parts of opposite signs on the two sides of the diagonal, so minres gets a Hermitian one. */
static void general_of(const char *matrix, const struct sparse *from, spmv_type type)
{
    static const char *const methods[] = {"minres", "gmres", "bicgstab"};
    static const char *const preconds[] = {"none", "jacobi", "block-jacobi", "ilu0", "ilut"};
    const int parts = parts_of(type);
    double *const values = allocate(from->view.nnz * parts * 8);
    struct sparse a = *from;
    a.val = values;
    a.view.val = values;
    for (int m = 0; m < COUNT(methods); m++) {
        for (int64_t i = 0; i < a.view.rows; i++)
            for (int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) {
                const double re = m > 0 && a.col[k] < i ? 0.5 * from->val[k] : from->val[k];
                values[parts * k] = re;
                if (parts == 2)
                    values[2 * k + 1] = a.col[k] < i ? -0.125 * re : a.col[k] > i ? 0.125 * re : 0;
            }
        spmv_csr typed;
        void *const arrays = retype(&a, type, &typed);
        for (int p = 0; p < COUNT(preconds); p++) {
            const int64_t bytes = typed.rows * (int64_t)spmv_type_size(type);
            spmv_solver_options options;
            spmv_solver_options_init(&options, sizeof options);
            options.solver = methods[m];
            options.precond = preconds[p];
            options.max_iterations = ITERATIONS;
            options.restart = ITERATIONS / 3;
            options.rtol = type == SPMV_F32 || type == SPMV_C64 ? 1e-5 : 1e-10;
            spmv_solver_result result = {.iterations = 0};
            void *b = send_random(type, typed.rows, 51, false), *x = send_random(type, typed.rows, 52, false);
            begin("%s.%s.%s.%s", methods[m], matrix, spmv_type_name(type), preconds[p]);
            const spmv_status st = spmv_solve(ctx, &typed, b, x, &options, &result, sizeof result);
            const bool ran = st == SPMV_OK || st / 100 == 7;
            const double numbers[] = {(double)result.iterations,  (double)result.restarts, result.norm_b,
                                      result.recurrence_residual, result.true_residual,    (double)st};
            take(numbers, ran ? sizeof numbers : 0);
            take_result(ran ? SPMV_OK : st, x, bytes);
            end(ran ? SPMV_OK : st);
            spmv_free(ctx, b);
        }
        free(arrays);
    }
    free(values);
}

static void solves(void)
{
    static const spmv_type general[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    const char *name;
    for (int irregular = 0; irregular < 2; irregular++) {
        const char *matrix = irregular ? "links" : "grid";
        struct sparse a;
        positive_definite(irregular, &a);
        spmv_csr single;
        void *values = retype(&a, SPMV_F32, &single);
        solves_of(matrix, &a.view, SPMV_F64, "f64", false);
        solves_of(matrix, &single, SPMV_F32, "f32", false);
        solves_of(matrix, &a.view, SPMV_F64, "inner", true);
        for (int p = 0; (name = spmv_preconditioner_name(p)) != NULL; p++)
            if (!is_foreign(name)) {
                precond_of(matrix, &a.view, SPMV_F64, name);
                precond_of(matrix, &single, SPMV_F32, name);
            }
        for (int t = 0; t < COUNT(general); t++)
            general_of(matrix, &a, general[t]);
        free(values);
        sparse_free(&a);
    }
}

/* ---------------------------------------------------------------- generators, conversions */

static void take_view(const spmv_csr *a)
{
    take(a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8));
    take(a->col, a->nnz * 4);
    if (a->val != NULL)
        take(a->val, a->nnz * (int64_t)spmv_type_size(a->type));
}

static void end_matrix(spmv_status status, spmv_matrix *matrix)
{
    spmv_csr a;
    if (status == SPMV_OK) {
        spmv_matrix_view(matrix, &a);
        take(&a.cols, sizeof a.cols);
        take_view(&a);
    }
    end(status);
    spmv_matrix_destroy(matrix);
}

/* A A by every method. */
static void multiplies(void)
{
    static const spmv_type of[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    for (int irregular = 0; irregular < 2; irregular++) {
        struct sparse a;
        positive_definite(irregular, &a);
        for (int t = 0; t < COUNT(of); t++) {
            spmv_csr typed;
            void *const values = retype(&a, of[t], &typed);
            const char *method = "auto";
            for (int m = 0; method != NULL; method = spmv_spgemm_method_name(backend, m++)) {
                spmv_spgemm_options options;
                spmv_spgemm_options_init(&options, sizeof options);
                options.method = method;
                spmv_matrix *c = NULL;
                begin("multiply.%s.%s.%s", irregular ? "links" : "grid", spmv_type_name(of[t]), method);
                const spmv_status st = spmv_spgemm(ctx, &typed, &typed, &options, &c);
                end_matrix(st, c);
            }
            free(values);
        }
        sparse_free(&a);
    }
}

static void statistics_of(const char *name, const spmv_csr *a)
{
    spmv_statistics s;
    begin("statistics.%s", name);
    const spmv_status st = spmv_matrix_statistics(ctx, a, &s, sizeof s);
    const double numbers[] = {(double)s.rows,
                              (double)s.cols,
                              (double)s.nnz,
                              (double)s.row_min,
                              (double)s.row_max,
                              s.row_mean,
                              s.row_std,
                              (double)s.empty_rows,
                              (double)s.empty_cols,
                              (double)s.max_row,
                              (double)s.bandwidth,
                              s.row_extent,
                              (double)s.diagonal,
                              (double)s.explicit_zeros,
                              (double)s.not_finite,
                              s.square,
                              s.pattern_symmetric,
                              s.symmetric,
                              s.skew_symmetric,
                              s.hermitian,
                              s.bw_frac,
                              s.avg_neighbours,
                              s.cross_row_similarity};
    take(numbers, sizeof numbers);
    take(s.histogram, sizeof s.histogram);
    end(st);
}

/* Placeholders in the forms of SPECs, and the values that replace them. */
static const struct placeholder {
    const char *word, *value;
} placeholders[] = {{"NAME", "rows=700,nnz=5000,std=4,max=90,bw_frac=0.3,avg_neighbours=0.9,cross_row_similarity=0.5"},
                    {"N", "9"},
                    {"ROWS", "601"},
                    {"COLS", "503"},
                    {"HALF", "3"},
                    {"LEN", "101"},
                    {"OTHERS", "3"},
                    {"MEAN", "6.5"},
                    {"SHARE", "0.3"},
                    {"ALPHA", "1.8"},
                    {"MAX", "90"},
                    {"SCALE", "9"},
                    {"EDGES", "7"},
                    {"NODES", "120"},
                    {"BLOCK", "3"},
                    {"NEIGHBOURS", "6.5"},
                    {"CONTRAST", "1000"},
                    {"ANISO", "0.1"},
                    {"PECLET", "10"},
                    {"K", "3"},
                    {"NU", "0.3"}};

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Builds a SPEC from a form: replaces the placeholders. all: keeps the optional parts in
 * brackets. */
static void spec_of(const char *form, bool all, char *spec, size_t size)
{
    size_t used = 0;
    int depth = 0;
    while (*form != '\0' && used + 1 < size) {
        size_t length = 0;
        while (is_capital(form[length]))
            length++;
        if (*form == '[' || *form == ']') {
            depth += *form++ == '[' ? 1 : -1;
        } else if (depth > 0 && !all) {
            form++;
        } else if (length == 0) {
            spec[used++] = *form++;
        } else {
            int p = 0;
            while (p < COUNT(placeholders) &&
                   (strlen(placeholders[p].word) != length || memcmp(placeholders[p].word, form, length) != 0))
                p++;
            if (p == COUNT(placeholders)) {
                fprintf(stderr, "bits: no number for %.*s of a generator: add it to placeholders\n", (int)length, form);
                exit(1);
            }
            used += (size_t)snprintf(spec + used, size - used, "%s", placeholders[p].value);
            form += length;
        }
    }
    spec[used < size ? used : size - 1] = '\0';
}

static void generate(const char *base)
{
    static const char *const options[] = {"", ",seed=7", ",values=random", ",values=constant"};
    static const spmv_type of[] = {SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
    for (int o = 0; o < COUNT(options); o++)
        for (int t = 0; t < COUNT(of); t++) {
            char spec[NAME_SIZE];
            snprintf(spec, sizeof spec, "%.150s%s", base, options[o]);
            spmv_matrix *matrix = NULL;
            begin("generate.%s.%s", spmv_type_name(of[t]), spec);
            const spmv_status st = spmv_matrix_generate(ctx, spec, of[t], &matrix);
            end_matrix(st, matrix);
        }
}

static void generators(void)
{
    const char *form;
    for (int g = 0; (form = spmv_spec_form(g, NULL)) != NULL; g++)
        for (int all = strchr(form, '[') == NULL; all < 2; all++) {
            char spec[160];
            spec_of(form, all, spec, sizeof spec);
            generate(spec);
        }
}

/* Entries in random order, one in five of them twice. */
static void from_coo(const char *name, const spmv_csr *a)
{
    const int64_t n = a->nnz + a->nnz / 5, size = a->val != NULL ? (int64_t)spmv_type_size(a->type) : 0;
    const int64_t *row_ptr = a->row_ptr;
    int64_t *row = allocate(n * 8), duplicates = 0;
    int32_t *col = allocate(n * 4);
    char *val = allocate(n * size);
    for (int64_t r = 0, k = 0; r < a->rows; r++)
        for (; k < row_ptr[r + 1]; k++)
            for (int64_t at = (k * 7919) % a->nnz, copy = 0; copy < (at % 5 == 0 && at / 5 < n - a->nnz ? 2 : 1);
                 copy++) {
                const int64_t to = copy == 0 ? at : a->nnz + at / 5;
                row[to] = r;
                col[to] = a->col[k];
                if (size > 0)
                    memcpy(val + to * size, (const char *)a->val + k * size, (size_t)size);
            }
    spmv_matrix *matrix = NULL;
    begin("from_coo.%s", name);
    const spmv_status st = spmv_matrix_from_coo(ctx, a->rows, a->cols, n, row, col, size > 0 ? val : NULL,
                                                a->val != NULL ? a->type : SPMV_F64, &matrix, &duplicates);
    take(&duplicates, sizeof duplicates);
    end_matrix(st, matrix);
    free(row);
    free(col);
    free(val);
}

static void conversions(void)
{
    for (int s = 0; s < COUNT(shapes); s++) {
        struct sparse a;
        sparse_make(&shapes[s], true, &a);
        for (int k = 0; k < COUNT(kinds); k++) {
            char name[64];
            spmv_csr view;
            void *values = retype(&a, kinds[k].values, &view);
            spmv_matrix *turned = NULL;
            snprintf(name, sizeof name, "%s.%s", shapes[s].name, kinds[k].name);
            statistics_of(name, &view);
            begin("transpose.%s", name);
            const spmv_status st = spmv_matrix_transpose(ctx, &view, &turned);
            end_matrix(st, turned);
            from_coo(name, &view);
            free(values);
        }
        sparse_free(&a);
    }
}

static void matrices(void)
{
    generators();
    conversions();
}

/* ---------------------------------------------------------------- files */

static char folder[] = "/tmp/spmv-bits-XXXXXX";

static const char *path_of(const char *file)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

/* Clears the modification time in the header of each gzip member (bytes 4 to 7). */
static void clear_times(unsigned char *bytes, int64_t n)
{
    static const unsigned char head[] = {0x1f, 0x8b, 8};
    for (int64_t i = 0; i + 8 <= n; i++)
        if (memcmp(bytes + i, head, sizeof head) == 0)
            memset(bytes + i + 4, 0, 4);
}

static void take_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        stop("cannot open what was written");
    const long n = ftell(file);
    unsigned char *bytes = allocate(n);
    rewind(file);
    if (n < 0 || fread(bytes, 1, (size_t)n, file) != (size_t)n)
        stop("cannot read what was written");
    fclose(file);
    clear_times(bytes, n);
    take(bytes, n);
    free(bytes);
}

/* Hashes the file, then the matrix read back from it. */
static void write_matrix(const char *name, const spmv_csr *a, const char *file)
{
    const char *path = path_of(file);
    begin("write.%s.%s", name, file);
    spmv_status st = spmv_matrix_write(ctx, a, path);
    if (st == SPMV_OK)
        take_file(path);
    end(st);
    spmv_matrix *back = NULL;
    begin("read.%s.%s", name, file);
    st = spmv_matrix_read(ctx, path, NULL, &back, NULL, 0);
    end_matrix(st, back);
    remove(path);
}

static void write_vectors(spmv_type type, int64_t n, int64_t k, const char *file, const char *format)
{
    const int64_t bytes = n * k * (int64_t)spmv_type_size(type);
    const char *path = path_of(file);
    void *host = allocate(bytes), *back = NULL;
    int64_t rows = 0, columns = k;
    fill(type, host, n * k, 71, true);
    begin("write_vectors.%s.%lldx%lld.%s.%s", spmv_type_name(type), (long long)n, (long long)k,
          format != NULL ? format : "shortest", file);
    spmv_status st = spmv_vectors_write(ctx, path, type, host, n, k, format);
    if (st == SPMV_OK)
        take_file(path);
    if (st == SPMV_OK)
        st = spmv_vectors_read(ctx, path, type, &back, &rows, &columns);
    if (st == SPMV_OK)
        take(back, rows * columns * (int64_t)spmv_type_size(type));
    end(st);
    spmv_host_free(back);
    free(host);
    remove(path);
}

/* Reads a kind of file that no writer produces. */
static void read_text(const char *name, const char *text, spmv_type type)
{
    const char *path = path_of("text.mtx");
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        stop("cannot write a text");
    spmv_read_options options;
    spmv_read_options_init(&options, sizeof options);
    options.type = type;
    spmv_matrix *matrix = NULL;
    begin("read_text.%s.%s", name, type == SPMV_TYPE_DEFAULT ? "default" : spmv_type_name(type));
    const spmv_status st = spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0);
    end_matrix(st, matrix);
    remove(path);
}

static void read_texts(void)
{
    static const char *const texts[][2] = {
        {"symmetric",
         "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 .1\n3 1 -2.5e-7\n3 2 1e300\n3 1 0.3\n"},
        {"skew", "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 7\n3 1 -9\n"},
        {"hermitian", "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1.1 0\n2 1 .3 -4e-3\n"},
        {"pattern", "%%MatrixMarket matrix coordinate pattern general\n% note\n3 4 3\n3 4\n1 1\n1 2\n"},
        {"array", "%%MatrixMarket matrix array real general\n2 2\n0.1\n0\n1e-310\n9007199254740993\n"},
    };
    static const spmv_type of[] = {SPMV_TYPE_DEFAULT, SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
    for (int t = 0; t < COUNT(texts); t++)
        for (int k = 0; k < COUNT(of); k++)
            read_text(texts[t][0], texts[t][1], of[k]);
}

static void files(void)
{
    static const char *const endings[] = {"a.mtx", "a.mtx.gz", "a.spmv"}, *const formats[] = {NULL, "%.6g"};
    static const char *const vector_endings[] = {"v.txt", "v.txt.gz", "v.spmv"};
    static const spmv_type of[] = {SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
    if (mkdtemp(folder) == NULL)
        stop("no folder below /tmp");
    for (int s = 0; s < COUNT(shapes); s++) {
        struct sparse a;
        sparse_make(&shapes[s], true, &a);
        for (int k = 0; k < COUNT(kinds); k++)
            for (int e = 0; e < COUNT(endings); e++) {
                char name[64];
                spmv_csr view;
                void *values = retype(&a, kinds[k].values, &view);
                snprintf(name, sizeof name, "%s.%s", shapes[s].name, kinds[k].name);
                write_matrix(name, &view, endings[e]);
                free(values);
            }
        sparse_free(&a);
    }
    for (int t = 0; t < COUNT(of); t++)
        for (int e = 0; e < COUNT(vector_endings); e++)
            for (int f = 0; f < COUNT(formats); f++) {
                write_vectors(of[t], 5003, 1, vector_endings[e], formats[f]);
                write_vectors(of[t], 503, 3, vector_endings[e], formats[f]);
            }
    read_texts();
    rmdir(folder);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

/* ---------------------------------------------------------------- the program */

/* on_gpu false: the group takes a context of any backend but computes on the host. */
static const struct group {
    const char *name;
    void (*run)(void);
    bool on_gpu;
} groups[] = {{"maps", maps, true},     {"moves", moves, true},           {"compacts", compacts, true},
              {"pairs", pairs, true},   {"sorts", sorts, true},           {"products", products, true},
              {"solves", solves, true}, {"multiplies", multiplies, true}, {"matrices", matrices, false},
              {"files", files, false}};

static spmv_status open_context(int threads)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = backend;
    options.threads = threads;
    return spmv_context_create(&options, &ctx);
}

static void run_all(int threads)
{
    const spmv_status st = open_context(threads);
    if (st == SPMV_ERROR_NO_DEVICE) {
        printf("skipped: %s\n", spmv_last_error(NULL));
        exit(SKIPPED);
    }
    if (st != SPMV_OK)
        stop("no context");
    for (int g = 0; g < COUNT(groups); g++)
        if ((group == NULL || strcmp(group, groups[g].name) == 0) && (backend != SPMV_BACKEND_CUDA || groups[g].on_gpu))
            groups[g].run();
    spmv_context_destroy(ctx);
    ctx = NULL;
}

static int usage(void)
{
    fprintf(stderr, "usage: bits ref|omp|cuda [--threads N] [--group NAME] [--only TEXT] [--flip NAME] [--check]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct listing first = {0}, second = {0};
    int threads = 0;
    bool check = false;
    if (argc < 2 || spmv_backend_parse(argv[1], &backend) != SPMV_OK)
        return usage();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            check = true;
        else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0)
            threads = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--group") == 0)
            group = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--only") == 0)
            only = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--flip") == 0)
            flip = argv[++i];
        else
            return usage();
    }
    kept = &first;
    run_all(check ? 1 : threads);
    if (check) {
        kept = &second;
        expected = &first;
        run_all(3);
        differences += first.count != second.count;
        fprintf(stderr, "bits: %d cases, %d differ\n", second.count, differences);
    }
    const bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
    free(first.hashes);
    free(second.hashes);
    return written && differences == 0 && first.count > 0 ? 0 : 1;
}
