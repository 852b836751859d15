/* The known twins against the figures of data/twins.csv, measured with spmv_matrix_statistics
 * (test_locality checks its locality figures against their definitions). Prints the required and
 * the measured figures. With the argument "all" also the five twins of more than 2^24 nonzeros,
 * which take half of the time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/clock.h"
#include "formats/matrix_internal.h"
#include "tests/support/support.h"

struct asked {
    char name[64];
    long long rows, cols, nnz, max;
    double mean, std, bw_frac, avg_neighbours, cross_row_similarity;
};

/* Checks that a figure is within a share of the required one. */
static void check_near(const char *name, const char *figure, double got, double asked, double share)
{
    if (!(fabs(got - asked) <= share * asked))
        fail_msg("twin:%s: %s is %.6g, more than %g %% from %.6g", name, figure, got, 100 * share, asked);
}

static bool all;

static void check_twin(spmv_context *ctx, const struct asked *t)
{
    char spec[128];
    spmv_matrix *m = NULL;
    spmv_csr a;
    spmv_statistics s;
    snprintf(spec, sizeof spec, "twin:%s", t->name);
    const double begin = monotonic_seconds();
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &m));
    const double end = monotonic_seconds();
    spmv_matrix_view(m, &a);
    assert_ok(ctx, csr_check(ctx, spec, &a, CSR_SORTED));
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s));
    printf("%-16s asked %9lld %8lld %11.6g %8.5g %7lld %9.5g %8.5g %8.5g\n", t->name, t->rows, t->nnz, t->mean, t->std,
           t->max, t->bw_frac, t->avg_neighbours, t->cross_row_similarity);
    printf("%-7.2f seconds  got %9lld %8lld %11.6g %8.5g %7lld %9.5g %8.5g %8.5g\n", end - begin, (long long)s.rows,
           (long long)s.nnz, s.row_mean, s.row_std, (long long)s.row_max, s.bw_frac, s.avg_neighbours,
           s.cross_row_similarity);
    fflush(stdout);
    assert_true(s.rows == t->rows && s.cols == t->cols && s.nnz == t->nnz && s.row_max == t->max);
    check_near(t->name, "the mean", s.row_mean, t->mean, 1e-3);
    check_near(t->name, "the standard deviation", s.row_std, t->std, 0.05);
    check_near(t->name, "bw_frac", s.bw_frac, t->bw_frac, 0.05);
    check_near(t->name, "avg_neighbours", s.avg_neighbours, t->avg_neighbours, 0.05);
    check_near(t->name, "cross_row_similarity", s.cross_row_similarity, t->cross_row_similarity, 0.1);
    spmv_matrix_destroy(m);
}

static void known_twins(void **state)
{
    char line[256];
    int count = 0;
    spmv_context *ctx = *state;
    char path[1024];
    snprintf(path, sizeof path, "%s/data/twins.csv", support_source_dir());
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    printf("%-22s %9s %8s %11s %8s %7s %9s %8s %8s\n", "", "rows", "nonzeros", "mean", "std", "max", "bw_frac",
           "neighb.", "similar");
    while (fgets(line, sizeof line, list) != NULL) {
        struct asked t;
        if (sscanf(line, "%63[^,],%lld,%lld,%lld,%lf,%lf,%lld,%lf,%lf,%lf", t.name, &t.rows, &t.cols, &t.nnz, &t.mean,
                   &t.std, &t.max, &t.bw_frac, &t.avg_neighbours, &t.cross_row_similarity) != 10)
            continue; /* comments and column names */
        count++;
        if (all || t.nnz <= 8000000)
            check_twin(ctx, &t);
    }
    fclose(list);
    assert_int_equal(count, 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_omp(known_twins, 0)};
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
