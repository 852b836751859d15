/* Our CUDA methods beside cuSPARSE: y = A x by each method and by cusparseSpMV on CSR (ALG1 and ALG2, both
 * preprocessed), on the same arrays, in turn, in one run.
 *
 *   compare_cusparse A...      A: a Matrix Market file, or a SPEC such as poisson2d:2000
 *
 * For each A and each of f64 and f32: every contender multiplies into a y of not-a-numbers, which is checked against
 * OpenMP row by row (spmv_verify); then come ROUNDS rounds, in each of which every contender runs once to be warm and
 * then a batch of as many products as last BATCH_SECONDS, between two CUDA events; then all are checked once more.
 * Printed are the median over the rounds of the time of one product, GB/s of the bytes that plain CSR must move, nnz (4
 * + v) + 4 (rows + 1) + v (rows + cols) with v the size of a value, and how many times as fast as the faster of the two
 * algorithms of cuSPARSE. A pattern matrix is ones to cuSPARSE and stays a pattern to us; its bytes are counted with
 * values.
 *
 * Exit status: 1 when a check failed, 2 when something could not be done, 0 otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <math.h>
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { ROUNDS = 9, MOST_REPEATS = 1 << 20, OURS = 4, THEIRS = 2, CONTENDERS = OURS + THEIRS };
static const double BATCH_SECONDS = 2e-3;

static const char *const method_names[OURS] = {"scalar", "vector", "staged", "auto"};
static const struct {
    const char *name;
    cusparseSpMVAlg_t algorithm;
} algorithms[THEIRS] = {{"cusparse alg1", CUSPARSE_SPMV_CSR_ALG1}, {"cusparse alg2", CUSPARSE_SPMV_CSR_ALG2}};

struct algorithm {
    cusparseSpMatDescr_t matrix; /* one each: preprocessing leaves its findings in it */
    void *buffer;
};

/* One matrix in one type, on the host and on the device, and all that multiplies with it. */
struct comparison {
    const char *name;
    spmv_type type;
    spmv_context *cuda, *omp;
    cudaStream_t stream;
    cusparseHandle_t sparse;
    spmv_matrix *matrix;
    spmv_csr host;
    void *host_x, *host_y, *host_poison;
    void *row_ptr, *col, *val, *x, *y;
    cusparseDnVecDescr_t x_vector, y_vector;
    spmv_plan *plans[OURS];
    struct algorithm algorithms[THEIRS];
    cudaEvent_t begin, end;
    int repeats[CONTENDERS];
    double samples[CONTENDERS][ROUNDS], worst[CONTENDERS];
    bool wrong[CONTENDERS];
};

/* A failure ends what is under way: all of these say why, and are true when the call failed. */
static bool bad_spmv(spmv_status status, const spmv_context *ctx, const char *what)
{
    if (status != SPMV_OK)
        fprintf(stderr, "%s: %s: %s\n", what, spmv_status_text(status), spmv_last_error(ctx));
    return status != SPMV_OK;
}

static bool bad_cuda(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    return error != cudaSuccess;
}

static bool bad_sparse(cusparseStatus_t status, const char *what)
{
    if (status != CUSPARSE_STATUS_SUCCESS)
        fprintf(stderr, "%s: %s\n", what, cusparseGetErrorString(status));
    return status != CUSPARSE_STATUS_SUCCESS;
}

static int64_t value_bytes(const struct comparison *c)
{
    return (int64_t)spmv_type_size(c->type);
}

static void set_value(void *values, spmv_type type, int64_t i, double value)
{
    if (type == SPMV_F32)
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

/* n values on the host: ones, not-a-numbers, or fractions that are not all alike so that a wrong index shows. */
enum content { ONES, POISON, FRACTIONS };
static void *host_values(const struct comparison *c, int64_t n, enum content content)
{
    void *const values = malloc((size_t)n * (size_t)value_bytes(c) + 1);
    if (values == NULL)
        fprintf(stderr, "%s: no memory for %lld values\n", c->name, (long long)n);
    for (int64_t i = 0; values != NULL && i < n; i++)
        set_value(values, c->type, i,
                  content == ONES     ? 1
                  : content == POISON ? NAN
                                      : (i % 2 == 0 ? 1 : -1) / (double)(i % 1013 + 1));
    return values;
}

/* host's bytes in the device's memory; NULL when that failed. */
static void *on_device(const struct comparison *c, const void *host, int64_t bytes)
{
    void *memory = NULL;
    if (bad_spmv(spmv_alloc(c->cuda, bytes, &memory), c->cuda, c->name) ||
        bad_spmv(spmv_upload(c->cuda, host, memory, bytes), c->cuda, c->name))
        return NULL;
    return memory;
}

/* Row offsets of 32 bits, which both sides take. */
static void *narrow_offsets(const struct comparison *c)
{
    const int64_t *const wide = c->host.row_ptr;
    int32_t *const narrow = malloc((size_t)(c->host.rows + 1) * sizeof *narrow);
    void *memory = NULL;
    if (narrow == NULL)
        return NULL;
    for (int64_t i = 0; i <= c->host.rows; i++)
        narrow[i] = (int32_t)wide[i];
    memory = on_device(c, narrow, (c->host.rows + 1) * 4);
    free(narrow);
    return memory;
}

static bool load(struct comparison *c)
{
    spmv_status st;
    if (spmv_spec_known(c->name)) {
        st = spmv_matrix_generate(c->omp, c->name, c->type, &c->matrix);
    } else {
        spmv_read_options options;
        spmv_read_options_init(&options, sizeof options);
        options.type = c->type;
        st = spmv_matrix_read(c->omp, c->name, &options, &c->matrix, NULL, 0);
    }
    if (bad_spmv(st, c->omp, c->name))
        return false;
    spmv_matrix_view(c->matrix, &c->host);
    if (c->host.nnz > 0 && c->host.nnz <= INT32_MAX && c->host.row_ptr_bits == 64)
        return true;
    fprintf(stderr, "%s: %lld nonzeros; 1 to 2147483647 can be compared\n", c->name, (long long)c->host.nnz);
    return false;
}

static bool upload(struct comparison *c)
{
    const int64_t nnz = c->host.nnz, size = value_bytes(c);
    void *const ones = c->host.val == NULL ? host_values(c, nnz, ONES) : NULL;
    const void *const val = c->host.val == NULL ? ones : c->host.val;
    c->host_x = host_values(c, c->host.cols, FRACTIONS);
    c->host_y = host_values(c, c->host.rows, POISON);
    c->host_poison = host_values(c, c->host.rows, POISON);
    if (val != NULL && c->host_x != NULL && c->host_y != NULL && c->host_poison != NULL) {
        c->row_ptr = narrow_offsets(c);
        c->col = on_device(c, c->host.col, nnz * 4);
        c->val = on_device(c, val, nnz * size);
        c->x = on_device(c, c->host_x, c->host.cols * size);
        c->y = on_device(c, c->host_poison, c->host.rows * size);
    }
    free(ones);
    return c->row_ptr != NULL && c->col != NULL && c->val != NULL && c->x != NULL && c->y != NULL;
}

/* Our plans borrow the arrays that cuSPARSE reads. */
static bool make_plans(struct comparison *c)
{
    spmv_csr a = c->host;
    a.row_ptr = c->row_ptr;
    a.row_ptr_bits = 32;
    a.col = c->col;
    a.val = c->host.val == NULL ? NULL : c->val;
    a.memory = SPMV_MEMORY_CONTEXT;
    for (int m = 0; m < OURS; m++) {
        spmv_plan_options options;
        spmv_plan_options_init(&options, sizeof options);
        options.method = method_names[m];
        options.type = c->type;
        if (bad_spmv(spmv_plan_create(c->cuda, &a, &options, &c->plans[m]), c->cuda, c->name))
            return false;
    }
    return true;
}

static cudaDataType data_type(const struct comparison *c)
{
    return c->type == SPMV_F32 ? CUDA_R_32F : CUDA_R_64F;
}

/* alpha = 1 and beta = 0 in the type. */
static const void *scalar(const struct comparison *c, bool one)
{
    static const double f64[] = {0, 1};
    static const float f32[] = {0, 1};
    return c->type == SPMV_F32 ? (const void *)&f32[one] : (const void *)&f64[one];
}

static bool make_algorithm(struct comparison *c, int number)
{
    struct algorithm *const a = &c->algorithms[number];
    const cudaDataType type = data_type(c);
    size_t bytes = 0;
    return !bad_sparse(cusparseCreateCsr(&a->matrix, c->host.rows, c->host.cols, c->host.nnz, c->row_ptr, c->col,
                                         c->val, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                         type),
                       "cusparseCreateCsr") &&
           !bad_sparse(cusparseSpMV_bufferSize(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(c, true), a->matrix,
                                               c->x_vector, scalar(c, false), c->y_vector, type,
                                               algorithms[number].algorithm, &bytes),
                       "cusparseSpMV_bufferSize") &&
           !bad_cuda(cudaMalloc(&a->buffer, bytes + 1), "cudaMalloc") &&
           !bad_sparse(cusparseSpMV_preprocess(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(c, true), a->matrix,
                                               c->x_vector, scalar(c, false), c->y_vector, type,
                                               algorithms[number].algorithm, a->buffer),
                       "cusparseSpMV_preprocess");
}

static bool make_algorithms(struct comparison *c)
{
    if (bad_sparse(cusparseCreateDnVec(&c->x_vector, c->host.cols, c->x, data_type(c)), "cusparseCreateDnVec") ||
        bad_sparse(cusparseCreateDnVec(&c->y_vector, c->host.rows, c->y, data_type(c)), "cusparseCreateDnVec"))
        return false;
    for (int a = 0; a < THEIRS; a++)
        if (!make_algorithm(c, a))
            return false;
    return !bad_cuda(cudaEventCreate(&c->begin), "cudaEventCreate") &&
           !bad_cuda(cudaEventCreate(&c->end), "cudaEventCreate");
}

/* Queues one product of a contender. */
static bool multiply(struct comparison *c, int contender)
{
    if (contender < OURS)
        return !bad_spmv(spmv_apply(c->plans[contender], NULL, c->x, NULL, c->y), c->cuda, method_names[contender]);
    const int a = contender - OURS;
    return !bad_sparse(cusparseSpMV(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(c, true),
                                    c->algorithms[a].matrix, c->x_vector, scalar(c, false), c->y_vector, data_type(c),
                                    algorithms[a].algorithm, c->algorithms[a].buffer),
                       algorithms[a].name);
}

/* Multiplies into a poisoned y and compares with OpenMP. False when that could not be done; a wrong result is kept in
 * wrong and worst. */
static bool check(struct comparison *c, int contender)
{
    const int64_t bytes = c->host.rows * value_bytes(c);
    spmv_verify_result result = {.worst_ratio = INFINITY};
    if (bad_spmv(spmv_upload(c->cuda, c->host_poison, c->y, bytes), c->cuda, c->name) || !multiply(c, contender) ||
        bad_spmv(spmv_download(c->cuda, c->y, c->host_y, bytes), c->cuda, c->name))
        return false;
    const spmv_status st = spmv_verify(c->omp, &c->host, SPMV_OPERATION_N, NULL, c->host_x, NULL, NULL, c->host_y,
                                       c->type, &result, sizeof result);
    if (st != SPMV_OK) {
        bad_spmv(st, c->omp, contender < OURS ? method_names[contender] : algorithms[contender - OURS].name);
        c->wrong[contender] = true;
    }
    c->worst[contender] = fmax(c->worst[contender], result.worst_ratio);
    return st == SPMV_OK || st == SPMV_ERROR_CHECK;
}

/* *seconds that a batch of repeats products takes, after one that warms the caches. */
static bool time_batch(struct comparison *c, int contender, int repeats, double *seconds)
{
    float milliseconds = 0;
    if (!multiply(c, contender) || bad_cuda(cudaEventRecord(c->begin, c->stream), "cudaEventRecord"))
        return false;
    for (int r = 0; r < repeats; r++)
        if (!multiply(c, contender))
            return false;
    if (bad_cuda(cudaEventRecord(c->end, c->stream), "cudaEventRecord") ||
        bad_cuda(cudaEventSynchronize(c->end), "cudaEventSynchronize") ||
        bad_cuda(cudaEventElapsedTime(&milliseconds, c->begin, c->end), "cudaEventElapsedTime"))
        return false;
    *seconds = 1e-3 * (double)milliseconds;
    return true;
}

/* As many repeats as a batch needs to last. */
static bool calibrate(struct comparison *c, int contender)
{
    int *const repeats = &c->repeats[contender];
    double seconds = 0;
    for (*repeats = 1; time_batch(c, contender, *repeats, &seconds); *repeats *= 2)
        if (seconds >= BATCH_SECONDS || *repeats >= MOST_REPEATS)
            return true;
    return false;
}

static bool measure(struct comparison *c)
{
    for (int k = 0; k < CONTENDERS; k++)
        if (!check(c, k) || !calibrate(c, k))
            return false;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < CONTENDERS; k++) {
            double seconds = 0;
            if (!time_batch(c, k, c->repeats[k], &seconds))
                return false;
            c->samples[k][round] = seconds / c->repeats[k];
        }
    }
    for (int k = 0; k < CONTENDERS; k++)
        if (!check(c, k))
            return false;
    return true;
}

/* The contender's name; what auto chose beside it. */
static void name_of(const struct comparison *c, int contender, char *text, size_t size)
{
    spmv_plan_info info = {.method = "?"};
    if (contender >= OURS) {
        snprintf(text, size, "%s", algorithms[contender - OURS].name);
    } else if (strcmp(method_names[contender], "auto") == 0) {
        spmv_plan_describe(c->plans[contender], &info, sizeof info);
        snprintf(text, size, "auto (%s)", info.method);
    } else {
        snprintf(text, size, "%s", method_names[contender]);
    }
}

static void print_head(void)
{
    printf("%-28s %-4s %11s %11s  %-14s %12s %9s %12s  %s\n", "matrix", "type", "rows", "nnz", "method", "us", "GB/s",
           "x cuSPARSE", "error / bound");
}

static void print_rows(struct comparison *c)
{
    const double bytes = (double)c->host.nnz * (4 + (double)value_bytes(c)) + 4 * ((double)c->host.rows + 1) +
                         (double)value_bytes(c) * ((double)c->host.rows + (double)c->host.cols);
    double seconds[CONTENDERS], best = INFINITY;
    char method[64];
    for (int k = 0; k < CONTENDERS; k++) {
        seconds[k] = timing_summary(c->samples[k], ROUNDS).median;
        if (k >= OURS)
            best = fmin(best, seconds[k]);
    }
    const char *const slash = strrchr(c->name, '/');
    for (int k = 0; k < CONTENDERS; k++) {
        name_of(c, k, method, sizeof method);
        printf("%-28.28s %-4s %11lld %11lld  %-14s %12.2f %9.1f %12.3f  %.3g%s\n", slash != NULL ? slash + 1 : c->name,
               spmv_type_name(c->type), (long long)c->host.rows, (long long)c->host.nnz, method, 1e6 * seconds[k],
               1e-9 * bytes / seconds[k], best / seconds[k], c->worst[k], c->wrong[k] ? "  WRONG" : "");
    }
    fflush(stdout);
}

static void release(struct comparison *c)
{
    for (int m = 0; m < OURS; m++)
        spmv_plan_destroy(c->plans[m]);
    for (int a = 0; a < THEIRS; a++) {
        if (c->algorithms[a].matrix != NULL)
            cusparseDestroySpMat(c->algorithms[a].matrix);
        cudaFree(c->algorithms[a].buffer);
    }
    if (c->x_vector != NULL)
        cusparseDestroyDnVec(c->x_vector);
    if (c->y_vector != NULL)
        cusparseDestroyDnVec(c->y_vector);
    if (c->begin != NULL)
        cudaEventDestroy(c->begin);
    if (c->end != NULL)
        cudaEventDestroy(c->end);
    void *const device[] = {c->row_ptr, c->col, c->val, c->x, c->y};
    for (size_t d = 0; d < sizeof device / sizeof device[0]; d++)
        spmv_free(c->cuda, device[d]);
    free(c->host_x);
    free(c->host_y);
    free(c->host_poison);
    spmv_matrix_destroy(c->matrix);
}

/* Compares with one matrix in one type. Gives the exit status. */
static int compare(const struct comparison *shared, const char *name, spmv_type type)
{
    struct comparison c = *shared;
    int result = 2;
    c.name = name;
    c.type = type;
    if (load(&c) && upload(&c) && make_plans(&c) && make_algorithms(&c) && measure(&c)) {
        print_rows(&c);
        result = 0;
        for (int k = 0; k < CONTENDERS; k++)
            if (c.wrong[k])
                result = 1;
    }
    release(&c);
    return result;
}

static bool open_context(struct comparison *shared, spmv_backend backend, spmv_context **ctx)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = backend;
    options.stream = backend == SPMV_BACKEND_CUDA ? (void *)shared->stream : NULL;
    return !bad_spmv(spmv_context_create(&options, ctx), NULL, spmv_backend_name(backend));
}

static bool open_all(struct comparison *shared)
{
    return !bad_cuda(cudaStreamCreateWithFlags(&shared->stream, cudaStreamNonBlocking), "no stream") &&
           open_context(shared, SPMV_BACKEND_CUDA, &shared->cuda) &&
           open_context(shared, SPMV_BACKEND_OMP, &shared->omp) &&
           !bad_sparse(cusparseCreate(&shared->sparse), "cusparseCreate") &&
           !bad_sparse(cusparseSetStream(shared->sparse, shared->stream), "cusparseSetStream");
}

static void close_all(struct comparison *shared)
{
    if (shared->sparse != NULL)
        cusparseDestroy(shared->sparse);
    spmv_context_destroy(shared->omp);
    spmv_context_destroy(shared->cuda);
    if (shared->stream != NULL)
        cudaStreamDestroy(shared->stream);
}

int main(int argc, char **argv)
{
    struct comparison shared = {0};
    int worst = 0;
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: compare_cusparse A...    (Matrix Market files, SPECs)\n");
        return 2;
    }
    if (!open_all(&shared)) {
        close_all(&shared);
        return 2;
    }
    int version = 0;
    cusparseGetVersion(shared.sparse, &version);
    printf("%s; cuSPARSE %d.%d.%d; medians of %d batches of at least %g ms\n", spmv_context_describe(shared.cuda),
           version / 1000, version / 100 % 10, version % 100, ROUNDS, 1e3 * BATCH_SECONDS);
    print_head();
    for (int i = 1; i < argc; i++) {
        for (int t = 0; t < 2; t++) {
            const int result = compare(&shared, argv[i], t == 0 ? SPMV_F64 : SPMV_F32);
            if (result == 1 || worst == 0) /* a wrong result outweighs what could not be done */
                worst = result;
        }
    }
    close_all(&shared);
    return worst;
}
