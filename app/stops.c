/* What an interruption (SIGINT, SIGTERM, SIGHUP) leaves: no half-written file. The program still ends by the signal.
 *
 * Its own files are known here by name, so the handler removes them. The library's are not: while it writes, the
 * handler only leaves a mark, the next event of the library is answered by a wish to cancel, and the library removes
 * its file itself. A second signal ends the program at once.
 *
 * Signals that somebody else handles, or that are ignored (nohup), are left as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* sigaction */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

enum { MOST_FILES = 8 };
static const char *volatile unfinished[MOST_FILES];
static volatile sig_atomic_t library_writes, stopped_by;

static void on_stop(int number)
{
    const int before = errno;
    for (int i = 0; i < MOST_FILES; i++)
        if (unfinished[i] != NULL)
            unlink(unfinished[i]);
    const bool again = stopped_by != 0;
    stopped_by = number;
    if (!library_writes || again)
        raise(number); /* waits until here is over, and then meets the default */
    errno = before;
}

static void catch_stops(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction ours = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND | SA_RESTART};
    for (size_t i = 0; stopped_by == 0 && i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction there;
        if (sigaction(numbers[i], NULL, &there) == 0 && (there.sa_flags & SA_SIGINFO) == 0 &&
            there.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    }
}

void stops_remove(const char *path)
{
    for (int i = 0; i < MOST_FILES; i++)
        if (unfinished[i] == NULL) {
            unfinished[i] = path;
            break;
        }
    catch_stops();
}

void stops_keep(const char *path)
{
    for (int i = 0; i < MOST_FILES; i++)
        if (unfinished[i] == path)
            unfinished[i] = NULL;
}

void stops_library_writes(const char *path)
{
    library_writes = path != NULL && strcmp(path, "-") != 0;
    if (library_writes)
        catch_stops();
    else if (stopped_by != 0)
        raise(stopped_by);
}

bool stops_asked(void)
{
    return library_writes && stopped_by != 0;
}
