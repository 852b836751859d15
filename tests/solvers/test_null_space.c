/* Singular systems with known null spaces and known solutions of minimum norm: a table of matrices, each with
 * right-hand sides that are consistent, up to rounding, and not at all, with null vectors that are found or given, and
 * with several solvers. Wrong vectors, refusals, the part of b that is reported, new values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_grid.h"
#include "tests/support/support_slow.h"

enum { MOST_NULLS = 8, MOST_ROWS = 160 };

/* A dense matrix and its null vectors: vector j has null[i * nulls + j]; left: not those of the transpose. */
struct singular {
    int n, nulls;
    double *a, *null;
    bool right_only;
};

static struct singular make(int n, int nulls)
{
    return (struct singular){.n = n,
                             .nulls = nulls,
                             .a = support_zeros((int64_t)n * n, 8),
                             .null = support_zeros((int64_t)n * nulls + 1, 8)};
}

static double *entry(const struct singular *s, int i, int j)
{
    return s->a + i * s->n + j;
}

static void set_null(const struct singular *s, int first, int end, int j)
{
    for (int i = first; i < end; i++)
        s->null[i * s->nulls + j] = 1;
}

static void add_edge(const struct singular *s, int i, int j, double weight)
{
    *entry(s, i, i) += weight;
    *entry(s, j, j) += weight;
    *entry(s, i, j) -= weight;
    *entry(s, j, i) -= weight;
}

/* ------------------------------------------------------------- graphs */

static void add_path(const struct singular *s, int first, int end, double weight)
{
    for (int i = first; i + 1 < end; i++)
        add_edge(s, i, i + 1, weight * (1 + i % 3));
}

static struct singular path(void)
{
    const struct singular s = make(40, 1);
    add_path(&s, 0, 40, 1);
    set_null(&s, 0, 40, 0);
    return s;
}

static struct singular cycle(void)
{
    const struct singular s = path();
    add_edge(&s, 39, 0, 1);
    return s;
}

static struct singular complete(void)
{
    const struct singular s = make(20, 1);
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < i; j++)
            add_edge(&s, i, j, 1);
    set_null(&s, 0, 20, 0);
    return s;
}

static struct singular star(void)
{
    const struct singular s = make(30, 1);
    for (int i = 1; i < 30; i++)
        add_edge(&s, 0, i, i);
    set_null(&s, 0, 30, 0);
    return s;
}

/* A grid of side^2 vertices; wraps: a torus. */
static struct singular lattice(int side, bool wraps)
{
    const struct singular s = make(side * side, 1);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            if (j + 1 < side || wraps)
                add_edge(&s, i * side + j, i * side + (j + 1) % side, 1);
            if (i + 1 < side || wraps)
                add_edge(&s, i * side + j, (i + 1) % side * side + j, 1);
        }
    set_null(&s, 0, s.n, 0);
    return s;
}

static struct singular neumann(void)
{
    return lattice(12, false);
}

static struct singular torus(void)
{
    return lattice(8, true);
}

static struct singular three_components(void)
{
    const struct singular s = make(45, 3);
    for (int k = 0; k < 3; k++) {
        add_path(&s, 10 * k, 10 * k + (k == 2 ? 25 : 10), 1 + k);
        set_null(&s, 10 * k, 10 * k + (k == 2 ? 25 : 10), k);
    }
    return s;
}

/* The second and the fifth row have no entries. */
static struct singular without_entries(void)
{
    const struct singular s = make(30, 3);
    for (int i = 5; i + 1 < 30; i++)
        add_edge(&s, i, i + 1, 1);
    add_edge(&s, 0, 2, 1);
    add_edge(&s, 2, 3, 1);
    add_edge(&s, 3, 5, 2);
    for (int i = 0; i < 30; i++)
        s.null[3 * i + (i == 1 ? 1 : i == 4 ? 2 : 0)] = 1;
    return s;
}

/* Two paths, of which one is held at its end. */
static struct singular one_of_two(void)
{
    const struct singular s = make(40, 1);
    add_path(&s, 0, 20, 1);
    add_path(&s, 20, 40, 1);
    *entry(&s, 39, 39) += 2;
    set_null(&s, 0, 20, 0);
    return s;
}

static struct singular negative(void)
{
    const struct singular s = neumann();
    for (int k = 0; k < s.n * s.n; k++)
        s.a[k] = -s.a[k];
    return s;
}

/* D + W of a bipartite graph: 1 and -1 in turn. */
static struct singular signless(void)
{
    const struct singular s = path();
    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < s.n; j++)
            *entry(&s, i, j) = fabs(*entry(&s, i, j));
    for (int i = 0; i < s.n; i++)
        s.null[i] = i % 2 == 0 ? 1 : -1;
    return s;
}

/* D A D with the null vector D^-1 1. */
static struct singular scaled(void)
{
    const struct singular s = neumann();
    for (int i = 0; i < s.n; i++) {
        s.null[i] = 1. / (1 + i % 3);
        for (int j = 0; j < s.n; j++)
            *entry(&s, i, j) *= (1 + i % 3) * (1 + j % 3);
    }
    return s;
}

/* Two unknowns of each vertex of a path, coupled: constant on each. */
static struct singular coupled(void)
{
    const struct singular line = path(), s = make(80, 2);
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < 40; j++)
            for (int k = 0; k < 4; k++)
                *entry(&s, 2 * i + k / 2, 2 * j + k % 2) = *entry(&line, i, j) * (k % 3 == 0 ? 2 : 0.5);
    for (int i = 0; i < 80; i++)
        s.null[2 * i + i % 2] = 1;
    support_free(line.a, line.null);
    return s;
}

/* ------------------------------------------------------------- elasticity */

static void add_bar(const struct singular *s, int d, const double *at, int p, int q)
{
    double along[3] = {0}, length = 0;
    for (int c = 0; c < d; c++) {
        along[c] = at[q * d + c] - at[p * d + c];
        length += along[c] * along[c];
    }
    for (int c = 0; c < d; c++)
        for (int e = 0; e < d; e++) {
            const double k = along[c] * along[e] / length;
            *entry(s, p * d + c, p * d + e) += k;
            *entry(s, q * d + c, q * d + e) += k;
            *entry(s, p * d + c, q * d + e) -= k;
            *entry(s, q * d + c, p * d + e) -= k;
        }
}

/* Adds side^d nodes from node `first` on, with bars to all neighbours, and the rigid body modes from vector j on. */
static void add_truss(const struct singular *s, int d, int side, int first, int j)
{
    const int nodes = d == 2 ? side * side : side * side * side;
    double *const at = support_zeros((int64_t)(first + nodes) * d, 8);
    for (int p = 0; p < nodes; p++)
        for (int c = 0, rest = p; c < d; c++, rest /= side)
            at[(first + p) * d + c] = rest % side + 0.1 * ((p + c) % 3);
    for (int p = 0; p < nodes; p++)
        for (int q = 0; q < p; q++) {
            bool near = true;
            for (int c = 0, one = p, other = q; c < d; c++, one /= side, other /= side)
                near = near && abs(one % side - other % side) <= 1;
            if (near)
                add_bar(s, d, at, first + p, first + q);
        }
    for (int p = first; p < first + nodes; p++) {
        int k = j;
        for (int c = 0; c < d; c++)
            s->null[(p * d + c) * s->nulls + k++] = 1;
        for (int c = 0; c < d; c++)
            for (int e = 0; e < c; e++, k++) {
                s->null[(p * d + c) * s->nulls + k] = at[p * d + e];
                s->null[(p * d + e) * s->nulls + k] = -at[p * d + c];
            }
    }
    free(at);
}

static struct singular plane(void)
{
    const struct singular s = make(72, 3);
    add_truss(&s, 2, 6, 0, 0);
    return s;
}

static struct singular space(void)
{
    const struct singular s = make(81, 6);
    add_truss(&s, 3, 3, 0, 0);
    return s;
}

static struct singular two_planes(void)
{
    const struct singular s = make(82, 6);
    add_truss(&s, 2, 4, 0, 0);
    add_truss(&s, 2, 5, 16, 3);
    return s;
}

/* One node is held, so that only a rotation around it is left. */
static struct singular hinged(void)
{
    const struct singular all = plane(), s = make(72, 1);
    const int node = 14;
    for (int i = 0; i < 72; i++)
        for (int j = 0; j < 72; j++)
            *entry(&s, i, j) = i / 2 == node || j / 2 == node ? i == j : *entry(&all, i, j);
    for (int i = 0; i < 72; i++)
        s.null[i] = all.null[3 * i + 2] - all.null[3 * (2 * node + i % 2) + 2];
    support_free(all.a, all.null);
    return s;
}

/* ------------------------------------------------------------- other matrices */

/* H diag(0, 0, values) H with a Householder reflection H; the first `negatives` values are negative. */
static struct singular reflected(int negatives)
{
    enum { N = 36 };
    const struct singular s = make(N, 2);
    double v[N], length = 0;
    for (int i = 0; i < N; i++) {
        v[i] = 1 + (i * 7) % 5;
        length += v[i] * v[i];
    }
    for (int k = 0; k < N; k++) {
        const double value = k < 2 ? 0 : (k < 2 + negatives ? -1 : 1) * (1 + k % 6);
        for (int i = 0; i < N; i++) {
            const double of_i = (i == k) - 2 * v[i] * v[k] / length;
            if (k < 2)
                s.null[2 * i + k] = of_i;
            for (int j = 0; j < N; j++)
                *entry(&s, i, j) += value * of_i * ((j == k) - 2 * v[j] * v[k] / length);
        }
    }
    for (int i = 0; i < N; i++) /* symmetric in all bits */
        for (int j = 0; j < i; j++)
            *entry(&s, i, j) = *entry(&s, j, i);
    return s;
}

static struct singular semidefinite(void)
{
    return reflected(0);
}

static struct singular indefinite(void)
{
    return reflected(15);
}

/* Convection and diffusion on a cycle: not symmetric, and ones are a null vector of the transpose too. */
static struct singular convection(void)
{
    enum { N = 50 };
    const struct singular s = make(N, 1);
    for (int i = 0; i < N; i++) {
        *entry(&s, i, i) = 3;
        *entry(&s, i, (i + 1) % N) = -0.5;
        *entry(&s, i, (i + N - 1) % N) = -2.5;
    }
    set_null(&s, 0, N, 0);
    return s;
}

/* The rows of a Laplacian in other units: ones are no null vector of the transpose. */
static struct singular rows_scaled(void)
{
    struct singular s = neumann();
    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < s.n; j++)
            *entry(&s, i, j) *= 1 + i % 4;
    s.right_only = true;
    return s;
}

static struct singular zeros(void)
{
    const struct singular s = make(5, 5);
    for (int i = 0; i < 5; i++)
        s.null[6 * i] = 1;
    return s;
}

/* Another one each time: a graph with some components, one of them maybe a single row, whose rows are mixed. */
static struct singular drawn(void)
{
    enum { MOST = 5, ROWS = 60 };
    static uint64_t seed = 5;
    int row[ROWS], component[ROWS];
    const int components = 1 + (int)(MOST * fabs(support_uniform(&seed)));
    const struct singular s = make(ROWS, components);
    for (int i = 0; i < s.n; i++) {
        const int other = (int)((i + 1) * fabs(support_uniform(&seed)));
        row[i] = row[other];
        row[other] = i;
    }
    for (int i = 0; i < s.n; i++) {
        component[i] = i < components ? i : (int)(components * fabs(support_uniform(&seed)));
        s.null[row[i] * s.nulls + component[i]] = 1;
        for (int edges = 0; i >= components && edges < 2;) {
            const int k = (int)(i * fabs(support_uniform(&seed)));
            if (component[k] == component[i]) {
                add_edge(&s, row[i], row[k], 1 + fabs(support_uniform(&seed)));
                edges++;
            }
        }
    }
    return s;
}

/* ------------------------------------------------------------- the table */

enum how { FOUND, GIVEN, BLOCK };

static const struct {
    const char *name;
    struct singular (*make)(void);
    enum how how;
    int block;
    const char *solvers[4];
} table[] = {{"path", path, FOUND, 0, {"auto", "minres"}},
             {"path, ones", path, BLOCK, 1, {"auto", "gmres", "bicgstab"}},
             {"cycle", cycle, FOUND, 0, {"auto", "cg"}},
             {"complete graph", complete, FOUND, 0, {"auto"}},
             {"complete graph, given", complete, GIVEN, 0, {"cg", "gmres"}},
             {"star", star, FOUND, 0, {"auto", "minres"}},
             {"star, ones", star, BLOCK, 1, {"auto", "gmres"}},
             {"Neumann", neumann, FOUND, 0, {"auto", "cg", "minres"}},
             {"Neumann, ones", neumann, BLOCK, 1, {"auto", "gmres", "bicgstab"}},
             {"Neumann, given", neumann, GIVEN, 0, {"auto", "gmres"}},
             {"torus", torus, FOUND, 0, {"auto", "minres"}},
             {"three components", three_components, FOUND, 0, {"auto", "cg", "minres"}},
             {"three components, ones", three_components, BLOCK, 1, {"auto", "minres"}},
             {"three components, given", three_components, GIVEN, 0, {"auto", "gmres", "bicgstab"}},
             {"rows without entries", without_entries, FOUND, 0, {"auto", "minres"}},
             {"rows without entries, given", without_entries, GIVEN, 0, {"auto", "cg", "minres"}},
             {"one of two components", one_of_two, FOUND, 0, {"auto", "cg", "minres"}},
             {"one of two components, given", one_of_two, GIVEN, 0, {"auto", "gmres"}},
             {"negative", negative, FOUND, 0, {"auto", "cg"}},
             {"negative, ones", negative, BLOCK, 1, {"auto", "gmres"}},
             {"signless", signless, GIVEN, 0, {"auto", "cg", "minres", "gmres"}},
             {"scaled", scaled, GIVEN, 0, {"auto", "cg", "minres", "gmres"}},
             {"coupled unknowns", coupled, BLOCK, 2, {"auto", "cg", "minres", "gmres"}},
             {"elasticity in a plane", plane, GIVEN, 0, {"auto", "cg", "minres", "gmres"}},
             {"elasticity in space", space, GIVEN, 0, {"auto", "cg", "minres", "gmres"}},
             {"two elastic bodies", two_planes, GIVEN, 0, {"auto", "cg", "minres"}},
             {"a hinge", hinged, GIVEN, 0, {"auto", "cg", "minres"}},
             {"semidefinite", semidefinite, GIVEN, 0, {"auto", "cg", "minres", "gmres"}},
             {"indefinite", indefinite, GIVEN, 0, {"auto", "minres", "gmres"}},
             {"convection on a cycle", convection, BLOCK, 1, {"auto", "gmres", "bicgstab"}},
             {"scaled rows", rows_scaled, GIVEN, 0, {"auto", "gmres"}},
             {"zeros", zeros, GIVEN, 0, {"auto", "minres"}},
             {"a graph", drawn, FOUND, 0, {"auto", "minres"}}};

enum { TABLE = sizeof table / sizeof table[0], DRAWS = 40 }; /* of the last line, so often */

/* Null vectors of some components only are looked for after a failure: x of a consistent system may have a part. */
static bool found_late(size_t t)
{
    return table[t].make == one_of_two && table[t].how == FOUND;
}

/* Removes the part of v along the null vectors; returns its norm. */
static double remove_part(const struct singular *s, double *v)
{
    double *const q = support_zeros((int64_t)s->n * s->nulls + 1, 8), part = 0;
    memcpy(q, s->null, (size_t)(s->n * s->nulls) * 8);
    for (int j = 0; j < s->nulls; j++)
        for (int pass = 0; pass < 2; pass++) {
            long double square = 0;
            for (int k = 0; k < j; k++) {
                long double dot = 0;
                for (int i = 0; i < s->n; i++)
                    dot += (long double)q[i * s->nulls + j] * q[i * s->nulls + k];
                for (int i = 0; i < s->n; i++)
                    q[i * s->nulls + j] -= (double)dot * q[i * s->nulls + k];
            }
            for (int i = 0; i < s->n; i++)
                square += (long double)q[i * s->nulls + j] * q[i * s->nulls + j];
            for (int i = 0; i < s->n; i++)
                q[i * s->nulls + j] /= (double)sqrtl(square);
        }
    for (int j = 0; j < s->nulls; j++) {
        long double dot = 0;
        for (int i = 0; i < s->n; i++)
            dot += (long double)q[i * s->nulls + j] * v[i];
        for (int i = 0; i < s->n; i++)
            v[i] -= (double)dot * q[i * s->nulls + j];
        part = hypot(part, (double)dot);
    }
    free(q);
    return part;
}

static spmv_csr sparse(const struct singular *s, int32_t *row_ptr, int32_t *col, double *val)
{
    int nnz = 0;
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->n; j++)
            if (*entry(s, i, j) != 0) {
                col[nnz] = j;
                val[nnz++] = *entry(s, i, j);
            }
        row_ptr[i + 1] = nnz;
    }
    return support_csr(s->n, s->n, row_ptr, col, val);
}

static double distance(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum = hypot(sum, x[i] - y[i]);
    return sum;
}

static void multiply(const struct singular *s, const double *x, double *y)
{
    for (int i = 0; i < s->n; i++) {
        y[i] = 0;
        for (int j = 0; j < s->n; j++)
            y[i] += *entry(s, i, j) * x[j];
    }
}

/* b = A x + share w, where w has length 1 and is along the null vectors (of the transpose). */
static void known_system(const struct singular *s, double share, double *x, double *b)
{
    double w[MOST_ROWS], length = 0;
    uint64_t seed = 11;
    for (int i = 0; i < s->n; i++)
        x[i] = support_uniform(&seed);
    remove_part(s, x);
    multiply(s, x, b);
    for (int i = 0; i < s->n; i++) {
        w[i] = 0;
        for (int j = 0; j < s->nulls; j++)
            w[i] += (1 + j) * s->null[i * s->nulls + j] / (s->right_only ? 1 + i % 4 : 1);
        length = hypot(length, w[i]);
    }
    for (int i = 0; i < s->n; i++)
        b[i] += share * w[i] / length;
}

static void known_answers(void **state)
{
    static const double shares[] = {0, 1e-13, 0.5};
    spmv_context *ctx = *state;
    int solves = 0, wrong = 0;
    for (size_t n = 0; n < TABLE - 1 + DRAWS; n++) {
        const size_t t = n < TABLE ? n : TABLE - 1;
        const struct singular s = table[t].make();
        int32_t *const row_ptr = support_zeros(s.n + 1, 4), *const col = support_zeros((int64_t)s.n * s.n + 1, 4);
        double *const val = support_zeros((int64_t)s.n * s.n + 1, 8);
        const spmv_csr a = sparse(&s, row_ptr, col, val);
        void *const null = support_upload(ctx, s.null, s.n * s.nulls * (int64_t)8);
        for (int m = 0; m < 4 && table[t].solvers[m] != NULL; m++)
            for (int k = 0; k < 3; k++) {
                if (SLOW && (n + (size_t)(m + k)) % 6 != 0) /* an emulated GPU: a sixth of them, in turn */
                    continue;
                double x[MOST_ROWS], b[MOST_ROWS], got[MOST_ROWS], ab[MOST_ROWS];
                spmv_solver_options o;
                spmv_solver_result r;
                spmv_solver *solver = NULL;
                spmv_solver_options_init(&o, sizeof o);
                o.solver = table[t].solvers[m];
                o.rtol = 1e-10;
                o.zero_start = k != 0; /* else a start along a null vector */
                if (table[t].how == GIVEN) {
                    o.null_space = null;
                    o.null_vectors = s.nulls;
                }
                o.null_block = table[t].block;
                known_system(&s, shares[k], x, b);
                for (int i = 0; i < s.n; i++)
                    got[i] = 3 * s.null[i * s.nulls];
                void *const of_b = support_upload(ctx, b, s.n * (int64_t)8);
                void *const there = support_upload(ctx, got, s.n * (int64_t)8);
                spmv_status st = spmv_solver_create(ctx, &a, &o, &solver);
                if (st == SPMV_OK)
                    st = spmv_solver_solve(solver, of_b, there, &r, sizeof r);
                else
                    r.status = st;
                support_fetch_as(ctx, SPMV_F64, there, s.n, got);
                multiply(&s, got, ab);
                const double residual = distance(ab, b, s.n), error = distance(got, x, s.n);
                const bool solvable = shares[k] == 0 || (shares[k] < 0.1 && r.norm_b > 1);
                const bool right = solvable       ? st == SPMV_OK
                                   : s.right_only ? spmv_status_class(st) == 7
                                                  : st == SPMV_ERROR_INCONSISTENT;
                const bool late = found_late(t) && solvable;
                const bool size = late || s.right_only || fabs(r.null_part - shares[k]) < 1e-12 * (1 + r.norm_b);
                const bool unique = late || (s.right_only && !solvable) || error < 1e-6;
                solves++;
                if (!right || st != r.status || !unique || !size ||
                    fabs(residual - r.true_residual) > 1e-6 * residual + 1e-12 ||
                    (!late && r.null_vectors != s.nulls)) {
                    wrong++;
                    print_error("%s, %s, share %g: %s, residual %g (reported %g), error %g, null part %g of %lld: %s\n",
                                table[t].name, o.solver, shares[k], spmv_status_name(st), residual, r.true_residual,
                                error, r.null_part, (long long)r.null_vectors, spmv_last_error(ctx));
                }
                spmv_solver_destroy(solver);
                support_free_in(ctx, of_b, there);
            }
        spmv_free(ctx, null);
        support_free(s.a, s.null, row_ptr, col, val);
    }
    print_message("%d solves, %d wrong\n", solves, wrong);
    assert_int_equal(wrong, 0);
}

/* ------------------------------------------------------------- other cases */

/* Solves with the grid of g, with null vectors of its type; the solution is in x. */
static spmv_status solve_given(spmv_context *ctx, const struct grid *g, spmv_solver_options *o, const double *null,
                               int count, double *x, spmv_solver_result *r)
{
    void *const there =
        null == NULL ? NULL : support_upload_as(ctx, g->view.type, null, g->n * (count > 0 ? count : 1), 0);
    o->null_space = there;
    o->null_vectors = count;
    r->status = SPMV_OK;
    const spmv_status st = grid_solve(ctx, g, o, x, r);
    spmv_free(ctx, there);
    return st;
}

/* Vectors that are none, that are 0, not finite or dependent; options that exclude each other. */
static void wrong_vectors(void **state)
{
    enum { SIDE = 5, N = SIDE * SIDE };
    static const struct {
        double number; /* in row 3 of vector 2, which is else 2; vector 1 is 1 */
        spmv_status status;
        const char *message;
    } cases[] = {
        {2, SPMV_OK, NULL},
        {2 + 1e-9, SPMV_OK, NULL},
        {2.1, SPMV_ERROR_ARGUMENT, "vector 2 of 2 is not a null vector of A: for v of length 1, ||A v|| is 0.0"},
        {NAN, SPMV_ERROR_NOT_FINITE, "null vector 2 of 2 has a number that is not finite in row 3"}};
    spmv_context *ctx = *state;
    struct grid g = grid_new(SIDE, 1, true, 0, SPMV_F64);
    double null[2 * N], x[N];
    spmv_solver_result r;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    g.b[0] = 1;
    g.b[1] = -1;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < N; i++) {
            null[2 * i] = 1;
            null[2 * i + 1] = i == 3 ? cases[c].number : 2;
        }
        const spmv_status st = solve_given(ctx, &g, &o, null, 2, x, &r);
        if (cases[c].message != NULL)
            assert_fails(ctx, st, cases[c].status, cases[c].message);
        else
            assert_ok(ctx, st);
        if (st == SPMV_OK)
            assert_int_equal(r.null_vectors, 1);
    }
    for (int i = 0; i < 2 * N; i++)
        null[i] = 0;
    assert_fails(ctx, solve_given(ctx, &g, &o, null, 2, x, &r), SPMV_ERROR_ARGUMENT, "null vector 1 of 2 is 0");
    assert_fails(ctx, solve_given(ctx, &g, &o, null, 0, x, &r), SPMV_ERROR_ARGUMENT,
                 "option null_vectors 0: must be 1");
    assert_fails(ctx, solve_given(ctx, &g, &o, NULL, 1, x, &r), SPMV_ERROR_ARGUMENT,
                 "option null_vectors 1: must be 0");
    o.null_block = 2;
    assert_fails(ctx, solve_given(ctx, &g, &o, NULL, 0, x, &r), SPMV_ERROR_SIZE,
                 "25 rows are not a multiple of the option null_block, 2");
    assert_fails(ctx, solve_given(ctx, &g, &o, null, 2, x, &r), SPMV_ERROR_ARGUMENT, "are both given");
    o.null_block = 5;
    assert_fails(ctx, solve_given(ctx, &g, &o, NULL, 0, x, &r), SPMV_ERROR_ARGUMENT, "vector 1 of 5 is not a null");
    o.null_block = 1;
    o.solver = "cg"; /* A is not symmetric, and b is not consistent: the first is said */
    g.b[0] = 2;
    for (int64_t k = g.row_ptr[7]; k < g.row_ptr[8]; k++)
        g.val[k] *= 2;
    grid_retype(&g);
    assert_fails(ctx, solve_given(ctx, &g, &o, NULL, 0, x, &r), SPMV_ERROR_NOT_SYMMETRIC, "is not symmetric");
    o.solver = "direct";
    assert_fails(ctx, solve_given(ctx, &g, &o, NULL, 0, x, &r), SPMV_ERROR_UNSUPPORTED, "the solver direct needs");
    grid_free(&g);
}

/* In f32, with inner iterations in f32, and with several right-hand sides: x of minimum norm. */
static void other_types(void **state)
{
    enum { SIDE = SLOW ? 6 : 20, N = SIDE * SIDE, VECTORS = 3 };
    static const char *const preconds[] = {"none", "jacobi", "amg", "auto"};
    spmv_context *ctx = *state;
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < 4; p++) {
            const spmv_type type = c == 0 ? SPMV_F32 : SPMV_F64;
            struct grid g = grid_new(SIDE, 1, true, 0, type);
            double *const x = support_zeros(N * VECTORS, 8);
            spmv_solver_result r[VECTORS];
            spmv_solver_options o;
            spmv_solver_options_init(&o, sizeof o);
            o.null_block = 1;
            o.precond = preconds[p];
            o.inner = c == 1;
            o.vectors = c == 2 ? VECTORS : 1;
            o.rtol = c == 0 ? 1e-4 : 1e-9;
            g.b[0] = 1;
            g.b[N / 2] = -1;
            assert_ok(ctx, grid_solve(ctx, &g, &o, x, r));
            for (int v = 0; v < o.vectors; v++) {
                double sum = 0;
                for (int i = 0; i < N; i++)
                    sum += x[i * o.vectors + v];
                assert_true(r[v].status == SPMV_OK && r[v].null_vectors == 1 &&
                            r[v].true_residual <= 2 * r[v].tolerance);
                if (c != 2)
                    assert_true(fabs(sum) < (c == 0 ? 1e-4 : 1e-12) * N);
            }
            free(x);
            grid_free(&g);
        }
}

/* A Hermitian matrix D* L D with the null vector D* 1, |D| = 1, and a complex b. */
static void complex_vectors(void **state)
{
    enum { N = 30 };
    spmv_context *ctx = *state;
    int32_t row_ptr[N + 1] = {0}, col[3 * N];
    double val[6 * N], null[2 * N], b[2 * N], x[2 * N] = {0}, along[2] = {0};
    int nnz = 0;
    for (int i = 0; i < N; i++) {
        null[2 * i] = cos(i);
        null[2 * i + 1] = sin(i);
        b[2 * i] = i % 3;
        b[2 * i + 1] = i % 5;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) { /* null_i conj(null_j) L_ij */
            const double value = i != j ? -1 : i == 0 || i == N - 1 ? 1 : 2;
            col[nnz] = j;
            val[2 * nnz] = value * cos(i - j);
            val[2 * nnz++ + 1] = value * sin(i - j);
        }
        row_ptr[i + 1] = nnz;
    }
    spmv_csr a = support_csr(N, N, row_ptr, col, val);
    a.type = SPMV_C128;
    spmv_solver_options o;
    spmv_solver_result r;
    spmv_solver *solver = NULL;
    spmv_solver_options_init(&o, sizeof o);
    void *const there = support_upload(ctx, null, sizeof null), *const of_b = support_upload(ctx, b, sizeof b),
                *const of_x = support_upload(ctx, x, sizeof x);
    o.null_space = there;
    o.null_vectors = 1;
    for (int i = 0; i < N; i++) {
        along[0] += null[2 * i] * b[2 * i] + null[2 * i + 1] * b[2 * i + 1];
        along[1] += null[2 * i] * b[2 * i + 1] - null[2 * i + 1] * b[2 * i];
    }
    const double part = hypot(along[0], along[1]) / sqrt(N);
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_fails(ctx, spmv_solver_solve(solver, of_b, of_x, &r, sizeof r), SPMV_ERROR_INCONSISTENT,
                 "1 null vector is given) and b has a part that no x reaches: subtract its part along the null");
    assert_true(fabs(r.null_part - part) < 1e-12 && fabs(r.true_residual - part) < 1e-6);
    assert_ok(ctx, spmv_download(ctx, of_x, x, sizeof x));
    along[0] = along[1] = 0;
    for (int i = 0; i < N; i++) {
        along[0] += null[2 * i] * x[2 * i] + null[2 * i + 1] * x[2 * i + 1];
        along[1] += null[2 * i] * x[2 * i + 1] - null[2 * i + 1] * x[2 * i];
    }
    assert_true(hypot(along[0], along[1]) < 1e-11);
    spmv_solver_destroy(solver);
    spmv_free(ctx, there);
    support_free_in(ctx, of_b, of_x);
}

/* New values whose null vectors are others: solves fail with the reason, until there are right ones. */
static void new_values(void **state)
{
    enum { SIDE = 6, N = SIDE * SIDE };
    spmv_context *ctx = *state;
    struct grid g = grid_new(SIDE, 1, true, 0, SPMV_F64);
    spmv_solver *solver = NULL;
    spmv_solver_options o;
    spmv_solver_result r;
    spmv_solver_options_init(&o, sizeof o);
    o.null_block = 1;
    g.b[0] = 1;
    g.b[N - 1] = -1;
    void *const b = support_upload_as(ctx, SPMV_F64, g.b, N, 0), *const x = support_upload_as(ctx, SPMV_F64, g.b, N, 0);
    void *const right = support_upload(ctx, g.val, g.view.nnz * 8);
    g.val[0] += 1;
    void *const wrong = support_upload(ctx, g.val, g.view.nnz * 8);
    assert_ok(ctx, spmv_solver_create(ctx, &g.view, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, b, x, &r, sizeof r));
    assert_fails(ctx, spmv_solver_update_values(solver, wrong), SPMV_ERROR_ARGUMENT, "is not a null vector");
    assert_fails(ctx, spmv_solver_solve(solver, b, x, &r, sizeof r), SPMV_ERROR_ARGUMENT, "is not a null vector");
    assert_ok(ctx, spmv_solver_update_values(solver, right));
    assert_ok(ctx, spmv_solver_solve(solver, b, x, &r, sizeof r));
    assert_int_equal(r.null_vectors, 1);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b, x, right, wrong);
    grid_free(&g);
}

SUPPORT_MAIN(with_context(known_answers), with_context(wrong_vectors), with_context(other_types),
             with_context(complex_vectors), with_context(new_values))
