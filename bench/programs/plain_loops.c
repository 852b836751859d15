/* The usual code without a library, for comparison: an fscanf loop into coordinates, counting into
 * CSR, and a plain OpenMP loop over the rows. Prints one line of JSON: load_seconds,
 * product_seconds (median), checksum.
 *
 *   plain_loops A.mtx [REPEATS]
 *
 * Reads coordinate files: real, integer and pattern, general and symmetric. Does not check its
 * input, as is usual for such programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct csr {
    long rows, cols, nnz;
    long *row_ptr;
    int *col;
    double *val;
};

static void *get(size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (p == NULL)
        exit(5);
    return p;
}

static int load(const char *path, struct csr *a)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    if (f == NULL || fgets(line, sizeof line, f) == NULL)
        return 2;
    const int pattern = strstr(line, "pattern") != NULL, symmetric = strstr(line, "symmetric") != NULL;
    const double mirror = strstr(line, "skew") != NULL ? -1 : 1;
    if (strstr(line, "coordinate") == NULL || strstr(line, "complex") != NULL)
        return 4;
    do {
        if (fgets(line, sizeof line, f) == NULL)
            return 3;
    } while (line[0] == '%');
    long entries = 0;
    if (sscanf(line, "%ld %ld %ld", &a->rows, &a->cols, &entries) != 3)
        return 3;
    const long room = symmetric ? 2 * entries : entries;
    int *row = get((size_t)room * sizeof *row), *col = get((size_t)room * sizeof *col);
    double *val = get((size_t)room * sizeof *val);
    long n = 0;
    for (long e = 0; e < entries; e++) {
        int i, j;
        double v = 1;
        if (fscanf(f, "%d %d", &i, &j) != 2 || (!pattern && fscanf(f, "%lf", &v) != 1))
            return 3;
        row[n] = i - 1;
        col[n] = j - 1;
        val[n++] = v;
        if (symmetric && i != j) {
            row[n] = j - 1;
            col[n] = i - 1;
            val[n++] = mirror * v;
        }
    }
    fclose(f);
    a->nnz = n;
    a->row_ptr = get((size_t)(a->rows + 2) * sizeof *a->row_ptr);
    memset(a->row_ptr, 0, (size_t)(a->rows + 2) * sizeof *a->row_ptr);
    a->col = get((size_t)n * sizeof *a->col);
    a->val = get((size_t)n * sizeof *a->val);
    for (long k = 0; k < n; k++)
        a->row_ptr[row[k] + 2]++;
    for (long i = 0; i < a->rows; i++)
        a->row_ptr[i + 2] += a->row_ptr[i + 1];
    for (long k = 0; k < n; k++) {
        const long to = a->row_ptr[row[k] + 1]++;
        a->col[to] = col[k];
        a->val[to] = val[k];
    }
    free(row);
    free(col);
    free(val);
    return 0;
}

static void product(const struct csr *a, const double *x, double *y)
{
#pragma omp parallel for
    for (long i = 0; i < a->rows; i++) {
        double sum = 0;
        for (long k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++)
            sum += a->val[k] * x[a->col[k]];
        y[i] = sum;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct csr a;
    const int repeats = argc > 2 ? atoi(argv[2]) : 21;
    if (argc < 2 || repeats < 1) {
        fprintf(stderr, "usage: plain_loops A.mtx [REPEATS]\n");
        return 1;
    }
    double begin = omp_get_wtime();
    const int st = load(argv[1], &a);
    if (st != 0)
        return st;
    const double load_seconds = omp_get_wtime() - begin;
    double *x = get((size_t)a.cols * sizeof *x), *y = get((size_t)a.rows * sizeof *y);
    double *seconds = get((size_t)repeats * sizeof *seconds);
    for (long j = 0; j < a.cols; j++)
        x[j] = 1;
    product(&a, x, y);
    for (int r = 0; r < repeats; r++) {
        begin = omp_get_wtime();
        product(&a, x, y);
        seconds[r] = omp_get_wtime() - begin;
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
    double sum = 0;
    for (long i = 0; i < a.rows; i++)
        sum += y[i];
    printf("{\"load_seconds\": %.9g, \"product_seconds\": %.9g, \"nnz\": %ld, \"checksum\": %.17g}\n", load_seconds,
           seconds[repeats / 2], a.nnz, sum);
    return 0;
}
