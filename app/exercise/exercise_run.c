/* Runs the tests of an exercise in a child process, with limits of time and memory. See exercise.h.
 *
 * Each array ends where readable memory ends (an electric fence: B. Perens, 1987), and inputs are
 * read-only. So an access outside an array stops the child at once, and the handler names the array
 * and the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* MAP_ANONYMOUS, sigaltstack */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/exercise/exercise.h"
#include "app/output.h"
#include "app/stops.h"
#include "bench/timing.h"

enum { ARRAYS_MOST = 16, FENCE = 1 << 20, FILL = 0x7f };

/* Memory of the student's code: some arrays of 100,003 elements need less. */
static const int64_t memory_most = (int64_t)1 << 30;

static struct {
    struct verdict *verdict;
    struct array {
        const char *name;
        char *pages, *begin, *end; /* mapped from pages on; the elements */
        size_t size, mapped;
        bool input;
    } arrays[ARRAYS_MOST];
    int count;
} child;

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

__attribute__((noreturn)) static void end_child(enum outcome outcome)
{
    fflush(stdout); /* what the student's code printed */
    child.verdict->outcome = outcome;
    _exit(0);
}

void case_begin(const char *format, ...)
{
    va_list values;
    for (int i = 0; i < child.count; i++)
        munmap(child.arrays[i].pages, child.arrays[i].mapped);
    child.count = 0;
    child.verdict->cases++;
    va_start(values, format);
    vsnprintf(child.verdict->running, sizeof child.verdict->running, format, values);
    va_end(values);
}

void case_wrong(const char *table, const char *format, ...)
{
    struct verdict *const v = child.verdict;
    char what[400];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    snprintf(v->text, sizeof v->text, "%s:\n  %s\n%s", v->running, what, table != NULL ? table : "");
    end_child(OUTCOME_WRONG);
}

static void *add_array(const char *name, const void *values, int64_t n, size_t size)
{
    const size_t bytes = (size_t)n * size, page = page_size(), used = (bytes / page + 1) * page;
    struct array *const a = &child.arrays[child.count++];
    *a = (struct array){.name = name, .size = size, .mapped = used + FENCE, .input = values != NULL};
    a->pages = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->pages == MAP_FAILED)
        case_wrong(NULL, "the limit of memory is reached");
    a->end = a->pages + used;
    a->begin = a->end - bytes;
    memset(a->pages, FILL, used);
    if (values != NULL && n > 0)
        memcpy(a->begin, values, bytes);
    mprotect(a->end, FENCE, PROT_NONE);
    if (values != NULL)
        mprotect(a->pages, used, PROT_READ);
    return a->begin;
}

void *case_input(const char *name, const void *values, int64_t n, size_t size)
{
    return add_array(name, values != NULL ? values : "", n, size);
}

void *case_output(const char *name, int64_t n, size_t size)
{
    return add_array(name, NULL, n, size);
}

void *case_scratch(int64_t n, size_t size)
{
    return add_array("the test", NULL, n, size);
}

bool case_is_set(const void *element, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)element)[i] != FILL)
            return true;
    return false;
}

void case_end(void)
{
    for (int i = 0; i < child.count; i++)
        for (const char *at = child.arrays[i].pages; at < child.arrays[i].begin; at++)
            if (*at != FILL)
                case_wrong(NULL, "writes before the beginning of %s", child.arrays[i].name);
}

void case_counts(int64_t values, int64_t work, int64_t depth)
{
    child.verdict->values = values;
    child.verdict->work = work;
    child.verdict->depth = depth;
}

void case_passed(const char *what)
{
    snprintf(child.verdict->text, sizeof child.verdict->text, "%s", what);
    end_child(OUTCOME_PASSED);
}

void table_add(struct table *t, const char *format, ...)
{
    const int room = (int)sizeof t->text - t->length;
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(t->text + t->length, (size_t)room, format, values);
    va_end(values);
    t->length += n < room ? n : room - 1;
}

static void add_cell(struct table *t, bool set, double value)
{
    char text[32] = "-";
    if (set)
        snprintf(text, sizeof text, "%.6g", value);
    table_add(t, " %5s", text);
}

void table_integers(struct table *t, const char *name, const int64_t *cells, int64_t first, int64_t end)
{
    table_add(t, "  %-10s", name);
    for (int64_t i = first; i < end; i++)
        add_cell(t, case_is_set(&cells[i], sizeof cells[i]), (double)cells[i]);
    table_add(t, "\n");
}

void table_numbers(struct table *t, const char *name, const double *cells, int64_t first, int64_t end)
{
    table_add(t, "  %-10s", name);
    for (int64_t i = first; i < end; i++)
        add_cell(t, case_is_set(&cells[i], sizeof cells[i]), cells[i]);
    table_add(t, "\n");
}

int64_t random_below(uint64_t *state, int64_t limit)
{
    /* D. E. Knuth's linear congruential generator MMIX */
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)((*state >> 33) % (uint64_t)limit);
}

/* ---------------------------------------------------------------- the child */

/* An access to memory that is not there, or not to be written. The child ends here. If this handler
 * faults too, the second signal ends the child. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const char *const at = info->si_addr;
    (void)number;
    (void)context;
    for (int i = 0; i < child.count; i++) {
        const struct array *const a = &child.arrays[i];
        if (at >= a->end && at < a->end + FENCE)
            case_wrong(NULL, "uses %s[%lld], but %s has %lld element%s", a->name,
                       (long long)((at - a->begin) / (int64_t)a->size), a->name,
                       (long long)((a->end - a->begin) / (int64_t)a->size),
                       a->end - a->begin == (int64_t)a->size ? "" : "s");
        if (a->input && at >= a->begin && at < a->end)
            case_wrong(NULL, "writes to %s[%lld], which is an input", a->name,
                       (long long)((at - a->begin) / (int64_t)a->size));
    }
    case_wrong(NULL, "crashes: it uses an address outside its arrays, or calls itself too often");
}

/* device: CUDA reserves more addresses than any limit. */
static void limit_child(bool device)
{
    static char stack[1 << 16];
    const struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    long long pages = 0;
    for (int number = 1; number < 32; number++) /* not the program's handlers */
        if (number != SIGPIPE)
            signal(number, SIG_DFL);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGBUS, &fault, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with the program */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    FILE *const status = fopen("/proc/self/statm", "r");
    if (status != NULL && fscanf(status, "%lld", &pages) == 1 && !device) {
        const rlim_t most = (rlim_t)pages * page_size() + (rlim_t)memory_most;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
    if (status != NULL)
        fclose(status);
}

__attribute__((noreturn)) static void run_child(const struct exercise *e, const char *object, struct verdict *verdict)
{
    void *functions[2] = {NULL, NULL};
    child.verdict = verdict;
    snprintf(verdict->running, sizeof verdict->running, "loading it");
    void *const library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *const why = dlerror(), *const colon = strstr(why, ": ");
        case_wrong(NULL, "%s", colon != NULL ? colon + 2 : why); /* without the name of the object */
    }
    for (int i = 0; i < 2 && e->functions[i] != NULL; i++) {
        functions[i] = dlsym(library, e->functions[i]);
        if (functions[i] == NULL)
            case_wrong(NULL, "it has no function %s; spmv exercise %s prints its form", e->functions[i], e->name);
    }
    e->test(functions);
    case_wrong(NULL, "the tests ended early"); /* not reached: a test ends with case_passed */
}

/* ---------------------------------------------------------------- the program */

/* Waits for the child. Whether it ended within the time and without a signal to the program. */
static bool wait_for(pid_t pid, double seconds, int *how)
{
    const double began = monotonic_seconds();
    while (waitpid(pid, how, WNOHANG) == 0) {
        if (monotonic_seconds() - began > seconds || stops_asked()) {
            kill(pid, SIGKILL);
            waitpid(pid, how, 0);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return true;
}

spmv_status exercise_run(const struct exercise *e, const char *object, bool device, double seconds,
                         struct verdict *verdict)
{
    int how = 0;
    struct verdict *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return report(SPMV_ERROR_MEMORY, "no memory for the verdict");
    fflush(stdout); /* else the child would print it again */
    const pid_t pid = fork();
    if (pid == 0) {
        limit_child(device);
        run_child(e, object, shared);
    }
    const int why_not = errno;
    const bool ended = pid > 0 && wait_for(pid, seconds, &how);
    *verdict = *shared;
    munmap(shared, sizeof *shared);
    if (pid < 0) {
        complain("cannot start a process: %s", strerror(why_not));
        return SPMV_ERROR_MEMORY;
    }
    if (stops_asked())
        return SPMV_CANCELLED;
    if (verdict->outcome != OUTCOME_NONE)
        return SPMV_OK;
    char what[80] = "ends the program";
    if (!ended)
        snprintf(what, sizeof what, "does not end within %g s", seconds);
    else if (WIFSIGNALED(how))
        snprintf(what, sizeof what, "crashes: %s", strsignal(WTERMSIG(how)));
    verdict->outcome = OUTCOME_WRONG;
    snprintf(verdict->text, sizeof verdict->text, "%s:\n  %s\n", verdict->running, what);
    return SPMV_OK;
}
