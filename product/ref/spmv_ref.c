/* Method "definition" of the backend ref: y_i = alpha sum_j a_ij x_j + beta y_i, one row after the
 * other, in the order of the stored entries. Products and sums are in long double and rounded once
 * at the end. Several vectors are computed one after the other. All other methods are tested
 * against this one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/reals.h"
#include "product/plan_internal.h"

#define REAL_ONLY
#define TEMPLATE "product/ref/spmv_ref_real.h"
#include "product/each_plan_type.h"
#undef TEMPLATE

struct wide {
    long double re, im;
};

static struct wide times(struct wide a, struct wide b)
{
    return (struct wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct wide plus(struct wide a, struct wide b)
{
    return (struct wide){a.re + b.re, a.im + b.im};
}

#define TEMPLATE "product/ref/spmv_ref_complex.h"
#include "core/each/each_complex.h"

/* 16-bit values and vectors; scalars are f32. One rounding: to odd, then to 16 bits. */
static void definition_of_halves(const spmv_plan *plan, int v, const struct plan_product *p)
{
    const spmv_csr *a = &plan->a;
    const spmv_type type = plan->type;
    const long double alpha = *(const float *)p->alpha, beta = *(const float *)p->beta;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t out = i * plan->y_stride + v;
        long double sum = 0;
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
             k++)
            sum += (a->val != NULL ? (long double)real_at(type, a->val, k) : 1) *
                   (long double)real_at(type, p->x, a->col[k] * plan->x_stride + v);
        sum *= alpha;
        if (!p->beta_zero)
            sum += beta * (long double)real_at(type, p->y, out);
        real_set(type, p->y, out, (double)float_to_odd(sum));
    }
}
#define definition_bf16 definition_of_halves
#define definition_f16 definition_of_halves

spmv_status definition_ref_apply(const spmv_plan *plan, const struct plan_product *product)
{
#define ROW(name, STORED, VECTORS) [PLAN_##name] = definition_##name,
    static void (*const definition[])(const spmv_plan *, int, const struct plan_product *) = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    const spmv_epilogue *const epilogue = product->epilogue;
    for (int v = 0; v < plan->vectors; v++)
        definition[plan->types](plan, v, product);
    if (epilogue == NULL)
        return SPMV_OK;
    switch (plan->types) {
    case PLAN_c64:
        epilogue_c64(plan->a.rows, product->y, epilogue);
        return SPMV_OK;
    case PLAN_c128:
        epilogue_c128(plan->a.rows, product->y, epilogue);
        return SPMV_OK;
    case PLAN_f32:
    case PLAN_f64:
    case PLAN_mixed:
    case PLAN_bf16: /* no epilogues */
    case PLAN_f16:
    case PLAN_TYPES:
        break;
    }
    return epilogue_behind(plan, product->y, epilogue);
}
