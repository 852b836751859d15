/* The output of spmv bench: a table, CSV, JSON and a summary, each written as trials end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include "app/commands.h"
#include "app/input.h"
#include "app/output.h"
#include "bench/quiet.h"
#include "bench/trial.h"

/* The reasons to distrust the figures of a run. */
struct bench_trust {
    struct machine_load load; /* at the start */
    char doubt[128];          /* why that load makes figures unreliable; "" */
    int rows, unsteady;       /* rows measured; those that are not steady (quiet.h) */
};

/* threads: of the measured work. */
void bench_trust_begin(struct bench_trust *trust, const struct machine_load *load, int threads);
void bench_trust_row(struct bench_trust *trust, const struct timing *seconds);

/* The reason why figures are not reliable, without a full stop; "": none is known. */
void bench_trust_text(const struct bench_trust *trust, char *text, size_t size);
json_t *bench_trust_json(const struct bench_trust *trust);

/* "at the start: load average 0.31, other processes used 2% of 4 processors" */
void bench_load_text(const struct machine_load *load, char *text, size_t size);

/* json_timing with the spread, and whether the time is steady. */
json_t *bench_timing_json(const struct timing *seconds);

/* A line of text being built. Text that does not fit is cut off; blanks at the end are removed. */
enum { LINE_SIZE = 4096 };
struct line {
    char text[LINE_SIZE];
    size_t length;
};
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);
spmv_status line_end(struct line *line, struct text_file *file);

/* Writes words in lines of at most 120 columns, each of which begins with begin. */
spmv_status bench_wrap(struct text_file *file, const char *begin, const char *words);

/* The run that all trials belong to. */
struct bench_run {
    const struct options *o;
    const struct operation *operation;
    spmv_backend backend;
    const struct device *device;
    struct bandwidth bandwidth;
    int64_t bandwidth_age; /* seconds since an earlier run measured it; -1: measured in this run */
    struct bench_trust trust;
    bool solutions; /* --precond: whole solutions are timed */
    struct candidate_list list;
};

/* A trial and its operand. */
struct bench_case {
    const struct trial *trial;
    const char *name;                  /* of the matrix, or "n = 1000" */
    const struct input *in;            /* NULL: no matrix */
    const spmv_statistics *statistics; /* of the matrix */
};

/* Writes the rows of the table: one per method of spmv and per peer. */
spmv_status bench_table(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head);
spmv_status bench_csv(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head);

/* Writes a line per method of spmv that could be opened. If there is none, writes one for the
 * peers. */
spmv_status bench_json(struct text_file *file, const struct bench_run *run, const struct bench_case *c);

/* trial_trust adds the rows of a trial. bench_trial_trust: how reliable the figures of this trial
 * alone are. */
void trial_trust(const struct trial *t, struct bench_trust *trust);
json_t *bench_trial_trust(const struct bench_run *run, const struct trial *t);

/* --op load (bench_load.c): refuses options without effect; writes a row, and a line, as
 * bench_table and bench_json do. */
spmv_status bench_load_check(const struct options *o, int count);
spmv_status bench_load_table(struct text_file *file, const struct bench_run *run, const struct bench_case *c,
                             bool with_head);
json_t *bench_load_json(const struct bench_run *run, const struct bench_case *c);

/* Ratios of times, peer over spmv's, collected from trial to trial. */
struct bench_summary {
    struct ratio *ratios;
    int64_t count, capacity;
};
spmv_status bench_summary_add(struct bench_summary *summary, const struct bench_case *c);
spmv_status bench_summary_print(const struct bench_summary *summary, struct text_file *file);
void bench_summary_free(struct bench_summary *summary);

#endif
