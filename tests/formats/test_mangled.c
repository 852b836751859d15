/* Malformed files: tests/data/mangled has at least one file for each error of the readers. Each
 * line of expected.tsv has a file, how to read it, and the expected status, line, column (0: none)
 * and message. Every file must be in that table and in docs/formats.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>

#include "formats/io/packed/packed.h"
#include "tests/support/support_io.h"

enum { CASES = 256, FIELDS = 6, MAX_BYTES = 1 << 20 };

struct mangled {
    char *file, *how, *status, *line, *column, *sentence;
};

static struct mangled cases[CASES];
static int count;
static char *table, *documentation, mangled_folder[512];

static int read_table(void **state)
{
    (void)state;
    size_t bytes = 0;
    char path[600];
    snprintf(mangled_folder, sizeof mangled_folder, "%s/tests/data/mangled", support_source_dir());
    snprintf(path, sizeof path, "%s/expected.tsv", mangled_folder);
    table = get_file(path, &bytes);
    snprintf(path, sizeof path, "%s/docs/formats.md", support_source_dir());
    documentation = get_file(path, &bytes);
    char *next = NULL;
    for (char *line = strtok_r(table, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        char *field[FIELDS], *rest = NULL;
        if (line[0] == '#')
            continue;
        for (int f = 0; f < FIELDS; f++) {
            field[f] = strtok_r(f == 0 ? line : NULL, "\t", &rest);
            if (field[f] == NULL || count == CASES)
                return 1;
        }
        cases[count++] = (struct mangled){field[0], field[1], field[2], field[3], field[4], field[5]};
    }
    return count == 0;
}

static int free_table(void **state)
{
    (void)state;
    support_free(table, documentation);
    return 0;
}

static bool is_packed(const char *name)
{
    return strstr(name, ".tar") != NULL || strstr(name, ".gz") != NULL || strstr(name, ".bz2") != NULL ||
           strstr(name, ".xz") != NULL;
}

static spmv_status read_matrix(spmv_context *ctx, const char *file, const char *how)
{
    spmv_read_options options;
    spmv_matrix *matrix = NULL;
    spmv_read_options_init(&options, sizeof options);
    if (strcmp(how, "f64") == 0)
        options.type = SPMV_F64;
    else if (strcmp(how, "f32") == 0)
        options.type = SPMV_F32;
    else if (strcmp(how, "memory") == 0)
        options.max_bytes = MAX_BYTES;
    else if (strcmp(how, "text") == 0)
        options.max_unpacked_bytes = 50;
    else
        assert_string_equal(how, "matrix");
    const spmv_status st = spmv_matrix_read(ctx, file, &options, &matrix, NULL, 0);
    assert_true((matrix == NULL) == (st != SPMV_OK));
    spmv_matrix_destroy(matrix);
    return st;
}

static spmv_status read_as(spmv_context *ctx, const char *file, const char *how)
{
    void *values = NULL;
    int64_t n = 0, k = 0;
    spmv_status st = SPMV_OK;
    if (strncmp(how, "vector", 6) != 0)
        return read_matrix(ctx, file, how);
    if (strcmp(how, "vector") == 0)
        st = spmv_vector_read(ctx, file, SPMV_F64, &values, &n);
    else
        st = spmv_vectors_read(ctx, file, strcmp(how, "vectors_c128") == 0 ? SPMV_C128 : SPMV_F64, &values, &n, &k);
    assert_true(values == NULL || st == SPMV_OK);
    spmv_host_free(values);
    return st;
}

static void check(spmv_context *ctx, const struct mangled *m, int threads)
{
    char expected[1600], path[1024];
    if (strcmp(m->line, "0") == 0)
        snprintf(expected, sizeof expected, "%s/%s: %s", mangled_folder, m->file, m->sentence);
    else
        snprintf(expected, sizeof expected, "%s/%s:%s:%s: %s", mangled_folder, m->file, m->line, m->column,
                 m->sentence);
    snprintf(path, sizeof path, "%s/%s", mangled_folder, m->file);
    const spmv_status st = read_as(ctx, path, m->how);
    const size_t length = strlen(expected);
    /* The text after "..." comes from another library. */
    const bool more = length > 3 && strcmp(expected + length - 3, "...") == 0;
    if (strcmp(spmv_status_name(st), m->status) != 0 ||
        (more ? strncmp(spmv_last_error(ctx), expected, length - 3) : strcmp(spmv_last_error(ctx), expected)) != 0)
        fail_msg("%s, %d threads: %s \"%s\" instead of %s \"%s\"", m->file, threads, spmv_status_name(st),
                 spmv_last_error(ctx), m->status, expected);
}

static void every_file_has_its_answer(void **state)
{
    (void)state;
    for (int t = 0; t < TEAMS; t++) {
        spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
        const bool unpacks = packed_available(ctx, "") == SPMV_OK;
        for (int c = 0; c < count; c++)
            if (unpacks || !is_packed(cases[c].file))
                check(ctx, &cases[c], teams[t]);
        spmv_context_destroy(ctx);
    }
}

static bool is_known(const char *name)
{
    for (int c = 0; c < count; c++)
        if (strcmp(cases[c].file, name) == 0)
            return true;
    return false;
}

static void every_file_is_in_table_and_documentation(void **state)
{
    (void)state;
    int files = 0;
    DIR *const dir = opendir(mangled_folder);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "expected.tsv") == 0)
            continue;
        files++;
        if (!is_known(entry->d_name))
            fail_msg("%s is not in expected.tsv", entry->d_name);
        char quoted[300];
        snprintf(quoted, sizeof quoted, "`%s`", entry->d_name);
        if (strstr(documentation, quoted) == NULL)
            fail_msg("%s is not in docs/formats.md", entry->d_name);
    }
    closedir(dir);
    assert_int_equal(files, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_has_its_answer),
        cmocka_unit_test(every_file_is_in_table_and_documentation),
    };
    return cmocka_run_group_tests(tests, read_table, free_table);
}
