/* cuSPARSE and cuBLAS in sequence: y = A x by cusparseSpMV, preprocessed, and w'y by cublasDdot or
 * cublasSdot with the result on the device. This is the cost of a step of conjugate gradients with
 * these libraries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench/peers/cusparse_product.h"
#include "bench/peers/peer_cublas.h"

/* name, peer, algorithm, settings */
#define VARIANT_LIST(X)                                                                                                \
    X(alg1, "cublas-dot-alg1", CUSPARSE_SPMV_CSR_ALG1, "CSR_ALG1, preprocessed")                                       \
    X(alg2, "cublas-dot-alg2", CUSPARSE_SPMV_CSR_ALG2, "CSR_ALG2, preprocessed")

struct product_dot {
    struct product product;
    cublasHandle_t blas;
};

static bool begin_blas(struct product_dot *d, char *why, size_t why_size)
{
    return !bad_blas(cublasCreate(&d->blas), "cublasCreate", why, why_size) &&
           !bad_blas(cublasSetStream(d->blas, d->product.stream), "cublasSetStream", why, why_size) &&
           !bad_blas(cublasSetPointerMode(d->blas, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode", why, why_size);
}

static void close_product(void *state)
{
    struct product_dot *const d = state;
    if (d == NULL)
        return;
    product_end(&d->product);
    if (d->blas != NULL)
        cublasDestroy(d->blas);
    free(d);
}

static int open_product(const struct peer_problem *problem, cusparseSpMVAlg_t algorithm, void **state, char *why,
                        size_t why_size)
{
    struct product_dot *const d = new_state(sizeof *d, why, why_size);
    if (d == NULL)
        return -1;
    struct product *const p = &d->product;
    if (product_begin(p, problem, algorithm, why, why_size) && begin_blas(d, why, why_size) &&
        product_make_csr(p, why, why_size) && product_preprocess(p, why, why_size) &&
        !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size)) {
        *state = d;
        return 0;
    }
    close_product(d);
    return -1;
}

static int run_product(void *state)
{
    const struct product_dot *const d = state;
    const struct peer_problem *const q = &d->product.problem;
    const int n = (int)q->rows; /* below 2^31, because row_ptr has 32 bits and few rows are empty */
    if (product_run(&d->product) != 0)
        return -1;
    return (d->product.type == CUDA_R_32F
                ? cublasSdot(d->blas, n, q->w, 1, q->y, 1, (float *)q->y + n)
                : cublasDdot(d->blas, n, q->w, 1, q->y, 1, (double *)q->y + n)) == CUBLAS_STATUS_SUCCESS
               ? 0
               : -1;
}

#define OPEN_(name, peer, algorithm, settings)                                                                         \
    static int open_##name(const struct peer_problem *problem, void **state, char *why, size_t why_size)               \
    {                                                                                                                  \
        return open_product(problem, algorithm, state, why, why_size);                                                 \
    }
VARIANT_LIST(OPEN_)
#undef OPEN_

#define PEER_(name, peer, algorithm, settings)                                                                         \
    {peer, PEER_SPMV_DOT, "cusparseSpMV: CSR, " settings "; cublas dot", 0, open_##name, run_product, NULL,            \
     NULL, close_product},
static const struct peer peers[] = {VARIANT_LIST(PEER_)};
#undef PEER_

const struct peer_module *spmv_peer_module(void)
{
    static char library[80];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    char sparse[32], blas[32];
    sparse_version(sparse, sizeof sparse);
    blas_version(blas, sizeof blas);
    snprintf(library, sizeof library, "%s and %s", sparse, blas);
    return &module;
}
