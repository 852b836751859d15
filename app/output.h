/* Messages and progress on standard error, names of outputs, text files, JSON.
 *
 * A function that fails prints the reason on standard error before it returns; the status becomes
 * the exit code (spmv_status_class). "Complains" means: prints an error message.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_OUTPUT_H
#define APP_OUTPUT_H

#include <jansson.h>
#include <spmv/io.h>
#include <stdbool.h>

#include "app/options.h"
#include "bench/timing.h"

enum level { LEVEL_QUIET, LEVEL_NORMAL, LEVEL_VERBOSE };
void messages_open(enum level level);
enum level messages_level(void);

/* From now on this thread prints no messages, not even errors: another rank prints them. */
void messages_drop(void);

/* Prints "spmv: ..." on standard error, at every level. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints likewise from this level on, in lines of at most 100 columns. */
void remark(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line of a table: without "spmv: ", never wrapped. */
void remark_row(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An error message of the library without the name of the function at its beginning. */
const char *plain_sentence(const char *sentence);

/* Complains with the message ("" or NULL: the status's text) and returns the status. */
spmv_status report(spmv_status status, const char *sentence);

/* For a context's on_event: events become warnings and a progress line. */
int tell_event(const spmv_event *event, void *user);

/* Opens the context of the program, with tell_event. */
spmv_status open_context(const struct options *o, spmv_backend backend, spmv_context **ctx);

/* As open_context, on a CUDA stream of the caller; NULL: on a new stream. */
spmv_status open_context_on(const struct options *o, spmv_backend backend, void *stream, spmv_context **ctx);

/* progress_end removes the progress line at the end of an activity. progress_allow also permits or
 * forbids progress lines. */
void progress_end(void);
void progress_allow(bool allowed);

/* Draws the caller's own progress line if one is due: on a terminal, half a second after began
 * (monotonic_seconds), at most ten per second. */
void progress_show(double began, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Allocates memory for the program; complains if there is none. At least one byte, so the pointer
 * is never NULL on success. */
spmv_status allocate(const char *what, int64_t count, size_t size, void **memory);

/* Flushes standard output. A reader that has closed the pipe is not an error. Every command that
 * writes to it ends with this. */
spmv_status finish_stdout(void);

/* The destination of the answer (what: its name): -o, else standard output ("-"), or NULL if the
 * JSON goes there. Complains if both would go to standard output, and as check_format and
 * check_writable do. */
spmv_status choose_answer(const struct options *o, const char *what, const char **path);

/* Complains if two of the files written by options are the same. another: an output without an
 * option, or NULL. Several outputs may share a device or a pipe. */
spmv_status check_outputs(const struct options *o, const char *another);

/* Complains if an output, standard output included, is also one of the inputs: a path (or NULL),
 * "-", or a file that an option reads. Files are compared by device and inode. */
spmv_status check_inputs(const struct options *o, const char *const *inputs, int count, const char *another);

/* Complains of the first output that cannot be written, before long work. */
spmv_status check_writable(const struct options *o);

/* Complains of a path (or NULL) with an ending, or of a --format, that is not possible for the
 * answer: a matrix, or vectors. */
spmv_status check_format(const struct options *o, const char *path, bool matrix);

/* Complains if standard input is more than one of these paths and of the files that options read. */
spmv_status check_standard_input(const struct options *o, const char *const *paths, int count);

/* Writes the answer: n rows of k numbers. */
spmv_status write_answer(spmv_context *ctx, const struct options *o, const char *path, spmv_type type,
                         const void *host_values, int64_t n, int64_t k);

/* A text file that appears completely or not at all. It is written under another name and renamed
 * at the end, so a reader of path finds the old text or the whole new one. Anything but a regular
 * file (a pipe, a terminal, /dev/null) is written directly. path NULL: standard output. All members
 * 0: closed. */
struct text_file {
    const char *path; /* must outlive the struct */
    spmv_context *ctx;
    spmv_file *file; /* NULL: a standard stream, or closed */
    bool errors;     /* without a path: standard error instead of standard output */
    bool failed, written;
};

/* Opens the file early, so that errors are found before long work. Complains. */
spmv_status text_file_open(const char *path, struct text_file *file);

/* Adds text. Complains at the first failure. */
spmv_status text_file_add(struct text_file *file, const char *text, size_t size);

/* keep: the text is complete; the file gets its name if text was added and no addition failed.
 * Otherwise an existing file stays unchanged. Does nothing if it is not open. */
spmv_status text_file_close(struct text_file *file, bool keep);

/* Writes a file with this text. */
spmv_status write_text(const char *path, const char *text, size_t size);

/* Writes the number in the fewest digits that read back to the same bits; returns the length. */
enum { NUMBER_TEXT = 32 };
int number_text(double value, char *text);

/* The result of a failed spmv_..._write: SPMV_OK if the reader of standard output has closed the
 * pipe. Complains otherwise. */
spmv_status write_status(spmv_context *ctx, spmv_status status, const char *path);

/* "1.23 ms", "4.5 GB". A few static buffers are used in turn. */
const char *seconds_text(double seconds);
const char *bytes_text(double bytes);

/* {"schema", "tool"}, to be extended; NULL without memory, which json_finish reports. */
json_t *json_begin(const struct options *o);
json_t *json_machine(int threads);
json_t *json_matrix(const char *name, const spmv_statistics *s);

/* object[key] = value. Takes ownership of value; NULL marks the output as failed. */
void json_put(json_t *object, const char *key, json_t *value);

/* A string from outside: bytes that are not UTF-8 become '?'. */
json_t *json_text(const char *text);

/* A number; null if it is not finite, because JSON has no such numbers. */
json_t *json_number(double value);
json_t *json_timing(const struct timing *t);

/* Writes one line of JSON, with its newline, to the file. Takes ownership of root. */
spmv_status json_line(struct text_file *file, json_t *root);

/* Writes one line to standard output or the file of --json. Takes ownership of root. */
spmv_status json_finish(const struct options *o, json_t *root);

#endif
