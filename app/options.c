/* The command line: one table of options, from which parsing, defaults and the help of each command are made.
 *
 * getopt_long reads the arguments in the order given, so options may stand before, between and after the others; "--"
 * ends the options. An option without an effect in the command is refused.
 *
 * --json and --csv take a file behind "=" or none. With a space in place of "=" the next word could be an input. It is
 * the file to write only where its name ends in .json or .csv and no such file is there; a file that is there is never
 * overwritten. --verify takes a following off, bound or bitwise as its value.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

enum option_id {
    OPTION_OUTPUT,
    OPTION_ALPHA,
    OPTION_BETA,
    OPTION_Y0,
    OPTION_TRANSPOSE,
    OPTION_X0,
    OPTION_RTOL,
    OPTION_ATOL,
    OPTION_MAX_ITERATIONS,
    OPTION_HISTORY,
    OPTION_PLOT,
    OPTION_PRECOND,
    OPTION_SOLUTION,
    OPTION_INNER,
    OPTION_SUITE,
    OPTION_OP,
    OPTION_SIZE,
    OPTION_PEERS,
    OPTION_CSV,
    OPTION_SUMMARY,
    OPTION_SEED,
    OPTION_VECTORS,
    OPTION_EXCLUSIVE,
    OPTION_OPERATOR,
    OPTION_HEADS,
    OPTION_KEEP,
    OPTION_BACKEND,
    OPTION_METHOD,
    OPTION_COMPRESS,
    OPTION_TYPE,
    OPTION_THREADS,
    OPTION_DEVICE,
    OPTION_VERIFY,
    OPTION_CACHE,
    OPTION_MAX_MEMORY,
    OPTION_JSON,
    OPTION_FORMAT,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_VERSION,
    OPTION_HELP,
    OPTIONS
};

struct row {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: none; "[=...]": optional */
    unsigned group;
    const char *standard; /* the default, read as if it had been given; NULL: the help text says it */
    const char *help;
};

static const struct row rows[OPTIONS] = {
    [OPTION_OUTPUT] = {"output", 'o', "FILE", GROUP_PRODUCT | GROUP_SOLVE | GROUP_GEN | GROUP_SPY, NULL,
                       "write the answer there (default: standard output)"},
    [OPTION_ALPHA] = {"alpha", 0, "NUMBER", GROUP_PRODUCT, "1", "factor of A x"},
    [OPTION_BETA] = {"beta", 0, "NUMBER", GROUP_PRODUCT, "0", "factor of y0, which --y0 names"},
    [OPTION_Y0] = {"y0", 0, "FILE", GROUP_PRODUCT, NULL, "the vector that beta scales (default: none)"},
    [OPTION_TRANSPOSE] = {"transpose", 0, NULL, GROUP_PRODUCT, NULL, "multiply by the transpose of A (default: by A)"},
    [OPTION_X0] = {"x0", 0, "FILE", GROUP_SOLVE, NULL, "the vector to start from (default: zeros)"},
    [OPTION_RTOL] = {"rtol", 0, "NUMBER", GROUP_SOLVE, NULL,
                     "done at ||b - A x|| <= rtol ||b|| (default: 1e-8; with --type f32 1e-4)"},
    [OPTION_ATOL] = {"atol", 0, "NUMBER", GROUP_SOLVE, "0", "done at ||b - A x|| <= atol, too"},
    [OPTION_MAX_ITERATIONS] = {"max-iterations", 0, "N", GROUP_SOLVE, NULL,
                               "give up after so many (default: 10 times the rows, at least 100)"},
    [OPTION_HISTORY] = {"history", 0, "FILE", GROUP_SOLVE, NULL,
                        "write the residual of each iteration there, as CSV (default: nowhere)"},
    [OPTION_PLOT] = {"plot", 0, "FILE", GROUP_SOLVE, NULL,
                     "draw the residual over the iterations, as .png or .svg (default: no picture)"},
    [OPTION_PRECOND] = {"precond", 0, "NAME", GROUP_SOLVE | GROUP_BENCH, "none",
                        "the preconditioner, one of those below; auto: chosen from the matrix; all: each in turn, and "
                        "a table; bench --op cg: names separated by commas, to time whole solutions (default: "
                        "iterations are timed)"},
    [OPTION_SOLUTION] = {"solution", 0, "ones|random", GROUP_SOLVE, "ones",
                         "without b: the x that b is made from, against which the error is reported"},
    [OPTION_INNER] = {"inner", 0, NULL, GROUP_SOLVE, NULL,
                      "iterate in f32, and correct in f64 until f64's tolerance is reached (default: all in f64)"},
    [OPTION_SUITE] = {"suite", 0, "NAME", GROUP_BENCH, NULL,
                      "measure on the matrices of a suite, one of those below (default: the matrices named)"},
    [OPTION_OP] = {"op", 0, "NAME", GROUP_BENCH | GROUP_EXPLAIN, "spmv", "the operation, one of those below"},
    [OPTION_SIZE] = {"size", 0, "N", GROUP_BENCH | GROUP_SPY | GROUP_EXPLAIN, NULL, ""},
    [OPTION_PEERS] = {"peers", 0, "LIST", GROUP_BENCH, "all",
                      "libraries to measure beside ours: peers or modules from the list below, separated by commas"},
    [OPTION_CSV] = {"csv", 0, "[=FILE]", GROUP_BENCH, NULL,
                    "one line a figure to FILE, else to standard output in place of the table (default: no CSV)"},
    [OPTION_SUMMARY] = {"summary", 0, NULL, GROUP_BENCH, NULL,
                        "end with the geometric mean and the worst case against each peer (default: no summary)"},
    [OPTION_SEED] = {"seed", 0, "S", GROUP_BENCH, "1", "of the random vectors, elements and generated matrices"},
    [OPTION_VECTORS] = {"vectors", 0, "K", GROUP_BENCH | GROUP_SOLVE, NULL,
                        "without b: right-hand sides that are made (default: 1)"},
    [OPTION_EXCLUSIVE] = {"exclusive", 0, NULL, GROUP_EXPLAIN, NULL,
                          "scan, segscan: without the element itself (default: with it, inclusive)"},
    [OPTION_OPERATOR] = {"operator", 0, "NAME", GROUP_EXPLAIN, NULL,
                         "scan, segscan, reduce: add, mul, min, max or last (default: add)"},
    [OPTION_HEADS] = {"heads", 0, "LIST", GROUP_EXPLAIN, NULL,
                      "segscan: where segments start, such as 0,3,5; or put '|' between the values (default: one "
                      "segment)"},
    [OPTION_KEEP] = {"keep", 0, "PREDICATE[:S]", GROUP_EXPLAIN, NULL,
                     "compact, gather: less, less_equal, greater, greater_equal, equal or not_equal than S (default: "
                     "0), or nonzero (default: nonzero; gather: all)"},
    [OPTION_BACKEND] = {"backend", 0, "auto|cuda|omp|ref", GROUP_PLAN, "auto",
                        "where to compute; auto: a usable GPU, else OpenMP"},
    [OPTION_METHOD] = {"method", 0, "NAME", GROUP_PLAN | GROUP_EXPLAIN, "auto",
                       "how to multiply, one of the methods below"},
    [OPTION_COMPRESS] = {"compress", 0, "auto|off|columns|values", GROUP_PLAN, "auto",
                         "whether the plan may hold the matrix in fewer bytes: columns in fewer bits; values: also few "
                         "distinct values in a table; auto: values for conjugate gradients on a GPU, else columns; the "
                         "result is the same"},
    [OPTION_TYPE] = {"type", 0, "f64|f32|c128|c64|mixed", GROUP_PLAN | GROUP_EXPLAIN | GROUP_GEN | GROUP_CONVERT, "f64",
                     "type of the matrix, the vectors and the sums; mixed: an f32 matrix, the others f64; a file with "
                     "complex values is c128 unless c64 is given"},
    [OPTION_THREADS] = {"threads", 0, "N", GROUP_RESULT & ~GROUP_EXPLAIN, NULL,
                        "OpenMP threads, at most (default: what OpenMP offers)"},
    [OPTION_DEVICE] = {"device", 0, "N", GROUP_PLAN | GROUP_DOCTOR, NULL,
                       "GPU, counted from 0 (default: CUDA's current one)"},
    [OPTION_VERIFY] = {"verify", 0, "[=off|bound|bitwise]", GROUP_PRODUCT | GROUP_SOLVE, "bound",
                       "check the result: bound against another backend; bitwise also repeats it and compares bits"},
    [OPTION_CACHE] = {"cache", 0, NULL, GROUP_READ, NULL,
                      "keep matrices from files in binary form in the user's cache folder, and read them from there "
                      "(default: where the variable SPMV_CACHE is set)"},
    [OPTION_MAX_MEMORY] =
        {"max-memory", 0, "SIZE|off", GROUP_READ | GROUP_GEN, NULL,
         "refuse a matrix with which the whole job would take more memory; a number of bytes, or with "
         "K, M, G or T (default: what the system has free and allows)"},
    [OPTION_JSON] = {"json", 0, "[=FILE]", GROUP_RESULT, NULL,
                     "one JSON object to FILE, else to standard output in place of the answer (default: no JSON)"},
    [OPTION_FORMAT] = {"format", 0, "FORMAT", GROUP_PRODUCT | GROUP_SOLVE, NULL,
                       "of the vector's numbers, such as %.6g (default: the fewest digits that keep all bits)"},
    [OPTION_QUIET] = {"quiet", 'q', NULL, GROUP_SHARED, NULL, "only errors on standard error (default: a summary)"},
    [OPTION_VERBOSE] = {"verbose", 'v', NULL, GROUP_SHARED, NULL, "more about each step (default: a summary)"},
    [OPTION_VERSION] = {"version", 0, NULL, GROUP_SHARED, NULL, "print the version and exit"},
    [OPTION_HELP] = {"help", 'h', NULL, GROUP_SHARED, NULL, "print this help and exit"},
};

/* Help of options that mean something else in these commands. */
static const struct {
    enum option_id id;
    unsigned group;
    const char *help;
} meanings[] = {
    {OPTION_OUTPUT, GROUP_SPY, "draw the picture there, as .png or .svg (default: standard output, in characters)"},
    {OPTION_OP, GROUP_EXPLAIN, "what to explain, one of the subjects below"},
    {OPTION_SIZE, GROUP_BENCH, "elements, for operations that do not work on matrices (default: 2^24, on a GPU 2^26)"},
    {OPTION_SIZE, GROUP_SPY, "the longer side of the picture of -o, in pixels, without axes (default: 800)"},
    {OPTION_SIZE, GROUP_EXPLAIN, "the most values shown side by side (default: 32)"},
    {OPTION_VECTORS, GROUP_BENCH, "columns of x multiplied at once; implies --op spmm (default: 4)"},
    {OPTION_METHOD, GROUP_SOLVE, "how to solve and to multiply: RUNG, METHOD or RUNG:METHOD, from the lists below"},
    {OPTION_METHOD, GROUP_BENCH, "methods to measure, from the lists below, separated by commas; all: each of them"},
    {OPTION_METHOD, GROUP_EXPLAIN, "the rung whose steps are shown; an unknown name lists those of --op"},
    {OPTION_TYPE, GROUP_BENCH, "type of the matrix, the vectors and the sums; a suite is measured in f64 and f32 each"},
    {OPTION_TYPE, GROUP_SOLVE, "f64, f32, or mixed: an f32 matrix, vectors and sums in f64"},
    {OPTION_TYPE, GROUP_EXPLAIN, "type of the values: f64 or f32"},
    {OPTION_TYPE, GROUP_GEN | GROUP_CONVERT, "type of the values: f64, f32, c128 or c64"},
};

static const char *help_of(enum option_id id, enum option_group group)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].id == id && (meanings[i].group & group) != 0)
            return meanings[i].help;
    return rows[id].help;
}

static bool argument_is_optional(const struct row *row)
{
    return row->argument != NULL && row->argument[0] == '[';
}

/* The first mistake is the one that is reported. */
__attribute__((format(printf, 2, 3))) static void mistake(struct options *o, const char *format, ...)
{
    va_list values;
    if (o->error[0] != '\0')
        return;
    va_start(values, format);
    vsnprintf(o->error, sizeof o->error, format, values);
    va_end(values);
}

static void set_count_to(struct options *o, enum option_id id, const char *text, int64_t least, int64_t most,
                         int64_t *value)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(text, &end, 10); /* the nearest there is when it is out of range */
    if (end == text || *end != '\0' || number < least)
        mistake(o, "--%s %s: a number from %lld on is needed", rows[id].name, text, (long long)least);
    else if (errno != 0 || number > most)
        mistake(o, "--%s %s: too large, at most %lld is possible", rows[id].name, text, (long long)most);
    else
        *value = number;
}

static void set_count(struct options *o, enum option_id id, const char *text, int least, int *value)
{
    int64_t wide = *value;
    set_count_to(o, id, text, least, INT_MAX, &wide);
    *value = (int)wide;
}

static void set_count_64(struct options *o, enum option_id id, const char *text, int64_t least, int64_t *value)
{
    set_count_to(o, id, text, least, INT64_MAX, value);
}

static void set_threads(struct options *o, const char *text)
{
    int64_t threads = o->threads;
    set_count_to(o, OPTION_THREADS, text, 0, SPMV_MAX_THREADS, &threads);
    o->threads = (int)threads;
}

/* 4000000, 512M, 1.5G (powers of 1024), off. */
static void set_memory(struct options *o, const char *text)
{
    const char *const units = "kKmMgGtT";
    char *end = NULL;
    errno = 0;
    double bytes = strtod(text, &end);
    const bool number = end != text && isdigit((unsigned char)text[0]);
    if (strcmp(text, "off") == 0) {
        o->max_memory = -1;
        return;
    }
    if (number && *end != '\0' && strchr(units, *end) != NULL) {
        bytes *= (double)((int64_t)1 << 10 * (1 + (strchr(units, *end) - units) / 2));
        end++;
    }
    if (!number || *end != '\0' || !(bytes >= 1 && bytes < 0x1p62))
        mistake(o, "--%s %s: a size such as 4000000, 512M or 1.5G is needed, or off", rows[OPTION_MAX_MEMORY].name,
                text);
    else
        o->max_memory = (int64_t)bytes;
}

/* "inf" is what it says; a finite number that becomes infinite is a mistake. */
static void set_number(struct options *o, enum option_id id, const char *text, double *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || *end != '\0')
        mistake(o, "--%s %s: not a number", rows[id].name, text);
    else if (errno == ERANGE && isinf(*value))
        mistake(o, "--%s %s: too large for f64", rows[id].name, text);
}

static void set_tolerance(struct options *o, enum option_id id, const char *text, double *value)
{
    set_number(o, id, text, value);
    if (!(*value >= 0))
        mistake(o, "--%s %s: a number from 0 on is needed", rows[id].name, text);
}

static bool parse_verify(const char *text, enum verify_mode *verify)
{
    static const char *const names[] = {[VERIFY_OFF] = "off", [VERIFY_BOUND] = "bound", [VERIFY_BITWISE] = "bitwise"};
    for (int mode = VERIFY_OFF; mode <= VERIFY_BITWISE; mode++)
        if (strcmp(text, names[mode]) == 0) {
            *verify = (enum verify_mode)mode;
            return true;
        }
    return false;
}

static bool parse_compression(const char *text, int *compression)
{
    static const struct {
        const char *name;
        int compression;
    } known[] = {{"auto", AUTO_COMPRESSION}, {"off", 0}, {"columns", -1}, {"values", 2}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0) {
            *compression = known[i].compression;
            return true;
        }
    return false;
}

int plan_compression(const struct options *o, spmv_backend backend, bool solves)
{
    return o->compression != AUTO_COMPRESSION ? o->compression : solves && backend == SPMV_BACKEND_CUDA ? 2 : -1;
}

/* Of --json and --csv: the file; NULL: standard output. */
static const char *result_path(struct options *o, enum option_id id, const char *path)
{
    if (path != NULL && path[0] == '\0')
        mistake(o, "--%s=%s: the name of the file is missing", rows[id].name, path);
    return path != NULL && strcmp(path, "-") != 0 ? path : NULL;
}

static void set_option(struct options *o, enum option_id id, const char *text)
{
    switch (id) {
    case OPTION_OUTPUT:
        o->output = text;
        break;
    case OPTION_ALPHA:
        set_number(o, id, text, &o->alpha);
        break;
    case OPTION_BETA:
        set_number(o, id, text, &o->beta);
        break;
    case OPTION_Y0:
        o->y0 = text;
        break;
    case OPTION_TRANSPOSE:
        o->transpose = true;
        break;
    case OPTION_X0:
        o->x0 = text;
        break;
    case OPTION_RTOL:
        set_tolerance(o, id, text, &o->rtol);
        break;
    case OPTION_ATOL:
        set_tolerance(o, id, text, &o->atol);
        break;
    case OPTION_MAX_ITERATIONS:
        set_count(o, id, text, 1, &o->max_iterations);
        break;
    case OPTION_HISTORY:
        o->history = text;
        break;
    case OPTION_PLOT:
        o->plot = text;
        break;
    case OPTION_PRECOND:
        o->precond = text;
        break;
    case OPTION_SOLUTION:
        o->solution = text;
        break;
    case OPTION_INNER:
        o->inner = true;
        break;
    case OPTION_SUITE:
        o->suite = text;
        break;
    case OPTION_OP:
        o->op = text;
        break;
    case OPTION_SIZE:
        set_count_64(o, id, text, 1, &o->size);
        break;
    case OPTION_PEERS:
        o->peers = text;
        break;
    case OPTION_CSV:
        o->csv = true;
        o->csv_path = result_path(o, id, text);
        break;
    case OPTION_SUMMARY:
        o->summary = true;
        break;
    case OPTION_VECTORS:
        set_count(o, id, text, 1, &o->vectors);
        break;
    case OPTION_SEED:
        set_count_64(o, id, text, 0, &o->seed);
        break;
    case OPTION_EXCLUSIVE:
        o->exclusive = true;
        break;
    case OPTION_OPERATOR:
        o->operator_name = text;
        break;
    case OPTION_HEADS:
        o->heads = text;
        break;
    case OPTION_KEEP:
        o->keep = text;
        break;
    case OPTION_BACKEND:
        if (spmv_backend_parse(text, &o->backend) != SPMV_OK)
            mistake(o, "--%s %s: auto, cuda, omp or ref is needed", rows[id].name, text);
        break;
    case OPTION_METHOD:
        o->method = text;
        break;
    case OPTION_COMPRESS:
        if (!parse_compression(text, &o->compression))
            mistake(o, "--%s %s: auto, off, columns or values is needed", rows[id].name, text);
        break;
    case OPTION_TYPE:
        o->mixed = strcmp(text, "mixed") == 0;
        if (o->mixed)
            o->type = SPMV_F64;
        else if (spmv_type_parse(text, &o->type) != SPMV_OK)
            mistake(o, "--%s %s: f64, f32, c128, c64 or mixed is needed", rows[id].name, text);
        break;
    case OPTION_THREADS:
        set_threads(o, text);
        break;
    case OPTION_DEVICE:
        set_count(o, id, text, 0, &o->device);
        break;
    case OPTION_VERIFY:
        if (!parse_verify(text != NULL ? text : rows[id].standard, &o->verify))
            mistake(o, "--%s=%s: off, bound or bitwise is needed", rows[id].name, text);
        break;
    case OPTION_MAX_MEMORY:
        set_memory(o, text);
        break;
    case OPTION_CACHE:
        o->cache = true;
        break;
    case OPTION_JSON:
        o->json = true;
        o->json_path = result_path(o, id, text);
        break;
    case OPTION_FORMAT:
        o->format = text;
        break;
    case OPTION_QUIET:
        o->quiet = true;
        break;
    case OPTION_VERBOSE:
        o->verbose = true;
        break;
    case OPTION_VERSION:
        o->version = true;
        break;
    case OPTION_HELP:
        o->help = true;
        break;
    case OPTIONS:
        break;
    }
}

/* getopt's tables: long options return LONG_BASE + their index, letters themselves. */
enum { LONG_BASE = 256 };

static void make_tables(struct option *table, char *letters)
{
    *letters++ = '-'; /* everything in the order given */
    *letters++ = ':'; /* tell a missing argument from an unknown option */
    for (int i = 0; i < OPTIONS; i++) {
        const int has = rows[i].argument == NULL         ? no_argument
                        : argument_is_optional(&rows[i]) ? optional_argument
                                                         : required_argument;
        table[i] = (struct option){.name = rows[i].name, .has_arg = has, .val = LONG_BASE + i};
        if (rows[i].letter != 0) {
            *letters++ = rows[i].letter;
            if (has == required_argument)
                *letters++ = ':';
        }
    }
    *letters = '\0';
    table[OPTIONS] = (struct option){0};
}

static enum option_id option_of(int code)
{
    for (int i = 0; i < OPTIONS; i++)
        if (code == LONG_BASE + i || (code != 0 && code == rows[i].letter))
            return (enum option_id)i;
    return OPTIONS;
}

/* The option as it was typed, without dashes and value. */
static const char *typed_name(const char *word, size_t *length)
{
    while (*word == '-')
        word++;
    *length = strcspn(word, "=");
    return word;
}

/* getopt takes the beginning of a name; this is one of several names. */
static bool is_ambiguous(const char *name, size_t length, char *text, size_t size)
{
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < OPTIONS && length > 0; i++)
        if (strncmp(rows[i].name, name, length) == 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s", count++ > 0 ? ", " : "", rows[i].name);
    return count > 1;
}

static void unknown_option(struct options *o, const char *word)
{
    char matches[128];
    size_t length;
    struct names names = {.count = 0};
    const char *const name = typed_name(word, &length);
    if (strncmp(word, "--", 2) == 0 && is_ambiguous(name, length, matches, sizeof matches)) {
        mistake(o, "option %s is the beginning of several: %s", word, matches);
        return;
    }
    for (int i = 0; i < OPTIONS; i++)
        names_add(&names, rows[i].name);
    const char *const nearest = length > 1 ? names_nearest(&names, name, length) : NULL;
    if (nearest != NULL)
        mistake(o, "unknown option %.60s; did you mean --%s?", word, nearest);
    else
        mistake(o, "unknown option %.60s; spmv COMMAND --help lists those of a command", word);
}

static void bad_option(struct options *o, int code, const char *word)
{
    const enum option_id id = option_of(optopt);
    if (code == ':')
        mistake(o, "option --%s needs an argument: %s", rows[id].name, rows[id].argument);
    else if (id != OPTIONS)
        mistake(o, "option --%s takes no argument", rows[id].name);
    else
        unknown_option(o, word);
}

/* -3 and -.5 behind "explain" are values: no option begins with a digit. */
static bool is_value(const struct options *o, const char *word)
{
    return o->count > 0 && strcmp(o->arguments[0], "explain") == 0 && word != NULL && word[0] == '-' &&
           word[1] != '\0' && strchr("0123456789.", word[1]) != NULL;
}

static bool ends_in(const char *word, const char *ending)
{
    const size_t length = strlen(word), n = strlen(ending);
    return length > n && strcmp(word + length - n, ending) == 0;
}

/* --json FILE and --csv FILE: NULL where the next word is not the value. */
static const char *spaced_file(struct options *o, enum option_id id, const char *next)
{
    if (!ends_in(next, id == OPTION_JSON ? ".json" : ".csv")) {
        o->spaced_option = rows[id].name;
        o->spaced_word = next;
        return NULL;
    }
    if (file_exists(next))
        mistake(o, "--%s %s: the file exists; to replace it, write --%s=%s; to read it, name it before --%s",
                rows[id].name, next, rows[id].name, next, rows[id].name);
    return next;
}

/* --verify MODE. */
static const char *spaced_mode(struct options *o, enum option_id id, const char *next)
{
    enum verify_mode mode;
    if (!parse_verify(next, &mode))
        return NULL;
    if (file_exists(next))
        mistake(o, "--%s %s: a file of that name exists; write --%s=%s, or ./%s for the file", rows[id].name, next,
                rows[id].name, next, next);
    return next;
}

/* The next word, where it is the value of an option that takes its value behind "=". */
static const char *spaced_value(struct options *o, enum option_id id, const char *next)
{
    if (next == NULL || next[0] == '-')
        return NULL;
    if (id == OPTION_JSON || id == OPTION_CSV)
        return spaced_file(o, id, next);
    return id == OPTION_VERIFY ? spaced_mode(o, id, next) : NULL;
}

bool options_explain_space(const struct options *o, const char *word)
{
    if (word != o->spaced_word)
        return false;
    complain("--%s %s: a file to write stands behind \"=\": --%s=%s", o->spaced_option, word, o->spaced_option, word);
    return true;
}

static void read_options(int argc, char **argv, struct options *o)
{
    struct option table[OPTIONS + 1];
    char letters[2 + 2 * OPTIONS + 1];
    make_tables(table, letters);
    opterr = 0;
    for (;;) {
        while (is_value(o, optind < argc ? argv[optind] : NULL))
            o->arguments[o->count++] = argv[optind++];
        const int at = optind;
        const int code = getopt_long(argc, argv, letters, table, NULL);
        if (code == -1)
            break;
        if (code == 1) {
            o->arguments[o->count++] = optarg;
        } else if (code == '?' || code == ':') {
            bad_option(o, code, argv[at]);
        } else {
            const enum option_id id = option_of(code);
            o->given |= (uint64_t)1 << id;
            o->type_given = o->type_given || id == OPTION_TYPE;
            o->solution_given = o->solution_given || id == OPTION_SOLUTION;
            const char *value = optarg;
            if (value == NULL && (value = spaced_value(o, id, optind < argc ? argv[optind] : NULL)) != NULL)
                optind++;
            set_option(o, id, value);
        }
    }
    while (optind < argc)
        o->arguments[o->count++] = argv[optind++];
}

/* Copies one word in single quotes where the shell would read it otherwise; returns the end. At most 4 characters for
 * each of the word, and 3 more. */
static char *quote_word(char *to, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@^_";
    const bool bare = word[0] != '\0' && word[strspn(word, plain)] == '\0';
    if (!bare)
        *to++ = '\'';
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            memcpy(to, "'\\''", 4);
            to += 4;
        } else {
            *to++ = *word;
        }
    }
    if (!bare)
        *to++ = '\'';
    return to;
}

static spmv_status join_command_line(int argc, char **argv, struct options *o)
{
    int64_t size = 1;
    for (int i = 0; i < argc; i++)
        size += 4 * (int64_t)strlen(argv[i]) + 3;
    const spmv_status st = allocate("the command line", size, 1, (void **)&o->command_line);
    if (st != SPMV_OK)
        return st;
    char *to = o->command_line;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            *to++ = ' ';
        to = quote_word(to, argv[i]);
    }
    *to = '\0';
    return SPMV_OK;
}

spmv_status options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.device = -1, .compression = AUTO_COMPRESSION};
    for (int i = 0; i < OPTIONS; i++)
        if (rows[i].standard != NULL)
            set_option(o, (enum option_id)i, rows[i].standard);
    spmv_status st = allocate("the arguments", argc, sizeof *o->arguments, (void **)&o->arguments);
    if (st == SPMV_OK)
        st = join_command_line(argc, argv, o);
    if (st == SPMV_OK)
        read_options(argc, argv, o);
    if (!option_given(o, "rtol"))
        o->rtol = o->type == SPMV_F32 ? 1e-4 : 1e-8;
    return st;
}

void options_free(struct options *o)
{
    free(o->arguments);
    free(o->command_line);
}

/* "spmv mul takes it", "spmv bench, spmv explain and spmv spy take it". */
static void list_takers(unsigned groups, char *text, size_t size)
{
    const struct command *command;
    size_t used = 0;
    int count = 0, left = 0;
    for (int c = 0; (command = command_at(c)) != NULL; c++)
        left += (groups & command->group) != 0;
    for (int c = 0; (command = command_at(c)) != NULL && used < size; c++)
        if ((groups & command->group) != 0) {
            left--;
            used += (size_t)snprintf(text + used, size - used, "%sspmv %s",
                                     count == 0  ? ""
                                     : left == 0 ? " and "
                                                 : ", ",
                                     command->name);
            count++;
        }
    if (used < size)
        snprintf(text + used, size - used, " take%s it", count == 1 ? "s" : "");
}

/* Factors are rounded to the type of the product, which may make them infinite. */
static spmv_status check_factors(const struct options *o)
{
    const struct {
        enum option_id id;
        double value;
    } factors[] = {{OPTION_ALPHA, o->alpha}, {OPTION_BETA, o->beta}};
    for (int i = 0; i < 2 && (o->type == SPMV_F32 || o->type == SPMV_C64); i++)
        if (isfinite(factors[i].value) && !isfinite((float)factors[i].value)) {
            complain("--%s %g: too large for %s", rows[factors[i].id].name, factors[i].value, spmv_type_name(o->type));
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

static spmv_status check_given(const struct options *o, enum option_group group, const char *command)
{
    for (int i = 0; i < OPTIONS; i++)
        if ((o->given >> i & 1) != 0 && (rows[i].group & group) == 0) {
            char takers[160];
            list_takers(rows[i].group, takers, sizeof takers);
            complain("option --%s is not for %s; %s", rows[i].name, command, takers);
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

/* Options of which one leaves the other without an effect. */
static spmv_status check_pairs(const struct options *o, enum option_group group)
{
    if (o->quiet && o->verbose)
        return report(SPMV_ERROR_ARGUMENT, "--quiet and --verbose exclude each other");
    if (o->device >= 0 && (o->backend == SPMV_BACKEND_OMP || o->backend == SPMV_BACKEND_REF)) {
        complain("--device has no effect: it names a GPU, and --backend %s uses none", spmv_backend_name(o->backend));
        return SPMV_ERROR_ARGUMENT;
    }
    if (group == GROUP_EXPLAIN && o->cache && strcmp(o->op, "spmv") != 0) {
        complain("--cache has no effect: explain --op %s reads no file", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    return SPMV_OK;
}

static spmv_status check_type(const struct options *o, enum option_group group, const char *command)
{
    if (o->mixed && (group & (GROUP_PRODUCT | GROUP_SOLVE | GROUP_INFO)) == 0) {
        complain("--type mixed is not for %s; spmv mul, spmv solve and spmv info take it", command);
        return SPMV_ERROR_ARGUMENT;
    }
    const bool complex = is_complex(o->type);
    if (o->type != SPMV_F64 && o->type != SPMV_F32 && !complex) {
        complain("--type %s: products exist for f64, f32, c128 and c64", spmv_type_name(o->type));
        return SPMV_ERROR_TYPE;
    }
    if (complex && (group & (GROUP_SOLVE | GROUP_EXPLAIN)) != 0) {
        complain("--type %s is not for %s, which computes in f64 and f32", spmv_type_name(o->type), command);
        return SPMV_ERROR_TYPE;
    }
    return SPMV_OK;
}

/* METHOD; of solve RUNG, METHOD or RUNG:METHOD. Those of another backend, of bench and of explain are checked later,
 * where it is known which there are. */
static spmv_status check_method(const struct options *o, enum option_group group)
{
    struct names methods = {.count = 0}, either = {.count = 0};
    const char *name = o->method;
    const spmv_backend backend = spmv_backend_built(o->backend) ? o->backend : SPMV_BACKEND_AUTO;
    if ((group & (GROUP_PRODUCT | GROUP_SOLVE | GROUP_INFO)) == 0)
        return SPMV_OK;
    names_add(&methods, "auto");
    names_of_methods(&methods, backend);
    if (group != GROUP_SOLVE)
        return names_check(&methods, "method", name, false);
    const char *const colon = strchr(name, ':');
    names_of_rungs(&either, backend);
    if (colon != NULL && !names_have(&either, name, (size_t)(colon - name)))
        return names_refuse(&either, "rung", name, (size_t)(colon - name));
    if (colon != NULL)
        return names_check(&methods, "method", colon + 1, false);
    for (int i = 0; i < methods.count; i++)
        names_add(&either, methods.name[i]);
    return names_check(&either, "rung or method", name, false);
}

static spmv_status check_names(const struct options *o, enum option_group group)
{
    struct names names = {.count = 0};
    spmv_status st = check_method(o, group);
    if (st == SPMV_OK && options_take(group, "precond")) {
        names_of_preconditioners(&names);
        st = names_check(&names, "preconditioner", o->precond, group == GROUP_BENCH);
    }
    names.count = 0;
    for (int i = 0; group == GROUP_EXPLAIN && explain_subject_name(i) != NULL; i++)
        names_add(&names, explain_subject_name(i));
    if (st == SPMV_OK && group == GROUP_EXPLAIN)
        st = names_check(&names, "subject", o->op, false);
    if (st != SPMV_OK || group != GROUP_BENCH)
        return st;
    names.count = 0;
    names_of_operations(&names);
    st = names_check(&names, "operation", o->op, false);
    names.count = 0;
    names_of_suites(&names);
    if (st == SPMV_OK)
        st = names_check(&names, "suite", o->suite, false);
    names_of_peers(&names);
    return st == SPMV_OK ? names_check(&names, "peer", o->peers, true) : st;
}

spmv_status options_check(const struct options *o, enum option_group group, const char *command)
{
    if (o->error[0] != '\0')
        return report(SPMV_ERROR_ARGUMENT, o->error);
    spmv_status st = check_given(o, group, command);
    if (st == SPMV_OK)
        st = check_type(o, group, command);
    if (st == SPMV_OK)
        st = check_pairs(o, group);
    if (st == SPMV_OK && !o->help && !o->version)
        st = check_names(o, group);
    if (st == SPMV_OK)
        st = check_factors(o);
    return st == SPMV_OK ? check_outputs(o, NULL) : st;
}

bool options_take(enum option_group group, const char *name)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (rows[i].group & group) != 0;
    return false;
}

bool option_given(const struct options *o, const char *name)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (o->given >> i & 1) != 0;
    return false;
}

bool is_complex(spmv_type type)
{
    return type == SPMV_C128 || type == SPMV_C64;
}

struct options options_for_matrix(const struct options *o)
{
    struct options reading = *o;
    if (o->mixed)
        reading.type = SPMV_F32;
    return reading;
}

/* Where the text of an option begins (a longer option gets a line of its own), and where it ends. */
enum { HELP_COLUMN = 34, HELP_WIDTH = 100 };

void print_wrapped(const char *text, int indent, int width)
{
    int column = indent;
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        const int blank = column > indent;
        if (blank && column + blank + length > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (blank) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(enum option_id id, enum option_group group)
{
    const struct row *const row = &rows[id];
    char letter[8] = "    ", text[512];
    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const int width =
        printf("  %s--%s%s%s", letter, row->name, row->argument != NULL && !argument_is_optional(row) ? " " : "",
               row->argument != NULL ? row->argument : "");
    if (width > HELP_COLUMN - 2)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - width, "");
    snprintf(text, sizeof text, "%s%s%s%s", help_of(id, group), row->standard != NULL ? " (default: " : "",
             row->standard != NULL ? row->standard : "", row->standard != NULL ? ")" : "");
    print_wrapped(text, HELP_COLUMN, HELP_WIDTH);
}

void options_print(enum option_group group)
{
    for (int i = 0; i < OPTIONS; i++)
        if ((rows[i].group & group) != 0)
            print_option((enum option_id)i, group);
}
