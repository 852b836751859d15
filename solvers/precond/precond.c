/* Preconditioners: checks arguments once, reads what the requested kind needs of the matrix, and
 * makes it. "none" needs nothing. "amg" reads the arrays where they are. Of a matrix on a GPU,
 * "jacobi", "fsai" and "auto" need only the diagonal, which is summed there; other kinds need a copy of the
 * matrix in host memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/clock.h"
#include "core/plural.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_common.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/precond/precond_loops.h"

static const struct precond_kind kinds[] = {
    {"none", PRECOND_NOTHING, precond_make_none, SIGNS_ANY, false, false, NULL},
    {"jacobi", PRECOND_DIAGONAL, precond_make_jacobi, SIGNS_UNSYMMETRIC, false, false, NULL},
    {"block-jacobi", PRECOND_MATRIX, precond_make_block_jacobi, SIGNS_UNSYMMETRIC, false, false, NULL},
    {"chebyshev", PRECOND_MATRIX, precond_make_chebyshev, SIGNS_POSITIVE, false, false, NULL},
    {"ic0", PRECOND_MATRIX, precond_make_ic0, SIGNS_POSITIVE, false, true,
     "its triangular solves wait for each other level by level: take jacobi or amg"},
    {"cholesky", PRECOND_MATRIX, precond_make_cholesky, SIGNS_POSITIVE, false, true,
     "each row of its triangular solves waits for the rows before: take jacobi or amg"},
    {"ilu0", PRECOND_MATRIX, precond_make_ilu0, SIGNS_ANY, true, true, NULL},
    {"ilut", PRECOND_MATRIX, precond_make_ilut, SIGNS_ANY, true, true, NULL},
    {"fsai", PRECOND_DIAGONAL, precond_make_fsai, SIGNS_POSITIVE, false, false, NULL},
    {"isai", PRECOND_MATRIX, precond_make_isai, SIGNS_UNSYMMETRIC, false, true, NULL},
    {"amg", PRECOND_IN_CONTEXT, precond_make_amg, SIGNS_UNSYMMETRIC, false, false, NULL},
    {"schur", PRECOND_MATRIX, precond_make_schur, SIGNS_ANY, false, false, NULL},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };
NAMES_HOLD(KINDS + 2); /* and auto, all */

void spmv_preconditioner_options_init(spmv_preconditioner_options *options, size_t size)
{
    const spmv_preconditioner_options defaults = {.size = sizeof defaults, .degree = -1, .drop = -1};
    result_write(options, size, &defaults, sizeof defaults);
}

const char *spmv_preconditioner_name(int index)
{
    return index >= 0 && index < KINDS ? kinds[index].name : NULL;
}

bool precond_wants_schur(const char *name, const spmv_preconditioner_options *o)
{
    return choice_is_auto(name) && (o->fields != NULL || o->schur != NULL || o->schur_form != NULL);
}

/* Sets *kind; NULL for "auto". */
static spmv_status find(spmv_context *ctx, const char *name, const struct precond_kind **kind)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add(&names, "auto");
    for (int k = 0; k < KINDS; k++)
        names_add_row(&names, kinds[k].name, &kinds[k]);
    const spmv_status st =
        choice_take(ctx, SPMV_ERROR_METHOD, "spmv_preconditioner_create", "preconditioner", &names, name, &row);
    *kind = row;
    return st;
}

bool precond_is_unsymmetric(const char *name)
{
    for (int k = 0; k < KINDS; k++)
        if (name != NULL && strcmp(kinds[k].name, name) == 0)
            return kinds[k].unsymmetric;
    return false;
}

/* ------------------------------------------------------------------- source */

/* Sets source->host, a or a copy that source_close releases, and checks it. */
static spmv_status source_read(spmv_context *ctx, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    if (source->read)
        return SPMV_OK;
    TRY(csr_to_host(ctx, source->a, false, &source->host, &source->copies));
    TRY(csr_check(ctx, "spmv_preconditioner_create", &source->host, CSR_ANY_ORDER));
    source->read = true;
done:
    return st;
}

/* Releases what was read of the matrix. */
static void source_drop(spmv_context *ctx, struct precond_source *source)
{
    csr_free_host(&source->copies);
    host_free(source->diagonal);
    envelope_release(&source->envelope);
    context_take_back(ctx, source->device_diagonal);
    source->diagonal = source->device_diagonal = NULL;
    source->envelope = (struct envelope){0};
    source->bad = INT64_MAX;
}

static void source_close(spmv_context *ctx, struct precond_source *source)
{
    source_drop(ctx, source);
    if (!source->kept)
        spmv_matrix_destroy(source->filled_host);
    spmv_matrix_destroy(source->filled_there);
}

/* Whether the row has no entry other than 0. */
static bool is_alone(const spmv_csr *a, int64_t row)
{
    for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
        if (precond_value(a, k) != 0)
            return false;
    return true;
}

/* *filled = A in host memory, with 1 on the diagonal of the rows without entries. */
static spmv_status fill(spmv_context *ctx, const spmv_csr *a, int64_t alone, spmv_matrix **filled)
{
    const size_t size = a->val != NULL ? spmv_type_size(a->type) : 0;
    spmv_status st = matrix_allocate(ctx, a->rows, a->cols, a->nnz + alone, a->type, a->val == NULL, filled);
    int64_t end = 0;
    if (st != SPMV_OK)
        return st;
    spmv_csr view;
    spmv_matrix_view(*filled, &view);
    int64_t *const row_ptr = (int64_t *)view.row_ptr;
    int32_t *const col = (int32_t *)view.col;
    char *const val = (char *)view.val;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = row_first(a, row), count = is_alone(a, row) ? 0 : row_first(a, row + 1) - first;
        row_ptr[row] = end;
        if (count > 0)
            memcpy(col + end, a->col + first, (size_t)count * sizeof *col);
        if (count > 0 && size > 0)
            memcpy(val + (size_t)end * size, (const char *)a->val + (size_t)first * size, (size_t)count * size);
        end += count;
        if (count > 0)
            continue;
        col[end] = (int32_t)row;
        if (size > 0)
            real_set(a->type, val, end, 1);
        end++;
    }
    row_ptr[a->rows] = end;
    (*filled)->nnz = end;
    return SPMV_OK;
}

/* Replaces the matrix of the source by one in which rows without entries have a 1 on the diagonal.
 * *changed: there are such rows. */
static spmv_status source_fill(spmv_context *ctx, struct precond_source *source, bool *changed)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *filled = NULL;
    *changed = false;
    if (source->filled_host != NULL)
        return SPMV_OK;
    TRY(source_read(ctx, source));
    for (int64_t row = source->host.rows - 1; row >= 0; row--)
        if (is_alone(&source->host, row)) {
            source->first_alone = row;
            source->alone++;
        }
    if (source->alone == 0)
        return SPMV_OK;
    const bool device = csr_on_device(ctx, source->a);
    TRY(fill(ctx, &source->host, source->alone, &filled));
    source_drop(ctx, source);
    source->filled_host = filled;
    spmv_matrix_view(filled, &source->host);
    source->filled = source->host;
    source->a = &source->filled;
    source->read = true;
    *changed = true;
    if (device) {
        TRY(spmv_matrix_copy(ctx, &source->host, SPMV_MEMORY_CONTEXT, &source->filled_there));
        spmv_matrix_view(source->filled_there, &source->filled);
    }
done:
    return st;
}

/* The same as take_diagonal on the device. The bits of a positive finite number, as an integer, are
 * from 1 to those of infinity less one, and no other number has such bits. */
static spmv_status check_on_device(spmv_context *ctx, const double *diagonal, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const int64_t rows = source->a->rows;
    void *scratch = NULL;
    union {
        int64_t bits;
        double number;
    } bad = {0};
    source->bad = rows;
    TRY(context_scratch(ctx, ctx->backend->index_check_scratch(ctx, rows), &scratch));
    TRY(ctx->backend->index_check(ctx, diagonal, 64, 1, INT64_C(0x7ff0000000000000), rows, &source->bad, &bad.bits,
                                  scratch));
    source->bad_value = bad.number;
done:
    return st;
}

static spmv_status take_diagonal_on_device(spmv_context *ctx, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = source->a;
    source->bad = 0;
    if (a->rows == 0)
        return SPMV_OK;
    TRY(context_lend(ctx, a->rows * 8, (void **)&source->device_diagonal));
    TRY(precond_diagonal_cuda(ctx, a, source->device_diagonal));
    TRY(check_on_device(ctx, source->device_diagonal, source));
done:
    return st;
}

/* Then only 0 and what is not finite is bad. */
static spmv_status allow_negative(spmv_context *ctx, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const int64_t rows = source->a->rows;
    double *magnitudes = NULL;
    if (source->diagonal != NULL) {
        int64_t bad = source->bad;
        while (bad < rows && source->diagonal[bad] != 0 && isfinite(source->diagonal[bad]))
            bad++;
        source->bad = bad;
        source->bad_value = bad < rows ? source->diagonal[bad] : 0;
        return SPMV_OK;
    }
    TRY(context_lend(ctx, rows * 8, (void **)&magnitudes));
    TRY(spmv_map(ctx, SPMV_MAP_ABS, SPMV_F64, source->device_diagonal, magnitudes, rows));
    TRY(check_on_device(ctx, magnitudes, source));
done:
    context_take_back(ctx, magnitudes);
    return st;
}

spmv_status precond_find_bad(spmv_context *ctx, const spmv_csr *a, int64_t *bad)
{
    struct precond_source source = {.a = a};
    const spmv_status st = take_diagonal_on_device(ctx, &source);
    *bad = source.bad;
    context_take_back(ctx, source.device_diagonal);
    return st;
}

spmv_status precond_look_at_rows(spmv_context *ctx, const spmv_csr *diagonal, const spmv_csr *rows, int64_t first,
                                 struct precond_look *look, int64_t *bad, double *bad_value)
{
    struct precond_source source = {.a = diagonal};
    *look = (struct precond_look){.smallest = INFINITY};
    spmv_status st = take_diagonal_on_device(ctx, &source);
    if (st == SPMV_OK && rows->rows > 0 && source.bad == rows->rows)
        st = precond_look_cuda(ctx, rows, first, source.device_diagonal, look);
    *bad = source.bad;
    *bad_value = source.bad_value;
    context_take_back(ctx, source.device_diagonal);
    return st;
}

/* Sums the diagonal entries of each row. */
static spmv_status take_diagonal(spmv_context *ctx, struct precond_source *source)
{
    const spmv_csr *a = &source->host;
    const spmv_status st = host_alloc(ctx, a->rows * 8, "a diagonal", (void **)&source->diagonal);
    if (st != SPMV_OK)
        return st;
    int64_t bad = a->rows;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, a->nnz)) reduction(min : bad)
    for (int64_t row = 0; row < a->rows; row++) {
        double sum = 0;
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
            if (a->col[k] == row)
                sum += precond_value(a, k);
        source->diagonal[row] = sum;
        if (!(sum > 0 && isfinite(sum)))
            bad = min_i64(bad, row);
    }
    source->bad = bad;
    source->bad_value = bad < a->rows ? source->diagonal[bad] : 0;
    return st;
}

/* Reads what is needed and has not been read yet. */
static spmv_status source_open(spmv_context *ctx, struct precond_source *source, enum precond_needs needs)
{
    if (needs == PRECOND_NOTHING || needs == PRECOND_IN_CONTEXT)
        return SPMV_OK;
    if (needs == PRECOND_DIAGONAL && csr_on_device(ctx, source->a))
        return source->device_diagonal != NULL ? SPMV_OK : take_diagonal_on_device(ctx, source);
    const spmv_status st = source_read(ctx, source);
    return st == SPMV_OK && source->diagonal == NULL ? take_diagonal(ctx, source) : st;
}

static spmv_status bad_diagonal(spmv_context *ctx, const char *name, const struct precond_source *source)
{
    return context_fail(
        ctx, isfinite(source->bad_value) ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE,
        "preconditioner %s: the diagonal entry of row %lld%s is %g: the matrix is not positive definite", name,
        context_number(ctx, source->bad), context_counted(ctx), source->bad_value);
}

spmv_status precond_source_read(spmv_context *ctx, const char *name, struct precond_source *source)
{
    const spmv_status st = source_open(ctx, source, PRECOND_MATRIX);
    return st == SPMV_OK && source->bad < source->a->rows ? bad_diagonal(ctx, name, source) : st;
}

/* -------------------------------------------------------------------- making */

spmv_status precond_alloc(spmv_preconditioner *m, int64_t bytes, void **memory)
{
    const spmv_status st = spmv_alloc(m->ctx, bytes, memory);
    if (st == SPMV_OK)
        m->bytes += bytes;
    return st;
}

spmv_status precond_upload(spmv_preconditioner *m, const double *host, int64_t n, void **memory)
{
    spmv_status st = SPMV_OK;
    void *rounded = NULL;
    const void *from = host;
    const int64_t bytes = n * (int64_t)spmv_type_size(m->type);
    if (m->type != SPMV_F64) {
        TRY(host_alloc(m->ctx, bytes, "numbers of a preconditioner", &rounded));
        for (int64_t i = 0; i < n; i++)
            real_set(m->type, rounded, i, host[i]);
        from = rounded;
    }
    TRY(precond_alloc(m, max_i64(1, bytes), memory)); /* not NULL for a rank without rows */
    if (bytes > 0)
        TRY(spmv_upload(m->ctx, from, *memory, bytes));
done:
    host_free(rounded);
    return st;
}

static spmv_status check_type(spmv_context *ctx, const spmv_csr *a, spmv_type *type)
{
    const spmv_type of = a->val != NULL ? a->type : SPMV_F64;
    if (*type == SPMV_TYPE_DEFAULT)
        *type = of;
    if (!type_is_real(*type) || (a->val != NULL && of != *type && !(of == SPMV_F32 && *type == SPMV_F64)))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_preconditioner_create: a matrix of type %s with vectors of type %s: f64 and f32 are "
                            "supported, and an f32 matrix with f64 vectors",
                            spmv_type_name(of), spmv_type_name(*type));
    return SPMV_OK;
}

static spmv_status check_options(spmv_context *ctx, spmv_preconditioner_options *o)
{
    const spmv_status st = OPTIONS_CHECK(
        ctx, "spmv_preconditioner_create", {"block", o->block, 0, 64}, {"degree", o->degree, -1, PRECOND_DEGREE},
        {"steps", o->steps, 0, 1000}, {"shift", o->shift, 0, INFINITY}, {"strength", o->strength, 0, 1},
        {"near_nulls", o->near_nulls, 0, AMG_NULLS}, {"nodes", (double)o->nodes, 0, INFINITY},
        {"dimensions", o->dimensions, 0, 3}, {"update_values", o->update_values, 0, 1}, {"general", o->general, 0, 1});
    if (st != SPMV_OK)
        return st;
    const bool given = o->lowest != 0 || o->highest != 0;
    if (given && !(o->lowest > 0 && o->lowest < o->highest && isfinite(o->highest)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_preconditioner_create: eigenvalues from %g to %g: must be 0 < lowest < highest",
                            o->lowest, o->highest);
    if (!(o->drop == -1 || (o->drop >= 0 && o->drop < 1)) || !(o->fill == 0 || (o->fill >= 1 && o->fill <= 1e6)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_preconditioner_create: drop %g (0 to less than 1, or -1), fill %g (1 to 1e6, or 0): "
                            "one is out of its range",
                            o->drop, o->fill);
    if (o->near_null_type != SPMV_TYPE_DEFAULT && !type_is_real(o->near_null_type))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_preconditioner_create: near_null_type is %s, must be f64 or f32",
                            spmv_type_name(o->near_null_type));
    o->drop = o->drop == -1 ? 1e-4 : o->drop;
    o->fill = o->fill == 0 ? 10 : o->fill;
    o->steps = o->steps == 0 ? 20 : o->steps;
    return SPMV_OK;
}

static spmv_status new_one(spmv_context *ctx, const char *name, spmv_type type, int64_t rows, spmv_preconditioner **m)
{
    const spmv_status st = host_alloc(ctx, sizeof **m, "a preconditioner", (void **)m);
    if (st != SPMV_OK)
        return st;
    memset(*m, 0, sizeof **m);
    (*m)->ctx = ctx;
    (*m)->type = type;
    (*m)->rows = rows;
    snprintf((*m)->name, sizeof(*m)->name, "%s", name);
    return st;
}

static bool takes_any_sign(const struct precond_kind *kind, const spmv_preconditioner_options *o)
{
    return kind->signs == SIGNS_ANY || (kind->signs == SIGNS_UNSYMMETRIC && o->general);
}

/* Factors of a matrix that is not symmetric may be so unstable that solves with them overflow,
 * though each entry is finite. E. Chow and Y. Saad (J. Comput. Appl. Math. 86, 1997) estimate the
 * norm of (LU)^-1 by one solve. Here its right-hand side has the largest modulus of each row, so
 * the scale of a row does not matter. The limit is set by hand: factors of nearly singular matrices
 * help with norms of up to 1e57 (mhda416 of SuiteSparse); useless ones of poisson2d:120 minus 3.9 I
 * reach 3e69. In f32, squares of such vectors overflow before. */
static const double MOST_OF_FACTORS = 1e60;

/* Refuses factors whose solves are not finite, or, of a matrix that is not symmetric, explode. */
static spmv_status check_factors(const spmv_preconditioner *m, const struct precond_kind *kind,
                                 const struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &source->host;
    const int64_t bytes = m->rows * (int64_t)spmv_type_size(m->type);
    double largest = 0;
    void *host = NULL, *r = NULL, *z = NULL;
    TRY(host_alloc(m->ctx, max_i64(1, bytes), "a check of factors", &host));
    TRY(context_lend(m->ctx, max_i64(1, bytes), &r));
    TRY(context_lend(m->ctx, max_i64(1, bytes), &z));
    for (int64_t i = 0; i < m->rows; i++) {
        double most = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            most = fmax(most, fabs(precond_value(a, k)));
        real_set(m->type, host, i, most);
    }
    if (m->rows > 0) {
        TRY(spmv_upload(m->ctx, host, r, bytes));
        TRY(spmv_preconditioner_apply(m, r, z));
        TRY(spmv_download(m->ctx, z, host, bytes));
    }
    for (int64_t i = 0; i < m->rows; i++) {
        const double modulus = fabs(real_at(m->type, host, i));
        if (!(modulus <= largest))
            largest = modulus;
        if (!isfinite(largest))
            break;
    }
    const double most = fmin(MOST_OF_FACTORS, sqrt(real_limits_of(m->type).greatest));
    if (!isfinite(largest) || (takes_any_sign(kind, source->options) && largest > most))
        st =
            context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                         "preconditioner %s: its factors are unstable: a solve with them turns a vector of the size of "
                         "A into one of %.3g",
                         kind->name, largest);
done:
    host_free(host);
    context_take_back(m->ctx, r);
    context_take_back(m->ctx, z);
    return st;
}

/* Says in the layout which rows are left alone, and keeps their matrix. */
static void take_filled(spmv_preconditioner *m, struct precond_source *source)
{
    const size_t n = strlen(m->layout);
    spmv_matrix **const used = source->filled_there != NULL ? &source->filled_there : &source->filled_host;
    snprintf(m->layout + n, sizeof m->layout - n, "%s%lld row%s without entries, left alone: %s%lld%s",
             n > 0 ? "; " : "", (long long)source->alone, plural(source->alone),
             source->alone == 1 ? "row " : "the first is row ", context_number(m->ctx, source->first_alone),
             context_counted(m->ctx));
    m->filled = *used;
    if (source->filled_there != NULL)
        *used = NULL;
    else
        source->kept = true;
}

/* Makes one of this kind. */
static spmv_status make_kind_of(spmv_context *ctx, const struct precond_kind *kind, struct precond_source *source,
                                const char *why, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *m = NULL;
    if (kind->not_on_cuda != NULL && context_on_device(ctx))
        TRY(context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "preconditioner %s is not available on cuda, because %s",
                         kind->name, kind->not_on_cuda));
    TRY(source_open(ctx, source, kind->needs));
    if (kind->needs != PRECOND_NOTHING && source->bad < source->a->rows && !takes_any_sign(kind, source->options))
        TRY(bad_diagonal(ctx, kind->name, source));
    TRY(new_one(ctx, kind->name, source->options->type, source->a->rows, &m));
    snprintf(m->why, sizeof m->why, "%s", why);
    TRY(kind->make(m, source));
    if (m->transpose == NULL) /* M is symmetric */
        m->apply_transposed = m->apply;
    if (kind->needs != PRECOND_NOTHING)
        TRY(spmv_synchronize(ctx));
    if (source->alone > 0 && kind->needs != PRECOND_NOTHING)
        take_filled(m, source);
    if (kind->factors)
        TRY(check_factors(m, kind, source));
done:
    if (st != SPMV_OK) {
        spmv_preconditioner_destroy(m);
        m = NULL;
    }
    *made = m;
    return st;
}

/* As make_kind_of; rows without entries are left alone if the kind cannot be made of A. */
static spmv_status make_kind(spmv_context *ctx, const struct precond_kind *kind, struct precond_source *source,
                             const char *why, spmv_preconditioner **made)
{
    bool changed = false;
    const spmv_plan *const plan = source->options->plan;
    const bool ranks = plan != NULL && plan->ranks != NULL; /* would have to try again together */
    spmv_status st = make_kind_of(ctx, kind, source, why, made);
    if ((st != SPMV_ERROR_NOT_POSITIVE && st != SPMV_ERROR_SINGULAR) || source->options->update_values || ranks)
        return st;
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", ctx->error);
    if (source_fill(ctx, source, &changed) != SPMV_OK || !changed)
        return context_fail(ctx, st, "%s", kept);
    st = make_kind_of(ctx, kind, source, why, made);
    if (st == SPMV_OK)
        ctx->error[0] = '\0'; /* the first try is no failure */
    return st;
}

void precond_take_choice(spmv_preconditioner *m, const struct precond_choice *choice)
{
    m->rival = precond_choice_rival(choice);
    m->spare = choice->spare;
    m->expected = choice->expected;
    m->nodes = choice->nodes;
    m->rival_setup = choice->rival_setup;
}

/* The choice for conjugate gradients. Rows without entries have no say. */
static spmv_status choose(spmv_context *ctx, struct precond_source *source, struct precond_choice *choice)
{
    spmv_status st = SPMV_OK;
    bool changed = false;
    TRY(source_open(ctx, source, PRECOND_DIAGONAL));
    if (source->bad < source->a->rows && source->bad_value == 0 && !source->options->update_values)
        TRY(source_fill(ctx, source, &changed));
    if (changed)
        TRY(source_open(ctx, source, PRECOND_DIAGONAL));
    TRY(precond_choose(ctx, PRECOND_FOR_CG, source, choice));
done:
    return st;
}

/* As make_kind, for "auto": the kind that precond_choose takes, or the first after it that can be
 * made. */
static spmv_status make_chosen(spmv_context *ctx, struct precond_source *source, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    struct precond_choice choice;
    const struct precond_kind *kind = NULL;
    TRY(choose(ctx, source, &choice));
    do {
        TRY(find(ctx, choice.name, &kind));
        context_pace(ctx, source->whole == NULL ? precond_choice_work(&choice, source->a) : 0); /* ranks count none */
        st = make_kind(ctx, kind, source, choice.why, made);
        context_pace(ctx, 0);
    } while (st != SPMV_OK && precond_choose_next(ctx, st, &choice));
    if (st == SPMV_OK && !choice.replaced)
        precond_take_choice(*made, &choice);
    if (st == SPMV_OK && choice.replaced)
        ctx->error[0] = '\0'; /* what it fell back from is no failure */
done:
    return st;
}

spmv_status precond_choose_for_cg(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                  struct precond_choice *choice)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner_options o = *options;
    struct precond_source source = {.a = a, .options = &o, .host = *a, .bad = INT64_MAX};
    TRY(check_options(ctx, &o));
    TRY(choose(ctx, &source, choice));
done:
    source_close(ctx, &source);
    return st;
}

spmv_status precond_choose_unsymmetric(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                       struct precond_choice *choice)
{
    spmv_status st = SPMV_OK;
    struct precond_source source = {.a = a, .options = options, .host = *a, .bad = INT64_MAX};
    TRY(source_open(ctx, &source, PRECOND_DIAGONAL));
    if (source.bad < a->rows)
        TRY(allow_negative(ctx, &source));
    TRY(precond_choose(ctx, PRECOND_FOR_UNSYMMETRIC, &source, choice));
done:
    source_close(ctx, &source);
    return st;
}

static spmv_status create(spmv_context *ctx, const char *name, const spmv_csr *a,
                          const spmv_preconditioner_options *options, bool sampled,
                          spmv_preconditioner **preconditioner)
{
    spmv_status st = SPMV_OK;
    const double begin = monotonic_seconds();
    void *modes = NULL;
    int64_t modes_bytes = 0;
    spmv_preconditioner_options o;
    struct precond_source source = {.a = a, .options = &o, .bad = INT64_MAX, .sampled = sampled};
    st = context_need(ctx, "spmv_preconditioner_create", "preconditioner", preconditioner);
    if (st != SPMV_OK)
        return st;
    *preconditioner = NULL;
    spmv_preconditioner_options_init(&o, sizeof o);
    st = options_take(ctx, "preconditioner", &o, sizeof o, options);
    if (st != SPMV_OK)
        return st;
    const struct precond_kind *kind = NULL;
    st = find(ctx, precond_wants_schur(name, &o) ? "schur" : name, &kind);
    if (st == SPMV_OK)
        st = csr_check_shape(ctx, "spmv_preconditioner_create", a);
    if (st != SPMV_OK)
        return st;
    source.host = *a;
    TRY(csr_check_square(ctx, "spmv_preconditioner_create", a->rows, a->cols));
    TRY(check_type(ctx, a, &o.type));
    TRY(check_options(ctx, &o));
    TRY(precond_take_coordinates(ctx, name, a, &o, &modes, &modes_bytes));
    st = kind == NULL ? make_chosen(ctx, &source, preconditioner)
                      : make_kind(ctx, kind, &source, CHOICE_NAMED, preconditioner);
    if (st == SPMV_OK && o.update_values) {
        (*preconditioner)->modes = modes;
        (*preconditioner)->modes_bytes = modes_bytes;
        modes = NULL;
    }
    if (st == SPMV_OK)
        (*preconditioner)->seconds = monotonic_seconds() - begin;
done:
    context_free(ctx, modes);
    source_close(ctx, &source);
    return st;
}

spmv_status spmv_preconditioner_create(spmv_context *ctx, const char *name, const spmv_csr *a,
                                       const spmv_preconditioner_options *options, spmv_preconditioner **preconditioner)
{
    return create(ctx, name, a, options, false, preconditioner);
}

spmv_status precond_create_sampled(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                   spmv_preconditioner **preconditioner)
{
    return create(ctx, NULL, a, options, true, preconditioner);
}

spmv_status precond_create_good_schur(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                      spmv_preconditioner **preconditioner)
{
    return create(ctx, "schur", a, options, true, preconditioner);
}

spmv_status spmv_preconditioner_wrap(spmv_context *ctx, spmv_type type, int64_t rows,
                                     const spmv_preconditioner_class *functions, void *self,
                                     spmv_preconditioner **preconditioner)
{
    spmv_preconditioner_class c = {.size = sizeof c};
    const spmv_status missing = context_need(ctx, "spmv_preconditioner_wrap", "preconditioner", preconditioner);
    if (missing != SPMV_OK)
        return missing;
    *preconditioner = NULL;
    if (functions == NULL || !options_read(&c, sizeof c, functions) || c.name == NULL || c.apply == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_preconditioner_wrap: a class needs its size, a name and apply");
    if (!type_is_real(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_preconditioner_wrap: vectors of type %s, not f64 or f32",
                            spmv_type_name(type));
    if (rows < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_preconditioner_wrap: %lld rows", (long long)rows);
    spmv_preconditioner *m = NULL;
    const spmv_status st = new_one(ctx, c.name, type, rows, &m);
    if (st != SPMV_OK)
        return st;
    m->apply = c.apply;
    m->apply_transposed = c.apply_transposed;
    m->destroy = c.destroy;
    m->self = self;
    snprintf(m->why, sizeof m->why, "implemented by the caller");
    *preconditioner = m;
    return SPMV_OK;
}

spmv_status spmv_preconditioner_update_values(spmv_preconditioner *m, const void *values)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (values == NULL && m->rows > 0)
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "spmv_preconditioner_update_values: values is NULL");
    const spmv_status st = object_free_of_calls(m->ctx, &m->use, "spmv_preconditioner_update_values", "preconditioner");
    if (st != SPMV_OK)
        return st;
    if (m->renew == NULL)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_preconditioner_update_values: preconditioner %s: only amg, made with the option "
                            "update_values from values under ascending columns, takes new values",
                            m->name);
    return m->rows > 0 ? m->renew(m->self, values) : SPMV_OK;
}

void precond_begin_use(const spmv_preconditioner *m)
{
    if (m == NULL)
        return;
    ((spmv_preconditioner *)m)->use.calls++;
    plan_begin_use(m->plan);
}

void precond_end_use(const spmv_preconditioner *m)
{
    if (m == NULL)
        return;
    plan_end_use(m->plan);
    if (object_end_use(&((spmv_preconditioner *)m)->use))
        spmv_preconditioner_destroy((spmv_preconditioner *)m);
}

void spmv_preconditioner_destroy(spmv_preconditioner *m)
{
    if (m == NULL || object_destroyed_later(&m->use))
        return;
    if (m->destroy != NULL)
        m->destroy(m->self);
    spmv_matrix_destroy(m->filled);
    context_free(m->ctx, m->modes);
    host_free(m);
}

/* Checks r and z, and that m is free. */
static spmv_status check_application(const spmv_preconditioner *m, const char *call, const void *r, const void *z)
{
    if (m->rows > 0 && (r == NULL || z == NULL || r == z))
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "%s: %s", call,
                            r == NULL   ? "r is NULL"
                            : z == NULL ? "z is NULL"
                                        : "r and z are the same array");
    return m->applies ? context_fail(m->ctx, SPMV_ERROR_BUSY,
                                     "%s: this call is inside an application of the same preconditioner", call)
                      : SPMV_OK;
}

static spmv_status run(const spmv_preconditioner *m, spmv_status (*function)(void *, const void *, void *),
                       const void *r, void *z)
{
    spmv_preconditioner *const used = (spmv_preconditioner *)m;
    used->applies = true;
    precond_begin_use(m);
    const spmv_status st = function(m->self, r, z);
    used->applies = false;
    precond_end_use(m);
    return st;
}

spmv_status spmv_preconditioner_apply(const spmv_preconditioner *m, const void *r, void *z)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (m->rows == 0 && !m->together)
        return SPMV_OK;
    const spmv_status st = check_application(m, "spmv_preconditioner_apply", r, z);
    return st != SPMV_OK ? st : run(m, m->apply, r, z);
}

/* ------------------------------------------------------------- M transposed */

bool precond_is_symmetric(const spmv_preconditioner *m)
{
    return m->apply_transposed == m->apply;
}

spmv_status precond_transpose(const spmv_preconditioner *m)
{
    if (m->apply_transposed != NULL)
        return SPMV_OK;
    return m->transpose != NULL
               ? m->transpose(m->self)
               : context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                              "preconditioner %s: it has no transposed application: set apply_transposed of "
                              "spmv_preconditioner_class",
                              m->name);
}

spmv_status spmv_preconditioner_apply_transposed(const spmv_preconditioner *m, const void *r, void *z)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (m->together)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_preconditioner_apply_transposed: not on ranks, which make it together");
    if (m->rows == 0)
        return SPMV_OK;
    spmv_status st = check_application(m, "spmv_preconditioner_apply_transposed", r, z);
    if (st == SPMV_OK)
        st = precond_transpose(m);
    return st != SPMV_OK ? st : run(m, m->apply_transposed, r, z);
}

/* The functions of a preconditioner that is M transposed. self: M. */
static spmv_status apply_adjoint(void *self, const void *r, void *z)
{
    return spmv_preconditioner_apply_transposed(self, r, z);
}

static spmv_status apply_adjoint_transposed(void *self, const void *r, void *z)
{
    return spmv_preconditioner_apply(self, r, z);
}

spmv_status precond_make_adjoint(const spmv_preconditioner *m, spmv_preconditioner **made)
{
    spmv_preconditioner *adjoint = NULL;
    *made = NULL;
    spmv_status st = precond_transpose(m);
    if (st == SPMV_OK)
        st = new_one(m->ctx, m->name, m->type, m->rows, &adjoint);
    if (st != SPMV_OK)
        return st;
    adjoint->self = (void *)m;
    adjoint->apply = apply_adjoint;
    adjoint->apply_transposed = apply_adjoint_transposed;
    adjoint->identity = m->identity;
    adjoint->inverse_diagonal = m->inverse_diagonal;
    adjoint->levels = m->levels;
    adjoint->fallen = m->fallen;
    snprintf(adjoint->why, sizeof adjoint->why, "that of A, applied transposed");
    memcpy(adjoint->layout, m->layout, sizeof adjoint->layout);
    *made = adjoint;
    return st;
}

double precond_power_of_two(double x)
{
    return amg_power_of_two(x);
}

bool precond_takes_columns(const spmv_preconditioner *m)
{
    return m->columns != NULL && (m->rows > 0 || m->together);
}

spmv_status precond_columns_open(const spmv_preconditioner *m, int columns, struct precond_columns *c)
{
    *c = (struct precond_columns){.columns = columns};
    if (!precond_takes_columns(m))
        return SPMV_ERROR_UNSUPPORTED;
    struct precond_columns opened = {.m = m, .columns = columns};
    const spmv_status st = m->columns->open(m->self, &opened);
    if (st == SPMV_OK)
        *c = opened;
    return st;
}

spmv_status precond_columns_run(const struct precond_columns *c)
{
    spmv_preconditioner *const used = (spmv_preconditioner *)c->m;
    used->applies = true;
    const spmv_status st = c->m->columns->run(c->m->self);
    used->applies = false;
    return st;
}

void precond_columns_close(struct precond_columns *c)
{
    if (c->m != NULL)
        c->m->columns->close(c->m->self);
    c->m = NULL;
}

spmv_status spmv_preconditioner_describe(const spmv_preconditioner *m, spmv_preconditioner_info *info, size_t size)
{
    const spmv_status st = result_begin(m != NULL ? m->ctx : NULL, "spmv_preconditioner_describe", info, size);
    if (st != SPMV_OK)
        return st;
    const spmv_preconditioner_info full = {.size = sizeof full,
                                           .name = m->name,
                                           .why = m->why,
                                           .layout = m->layout,
                                           .type = m->type,
                                           .rows = m->rows,
                                           .bytes = m->bytes + m->modes_bytes,
                                           .seconds = m->seconds,
                                           .lowest = m->lowest,
                                           .highest = m->highest,
                                           .shift = m->shift,
                                           .levels = m->levels,
                                           .fallen = m->fallen};
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}

/* --------------------------------------------------------- for the solvers */

spmv_context *precond_context(const spmv_preconditioner *m)
{
    return m->ctx;
}

spmv_type precond_type(const spmv_preconditioner *m)
{
    return m->type;
}

int64_t precond_rows(const spmv_preconditioner *m)
{
    return m->rows;
}

const char *precond_name(const spmv_preconditioner *m)
{
    return m->name;
}

const void *precond_inverse_diagonal(const spmv_preconditioner *m)
{
    return m->inverse_diagonal;
}

const struct precond_pair *precond_factors(const spmv_preconditioner *m)
{
    return m->factors;
}

bool precond_renews(const spmv_preconditioner *m)
{
    return m->renew != NULL;
}

const char *precond_rival(const spmv_preconditioner *m)
{
    return m->rival;
}

const char *precond_spare(const spmv_preconditioner *m)
{
    return m->spare;
}

bool precond_has_nodes(const spmv_preconditioner *m)
{
    return m->nodes;
}

double precond_expected(const spmv_preconditioner *m)
{
    return m->expected;
}

const struct precond_estimate *precond_sampled(const spmv_preconditioner *m, const char *name)
{
    for (int i = 0; i < PRECOND_ESTIMATES && name != NULL; i++)
        if (m->sampled[i].name != NULL && strcmp(m->sampled[i].name, name) == 0)
            return &m->sampled[i];
    return NULL;
}

double precond_rival_setup(const spmv_preconditioner *m)
{
    return m->rival_setup;
}

bool precond_is_identity(const spmv_preconditioner *m)
{
    return m->identity;
}
