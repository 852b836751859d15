/* The parts of spmv exercise: a student's function, compiled and tested.
 *
 * cmd_exercise.c compiles the file and reports. exercise_run.c runs the tests in a child process,
 * so that an endless loop or a crash of the student's code ends the child only. The tests are in
 * exercise_scans.c, exercise_product.c and exercise_cg.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXERCISE_H
#define EXERCISE_H

#include <spmv/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exercise {
    const char *name;
    const char *lesson;       /* file of docs/lessons */
    const char *about;        /* one sentence */
    const char *functions[2]; /* that the student writes; NULL: only one */
    bool on_device;           /* it can be CUDA code: its arguments are arrays, not functions of the host */
    void (*test)(void *const *functions);
    const char *template;
};

extern const struct exercise exercise_scan, exercise_parallel_scan, exercise_segmented_scan, exercise_spmv, exercise_cg;

/* The names of the exercises: 0, 1, ... until NULL. */
const char *exercise_name(int index);

/* What the child found. It is in memory that the child shares with the program. */
enum outcome { OUTCOME_NONE, OUTCOME_PASSED, OUTCOME_WRONG };
struct verdict {
    volatile enum outcome outcome;
    int64_t cases;
    int64_t values, work, depth; /* of one measured call; values 0: nothing is counted */
    char running[192];           /* the case that runs */
    char text[1200];             /* what is wrong: the first line, then a table; or what was tested */
};

/* Loads the shared object in a child and tests it. device: it is CUDA code; seconds: the time limit.
 * Complains of failures of the system only: what is wrong in the student's code is in the verdict.
 * SPMV_CANCELLED: a signal asked for the end. */
spmv_status exercise_run(const struct exercise *e, const char *object, bool device, double seconds,
                         struct verdict *verdict);

/* ---------------------------------------------------------------- for the tests, in the child */

/* Begins a case. The arrays of the case before are gone. */
void case_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An array whose end is the end of readable memory. case_input: a copy of the values, which cannot be
 * written. case_output: n elements with a value that no result has (case_is_set). */
void *case_input(const char *name, const void *values, int64_t n, size_t size);
void *case_output(const char *name, int64_t n, size_t size);
void *case_scratch(int64_t n, size_t size); /* for the test itself */
bool case_is_set(const void *element, size_t size);

/* Ends a case: no array was written before its beginning. */
void case_end(void);

/* The case is wrong: the sentence is added to what runs, and the table is printed below it. Ends the
 * child. */
void case_wrong(const char *table, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* Stores the counts of a measured call; says what was tested. */
void case_counts(int64_t values, int64_t work, int64_t depth);
void case_passed(const char *what);

/* A table of cells in columns, as text. */
struct table {
    char text[900];
    int length;
};
void table_add(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One row: the name, then cells from first to before end; "-" if a cell was not written. */
void table_integers(struct table *t, const char *name, const int64_t *cells, int64_t first, int64_t end);
void table_numbers(struct table *t, const char *name, const double *cells, int64_t first, int64_t end);

/* Pseudo-random numbers from 0 to below limit. */
int64_t random_below(uint64_t *state, int64_t limit);

#endif
