/* The name of the machine's processor, and the processors that this process may use.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* The processor's name; "unknown" if the system does not provide it. Static storage. */
const char *cpu_name(void);

/* The numbers of the processors that this process may use, such as "0-3,8"; "" if unknown. Static
 * storage. */
const char *processors_allowed(void);

/* The number of processors in such a list, and whether it contains number. */
int64_t processor_list_count(const char *list);
bool processor_list_has(const char *list, int64_t number);

#endif
