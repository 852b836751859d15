/* The command line: options, their values and the commands that take them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <spmv/eigen.h>
#include <spmv/least_squares.h>
#include <spmv/plan.h>
#include <stdbool.h>
#include <stdint.h>

enum verify_mode { VERIFY_OFF, VERIFY_BOUND, VERIFY_BITWISE };

/* The commands in which an option has an effect: one bit per command, and names for frequent sets.
 * A command refuses the options of others. */
enum option_commands {
    IN_PRODUCT = 1, /* matvec, and the form without a command */
    IN_SOLVE = 2,
    IN_BENCH = 4,
    IN_INFO = 8,
    IN_EXPLAIN = 16,
    IN_GEN = 32,
    IN_CONVERT = 64,
    IN_SPY = 128,
    IN_DOCTOR = 256,
    IN_SPGEMM = 512,
    IN_EIGS = 1024,
    IN_SVDS = 2048,
    IN_EXERCISE = 4096,
    IN_HELP = 8192,              /* the last */
    IN_SHARED = 2 * IN_HELP - 1, /* every command */
    /* commands that make a plan */
    IN_PLAN = IN_PRODUCT | IN_SOLVE | IN_BENCH | IN_INFO,
    /* commands that find eigenvalues or singular values */
    IN_SPECTRUM = IN_EIGS | IN_SVDS,
    /* commands that read matrices from files */
    IN_READ = IN_PLAN | IN_SPECTRUM | IN_EXPLAIN | IN_CONVERT | IN_SPY | IN_SPGEMM,
    IN_RESULT = IN_SHARED & ~IN_HELP /* commands that have a result */
};

/* --compress auto: plan_compression selects one of enum spmv_compression for the command. */
enum { COMPRESSION_BY_COMMAND = -2 };

/* Numbers of a list, and the largest. */
enum { COUNTS_MOST = 8 };
struct counts {
    int at[COUNTS_MOST], count, most;
};

enum { OPTIONS_MOST = 96 };

struct options {
    spmv_backend backend;
    const char *method, *rung; /* of the product; of conjugate gradients or a primitive */
    int compression;           /* enum spmv_compression, or COMPRESSION_BY_COMMAND */
    /* of vectors and sums, and of the matrix unless mixed; input_type handles complex files */
    spmv_type type;
    bool mixed; /* --type mixed: an f32 matrix, everything else f64 */
    int threads, device;
    int ranks, gpus;      /* 0: not given */
    const char *exchange; /* between ranks on GPUs */
    enum verify_mode verify;
    bool json;
    const char *json_path; /* NULL: standard output */
    const char *format;    /* for the numbers of a vector; NULL: the fewest digits that read back */
    bool quiet, verbose, help, version;
    const char *output, *y0; /* NULL: not given */
    double alpha, beta;
    bool transpose, triple;
    const char *x0, *history, *plot; /* NULL: not given */
    const char *solver, *precond, *solution;
    const char *near_null, *coordinates, *null_space; /* NULL: not given */
    int accuracy;                                     /* digits; 0: not given, or no estimate */
    const char *fields, *schur;                       /* NULL: not given */
    int restart, recycle, block;                      /* 0: not given */
    int degree;                                       /* -1: not given */
    double drop;                                      /* -1: not given */
    double fill, strength;                            /* 0: not given */
    bool inner;
    double rtol, atol;
    double damp, conlim;
    const char *which, *mass;       /* of eigs; mass NULL: not given */
    int pairs;                      /* of eigs and svds */
    bool condition;                 /* --condition */
    int scaling;                    /* a spmv_column_scaling */
    double max_seconds;             /* 0: no limit */
    int max_iterations;             /* 0: not given */
    const char *suite, *op, *peers; /* suite NULL: not given */
    const char *right, *project;    /* NULL: not given */
    struct counts vectors;          /* for spmm and solve; none: not given */
    int layout;                     /* enum spmv_layout, of the vectors of spmm */
    /* elements to measure, pixels of a picture, or values to show; 0: not given */
    int64_t size;
    int64_t seed;
    bool csv, summary;
    bool exclusive;
    const char *operator_name, *heads, *keep; /* NULL: not given */
    const char *csv_path;                     /* NULL: standard output */
    bool cache;                               /* --cache */
    int64_t max_memory;                       /* bytes; -1: no limit; 0: not given */
    /* arguments that are not options, in order; options_free */
    const char **arguments;
    int count;
    char *command_line;       /* quoted for the shell; options_free */
    char *job_line;           /* the same words without those that ranks may have differently; options_free */
    bool given[OPTIONS_MOST]; /* option i of the table was given */
    /* the argument after a --json or --csv without a value; NULL: none */
    const char *spaced_option, *spaced_word;
    char old_rung[32]; /* the rung of an old spelling, see take_old_names */
    char error[256];   /* the first error; "": none */
};

/* Sets defaults and parses the command line. Stores the first error in o->error, because a wrong
 * command is reported before it. */
spmv_status options_parse(int argc, char **argv, struct options *o);
void options_free(struct options *o);

/* Reports o->error, an option without effect in the command (group: its bit; command: its name), or
 * an unknown name of a method or preconditioner. */
spmv_status options_check(const struct options *o, enum option_commands commands, const char *command);

/* Explains the error of a file name after --json or --csv with a space instead of "=": the argument
 * is superfluous, or the file does not exist. Returns false, without a message, if word is not such
 * an argument. */
bool options_explain_space(const struct options *o, const char *word);

/* Whether the option of that name (without dashes) was given. */
bool option_given(const struct options *o, const char *name);

/* Whether the argument of an option names a file. */
enum file_role { FILE_NONE, FILE_READ, FILE_WRITTEN };

/* The paths given with options that read files (or SPECs), or with those that write them, in the
 * order of the table of options; returns how many. paths has room for OPTION_FILES_MOST. */
enum { OPTION_FILES_MOST = OPTIONS_MOST };
int options_files(const struct options *o, enum file_role role, const char **paths);

/* Reads an integer: digits, or a real number such as 1e8 whose value is an integer of at most 2^53.
 * *number: the nearest value if it is too large. */
enum integer_status { INTEGER_READ, INTEGER_WRONG, INTEGER_TOO_LARGE };
enum integer_status integer_read(const char *text, long long *number);

/* The options for loading a matrix: with --type mixed, its type is f32. */
struct options options_for_matrix(const struct options *o);

/* The plan's option compression for a run on the backend. solves: the matrix is read in each of
 * many iterations. */
int plan_compression(const struct options *o, spmv_backend backend, bool solves);

/* Prints the options that have an effect in the command, one per line, with defaults. */
void options_print(enum option_commands commands);

/* Prints the words of text on standard output, from column indent on, in lines of at most width
 * columns. */
void print_wrapped(const char *text, int indent, int width);

/* Whether the command takes the option of that name (without dashes). */
bool options_take(enum option_commands commands, const char *name);

#endif
