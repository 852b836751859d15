/* Matrices and vectors: from files, standard input and SPECs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_INPUT_H
#define APP_INPUT_H

#include <jansson.h>
#include <spmv/io.h>
#include <stdbool.h>

#include "app/job_memory.h"
#include "app/options.h"

struct input {
    const char *argument; /* as given */
    char *name;           /* the file's name without folder and ending, or the SPEC */
    const char *source;   /* "spec", or the form of the file: "mtx", "gz", "tar.gz" ... */
    spmv_matrix *matrix;
    spmv_csr view; /* host memory */
    spmv_read_info info;
    double seconds;
    struct memory memory;
};

/* Loads a file, "-" or a SPEC. A complex file is read as c128 unless --type is given. job: the use
 * of the matrix, whose memory is checked before large allocations. */
spmv_status input_load(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       struct input *in);

/* Generates the matrix of a SPEC; its name must be set. Part of input_load. */
spmv_status input_generate(spmv_context *ctx, const struct options *o, enum job_kind job, struct input *in);

/* As input_load; in->matrix keeps the comments of the file. */
spmv_status input_load_with_comments(spmv_context *ctx, const struct options *o, enum job_kind job,
                                     const char *argument, struct input *in);

/* As input_load, with another function that reads a file: it sets in->info, and in->matrix or
 * nothing. The available memory is divided by share. */
typedef spmv_status (*input_read_fn)(void *user, const char *path, const spmv_read_options *options, struct input *in);
spmv_status input_read(spmv_context *ctx, const struct options *o, enum job_kind job, const char *argument,
                       input_read_fn read, void *user, int share, struct input *in);

/* The type of products with the matrix: its complex type, or the type of --type. */
spmv_type input_type(const struct options *o, const struct input *in);

/* Complains of a complex matrix, for a command (its name) that needs a real one. */
spmv_status input_needs_real(const struct input *in, const char *command);
void input_free(struct input *in);

/* The first entry of the row, for a matrix in host memory. */
int64_t row_begin(const spmv_csr *a, int64_t row);

json_t *json_load(const struct input *in);

/* json_begin with machine, matrix and load: the common part of all results about a matrix. s: NULL if
 * they are unknown. */
json_t *json_about(const struct options *o, const spmv_context *ctx, const struct input *in, const spmv_statistics *s);

/* Loads a vector, which must have n numbers. what: "x"; why_n: "the 5 columns of A.mtx". */
spmv_status vector_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                        const char *why_n, void **host_values);

/* Loads vectors of n numbers each, stored row by row. *k: their number; if *k > 0 on entry, the
 * required number. One row of n numbers is a vector. */
spmv_status vectors_load(spmv_context *ctx, const char *path, spmv_type type, int64_t n, const char *what,
                         const char *why_n, void **host_values, int *k);

/* Elements first to first + count of a known vector: ones, or with `random` fixed pseudo-random
 * numbers in [-1, 1). */
void known_elements(spmv_type type, int64_t first, int64_t count, bool random, void *host_values);

/* Its first n elements; release with free. */
spmv_status known_vector(spmv_type type, int64_t n, bool random, void **host_values);

/* Whether the name is a SPEC or the file begins like a sparse matrix in the Matrix Market format;
 * like plain numbers, one or more in a line. Files that are packed are neither. */
bool looks_like_matrix(const char *path);
bool looks_like_numbers(const char *path);

/* Whether a file of that name exists (or the name is "-"). */
bool file_exists(const char *path);

/* Removes the ending from the length of path, in upper or lower case, after a non-empty name.
 * False: path has another ending. */
bool cut_ending(const char *path, size_t *length, const char *ending);

/* The same for the endings of compressed files, which are listed here and, for the library, in
 * formats/io/packed/compressions.h. */
#define COMPRESSIONS(X) X(".gz") X(".xz") X(".zst") X(".bz2")
bool cut_compression(const char *path, size_t *length);

#endif
