/* The solver of a matrix: owns the plan, the preconditioner and what they borrow.
 *
 * The solver holds A as plain CSR in the context's memory: the caller's arrays, or a copy of arrays
 * in host memory. The plan borrows it, and the preconditioner is made from it, also again from new
 * values. So there is one copy of the pattern, whatever the plan makes of it. With the option inner
 * there is a second array of values, in f32, under the same pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/clock.h"
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_common.h"
#include "solvers/solver_internal.h"

enum { RESTART = 50, MOST_RESTART = KRYLOV_MOST_BASIS - 1 };

void spmv_solver_options_init(spmv_solver_options *options, size_t size)
{
    const spmv_solver_options defaults = {
        .size = sizeof defaults, .vectors = 1, .rtol = 1e-8, .symmetry_check = SPMV_SYMMETRY_SAMPLED};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------- checks */

/* Those whose range does not depend on others. no_rows: of a rank, whose null vectors may be NULL then. */
static spmv_status check_ranges(spmv_context *ctx, const spmv_solver_options *o, bool no_rows)
{
    const spmv_status st = krylov_check_options(ctx, "spmv_solver_create",
                                                &(const struct krylov_options){.rtol = o->rtol,
                                                                               .atol = o->atol,
                                                                               .max_iterations = o->max_iterations,
                                                                               .zero_start = o->zero_start,
                                                                               .symmetry_check = o->symmetry_check});
    return st != SPMV_OK ? st
                         : OPTIONS_CHECK(ctx, "spmv_solver_create", {"vectors", o->vectors, 1, INFINITY},
                                         {"inner", o->inner, 0, 1}, {"restart", o->restart, 0, MOST_RESTART},
                                         {"null_block", o->null_block, 0, NULL_VECTORS_MOST},
                                         {"recycle", o->recycle, 0, RECYCLE_MOST},
                                         {"estimate_error", o->estimate_error, 0, 1}, {"accuracy", o->accuracy, 0, 15},
                                         {"null_vectors", o->null_vectors, o->null_space != NULL,
                                          o->null_space != NULL || no_rows ? NULL_VECTORS_MOST : 0});
}

static bool has_null_space(const spmv_solver_options *o)
{
    return o->null_vectors > 0 || o->null_block > 0;
}

static spmv_status check_null_space(spmv_context *ctx, const spmv_solver_options *o)
{
    return o->null_vectors == 0 || o->null_block == 0
               ? SPMV_OK
               : context_fail(ctx, SPMV_ERROR_ARGUMENT,
                              "spmv_solver_create: the options null_space and null_block are both given");
}

/* Checks the caller's plan before the first product with it, and takes its type and vectors. */
static spmv_status check_plan(spmv_context *ctx, const spmv_csr *a, spmv_solver_options *o)
{
    spmv_plan_info info;
    spmv_plan *const plan = o->plan;
    if (plan == NULL)
        return SPMV_OK;
    if (spmv_plan_context(plan) != ctx)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_solver_create: the plan belongs to another context");
    if (a->memory != SPMV_MEMORY_CONTEXT)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_solver_create: with the option plan the matrix must be in the context's memory");
    spmv_status st = spmv_plan_describe(plan, &info, sizeof info);
    if (st == SPMV_OK)
        st = krylov_check_plan("spmv_solver_create", plan, &info);
    if (st != SPMV_OK)
        return st;
    if (plan->ranks != NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_solver_create: the plan has the rows of one rank only");
    if (info.rows != a->rows || info.cols != a->cols || info.nnz != a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_solver_create: the plan is for %lld x %lld with %lld nonzeros, the matrix is %lld x "
                            "%lld with %lld",
                            (long long)info.rows, (long long)info.cols, (long long)info.nnz, (long long)a->rows,
                            (long long)a->cols, (long long)a->nnz);
    if (info.operation != SPMV_OPERATION_N)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: the plan is for the transpose of a matrix; products with the matrix "
                            "are needed");
    if (a->val != NULL && info.value_type != a->type)
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_solver_create: the plan is for values of type %s, those of the matrix have type %s",
                            spmv_type_name(info.value_type), spmv_type_name(a->type));
    if (o->vectors != 1 && o->vectors != info.vectors)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_solver_create: the plan is for %d vectors, the option vectors is %d", info.vectors,
                            o->vectors);
    if (o->recycle > 0 && info.vectors > 1)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: the option recycle solves right-hand sides one after the other: it "
                            "needs a plan for one vector, not for %d",
                            info.vectors);
    o->type = info.type;
    o->vectors = info.vectors;
    return st;
}

/* What can be checked before the plan exists. Sets the type of the caller's plan. */
static spmv_status check_arguments(spmv_context *ctx, const spmv_csr *a, spmv_solver_options *o)
{
    spmv_status st = plan_check_view(ctx, "spmv_solver_create", a, false);
    if (st == SPMV_OK)
        st = csr_check_square(ctx, "spmv_solver_create", a->rows, a->cols);
    if (st == SPMV_OK)
        st = check_ranges(ctx, o, false);
    if (st == SPMV_OK)
        st = check_plan(ctx, a, o);
    if (st != SPMV_OK)
        return st;
    if (type_is_half(o->type))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_solver_create: no solvers in type %s, only in f64, f32, c128, c64",
                            spmv_type_name(o->type));
    const struct krylov_solver *solver = NULL;
    st = solver_find(ctx, o->solver, &solver);
    if (st != SPMV_OK)
        return st;
    if (solver == &krylov_direct &&
        ((!choice_is_auto(o->precond) && strcmp(o->precond, "none") != 0) || o->own_precond != NULL))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_solver_create: the solver direct has no preconditioner");
    if (solver == &krylov_direct && has_null_space(o))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: the solver direct needs a matrix that is not singular: with null "
                            "vectors take another one, or fix one unknown for each");
    st = check_null_space(ctx, o);
    if (st != SPMV_OK)
        return st;
    const bool of_cg = o->inner != 0 || !choice_is_auto(o->rung); /* options */
    const struct krylov_solver *const sure = solver == NULL && of_cg ? &krylov_cg : solver;
    if (precond_is_unsymmetric(o->precond) && sure != NULL && (of_cg || sure->symmetric || sure->bilinear))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: the preconditioner %s is not symmetric: %s cannot use it", o->precond,
                            sure->name);
    if (of_cg && sure != &krylov_cg)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: the options inner and rung are for the solver cg, not %s", sure->name);
    return cg_check_rung(ctx, "spmv_solver_create", "rung", o->rung);
}

/* ------------------------------------------------------------- the matrix */

/* Allocates memory that the solver owns. */
static spmv_status own(spmv_solver *s, int64_t bytes, void **memory)
{
    const spmv_status st = context_alloc(s->ctx, bytes, memory);
    if (st == SPMV_OK)
        s->bytes += bytes;
    return st;
}

/* Sets s->a: the arrays of a in the context's memory. Row offsets of a copy have 32 bits if they
 * fit, so that the plan need not convert them. */
static spmv_status take_matrix(spmv_solver *s, const spmv_csr *a)
{
    const spmv_status st = csr_to_context(s->ctx, a, true, &s->a, &s->copies);
    s->bytes += s->copies.bytes;
    return st;
}

/* Writes the values of A to s->narrow_val, rounded to f32. */
static spmv_status narrow_values(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = s->ctx;
    const int64_t n = s->a.nnz;
    void *copy = NULL;
    const void *array = NULL;
    float *rounded = NULL;
    TRY(host_alloc(ctx, n * (int64_t)sizeof *rounded, "the matrix in f32", (void **)&rounded));
    TRY(context_read(ctx, s->a.val, n * (int64_t)sizeof(double), "values", &copy, &array));
    const double *const values = array;
    for (int64_t k = 0; k < n; k++) {
        rounded[k] = (float)values[k];
        if (isfinite(values[k]) && !isfinite(rounded[k])) {
            st = context_fail(ctx, SPMV_ERROR_LIMIT,
                              "spmv_solver: the inner iterations are in f32, and the value of entry %lld%s, %g, is too "
                              "large for f32",
                              context_number(ctx, k), context_counted(ctx), values[k]);
            goto done;
        }
    }
    TRY(spmv_upload(ctx, rounded, s->narrow_val, n * (int64_t)sizeof *rounded));
done:
    host_free(copy);
    host_free(rounded);
    return st;
}

/* ------------------------------------------------------------- plans and preconditioner */

spmv_status solver_make_plan(const spmv_solver *s, const spmv_csr *a, spmv_type type, int vectors, bool updates,
                             spmv_plan **plan)
{
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = type;
    o.vectors = vectors;
    o.update_values = updates && a->val != NULL;
    /* no digit depends on this */
    if (context_on_device(s->ctx) && o.vectors == 1)
        o.compression = SPMV_COMPRESSION_VALUES;
    return spmv_plan_create(s->ctx, a, &o, plan);
}

/* Makes the plan for the recurrence in f32. */
static spmv_status make_inner(spmv_solver *s, bool updates)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    if (info.type != SPMV_F64)
        return context_fail(s->ctx, SPMV_ERROR_TYPE, "spmv_solver_create: inner iterations need the type f64, not %s",
                            spmv_type_name(info.type));
    if (info.vectors != 1)
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: inner iterations support only one right-hand side");
    s->narrow = s->a;
    if (s->a.val != NULL && s->a.type == SPMV_F64 && s->a.nnz > 0) {
        TRY(own(s, s->a.nnz * (int64_t)sizeof(float), &s->narrow_val));
        TRY(narrow_values(s));
        s->narrow.val = s->narrow_val;
    }
    s->narrow.type = SPMV_F32;
    TRY(solver_make_plan(s, &s->narrow, SPMV_F32, 1, updates, &s->inner));
done:
    return st;
}

/* Makes another plan if that of A is not for as many vectors as are solved for at once. */
static spmv_status fit_plan(spmv_solver *s, bool updates)
{
    spmv_plan *made = NULL;
    const int vectors = solver_vectors_at_once(s);
    if (s->ranks != NULL || s->plan->vectors == vectors)
        return SPMV_OK;
    const spmv_status st = solver_make_plan(s, &s->a, s->options.type, vectors, updates, &made);
    if (st != SPMV_OK)
        return st;
    if (!s->borrows_plan)
        spmv_plan_destroy(s->plan);
    s->plan = made;
    s->borrows_plan = false;
    return SPMV_OK;
}

/* Chooses the solver, if it is not named, makes another plan if that needs one, and the system. */
static spmv_status choose(spmv_solver *s, bool updates)
{
    spmv_status st = SPMV_OK;
    if (s->free)
        TRY(solver_choose(s));
    else if (s->solver == &krylov_cg)
        TRY(solver_look_at_signs(s));
    s->symmetric = s->solver->symmetric;
    s->own_transpose = s->solver == &krylov_cocg;
    s->used = s->solver;
    TRY(fit_plan(s, updates));
    TRY(solver_make_system(s, updates));
done:
    return st;
}

/* The caller's plan, which check_plan has checked, or one of its own. */
static spmv_status take_plan(spmv_solver *s, bool updates)
{
    spmv_plan *const given = s->options.plan;
    s->borrows_plan = given != NULL && given->vectors == solver_vectors_at_once(s);
    if (s->borrows_plan)
        s->plan = given;
    return s->borrows_plan ? SPMV_OK
                           : solver_make_plan(s, &s->a, s->options.type, solver_vectors_at_once(s), updates, &s->plan);
}

static void drop_precond(spmv_solver *s)
{
    if (s->precond != s->options.own_precond)
        spmv_preconditioner_destroy(s->precond);
    s->precond = NULL;
}

/* Destroys what was made when other preconditioners failed. */
static void drop_resorts(spmv_solver *s)
{
    spmv_preconditioner_destroy(s->simple);
    spmv_preconditioner_destroy(s->none);
    spmv_preconditioner_destroy(s->rival);
    for (int i = 0; i < SOLVER_OTHERS; i++) {
        spmv_preconditioner_destroy(s->others[i]);
        s->others[i] = NULL;
    }
    s->simple = s->none = s->rival = NULL;
    for (int i = 0; i < SOLVER_RESORTS; i++) {
        spmv_preconditioner_destroy(s->ilut[i]);
        s->ilut[i] = NULL;
    }
}

/* Makes the preconditioner of this name, or for "auto" the one that has won a race with other values. */
static spmv_status make_precond(spmv_solver *s, const char *name)
{
    if (s->settled && s->solver == s->began && choice_is_auto(name) && s->verdict[0] != '\0' &&
        (s->won != &krylov_direct || direct_update(s->direct, solver_matrix(s)) == SPMV_OK) &&
        solver_make_precond(s, s->won, s->verdict, &s->precond) == SPMV_OK) {
        snprintf(s->precond->why, sizeof s->precond->why, "%s", s->why_verdict);
        solver_take_verdict(s);
        return SPMV_OK;
    }
    if (s->settled && s->won == &krylov_direct) {
        direct_destroy(s->direct);
        s->direct = NULL;
    }
    s->settled = false;
    return solver_make_precond(s, s->solver, name, &s->precond);
}

/* Makes what the solver needs of the present values, besides the plan. */
static spmv_status make_rest(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    const bool direct = s->solver == &krylov_direct;
    if (direct && !s->free) {
        st = s->direct != NULL ? direct_update(s->direct, &s->a) : direct_create(s->ctx, &s->a, s->library, &s->direct);
        if (st == SPMV_OK)
            snprintf(s->why, sizeof s->why, "%s: %s", CHOICE_NAMED, direct_brief(s->direct));
    }
    if (st == SPMV_OK && s->options.own_precond != NULL && !direct)
        s->precond = s->options.own_precond;
    else if (st == SPMV_OK)
        st = make_precond(s, direct ? "none" : s->options.precond);
    s->failed = st;
    snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(s->ctx));
    return st;
}

/* ------------------------------------------------------------- making and destroying */

/* Copies the caller's options, and what they point to. */
static spmv_status take_options(spmv_solver *s, const spmv_solver_options *o)
{
    s->options = *o;
    s->options.precond_options = NULL;
    s->options.solver = NULL; /* s->solver */
    s->free = choice_is_auto(o->solver);
    solver_find(s->ctx, o->solver, &s->solver);
    s->library = direct_library_of(o->solver);
    if (s->free)
        s->solver = &krylov_cg; /* until solver_choose, which needs the plan */
    else
        snprintf(s->why, sizeof s->why, CHOICE_NAMED);
    s->options.restart = o->restart != 0 ? o->restart : RESTART;
    if (o->precond != NULL) {
        snprintf(s->precond_name, sizeof s->precond_name, "%s", o->precond);
        s->options.precond = s->precond_name;
    }
    if (o->rung != NULL) {
        snprintf(s->rung, sizeof s->rung, "%s", o->rung);
        s->options.rung = s->rung;
    }
    spmv_preconditioner_options_init(&s->precond_options, sizeof s->precond_options);
    const spmv_status st =
        options_take(s->ctx, "preconditioner", &s->precond_options, sizeof s->precond_options, o->precond_options);
    if (st == SPMV_OK && s->options.own_precond == NULL && precond_wants_schur(s->options.precond, &s->precond_options))
        s->options.precond = "schur";
    return st;
}

/* Copies the fields of the rows and the matrix for the Schur complement, which new values need again. */
static spmv_status take_fields(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner_options *const p = &s->precond_options;
    if (p->fields != NULL) {
        TRY(host_alloc(s->ctx, max_i64(1, s->a.rows) * (int64_t)sizeof *s->fields, "fields", (void **)&s->fields));
        memcpy(s->fields, p->fields, (size_t)s->a.rows * sizeof *s->fields);
        p->fields = s->fields;
    }
    if (p->schur != NULL) {
        TRY(spmv_matrix_check(s->ctx, p->schur));
        TRY(spmv_matrix_copy(s->ctx, p->schur, SPMV_MEMORY_CONTEXT, &s->schur));
        spmv_matrix_view(s->schur, &s->schur_view);
        p->schur = &s->schur_view;
    }
done:
    return st;
}

/* Makes the modes of the option coordinates, which then are near_null of the options. */
static spmv_status take_coordinates(spmv_solver *s)
{
    int64_t bytes = 0;
    if (s->options.own_precond != NULL)
        return SPMV_OK;
    const spmv_status st =
        precond_take_coordinates(s->ctx, s->options.precond, &s->a, &s->precond_options, &s->modes, &bytes);
    s->bytes += bytes;
    return st;
}

/* Null vectors are near-null vectors too, unless others are given. */
static void take_null_space(spmv_solver *s)
{
    spmv_preconditioner_options *const p = &s->precond_options;
    if (s->options.null_vectors == 0 || s->options.null_vectors > AMG_NULLS || s->options.own_precond != NULL ||
        p->near_nulls > 0 || p->dimensions > 0 || type_is_complex(s->a.type) || type_is_complex(s->options.type))
        return;
    p->near_null = s->options.null_space;
    p->near_nulls = s->options.null_vectors;
    p->near_null_type = SPMV_TYPE_DEFAULT;
}

/* Digits that the type of x does not have. */
static spmv_status check_accuracy(const spmv_solver *s)
{
    const spmv_type type = s->plan->type;
    const int most = type_part(type) == SPMV_F32 ? 6 : 15;
    return s->options.accuracy <= most
               ? SPMV_OK
               : context_fail(s->ctx, SPMV_ERROR_ARGUMENT,
                              "spmv_solver_create: the option accuracy is %d; type %s has up to %d digits",
                              s->options.accuracy, spmv_type_name(type), most);
}

spmv_status solver_set_vectors(spmv_solver *s, int vectors)
{
    enum { ARRAYS = 5 };
    spmv_status st = SPMV_OK;
    void **const arrays[ARRAYS] = {(void **)&s->results, (void **)&s->errors, (void **)&s->forward_errors,
                                   (void **)&s->null_parts, (void **)&s->told};
    const size_t size[ARRAYS] = {sizeof *s->results, sizeof *s->errors, sizeof *s->forward_errors,
                                 sizeof *s->null_parts, sizeof *s->told};
    void *made[ARRAYS] = {NULL};
    for (int i = 0; i < ARRAYS && vectors > s->room; i++)
        TRY(host_alloc(s->ctx, vectors * (int64_t)size[i], "results of a solver", &made[i]));
    for (int i = 0; i < ARRAYS && vectors > s->room; i++) {
        host_free(*arrays[i]);
        *arrays[i] = made[i];
        made[i] = NULL;
    }
    s->room = vectors > s->room ? vectors : s->room;
    s->options.vectors = vectors;
done:
    for (int i = 0; i < ARRAYS; i++)
        host_free(made[i]);
    return st;
}

/* Of each right-hand side; and the space for recycling. */
static spmv_status make_results(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    TRY(solver_set_vectors(s, s->options.vectors));
    if (s->options.recycle > 0)
        TRY(recycle_create(s->ctx, s->plan->type, s->a.rows, s->options.recycle, &s->space));
done:
    return st;
}

/* A solver of the same system with other scales takes what has just solved it, if that was worth a set-up. jacobi and
 * none cost nothing, and the other scales may be those that need more. */
static void take_verdict_of(spmv_solver *s, const spmv_solver *like)
{
    const spmv_preconditioner *const m = like->used_precond;
    if (!s->free || m == NULL || precond_is_identity(m) || precond_inverse_diagonal(m) != NULL)
        return;
    s->settled = true;
    s->began = s->solver;
    s->won = like->used;
    snprintf(s->verdict, sizeof s->verdict, "%s", precond_name(m));
    snprintf(s->why_verdict, sizeof s->why_verdict, "that of the system before it was scaled");
}

/* updates: the values may be replaced later. direct: as in solver_create_with. like: as in solver_create_like; NULL. */
static spmv_status create(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options, bool updates,
                          struct direct **direct, const spmv_solver *like, spmv_solver **solver)
{
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    spmv_solver *s = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    TRY(options_take(ctx, "solver", &o, sizeof o, options));
    TRY(check_arguments(ctx, a, &o));
    TRY(host_alloc(ctx, sizeof *s, "a solver", (void **)&s));
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    TRY(take_options(s, &o));
    TRY(take_matrix(s, a));
    TRY(take_fields(s));
    TRY(take_coordinates(s));
    take_null_space(s);
    /* on a GPU, products with values that stay are faster: renew_plan */
    s->plans_update = updates && !context_on_device(ctx);
    TRY(take_plan(s, s->plans_update));
    TRY(check_accuracy(s));
    TRY(choose(s, s->plans_update));
    if (o.inner != 0)
        TRY(make_inner(s, s->plans_update));
    if (direct != NULL) {
        s->direct = *direct;
        *direct = NULL;
    }
    if (like != NULL)
        take_verdict_of(s, like);
    TRY(make_rest(s));
    if (!s->negates) /* the preconditioner may take all right-hand sides at once */
        TRY(fit_plan(s, s->plans_update));
    TRY(make_results(s));
    s->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_solver_destroy(s);
        s = NULL;
    }
    *solver = s;
    return st;
}

/* ------------------------------------------------------------- from a plan */

/* Options that need the entries of the matrix. */
static const char *needs_entries(const spmv_solver_options *o, const struct krylov_solver *solver)
{
    return solver == &krylov_direct ? "the solver direct"
           : o->inner != 0          ? "the option inner"
           : o->plan != NULL        ? "the option plan"
           : has_null_space(o)      ? "null vectors"
           : !choice_is_auto(o->precond) && strcmp(o->precond, "none") != 0
               ? "a preconditioner by name, where own_precond takes a function"
               : NULL;
}

static spmv_status check_for_plan(spmv_plan *plan, const spmv_solver_options *o)
{
    static const char call[] = "spmv_solver_create_for_plan";
    spmv_context *const ctx = plan->ctx;
    const struct krylov_solver *solver = NULL;
    spmv_plan_info info;
    spmv_status st = spmv_plan_describe(plan, &info, sizeof info);
    if (st == SPMV_OK)
        st = krylov_check_plan(call, plan, &info);
    if (st == SPMV_OK)
        st = check_ranges(ctx, o, false);
    if (st == SPMV_OK)
        st = solver_find(ctx, o->solver, &solver);
    if (st != SPMV_OK)
        return st;
    if (plan->ranks != NULL || info.vectors != 1 || o->vectors != 1)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the plan must be of one vector and of one rank", call);
    const char *const refused = needs_entries(o, solver);
    if (refused != NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: %s: that needs the entries of the matrix", call, refused);
    if (o->type != SPMV_TYPE_DEFAULT && o->type != info.type)
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: the plan has type %s, the option type is %s", call,
                            spmv_type_name(info.type), spmv_type_name(o->type));
    if (!choice_is_auto(o->rung) && solver != NULL && solver != &krylov_cg)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the option rung is for the solver cg, not %s", call,
                            solver->name);
    return cg_check_rung(ctx, call, "rung", o->rung);
}

static spmv_status create_for_plan(spmv_plan *plan, const spmv_solver_options *options, spmv_solver **solver)
{
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = plan->ctx;
    spmv_solver *s = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    TRY(options_take(ctx, "solver", &o, sizeof o, options));
    TRY(check_for_plan(plan, &o));
    o.type = plan->type;
    o.precond = "none";
    TRY(host_alloc(ctx, sizeof *s, "a solver", (void **)&s));
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    s->plan = plan;
    s->borrows_plan = s->no_entries = true;
    s->a.rows = plan->a.rows;
    s->a.cols = plan->a.cols;
    s->a.type = plan->type;
    s->a.memory = SPMV_MEMORY_CONTEXT;
    TRY(take_options(s, &o));
    TRY(check_accuracy(s));
    TRY(choose(s, false));
    TRY(make_rest(s));
    TRY(make_results(s));
    s->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_solver_destroy(s);
        s = NULL;
    }
    *solver = s;
    return st;
}

spmv_status spmv_solver_create_for_plan(spmv_plan *plan, const spmv_solver_options *options, spmv_solver **solver)
{
    bool outer = false;
    if (solver != NULL)
        *solver = NULL;
    if (plan == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_status st = context_need(plan->ctx, "spmv_solver_create_for_plan", "solver", solver);
    if (st == SPMV_OK)
        st = context_hold(plan->ctx, &outer);
    return st != SPMV_OK ? st : context_release(plan->ctx, outer, create_for_plan(plan, options, solver));
}

/* ------------------------------------------------------------- ranks */

static spmv_status check_for_rank(const spmv_plan *plan, const spmv_solver_options *o,
                                  const struct krylov_solver **solver)
{
    spmv_context *const ctx = plan->ctx;
    spmv_status st = check_ranges(ctx, o, plan->a.rows == 0);
    if (st == SPMV_OK)
        st = check_null_space(ctx, o);
    if (st == SPMV_OK)
        st = solver_find(ctx, o->solver, solver);
    if (st != SPMV_OK)
        return st;
    const char *const refused = *solver == &krylov_direct ? "the solver direct: take gmres with the preconditioner ilut"
                                : *solver == &krylov_cocg ? "the solver cocg: take gmres"
                                : o->inner != 0           ? "the option inner: take type f32 with a larger rtol, or f64"
                                : o->own_precond != NULL  ? "the option own_precond: take a preconditioner by its name"
                                : o->plan != NULL         ? "the option plan: the matrix of the group has one"
                                : o->on_iterate != NULL   ? "the option on_iterate: on_iteration tells the residual"
                                : o->recycle > 0          ? "the option recycle"
                                                          : NULL;
    if (refused != NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_group_solver_create: not on ranks: %s", refused);
    const bool of_cg = !choice_is_auto(o->rung);
    const struct krylov_solver *const sure = *solver == NULL && of_cg ? &krylov_cg : *solver;
    if (precond_is_unsymmetric(o->precond) && sure != NULL && sure->symmetric)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_group_solver_create: the preconditioner %s is not symmetric: %s cannot use it",
                            o->precond, sure->name);
    if (of_cg && sure != &krylov_cg)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_group_solver_create: the option rung is for the solver cg, not %s", sure->name);
    return SPMV_OK;
}

static spmv_status prepare_for_rank(spmv_solver *s, const spmv_solver_options *options)
{
    spmv_status st = SPMV_OK;
    spmv_solver_options o;
    const struct krylov_solver *solver = NULL;
    spmv_solver_options_init(&o, sizeof o);
    TRY(options_take(s->ctx, "solver", &o, sizeof o, options));
    TRY(check_for_rank(s->plan, &o, &solver));
    o.type = s->plan->type;
    o.vectors = 1; /* the caller solves for several one after the other */
    TRY(take_options(s, &o));
    TRY(check_accuracy(s));
    take_null_space(s);
    TRY(solver_set_vectors(s, 1));
done:
    return st;
}

spmv_status solver_create_for_rank(spmv_plan *plan, const struct solver_ranks *ranks,
                                   const spmv_solver_options *options, spmv_solver **solver)
{
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    spmv_solver *s = NULL;
    TRY(host_alloc(plan->ctx, sizeof *s, "a solver", (void **)&s));
    memset(s, 0, sizeof *s);
    s->ctx = plan->ctx;
    s->plan = plan;
    s->borrows_plan = true;
    s->ranks = ranks;
    s->a = plan->a;
    st = prepare_for_rank(s, options);
    TRY(ranks->agree(ranks->self, st));
    TRY(choose(s, false));
    TRY(make_rest(s));
    s->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_solver_destroy(s);
        s = NULL;
    }
    *solver = s;
    return st;
}

spmv_status spmv_solver_create(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options,
                               spmv_solver **solver)
{
    const spmv_status st = context_need(ctx, "spmv_solver_create", "solver", solver);
    return st != SPMV_OK ? st : create(ctx, a, options, true, NULL, NULL, solver);
}

spmv_status solver_create_with(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options,
                               struct direct **direct, spmv_solver **solver)
{
    return create(ctx, a, options, false, direct, NULL, solver);
}

spmv_status solver_create_like(const spmv_solver *like, const spmv_csr *a, const spmv_solver_options *options,
                               spmv_solver **solver)
{
    return create(like->ctx, a, options, false, NULL, like, solver);
}

void spmv_solver_destroy(spmv_solver *s)
{
    if (s == NULL || object_destroyed_later(&s->use))
        return;
    solver_drop_adjoint(s);
    drop_precond(s);
    solver_scaled_destroy(s->scaled);
    drop_resorts(s);
    direct_destroy(s->direct);
    solver_drop_system(s);
    spmv_plan_destroy(s->inner);
    if (!s->borrows_plan)
        spmv_plan_destroy(s->plan);
    csr_free_context(s->ctx, &s->copies);
    spmv_free(s->ctx, s->narrow_val);
    context_free(s->ctx, s->modes);
    context_freed(s->ctx);
    host_free(s->fields);
    spmv_matrix_destroy(s->schur);
    host_free(s->results);
    host_free(s->errors);
    host_free(s->forward_errors);
    host_free(s->null_parts);
    host_free(s->told);
    recycle_destroy(s->space);
    host_free(s);
}

/* ------------------------------------------------------------- new values */

/* Gives a plan new values. One that was made for values that stay is replaced. */
static spmv_status renew_plan(const spmv_solver *s, const spmv_csr *a, spmv_plan **plan)
{
    spmv_plan *made = NULL;
    spmv_plan_info info;
    if (s->plans_update)
        return spmv_plan_update_values(*plan, a->val);
    spmv_status st = spmv_plan_describe(*plan, &info, sizeof info);
    if (st == SPMV_OK)
        st = solver_make_plan(s, a, info.type, info.vectors, true, &made);
    if (st != SPMV_OK)
        return st;
    spmv_plan_destroy(*plan);
    *plan = made;
    return SPMV_OK;
}

/* A dense factor is made anew for new values. Another one keeps the analysis, if the caller wants direct by name, or that
 * has won. */
static void drop_dense(spmv_solver *s)
{
    s->direct_takes = 0;
    s->direct_lacks[0] = '\0';
    if ((!s->free || (s->settled && s->won == &krylov_direct)) && s->failed == SPMV_OK)
        return;
    direct_destroy(s->direct);
    s->direct = NULL;
}

/* What solves of the present values use besides the plan. keeps: the preconditioner, which takes new values. */
static void drop_rest(spmv_solver *s, bool keeps)
{
    solver_drop_adjoint(s);
    recycle_renew(s->space);
    solver_scaled_destroy(s->scaled);
    s->scaled = NULL;
    drop_resorts(s);
    s->used_precond = NULL;
    drop_dense(s);
    if (!keeps) { /* it may use the plan */
        drop_precond(s);
        solver_drop_system(s);
    }
}

/* After new values: if they have failed, solves fail with that. */
static spmv_status end_update(spmv_solver *s, spmv_status st)
{
    if (st != SPMV_OK) {
        s->failed = st;
        snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(s->ctx));
        drop_precond(s);
    }
    return st;
}

spmv_status solver_renew_for_rank(spmv_solver *s, spmv_plan *plan)
{
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    drop_rest(s, false);
    s->settled = false; /* as a new one: no verdict of a race with other values */
    s->plan = plan;
    s->a = plan->a;
    TRY(choose(s, false));
    TRY(make_rest(s));
    s->seconds = monotonic_seconds() - begin;
done:
    return end_update(s, st);
}

/* spmv_solver_update_values on a context that this thread holds. */
static spmv_status update_values(spmv_solver *s, const void *values)
{
    const double begin = monotonic_seconds();
    spmv_context *const ctx = s->ctx;
    spmv_status st = object_free_of_calls(ctx, &s->use, "spmv_solver_update_values", "solver");
    if (st != SPMV_OK)
        return st;
    if (s->ranks != NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_update_values: the solver is one of several ranks: take "
                            "spmv_group_solver_update_values");
    if (s->a.val == NULL && !s->no_entries)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_solver_update_values: a pattern has no values");
    if (s->options.plan != NULL || s->no_entries)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_update_values: the solver was made with a plan of the caller");
    st = context_need(ctx, "spmv_solver_update_values", "values", values);
    if (st == SPMV_OK)
        st = spmv_synchronize(ctx); /* refuses a capture before anything changes */
    if (st != SPMV_OK)
        return st;
    const bool renews = s->precond != NULL && s->precond != s->options.own_precond && precond_renews(s->precond);
    drop_rest(s, renews);
    if (s->copies.val != NULL)
        TRY(ctx->backend->map(ctx, SPMV_MAP_COPY, SPMV_I32, values, s->copies.val,
                              s->a.nnz * (int64_t)(spmv_type_size(s->a.type) / 4)));
    else
        s->a.val = values;
    TRY(renew_plan(s, &s->a, &s->plan));
    if (s->narrow_val != NULL)
        TRY(narrow_values(s));
    else
        s->narrow.val = s->a.val;
    if (s->inner != NULL)
        TRY(renew_plan(s, &s->narrow, &s->inner));
    s->plans_update = true;
    TRY(choose(s, true));
    if (renews && s->solver == &krylov_direct) /* a dense factor exists now */
        drop_precond(s);
    if (renews && s->precond != NULL)
        TRY(spmv_preconditioner_update_values(s->precond, s->inner != NULL ? s->narrow.val : solver_matrix(s)->val));
    else
        TRY(make_rest(s));
    if (!s->negates)
        TRY(fit_plan(s, true));
    s->seconds = monotonic_seconds() - begin;
done:
    return end_update(s, st);
}

spmv_status spmv_solver_update_values(spmv_solver *s, const void *values)
{
    bool outer = false;
    if (s == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_hold(s->ctx, &outer);
    return st != SPMV_OK ? st : context_release(s->ctx, outer, update_values(s, values));
}

spmv_status spmv_solver_set_callbacks(spmv_solver *s, spmv_cg_fn on_iteration, spmv_iterate_fn on_iterate, void *user)
{
    bool outer = false;
    if (s == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_status st = context_hold(s->ctx, &outer);
    if (st != SPMV_OK)
        return st;
    st = object_free_of_calls(s->ctx, &s->use, "spmv_solver_set_callbacks", "solver");
    if (st == SPMV_OK) {
        s->options.on_iteration = on_iteration;
        s->options.on_iterate = on_iterate;
        s->options.user = user;
    }
    return context_release(s->ctx, outer, st);
}

/* ------------------------------------------------------------- solving */

/* The initial value of a result. */
static const spmv_solver_result unsolved = {.size = sizeof unsolved,
                                            .status = SPMV_ERROR_ARGUMENT,
                                            .solver = "",
                                            .rung = "",
                                            .precond = "none",
                                            .error_estimate = -1,
                                            .backward_error = -1,
                                            .backward_row = -1,
                                            .null_part = -1,
                                            .forward_error = -1,
                                            .given_residual = -1,
                                            .start_residual = -1};

/* Writes the result of right-hand side v, if there is room. */
static void give_result(spmv_solver_result *result, size_t size, int v, const spmv_solver_result *full)
{
    if (result != NULL)
        result_write((char *)result + (size_t)v * size, size, full, sizeof *full);
}

static void give_results(const spmv_solver *s, double seconds, spmv_solver_result *result, size_t size)
{
    spmv_preconditioner_info info;
    spmv_solver_result full = unsolved;
    if (result == NULL || spmv_preconditioner_describe(s->used_precond, &info, sizeof info) != SPMV_OK)
        return;
    full.setup_seconds = s->seconds;
    full.solve_seconds = seconds;
    snprintf(full.why_solver, sizeof full.why_solver, "%s", s->why_used);
    snprintf(full.why_precond, sizeof full.why_precond, "%s", info.why);
    for (int v = 0; v < s->options.vectors; v++) {
        const spmv_cg_result *const r = &s->results[v];
        full.iterations = r->iterations;
        full.restarts = r->restarts;
        full.norm_b = r->norm_b;
        full.tolerance = r->tolerance;
        full.recurrence_residual = r->recurrence_residual;
        full.true_residual = r->true_residual;
        full.error_estimate = r->error_estimate;
        full.status = r->status;
        full.backward_error = s->errors[v].row >= 0 ? s->errors[v].omega : -1;
        full.backward_row = s->errors[v].row;
        full.null_vectors = null_space_count(s->null_space);
        full.null_part = s->null_space != NULL ? s->null_parts[v] : -1;
        full.forward_error = s->forward_errors[v];
        full.recycled = s->told[v].vectors;
        full.given_residual = s->told[v].given;
        full.start_residual = s->told[v].start;
        full.solver = s->used->name;
        full.rung = r->rung;
        memcpy(full.precond, r->precond, sizeof full.precond);
        memcpy(full.why_rung, r->why, sizeof full.why_rung);
        give_result(result, size, v, &full);
    }
}

/* The results of a solve that did not begin, for so many right-hand sides. */
static spmv_status give_failures(int vectors, spmv_status st, spmv_solver_result *result, size_t size)
{
    spmv_solver_result full = unsolved;
    full.status = st;
    for (int v = 0; v < vectors; v++)
        give_result(result, size, v, &full);
    return st;
}

/* Whether the solver may solve for so many right-hand sides. */
static spmv_status check_vectors(const spmv_solver *s, const char *call, int vectors)
{
    if (vectors < 1)
        return context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: vectors is %d: it must be at least 1", call, vectors);
    if (vectors != 1 && s->no_entries)
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED, "%s: a solver of a plan solves for one right-hand side",
                            call);
    return SPMV_OK;
}

/* spmv_solver_solve_many on a context that this thread holds. */
static spmv_status solve(spmv_solver *s, const char *call, spmv_operation operation, int vectors, const void *b,
                         void *x, spmv_solver_result *result, size_t size)
{
    const spmv_solver *by = s;
    const int before = s->options.vectors;
    spmv_status st = object_free_of_calls(s->ctx, &s->use, call, "solver");
    if (st == SPMV_OK && operation != SPMV_OPERATION_N && operation != SPMV_OPERATION_T &&
        operation != SPMV_OPERATION_H)
        st = context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: no such operation (%d)", call, (int)operation);
    if (st == SPMV_OK && s->precond == NULL)
        st = context_fail(s->ctx, s->failed, "%s", s->sentence);
    if (st == SPMV_OK)
        st = check_vectors(s, call, vectors);
    if (st == SPMV_OK)
        st = solver_set_vectors(s, vectors);
    if (st != SPMV_OK)
        return give_failures(vectors, st, result, size);
    const double begin = monotonic_seconds();
    spmv_plan *const plans[] = {s->plan, s->inner};
    const spmv_preconditioner *const precond = s->precond;
    s->use.calls++;
    plan_begin_use(plans[0]);
    plan_begin_use(plans[1]);
    precond_begin_use(precond);
    st = solver_solve_operation(s, operation, b, x, &by);
    if (by == NULL) /* the solve did not begin */
        give_failures(vectors, st, result, size);
    else
        give_results(by, monotonic_seconds() - begin, result, size);
    s->options.vectors = before;
    precond_end_use(precond);
    plan_end_use(plans[1]);
    plan_end_use(plans[0]);
    if (object_end_use(&s->use))
        spmv_solver_destroy(s);
    return st;
}

/* vectors: NULL: the option. */
static spmv_status hold_and_solve(spmv_solver *s, const char *call, spmv_operation operation, const int *vectors,
                                  const void *b, void *x, spmv_solver_result *result, size_t size)
{
    bool outer = false;
    if (s == NULL) {
        give_result(result, size, 0, &unsolved);
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_context *const ctx = s->ctx;
    const spmv_status st = context_hold(ctx, &outer);
    const int count = vectors != NULL ? *vectors : s->options.vectors;
    return st != SPMV_OK ? give_failures(count, st, result, size)
                         : context_release(ctx, outer, solve(s, call, operation, count, b, x, result, size));
}

spmv_status spmv_solver_solve(spmv_solver *s, const void *b, void *x, spmv_solver_result *result, size_t size)
{
    return hold_and_solve(s, "spmv_solver_solve", SPMV_OPERATION_N, NULL, b, x, result, size);
}

spmv_status spmv_solver_solve_operation(spmv_solver *s, spmv_operation operation, const void *b, void *x,
                                        spmv_solver_result *result, size_t size)
{
    return hold_and_solve(s, "spmv_solver_solve_operation", operation, NULL, b, x, result, size);
}

spmv_status spmv_solver_solve_many(spmv_solver *s, spmv_operation operation, int vectors, const void *b, void *x,
                                   spmv_solver_result *result, size_t size)
{
    return hold_and_solve(s, "spmv_solver_solve_many", operation, &vectors, b, x, result, size);
}

spmv_status spmv_solver_describe(const spmv_solver *s, spmv_solver_info *info, size_t size)
{
    spmv_solver_info full = {.size = sizeof full};
    spmv_plan_info plan;
    spmv_preconditioner_info precond;
    const spmv_status st = result_begin(s != NULL ? s->ctx : NULL, "spmv_solver_describe", info, size);
    if (st != SPMV_OK)
        return st;
    full.solver = s->solver->name;
    full.why = s->why;
    full.seconds = s->seconds;
    full.plan = s->plan;
    full.precond = s->used_precond != NULL ? s->used_precond : s->precond;
    full.bytes = s->bytes;
    if (!s->borrows_plan && spmv_plan_describe(s->plan, &plan, sizeof plan) == SPMV_OK)
        full.bytes += plan.bytes;
    if (s->direct != NULL)
        full.bytes += direct_bytes(s->direct);
    const spmv_plan *const plans[] = {s->inner, s->negative_plan, s->single};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (spmv_plan_describe(plans[i], &plan, sizeof plan) == SPMV_OK)
            full.bytes += plan.bytes;
    const spmv_preconditioner *const made[] = {s->precond, s->simple, s->none};
    for (int i = 0; i < 3 + SOLVER_RESORTS; i++)
        if (spmv_preconditioner_describe(i < 3 ? made[i] : s->ilut[i - 3], &precond, sizeof precond) == SPMV_OK)
            full.bytes += precond.bytes;
    if (s->negative_val != NULL)
        full.bytes += s->a.nnz * (int64_t)spmv_type_size(s->a.type);
    full.bytes += null_space_bytes(s->null_space) + solver_scaled_bytes(s->scaled) + solver_adjoint_bytes(s) +
                  recycle_bytes(s->space);
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}

spmv_status spmv_solver_determinant(const spmv_solver *s, spmv_determinant *determinant, size_t size)
{
    spmv_determinant full = {.size = sizeof full, .positive = -1, .negative = -1, .zero = -1};
    spmv_status st = result_begin(s != NULL ? s->ctx : NULL, "spmv_solver_determinant", determinant, size);
    if (st != SPMV_OK)
        return st;
    struct direct_determinant det = {.positive = -1, .negative = -1, .zero = -1};
    if (s->precond == NULL)
        st = context_fail(s->ctx, s->failed, "%s", s->sentence);
    else if (s->direct == NULL)
        st = context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                          "spmv_solver_determinant: the solver %s has no factors of A: take direct", s->solver->name);
    else
        st = direct_determinant(s->direct, &det);
    if (s->negates && (s->a.rows % 2 != 0)) { /* the factors are those of -A */
        det.phase[0] = -det.phase[0];
        det.phase[1] = -det.phase[1];
    }
    full.log_abs = det.log;
    full.phase[0] = det.phase[0] + 0; /* no -0 */
    full.phase[1] = det.phase[1] + 0;
    full.positive = s->negates ? det.negative : det.positive;
    full.negative = s->negates ? det.positive : det.negative;
    full.zero = det.zero;
    result_write(determinant, size, &full, sizeof full);
    return st;
}

/* The result of a solve that could not begin, for each right-hand side. */
static void give_failure(const spmv_solver_options *options, spmv_status st, spmv_solver_result *result, size_t size)
{
    spmv_solver_result full = unsolved;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    full.status = st;
    give_result(result, size, 0, &full);
    if (options != NULL && options_read(&o, sizeof o, options))
        for (int v = 1; v < o.vectors; v++)
            give_result(result, size, v, &full);
}

spmv_status spmv_solve(spmv_context *ctx, const spmv_csr *a, const void *b, void *x, const spmv_solver_options *options,
                       spmv_solver_result *result, size_t size)
{
    spmv_solver *solver = NULL;
    spmv_csr borrowed;
    if (a != NULL && ctx != NULL && !context_on_device(ctx)) {
        borrowed = *a;
        borrowed.memory = a->memory == SPMV_MEMORY_HOST ? SPMV_MEMORY_CONTEXT : a->memory;
        a = &borrowed;
    }
    spmv_status st = ctx == NULL ? SPMV_ERROR_ARGUMENT : create(ctx, a, options, false, NULL, NULL, &solver);
    if (st != SPMV_OK) {
        give_failure(options, st, result, size);
        return st;
    }
    st = spmv_solver_solve(solver, b, x, result, size);
    spmv_solver_destroy(solver);
    return st;
}
