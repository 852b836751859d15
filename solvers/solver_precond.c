/* The preconditioner of a solver: what its solver needs is made of the solver's matrix. What "auto"
 * takes: precond_choose.c.
 *
 * Incomplete factors of a matrix that is not symmetric are made of a prepared matrix C = P R A S Q
 * (prepared_system.h): M^-1 = S Q C~^-1 P R, where C~ are the factors. A, b and the norms of
 * residuals stay as they are. jacobi and block-jacobi are prepared likewise if a diagonal entry is
 * 0.
 *
 * For a complex matrix, M is made of the real matrix of twice the size that does the same to the
 * real and imaginary parts: each entry a + b i becomes the block (a, -b; b, a).
 *
 * For cocg, M must be its own transpose. It is made of a real symmetric matrix T of the size of A and applied to real and
 * imaginary parts one after the other, so any preconditioner for symmetric matrices will do:
 *
 *     t_ij = +- re a_ij +- im a_ij,  t_ii = |re a_ii| + |im a_ii|
 *
 * with the signs that make the sums of the diagonals positive. For A = K + i M with positive definite K and M, T = K + M is
 * as good as its inverse can be applied: the eigenvalues of T^-1 A lie on the line from 1 to i, so their condition is at
 * most sqrt(2) (O. Axelsson, A. Kucherov, Numer. Linear Algebra Appl. 7(4), 2000).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/choice.h"
#include "formats/matrix_internal.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/precond/precond_costs.h"
#include "solvers/prepare/prepared_system.h"
#include "solvers/solver_internal.h"
#include "solvers/solver_sample.h"

/* ------------------------------------------------------------- the real equivalent */

void equivalent_free(struct equivalent *e)
{
    host_free_all(e->row_ptr, e->col, e->val);
    csr_free_host(&e->copies);
}

/* Writes the two rows of row i; parts that are 0 are left out. */
static void put_rows(struct equivalent *e, const spmv_csr *a, int64_t i)
{
    const spmv_type part = e->a.type;
    for (int half = 0; half < 2; half++) {
        int64_t at = e->row_ptr[2 * i + half];
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double re = real_at(part, a->val, 2 * k), im = real_at(part, a->val, 2 * k + 1);
            const double pair[2] = {half == 0 ? re : im, half == 0 ? -im : re};
            for (int c = 0; c < 2; c++)
                if (pair[c] != 0) {
                    e->col[at] = 2 * a->col[k] + c;
                    real_set(part, e->val, at++, pair[c]);
                }
        }
        e->row_ptr[2 * i + half + 1] = at;
    }
}

/* a: complex, in the context's memory. */
spmv_status equivalent_make(spmv_context *ctx, const spmv_csr *a, struct equivalent *e)
{
    spmv_status st = SPMV_OK;
    spmv_csr on_host;
    const spmv_type part = type_part(a->type);
    if (a->rows > INT32_MAX / 2)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "a preconditioner of a complex matrix of %lld rows: at most %d",
                            (long long)a->rows, INT32_MAX / 2);
    TRY(csr_to_host(ctx, a, false, &on_host, &e->copies));
    TRY(host_alloc(ctx, (2 * a->rows + 1) * (int64_t)sizeof *e->row_ptr, "row offsets", (void **)&e->row_ptr));
    TRY(host_alloc(ctx, 4 * a->nnz * (int64_t)sizeof *e->col, "columns", (void **)&e->col));
    TRY(host_alloc(ctx, 4 * a->nnz * (int64_t)spmv_type_size(part), "values", &e->val));
    e->a = csr_of(2 * a->rows, 2 * a->cols, 0, e->row_ptr, e->col, e->val, part, SPMV_MEMORY_HOST);
    e->row_ptr[0] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        put_rows(e, &on_host, i);
    e->a.nnz = e->row_ptr[2 * a->rows];
done:
    return st;
}

/* ------------------------------------------------------------- of a bilinear form */

/* The sums of the real and of the imaginary parts of the diagonal, in the order of the rows. */
static void sum_diagonal(const spmv_csr *a, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            for (int c = 0; c < 2 && a->col[k] == i; c++)
                sum[c] += real_at(type_part(a->type), a->val, 2 * k + c);
}

/* What "auto" reads of a matrix that is its own transpose. */
struct real_facts {
    int64_t negative; /* rows in which the real or the imaginary parts have a negative sum, with the signs of T */
    double heaviest;  /* the largest sum of |t_ij|, j != i, over t_ii */
};

/* A sum below this part of the diagonal entry is rounding errors. */
static const double NO_SUM = 1e-9;

/* sum: of the real and of the imaginary parts of a row. */
static void look_at_row(const double sum[2], double diagonal, double beside, struct real_facts *facts)
{
    facts->negative += fmin(sum[0], sum[1]) < -NO_SUM * diagonal;
    facts->heaviest = fmax(facts->heaviest, diagonal > 0 ? beside / diagonal : INFINITY);
}

/* *e = T for a complex a in the context's memory. twice: only its diagonal, each entry twice. facts: begin with 0. */
static spmv_status make_real(spmv_context *ctx, const spmv_csr *a, bool twice, struct equivalent *e,
                             struct real_facts *facts)
{
    spmv_status st = SPMV_OK;
    spmv_csr on_host;
    const spmv_type part = type_part(a->type);
    const int64_t rows = twice ? 2 * a->rows : a->rows, entries = twice ? rows : a->nnz;
    double sign[2];
    if (rows > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "a preconditioner of a complex matrix of %lld rows: at most %d",
                            (long long)a->rows, INT32_MAX / 2);
    TRY(csr_to_host(ctx, a, false, &on_host, &e->copies));
    TRY(host_alloc(ctx, (rows + 1) * (int64_t)sizeof *e->row_ptr, "row offsets", (void **)&e->row_ptr));
    TRY(host_alloc(ctx, max_i64(1, entries) * (int64_t)sizeof *e->col, "columns", (void **)&e->col));
    TRY(host_alloc(ctx, max_i64(1, entries) * (int64_t)spmv_type_size(part), "values", &e->val));
    sum_diagonal(&on_host, sign);
    for (int64_t i = 0; i < a->rows; i++) {
        double diagonal = 0, beside = 0, sum[2] = {0, 0};
        for (int64_t k = row_first(&on_host, i); k < row_first(&on_host, i + 1); k++) {
            const double re = copysign(1, sign[0]) * real_at(part, on_host.val, 2 * k);
            const double im = copysign(1, sign[1]) * real_at(part, on_host.val, 2 * k + 1);
            const bool on_diagonal = on_host.col[k] == i;
            const double value = on_diagonal ? fabs(re) + fabs(im) : re + im;
            diagonal += on_diagonal ? value : 0;
            beside += on_diagonal ? 0 : fabs(value);
            sum[0] += re;
            sum[1] += im;
            if (!twice) {
                e->col[k] = on_host.col[k];
                real_set(part, e->val, k, value);
            }
        }
        look_at_row(sum, diagonal, beside, facts);
        if (!twice)
            e->row_ptr[i] = row_first(&on_host, i);
        for (int c = 0; c < 2 && twice; c++) {
            e->row_ptr[2 * i + c] = e->col[2 * i + c] = (int32_t)(2 * i + c);
            real_set(part, e->val, 2 * i + c, diagonal);
        }
    }
    e->row_ptr[rows] = entries;
    e->a = csr_of(rows, rows, entries, e->row_ptr, e->col, e->val, part, SPMV_MEMORY_HOST);
done:
    return st;
}

/* A preconditioner that is applied to real and imaginary parts. */
struct by_parts {
    spmv_preconditioner *inner;
    spmv_context *ctx;
    spmv_type type;
    int64_t rows;
    void *r, *z; /* vectors of inner */
};

static spmv_status by_parts_apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct by_parts *const p = self;
    const size_t size = spmv_type_size(p->type);
    for (size_t part = 0; part < 2; part++) {
        const struct columns_transfer take = {.type = p->type,
                                              .n = p->rows,
                                              .from_stride = 2,
                                              .to_stride = 1,
                                              .columns = 1,
                                              .width = 1,
                                              .from = (const char *)r + part * size,
                                              .to = p->r};
        const struct columns_transfer give = {.type = p->type,
                                              .n = p->rows,
                                              .from_stride = 1,
                                              .to_stride = 2,
                                              .columns = 1,
                                              .width = 1,
                                              .from = p->z,
                                              .to = (char *)z + part * size};
        TRY(columns_copy(p->ctx, &take));
        TRY(spmv_preconditioner_apply(p->inner, p->r, p->z));
        TRY(columns_copy(p->ctx, &give));
    }
done:
    return st;
}

static void by_parts_destroy(void *self)
{
    struct by_parts *const p = self;
    if (p == NULL)
        return;
    spmv_preconditioner_destroy(p->inner);
    spmv_free(p->ctx, p->r);
    spmv_free(p->ctx, p->z);
    host_free(p);
}

/* *made = inner for real and imaginary parts; inner belongs to it, or after an error to no one. */
static spmv_status make_by_parts(spmv_preconditioner *inner, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = inner->ctx;
    struct by_parts *p = NULL;
    const int64_t bytes = inner->rows * (int64_t)spmv_type_size(inner->type);
    const spmv_preconditioner_class functions = {
        .size = sizeof functions, .name = inner->name, .apply = by_parts_apply, .destroy = by_parts_destroy};
    st = host_alloc(ctx, sizeof *p, "a preconditioner", (void **)&p);
    if (st != SPMV_OK) {
        spmv_preconditioner_destroy(inner);
        return st;
    }
    *p = (struct by_parts){.inner = inner, .ctx = ctx, .type = inner->type, .rows = inner->rows};
    TRY(spmv_alloc(ctx, bytes, &p->r));
    TRY(spmv_alloc(ctx, bytes, &p->z));
    TRY(spmv_preconditioner_wrap(ctx, inner->type, 2 * inner->rows, &functions, p, made));
    spmv_preconditioner *const m = *made;
    m->bytes = inner->bytes + 2 * bytes;
    p = NULL;
done:
    by_parts_destroy(p);
    return st;
}

/* What is told of a preconditioner. */
static void take_report(spmv_preconditioner *m, const spmv_preconditioner *of)
{
    m->seconds = of->seconds;
    m->lowest = of->lowest;
    m->highest = of->highest;
    m->shift = of->shift;
    m->levels = of->levels;
    m->fallen = of->fallen;
    memcpy(m->why, of->why, sizeof m->why);
    snprintf(m->layout, sizeof m->layout, "%s%s%.400s", "of |re a| + |im a|, for real and imaginary parts",
             of->layout[0] != '\0' ? "; " : "", of->layout);
}

static bool has_strong_diagonal(const struct real_facts *facts, int64_t rows)
{
    (void)rows;
    return facts->heaviest <= 0.5;
}

static bool seems_definite(const struct real_facts *facts, int64_t rows)
{
    enum { PART = 4 }; /* rows at a boundary may have any sums */
    return PART * facts->negative <= rows;
}

static bool otherwise(const struct real_facts *facts, int64_t rows)
{
    (void)facts;
    (void)rows;
    return true;
}

/* "auto": the first that applies and can be made. T of a Helmholtz operator is indefinite: its rows have negative sums. */
static const struct real_choice {
    const char *name, *on_cuda, *why;
    bool (*when)(const struct real_facts *facts, int64_t rows);
} real_choices[] = {
    {"jacobi", "jacobi", "the diagonal is at least twice the rest of each row", has_strong_diagonal},
    {"amg", "amg", "real and imaginary parts mostly have rows without a negative sum, as positive definite ones",
     seems_definite},
    {"ic0", "fsai", "a factor without fill-in saves most iterations, also where the real part is indefinite",
     otherwise},
    {"jacobi", "jacobi", "a factor cannot be made", otherwise},
    {"none", "none", "the diagonal has a zero", otherwise},
};

/* *inner: of T. */
static spmv_status make_real_auto(spmv_context *ctx, const spmv_csr *t, const struct real_facts *facts,
                                  const spmv_preconditioner_options *options, spmv_preconditioner **inner)
{
    spmv_status st = SPMV_OK;
    for (size_t i = 0; i < sizeof real_choices / sizeof *real_choices; i++) {
        const struct real_choice *const c = &real_choices[i];
        if (!c->when(facts, t->rows))
            continue;
        st = spmv_preconditioner_create(ctx, context_on_device(ctx) ? c->on_cuda : c->name, t, options, inner);
        if (st == SPMV_OK) {
            snprintf((*inner)->why, sizeof(*inner)->why, "%s", c->why);
            ctx->error[0] = '\0'; /* those before are no failure */
        }
        if (st == SPMV_OK || st == SPMV_CANCELLED)
            break;
    }
    return st;
}

/* The preconditioner of this name, or "auto", for a complex A. none and jacobi become a part of the solver's passes. */
static spmv_status make_bilinear(spmv_context *ctx, const char *name, const spmv_csr *a,
                                 const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    struct equivalent t = {.row_ptr = NULL}, diagonal = {.row_ptr = NULL};
    struct real_facts facts = {0, 0};
    spmv_preconditioner *inner = NULL;
    TRY(make_real(ctx, a, false, &t, &facts));
    TRY(choice_is_auto(name) ? make_real_auto(ctx, &t.a, &facts, options, &inner)
                             : spmv_preconditioner_create(ctx, name, &t.a, options, &inner));
    if (precond_is_identity(inner) || precond_inverse_diagonal(inner) != NULL) {
        TRY(make_real(ctx, a, true, &diagonal, &facts));
        TRY(spmv_preconditioner_create(ctx, precond_name(inner), &diagonal.a, options, made));
        take_report(*made, inner);
    } else {
        spmv_preconditioner *const of_t = inner;
        inner = NULL;
        TRY(make_by_parts(of_t, made));
        take_report(*made, of_t);
    }
done:
    spmv_preconditioner_destroy(inner);
    equivalent_free(&t);
    equivalent_free(&diagonal);
    return st;
}

/* ------------------------------------------------------------- prepared preconditioners */

struct prepared {
    spmv_preconditioner *m;
    struct prepared_system *system;
    spmv_preconditioner *inner; /* of C */
    spmv_context *ctx;
    void *c, *y; /* vectors of C */
};

static spmv_status prepared_apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    struct prepared *const p = self;
    TRY(prepared_system_rhs(p->system, r, p->c));
    TRY(spmv_preconditioner_apply(p->inner, p->c, p->y));
    TRY(prepared_system_solution(p->system, p->y, z));
done:
    return st;
}

static spmv_status prepared_apply_transposed(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    struct prepared *const p = self;
    TRY(prepared_system_rhs_transposed(p->system, r, p->y, p->c));
    TRY(spmv_preconditioner_apply_transposed(p->inner, p->c, p->y));
    TRY(prepared_system_solution_transposed(p->system, p->y, p->c, z));
done:
    return st;
}

static spmv_status prepared_transpose(void *self)
{
    struct prepared *const p = self;
    const int64_t before = p->inner->bytes;
    const spmv_status st = precond_transpose(p->inner);
    p->m->bytes += p->inner->bytes - before;
    if (st == SPMV_OK)
        p->m->apply_transposed = prepared_apply_transposed;
    return st;
}

static void prepared_destroy(void *self)
{
    struct prepared *const p = self;
    if (p == NULL)
        return;
    spmv_preconditioner_destroy(p->inner);
    prepared_system_destroy(p->system);
    spmv_free(p->ctx, p->c);
    spmv_free(p->ctx, p->y);
    host_free(p);
}

static spmv_status make_prepared(spmv_context *ctx, const char *name, const spmv_csr *a,
                                 const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    struct prepared *p = NULL;
    const struct prepared_system_options steps = {.type = options->type};
    const spmv_preconditioner_class functions = {
        .size = sizeof functions, .name = name, .apply = prepared_apply, .destroy = prepared_destroy};
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(options->type);
    TRY(host_alloc(ctx, sizeof *p, "a preconditioner", (void **)&p));
    *p = (struct prepared){.ctx = ctx};
    TRY(prepared_system_create(ctx, a, &steps, &p->system));
    const spmv_csr c = prepared_system_matrix(p->system);
    TRY(spmv_preconditioner_create(ctx, name, &c, options, &p->inner));
    TRY(spmv_alloc(ctx, bytes, &p->c));
    TRY(spmv_alloc(ctx, bytes, &p->y));
    TRY(spmv_preconditioner_wrap(ctx, options->type, a->rows, &functions, p, made));
    spmv_preconditioner *const m = p->m = *made;
    const spmv_preconditioner *const inner = p->inner;
    m->bytes = inner->bytes + 2 * bytes;
    m->transpose = prepared_transpose;
    m->seconds = inner->seconds;
    m->levels = inner->levels;
    m->fallen = inner->fallen;
    snprintf(m->why, sizeof m->why, "requested by name");
    snprintf(m->layout, sizeof m->layout, "%.240s%s%.240s", prepared_system_describe(p->system),
             inner->layout[0] != '\0' ? "; " : "", inner->layout);
    p = NULL;
done:
    prepared_destroy(p);
    return st;
}

/* ------------------------------------------------------------- by solver */

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

spmv_status solver_make_unsymmetric(spmv_context *ctx, const char *name, const spmv_csr *a,
                                    const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    static const char *const factors[] = {"ilu0", "ilut", "isai", NULL};
    static const char *const diagonals[] = {"jacobi", "block-jacobi", NULL};
    spmv_preconditioner_options o = *options;
    o.general = 1;
    const bool factor = is_one_of(name, factors);
    const spmv_status st = factor ? SPMV_OK : spmv_preconditioner_create(ctx, name, a, &o, made);
    if (!factor && !(st == SPMV_ERROR_SINGULAR && is_one_of(name, diagonals)))
        return st;
    o.plan = NULL;
    return make_prepared(ctx, name, a, &o, made);
}

enum precond_for solver_purpose(const struct krylov_solver *solver)
{
    return solver == &krylov_cg || solver->bilinear ? PRECOND_FOR_CG
           : solver == &krylov_minres               ? PRECOND_FOR_MINRES
                                                    : PRECOND_FOR_UNSYMMETRIC;
}

const struct krylov_solver *solver_with_precond(const struct krylov_solver *first, const char *name)
{
    return (first->symmetric || first->bilinear) && precond_is_unsymmetric(name) ? &krylov_gmres : first;
}

spmv_csr solver_sizes(const spmv_solver *s)
{
    spmv_csr sizes = s->a;
    if (s->ranks != NULL) {
        sizes.rows = sizes.cols = s->plan->ranks->rows;
        sizes.nnz = s->plan->ranks->nnz;
    }
    return sizes;
}

/* Beside one that may need many more iterations than a ball tells: one that needs fewer. So jacobi is none, and ilu0
 * one of jacobi; beside ilut, which may take more work than told, too. */
static bool may_be_rival(const char *name, const char *of)
{
    return strcmp(name, of) != 0 && strcmp(name, "jacobi") != 0 &&
           (strcmp(name, "ilu0") != 0 || strcmp(of, "ilut") == 0 || strcmp(of, "jacobi") == 0);
}

/* The one that takes least; of: as the rival of this one, NULL: of all. */
static const struct precond_estimate *least_of(const struct precond_estimate *list, int count, const char *of)
{
    const struct precond_estimate *least = NULL;
    for (int i = 0; i < count; i++)
        if (isfinite(list[i].cost.steps) && (of == NULL || may_be_rival(list[i].name, of)) &&
            (least == NULL || precond_cost_of_all(&list[i].cost) < precond_cost_of_all(&least->cost)))
            least = &list[i];
    return least;
}

/* gmres on a host, from PRECOND_SAMPLED_ROWS rows on: replaces the choice by the candidate that is best with a sample of
 * the matrix, and its rival by the next one. */
static spmv_status choose_by_sample(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                    struct precond_choice *choice)
{
    static const char *const names[] = {"ilu0", "ilut", "jacobi", "amg"};
    enum { COUNT = sizeof names / sizeof *names };
    const struct sample_source source = {.a = a, .options = options, .type = options->type};
    struct precond_estimate list[COUNT];
    char words[PRECOND_SENTENCE];
    for (int i = 0; i < COUNT; i++)
        list[i] = (struct precond_estimate){names[i],
                                            precond_cost(false, PRECOND_FOR_UNSYMMETRIC, names[i], a->rows, a->nnz, 0)};
    const spmv_status st = solver_sample_try(ctx, &source, &krylov_gmres, list, COUNT, words, sizeof words);
    if (st != SPMV_OK) /* without memory for a sample the choice stays */
        return st == SPMV_CANCELLED ? st : SPMV_OK;
    const struct precond_estimate *const best = least_of(list, COUNT, NULL);
    choice->spare = NULL;
    if (best == NULL)
        return SPMV_OK;
    const struct precond_estimate *const next = least_of(list, COUNT, best->name);
    choice->name = best->name;
    choice->rival = next != NULL ? next->name : strcmp(best->name, "ilut") != 0 ? "ilut" : NULL;
    choice->sampled[0] = *best;
    if (next != NULL)
        choice->sampled[1] = *next;
    choice->spare = strcmp(best->name, "ilut") != 0 ? "ilut" : NULL; /* where both are slow */
    snprintf(choice->why, sizeof choice->why, "%s", words);
    return SPMV_OK;
}

/* An ilut that was refused after so much work is the rival of what stands in for it: it takes more than that. */
static void keep_refused(const spmv_csr *a, int64_t work, struct precond_choice *choice)
{
    enum { TIMES = 2 };
    const struct precond_cost usual = precond_cost(false, PRECOND_FOR_UNSYMMETRIC, "ilut", a->rows, a->nnz, 0);
    if (choice->rival != NULL && strcmp(choice->rival, "ilut") == 0)
        choice->sampled[0] = (struct precond_estimate){
            "ilut", precond_cost_sampled(PRECOND_FOR_UNSYMMETRIC, "ilut", a->rows, a->nnz,
                                         TIMES * (double)work / (double)(a->rows + a->nnz), usual.steps)};
}

/* minres: schur for a saddle point system that it suits. *made: NULL if it does not. */
static spmv_status make_of_fields(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                  spmv_preconditioner **made)
{
    *made = NULL;
    if (a->rows < PRECOND_SAMPLED_ROWS)
        return SPMV_OK;
    const spmv_status st = precond_create_good_schur(ctx, a, options, made);
    if (st == SPMV_OK)
        snprintf(
            (*made)->why, sizeof(*made)->why,
            "zeros on the diagonal as of a saddle point system, and an estimate of the condition with it says that "
            "minres takes few iterations");
    else if (st != SPMV_CANCELLED)
        ctx->error[0] = '\0'; /* no failure */
    return st == SPMV_CANCELLED ? st : SPMV_OK;
}

/* "auto" for minres, gmres and bicgstab: the first choice that can be made. */
static spmv_status make_auto(spmv_context *ctx, enum precond_for purpose, const spmv_csr *a, bool real,
                             const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    if (purpose == PRECOND_FOR_MINRES && real) {
        TRY(make_of_fields(ctx, a, options, made));
        if (*made != NULL)
            return SPMV_OK;
    }
    struct precond_choice choice;
    const bool general = purpose == PRECOND_FOR_UNSYMMETRIC;
    const bool sampled = general && real && !context_on_device(ctx) && a->rows >= PRECOND_SAMPLED_ROWS;
    if (general && real && !sampled)
        TRY(precond_choose_unsymmetric(ctx, a, options, &choice));
    else
        TRY(precond_choose(ctx, purpose, NULL, &choice));
    if (sampled)
        TRY(choose_by_sample(ctx, a, options, &choice));
    for (;;) {
        const int64_t work = precond_choice_work(&choice, a);
        context_pace(ctx, work);
        st = general ? solver_make_unsymmetric(ctx, choice.name, a, options, made)
                     : spmv_preconditioner_create(ctx, choice.name, a, options, made);
        context_pace(ctx, 0);
        if (st == SPMV_OK || !precond_choose_next(ctx, st, &choice))
            break;
        if (st == SPMV_ERROR_LIMIT && work > 0 && !context_on_device(ctx))
            keep_refused(a, work, &choice);
    }
    if (st == SPMV_OK) {
        snprintf((*made)->why, sizeof(*made)->why, "%s", choice.why);
        (*made)->rival = precond_choice_rival(&choice);
        memcpy((*made)->sampled, choice.sampled, sizeof choice.sampled);
        (*made)->spare = context_on_device(ctx) || sampled ? choice.spare : NULL;
        ctx->error[0] = '\0'; /* those before are no failure */
    }
done:
    return st;
}

spmv_status solver_make_for(spmv_context *ctx, enum precond_for purpose, const char *name, const spmv_csr *a, bool real,
                            const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    if (purpose == PRECOND_FOR_UNSYMMETRIC && !choice_is_auto(name))
        return solver_make_unsymmetric(ctx, name, a, options, made);
    return purpose == PRECOND_FOR_CG || !choice_is_auto(name) ? spmv_preconditioner_create(ctx, name, a, options, made)
                                                              : make_auto(ctx, purpose, a, real, options, made);
}

/* Under "auto", factors may take an eighth of the memory of the machine, and half of what a limit leaves. */
enum { SHARE_OF_MACHINE = 8, SHARE_OF_LIMIT = 2 };

/* The most entries of factors, relative to those of the matrix: as the options say, within the share. */
static spmv_status limit_fill(const spmv_solver *s, const spmv_csr *a, double *fill)
{
    enum { USUAL_FILL = 10, BYTES = 12 /* of an entry: a number in f64 and a column */ };
    int64_t limit = 0;
    const int64_t most = min_i64(host_memory_bytes() / SHARE_OF_MACHINE, memory_limit_left(&limit) / SHARE_OF_LIMIT);
    const double share = (double)most / (BYTES * fmax(1, (double)a->nnz));
    if (share < 1)
        return context_fail(s->ctx, SPMV_ERROR_MEMORY,
                            "preconditioner ilut: factors with as many entries as A take more than their share of the "
                            "memory, %.3g MB",
                            1e-6 * (double)most);
    *fill = fmin(*fill == 0 ? USUAL_FILL : *fill, share);
    return SPMV_OK;
}

static spmv_status make_precond(spmv_solver *s, const struct krylov_solver *solver, const char *name,
                                spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    spmv_plan *const plan = s->inner != NULL ? s->inner : solver_plan(s);
    const spmv_csr *a = s->inner != NULL ? &s->narrow : solver_matrix(s);
    struct equivalent e = {.row_ptr = NULL};
    spmv_plan_info info;
    const enum precond_for purpose = solver_purpose(solver);
    const double fill = s->precond_options.fill;
    *made = NULL;
    TRY(spmv_plan_describe(plan, &info, sizeof info));
    if (type_is_complex(info.type) && (s->precond_options.fields != NULL || s->precond_options.schur != NULL))
        return context_fail(
            s->ctx, SPMV_ERROR_UNSUPPORTED,
            "spmv_solver: the options fields and schur are for real systems, not for %s: the fields are "
            "found by the diagonal",
            spmv_type_name(info.type));
    if (type_is_complex(info.type) && s->precond_options.near_nulls > 0)
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver: near-null-space vectors are for real systems, not for %s",
                            spmv_type_name(info.type));
    s->precond_options.type = type_part(info.type);
    if (s->precond_options.near_null_type == SPMV_TYPE_DEFAULT)
        s->precond_options.near_null_type = s->inner != NULL ? SPMV_F64 : s->precond_options.type; /* that of b */
    s->precond_options.plan = info.vectors == 1 && !type_is_complex(info.type) ? plan : NULL;
    if (s->no_entries) { /* the identity, which reads nothing */
        static const int64_t unread = 0;
        const int64_t rows = info.rows * type_parts(info.type);
        const spmv_csr sizes = csr_of(rows, rows, 0, &unread, NULL, NULL, s->precond_options.type, SPMV_MEMORY_CONTEXT);
        TRY(spmv_preconditioner_create(s->ctx, "none", &sizes, &s->precond_options, made));
        goto done;
    }
    if (solver->bilinear && type_is_complex(info.type) && a->val != NULL && type_is_complex(a->type) && a->rows > 0) {
        TRY(make_bilinear(s->ctx, name, a, &s->precond_options, made));
        goto done;
    }
    if (type_is_complex(info.type) && a->val != NULL && type_is_complex(a->type) && a->rows > 0) {
        TRY(equivalent_make(s->ctx, a, &e));
        a = &e.a;
    }
    if (purpose == PRECOND_FOR_UNSYMMETRIC && choice_is_auto(s->options.precond))
        TRY(limit_fill(s, a, &s->precond_options.fill));
    if (purpose == PRECOND_FOR_CG && choice_is_auto(name) && solver_may_sample(s))
        TRY(precond_create_sampled(s->ctx, a, &s->precond_options, made));
    else
        TRY(solver_make_for(s->ctx, purpose, name, a, !type_is_complex(info.type), &s->precond_options, made));
done:
    s->precond_options.fill = fill;
    if (st == SPMV_ERROR_SINGULAR && a == &e.a) {
        char sentence[400];
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
        context_fail(s->ctx, st, "of the real matrix with twice as many rows: %s", sentence);
    }
    equivalent_free(&e);
    return st;
}

/* Of ranks: they check the options, and make it together. */
static spmv_status make_on_ranks(const spmv_solver *s, enum precond_for purpose, const char *name,
                                 spmv_preconditioner **made)
{
    *made = NULL;
    return s->ranks->precond(s->ranks->self, purpose, name, s->negates, choice_is_auto(s->options.precond),
                             &s->precond_options, made);
}

/* The memory that a solve takes is set aside meanwhile: a preconditioner that leaves too little is
 * refused here, and under "auto" a smaller one follows. So does one after a set-up of too much work;
 * a preconditioner requested by name may take any. */
spmv_status solver_make_precond(spmv_solver *s, const struct krylov_solver *solver, const char *name,
                                spmv_preconditioner **made)
{
    const int64_t room = solver_room(s, solver);
    const bool aside = memory_take(room);
    const spmv_csr sizes = solver_sizes(s);
    if (choice_is_auto(s->options.precond))
        context_budget(s->ctx, precond_most_work(&sizes));
    const spmv_status st =
        s->ranks != NULL ? make_on_ranks(s, solver_purpose(solver), name, made) : make_precond(s, solver, name, made);
    context_budget(s->ctx, 0);
    if (aside)
        memory_give(room);
    return st;
}
