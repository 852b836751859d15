/* Output of the program: messages and progress on standard error, JSON, text files, and the checks
 * of output names.
 *
 * A pipe closed by its reader is not an error. The handler of SIGPIPE sets a flag, the write fails,
 * and write_status returns success if the flag is set.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* realpath and strndup */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/input.h"
#include "app/job_memory.h"
#include "app/output.h"
#include "app/stops.h"
#include "bench/devices/machine.h"

/* ---------------------------------------------------------------- messages */

static enum level level = LEVEL_NORMAL;
static _Thread_local bool dropped; /* the messages of this thread */
static volatile sig_atomic_t reader_gone;

static void on_sigpipe(int signal_number)
{
    (void)signal_number;
    reader_gone = 1;
}

void messages_open(enum level wanted)
{
    level = wanted;
    progress_end();
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = on_sigpipe}, NULL);
}

enum level messages_level(void)
{
    return dropped ? LEVEL_QUIET : level;
}

void messages_drop(void)
{
    dropped = true;
}

/* State of the progress line. */
static struct {
    bool forbidden, shown;
    /* seconds: start of the activity, its last event, the last drawing */
    double began, heard, drawn;
    char activity[160];
} progress;

static void clear_progress(void)
{
    if (progress.shown)
        fputs("\r\033[K", stderr);
    progress.shown = false;
}

void progress_end(void)
{
    if (dropped)
        return;
    clear_progress();
    progress.activity[0] = '\0';
    progress.heard = monotonic_seconds();
}

void progress_allow(bool allowed)
{
    progress_end();
    progress.forbidden = !allowed;
}

static void say_error(const char *format, va_list values)
{
    clear_progress();
    fputs("spmv: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
}

void complain(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (!dropped)
        say_error(format, values);
    va_end(values);
}

/* As complain, also where messages are dropped: a rank says why it ends all processes. */
__attribute__((format(printf, 1, 2))) static void complain_always(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say_error(format, values);
    va_end(values);
}

enum { LINE_WIDTH = 100, REMARK_MOST = 4096 };

/* Breaks the text at blanks; all lines except the first are indented. Columns are counted as UTF-8
 * characters. */
static void say_wrapped(const char *text)
{
    int column = fprintf(stderr, "spmv: ");
    for (bool first = true; *text != '\0'; first = false) {
        const int length = (int)strcspn(text, " ");
        int columns = 0;
        for (int i = 0; i < length; i++)
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (!first && column + 1 + columns > LINE_WIDTH)
            column = fprintf(stderr, "\nspmv:   ") - 1;
        else if (!first)
            column += fprintf(stderr, " ");
        fprintf(stderr, "%.*s", length, text);
        column += columns;
        text += length + (text[length] == ' ');
    }
    fputc('\n', stderr);
}

void remark(enum level least, const char *format, ...)
{
    char text[REMARK_MOST];
    va_list values;
    if (dropped || level < least)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    clear_progress();
    say_wrapped(text);
}

void remark_row(const char *format, ...)
{
    va_list values;
    if (messages_level() < LEVEL_NORMAL)
        return;
    clear_progress();
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

const char *plain_sentence(const char *sentence)
{
    const size_t length = strspn(sentence, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const bool named = strncmp(sentence, "spmv_", 5) == 0 && strncmp(sentence + length, ": ", 2) == 0;
    return named ? sentence + length + 2 : sentence;
}

spmv_status report(spmv_status status, const char *sentence)
{
    const char *const text =
        sentence != NULL && sentence[0] != '\0' ? plain_sentence(sentence) : spmv_status_text(status);
    complain("%s%s", text, memory_advice(status, text));
    return status;
}

/* Whether the activity began at least half a second ago and the last drawing was at least a tenth
 * of a second ago. */
static bool progress_due(double began)
{
    const double now = monotonic_seconds();
    if (messages_level() == LEVEL_QUIET || progress.forbidden || now - began < 0.5 || now - progress.drawn < 0.1)
        return false;
    if (!isatty(STDERR_FILENO))
        return false;
    progress.drawn = now;
    return true;
}

void progress_show(double began, const char *format, ...)
{
    va_list values;
    if (!progress_due(began))
        return;
    clear_progress();
    fputs("spmv: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    progress.shown = true;
    fflush(stderr);
}

/* Shows progress in bytes: amount, bytes per second, time left. */
static void show_bytes(const spmv_event *event)
{
    const double spent = progress.heard - progress.began, done = (double)event->done, total = (double)event->total;
    const double rate = spent > 0 ? done / spent : 0;
    if (event->total > 0 && rate > 0)
        progress_show(progress.began, "%s: %d %% of %s, %s/s, %.0f s left", progress.activity,
                      (int)(100 * done / total), bytes_text(total), bytes_text(rate), (total - done) / rate);
    else
        progress_show(progress.began, "%s: %s, %s/s", progress.activity, bytes_text(done), bytes_text(rate));
}

/* The first event of an activity comes after its first part, so the activity began when the
 * previous one ended. */
static void show_event(const spmv_event *event)
{
    if (strncmp(progress.activity, event->text, sizeof progress.activity - 1) != 0) {
        snprintf(progress.activity, sizeof progress.activity, "%s", event->text);
        progress.began = progress.heard;
    }
    progress.heard = monotonic_seconds();
    if (strncmp(progress.activity, "reading ", 8) == 0)
        show_bytes(event);
    else if (event->total > 0)
        progress_show(progress.began, "%s: %d %%", progress.activity,
                      (int)(100.0 * (double)event->done / (double)event->total));
    else
        progress_show(progress.began, "%s: %lld", progress.activity, (long long)event->done);
}

int tell_event(const spmv_event *event, void *user)
{
    (void)user;
    const bool warning = event->kind == SPMV_EVENT_WARNING;
    if (warning && strncmp(event->text, "rank ", 5) == 0) /* spmv_group_break */
        complain_always("%s", plain_sentence(event->text));
    else if (warning && messages_level() >= LEVEL_NORMAL)
        /* FILE:LINE:COLUMN stays on one line with its text */
        complain("warning: %s", plain_sentence(event->text));
    else if (!warning)
        show_event(event);
    return stops_asked();
}

spmv_status open_context(const struct options *o, spmv_backend backend, spmv_context **ctx)
{
    return open_context_on(o, backend, NULL, ctx);
}

spmv_status open_context_on(const struct options *o, spmv_backend backend, void *stream, spmv_context **ctx)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = backend;
    options.device = o->device;
    options.threads = o->threads;
    options.stream = stream;
    options.on_event = tell_event;
    options.first_index = 1;
    const spmv_status st = spmv_context_create(&options, ctx);
    if (st != SPMV_OK)
        report(st, spmv_last_error(NULL));
    if (st == SPMV_ERROR_NO_DEVICE && backend == SPMV_BACKEND_CUDA)
        complain("--backend omp computes on the CPU; spmv doctor shows what this machine has");
    return st;
}

spmv_status allocate(const char *what, int64_t count, size_t size, void **memory)
{
    const double bytes = (double)count * (double)size;
    *memory = NULL;
    if (!memory_allows(what, bytes))
        return SPMV_ERROR_MEMORY;
    *memory = bytes <= (double)(SIZE_MAX / 2) ? malloc(count > 0 ? (size_t)count * size : 1) : NULL;
    if (*memory != NULL)
        return SPMV_OK;
    complain("%s: %.0f bytes (%s) of memory are not available", what, bytes, bytes_text(bytes));
    return SPMV_ERROR_MEMORY;
}

spmv_status finish_stdout(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return SPMV_OK;
    if (reader_gone)
        return SPMV_OK;
    complain("cannot write standard output: %s", errno != 0 ? strerror(errno) : "an earlier write failed");
    return SPMV_ERROR_WRITE;
}

spmv_status write_status(spmv_context *ctx, spmv_status status, const char *path)
{
    progress_end();
    if (status == SPMV_OK || (status == SPMV_ERROR_WRITE && strcmp(path, "-") == 0 && reader_gone))
        return SPMV_OK;
    return report(status, spmv_last_error(ctx));
}

/* Complains that path cannot be written; reason: errno. */
static spmv_status fail_write(const char *path, int reason)
{
    complain("cannot write %s: %s", path, strerror(reason));
    return reason == ENOENT || reason == EACCES ? SPMV_ERROR_OPEN : SPMV_ERROR_WRITE;
}

/* "a" for "a/b", "." for "b"; the caller frees it. NULL: out of memory. */
static char *folder_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Whether two paths to files that do not exist are the same place. */
static bool is_same_place(const char *a, const char *b)
{
    const char *const a_slash = strrchr(a, '/'), *const b_slash = strrchr(b, '/');
    char *const a_folder = folder_of(a), *const b_folder = folder_of(b);
    struct stat s, t;
    const bool same = strcmp(a_slash != NULL ? a_slash + 1 : a, b_slash != NULL ? b_slash + 1 : b) == 0 &&
                      a_folder != NULL && b_folder != NULL && stat(a_folder, &s) == 0 && stat(b_folder, &t) == 0 &&
                      s.st_dev == t.st_dev && s.st_ino == t.st_ino;
    free(a_folder);
    free(b_folder);
    return same;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat s, t;
    const bool a_there = stat(a, &s) == 0, b_there = stat(b, &t) == 0;
    if (a_there && !S_ISREG(s.st_mode))
        return false;
    if (a_there && b_there)
        return s.st_dev == t.st_dev && s.st_ino == t.st_ino;
    return strcmp(a, b) == 0 || (!a_there && !b_there && is_same_place(a, b));
}

/* Finds the regular file that path refers to: for "archive:member" the archive, for "-" standard
 * input. */
static bool find_input(const char *path, struct stat *s)
{
    const char *const colon = strrchr(path, ':');
    bool found = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, s) == 0 : stat(path, s) == 0;
    if (!found && colon != NULL) {
        char *const archive = strndup(path, (size_t)(colon - path));
        found = archive != NULL && stat(archive, s) == 0;
        free(archive);
    }
    return found && S_ISREG(s->st_mode);
}

/* Complains if output (NULL: standard output) is the input file. */
static spmv_status check_input(const char *input, const char *output)
{
    struct stat in, out;
    const bool there = output != NULL ? stat(output, &out) == 0 : fstat(STDOUT_FILENO, &out) == 0;
    if (!there || !find_input(input, &in) || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
        return SPMV_OK;
    complain("%s is an input (%s) and would be replaced: name another file for the output",
             output != NULL ? output : "standard output", input);
    return SPMV_ERROR_ARGUMENT;
}

/* The output files named by options, and another one (or NULL); without standard output. Returns
 * their number. */
enum { OUTPUTS_MOST = OPTION_FILES_MOST + 1 };

static int list_outputs(const struct options *o, const char *another, const char **paths)
{
    int count = options_files(o, FILE_WRITTEN, paths), kept = 0;
    if (another != NULL)
        paths[count++] = another;
    for (int i = 0; i < count; i++)
        if (strcmp(paths[i], "-") != 0)
            paths[kept++] = paths[i];
    return kept;
}

spmv_status check_outputs(const struct options *o, const char *another)
{
    const char *paths[OUTPUTS_MOST];
    const int count = list_outputs(o, another, paths);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (is_same_file(paths[i], paths[k])) {
                complain("%s: two outputs cannot be the same file", paths[i]);
                return SPMV_ERROR_ARGUMENT;
            }
    return SPMV_OK;
}

spmv_status check_inputs(const struct options *o, const char *const *inputs, int count, const char *another)
{
    const char *paths[OUTPUTS_MOST], *named[OPTION_FILES_MOST];
    spmv_status st = SPMV_OK;
    const int outputs = list_outputs(o, another, paths), more = options_files(o, FILE_READ, named);
    for (int i = 0; i < count + more && st == SPMV_OK; i++) {
        const char *const input = i < count ? inputs[i] : named[i - count];
        if (input == NULL)
            continue;
        for (int k = 0; k < outputs && st == SPMV_OK; k++)
            st = check_input(input, paths[k]);
        if (st == SPMV_OK)
            st = check_input(input, NULL);
    }
    return st;
}

/* Complains if path cannot be written, as far as this is known without writing. */
static spmv_status check_path(const char *path)
{
    struct stat s;
    const bool there = stat(path, &s) == 0;
    const int reason = errno;
    if (there && S_ISDIR(s.st_mode))
        return fail_write(path, EISDIR);
    if (there && access(path, W_OK) != 0)
        return fail_write(path, errno);
    if (there && !S_ISREG(s.st_mode))
        return SPMV_OK;
    if (!there && lstat(path, &s) == 0) {
        complain("cannot write %s: a link to a missing file", path);
        return SPMV_ERROR_OPEN;
    }
    if (!there && (reason != ENOENT || path[0] == '\0'))
        return fail_write(path, reason);
    char *const target = there ? realpath(path, NULL) : strdup(path);
    char *const folder = target != NULL ? folder_of(target) : NULL;
    const spmv_status st = folder == NULL || access(folder, W_OK | X_OK) != 0 ? fail_write(path, errno) : SPMV_OK;
    free(target);
    free(folder);
    return st;
}

spmv_status check_writable(const struct options *o)
{
    const char *paths[OUTPUTS_MOST];
    spmv_status st = SPMV_OK;
    const int count = list_outputs(o, NULL, paths);
    for (int i = 0; i < count && st == SPMV_OK; i++)
        st = check_path(paths[i]);
    return st;
}

/* Refuses, before the work, vectors under an ending of files that hold only matrices, and the reverse. */
static spmv_status check_kind(const char *path, bool matrix)
{
    static const char *const matrices[] = {".rb", ".hb"}, *const vectors[] = {".npy"};
    const char *const *const wrong = matrix ? vectors : matrices;
    const size_t count = matrix ? sizeof vectors / sizeof vectors[0] : sizeof matrices / sizeof matrices[0];
    size_t length = strlen(path);
    cut_compression(path, &length);
    for (size_t i = 0; i < count; i++)
        if (cut_ending(path, &length, wrong[i])) {
            complain("%s: a %s file cannot hold %s", path, wrong[i],
                     matrix ? "a matrix; .npz can" : "vectors; .npz, .mat and .petsc can");
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

spmv_status check_format(const struct options *o, const char *path, bool matrix)
{
    spmv_context *ctx = NULL;
    if (path != NULL && check_kind(path, matrix) != SPMV_OK)
        return SPMV_ERROR_ARGUMENT;
    if (o->format != NULL && path == NULL)
        return report(SPMV_ERROR_ARGUMENT, "--format has no effect: no vector is written; name a file for it with -o");
    spmv_status st = open_context(o, SPMV_BACKEND_REF, &ctx);
    if (st != SPMV_OK)
        return st;
    st = spmv_output_check(ctx, path != NULL ? path : "-", o->format);
    if (st != SPMV_OK)
        report(st, spmv_last_error(ctx));
    spmv_context_destroy(ctx);
    return st;
}

spmv_status choose_answer(const struct options *o, const char *what, const char **path)
{
    const bool json_is_answer = o->json && o->json_path == NULL;
    *path = o->output != NULL ? o->output : json_is_answer ? NULL : "-";
    if (json_is_answer && *path != NULL && strcmp(*path, "-") == 0) {
        complain("both %s and the JSON cannot go to standard output: name a file with --json=FILE", what);
        return SPMV_ERROR_ARGUMENT;
    }
    const spmv_status st = check_format(o, *path, strcmp(what, "the matrix") == 0);
    return st == SPMV_OK ? check_writable(o) : st;
}

spmv_status check_standard_input(const struct options *o, const char *const *paths, int count)
{
    const char *named[OPTION_FILES_MOST];
    const int more = options_files(o, FILE_READ, named);
    int uses = 0;
    for (int i = 0; i < count + more; i++)
        uses += strcmp(i < count ? paths[i] : named[i - count], "-") == 0;
    return uses > 1 ? report(SPMV_ERROR_ARGUMENT, "standard input (-) can be read once only") : SPMV_OK;
}

spmv_status write_answer(spmv_context *ctx, const struct options *o, const char *path, spmv_type type,
                         const void *host_values, int64_t n, int64_t k)
{
    /* Numbers and a progress line would mix on the same terminal. */
    progress_allow(strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO));
    const spmv_status st = spmv_vectors_write(ctx, path, type, host_values, n, k, o->format);
    progress_allow(true);
    return write_status(ctx, st, path);
}

/* ---------------------------------------------------------------- quantities */

struct unit {
    double size;
    const char *name;
};

/* Writes three digits with the largest unit that leaves at least 1. The texts of the last few calls
 * stay valid, so that one printf may have several. */
static const char *quantity_text(double value, const struct unit *units, int count)
{
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 8];
    int u = 0;
    while (u < count - 1 && value < units[u].size)
        u++;
    snprintf(text, sizeof texts[0], "%.3g %s", value / units[u].size, units[u].name);
    return text;
}

const char *seconds_text(double seconds)
{
    static const struct unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    return quantity_text(seconds, units, 3);
}

const char *bytes_text(double bytes)
{
    static const struct unit units[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "bytes"}};
    return quantity_text(bytes, units, 4);
}

/* 15 digits suffice for every number that was written with 15 digits, and %g drops trailing
 * zeros. 17 digits suffice for every number. */
int number_text(double value, char *text)
{
    int length = 0;
    if (isnan(value))
        return snprintf(text, NUMBER_TEXT, "nan"); /* without a sign */
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return length;
}

/* ---------------------------------------------------------------- JSON */

/* Set when memory runs out for a value. */
static bool json_incomplete;

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        json_incomplete = true;
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_timing(const struct timing *t)
{
    return json_pack("{s:f, s:f, s:f, s:i}", "median", t->median, "min", t->min, "max", t->max, "repeats", t->repeats);
}

/* A JSON string. JSON is UTF-8, but names and arguments need not be: in other texts, bytes above
 * 127 become '?'. */
json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy = NULL;
    if (value != NULL || allocate("a text", (int64_t)strlen(text) + 1, 1, (void **)&copy) != SPMV_OK)
        return value;
    size_t i = 0;
    for (; text[i] != '\0'; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    copy[i] = '\0';
    value = json_string(copy);
    free(copy);
    return value;
}

json_t *json_begin(const struct options *o)
{
    json_t *root = json_object();
    json_put(root, "schema", json_string("spmv/1"));
    json_put(root, "tool",
             json_pack("{s:s, s:s, s:s, s:s, s:o}", "version", spmv_version(), "commit", SPMV_COMMIT, "cuda",
                       SPMV_CUDA_VERSION, "flags", SPMV_FLAGS, "command", json_text(o->command_line)));
    return root;
}

json_t *json_machine(int threads)
{
    return json_pack("{s:{s:s, s:i}}", "cpu", "name", cpu_name(), "threads", threads);
}

json_t *json_matrix(const char *name, const spmv_statistics *s)
{
    return json_pack("{s:o, s:I, s:I, s:I, s:{s:I, s:f, s:I, s:f}}", "name", json_text(name), "rows",
                     (json_int_t)s->rows, "cols", (json_int_t)s->cols, "nnz", (json_int_t)s->nnz, "row_nnz", "min",
                     (json_int_t)s->row_min, "mean", s->row_mean, "max", (json_int_t)s->row_max, "std", s->row_std);
}

/* Complains with the library's message. */
static spmv_status fail_text_file(struct text_file *file, spmv_status status)
{
    return report(status, spmv_last_error(file->ctx));
}

spmv_status text_file_open(const char *path, struct text_file *file)
{
    *file = (struct text_file){.path = path};
    if (path == NULL)
        return SPMV_OK;
    spmv_status st = check_path(path);
    if (st != SPMV_OK)
        return st;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.first_index = 1;
    options.backend = SPMV_BACKEND_REF;
    st = spmv_context_create(&options, &file->ctx);
    if (st == SPMV_OK)
        st = spmv_file_create(file->ctx, path, &file->file);
    if (st == SPMV_OK)
        return st;
    fail_text_file(file, st);
    spmv_context_destroy(file->ctx);
    *file = (struct text_file){0};
    return st;
}

spmv_status text_file_add(struct text_file *file, const char *text, size_t size)
{
    if (file->path == NULL) {
        fwrite(text, 1, size, file->errors ? stderr : stdout);
        return file->errors ? SPMV_OK : finish_stdout();
    }
    if (file->failed)
        return SPMV_OK;
    const spmv_status st = spmv_file_write(file->file, text, (int64_t)size);
    file->written = true;
    file->failed = st != SPMV_OK;
    return st == SPMV_OK ? st : fail_text_file(file, st);
}

spmv_status text_file_close(struct text_file *file, bool keep)
{
    if (file->file == NULL)
        return SPMV_OK;
    const spmv_status st = spmv_file_close(file->file, keep && file->written && !file->failed);
    if (st != SPMV_OK)
        fail_text_file(file, st);
    spmv_context_destroy(file->ctx);
    *file = (struct text_file){0};
    return st;
}

spmv_status write_text(const char *path, const char *text, size_t size)
{
    struct text_file file;
    spmv_status st = text_file_open(path, &file);
    if (st == SPMV_OK)
        st = text_file_add(&file, text, size);
    const spmv_status closed = text_file_close(&file, st == SPMV_OK);
    return st != SPMV_OK ? st : closed;
}

spmv_status json_line(struct text_file *file, json_t *root)
{
    char *text = json_incomplete ? NULL : json_dumps(root, JSON_REAL_PRECISION(17) | JSON_COMPACT);
    json_decref(root);
    if (text == NULL)
        return report(SPMV_ERROR_MEMORY, "no memory for the JSON text");
    const size_t length = strlen(text);
    text[length] = '\n'; /* replaces the zero byte; the length is known */
    const spmv_status st = text_file_add(file, text, length + 1);
    free(text);
    return st;
}

spmv_status json_finish(const struct options *o, json_t *root)
{
    struct text_file file;
    spmv_status st = text_file_open(o->json_path, &file);
    if (st != SPMV_OK) {
        json_decref(root);
        return st;
    }
    st = json_line(&file, root);
    const spmv_status closed = text_file_close(&file, st == SPMV_OK);
    return st != SPMV_OK ? st : closed;
}
