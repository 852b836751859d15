/* The program's own declarations: options, commands, loading, products, output.
 *
 * Every function that can fail has already said why on standard error when it returns; the status that it returns
 * becomes the exit code (spmv_status_class).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_H
#define APP_H

#include <jansson.h>
#include <spmv/spmv.h>
#include <stdbool.h>

#include "machine.h"
#include "timing.h"

/* ---------------------------------------------------------------- options.c: the command line */

enum verify_mode { VERIFY_OFF, VERIFY_BOUND, VERIFY_BITWISE };

/* The commands that an option has an effect in: one bit a command, and names for frequent sets. A command refuses the
 * options of others. */
enum option_group {
    GROUP_PRODUCT = 1, /* mul, and the form without a command */
    GROUP_SOLVE = 2,
    GROUP_BENCH = 4,
    GROUP_INFO = 8,
    GROUP_EXPLAIN = 16,
    GROUP_GEN = 32,
    GROUP_CONVERT = 64,
    GROUP_SPY = 128,
    GROUP_DOCTOR = 256,
    GROUP_HELP = 512,                                                    /* the last */
    GROUP_SHARED = 2 * GROUP_HELP - 1,                                   /* every command */
    GROUP_PLAN = GROUP_PRODUCT | GROUP_SOLVE | GROUP_BENCH | GROUP_INFO, /* those that make a plan */
    GROUP_READ = GROUP_PLAN | GROUP_EXPLAIN | GROUP_CONVERT | GROUP_SPY, /* those that read matrices from files */
    GROUP_RESULT = GROUP_SHARED & ~GROUP_HELP                            /* those that have a result */
};

/* --compress auto: plan_compression chooses one of enum spmv_compression by the command. */
enum { COMPRESSION_BY_COMMAND = -2 };

struct options {
    spmv_backend backend;
    const char *method;
    int compression; /* enum spmv_compression, or COMPRESSION_BY_COMMAND */
    spmv_type type;  /* of vectors and sums; of the matrix too unless mixed; input_type knows of complex files */
    bool mixed;      /* --type mixed: an f32 matrix, the others f64 */
    int threads, device;
    enum verify_mode verify;
    bool json;
    const char *json_path; /* NULL: standard output */
    const char *format;    /* of the numbers of a vector; NULL: the fewest digits that read back */
    bool quiet, verbose, help, version;
    const char *output, *y0; /* NULL: not given */
    double alpha, beta;
    bool transpose;
    const char *x0, *history, *plot; /* NULL: not given */
    const char *precond, *solution;
    bool inner;
    double rtol, atol;
    int max_iterations;             /* 0: not given */
    const char *suite, *op, *peers; /* suite NULL: not given */
    int vectors;                    /* of spmm; 0: not given */
    int64_t size;                   /* elements to measure on; pixels of a picture; values to show; 0: not given */
    int64_t seed;
    bool csv, summary;
    bool exclusive;
    const char *operator_name, *heads, *keep; /* NULL: not given */
    const char *csv_path;                     /* NULL: standard output */
    bool cache;                               /* --cache */
    int64_t max_memory;                       /* bytes; -1: no limit; 0: not given */
    const char **arguments;                   /* what is no option, in order; options_free */
    int count;
    char *command_line;                      /* as the shell would take it; options_free */
    uint64_t given;                          /* bit i: option i of the table was given */
    const char *spaced_option, *spaced_word; /* the argument behind a --json or --csv without a value; NULL: none */
    char error[256];                         /* the first mistake; "" when there is none */
};

/* Sets defaults, then reads the command line. The first mistake goes into o->error, since a wrong command is reported
 * before it. */
spmv_status options_parse(int argc, char **argv, struct options *o);
void options_free(struct options *o);

/* Reports o->error, an option that has no effect in the command (group: its bit; command: its name), or a name of a
 * method or preconditioner that does not exist. */
spmv_status options_check(const struct options *o, enum option_group group, const char *command);

/* Explains a file name that stands behind a --json or --csv with a space in place of "=": the argument is one too many,
 * or a file that is not there. Returns false, and says nothing, when word is no such argument. */
bool options_explain_space(const struct options *o, const char *word);

/* True when the option of that name (without dashes) was given. */
bool option_given(const struct options *o, const char *name);

/* c128 or c64. */
bool is_complex(spmv_type type);

/* The options to load a matrix with: with --type mixed its type is f32. */
struct options options_for_matrix(const struct options *o);

/* The plan's option compression for a run on the backend; solves: the matrix is read in each of many iterations. */
int plan_compression(const struct options *o, spmv_backend backend, bool solves);

/* The options that have an effect in the command, one a line, every default shown. */
void options_print(enum option_group group);

/* The text's words on standard output, from column indent on, in lines of at most width columns. */
void print_wrapped(const char *text, int indent, int width);

/* Whether the command takes the option of that name (without dashes). */
bool options_take(enum option_group group, const char *name);

/* ---------------------------------------------------------------- name_lists.c */

/* Names that an option or an argument may take, in the order in which they were added. They live as long as the
 * program. */
enum { NAMES_MOST = 96 };
struct names {
    const char *name[NAMES_MOST];
    int count;
};

/* Adds a name that is not yet there. */
void names_add(struct names *names, const char *name);

bool names_have(const struct names *names, const char *word, size_t length);

/* "a, b, c"; cut where the text ends. */
void names_join(const struct names *names, char *text, size_t size);

/* The name that was probably meant: a few mistyped letters away, or one is the
 * beginning of the other. NULL: none is near. */
const char *names_nearest(const struct names *names, const char *word, size_t length);

/* Complains: "unknown WHAT WORD; did you mean NAME? There are: a, b, c". Returns SPMV_ERROR_ARGUMENT. */
spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length);

/* Refuses a text that is none of the names, NULL excepted; several: names separated by commas. */
spmv_status names_check(const struct names *names, const char *what, const char *text, bool several);

/* The lists: of one backend or of all that are built (SPMV_BACKEND_AUTO), methods of products and rungs of the solver;
 * preconditioners with auto and all; operations, suites and peers of bench, peers with their modules, all and none. */
void names_of_methods(struct names *names, spmv_backend backend);
void names_of_rungs(struct names *names, spmv_backend backend);
void names_of_preconditioners(struct names *names);
void names_of_operations(struct names *names);
void names_of_suites(struct names *names);
void names_of_peers(struct names *names);

/* The subjects of explain --op (cmd_explain.c): 0, 1, ... until NULL. */
const char *explain_subject_name(int index);

/* ---------------------------------------------------------------- main.c: commands */

struct command {
    const char *name;
    const char *arguments;   /* "A [x]" */
    const char *what;        /* one sentence */
    enum option_group group; /* its options */
    int least, most;         /* number of arguments after the name */
    spmv_status (*run)(const struct options *o, const char *const *arguments, int count);
};

/* Command 0, 1, ... until NULL; the first is also run where no command is named. */
const struct command *command_at(int index);

/* ---------------------------------------------------------------- help.c */

/* Help of the program, and of one command. */
void help_print_all(void);
void help_print(const struct command *command);

/* "spmv mul A [x]"; named false: "spmv A [x]", the form without a command. */
enum { USAGE_SIZE = 64 };
void help_usage(const struct command *command, bool named, char *text, size_t size);

spmv_status run_product(const struct options *o, const char *const *arguments, int count);
spmv_status run_solve(const struct options *o, const char *const *arguments, int count);
spmv_status run_info(const struct options *o, const char *const *arguments, int count);
spmv_status run_bench(const struct options *o, const char *const *arguments, int count);
spmv_status run_gen(const struct options *o, const char *const *arguments, int count);
spmv_status run_convert(const struct options *o, const char *const *arguments, int count);
spmv_status run_spy(const struct options *o, const char *const *arguments, int count);
spmv_status run_explain(const struct options *o, const char *const *arguments, int count);
spmv_status run_doctor(const struct options *o, const char *const *arguments, int count);

/* ---------------------------------------------------------------- spinning.c: OpenMP's waiting threads */

/* Executes the program once more, with a bound on how long waiting threads spin, unless the user has set one. Returns
 * where it is bounded already or cannot be. To be called before OpenMP is used and anything is opened. */
void bound_spinning(const struct options *o, char **argv);

/* ---------------------------------------------------------------- output.c: messages, progress, JSON */

enum level { LEVEL_QUIET, LEVEL_NORMAL, LEVEL_VERBOSE };
void messages_open(enum level level);
enum level messages_level(void);

/* "spmv: ..." on standard error, always. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, if the level is at least so high, in lines of at most 100 columns. */
void remark(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of a table: without "spmv: ", and never broken. */
void remark_row(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A sentence of the library without the name of the function at its start, which is for users of the library. */
const char *plain_sentence(const char *sentence);

/* Complains with a sentence ("" or NULL: the status's text) and returns the status. */
spmv_status report(spmv_status status, const char *sentence);

/* The program's own context: events become warnings and a progress line. */
spmv_status open_context(const struct options *o, spmv_backend backend, spmv_context **ctx);

/* The same on a CUDA stream of the caller; stream NULL: one of its own. */
spmv_status open_context_on(const struct options *o, spmv_backend backend, void *stream, spmv_context **ctx);

/* Removes the progress line from the screen: an activity is over. progress_allow also forbids or allows it. */
void progress_end(void);
void progress_allow(bool allowed);

/* Draws the caller's own progress line, for an activity that began then (monotonic_seconds), if one is due: on a
 * terminal, half a second after it began, at most ten a second. */
void progress_show(double began, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory of the program itself; complains when there is none. bytes 0: at least one byte, so never NULL on success. */
spmv_status allocate(const char *what, int64_t count, size_t size, void **memory);

/* Standard output is complete; a reader that went away is no failure. Every writer to it ends with this. */
spmv_status finish_stdout(void);

/* Where the answer (what: its name) goes: -o, else standard output ("-"), or NULL where the JSON goes there. Complains
 * when both would go to standard output. */
spmv_status choose_answer(const struct options *o, const char *what, const char **path);

/* Complains when two of the files that are written are one; another: one that no option names, or NULL. A device or a
 * pipe may take several. */
spmv_status check_outputs(const struct options *o, const char *another);

/* Complains when one of the files that are written, standard output among them, is one of the
 * inputs: a path (or NULL), "-", --y0, --x0. Files are the same by device and inode, whatever
 * their names. */
spmv_status check_inputs(const struct options *o, const char *const *inputs, int count, const char *another);

/* Complains of the first output that cannot be written, before long work. */
spmv_status check_writable(const struct options *o);

/* Complains of a path (NULL: none) whose ending, or of a --format, that the answer cannot be
 * written in. */
spmv_status check_format(const struct options *o, const char *path);

/* Complains when more than one of these paths (NULL: none) is standard input. */
spmv_status check_standard_input(const char *const *paths, int count);

/* Writes the answer: n rows of k numbers. */
spmv_status write_answer(spmv_context *ctx, const struct options *o, const char *path, spmv_type type,
                         const void *host_values, int64_t n, int64_t k);

/* From now on a signal that ends the program removes its unfinished files first, and a file-size
 * limit is an error of the write that meets it. Called once, by main. */
void stops_open(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP is only a wish to stop; the second ends the
 * program. */
void stops_defer(void);

/* Whether there is that wish. */
bool stops_asked(void);

/* A text file that appears as a whole or not at all. It is written beside its place and renamed at
 * its end, so a reader of path finds the old text or the whole new one. What is no regular file (a
 * pipe, a terminal, /dev/null) is written directly. path NULL: standard output. All members 0:
 * closed. */
struct text_file {
    const char *path; /* must live as long */
    spmv_context *ctx;
    spmv_file *file; /* NULL: a standard stream, or closed */
    bool errors;     /* without a path: standard error, not standard output */
    bool failed, written;
};

/* Opens it early, so that what cannot be written is known before long work. Complains. */
spmv_status text_file_open(const char *path, struct text_file *file);

/* Adds text; complains the first time that it fails. */
spmv_status text_file_add(struct text_file *file, const char *text, size_t size);

/* keep: the text is complete. It takes its place if any was added and no addition failed; else
 * what was there stays. Does nothing when it is not open. */
spmv_status text_file_close(struct text_file *file, bool keep);

/* The text becomes the file's content. */
spmv_status write_text(const char *path, const char *text, size_t size);

/* The number in the fewest digits that read back to the same bits; returns the length. */
enum { NUMBER_TEXT = 32 };
int number_text(double value, char *text);

/* What a failed spmv_..._write means: SPMV_OK when standard output's reader went away. Complains otherwise. */
spmv_status write_status(spmv_context *ctx, spmv_status status, const char *path);

/* "1.23 ms", "4.5 GB": static storage of a few texts in turn. */
const char *seconds_text(double seconds);
const char *bytes_text(double bytes);

/* {"schema", "tool"} with room for the rest; NULL when memory is out, which json_finish reports. */
json_t *json_begin(const struct options *o);
json_t *json_machine(int threads);
json_t *json_matrix(const char *name, const spmv_statistics *s);

/* object[key] = value, which is consumed; a value of NULL marks the output as failed. */
void json_put(json_t *object, const char *key, json_t *value);

/* A text that came from outside: bytes that are no UTF-8 become '?'. */
json_t *json_text(const char *text);

/* A number; null where it is not finite, which JSON cannot write. */
json_t *json_number(double value);
json_t *json_timing(const struct timing *t);

/* One line of JSON, with its newline, to the file. Consumes root. */
spmv_status json_line(struct text_file *file, json_t *root);

/* One line to standard output or the file of --json. Consumes root. */
spmv_status json_finish(const struct options *o, json_t *root);

/* ---------------------------------------------------------------- job_memory.c: the memory of a whole job */

/* What is done with a matrix: a product, a solve, facts and a plan, measurements, writing it to a file, a look at its
 * arrays. */
enum job_kind { JOB_PRODUCT, JOB_SOLVE, JOB_INFO, JOB_BENCH, JOB_FILE, JOB_LOOK };

struct memory {
    const struct options *o;
    enum job_kind job;
    bool host;               /* the context's memory is the host's */
    int64_t allowed;         /* bytes that the job may take beside those in use */
    const char *limit;       /* what says so */
    int64_t used;            /* bytes in use beside the job */
    int64_t needed;          /* the sum; 0: not known yet */
    spmv_job_bytes_fn bytes; /* sums up, and sets needed; its user is this struct */
};

/* How much the job may take: what the system has, or the option --max-memory. */
void memory_limit(spmv_context *ctx, const struct options *o, enum job_kind job, struct memory *m);

/* The most memory that this process had in use so far, in bytes; 0: not known. */
int64_t memory_peak(void);

/* report; where the sum exceeds what is allowed, the limit and the option are named. */
spmv_status memory_report(const struct memory *m, spmv_status status, const char *sentence);

/* ---------------------------------------------------------------- input.c: matrices and vectors */

struct input {
    const char *argument; /* as given */
    char *name;           /* the file's name without folder and ending, or the SPEC */
    const char *source;   /* "spec", or the form of the file: "mtx", "gz", "tar.gz" ... */
    spmv_matrix *matrix;
    spmv_csr view; /* host memory */
    spmv_read_info info;
    double seconds;
    struct memory memory;
};

/* Loads a file, "-" or a SPEC; a file whose values are complex as c128 unless --type is given. job: what will be done
 * with it; its memory is checked before anything large is allocated. */
spmv_status input_load(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       struct input *in);

/* Generates the matrix of a SPEC, whose name is set: what input_load does with one. */
spmv_status input_generate(spmv_context *ctx, const struct options *o, enum job_kind job, struct input *in);

/* As input_load; in->matrix keeps the comments of the file. */
spmv_status input_load_with_comments(spmv_context *ctx, const struct options *o, enum job_kind job,
                                     const char *argument, struct input *in);

/* The type of products with the matrix: the complex one that it was read in, else that of --type. */
spmv_type input_type(const struct options *o, const struct input *in);

/* Complains of a matrix of complex values for a command (its name) that has no use for one. */
spmv_status input_needs_real(const struct input *in, const char *command);
void input_free(struct input *in);

/* Where the row begins, of a matrix in host memory. */
int64_t row_begin(const spmv_csr *a, int64_t row);

json_t *json_load(const struct input *in);

/* json_begin with machine, matrix and load: how every result about a matrix begins. */
json_t *json_about(const struct options *o, const spmv_context *ctx, const struct input *in, const spmv_statistics *s);

/* The vector in the file, which must have n numbers; what: "x"; why_n: "the 5 columns of A.mtx". */
spmv_status vector_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                        const char *why_n, void **host_values);

/* The vectors in the file, each of which must have n numbers, row by row; *k: how many there are, *k > 0 on entry: must
 * be. One row of n numbers is a vector. */
spmv_status vectors_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                         const char *why_n, void **host_values, int *k);

/* n ones; release with free. */
spmv_status vector_ones(spmv_type type, int64_t n, void **host_values);

/* True when a file of that name exists (or the name is "-"). */
bool file_exists(const char *path);

/* ----------------------------------------------------- matrix_output.c: a matrix into a file */

/* Writes the matrix with the symmetry and the comments of its file, and says so. made: "read",
 * "generated". */
spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path, const char *made);

/* --json of gen and convert. */
spmv_status write_matrix_json(spmv_context *ctx, const struct options *o, const struct input *in);

/* ---------------------------------------------------------------- product.c: y = alpha op(A) x + beta y0, timed,
 * checked */

struct product {
    /* set by the caller */
    const spmv_csr *a; /* host memory; must outlive the product */
    spmv_operation operation;
    const char *method;
    int compression; /* of the plan */
    spmv_type type;
    double alpha, beta;  /* rounded to the type */
    const void *x, *y0;  /* host memory; y0 NULL: no beta term */
    int vectors;         /* that x, y0 and y hold, row by row; 0: one */
    bool timed, bitwise; /* repeat the product: for the time, for the bits */
    /* set by product_plan */
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info; /* strings live as long as the plan */
    void *copies[3];     /* of a's arrays, in the context's memory where that is not the host's */
    double upload_seconds;
    double model_bytes; /* y = op(A) x in plain CSR, each array touched once */
    /* set by product_run */
    void *y; /* host memory */
    double first_call_seconds;
    struct timing seconds;
    int bitwise_repeats, bitwise_different;
    /* set by product_check */
    const char *reference;
    spmv_verify_result check; /* of several vectors: failed rows of all, the rest of the one with the worst row */
    int worst_vector;
};

/* Makes the plan on ctx. product_free in any case. */
spmv_status product_plan(spmv_context *ctx, struct product *p);

/* Multiplies. */
spmv_status product_run(struct product *p);

/* Checks y against another backend: cuda against omp, omp against ref, ref against omp. SPMV_ERROR_CHECK, without a
 * complaint, when a row is past its bound; the numbers are in p->check either way. */
spmv_status product_check(const struct options *o, struct product *p);
void product_free(struct product *p);

/* The first lines of a summary: the matrix, where and how it is multiplied. */
void remark_plan(const char *matrix, const struct product *p);

/* What product_check found, a failure as a complaint. what: the product, "y". */
void tell_check(const struct product *p, const char *what);

/* Additions and multiplications of real numbers: 2 an entry and vector, 8 in complex types. */
double product_flops(const struct product *p);

/* The part of "result" that the plan alone decides; op: "spmv", "cg". */
json_t *json_plan(const struct product *p, const char *op);

/* "verify": what product_check found. */
json_t *json_check(const struct product *p);

/* A copy of a host array in the context's memory. */
spmv_status send_array(spmv_context *ctx, const void *host_from, int64_t bytes, void **to);

#endif
