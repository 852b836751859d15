/* The command line: one table of options defines parsing, defaults and the help of each command.
 *
 * getopt_long reads the arguments in the order given, so options may stand before, between and
 * after the others; "--" ends the options. An option without an effect in the command is refused.
 *
 * --json and --csv have an optional file after "=". With a space in place of "=", the next word
 * could be an input. It is the output file only if its name ends in .json or .csv and no such file
 * exists; an existing file is never overwritten. --verify accepts a following off, bound or bitwise
 * as its value.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <spmv/group.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/explain/explain.h"
#include "app/input.h"
#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "bench/candidate_list.h"
#include "core/choice.h"
#include "core/reals.h"

/* How an option's argument is parsed, and the type of the member of struct options that it sets. */
enum kind {
    KIND_FLAG,      /* bool: no argument */
    KIND_TEXT,      /* const char * */
    KIND_COUNT,     /* int, within the row's bounds */
    KIND_COUNT_64,  /* int64_t, within the row's bounds */
    KIND_COUNTS,    /* struct counts: up to COUNTS_MOST of KIND_COUNT, separated by commas */
    KIND_NUMBER,    /* double */
    KIND_TOLERANCE, /* double >= 0 */
    KIND_CHOICE,    /* an enum or int: one of the row's choices */
    KIND_TYPE,      /* spmv_type; "mixed" also sets another member */
    KIND_BYTES,     /* int64_t: 4000000, 512M, 1.5G (powers of 1024); off: -1 */
    KIND_FILE       /* bool, and the file after "=" in another member */
};

struct choice {
    const char *name;
    int value;
};

/* Each list ends with a NULL name. */
static const struct choice backends[] = {{"auto", SPMV_BACKEND_AUTO},
                                         {"cuda", SPMV_BACKEND_CUDA},
                                         {"omp", SPMV_BACKEND_OMP},
                                         {"ref", SPMV_BACKEND_REF},
                                         {0}};
static const char *const exchanges[] = {"auto", "peer", "nccl", "host"};
static const struct choice compressions[] = {{"auto", COMPRESSION_BY_COMMAND},
                                             {"off", SPMV_COMPRESSION_NONE},
                                             {"columns", SPMV_COMPRESSION_AUTO},
                                             {"values", SPMV_COMPRESSION_VALUES},
                                             {0}};
static const struct choice verify_modes[] = {
    {"off", VERIFY_OFF}, {"bound", VERIFY_BOUND}, {"bitwise", VERIFY_BITWISE}, {0}};

static const struct choice scalings[] = {
    {"auto", SPMV_SCALING_AUTO}, {"none", SPMV_SCALING_NONE}, {"columns", SPMV_SCALING_COLUMNS}, {0}};

static const struct choice layouts[] = {{"rows", SPMV_LAYOUT_ROWS}, {"columns", SPMV_LAYOUT_COLUMNS}, {0}};

/* An option. Its number is its index in the table, and its place in options.given. */
struct row {
    const char *name;
    const char *also;     /* another name, accepted but not listed in the help; NULL: none */
    char letter;          /* 0: none */
    const char *argument; /* NULL: none; "[=...]": optional */
    enum kind kind;
    size_t member, other;         /* offsets in struct options; other: of KIND_TYPE and KIND_FILE */
    enum file_role file;          /* whether the argument names a file (or SPEC) to read or to write */
    int64_t least, most;          /* of KIND_COUNT and KIND_COUNT_64; of KIND_NUMBER if most > 0 */
    const char *of;               /* the preconditioners that it is for, each with a blank behind; NULL: any */
    const struct choice *choices; /* of KIND_CHOICE */
    unsigned commands;            /* the commands in which it has an effect */
    bool of_rank;                 /* the ranks of a job may have different values */
    /* the default, parsed like a given value; NULL: described in the help */
    const char *standard;
    const char *help;
    struct {
        unsigned commands;
        const char *help;
    } special[5]; /* other meanings in these commands */
};

/* The offset of a member; fails to compile if the member does not have the type. */
#define MEMBER(type, name)                                                                                             \
    (offsetof(struct options, name) + 0 * sizeof(_Generic(((struct options *)0)->name, type : 1)))
#define FLAG(name) .kind = KIND_FLAG, .member = MEMBER(bool, name)
#define TEXT(name) .kind = KIND_TEXT, .member = MEMBER(const char *, name)
#define READ_FILE(name) TEXT(name), .file = FILE_READ
#define WRITTEN_FILE(name) TEXT(name), .file = FILE_WRITTEN
#define COUNT(name, from, to) .kind = KIND_COUNT, .member = MEMBER(int, name), .least = (from), .most = (to)
#define COUNT_64(name, from) .kind = KIND_COUNT_64, .member = MEMBER(int64_t, name), .least = (from), .most = INT64_MAX
#define COUNTS(name, from, to) .kind = KIND_COUNTS, .member = MEMBER(struct counts, name), .least = (from), .most = (to)
#define NUMBER(name) .kind = KIND_NUMBER, .member = MEMBER(double, name)
#define BOUNDED(name, from, to) NUMBER(name), .least = (from), .most = (to)
#define TOLERANCE(name) .kind = KIND_TOLERANCE, .member = MEMBER(double, name)
#define CHOICE(type, name, list) .kind = KIND_CHOICE, .member = MEMBER(type, name), .choices = (list)
#define FILE_BEHIND(name, path)                                                                                        \
    .kind = KIND_FILE, .member = MEMBER(bool, name), .other = MEMBER(const char *, path), .file = FILE_WRITTEN

static const struct row rows[] = {
    {"output", .letter = 'o', .argument = "FILE", WRITTEN_FILE(output),
     .commands = IN_PRODUCT | IN_SOLVE | IN_SPECTRUM | IN_GEN | IN_SPY | IN_SPGEMM | IN_CONVERT | IN_EXPLAIN,
     .help = "write the answer there (default: standard output)",
     .special = {{IN_EIGS, "write the eigenvectors there, side by side (default: nowhere)"},
                 {IN_SVDS, "write the right singular vectors there, side by side (default: nowhere)"},
                 {IN_SPY, "draw the picture there, as .png or .svg (default: standard output, in characters)"},
                 {IN_EXPLAIN, "draw the steps there, as .png or .svg (default: standard output, as text)"},
                 {IN_CONVERT, "the output B, in place of the second argument (default: B)"}}},
    {"alpha", .argument = "NUMBER", NUMBER(alpha), .commands = IN_PRODUCT, .standard = "1", .help = "factor of A x"},
    {"beta", .argument = "NUMBER", NUMBER(beta), .commands = IN_PRODUCT, .standard = "0",
     .help = "factor of y0 (--y0)"},
    {"y0", .argument = "FILE", READ_FILE(y0), .commands = IN_PRODUCT, .help = "the vector y0 (default: none)"},
    {"transpose", FLAG(transpose), .commands = IN_PRODUCT, .help = "multiply by the transpose of A (default: by A)"},
    {"triple", FLAG(triple), .commands = IN_SPGEMM,
     .help = "compute R (A P) of three matrices R A P (default: A B of two)"},
    {"x0", .argument = "FILE", READ_FILE(x0), .commands = IN_SOLVE,
     .help = "the vector to start from (default: zeros)"},
    {"pairs", .letter = 'k', .argument = "K", COUNT(pairs, 1, SPMV_EIGEN_MOST_PAIRS), .commands = IN_SPECTRUM,
     .standard = "6", .help = "how many pairs"},
    {"which", .argument = "NAME", TEXT(which), .commands = IN_EIGS, .standard = "smallest",
     .help = "the eigenvalues: smallest, largest, magnitude (of largest modulus), or near:S, those nearest to S"},
    {"mass", .argument = "M", READ_FILE(mass), .commands = IN_EIGS,
     .help = "solve A x = lambda M x, with the symmetric positive definite matrix M, a file or SPEC (default: none)"},
    {"rtol", .argument = "NUMBER", TOLERANCE(rtol), .commands = IN_SOLVE | IN_SPECTRUM,
     .help =
         "stop at ||b - A x|| <= rtol ||b||; least squares: relative error of A and b (default: 1e-8; with --type f32 "
         "1e-4)",
     .special = {{IN_SPECTRUM, "stop at residuals of rtol times the value (default: 1e-8; with --type f32 1e-4)"}}},
    {"atol", .argument = "NUMBER", TOLERANCE(atol), .commands = IN_SOLVE, .standard = "0",
     .help = "also stop at ||b - A x|| <= atol"},
    {"damp", .argument = "NUMBER", TOLERANCE(damp), .commands = IN_SOLVE, .standard = "0",
     .help = "least squares: minimise ||b - A x||^2 + damp^2 ||x - x0||^2"},
    {"conlim", .argument = "NUMBER", TOLERANCE(conlim), .commands = IN_SOLVE, .standard = "1e8",
     .help = "least squares: stop when the estimated condition number of A exceeds this; 0: no limit"},
    {"scaling", .argument = "auto|none|columns", CHOICE(int, scaling, scalings), .commands = IN_SOLVE,
     .standard = "auto",
     .help = "least squares: scale the columns of A to norms of about 1; auto: where that cannot change x"},
    {"condition", FLAG(condition), .commands = IN_INFO,
     .help =
         "estimate the extreme singular values, the condition number, and what accuracy of x it allows (default: not)"},
    {"max-iterations", .argument = "N", COUNT(max_iterations, 1, INT_MAX),
     .commands = IN_SOLVE | IN_BENCH | IN_SPECTRUM,
     .help =
         "iteration limit (default: 10 times the rows, least squares the smaller size of A, at least 100; bench of a "
         "solver: 3000)",
     .special = {{IN_SPECTRUM, "limit of iterations, of lanczos of restarts (default: 1000)"}}},
    {"max-seconds", .argument = "SECONDS", TOLERANCE(max_seconds), .commands = IN_SOLVE | IN_SPECTRUM | IN_EXERCISE,
     .help = "end the solve after so many seconds since the start of the program, write the x reached, and exit with "
             "code 10 (default: no limit)",
     .special = {{IN_SPECTRUM,
                  "end after so many seconds since the start of the program, write the pairs reached, and exit "
                  "with code 10 (default: no limit)"},
                 {IN_EXERCISE, "stop the tests of the file after so many seconds (default: 10)"}}},
    {"accuracy", .argument = "D", COUNT(accuracy, 0, 15), .commands = IN_SOLVE,
     .help =
         "correct x until D digits of it are right, with --type f32 up to 6, or say that they are not; 0: do not even "
         "estimate the error of x (default: estimate it)"},
    {"history", .argument = "FILE", WRITTEN_FILE(history), .commands = IN_SOLVE | IN_SPECTRUM,
     .help = "write the residual of each iteration there, as CSV (default: nowhere)",
     .special = {{IN_SPECTRUM,
                  "write the value and the residual of each pair in each iteration there, as CSV (default: "
                  "nowhere)"}}},
    {"plot", .argument = "FILE", WRITTEN_FILE(plot), .commands = IN_SOLVE | IN_SPECTRUM,
     .help = "draw the residual over the iterations, as .png or .svg (default: no picture)"},
    {"solver", .argument = "NAME", TEXT(solver), .commands = IN_SOLVE | IN_SPECTRUM, .standard = "auto",
     .help = "the solver, one of those below; auto: chosen from the matrix, and another one if that fails",
     .special = {{IN_EIGS, "lobpcg (the smallest), lanczos, dense (small matrices); auto: chosen from the matrix"},
                 {IN_SVDS, "lanczos, dense (small matrices); auto: chosen from the matrix"}}},
    {"restart", .argument = "N", COUNT(restart, 1, 200), .commands = IN_SOLVE | IN_BENCH,
     .help = "gmres: iterations between restarts (default: 50)"},
    {"recycle", .argument = "M", COUNT(recycle, 1, 64), .commands = IN_SOLVE,
     .help = "several right-hand sides: in turn, each from a start in the span of the last M solutions (default: "
             "together, or each from x0)"},
    {"precond", .also = "preconditioner", .argument = "NAME", TEXT(precond), .commands = IN_SOLVE | IN_BENCH | IN_EIGS,
     .standard = "auto",
     .help = "the preconditioner, one of those below; auto: chosen from the matrix; all: each in turn, and a table; "
             "bench of a solver: names separated by commas, to measure whole solutions, else iterations; with --rung "
             "the default is none",
     .special = {{IN_EIGS, "lobpcg: the preconditioner, one of those below; auto: amg, where that can be made"}}},
    {"near-null", .argument = "FILE", READ_FILE(near_null), .of = "amg ", .commands = IN_SOLVE,
     .help = "amg: vectors v with A v near 0, such as rigid body modes; a file with as many rows as A and up to 8 "
             "columns, or a SPEC such as rigid3d:N (default: ones)"},
    {"null", .argument = "FILE|ones", READ_FILE(null_space), .commands = IN_SOLVE,
     .help = "a singular A: its null vectors, A v = 0; a file with as many rows as A and up to 64 columns, a SPEC, or "
             "ones; with --block, ones in each unknown of a node (default: found where rows sum to 0)"},
    {"coordinates", .argument = "FILE", READ_FILE(coordinates), .of = "amg ", .commands = IN_SOLVE,
     .help = "amg, elasticity: the coordinates of the nodes, from which the rigid body modes are made; a file with a "
             "row for each node and 2 or 3 columns (default: none)"},
    {"fields", .argument = "FILE", READ_FILE(fields), .of = "schur ", .commands = IN_SOLVE,
     .help =
         "schur: the field of each row, a file with 1 or 2 for each; implies --precond schur (default: by the signs "
         "of the diagonal)"},
    {"schur", .argument = "FILE|FORM", READ_FILE(schur), .of = "schur ", .commands = IN_SOLVE,
     .help = "schur: a matrix for the Schur complement, such as the mass matrix of the pressure, or a form: diagonal, "
             "simple, commutator; implies --precond schur (default: one of these)"},
    {"block", .argument = "N", COUNT(block, 1, 64), .of = "block-jacobi amg schur ", .commands = IN_SOLVE,
     .help = "block-jacobi: rows of a block (default: 16); amg and --null ones: unknowns of a node, up to "
             "8 (default: found; --null: 1)"},
    {"degree", .argument = "N", COUNT(degree, 0, 100), .of = "chebyshev amg schur fsai isai ", .commands = IN_SOLVE,
     .help =
         "chebyshev: products with A of an application (default: 4); amg: products of a smoother, from 1 "
         "(default: 2 or 3, by level and matrix); fsai: steps of the search for a pattern, up to 8 (default: 8); isai: "
         "steps of refinement, up to 8 (default: 2; with cg and minres 1)"},
    {"drop", .argument = "NUMBER", BOUNDED(drop, 0, 1), .of = "ilut ", .commands = IN_SOLVE,
     .help = "ilut: drop entries below this times the mean of their row (default: 1e-4)"},
    {"fill", .argument = "NUMBER", BOUNDED(fill, 1, 1000000), .of = "cholesky ilut ", .commands = IN_SOLVE,
     .help = "cholesky, ilut: the most entries of the factors, relative to those of A (default: 10)"},
    {"strength", .argument = "NUMBER", BOUNDED(strength, 0, 1), .of = "amg schur ", .commands = IN_SOLVE,
     .help = "amg: threshold of strong couplings (default: 0.25)"},
    {"solution", .argument = "ones|random", TEXT(solution), .commands = IN_SOLVE, .standard = "random",
     .help = "without b: the solution x from which b is computed; the error against it is reported"},
    {"inner", FLAG(inner), .commands = IN_SOLVE,
     .help = "iterate in f32, and correct in f64 until f64's tolerance is reached (default: all in f64)"},
    {"suite", .argument = "NAME", TEXT(suite), .commands = IN_BENCH,
     .help = "measure on the matrices of a suite, one of those below (default: the matrices named)"},
    {"op", .argument = "NAME", TEXT(op), .commands = IN_BENCH | IN_EXPLAIN, .standard = "spmv",
     .help = "the operation, one of those below",
     .special = {{IN_EXPLAIN, "what to explain, one of the subjects below"}}},
    {"size", .argument = "N", COUNT_64(size, 1), .commands = IN_BENCH | IN_SPY | IN_EXPLAIN,
     .special = {{IN_BENCH, "elements, for operations that do not work on matrices (default: 2^24, on a GPU 2^26)"},
                 {IN_SPY, "the longer side of the picture of -o, in pixels, without axes (default: 800)"},
                 {IN_EXPLAIN, "the maximum number of values shown (default: 32)"}}},
    {"peers", .argument = "LIST", TEXT(peers), .commands = IN_BENCH, .standard = "all",
     .help = "other libraries to measure: peers or modules from the list below, separated by commas"},
    {"csv", .argument = "[=FILE]", FILE_BEHIND(csv, csv_path), .commands = IN_BENCH,
     .help = "one line per figure to FILE, else to standard output instead of the table (default: no CSV)"},
    {"summary", FLAG(summary), .commands = IN_BENCH,
     .help = "end with the geometric mean and the worst case against each peer (default: no summary)"},
    {"seed", .argument = "S", COUNT_64(seed, 0), .commands = IN_BENCH, .standard = "1",
     .help = "seed of random vectors, elements and generated matrices"},
    {"vectors", .argument = "K", COUNTS(vectors, 1, INT_MAX), .commands = IN_BENCH | IN_SOLVE,
     .help = "without b: number of generated right-hand sides (default: 1)",
     .special = {{IN_BENCH, "spmm, sddmm: vectors multiplied together; batch: systems; or several numbers separated by "
                            "commas; implies --op spmm (default: 4)"}}},
    {"layout", .argument = "rows|columns", CHOICE(int, layout, layouts), .commands = IN_BENCH, .standard = "rows",
     .help = "spmm: whether the vectors are stored row by row, or one after the other"},
    {"right", .argument = "B", READ_FILE(right), .commands = IN_BENCH,
     .help = "spgemm: the second factor, a file or SPEC, of C = A B (default: A)"},
    {"project", .argument = "P", READ_FILE(project), .commands = IN_BENCH,
     .help = "spgemm: measure C = P' (A P), where A P is made before (default: A A)"},
    {"exclusive", FLAG(exclusive), .commands = IN_EXPLAIN,
     .help = "scan, segscan: without the element itself (default: with it, inclusive)"},
    {"operator", .argument = "NAME", TEXT(operator_name), .commands = IN_EXPLAIN,
     .help = "scan, segscan, reduce: add, mul, min, max or last (default: add)"},
    {"heads", .argument = "LIST", TEXT(heads), .commands = IN_EXPLAIN,
     .help = "segscan: where segments start, such as 0,3,5; or put '|' between the values (default: one segment)"},
    {"keep", .argument = "PREDICATE[:S]", TEXT(keep), .commands = IN_EXPLAIN,
     .help = "compact, gather: less, less_equal, greater, greater_equal, equal or not_equal than S (default: 0), or "
             "nonzero (default: nonzero; gather: all)"},
    {"backend", .argument = "auto|cuda|omp|ref", CHOICE(spmv_backend, backend, backends),
     .commands = IN_PLAN | IN_SPECTRUM | IN_SPGEMM, .standard = "auto",
     .help = "where to compute; auto: a usable GPU, else OpenMP",
     .special = {{IN_SOLVE, "where to compute; auto: a usable GPU if the estimated work on the CPU takes longer than "
                            "the start of CUDA, else OpenMP"}}},
    {"method", .argument = "NAME", TEXT(method), .commands = IN_PLAN | IN_SPGEMM, .standard = "auto",
     .help = "how to multiply, one of the methods below",
     .special = {{IN_BENCH, "products: methods to measure, from the lists below, separated by commas; all: each"}}},
    {"rung", .argument = "NAME", TEXT(rung), .commands = IN_SOLVE | IN_BENCH | IN_EXPLAIN, .standard = "auto",
     .help = "how conjugate gradients runs, one of the rungs below",
     .special = {{IN_BENCH, "conjugate gradients, primitives: rungs to measure, separated by commas; all: each"},
                 {IN_EXPLAIN, "the rung whose steps are shown; an unknown name lists those of --op"}}},
    {"compress", .argument = "auto|off|columns|values", CHOICE(int, compression, compressions), .commands = IN_PLAN,
     .standard = "auto",
     .help = "how the plan may compress the matrix: columns: shorter column indices; values: also a table of few "
             "distinct values; auto: values for conjugate gradients on a GPU, else columns; the result is the same"},
    {"type", .argument = "f64|f32|c128|c64|bf16|f16|mixed", .kind = KIND_TYPE, .member = MEMBER(spmv_type, type),
     .other = MEMBER(bool, mixed), .commands = IN_PLAN | IN_SPECTRUM | IN_EXPLAIN | IN_GEN | IN_CONVERT | IN_SPGEMM,
     .standard = "f64",
     .help = "type of the matrix, the vectors and the sums; bf16, f16: with sums in f32; mixed: an f32 matrix, the "
             "others f64; a file with complex values is c128 unless c64 is given",
     .special = {{IN_BENCH, "type of the matrix, the vectors and the sums, which are f32 with bf16 and f16; a suite is "
                            "measured in f64 and f32 each"},
                 {IN_SOLVE, "f64, f32, or mixed: an f32 matrix, vectors and sums in f64"},
                 {IN_EXPLAIN, "type of the values: f64 or f32"},
                 {IN_GEN | IN_CONVERT | IN_SPGEMM | IN_SPECTRUM, "type of the values: f64, f32, c128 or c64"}}},
    {"threads", .argument = "N", COUNT(threads, 0, SPMV_MAX_THREADS),
     .commands = IN_RESULT & ~(IN_EXPLAIN | IN_EXERCISE), .of_rank = true,
     .help = "maximum number of OpenMP threads (default: OpenMP's)"},
    {"ranks", .argument = "N", COUNT(ranks, 1, SPMV_GROUP_MAX_THREADS), .commands = IN_PRODUCT | IN_SOLVE | IN_BENCH,
     .help = "divide the matrix among N ranks, which share the threads; the same bits for any N (default: one "
             "context; under mpirun its processes)"},
    {"gpus", .argument = "N", COUNT(gpus, 1, SPMV_GROUP_MAX_THREADS), .commands = IN_PRODUCT | IN_SOLVE | IN_BENCH,
     .help = "divide the matrix among N GPUs, one rank each; with --ranks, rank r uses GPU r modulo N (default: one "
             "GPU; under mpirun each process uses the GPU of its number on the host)"},
    {"exchange", .argument = "auto|peer|nccl|host", TEXT(exchange), .commands = IN_PRODUCT | IN_SOLVE | IN_BENCH,
     .standard = "auto",
     .help =
         "how ranks on GPUs exchange data: peer: kernels write to the memory of other GPUs; nccl: NVIDIA's library; "
         "host: copies through the host; the same bits with each"},
    {"device", .argument = "N", COUNT(device, 0, INT_MAX), .commands = IN_PLAN | IN_SPECTRUM | IN_DOCTOR | IN_SPGEMM,
     .of_rank = true, .help = "GPU, counted from 0 (default: CUDA's current one)"},
    {"verify", .argument = "[=off|bound|bitwise]", CHOICE(enum verify_mode, verify, verify_modes),
     .commands = IN_PRODUCT | IN_SOLVE | IN_SPECTRUM, .standard = "bound",
     .help = "check the result: bound against another backend; bitwise also repeats it and compares bits",
     .special = {{IN_SPECTRUM,
                  "check the result: bound: residuals, summed again from the vectors; bitwise also repeats it and "
                  "compares bits"}}},
    {"cache", FLAG(cache), .commands = IN_READ,
     .help = "store matrices from files in binary form in the user's cache folder, and read them from there (default: "
             "if the variable SPMV_CACHE is set)"},
    {"max-memory", .argument = "SIZE|off", .kind = KIND_BYTES, .member = MEMBER(int64_t, max_memory),
     .commands = IN_READ | IN_GEN,
     .help = "the most memory of the program: a job or an allocation beyond it is refused; a number of bytes, or with "
             "K, M, G or T (default: what the system has free and allows)"},
    {"json", .argument = "[=FILE]", FILE_BEHIND(json, json_path), .commands = IN_RESULT,
     .help = "one JSON object to FILE, else to standard output instead of the answer (default: no JSON)"},
    {"format", .argument = "FORMAT", TEXT(format), .commands = IN_PRODUCT | IN_SOLVE | IN_SPECTRUM,
     .help = "format of the vector's numbers, such as %.6g (default: the fewest digits that keep all bits)"},
    {"quiet", .letter = 'q', FLAG(quiet), .commands = IN_SHARED, .of_rank = true,
     .help = "only errors on standard error (default: a summary)"},
    {"verbose", .letter = 'v', FLAG(verbose), .commands = IN_SHARED, .of_rank = true,
     .help = "more about each step (default: a summary)"},
    {"version", FLAG(version), .commands = IN_SHARED, .help = "print the version and exit"},
    {"help", .letter = 'h', FLAG(help), .commands = IN_SHARED, .help = "print this help and exit"},
};
enum { OPTIONS = sizeof rows / sizeof rows[0] };
NAMES_HOLD(OPTIONS);
_Static_assert((int)OPTIONS <= (int)OPTIONS_MOST, "options.given has a place for each option");

static const char *help_of(const struct row *row, enum option_commands commands)
{
    for (size_t i = 0; i < sizeof row->special / sizeof row->special[0]; i++)
        if ((row->special[i].commands & commands) != 0)
            return row->special[i].help;
    return row->help;
}

static bool argument_is_optional(const struct row *row)
{
    return row->argument != NULL && row->argument[0] == '[';
}

/* Records an error; only the first one is reported. */
__attribute__((format(printf, 2, 3))) static void mistake(struct options *o, const char *format, ...)
{
    va_list values;
    if (o->error[0] != '\0')
        return;
    va_start(values, format);
    vsnprintf(o->error, sizeof o->error, format, values);
    va_end(values);
}

/* Integers up to this magnitude are exact in f64. */
static const double EXACT = 0x1p53;

enum integer_status integer_read(const char *text, long long *number)
{
    char *end = NULL;
    errno = 0;
    *number = strtoll(text, &end, 10); /* the nearest value if out of range */
    if (end != text && *end == '\0')
        return errno != 0 ? INTEGER_TOO_LARGE : INTEGER_READ;
    /* 1e8, 2.5e6: decimal digits only, no blanks, no hexadecimal numbers, inf or nan */
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0')
        return INTEGER_WRONG;
    const double real = strtod(text, &end);
    if (*end != '\0' || real != floor(real))
        return INTEGER_WRONG;
    *number = fabs(real) <= EXACT ? (long long)real : real < 0 ? LLONG_MIN : LLONG_MAX;
    return fabs(real) <= EXACT ? INTEGER_READ : INTEGER_TOO_LARGE;
}

static void set_count(struct options *o, const struct row *row, const char *text, void *member)
{
    long long number = 0;
    const enum integer_status status = integer_read(text, &number);
    if (status == INTEGER_WRONG || number < row->least)
        mistake(o, "--%s %s: must be an integer of at least %lld", row->name, text, (long long)row->least);
    else if (status == INTEGER_TOO_LARGE || number > row->most)
        mistake(o, "--%s %s: too large, must be at most %lld", row->name, text, (long long)row->most);
    else if (row->kind == KIND_COUNT_64)
        *(int64_t *)member = number;
    else
        *(int *)member = (int)number;
}

static void set_counts(struct options *o, const struct row *row, const char *text, struct counts *counts)
{
    *counts = (struct counts){.count = 0};
    for (const char *from = text;; from++) {
        char number[32];
        const size_t length = strcspn(from, ",");
        snprintf(number, sizeof number, "%.*s", length < sizeof number ? (int)length : (int)sizeof number - 1, from);
        if (counts->count == COUNTS_MOST) {
            mistake(o, "--%s %s: at most %d numbers are possible", row->name, text, COUNTS_MOST);
            return;
        }
        set_count(o, row, number, &counts->at[counts->count++]);
        from += length;
        if (*from == '\0')
            break;
    }
    for (int i = 0; i < counts->count; i++)
        counts->most = counts->at[i] > counts->most ? counts->at[i] : counts->most;
}

static void set_bytes(struct options *o, const struct row *row, const char *text, int64_t *value)
{
    const char *const units = "kKmMgGtT";
    char *end = NULL;
    errno = 0;
    double bytes = strtod(text, &end);
    const bool number = end != text && isdigit((unsigned char)text[0]);
    if (strcmp(text, "off") == 0) {
        *value = -1;
        return;
    }
    if (number && *end != '\0' && strchr(units, *end) != NULL) {
        bytes *= (double)((int64_t)1 << 10 * (1 + (strchr(units, *end) - units) / 2));
        end++;
    }
    if (!number || *end != '\0' || !(bytes >= 1 && bytes < 0x1p62))
        mistake(o, "--%s %s: must be a size such as 4000000, 512M or 1.5G, or off", row->name, text);
    else
        *value = (int64_t)bytes;
}

/* Parses a number. "inf" is accepted; a finite number that overflows is an error. */
static void set_number(struct options *o, const struct row *row, const char *text, double *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || *end != '\0')
        mistake(o, "--%s %s: not a number", row->name, text);
    else if (errno == ERANGE && isinf(*value))
        mistake(o, "--%s %s: too large for f64", row->name, text);
    if (row->most > 0 && !(*value >= (double)row->least && *value <= (double)row->most))
        mistake(o, "--%s %s: must be from %lld to %lld", row->name, text, (long long)row->least, (long long)row->most);
    if (row->kind == KIND_TOLERANCE && !(*value >= 0))
        mistake(o, "--%s %s: must be at least 0", row->name, text);
}

/* The choice of that name; NULL if there is none. */
static const struct choice *find_choice(const struct choice *choices, const char *name)
{
    while (choices->name != NULL && strcmp(choices->name, name) != 0)
        choices++;
    return choices->name != NULL ? choices : NULL;
}

_Static_assert(sizeof(spmv_backend) == sizeof(int) && sizeof(enum verify_mode) == sizeof(int),
               "set_choice copies an int");

/* text NULL: sets the default. */
static void set_choice(struct options *o, const struct row *row, const char *text)
{
    const struct choice *const choice = find_choice(row->choices, text != NULL ? text : row->standard);
    if (choice != NULL) {
        memcpy((char *)o + row->member, &choice->value, sizeof choice->value);
        return;
    }
    char list[128] = "";
    size_t used = 0;
    for (const struct choice *c = row->choices; c->name != NULL && used < sizeof list; c++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 c == row->choices       ? ""
                                 : (c + 1)->name == NULL ? " or "
                                                         : ", ",
                                 c->name);
    mistake(o, "--%s%c%s: must be %s", row->name, argument_is_optional(row) ? '=' : ' ', text, list);
}

static void set_type(struct options *o, const struct row *row, const char *text, spmv_type *type, bool *mixed)
{
    *mixed = strcmp(text, "mixed") == 0;
    if (*mixed)
        *type = SPMV_F64;
    else if (spmv_type_parse(text, type) != SPMV_OK)
        mistake(o, "--%s %s: must be f64, f32, c128, c64, bf16, f16 or mixed", row->name, text);
}

/* text NULL or "-": standard output. */
static void set_file(struct options *o, const struct row *row, const char *text, bool *wanted, const char **path)
{
    if (text != NULL && text[0] == '\0')
        mistake(o, "--%s=%s: the name of the file is missing", row->name, text);
    *wanted = true;
    *path = text != NULL && strcmp(text, "-") != 0 ? text : NULL;
}

static void set_option(struct options *o, const struct row *row, const char *text)
{
    void *const member = (char *)o + row->member, *const other = (char *)o + row->other;
    switch (row->kind) {
    case KIND_FLAG:
        *(bool *)member = true;
        break;
    case KIND_TEXT:
        *(const char **)member = text;
        break;
    case KIND_COUNT:
    case KIND_COUNT_64:
        set_count(o, row, text, member);
        break;
    case KIND_COUNTS:
        set_counts(o, row, text, member);
        break;
    case KIND_NUMBER:
    case KIND_TOLERANCE:
        set_number(o, row, text, member);
        break;
    case KIND_CHOICE:
        set_choice(o, row, text);
        break;
    case KIND_TYPE:
        set_type(o, row, text, member, other);
        break;
    case KIND_BYTES:
        set_bytes(o, row, text, member);
        break;
    case KIND_FILE:
        set_file(o, row, text, member, other);
        break;
    }
}

int plan_compression(const struct options *o, spmv_backend backend, bool solves)
{
    if (o->compression != COMPRESSION_BY_COMMAND)
        return o->compression;
    return solves && backend == SPMV_BACKEND_CUDA ? SPMV_COMPRESSION_VALUES : SPMV_COMPRESSION_AUTO;
}

/* getopt's tables: for a long option it returns LONG_BASE + the index, for a letter the letter. */
enum { LONG_BASE = 256 };

static void make_tables(struct option *table, char *letters)
{
    int count = 0;
    *letters++ = '-'; /* return all arguments in the order given */
    *letters++ = ':'; /* distinguish a missing argument from an unknown option */
    for (int i = 0; i < OPTIONS; i++) {
        const int has = rows[i].argument == NULL         ? no_argument
                        : argument_is_optional(&rows[i]) ? optional_argument
                                                         : required_argument;
        table[count++] = (struct option){.name = rows[i].name, .has_arg = has, .val = LONG_BASE + i};
        if (rows[i].also != NULL)
            table[count++] = (struct option){.name = rows[i].also, .has_arg = has, .val = LONG_BASE + i};
        if (rows[i].letter != 0) {
            *letters++ = rows[i].letter;
            if (has == required_argument)
                *letters++ = ':';
        }
    }
    *letters = '\0';
    table[count] = (struct option){0};
}

/* The option with the code; NULL if there is none. */
static const struct row *option_of(int code)
{
    for (int i = 0; i < OPTIONS; i++)
        if (code == LONG_BASE + i || (code != 0 && code == rows[i].letter))
            return &rows[i];
    return NULL;
}

/* The option as typed, without dashes and value. */
static const char *typed_name(const char *word, size_t *length)
{
    while (*word == '-')
        word++;
    *length = strcspn(word, "=");
    return word;
}

/* getopt accepts unique prefixes of names. Whether this is a prefix of several names, which are
 * listed in text. */
static bool is_ambiguous(const char *name, size_t length, char *text, size_t size)
{
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < OPTIONS && length > 0; i++)
        if (strncmp(rows[i].name, name, length) == 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s--%s", count++ > 0 ? ", " : "", rows[i].name);
    return count > 1;
}

/* Names that other programs and libraries have for an option. */
static const struct {
    const char *word, *option;
} words_of_others[] = {{"maxiter", "max-iterations"},
                       {"max-iter", "max-iterations"},
                       {"maxit", "max-iterations"},
                       {"max-it", "max-iterations"},
                       {"iterations", "max-iterations"},
                       {"max-time", "max-seconds"},
                       {"maxtime", "max-seconds"},
                       {"time-limit", "max-seconds"},
                       {"timeout", "max-seconds"},
                       {"tol", "rtol"},
                       {"tolerance", "rtol"},
                       {"pc", "precond"},
                       {"pc-type", "precond"},
                       {"ksp-type", "solver"},
                       {"initial-guess", "x0"},
                       {"guess", "x0"},
                       {"dtype", "type"},
                       {"precision", "type"},
                       {"num-threads", "threads"},
                       {"memory-limit", "max-memory"}};

/* The option that another program calls by this word; NULL: none. */
static const char *option_of_others(const char *word, size_t length)
{
    for (size_t w = 0; w < sizeof words_of_others / sizeof *words_of_others; w++)
        if (strlen(words_of_others[w].word) == length && strncmp(words_of_others[w].word, word, length) == 0)
            for (int i = 0; i < OPTIONS; i++)
                if (strcmp(rows[i].name, words_of_others[w].option) == 0)
                    return rows[i].name;
    return NULL;
}

static void unknown_option(struct options *o, const char *word)
{
    char matches[128];
    size_t length;
    struct names names = {.count = 0};
    const char *const name = typed_name(word, &length);
    if (strncmp(word, "--", 2) == 0 && is_ambiguous(name, length, matches, sizeof matches)) {
        mistake(o, "option %s is ambiguous: %s", word, matches);
        return;
    }
    for (int i = 0; i < OPTIONS; i++)
        names_add(&names, rows[i].name);
    const char *nearest = option_of_others(name, length);
    if (nearest == NULL && length > 1)
        nearest = names_nearest(&names, name, length);
    if (nearest != NULL)
        mistake(o, "unknown option %.60s; did you mean --%s?", word, nearest);
    else
        mistake(o, "unknown option %.60s; spmv COMMAND --help lists those of a command", word);
}

static void bad_option(struct options *o, int code, const char *word)
{
    const struct row *const row = option_of(optopt);
    if (row != NULL && code == ':')
        mistake(o, "option --%s needs an argument: %s", row->name, row->argument);
    else if (row != NULL)
        mistake(o, "option --%s takes no argument", row->name);
    else
        unknown_option(o, word);
}

/* Whether a word such as -3 or -.5 after "explain" is a value. No option begins with a digit. */
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

/* --json FILE and --csv FILE: the file, or NULL if the next word is not the value. */
static const char *spaced_file(struct options *o, const struct row *row, const char *next)
{
    char ending[16];
    snprintf(ending, sizeof ending, ".%s", row->name);
    if (!ends_in(next, ending)) {
        o->spaced_option = row->name;
        o->spaced_word = next;
        return NULL;
    }
    if (file_exists(next))
        mistake(o, "--%s %s: the file exists; to replace it, write --%s=%s; to read it, name it before --%s", row->name,
                next, row->name, next, row->name);
    return next;
}

/* --verify MODE: the mode, or NULL if the next word is none. */
static const char *spaced_mode(struct options *o, const struct row *row, const char *next)
{
    if (find_choice(row->choices, next) == NULL)
        return NULL;
    if (file_exists(next))
        mistake(o, "--%s %s: a file of that name exists; write --%s=%s, or ./%s for the file", row->name, next,
                row->name, next, next);
    return next;
}

/* The next word, if it is the value of an option whose value should stand after "=". */
static const char *spaced_value(struct options *o, const struct row *row, const char *next)
{
    if (next == NULL || next[0] == '-' || !argument_is_optional(row))
        return NULL;
    return row->kind == KIND_FILE ? spaced_file(o, row, next) : spaced_mode(o, row, next);
}

bool options_explain_space(const struct options *o, const char *word)
{
    if (word != o->spaced_word)
        return false;
    complain("--%s %s: write the file name after \"=\": --%s=%s", o->spaced_option, word, o->spaced_option, word);
    return true;
}

/* Adds an option (its name and value) or an argument (name: "") to the line of the job. */
static char *add_to_job(char *end, const char *name, const char *value)
{
    return end + sprintf(end, "%s=%s\n", name, value != NULL ? value : "");
}

static void read_options(int argc, char **argv, struct options *o)
{
    char *job = o->job_line;
    struct option table[2 * OPTIONS + 1];
    char letters[2 + 2 * OPTIONS + 1];
    make_tables(table, letters);
    opterr = 0;
    for (;;) {
        while (is_value(o, optind < argc ? argv[optind] : NULL))
            job = add_to_job(job, "", o->arguments[o->count++] = argv[optind++]);
        const int at = optind;
        const int code = getopt_long(argc, argv, letters, table, NULL);
        if (code == -1)
            break;
        if (code == 1) {
            job = add_to_job(job, "", o->arguments[o->count++] = optarg);
        } else if (code == '?' || code == ':') {
            bad_option(o, code, argv[at]);
        } else {
            const struct row *const row = option_of(code);
            const char *value = optarg;
            if (value == NULL && (value = spaced_value(o, row, optind < argc ? argv[optind] : NULL)) != NULL)
                optind++;
            set_option(o, row, value);
            if (!row->of_rank)
                job = add_to_job(job, row->name, value);
            o->given[row - rows] = true;
        }
    }
    while (optind < argc)
        job = add_to_job(job, "", o->arguments[o->count++] = argv[optind++]);
}

/* Copies one word, in single quotes if the shell would interpret it; returns the end. Needs at most
 * 4 characters for each of the word, and 3 more. */
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

/* More than the name of an option has, with "=" and a line feed. */
enum { OPTION_NAME_MOST = 40 };

static spmv_status join_command_line(int argc, char **argv, struct options *o)
{
    int64_t size = 1;
    for (int i = 0; i < argc; i++)
        size += 4 * (int64_t)strlen(argv[i]) + 3;
    spmv_status st = allocate("the command line", size, 1, (void **)&o->command_line);
    if (st == SPMV_OK) /* the whole name of an option that was abbreviated */
        st = allocate("the command line", size + OPTION_NAME_MOST * (int64_t)argc, 1, (void **)&o->job_line);
    if (st != SPMV_OK)
        return st;
    o->job_line[0] = '\0';
    char *to = o->command_line;
    for (int i = 0; i < argc; i++) {
        if (i > 0)
            *to++ = ' ';
        to = quote_word(to, argv[i]);
    }
    *to = '\0';
    return SPMV_OK;
}

/* ---------------------------------------------------------------- old spellings, until 0.11 */

static int place_of(const char *name)
{
    int i = 0;
    while (strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}

/* --method took rungs too: RUNG, and RUNG:METHOD of solve and bench. length: of the rung. */
static void method_to_rung(struct options *o, size_t length)
{
    const char *const method = o->method;
    o->given[place_of("rung")] = true;
    o->rung = method;
    o->method = "auto";
    if (method[length] == ':') {
        snprintf(o->old_rung, sizeof o->old_rung, "%.*s", (int)length, method);
        o->rung = o->old_rung;
        o->method = method + length + 1;
    } else {
        o->given[place_of("method")] = false;
    }
}

/* Replaces old spellings: the commands mul and multiply, the subject multiply of explain, rungs in
 * --method. */
static void take_old_names(struct options *o)
{
    static const char *const commands[][2] = {{"mul", "matvec"}, {"multiply", "spgemm"}};
    struct names rungs = {.count = 0};
    const int at = o->count > 1 && strcmp(o->arguments[0], "help") == 0;
    for (int i = 0; i < 2; i++)
        if (o->count > 0 && strcmp(o->arguments[at], commands[i][0]) == 0)
            o->arguments[at] = commands[i][1];
    const char *const command = o->count > 0 ? o->arguments[0] : "";
    if (strcmp(command, "explain") == 0 && strcmp(o->op, "multiply") == 0)
        o->op = "spgemm";
    if (!option_given(o, "method") || option_given(o, "rung"))
        return;
    names_of_rungs(&rungs, SPMV_BACKEND_AUTO);
    const size_t length = strcspn(o->method, ":");
    const bool splits = strcmp(command, "solve") == 0 && o->method[length] == ':';
    if (strcmp(command, "explain") == 0)
        method_to_rung(o, strlen(o->method));
    else if ((strcmp(command, "solve") == 0 || strcmp(command, "bench") == 0) &&
             (splits || names_find(&rungs, o->method, length) >= 0))
        method_to_rung(o, length);
}

spmv_status options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.device = -1, .compression = COMPRESSION_BY_COMMAND, .degree = -1, .drop = -1};
    for (int i = 0; i < OPTIONS; i++)
        if (rows[i].standard != NULL)
            set_option(o, &rows[i], rows[i].standard);
    spmv_status st = allocate("the arguments", argc, sizeof *o->arguments, (void **)&o->arguments);
    if (st == SPMV_OK)
        st = join_command_line(argc, argv, o);
    if (st == SPMV_OK)
        read_options(argc, argv, o);
    take_old_names(o);
    if (!option_given(o, "rtol"))
        o->rtol = real_limits_of(type_is_real(o->type) ? o->type : SPMV_F64).tolerance;
    return st;
}

void options_free(struct options *o)
{
    free(o->arguments);
    free(o->command_line);
    free(o->job_line);
}

/* Writes "spmv matvec takes it", or "spmv bench, spmv explain and spmv spy take it". */
static void list_takers(unsigned commands, char *text, size_t size)
{
    const struct command *command;
    size_t used = 0;
    int count = 0, left = 0;
    for (int c = 0; (command = command_at(c)) != NULL; c++)
        left += (commands & command->commands) != 0;
    for (int c = 0; (command = command_at(c)) != NULL && used < size; c++)
        if ((commands & command->commands) != 0) {
            left--;
            used += (size_t)snprintf(text + used, size - used, "%sspmv %s",
                                     count == 0  ? ""
                                     : left == 0 ? " and "
                                                 : ", ",
                                     command->name);
            count++;
        }
    if (used < size)
        snprintf(text + used, size - used, " accept%s it", count == 1 ? "s" : "");
}

/* Factors are rounded to the type of the product, where they may overflow. */
static spmv_status check_factors(const struct options *o)
{
    const struct {
        const char *name;
        double value;
    } factors[] = {{"alpha", o->alpha}, {"beta", o->beta}};
    for (int i = 0; i < 2; i++)
        if (isfinite(factors[i].value) && !isfinite(real_rounded(type_part(type_of_sums(o->type)), factors[i].value))) {
            complain("--%s %g: too large for %s", factors[i].name, factors[i].value, spmv_type_name(o->type));
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

static spmv_status check_given(const struct options *o, enum option_commands commands, const char *command)
{
    for (int i = 0; i < OPTIONS; i++)
        if (o->given[i] && (rows[i].commands & commands) == 0) {
            char takers[200];
            list_takers(rows[i].commands, takers, sizeof takers);
            complain("option --%s is not for %s; %s", rows[i].name, command, takers);
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

/* Refuses pairs of options where one makes the other ineffective. */
static spmv_status check_pairs(const struct options *o, enum option_commands commands)
{
    if (o->quiet && o->verbose)
        return report(SPMV_ERROR_ARGUMENT, "--quiet and --verbose exclude each other");
    if (o->device >= 0 && (o->backend == SPMV_BACKEND_OMP || o->backend == SPMV_BACKEND_REF)) {
        complain("--device has no effect: it names a GPU, and --backend %s uses none", spmv_backend_name(o->backend));
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->gpus > 0 && (o->backend == SPMV_BACKEND_OMP || o->backend == SPMV_BACKEND_REF)) {
        complain("--gpus has no effect: --backend %s uses no GPU", spmv_backend_name(o->backend));
        return SPMV_ERROR_ARGUMENT;
    }
    if (option_given(o, "exchange") && (o->backend == SPMV_BACKEND_OMP || o->backend == SPMV_BACKEND_REF)) {
        complain("--exchange has no effect: --backend %s uses no GPU", spmv_backend_name(o->backend));
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->gpus > 0 && o->ranks > 0 && o->ranks < o->gpus) {
        complain("--gpus %d is more than --ranks %d: each GPU needs a rank", o->gpus, o->ranks);
        return SPMV_ERROR_ARGUMENT;
    }
    if (commands == IN_EXPLAIN && o->cache && strcmp(o->op, "spmv") != 0) {
        complain("--cache has no effect: explain --op %s reads no file", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    return SPMV_OK;
}

/* Refuses an option of preconditioners that the named one does not have. */
static spmv_status check_preconditioner_options(const struct options *o)
{
    struct names these = {.count = 0};
    char of[64], list[64];
    for (int i = 0; i < OPTIONS; i++) {
        const bool of_null = o->null_space != NULL && strcmp(rows[i].name, "block") == 0;
        if (rows[i].of == NULL || !o->given[i] || of_null)
            continue;
        these.count = 0;
        snprintf(of, sizeof of, "%s", rows[i].of);
        names_add_words(&these, of);
        names_join(&these, list, sizeof list);
        if (choice_is_auto(o->precond) || strcmp(o->precond, "all") == 0 ||
            names_find(&these, o->precond, strlen(o->precond)) >= 0)
            continue;
        complain("--%s is for --precond %s, auto and all, not for %s", rows[i].name, list, o->precond);
        return SPMV_ERROR_ARGUMENT;
    }
    return SPMV_OK;
}

static spmv_status check_type(const struct options *o, enum option_commands commands, const char *command)
{
    if (o->mixed && (commands & (IN_PRODUCT | IN_SOLVE | IN_INFO)) == 0) {
        complain("--type mixed is not for %s; spmv matvec, spmv solve and spmv info accept it", command);
        return SPMV_ERROR_ARGUMENT;
    }
    const bool complex = type_is_complex(o->type);
    const bool half = type_is_half(o->type);
    if (o->type != SPMV_F64 && o->type != SPMV_F32 && !complex && !half) {
        complain("--type %s: products exist for f64, f32, c128, c64, bf16 and f16", spmv_type_name(o->type));
        return SPMV_ERROR_TYPE;
    }
    if (half && (commands & (IN_PRODUCT | IN_BENCH)) == 0) {
        complain("--type %s is not for %s; products alone have 16-bit types: spmv matvec and spmv bench",
                 spmv_type_name(o->type), command);
        return SPMV_ERROR_TYPE;
    }
    if (complex && (commands & IN_EXPLAIN) != 0) {
        complain("--type %s is not for %s, which computes in f64 and f32", spmv_type_name(o->type), command);
        return SPMV_ERROR_TYPE;
    }
    return SPMV_OK;
}

/* Checks --method and --rung. Names of another backend, of bench and of explain are checked later,
 * when the valid ones are known. */
static spmv_status check_method(const struct options *o, enum option_commands commands)
{
    struct names methods = {.count = 0}, rungs = {.count = 0};
    const spmv_backend backend = spmv_backend_built(o->backend) ? o->backend : SPMV_BACKEND_AUTO;
    if ((commands & (IN_PRODUCT | IN_SOLVE | IN_INFO | IN_SPGEMM)) == 0)
        return SPMV_OK;
    names_add(&methods, "auto");
    if (commands == IN_SPGEMM)
        names_of_spgemm_methods(&methods, backend);
    else
        names_of_methods(&methods, backend);
    const spmv_status st = names_check(&methods, "method", o->method, false);
    if (st != SPMV_OK || commands != IN_SOLVE)
        return st;
    names_add(&rungs, "auto");
    names_of_rungs(&rungs, backend);
    return names_check(&rungs, "rung", o->rung, false);
}

static spmv_status check_names(const struct options *o, enum option_commands commands)
{
    struct names names = {.count = 0};
    spmv_status st = check_method(o, commands);
    if (st == SPMV_OK && commands == IN_SOLVE) {
        names_of_solvers(&names);
        st = names_check(&names, "solver", o->solver, false);
    }
    names.count = 0;
    if (st == SPMV_OK && options_take(commands, "precond")) {
        names_of_preconditioners(&names);
        st = names_check(&names, "preconditioner", o->precond, commands == IN_BENCH);
    }
    if (st == SPMV_OK)
        st = check_preconditioner_options(o);
    names.count = 0;
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++)
        names_add(&names, exchanges[i]);
    if (st == SPMV_OK && options_take(commands, "exchange"))
        st = names_check(&names, "exchange", o->exchange, false);
    names.count = 0;
    for (int i = 0; commands == IN_EXPLAIN && explain_subject_name(i) != NULL; i++)
        names_add(&names, explain_subject_name(i));
    if (st == SPMV_OK && commands == IN_EXPLAIN)
        st = names_check(&names, "subject", o->op, false);
    if (st != SPMV_OK || commands != IN_BENCH)
        return st;
    names.count = 0;
    names_of_operations(&names);
    st = names_check(&names, "operation", o->op, false);
    names.count = 0;
    names_of_suites(&names);
    if (st == SPMV_OK)
        st = names_check(&names, "suite", o->suite, false);
    names.count = 0;
    candidate_list_peers(&names);
    return st == SPMV_OK ? names_check(&names, "peer", o->peers, true) : st;
}

spmv_status options_check(const struct options *o, enum option_commands commands, const char *command)
{
    if (o->error[0] != '\0')
        return report(SPMV_ERROR_ARGUMENT, o->error);
    spmv_status st = check_given(o, commands, command);
    if (st == SPMV_OK)
        st = check_type(o, commands, command);
    if (st == SPMV_OK)
        st = check_pairs(o, commands);
    if (st == SPMV_OK && !o->help && !o->version)
        st = check_names(o, commands);
    if (st == SPMV_OK)
        st = check_factors(o);
    return st == SPMV_OK ? check_outputs(o, NULL) : st;
}

bool options_take(enum option_commands commands, const char *name)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (rows[i].commands & commands) != 0;
    return false;
}

bool option_given(const struct options *o, const char *name)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return o->given[i];
    return false;
}

_Static_assert((int)OPTIONS <= (int)OPTION_FILES_MOST, "options_files lists at most one file for each option");

int options_files(const struct options *o, enum file_role role, const char **paths)
{
    int count = 0;
    for (int i = 0; i < OPTIONS; i++) {
        const size_t at = rows[i].kind == KIND_FILE ? rows[i].other : rows[i].member;
        const char *const path = rows[i].file == role ? *(const char *const *)((const char *)o + at) : NULL;
        if (path != NULL)
            paths[count++] = path;
    }
    return count;
}

struct options options_for_matrix(const struct options *o)
{
    struct options reading = *o;
    if (o->mixed)
        reading.type = SPMV_F32;
    else if (type_is_half(o->type)) /* converted after reading */
        reading.type = SPMV_F64;
    return reading;
}

/* The columns where the text of an option begins (a longer option gets a line of its own) and
 * ends. */
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

static void print_option(const struct row *row, enum option_commands commands)
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
    snprintf(text, sizeof text, "%s%s%s%s", help_of(row, commands), row->standard != NULL ? " (default: " : "",
             row->standard != NULL ? row->standard : "", row->standard != NULL ? ")" : "");
    print_wrapped(text, HELP_COLUMN, HELP_WIDTH);
}

void options_print(enum option_commands commands)
{
    for (int i = 0; i < OPTIONS; i++)
        if ((rows[i].commands & commands) != 0)
            print_option(&rows[i], commands);
}
