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
 * number, which the second term of the bound allows for. The sums u'(A v) are formed in long
 * double, part by part, so the result does not depend on the number of threads.
 *
 * A complex matrix must be Hermitian: the real parts of u'A v and v'A u are compared, for complex
 * vectors, whose real and imaginary parts are elements as above.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/splitmix.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/krylov/krylov.h"

enum { VECTORS = 3, MARGIN = 32, PARTS = 64 };

/* Random bits of element i, from which all vectors are made. */
static uint64_t bits_at(int64_t i)
{
    return splitmix_mix(((uint64_t)i + ((uint64_t)1 << 40)) * SPLITMIX_GAMMA);
}

/* Element of vector number `which`, from eleven of these bits: 1 + k / 1024, 0 <= k < 1024, or its
 * negative. */
static double element_of(uint64_t bits, int which)
{
    const uint64_t own = bits >> (11 * which);
    const int sign = (int)(own & 1) * 2 - 1; /* no branch, which would be taken at random */
    return (double)(sign * (1024 + (int)(own >> 1 & 1023))) / 1024;
}

struct sample {
    void *host, *in, *out; /* count real numbers each; host is in host memory */
    int64_t count;         /* rows times vectors, times 2 if complex */
    int64_t first;         /* the number of the first element among those of all ranks */
    const struct plan_ranks *ranks;
    int64_t parts; /* PARTS, or with several ranks the chunks of this one */
    spmv_type type;
    int team; /* threads for loops on the host */
};

/* The sums from one product A v: u'A v for each other vector u, and ||A v||^2. */
struct sums {
    long double dot[VECTORS], square;
};

static int64_t part_begin(const struct sample *s, int64_t part)
{
    return s->ranks != NULL ? s->ranks->chunk[part] : min_i64(s->count, part * ceil_divide(s->count, PARTS));
}

static void fill(const struct sample *s, int which)
{
#pragma omp parallel for num_threads(s->team) schedule(static)
    for (int64_t part = 0; part < s->parts; part++)
        for (int64_t i = part_begin(s, part); i < part_begin(s, part + 1); i++)
            real_set(s->type, s->host, i, element_of(bits_at(s->first + i), which));
}

/* Adds the parts of all ranks, each rounded to f64. */
static spmv_status add_ranks(const struct sample *s, const struct sums *of, struct sums *sums)
{
    enum { SUMS = VECTORS + 1 };
    _Static_assert((int)SUMS <= (int)PLAN_SUMS, "as many sums as ranks can add");
    spmv_status st = SPMV_OK;
    double *parts = NULL, sum[SUMS];
    TRY(host_alloc(NULL, max_i64(1, s->parts * SUMS) * (int64_t)sizeof *parts, "the check of symmetry",
                   (void **)&parts));
    for (int64_t part = 0; part < s->parts; part++)
        for (int u = 0; u < SUMS; u++)
            parts[u * s->parts + part] = (double)(u < VECTORS ? of[part].dot[u] : of[part].square);
    TRY(s->ranks->sum(s->ranks->self, SPMV_F64, parts, s->parts, SUMS, sum));
    for (int u = 0; u < VECTORS; u++)
        sums->dot[u] = sum[u];
    sums->square = sum[VECTORS];
done:
    host_free(parts);
    return st;
}

/* which: the number of v, whose own v'A v is not needed. */
static spmv_status add_up(const struct sample *s, int which, struct sums *of, struct sums *sums)
{
    const int one = (which + 1) % VECTORS, other = (which + 2) % VECTORS;
#pragma omp parallel for num_threads(s->team) schedule(static)
    for (int64_t part = 0; part < s->parts; part++) {
        struct sums own = {{0}, 0};
        for (int64_t i = part_begin(s, part); i < part_begin(s, part + 1); i++) {
            const long double value = real_at(s->type, s->host, i);
            const uint64_t bits = bits_at(s->first + i);
            own.dot[one] += element_of(bits, one) * value;
            own.dot[other] += element_of(bits, other) * value;
            own.square += value * value;
        }
        of[part] = own;
    }
    if (s->ranks != NULL)
        return add_ranks(s, of, sums);
    *sums = (struct sums){{0}, 0};
    for (int64_t part = 0; part < s->parts; part++) {
        for (int u = 0; u < VECTORS; u++)
            sums->dot[u] += of[part].dot[u];
        sums->square += of[part].square;
    }
    return SPMV_OK;
}

/* One product with vector number `which`. */
static spmv_status look(const struct krylov *k, const struct sample *s, int which, struct sums *of, struct sums *sums)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = s->count * (int64_t)spmv_type_size(s->type);
    fill(s, which);
    TRY(spmv_upload(k->ctx, s->host, s->in, bytes));
    TRY(spmv_apply(k->plan, NULL, s->in, NULL, s->out));
    TRY(spmv_download(k->ctx, s->out, s->host, bytes));
    TRY(add_up(s, which, of, sums));
done:
    return st;
}

/* Compares all pairs and stores the result in the plan. */
static void judge(const struct krylov *k, const struct sums *of)
{
    const struct real_limits limits = real_limits_of(type_part(k->info.type));
    const double entries = (double)(k->plan->ranks != NULL ? k->plan->ranks->nnz : k->info.nnz);
    const double nnz = entries * k->info.vectors;
    long double largest = 0;
    for (int v = 0; v < VECTORS; v++)
        largest = fmaxl(largest, of[v].square);
    const double bound = MARGIN * limits.roundoff * sqrt(entries) * (double)sqrtl(largest) + 4 * nnz * limits.subnormal;
    k->plan->symmetry = PLAN_SYMMETRIC;
    /* the recurrence reports what is not finite */
    for (int u = 0; u < VECTORS && isfinite(bound); u++)
        for (int v = 0; v < u; v++) {
            const double difference = fabs((double)(of[v].dot[u] - of[u].dot[v]));
            if (difference > bound) {
                k->plan->symmetry = PLAN_NOT_SYMMETRIC;
                k->plan->asymmetry = difference;
                k->plan->asymmetry_bound = bound;
            }
        }
}

static spmv_status sample(const struct krylov *k)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = k->ctx;
    const struct plan_ranks *ranks = k->plan->ranks;
    struct sums of[VECTORS], *parts = NULL;
    const spmv_type type = k->info.type;
    struct sample s = {.count = k->info.rows * k->info.vectors * type_parts(type),
                       .first = ranks != NULL ? ranks->first_row : 0,
                       .ranks = ranks,
                       .parts = ranks != NULL ? ranks->chunks : PARTS,
                       .type = type_part(type)};
    const int64_t bytes = s.count * (int64_t)spmv_type_size(s.type);
    s.team = host_team(ctx, s.count);
    TRY(host_alloc(ctx, bytes, "the check of symmetry", &s.host));
    TRY(host_alloc(ctx, s.parts * (int64_t)sizeof *parts, "the check of symmetry", (void **)&parts));
    TRY(krylov_lend(k, s.type, s.count, &s.in));
    TRY(context_lend(ctx, bytes, &s.out));
    for (int v = 0; v < VECTORS; v++)
        TRY(look(k, &s, v, parts, &of[v]));
    judge(k, of);
done:
    host_free(s.host);
    host_free(parts);
    krylov_take_back(k, s.type, s.in);
    context_take_back(ctx, s.out);
    return st;
}

spmv_status krylov_check_symmetry(const struct krylov *k)
{
    spmv_status st = SPMV_OK;
    const spmv_plan *plan = k->plan;
    if (krylov_rows(k) == 0)
        return SPMV_OK;
    if (plan->symmetry == PLAN_SYMMETRY_UNKNOWN || plan->values_unseen)
        TRY(sample(k));
    if (plan->symmetry == PLAN_NOT_SYMMETRIC)
        st = context_fail(k->ctx, SPMV_ERROR_NOT_SYMMETRIC,
                          "%s: the matrix is not %s: |u'Av - v'Au| is %.3g for two vectors u, v of elements "
                          "of modulus 1 to 2, rounding explains at most %.3g",
                          k->call, type_is_complex(plan->type) ? "Hermitian" : "symmetric", plan->asymmetry,
                          plan->asymmetry_bound);
done:
    return st;
}
