/* Help of the program and of each command.
 *
 * The help of a command has only its own options, from the table in options.c, and the names that
 * they take, from the tables of the library and of bench.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "app/exercise/exercise.h"
#include "app/explain/explain.h"
#include "app/help.h"
#include "app/name_lists.h"
#include "app/output.h"
#include "bench/candidate_list.h"
#include "bench/suites.h"

enum { WIDTH = 100, INDENT = 2 };

void help_usage(const struct command *command, bool named, char *text, size_t size)
{
    snprintf(text, size, "spmv%s%s%s%s", named ? " " : "", named ? command->name : "",
             command->arguments[0] != '\0' ? " " : "", command->arguments);
}

static void print_specs(void)
{
    const char *form, *about;
    printf("\nSPECs, optionally followed by ,seed=N and ,values=own|random|constant:\n");
    for (int i = 0; (form = spmv_spec_form(i, &about)) != NULL; i++)
        printf("  %-32s%s\n", form, about);
}

/* Prints "label: a, b, c", with line breaks between names. */
static void print_names(const char *label, const struct names *names)
{
    int column = printf("%*s%s:", INDENT, "", label);
    for (int i = 0; i < names->count; i++) {
        const int length = (int)strlen(names->name[i]) + 1; /* including the comma */
        if (column + 1 + length > WIDTH)
            column = printf("\n%*s", 2 * INDENT, "") - 1;
        else
            column += printf(" ");
        column += printf("%s%s", names->name[i], i + 1 < names->count ? "," : "");
    }
    putchar('\n');
}

/* of: lists the names of a backend. */
static void print_by_backend(const char *what, void (*of)(struct names *, spmv_backend))
{
    static const spmv_backend backends[] = {SPMV_BACKEND_CUDA, SPMV_BACKEND_OMP, SPMV_BACKEND_REF};
    printf("\n%s, by backend:\n", what);
    for (int b = 0; b < 3; b++) {
        struct names names = {.count = 0};
        if (!spmv_backend_built(backends[b]))
            continue;
        names_add(&names, "auto");
        of(&names, backends[b]);
        print_names(spmv_backend_name(backends[b]), &names);
    }
}

static void print_subjects(void)
{
    struct names subjects = {.count = 0};
    for (int i = 0; explain_subject_name(i) != NULL; i++)
        names_add(&subjects, explain_subject_name(i));
    printf("\nSubjects (--op):\n");
    print_names("on values; spmv and spgemm on matrices", &subjects);
}

static void print_exercises(void)
{
    struct names names = {.count = 0};
    for (int i = 0; exercise_name(i) != NULL; i++)
        names_add(&names, exercise_name(i));
    printf("\nExercises:\n");
    print_names("NAME", &names);
}

static void print_bench_lists(void)
{
    struct names operations = {.count = 0}, peers = {.count = 0};
    const char *about;
    names_of_operations(&operations);
    candidate_list_peers(&peers);
    printf("\nBench measures:\n");
    print_names("operations (--op)", &operations);
    print_names("modules of peers and peers (--peers)", &peers);
    printf("\nSuites (--suite):\n");
    for (int i = 0; suite_name(i, &about) != NULL; i++)
        printf("  %-8s%s\n", suite_name(i, &about), about);
}

static void print_solvers(enum option_commands commands)
{
    struct names names = {.count = 0};
    if ((commands & IN_SPECTRUM) != 0)
        names_of_eigen_solvers(&names);
    else
        names_of_solvers(&names);
    printf("\nSolvers (--solver):\n");
    print_names("names", &names);
}

static void print_preconditioners(void)
{
    struct names names = {.count = 0};
    names_of_preconditioners(&names);
    putchar('\n');
    printf("Preconditioners (--precond):\n");
    print_names("names", &names);
}

void help_print_all(void)
{
    const struct command *command;
    char text[USAGE_SIZE];
    printf("spmv: sparse matrix times vector. Usage:\n");
    help_usage(command_at(0), false, text, sizeof text);
    printf("  %-28s%s\n", text, "y = A x, as spmv matvec");
    for (int c = 0; (command = command_at(c)) != NULL; c++) {
        help_usage(command, true, text, sizeof text);
        printf("  %-28s%s\n", text, command->what);
    }
    printf("\nspmv COMMAND --help lists the options of a command. More: man spmv\n"
           "A is a file (Matrix Market, .spmv, SciPy, MATLAB, PETSc, Harwell-Boeing; also compressed), -\n"
           "(standard input), or a SPEC of a generated matrix, such as poisson2d:1000 (all: spmv gen --help). A\n"
           "file whose name is a command: ./matvec. Vectors: one number per line, or such files.\n"
           "\nExit codes: 0 done, 1 usage, 2 files, 3 malformed input, 4 sizes, types or features, 5 memory,\n"
           "6 device, 7 the solver stopped early, 8 the matrix is not suited, 9 a check failed, 10 interrupted\n");
}

void help_print_first(void)
{
    complain("an argument is missing. For example:");
    fprintf(stderr, "  spmv A.mtx                     y = A x for x = (1, ..., 1): one number per line\n"
                    "  spmv A.mtx x.txt -o y.txt      the same with vectors in files\n"
                    "  spmv solve A.mtx b.txt         the solution of A x = b\n"
                    "  spmv poisson2d:1000 -o y.txt   a generated matrix in place of a file\n"
                    "  spmv info A.mtx                properties of a matrix\n"
                    "  spmv bench A.mtx               how fast, beside other libraries\n"
                    "  spmv explain poisson2d:2       the product step by step\n"
                    "  spmv doctor                    what this computer offers, and a self-test\n"
                    "All commands: spmv --help. Options of a command: spmv COMMAND --help. More: man spmv\n");
}

void help_print(const struct command *command)
{
    char text[USAGE_SIZE];
    help_usage(command, true, text, sizeof text);
    printf("Usage: %s\n", text);
    if (command == command_at(0)) {
        help_usage(command, false, text, sizeof text);
        printf("       %s\n", text);
    }
    printf("%s\n\nOptions:\n", command->what);
    options_print(command->commands);
    if (options_take(command->commands, "method"))
        print_by_backend("Methods (--method)",
                         command->commands == IN_SPGEMM ? names_of_spgemm_methods : names_of_methods);
    if ((command->commands & (IN_SOLVE | IN_BENCH)) != 0)
        print_by_backend("Rungs of conjugate gradients (--rung)", names_of_rungs);
    if (options_take(command->commands, "solver"))
        print_solvers(command->commands);
    if (options_take(command->commands, "precond"))
        print_preconditioners();
    if (command->commands == IN_BENCH)
        print_bench_lists();
    if (command->commands == IN_EXPLAIN)
        print_subjects();
    if (command->commands == IN_EXERCISE)
        print_exercises();
    if (command->commands == IN_GEN)
        print_specs();
}
