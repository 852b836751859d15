/* What the machine is called.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

/* The processor's name; "unknown" when the system does not say. Static storage. */
const char *cpu_name(void);

#endif
