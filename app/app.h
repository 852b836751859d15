/* Declarations of the program: options, commands, loading, products, output.
 *
 * A function that fails prints the reason on standard error before it returns. The status becomes
 * the exit code (spmv_status_class). "Complains" below means: prints an error message.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_H
#define APP_H

#include <jansson.h>
#include <spmv/spmv.h>
#include <stdbool.h>

#include "bench/devices/machine.h"
#include "bench/timing.h"
#include "core/choice.h"
#include "core/plural.h"
#include "core/reals.h"

/* ---------------------------------------------------------------- options.c: the command line */

enum verify_mode { VERIFY_OFF, VERIFY_BOUND, VERIFY_BITWISE };

/* The commands in which an option has an effect: one bit per command, and names for frequent sets.
 * A command refuses the options of others. */
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
    GROUP_MULTIPLY = 512,
    GROUP_HELP = 1024,                 /* the last */
    GROUP_SHARED = 2 * GROUP_HELP - 1, /* every command */
    /* commands that make a plan */
    GROUP_PLAN = GROUP_PRODUCT | GROUP_SOLVE | GROUP_BENCH | GROUP_INFO,
    /* commands that read matrices from files */
    GROUP_READ = GROUP_PLAN | GROUP_EXPLAIN | GROUP_CONVERT | GROUP_SPY | GROUP_MULTIPLY,
    GROUP_RESULT = GROUP_SHARED & ~GROUP_HELP /* commands that have a result */
};

/* --compress auto: plan_compression selects one of enum spmv_compression for the command. */
enum { COMPRESSION_BY_COMMAND = -2 };

struct options {
    spmv_backend backend;
    const char *method;
    int compression; /* enum spmv_compression, or COMPRESSION_BY_COMMAND */
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
    const char *near_null; /* NULL: not given */
    int restart, block;    /* 0: not given */
    int degree;            /* -1: not given */
    double drop;           /* -1: not given */
    double fill, strength; /* 0: not given */
    bool inner;
    double rtol, atol;
    double max_seconds;             /* 0: no limit */
    int max_iterations;             /* 0: not given */
    const char *suite, *op, *peers; /* suite NULL: not given */
    const char *right, *project;    /* NULL: not given */
    int vectors;                    /* for spmm; 0: not given */
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
    char *command_line; /* quoted for the shell; options_free */
    char *job_line;     /* the same words without those that ranks may have differently; options_free */
    uint64_t given;     /* bit i: option i of the table was given */
    /* the argument after a --json or --csv without a value; NULL: none */
    const char *spaced_option, *spaced_word;
    char error[256]; /* the first error; "": none */
};

/* Sets defaults and parses the command line. Stores the first error in o->error, because a wrong
 * command is reported before it. */
spmv_status options_parse(int argc, char **argv, struct options *o);
void options_free(struct options *o);

/* Reports o->error, an option without effect in the command (group: its bit; command: its name), or
 * an unknown name of a method or preconditioner. */
spmv_status options_check(const struct options *o, enum option_group group, const char *command);

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
enum { OPTION_FILES_MOST = 64 };
int options_files(const struct options *o, enum file_role role, const char **paths);

/* Reads an integer: digits, or a real number such as 1e8 whose value is an integer of at most 2^53.
 * *number: the nearest value if it is too large. */
enum integer_status { INTEGER_READ, INTEGER_WRONG, INTEGER_TOO_LARGE };
enum integer_status integer_read(const char *text, long long *number);

/* The name of an option for some preconditioners that was given, such as block; NULL: none was. */
const char *option_of_preconditioner(const struct options *o);

/* The options for loading a matrix: with --type mixed, its type is f32. */
struct options options_for_matrix(const struct options *o);

/* The plan's option compression for a run on the backend. solves: the matrix is read in each of
 * many iterations. */
int plan_compression(const struct options *o, spmv_backend backend, bool solves);

/* Prints the options that have an effect in the command, one per line, with defaults. */
void options_print(enum option_group group);

/* Prints the words of text on standard output, from column indent on, in lines of at most width
 * columns. */
void print_wrapped(const char *text, int indent, int width);

/* Whether the command takes the option of that name (without dashes). */
bool options_take(enum option_group group, const char *name);

/* ---------------------------------------------------------------- name_lists.c */

/* Adds the words of a text, each of which ends with a blank, which is overwritten. */
void names_add_words(struct names *names, char *text);

/* Complains of a word that is not one of the names (names_unknown). Returns SPMV_ERROR_ARGUMENT. */
spmv_status names_refuse(const struct names *names, const char *what, const char *word, size_t length);

/* Complains of a text that is not one of the names; NULL is valid. several: text is a list of names
 * separated by commas. */
spmv_status names_check(const struct names *names, const char *what, const char *text, bool several);

/* The lists of names. Methods of products and rungs of the solver: of one backend or
 * (SPMV_BACKEND_AUTO) of all that are built. Preconditioners: with auto and all. Then operations
 * and suites of bench; its peers: candidate_list_peers. */
void names_of_methods(struct names *names, spmv_backend backend);
void names_of_multiply_methods(struct names *names, spmv_backend backend);
void names_of_rungs(struct names *names, spmv_backend backend);
void names_of_solvers(struct names *names);
void names_of_preconditioners(struct names *names);
void names_of_operations(struct names *names);
void names_of_suites(struct names *names);

/* The subjects of explain --op (cmd_explain.c): 0, 1, ... until NULL. */
const char *explain_subject_name(int index);

/* ---------------------------------------------------------------- main.c: commands */

struct command {
    const char *name;
    const char *arguments;   /* "A [x]" */
    const char *what;        /* one sentence */
    enum option_group group; /* the group of its options */
    int least, most;         /* number of arguments after the name */
    spmv_status (*run)(const struct options *o, const char *const *arguments, int count);
};

/* Command 0, 1, ... until NULL. The first is also the default command. */
const struct command *command_at(int index);

/* ---------------------------------------------------------------- help.c */

/* Print the help of the program, and of one command. */
void help_print_all(void);
void help_print(const struct command *command);

/* Complains of a missing argument in ten lines, with examples. */
void help_print_first(void);

/* "spmv mul A [x]"; named false: "spmv A [x]", the form without a command. */
enum { USAGE_SIZE = 64 };
void help_usage(const struct command *command, bool named, char *text, size_t size);

spmv_status run_product(const struct options *o, const char *const *arguments, int count);
spmv_status run_multiply(const struct options *o, const char *const *arguments, int count);
spmv_status run_solve(const struct options *o, const char *const *arguments, int count);
spmv_status run_info(const struct options *o, const char *const *arguments, int count);
spmv_status run_bench(const struct options *o, const char *const *arguments, int count);
spmv_status run_gen(const struct options *o, const char *const *arguments, int count);
spmv_status run_convert(const struct options *o, const char *const *arguments, int count);
spmv_status run_spy(const struct options *o, const char *const *arguments, int count);
spmv_status run_explain(const struct options *o, const char *const *arguments, int count);
spmv_status run_doctor(const struct options *o, const char *const *arguments, int count);

/* ---------------------------------------------------------------- spinning.c: OpenMP's waiting
 * threads */

/* Executes the program again with a limit on the spinning of waiting threads, unless the user has
 * set one. Returns if there is a limit already or none can be set. Call it before OpenMP is used
 * and files are opened. */
void bound_spinning(const struct options *o, char **argv);

/* ---------------------------------------------------------------- output.c: messages, progress,
 * JSON */

enum level { LEVEL_QUIET, LEVEL_NORMAL, LEVEL_VERBOSE };
void messages_open(enum level level);
enum level messages_level(void);

/* Prints "spmv: ..." on standard error, at every level. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints likewise from this level on, in lines of at most 100 columns. */
void remark(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line of a table: without "spmv: ", never wrapped. */
void remark_row(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An error message of the library without the name of the function at its beginning. */
const char *plain_sentence(const char *sentence);

/* Complains with the message ("" or NULL: the status's text) and returns the status. */
spmv_status report(spmv_status status, const char *sentence);

/* For a context's on_event: events become warnings and a progress line. */
int tell_event(const spmv_event *event, void *user);

/* Opens the context of the program, with tell_event. */
spmv_status open_context(const struct options *o, spmv_backend backend, spmv_context **ctx);

/* As open_context, on a CUDA stream of the caller; NULL: on a new stream. */
spmv_status open_context_on(const struct options *o, spmv_backend backend, void *stream, spmv_context **ctx);

/* progress_end removes the progress line at the end of an activity. progress_allow also permits or
 * forbids progress lines. */
void progress_end(void);
void progress_allow(bool allowed);

/* Draws the caller's own progress line if one is due: on a terminal, half a second after began
 * (monotonic_seconds), at most ten per second. */
void progress_show(double began, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Allocates memory for the program; complains if there is none. At least one byte, so the pointer
 * is never NULL on success. */
spmv_status allocate(const char *what, int64_t count, size_t size, void **memory);

/* Flushes standard output. A reader that has closed the pipe is not an error. Every command that
 * writes to it ends with this. */
spmv_status finish_stdout(void);

/* The destination of the answer (what: its name): -o, else standard output ("-"), or NULL if the
 * JSON goes there. Complains if both would go to standard output. */
spmv_status choose_answer(const struct options *o, const char *what, const char **path);

/* Complains if two of the files written by options are the same. another: an output without an
 * option, or NULL. Several outputs may share a device or a pipe. */
spmv_status check_outputs(const struct options *o, const char *another);

/* Complains if an output, standard output included, is also one of the inputs: a path (or NULL),
 * "-", or a file that an option reads. Files are compared by device and inode. */
spmv_status check_inputs(const struct options *o, const char *const *inputs, int count, const char *another);

/* Complains of the first output that cannot be written, before long work. */
spmv_status check_writable(const struct options *o);

/* Complains of a path (or NULL) with an ending, or of a --format, that is not possible for the
 * answer. */
spmv_status check_format(const struct options *o, const char *path);

/* Complains if standard input is more than one of these paths and of the files that options read. */
spmv_status check_standard_input(const struct options *o, const char *const *paths, int count);

/* Writes the answer: n rows of k numbers. */
spmv_status write_answer(spmv_context *ctx, const struct options *o, const char *path, spmv_type type,
                         const void *host_values, int64_t n, int64_t k);

/* Makes signals that end the program remove its unfinished files first, and makes a file-size limit
 * an error of the write. Called once, by main. */
void stops_open(void);

/* Makes the first SIGINT, SIGTERM or SIGHUP only a request to stop; the second one ends the
 * program. */
void stops_defer(void);

/* Ends the program after so many seconds (0: never) like a signal, but with exit code 10 and a
 * sentence; after stops_defer, it is a request like those. */
void stops_after(double seconds);

/* The command has stopped: from now on stops_asked is false, so that results are written. A second
 * signal still ends the program. */
void stops_serve(void);

/* Why stops_asked was true: "--max-seconds 5", "SIGINT". Static storage. */
const char *stops_reason(void);

/* Whether a stop was requested. */
bool stops_asked(void);

/* A text file that appears completely or not at all. It is written under another name and renamed
 * at the end, so a reader of path finds the old text or the whole new one. Anything but a regular
 * file (a pipe, a terminal, /dev/null) is written directly. path NULL: standard output. All members
 * 0: closed. */
struct text_file {
    const char *path; /* must outlive the struct */
    spmv_context *ctx;
    spmv_file *file; /* NULL: a standard stream, or closed */
    bool errors;     /* without a path: standard error instead of standard output */
    bool failed, written;
};

/* Opens the file early, so that errors are found before long work. Complains. */
spmv_status text_file_open(const char *path, struct text_file *file);

/* Adds text. Complains at the first failure. */
spmv_status text_file_add(struct text_file *file, const char *text, size_t size);

/* keep: the text is complete; the file gets its name if text was added and no addition failed.
 * Otherwise an existing file stays unchanged. Does nothing if it is not open. */
spmv_status text_file_close(struct text_file *file, bool keep);

/* Writes a file with this text. */
spmv_status write_text(const char *path, const char *text, size_t size);

/* Writes the number in the fewest digits that read back to the same bits; returns the length. */
enum { NUMBER_TEXT = 32 };
int number_text(double value, char *text);

/* The result of a failed spmv_..._write: SPMV_OK if the reader of standard output has closed the
 * pipe. Complains otherwise. */
spmv_status write_status(spmv_context *ctx, spmv_status status, const char *path);

/* "1.23 ms", "4.5 GB". A few static buffers are used in turn. */
const char *seconds_text(double seconds);
const char *bytes_text(double bytes);

/* {"schema", "tool"}, to be extended; NULL without memory, which json_finish reports. */
json_t *json_begin(const struct options *o);
json_t *json_machine(int threads);
json_t *json_matrix(const char *name, const spmv_statistics *s);

/* object[key] = value. Takes ownership of value; NULL marks the output as failed. */
void json_put(json_t *object, const char *key, json_t *value);

/* A string from outside: bytes that are not UTF-8 become '?'. */
json_t *json_text(const char *text);

/* A number; null if it is not finite, because JSON has no such numbers. */
json_t *json_number(double value);
json_t *json_timing(const struct timing *t);

/* Writes one line of JSON, with its newline, to the file. Takes ownership of root. */
spmv_status json_line(struct text_file *file, json_t *root);

/* Writes one line to standard output or the file of --json. Takes ownership of root. */
spmv_status json_finish(const struct options *o, json_t *root);

/* ---------------------------------------------------------------- job_memory.c: the memory of a
 * whole job */

/* The use of a matrix: a product, a solve, facts and a plan, measurements, writing it to a file,
 * reading its arrays. */
enum job_kind { JOB_PRODUCT, JOB_SOLVE, JOB_INFO, JOB_BENCH, JOB_FILE, JOB_LOOK };

struct memory {
    const struct options *o;
    enum job_kind job;
    bool host;               /* the context's memory is host memory */
    int64_t allowed;         /* bytes that the job may use, without those in use */
    const char *limit;       /* the source of the limit */
    int64_t used;            /* bytes in use outside of the job */
    int64_t needed;          /* by the job; 0: not computed yet */
    spmv_job_bytes_fn bytes; /* computes needed; its user is this struct */
};

/* Applies --max-memory to all memory of this process, once. */
void memory_open(const struct options *o);

/* Whether an allocation of the program stays within that limit. Complains and returns false
 * otherwise. what: its name. */
bool memory_allows(const char *what, double bytes);

/* A part of the limit, kept for later: smaller allocations fail instead of those. 0: nothing is
 * kept. */
void memory_keep(int64_t bytes);

/* Text to add to the sentence of a SPMV_ERROR_MEMORY: how to set another limit; "" if there is
 * nothing to add. */
const char *memory_advice(spmv_status status, const char *sentence);

/* Sets the limit of the job: the available memory, or --max-memory. */
void memory_limit(spmv_context *ctx, const struct options *o, enum job_kind job, struct memory *m);

/* The peak memory of this process so far, in bytes; 0: unknown. */
int64_t memory_peak(void);

/* As report. If the job exceeds the limit, the message also names the limit and the option. */
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

/* Loads a file, "-" or a SPEC. A complex file is read as c128 unless --type is given. job: the use
 * of the matrix, whose memory is checked before large allocations. */
spmv_status input_load(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       struct input *in);

/* Generates the matrix of a SPEC; its name must be set. Part of input_load. */
spmv_status input_generate(spmv_context *ctx, const struct options *o, enum job_kind job, struct input *in);

/* As input_load; in->matrix keeps the comments of the file. */
spmv_status input_load_with_comments(spmv_context *ctx, const struct options *o, enum job_kind job,
                                     const char *argument, struct input *in);

/* As input_load, with another function that reads a file: it sets in->info, and in->matrix or
 * nothing. The available memory is divided by share. */
typedef spmv_status (*input_read_fn)(void *user, const char *path, const spmv_read_options *options, struct input *in);
spmv_status input_read(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       input_read_fn read, void *user, int share, struct input *in);

/* The type of products with the matrix: its complex type, or the type of --type. */
spmv_type input_type(const struct options *o, const struct input *in);

/* Complains of a complex matrix, for a command (its name) that needs a real one. */
spmv_status input_needs_real(const struct input *in, const char *command);
void input_free(struct input *in);

/* The first entry of the row, for a matrix in host memory. */
int64_t row_begin(const spmv_csr *a, int64_t row);

json_t *json_load(const struct input *in);

/* json_begin with machine, matrix and load: the common part of all results about a matrix. */
json_t *json_about(const struct options *o, const spmv_context *ctx, const struct input *in, const spmv_statistics *s);

/* Loads a vector, which must have n numbers. what: "x"; why_n: "the 5 columns of A.mtx". */
spmv_status vector_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                        const char *why_n, void **host_values);

/* Loads vectors of n numbers each, stored row by row. *k: their number; if *k > 0 on entry, the
 * required number. One row of n numbers is a vector. */
spmv_status vectors_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                         const char *why_n, void **host_values, int *k);

/* n ones; release with free. */
spmv_status vector_ones(spmv_type type, int64_t n, void **host_values);

/* Element i of a known solution: 1, or with `random` a fixed pseudo-random number in [-1, 1). Complex
 * numbers have two elements each. */
double solution_element(bool random, int64_t i);

/* Whether the name is a SPEC or the file begins like a sparse matrix in the Matrix Market format;
 * like plain numbers, one or more in a line. Files that are packed are neither. */
bool looks_like_matrix(const char *path);
bool looks_like_numbers(const char *path);

/* Whether a file of that name exists (or the name is "-"). */
bool file_exists(const char *path);

/* Removes the ending from the length of path, in upper or lower case, after a non-empty name.
 * False: path has another ending. */
bool cut_ending(const char *path, size_t *length, const char *ending);

/* The same for the endings of compressed files, which are listed here and, for the library, in
 * formats/io/packed/compressions.h. */
#define COMPRESSIONS(X) X(".gz") X(".xz") X(".zst") X(".bz2")
bool cut_compression(const char *path, size_t *length);

/* ----------------------------------------------------- matrix_output.c: a matrix into a file */

/* Writes the matrix with the symmetry and the comments of its file, and prints a message. made:
 * "read", "generated". */
spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path, const char *made);

/* The answer of gen and convert: the matrix (path NULL: not written), and what --json prints. */
spmv_status write_matrix_and_json(spmv_context *ctx, const struct options *o, const struct input *in, const char *path,
                                  const char *made);

/* ---------------------------------------------------------------- product.c: y = alpha op(A) x +
 * beta y0, timed, checked */

struct product {
    /* set by the caller */
    const spmv_csr *a; /* host memory; must outlive the product */
    spmv_operation operation;
    const char *method;
    int compression; /* of the plan */
    spmv_type type;
    double alpha, beta;  /* rounded to the type */
    const void *x, *y0;  /* host memory; y0 NULL: no beta term */
    int vectors;         /* number of vectors in x, y0 and y, stored row by row; 0: one */
    bool timed, bitwise; /* repeat the product: to time it, to compare bits */
    /* set by product_plan */
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info; /* strings live as long as the plan */
    spmv_csr view;       /* of a, in the context's memory */
    void *copies[3];     /* of a's arrays, in the context's memory if that is not host memory */
    double upload_seconds;
    double model_bytes; /* bytes of y = op(A) x in plain CSR, each array read or written once */
    /* set by product_run */
    void *y; /* host memory */
    double first_call_seconds;
    struct timing seconds;
    int bitwise_repeats, bitwise_different;
    /* set by product_check */
    const char *reference;
    /* for several vectors: failed rows of all; other members of the vector with the worst row */
    spmv_verify_result check;
    int worst_vector;
};

/* Makes the plan on ctx. Call product_free in any case. */
spmv_status product_plan(spmv_context *ctx, struct product *p);

/* Multiplies. */
spmv_status product_run(struct product *p);

/* Checks y against another backend: cuda against omp, omp against ref, ref against omp. Sets
 * p->check. SPMV_ERROR_CHECK, without a message, if a row exceeds its bound. */
spmv_status product_check(const struct options *o, struct product *p);
void product_free(struct product *p);

/* Prints the first lines of a summary: the matrix, where and how it is multiplied. */
void remark_plan(const char *matrix, const struct product *p);

/* Prints the result of product_check; a failure as an error. what: the product, "y". */
void tell_check(const struct product *p, const char *what);

/* Additions and multiplications of real numbers: 2 per entry and vector, 8 in complex types. */
double product_flops(const struct product *p);

/* The members of "result" that the plan determines; op: "spmv", "cg". */
json_t *json_plan(const struct product *p, const char *op);

/* "verify": the result of product_check. */
json_t *json_check(const struct product *p);

/* Copies a host array to the context's memory. */
spmv_status send_array(spmv_context *ctx, const void *host_from, int64_t bytes, void **to);

#endif
