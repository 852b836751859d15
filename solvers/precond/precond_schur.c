/* Preconditioner schur, of systems of two fields K = (K_11, K_12; K_21, K_22), such as Stokes, mixed methods and
 * the systems of optimisation (K_11 = A, K_21 = B, K_12 = B', K_22 = -C):
 *
 *     M = (F, 0; 0, S)         symmetric positive definite, for minres and cg
 *     M = (F, K_12; 0, -S)     with the option general, for gmres
 *
 * F is a preconditioner of K_11, and S one of the Schur complement K_21 K_11^-1 K_12 - K_22. With K_11 and the Schur
 * complement themselves, M^-1 K has three different eigenvalues, or one (1). The Schur complement is full; S is one of
 *
 *     given        a preconditioner of a matrix that the caller gives, such as the mass matrix of the pressure,
 *                  which is spectrally equivalent to the Schur complement of Stokes flow
 *     diagonal     the diagonal of G = K_21 D^-1 K_12 - K_22, where D is the diagonal of K_11. Where K_11 is a differential
 *                  operator of second order, that is in each row about a mass matrix, over a viscosity that may vary
 *     simple       amg of G: where D is about K_11, as of mass matrices and penalties
 *     commutator   S^-1 = G^-1 (K_21 D^-1 K_11 D^-1 K_12) G^-1, with amg of G (2), if K_22 is 0
 *
 * Under "auto" a few steps of Lanczos' method estimate the condition of S^-1 K_21 F^-1 K_12 - S^-1 K_22 for the diagonal and
 * its rival; the number of iterations grows as its root.
 *
 * Each part is a fixed linear operator, so M is one too. If the diagonal of K_11 is negative, all is done for -K_11;
 * likewise for S.
 *
 *   (1) M. F. Murphy, G. H. Golub, A. J. Wathen, SIAM J. Sci. Comput. 21(6), 2000; H. Elman, D. Silvester, A. Wathen,
 *       "Finite Elements and Fast Iterative Solvers", 2nd ed., 2014, chapters 4 and 9
 *   (2) H. Elman, V. E. Howle, J. Shadid, R. Shuttleworth, R. Tuminaro, SIAM J. Sci. Comput. 27(5), 2006
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/choice.h"
#include "core/plural.h"
#include "core/splitmix.h"
#include "product/plan_internal.h"
#include "solvers/precond/fields.h"
#include "solvers/precond/precond_loops.h"

enum form { FORM_GIVEN, FORM_DIAGONAL, FORM_SIMPLE, FORM_COMMUTATOR };

enum block { K11, K12, K21, K22, BLOCKS };

struct schur {
    spmv_preconditioner *m;
    spmv_context *ctx;
    spmv_type type;
    int64_t rows[2];
    void *index[2];              /* the rows of each field, in the context's memory */
    spmv_matrix *matrix[BLOCKS]; /* sign[0] K_11, K_12, K_21; K_22 is for the estimate; NULL: not needed */
    spmv_plan *plan[BLOCKS];
    spmv_plan *turned[BLOCKS];   /* of the transposes; NULL: not made yet */
    spmv_matrix *complement;     /* that `second` was made of */
    spmv_preconditioner *first;  /* of sign[0] K_11 */
    spmv_preconditioner *second; /* of sign[1] times the Schur complement, or a part of it */
    double sign[2];
    double scale;     /* of S^-1 */
    double condition; /* estimated, of S^-1 times the Schur complement; 0: not estimated */
    bool triangle;
    enum form form;
    void *inverse;     /* D^-1 */
    void *r[2], *z[2]; /* parts of vectors */
    void *w, *y;       /* of the commutator: rows[0], and rows[1] */
};

/* ------------------------------------------------------------------ application */

static spmv_status scale(const struct schur *s, void *x)
{
    return spmv_map_binary(s->ctx, SPMV_MUL, s->type, x, s->inverse, x, s->rows[0]);
}

/* out = sign[1] S^-1 in. z[0] and w are overwritten. */
static spmv_status apply_second(const struct schur *s, bool transposed, const void *in, void *out)
{
    spmv_status st = SPMV_OK;
    spmv_status (*const inverse)(const spmv_preconditioner *, const void *, void *) =
        transposed ? spmv_preconditioner_apply_transposed : spmv_preconditioner_apply;
    spmv_plan *const *const plan = transposed ? s->turned : s->plan;
    const union real sign = real_scalar(s->type, s->sign[0] * s->sign[1]);
    if (s->form != FORM_COMMUTATOR)
        return inverse(s->second, in, out);
    TRY(inverse(s->second, in, s->y));
    TRY(spmv_apply(plan[transposed ? K21 : K12], NULL, s->y, NULL, s->z[0]));
    TRY(scale(s, s->z[0]));
    TRY(spmv_apply(plan[K11], NULL, s->z[0], NULL, s->w));
    TRY(scale(s, s->w));
    TRY(spmv_apply(plan[transposed ? K12 : K21], &sign, s->w, NULL, s->y));
    TRY(inverse(s->second, s->y, out));
done:
    return st;
}

static spmv_status take_part(const struct schur *s, int field, const void *r)
{
    return spmv_gather(s->ctx, s->type, r, s->m->rows, s->index[field], 32, s->r[field], s->rows[field]);
}

/* Part of z = factor z[field]. */
static spmv_status put_part(const struct schur *s, int field, double factor, void *z)
{
    spmv_status st = SPMV_OK;
    const union real by = real_scalar(s->type, factor);
    if (factor != 1)
        TRY(spmv_map_scalar(s->ctx, SPMV_MUL, s->type, &by, s->z[field], s->z[field], s->rows[field]));
    TRY(spmv_scatter(s->ctx, s->type, s->z[field], s->index[field], 32, z, s->m->rows, s->rows[field]));
done:
    return st;
}

/* z_2 = S^-1 r_2, z_1 = F^-1 r_1; or z_2 = -S^-1 r_2, z_1 = F^-1 (r_1 - K_12 z_2) */
static spmv_status apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = self;
    const union real one = real_scalar(s->type, 1), minus = real_scalar(s->type, -1);
    TRY(take_part(s, 0, r));
    TRY(take_part(s, 1, r));
    TRY(apply_second(s, false, s->r[1], s->z[1]));
    TRY(put_part(s, 1, s->triangle ? -s->sign[1] * s->scale : s->scale, z));
    if (s->triangle)
        TRY(spmv_apply(s->plan[K12], &minus, s->z[1], &one, s->r[0]));
    TRY(spmv_preconditioner_apply(s->first, s->r[0], s->z[0]));
    TRY(put_part(s, 0, s->triangle ? s->sign[0] : 1, z));
done:
    return st;
}

/* z_1 = F^-T r_1, z_2 = -S^-T (r_2 - K_12' z_1) */
static spmv_status apply_transposed(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = self;
    const union real one = real_scalar(s->type, 1), minus = real_scalar(s->type, -1);
    TRY(take_part(s, 0, r));
    TRY(take_part(s, 1, r));
    TRY(spmv_preconditioner_apply_transposed(s->first, s->r[0], s->z[0]));
    TRY(put_part(s, 0, s->sign[0], z));
    TRY(spmv_apply(s->turned[K12], &minus, s->z[0], &one, s->r[1]));
    TRY(apply_second(s, true, s->r[1], s->z[1]));
    TRY(put_part(s, 1, -s->sign[1] * s->scale, z));
done:
    return st;
}

static spmv_status make_plan(struct schur *s, enum block block, spmv_operation operation, spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    spmv_csr a;
    spmv_plan_options o;
    if (s->matrix[block] == NULL || *plan != NULL)
        return SPMV_OK;
    spmv_matrix_view(s->matrix[block], &a);
    spmv_plan_options_init(&o, sizeof o);
    o.type = s->type;
    o.operation = operation;
    TRY(spmv_plan_create(s->ctx, &a, &o, plan));
    s->m->bytes += (*plan)->bytes;
done:
    return st;
}

static spmv_status transpose(void *self)
{
    spmv_status st = SPMV_OK;
    struct schur *const s = self;
    const int64_t before = s->first->bytes + s->second->bytes;
    for (int block = 0; block < BLOCKS; block++)
        if (s->plan[block] != NULL)
            TRY(make_plan(s, block, SPMV_OPERATION_T, &s->turned[block]));
    TRY(precond_transpose(s->first));
    TRY(precond_transpose(s->second));
    s->m->bytes += s->first->bytes + s->second->bytes - before;
    s->m->apply_transposed = apply_transposed;
done:
    return st;
}

static void destroy(void *self)
{
    struct schur *const s = self;
    spmv_preconditioner_destroy(s->first);
    spmv_preconditioner_destroy(s->second);
    for (int k = 0; k < BLOCKS; k++) {
        spmv_plan_destroy(s->plan[k]);
        spmv_plan_destroy(s->turned[k]);
        spmv_matrix_destroy(s->matrix[k]);
    }
    spmv_matrix_destroy(s->complement);
    for (int k = 0; k < 2; k++) {
        spmv_free(s->ctx, s->index[k]);
        spmv_free(s->ctx, s->r[k]);
        spmv_free(s->ctx, s->z[k]);
    }
    spmv_free(s->ctx, s->inverse);
    spmv_free(s->ctx, s->w);
    spmv_free(s->ctx, s->y);
    host_free(s);
}

/* ------------------------------------------------------------------ making */

/* What the parts are made of. */
struct parts {
    const struct fields *fields;
    const double *diagonal; /* of K */
    const double *of_schur; /* the diagonal of K_21 D^-1 K_12 - K_22 */
    bool symmetric;         /* K is */
    bool strong_diagonal;   /* K_11 is about D: G is about the Schur complement */
    bool only_good;         /* for "auto" */
    const spmv_preconditioner_options *given;
};

/* The sum beside the diagonal, relative to it, up to which K_11 is about D. */
static const double STRONG_DIAGONAL = 0.5;

static const struct form_name {
    const char *name;
    enum form form;
} form_names[] = {{"diagonal", FORM_DIAGONAL}, {"simple", FORM_SIMPLE}, {"commutator", FORM_COMMUTATOR}};

static int64_t bytes_of(const spmv_matrix *matrix)
{
    return matrix == NULL ? 0 : (matrix->rows + 1) * 8 + matrix->nnz * (4 + (int64_t)spmv_type_size(matrix->type));
}

/* A vector of a field; of no rows too. */
static spmv_status new_vector(struct schur *s, int64_t rows, void **vector)
{
    return precond_alloc(s->m, max_i64(1, rows) * (int64_t)spmv_type_size(s->type), vector);
}

/* The options of a part: those of amg. */
static spmv_preconditioner_options options_of_part(const struct schur *s, const spmv_preconditioner_options *given)
{
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    o.type = s->type;
    o.degree = given->degree;
    o.strength = given->strength;
    o.smoother = given->smoother;
    o.general = given->general;
    return o;
}

static spmv_status take_vectors(struct schur *s, const struct fields *f)
{
    spmv_status st = SPMV_OK;
    for (int k = 0; k < 2; k++) {
        s->rows[k] = f->rows[k];
        TRY(precond_alloc(s->m, f->rows[k] * 4, &s->index[k]));
        TRY(spmv_upload(s->ctx, f->row[k], s->index[k], f->rows[k] * 4));
        TRY(new_vector(s, s->rows[k], &s->r[k]));
        TRY(new_vector(s, s->rows[k], &s->z[k]));
    }
done:
    return st;
}

/* amg; jacobi if each diagonal entry is at least twice the rest of its row. */
static spmv_status make_first(struct schur *s, const struct parts *parts)
{
    spmv_status st = SPMV_OK;
    spmv_csr a;
    const struct fields *const f = parts->fields;
    const spmv_preconditioner_options *const given = parts->given;
    spmv_preconditioner_options o = options_of_part(s, given);
    /* components that do not occur in each other's rows need no nodes, whose aggregates would hold all of them */
    o.block = given->block == 0 && fields_components(f) > 1 ? 1 : given->block;
    TRY(fields_block(s->ctx, f, 0, 0, s->sign[0], &s->matrix[K11]));
    spmv_matrix_view(s->matrix[K11], &a);
    TRY(spmv_preconditioner_create(s->ctx, parts->strong_diagonal ? "jacobi" : "amg", &a, &o, &s->first));
done:
    return st;
}

/* S = this diagonal. */
static spmv_status make_diagonal(struct schur *s, const double *diagonal, const spmv_preconditioner_options *o)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    const int64_t n = s->rows[1];
    TRY(matrix_allocate(s->ctx, n, n, n, s->type, false, &matrix));
    for (int64_t i = 0; i < n; i++) {
        matrix->row_ptr[i + 1] = i + 1;
        matrix->col[i] = (int32_t)i;
        real_set(s->type, matrix->val, i, s->sign[1] * diagonal[i]);
    }
    matrix->row_ptr[0] = 0;
    spmv_matrix_view(matrix, &a);
    TRY(spmv_preconditioner_create(s->ctx, "jacobi", &a, o, &s->second));
done:
    spmv_matrix_destroy(matrix);
    return st;
}

/* What the commutator needs beside K_12, K_21 and amg. */
static spmv_status prepare_commutator(struct schur *s, const struct parts *parts)
{
    spmv_status st = SPMV_OK;
    double *inverse = NULL;
    if (s->inverse != NULL)
        return SPMV_OK;
    TRY(host_alloc(s->ctx, max_i64(1, s->rows[0]) * 8, "reciprocals of a diagonal", (void **)&inverse));
    for (int64_t p = 0; p < s->rows[0]; p++)
        inverse[p] = 1 / parts->diagonal[parts->fields->row[0][p]];
    TRY(precond_upload(s->m, inverse, s->rows[0], &s->inverse));
    TRY(new_vector(s, s->rows[0], &s->w));
    TRY(new_vector(s, s->rows[1], &s->y));
    TRY(make_plan(s, K11, SPMV_OPERATION_N, &s->plan[K11]));
done:
    host_free(inverse);
    return st;
}

/* S of a form, in place of what is there. The matrix and its amg are the same for simple and commutator. */
static spmv_status make_second(struct schur *s, const struct parts *parts, enum form form)
{
    spmv_status st = SPMV_OK;
    spmv_csr a;
    spmv_preconditioner_options o = options_of_part(s, parts->given);
    const bool kept = s->complement != NULL && form != FORM_DIAGONAL && s->second != NULL && s->form != FORM_DIAGONAL;
    s->form = form;
    if (form == FORM_COMMUTATOR)
        TRY(prepare_commutator(s, parts));
    if (kept)
        return SPMV_OK;
    spmv_preconditioner_destroy(s->second);
    s->second = NULL;
    if (form == FORM_GIVEN) {
        TRY(spmv_preconditioner_create(s->ctx, "amg", parts->given->schur, &o, &s->second));
    } else if (form == FORM_DIAGONAL) {
        TRY(make_diagonal(s, parts->of_schur, &o));
    } else {
        if (s->complement == NULL)
            TRY(fields_schur(s->ctx, parts->fields, parts->diagonal, s->sign[1], &s->complement));
        spmv_matrix_view(s->complement, &a);
        TRY(spmv_preconditioner_create(s->ctx, "amg", &a, &o, &s->second));
    }
done:
    return st;
}

/* ------------------------------------------------------------------ the choice of S */

/* The vectors of an estimate, and a scalar. */
struct estimate {
    struct schur *s;
    void *r, *p, *q, *z, *scalar;
};

static spmv_status dot(const struct estimate *e, const void *x, const void *y, double *value)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = e->s;
    union real got = {0};
    TRY(spmv_dot(s->ctx, s->type, x, y, e->scalar, s->rows[1]));
    TRY(spmv_download(s->ctx, e->scalar, &got, (int64_t)spmv_type_size(s->type)));
    *value = real_at(s->type, &got, 0);
done:
    return st;
}

/* y = a x + b y */
static spmv_status axpby(const struct estimate *e, double a, const void *x, double b, void *y)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = e->s;
    const int64_t size = (int64_t)spmv_type_size(s->type);
    union real scalars[2];
    real_set(s->type, scalars, 0, a);
    real_set(s->type, scalars, 1, b);
    TRY(spmv_upload(s->ctx, scalars, e->scalar, 2 * size));
    TRY(spmv_map_axpby(s->ctx, s->type, e->scalar, x, (char *)e->scalar + size, y, s->rows[1]));
done:
    return st;
}

/* q = sign[1] (K_21 F^-1 K_12 - K_22) p */
static spmv_status multiply(const struct estimate *e)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = e->s;
    const union real one = real_scalar(s->type, 1), both = real_scalar(s->type, s->sign[0] * s->sign[1]),
                     minus = real_scalar(s->type, -s->sign[1]);
    TRY(spmv_apply(s->plan[K12], &one, e->p, NULL, s->r[0]));
    TRY(spmv_preconditioner_apply(s->first, s->r[0], s->z[0]));
    TRY(spmv_apply(s->plan[K21], &both, s->z[0], NULL, e->q));
    if (s->plan[K22] != NULL)
        TRY(spmv_apply(s->plan[K22], &minus, e->p, &one, e->q));
done:
    return st;
}

/* Steps of the estimate, each of which has a cycle for the first field; more of them where each condition is large, which
 * few steps do not tell. */
enum { STEPS = 8, MOST_STEPS = 24 };

/* Eigenvalues at an end of the spectrum that do not count: each costs an iterative method few steps. Such are a pressure
 * that is free up to a constant, or corners of the domain. */
enum { OUTLIERS = 4 };

/* What is known of the spectrum of S^-1 times the Schur complement. */
struct spectrum {
    double condition, highest; /* without outliers; infinite, and 1: not positive definite */
};

/* Of the tridiagonal matrix of Lanczos' method, from a random start. Its eigenvalues with the squares of the first
 * elements of their vectors are a quadrature formula for the density of eigenvalues: those with a sum of weights below
 * the share of the outliers are left out. The elements of a vector are orthogonal polynomials (G. H. Golub, J. H. Welsch,
 * Math. Comp. 23, 1969). */
static struct spectrum spectrum_of(const double *diagonal, const double *beside, int n, int64_t rows)
{
    static const double most = 0.05; /* of few rows, weights do not tell outliers */
    const double share = fmin(most, (double)OUTLIERS / (double)max_i64(1, rows));
    double value[MOST_STEPS], weight[MOST_STEPS], sum = 0;
    for (int i = 0; i < n; i++) {
        double before = 0, element = 1, norm = 1;
        value[i] = precond_eigenvalue(diagonal, beside, n, i);
        for (int k = 0; k + 1 < n; k++) {
            const double next = ((value[i] - diagonal[k]) * element - (k > 0 ? beside[k - 1] * before : 0)) / beside[k];
            norm += next * next;
            before = element;
            element = next;
        }
        weight[i] = 1 / norm;
    }
    int low = 0, high = n - 1;
    for (sum = weight[low]; low < high && sum < share; sum += weight[low])
        low++;
    for (sum = weight[high]; high > low && sum < share; sum += weight[high])
        high--;
    return value[low] > 0 ? (struct spectrum){value[high] / value[low], value[high]} : (struct spectrum){INFINITY, 1};
}

/* By the coefficients of conjugate gradients, as in precond_chebyshev.c. */
static spmv_status run_lanczos(const struct estimate *e, int steps, struct spectrum *spectrum)
{
    spmv_status st = SPMV_OK;
    const struct schur *const s = e->s;
    double diagonal[MOST_STEPS], beside[MOST_STEPS], rz = 0, pq = 0, next = 0, alpha_before = 1, beta_before = 0;
    const double u = real_limits_of(s->type).roundoff;
    int k = 0;
    *spectrum = (struct spectrum){INFINITY, 1};
    TRY(apply_second(s, false, e->r, e->p));
    TRY(dot(e, e->r, e->p, &rz));
    const double first = rz;
    while (k < steps && rz > u * first) {
        TRY(multiply(e));
        TRY(dot(e, e->p, e->q, &pq));
        if (!(pq > 0 && isfinite(pq)))
            return SPMV_OK;
        const double alpha = rz / pq;
        TRY(axpby(e, -alpha, e->q, 1, e->r));
        TRY(apply_second(s, false, e->r, e->z));
        TRY(dot(e, e->r, e->z, &next));
        const double beta = next / rz;
        if (!(beta >= 0 && isfinite(beta)))
            return SPMV_OK;
        diagonal[k] = 1 / alpha + beta_before / alpha_before;
        beside[k++] = sqrt(beta) / alpha;
        TRY(axpby(e, 1, e->z, beta, e->p));
        rz = next;
        alpha_before = alpha;
        beta_before = beta;
    }
    if (k > 0)
        *spectrum = spectrum_of(diagonal, beside, k, s->rows[1]);
done:
    return st;
}

static spmv_status estimate(struct schur *s, int steps, struct spectrum *spectrum)
{
    spmv_status st = SPMV_OK;
    struct estimate e = {.s = s};
    void *start = NULL;
    const int64_t bytes = max_i64(1, s->rows[1]) * (int64_t)spmv_type_size(s->type);
    uint64_t state = 0;
    TRY(host_alloc(s->ctx, bytes, "a start", &start));
    TRY(context_lend(s->ctx, bytes, &e.r));
    TRY(context_lend(s->ctx, bytes, &e.p));
    TRY(context_lend(s->ctx, bytes, &e.q));
    TRY(context_lend(s->ctx, bytes, &e.z));
    TRY(context_lend(s->ctx, 2 * (int64_t)sizeof(union real), &e.scalar));
    for (int64_t i = 0; i < s->rows[1]; i++)
        real_set(s->type, start, i, (double)(int64_t)splitmix_next(&state) * 0x1p-63);
    TRY(spmv_upload(s->ctx, start, e.r, s->rows[1] * (int64_t)spmv_type_size(s->type)));
    TRY(run_lanczos(&e, steps, spectrum));
done:
    host_free(start);
    void *const lent[] = {e.r, e.p, e.q, e.z, e.scalar};
    for (size_t k = 0; k < sizeof lent / sizeof *lent; k++)
        context_take_back(s->ctx, lent[k]);
    return st;
}

/* Iterations grow as the root of the condition. A step with the commutator has two cycles of the second field and
 * products with K_11 and K_21 more, about 1.4 times the time. */
static const double costs[] = {[FORM_DIAGONAL] = 1, [FORM_SIMPLE] = 1, [FORM_COMMUTATOR] = 2};

/* With the diagonal below this condition no other form is tried. Stokes elements have 6 to 17. */
static const double WELL_CONDITIONED = 12;

/* "auto" does not take schur above this one: minres takes some hundred iterations then, as other methods do. */
static const double BADLY_CONDITIONED = 30;

/* Takes the form that is best by so many steps, and leaves it in s. */
static spmv_status take_best(struct schur *s, const struct parts *parts, int steps, struct spectrum *best)
{
    static const enum form forms[] = {FORM_DIAGONAL, FORM_SIMPLE, FORM_COMMUTATOR};
    spmv_status st = SPMV_OK;
    enum form taken = FORM_DIAGONAL;
    *best = (struct spectrum){INFINITY, 1};
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        struct spectrum spectrum;
        if (forms[k] == FORM_COMMUTATOR && (s->matrix[K22] != NULL || parts->strong_diagonal))
            continue;
        TRY(make_second(s, parts, forms[k]));
        TRY(estimate(s, steps, &spectrum));
        if (k == 0 || costs[forms[k]] * spectrum.condition < costs[taken] * best->condition) {
            *best = spectrum;
            taken = forms[k];
        }
        if (k == 0 && spectrum.condition <= WELL_CONDITIONED)
            return SPMV_OK;
    }
    TRY(make_second(s, parts, taken));
done:
    return st;
}

static spmv_status choose_second(struct schur *s, const struct parts *parts, struct spectrum *best)
{
    spmv_status st = SPMV_OK;
    if (!parts->symmetric)
        return make_second(s, parts, s->matrix[K22] == NULL && !parts->strong_diagonal ? FORM_COMMUTATOR : FORM_SIMPLE);
    TRY(take_best(s, parts, STEPS, best));
    if (best->condition > BADLY_CONDITIONED && parts->only_good)
        return context_fail(s->ctx, SPMV_ERROR_LIMIT,
                            "preconditioner schur: the condition of the Schur complement with it is about %.3g",
                            best->condition);
    if (best->condition > BADLY_CONDITIONED)
        TRY(take_best(s, parts, MOST_STEPS, best));
done:
    return st;
}

/* Makes S, and for a symmetric K its scale. With M = (F, 0; 0, S / scale), minres takes fewest iterations if the largest
 * eigenvalue of S^-1 times the Schur complement is at most about 1, as with the mass matrix of Stokes flow. A power of two
 * changes no digits. */
static spmv_status make_scaled_second(struct schur *s, const struct parts *parts, const struct form_name *named)
{
    spmv_status st = SPMV_OK;
    struct spectrum spectrum = {0, 0.5};
    if (parts->given->schur == NULL && named == NULL) {
        TRY(choose_second(s, parts, &spectrum));
    } else {
        TRY(make_second(s, parts, named != NULL ? named->form : FORM_GIVEN));
        if (parts->symmetric && !s->triangle)
            TRY(estimate(s, STEPS, &spectrum));
    }
    s->condition = spectrum.condition;
    s->scale = 0.5 / precond_power_of_two(spectrum.highest);
    if (!(spectrum.highest > 0 && isfinite(s->scale)))
        s->scale = 1;
done:
    return st;
}

/* Sets sign[1], of the diagonal of the Schur complement. */
static spmv_status find_sign(struct schur *s, const struct fields *f, const double *of_schur)
{
    s->sign[1] = 0;
    for (int64_t p = 0; p < s->rows[1]; p++) {
        if (s->sign[1] == 0 && of_schur[p] != 0)
            s->sign[1] = of_schur[p] < 0 ? -1 : 1;
        if (!isfinite(of_schur[p]) || s->sign[1] * of_schur[p] < 0)
            return context_fail(s->ctx, isfinite(of_schur[p]) ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE,
                                "preconditioner %s: the diagonal of the Schur complement has %g in row %lld%s, and %s "
                                "before: it is not definite",
                                s->m->name, of_schur[p], context_number(s->ctx, f->row[1][p]), context_counted(s->ctx),
                                s->sign[1] < 0 ? "negative numbers" : "positive numbers");
    }
    s->sign[1] = s->sign[1] == 0 ? 1 : s->sign[1];
    return SPMV_OK;
}

static spmv_status check_options(spmv_context *ctx, const spmv_preconditioner_options *o, const struct form_name **form)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add(&names, "auto");
    for (size_t k = 0; k < sizeof form_names / sizeof *form_names; k++)
        names_add_row(&names, form_names[k].name, &form_names[k]);
    const spmv_status st =
        choice_take(ctx, SPMV_ERROR_ARGUMENT, "preconditioner schur", "schur_form", &names, o->schur_form, &row);
    *form = row;
    if (st != SPMV_OK)
        return st;
    if (o->schur != NULL && row != NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "preconditioner schur: the options schur and schur_form are both given");
    if (o->near_nulls > 0 || o->dimensions > 0)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner schur: near-null-space vectors and coordinates are for amg");
    return SPMV_OK;
}

/* The given matrix has a row for each row of the second field. */
static spmv_status check_given(const struct schur *s, const spmv_csr *given)
{
    if (given == NULL || (given->rows == s->rows[1] && given->cols == s->rows[1]))
        return SPMV_OK;
    return context_fail(s->ctx, SPMV_ERROR_SIZE,
                        "preconditioner schur: the matrix for the Schur complement is %lld x %lld, the second field "
                        "has %lld row%s",
                        (long long)given->rows, (long long)given->cols, (long long)s->rows[1], plural(s->rows[1]));
}

/* Releases what only the choice of S needed. */
static void drop_unused(struct schur *s)
{
    for (int k = 0; k < BLOCKS; k++) {
        if ((k == K12 && s->triangle) || (k != K22 && s->form == FORM_COMMUTATOR))
            continue;
        if (s->plan[k] != NULL)
            s->m->bytes -= s->plan[k]->bytes;
        spmv_plan_destroy(s->plan[k]);
        s->plan[k] = NULL;
        if (k == K11) /* amg may borrow its arrays */
            continue;
        spmv_matrix_destroy(s->matrix[k]);
        s->matrix[k] = NULL;
    }
    if (s->form == FORM_DIAGONAL) {
        spmv_matrix_destroy(s->complement);
        s->complement = NULL;
    }
}

static void describe(struct schur *s, const struct fields *f)
{
    static const char *const words[] = {"amg of the given matrix", "the diagonal of B D^-1 B' + C",
                                        "amg of B D^-1 B' + C", "commutator, amg of B D^-1 B'"};
    spmv_preconditioner *const m = s->m;
    char condition[48] = "";
    if (s->condition > 0)
        snprintf(condition, sizeof condition, ", condition about %.3g", s->condition);
    snprintf(
        m->layout, sizeof m->layout,
        "block %s; fields of %lld and %lld rows, %s (%lld of the second have a zero diagonal); second: %s%s%s%.100s; "
        "first: %s, %.150s",
        s->triangle ? "triangular" : "diagonal", (long long)s->rows[0], (long long)s->rows[1],
        f->found ? "by the signs of the diagonal" : "as given", (long long)f->zeros, words[s->form], condition,
        s->form == FORM_DIAGONAL ? "" : ", ", s->form == FORM_DIAGONAL ? "" : s->second->layout, s->first->name,
        s->first->layout);
    m->levels = s->first->levels;
    m->bytes += s->first->bytes + s->second->bytes + bytes_of(s->complement);
    for (int k = 0; k < BLOCKS; k++)
        m->bytes += bytes_of(s->matrix[k]);
}

spmv_status precond_make_schur(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner_options *const o = source->options;
    const struct form_name *named = NULL;
    struct fields f = {.sign = 0};
    struct schur *s = NULL;
    double *of_schur = NULL;
    struct parts parts = {.fields = &f, .diagonal = source->diagonal, .only_good = source->sampled, .given = o};
    TRY(check_options(m->ctx, o, &named));
    TRY(host_alloc(m->ctx, sizeof *s, "a preconditioner", (void **)&s));
    *s = (struct schur){.m = m, .ctx = m->ctx, .type = m->type, .triangle = o->general != 0};
    TRY(fields_tell(m->ctx, m->name, &source->host, source->diagonal, o->fields, &f));
    if (parts.only_good && f.zeros < f.rows[1])
        TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED, "preconditioner schur: diagonal entries have both signs"));
    if (parts.only_good && !fields_are_coupled(&f)) /* rows without entries */
        TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED, "preconditioner schur: the fields are not coupled"));
    TRY(take_vectors(s, &f));
    TRY(check_given(s, o->schur));
    TRY(host_alloc(m->ctx, max_i64(1, s->rows[1]) * 8, "a diagonal", (void **)&of_schur));
    TRY(fields_schur_diagonal(m->ctx, &f, source->diagonal, of_schur, &parts.symmetric));
    parts.of_schur = of_schur;
    s->sign[0] = f.sign;
    TRY(find_sign(s, &f, of_schur));
    parts.strong_diagonal = fields_heaviest(&f, source->diagonal) <= STRONG_DIAGONAL;
    TRY(make_first(s, &parts));
    TRY(fields_block(m->ctx, &f, 0, 1, 1, &s->matrix[K12]));
    TRY(fields_block(m->ctx, &f, 1, 0, 1, &s->matrix[K21]));
    const bool second_block = fields_have_second_block(&f);
    if (second_block && named != NULL && named->form == FORM_COMMUTATOR)
        TRY(context_fail(
            m->ctx, SPMV_ERROR_UNSUPPORTED,
            "preconditioner schur: the commutator is for systems whose second diagonal block is 0: take the "
            "form simple or diagonal"));
    if (second_block)
        TRY(fields_block(m->ctx, &f, 1, 1, 1, &s->matrix[K22]));
    for (int k = K12; k < BLOCKS; k++)
        TRY(make_plan(s, k, SPMV_OPERATION_N, &s->plan[k]));
    TRY(make_scaled_second(s, &parts, named));
    drop_unused(s);
    describe(s, &f);
    m->self = s;
    m->apply = apply;
    m->destroy = destroy;
    m->transpose = s->triangle ? transpose : NULL;
done:
    fields_release(&f);
    host_free(of_schur);
    if (st != SPMV_OK && s != NULL)
        destroy(s);
    return st;
}
