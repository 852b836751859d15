/* One product on ranks: each rank multiplies its own rows, and checks them against another backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "app/output.h"
#include "app/product.h"
#include "core/reals.h"

/* The number of products that are timed. */
enum { REPEATS = 5 };

void product_plan_on_ranks(struct product *p)
{
    const spmv_group_matrix_info *const part = &p->place->part;
    p->info = (spmv_plan_info){.method = part->method,
                               .why = "",
                               .layout = "",
                               .type = part->type,
                               .rows = part->rows,
                               .cols = part->cols,
                               .nnz = part->nnz,
                               .bytes = part->bytes,
                               .seconds = p->place->plan_seconds,
                               .vectors = p->vectors,
                               .value_type = p->a->type};
}

/* y = y0 or nothing, before the product. */
static spmv_status begin(struct product *p)
{
    struct place *const place = p->place;
    const int64_t rows = place->part.own_rows * p->vectors;
    spmv_status st = p->y != NULL ? SPMV_OK : place_vectors(place, "y", SPMV_GROUP_ROWS, p->vectors, 0, &p->y);
    if (st != SPMV_OK || p->y0 == NULL)
        return st;
    if (rows > 0)
        st = place_passed(place,
                          spmv_map(p->ctx, SPMV_MAP_COPY, type_part(p->type), p->y0, p->y, rows * type_parts(p->type)));
    return place_agree(place, st);
}

/* A real number of a type that may be complex; room for all types. */
static spmv_c128 scalar(spmv_type type, double value)
{
    spmv_c128 number = {0, 0};
    real_set(type_part(type), &number, 0, value);
    return number;
}

/* One vector after the other. */
static spmv_status multiply(struct product *p, const void *alpha, const void *beta)
{
    struct place *const place = p->place;
    spmv_status st = SPMV_OK;
    for (int v = 0; v < p->vectors && st == SPMV_OK; v++)
        st = place_passed(place, spmv_group_apply(place->matrix, alpha, place_one(place, SPMV_GROUP_COLS, p->x, v),
                                                  beta, place_one(place, SPMV_GROUP_ROWS, p->y, v)));
    return st;
}

spmv_status product_run_on_ranks(struct product *p)
{
    struct place *const place = p->place;
    const spmv_c128 alpha = scalar(p->type, p->alpha), beta = scalar(p->type, p->y0 != NULL ? p->beta : 0);
    /* with y0, y changes with each product */
    const int repeats = p->timed && p->y0 == NULL ? REPEATS : 1;
    double samples[REPEATS];
    spmv_status st = begin(p);
    if (st == SPMV_OK && p->timed)
        place_start(place);
    for (int i = 0; i < repeats && st == SPMV_OK; i++) {
        const double began = monotonic_seconds();
        st = multiply(p, &alpha, &beta);
        samples[i] = monotonic_seconds() - began;
    }
    if (st != SPMV_OK)
        return st;
    p->first_call_seconds = samples[0];
    p->seconds = timing_summary(samples, repeats);
    if (p->timed)
        place_stop(place);
    return SPMV_OK;
}

/* The context of the checker, which later checks take again. */
static spmv_status open_checker(struct place *place)
{
    spmv_context_options options;
    if (place->checker != NULL)
        return SPMV_OK;
    spmv_context_options_init(&options, sizeof options);
    options.first_index = 1;
    options.backend = product_checker(spmv_context_backend(place->ctx));
    options.threads = spmv_context_threads(place->ctx);
    const spmv_status st = spmv_context_create(&options, &place->checker);
    if (st != SPMV_OK) {
        spmv_context_report(place->ctx, st, spmv_last_error(NULL));
        report(st, spmv_last_error(place->ctx));
    }
    return place_agree(place, st);
}

spmv_status product_check_on_ranks(struct product *p)
{
    struct place *const place = p->place;
    const spmv_c128 alpha = scalar(p->type, p->alpha), beta = scalar(p->type, p->y0 != NULL ? p->beta : 0);
    spmv_status st = open_checker(place);
    if (st != SPMV_OK)
        return st;
    p->reference = spmv_backend_name(spmv_context_backend(place->checker));
    spmv_status verdict = SPMV_OK;
    for (int v = 0; v < p->vectors && st == SPMV_OK; v++) {
        spmv_verify_result check;
        st = spmv_group_verify(place->matrix, place->checker, &alpha, place_one(place, SPMV_GROUP_COLS, p->x, v), &beta,
                               place_one(place, SPMV_GROUP_ROWS, p->y0, v), place_one(place, SPMV_GROUP_ROWS, p->y, v),
                               &check, sizeof check);
        if (st == SPMV_ERROR_CHECK) {
            verdict = st;
            st = SPMV_OK;
        }
        if (st == SPMV_OK)
            product_keep_check(p, v, &check);
    }
    return st == SPMV_OK ? verdict : place_passed(place, st);
}
