/* What spmv bench says: a table, CSV, JSON and a summary, each made from trials as they are done.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include "app.h"
#include "trial.h"

/* The run that all trials belong to. */
struct bench_run {
    const struct options *o;
    const struct operation *operation;
    spmv_backend backend;
    const struct device *device;
    struct bandwidth bandwidth;
    struct roster roster;
};

/* One trial's surroundings. */
struct bench_case {
    const struct trial *trial;
    const char *name;                  /* of the matrix, or "n = 1000" */
    const struct input *in;            /* NULL: no matrix */
    const spmv_statistics *statistics; /* of the matrix */
};

/* Rows of the table: one for each of ours and each peer. */
spmv_status bench_table(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head);
spmv_status bench_csv(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head);

/* A line for each of ours that was made ready; one for the peers alone when there is none of ours. */
spmv_status bench_json(struct text_file *file, const struct bench_run *run, const struct bench_case *c);

/* Ratios of times, peer over ours, collected from trial to trial. */
struct bench_summary {
    struct ratio *ratios;
    int64_t count, capacity;
};
spmv_status bench_summary_add(struct bench_summary *summary, const struct bench_case *c);
spmv_status bench_summary_print(const struct bench_summary *summary, FILE *stream);
void bench_summary_free(struct bench_summary *summary);

#endif
