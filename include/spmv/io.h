/* Files: Matrix Market matrices and vectors, in and out. docs/formats.md says in full what is read
 * and refused.
 *
 * The format: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market exchange formats:
 * initial design", NISTIR 5935, 1996. Every function names file, line, column and reason when it
 * refuses: spmv_last_error(ctx) then reads "A.mtx:17:5: column 9 exceeds the 8 columns declared on
 * line 3".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_IO_H
#define SPMV_IO_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

typedef enum spmv_field {
    SPMV_FIELD_REAL = 1,
    SPMV_FIELD_INTEGER = 2,
    SPMV_FIELD_PATTERN = 3,
    SPMV_FIELD_COMPLEX = 4
} spmv_field;

typedef enum spmv_symmetry {
    SPMV_SYMMETRY_GENERAL = 1,
    SPMV_SYMMETRY_SYMMETRIC = 2,
    SPMV_SYMMETRY_SKEW = 3,
    SPMV_SYMMETRY_HERMITIAN = 4
} spmv_symmetry;

typedef struct spmv_read_options {
    size_t size;
    spmv_type type;              /* of the values: SPMV_F64, SPMV_F32, SPMV_C128 or SPMV_C64; default
                                   SPMV_TYPE_DEFAULT: SPMV_C128 for complex values, else SPMV_F64.
                                   Decimal numbers are correctly rounded to it. Real values are read
                                   as complex ones too, complex values as real ones never
                                   (SPMV_ERROR_TYPE). */
    int64_t max_bytes;           /* refuse (SPMV_ERROR_MEMORY) what needs more memory; default 0: the
                                   machine's physical memory. What is mapped and used where it lies
                                   (the binary form, a cached matrix) does not count. */
    int64_t max_unpacked_bytes;  /* refuse (SPMV_ERROR_LIMIT) a longer text of a packed file; default
                                   0: any length */
    int64_t max_unpacked_ratio;  /* and one longer than so many times its packed bytes, stacked
                                   compressions included; default 0: 300 */
    const char *cache_folder;    /* a folder that keeps matrices in binary form, made with mode 0700
                                   where it is missing: a file that was read before is taken from
                                   there. Used only where it is no link, belongs to the effective
                                   user and is closed to the writing of others (else a warning
                                   event). default NULL or "": no cache */
    spmv_job_bytes_fn job_bytes; /* the bytes to compare with max_bytes; default NULL: the memory
                                    that reading takes */
    void *user;                  /* passed to job_bytes */
    int comments;                /* 1: keep the comments before the size line, for
                                    spmv_matrix_comments; default 0 */
} spmv_read_options;

SPMV_API void spmv_read_options_init(spmv_read_options *options, size_t size);

typedef struct spmv_read_info {
    size_t size;
    int64_t bytes; /* of text */
    double seconds;
    int threads;
    int64_t entries;    /* stored in the file */
    int64_t duplicates; /* entries added into another */
    int array;          /* 1: array format, 0: coordinate */
    spmv_field field;
    spmv_symmetry symmetry;
    char form[16]; /* of the file: "mtx", "gz", "xz", "zst", "bz2", "tar", "tar.gz" ..., "binary";
                      "cache": one that was kept; the other facts, and the warnings, are those of
                      the file's reading */
} spmv_read_info;

/* Reads a Matrix Market file into CSR in host memory.
 *
 * A file that begins as one of gzip, xz, zstd or bzip2 is unpacked while it is parsed. Coordinate
 * and array; real, integer, complex, pattern; general, symmetric, skew-symmetric, hermitian: the
 * other triangle is filled in. Columns come out sorted; duplicates are added in file order;
 * explicit zeros of the coordinate form are kept, zeros of the array form are dropped. Pattern
 * matrices hold no values. Infinities, NaN, integers that had to be rounded and entries added to
 * their mirror give a warning event.
 *
 * path: "-" means standard input. Of a tar archive the matrix is read: NAME.mtx in NAME.tar.gz or
 * in a folder NAME. With a path "archive:member" it is that member: its path, its name with or
 * without .mtx, or "_b" for NAME_b.mtx. options: NULL means defaults. *matrix: NULL after an error.
 * info: may be NULL; info_size: sizeof(spmv_read_info) as the caller sees it.
 *
 * Errors: SPMV_ERROR_OPEN, SPMV_ERROR_READ, SPMV_ERROR_CHANGED, SPMV_ERROR_FORMAT,
 * SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE (a complex file as real), SPMV_ERROR_UNSUPPORTED (packed files
 * without libarchive), SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, SPMV_CANCELLED. The matrix does not
 * depend on the number of threads. */
SPMV_API spmv_status spmv_matrix_read(spmv_context *ctx, const char *path, const spmv_read_options *options,
                                      spmv_matrix **matrix, spmv_read_info *info, size_t info_size);

/* The comments of the file that the matrix was read from, with the option comments: lines, each with
 * its percent sign and a line end. "" when there are none, and for NULL. Valid until the matrix is
 * destroyed. */
SPMV_API const char *spmv_matrix_comments(const spmv_matrix *matrix);

/* Writes a matrix as a Matrix Market coordinate file, general, real, complex or pattern, with the
 * fewest digits that read back to the same bits. The same matrix gives the same bytes.
 *
 * a: in host memory. path: "-" means standard output. The ending of the name, in upper or lower
 * case, decides the form: .gz, .xz, .zst and .bz2 compress the text; .spmv is the binary form, bit
 * by bit: columns must ascend in each row there (a text takes any order), infinities and NaN are
 * possible there alone. Other endings of packed files (.zip, .tar.gz, .spmv.gz) are refused.
 *
 * The file is written beside its place, under a name "spmv-....part", and renamed: an existing file
 * survives a failure. The new file takes over owner, group and permissions of the one it replaces,
 * but never a set-id bit; where the group cannot be kept, the new group gets no more than all others
 * had.
 *
 * Errors: SPMV_ERROR_SIZE (no valid CSR), SPMV_ERROR_UNSUPPORTED (infinities or NaN in a text,
 * columns that do not ascend in the binary form, a compression that libarchive lacks),
 * SPMV_ERROR_TYPE, SPMV_ERROR_OPEN, SPMV_ERROR_WRITE (errno is then the system's: EPIPE, ENOSPC;
 * EFBIG where the program ignores SIGXFSZ), SPMV_ERROR_ARGUMENT (also the name's ending),
 * SPMV_ERROR_MEMORY, SPMV_CANCELLED. */
SPMV_API spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path);

typedef struct spmv_write_options {
    size_t size;
    spmv_symmetry symmetry; /* default SPMV_SYMMETRY_GENERAL. Others: a text gets the lower triangle
                               and a banner that says so. The upper triangle must be what a reader
                               makes of the lower one, bit by bit (else SPMV_ERROR_NOT_SYMMETRIC).
                               Real values that are hermitian are symmetric. */
    const char *comments;   /* lines to put after the banner; a line without a percent sign gets
                               one; default NULL: none */
} spmv_write_options;

/* Fills options with the defaults. size: sizeof(spmv_write_options) as the caller sees it. */
SPMV_API void spmv_write_options_init(spmv_write_options *options, size_t size);

/* Writes a matrix as spmv_matrix_write does, with options; NULL means defaults. The binary form holds
 * both triangles, and notes symmetry and comments at its end, where spmv_matrix_read finds them. */
SPMV_API spmv_status spmv_matrix_write_as(spmv_context *ctx, const spmv_csr *a, const char *path,
                                          const spmv_write_options *options);

/* Tells from the name alone whether matrices and vectors can be written to the path, and vectors in
 * the format (NULL: none). No file is looked at. Errors: SPMV_ERROR_ARGUMENT and
 * SPMV_ERROR_UNSUPPORTED, as from spmv_vector_write. */
SPMV_API spmv_status spmv_output_check(spmv_context *ctx, const char *path, const char *format);

/* Reads a vector from a text, packed or not, or from a file in binary form.
 *
 * A text has one number a line, with blank lines and lines of % and # comments between, or is
 * Matrix Market array or coordinate n x 1 (or 1 x n); cells that a coordinate file does not name
 * are 0. For a complex type a text may have two numbers a line, real and imaginary part, if its
 * first line with numbers has two; files of field complex are read too; real numbers get imaginary
 * parts of 0.
 *
 * path: as in spmv_matrix_read. type: SPMV_F64, SPMV_F32, SPMV_C64 or SPMV_C128. *host_values: n
 * numbers of the type, to be released with spmv_host_free; NULL after an error. Errors: as
 * spmv_matrix_read. */
SPMV_API spmv_status spmv_vector_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                      int64_t *n);
SPMV_API void spmv_host_free(void *host_memory);

/* Reads k vectors of n numbers at once, row by row: number v of row i is *host_values[k i + v], as
 * a plan with the option vectors = k takes them.
 *
 * A text has k numbers a line, the same number on each line (2 k for a complex type if the first
 * line with numbers has more than one; with one a line they are real), or is Matrix Market array or
 * coordinate n x k. A row of k numbers is n = 1. Parameters and errors: as spmv_vector_read. */
SPMV_API spmv_status spmv_vectors_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                       int64_t *n, int64_t *k);

/* Writes n numbers in the fewest digits that read back to the same bits.
 *
 * host_values: n elements of the type in host memory. path: "-" means standard output. A name that
 * ends in .mtx (or .mtx.gz and the like) gets a Matrix Market array, n x 1. Other names get plain
 * numbers, one a line; of complex numbers both parts with a blank between. spmv_vector_read takes
 * both. Endings that compress, .spmv (the binary form) and refused endings: as for
 * spmv_matrix_write. format: NULL means the fewest digits; else a printf format with one
 * floating-point conversion ("%.6g"), of a Matrix Market file without other text; the binary form
 * takes none. Infinities and NaN are written; in a Matrix Market file they give a warning event.
 * Errors: SPMV_ERROR_ARGUMENT (also the format, the name), SPMV_ERROR_TYPE, SPMV_ERROR_OPEN,
 * SPMV_ERROR_WRITE (errno is then the system's), SPMV_ERROR_UNSUPPORTED, SPMV_ERROR_MEMORY,
 * SPMV_CANCELLED. */
SPMV_API spmv_status spmv_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                       int64_t n, const char *format);

/* Writes k vectors of n numbers, row by row as spmv_vectors_read has them: k numbers a line, or a
 * Matrix Market array n x k, which holds them column by column. Parameters and errors: as
 * spmv_vector_write. */
SPMV_API spmv_status spmv_vectors_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                        int64_t n, int64_t k, const char *format);

/* A file of any bytes that appears as a whole or not at all, written as spmv_matrix_write writes its
 * files. What is no regular file (a FIFO, a device) is written directly. The name's ending decides
 * nothing. */
typedef struct spmv_file spmv_file;

/* Creates a file. *file: NULL after an error. The context must outlive the file. Errors:
 * SPMV_ERROR_OPEN, SPMV_ERROR_MEMORY, SPMV_ERROR_ARGUMENT. */
SPMV_API spmv_status spmv_file_create(spmv_context *ctx, const char *path, spmv_file **file);

/* Appends n bytes. After the first failure it returns that status every time. Errors:
 * SPMV_ERROR_WRITE, SPMV_ERROR_ARGUMENT. */
SPMV_API spmv_status spmv_file_write(spmv_file *file, const void *bytes, int64_t n);

/* Ends the file and releases it. Where keep is not 0 and no write failed, the file takes its place;
 * else the old file stays. Returns, with keep, the status of a write that failed. Does nothing for
 * NULL. */
SPMV_API spmv_status spmv_file_close(spmv_file *file, int keep);

/* Removes the unfinished files that this process is writing, of all contexts. It is
 * async-signal-safe: the handler of a signal that ends the program may call it. A write that goes on
 * nevertheless fails at its end. At most 64 files at a time are known. */
SPMV_API void spmv_remove_unfinished(void);

SPMV_END_DECLS

#endif
