/* The lists of the suites.
 *
 *   small  the families on which CPUs differ
 *   std    the same families at sizes beyond a GPU's caches, and twins of well-known matrices; its
 *          list stays as it is, so that geometric means compare
 *   more   shapes that std lacks: long rows, linear programs, operators with own values, other twins
 *   many   the families of std and graphs, at sizes that leave room for hundreds of vectors
 *   cg     symmetric positive definite systems
 *   general  systems that are not symmetric
 *   large  matrices that need the memory of a large GPU
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/suites.h"

#include <stddef.h>
#include <string.h>

#include "core/name_list.h"

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

/* The figures of the last ten are those of the validation list that data/twins.csv names. */
static const char *const more[] = {
    /* rows of 1,000 to 8,000 entries */
    "uniform:20000,20000,1100",
    "uniform:20000,20000,2500",
    "twin:rows=22283,nnz=24669643,std=1409,max=7939,bw_frac=0.93,avg_neighbours=0.48,"
    "cross_row_similarity=0.28", /* human_gene1 */
    /* linear programs, short and wide (as rail4284 in std), and their transposes, tall and thin */
    "uniform:2000,2000000,5000",
    "uniform:2000000,2000,5",
    "twin:rows=1096894,cols=4284,nnz=11284032,max=12", /* sizes of rail4284, transposed */
    /* operators with their own values: all different, and few different ones */
    "diffusion2d:2048,10000,values=own",
    "diffusion3d:160,10000,values=own",
    "convdiff2d:2048,10,values=own",
    "convdiff3d:160,10,values=own",
    /* fluids, lattice physics, power flow, one full row, fluids, structures */
    "twin:rows=21200,nnz=1488768,std=6.327,max=80,bw_frac=0.0662,avg_neighbours=1.916,"
    "cross_row_similarity=0.963", /* raefsky3 */
    "twin:rows=49152,nnz=1916928,std=0,max=39,bw_frac=0.24469,avg_neighbours=1.4415,"
    "cross_row_similarity=0.81095", /* conf5_4-8x8-15 */
    "twin:rows=38120,nnz=16171169,std=484.24,max=983,bw_frac=0.48327,avg_neighbours=1.9799,"
    "cross_row_similarity=0.92741", /* TSOPF_RS_b2383 */
    "twin:rows=68121,nnz=5377761,std=1061.4,max=68121,bw_frac=0.045357,avg_neighbours=0.89599,"
    "cross_row_similarity=0.99371", /* Chebyshev4 */
    "twin:rows=161070,nnz=8185136,std=19.698,max=92,bw_frac=0.039586,avg_neighbours=1.2795,"
    "cross_row_similarity=0.86886", /* PR02R */
    "twin:rows=63838,nnz=14148858,std=95.876,max=3423,bw_frac=0.86577,avg_neighbours=1.7315,"
    "cross_row_similarity=0.86687", /* crankseg_2 */
    /* quantum chemistry, two graphs of links, DNA electrophoresis */
    "twin:rows=268096,nnz=18488476,std=105.39,max=702,bw_frac=0.17227,avg_neighbours=1.184,"
    "cross_row_similarity=0.96957", /* Ga41As41H72 */
    "twin:rows=862664,nnz=19235140,std=29.333,max=6985,bw_frac=0.2489,avg_neighbours=1.3308,"
    "cross_row_similarity=0.76017", /* eu-2005 */
    "twin:rows=1634989,nnz=19753078,std=31.075,max=4970,bw_frac=0.34006,avg_neighbours=0.067098,"
    "cross_row_similarity=0.070929", /* wikipedia-20051105 */
    "twin:rows=5154859,nnz=99199551,std=5.7367,max=47,bw_frac=0.21196,avg_neighbours=0.19755,"
    "cross_row_similarity=0.79411", /* cage15 */
    NULL,
};

/* For products of many vectors: up to 1.4 million rows and 21 million nonzeros. 128 vectors of f64 take at most 1.5 GB
 * for each of X and Y. */
static const char *const many[] = {
    /* meshes and bands */
    "poisson2d:100",
    "poisson2d:700",
    "poisson3d:80",
    "stencil27:60",
    "banded:100000,40",
    "fem:40000,3,22.8",
    /* no structure, long rows, empty rows */
    "uniform:500000,500000,16",
    "uniform:1000000,1000000,2",
    "arrow:400000,300000,4",
    "empty:1000000,0.95,20.5",
    "longrows:64,110000,36200",
    /* well-known matrices */
    "twin:mc2depi",
    "twin:cant",
    "twin:pwtk",
    "twin:cop20k_A",
    "twin:scircuit",
    "twin:mac_econ_fwd500",
    "twin:mip1",
    "twin:rma10",
    "twin:shipsec1",
    "twin:consph",
    "twin:pdb1HYS",
    "twin:ASIC_680k",
    "twin:rail4284",
    /* ldoor and circuit5M with a fourth of the rows */
    "twin:rows=238051,nnz=11630619,std=11.947,max=77,bw_frac=0.20421,avg_neighbours=1.7967,"
    "cross_row_similarity=0.90605",
    "twin:rows=1389582,nnz=14881073,std=678.3,max=322625,bw_frac=0.50252,avg_neighbours=1.0653,"
    "cross_row_similarity=0.94277",
    /* graphs */
    "rmat:16,16",
    "rmat:18,16",
    "rmat:19,8",
    "powerlaw:500000,8,2.2,50000",
    "powerlaw:1000000,4,2,100000",
    "twin:kron_g500-logn18",
    "twin:in-2004",
    "twin:webbase-1M",
    "twin:roadNet-TX",
    "twin:rows=1048576,nnz=6291372,std=1.3364,max=23,bw_frac=0.41968,avg_neighbours=0.49373,"
    "cross_row_similarity=0.48091",                     /* delaunay_n20 */
    "twin:rows=334863,nnz=1851744,std=5.76,max=549",    /* com-Amazon */
    "twin:rows=1134890,nnz=5975248,std=50.8,max=28754", /* com-Youtube */
    "twin:rows=916428,nnz=5105039,std=6.55,max=456",    /* web-Google */
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

/* Systems for gmres and bicgstab: convection and diffusion, of 10,000 to 8 million rows. */
static const char *const general[] = {
    "convdiff2d:100,1", "convdiff2d:316,1", "convdiff3d:100,1", "convdiff3d:200,1", NULL,
};

static const struct {
    const char *name, *about;
    const char *const *specs;
} suites[] = {
    {"small", "13 families of 0.4 to 6 million nonzeros: under 2 minutes on 4 cores", small},
    {"std", "14 generated matrices and 20 twins of up to 60 million nonzeros: under 8 minutes on a GPU", standard},
    {"more", "20 matrices that std lacks, of up to 99 million nonzeros: some minutes on a GPU", more},
    {"many", "39 matrices, 13 of them graphs, for --op spmm and sddmm: minutes on a GPU", many},
    {"cg", "9 systems of 1,000 to 8 million rows, for --op cg: a minute on a GPU", solvers},
    {"general", "4 systems that are not symmetric, of up to 8 million rows, for --op gmres and bicgstab", general},
    {"large", "hundreds of millions of nonzeros: 40 GB of memory", large},
};
enum { SUITES = sizeof suites / sizeof suites[0] };
NAMES_HOLD(SUITES);

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
