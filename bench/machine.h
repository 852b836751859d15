/* What the machine is called, and which of its processors this process may use.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* The processor's name; "unknown" when the system does not say. Static storage. */
const char *cpu_name(void);

/* The numbers of the processors that this process may use, such as "0-3,8"; "" when the system does
 * not say. Static storage. */
const char *processors_allowed(void);

/* How many processors such a list names, and whether it names that one. */
int64_t processor_list_count(const char *list);
bool processor_list_has(const char *list, int64_t number);

#endif
