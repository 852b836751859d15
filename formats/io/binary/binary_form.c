/* The binary form: the file is mapped, checked and used in place. Changes of the file appear in the
 * map: a program that rewrites the file in place changes the matrix, and a program that shortens it
 * crashes this one. Therefore the writers here replace the file by a new one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* madvise is not part of POSIX */
#define _DEFAULT_SOURCE
#include "formats/io/binary/binary_form.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/reals.h"
#include "formats/io/binary/checksum.h"
#include "formats/io/output_file.h"
#include "formats/matrix_internal.h"

enum { VERSION = 1, ALIGNMENT = 64 };
static const char magic[8] = {'\x89', 'S', 'P', 'M', 'V', '\r', '\n', '\x1a'};

struct section {
    uint64_t at, sum;
};

/* The layout in the file, little-endian: every member at a multiple of its size, no gaps. */
struct head {
    char magic[8];
    uint32_t version, head_bytes, type, row_ptr_bits;
    uint64_t rows, cols, nnz;
    uint64_t row_ptr, col, val; /* offsets in the file */
    uint64_t bytes;             /* of the file */
    uint64_t row_ptr_sum, col_sum, val_sum;
    uint64_t zero[2];
    uint64_t sum; /* checksum of all members before it */
};
_Static_assert(sizeof(struct head) == 128, "the head has 128 bytes");

bool binary_form_possible(void)
{
    const uint16_t one = 1;
    char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static uint64_t head_sum(const struct head *head)
{
    return checksum_mix(0, checksum_tile(head, (int64_t)offsetof(struct head, sum)));
}

/* Bytes of the three arrays; false if they do not fit in 63 bits. */
static bool array_bytes(int64_t rows, int64_t nnz, size_t size, int64_t bytes[3])
{
    return rows < INT64_MAX && multiply_fits(rows + 1, (int64_t)sizeof(int64_t), &bytes[0]) &&
           multiply_fits(nnz, (int64_t)sizeof(int32_t), &bytes[1]) && multiply_fits(nnz, (int64_t)size, &bytes[2]);
}

/* ---------------------------------------------------------------- reading */

bool binary_form_begins(int fd)
{
    char first[sizeof magic];
    return pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first && memcmp(first, magic, sizeof magic) == 0;
}

static spmv_status fail(spmv_context *ctx, const char *name, const char *why)
{
    return context_fail(ctx, SPMV_ERROR_FORMAT, "%.480s: malformed binary form: %s", name, why);
}

static bool section_fits(uint64_t at, int64_t bytes, int64_t file)
{
    return at % ALIGNMENT == 0 && at >= sizeof(struct head) && at <= (uint64_t)file && bytes <= file - (int64_t)at;
}

static spmv_status check_head(spmv_context *ctx, const char *name, const struct head *head, int64_t bytes)
{
    int64_t arrays[3] = {0, 0, 0};
    if (!binary_form_possible())
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the binary form needs a little-endian machine", name);
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return fail(ctx, name, "its signature is missing");
    if (head->version != VERSION)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: version %lu of the binary form; this library reads version %d", name,
                            (unsigned long)head->version, VERSION);
    if (head->sum != head_sum(head))
        return fail(ctx, name, "the checksum of its header does not match");
    if (head->head_bytes != sizeof *head || head->row_ptr_bits != 64 || head->zero[0] != 0 || head->zero[1] != 0)
        return fail(ctx, name, "its header is not of version 1");
    if (head->type != 0 && !type_is_floating((spmv_type)head->type))
        return fail(ctx, name, "the type of its values is unknown");
    if (head->bytes != (uint64_t)bytes)
        return context_fail(ctx, SPMV_ERROR_FORMAT, "%s: malformed binary form: expected %llu bytes, found %lld", name,
                            (unsigned long long)head->bytes, (long long)bytes);
    if (head->cols > INT32_MAX || head->rows >= INT64_MAX || head->nnz >= INT64_MAX ||
        !array_bytes((int64_t)head->rows, (int64_t)head->nnz, spmv_type_size((spmv_type)head->type), arrays))
        return fail(ctx, name, "its sizes are impossible");
    if (!section_fits(head->row_ptr, arrays[0], bytes) || !section_fits(head->col, arrays[1], bytes) ||
        (head->type != 0 && !section_fits(head->val, arrays[2], bytes)) || (head->type == 0 && head->val != 0))
        return fail(ctx, name, "an array is outside of the file");
    return SPMV_OK;
}

static spmv_status check_sum(spmv_context *ctx, const char *name, const char *what, const void *array, int64_t bytes,
                             uint64_t want)
{
    uint64_t sum = 0;
    const spmv_status st = checksum(ctx, array, bytes, &sum);
    if (st != SPMV_OK || sum == want)
        return st;
    return context_fail(ctx, SPMV_ERROR_FORMAT, "%s: damaged: the checksum of its %s does not match", name, what);
}

/* The arrays at base. The head has been checked. */
static spmv_csr arrays_of(const char *base, const struct head *head)
{
    const bool pattern = head->type == 0;
    const void *const row_ptr = base + head->row_ptr, *const col = base + head->col;
    return csr_of((int64_t)head->rows, (int64_t)head->cols, (int64_t)head->nnz, row_ptr, col,
                  pattern ? NULL : base + head->val, pattern ? SPMV_F64 : (spmv_type)head->type, SPMV_MEMORY_HOST);
}

static spmv_status check_arrays(spmv_context *ctx, const char *name, const char *base, const struct head *head,
                                spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    int64_t bytes[3] = {0, 0, 0};
    *a = arrays_of(base, head);
    array_bytes(a->rows, a->nnz, spmv_type_size((spmv_type)head->type), bytes);
    TRY(check_sum(ctx, name, "row offsets", a->row_ptr, bytes[0], head->row_ptr_sum));
    TRY(check_sum(ctx, name, "columns", a->col, bytes[1], head->col_sum));
    if (a->val != NULL)
        TRY(check_sum(ctx, name, "values", a->val, bytes[2], head->val_sum));
    /* Checksums can match although the arrays are wrong. */
    if (csr_check(ctx, name, a, CSR_SORTED) != SPMV_OK) {
        char sentence[sizeof ctx->error];
        memcpy(sentence, ctx->error, sizeof sentence);
        sentence[sizeof sentence - 1] = '\0';
        st = context_fail(ctx, SPMV_ERROR_FORMAT, "%s", sentence);
    }
done:
    return st;
}

/* Chooses the type of the matrix to be read. */
static spmv_status choose_type(spmv_context *ctx, const char *name, const spmv_csr *a, spmv_type asked, spmv_type *type)
{
    const bool complex = a->val != NULL && type_is_complex(a->type);
    *type = asked != SPMV_TYPE_DEFAULT ? asked : complex ? SPMV_C128 : SPMV_F64;
    return complex ? binary_type_check(ctx, name, a->type, *type) : SPMV_OK;
}

spmv_status binary_type_check(spmv_context *ctx, const char *name, spmv_type from_type, spmv_type type)
{
    if (!type_is_complex(from_type) || type_is_complex(type))
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_TYPE,
                        "%.480s: the numbers are complex: they can be read as c128 or c64, not as %s", name,
                        spmv_type_name(type));
}

spmv_status binary_values(spmv_context *ctx, const char *name, spmv_type from_type, const void *from, int64_t n,
                          spmv_type type, void *to)
{
    const spmv_type from_part = type_part(from_type), part = type_part(type);
    const int from_parts = type_is_complex(from_type) ? 2 : 1, parts = type_is_complex(type) ? 2 : 1;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < parts; i++) {
            const double value = i < from_parts ? real_at(from_part, from, k * from_parts + i) : 0;
            /* As for a text: a number in the file must not become infinite. */
            if (isfinite(value) && !isfinite(real_rounded(part, value)))
                return context_fail(ctx, SPMV_ERROR_LIMIT, "%s: entry %lld%s, %g, is too large for %s", name,
                                    context_number(ctx, k), context_counted(ctx), value, spmv_type_name(part));
            real_set(part, to, k * parts + i, value);
        }
    return SPMV_OK;
}

/* SPMV_ERROR_MEMORY if a copy needs more than max_bytes. */
static spmv_status check_memory(spmv_context *ctx, const char *name, const spmv_csr *a, spmv_type type,
                                int64_t max_bytes)
{
    int64_t arrays[3] = {0, 0, 0}, left = max_bytes;
    bool fits = array_bytes(a->rows, a->nnz, a->val != NULL ? spmv_type_size(type) : 0, arrays);
    for (int k = 0; fits && k < 3; k++) {
        fits = arrays[k] <= left;
        left -= arrays[k];
    }
    if (fits)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_MEMORY,
                        "%.480s: a copy as %s of a %lld x %lld matrix with %lld entries needs more than the %lld bytes "
                        "of memory that are allowed",
                        name, spmv_type_name(type), (long long)a->rows, (long long)a->cols, (long long)a->nnz,
                        (long long)max_bytes);
}

static spmv_status copy_values(spmv_context *ctx, const char *name, const spmv_csr *a, spmv_type type,
                               int64_t max_bytes, spmv_matrix **matrix)
{
    spmv_matrix *m = NULL;
    spmv_status st = check_memory(ctx, name, a, type, max_bytes);
    if (st == SPMV_OK)
        st = matrix_allocate(ctx, a->rows, a->cols, a->nnz, type, a->val == NULL, &m);
    if (st != SPMV_OK)
        return st;
    memcpy(m->row_ptr, a->row_ptr, (size_t)(a->rows + 1) * sizeof *m->row_ptr);
    if (a->nnz > 0)
        memcpy(m->col, a->col, (size_t)a->nnz * sizeof *m->col);
    if (a->val != NULL)
        st = binary_values(ctx, name, a->type, a->val, a->nnz, type, m->val);
    if (st != SPMV_OK) {
        spmv_matrix_destroy(m);
        return st;
    }
    *matrix = m;
    return SPMV_OK;
}

spmv_status binary_form_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                    spmv_type type, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct head head;
    spmv_csr a;
    *matrix = NULL;
    if (bytes < (int64_t)sizeof head)
        return fail(ctx, name, "it ends within its header");
    memcpy(&head, memory, sizeof head);
    TRY(check_head(ctx, name, &head, bytes));
    TRY(check_arrays(ctx, name, memory, &head, &a));
    TRY(choose_type(ctx, name, &a, type, &type));
    TRY(copy_values(ctx, name, &a, type, INT64_MAX, matrix));
done:
    return st;
}

static spmv_status map_arrays(spmv_context *ctx, const char *name, void *map, int64_t bytes, spmv_type type,
                              int64_t max_bytes, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct head head;
    spmv_csr a;
    memcpy(&head, map, sizeof head);
    TRY(check_head(ctx, name, &head, bytes));
    TRY(check_arrays(ctx, name, map, &head, &a));
    TRY(choose_type(ctx, name, &a, type, &type));
    if (a.val != NULL && a.type != type) {
        TRY(copy_values(ctx, name, &a, type, max_bytes, matrix));
        munmap(map, (size_t)bytes);
        return SPMV_OK;
    }
    TRY(matrix_from_map(ctx, &a, type, map, bytes, matrix));
done:
    return st;
}

/* Maps the file: *bytes > 0. */
static spmv_status map_file(spmv_context *ctx, const char *name, int fd, void **map, int64_t *bytes)
{
    struct stat s;
    *bytes = 0;
    if (fstat(fd, &s) != 0)
        return context_fail(ctx, SPMV_ERROR_READ, "%s: cannot read: %s", name, strerror(errno));
    if (!S_ISREG(s.st_mode) || s.st_size < (off_t)sizeof(struct head))
        return fail(ctx, name, "it ends within its header");
    *bytes = (int64_t)s.st_size;
    *map = mmap(NULL, (size_t)*bytes, PROT_READ, MAP_SHARED, fd, 0);
    return *map != MAP_FAILED ? SPMV_OK
                              : context_fail(ctx, SPMV_ERROR_READ, "%s: cannot be mapped: %s", name, strerror(errno));
}

spmv_status binary_form_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                             spmv_matrix **matrix, int64_t *bytes)
{
    void *map = NULL;
    *matrix = NULL;
    spmv_status st = map_file(ctx, name, fd, &map, bytes);
    if (st != SPMV_OK)
        return st;
    madvise(map, (size_t)*bytes, MADV_WILLNEED);
    st = map_arrays(ctx, name, map, *bytes, type, max_bytes, matrix);
    if (st != SPMV_OK)
        munmap(map, (size_t)*bytes);
    return st;
}

/* ---------------------------------------------------------------- some rows */

/* The first row of a rank: the first whose number of rows and entries before it is a fair share.
 * The offsets are not checked yet: the search ends for any values. */
static int64_t first_row_of(const spmv_csr *a, int rank, int ranks)
{
    const int64_t *const row_ptr = a->row_ptr;
    const int64_t all = a->rows + a->nnz, wanted = all / ranks * rank + all % ranks * rank / ranks;
    int64_t low = 0, high = a->rows;
    while (rank < ranks && low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((uint64_t)middle + (uint64_t)row_ptr[middle] < (uint64_t)wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return rank < ranks ? low : a->rows;
}

/* Elements first to end - 1 of an array of the file. */
struct range {
    spmv_context *ctx;
    const char *name, *array;
    int64_t first, end, all;
    size_t size;
};

/* Copies the elements, converted if to_type is another type, and makes the checksums of the tiles
 * that begin in them. A tile at a time, so that little of the map is in memory. */
static spmv_status copy_range(const struct range *s, spmv_type from_type, spmv_type to_type, void *to, int64_t *tiles,
                              uint64_t **sums)
{
    spmv_status st = SPMV_OK;
    void *memory = NULL;
    const int64_t size = (int64_t)s->size, in_tile = CHECKSUM_TILE / size;
    const int64_t to_size = from_type == to_type ? size : (int64_t)spmv_type_size(to_type);
    const int64_t first = ceil_divide(s->first, in_tile), end = ceil_divide(s->end, in_tile);
    *tiles = max_i64(0, end - first);
    TRY(host_alloc(s->ctx, *tiles * (int64_t)sizeof **sums, "checksums", &memory));
    *sums = memory;
    if (s->first == s->end) /* no elements: `to` may be NULL, which memcpy does not take */
        goto done;
    for (int64_t t = s->first / in_tile; t < end; t++) {
        const int64_t begin = t * in_tile, stop = min_i64(begin + in_tile, s->all);
        const int64_t own = max_i64(begin, s->first), own_end = min_i64(stop, s->end);
        char *const target = (char *)to + (own - s->first) * to_size;
        if (begin >= s->first)
            (*sums)[t - first] = checksum_tile(s->array + begin * size, (stop - begin) * size);
        if (from_type == to_type)
            memcpy(target, s->array + own * size, (size_t)((own_end - own) * size));
        else
            TRY(binary_values(s->ctx, s->name, from_type, s->array + own * size, own_end - own, to_type, target));
        pages_give_back((void *)(uintptr_t)(s->array + begin * size), (stop - begin) * size);
    }
done:
    return st;
}

static spmv_status copy_rows(spmv_context *ctx, const char *name, const spmv_csr *a, int64_t first, int64_t end,
                             int64_t entry, int64_t entry_end, bool is_last, spmv_type type, struct binary_sums *sums,
                             spmv_matrix *m)
{
    spmv_status st = SPMV_OK;
    const spmv_type any = SPMV_F64;
    struct range s = {ctx, name, a->row_ptr, first, end + is_last, a->rows + 1, sizeof(int64_t)};
    TRY(copy_range(&s, any, any, m->row_ptr, &sums->tiles[0], &sums->sum[0]));
    for (int64_t i = 0; i < end - first; i++)
        m->row_ptr[i] -= entry;
    m->row_ptr[end - first] = entry_end - entry;
    s = (struct range){ctx, name, (const char *)a->col, entry, entry_end, a->nnz, sizeof *a->col};
    TRY(copy_range(&s, any, any, m->col, &sums->tiles[1], &sums->sum[1]));
    s = (struct range){ctx, name, a->val, entry, entry_end, a->nnz, spmv_type_size(a->type)};
    if (a->val != NULL)
        TRY(copy_range(&s, a->type, type, m->val, &sums->tiles[2], &sums->sum[2]));
done:
    return st;
}

/* Makes the matrix of the rank's rows from the map. */
static spmv_status take_rows(spmv_context *ctx, const char *name, const char *map, int64_t bytes, spmv_type type,
                             int rank, int ranks, struct binary_sums *sums, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct head head;
    spmv_csr a, view;
    spmv_matrix *m = NULL;
    memcpy(&head, map, sizeof head);
    TRY(check_head(ctx, name, &head, bytes));
    a = arrays_of(map, &head);
    TRY(choose_type(ctx, name, &a, type, &type));
    memcpy(sums->want, (const uint64_t[]){head.row_ptr_sum, head.col_sum, a.val != NULL ? head.val_sum : 0},
           sizeof sums->want);
    const int64_t *const row_ptr = a.row_ptr;
    const int64_t first = first_row_of(&a, rank, ranks), end = max_i64(first, first_row_of(&a, rank + 1, ranks));
    const int64_t entry = rank == 0 ? 0 : row_ptr[first], entry_end = rank == ranks - 1 ? a.nnz : row_ptr[end];
    if (entry < 0 || entry > entry_end || entry_end > a.nnz || row_ptr[0] != 0 || row_ptr[a.rows] != a.nnz)
        TRY(fail(ctx, name, "its row offsets are wrong"));
    TRY(matrix_allocate(ctx, end - first, a.cols, entry_end - entry, type, a.val == NULL, &m));
    TRY(copy_rows(ctx, name, &a, first, end, entry, entry_end, rank == ranks - 1, type, sums, m));
    m->first_row = first;
    spmv_matrix_view(m, &view);
    TRY(csr_check(ctx, name, &view, CSR_SORTED));
    *matrix = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    return st;
}

spmv_status binary_form_read_rows(spmv_context *ctx, const char *name, int fd, spmv_type type, int rank, int ranks,
                                  struct binary_sums *sums, spmv_matrix **matrix)
{
    int64_t bytes = 0;
    void *map = NULL;
    *matrix = NULL;
    *sums = (struct binary_sums){.want = {0}};
    spmv_status st = map_file(ctx, name, fd, &map, &bytes);
    if (st != SPMV_OK)
        return st;
    st = take_rows(ctx, name, map, bytes, type, rank, ranks, sums, matrix);
    munmap(map, (size_t)bytes);
    return st;
}

void binary_sums_free(struct binary_sums *sums)
{
    for (int k = 0; k < 3; k++)
        host_free(sums->sum[k]);
    *sums = (struct binary_sums){.want = {0}};
}

/* ---------------------------------------------------------------- writing */

static int64_t align(int64_t at)
{
    return ceil_divide(at, ALIGNMENT) * ALIGNMENT;
}

/* Writes zeros up to the next multiple of the alignment, then the array. */
static spmv_status put_array(struct output_file *output, int64_t *at, const void *array, int64_t bytes)
{
    static const char zeros[ALIGNMENT];
    const int64_t gap = align(*at) - *at;
    spmv_status st = output_put(output, zeros, gap, 0);
    if (st == SPMV_OK)
        st = output_put(output, array, bytes, 0);
    *at += gap + bytes;
    return st;
}

static spmv_status write_arrays(struct output_file *output, const spmv_csr *a, const int64_t *row_ptr, const void *more,
                                int64_t more_bytes)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = output->ctx;
    const size_t size = a->val != NULL ? spmv_type_size(a->type) : 0;
    int64_t bytes[3] = {0, 0, 0};
    if (!array_bytes(a->rows, a->nnz, size, bytes))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "%s: the size of the arrays exceeds 63 bits", output->name);
    struct head head = {.version = VERSION,
                        .head_bytes = sizeof head,
                        .type = a->val != NULL ? (uint32_t)a->type : 0,
                        .row_ptr_bits = 64,
                        .rows = (uint64_t)a->rows,
                        .cols = (uint64_t)a->cols,
                        .nnz = (uint64_t)a->nnz};
    memcpy(head.magic, magic, sizeof magic);
    int64_t at = sizeof head;
    head.row_ptr = (uint64_t)at;
    at += bytes[0];
    head.col = (uint64_t)align(at);
    at = align(at) + bytes[1];
    if (size > 0) {
        head.val = (uint64_t)align(at);
        at = align(at) + bytes[2];
    }
    if (more_bytes > 0)
        at = align(at) + more_bytes;
    head.bytes = (uint64_t)at;
    TRY(checksum(ctx, row_ptr, bytes[0], &head.row_ptr_sum));
    TRY(checksum(ctx, a->col, bytes[1], &head.col_sum));
    if (size > 0)
        TRY(checksum(ctx, a->val, bytes[2], &head.val_sum));
    head.sum = head_sum(&head);
    at = 0;
    TRY(put_array(output, &at, &head, (int64_t)sizeof head));
    TRY(put_array(output, &at, row_ptr, bytes[0]));
    TRY(put_array(output, &at, a->col, bytes[1]));
    if (size > 0)
        TRY(put_array(output, &at, a->val, bytes[2]));
    if (more_bytes > 0)
        TRY(put_array(output, &at, more, more_bytes));
done:
    return st;
}

spmv_status binary_form_write_with(spmv_context *ctx, const spmv_csr *a, const char *path, const void *more,
                                   int64_t more_bytes)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    void *wide = NULL;
    const int64_t *row_ptr = a->row_ptr;
    if (!binary_form_possible())
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the binary form needs a little-endian machine", path);
    if (csr_check(ctx, path, a, CSR_SORTED) != SPMV_OK)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%.400s: the binary form needs ascending columns in each row",
                            path);
    if (a->row_ptr_bits == 32) {
        TRY(host_alloc(ctx, (a->rows + 1) * (int64_t)sizeof *row_ptr, "row offsets", &wide));
        for (int64_t row = 0; row <= a->rows; row++)
            ((int64_t *)wide)[row] = row_first(a, row);
        row_ptr = wide;
    }
    TRY(output_open(ctx, path, a->nnz, &output));
    TRY(write_arrays(&output, a, row_ptr, more, more_bytes));
done:
    host_free(wide);
    return output_close(&output, st);
}
