/* The help of the program and of its commands.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_HELP_H
#define APP_HELP_H

#include "app/commands.h"

/* Print the help of the program, and of one command. */
void help_print_all(void);
void help_print(const struct command *command);

/* Complains of a missing argument in ten lines, with examples. */
void help_print_first(void);

/* "spmv matvec A [x]"; named false: "spmv A [x]", the form without a command. */
enum { USAGE_SIZE = 64 };
void help_usage(const struct command *command, bool named, char *text, size_t size);

#endif
