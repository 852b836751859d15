/* A limit on the spinning of OpenMP's waiting threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPINNING_H
#define SPINNING_H

#include "app/options.h"

/* Executes the program again with a limit on the spinning of waiting threads, unless the user has
 * set one. Returns if there is a limit already or none can be set. Call it before OpenMP is used
 * and files are opened. */
void bound_spinning(const struct options *o, char **argv);

#endif
