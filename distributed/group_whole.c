/* A preconditioner of the whole matrix, which each rank makes and applies alike: of small systems under "auto",
 * and of the last resort. Factors of each rank's own block would depend on the number of ranks, and are
 * weaker. An application gathers r, which no rank adds, so bits are those of one rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/reals.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"
#include "solvers/direct/direct.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/solver_ranks.h"

static const char *const what = "a preconditioner of the whole matrix";

/* ------------------------------------------------------------- the whole matrix */

struct whole {
    spmv_csr view;
    int64_t *row_ptr, *offset; /* offset: ranks + 1 */
    int32_t *col;
    void *val;
};

static void release_whole(struct whole *w)
{
    host_free_all(w->row_ptr, w->offset, w->col, w->val);
}

/* offset: where the elements of each rank begin, in bytes. */
static void set_offsets(const spmv_group_matrix *m, const int64_t *element, int64_t size, int64_t *offset)
{
    for (int r = 0; r <= m->group->transport.ranks; r++)
        offset[r] = element[r] * size;
}

/* The first entry of each rank, of which work_of_rank has rows and entries. */
static void set_entries(const spmv_group_matrix *m, int64_t *entry)
{
    entry[0] = 0;
    for (int r = 0; r < m->group->transport.ranks; r++)
        entry[r + 1] = entry[r] + m->work_of_rank[r] - (m->row_of_rank[r + 1] - m->row_of_rank[r]);
}

/* All rows, in host memory. Together. */
static spmv_status gather_rows(spmv_group_matrix *m, struct whole *w)
{
    spmv_status st = SPMV_OK;
    struct group_own_rows own = {.col = NULL};
    const int64_t ranks = m->group->transport.ranks, rows = m->ranks.rows, nnz = m->ranks.nnz;
    const int64_t size = m->pattern ? 0 : (int64_t)spmv_type_size(m->own.type);
    int64_t *lengths = NULL, *entry = NULL;
    st = group_take_rows(m, false, &own);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, (rows + 1) * 8, what, (void **)&w->row_ptr);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, (ranks + 1) * 8, what, (void **)&w->offset);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, (ranks + 1) * 8, what, (void **)&entry);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, max_i64(1, m->own.rows) * 8, what, (void **)&lengths);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, max_i64(1, nnz) * (int64_t)sizeof *w->col, what, (void **)&w->col);
    if (st == SPMV_OK && size > 0)
        st = host_alloc(m->ctx, max_i64(1, nnz) * size, what, &w->val);
    TRY(spmv_group_agree(m->group, st));
    for (int64_t i = 0; i < m->own.rows; i++)
        lengths[i] = m->row_ptr[i + 1] - m->row_ptr[i];
    set_offsets(m, m->row_of_rank, 8, w->offset);
    TRY(group_gather(m->group, lengths, w->row_ptr, w->offset));
    TRY(offsets_from_counts(m->ctx, w->row_ptr, rows));
    set_entries(m, entry);
    set_offsets(m, entry, (int64_t)sizeof *w->col, w->offset);
    TRY(group_gather(m->group, own.col, w->col, w->offset));
    if (size > 0) {
        set_offsets(m, entry, size, w->offset);
        TRY(group_gather(m->group, own.val, w->val, w->offset));
    }
    w->view = csr_of(rows, m->cols, nnz, w->row_ptr, w->col, w->val, m->own.type, SPMV_MEMORY_HOST);
done:
    group_own_rows_release(&own);
    host_free_all(lengths, entry);
    return st;
}

/* ------------------------------------------------------------- the preconditioner */

struct alike {
    spmv_group_matrix *m;
    spmv_preconditioner *inner; /* of the whole matrix */
    spmv_type type;             /* of the parts of vectors */
    int64_t *offset;            /* ranks + 1, in bytes */
    void *host, *own;           /* a whole vector, and that of this rank */
    void *r, *z;                /* whole ones in the context's memory */
};

static spmv_status apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    struct alike *const a = self;
    spmv_context *const ctx = a->m->ctx;
    const int ranks = a->m->group->transport.ranks, rank = a->m->group->transport.rank;
    const int64_t first = a->offset[rank], own = a->offset[rank + 1] - first;
    if (own > 0)
        TRY(spmv_download(ctx, r, a->own, own));
    TRY(group_gather(a->m->group, a->own, a->host, a->offset));
    TRY(spmv_upload(ctx, a->host, a->r, a->offset[ranks]));
    TRY(spmv_preconditioner_apply(a->inner, a->r, a->z));
    if (own > 0)
        TRY(spmv_map(ctx, SPMV_MAP_COPY, a->type, (const char *)a->z + first, z,
                     own / (int64_t)spmv_type_size(a->type)));
done:
    return st;
}

static void destroy(void *self)
{
    struct alike *const a = self;
    if (a == NULL)
        return;
    spmv_context *const ctx = a->m->ctx;
    spmv_preconditioner_destroy(a->inner);
    spmv_free(ctx, a->r);
    spmv_free(ctx, a->z);
    host_free_all(a->offset, a->host, a->own);
    host_free(a);
}

/* Everything but the matrix inside. */
static spmv_status open(spmv_group_matrix *m, struct alike *a)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(m->type), bytes = max_i64(1, m->ranks.rows) * size;
    TRY(host_alloc(m->ctx, (m->group->transport.ranks + 1) * 8, what, (void **)&a->offset));
    set_offsets(m, m->row_of_rank, size, a->offset);
    TRY(host_alloc(m->ctx, bytes, what, &a->host));
    TRY(host_alloc(m->ctx, max_i64(1, m->own.rows) * size, what, &a->own));
    TRY(spmv_alloc(m->ctx, bytes, &a->r));
    TRY(spmv_alloc(m->ctx, bytes, &a->z));
done:
    return st;
}

static spmv_status wrap(spmv_group_matrix *m, struct alike *a, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *const inner = a->inner;
    const spmv_preconditioner_class functions = {
        .size = sizeof functions, .name = inner->name, .apply = apply, .destroy = destroy};
    const int64_t rows = m->own.rows * type_parts(m->type);
    TRY(spmv_preconditioner_wrap(m->ctx, a->type, rows, &functions, a, made));
    (*made)->together = true;
    (*made)->bytes = inner->bytes + 2 * m->ranks.rows * (int64_t)spmv_type_size(m->type);
    (*made)->seconds = inner->seconds;
    (*made)->levels = inner->levels;
    (*made)->fallen = inner->fallen;
    (*made)->rival = inner->rival;
    snprintf((*made)->why, sizeof(*made)->why, "%s", inner->why);
    snprintf((*made)->layout, sizeof(*made)->layout, "%s%s%.400s", GROUP_ALIKE, inner->layout[0] != '\0' ? "; " : "",
             inner->layout);
done:
    return st;
}

/* ------------------------------------------------------------- what is of the whole matrix */

/* Up to so many rows and entries, a preconditioner of the whole matrix on each rank takes little memory, and less
 * time than the iterations of a weaker one; up to the second number, also where others have failed. */
enum { SMALL_WHOLE = 1 << 18, MOST_WHOLE = 1 << 23 };

static int64_t work_of(const spmv_group_matrix *m)
{
    return m->wide ? INT64_MAX : m->ranks.rows + m->ranks.nnz;
}

bool group_makes_whole(const spmv_group_matrix *m, enum precond_for purpose, const char *name)
{
    if (choice_is_auto(name))
        return purpose == PRECOND_FOR_UNSYMMETRIC && work_of(m) <= SMALL_WHOLE;
    return !precond_is_of_ranks(name) && work_of(m) <= MOST_WHOLE;
}

bool group_chooses_whole(const spmv_group_matrix *m, const spmv_preconditioner_options *options)
{
    return work_of(m) <= SMALL_WHOLE && !context_on_device(m->ctx) && options->near_nulls == 0 &&
           options->dimensions == 0;
}

spmv_status group_choose_whole(spmv_group_matrix *m, const spmv_preconditioner_options *options,
                               struct precond_choice *choice)
{
    spmv_status st = SPMV_OK;
    struct whole w = {.row_ptr = NULL};
    TRY(gather_rows(m, &w));
    TRY(spmv_group_agree(m->group, precond_choose_for_cg(m->ctx, &w.view, options, choice)));
done:
    release_whole(&w);
    return st;
}

spmv_status group_direct_dense(spmv_group_matrix *m, struct direct **direct)
{
    spmv_status st = SPMV_OK;
    struct whole w = {.row_ptr = NULL};
    *direct = NULL;
    m->group->settled = false;
    TRY(gather_rows(m, &w));
    TRY(spmv_group_agree(m->group, direct_create_dense(m->ctx, &w.view, direct)));
    TRY(spmv_group_agree(m->group, direct_share(*direct, m->plan)));
done:
    release_whole(&w);
    if (st != SPMV_OK) {
        direct_destroy(*direct);
        *direct = NULL;
    }
    if (st == SPMV_ERROR_SINGULAR || st == SPMV_ERROR_NOT_FINITE) /* the caller goes on without factors */
        m->group->settled = false;
    return st;
}

/* Ends all ranks where one has failed. Where memory is short on one, its choice under "auto" may be another one than
 * that of the others, which then would wait for it in different places. */
static spmv_status agree_on_choice(spmv_group_matrix *m, spmv_status made, const spmv_preconditioner *precond)
{
    uint64_t choice = 0;
    if (made == SPMV_OK) {
        const char *const names[] = {precond->name, precond->rival, precond->spare};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            choice = group_mix(choice, names[i] != NULL ? names[i] : "", names[i] != NULL ? strlen(names[i]) + 1 : 1);
    }
    const spmv_status st = group_agree_on(m->group, made, "another preconditioner", choice);
    return st != SPMV_ERROR_ARGUMENT || !group_all_succeeded(m->group)
               ? st
               : context_fail(m->ctx, SPMV_ERROR_MEMORY,
                              "preconditioner: on some ranks there is no memory for the choice of the others");
}

spmv_status group_precond_whole(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                                const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    spmv_status st = SPMV_OK;
    struct whole w = {.row_ptr = NULL};
    struct equivalent e = {.row_ptr = NULL};
    struct alike *a = NULL;
    spmv_preconditioner_options o = *options;
    const bool complex = type_is_complex(m->type);
    st = host_alloc(m->ctx, sizeof *a, what, (void **)&a);
    if (st == SPMV_OK) {
        *a = (struct alike){.m = m, .type = type_part(m->type)};
        st = open(m, a);
    }
    TRY(spmv_group_agree(m->group, st));
    TRY(gather_rows(m, &w));
    o.type = type_part(m->type);
    o.plan = NULL;
    if (complex)
        st = equivalent_make(m->ctx, &w.view, &e);
    if (st == SPMV_OK)
        st = solver_make_for(m->ctx, purpose, name, complex ? &e.a : &w.view, !complex, &o, &a->inner);
    if (st == SPMV_OK)
        st = wrap(m, a, made);
    const struct spmv_preconditioner *const inner = st == SPMV_OK ? a->inner : NULL;
    a = st == SPMV_OK ? NULL : a;
    TRY(agree_on_choice(m, st, inner));
done:
    release_whole(&w);
    equivalent_free(&e);
    destroy(a);
    return st;
}
