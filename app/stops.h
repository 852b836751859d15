/* Signals and the time limit: how a command is asked to stop.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_STOPS_H
#define APP_STOPS_H

#include <stdbool.h>

/* Makes signals that end the program remove its unfinished files first, and makes a file-size limit
 * an error of the write. Called once, by main. */
void stops_open(void);

/* Makes the first SIGINT, SIGTERM or SIGHUP only a request to stop; the second one ends the
 * program. */
void stops_defer(void);

/* Ends the program after so many seconds (0: never) like a signal, but with exit code 10 and a
 * sentence; after stops_defer, it is a request like those. */
void stops_after(double seconds);

/* The command has stopped: from now on stops_asked is false, so that results are written. A second
 * signal still ends the program. */
void stops_serve(void);

/* Why stops_asked was true: "--max-seconds 5", "SIGINT". Static storage. */
const char *stops_reason(void);

/* Whether a stop was requested. */
bool stops_asked(void);

#endif
