/* The direct solver cuDSS of NVIDIA: factors on the GPU of the context, of symmetric and Hermitian matrices with one
 * triangle. The order is found on the host.
 *
 * What is computed repeats, bit for bit, in its deterministic mode, which is on. cuDSS takes rows (CSR): those of a general
 * matrix are gathered from its columns here. Pivots that are 0 are replaced by small numbers, and counted: such a matrix
 * is refused as singular.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime_api.h>
#include <cudss.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/modules/direct_module.h"

struct cudss {
    struct direct_problem problem;
    cudssHandle_t handle;
    cudssConfig_t config;
    cudssData_t data;
    cudssMatrix_t matrix, right, left;
    bool half;           /* the lower triangle, as rows */
    int64_t entries;     /* of the rows */
    int64_t *place;      /* entry e of the rows is number place[e] of the columns */
    double *host;        /* values of the rows */
    void *device[5];     /* row_ptr, col, val, b, x */
    int64_t bytes, size; /* of the device arrays; of a number */
    bool factors;        /* there were some: the next ones keep their places */
    const char *failed;  /* the call that failed */
    int status;
};

enum { ROW_PTR, COL, VAL, B, X };

static bool done(struct cudss *c, cudssStatus_t status, const char *what)
{
    if (status == CUDSS_STATUS_SUCCESS)
        return true;
    c->failed = what;
    c->status = (int)status;
    return false;
}

static spmv_status failed(const struct cudss *c, char *why)
{
    const bool memory = c->status == CUDSS_STATUS_ALLOC_FAILED;
    snprintf(why, DIRECT_WHY, "%s failed with cuDSS's status %d%s", c->failed, c->status,
             memory ? ", out of memory" : "");
    return memory ? SPMV_ERROR_MEMORY : SPMV_ERROR_UNSUPPORTED;
}

static spmv_status fail_device(cudaError_t error, char *why)
{
    snprintf(why, DIRECT_WHY, "the GPU: %s", cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? SPMV_ERROR_MEMORY : SPMV_ERROR_DEVICE;
}

static void close_cudss(void *state)
{
    struct cudss *const c = state;
    if (c == NULL)
        return;
    if (c->matrix != NULL)
        cudssMatrixDestroy(c->matrix);
    if (c->right != NULL)
        cudssMatrixDestroy(c->right);
    if (c->left != NULL)
        cudssMatrixDestroy(c->left);
    if (c->data != NULL)
        cudssDataDestroy(c->handle, c->data);
    if (c->config != NULL)
        cudssConfigDestroy(c->config);
    if (c->handle != NULL)
        cudssDestroy(c->handle);
    for (int i = 0; i < 5; i++)
        cudaFree(c->device[i]);
    free(c->place);
    free(c->host);
    free(c);
}

/* The rows of A, of a symmetric one those of its lower triangle: columns of the upper one, which are its rows. Sets place;
 * row_ptr: n + 1 numbers, col: entries. */
static void take_rows(struct cudss *c, int32_t *row_ptr, int32_t *col)
{
    const struct direct_problem *const p = &c->problem;
    for (int64_t i = 0; i <= p->n; i++)
        row_ptr[i] = 0;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++)
            row_ptr[p->row[k] + 1] += !c->half || p->row[k] >= j;
    for (int64_t i = 0; i < p->n; i++)
        row_ptr[i + 1] += row_ptr[i];
    for (int64_t j = 0; j < p->n; j++) /* columns in ascending order, so those of each row ascend */
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++)
            if (!c->half || p->row[k] >= j) {
                const int32_t e = row_ptr[p->row[k]]++;
                col[e] = (int32_t)j;
                c->place[e] = k;
            }
    for (int64_t i = p->n; i > 0; i--)
        row_ptr[i] = row_ptr[i - 1];
    row_ptr[0] = 0;
}

static int64_t count_entries(const struct direct_problem *p, bool half)
{
    int64_t entries = 0;
    for (int64_t j = 0; j < p->n && half; j++)
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++)
            entries += p->row[k] >= j;
    return half ? entries : p->col_ptr[p->n];
}

/* One that may be positive definite too is factorised as symmetric: where it is not, another analysis would follow. */
static cudssMatrixType_t type_of(const struct direct_problem *p)
{
    if (p->symmetric)
        return CUDSS_MTYPE_SYMMETRIC;
    return p->hermitian ? CUDSS_MTYPE_HERMITIAN : CUDSS_MTYPE_GENERAL;
}

static bool create_matrix(struct cudss *c)
{
    const struct direct_problem *const p = &c->problem;
    const cudaDataType_t type = p->complex ? CUDA_C_64F : CUDA_R_64F;
    const cudssMatrixViewType_t view = c->half ? CUDSS_MVIEW_LOWER : CUDSS_MVIEW_FULL;
    return done(c,
                cudssMatrixCreateCsr(&c->matrix, p->n, p->n, c->entries, c->device[ROW_PTR], NULL, c->device[COL],
                                     c->device[VAL], CUDA_R_32I,
#if CUDSS_VERSION_MAJOR >= 1
                                     CUDA_R_32I,
#endif
                                     type, type_of(p), view, CUDSS_BASE_ZERO),
                "making the matrix") &&
           done(c, cudssMatrixCreateDn(&c->right, p->n, 1, p->n, c->device[B], type, CUDSS_LAYOUT_COL_MAJOR),
                "making a right-hand side") &&
           done(c, cudssMatrixCreateDn(&c->left, p->n, 1, p->n, c->device[X], type, CUDSS_LAYOUT_COL_MAJOR),
                "making a solution");
}

static bool configure(struct cudss *c)
{
    int on = 1, none = 0;
    return done(c, cudssCreate(&c->handle), "the start") &&
           done(c, cudssSetStream(c->handle, c->problem.stream), "setting the stream") &&
           done(c, cudssConfigCreate(&c->config), "the configuration") &&
           done(c, cudssConfigSet(c->config, CUDSS_CONFIG_DETERMINISTIC_MODE, &on, sizeof on),
                "the deterministic mode") &&
           done(c, cudssConfigSet(c->config, CUDSS_CONFIG_IR_N_STEPS, &none, sizeof none), "the configuration") &&
           done(c, cudssDataCreate(c->handle, &c->data), "the start");
}

static bool execute(struct cudss *c, int phase, const char *what)
{
    return done(c, cudssExecute(c->handle, phase, c->config, c->data, c->matrix, c->left, c->right), what);
}

/* Values of the rows, on the GPU. */
static cudaError_t upload_values(struct cudss *c, const double *val)
{
    const int64_t parts = c->size / 8;
    for (int64_t e = 0; e < c->entries; e++)
        memcpy(c->host + e * parts, val + c->place[e] * parts, (size_t)c->size);
    return cudaMemcpy(c->device[VAL], c->host, (size_t)(c->entries * c->size), cudaMemcpyHostToDevice);
}

static cudaError_t allocate(struct cudss *c)
{
    const int64_t n = c->problem.n,
                  bytes[5] = {(n + 1) * 4, c->entries * 4, c->entries * c->size, n * c->size, n * c->size};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 5 && error == cudaSuccess; i++) {
        error = cudaMalloc(&c->device[i], (size_t)bytes[i] + 1);
        c->bytes += bytes[i];
    }
    return error;
}

static spmv_status take_pattern(struct cudss *c, char *why)
{
    const int64_t n = c->problem.n;
    spmv_status st = SPMV_OK;
    int32_t *const row_ptr = malloc((size_t)(n + 1) * 4), *const col = malloc((size_t)c->entries * 4 + 1);
    c->place = malloc((size_t)c->entries * 8 + 1);
    c->host = malloc((size_t)(c->entries * c->size) + 1);
    if (row_ptr == NULL || col == NULL || c->place == NULL || c->host == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory");
        st = SPMV_ERROR_MEMORY;
    } else {
        take_rows(c, row_ptr, col);
        cudaError_t error = allocate(c);
        if (error == cudaSuccess)
            error = cudaMemcpy(c->device[ROW_PTR], row_ptr, (size_t)(n + 1) * 4, cudaMemcpyHostToDevice);
        if (error == cudaSuccess)
            error = cudaMemcpy(c->device[COL], col, (size_t)c->entries * 4, cudaMemcpyHostToDevice);
        if (error == cudaSuccess)
            error = upload_values(c, c->problem.val);
        st = error == cudaSuccess ? SPMV_OK : fail_device(error, why);
    }
    free(row_ptr);
    free(col);
    return st;
}

static int64_t count_of(struct cudss *c, cudssDataParam_t which)
{
    int64_t count = 0;
    size_t written = 0;
    return cudssDataGet(c->handle, c->data, which, &count, sizeof count, &written) == CUDSS_STATUS_SUCCESS ? count : 0;
}

static spmv_status open_cudss(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                              char *why)
{
    *state = NULL;
    const bool half = problem->symmetric || problem->hermitian;
    if (problem->col_ptr[problem->n] > INT32_MAX) {
        snprintf(why, DIRECT_WHY, "%lld nonzeros; cuDSS takes fewer than 2^31",
                 (long long)problem->col_ptr[problem->n]);
        return SPMV_ERROR_UNSUPPORTED;
    }
    struct cudss *const c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory");
        return SPMV_ERROR_MEMORY;
    }
    c->problem = *problem;
    c->half = half;
    c->size = problem->complex ? 16 : 8;
    c->entries = count_entries(problem, half);
    spmv_status st = take_pattern(c, why);
    if (st == SPMV_OK && !(configure(c) && create_matrix(c) && execute(c, CUDSS_PHASE_ANALYSIS, "the analysis")))
        st = failed(c, why);
    if (st != SPMV_OK) {
        close_cudss(c);
        return st;
    }
    const double nonzero =
        10; /* nanoseconds, of a factor on the GPU: an upper bound on grids in two and three dimensions */
    const int64_t nonzeros = count_of(c, CUDSS_DATA_LU_NNZ);
    *figures = (struct direct_figures){.ordering = "nested dissection",
                                       .nonzeros = nonzeros,
                                       .nanoseconds = nonzero * (double)nonzeros,
                                       .bytes = c->bytes,
                                       .no_adjoint = CUDSS_VERSION_MAJOR < 1 && !problem->hermitian};
    *state = c;
    return SPMV_OK;
}

static spmv_status factor_cudss(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct cudss *const c = state;
    const cudaError_t error = upload_values(c, val);
    int info = 0;
    size_t written = 0;
    if (error != cudaSuccess)
        return fail_device(error, why);
    c->factors = execute(c, c->factors ? CUDSS_PHASE_REFACTORIZATION : CUDSS_PHASE_FACTORIZATION, "the factorisation");
    if (!c->factors ||
        !done(c, cudssDataGet(c->handle, c->data, CUDSS_DATA_INFO, &info, sizeof info, &written), "the factorisation"))
        return failed(c, why);
    const int pivots = (int)count_of(c, CUDSS_DATA_NPIVOTS);
    if (info != 0) {
        c->factors = false;
        snprintf(why, DIRECT_WHY, "the matrix is singular to rounding: %d of its pivots were replaced", pivots);
        return SPMV_ERROR_SINGULAR;
    }
    figures->nonzeros = count_of(c, CUDSS_DATA_LU_NNZ);
    figures->bytes = c->bytes + figures->nonzeros * c->size;
    figures->rcond = -1;
    figures->negative =
        -1; /* nor the determinant: D has the pivots that replace small ones, which are not always counted */
    return SPMV_OK;
}

static spmv_status solve_one(struct cudss *c, double *x, char *why)
{
    const size_t bytes = (size_t)(c->problem.n * c->size);
    cudaError_t error = cudaMemcpyAsync(c->device[B], x, bytes, cudaMemcpyHostToDevice, c->problem.stream);
    if (error == cudaSuccess && !execute(c, CUDSS_PHASE_SOLVE, "the solution"))
        return failed(c, why);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(x, c->device[X], bytes, cudaMemcpyDeviceToHost, c->problem.stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(c->problem.stream);
    return error == cudaSuccess ? SPMV_OK : fail_device(error, why);
}

/* One column after the other: the deterministic mode takes one only. */
static spmv_status solve_cudss(void *state, double *x, int64_t columns, char *why)
{
    struct cudss *const c = state;
    spmv_status st = SPMV_OK;
    for (int64_t k = 0; k < columns && st == SPMV_OK; k++)
        st = solve_one(c, x + k * c->problem.n * c->size / 8, why);
    return st;
}

static spmv_status solve_adjoint_cudss(void *state, double *x, int64_t columns, char *why)
{
    struct cudss *const c = state;
    if (c->problem.hermitian)
        return solve_cudss(state, x, columns, why);
#if CUDSS_VERSION_MAJOR >= 1
    int mode = CUDSS_SOLVE_MODE_CONJUGATE_TRANSPOSE;
    if (!done(c, cudssConfigSet(c->config, CUDSS_CONFIG_SOLVE_MODE, &mode, sizeof mode), "the conjugate transpose"))
        return failed(c, why);
    const spmv_status st = solve_cudss(state, x, columns, why);
    mode = CUDSS_SOLVE_MODE_NORMAL;
    if (!done(c, cudssConfigSet(c->config, CUDSS_CONFIG_SOLVE_MODE, &mode, sizeof mode), "the matrix itself"))
        return failed(c, why);
    return st;
#else
    snprintf(why, DIRECT_WHY, "cuDSS before 1.0 does not solve with the conjugate transpose of a general matrix");
    return SPMV_ERROR_UNSUPPORTED;
#endif
}

const struct direct_module *spmv_direct_module(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    static const struct direct_module module = {
        DIRECT_MODULE_ABI,
        "cuDSS " TEXT(CUDSS_VERSION_MAJOR) "." TEXT(CUDSS_VERSION_MINOR) "." TEXT(CUDSS_VERSION_PATCH),
        open_cudss,
        factor_cudss,
        solve_cudss,
        solve_adjoint_cudss,
        close_cudss};
    return &module;
}
