/* The memory of a whole job: how much a command needs for a matrix, and how much is available.
 *
 * --max-memory is a limit of the process: the library refuses an allocation that would exceed it
 * (spmv_memory_limit), and so does the program. The estimate below refuses most jobs earlier, with
 * a sentence about the whole job.
 *
 * The need is computed when the sizes of a matrix are known, before its memory is allocated,
 * because a system that runs out of memory kills this or another process without a message. It is
 * an estimate, within a quarter of measured values (docs/notebook/memory-estimates.md). It counts
 * arrays in proportion to rows, columns and entries. Smaller objects, such as text buffers, are a
 * constant.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/job_memory.h"
#include "app/output.h"
#include "bench/process_memory.h"
#include "core/reals.h"

/* Code loaded late, stacks of threads, buffers. */
enum { SMALL_THINGS = 1 << 20 };

/* Sums of bytes, limited to INT64_MAX. */
static int64_t plus(int64_t a, int64_t b)
{
    return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

static int64_t times(int64_t n, int64_t bytes)
{
    return bytes == 0 || n <= INT64_MAX / bytes ? n * bytes : INT64_MAX;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The sizes of a job. */
struct work {
    const struct options *o;
    const spmv_matrix_size *matrix;
    int64_t rows, cols, entries; /* of op(A) */
    int64_t value, stored;       /* bytes of a number in a vector, of an entry's value */
    int64_t vectors;
    bool host; /* plans and vectors of the context are in host memory */
};

static int64_t of_y(const struct work *w)
{
    return times(times(w->rows, w->vectors), w->value);
}

static int64_t of_x(const struct work *w)
{
    return times(times(w->cols, w->vectors), w->value);
}

/* Row offsets in 32 bits if they fit, packed columns, 3 % for the tables of tiles, and a second copy of the values of a
 * matrix that the second-level caches hold. */
static int64_t of_plan(const struct work *w)
{
    const int64_t offsets = times(w->rows, w->entries < INT32_MAX ? 4 : 8);
    const int64_t most_copied = 8 << 20, copy = times(w->entries, w->stored + 2);
    const int64_t tables = plus(plus(w->rows, w->entries) / 32, copy < most_copied ? copy : most_copied);
    const int64_t transposed = w->o->transpose ? plus(times(w->rows, 8), times(w->entries, 4 + w->stored)) : 0;
    return w->host ? plus(plus(offsets, tables), transposed) : 0;
}

/* The transpose of a square matrix, with which it is compared, and a mark for each column. */
static int64_t of_statistics(const struct work *w)
{
    const spmv_matrix_size *const a = w->matrix;
    const int64_t arrays = plus(times(a->rows, 8), times(a->entries, 4 + w->stored));
    return plus(a->cols, a->rows == a->cols ? plus(arrays, times(a->rows, 16)) : 0);
}

/* The larger of two sets of arrays that exist together with y = op(A) x: y, its initial value, and
 * copies of x and y in the context's memory; or y, its reference, and the checker's plan. */
static int64_t of_product(const struct work *w)
{
    const int64_t copies = w->host ? plus(of_x(w), of_y(w)) : 0;
    const int64_t run = plus(times(of_y(w), w->o->verify == VERIFY_BITWISE ? 3 : 2), copies);
    const int64_t check = plus(times(of_y(w), 2), times(w->rows, 4));
    return larger(run, w->o->verify == VERIFY_OFF ? 0 : check);
}

static int64_t of_multiplying(const struct work *w)
{
    const int64_t product = of_product(w);
    /* the JSON's statistics; only part of the memory that the product released goes back to the
     * system */
    const int64_t told = w->o->json ? plus(product / 2, of_statistics(w)) : 0;
    return plus(plus(of_x(w), w->o->y0 != NULL ? of_y(w) : 0), plus(of_plan(w), larger(product, told)));
}

/* Preconditioners that grow with the entries: the factors of ic0 and their transposes during
 * set-up; the envelope of cholesky, at most 10 times the entries; the scaled values of fsai, and for
 * each row some 16 entries of its factor in f64, in f32, in a plan and in the transposed plan; the
 * levels of amg, which auto takes with near-null-space vectors or coordinates; the factors of isai in
 * f64 and in f32, and their inverses. The others store a few numbers per row, and so does what auto
 * falls back on. */
static int64_t of_preconditioner(const struct work *w)
{
    const char *const name = w->o->precond;
    const int64_t entries = plus(w->entries, w->rows);
    if (strcmp(name, "none") == 0 || !w->host)
        return 0;
    if (strcmp(name, "ic0") == 0)
        return plus(times(entries, 24), times(w->rows, 64));
    if (strcmp(name, "cholesky") == 0)
        return plus(times(entries, 80), times(w->rows, 64));
    if (strcmp(name, "isai") == 0)
        return plus(times(entries, 64), times(w->rows, 64));
    if (strcmp(name, "fsai") == 0)
        return plus(times(w->entries, 8), times(w->rows, 16 * (12 + 4 + 8 + 8)));
    if (strcmp(name, "all") == 0)
        return plus(times(entries, 80), times(w->rows, 128));
    if (strcmp(name, "schur") == 0 || w->o->fields != NULL || w->o->schur != NULL) /* blocks, and two of amg */
        return plus(times(entries, 128), times(w->rows, 256));
    if (strcmp(name, "amg") == 0 || w->o->near_null != NULL || w->o->coordinates != NULL)
        return plus(times(entries, 64), times(w->rows, w->o->coordinates != NULL ? 256 : 128));
    return times(w->rows, 8 * w->value);
}

/* b, the solution and x, with copies in the context; r, p, q and z of conjugate gradients; then the
 * check. */
static int64_t of_solving(const struct work *w)
{
    const int64_t kept = times(of_y(w), w->host ? 8 : 3);
    const int64_t narrow = w->o->inner ? times(w->entries, 4) : 0;
    const int64_t recycled =
        w->host && w->o->recycle > 0 ? times(times(w->rows, w->value), 2 * (w->o->recycle + 1)) : 0;
    return plus(plus(plus(plus(kept, narrow), recycled), plus(of_plan(w), of_product(w))), of_preconditioner(w));
}

/* Text is written in portions, one round of them at a time. */
static int64_t of_text(int64_t numbers)
{
    const int64_t a_number = 8, a_round = 40 << 20;
    return numbers < a_round / a_number ? numbers * a_number : a_round;
}

/* The peak memory of the job besides the matrix. */
static int64_t of_work(const struct work *w, enum job_kind job)
{
    switch (job) {
    case JOB_PRODUCT:
        return of_multiplying(w);
    case JOB_SOLVE:
        return larger(of_statistics(w), of_solving(w));
    case JOB_INFO:
        return larger(of_statistics(w), of_plan(w));
    case JOB_BENCH:
        return larger(of_statistics(w), plus(times(of_multiplying(w), 2), times(w->entries, w->value)));
    case JOB_FILE:
        return larger(of_text(times(w->entries, 2)), w->o->json ? of_statistics(w) : 0);
    case JOB_LOOK:
        break;
    }
    return 0;
}

/* See memory_elsewhere. */
static memory_elsewhere_fn *can_be_elsewhere;
static void *elsewhere_user;

void memory_elsewhere(memory_elsewhere_fn *can, void *user)
{
    can_be_elsewhere = can;
    elsewhere_user = user;
}

static int64_t bytes_of(const spmv_matrix_size *matrix, const struct memory *m)
{
    const struct options *const o = m->o;
    const spmv_type type = type_is_complex(matrix->type) ? matrix->type : o->mixed ? SPMV_F64 : o->type;
    const struct work w = {.o = o,
                           .matrix = matrix,
                           .rows = o->transpose ? matrix->cols : matrix->rows,
                           .cols = o->transpose ? matrix->rows : matrix->cols,
                           .entries = matrix->entries,
                           .value = (int64_t)spmv_type_size(type),
                           .stored = matrix->pattern ? 0 : (int64_t)spmv_type_size(matrix->type),
                           .vectors = o->vectors.most > 0 ? o->vectors.most : 1,
                           .host = m->host};
    return plus(larger(matrix->load_bytes, plus(matrix->matrix_bytes, of_work(&w, m->job))), SMALL_THINGS);
}

static int64_t job_bytes(const spmv_matrix_size *matrix, void *user)
{
    struct memory *const m = user;
    m->needed = bytes_of(matrix, m);
    if (m->host && m->needed > m->allowed && can_be_elsewhere != NULL && can_be_elsewhere(elsewhere_user)) {
        m->host = false;
        m->needed = bytes_of(matrix, m);
    }
    /* measured again, because libraries for unpacking are loaded by now */
    spmv_memory_available(&m->used, NULL);
    return m->needed;
}

static int64_t most; /* --max-memory; 0: not given, or off */

void memory_open(const struct options *o)
{
    most = o->max_memory > 0 ? o->max_memory : 0;
    if (most == 0)
        return;
#ifdef __GLIBC__
    /* Blocks from this size on go back to the system when they are freed; by default glibc raises
     * the size, and freed memory stays resident. */
    enum { MAPPED = 1 << 17 };
    mallopt(M_MMAP_THRESHOLD, MAPPED);
    mallopt(M_TRIM_THRESHOLD, MAPPED);
#endif
    spmv_memory_limit(most);
}

void memory_keep(int64_t bytes)
{
    if (most > 0)
        spmv_memory_limit(larger(most - bytes, 1));
}

bool memory_allows(const char *what, double bytes)
{
    enum { SMALL = 1 << 16 }; /* asking the system takes longer than a small allocation */
    if (most == 0 || bytes < SMALL)
        return true;
    const int64_t left = spmv_memory_available(NULL, NULL);
    if (bytes <= (double)left)
        return true;
    complain("%s: %.0f bytes (%s) of memory are needed; --max-memory leaves %s", what, bytes, bytes_text(bytes),
             bytes_text((double)left));
    return false;
}

const char *memory_advice(spmv_status status, const char *sentence)
{
    const bool limited = status == SPMV_ERROR_MEMORY && most > 0 && strstr(sentence, "--max-memory") == NULL;
    return limited ? "; --max-memory SIZE or off sets another limit" : "";
}

void memory_limit(spmv_context *ctx, const struct options *o, enum job_kind job, struct memory *m)
{
    const spmv_backend backend = spmv_context_backend(ctx);
    *m = (struct memory){.o = o, .job = job, .bytes = job_bytes};
    m->host = backend == SPMV_BACKEND_OMP || backend == SPMV_BACKEND_REF;
    m->allowed = spmv_memory_available(&m->used, &m->limit);
    if (o->max_memory < 0) {
        m->allowed = INT64_MAX;
    } else if (o->max_memory > 0) {
        m->allowed = larger(o->max_memory - m->used, 1);
        m->limit = "what --max-memory leaves";
    }
    m->allowed = larger(m->allowed, 1); /* 0 would select the library's default */
}

int64_t memory_peak(void)
{
    return process_memory("VmHWM");
}

spmv_status memory_report(const struct memory *m, spmv_status status, const char *sentence)
{
    char text[1400];
    if (status != SPMV_ERROR_MEMORY || m->needed <= m->allowed)
        return report(status, sentence);
    snprintf(text, sizeof text, "%s (%s); --max-memory SIZE or off sets another limit", sentence, m->limit);
    return report(status, text);
}
