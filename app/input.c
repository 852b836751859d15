/* Loading: a matrix from a file, standard input or a SPEC; vectors from files.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "app/input.h"
#include "app/output.h"
#include "bench/devices/bandwidth_cache.h"
#include "core/plural.h"
#include "core/reals.h"
#include "core/splitmix.h"

bool file_exists(const char *path)
{
    struct stat s;
    return strcmp(path, "-") == 0 || stat(path, &s) == 0;
}

bool cut_ending(const char *path, size_t *length, const char *ending)
{
    const size_t n = strlen(ending);
    const bool found = *length > n && strncasecmp(path + *length - n, ending, n) == 0;
    *length -= found ? n : 0;
    return found;
}

bool cut_compression(const char *path, size_t *length)
{
#define CUT(ending) cut_ending(path, length, ending) ||
    return COMPRESSIONS(CUT) false;
#undef CUT
}

/* Whether the text is "name:rest" without a folder: then it is treated as a SPEC. */
static bool looks_like_spec(const char *text)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || strchr(text, '/') != NULL)
        return false;
    for (const char *c = text; c < colon; c++)
        if (!isalnum((unsigned char)*c))
            return false;
    return true;
}

/* The last component of the path without endings such as ".mtx" and ".tar.gz"; a SPEC unchanged. */
static spmv_status make_name(const char *argument, bool spec, char **name)
{
    static const char *const endings[] = {".tgz", ".tar", ".mtx",   ".spmv", ".npz",
                                          ".npy", ".mat", ".petsc", ".rb",   ".hb"};
    const char *slash = spec ? NULL : strrchr(argument, '/');
    const char *from = slash != NULL ? slash + 1 : argument;
    size_t length = strlen(from);
    while (!spec && cut_compression(from, &length))
        continue;
    for (size_t i = 0; !spec && i < sizeof endings / sizeof endings[0]; i++)
        cut_ending(from, &length, endings[i]);
    const spmv_status st = allocate("the matrix's name", (int64_t)length + 1, 1, (void **)name);
    if (st == SPMV_OK) {
        memcpy(*name, from, length);
        (*name)[length] = '\0';
    }
    return st;
}

static void remark_load(const struct input *in)
{
    static const char *const fields[] = {[SPMV_FIELD_REAL] = "real",
                                         [SPMV_FIELD_INTEGER] = "integer",
                                         [SPMV_FIELD_PATTERN] = "pattern",
                                         [SPMV_FIELD_COMPLEX] = "complex"};
    static const char *const symmetries[] = {[SPMV_SYMMETRY_GENERAL] = "general",
                                             [SPMV_SYMMETRY_SYMMETRIC] = "symmetric",
                                             [SPMV_SYMMETRY_SKEW] = "skew-symmetric",
                                             [SPMV_SYMMETRY_HERMITIAN] = "hermitian"};
    const spmv_read_info *info = &in->info;
    if (info->field != 0)
        remark(LEVEL_VERBOSE, "%s: %s %s %s, %lld entr%s, %lld of them added into another; %s read by %d thread%s",
               in->argument, info->array ? "array" : "coordinate", fields[info->field], symmetries[info->symmetry],
               (long long)info->entries, info->entries == 1 ? "y" : "ies", (long long)info->duplicates,
               bytes_text((double)info->bytes), info->threads, info->threads == 1 ? "" : "s");
}

/* The folder of the cache, if --cache or SPMV_CACHE requests one. SPMV_CACHE is 0 or empty (no
 * cache), 1 (the folder spmv in the user's cache folder), or a path with a slash, absolute or
 * relative to the current folder. */
static spmv_status cache_folder(const struct options *o, char **folder)
{
    const char *const asked = getenv("SPMV_CACHE");
    const bool path = asked != NULL && strchr(asked, '/') != NULL;
    const bool off = asked == NULL || asked[0] == '\0' || strcmp(asked, "0") == 0;
    char usual[4096];
    *folder = NULL;
    if (!o->cache && off)
        return SPMV_OK;
    if (!off && !path && strcmp(asked, "1") != 0) {
        complain("SPMV_CACHE is %s: must be 0, 1 or a path with a slash (./%s)", asked, asked);
        return SPMV_ERROR_ARGUMENT;
    }
    if (!path && !user_cache_folder(usual, sizeof usual))
        return report(SPMV_ERROR_ARGUMENT,
                      "no folder for a cache: none of SPMV_CACHE, XDG_CACHE_HOME and HOME is a path");
    const char *const name = path ? asked : usual;
    const spmv_status st = allocate("the cache's name", (int64_t)strlen(name) + 1, 1, (void **)folder);
    if (st == SPMV_OK)
        strcpy(*folder, name);
    return st;
}

/* Reads SPMV_MAX_UNPACKED_RATIO, for files that unpack to more than usual. 0: the library's
 * default. */
static spmv_status unpacked_ratio(int64_t *ratio)
{
    const char *const given = getenv("SPMV_MAX_UNPACKED_RATIO");
    long long number = 0;
    *ratio = 0;
    if (given == NULL || given[0] == '\0')
        return SPMV_OK;
    if (integer_read(given, &number) == INTEGER_READ && number > 0) {
        *ratio = number;
        return SPMV_OK;
    }
    complain("SPMV_MAX_UNPACKED_RATIO is %s: must be at least 1", given);
    return SPMV_ERROR_ARGUMENT;
}

spmv_status input_generate(spmv_context *ctx, const struct options *o, enum job_kind job, struct input *in)
{
    spmv_generate_options options;
    memory_limit(ctx, o, job, &in->memory);
    spmv_generate_options_init(&options, sizeof options);
    options.type = o->type;
    options.max_bytes = in->memory.allowed;
    options.job_bytes = in->memory.bytes;
    options.user = &in->memory;
    const double began = monotonic_seconds();
    const spmv_status st = spmv_matrix_generate_within(ctx, in->argument, &options, &in->matrix);
    in->seconds = monotonic_seconds() - began;
    progress_end();
    if (st != SPMV_OK)
        return memory_report(&in->memory, st, spmv_last_error(ctx));
    spmv_matrix_view(in->matrix, &in->view);
    return st;
}

static spmv_status read_whole(void *user, const char *path, const spmv_read_options *options, struct input *in)
{
    return spmv_matrix_read(user, path, options, &in->matrix, &in->info, sizeof in->info);
}

/* read: spmv_matrix_read, or another function that reads the file. share: the part of the available
 * memory that it may take is 1 / share. */
static spmv_status read_file(spmv_context *ctx, const struct options *o, enum job_kind job, bool comments,
                             input_read_fn read, void *user, int share, struct input *in)
{
    spmv_read_options options;
    char *folder = NULL;
    memory_limit(ctx, o, job, &in->memory);
    in->memory.allowed = share > 1 ? in->memory.allowed / share + 1 : in->memory.allowed;
    spmv_read_options_init(&options, sizeof options);
    options.type = option_given(o, "type") ? o->type : SPMV_TYPE_DEFAULT;
    options.max_bytes = in->memory.allowed;
    options.job_bytes = in->memory.bytes;
    options.user = &in->memory;
    spmv_status st = unpacked_ratio(&options.max_unpacked_ratio);
    if (st == SPMV_OK)
        st = cache_folder(o, &folder);
    if (st != SPMV_OK)
        return st;
    const double began = monotonic_seconds();
    options.cache_folder = folder;
    options.comments = comments;
    st = read(user, in->argument, &options, in);
    free(folder);
    in->seconds = monotonic_seconds() - began;
    progress_end();
    if (st != SPMV_OK)
        return memory_report(&in->memory, st, spmv_last_error(ctx));
    if (in->info.form[0] != '\0')
        in->source = in->info.form;
    spmv_matrix_view(in->matrix, &in->view);
    return st;
}

/* With -v: prints the memory that the job is expected to need. */
static void remark_memory(const struct input *in)
{
    const struct memory *const m = &in->memory;
    if (m->needed > 0)
        remark(LEVEL_VERBOSE, "memory: the whole job needs about %s; %s are allowed (%s)",
               bytes_text((double)m->needed + (double)m->used), bytes_text((double)m->allowed + (double)m->used),
               m->limit);
}

static spmv_status load(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                        bool comments, input_read_fn read, void *user, int share, struct input *in)
{
    const bool spec = !file_exists(argument) && (spmv_spec_known(argument) || looks_like_spec(argument));
    *in = (struct input){.argument = argument, .source = spec ? "spec" : "mtx"};
    spmv_status st = make_name(argument, spec, &in->name);
    if (st != SPMV_OK)
        return st;
    st = spec ? input_generate(ctx, o, job, in) : read_file(ctx, o, job, comments, read, user, share, in);
    if (st != SPMV_OK)
        return st;
    remark_memory(in);
    remark_load(in);
    return SPMV_OK;
}

spmv_status input_load(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       struct input *in)
{
    return load(ctx, o, job, argument, false, read_whole, ctx, 1, in);
}

spmv_status input_load_with_comments(spmv_context *ctx, const struct options *o, enum job_kind job,
                                     const char *argument, struct input *in)
{
    return load(ctx, o, job, argument, true, read_whole, ctx, 1, in);
}

spmv_status input_read(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       input_read_fn read, void *user, int share, struct input *in)
{
    return load(ctx, o, job, argument, false, read, user, share, in);
}

spmv_type input_type(const struct options *o, const struct input *in)
{
    return in->view.val != NULL && type_is_complex(in->view.type) ? in->view.type : o->type;
}

spmv_status input_needs_real(const struct input *in, const char *command)
{
    if (in->view.val == NULL || !type_is_complex(in->view.type))
        return SPMV_OK;
    complain("%s holds complex values: %s computes in f64 and f32", in->argument, command);
    return SPMV_ERROR_TYPE;
}

void input_free(struct input *in)
{
    spmv_matrix_destroy(in->matrix);
    free(in->name);
}

spmv_status vector_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                        const char *why_n, void **host_values)
{
    int64_t length = 0;
    const spmv_status st = spmv_vector_read(ctx, path, type, host_values, &length);
    progress_end();
    if (st != SPMV_OK)
        return report(st, spmv_last_error(ctx));
    if (length == n)
        return SPMV_OK;
    complain("%s has %lld number%s, %s needs %lld: %s", path, (long long)length, plural(length), what, (long long)n,
             why_n);
    spmv_host_free(*host_values);
    *host_values = NULL;
    return SPMV_ERROR_SIZE;
}

/* The first line of a file, without its end; "" if there is none. */
static void first_line(const char *path, char *line, size_t size)
{
    FILE *const file = strcmp(path, "-") != 0 && !spmv_spec_known(path) ? fopen(path, "re") : NULL;
    line[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    fclose(file);
}

bool looks_like_matrix(const char *path)
{
    static const char banner[] = "%%MatrixMarket matrix coordinate";
    char line[128];
    if (!file_exists(path))
        return spmv_spec_known(path);
    first_line(path, line, sizeof line);
    return strncasecmp(line, banner, sizeof banner - 1) == 0;
}

bool looks_like_numbers(const char *path)
{
    char line[128], *end = NULL;
    first_line(path, line, sizeof line);
    (void)strtod(line, &end);
    return end != line;
}

/* Complains of a wrong number of rows or vectors. */
static spmv_status check_vectors(const char *path, int64_t rows, int64_t cols, int64_t n, int k, const char *what,
                                 const char *why_n)
{
    if (rows != n)
        complain("%s has %lld x %lld numbers, %s needs %lld row%s: %s", path, (long long)rows, (long long)cols, what,
                 (long long)n, plural(n), why_n);
    else if (cols < 1 || cols > INT32_MAX)
        complain("%s has %lld vectors: at most %d are possible, at least 1", path, (long long)cols, INT32_MAX);
    else if (k > 0 && cols != k)
        complain("%s has %lld vector%s, %s needs %d", path, (long long)cols, plural(cols), what, k);
    else
        return SPMV_OK;
    return SPMV_ERROR_SIZE;
}

spmv_status vectors_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                         const char *why_n, void **host_values, int *k)
{
    int64_t rows = 0, cols = 0;
    spmv_status st = spmv_vectors_read(ctx, path, type, host_values, &rows, &cols);
    progress_end();
    if (st != SPMV_OK)
        return report(st, spmv_last_error(ctx));
    if (rows == 1 && n != 1 && cols == n) { /* a row of n numbers has the same bytes as a column */
        rows = n;
        cols = 1;
    }
    if (rows != n && (rows == 1 || cols == 1)) {
        complain("%s has %lld number%s, %s needs %lld: %s", path, (long long)(rows * cols), plural(rows * cols), what,
                 (long long)n, why_n);
        st = SPMV_ERROR_SIZE;
    } else {
        st = check_vectors(path, rows, cols, n, *k, what, why_n);
    }
    if (st == SPMV_OK) {
        *k = (int)cols;
        return SPMV_OK;
    }
    spmv_host_free(*host_values);
    *host_values = NULL;
    return st;
}

void known_elements(spmv_type type, int64_t first, int64_t count, bool random, void *host_values)
{
    const int parts = type_parts(type);
    for (int64_t i = 0; i < count * parts; i++)
        real_set(type_part(type), host_values, i,
                 random ? (double)(int64_t)splitmix_at(1, first * parts + i) * 0x1p-63 : i % parts == 0);
}

spmv_status known_vector(spmv_type type, int64_t n, bool random, void **host_values)
{
    const spmv_status st = allocate(random ? "the solution" : "a vector of ones", n, spmv_type_size(type), host_values);
    if (st == SPMV_OK)
        known_elements(type, 0, n, random, *host_values);
    return st;
}

json_t *json_load(const struct input *in)
{
    json_t *load = json_object();
    const bool read = strcmp(in->source, "spec") != 0;
    if (read)
        json_put(load, "bytes", json_integer((json_int_t)in->info.bytes));
    json_put(load, "seconds", json_number(in->seconds));
    json_put(load, "source", json_string(in->source));
    json_put(load, "memory_estimate", json_integer((json_int_t)(in->memory.used + in->memory.needed)));
    json_put(load, "memory_peak", json_integer((json_int_t)memory_peak()));
    if (read)
        json_put(load, "threads", json_integer(in->info.threads));
    return load;
}

json_t *json_about(const struct options *o, const spmv_context *ctx, const struct input *in, const spmv_statistics *s)
{
    json_t *root = json_begin(o);
    json_put(root, "machine", json_machine(spmv_context_threads(ctx)));
    json_put(root, "matrix",
             s != NULL
                 ? json_matrix(in->name, s)
                 : json_pack("{s:o, s:I, s:I, s:I}", "name", json_text(in->name != NULL ? in->name : in->argument),
                             "rows", (json_int_t)in->view.rows, "cols", (json_int_t)in->view.cols, "nnz",
                             (json_int_t)in->view.nnz));
    json_put(root, "load", json_load(in));
    return root;
}

int64_t row_begin(const spmv_csr *a, int64_t row)
{
    return a->row_ptr_bits == 64 ? ((const int64_t *)a->row_ptr)[row] : ((const int32_t *)a->row_ptr)[row];
}
