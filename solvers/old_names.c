/* Old names of functions, until 0.11: each calls the function of the new name. They are declared in
 * the sections "old names" of the public headers, those of layers below too, so the file is in the
 * highest layer that has any.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#undef SPMV_NO_OLD_NAMES
#include <spmv/primitives.h>
#include <spmv/solvers.h>
#include <spmv/spgemm.h>

const char *spmv_compact_method_name(spmv_backend backend, int index)
{
    return spmv_compact_rung_name(backend, index);
}

const char *spmv_cg_method_name(spmv_backend backend, int index)
{
    return spmv_cg_rung_name(backend, index);
}

const char *spmv_solver_method_name(int index)
{
    return spmv_solver_name(index);
}

void spmv_multiply_options_init(spmv_multiply_options *options, size_t size)
{
    spmv_spgemm_options_init(options, size);
}

const char *spmv_multiply_method_name(spmv_backend backend, int index)
{
    return spmv_spgemm_method_name(backend, index);
}

spmv_status spmv_multiply_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                      const spmv_multiply_options *options, spmv_multiply_plan **plan)
{
    return spmv_spgemm_plan_create(ctx, a, b, options, plan);
}

void spmv_multiply_plan_destroy(spmv_multiply_plan *plan)
{
    spmv_spgemm_plan_destroy(plan);
}

spmv_status spmv_multiply_describe(const spmv_multiply_plan *plan, spmv_multiply_info *info, size_t size)
{
    return spmv_spgemm_describe(plan, info, size);
}

void spmv_multiply_pattern(const spmv_multiply_plan *plan, spmv_csr *view)
{
    spmv_spgemm_pattern(plan, view);
}

spmv_status spmv_multiply_values(spmv_multiply_plan *plan, const void *a_values, const void *b_values, void *c_values)
{
    return spmv_spgemm_values(plan, a_values, b_values, c_values);
}

spmv_status spmv_multiply(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b, const spmv_multiply_options *options,
                          spmv_matrix **c)
{
    return spmv_spgemm(ctx, a, b, options, c);
}

spmv_status spmv_multiply_triple(spmv_context *ctx, const spmv_csr *r, const spmv_csr *a, const spmv_csr *p,
                                 const spmv_multiply_options *options, spmv_matrix **c)
{
    return spmv_spgemm_triple(ctx, r, a, p, options, c);
}
