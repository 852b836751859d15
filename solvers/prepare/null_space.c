/* Known null vectors of a symmetric matrix: see null_space.h.
 *
 * A row sums to 0 if the sum is within the rounding of a sum of as many entries. Their largest is
 * the diagonal entry, at least on the average of a row and its column: a singular positive
 * semidefinite matrix has |a_ij| <= sqrt(a_ii a_jj).
 *
 * Components are found by merging the sets of i and j for each entry a_ij (R. E. Tarjan, J. ACM 22,
 * 1975), on a GPU by matrix_rows_cuda.cu. A set is named by its smallest row. Over ranks: null_space_ranks.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/prepare/null_space.h"

#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"
#include "solvers/prepare/null_space_ranks.h"

struct null_space {
    spmv_context *ctx;
    spmv_type type;
    int64_t rows, components;
    int64_t all_rows;         /* of all ranks; else rows */
    int32_t *component;       /* of each row, -1: a row of none; NULL: all rows are of component 0 */
    int64_t *size;            /* rows of each component */
    struct null_sum *sum;     /* scratch: one for each component */
    struct null_parts *parts; /* with ranks, else NULL */
    struct null_vectors *given;
    char words[96];
};

enum { MARGIN = 64 };

static const char what[] = "a copy for the null space";

/* Whether the sum is 0 up to the rounding of row i. Both have the parts of a complex number. */
static bool is_zero(spmv_type part, int64_t parts, const void *sums, const void *diagonal, int64_t i)
{
    const double most = MARGIN * real_limits_of(part).roundoff * fabs(real_at(part, diagonal, i * parts));
    bool zero = true;
    for (int64_t c = 0; c < parts; c++)
        zero = zero && fabs(real_at(part, sums, i * parts + c)) <= most;
    return zero;
}

/* Whether row i of a matrix that the host can read sums to 0. first: the column of the diagonal entry of row 0. */
static bool row_is_zero(const spmv_csr *a, int64_t first, int64_t i)
{
    const spmv_type type = a->val != NULL ? a->type : SPMV_F64, part = type_part(type);
    const int64_t parts = type_parts(type);
    double sum[2] = {0, 0}, diagonal = 0;
    for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
        for (int64_t c = 0; c < parts; c++) {
            const double value = a->val == NULL ? 1 : real_at(part, a->val, k * parts + c);
            sum[c] += value;
            diagonal += c == 0 && a->col[k] == first + i ? value : 0;
        }
    const double most = MARGIN * real_limits_of(part).roundoff * fabs(diagonal);
    return fabs(sum[0]) <= most && fabs(sum[1]) <= most;
}

/* The same as look_at_sums below, from sums that are formed on the device. */
static spmv_status look_on_device(spmv_context *ctx, const spmv_csr *a, char *good, int64_t *count)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = a->val != NULL ? a->type : SPMV_F64;
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(type);
    void *sums = NULL, *diagonal = NULL, *sums_copy = NULL, *diagonal_copy = NULL;
    const void *s = NULL, *d = NULL;
    TRY(context_lend(ctx, bytes, &sums));
    TRY(context_lend(ctx, bytes, &diagonal));
    TRY(spmv_matrix_row_sums(ctx, a, sums));
    TRY(spmv_matrix_diagonal(ctx, a, diagonal));
    TRY(context_read(ctx, sums, bytes, what, &sums_copy, &s));
    TRY(context_read(ctx, diagonal, bytes, what, &diagonal_copy, &d));
    *count = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        good[i] = (char)is_zero(type_part(type), type_parts(type), s, d, i);
        *count += good[i];
    }
done:
    context_take_back(ctx, sums);
    context_take_back(ctx, diagonal);
    host_free_all(sums_copy, diagonal_copy);
    return st;
}

/* Whether the first rows of a matrix on a device sum to 0. */
static spmv_status look_at_first_rows(spmv_context *ctx, const spmv_csr *a, int64_t before, bool *zero)
{
    enum { FIRST_ROWS = 32, FIRST_ENTRIES = 4096 };
    spmv_status st = SPMV_OK;
    const spmv_type type = a->val != NULL ? a->type : SPMV_F64;
    spmv_csr first = *a;
    void *ptr = NULL, *col = NULL, *val = NULL;
    const void *array = NULL;
    first.rows = min_i64(a->rows, FIRST_ROWS);
    TRY(context_read(ctx, a->row_ptr, (first.rows + 1) * (a->row_ptr_bits / 8), what, &ptr, &array));
    first.row_ptr = array;
    while (first.rows > 1 && row_first(&first, first.rows) > FIRST_ENTRIES)
        first.rows--;
    first.nnz = row_first(&first, first.rows);
    TRY(context_read(ctx, a->col, first.nnz * (int64_t)sizeof *a->col, what, &col, &array));
    first.col = array;
    if (a->val != NULL)
        TRY(context_read(ctx, a->val, first.nnz * (int64_t)spmv_type_size(type), what, &val, &first.val));
    *zero = true;
    for (int64_t i = 0; i < first.rows && *zero; i++)
        *zero = row_is_zero(&first, before, i);
done:
    host_free_all(ptr, col, val);
    return st;
}

/* The same on a host; before: see row_is_zero. */
static void look_on_host(const spmv_csr *a, int64_t before, enum null_space_rows rows, char *good, int64_t *count)
{
    for (int64_t i = 0; i < a->rows && (i == *count || rows != NULL_SPACE_ALL_ROWS); i++) {
        good[i] = (char)row_is_zero(a, before, i);
        *count += good[i];
    }
}

/* Sets good[i]: row i sums to 0. *count: such rows. If all rows are wanted, it ends at the first one that
 * does not, on a device if that is one of the first: of most matrices it is. */
static spmv_status look_at_sums(spmv_context *ctx, const spmv_csr *a, enum null_space_rows rows, char *good,
                                int64_t *count)
{
    *count = 0;
    if (context_on_device(ctx)) {
        bool zero = true;
        const spmv_status st = rows == NULL_SPACE_ALL_ROWS ? look_at_first_rows(ctx, a, 0, &zero) : SPMV_OK;
        return st == SPMV_OK && zero ? look_on_device(ctx, a, good, count) : st;
    }
    look_on_host(a, 0, rows, good, count);
    return SPMV_OK;
}

static int32_t set_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) { /* halves the path */
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void merge_rows(const spmv_csr *a, int32_t *parent)
{
    for (int64_t i = 0; i < a->rows; i++)
        parent[i] = (int32_t)i;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const int32_t one = set_of(parent, (int32_t)i), other = set_of(parent, a->col[k]);
            if (one < other)
                parent[other] = one;
            else
                parent[one] = other;
        }
}

/* Sets parent: from a row to others of its component, the last one of which is the first row. */
static spmv_status find_sets(spmv_context *ctx, const spmv_csr *a, int32_t *parent)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = a->rows * (int64_t)sizeof *parent;
    void *first = NULL;
    if (!csr_on_device(ctx, a)) {
        merge_rows(a, parent);
        return SPMV_OK;
    }
    TRY(context_lend(ctx, bytes, &first));
    TRY(matrix_components_cuda(ctx, a, first));
    TRY(spmv_download(ctx, first, parent, bytes));
done:
    context_take_back(ctx, first);
    return st;
}

/* Sets n->component, n->components: those whose rows are all good. */
static spmv_status find_components(struct null_space *n, const spmv_csr *a, const char *good)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = n->ctx;
    int32_t *parent = NULL;
    TRY(host_alloc(ctx, (a->rows + 1) * (int64_t)sizeof *parent, "components", (void **)&parent));
    TRY(host_alloc(ctx, (a->rows + 1) * (int64_t)sizeof *n->component, "components", (void **)&n->component));
    TRY(find_sets(ctx, a, parent));
    /* component of a set, at its first row: -2 unknown, -1 none */
    for (int64_t i = 0; i < a->rows; i++)
        n->component[i] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        if (!good[i])
            n->component[set_of(parent, (int32_t)i)] = -1;
    for (int64_t i = 0; i < a->rows; i++) {
        const int32_t first = set_of(parent, (int32_t)i);
        if (first == i && n->component[i] == 0)
            n->component[i] = (int32_t)n->components++;
        else
            n->component[i] = n->component[first];
    }
done:
    host_free(parent);
    return st;
}

static spmv_status count_rows(struct null_space *n)
{
    const spmv_status st =
        host_zeros(n->ctx, n->components * (int64_t)sizeof *n->size, "components", (void **)&n->size);
    for (int64_t i = 0; i < n->rows && st == SPMV_OK; i++)
        if (n->component[i] >= 0)
            n->size[n->component[i]]++;
    return st;
}

/* What splitting needs, of the components and their sizes. */
static spmv_status prepare(struct null_space *n)
{
    const spmv_status st = host_alloc(n->ctx, n->components * (int64_t)sizeof *n->sum, "components", (void **)&n->sum);
    if (st == SPMV_OK && n->components == 1 && n->size[0] == n->all_rows) {
        host_free(n->component);
        n->component = NULL;
    }
    return st;
}

/* Whether all rows of a real matrix on a device sum to 0, as is_zero says. False also where that is not decided here: rows
 * of zeros. One number comes to the host. sums, out: memory of the device, a number for each row and one. */
static spmv_status sums_are_zero(spmv_context *ctx, const spmv_csr *a, void *sums, void *out, bool *zero)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = a->val != NULL ? a->type : SPMV_F64;
    void *diagonal = NULL;
    double number = 0; /* room for a number of any type */
    TRY(context_lend(ctx, a->rows * (int64_t)spmv_type_size(type), &diagonal));
    TRY(spmv_matrix_row_sums(ctx, a, sums));
    TRY(spmv_matrix_diagonal(ctx, a, diagonal));
    TRY(spmv_map_divide(ctx, type, sums, diagonal, sums, a->rows));
    TRY(spmv_map_reduce(ctx, SPMV_MAP_ABS, SPMV_MAX, type, sums, out, a->rows));
    TRY(spmv_download(ctx, out, &number, (int64_t)spmv_type_size(type)));
    *zero = real_at(type, &number, 0) <= MARGIN * real_limits_of(type).roundoff; /* false: or not a number */
done:
    context_take_back(ctx, diagonal);
    return st;
}

/* The same, and whether they are one component. A second number comes to the host. one: NULL: not asked. */
static spmv_status look_for_one(spmv_context *ctx, const spmv_csr *a, bool *zero, bool *one)
{
    spmv_status st = SPMV_OK;
    void *sums = NULL, *out = NULL;
    int32_t last = 0;
    TRY(context_lend(ctx, a->rows * (int64_t)sizeof(double), &sums));
    TRY(context_lend(ctx, sizeof(double), &out));
    TRY(sums_are_zero(ctx, a, sums, out, zero));
    if (!*zero || one == NULL)
        goto done;
    TRY(matrix_components_cuda(ctx, a, sums));
    TRY(spmv_reduce(ctx, SPMV_MAX, SPMV_I32, sums, out, a->rows));
    TRY(spmv_download(ctx, out, &last, sizeof last));
    *one = last == 0;
done:
    context_take_back(ctx, sums);
    context_take_back(ctx, out);
    return st;
}

/* The null space of a matrix that is one component. */
static spmv_status take_one(spmv_context *ctx, const spmv_csr *a, spmv_type type, struct null_space **found)
{
    spmv_status st = SPMV_OK;
    struct null_space *n = NULL;
    TRY(host_alloc(ctx, sizeof *n, "a null space", (void **)&n));
    *n = (struct null_space){.ctx = ctx, .type = type, .rows = a->rows, .all_rows = a->rows, .components = 1};
    TRY(host_alloc(ctx, sizeof *n->size, "components", (void **)&n->size));
    n->size[0] = n->rows;
    TRY(prepare(n));
    *found = n;
    n = NULL;
done:
    null_space_destroy(n);
    return st;
}

static bool is_real_on_device(const spmv_context *ctx, const spmv_csr *a)
{
    return csr_on_device(ctx, a) && (a->val == NULL || a->type == SPMV_F64 || a->type == SPMV_F32);
}

spmv_status null_space_has_ones(spmv_context *ctx, const spmv_csr *a, bool *has)
{
    spmv_status st = SPMV_OK;
    char *good = NULL;
    int64_t count = 0;
    bool zero = a->rows > 0;
    if (zero && is_real_on_device(ctx, a)) {
        TRY(look_at_first_rows(ctx, a, 0, &zero));
        if (zero)
            TRY(look_for_one(ctx, a, &zero, NULL));
    } else if (zero) {
        TRY(host_alloc(ctx, a->rows, "sums of rows", (void **)&good));
        TRY(look_at_sums(ctx, a, NULL_SPACE_ALL_ROWS, good, &count));
        zero = count == a->rows;
    }
    *has = zero;
done:
    host_free(good);
    return st;
}

spmv_status null_space_find(spmv_context *ctx, const spmv_csr *a, spmv_type type, enum null_space_rows rows,
                            struct null_space **found)
{
    spmv_status st = SPMV_OK;
    struct null_space *n = NULL;
    char *good = NULL;
    int64_t count = 0;
    bool zero = true, one = false;
    *found = NULL;
    if (a->rows == 0)
        return st;
    if (is_real_on_device(ctx, a)) {
        TRY(look_at_first_rows(ctx, a, 0, &zero));
        if (!zero && rows == NULL_SPACE_ALL_ROWS)
            return SPMV_OK;
        if (zero)
            TRY(look_for_one(ctx, a, &zero, &one));
        if (one)
            return take_one(ctx, a, type, found);
    }
    TRY(host_alloc(ctx, a->rows, "sums of rows", (void **)&good));
    TRY(look_at_sums(ctx, a, rows, good, &count));
    if (count == 0 || (rows == NULL_SPACE_ALL_ROWS && count < a->rows))
        goto done;
    TRY(host_alloc(ctx, sizeof *n, "a null space", (void **)&n));
    *n = (struct null_space){.ctx = ctx, .type = type, .rows = a->rows, .all_rows = a->rows};
    TRY(find_components(n, a, good));
    if (n->components > 0) {
        TRY(count_rows(n));
        TRY(prepare(n));
        *found = n;
        n = NULL;
    }
done:
    host_free(good);
    null_space_destroy(n);
    return st;
}

/* ------------------------------------------------------------- ranks */

/* As look_at_sums, of own rows. A matrix on a device comes to the host (copies) unless the first rows of some rank
 * do not sum to 0: then *count is 0. Together. */
static spmv_status look_at_own(const spmv_plan *plan, enum null_space_rows rows, char *good, int64_t *count,
                               spmv_csr *a, struct csr_copies *copies)
{
    spmv_status st = SPMV_OK;
    const int64_t before = plan->ranks->before;
    bool zero = true, other = false;
    *count = 0;
    *a = plan->a;
    if (context_on_device(plan->ctx) && rows == NULL_SPACE_ALL_ROWS) {
        if (a->rows > 0)
            TRY(look_at_first_rows(plan->ctx, a, before, &zero));
        TRY(null_ranks_any(plan->ranks, !zero, &other));
    }
    if (other)
        return SPMV_OK;
    TRY(csr_to_host(plan->ctx, a, false, a, copies));
    look_on_host(a, before, rows, good, count);
done:
    return st;
}

spmv_status null_space_find_of_ranks(const spmv_plan *plan, enum null_space_rows rows, struct null_space **found)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    spmv_context *const ctx = plan->ctx;
    struct null_space *n = NULL;
    struct csr_copies copies = {0};
    spmv_csr a;
    char *good = NULL;
    int64_t count = 0;
    bool any = false;
    *found = NULL;
    if (ranks->tools == NULL)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, plan->a.rows), "sums of rows", (void **)&good));
    TRY(look_at_own(plan, rows, good, &count, &a, &copies));
    const bool all_rows = rows == NULL_SPACE_ALL_ROWS;
    TRY(null_ranks_any(ranks, all_rows ? count < plan->a.rows : count > 0, &any));
    if (any == all_rows || ranks->rows == 0)
        goto done;
    TRY(host_alloc(ctx, sizeof *n, "a null space", (void **)&n));
    *n = (struct null_space){.ctx = ctx, .type = plan->type, .rows = plan->a.rows, .all_rows = ranks->rows};
    TRY(host_alloc(ctx, max_i64(1, n->rows) * (int64_t)sizeof *n->component, "components", (void **)&n->component));
    TRY(null_ranks_components(ctx, plan, &a, all_rows ? NULL : good, n->component, &n->components, &n->size));
    if (n->components == 0)
        goto done;
    TRY(prepare(n));
    TRY(null_parts_make(ctx, plan, n->component, n->components, &n->parts));
    *found = n;
    n = NULL;
done:
    csr_free_host(&copies);
    host_free(good);
    null_space_destroy(n);
    return st;
}

/* ------------------------------------------------------------- given vectors */

/* The component of row i, -1: none */
static inline int64_t component_of(const struct null_space *n, int64_t i)
{
    return n->component != NULL ? n->component[i] : n->components - 1;
}

/* Whether the vector that is constant over all rows is the only one that was found. */
static bool is_constant(const struct null_space *n)
{
    return n->components == 1 && n->component == NULL;
}

static spmv_status split(const struct null_space *n, const void *v, void *to, struct null_space_norms *norms);

/* Subtracts from given vectors their means on the components. */
static spmv_status subtract_means(const struct null_space *n, struct null_vectors *given)
{
    spmv_status st = SPMV_OK;
    const int parts = given->parts;
    const int64_t each = given->count * (int64_t)parts;
    struct null_space means = *n;
    struct null_space_norms norms;
    double *vector = NULL;
    means.type = parts == 2 ? SPMV_C128 : SPMV_F64;
    TRY(host_alloc(n->ctx, max_i64(1, n->rows * parts) * 8, what, (void **)&vector));
    for (int j = 0; j < given->count; j++) {
        for (int64_t k = 0; k < n->rows * parts; k++)
            vector[k] = given->at[k / parts * each + j * parts + k % parts];
        TRY(split(&means, vector, vector, &norms));
        for (int64_t k = 0; k < n->rows * parts; k++)
            given->at[k / parts * each + j * parts + k % parts] = vector[k];
    }
done:
    host_free(vector);
    return st;
}

spmv_status null_space_add(spmv_context *ctx, const spmv_csr *a, const struct plan_ranks *ranks, spmv_type type,
                           const struct null_given *given, bool symmetric, struct null_space **n)
{
    spmv_status st = SPMV_OK;
    struct null_vectors *taken = NULL;
    if (given->block == 1 && *n != NULL && is_constant(*n))
        return SPMV_OK; /* that one is found */
    TRY(null_vectors_take(ctx, a, ranks, type, given, symmetric, &taken));
    if (taken == NULL)
        goto done;
    if (*n != NULL)
        TRY(subtract_means(*n, taken));
    TRY(null_vectors_orthonormalise(taken));
    if (taken->count == 0)
        goto done;
    if (*n == NULL) {
        TRY(host_zeros(ctx, sizeof **n, "a null space", (void **)n));
        **n = (struct null_space){
            .ctx = ctx, .type = type, .rows = a->rows, .all_rows = ranks != NULL ? ranks->rows : a->rows};
    }
    (*n)->given = taken;
    taken = NULL;
done:
    null_vectors_destroy(taken);
    return st;
}

bool null_space_splits(const struct null_space *n)
{
    return n->given == NULL || n->given->splits;
}

int64_t null_space_count(const struct null_space *n)
{
    return n == NULL ? 0 : n->components + (n->given != NULL ? n->given->count : 0);
}

/* ------------------------------------------------------------- */

void null_space_destroy(struct null_space *n)
{
    if (n == NULL)
        return;
    null_vectors_destroy(n->given);
    null_parts_destroy(n->parts);
    host_free_all(n->component, n->size, n->sum);
    host_free(n);
}

/* Adds rows first ... end - 1 to the sums of their components; returns the sum of their squares. On arrays in host
 * memory. long double has more digits than f64 on most machines, and a wider range for the squares. */
static long double add_rows(const struct null_space *n, const void *v, int64_t first, int64_t end)
{
    const spmv_type part = type_part(n->type);
    const int parts = type_parts(n->type);
    long double all = 0;
    for (int64_t i = first; i < end; i++)
        for (int c = 0; c < parts; c++) {
            const long double value = real_at(part, v, i * parts + c);
            all += value * value;
            if (component_of(n, i) >= 0)
                n->sum[component_of(n, i)].of[c] += value;
        }
    return all;
}

/* The same of all ranks: the sums of own chunks go to the others. */
static spmv_status add_ranks(const struct null_space *n, const void *v, long double *all)
{
    const struct null_parts *const p = n->parts;
    for (int64_t c = 0; c < p->ranks->chunks; c++) {
        p->squares->own[c] = add_rows(n, v, p->ranks->chunk[c], p->ranks->chunk[c + 1]);
        for (int64_t k = p->begin[c]; k < p->begin[c + 1]; k++) {
            struct null_sum *const sum = &n->sum[p->component[p->part[p->ranks->rank] + k]];
            for (int part = 0; part < 2; part++) {
                p->own[k].of[part] = sum->of[part];
                sum->of[part] = 0;
            }
        }
    }
    return null_parts_add(p, n->components, n->sum, all);
}

static spmv_status split(const struct null_space *n, const void *v, void *to, struct null_space_norms *norms)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(n->type);
    const int parts = type_parts(n->type);
    long double all = 0, along = 0, given = 0, squares = 0;
    if (n->components > 0)
        memset(n->sum, 0, (size_t)n->components * sizeof *n->sum);
    if (n->parts != NULL)
        TRY(add_ranks(n, v, &all));
    else if (n->components > 0)
        all = add_rows(n, v, 0, n->rows);
    for (int64_t k = 0; k < n->components; k++)
        for (int c = 0; c < parts; c++) {
            const long double mean = n->sum[k].of[c] / n->size[k];
            along += mean * mean * n->size[k];
            n->sum[k].of[c] = mean;
        }
    for (int64_t i = 0; i < n->rows; i++)
        for (int c = 0; c < parts; c++) {
            const double value = real_at(part, v, i * parts + c);
            const int64_t k = component_of(n, i);
            real_set(part, to, i * parts + c, k >= 0 ? (double)(value - n->sum[k].of[c]) : value);
        }
    if (n->given != NULL)
        TRY(null_vectors_split(n->given, n->type, to, &given, &squares));
    along += given;
    all = n->components > 0 ? all : squares;
    norms->all = (double)sqrtl(all);
    norms->part = (double)sqrtl(along);
done:
    return st;
}

/* Whether the only null vector is constant over all rows, which are in the memory of a device. In f64: sums there have
 * no more digits than the type. */
static bool is_mean_on_device(const struct null_space *n)
{
    return context_on_device(n->ctx) && n->type == SPMV_F64 && is_constant(n) && n->parts == NULL && n->given == NULL;
}

/* to = v less its mean. The mean of what is left is subtracted once more, since the sums are rounded. *done: false if
 * the squares leave the range of f64, or are not finite: nothing is written then. */
static spmv_status split_mean(const struct null_space *n, const void *v, void *to, struct null_space_norms *norms,
                              bool *done)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = n->ctx;
    const double least = 1e-100, most = 1e100;
    double squares = 0, sum = 0, mean = 0;
    void *out = NULL;
    *done = false;
    TRY(context_lend(ctx, sizeof squares, &out));
    TRY(spmv_dot(ctx, SPMV_F64, v, v, out, n->rows));
    TRY(spmv_download(ctx, out, &squares, sizeof squares));
    if (!(squares >= least && squares <= most))
        goto done;
    for (int pass = 0; pass < 2; pass++) {
        const void *const from = pass == 0 ? v : to;
        TRY(spmv_reduce(ctx, SPMV_ADD, SPMV_F64, from, out, n->rows));
        TRY(spmv_download(ctx, out, &sum, sizeof sum));
        const double less = -sum / (double)n->rows;
        TRY(spmv_map_scalar(ctx, SPMV_ADD, SPMV_F64, &less, from, to, n->rows));
        mean -= less;
    }
    norms->all = sqrt(squares);
    norms->part = fabs(mean) * sqrt((double)n->rows);
    *done = true;
done:
    context_take_back(ctx, out);
    return st;
}

spmv_status null_space_split(const struct null_space *n, const void *v, void *to, struct null_space_norms *norms)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = n->ctx;
    const int64_t bytes = n->rows * (int64_t)spmv_type_size(n->type);
    void *copy = NULL;
    const void *from = NULL;
    bool is_split = false;
    if (is_mean_on_device(n))
        TRY(split_mean(n, v, to, norms, &is_split));
    if (is_split)
        return SPMV_OK;
    TRY(context_read(ctx, v, bytes, what, &copy, &from));
    TRY(split(n, from, copy != NULL ? copy : to, norms));
    if (copy != NULL)
        TRY(spmv_upload(ctx, copy, to, bytes));
done:
    host_free(copy);
    return st;
}

/* ------------------------------------------------------------- words */

/* Whether each component is one row, whose entries sum to 0: they are 0. */
static bool is_of_zero_rows(const struct null_space *n)
{
    bool all = true;
    for (int64_t k = 0; k < n->components; k++)
        all = all && n->size[k] == 1;
    return all;
}

static const char *words_of_found(const struct null_space *n)
{
    int64_t rows = 0;
    for (int64_t k = 0; k < n->components; k++)
        rows += n->size[k];
    return rows == n->all_rows  ? "every row sums to 0"
           : is_of_zero_rows(n) ? "it has rows of zeros"
                                : "every row of a part of it sums to 0";
}

const char *null_space_words(struct null_space *n)
{
    if (n->given == NULL)
        return words_of_found(n);
    snprintf(n->words, sizeof n->words, "%s%s%d null vector%s given", n->components > 0 ? words_of_found(n) : "",
             n->components > 0 ? ", and " : "", n->given->count, n->given->count == 1 ? " is" : "s are");
    return n->words;
}

const char *null_space_remedy(const struct null_space *n)
{
    return n->given != NULL       ? "subtract its part along the null vectors"
           : n->component == NULL ? "subtract its mean"
           : is_of_zero_rows(n)   ? "it must be 0 there"
                                  : "subtract its mean from each connected part that sums to 0";
}

int64_t null_space_bytes(const struct null_space *n)
{
    return n == NULL ? 0
                     : (n->component != NULL ? n->rows * (int64_t)sizeof *n->component : 0) +
                           n->components * (int64_t)(sizeof *n->size + sizeof *n->sum) + null_vectors_bytes(n->given);
}
