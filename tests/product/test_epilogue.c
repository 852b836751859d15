/* Products with an epilogue (spmv_apply_with): a dot product of y with a vector, y added to another
 * vector, or both, with every method of the backend, in every type.
 *
 *   y      has the bits of spmv_apply
 *   dot    within the rounding bound, for any order of summation, of the sum in long double
 *   z      likewise, element by element
 *   again  all bits repeat, with products in between and, on omp, for any number of threads
 *
 * argv[2] "brief": each kernel once, for checkers that slow a GPU down a hundredfold.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include <float.h>
#include <math.h>
#ifdef SPMV_HAVE_CUDA
#include "tests/support/support_stream.h"
#endif

#include "product/omp/spmv_omp.h"
#include "tests/support/support_slow.h"
#include "tests/support/support_types.h"

static bool brief;

/* ------------------------------------------------------------------ elements */

/* ------------------------------------------------------------------ matrices */

/*   MIXED     rows of 0 to 59 entries
 *   LONG      mostly empty rows, two rows longer than a tile, and one at the end
 *   HUGE_ROW  a row so long that its fragments are folded in groups and span several tree nodes
 *   SPARSE    rows of 0 to 5 entries
 *   NONE      no entries
 *   ONES      one entry per row
 *   ARROW     a long row, and rows of 3 whose columns move with the row; the first is mostly 0 */
enum shape { MIXED, LONG, HUGE_ROW, SPARSE, NONE, ONES, ARROW };

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
};

static struct matrix make_matrix(int64_t rows, int64_t cols, enum shape shape)
{
    uint64_t random = (uint64_t)(rows * 31 + cols) + (uint64_t)shape;
    struct matrix m = {.rows = rows, .cols = cols, .row_ptr = support_zeros(rows + 1, 8)};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t draw = (int64_t)(support_random(&random) % 60);
        const bool is_long = i == rows / 2 || i == rows - 1 || i == 0;
        const int64_t length = shape == MIXED      ? draw
                               : shape == LONG     ? (is_long    ? 2100 + 3000 * (i == 0)
                                                      : draw < 5 ? draw
                                                                 : 0)
                               : shape == HUGE_ROW ? (i == 3 ? 40000 : draw % 6)
                               : shape == SPARSE   ? draw % 6
                               : shape == ONES     ? 1
                               : shape == ARROW    ? (i == 0 ? 5000 : 3)
                                                   : 0;
        m.row_ptr[i + 1] = m.row_ptr[i] + length;
    }
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, 4);
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = (int32_t)(support_random(&random) % (uint64_t)cols);
    for (int64_t i = 1; shape == ARROW && i < rows; i++) {
        int32_t *col = m.col + m.row_ptr[i];
        for (int64_t j = 0; j < 3; j++)
            col[j] = j == 0 && support_random(&random) % 4 != 0 ? 0 : (int32_t)((i + j) % cols);
    }
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col);
}

/* ------------------------------------------------------------------ products */

enum w { NO_W, OWN_W, X_AS_W, Y_AS_W };

struct variant {
    const struct types *types;
    bool pattern, scaled;
    enum w w;
    bool z, gamma;
};

static const double alpha_parts[2] = {0.5, -0.75}, beta_parts[2] = {-3, 0.25}, gamma_parts[2] = {1.25, 0.5};

/* A product with its data. */
struct product {
    spmv_context *ctx;
    spmv_plan *plan;
    const char *method;
    struct variant v;
    int64_t rows, cols, size;
    void *host_x, *host_y, *host_w, *host_z; /* initial values */
    void *x, *y, *w, *z, *gamma, *dot;
};

/* Results in host memory. */
struct outcome {
    void *y, *z;
    double dot[2];
};

static void free_outcome(struct outcome *o)
{
    support_free(o->y, o->z);
}

/* Returns false if the method does not support the variant. */
static bool begin(spmv_context *ctx, const struct matrix *m, const char *method, struct variant v, struct product *p)
{
    const spmv_type type = v.types->sums;
    void *val = v.pattern ? NULL : random_elements(v.types->values, m->nnz, 1);
    const spmv_csr a = support_view(m->rows, m->cols, m->nnz, m->row_ptr, m->col, val, v.types->values);
    spmv_plan_options options = support_plan_options();
    options.method = method;
    options.type = type;
    *p = (struct product){
        .ctx = ctx, .method = method, .v = v, .rows = m->rows, .cols = m->cols, .size = (int64_t)spmv_type_size(type)};
    const spmv_status st = spmv_plan_create(ctx, &a, &options, &p->plan);
    free(val);
    if (st == SPMV_ERROR_UNSUPPORTED)
        return false;
    assert_ok(ctx, st);
    p->host_x = random_elements(type, m->cols, 2);
    p->host_y = random_elements(type, m->rows, 3);
    p->host_w = random_elements(type, m->rows, 4);
    p->host_z = random_elements(type, m->rows, 5);
    for (int64_t i = 0; !v.scaled && i < m->rows; i++)
        put(type, p->host_y, i, NAN, NAN); /* must not be read */
    double scalar[2];
    put(type, scalar, 0, gamma_parts[0], gamma_parts[1]);
    p->x = support_upload(ctx, p->host_x, m->cols * p->size);
    p->w = support_upload(ctx, p->host_w, m->rows * p->size);
    p->gamma = support_upload(ctx, scalar, p->size);
    assert_ok(ctx, spmv_alloc(ctx, m->rows * p->size, &p->y));
    assert_ok(ctx, spmv_alloc(ctx, m->rows * p->size, &p->z));
    assert_ok(ctx, spmv_alloc(ctx, p->size, &p->dot));
    return true;
}

static void end(struct product *p)
{
    spmv_plan_destroy(p->plan);
    support_free_in(p->ctx, p->x, p->y, p->w, p->z, p->gamma, p->dot);
    support_free(p->host_x, p->host_y, p->host_w, p->host_z);
}

static spmv_status multiply(const struct product *p, const spmv_epilogue *e)
{
    double scalars[4];
    put(p->v.types->sums, scalars, 0, alpha_parts[0], alpha_parts[1]);
    put(p->v.types->sums, scalars + 2, 0, beta_parts[0], beta_parts[1]);
    return spmv_apply_with(p->plan, p->v.scaled ? scalars : NULL, p->x, p->v.scaled ? scalars + 2 : NULL, p->y, e);
}

/* The epilogue of the variant. */
static spmv_epilogue epilogue_of(const struct product *p)
{
    const void *const w = p->v.w == OWN_W ? p->w : p->v.w == X_AS_W ? p->x : p->v.w == Y_AS_W ? p->y : NULL;
    return support_epilogue(w, p->v.w != NO_W ? p->dot : NULL, p->v.gamma ? p->gamma : NULL, p->v.z ? p->z : NULL);
}

/* Initializes y, z and dot; dot is NaN. */
static void set_up(const struct product *p)
{
    double nan[2];
    put(p->v.types->sums, nan, 0, NAN, NAN);
    assert_ok(p->ctx, spmv_upload(p->ctx, p->host_y, p->y, p->rows * p->size));
    assert_ok(p->ctx, spmv_upload(p->ctx, p->host_z, p->z, p->rows * p->size));
    assert_ok(p->ctx, spmv_upload(p->ctx, nan, p->dot, p->size));
}

static struct outcome outcome_of(const struct product *p)
{
    struct outcome o = {.y = support_zeros(p->rows, 16), .z = support_zeros(p->rows, 16)};
    assert_ok(p->ctx, spmv_download(p->ctx, p->y, o.y, p->rows * p->size));
    assert_ok(p->ctx, spmv_download(p->ctx, p->z, o.z, p->rows * p->size));
    assert_ok(p->ctx, spmv_download(p->ctx, p->dot, o.dot, p->size));
    return o;
}

static struct outcome run(const struct product *p)
{
    const spmv_epilogue e = epilogue_of(p);
    set_up(p);
    assert_ok(p->ctx, multiply(p, &e));
    return outcome_of(p);
}

static const char *name_of(const struct product *p)
{
    static char text[128];
    snprintf(text, sizeof text, "%s, %s%s%s, %lld rows, w %d, z %d%s", p->method, p->v.types->name,
             p->v.pattern ? ", pattern" : "", p->v.scaled ? ", scaled" : "", (long long)p->rows, (int)p->v.w, p->v.z,
             p->v.gamma ? ", gamma" : "");
    return text;
}

static void same_bits(const struct product *p, const char *when, const struct outcome *a, const struct outcome *b)
{
    const size_t bytes = (size_t)(p->rows * p->size);
    if (memcmp(a->y, b->y, bytes) != 0)
        fail_msg("%s: %s, y has other bits", name_of(p), when);
    if (memcmp(a->z, b->z, bytes) != 0)
        fail_msg("%s: %s, z has other bits", name_of(p), when);
    if (p->v.w != NO_W && memcmp(a->dot, b->dot, (size_t)p->size) != 0)
        fail_msg("%s: %s, dot is %.17Lg, not %.17Lg", name_of(p), when, element(p->v.types->sums, b->dot, 0).re,
                 element(p->v.types->sums, a->dot, 0).re);
}

/* Compares dot and z with long double sums of the resulting y. */
static void check_sums(const struct product *p, const struct outcome *o)
{
    const spmv_type type = p->v.types->sums;
    const bool complex = type_is_complex(type);
    const long double roundoff = is_single(type) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const struct wide gamma =
        p->v.gamma ? (struct wide){gamma_parts[0], complex ? gamma_parts[1] : 0} : (struct wide){1, 0};
    const void *w = p->v.w == X_AS_W ? p->host_x : p->v.w == Y_AS_W ? o->y : p->host_w;
    struct wide sum = {0, 0};
    long double magnitude = 0;
    for (int64_t i = 0; i < p->rows; i++) {
        const struct wide y = element(type, o->y, i), before = element(type, p->host_z, i), z = element(type, o->z, i);
        const struct wide add = times(gamma, y), wi = element(type, w, i),
                          term = times((struct wide){wi.re, -wi.im}, y);
        sum.re += term.re;
        sum.im += term.im;
        magnitude += hypotl(wi.re, wi.im) * hypotl(y.re, y.im);
        const struct wide expected = p->v.z ? (struct wide){before.re + add.re, before.im + add.im} : before;
        const long double bound =
            p->v.z ? (complex ? 6 : 3) * roundoff * (hypotl(before.re, before.im) + hypotl(add.re, add.im)) : 0;
        if (!(hypotl(z.re - expected.re, z.im - expected.im) <= bound))
            fail_msg("%s: z of row %lld is %.17Lg %+.17Lgi, not %.17Lg %+.17Lgi", name_of(p), (long long)i, z.re, z.im,
                     expected.re, expected.im);
    }
    if (p->v.w == NO_W)
        return;
    const struct wide dot = element(type, o->dot, 0);
    const long double bound = (long double)(p->rows + (complex ? 5 : 2)) * roundoff * magnitude * 1.01L;
    if (!(hypotl(dot.re - sum.re, dot.im - sum.im) <= bound))
        fail_msg("%s: dot is %.17Lg %+.17Lgi, not %.17Lg %+.17Lgi +- %.3Lg", name_of(p), dot.re, dot.im, sum.re, sum.im,
                 bound);
    if (p->v.w == Y_AS_W && !(dot.re >= 0))
        fail_msg("%s: a squared norm is %.17Lg", name_of(p), dot.re);
}

/* If there is a dot product, compares it with a separate one, within both bounds. */
static void check_beside_dot(const struct product *p, const struct outcome *o)
{
    const spmv_type type = p->v.types->sums;
    double alone[2], magnitude[2];
    if (type_is_complex(type) || p->v.w != Y_AS_W || p->rows == 0)
        return;
    assert_ok(p->ctx, spmv_dot(p->ctx, type, p->y, p->y, p->dot, p->rows));
    assert_ok(p->ctx, spmv_download(p->ctx, p->dot, alone, p->size));
    memcpy(magnitude, alone, sizeof magnitude); /* all terms are positive */
    const long double roundoff = is_single(type) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const long double difference = element(type, alone, 0).re - element(type, o->dot, 0).re;
    assert_true(fabsl(difference) <= 2.02L * (long double)(p->rows + 2) * roundoff * element(type, magnitude, 0).re);
}

static void check_product(spmv_context *ctx, const struct matrix *m, const char *method, struct variant v)
{
    struct product p;
    if (!begin(ctx, m, method, v, &p))
        return;
    set_up(&p);
    assert_ok(ctx, multiply(&p, NULL)); /* without an epilogue */
    struct outcome plain = outcome_of(&p), first = run(&p);
    if (memcmp(plain.y, first.y, (size_t)(p.rows * p.size)) != 0)
        fail_msg("%s: y has other bits than by spmv_apply", name_of(&p));
    check_sums(&p, &first);
    struct outcome second = run(&p);
    same_bits(&p, "a second time", &first, &second);
    check_beside_dot(&p, &second);
    free_outcome(&second);
    free_outcome(&first);
    free_outcome(&plain);
    end(&p);
}

static const struct {
    enum w w;
    bool z, gamma;
} requests[] = {
    {OWN_W, false, false}, {Y_AS_W, true, true}, {OWN_W, true, false}, {NO_W, true, true}, {X_AS_W, false, false}};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

/* Every method on a matrix, in every type. all: every second combination of variants; else every
 * seventh. */
static void check_matrix(spmv_context *ctx, const struct matrix *m, bool all)
{
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
        for (int t = 0; t < TYPES; t++)
            /* A sample that differs between types and methods; one on an emulated GPU. */
            for (int number = SLOW ? (int)((3 * i + 7 * t + m->rows) % (4 * REQUESTS)) : 0; number < 4 * REQUESTS;
                 number += SLOW  ? 4 * REQUESTS
                           : all ? 2
                                 : 7) {
                const int r = (number + t) % REQUESTS;
                if (requests[r].w == X_AS_W && m->rows != m->cols)
                    continue;
                check_product(ctx, m, method,
                              (struct variant){.types = &all_types[t],
                                               .pattern = number / REQUESTS % 2,
                                               .scaled = number / REQUESTS / 2 != 0,
                                               .w = requests[r].w,
                                               .z = requests[r].z,
                                               .gamma = requests[r].gamma});
            }
}

static void every_method(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        int64_t rows, cols;
        enum shape shape;
    } sizes[] = {{20, 230, HUGE_ROW}, {151, 151, LONG},   {150, 230, MIXED}, {900, 900, SPARSE}, {3000, 40, NONE},
                 {1, 1, ONES},        {4097, 30, SPARSE}, {1, 70, HUGE_ROW}, {4000, 4100, ARROW}};
    const size_t all =
        /* the last is only for omp */
        sizeof sizes / sizeof sizes[0] - (support_backend == SPMV_BACKEND_CUDA);
    for (size_t s = 0; s < (brief ? 2 : all); s++) {
        struct matrix m = make_matrix(sizes[s].rows, sizes[s].cols, sizes[s].shape);
        check_matrix(ctx, &m, s == 1 && !brief);
        free_matrix(&m);
    }
}

/* So many tiles that the tree of their sums has three levels on a GPU, and more tiles than omp
 * threads. */
static void many_tiles(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(280000, 500, ONES);
    check_product(ctx, &m, NULL, (struct variant){.types = &all_types[4], .w = OWN_W, .z = true});
    free_matrix(&m);
    m = make_matrix(40000, 40000, SPARSE);
    for (int t = 0; t < TYPES; t++)
        check_product(ctx, &m, NULL, (struct variant){.types = &all_types[t], .w = X_AS_W, .z = true, .gamma = true});
    free_matrix(&m);
}

/* omp: 1 to 7 threads. */
static void any_number_of_threads(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    struct matrix m = make_matrix(60000, 60000, SPARSE);
    for (int number = 0; number < 4 * TYPES; number++) {
        const struct variant v = {.types = &all_types[number % TYPES],
                                  .scaled = number / TYPES % 2,
                                  .pattern = number / TYPES / 2,
                                  .w = number % 3 == 0 ? Y_AS_W : X_AS_W,
                                  .z = true,
                                  .gamma = true};
        struct outcome one = {.y = NULL};
        for (int threads = 1; threads <= 7; threads += 2) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, threads);
            struct product p;
            assert_true(begin(ctx, &m, "tiles", v, &p));
            struct outcome now = run(&p);
            if (threads == 1) {
                one = now;
                check_sums(&p, &one);
            } else {
                same_bits(&p, "with more threads", &one, &now);
                free_outcome(&now);
            }
            end(&p);
            spmv_context_destroy(ctx);
        }
        free_outcome(&one);
    }
    free_matrix(&m);
}

static void check_past_the_caches(spmv_context *ctx, const struct matrix *m, struct variant v)
{
    struct product p;
    assert_true(begin(ctx, m, "tiles", v, &p));
    struct omp_tiles *tiles = p.plan->state;
    assert_false(tiles->stream);
    struct outcome before = run(&p);
    tiles->stream = true;
    struct outcome after = run(&p);
    check_sums(&p, &after);
    same_bits(&p, "past the caches", &before, &after);
    free_outcome(&before);
    free_outcome(&after);
    end(&p);
}

/* omp: for large regular matrices y stays in a cache for the epilogue and is written with
 * nontemporal stores. */
static void past_the_caches(void **state)
{
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    for (int shape = MIXED; shape <= NONE; shape++) {
        struct matrix m = make_matrix(9001, 9001, (enum shape)shape);
        for (int t = 0; t < 3; t++)
            for (int r = 0; r < REQUESTS; r++)
                check_past_the_caches(
                    *state, &m,
                    (struct variant){
                        .types = &all_types[t], .w = requests[r].w, .z = requests[r].z, .gamma = requests[r].gamma});
        free_matrix(&m);
    }
}

static void without_rows(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(0, 4, NONE);
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
        for (int t = 0; t < TYPES; t++) {
            struct product p;
            if (!begin(ctx, &m, method, (struct variant){.types = &all_types[t], .w = OWN_W, .z = true}, &p))
                continue;
            set_up(&p);
            const spmv_epilogue e = support_epilogue(NULL, p.dot, NULL, NULL);
            assert_ok(ctx, multiply(&p, &e));
            struct outcome o = outcome_of(&p);
            assert_true(element(all_types[t].sums, o.dot, 0).re == 0 && element(all_types[t].sums, o.dot, 0).im == 0);
            free_outcome(&o);
            end(&p);
        }
    free_matrix(&m);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(90, 90, MIXED);
    struct product p;
    assert_true(begin(ctx, &m, NULL, (struct variant){.types = &all_types[0], .w = OWN_W, .z = true}, &p));
    set_up(&p);
    const spmv_epilogue good = epilogue_of(&p);
    const struct {
        const char *text;
        const void *w, *gamma;
        void *dot, *z;
    } bad[] = {{"dot is NULL", p.w, NULL, NULL, p.z},  {"w is NULL", NULL, NULL, p.dot, p.z},
               {"z and x", p.w, NULL, p.dot, p.x},     {"z and y", NULL, NULL, NULL, p.y},
               {"z and w", p.z, NULL, p.dot, p.z},     {"dot overlaps", p.w, p.dot, p.dot, p.z},
               {"dot overlaps", p.w, NULL, p.w, NULL}, {"dot overlaps", p.x, NULL, p.y, NULL},
               {"dot overlaps", p.w, NULL, p.x, NULL}, {"dot overlaps", p.w, NULL, p.z, p.z}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spmv_epilogue e = good;
        e.w = bad[i].w;
        e.gamma = bad[i].gamma;
        e.dot = bad[i].dot;
        e.z = bad[i].z;
        assert_fails(ctx, multiply(&p, &e), SPMV_ERROR_ARGUMENT, bad[i].text);
    }
    spmv_epilogue odd = good;
    odd.size = 1;
    assert_fails(ctx, multiply(&p, &odd), SPMV_ERROR_ARGUMENT, "spmv_epilogue_init");
    assert_fails(ctx, spmv_apply_with(p.plan, NULL, NULL, NULL, p.y, &good), SPMV_ERROR_ARGUMENT, "x is NULL");
    assert_fails(ctx, spmv_apply_with(p.plan, NULL, p.x, NULL, p.x, &good), SPMV_ERROR_ARGUMENT, "same array");
    struct outcome o = outcome_of(&p); /* none of the calls wrote anything */
    assert_memory_equal(o.z, p.host_z, (size_t)(p.rows * p.size));
    assert_true(isnan(o.dot[0]));
    free_outcome(&o);
    end(&p);

    spmv_plan_options options = support_plan_options();
    options.vectors = 2;
    const spmv_csr a = support_csr_with(m.rows, m.cols, m.nnz, m.row_ptr, 64, m.col, NULL, SPMV_F64);
    double number[2] = {0, 0};
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    e.w = e.dot = number;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    assert_fails(ctx, spmv_apply_with(plan, NULL, &number[0], NULL, &number[1], &e), SPMV_ERROR_UNSUPPORTED,
                 "2 vectors");
    spmv_plan_destroy(plan);
    free_matrix(&m);
}

#ifdef SPMV_HAVE_CUDA
static void misplaced(void **state)
{
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(90, 90, MIXED);
    struct product p;
    assert_true(
        begin(ctx, &m, NULL, (struct variant){.types = &all_types[4], .w = OWN_W, .z = true, .gamma = true}, &p));
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {"w is not aligned", "dot is not aligned", "gamma is not aligned",
                                            "z is not aligned"};
        spmv_epilogue e = epilogue_of(&p);
        if (i == 0)
            e.w = (const char *)e.w + 8;
        else if (i == 1)
            e.dot = (char *)e.dot + 8;
        else if (i == 2)
            e.gamma = (const char *)e.gamma + 8;
        else
            e.z = (char *)e.z + 8;
        assert_fails(ctx, multiply(&p, &e), SPMV_ERROR_ARGUMENT, texts[i]);
    }
    end(&p);
    free_matrix(&m);
}

/* -------------------------------------------------------------------- graphs */

#ifdef HOST_CUDA

/* The host emulation records launches without running them: the capture stays valid, and all work
 * is in the launches. */
static void capture_and_replay(const struct product *p, const spmv_epilogue *e, const struct outcome *expected)
{
    (void)expected;
    set_up(p);
    host_cuda.capturing = 1;
    const spmv_status st = multiply(p, e);
    host_cuda.capturing = 0;
    assert_ok(p->ctx, st);
    assert_false(host_cuda.capture_broken);
    struct outcome o = outcome_of(p);
    assert_memory_equal(o.z, p->host_z, (size_t)(p->rows * p->size));
    assert_true(isnan((double)element(p->v.types->sums, o.dot, 0).re));
    free_outcome(&o);
}

#else

/* Captured once, replayed three times. */
static void capture_and_replay(const struct product *p, const spmv_epilogue *e, const struct outcome *expected)
{
    const cudaStream_t stream = (cudaStream_t)spmv_context_stream(p->ctx);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    const spmv_status st = multiply(p, e);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_ok(p->ctx, st);
    assert_int_equal(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    for (int i = 0; i < 3; i++) {
        set_up(p);
        assert_int_equal(cudaGraphLaunch(replay, stream), cudaSuccess);
        struct outcome o = outcome_of(p);
        same_bits(p, "replayed", expected, &o);
        free_outcome(&o);
    }
    assert_int_equal(cudaGraphExecDestroy(replay), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
}

#endif

static void graphs(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_CUDA || brief)
        skip();
    cudaStream_t stream = support_stream();
    spmv_context *ctx = support_context_of(-1, stream);
    struct matrix m = make_matrix(120, 120, LONG);
    const char *method;
    for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++)
        for (int t = 0; t < TYPES; t++) {
            struct product p;
            const struct variant v = {.types = &all_types[t], .scaled = true, .w = X_AS_W, .z = true, .gamma = true};
            if (!begin(ctx, &m, method, v, &p))
                continue;
            const spmv_epilogue e = epilogue_of(&p);
            struct outcome expected = run(&p);
            capture_and_replay(&p, &e, &expected);
            free_outcome(&expected);
            end(&p);
        }
    free_matrix(&m);
    spmv_context_destroy(ctx);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}
#endif

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    brief = support_brief(argc, argv);
    const struct CMUnitTest all[] = {
        with_context(every_method), with_context(without_rows), with_context(refusals),
#ifdef SPMV_HAVE_CUDA
        with_context(misplaced),    cmocka_unit_test(graphs),
#endif
    };
    const struct CMUnitTest long_ones[] = {with_context(many_tiles), cmocka_unit_test(any_number_of_threads),
                                           with_context(past_the_caches)};
    int failed = cmocka_run_group_tests(all, NULL, NULL);
    if (!brief)
        failed += cmocka_run_group_tests(long_ones, NULL, NULL);
    return failed;
}
