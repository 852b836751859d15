/* spmv explain in its parts: the page it shows, of texts, arrays and steps, collected first and
 * then printed in columns or as JSON (explain_page.c); the subjects it explains
 * (explain_primitives.c, explain_moves.c, explain_product.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "app.h"

/* One of the three: a text; an array by name; the cells that a rung holds after a step. */
struct explain_line {
    char *label;            /* owned; the text, the array's title, what the step did */
    const char *key;        /* of an array in the JSON; NULL: not in the JSON, or a step */
    char *launch;           /* owned; of a step: the kernel's name; NULL: not a step */
    int64_t block;          /* of a step */
    int step;               /* of a step */
    int64_t n;              /* cells */
    double *cells;          /* owned; every number of the types here fits, below 2^53 */
    unsigned char *heads;   /* owned; 1: a segment starts in the cell; NULL: no segments */
    unsigned char *changed; /* owned; of a step: 1 where the step before left something else; NULL: nothing to tell */
    spmv_type type;
    int64_t operations; /* of a step: since the page began */
    bool idle;          /* of a step: spmv_trace.idle; not printed */
};

struct explain_page {
    struct explain_line *lines;
    int64_t count, room;
    spmv_status status; /* of the first that failed: memory, already complained about */
    int64_t operations; /* of all steps */
    int64_t base;       /* of those: of the traces before the present one */
    int64_t widest;     /* cells of a step, at most */
    int steps, launches, idle;
};

/* All of these do nothing once the page has failed. */
void explain_text(struct explain_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An array of n values. key: its name in the JSON; heads: n flags, or NULL. */
void explain_array(struct explain_page *page, const char *key, const char *title, spmv_type type, const void *values,
                   int64_t n, const uint8_t *heads);

/* A step of a rung: an spmv_trace_fn; page: struct explain_page. Another trace on the same page
 * begins with explain_next_trace. */
void explain_step(const spmv_trace *trace, void *page);
void explain_next_trace(struct explain_page *page);

/* On standard output, in lines of at most 100 columns. */
void explain_print(const struct explain_page *page);

/* {"steps": [...], "operations": ..., and the arrays by name}. */
json_t *explain_json(const struct explain_page *page);
void explain_free(struct explain_page *page);

/* ---------------------------------------------------------------- the subjects */

/* The most values side by side, and so the length of every array; it still fits a block. */
enum { EXPLAIN_MOST = 1024 };

struct explain_job {
    const struct options *o;
    spmv_context *ctx; /* ref: its memory is the host's */
    struct explain_page page;
    spmv_scan_kind kind;
    spmv_op op;
    const char *rung;
    void *values, *out; /* owned */
    uint8_t *heads;     /* owned */
    int64_t n;
    struct input in; /* the product's matrix */
    json_t *more;    /* what the JSON says besides the page */
};

/* Fill the page. words: what stands behind the command. */
spmv_status explain_product(struct explain_job *job, const char *const *words, int count);
spmv_status explain_scan(struct explain_job *job, const char *const *words, int count);
spmv_status explain_segscan(struct explain_job *job, const char *const *words, int count);
spmv_status explain_reduce(struct explain_job *job, const char *const *words, int count);
spmv_status explain_compact(struct explain_job *job, const char *const *words, int count);
spmv_status explain_sort(struct explain_job *job, const char *const *words, int count);
spmv_status explain_histogram(struct explain_job *job, const char *const *words, int count);
spmv_status explain_expand(struct explain_job *job, const char *const *words, int count);
spmv_status explain_gather(struct explain_job *job, const char *const *words, int count);

/* Reads the words into job->values, n of the type; segments: "|" stands before the start of a
 * segment (job->heads), and *bars says whether there was one. Complains. */
spmv_status explain_values(struct explain_job *job, const char *const *words, int count, bool segments, bool *bars);

/* "greater:2": a predicate's name and its number, 0 when there is none. Complains. */
spmv_status explain_predicate(const char *text, spmv_predicate *predicate, double *scalar);

/* flags[i]: does the library's predicate keep value i of the job's type? It is asked by compacting
 * that one value. */
spmv_status explain_kept(const struct explain_job *job, spmv_predicate predicate, double scalar, const void *values,
                         int64_t n, int64_t *flags);

/* A line with work, depth and source of a rung of the primitive; in the JSON, too. An unknown rung
 * is left to the call that runs it. */
void explain_rung(struct explain_job *job, const char *primitive, const char *rung);

/* Complains about a call on the job's context that failed. */
spmv_status explain_status(const struct explain_job *job, spmv_status st);

/* Complains when n are more than are shown side by side; what: "values". */
spmv_status explain_check_size(const struct options *o, const char *what, int64_t n);

/* The last lines: operations, steps, launches; loop: operations of the loop, -1: not told. */
void explain_end(struct explain_job *job, int64_t loop);

#endif
