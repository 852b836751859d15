/* What preconditioners cost: see precond_costs.h. The numbers are means of measurements on grids and
 * finite-element matrices (docs/notebook/preconditioners.md), and hold within a factor of two.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/precond/precond_costs.h"

#include <string.h>

/* On a CPU: between those of one thread and of sixteen, where an iteration speeds up more than a
 * set-up. */
static const struct {
    const char *name;
    struct precond_cost cost;
} on_cpu[] = {
    {"none", {0, 1, 200}},
    {"jacobi", {0, 1, 200}},
    {"ic0", {25, 2, 100}},
    {"amg", {100, 8, 20}},
};

/* On a GPU, a system of at most so many rows and entries fits the rung persistent of conjugate
 * gradients. */
enum { CACHED_ROWS = 245000, CACHED_ENTRIES = 1000000 };

static struct precond_cost on_gpu(const char *name, double rows, double entries, bool light)
{
    const double millions = 1e-6 * rows, read = 1e-6 * entries;
    if (strcmp(name, "amg") == 0)
        return (struct precond_cost){2100 + 520 * read, 95 + 150 * millions + 12 * read, 16};
    const bool cached = rows <= CACHED_ROWS && (light || entries <= CACHED_ENTRIES);
    return (struct precond_cost){0, (cached ? 3 + 9 * millions : 6 + 15 * millions) + (light ? 0.9 : 4) * read, 500};
}

struct precond_cost precond_cost(bool gpu, const char *name, int64_t rows, int64_t nnz, bool light)
{
    if (gpu)
        return on_gpu(name, (double)rows, (double)nnz, light);
    for (size_t i = 0; i < sizeof on_cpu / sizeof *on_cpu; i++)
        if (strcmp(on_cpu[i].name, name) == 0)
            return on_cpu[i].cost;
    return on_cpu[0].cost;
}
