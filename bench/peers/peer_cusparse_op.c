/* cuSPARSE: y = A x by cusparseSpMVOp, an experimental interface of newer versions with a descriptor
 * and a plan, on CSR of the problem's arrays, without an epilogue of the caller.
 *
 * It computes z = alpha A x + beta y. Here beta is 0, and y and z are the same vector.
 *
 * Source: the cuSPARSE documentation, "Generic APIs", cusparseSpMVOp(); the declarations are in
 * cusparse.h behind a macro.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define CUSPARSE_ENABLE_EXPERIMENTAL_API
#include <stdlib.h>

#include "bench/peers/cusparse_product.h"

struct state {
    struct product product; /* its handle, matrix, vectors and buffer */
    cusparseSpMVOpDescr_t operation;
    cusparseSpMVOpPlan_t plan;
};

static void close_operation(void *state)
{
    struct state *const s = state;
    if (s == NULL)
        return;
    destroy_made(cusparseSpMVOp_destroyPlan, s->plan);
    destroy_made(cusparseSpMVOp_destroyDescr, s->operation);
    product_end(&s->product);
    free(s);
}

static bool make_plan(struct state *s, cusparseSpMVOpAlg_t algorithm, char *why, size_t why_size)
{
    struct product *const p = &s->product;
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    size_t bytes = 0;
    return !bad_sparse(
               cusparseSpMVOp_bufferSize(p->handle, plain, p->matrix, p->x, p->y, p->y, p->type, algorithm, &bytes),
               "cusparseSpMVOp_bufferSize", why, why_size) &&
           !bad_cuda(device_alloc(bytes, &p->buffer), "cudaMalloc", why, why_size) &&
           !bad_sparse(cusparseSpMVOp_createDescr(p->handle, &s->operation, plain, p->matrix, p->x, p->y, p->y, p->type,
                                                  algorithm, p->buffer),
                       "cusparseSpMVOp_createDescr", why, why_size) &&
           !bad_sparse(cusparseSpMVOp_createPlan(p->handle, s->operation, &s->plan, NULL, 0),
                       "cusparseSpMVOp_createPlan", why, why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size);
}

static int open_operation(const struct peer_problem *problem, cusparseSpMVOpAlg_t algorithm, void **state, char *why,
                          size_t why_size)
{
    struct state *const s = new_state(sizeof *s, why, why_size);
    if (s == NULL)
        return -1;
    if (product_begin(&s->product, problem, CUSPARSE_SPMV_ALG_DEFAULT, why, why_size) &&
        sparse_csr(problem, &s->product.matrix, why, why_size) && make_plan(s, algorithm, why, why_size)) {
        *state = s;
        return 0;
    }
    close_operation(s);
    return -1;
}

static int open_alg1(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_operation(problem, CUSPARSE_SPMVOP_ALG1, state, why, why_size);
}

static int open_alg2(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_operation(problem, CUSPARSE_SPMVOP_ALG2, state, why, why_size);
}

static int run_operation(void *state)
{
    const struct state *const s = state;
    const struct product *const p = &s->product;
    return cusparseSpMVOp(p->handle, s->plan, sparse_scalar(p->type, 1), sparse_scalar(p->type, 0), p->x, p->y, p->y) ==
                   CUSPARSE_STATUS_SUCCESS
               ? 0
               : -1;
}

static const struct peer peers[] = {
    {"cusparse-op-alg1", PEER_SPMV, "cusparseSpMVOp: CSR, ALG1", 0, open_alg1, run_operation, NULL, NULL,
     close_operation},
    {"cusparse-op-alg2", PEER_SPMV, "cusparseSpMVOp: CSR, ALG2", 0, open_alg2, run_operation, NULL, NULL,
     close_operation},
};

const struct peer_module *spmv_peer_module(void)
{
    static char library[48];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    sparse_version(library, sizeof library);
    return &module;
}
