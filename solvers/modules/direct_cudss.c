/* The direct solver cuDSS of NVIDIA: factors on the GPU of the context, of symmetric and Hermitian matrices with one
 * triangle. The order is found on the host.
 *
 * The matrix and the vectors are in the device's memory. cuDSS gets all of A by rows, and of a symmetric or Hermitian one is
 * told to ignore what is above the diagonal (CUDSS_MVIEW_LOWER).
 *
 * What is computed repeats, bit for bit, in its deterministic mode, which is on. Pivots that are 0 are replaced by small
 * numbers, and counted: such a matrix is refused as singular.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime_api.h>
#include <cudss.h>
#include <stdio.h>
#include <stdlib.h>

#include "solvers/modules/direct_module.h"

struct cudss {
    struct direct_problem problem;
    cudssHandle_t handle;
    cudssConfig_t config;
    cudssData_t data;
    cudssMatrix_t matrix, right, left;
    void *b; /* on the device: a right-hand side, as cuDSS does not solve in place */
    void *stream;
    int64_t size;       /* of a number */
    bool factors;       /* there were some: the next ones keep their places */
    const char *failed; /* the call that failed */
    int status;
};

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
    cudaFree(c->b);
    free(c);
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
    const struct direct_device *const a = p->device;
    const cudaDataType_t type = p->complex ? CUDA_C_64F : CUDA_R_64F;
    const cudssMatrixViewType_t view = p->symmetric || p->hermitian ? CUDSS_MVIEW_LOWER : CUDSS_MVIEW_FULL;
    return done(c, /* it takes arrays that are not const, and does not write to them */
                cudssMatrixCreateCsr(&c->matrix, p->n, p->n, a->nnz, (void *)a->row_ptr, NULL, (void *)a->col,
                                     (void *)a->val, CUDA_R_32I,
#if CUDSS_VERSION_MAJOR >= 1
                                     CUDA_R_32I,
#endif
                                     type, type_of(p), view, CUDSS_BASE_ZERO),
                "making the matrix") &&
           done(c, cudssMatrixCreateDn(&c->right, p->n, 1, p->n, c->b, type, CUDSS_LAYOUT_COL_MAJOR),
                "making a right-hand side") &&
           done(c, cudssMatrixCreateDn(&c->left, p->n, 1, p->n, c->b, type, CUDSS_LAYOUT_COL_MAJOR),
                "making a solution");
}

/* What follows is in the present stream of the context. */
static bool set_stream(struct cudss *c)
{
    void *const stream = c->problem.device->stream;
    if (c->stream == stream)
        return true;
    c->stream = stream;
    return done(c, cudssSetStream(c->handle, stream), "setting the stream");
}

static bool configure(struct cudss *c)
{
    int on = 1, none = 0;
    return done(c, cudssCreate(&c->handle), "the start") && set_stream(c) &&
           done(c, cudssConfigCreate(&c->config), "the configuration") &&
           done(c, cudssConfigSet(c->config, CUDSS_CONFIG_DETERMINISTIC_MODE, &on, sizeof on),
                "the deterministic mode") &&
           done(c, cudssConfigSet(c->config, CUDSS_CONFIG_IR_N_STEPS, &none, sizeof none), "the configuration") &&
           done(c, cudssDataCreate(c->handle, &c->data), "the start");
}

static bool execute(struct cudss *c, int phase, const char *what)
{
    return set_stream(c) &&
           done(c, cudssExecute(c->handle, phase, c->config, c->data, c->matrix, c->left, c->right), what);
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
    struct cudss *const c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory");
        return SPMV_ERROR_MEMORY;
    }
    c->problem = *problem;
    c->size = problem->complex ? 16 : 8;
    const cudaError_t error = cudaMalloc(&c->b, (size_t)(problem->n * c->size));
    spmv_status st = error == cudaSuccess ? SPMV_OK : fail_device(error, why);
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
                                       .bytes = problem->n * c->size,
                                       .no_adjoint = CUDSS_VERSION_MAJOR < 1 && !problem->hermitian};
    *state = c;
    return SPMV_OK;
}

/* The values are where they were, on the device. */
static spmv_status factor_cudss(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct cudss *const c = state;
    int info = 0;
    size_t written = 0;
    (void)val;
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
    figures->bytes = (c->problem.n + figures->nonzeros) * c->size;
    figures->rcond = -1;
    figures->negative =
        -1; /* nor the determinant: D has the pivots that replace small ones, which are not always counted */
    return SPMV_OK;
}

/* Queued. One column after the other: the deterministic mode takes one only. */
static spmv_status solve_cudss(void *state, double *x, int64_t columns, char *why)
{
    struct cudss *const c = state;
    const int64_t bytes = c->problem.n * c->size;
    for (int64_t k = 0; k < columns; k++) {
        void *const column = (char *)x + k * bytes;
        const cudaError_t error =
            cudaMemcpyAsync(c->b, column, (size_t)bytes, cudaMemcpyDeviceToDevice, c->problem.device->stream);
        if (error != cudaSuccess)
            return fail_device(error, why);
        if (!done(c, cudssMatrixSetValues(c->left, column), "the solution") ||
            !execute(c, CUDSS_PHASE_SOLVE, "the solution"))
            return failed(c, why);
    }
    return SPMV_OK;
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
