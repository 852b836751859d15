/* Shared by tests of files: contexts that count events, temporary files, matrices as small dense
 * texts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_IO_H
#define SUPPORT_IO_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/io/mtx/mtx_read.h"
#include "tests/support/support.h"

/* Events of a context, and the event at which to cancel. */
struct heard {
    pthread_t thread; /* the thread of the calls */
    int events, warnings, progress;
    int cancel_at; /* cancels at this event, counted from 1; 0: never */
    int64_t done, total;
    char warning[512];             /* the last */
    void (*at_first)(void *thing); /* called at the first event */
    void *thing;
};

static inline int hear(const spmv_event *event, void *user)
{
    struct heard *const heard = user;
    assert_true(pthread_equal(heard->thread, pthread_self()));
    if (event->kind == SPMV_EVENT_WARNING) {
        heard->warnings++;
        snprintf(heard->warning, sizeof heard->warning, "%s", event->text);
    } else {
        assert_true(event->done >= heard->done);
        heard->progress++;
        heard->done = event->done;
        heard->total = event->total;
    }
    if (++heard->events == 1 && heard->at_first != NULL)
        heard->at_first(heard->thing);
    return heard->events == heard->cancel_at;
}

static inline spmv_context *context_that_tells(int threads, struct heard *heard)
{
    heard->thread = pthread_self();
    return support_context_telling(threads, hear, heard);
}

enum { TEAMS = 4 };
static const int teams[TEAMS] = {1, 2, 3, 7};

/* The test on omp, with each of these numbers of threads. */
#define with_teams(test) with_omp(test, 1), with_omp(test, 2), with_omp(test, 3), with_omp(test, 7)

/* A temporary folder of the test. */
static char folder[64];

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/spmv_test_XXXXXX");
    return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails, and so the test, if a file is left in it */
}

/* A test with a temporary folder. */
#define in_a_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

/* The same, and a context on omp with this number of threads in *state. */
static inline int open_in_folder(void **state)
{
    return make_folder(state) != 0 ? 1 : support_open_omp(state);
}
static inline int close_in_folder(void **state)
{
    support_close(state);
    return remove_folder(state);
}
#define with_folder(test, threads)                                                                                     \
    cmocka_unit_test_prestate_setup_teardown(test, open_in_folder, close_in_folder, (void *)(intptr_t)(threads))

static inline const char *in_folder(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static inline void put_file(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static inline char *get_file(const char *path, size_t *bytes)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    char *text = calloc(1, (size_t)s.st_size + 1);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    *bytes = fread(text, 1, (size_t)s.st_size, f);
    fclose(f);
    return text;
}

/* Whether both have the same arrays, bit by bit. */
static inline bool same_matrix(const spmv_matrix *x, const spmv_matrix *y)
{
    spmv_csr a, b;
    spmv_matrix_view(x, &a);
    spmv_matrix_view(y, &b);
    const size_t n = (size_t)a.nnz;
    return a.rows == b.rows && a.cols == b.cols && a.nnz == b.nnz && a.type == b.type && !a.val == !b.val &&
           memcmp(a.row_ptr, b.row_ptr, ((size_t)a.rows + 1) * 8) == 0 &&
           (n == 0 || memcmp(a.col, b.col, n * sizeof *a.col) == 0) &&
           (n == 0 || a.val == NULL || memcmp(a.val, b.val, n * spmv_type_size(a.type)) == 0);
}

/* Real number k of the values; a complex entry has two. */
static inline double part_of_values(const spmv_csr *a, int64_t k)
{
    return a->type == SPMV_F32 || a->type == SPMV_C64 ? (double)((const float *)a->val)[k]
                                                      : ((const double *)a->val)[k];
}

/* The matrix as text, e.g. "1 . 2.5; . . 3": "." is not stored, "x" an entry of a pattern, "1-2i" a
 * complex value. */
static inline char *as_dense(const spmv_matrix *matrix, char *text, size_t bytes)
{
    spmv_csr a;
    size_t n = 0;
    spmv_matrix_view(matrix, &a);
    const int64_t *row_ptr = a.row_ptr;
    text[0] = '\0';
    for (int64_t i = 0; i < a.rows; i++) {
        int64_t k = row_ptr[i];
        for (int64_t j = 0; j < a.cols && n < bytes; j++) {
            const char *const space = j > 0 ? " " : i > 0 ? "; " : "";
            if (k == row_ptr[i + 1] || a.col[k] != j)
                n += (size_t)snprintf(text + n, bytes - n, "%s.", space);
            else if (a.val == NULL)
                n += (size_t)snprintf(text + n, bytes - n, "%sx", space), k++;
            else if (a.type == SPMV_C64 || a.type == SPMV_C128)
                n += (size_t)snprintf(text + n, bytes - n, "%s%.9g%+.9gi", space, part_of_values(&a, 2 * k),
                                      part_of_values(&a, 2 * k + 1)),
                    k++;
            else
                n += (size_t)snprintf(text + n, bytes - n, "%s%.9g", space, part_of_values(&a, k)), k++;
        }
        assert_int_equal(k, row_ptr[i + 1]); /* sorted, no duplicates */
    }
    return text;
}

#endif
