/* The program spmv: finds the command, runs it, and exits with the class of its status.
 *
 * A command is one file cmd_*.c and one row in the table below.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

static spmv_status run_help(const struct options *o, const char *const *arguments, int count);

static const struct command main_job = {
    NULL, "A [x]",    "y = A x, one value a line on standard output; x: ones when absent", GROUP_SHARED, 1,
    2,    run_product};

static const struct command commands[] = {
    {"mul", "A [x]", "y = alpha A x + beta y0, with everything spelled out", GROUP_SHARED | GROUP_PRODUCT, 1, 2,
     run_product},
    {"solve", "A [b]", "x with A x = b, by conjugate gradients; b: A times ones when absent",
     GROUP_SHARED | GROUP_SOLVE, 1, 2, run_solve},
    {"bench", "[A...]", "how fast products and primitives are here, beside other libraries", GROUP_SHARED | GROUP_BENCH,
     0, INT_MAX, run_bench},
    {"info", "A", "what the matrix is like, and the method that would be chosen", GROUP_SHARED, 1, 1, run_info},
    {"explain", "A [x]", "the product step by step; with --op a primitive, on VALUES in place of A",
     GROUP_SHARED | GROUP_EXPLAIN, 0, INT_MAX, run_explain},
    {"gen", "SPEC", "a generated matrix, as a Matrix Market file", GROUP_SHARED | GROUP_GEN, 1, 1, run_gen},
    {"convert", "A B", "a matrix into another kind of file: .mtx, .mtx.gz or .spmv, by its name", GROUP_SHARED, 2, 2,
     run_convert},
    {"spy", "A", "a picture of the pattern, in the terminal or in a file", GROUP_SHARED | GROUP_SPY, 1, 1, run_spy},
    {"doctor", "", "what was built in, devices, memory bandwidth, a self-test", GROUP_SHARED, 0, 0, run_doctor},
    {"help", "[COMMAND]", "this help, or that of one command", GROUP_SHARED, 0, 1, run_help},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *find_command(const char *name)
{
    for (int c = 0; c < COMMANDS; c++)
        if (strcmp(name, commands[c].name) == 0)
            return &commands[c];
    return NULL;
}

/* "mul, solve, ..." */
static void list_commands(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int c = 0; c < COMMANDS && used < size; c++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", c > 0 ? ", " : "", commands[c].name);
}

/* "spmv mul A [x]" */
static void usage(const struct command *command, char *text, size_t size)
{
    snprintf(text, size, "spmv%s%s %s", command->name != NULL ? " " : "", command->name != NULL ? command->name : "",
             command->arguments);
}

enum { USAGE_SIZE = 64 };

static void print_specs(void)
{
    const char *form, *about;
    printf("\nSPECs, behind which ,seed=N and ,values=own|random|constant may stand:\n");
    for (int i = 0; (form = spmv_spec_form(i, &about)) != NULL; i++)
        printf("  %-32s%s\n", form, about);
}

static void print_all_help(void)
{
    printf("spmv: sparse matrix times vector\n\nUsage:\n");
    for (int c = -1; c < COMMANDS; c++) {
        const struct command *command = c < 0 ? &main_job : &commands[c];
        char text[USAGE_SIZE];
        usage(command, text, sizeof text);
        printf("  %-24s%s\n", text, command->what);
    }
    printf("\nA is a Matrix Market file, - (standard input), or a SPEC. Vectors: one number a line, or Matrix Market.\n"
           "A file whose name is a command: ./mul.\n");
    print_specs();
    printf("\nOptions of mul:\n");
    options_print(GROUP_PRODUCT);
    printf("\nOptions of solve:\n");
    options_print(GROUP_SOLVE);
    printf("\nOptions of bench:\n");
    options_print(GROUP_BENCH);
    printf("\nOptions of explain:\n");
    options_print(GROUP_EXPLAIN);
    printf("\nOptions of gen:\n");
    options_print(GROUP_GEN);
    printf("\nOptions of spy:\n");
    options_print(GROUP_SPY);
    printf("\nOptions of every command:\n");
    options_print(GROUP_SHARED);
    printf("\nExit codes: 0 done, 1 usage, 2 files, 3 malformed input, 4 things that do not fit, 5 memory, 6 device,\n"
           "7 the solver stopped before the tolerance, 8 the matrix is not suited, 9 the check of the result failed,\n"
           "10 interrupted (bench). More: man spmv\n");
}

static void print_help(const struct command *command)
{
    if (command == NULL) {
        print_all_help();
        return;
    }
    char text[USAGE_SIZE];
    usage(command, text, sizeof text);
    printf("Usage: %s\n%s\n\nOptions:\n", text, command->what);
    options_print(command->groups);
    if (command->run == run_gen)
        print_specs();
}

static spmv_status run_help(const struct options *o, const char *const *arguments, int count)
{
    (void)o;
    const struct command *command = count > 0 ? find_command(arguments[0]) : NULL;
    if (count > 0 && command == NULL) {
        char names[128];
        list_commands(names, sizeof names);
        complain("there is no command %s; commands: %s", arguments[0], names);
        return SPMV_ERROR_ARGUMENT;
    }
    print_help(command);
    return finish_stdout();
}

static spmv_status print_version(void)
{
    printf("spmv %s%s%s%s\n", spmv_version(), SPMV_COMMIT[0] != '\0' ? " (" : "", SPMV_COMMIT,
           SPMV_COMMIT[0] != '\0' ? ")" : "");
    return finish_stdout();
}

static bool is_word(const char *text)
{
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && *text != '-' && *text != '_')
            return false;
    return true;
}

/* A word that is neither: was it meant as a command or as a file? The message serves both. */
static spmv_status refuse_word(const char *word)
{
    char names[128];
    list_commands(names, sizeof names);
    complain("there is no file %s, and no command of that name; commands: %s", word, names);
    return SPMV_ERROR_OPEN;
}

static spmv_status refuse_count(const struct command *command, const char *const *arguments, int count)
{
    char text[USAGE_SIZE];
    usage(command, text, sizeof text);
    if (count < command->least)
        complain("an argument is missing: %s; spmv --help says more", text);
    else
        complain("%s is one argument too many: %s", arguments[command->most], text);
    return SPMV_ERROR_ARGUMENT;
}

static spmv_status dispatch(const struct options *o)
{
    const char *const first = o->count > 0 ? o->arguments[0] : NULL;
    const struct command *command = first != NULL ? find_command(first) : &main_job;
    const int skip = first != NULL && command != NULL;
    if (command == NULL && !o->help && !o->version && is_word(first) && !file_exists(first))
        return refuse_word(first);
    if (command == NULL)
        command = &main_job;
    spmv_status st = options_check(o, command->groups, command->name);
    if (st != SPMV_OK)
        return st;
    if (o->version)
        return print_version();
    if (o->help) {
        print_help(command != &main_job ? command : NULL);
        return finish_stdout();
    }
    const char *const *arguments = o->arguments + skip;
    const int count = o->count - skip;
    if (count < command->least || count > command->most)
        return refuse_count(command, arguments, count);
    /* the argument of gen is no file, the second one of convert is an output */
    const int inputs = command->run == run_gen ? 0 : command->run == run_convert ? 1 : count;
    st = check_inputs(o, arguments, inputs, NULL);
    return st == SPMV_OK ? command->run(o, arguments, count) : st;
}

/* A standard stream that the caller closed would hand its number to the next file opened, and the answer would end up
 * there. It is opened in the direction that makes every use fail. */
static void keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == -1)
            return;
    }
}

int main(int argc, char **argv)
{
    struct options o = {0};
    keep_standard_streams();
    stops_open();
    messages_open(LEVEL_NORMAL);
    spmv_status st = options_parse(argc, argv, &o);
    if (st == SPMV_OK && !o.help && !o.version)
        bound_spinning(&o, argv);
    if (st == SPMV_OK) {
        messages_open(o.quiet ? LEVEL_QUIET : o.verbose ? LEVEL_VERBOSE : LEVEL_NORMAL);
        st = dispatch(&o);
    }
    options_free(&o);
    return spmv_status_class(st);
}
