/* The pattern of a finite element matrix: BLOCK unknowns per node, a dense block for each pair of
 * neighbouring nodes.
 *
 * Nodes are the first points of a cubic grid in natural ordering. Their numbers are then shuffled
 * within windows of WINDOW: the numbering of a mesh keeps neighbours near each other, but not at
 * fixed distances. Every pair of nodes nearer than some distance is coupled, and so is a random
 * share of the pairs at that distance, the same for both nodes. Distance and share are chosen so
 * that a node has NEIGHBOURS neighbours on average, itself included. The pattern is symmetric.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_rows.h"

enum { STREAM_SHUFFLE = 0x66656d73, STREAM_PAIRS = 0x66656d70, WINDOW = 64 };

struct mesh {
    uint64_t seed;
    int64_t nodes, block, side; /* the grid has side points along each axis */
    /* of the farthest neighbours: steps along an axis; squared distance */
    int64_t reach, distance;
    double share;                /* share of the pairs at that distance that are coupled */
    int32_t *point_of, *node_at; /* the point of a node, and the node at a point */
};

/* ------------------------------------------------------------------ distance of neighbours */

/* Number of nodes q for which q - (dx, dy, dz) is a grid point too. As dz >= 0, that point precedes
 * q and is a node. */
static int64_t pairs_at(const struct mesh *m, int64_t dx, int64_t dy, int64_t dz)
{
    const int64_t n = m->side, layer = n * n;
    const int64_t x0 = max_i64(dx, 0), x1 = n + min_i64(dx, 0), y0 = max_i64(dy, 0), y1 = n + min_i64(dy, 0);
    if (x0 >= x1 || y0 >= y1)
        return 0;
    /* full layers; nodes in the next one */
    const int64_t whole = m->nodes / layer, last = m->nodes % layer;
    int64_t pairs = max_i64(0, whole - dz) * (x1 - x0) * (y1 - y0);
    if (whole >= dz) {
        const int64_t row = last / n; /* the row that is not full */
        pairs += max_i64(0, min_i64(row, y1) - y0) * (x1 - x0);
        if (row >= y0 && row < y1)
            pairs += max_i64(0, min_i64(last % n, x1) - x0);
    }
    return pairs;
}

/* The number of pairs at a squared distance, each counted once. */
static int64_t pairs_at_distance(const struct mesh *m, int64_t distance, int64_t reach)
{
    int64_t pairs = 0;
    for (int64_t dz = 0; dz <= reach; dz++)
        for (int64_t dy = -reach; dy <= reach; dy++)
            for (int64_t dx = -reach; dx <= reach; dx++)
                if (dx * dx + dy * dy + dz * dz == distance && (dz > 0 || dy > 0 || (dy == 0 && dx > 0)))
                    pairs += pairs_at(m, dx, dy, dz);
    return pairs;
}

/* Sets reach, distance and share so that there are this many pairs, or all pairs if there are
 * fewer. */
static void find_distance(struct mesh *m, double wanted)
{
    double nearer = 0, here = 0;
    m->distance = m->reach = 0;
    while (nearer + here < wanted) {
        nearer += here;
        m->distance++;
        while ((m->reach + 1) * (m->reach + 1) <= m->distance)
            m->reach++;
        here = (double)pairs_at_distance(m, m->distance, min_i64(m->reach, m->side - 1));
    }
    m->share = here > 0 ? (wanted - nearer) / here : 0;
}

/* ------------------------------------------------------------------ rows */

static bool are_neighbours(const struct mesh *m, int64_t a, int64_t b, int64_t distance)
{
    if (distance == 0 || distance < m->distance)
        return true;
    const uint64_t pair = (uint64_t)min_i64(a, b) * (uint64_t)m->nodes + (uint64_t)max_i64(a, b);
    return random_uniform(random_bits(m->seed, STREAM_PAIRS, pair)) < m->share;
}

/* Counts the neighbours of a node, and writes them in no particular order if neighbours is not
 * NULL. */
static int64_t find_neighbours(const struct mesh *m, int64_t node, int32_t *neighbours)
{
    const int64_t n = m->side, at = m->point_of[node];
    const int64_t x = at % n, y = at / n % n, z = at / n / n;
    int64_t count = 0;
    for (int64_t pz = max_i64(0, z - m->reach); pz <= min_i64(n - 1, z + m->reach); pz++) {
        for (int64_t py = max_i64(0, y - m->reach); py <= min_i64(n - 1, y + m->reach); py++) {
            for (int64_t px = max_i64(0, x - m->reach); px <= min_i64(n - 1, x + m->reach); px++) {
                const int64_t point = (pz * n + py) * n + px;
                const int64_t distance = (px - x) * (px - x) + (py - y) * (py - y) + (pz - z) * (pz - z);
                if (point >= m->nodes || distance > m->distance || !are_neighbours(m, at, point, distance))
                    continue;
                if (neighbours != NULL)
                    neighbours[count] = m->node_at[point];
                count++;
            }
        }
    }
    return count;
}

static int64_t fem_length(const void *rule, int64_t row)
{
    const struct mesh *m = rule;
    return m->block * find_neighbours(m, row / m->block, NULL);
}

static void fem_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct mesh *m = rule;
    const int64_t count = find_neighbours(m, row / m->block, col);
    (void)length;
    sort_columns(col, count, m->nodes);
    /* From the back: a block overwrites its own neighbour and neighbours already expanded. */
    for (int64_t k = count - 1; k >= 0; k--) {
        const int64_t first = col[k] * m->block;
        for (int64_t i = 0; i < m->block; i++)
            col[k * m->block + i] = (int32_t)(first + i);
    }
}

/* ------------------------------------------------------------------ the mesh */

/* Shuffles the numbers within each window. R. A. Fisher, F. Yates; R. Durstenfeld, CACM 7(7), 1964,
 * algorithm 235. */
static void shuffle_windows(spmv_context *ctx, struct mesh *m)
{
#pragma omp parallel for num_threads(host_team(ctx, m->nodes)) schedule(static)
    for (int64_t first = 0; first < m->nodes; first += WINDOW) {
        int32_t *const point = m->point_of + first;
        const int64_t count = min_i64(WINDOW, m->nodes - first);
        for (int64_t i = 0; i < count; i++)
            point[i] = (int32_t)(first + i);
        for (int64_t i = count - 1; i > 0; i--) {
            const uint64_t bits = random_bits(m->seed, STREAM_SHUFFLE, (uint64_t)(first + i));
            const int64_t other = (int64_t)random_below(bits, (uint64_t)(i + 1));
            const int32_t swap = point[i];
            point[i] = point[other];
            point[other] = swap;
        }
        for (int64_t i = 0; i < count; i++)
            m->node_at[point[i]] = (int32_t)(first + i);
    }
}

spmv_status generate_fem(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument a[3];
    void *numbers = NULL;
    TRY(generator_arguments(ctx, request, "nnd", "with integers from 1 and decimal NEIGHBOURS such as 22.5", a, NULL));
    int64_t unknowns;
    if (!multiply_fits(a[0].n, a[1].n, &unknowns))
        unknowns = INT64_MAX;
    TRY(generator_columns(ctx, request, unknowns));
    if (a[2].real < 1 || a[2].real > a[0].real) {
        st = generator_fail(ctx, request, "with NEIGHBOURS from 1, the node itself, to NODES");
        goto done;
    }
    const double entries = (double)unknowns * a[1].real * a[2].real;
    TRY(generator_fits(ctx, request, unknowns, unknowns, entries, 0));
    struct mesh m = {.seed = request->seed, .nodes = a[0].n, .block = a[1].n, .side = 1};
    while (m.side * m.side * m.side < m.nodes)
        m.side++;
    find_distance(&m, (a[2].real - 1) * a[0].real / 2);
    TRY(host_alloc(ctx, 2 * m.nodes * (int64_t)sizeof *m.point_of, "the numbers of a mesh", &numbers));
    m.point_of = numbers;
    m.node_at = m.point_of + m.nodes;
    shuffle_windows(ctx, &m);
    const struct generator_rows rows = {
        .rows = unknowns, .cols = unknowns, .entries = entries, .rule = &m, .length = fem_length, .fill = fem_fill};
    TRY(generator_build(ctx, request, &rows, matrix));
done:
    host_free(numbers);
    return st;
}
