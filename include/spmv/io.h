/* Files: reading and writing matrices and vectors, in Matrix Market format and in a binary format.
 *
 *     spmv_matrix *matrix;
 *     spmv_csr a;
 *     if (spmv_matrix_read(ctx, "A.mtx", NULL, &matrix, NULL, 0) != SPMV_OK)
 *         fprintf(stderr, "%s\n", spmv_last_error(ctx));
 *     spmv_matrix_view(matrix, &a);
 *
 * When a function refuses a file, the message names file, line, column and reason: "A.mtx:17:5:
 * column 9 exceeds the 8 columns declared on line 3". docs/formats.md says in full what is read,
 * refused and written.
 *
 * Source of the format: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market exchange
 * formats: initial design", NISTIR 5935, 1996.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_IO_H
#define SPMV_IO_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

/* The field of a Matrix Market file: the kind of its values. */
typedef enum spmv_field {
    SPMV_FIELD_REAL = 1,
    SPMV_FIELD_INTEGER = 2,
    SPMV_FIELD_PATTERN = 3,
    SPMV_FIELD_COMPLEX = 4
} spmv_field;

/* The symmetry of a Matrix Market file. */
typedef enum spmv_symmetry {
    SPMV_SYMMETRY_GENERAL = 1,
    SPMV_SYMMETRY_SYMMETRIC = 2,
    SPMV_SYMMETRY_SKEW = 3,
    SPMV_SYMMETRY_HERMITIAN = 4
} spmv_symmetry;

typedef struct spmv_read_options {
    size_t size; /* sizeof(spmv_read_options), set by spmv_read_options_init */

    /* The type of the values: SPMV_F64, SPMV_F32, SPMV_C128 or SPMV_C64. Decimal numbers are
     * rounded correctly to it. Real values can be read as complex ones, complex values not as real
     * ones (SPMV_ERROR_TYPE). Default SPMV_TYPE_DEFAULT: SPMV_C128 for complex values, else
     * SPMV_F64. */
    spmv_type type;

    /* Memory limit in bytes. A file that needs more gives SPMV_ERROR_MEMORY. Files that are mapped
     * (the binary format, a cached matrix) do not count. Default 0: the physical memory of the
     * machine. */
    int64_t max_bytes;

    /* Limits for the text of a compressed file: its length in bytes, and its length divided by the
     * bytes of the file. The first 16 MiB are exempt from the ratio. Of stacked compressions each
     * is limited. A longer text gives SPMV_ERROR_LIMIT. Defaults 0: any length, and a ratio of
     * 300. */
    int64_t max_unpacked_bytes;
    int64_t max_unpacked_ratio;

    /* A folder that keeps matrices in binary format; it is created with mode 0700 if it is missing.
     * A file that was read before is taken from there. The folder is used only if it is not a
     * symbolic link, belongs to the effective user and no other user can write to it; otherwise a
     * warning event says why not. Default NULL or "": no cache. */
    const char *cache_folder;

    /* Returns the bytes to compare with max_bytes. Default NULL: the memory that reading takes. */
    spmv_job_bytes_fn job_bytes;

    void *user;   /* passed to job_bytes; default NULL */
    int comments; /* 1: keep the comments before the size line (spmv_matrix_comments); default 0 */
} spmv_read_options;

/* Fills options with the defaults. size: sizeof(spmv_read_options). */
SPMV_API void spmv_read_options_init(spmv_read_options *options, size_t size);

/* Facts about a file that was read. */
typedef struct spmv_read_info {
    size_t size;            /* of this struct in bytes */
    int64_t bytes;          /* bytes of text, unpacked, or of binary data */
    double seconds;         /* time of the call */
    int threads;            /* OpenMP threads of the context */
    int64_t entries;        /* entries stored in the file */
    int64_t duplicates;     /* entries that were added to another one at the same place */
    int array;              /* 1: array format, 0: coordinate format */
    spmv_field field;       /* real, integer, pattern or complex */
    spmv_symmetry symmetry; /* general, symmetric, skew-symmetric or hermitian */
    char form[16];          /* of the file: "mtx", "gz", "xz", "zst", "bz2", "tar", "tar.gz", ...,
                               "binary", "hb", "rb", "petsc", "npy", "npz", "mat", "mat7.3"; "cache":
                               taken from the cache, with the other facts and the warnings of the
                               first reading */
} spmv_read_info;

/* Reads a matrix file into CSR in host memory.
 *
 * The file is in Matrix Market format (coordinate or array; real, integer, complex or pattern;
 * general, symmetric, skew-symmetric or hermitian) or in the binary format. A file that begins as
 * gzip, xz, zstd, bzip2 or tar is unpacked while it is parsed, whatever its name. Files of
 * Harwell-Boeing, Rutherford-Boeing, PETSc, NumPy, SciPy and MATLAB are recognised by their contents
 * (docs/formats.md).
 *   - Of a symmetric, skew-symmetric or hermitian file the other triangle is filled in.
 *   - Columns are sorted in each row. Entries at the same place are added in the order of the file.
 *   - Explicit zeros of a coordinate file are kept, those of an array are dropped.
 *   - A pattern file gives a matrix without values.
 *   - Warning events are sent for infinities, NaN, integers that had to be rounded, and entries of
 *     a symmetric file that were added to their mirror image.
 *
 *   path       "-": standard input. Of a tar archive NAME.tar.gz the member NAME.mtx is read, or
 *              one in a folder NAME, else the only member that ends in .mtx. "archive:member" reads
 *              another member: give its path, its name with or without .mtx, or "_b" for
 *              NAME_b.mtx. "A.mat:NAME" is a variable of a MATLAB file, "A.npz:NAME" an array.
 *   options    NULL means defaults
 *   *matrix    the matrix; NULL after an error
 *   info       facts about the file; may be NULL
 *   info_size  sizeof(spmv_read_info)
 *
 * Errors: SPMV_ERROR_OPEN, SPMV_ERROR_READ, SPMV_ERROR_CHANGED, SPMV_ERROR_FORMAT,
 * SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE (complex values as real ones), SPMV_ERROR_UNSUPPORTED (a
 * compressed file without libarchive), SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, SPMV_CANCELLED.
 * Determinism: the matrix does not depend on the number of threads. */
SPMV_API spmv_status spmv_matrix_read(spmv_context *ctx, const char *path, const spmv_read_options *options,
                                      spmv_matrix **matrix, spmv_read_info *info, size_t info_size);

/* The comments before the size line of the file that the matrix was read from, if it was read with
 * the option comments. Each line begins with a percent sign and ends with a line end. "" if there
 * are none, and for NULL. Valid until the matrix is destroyed. */
SPMV_API const char *spmv_matrix_comments(const spmv_matrix *matrix);

/* Writes a matrix to a file. The ending of the name, in upper or lower case, selects the format:
 *
 *   .spmv                    the binary format: the same bits; columns must ascend in each row
 *   .npz, .mat, .petsc       SciPy, MATLAB 5, PETSc: the same bits, f32 as f64 but in .npz
 *   .rb, .hb                 Rutherford-Boeing, Harwell-Boeing
 *   .gz, .xz, .zst, .bz2     after one of these but .spmv, or alone (Matrix Market): compressed
 *   .zip, .tar.gz, .spmv.gz  and other archives and compressions: SPMV_ERROR_ARGUMENT
 *   any other                Matrix Market
 *
 * The Matrix Market form is coordinate, general; real, complex or pattern. Numbers have the fewest
 * digits that read back to the same bits. Columns may be in any order. Infinities and NaN are
 * possible in the binary format only.
 *
 * The file is written under a temporary name "spmv-....part" in the same folder and then renamed,
 * so an existing file survives a failure. The new file takes over owner, group and permissions of
 * the file it replaces, but no set-user-id or set-group-id bit. If the group cannot be kept, the
 * new group gets no more permissions than other users had.
 *
 *   a     in host memory
 *   path  "-": standard output
 *
 * Errors: SPMV_ERROR_SIZE (not a valid CSR matrix), SPMV_ERROR_UNSUPPORTED (infinities or NaN in
 * Matrix Market, columns that do not ascend in the binary format, a compression that libarchive
 * lacks), SPMV_ERROR_TYPE, SPMV_ERROR_LIMIT, SPMV_ERROR_OPEN, SPMV_ERROR_WRITE (errno has the
 * reason: EPIPE, ENOSPC, ..., EFBIG if the program ignores SIGXFSZ), SPMV_ERROR_ARGUMENT (also: the
 * ending of the name), SPMV_ERROR_MEMORY, SPMV_CANCELLED.
 * Determinism: the same matrix gives the same bytes. */
SPMV_API spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path);

typedef struct spmv_write_options {
    size_t size; /* sizeof(spmv_write_options), set by spmv_write_options_init */

    /* The symmetry of the file. Other than general: Matrix Market gets the lower triangle only.
     * Reading it must give the upper triangle bit by bit, otherwise SPMV_ERROR_NOT_SYMMETRIC. Real
     * values with SPMV_SYMMETRY_HERMITIAN are written as symmetric. Default
     * SPMV_SYMMETRY_GENERAL. */
    spmv_symmetry symmetry;

    /* Lines of comments, written after the banner. A line without a percent sign gets one. Default
     * NULL: none. */
    const char *comments;
} spmv_write_options;

/* Fills options with the defaults. size: sizeof(spmv_write_options). */
SPMV_API void spmv_write_options_init(spmv_write_options *options, size_t size);

/* Writes a matrix as spmv_matrix_write does, with options. The binary format stores both triangles,
 * and the symmetry and comments at its end, where spmv_matrix_read finds them.
 *
 *   options  NULL means defaults
 * Other parameters: as for spmv_matrix_write.
 *
 * Errors: those of spmv_matrix_write; SPMV_ERROR_NOT_SYMMETRIC (the matrix does not have the
 * symmetry), SPMV_ERROR_UNSUPPORTED (also: columns that do not ascend, with a symmetry). */
SPMV_API spmv_status spmv_matrix_write_as(spmv_context *ctx, const spmv_csr *a, const char *path,
                                          const spmv_write_options *options);

/* Checks, without access to the file system, whether matrices and vectors can be written to a file
 * of this name, and vectors with this format.
 *
 *   path    as for spmv_matrix_write
 *   format  as for spmv_vector_write; NULL: none
 *
 * Errors: SPMV_ERROR_ARGUMENT and SPMV_ERROR_UNSUPPORTED, as from spmv_vector_write. */
SPMV_API spmv_status spmv_output_check(spmv_context *ctx, const char *path, const char *format);

/* Reads a vector from a file, compressed or not. The file is one of these:
 *   - Plain text: one number per line. Blank lines and lines that begin with % or # are skipped.
 *     For a complex type there may be two numbers per line, real and imaginary part, if the first
 *     line with numbers has two.
 *   - Matrix Market: array or coordinate, n x 1 or 1 x n. Entries that a coordinate file does not
 *     list are 0.
 *   - The binary format of vectors.
 *   - A file of another program: see spmv_matrix_read.
 * Real numbers read as a complex type have imaginary parts of 0.
 *
 *   path          as for spmv_matrix_read
 *   type          SPMV_F64, SPMV_F32, SPMV_C64 or SPMV_C128
 *   *host_values  the vector, to be released with spmv_host_free; NULL after an error
 *   *n            the number of elements
 *
 * Errors: those of spmv_matrix_read, and SPMV_ERROR_SIZE (more than one row and column). */
SPMV_API spmv_status spmv_vector_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                      int64_t *n);

/* Releases what spmv_vector_read or spmv_vectors_read returned. Does nothing for NULL. */
SPMV_API void spmv_host_free(void *host_memory);

/* Reads k vectors of n numbers from one file. They are stored by rows: element i of vector v is
 * (*host_values)[k * i + v], as plans with the option vectors = k expect it.
 *
 * The file is plain text with the same number of numbers on each line, or Matrix Market or binary
 * of size n x k. A line of text has k numbers. For a complex type it has 2 k numbers, real and
 * imaginary parts in turn; lines with one number are real numbers, k = 1. One line of k numbers
 * gives n = 1.
 *
 *   *host_values  k n numbers, to be released with spmv_host_free; NULL after an error
 *   *n, *k        the length and the number of vectors
 * Other parameters and errors: as for spmv_vector_read. */
SPMV_API spmv_status spmv_vectors_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                       int64_t *n, int64_t *k);

/* Writes a vector to a file. The ending of the name selects the format as for spmv_matrix_write,
 * except that only .mtx (also compressed: .mtx.gz) gives Matrix Market, an array n x 1, and that
 * .npy gives an array of NumPy; .rb and .hb are SPMV_ERROR_ARGUMENT. Any other
 * name gives plain text, one number per line; complex numbers have both parts, separated by a
 * blank. spmv_vector_read reads all of these.
 *
 *   path         "-": standard output, plain text
 *   type         SPMV_F64, SPMV_F32, SPMV_C64 or SPMV_C128
 *   host_values  n numbers
 *   format       NULL: the fewest digits that read back to the same bits. Else a printf format with
 *                one floating-point conversion ("%.6g"), in Matrix Market without other text; not
 *                for the binary format.
 *
 * Infinities and NaN are written; in Matrix Market they give a warning event.
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: the format, the ending of the name), SPMV_ERROR_TYPE,
 * SPMV_ERROR_OPEN, SPMV_ERROR_WRITE (errno has the reason), SPMV_ERROR_UNSUPPORTED (a compression
 * that libarchive lacks), SPMV_ERROR_MEMORY, SPMV_CANCELLED. */
SPMV_API spmv_status spmv_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                       int64_t n, const char *format);

/* Writes k vectors of n numbers to one file: k numbers per line, a Matrix Market array n x k (which
 * is stored by columns), or the binary format.
 *
 *   host_values  k n numbers, stored by rows as spmv_vectors_read returns them
 * Other parameters and errors: as for spmv_vector_write. */
SPMV_API spmv_status spmv_vectors_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                        int64_t n, int64_t k, const char *format);

/* A file with any contents that appears complete or not at all: it is written and renamed as
 * spmv_matrix_write does. A path that is not a regular file (a FIFO, a device) is written directly.
 * The ending of the name has no meaning. */
typedef struct spmv_file spmv_file;

/* Creates a file.
 *
 *   ctx    must outlive the file
 *   path   "-": standard output
 *   *file  NULL after an error
 *
 * Errors: SPMV_ERROR_OPEN, SPMV_ERROR_WRITE (standard output), SPMV_ERROR_MEMORY,
 * SPMV_ERROR_ARGUMENT. */
SPMV_API spmv_status spmv_file_create(spmv_context *ctx, const char *path, spmv_file **file);

/* Appends n bytes. After a failed write every later call returns the same status.
 *
 *   bytes  n bytes; may be NULL if n is 0
 *
 * Errors: SPMV_ERROR_WRITE, SPMV_ERROR_ARGUMENT, SPMV_CANCELLED. */
SPMV_API spmv_status spmv_file_write(spmv_file *file, const void *bytes, int64_t n);

/* Closes and releases the file.
 *
 *   file  NULL: nothing is done
 *   keep  not 0: the file gets its name, unless a write failed. 0: the new file is removed. An
 *         existing file of that name is replaced only if the new one is kept.
 *
 * Returns with keep the status of the first write that failed, SPMV_ERROR_WRITE if the file cannot
 * be completed, or SPMV_OK; without keep SPMV_OK. */
SPMV_API spmv_status spmv_file_close(spmv_file *file, int keep);

/* Removes the unfinished files (at most 64 at a time) that this process is writing, in all
 * contexts. It is async-signal-safe: a handler for a signal that ends the program may call it. A
 * write that continues after it fails at its end. */
SPMV_API void spmv_remove_unfinished(void);

SPMV_END_DECLS

#endif
