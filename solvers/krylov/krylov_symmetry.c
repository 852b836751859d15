/* Checks by products whether A is symmetric.
 *
 * For a symmetric A, u'A v = v'A u for any u and v. u and v are fixed pseudo-random vectors with
 * elements of modulus 1 to 2. The difference of the two sides is the sum of a_ij - a_ji times the
 * random factors u_i v_j - u_j v_i, about the Frobenius norm of A - A'. So an entry without its
 * mirror image shows wherever it is. (With elements of modulus 1, every other factor would be 0.)
 * Three vectors give three pairs for three products. R. Freivalds, "Probabilistic machines can use
 * less running time", IFIP 1977, checks a product likewise.
 *
 * Rounding makes the two sides differ too. The errors of the elements of A v add up to about the
 * unit roundoff times sqrt(longest row) ||A||_F, and ||A v|| estimates ||A||_F (M. F. Hutchinson,
 * "A stochastic estimator of the trace", Comm. Statist. 18, 1989). The bound MARGIN sqrt(nnz) unit
 * roundoffs is far above that. A product that underflows loses half of the smallest subnormal
 * number, which the second term of the bound allows for. The sums u'(A v) are formed part by part, so the
 * result does not depend on the number of threads; on a GPU by a kernel, and read once.
 *
 * A complex matrix must be Hermitian: the real parts of u'A v and v'A u are compared, for complex
 * vectors, whose real and imaginary parts are elements as above. The same products show whether it is
 * its own transpose: there u and v are not conjugated.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/krylov/krylov.h"
#include "solvers/krylov/krylov_symmetry.h"

enum { VECTORS = SYMMETRY_VECTORS, MARGIN = 32 };

/* ------------------------------------------------------------- on the host */

static void fill(const struct symmetry_sample *s, int which)
{
#pragma omp parallel for num_threads(s->team) schedule(static)
    for (int64_t i = 0; i < s->count; i++)
        real_set(s->type, s->in, i, symmetry_element(symmetry_bits(s->first + i), which));
}

static void add_up(const struct symmetry_sample *s, int which, struct symmetry_sums *of)
{
    const int one = (which + 1) % VECTORS, other = (which + 2) % VECTORS;
#pragma omp parallel for num_threads(s->team) schedule(static)
    for (int64_t part = 0; part < s->parts; part++) {
        long double sum = 0, other_sum = 0, imaginary = 0, other_imaginary = 0;
        struct symmetry_sums own = {{0}, {0}, {0}};
        for (int64_t i = s->begin[part]; i < s->begin[part + 1]; i++) {
            const long double value = real_at(s->type, s->out, i);
            const uint64_t bits = symmetry_bits(s->first + i);
            const bool is_imaginary = s->complex && i % 2 != 0;
            *(is_imaginary ? &imaginary : &sum) += symmetry_element(bits, one) * value;
            *(is_imaginary ? &other_imaginary : &other_sum) += symmetry_element(bits, other) * value;
            symmetry_add_square((double)value, own.square);
        }
        own.dot[one] = (double)(sum + imaginary);
        own.dot[other] = (double)(other_sum + other_imaginary);
        own.bilinear[one] = (double)(sum - imaginary);
        own.bilinear[other] = (double)(other_sum - other_imaginary);
        of[part] = own;
    }
}

/* ------------------------------------------------------------- on both */

/* One product with vector number `which`, and the sums of its parts, where s->in is. */
static spmv_status look(const struct krylov *k, const struct symmetry_sample *s, int which)
{
    spmv_status st = SPMV_OK;
    struct symmetry_sums *const of = s->sums + which * s->parts;
    const bool gpu = context_on_device(k->ctx);
    if (gpu)
        TRY(krylov_symmetry_fill_cuda(k->ctx, s, which));
    else
        fill(s, which);
    TRY(spmv_apply(k->plan, NULL, s->in, NULL, s->out));
    if (gpu)
        TRY(krylov_symmetry_add_up_cuda(k->ctx, s, which, of));
    else
        add_up(s, which, of);
done:
    return st;
}

/* From a product A v: u'A v for each other vector u, with and, not on ranks, without conjugation; and ||A v||. */
struct sums {
    double dot[VECTORS], bilinear[VECTORS], norm;
};

static long double square_of(const struct symmetry_sums *of)
{
    return SYMMETRY_SCALE * of->square[SYMMETRY_SMALL] + of->square[SYMMETRY_OTHERS] +
           of->square[SYMMETRY_LARGE] / SYMMETRY_SCALE;
}

/* *sum: of all parts, and of all ranks. */
static spmv_status add_parts(const struct symmetry_sample *s, const struct plan_ranks *ranks,
                             const struct symmetry_sums *of, struct sums *sum)
{
    enum { SUMS = VECTORS + 1 };
    _Static_assert((int)SUMS <= (int)PLAN_SUMS, "as many sums as ranks can add");
    spmv_status st = SPMV_OK;
    double *parts = NULL, all[SUMS];
    long double square = 0;
    *sum = (struct sums){{0}, {0}, 0};
    for (int64_t part = 0; part < s->parts && ranks == NULL; part++) {
        for (int u = 0; u < VECTORS; u++) {
            sum->dot[u] += of[part].dot[u];
            sum->bilinear[u] += of[part].bilinear[u];
        }
        square += square_of(&of[part]);
    }
    sum->norm = (double)sqrtl(square);
    if (ranks == NULL)
        return SPMV_OK;
    TRY(host_alloc(NULL, max_i64(1, s->parts * SUMS) * (int64_t)sizeof *parts, "the check of symmetry",
                   (void **)&parts));
    for (int64_t part = 0; part < s->parts; part++)
        for (int u = 0; u < SUMS; u++)
            parts[u * s->parts + part] = u < VECTORS ? of[part].dot[u] : (double)square_of(&of[part]);
    TRY(ranks->sum(ranks->self, SPMV_F64, parts, s->parts, SUMS, all));
    for (int u = 0; u < VECTORS; u++)
        sum->dot[u] = all[u];
    sum->norm = sqrt(all[VECTORS]);
done:
    host_free(parts);
    return st;
}

/* Compares all pairs and stores the result in the plan. */
static void judge(const struct krylov *k, const struct sums *of)
{
    const struct real_limits limits = real_limits_of(type_part(k->info.type));
    /* an operator may be dense */
    const double entries = plan_is_operator(k->plan) ? (double)k->info.rows * (double)k->info.cols
                           : k->plan->ranks != NULL  ? (double)k->plan->ranks->nnz
                                                     : (double)k->info.nnz;
    const double nnz = entries * k->info.vectors;
    double largest = 0;
    for (int v = 0; v < VECTORS; v++)
        largest = fmax(largest, of[v].norm);
    const double bound = MARGIN * limits.roundoff * sqrt(entries) * largest + 4 * nnz * limits.subnormal;
    spmv_plan *const plan = k->plan;
    double most = 0, bilinear = 0; /* the largest difference of a pair */
    /* the recurrence reports what is not finite */
    for (int u = 0; u < VECTORS && isfinite(bound); u++)
        for (int v = 0; v < u; v++) {
            most = fmax(most, fabs(of[v].dot[u] - of[u].dot[v]));
            bilinear = fmax(bilinear, fabs(of[v].bilinear[u] - of[u].bilinear[v]));
        }
    plan->asymmetry = most;
    plan->bilinear_asymmetry = bilinear;
    plan->asymmetry_bound = bound;
    plan->symmetry = most > bound ? PLAN_NOT_SYMMETRIC : PLAN_SYMMETRIC;
    plan->bilinear_symmetry = bilinear > bound ? PLAN_NOT_SYMMETRIC : PLAN_SYMMETRIC;
}

/* So many parts of so many numbers, for any number of threads. On a GPU a block has a part. */
static int64_t parts_of(bool gpu, int64_t count)
{
    enum { PARTS = 64, BLOCKS = 1024, LEAST = 1024 };
    return gpu ? max_i64(1, min_i64(BLOCKS, count / LEAST)) : (int64_t)PARTS;
}

/* The bounds of the parts: of the chunks of this rank, or of equal parts. */
static spmv_status find_parts(const struct krylov *k, struct symmetry_sample *s, int64_t **begin)
{
    const struct plan_ranks *ranks = k->plan->ranks;
    s->parts = ranks != NULL ? ranks->chunks : parts_of(context_on_device(k->ctx), s->count);
    const spmv_status st =
        host_alloc(k->ctx, (s->parts + 1) * (int64_t)sizeof **begin, "the check of symmetry", (void **)begin);
    if (st != SPMV_OK)
        return st;
    for (int64_t part = 0; part <= s->parts; part++)
        (*begin)[part] = ranks != NULL ? ranks->chunk[part] * type_parts(k->info.type)
                                       : min_i64(s->count, part * ceil_divide(s->count, s->parts));
    s->begin = *begin;
    return SPMV_OK;
}

static spmv_status sample(const struct krylov *k)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = k->ctx;
    const struct plan_ranks *ranks = k->plan->ranks;
    const bool gpu = context_on_device(ctx);
    struct sums of[VECTORS];
    struct symmetry_sums *sums = NULL;
    int64_t *begin = NULL;
    void *bounds = NULL, *device_sums = NULL;
    struct symmetry_sample s = {.count = k->info.rows * k->info.vectors * type_parts(k->info.type),
                                .first = ranks != NULL ? ranks->first_row * type_parts(k->info.type) : 0,
                                .type = type_part(k->info.type),
                                .complex = type_is_complex(k->info.type)};
    s.team = host_team(ctx, s.count);
    TRY(krylov_lend(k, s.type, s.count, &s.in));
    TRY(context_lend(ctx, s.count * (int64_t)spmv_type_size(s.type), &s.out));
    TRY(find_parts(k, &s, &begin));
    const int64_t bytes = max_i64(1, VECTORS * s.parts) * (int64_t)sizeof *sums;
    TRY(host_alloc(ctx, bytes, "the check of symmetry", (void **)&sums));
    s.sums = sums;
    if (gpu) {
        TRY(spmv_alloc(ctx, (s.parts + 1) * (int64_t)sizeof *begin, &bounds));
        TRY(spmv_alloc(ctx, bytes, &device_sums));
        TRY(spmv_upload(ctx, begin, bounds, (s.parts + 1) * (int64_t)sizeof *begin));
        s.begin = bounds;
        s.sums = device_sums;
    }
    for (int v = 0; v < VECTORS; v++)
        TRY(look(k, &s, v));
    if (gpu)
        TRY(spmv_download(ctx, device_sums, sums, VECTORS * s.parts * (int64_t)sizeof *sums));
    for (int v = 0; v < VECTORS; v++)
        TRY(add_parts(&s, ranks, sums + v * s.parts, &of[v]));
    judge(k, of);
done:
    host_free(sums);
    host_free(begin);
    spmv_free(ctx, bounds);
    spmv_free(ctx, device_sums);
    krylov_take_back(k, s.type, s.in);
    context_take_back(ctx, s.out);
    return st;
}

spmv_status krylov_check_symmetry(const struct krylov *k, bool bilinear)
{
    spmv_status st = SPMV_OK;
    const spmv_plan *plan = k->plan;
    if (krylov_rows(k) == 0)
        return SPMV_OK;
    if (plan->symmetry == PLAN_SYMMETRY_UNKNOWN || plan->values_unseen)
        TRY(sample(k));
    if ((bilinear ? plan->bilinear_symmetry : plan->symmetry) == PLAN_NOT_SYMMETRIC)
        st = context_fail(k->ctx, SPMV_ERROR_NOT_SYMMETRIC,
                          "%s: the matrix is not %s: |u'Av - v'Au| is %.3g for two vectors u, v of elements "
                          "of modulus 1 to 2, rounding explains at most %.3g",
                          k->call, bilinear || !type_is_complex(plan->type) ? "symmetric" : "Hermitian",
                          bilinear ? plan->bilinear_asymmetry : plan->asymmetry, plan->asymmetry_bound);
done:
    return st;
}
