/* spmv bench --op load: how long a file takes to become CSR in memory, and how much memory that
 * needs.
 *
 * The first reading stands for what a command does: the system provides fresh pages. The others
 * follow in the same process, with the file in the page cache. The time to read the bytes alone is
 * the lower bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_output.h"

enum { REPEATS_MOST = 25, REPEATS_LEAST = 5, READ_BYTES = 256 << 10 };

/* No further repeat begins after so many seconds. */
static const double seconds_enough = 3;

struct load_case {
    const char *name;
    int64_t bytes; /* of the file */
    spmv_read_info info;
    int64_t rows, cols, nnz, matrix_bytes;
    spmv_type type;
    double first_seconds, bytes_seconds; /* bytes_seconds: reading them alone */
    int64_t peak_bytes; /* more resident memory during the first reading than before it; 0: not known */
    struct timing seconds;
};

/* A line "VmHWM:   123 kB" of this process, in bytes; 0 when the system does not tell. */
static int64_t memory_status(const char *name)
{
    char line[256];
    long long kilobytes = 0;
    FILE *const f = fopen("/proc/self/status", "r");
    while (f != NULL && kilobytes == 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %lld", &kilobytes) != 1)
            break;
    if (f != NULL)
        fclose(f);
    return kilobytes * 1024;
}

/* Resets the peak; false where the system cannot. */
static bool reset_peak(void)
{
    FILE *const f = fopen("/proc/self/clear_refs", "w");
    if (f == NULL)
        return false;
    const bool written = fputs("5", f) >= 0;
    return fclose(f) == 0 && written;
}

static spmv_status read_bytes(const char *path, struct load_case *c)
{
    char *buffer = NULL;
    struct stat s;
    spmv_status st = allocate("reading a file", READ_BYTES, 1, (void **)&buffer);
    const bool standard_input = strcmp(path, "-") == 0;
    const int fd = st == SPMV_OK && !standard_input ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (st == SPMV_OK && !standard_input && (fd < 0 || fstat(fd, &s) != 0)) {
        complain("%s: cannot open: %s", path, strerror(errno));
        st = SPMV_ERROR_OPEN;
    } else if (st == SPMV_OK && (standard_input || !S_ISREG(s.st_mode))) {
        complain("%s: cannot measure on it: only files that can be read again will do", path);
        st = SPMV_ERROR_OPEN;
    }
    for (int pass = 0; st == SPMV_OK && pass < 2; pass++) { /* the first fills the page cache */
        const double began = monotonic_seconds();
        c->bytes = 0;
        for (ssize_t n = 1; n > 0; c->bytes += n)
            n = pread(fd, buffer, READ_BYTES, (off_t)c->bytes);
        c->bytes_seconds = monotonic_seconds() - began;
    }
    if (fd >= 0)
        close(fd);
    free(buffer);
    return st;
}

static spmv_status read_once(spmv_context *ctx, const struct options *o, const char *path, struct load_case *c,
                             double *seconds)
{
    spmv_matrix *matrix = NULL;
    spmv_read_options options;
    spmv_csr a;
    spmv_read_options_init(&options, sizeof options);
    options.type = option_given(o, "type") ? o->type : SPMV_TYPE_DEFAULT;
    const double began = monotonic_seconds();
    const spmv_status st = spmv_matrix_read(ctx, path, &options, &matrix, &c->info, sizeof c->info);
    *seconds = monotonic_seconds() - began;
    if (st != SPMV_OK)
        return report(st, spmv_last_error(ctx));
    spmv_matrix_view(matrix, &a);
    c->rows = a.rows;
    c->cols = a.cols;
    c->nnz = a.nnz;
    c->type = a.type;
    c->matrix_bytes =
        8 * (a.rows + 1) + a.nnz * (int64_t)(sizeof *a.col + (a.val != NULL ? spmv_type_size(a.type) : 0));
    spmv_matrix_destroy(matrix);
    return SPMV_OK;
}

static spmv_status measure_file(spmv_context *ctx, const struct options *o, const char *path, struct load_case *c)
{
    double samples[REPEATS_MOST];
    int n = 0;
    *c = (struct load_case){.name = path};
    spmv_status st = read_bytes(path, c);
    if (st != SPMV_OK)
        return st;
    const bool known = reset_peak();
    const int64_t before = memory_status("VmRSS");
    st = read_once(ctx, o, path, c, &c->first_seconds);
    if (known && before > 0)
        c->peak_bytes = memory_status("VmHWM") - before;
    const double began = monotonic_seconds();
    while (st == SPMV_OK && n < REPEATS_MOST && (n < REPEATS_LEAST || monotonic_seconds() - began < seconds_enough))
        st = read_once(ctx, o, path, c, &samples[n++]);
    if (st == SPMV_OK)
        c->seconds = timing_summary(samples, n);
    return st;
}

/* trust: of the run; the line has that of this file. */
static json_t *json_load_case(const struct options *o, const struct load_case *c, const struct bench_trust *trust)
{
    struct bench_trust own = *trust;
    own.rows = own.unsteady = 0;
    bench_trust_row(&own, &c->seconds);
    json_t *root = json_begin(o), *result = json_object();
    json_put(root, "machine", json_machine(c->info.threads));
    json_put(root, "trust", bench_trust_json(&own));
    json_put(root, "matrix",
             json_pack("{s:o, s:I, s:I, s:I}", "name", json_text(c->name), "rows", (json_int_t)c->rows, "cols",
                       (json_int_t)c->cols, "nnz", (json_int_t)c->nnz));
    json_put(result, "op", json_string("load"));
    json_put(result, "type", json_string(spmv_type_name(c->type)));
    json_put(result, "threads", json_integer(c->info.threads));
    json_put(result, "file_bytes", json_integer((json_int_t)c->bytes));
    json_put(result, "text_bytes", json_integer((json_int_t)c->info.bytes));
    json_put(result, "matrix_bytes", json_integer((json_int_t)c->matrix_bytes));
    if (c->peak_bytes > 0)
        json_put(result, "peak_bytes", json_integer((json_int_t)c->peak_bytes));
    json_put(result, "bytes_alone_seconds", json_number(c->bytes_seconds));
    json_put(result, "first_call_seconds", json_number(c->first_seconds));
    json_put(result, "seconds", bench_timing_json(&c->seconds));
    json_put(result, "gbs", json_number(1e-9 * (double)c->info.bytes / c->seconds.median));
    json_put(root, "result", result);
    return root;
}

/* A name that is longer than its column gets a line of its own. */
static void print_case(const struct load_case *c)
{
    enum { NAME_WIDTH = 28 };
    const bool longer = strlen(c->name) > NAME_WIDTH;
    if (longer)
        printf("%s\n", c->name);
    char peak[32] = "-";
    if (c->peak_bytes > 0)
        snprintf(peak, sizeof peak, "%.2f", (double)c->peak_bytes / (double)c->matrix_bytes);
    printf("%-*s %7d %9.1f %9.3g %9.3g%s %6.0f%% %9.0f %11.0f %8s\n", NAME_WIDTH, longer ? "" : c->name,
           c->info.threads, 1e-6 * (double)c->info.bytes, c->first_seconds, c->seconds.median,
           timing_steady(&c->seconds) ? " " : "*", 100 * timing_spread(&c->seconds),
           1e-6 * (double)c->info.bytes / c->seconds.median, 1e-6 * (double)c->bytes / c->bytes_seconds, peak);
}

static void print_head(const struct bench_trust *trust)
{
    char text[256];
    bench_load_text(&trust->load, text, sizeof text);
    printf("# %s\n# spread: median over minimum, less 1, * above 20%%\n", text);
    printf("%-28s %7s %9s %9s %9s  %7s %9s %11s %8s\n", "file", "threads", "MB", "first s", "median s", "spread",
           "MB/s", "bytes alone", "peak/CSR");
}

/* One file: measured, and its row or its JSON written. */
static spmv_status run_file(spmv_context *ctx, const struct options *o, const char *path, struct bench_trust *trust,
                            struct text_file *json)
{
    struct load_case c;
    spmv_status st = measure_file(ctx, o, path, &c);
    if (st != SPMV_OK)
        return st;
    const bool json_is_answer = o->json && o->json_path == NULL;
    if (!json_is_answer && trust->rows == 0)
        print_head(trust);
    bench_trust_row(trust, &c.seconds);
    if (!json_is_answer)
        print_case(&c);
    return o->json ? json_line(json, json_load_case(o, &c, trust)) : SPMV_OK;
}

/* Why figures cannot be trusted: below the table, else on standard error. */
static spmv_status tell_trust(const struct bench_trust *trust, bool table)
{
    char text[WHY_SIZE];
    struct text_file out;
    bench_trust_text(trust, text, sizeof text);
    if (trust->rows == 0 || text[0] == '\0')
        return SPMV_OK;
    if (!table) {
        remark(LEVEL_NORMAL, "%s", text);
        return SPMV_OK;
    }
    const spmv_status st = text_file_open(NULL, &out);
    return st == SPMV_OK ? bench_wrap(&out, "# ", text) : st;
}

spmv_status run_bench_load(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct text_file json = {0};
    struct bench_trust trust = {0};
    const bool json_is_answer = o->json && o->json_path == NULL;
    if (count == 0 || o->csv || o->suite != NULL || o->size != 0)
        return report(SPMV_ERROR_ARGUMENT, "--op load measures on files, which must be named; its results come as a "
                                           "table or, with --json, as JSON");
    static const char *const others[] = {"vectors", "summary",  "peers",  "precond",
                                         "method",  "compress", "device", "seed"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (option_given(o, others[i])) {
            complain("--%s is not for bench --op load", others[i]);
            return SPMV_ERROR_ARGUMENT;
        }
    spmv_status st = open_context(o, o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend, &ctx);
    if (st == SPMV_OK && o->json)
        st = text_file_open(o->json_path, &json);
    progress_allow(false);
    if (st == SPMV_OK) {
        const struct machine_load load = machine_load_measure();
        bench_trust_begin(&trust, &load, spmv_context_threads(ctx));
    }
    for (int i = 0; st == SPMV_OK && i < count; i++)
        st = run_file(ctx, o, arguments[i], &trust, &json);
    if (o->json) {
        const spmv_status closed = text_file_close(&json, st == SPMV_OK);
        st = st != SPMV_OK ? st : closed;
    }
    if (st == SPMV_OK)
        st = tell_trust(&trust, !json_is_answer);
    if (st == SPMV_OK && !json_is_answer)
        st = finish_stdout();
    spmv_context_destroy(ctx);
    return st;
}
