/* Load of the machine and spread of times.
 *
 * The processors are those of the process's affinity mask. Their ticks come from /proc/stat, with
 * lines: cpuN user nice system idle iowait irq softirq steal ... (proc(5)).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/quiet.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/devices/machine.h"
#include "bench/faults.h"

static const double MOST_OTHERS = 0.1, MOST_LOAD = 1.5, MOST_SPREAD = 0.2;
static const long WATCH_NANOSECONDS = 200000000;
enum { TICK_KINDS = 8, IDLE = 3, IOWAIT = 4 };

bool processor_ticks_add(const char *line, const char *list, struct processor_ticks *ticks)
{
    char *end = NULL;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return false;
    const long number = strtol(line + 3, &end, 10);
    if (list[0] != '\0' && !processor_list_has(list, number))
        return false;
    for (int kind = 0; kind < TICK_KINDS; kind++) {
        const char *const field = end;
        const double spent = (double)strtoull(field, &end, 10);
        if (end == field)
            break; /* an old kernel has fewer columns */
        ticks->total += spent;
        ticks->busy += kind == IDLE || kind == IOWAIT ? 0 : spent;
    }
    return true;
}

double others_share(const struct processor_ticks *before, const struct processor_ticks *after, double own)
{
    const double total = after->total - before->total;
    return total > 0 ? fmin(fmax((after->busy - before->busy - own) / total, 0), 1) : -1;
}

static struct processor_ticks read_ticks(const char *list)
{
    struct processor_ticks ticks = {0};
    char line[512];
    FILE *const file = fopen("/proc/stat", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strncmp(line, "cpu", 3) == 0)
        processor_ticks_add(line, list, &ticks);
    if (file != NULL)
        fclose(file);
    return ticks;
}

static double load_average(void)
{
    double load = -1;
    FILE *const file = fopen("/proc/loadavg", "r");
    if (file != NULL && fscanf(file, "%lf", &load) != 1)
        load = -1;
    if (file != NULL)
        fclose(file);
    return load;
}

struct machine_load machine_load_measure(void)
{
    struct machine_load load = {.load_average = load_average(),
                                .processors = omp_get_num_procs(),
                                .machine_processors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    /* If OpenMP bound this thread to one processor, the thread's mask is not that of the process:
     * then all processors are read. */
    const char *const allowed = processors_allowed();
    const char *const list = processor_list_count(allowed) >= load.processors ? allowed : "";
    const double own = processor_seconds();
    const struct processor_ticks before = read_ticks(list);
    const long watch = fault_text(FAULT_SHORT_TIMES) != NULL ? WATCH_NANOSECONDS / 10 : WATCH_NANOSECONDS;
    nanosleep(&(struct timespec){.tv_nsec = watch}, NULL);
    const struct processor_ticks after = read_ticks(list);
    load.others_share = others_share(&before, &after, (processor_seconds() - own) * (double)sysconf(_SC_CLK_TCK));
    return load;
}

void machine_load_doubt(const struct machine_load *load, int threads, char *text, size_t size)
{
    text[0] = '\0';
    if (load->others_share > MOST_OTHERS)
        snprintf(text, size, "other processes used %.0f%% of the processors at the start", 100 * load->others_share);
    else if (load->processors > 0 && threads > load->processors)
        snprintf(text, size, "%d threads share %d processors", threads, load->processors);
    else if (load->machine_processors > 0 && load->load_average > MOST_LOAD * load->machine_processors)
        snprintf(text, size, "the load average at the start was %.1f on %d processors", load->load_average,
                 load->machine_processors);
}

double timing_spread(const struct timing *t)
{
    if (t->repeats == 0 || t->median <= 0)
        return 0;
    return t->min > 0 ? t->median / t->min - 1 : INFINITY;
}

bool timing_steady(const struct timing *t)
{
    return timing_spread(t) <= MOST_SPREAD;
}
