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

#include "app/commands.h"
#include "app/help.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "app/spinning.h"
#include "app/stops.h"

static spmv_status run_help(const struct options *o, const char *const *arguments, int count);

/* The first is also the default command. */
static const struct command commands[] = {
    {"matvec", "A [x]", "y = alpha A x + beta y0, one value per line (default x: ones)", IN_PRODUCT, 1, 2, run_product},
    {"spgemm", "A B", "C = A B for sparse matrices; with --triple R A P: C = R (A P)", IN_SPGEMM, 2, 3, run_spgemm},
    {"solve", "A [b]", "solve A x = b, by least squares if A is not square (default b: A times fixed random numbers)",
     IN_SOLVE, 1, 2, run_solve},
    {"eigs", "A", "eigenvalues of a symmetric matrix, in the order of --which, one per line", IN_EIGS, 1, 1, run_eigs},
    {"svds", "A", "largest singular values, one per line", IN_SVDS, 1, 1, run_svds},
    {"bench", "[A...]", "measure products and primitives, and other libraries", IN_BENCH, 0, INT_MAX, run_bench},
    {"info", "A", "properties of the matrix, and the method chosen for it", IN_INFO, 1, 1, run_info},
    {"explain", "A [x]", "the product step by step; with --op a primitive, on VALUES in place of A", IN_EXPLAIN, 0,
     INT_MAX, run_explain},
    {"exercise", "[NAME [FILE]]", "the exercises of the lessons: list, form to start from, test of FILE", IN_EXERCISE,
     0, 2, run_exercise},
    {"gen", "SPEC", "write a generated matrix as a Matrix Market file", IN_GEN, 1, 1, run_gen},
    {"convert", "A B", "write a matrix to a file of another form, selected by B's ending", IN_CONVERT, 1, 2,
     run_convert},
    {"spy", "A", "a picture of the pattern, in the terminal or in a file", IN_SPY, 1, 1, run_spy},
    {"doctor", "", "features of this build, devices, memory bandwidth, a self-test", IN_DOCTOR, 0, 0, run_doctor},
    {"help", "[COMMAND]", "this help, or that of one command", IN_HELP, 0, 1, run_help},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };
NAMES_HOLD(COMMANDS);

const struct command *command_at(int index)
{
    return index >= 0 && index < COMMANDS ? &commands[index] : NULL;
}

static const struct command *find_command(const char *name)
{
    for (int c = 0; c < COMMANDS; c++)
        if (strcmp(name, commands[c].name) == 0)
            return &commands[c];
    return NULL;
}

static void list_commands(struct names *names)
{
    for (int c = 0; c < COMMANDS; c++)
        names_add(names, commands[c].name);
}

static spmv_status run_help(const struct options *o, const char *const *arguments, int count)
{
    (void)o;
    const struct command *command = count > 0 ? find_command(arguments[0]) : NULL;
    if (count > 0 && command == NULL) {
        struct names names = {.count = 0};
        list_commands(&names);
        return names_refuse(&names, "command", arguments[0], strlen(arguments[0]));
    }
    if (command != NULL)
        help_print(command);
    else
        help_print_all();
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

/* Complains of a word that is neither a command nor a file. */
static spmv_status refuse_word(const char *word)
{
    struct names names = {.count = 0};
    char list[128];
    list_commands(&names);
    const char *const nearest = names_nearest(&names, word, strlen(word));
    names_join(&names, list, sizeof list);
    if (nearest != NULL)
        complain("there is no file %s, and no command of that name; did you mean %s? Commands: %s", word, nearest,
                 list);
    else
        complain("there is no file %s, and no command of that name; commands: %s", word, list);
    return SPMV_ERROR_OPEN;
}

static spmv_status refuse_count(const struct command *command, bool named, const struct options *o,
                                const char *const *arguments, int count)
{
    char text[USAGE_SIZE];
    help_usage(command, named, text, sizeof text);
    if (!named && count == 0)
        help_print_first();
    else if (count < command->least)
        complain("an argument is missing: %s; see %s", text, named ? "--help" : "spmv --help");
    else if (!options_explain_space(o, arguments[command->most]))
        complain("unexpected argument %s: %s", arguments[command->most], text);
    return SPMV_ERROR_ARGUMENT;
}

/* Whether the missing file follows --json or --csv and was meant for writing; then explains it. A
 * member of an archive has a colon. */
static bool explain_missing(const struct options *o, const char *const *arguments, int count)
{
    for (int i = 0; i < count; i++)
        if (!file_exists(arguments[i]) && strchr(arguments[i], ':') == NULL && options_explain_space(o, arguments[i]))
            return true;
    return false;
}

static spmv_status dispatch(const struct options *o)
{
    const char *const first = o->count > 0 ? o->arguments[0] : NULL;
    const struct command *command = first != NULL ? find_command(first) : NULL;
    const bool named = command != NULL;
    if (o->version && o->error[0] == '\0')
        return print_version();
    if (first != NULL && !named && is_word(first) && !file_exists(first) && first != o->spaced_word)
        return refuse_word(first);
    if (!named)
        command = &commands[0];
    const spmv_status st = options_check(o, command->commands, command->name);
    if (st != SPMV_OK)
        return st;
    if (o->help) {
        if (first == NULL)
            help_print_all();
        else
            help_print(command);
        return finish_stdout();
    }
    const char *const *arguments = o->arguments + named;
    const int count = o->count - named;
    if (count < command->least || count > command->most)
        return refuse_count(command, named, o, arguments, count);
    if (command->run != run_explain && explain_missing(o, arguments, count))
        return SPMV_ERROR_OPEN;
    /* gen has no input file; the second argument of convert is an output */
    const int inputs = command->run == run_gen ? 0 : command->run == run_convert ? 1 : count;
    const spmv_status inputs_differ = check_inputs(o, arguments, inputs, NULL);
    return inputs_differ == SPMV_OK ? command->run(o, arguments, count) : inputs_differ;
}

/* If the caller closed a standard stream, the next opened file would get its number and receive the
 * answer. So /dev/null is opened in its place, in the direction that makes every use fail. */
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
        memory_open(&o);
        st = dispatch(&o);
    }
    options_free(&o);
    return spmv_status_class(st);
}
