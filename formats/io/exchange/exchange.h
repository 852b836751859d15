/* Files of other programs: Harwell-Boeing and Rutherford-Boeing, PETSc's binary form, NumPy and
 * SciPy (.npy, .npz), MATLAB (.mat).
 *
 * A reader decodes the bytes of a file into coordinates or into a dense array (struct exchange).
 * What follows is the same for all formats: checks of the symmetry, memory, conversion to CSR or to
 * vectors (exchange.c). A writer gives bytes in their order to a sink.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <spmv/io.h>

#include "formats/io/exchange/byte_order.h"
#include "formats/io/output_file.h"
#include "formats/io/text/text_source.h"
#include "formats/matrix_internal.h"

/* The bytes of a file, and what its reader found in them. */
struct exchange {
    spmv_context *ctx;
    struct text_source *source;
    const char *name;           /* of the file, for messages */
    const char *member;         /* the part after the colon of "A.mat:NAME"; NULL: none */
    const unsigned char *bytes; /* of the whole file, unpacked */
    int64_t size;
    bool vectors;   /* vectors are wanted, not a matrix */
    spmv_type part; /* decimal numbers are rounded to it: SPMV_F64 or SPMV_F32 */
    int64_t max_bytes;

    /* the result */
    const char *form; /* of spmv_read_info */
    spmv_field field;
    spmv_symmetry symmetry;
    int64_t rows, cols, entries;
    bool sums; /* the format adds entries at the same place; otherwise they are an error */
    /* dense: val has rows x cols numbers, row by row or column by column. Otherwise: lines, the pattern by rows or
     * (transposed) by columns, or row and col, the places of the entries. */
    bool dense, by_rows;
    spmv_matrix *lines; /* NULL: row and col */
    bool ascending;     /* in each of the lines, strictly */
    spmv_type type;     /* of val */
    void *row;          /* int64_t; host_free, as col and val */
    int32_t *col;
    void *val; /* NULL: a pattern */
};

/* SPMV_ERROR_FORMAT: "file: byte N: reason", N the offset of at; without an offset if at is not in
 * the file (NULL, or unpacked bytes). */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
spmv_status
exchange_fail(struct exchange *x, const void *at, const char *format, ...);

/* As context_fail, with the name of the file and the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
spmv_status
exchange_refuse(struct exchange *x, spmv_status status, const char *format, ...);

/* Sets rows and cols. SPMV_ERROR_FORMAT: negative; SPMV_ERROR_LIMIT: more columns than int32_t. */
spmv_status exchange_shape(struct exchange *x, const void *at, int64_t rows, int64_t cols);

/* Takes the indices of compressed rows (by_rows) or columns into lines: offsets, one more than the rows or columns, which
 * begin at 0, do not descend and end at index->n. offsets_what, index_what: their names in messages. */
spmv_status exchange_compressed(struct exchange *x, bool by_rows, const struct numbers *offsets,
                                const char *offsets_what, const struct numbers *index, const char *index_what);

/* Turns lines into row and col. */
spmv_status exchange_spread(struct exchange *x);

/* Takes row and column indices of entries. */
spmv_status exchange_coordinates(struct exchange *x, const struct numbers *row, const struct numbers *col);

/* Allocates row and col for n entries. SPMV_ERROR_MEMORY also above max_bytes. */
spmv_status exchange_allocate(struct exchange *x, int64_t n);

/* Takes the values; imaginary: their other parts, of MATLAB (NULL: none). Sets val, type and field. Integers that
 * f64 does not have give a warning. True alone makes a pattern. */
spmv_status exchange_values(struct exchange *x, const struct numbers *values, const struct numbers *imaginary);

/* ---------------------------------------------------------------- output */

/* Bytes on their way to a file, compressed in portions if its name says so. */
struct sink {
    struct output_file *output;
    enum compression compression;
    unsigned char *buffer;
    int64_t used;
    int64_t total; /* bytes so far */
};
enum { SINK_BYTES = 1 << 20 };

spmv_status sink_put(struct sink *sink, const void *bytes, int64_t n);
spmv_status sink_put_integer(struct sink *sink, int64_t value, int width, bool big);
/* n real numbers, as f64 if wide. */
spmv_status sink_put_reals(struct sink *sink, spmv_type type, const void *values, int64_t n, bool wide, bool big);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
spmv_status
sink_print(struct sink *sink, const char *format, ...);

/* A matrix to write. symmetry: the file stores the lower triangle, if the format can. */
struct exchange_matrix {
    spmv_context *ctx;
    const char *path;
    const spmv_csr *a; /* in host memory */
    spmv_symmetry symmetry;
};

/* n x k numbers to write, row by row. */
struct exchange_vectors {
    spmv_context *ctx;
    const char *path;
    spmv_type type;
    const void *values;
    int64_t n, k;
};

/* ---------------------------------------------------------------- formats */

struct exchange_format {
    const char *form; /* of spmv_read_info; "." form is the ending of its files */
    const char *name; /* "a MATLAB file" */
    bool has_members; /* "FILE:NAME" names a part */
    bool finite;      /* a text, which has no infinities and NaN */
    bool (*begins)(const unsigned char *head, int64_t bytes);
    spmv_status (*read)(struct exchange *x);
    spmv_status (*write_matrix)(const struct exchange_matrix *matrix, struct sink *sink);    /* NULL: not written */
    spmv_status (*write_vectors)(const struct exchange_vectors *vectors, struct sink *sink); /* NULL: not written */
};

/* The format of a file that begins with these bytes, and of one whose name has this length without the ending of a
 * compression; NULL: none. */
const struct exchange_format *exchange_begins(const unsigned char *head, int64_t bytes);
const struct exchange_format *exchange_ending(const char *path, size_t length);

/* *format: that of an open source, whose bytes stay unread; NULL: none of these. */
spmv_status exchange_find(struct text_source *source, const struct exchange_format **format);

/* Reads the rest of the source. fits: asked before the matrix is made, with what x holds and the bytes that exist and
 * those needed beside the matrix. type: as in spmv_read_options. Fills in info but time and threads. */
typedef spmv_status (*exchange_fits_fn)(const struct exchange *x, int64_t bytes, int64_t entries, spmv_type type,
                                        const void *user);
spmv_status exchange_read_matrix(struct text_source *source, const struct exchange_format *format, spmv_type type,
                                 int64_t max_bytes, exchange_fits_fn fits, const void *user, spmv_matrix **matrix,
                                 spmv_read_info *info);

/* Reads rows x cols numbers, row by row (host_free). */
spmv_status exchange_read_vectors(struct text_source *source, const struct exchange_format *format, spmv_type type,
                                  int64_t max_bytes, void **values, int64_t *rows, int64_t *cols);

/* Writes the file, which has the format's ending. */
spmv_status exchange_write_matrix(const struct exchange_format *format, enum compression compression,
                                  const struct exchange_matrix *matrix);
spmv_status exchange_write_vectors(const struct exchange_format *format, enum compression compression,
                                   const struct exchange_vectors *vectors);

/* The functions of each format. */
bool boeing_begins(const unsigned char *head, int64_t bytes);
spmv_status boeing_read(struct exchange *x);
spmv_status boeing_write(const struct exchange_matrix *matrix, struct sink *sink);
spmv_status boeing_write_rutherford(const struct exchange_matrix *matrix, struct sink *sink);
bool petsc_begins(const unsigned char *head, int64_t bytes);
spmv_status petsc_read(struct exchange *x);
spmv_status petsc_write_matrix(const struct exchange_matrix *matrix, struct sink *sink);
spmv_status petsc_write_vectors(const struct exchange_vectors *vectors, struct sink *sink);
bool npy_begins(const unsigned char *head, int64_t bytes);
spmv_status npy_read(struct exchange *x);
spmv_status npy_write_vectors(const struct exchange_vectors *vectors, struct sink *sink);
bool npz_begins(const unsigned char *head, int64_t bytes);
spmv_status npz_read(struct exchange *x);
spmv_status npz_write_matrix(const struct exchange_matrix *matrix, struct sink *sink);
spmv_status npz_write_vectors(const struct exchange_vectors *vectors, struct sink *sink);
bool mat_begins(const unsigned char *head, int64_t bytes);
spmv_status mat_read(struct exchange *x);
spmv_status mat_write_matrix(const struct exchange_matrix *matrix, struct sink *sink);
spmv_status mat_write_vectors(const struct exchange_vectors *vectors, struct sink *sink);
bool mat_hdf5_begins(const unsigned char *head, int64_t bytes);
spmv_status mat_hdf5_read(struct exchange *x);

#endif
