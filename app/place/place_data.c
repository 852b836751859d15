/* The matrix and the vectors of a place. On ranks, a generated matrix is made in parts; files are
 * read together, vectors by rank 0, which sends each rank its part.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/place/place.h"
#include "core/reals.h"

/* ---------------------------------------------------------------- the matrix */

/* Makes this rank's part of a generated matrix, then the matrix of all. */
static spmv_status generate(struct place *place, const struct options *o, const spmv_group_matrix_options *options,
                            struct input *in)
{
    spmv_generate_options generating;
    spmv_csr own;
    spmv_matrix *part = NULL;
    spmv_generate_options_init(&generating, sizeof generating);
    generating.type = o->type;
    generating.part = spmv_group_rank(place->group);
    generating.parts = spmv_group_ranks(place->group);
    generating.max_bytes = o->max_memory > 0 ? o->max_memory : 0;
    const double start = monotonic_seconds();
    spmv_status st = spmv_matrix_generate_within(place->ctx, in->argument, &generating, &part);
    in->seconds = monotonic_seconds() - start;
    progress_end();
    spmv_matrix_view(part, &own);
    st = place_agree(place, place_passed(place, st));
    const double began = monotonic_seconds();
    if (st == SPMV_OK)
        st = place_passed(place, spmv_group_matrix_create(place->group, &own, options, &place->matrix));
    place->plan_seconds = monotonic_seconds() - began;
    spmv_matrix_destroy(part);
    return st;
}

/* How rank 0 reads a file together with the others. */
struct shared_reading {
    struct place *place;
    const spmv_group_matrix_options *options;
    bool begun;
};

static spmv_status read_shared(void *user, const char *path, const spmv_read_options *reading, struct input *in)
{
    struct shared_reading *const shared = user;
    struct place *const place = shared->place;
    shared->begun = true;
    const spmv_status st = spmv_group_agree(place->group, SPMV_OK);
    return st != SPMV_OK ? st
                         : spmv_group_matrix_read(place->group, path, reading, shared->options, &place->matrix,
                                                  &in->info, sizeof in->info);
}

/* Reads the matrix from a file. Ranks that share the memory of a host each may take a part of it. */
static spmv_status read_file(struct place *place, const struct options *reading, enum job_kind job,
                             const spmv_group_matrix_options *options, struct input *in)
{
    struct shared_reading shared = {.place = place, .options = options};
    const double start = monotonic_seconds();
    spmv_status st;
    if (place_writes(place)) {
        const int sharing = spmv_group_launcher() == NULL ? spmv_group_ranks(place->group) : place_ranks_here();
        st = input_read(place->ctx, reading, job, in->argument, read_shared, &shared, sharing, in);
        st = shared.begun ? st : place_agree(place, st);
    } else {
        st = spmv_group_agree(place->group, SPMV_OK);
        if (st == SPMV_OK)
            st = spmv_group_matrix_read(place->group, in->argument, NULL, options, &place->matrix, NULL, 0);
    }
    in->seconds = in->info.seconds;
    place->plan_seconds = monotonic_seconds() - start - in->seconds;
    return st;
}

/* Whether a GPU is usable. Opens the context of --backend auto. */
static bool find_gpu(void *user)
{
    struct place *const place = user;
    if (place->found == NULL && open_context(place->o, SPMV_BACKEND_AUTO, &place->found) != SPMV_OK)
        return false;
    return spmv_context_backend(place->found) == SPMV_BACKEND_CUDA;
}

static spmv_status load_here(struct place *place, const struct options *reading, enum job_kind job,
                             const char *argument, struct input *in)
{
    if (place_is_open(place))
        memory_elsewhere(find_gpu, place);
    const spmv_status st = input_load(place->ctx, reading, job, argument, in);
    memory_elsewhere(NULL, NULL);
    return st;
}

/* The matrix becomes its transpose; the input stays as it was read. */
static spmv_status transpose(struct place *place)
{
    spmv_group_matrix *made = NULL;
    const spmv_status st = place_passed(place, spmv_group_matrix_transpose(place->matrix, &made));
    if (st != SPMV_OK)
        return st;
    spmv_group_matrix_destroy(place->matrix);
    place->matrix = made;
    return SPMV_OK;
}

spmv_status place_load(struct place *place, enum job_kind job, const char *argument, const char *method, bool solves,
                       struct input *in)
{
    const struct options reading = options_for_matrix(place->o);
    if (!place_on_ranks(place))
        return load_here(place, &reading, job, argument, in);
    enum { MOST_ROWS = 8 }; /* of a node */
    spmv_group_matrix_options options;
    spmv_group_matrix_options_init(&options, sizeof options);
    options.type = place->o->type;
    options.method = method;
    options.exchange = place->o->exchange;
    options.block = solves && place->o->block <= MOST_ROWS ? place->o->block : 0; /* larger ones are not for amg */
    options.compression = plan_compression(place->o, spmv_context_backend(place->ctx), solves);
    *in = (struct input){.argument = argument, .source = "spec"};
    spmv_status st = !file_exists(argument) && spmv_spec_known(argument)
                         ? generate(place, &reading, &options, in)
                         : read_file(place, &reading, job, &options, in);
    const bool turned = job == JOB_PRODUCT && place->o->transpose;
    if (st == SPMV_OK && turned)
        st = transpose(place);
    if (st != SPMV_OK)
        return st;
    spmv_group_matrix_describe(place->matrix, &place->part, sizeof place->part);
    in->view = (spmv_csr){.rows = turned ? place->part.cols : place->part.rows,
                          .cols = turned ? place->part.rows : place->part.cols,
                          .nnz = place->part.nnz,
                          .type = type_is_complex(place->part.type) ? place->part.type : reading.type};
    return SPMV_OK;
}

/* ---------------------------------------------------------------- vectors */

/* The elements of a vector that this rank has. */
static int64_t own_elements(const struct place *place, spmv_group_side side)
{
    return side == SPMV_GROUP_COLS ? place->part.own_cols : place->part.own_rows;
}

spmv_status place_vectors(struct place *place, const char *what, spmv_group_side side, int k, int64_t bytes,
                          void **vectors)
{
    if (!place_on_ranks(place))
        return allocate(what, bytes, 1, vectors);
    const int64_t own = (own_elements(place, side) * k + 1) * (int64_t)spmv_type_size(place->part.type);
    return place_agree(place, place_passed(place, spmv_alloc(place->ctx, own, vectors)));
}

void *place_one(const struct place *place, spmv_group_side side, const void *vectors, int v)
{
    const int64_t bytes = own_elements(place, side) * (int64_t)spmv_type_size(place->part.type);
    return vectors != NULL ? (char *)(uintptr_t)vectors + v * bytes : NULL;
}

spmv_status place_interleave(struct place *place, spmv_group_side side, int k, void *vectors, void *rows, bool back)
{
    const spmv_type given = place->part.type;
    /* elements of the same size, which the primitives move */
    const spmv_type type = given == SPMV_C128 ? SPMV_AFFINE_F64 : given == SPMV_C64 ? SPMV_I64 : given;
    const int64_t own = own_elements(place, side), step = k;
    void *index = NULL;
    spmv_status st = own > 0 ? spmv_alloc(place->ctx, own * (int64_t)sizeof step, &index) : SPMV_OK;
    for (int64_t v = 0; v < k && own > 0 && st == SPMV_OK; v++) {
        void *const one = place_one(place, side, vectors, (int)v);
        st = spmv_map_index(place->ctx, SPMV_I64, &v, &step, index, own);
        if (st == SPMV_OK)
            st = back ? spmv_gather(place->ctx, type, rows, own * k, index, 64, one, own)
                      : spmv_scatter(place->ctx, type, one, index, 64, rows, own * k, own);
    }
    spmv_free(place->ctx, index);
    return place_passed(place, st);
}

void place_free(struct place *place, void *vector)
{
    if (place_on_ranks(place))
        spmv_free(place->ctx, vector);
    else
        free(vector);
}

void place_free_loaded(struct place *place, void *vector)
{
    if (place_on_ranks(place))
        spmv_free(place->ctx, vector);
    else
        spmv_host_free(vector);
}

/* Copies vector v of k vectors by rows to one, or back; host memory. */
static void copy_one(spmv_type type, int64_t n, int k, int v, void *rows, void *one, bool back)
{
    const size_t size = spmv_type_size(type);
    for (int64_t i = 0; i < n; i++) {
        char *const of_rows = (char *)rows + (size_t)(i * k + v) * size, *const of_one = (char *)one + (size_t)i * size;
        memcpy(back ? of_rows : of_one, back ? of_one : of_rows, size);
    }
}

/* Together: k vectors by rows on rank 0 to or from their owners. one: on rank 0, room for a vector of n numbers. */
static spmv_status share(struct place *place, spmv_group_side side, int64_t n, int k, void *all, void *one,
                         const void *vectors, bool back)
{
    spmv_group_matrix *const m = place->matrix;
    const bool copies = k > 1 && place_writes(place);
    spmv_status st = SPMV_OK;
    for (int v = 0; v < k && st == SPMV_OK; v++) {
        void *const here = copies ? one : all, *const own = place_one(place, side, vectors, v);
        if (copies && !back)
            copy_one(place->part.type, n, k, v, all, one, false);
        st = place_passed(place, back ? spmv_group_gather(m, side, own, here) : spmv_group_scatter(m, side, here, own));
        if (copies && back && st == SPMV_OK)
            copy_one(place->part.type, n, k, v, all, one, true);
    }
    return st;
}

/* Together: room for one of k vectors on rank 0. */
static spmv_status allocate_one(struct place *place, int64_t n, int k, void **one)
{
    const bool needed = k > 1 && place_writes(place);
    return place_agree(place, needed ? allocate("a vector", n, spmv_type_size(place->part.type), one) : SPMV_OK);
}

spmv_status place_load_vectors(struct place *place, spmv_group_side side, const char *path, spmv_type type, int64_t n,
                               const char *what, const char *why_n, void **vectors, int *k)
{
    if (!place_on_ranks(place))
        return vectors_load(place->ctx, path, type, n, what, why_n, vectors, k);
    void *all = NULL, *one = NULL;
    spmv_status st = place_writes(place) ? vectors_load(place->ctx, path, type, n, what, why_n, &all, k) : SPMV_OK;
    st = place_agree(place, st);
    if (st == SPMV_OK)
        st = place_passed(place, spmv_group_broadcast(place->group, k, sizeof *k));
    if (st == SPMV_OK)
        st = place_vectors(place, what, side, *k, 0, vectors);
    if (st == SPMV_OK)
        st = allocate_one(place, n, *k, &one);
    if (st == SPMV_OK)
        st = share(place, side, n, *k, all, one, *vectors, false);
    free(one);
    spmv_host_free(all);
    return st;
}

/* Elements of the vector v of k. */
static void known_of(spmv_type type, int64_t first, int64_t count, int k, int v, bool random, void *host)
{
    for (int64_t i = 0; i < count; i++)
        known_elements(type, (first + i) * k + v, 1, random, (char *)host + (size_t)i * spmv_type_size(type));
}

spmv_status place_known_vectors(struct place *place, spmv_type type, int64_t n, int k, bool random, void **vectors)
{
    enum { AT_ONCE = 4096 };
    spmv_c128 host[AT_ONCE]; /* room for all types */
    const bool maps = !random && !type_is_complex(type);
    const int64_t size = (int64_t)spmv_type_size(type), own = place->part.own_cols;
    if (!place_on_ranks(place))
        return known_vector(type, n * k, random, vectors);
    const union real one = real_scalar(type, 1);
    spmv_status st = place_vectors(place, "the solution", SPMV_GROUP_COLS, k, 0, vectors);
    if (st == SPMV_OK && maps && own > 0)
        st = place_passed(place, spmv_map_index(place->ctx, type, &one, NULL, *vectors, own * k));
    for (int v = 0; v < k && !maps; v++) {
        char *const to = place_one(place, SPMV_GROUP_COLS, *vectors, v);
        for (int64_t first = 0; first < own && st == SPMV_OK; first += AT_ONCE) {
            const int64_t count = own - first < AT_ONCE ? own - first : (int64_t)AT_ONCE;
            known_of(type, place->part.first_col + first, count, k, v, random, host);
            st = place_passed(place, spmv_upload(place->ctx, host, to + first * size, count * size));
        }
    }
    return place_agree(place, st);
}

spmv_status place_collect(struct place *place, spmv_group_side side, spmv_type type, int64_t n, int k,
                          const void *vectors, const void **all)
{
    *all = vectors;
    if (!place_on_ranks(place))
        return SPMV_OK;
    free(place->collected);
    place->collected = NULL;
    void *one = NULL;
    spmv_status st =
        place_writes(place) ? allocate("the answer", n * k, spmv_type_size(type), &place->collected) : SPMV_OK;
    st = place_agree(place, st);
    if (st == SPMV_OK)
        st = allocate_one(place, n, k, &one);
    if (st == SPMV_OK)
        st = share(place, side, n, k, place->collected, one, vectors, true);
    free(one);
    *all = place->collected;
    return st;
}
