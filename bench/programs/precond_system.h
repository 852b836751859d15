/* A system A x = b in a file, for the programs that solve it with other libraries' preconditioners
 * (scripts/tables/precond_peers.py writes it).
 *
 *   int64_t rows, nnz; int32_t row_ptr[rows + 1], col[nnz]; padding to a multiple of 8 bytes;
 *   double val[nnz], b[rows], x[rows]
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_SYSTEM_H
#define PRECOND_SYSTEM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct precond_system {
    int64_t rows, nnz;
    int32_t *row_ptr, *col;
    double *val, *b, *x; /* x: the solution */
};

/* Returns 0, or -1 with a message on the standard error. */
static inline int precond_system_read(const char *path, struct precond_system *s)
{
    FILE *const file = fopen(path, "rb");
    int64_t head[2];
    if (file == NULL || fread(head, sizeof head, 1, file) != 1) {
        fprintf(stderr, "%s: not a system\n", path);
        return -1;
    }
    const size_t rows = (size_t)(s->rows = head[0]), nnz = (size_t)(s->nnz = head[1]);
    const size_t indices = rows + 1 + nnz, numbers = nnz + 2 * rows;
    int32_t *const index = (int32_t *)malloc((indices + 1) * sizeof *index);
    double *const number = (double *)malloc((numbers + 1) * sizeof *number);
    const size_t padded = (indices + 1) / 2 * 2;
    const int complete = index != NULL && number != NULL && fread(index, sizeof *index, padded, file) == padded &&
                         fread(number, sizeof *number, numbers, file) == numbers;
    fclose(file);
    if (!complete) {
        fprintf(stderr, "%s: incomplete\n", path);
        return -1;
    }
    s->row_ptr = index;
    s->col = index + rows + 1;
    s->val = number;
    s->b = number + nnz;
    s->x = s->b + rows;
    return 0;
}

/* The times of repeated tries: at most so many, and none after so many seconds in all. */
enum { PRECOND_TRIES = 5, PRECOND_SECONDS = 2 };

struct precond_times {
    int count;
    double setup[PRECOND_TRIES], solve[PRECOND_TRIES], processors[PRECOND_TRIES];
};

/* Adds a try; returns whether there is another one. */
static inline int precond_times_add(struct precond_times *t, double setup, double solve, double processors)
{
    double all = 0;
    t->setup[t->count] = setup;
    t->solve[t->count] = solve;
    t->processors[t->count++] = processors;
    for (int i = 0; i < t->count; i++)
        all += t->setup[i] + t->solve[i];
    return t->count < PRECOND_TRIES && all < PRECOND_SECONDS;
}

static inline double precond_median(const double *samples, int count)
{
    double sorted[PRECOND_TRIES];
    for (int i = 0; i < count; i++) {
        int j = i;
        for (; j > 0 && sorted[j - 1] > samples[i]; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = samples[i];
    }
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Prints medians: iterations, seconds of set-up, of the solve, and of all processors, ||b - A x|| / ||b||,
 * ||x - solution|| / ||solution||. */
static inline void precond_system_print(const struct precond_system *s, const double *x, int64_t iterations,
                                        const struct precond_times *t)
{
    double rr = 0, bb = 0, ee = 0, xx = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        double r = s->b[i];
        for (int32_t k = s->row_ptr[i]; k < s->row_ptr[i + 1]; k++)
            r -= s->val[k] * x[s->col[k]];
        rr += r * r;
        bb += s->b[i] * s->b[i];
        ee += (x[i] - s->x[i]) * (x[i] - s->x[i]);
        xx += s->x[i] * s->x[i];
    }
    printf("%lld,%.6f,%.6f,%.6f,%.3g,%.3g\n", (long long)iterations, precond_median(t->setup, t->count),
           precond_median(t->solve, t->count), precond_median(t->processors, t->count), sqrt(rr / bb), sqrt(ee / xx));
}

#endif
