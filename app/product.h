/* y = alpha op(A) x + beta y0: planned, run, timed and checked; what is said about it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_PRODUCT_H
#define APP_PRODUCT_H

#include <jansson.h>
#include <spmv/plan.h>
#include <stdbool.h>

#include "app/options.h"
#include "app/place/place.h"
#include "bench/timing.h"

struct product {
    /* set by the caller */
    struct place *place; /* NULL: the context of product_plan. On ranks: of place_load */
    const spmv_csr *a;   /* host memory; must outlive the product */
    spmv_operation operation;
    const char *method;
    int compression; /* of the plan */
    spmv_type type;
    double alpha, beta;  /* rounded to the type */
    const void *x, *y0;  /* vectors of the place (host memory); y0 NULL: no beta term */
    int vectors;         /* number of vectors in x, y0 and y, stored row by row; 0: one */
    bool timed, bitwise; /* repeat the product: to time it, to compare bits */
    /* set by product_plan */
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info; /* strings live as long as the plan */
    spmv_csr view;       /* of a, in the context's memory */
    void *copies[3];     /* of a's arrays, in the context's memory if that is not host memory */
    double upload_seconds;
    double model_bytes; /* bytes of y = op(A) x in plain CSR, each array read or written once */
    /* set by product_run */
    void *y; /* a vector of the place (host memory) */
    double first_call_seconds;
    struct timing seconds;
    int bitwise_repeats, bitwise_different;
    /* set by product_check */
    const char *reference;
    /* for several vectors: failed rows of all; other members of the vector with the worst row */
    spmv_verify_result check;
    int worst_vector;
    spmv_verify_result *checks; /* NULL, or receives the result of each vector */
};

/* Makes the plan on ctx; on ranks place_load has made it. Call product_free in any case. */
spmv_status product_plan(spmv_context *ctx, struct product *p);

/* Multiplies. On ranks: together. */
spmv_status product_run(struct product *p);

/* Checks y against another backend: cuda against omp, omp against ref, ref against omp. Sets
 * p->check. SPMV_ERROR_CHECK, without a message, if a row exceeds its bound. On ranks: together. */
spmv_status product_check(const struct options *o, struct product *p);
void product_free(struct product *p);

/* Keeps the check of vector v: the worst row of all, and the number of failed rows. */
void product_keep_check(struct product *p, int v, const spmv_verify_result *check);

/* Whether the product is computed on ranks, and then the same steps (product_ranks.c). */
bool product_on_ranks(const struct product *p);
void product_plan_on_ranks(struct product *p);
spmv_status product_run_on_ranks(struct product *p);
spmv_status product_check_on_ranks(struct product *p);

/* The backend that checks the products of another one. */
spmv_backend product_checker(spmv_backend backend);

/* Prints the first lines of a summary: the matrix, where and how it is multiplied. */
void remark_plan(const char *matrix, const struct product *p);

/* Prints the result of product_check; a failure as an error. what: the product, "y". */
void tell_check(const struct product *p, const char *what);

/* Additions and multiplications of real numbers: 2 per entry and vector, 8 in complex types. */
double product_flops(const struct product *p);

/* The members of "result" that the plan determines; op: "spmv", "cg". */
json_t *json_plan(const struct product *p, const char *op);

/* "verify": the result of product_check. */
json_t *json_check(const struct product *p);

/* Copies a host array to the context's memory. */
spmv_status send_array(spmv_context *ctx, const void *host_from, int64_t bytes, void **to);

#endif
