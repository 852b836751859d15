/* The lists of the suites.
 *
 *   small  the families on which CPUs differ
 *   std    the same families at sizes beyond a GPU's caches, and twins of well-known matrices
 *   cg     symmetric positive definite systems
 *   large  matrices that need the memory of a large GPU
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "suites.h"

#include <stddef.h>
#include <string.h>

static const char *const small[] = {
    "poisson2d:1000",
    "poisson3d:100",
    "stencil27:60",
    "banded:60000,40",
    "fem:24000,3,23",
    "uniform:300000,300000,16",
    "rmat:18,16",
    "arrow:1000000,750000,4",
    "empty:2000000,0.95",
    "diagonal:3000000",
    "longrows:1,5000000,4000000",
    "uniform:2000000,1000,2",    /* tall */
    "uniform:1000,2000000,4000", /* wide */
    NULL,
};

static const char *const standard[] = {
    "poisson2d:2048",
    "poisson3d:160",
    "stencil27:112",
    "banded:500000,40",
    "fem:140000,3,22.8",
    "uniform:2000000,2000000,16",
    "uniform:16000000,16000000,2",
    "rmat:21,16",
    "powerlaw:5600000,10.3,2,1290501",
    "arrow:4000000,3000000,4",
    "empty:8000000,0.95,20.5",
    "longrows:64,1100000,362000",
    "poisson2d:100",
    "poisson2d:512",
    "twin:mc2depi",
    "twin:roadNet-TX",
    "twin:webbase-1M",
    "twin:scircuit",
    "twin:ASIC_680k",
    "twin:mac_econ_fwd500",
    "twin:cop20k_A",
    "twin:in-2004",
    "twin:rma10",
    "twin:pwtk",
    "twin:shipsec1",
    "twin:cant",
    "twin:consph",
    "twin:pdb1HYS",
    "twin:mip1",
    "twin:rail4284",
    "twin:circuit5M",
    "twin:ldoor",
    "twin:kron_g500-logn18",
    "twin:delaunay_n22",
    NULL,
};

static const char *const large[] = {
    "poisson2d:8192",
    "poisson3d:384",
    "stencil27:224",
    "banded:4000000,40",
    "fem:1200000,3,23",
    "uniform:16000000,16000000,16",
    "rmat:24,16",
    "powerlaw:33000000,10.3,2,7700000",
    "longrows:64,8000000,4000000",
    NULL,
};

/* Systems for conjugate gradients: some fit on a chip, some in its caches, some in neither. */
static const char *const solvers[] = {
    "poisson2d:32", "poisson2d:100", "poisson2d:316", "poisson2d:1000", "poisson2d:2000",
    "poisson3d:50", "poisson3d:100", "poisson3d:200", "stencil27:104",  NULL,
};

static const struct {
    const char *name, *about;
    const char *const *specs;
} suites[] = {
    {"small", "13 families of 0.4 to 6 million nonzeros: under 2 minutes on 4 cores", small},
    {"std", "14 generated matrices and 20 twins of up to 60 million nonzeros: under 8 minutes on a GPU", standard},
    {"cg", "9 systems of 1,000 to 8 million rows, for --op cg: a minute on a GPU", solvers},
    {"large", "hundreds of millions of nonzeros: 40 GB of memory", large},
};
enum { SUITES = sizeof suites / sizeof suites[0] };

const char *const *suite_find(const char *name)
{
    for (int s = 0; s < SUITES; s++)
        if (strcmp(suites[s].name, name) == 0)
            return suites[s].specs;
    return NULL;
}

const char *suite_name(int index, const char **about)
{
    if (index < 0 || index >= SUITES)
        return NULL;
    *about = suites[index].about;
    return suites[index].name;
}
