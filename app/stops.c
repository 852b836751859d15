/* Signals that end the program leave no unfinished file. The program still ends by the signal.
 *
 * The library lists its unfinished files and removes them in the handler (spmv_remove_unfinished).
 * The handler does this on the thread that runs main: that thread creates the files, so it cannot
 * create another one between the removal and the end of the program. On other threads the handler
 * forwards the signal. All these signals are blocked while a handler runs, so several at once do
 * not interfere.
 *
 * A command with something to write defers the first SIGINT, SIGTERM or SIGHUP (stops_defer), and
 * asks stops_asked. Then a second signal ends the program. A time limit is a timer, whose signal
 * does the same: it is noticed wherever a signal is.
 *
 * Signals that are ignored (nohup), or have another handler, are left unchanged.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* sigaction, SIGVTALRM */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spmv/io.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "app/stops.h"

/* First signals that end a program from outside, then those that its own faults raise. */
static const int numbers[] = {SIGINT,    SIGTERM, SIGHUP,  SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU,
                              SIGVTALRM, SIGPROF, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT};
enum { SIGNALS = sizeof numbers / sizeof numbers[0], POLITE = 3, FROM_OUTSIDE = 10 };

static pthread_t main_thread;
static volatile sig_atomic_t deferred, asked; /* asked: the number of the signal */
static volatile sig_atomic_t served;          /* the request: what is left to do is writing */
static volatile sig_atomic_t limited;         /* SIGALRM is the time limit */
static char limit[48];                        /* "--max-seconds 5" */
static struct timespec asked_at;              /* written before asked, only by the handler */

static int place_of(int number)
{
    int i = 0;
    while (i < SIGNALS - 1 && numbers[i] != number)
        i++;
    return i;
}

/* timeout sends its signal twice at once, to the process and to its group: both are one request. */
static bool is_the_same_wish(void)
{
    struct timespec now = asked_at;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - asked_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - asked_at.tv_nsec) < 0.25;
}

/* The time limit, with nothing to write yet. Only functions that a handler may call. */
static void end_at_limit(void)
{
    static const char rest[] = " is over, and there is no x yet: nothing is written\n";
    spmv_remove_unfinished();
    ssize_t written = write(STDERR_FILENO, "spmv: ", 6);
    written += write(STDERR_FILENO, limit, strlen(limit));
    written += write(STDERR_FILENO, rest, sizeof rest - 1);
    (void)written;
    _exit(spmv_status_class(SPMV_CANCELLED));
}

static void on_stop(int number)
{
    const int before = errno, place = place_of(number);
    if (place < FROM_OUTSIDE && !pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, number);
    } else if (number == SIGALRM && limited) {
        if (!deferred)
            end_at_limit();
        asked = asked != 0 ? asked : number;
    } else if (place < POLITE && deferred && !asked) {
        clock_gettime(CLOCK_MONOTONIC, &asked_at);
        asked = number;
    } else if (place >= POLITE || !asked || !is_the_same_wish()) {
        spmv_remove_unfinished();
        signal(number, SIG_DFL);
        raise(number); /* blocked until the handler returns; then ends the program */
    }
    errno = before;
}

void stops_open(void)
{
    struct sigaction ours = {.sa_handler = on_stop, .sa_flags = SA_RESTART}, there;
    main_thread = pthread_self();
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&ours.sa_mask, numbers[i]);
    for (int i = 0; i < SIGNALS; i++)
        if (sigaction(numbers[i], NULL, &there) == 0 && (there.sa_flags & SA_SIGINFO) == 0 &&
            there.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

void stops_defer(void)
{
    struct sigaction there;
    deferred = 1;
    /* A waiting read must notice the request, so it is not restarted. */
    for (int i = 0; i < POLITE; i++)
        if (sigaction(numbers[i], NULL, &there) == 0 && there.sa_handler == on_stop) {
            there.sa_flags &= ~SA_RESTART;
            sigaction(numbers[i], &there, NULL);
        }
}

void stops_after(double seconds)
{
    const long whole = (long)seconds, micro = (long)(1e6 * (seconds - (double)whole));
    const struct itimerval timer = {.it_value = {whole, whole == 0 && micro == 0 ? 1 : micro}};
    if (!(seconds > 0))
        return;
    snprintf(limit, sizeof limit, "--max-seconds %g", seconds);
    limited = 1;
    setitimer(ITIMER_REAL, &timer, NULL);
}

const char *stops_reason(void)
{
    return asked == SIGINT ? "SIGINT" : asked == SIGTERM ? "SIGTERM" : asked == SIGHUP ? "SIGHUP" : limit;
}

bool stops_asked(void)
{
    return asked != 0 && !served;
}

void stops_serve(void)
{
    served = 1;
}
