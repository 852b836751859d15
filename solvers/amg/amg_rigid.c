/* Rigid body modes from the coordinates of nodes: displacements without strain, for which A v is
 * nearly 0 in elasticity. amg takes them as near-null-space vectors.
 *
 * c is the middle of the box around the nodes, and s half of its longest side. The modes of a node
 * at p are the translations e_i and the rotations e_r x (p - c) / s; a rotation that is an unknown
 * of the node is e_r / s. So displacements are at most 1. Where rotations are unknowns, s is at
 * least 1, because e_r / s must not overflow. Elements of rows without a coupling, which have
 * Dirichlet values, are 0.
 *
 * The modes are made orthonormal twice by a Cholesky factor of their Gram matrix, B'B = U'U and
 * B = B U^-1. The second pass removes the rounding errors of the first (T. Fukaya, Y. Nakatsukasa,
 * Y. Yanagisawa, Y. Yamamoto, "CholeskyQR2", 2014). A mode whose pivot vanishes depends on those
 * before it and is left out. Sums are over tiles of fixed size, so bits do not depend on threads.
 *
 * On ranks each one makes the modes of its own nodes. Tiles are the chunks of its rows then, and all
 * ranks add the sums of all chunks in their order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/choice.h"
#include "core/loops/host_tiles.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"
#include "solvers/precond/precond_internal.h"

enum { AXES = 3, MODES = 6, NODES_OF_TILE = 256 };

/* A mode is left out if its part orthogonal to those before has at most this share of its square.
 * Nodes on a line up to rounding have some 1e-32. */
static const double DEPENDENT = 0x1p-40;

struct rigid {
    const struct amg *amg; /* of several ranks, with own nodes here; NULL: all nodes are here */
    int64_t rows;          /* nodes times block */
    int dimensions, block;
    const double *coordinates;
    double middle[AXES], factor; /* c; 1 / s */
    const int64_t *alone;        /* of each row: 1 without a coupling; NULL: none is */
    int modes;
    double *b;                  /* rows x modes, by rows */
    double *sums;               /* of each tile: modes x modes */
    double upper[MODES][MODES]; /* U */
    double inverse[MODES];      /* of its diagonal entries; 0 of modes that are left out */
    bool kept[MODES];
};

/* Component `axis` of e_r x p. In a plane the only rotation is around axis 2. */
static double turned(int around, int axis, const double *p)
{
    if (axis == around)
        return 0;
    return axis == (around + 1) % AXES ? -p[(around + 2) % AXES] : p[(around + 1) % AXES];
}

/* Element `mode` of the row of this component of a node, which is p - c, scaled. */
static double element_of(const struct rigid *s, const double *p, int component, int mode)
{
    const int d = s->dimensions, around = d == 2 ? 2 : mode - d; /* of a rotation */
    if (mode < d)
        return component == mode;
    if (component < d)
        return turned(around, component, p);
    return d == 2 || component - d == around ? s->factor : 0;
}

static struct range nodes_of(const struct rigid *s, int64_t tile)
{
    const int64_t *const chunk = s->amg != NULL ? s->amg->ranks->chunk : NULL;
    if (chunk != NULL)
        return (struct range){chunk[tile] / s->block, chunk[tile + 1] / s->block};
    return (struct range){tile * NODES_OF_TILE, min_i64(s->rows / s->block, (tile + 1) * NODES_OF_TILE)};
}

static struct range rows_of(const struct rigid *s, int64_t tile)
{
    const struct range nodes = nodes_of(s, tile);
    return (struct range){nodes.begin * s->block, nodes.end * s->block};
}

static void fill_tile(void *state, int64_t tile)
{
    const struct rigid *const s = state;
    const struct range nodes = nodes_of(s, tile);
    int64_t row = nodes.begin * s->block;
    for (int64_t node = nodes.begin; node < nodes.end; node++) {
        double p[AXES] = {0};
        for (int axis = 0; axis < s->dimensions; axis++)
            p[axis] = (s->coordinates[node * s->dimensions + axis] - s->middle[axis]) * s->factor;
        for (int component = 0; component < s->block; component++, row++)
            for (int j = 0; j < s->modes; j++)
                s->b[row * s->modes + j] = s->alone != NULL && s->alone[row] != 0 ? 0 : element_of(s, p, component, j);
    }
}

static void gram_tile(void *state, int64_t tile)
{
    const struct rigid *const s = state;
    const struct range r = rows_of(s, tile);
    const int k = s->modes;
    double sum[MODES * MODES] = {0};
    for (int64_t i = r.begin; i < r.end; i++) {
        const double *const row = s->b + i * k;
        for (int j = 0; j < k; j++)
            for (int l = j; l < k; l++)
                sum[j * k + l] += row[j] * row[l];
    }
    memcpy(s->sums + tile * k * k, sum, (size_t)(k * k) * sizeof *sum);
}

/* B = B U^-1; the columns of modes that are left out become 0. */
static void solve_tile(void *state, int64_t tile)
{
    const struct rigid *const s = state;
    const struct range r = rows_of(s, tile);
    for (int64_t i = r.begin; i < r.end; i++) {
        double *const row = s->b + i * s->modes;
        for (int j = 0; j < s->modes; j++) {
            double value = row[j];
            for (int l = 0; l < j; l++)
                value -= row[l] * s->upper[l][j];
            row[j] = value * s->inverse[j];
        }
    }
}

/* Sets U and the modes that are kept from the sums of all tiles. Rows of U of other modes are 0. */
static void factorise(struct rigid *s, const double *sums, int64_t tiles)
{
    const int k = s->modes;
    for (int j = 0; j < k; j++)
        for (int l = j; l < k; l++) {
            s->upper[j][l] = 0;
            for (int64_t t = 0; t < tiles; t++)
                s->upper[j][l] += sums[(t * k + j) * k + l];
        }
    for (int j = 0; j < k; j++) {
        const double square = s->upper[j][j];
        double pivot = square;
        for (int l = 0; l < j; l++)
            pivot -= s->upper[l][j] * s->upper[l][j];
        s->kept[j] = pivot > DEPENDENT * square;
        s->inverse[j] = s->kept[j] ? 1 / sqrt(pivot) : 0;
        for (int m = j + 1; m < k; m++) {
            double value = s->upper[j][m];
            for (int l = 0; l < j; l++)
                value -= s->upper[l][j] * s->upper[l][m];
            s->upper[j][m] = value * s->inverse[j];
        }
    }
}

/* Removes the columns of modes that are left out. */
static void compact(struct rigid *s)
{
    double *to = s->b;
    int kept = 0;
    for (int j = 0; j < s->modes; j++)
        kept += s->kept[j];
    for (int64_t i = 0; i < s->rows && kept < s->modes; i++)
        for (int j = 0; j < s->modes; j++)
            if (s->kept[j])
                *to++ = s->b[i * s->modes + j];
    s->modes = kept;
}

static const char *const what = "rigid body modes";

/* *all: the sums of all ranks; *tiles: how many. */
static spmv_status gather_sums(const struct rigid *s, double **all, int64_t *tiles)
{
    spmv_status st = SPMV_OK;
    const struct amg *const amg = s->amg;
    const int64_t own = *tiles, size = s->modes * s->modes * 8;
    int64_t *offset = NULL;
    void *counts = NULL;
    TRY(amg_gather_numbers(amg, &own, 1, &counts));
    TRY(host_alloc(amg->ctx, (amg->ranks->count + 1) * 8, what, (void **)&offset));
    offset[0] = *tiles = 0;
    for (int r = 0; r < amg->ranks->count; r++) {
        *tiles += ((const int64_t *)counts)[r];
        offset[r + 1] = *tiles * size;
    }
    TRY(host_alloc(amg->ctx, max_i64(1, *tiles * size), what, (void **)all));
    TRY(amg->tools->gather(amg->ranks->self, s->sums, *all, offset));
done:
    host_free_all(offset, counts);
    return st;
}

static spmv_status make_modes(spmv_context *ctx, struct rigid *s)
{
    spmv_status st = SPMV_OK;
    const bool ranks = s->amg != NULL;
    const int64_t tiles = ranks ? s->amg->ranks->chunks : ceil_divide(s->rows / s->block, NODES_OF_TILE);
    double *all = NULL;
    TRY(host_alloc(ctx, max_i64(1, tiles * s->modes * s->modes * 8), what, (void **)&s->sums));
    tiles_each(ctx, tiles, fill_tile, s);
    for (int pass = 0; pass < 2; pass++) {
        int64_t all_tiles = tiles;
        tiles_each(ctx, tiles, gram_tile, s);
        if (ranks)
            TRY(gather_sums(s, &all, &all_tiles));
        factorise(s, ranks ? all : s->sums, all_tiles);
        tiles_each(ctx, tiles, solve_tile, s);
        compact(s);
        host_free(all);
        all = NULL;
    }
done:
    host_free_all(s->sums, all);
    return st;
}

/* Checks the coordinates, and sets middle and factor. nodes: of all ranks. */
static spmv_status measure(spmv_context *ctx, const char *call, int64_t nodes, struct rigid *s)
{
    double half = 0, ends[AXES][2]; /* -least, most */
    for (int axis = 0; axis < s->dimensions; axis++) {
        double least = INFINITY, most = -INFINITY;
        for (int64_t i = 0; i < s->rows / s->block; i++) {
            const double at = s->coordinates[i * s->dimensions + axis];
            if (!isfinite(at))
                return context_fail(
                    ctx, SPMV_ERROR_NOT_FINITE, "%s: coordinate %lld of node %lld%s is %g: coordinates must be finite",
                    call, (long long)context_number(ctx, axis), context_number(ctx, i), context_counted(ctx), at);
            least = fmin(least, at);
            most = fmax(most, at);
        }
        ends[axis][0] = -least;
        ends[axis][1] = most;
    }
    const spmv_status st = s->amg == NULL ? SPMV_OK : amg_largest_of_ranks(s->amg, ends[0], 2 * s->dimensions);
    if (st != SPMV_OK)
        return st;
    for (int axis = 0; axis < s->dimensions; axis++) {
        s->middle[axis] = ends[axis][1] / 2 - ends[axis][0] / 2;
        half = fmax(half, ends[axis][1] / 2 + ends[axis][0] / 2);
    }
    if (half == 0 && nodes > 1)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: all %lld nodes have the same coordinates", call,
                            (long long)nodes);
    const bool rotates = s->block > s->dimensions;
    const double distance = rotates || half == 0 ? fmax(half, 1) : half;
    s->factor = 1 / distance;
    if (!isfinite(s->factor))
        return context_fail(ctx, SPMV_ERROR_NOT_FINITE, "%s: the nodes are at most %g apart: scale the coordinates",
                            call, 2 * half);
    return SPMV_OK;
}

/* *alone: of each row whether it has no coupling, as a row of a Dirichlet value. */
static spmv_status find_alone(spmv_context *ctx, const spmv_csr *a, int64_t **alone)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    struct amg_pool work = {.ctx = ctx};
    spmv_csr there;
    TRY(csr_to_context(ctx, a, false, &there, &copies));
    struct amg_given s = {
        .a = amg_rows_of(&there), .n = a->rows, .nnz = a->nnz, .values = there.val, .type = there.type};
    TRY(amg_alloc(&work, a->rows * 8, (void **)&s.verdict));
    TRY(amg_run(ctx, AMG_ALONE, SPMV_F64, &s, a->rows));
    TRY(host_alloc(ctx, a->rows * 8, "rows without a coupling", (void **)alone));
    TRY(spmv_download(ctx, s.verdict, *alone, a->rows * 8));
done:
    amg_release(&work);
    csr_free_context(ctx, &copies);
    return st;
}

/* Whether nodes have so many unknowns. */
static bool fits(int dimensions, int block)
{
    return block == dimensions || block == (dimensions == 2 ? 3 : 6);
}

static spmv_status check_arguments(spmv_context *ctx, const char *call, const spmv_csr *a, int64_t nodes,
                                   int dimensions, int block)
{
    if (dimensions != 2 && dimensions != 3)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: coordinates of %d dimensions: must be 2 or 3", call,
                            dimensions);
    if (!fits(dimensions, block))
        return context_fail(
            ctx, SPMV_ERROR_SIZE,
            "%s: nodes of %d row%s with %d coordinates: a node has %d displacements, or %d unknowns with "
            "rotations",
            call, block, block == 1 ? "" : "s", dimensions, dimensions, dimensions == 2 ? 3 : 6);
    if (nodes < 0 || nodes > INT32_MAX / block)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "%s: %lld nodes of %d rows: 0 to %d rows are possible", call,
                            (long long)nodes, block, INT32_MAX);
    if (a != NULL && a->val != NULL && !type_is_real(a->type))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: coordinates are for real matrices, not for %s", call,
                            spmv_type_name(a->type));
    if (a != NULL && a->rows != nodes * block)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: %lld nodes of %d rows, the matrix has %lld rows", call,
                            (long long)nodes, block, (long long)a->rows);
    return SPMV_OK;
}

/* a: the matrix or, of several ranks, own rows in the layout of struct rank_halo; NULL: no row is alone. */
static spmv_status make(spmv_context *ctx, const char *call, const spmv_csr *a, int64_t nodes, int dimensions,
                        const double *coordinates, int block, const struct amg *amg, double *modes, int *count)
{
    spmv_status st = SPMV_OK;
    int64_t *alone = NULL;
    struct rigid s = {.amg = amg,
                      .rows = amg != NULL ? amg->m->rows : nodes * block,
                      .dimensions = dimensions,
                      .block = block,
                      .coordinates = coordinates,
                      .modes = dimensions == 2 ? 3 : MODES,
                      .b = modes};
    TRY(measure(ctx, call, nodes, &s));
    if (a != NULL && a->rows > 0)
        TRY(find_alone(ctx, a, &alone));
    s.alone = alone == NULL || amg == NULL ? alone : alone + amg->ranks->before;
    TRY(make_modes(ctx, &s));
    *count = s.modes;
done:
    host_free(alone);
    return st;
}

spmv_status spmv_rigid_body_modes(spmv_context *ctx, const spmv_csr *a, int64_t nodes, int dimensions,
                                  const double *coordinates, int block, double *modes, int *count)
{
    static const char call[] = "spmv_rigid_body_modes";
    spmv_status st = context_need(ctx, call, "count", count);
    if (st != SPMV_OK)
        return st;
    *count = 0;
    if (a != NULL)
        TRY(csr_check_shape(ctx, call, a));
    TRY(check_arguments(ctx, call, a, nodes, dimensions, block));
    if (nodes > 0) {
        TRY(context_need(ctx, call, "coordinates", coordinates));
        TRY(context_need(ctx, call, "modes", modes));
        TRY(make(ctx, call, a, nodes, dimensions, coordinates, block, NULL, modes, count));
    }
done:
    return st;
}

/* Sets o->block to the rows of a node. */
static spmv_status find_rows_of_node(spmv_context *ctx, const char *call, int64_t rows, spmv_preconditioner_options *o)
{
    const int64_t block = rows / o->nodes;
    if (rows % o->nodes != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "%s: coordinates of %lld nodes: the %lld rows of the matrix are not a multiple", call,
                            (long long)o->nodes, (long long)rows);
    if (o->block != 0 && o->block != block)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "%s: coordinates of %lld nodes: %lld of the %lld rows belong to a node, block is %d", call,
                            (long long)o->nodes, (long long)block, (long long)rows, o->block);
    o->block = (int)min_i64(block, INT32_MAX);
    return SPMV_OK;
}

static spmv_status check_no_vectors(spmv_context *ctx, const char *call, const spmv_preconditioner_options *o)
{
    return o->near_null == NULL ? SPMV_OK
                                : context_fail(ctx, SPMV_ERROR_ARGUMENT,
                                               "%s: near_null and coordinates are both given: the modes of the "
                                               "coordinates would take the place of the vectors",
                                               call);
}

spmv_status precond_take_coordinates(spmv_context *ctx, const char *name, const spmv_csr *a,
                                     spmv_preconditioner_options *o, void **vectors, int64_t *bytes)
{
    static const char call[] = "preconditioner amg";
    spmv_status st = SPMV_OK;
    double *modes = NULL;
    *vectors = NULL;
    *bytes = 0;
    if ((!choice_is_auto(name) && strcmp(name, "amg") != 0) ||
        (o->nodes == 0 && (o->coordinates == NULL || a->rows == 0)) || (o->plan != NULL && o->plan->ranks != NULL))
        return SPMV_OK;
    if (o->coordinates == NULL || o->nodes <= 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: nodes is %lld, coordinates is %s", call, (long long)o->nodes,
                            o->coordinates != NULL ? "an array" : "NULL");
    TRY(check_no_vectors(ctx, call, o));
    TRY(find_rows_of_node(ctx, call, a->rows, o));
    TRY(check_arguments(ctx, call, a, o->nodes, o->dimensions, o->block));
    TRY(host_alloc(ctx, a->rows * MODES * 8, "rigid body modes", (void **)&modes));
    TRY(make(ctx, call, a, o->nodes, o->dimensions, o->coordinates, o->block, NULL, modes, &o->near_nulls));
    if (o->near_nulls > 0) {
        const int64_t size = a->rows * o->near_nulls * 8;
        TRY(context_alloc(ctx, size, vectors));
        *bytes = size;
        TRY(spmv_upload(ctx, modes, *vectors, size));
    }
    o->near_null = *vectors;
    o->near_null_type = SPMV_F64;
    o->coordinates = NULL;
    o->nodes = 0;
done:
    if (st != SPMV_OK) {
        context_free(ctx, *vectors);
        *vectors = NULL;
    }
    host_free(modes);
    return st;
}

spmv_status amg_take_coordinates(struct amg *amg, struct amg_pool *pool, spmv_preconditioner_options *o)
{
    static const char call[] = "preconditioner amg";
    spmv_status st = SPMV_OK;
    const int64_t rows = amg->m->rows;
    double *modes = NULL;
    void *vectors = NULL, *all = NULL;
    if (amg->ranks == NULL || o->dimensions == 0)
        return SPMV_OK;
    TRY(amg_gather_numbers(amg, &o->nodes, 1, &all));
    const int64_t own = o->nodes;
    for (int r = 0; r < amg->ranks->count; r++)
        o->nodes += r != amg->ranks->rank ? ((const int64_t *)all)[r] : 0;
    if (o->nodes <= 0 || (own > 0 && o->coordinates == NULL))
        TRY(context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "%s: nodes is %lld, coordinates is %s", call,
                         (long long)o->nodes, o->coordinates != NULL ? "an array" : "NULL"));
    TRY(check_no_vectors(amg->ctx, call, o));
    TRY(find_rows_of_node(amg->ctx, call, amg->ranks->rows, o));
    TRY(check_arguments(amg->ctx, call, NULL, o->nodes, o->dimensions, o->block));
    TRY(amg_check_nodes(amg, o->block));
    if (own * o->block != rows)
        TRY(context_fail(amg->ctx, SPMV_ERROR_SIZE, "%s: %lld nodes of %d rows, but the rank has %lld rows", call,
                         (long long)own, o->block, (long long)rows));
    TRY(host_alloc(amg->ctx, max_i64(1, rows * MODES * 8), what, (void **)&modes));
    TRY(make(amg->ctx, call, &amg->given, o->nodes, o->dimensions, o->coordinates, o->block, amg, modes,
             &o->near_nulls));
    TRY(amg_alloc(pool, rows * o->near_nulls * 8, &vectors));
    TRY(spmv_upload(amg->ctx, modes, vectors, rows * o->near_nulls * 8));
    o->near_null = vectors;
    o->near_null_type = SPMV_F64;
done:
    host_free_all(modes, all);
    return st;
}
