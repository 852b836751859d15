/* cuSPARSE: C = A B by cusparseSpGEMM (both phases), and by cusparseSpGEMMreuse, whose compute step is
 * the numeric phase with the pattern of C known.
 *
 * Buffers and C are kept from run to run and only grow, so a run after the first one allocates
 * nothing. The values of C are written to the result directly. With ALG3 the products of 1/5 of A
 * are in memory at a time, as in NVIDIA's sample.
 *
 * Source: the cuSPARSE documentation, "cusparseSpGEMM" and "cusparseSpGEMMreuse".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench/peers/peer_cusparse.h"

enum { BUFFERS = 5 };

static const float CHUNK = 0.2f;

struct spgemm {
    struct peer_problem problem;
    cudaStream_t stream;
    cusparseHandle_t handle;
    cusparseConstSpMatDescr_t a, b; /* b may be a */
    cusparseSpMatDescr_t c;
    cusparseSpGEMMDescr_t work;
    cudaDataType type;
    cusparseSpGEMMAlg_t algorithm;
    void *buffer[BUFFERS];
    size_t bytes[BUFFERS];
    void *row_ptr, *col;
    int64_t entries; /* that col has room for */
};

static const cusparseOperation_t PLAIN = CUSPARSE_OPERATION_NON_TRANSPOSE;

/* Makes buffer k at least this large. */
static bool need(struct spgemm *p, int k, size_t bytes, char *why, size_t why_size)
{
    if (p->buffer[k] != NULL && bytes <= p->bytes[k])
        return true;
    cudaFree(p->buffer[k]);
    p->buffer[k] = NULL;
    p->bytes[k] = bytes;
    return !bad_cuda(device_alloc(bytes, &p->buffer[k]), "cudaMalloc", why, why_size);
}

static void end_product(struct spgemm *p)
{
    destroy_made(cusparseSpGEMM_destroyDescr, p->work);
    destroy_made(cusparseDestroySpMat, p->c);
    p->work = NULL;
    p->c = NULL;
}

static bool begin_product(struct spgemm *p, char *why, size_t why_size)
{
    end_product(p);
    return !bad_sparse(cusparseCreateCsr(&p->c, p->problem.rows, p->problem.right_cols, 0, p->row_ptr, NULL, NULL,
                                         CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type),
                       "cusparseCreateCsr", why, why_size) &&
           !bad_sparse(cusparseSpGEMM_createDescr(&p->work), "cusparseSpGEMM_createDescr", why, why_size);
}

/* Gives C its arrays, after its number of entries is known. */
static bool give_arrays(struct spgemm *p, char *why, size_t why_size)
{
    int64_t rows = 0, cols = 0, entries = 0;
    if (bad_sparse(cusparseSpMatGetSize(p->c, &rows, &cols, &entries), "cusparseSpMatGetSize", why, why_size))
        return false;
    if (p->col == NULL || entries > p->entries) {
        cudaFree(p->col);
        p->entries = entries;
        if (bad_cuda(device_alloc((size_t)entries * sizeof(int32_t), &p->col), "cudaMalloc", why, why_size))
            return false;
    }
    return !bad_sparse(cusparseCsrSetPointers(p->c, p->row_ptr, p->col, p->problem.y), "cusparseCsrSetPointers", why,
                       why_size);
}

/* ------------------------------------------------------------------------- both phases */

/* The arguments that all steps share. */
#define PRODUCT(p)                                                                                                     \
    (p)->handle, PLAIN, PLAIN, sparse_scalar((p)->type, 1), (p)->a, (p)->b, sparse_scalar((p)->type, 0), (p)->c,       \
        (p)->type, (p)->algorithm, (p)->work

/* ALG2 and ALG3: the memory that the product needs. */
static bool estimate(struct spgemm *p, size_t *bytes, char *why, size_t why_size)
{
    size_t here = 0;
    return !bad_sparse(cusparseSpGEMM_estimateMemory(PRODUCT(p), CHUNK, &here, NULL, NULL),
                       "cusparseSpGEMM_estimateMemory", why, why_size) &&
           need(p, 2, here, why, why_size) &&
           !bad_sparse(cusparseSpGEMM_estimateMemory(PRODUCT(p), CHUNK, &here, p->buffer[2], bytes),
                       "cusparseSpGEMM_estimateMemory", why, why_size);
}

static bool multiply(struct spgemm *p, char *why, size_t why_size)
{
    size_t first = 0, second = 0;
    if (!begin_product(p, why, why_size) ||
        bad_sparse(cusparseSpGEMM_workEstimation(PRODUCT(p), &first, NULL), "cusparseSpGEMM_workEstimation", why,
                   why_size) ||
        !need(p, 0, first, why, why_size) ||
        bad_sparse(cusparseSpGEMM_workEstimation(PRODUCT(p), &first, p->buffer[0]), "cusparseSpGEMM_workEstimation",
                   why, why_size))
        return false;
    if (p->algorithm == CUSPARSE_SPGEMM_ALG1) {
        if (bad_sparse(cusparseSpGEMM_compute(PRODUCT(p), &second, NULL), "cusparseSpGEMM_compute", why, why_size))
            return false;
    } else if (!estimate(p, &second, why, why_size)) {
        return false;
    }
    return need(p, 1, second, why, why_size) &&
           !bad_sparse(cusparseSpGEMM_compute(PRODUCT(p), &second, p->buffer[1]), "cusparseSpGEMM_compute", why,
                       why_size) &&
           give_arrays(p, why, why_size) &&
           !bad_sparse(cusparseSpGEMM_copy(PRODUCT(p)), "cusparseSpGEMM_copy", why, why_size);
}

/* ----------------------------------------------------------------------- numeric phase */

#undef PRODUCT
#define PRODUCT(p) (p)->handle, PLAIN, PLAIN, (p)->a, (p)->b, (p)->c, CUSPARSE_SPGEMM_DEFAULT, (p)->work

/* The pattern of C. */
static bool find_pattern(struct spgemm *p, char *why, size_t why_size)
{
    size_t first = 0, sizes[3] = {0, 0, 0}, last = 0;
    return begin_product(p, why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_workEstimation(PRODUCT(p), &first, NULL),
                       "cusparseSpGEMMreuse_workEstimation", why, why_size) &&
           need(p, 0, first, why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_workEstimation(PRODUCT(p), &first, p->buffer[0]),
                       "cusparseSpGEMMreuse_workEstimation", why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_nnz(PRODUCT(p), &sizes[0], NULL, &sizes[1], NULL, &sizes[2], NULL),
                       "cusparseSpGEMMreuse_nnz", why, why_size) &&
           need(p, 1, sizes[0], why, why_size) && need(p, 2, sizes[1], why, why_size) &&
           need(p, 3, sizes[2], why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_nnz(PRODUCT(p), &sizes[0], p->buffer[1], &sizes[1], p->buffer[2], &sizes[2],
                                               p->buffer[3]),
                       "cusparseSpGEMMreuse_nnz", why, why_size) &&
           give_arrays(p, why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_copy(PRODUCT(p), &last, NULL), "cusparseSpGEMMreuse_copy", why, why_size) &&
           need(p, 4, last, why, why_size) &&
           !bad_sparse(cusparseSpGEMMreuse_copy(PRODUCT(p), &last, p->buffer[4]), "cusparseSpGEMMreuse_copy", why,
                       why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size);
}

/* --------------------------------------------------------------------------- the peers */

static void close_spgemm(void *state)
{
    struct spgemm *const p = state;
    if (p == NULL)
        return;
    end_product(p);
    if (p->b != NULL && p->b != p->a)
        cusparseDestroySpMat(p->b);
    destroy_made(cusparseDestroySpMat, p->a);
    destroy_made(cusparseDestroy, p->handle);
    for (int k = 0; k < BUFFERS; k++)
        cudaFree(p->buffer[k]);
    cudaFree(p->row_ptr);
    cudaFree(p->col);
    free(p);
}

/* Describes both factors. */
static bool describe(struct spgemm *p, char *why, size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    if (!sparse_csr(q, &p->a, why, why_size))
        return false;
    p->b = p->a;
    if (q->right_row_ptr == q->row_ptr)
        return true;
    p->b = NULL;
    return sparse_csr_of(p->type, q->cols, q->right_cols, q->right_nnz, q->right_row_ptr, q->right_col, q->right_val,
                         &p->b, why, why_size);
}

static int open_spgemm(const struct peer_problem *problem, cusparseSpGEMMAlg_t algorithm, void **state, char *why,
                       size_t why_size)
{
    struct spgemm *const p = new_state(sizeof *p, why, why_size);
    if (p == NULL)
        return -1;
    p->problem = *problem;
    p->stream = problem->stream;
    p->type = sparse_type(problem);
    p->algorithm = algorithm;
    /* The first product shows whether its memory suffices. */
    if (sparse_handle(p->stream, &p->handle, why, why_size) && describe(p, why, why_size) &&
        !bad_cuda(device_alloc((size_t)(problem->rows + 1) * sizeof(int32_t), &p->row_ptr), "cudaMalloc", why,
                  why_size) &&
        (problem->op == PEER_SPGEMM ? multiply(p, why, why_size) : find_pattern(p, why, why_size))) {
        *state = p;
        return 0;
    }
    close_spgemm(p);
    return -1;
}

static int run_both(void *state)
{
    char why[128];
    return multiply(state, why, sizeof why) ? 0 : -1;
}

static int run_numeric(void *state)
{
    const struct spgemm *const p = state;
    return cusparseSpGEMMreuse_compute(p->handle, PLAIN, PLAIN, sparse_scalar(p->type, 1), p->a, p->b,
                                       sparse_scalar(p->type, 0), p->c, p->type, CUSPARSE_SPGEMM_DEFAULT,
                                       p->work) == CUSPARSE_STATUS_SUCCESS
               ? 0
               : -1;
}

#define PEERS(X)                                                                                                       \
    X(alg1, "cusparse-spgemm-alg1", PEER_SPGEMM, CUSPARSE_SPGEMM_ALG1, run_both, "SpGEMM, ALG1, buffers kept")         \
    X(alg2, "cusparse-spgemm-alg2", PEER_SPGEMM, CUSPARSE_SPGEMM_ALG2, run_both, "SpGEMM, ALG2, buffers kept")         \
    X(alg3, "cusparse-spgemm-alg3", PEER_SPGEMM, CUSPARSE_SPGEMM_ALG3, run_both, "SpGEMM, ALG3, buffers kept")         \
    X(reuse, "cusparse-spgemm-reuse", PEER_SPGEMM_NUMERIC, CUSPARSE_SPGEMM_DEFAULT, run_numeric, "SpGEMMreuse_compute")

#define OPEN(name, text, op, algorithm, run, settings)                                                                 \
    static int open_##name(const struct peer_problem *problem, void **state, char *why, size_t why_size)               \
    {                                                                                                                  \
        return open_spgemm(problem, algorithm, state, why, why_size);                                                  \
    }
PEERS(OPEN)
#undef OPEN

const struct peer_module *spmv_peer_module(void)
{
#define PEER(name, text, op, algorithm, run, settings)                                                                 \
    {text, op, "CSR, " settings, 0, open_##name, run, NULL, NULL, close_spgemm},
    static const struct peer peers[] = {PEERS(PEER)};
#undef PEER
    static char library[64];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    sparse_version(library, sizeof library);
    return &module;
}
