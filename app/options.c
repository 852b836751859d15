/* The command line: one table of options, from which parsing, defaults and --help are made.
 *
 * getopt_long reads it in the order given, so options may stand before, between and after the other arguments; "--"
 * ends them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
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
                       "write the answer there, the picture as .png or .svg (default: standard output)"},
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
    [OPTION_PRECOND] = {"precond", 0, "NAME", GROUP_SOLVE, "none",
                        "the preconditioner: none, jacobi, ...; doctor lists them; auto: decided from the matrix; all: "
                        "each in turn, and a table"},
    [OPTION_SOLUTION] = {"solution", 0, "ones|random", GROUP_SOLVE, "ones",
                         "without b: the x that b is made from, against which the error is reported"},
    [OPTION_INNER] = {"inner", 0, NULL, GROUP_SOLVE, NULL,
                      "iterate in f32, and correct in f64 until f64's tolerance is reached (default: all in f64)"},
    [OPTION_SUITE] = {"suite", 0, "NAME", GROUP_BENCH, NULL,
                      "measure on the matrices of a suite: small, std, cg or large (default: the matrices named)"},
    [OPTION_OP] = {"op", 0, "NAME", GROUP_BENCH | GROUP_EXPLAIN, "spmv",
                   "what to measure: spmv, cg, spmm, spmv-dot, map, reduce, scan, segscan, segreduce, gather, "
                   "gather-sequential, scatter, "
                   "compact, sort, histogram, scan-host, load; what to explain: spmv, scan, segscan, reduce, compact, "
                   "expand, gather, sort, histogram"},
    [OPTION_SIZE] =
        {"size", 0, "N", GROUP_BENCH | GROUP_SPY | GROUP_EXPLAIN, NULL,
         "bench: elements, for what does not work on matrices (default: 2^24 on a CPU, 2^26 on a GPU); spy: the "
         "picture's longer side without axes and legend, in pixels, at most (default: 800); explain: the most "
         "values it shows side by side (default: 32)"},
    [OPTION_PEERS] = {"peers", 0, "LIST", GROUP_BENCH, "all",
                      "libraries to measure beside ours: names of peers or modules, separated by commas, all, none"},
    [OPTION_CSV] = {"csv", 0, "[=FILE]", GROUP_BENCH, NULL,
                    "one line a figure to FILE, else to standard output in place of the table (default: no CSV)"},
    [OPTION_SUMMARY] = {"summary", 0, NULL, GROUP_BENCH, NULL,
                        "end with the geometric mean and the worst case against each peer (default: no summary)"},
    [OPTION_SEED] = {"seed", 0, "S", GROUP_BENCH, "1", "of the random vectors, elements and generated matrices"},
    [OPTION_VECTORS] = {"vectors", 0, "K", GROUP_BENCH | GROUP_SOLVE, NULL,
                        "bench: columns of x that are multiplied at once (default: 4), without --op it says --op spmm; "
                        "solve, without b: right-hand sides that are made (default: 1)"},
    [OPTION_EXCLUSIVE] = {"exclusive", 0, NULL, GROUP_EXPLAIN, NULL,
                          "scan, segscan: without the element itself (default: with it, inclusive)"},
    [OPTION_OPERATOR] = {"operator", 0, "NAME", GROUP_EXPLAIN, NULL,
                         "scan, segscan, reduce: add, mul, min, max or last (default: add)"},
    [OPTION_HEADS] = {"heads", 0, "LIST", GROUP_EXPLAIN, NULL,
                      "segscan: where segments start, such as 0,3,5; or put '|' between the values (default: one "
                      "segment)"},
    [OPTION_KEEP] =
        {"keep", 0, "PREDICATE[:S]", GROUP_EXPLAIN, NULL,
         "compact, gather: less, less_equal, greater, greater_equal, equal or not_equal than S (default: 0), or "
         "nonzero (default: nonzero; gather: all)"},
    [OPTION_BACKEND] = {"backend", 0, "auto|cuda|omp|ref", GROUP_SHARED, "auto",
                        "where to compute; auto: a usable GPU, else OpenMP"},
    [OPTION_METHOD] = {"method", 0, "NAME", GROUP_SHARED, "auto",
                       "how to multiply, and to solve (RUNG or RUNG:NAME); doctor lists the names"},
    [OPTION_COMPRESS] = {"compress", 0, "auto|off|columns|values", GROUP_SHARED, "auto",
                         "may the plan hold the matrix in fewer bytes, where its method can: columns in fewer bits; "
                         "values: also few distinct values in a table (method tiles on cuda); auto: values for solve "
                         "of one right-hand side and bench --op cg on a GPU, else columns; same results"},
    [OPTION_TYPE] = {"type", 0, "f64|f32|c128|c64|mixed", GROUP_SHARED, "f64",
                     "type of matrix, vectors and sums; mixed: an f32 matrix, the others f64; of complex files c128, "
                     "unless c64 is given; bench: of a suite both real ones"},
    [OPTION_THREADS] = {"threads", 0, "N", GROUP_SHARED, NULL, "OpenMP threads, at most (default: what OpenMP offers)"},
    [OPTION_DEVICE] = {"device", 0, "N", GROUP_SHARED, NULL, "GPU, counted from 0 (default: CUDA's current one)"},
    [OPTION_VERIFY] = {"verify", 0, "[=off|bound|bitwise]", GROUP_SHARED, "bound",
                       "check the result: bound against another backend; bitwise also repeats it and compares bits"},
    [OPTION_CACHE] =
        {"cache", 0, NULL, GROUP_SHARED, NULL,
         "keep matrices from files in the binary form, in spmv beside the user's other caches, and take them "
         "from there (default: where the variable SPMV_CACHE is set)"},
    [OPTION_JSON] = {"json", 0, "[=FILE]", GROUP_SHARED, NULL,
                     "one JSON object to FILE, else to standard output in place of the answer (default: no JSON)"},
    [OPTION_FORMAT] = {"format", 0, "FORMAT", GROUP_SHARED, NULL,
                       "of the vector's numbers, such as %.6g (default: the fewest digits that read back to the same "
                       "bits)"},
    [OPTION_QUIET] = {"quiet", 'q', NULL, GROUP_SHARED, NULL, "only errors on standard error (default: a summary)"},
    [OPTION_VERBOSE] = {"verbose", 'v', NULL, GROUP_SHARED, NULL, "more about each step (default: a summary)"},
    [OPTION_VERSION] = {"version", 0, NULL, GROUP_SHARED, NULL, "print the version and exit"},
    [OPTION_HELP] = {"help", 'h', NULL, GROUP_SHARED, NULL, "print this help and exit"},
};

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

static void set_verify(struct options *o, const char *text)
{
    static const char *const names[] = {[VERIFY_OFF] = "off", [VERIFY_BOUND] = "bound", [VERIFY_BITWISE] = "bitwise"};
    for (int mode = VERIFY_OFF; mode <= VERIFY_BITWISE; mode++) {
        if (strcmp(text, names[mode]) == 0) {
            o->verify = (enum verify_mode)mode;
            return;
        }
    }
    mistake(o, "--%s=%s: off, bound or bitwise is needed", rows[OPTION_VERIFY].name, text);
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
        set_count(o, id, text, 0, &o->threads);
        break;
    case OPTION_DEVICE:
        set_count(o, id, text, 0, &o->device);
        break;
    case OPTION_VERIFY:
        set_verify(o, text != NULL ? text : rows[id].standard);
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

static void bad_option(struct options *o, int code, const char *word)
{
    const enum option_id id = option_of(optopt);
    if (code == ':')
        mistake(o, "option --%s needs an argument: %s", rows[id].name, rows[id].argument);
    else if (id != OPTIONS)
        mistake(o, "option --%s takes no argument%s", rows[id].name, "");
    else
        mistake(o, "unknown option %s%s; spmv --help lists them", word, "");
}

/* -3 and -.5 behind "explain" are values: no option begins with a digit. */
static bool is_value(const struct options *o, const char *word)
{
    return o->count > 0 && strcmp(o->arguments[0], "explain") == 0 && word != NULL && word[0] == '-' &&
           word[1] != '\0' && strchr("0123456789.", word[1]) != NULL;
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
            set_option(o, id, optarg);
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

/* "spmv mul takes it", "spmv bench and spmv spy take it". */
static void list_takers(unsigned groups, char *text, size_t size)
{
    static const struct {
        unsigned group;
        const char *command;
    } takers[] = {{GROUP_PRODUCT, "mul"}, {GROUP_SOLVE, "solve"}, {GROUP_BENCH, "bench"},
                  {GROUP_GEN, "gen"},     {GROUP_SPY, "spy"},     {GROUP_EXPLAIN, "explain"}};
    size_t used = 0;
    int count = 0;
    for (size_t t = 0; t < sizeof takers / sizeof takers[0] && used < size; t++)
        if ((groups & takers[t].group) != 0)
            used +=
                (size_t)snprintf(text + used, size - used, "%sspmv %s", count++ > 0 ? " and " : "", takers[t].command);
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

spmv_status options_check(const struct options *o, unsigned groups, const char *command)
{
    if (o->error[0] != '\0')
        return report(SPMV_ERROR_ARGUMENT, o->error);
    for (int i = 0; i < OPTIONS; i++) {
        if ((o->given >> i & 1) != 0 && (rows[i].group & groups) == 0) {
            char takers[96];
            list_takers(rows[i].group, takers, sizeof takers);
            complain("option --%s is not for %s; %s", rows[i].name, command != NULL ? command : "the plain product",
                     takers);
            return SPMV_ERROR_ARGUMENT;
        }
    }
    const bool stores = command != NULL && (strcmp(command, "convert") == 0 || strcmp(command, "doctor") == 0);
    if (o->mixed && (stores || (groups & (GROUP_BENCH | GROUP_GEN | GROUP_SPY | GROUP_EXPLAIN)) != 0)) {
        complain("--type mixed is not for %s, but for products, info and solve", command);
        return SPMV_ERROR_ARGUMENT;
    }
    const bool complex = is_complex(o->type);
    if (o->type != SPMV_F64 && o->type != SPMV_F32 && !complex) {
        complain("--type %s: products exist for f64, f32, c128 and c64", spmv_type_name(o->type));
        return SPMV_ERROR_TYPE;
    }
    if (complex && (groups & (GROUP_SOLVE | GROUP_EXPLAIN)) != 0) {
        complain("--type %s is not for %s, which computes in f64 and f32", spmv_type_name(o->type), command);
        return SPMV_ERROR_TYPE;
    }
    const spmv_status st = check_factors(o);
    return st == SPMV_OK ? check_outputs(o, NULL) : st;
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

/* Words from column HELP_COLUMN on, broken before HELP_WIDTH. */
static void print_wrapped(const char *text)
{
    int column = HELP_COLUMN;
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        const int blank = column > HELP_COLUMN;
        if (blank && column + blank + length > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
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

static void print_option(const struct row *row)
{
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
    snprintf(text, sizeof text, "%s%s%s%s", row->help, row->standard != NULL ? " (default: " : "",
             row->standard != NULL ? row->standard : "", row->standard != NULL ? ")" : "");
    print_wrapped(text);
}

void options_print(unsigned groups)
{
    for (int i = 0; i < OPTIONS; i++)
        if ((rows[i].group & groups) != 0)
            print_option(&rows[i]);
}
