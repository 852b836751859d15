/* The table of commands (main.c), and the function of each command.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/options.h"

struct command {
    const char *name;
    const char *arguments;         /* "A [x]" */
    const char *what;              /* one sentence */
    enum option_commands commands; /* which of the options it takes */
    int least, most;               /* number of arguments after the name */
    spmv_status (*run)(const struct options *o, const char *const *arguments, int count);
};

/* Command 0, 1, ... until NULL. The first is also the default command. */
const struct command *command_at(int index);

/* What the commands run: one for each row of the table in main.c. */
spmv_status run_product(const struct options *o, const char *const *arguments, int count);
spmv_status run_spgemm(const struct options *o, const char *const *arguments, int count);
spmv_status run_solve(const struct options *o, const char *const *arguments, int count);
spmv_status run_eigs(const struct options *o, const char *const *arguments, int count);
spmv_status run_svds(const struct options *o, const char *const *arguments, int count);
spmv_status run_info(const struct options *o, const char *const *arguments, int count);
spmv_status run_bench(const struct options *o, const char *const *arguments, int count);
spmv_status run_gen(const struct options *o, const char *const *arguments, int count);
spmv_status run_convert(const struct options *o, const char *const *arguments, int count);
spmv_status run_spy(const struct options *o, const char *const *arguments, int count);
spmv_status run_explain(const struct options *o, const char *const *arguments, int count);
spmv_status run_exercise(const struct options *o, const char *const *arguments, int count);
spmv_status run_doctor(const struct options *o, const char *const *arguments, int count);

#endif
