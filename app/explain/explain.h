/* The parts of spmv explain. A page of texts, arrays and steps is collected first and then printed
 * in columns or as JSON (explain_page.c), or drawn (explain_picture.c). The subjects are in explain_primitives.c, explain_moves.c,
 * explain_product.c and explain_spgemm.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include <spmv/primitives.h>

#include "app/input.h"

/* One of three: a text; a named array; the cells of a rung after a step. */
struct explain_line {
    /* owned; the text, the title of the array, or the description of the step */
    char *label;
    const char *key;      /* name of an array in the JSON; NULL: not in the JSON, or a step */
    char *launch;         /* owned; of a step: the kernel's name; NULL: not a step */
    int64_t block;        /* of a step */
    int step;             /* of a step */
    int64_t n;            /* cells */
    double *cells;        /* owned; double represents all values of the types here, below 2^53 */
    unsigned char *heads; /* owned; 1: a segment starts in the cell; NULL: no segments */
    /* owned; of a step: 1 for each cell that the step changed; NULL: unknown */
    unsigned char *changed;
    spmv_type type;
    int64_t operations; /* of a step: total since the page began */
    bool idle;          /* of a step: spmv_trace.idle; not printed */
    uint64_t *sets;     /* owned; of a step: the elements in each cell (explain_picture.c), or NULL */
};

struct explain_page {
    struct explain_line *lines;
    int64_t count, room;
    spmv_status status; /* of the first failure: memory; already reported */
    int64_t operations; /* of all steps */
    int64_t base;       /* part of operations, in traces before the present one */
    int64_t widest;     /* largest number of cells of a step */
    int steps, launches, idle;
};

/* All these functions do nothing once the page has failed. */
void explain_text(struct explain_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds an array of n values. key: its name in the JSON; heads: n flags, or NULL. */
void explain_array(struct explain_page *page, const char *key, const char *title, spmv_type type, const void *values,
                   int64_t n, const uint8_t *heads);

/* Adds a step of a rung: an spmv_trace_fn; page: struct explain_page. Call explain_next_trace
 * before another trace on the same page. */
void explain_step(const spmv_trace *trace, void *page);
void explain_next_trace(struct explain_page *page);

/* The text of a cell, in the fewest digits that read back; returns the length. text: NUMBER_TEXT. */
int explain_cell_text(const struct explain_line *line, int64_t i, char *text);

/* Prints the page on standard output, in lines of at most 100 columns. */
void explain_print(const struct explain_page *page);

/* {"steps": [...], "operations": ..., and the arrays by name}. */
json_t *explain_json(const struct explain_page *page);
void explain_free(struct explain_page *page);

/* ---------------------------------------------------------------- the subjects */

/* The most values side by side, and so the longest array; a block can still hold it. */
enum { EXPLAIN_MOST = 1024 };

struct explain_job {
    const struct options *o;
    spmv_context *ctx; /* backend ref: its memory is host memory */
    struct explain_page page;
    spmv_scan_kind kind;
    spmv_op op;
    const char *rung;
    void *values, *out; /* owned */
    uint8_t *heads;     /* owned */
    int64_t n;
    struct input in; /* the product's matrix */
    json_t *more;    /* members of the JSON besides the page */
};

/* Adds the steps of a scan (heads: of a segmented scan, else NULL) or a reduction by the job's rung.
 * Complains. */
enum explain_trace { EXPLAIN_INCLUSIVE = SPMV_INCLUSIVE, EXPLAIN_EXCLUSIVE = SPMV_EXCLUSIVE, EXPLAIN_REDUCE };
spmv_status explain_trace_steps(struct explain_job *job, enum explain_trace what, spmv_op op, spmv_type type,
                                const uint8_t *heads, const void *in, void *out, int64_t n);

/* The page as a picture. explain_picture_ready: complains of a path (or NULL) that cannot be drawn. */
spmv_status explain_picture_ready(const char *path);
spmv_status explain_picture_write(const struct explain_page *page, const char *path);

/* These functions fill the page. words: the arguments after the command. */
spmv_status explain_product(struct explain_job *job, const char *const *words, int count);
spmv_status explain_spgemm(struct explain_job *job, const char *const *words, int count);
spmv_status explain_scan(struct explain_job *job, const char *const *words, int count);
spmv_status explain_segscan(struct explain_job *job, const char *const *words, int count);
spmv_status explain_reduce(struct explain_job *job, const char *const *words, int count);
spmv_status explain_compact(struct explain_job *job, const char *const *words, int count);
spmv_status explain_sort(struct explain_job *job, const char *const *words, int count);
spmv_status explain_histogram(struct explain_job *job, const char *const *words, int count);
spmv_status explain_expand(struct explain_job *job, const char *const *words, int count);
spmv_status explain_gather(struct explain_job *job, const char *const *words, int count);

/* Reads the words into job->values, n of the type. segments: "|" before a value starts a segment
 * (job->heads); *bars: whether there was one. Complains. */
spmv_status explain_values(struct explain_job *job, const char *const *words, int count, bool segments, bool *bars);

/* Parses "greater:2": the name of a predicate and its number, 0 if there is none. Complains. */
spmv_status explain_predicate(const char *text, spmv_predicate *predicate, double *scalar);

/* flags[i]: whether the library's predicate keeps value i of the job's type, found by compacting
 * that value alone. */
spmv_status explain_kept(const struct explain_job *job, spmv_predicate predicate, double scalar, const void *values,
                         int64_t n, int64_t *flags);

/* Adds a line with work, depth and source of a rung of the primitive, also to the JSON. An unknown
 * rung is reported by the call that runs it. */
void explain_rung(struct explain_job *job, const char *primitive, const char *rung);

/* Complains of a failed call on the job's context. */
spmv_status explain_status(const struct explain_job *job, spmv_status st);

/* Complains if n exceeds the limit for values side by side; what: "values". */
spmv_status explain_check_size(const struct options *o, const char *what, int64_t n);

/* Adds the last lines: operations, steps, launches. loop: operations of a serial loop; -1: not
 * shown. */
void explain_end(struct explain_job *job, int64_t loop);

/* The subjects of explain --op (cmd_explain.c): 0, 1, ... until NULL. */
const char *explain_subject_name(int index);

#endif
