/* Files: Matrix Market matrices and vectors, in and out. docs/formats.md says in full what is read and refused.
 *
 * The format: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market exchange formats: initial design", NISTIR
 * 5935, 1996. Every function names file, line, column and reason when it refuses: spmv_last_error(ctx) then reads
 * "A.mtx:17:5: column 9 exceeds the 8 columns declared on line 3".
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
    spmv_type type;    /* of the values: SPMV_F64, SPMV_F32, SPMV_C128 or SPMV_C64; default SPMV_TYPE_DEFAULT: SPMV_C128
                          for complex values, else SPMV_F64. Decimal numbers are correctly rounded to it. Real values
                          are read as complex ones too, complex values as real ones never (SPMV_ERROR_TYPE). */
    int64_t max_bytes; /* refuse (SPMV_ERROR_MEMORY) what needs more memory; default 0: the machine's physical memory.
                          What is mapped and used where it lies (the binary form, a cached matrix) does not count. */
    int64_t max_unpacked_bytes; /* refuse (SPMV_ERROR_LIMIT) a longer text of a packed file; default 0: any length */
    int64_t max_unpacked_ratio; /* and one longer than so many times its packed bytes; default 0: 300 */
    const char *cache_folder; /* keep what was read there, and look there first; default NULL, or "": no cache. Made if
                                 need be */
    int comments;             /* 1: keep those before the size line, for spmv_matrix_comments; default 0 */
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
    char form[16]; /* of the file: "mtx", "gz", "xz", "zst", "bz2", "tar", "tar.gz" ..., "binary"; "cache": one that
                      was kept; the other facts, and the warnings, are those of the file's reading */
} spmv_read_info;

/* Reads a Matrix Market file (path "-": standard input) into CSR in host memory. What begins as a file of gzip, xz,
 * zstd or bzip2 is unpacked on the way, in parallel to the parsing; of a tar archive the matrix is read (NAME.mtx in
 * NAME.tar.gz or in a folder NAME), or for a path "archive:member" that member: its path, its name with or without
 * .mtx, or "_b" for NAME_b.mtx. Coordinate and array; real, integer, complex, pattern; general, symmetric,
 * skew-symmetric, hermitian: the other triangle is filled in. Columns sorted; duplicates added in file order; explicit
 * zeros of the coordinate form kept, zeros of the array form dropped. Pattern matrices hold no values. Infinities, NaN,
 * integers that had to be rounded and entries added to their mirror give a warning event. options, info: may be NULL;
 * info_size: sizeof(spmv_read_info) as the caller sees it. Errors: SPMV_ERROR_OPEN, SPMV_ERROR_READ,
 * SPMV_ERROR_CHANGED, SPMV_ERROR_FORMAT, SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE (a complex file as real),
 * SPMV_ERROR_UNSUPPORTED (packed files without libarchive), SPMV_ERROR_MEMORY, SPMV_CANCELLED. */
SPMV_API spmv_status spmv_matrix_read(spmv_context *ctx, const char *path, const spmv_read_options *options,
                                      spmv_matrix **matrix, spmv_read_info *info, size_t info_size);

/* The comments of the file that the matrix was read from, with the option comments: lines, each
 * with its percent sign and a line end; "" when there are none. Valid until the matrix is
 * destroyed. */
SPMV_API const char *spmv_matrix_comments(const spmv_matrix *matrix);

/* Writes a (host memory) as a Matrix Market coordinate file, general, real, complex or pattern;
 * values in the fewest digits that read back to the same bits; infinities and NaN cannot be written
 * (SPMV_ERROR_UNSUPPORTED). path "-": standard output.
 *
 * The ending of the name decides the form, in upper or lower case: .gz, .xz, .zst and .bz2 compress
 * the text; .spmv is the binary form, bit by bit, infinities and NaN too, for which columns must
 * ascend in each row (else SPMV_ERROR_UNSUPPORTED; a text takes them in any order). Endings of what
 * is not written (.zip, .tar.gz, .spmv.gz) are SPMV_ERROR_ARGUMENT. The same matrix gives the same
 * bytes.
 *
 * The file is written beside its place, under a name "spmv-....part", and renamed: an existing
 * one survives a failure. The new file takes over owner, group and permissions of the one it
 * replaces, but never a set-id bit; where the group cannot be kept, the new group gets no more
 * than all others had. Errors: SPMV_ERROR_SIZE (no valid CSR), SPMV_ERROR_OPEN, SPMV_ERROR_WRITE
 * (errno is then the system's: EPIPE, ENOSPC; EFBIG where the program ignores SIGXFSZ),
 * SPMV_ERROR_UNSUPPORTED (libarchive lacks the compression), SPMV_CANCELLED. */
SPMV_API spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path);

/* symmetry: others than general: a text gets the lower triangle and a banner that says so. The upper
 * triangle must be what a reader makes of the lower one, bit by bit, else SPMV_ERROR_NOT_SYMMETRIC.
 * Real values that are hermitian are symmetric. comments: lines for the place behind the banner; a
 * line without a percent sign gets one. */
typedef struct spmv_write_options {
    size_t size;
    spmv_symmetry symmetry; /* default SPMV_SYMMETRY_GENERAL */
    const char *comments;   /* default NULL: none */
} spmv_write_options;

SPMV_API void spmv_write_options_init(spmv_write_options *options, size_t size);

/* spmv_matrix_write with options (NULL: the defaults). The binary form holds both triangles, and
 * notes symmetry and comments at its end, for spmv_matrix_read to hand over. */
SPMV_API spmv_status spmv_matrix_write_as(spmv_context *ctx, const spmv_csr *a, const char *path,
                                          const spmv_write_options *options);

/* Whether matrices and vectors can be written to a file of that name, so far as the name tells,
 * and vectors in that format (NULL: none): SPMV_ERROR_ARGUMENT or SPMV_ERROR_UNSUPPORTED as from
 * spmv_vector_write. No file is looked at. */
SPMV_API spmv_status spmv_output_check(spmv_context *ctx, const char *path, const char *format);

/* Reads a vector, from a file as spmv_matrix_read takes it, packed or not, or in binary form: one number a line (blank
 * lines, % and # comments between), or Matrix Market array or coordinate n x 1 (or 1 x n). A complex type (SPMV_C64,
 * SPMV_C128) takes two numbers a line too, real and imaginary part, where the first line that has any has two, and
 * files of field complex; what is real has imaginary parts of 0. *host_values: n numbers of the type (SPMV_F64,
 * SPMV_F32 or a complex one), to be released with spmv_host_free. Cells that a coordinate file does not name are 0. */
SPMV_API spmv_status spmv_vector_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                      int64_t *n);
SPMV_API void spmv_host_free(void *host_memory);

/* Reads k vectors of n numbers at once, row by row: number v of row i at k i + v, as a plan with the option vectors = k
 * takes them. A text of k numbers a line, as many on each (of a complex type 2 k, where the first line that has any has
 * more than one; with one a line they are real), or Matrix Market array or coordinate n x k; a row of k is n = 1. */
SPMV_API spmv_status spmv_vectors_read(spmv_context *ctx, const char *path, spmv_type type, void **host_values,
                                       int64_t *n, int64_t *k);

/* Writes n numbers. Names that end in .mtx (or .mtx.gz and the like): a Matrix Market array, n x
 * 1. Other names: plain numbers, one a line, of complex ones both parts with a blank between
 * them. Both are read back; endings that compress, .spmv (the binary form) and those that are
 * refused are as for spmv_matrix_write. path "-": standard output. format NULL: the fewest
 * digits that read back to the same bits, else a printf format with one floating-point
 * conversion (%.6g), of a Matrix Market file without other text; the binary form takes none.
 * Infinities and NaN are written; in a Matrix Market file they give a warning event. Errors:
 * SPMV_ERROR_OPEN, SPMV_ERROR_WRITE (errno is then the system's), SPMV_ERROR_ARGUMENT (the
 * format, the name), SPMV_ERROR_UNSUPPORTED, SPMV_CANCELLED. */
SPMV_API spmv_status spmv_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                       int64_t n, const char *format);

/* The same for k vectors of n numbers, row by row as spmv_vectors_read has them: k numbers a
 * line, or a Matrix Market array n x k, which holds them column by column. */
SPMV_API spmv_status spmv_vectors_write(spmv_context *ctx, const char *path, spmv_type type, const void *host_values,
                                        int64_t n, int64_t k, const char *format);

/* A file of any bytes that is there as a whole or not at all, written as spmv_matrix_write
 * writes its files. What is no regular file (a FIFO, a device) is written directly. The name's
 * ending decides nothing. */
typedef struct spmv_file spmv_file;

/* Errors: SPMV_ERROR_OPEN, SPMV_ERROR_MEMORY; *file is then NULL. The context must outlive the
 * file. */
SPMV_API spmv_status spmv_file_create(spmv_context *ctx, const char *path, spmv_file **file);

/* Appends n bytes. After the first failure, its status every time. */
SPMV_API spmv_status spmv_file_write(spmv_file *file, const void *bytes, int64_t n);

/* Ends the file, which is then released. keep not 0 and no write failed: it takes its place.
 * Else what was there stays. Returns how that went: with keep, the status of a write that
 * failed. file NULL: nothing happens. */
SPMV_API spmv_status spmv_file_close(spmv_file *file, int keep);

/* Removes the unfinished files that this process is writing, of all contexts, from beside their
 * places. For the handler of a signal that ends the program: it may be called from one (it is
 * async-signal-safe). A write that goes on nevertheless fails at its end. At most 64 files at a
 * time are known. */
SPMV_API void spmv_remove_unfinished(void);

SPMV_END_DECLS

#endif
