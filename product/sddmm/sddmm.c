/* Sampled products, and the softmax of rows: the front, and the loops on a CPU.
 *
 * A thread takes ranges of entries, whatever the rows: a long row is shared. The row in which a range
 * begins is found by bisection.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/sddmm/sddmm_internal.h"

#include <math.h>
#include <spmv/primitives.h>

#include "core/threads.h"
#include "product/plan_internal.h"

/* A pass over the entries on a CPU. */
struct host_job {
    const spmv_sddmm *sddmm;
    bool exact; /* sums in long double */
    const void *a, *b;
    void *y;
};

/* A function for entries begin ... end - 1, of which the first is in row `row`. */
typedef void host_pass_function(const struct host_job *job, int64_t row, int64_t begin, int64_t end);

#define TEMPLATE "product/sddmm/sddmm_typed.h"
#include "product/sddmm/each_sddmm_type.h"
#undef TEMPLATE

/* A table of such functions by type. */
#define PASS_TABLE(name)                                                                                               \
    {                                                                                                                  \
        [SPMV_F32] = name##_f32, [SPMV_F64] = name##_f64, [SPMV_BF16] = name##_bf16, [SPMV_F16] = name##_f16           \
    }
typedef host_pass_function *const pass_table[SPMV_TYPE_LIMIT];

/* The row of entry e. */
static int64_t row_of(const spmv_csr *p, int64_t e)
{
    int64_t low = 0, high = p->rows - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (offset_at(p->row_ptr, p->row_ptr_bits, middle + 1) <= e)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* work: what an entry costs, in elements. */
static void pass_on_host(host_pass_function *function, const struct host_job *job, int64_t work)
{
    enum { RANGE = 1 << 10 };
    const spmv_csr *const p = &job->sddmm->p;
#pragma omp parallel for schedule(dynamic) num_threads(host_team(job->sddmm->ctx, p->nnz *work))
    for (int64_t begin = 0; begin < p->nnz; begin += RANGE)
        function(job, row_of(p, begin), begin, min_i64(begin + RANGE, p->nnz));
}

void spmv_sddmm_options_init(spmv_sddmm_options *options, size_t size)
{
    const spmv_sddmm_options defaults = {.size = sizeof defaults, .vectors = 1};
    result_write(options, size, &defaults, sizeof defaults);
}

static spmv_status check_options(spmv_context *ctx, const spmv_csr *p, const spmv_sddmm_options *o, spmv_type *type)
{
    const spmv_status st = OPTIONS_CHECK(ctx, "spmv_sddmm_create", {"vectors", o->vectors, 1, INFINITY});
    if (st != SPMV_OK)
        return st;
    *type = o->type != SPMV_TYPE_DEFAULT ? o->type : p->val != NULL ? p->type : SPMV_F64;
    if (*type != SPMV_F32 && *type != SPMV_F64 && !type_is_half(*type))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_sddmm_create: no sampled products in type %s, only in f64, f32, bf16 and f16",
                            spmv_type_name(*type));
    if (p->val != NULL && p->type != *type)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_sddmm_create: values of type %s, the dense matrices have %s",
                            spmv_type_name(p->type), spmv_type_name(*type));
    for (int i = 0; i < 2; i++) {
        const int64_t stride = i == 0 ? o->a_stride : o->b_stride;
        if (stride != 0 && stride < o->vectors)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                                "spmv_sddmm_create: %s_stride is %lld, less than the %d vectors", i == 0 ? "a" : "b",
                                (long long)stride, o->vectors);
    }
    if (context_on_device(ctx) && p->rows > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "spmv_sddmm_create: %lld rows, at most %d are possible",
                            (long long)p->rows, INT32_MAX);
    return SPMV_OK;
}

static spmv_status own(spmv_sddmm *s, int64_t bytes, void **memory)
{
    const spmv_status st = context_alloc(s->ctx, bytes, memory);
    s->bytes += st == SPMV_OK ? bytes : 0;
    return st;
}

/* spmv_sddmm_create on a context that this thread holds. */
static spmv_status create(spmv_context *ctx, const spmv_csr *p, const spmv_sddmm_options *options, spmv_sddmm **made)
{
    spmv_status st = SPMV_OK;
    spmv_sddmm *s = NULL;
    spmv_sddmm_options o;
    spmv_type type = SPMV_TYPE_DEFAULT;
    spmv_sddmm_options_init(&o, sizeof o);
    TRY(options_take(ctx, "sddmm", &o, sizeof o, options));
    TRY(plan_check_view(ctx, "spmv_sddmm_create", p, true));
    TRY(check_options(ctx, p, &o, &type));
    TRY(host_alloc(ctx, sizeof *s, "a sampled product", (void **)&s));
    *s = (spmv_sddmm){.ctx = ctx,
                      .type = type,
                      .sums_type = type_of_sums(type),
                      .vectors = o.vectors,
                      .a_stride = o.a_stride != 0 ? o.a_stride : o.vectors,
                      .b_stride = o.b_stride != 0 ? o.b_stride : o.vectors};
    TRY(csr_to_context(ctx, p, true, &s->p, &s->copies));
    s->bytes = s->copies.bytes;
    TRY(own(s, p->rows * (int64_t)spmv_type_size(s->sums_type), &s->largest));
    TRY(own(s, p->rows * (int64_t)spmv_type_size(s->sums_type), &s->sums));
    if (context_on_device(ctx) && p->nnz > 0) {
        TRY(own(s, p->nnz * (int64_t)sizeof *s->row, (void **)&s->row));
        TRY(sddmm_rows_cuda(s));
    }
    TRY(spmv_synchronize(ctx)); /* the copies */
done:
    if (st != SPMV_OK) {
        spmv_sddmm_destroy(s);
        s = NULL;
    }
    *made = s;
    return st;
}

spmv_status spmv_sddmm_create(spmv_context *ctx, const spmv_csr *p, const spmv_sddmm_options *options,
                              spmv_sddmm **sddmm)
{
    bool outer = false;
    if (ctx == NULL || sddmm == NULL)
        return context_need(ctx, "spmv_sddmm_create", "sddmm", sddmm);
    *sddmm = NULL;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st : context_release(ctx, outer, create(ctx, p, options, sddmm));
}

void spmv_sddmm_destroy(spmv_sddmm *s)
{
    if (s == NULL)
        return;
    spmv_context *const ctx = s->ctx;
    csr_free_context(ctx, &s->copies);
    spmv_free(ctx, s->row);
    spmv_free(ctx, s->largest);
    spmv_free(ctx, s->sums);
    spmv_free(ctx, s->wide);
    host_free(s);
    context_freed(ctx);
}

int64_t spmv_sddmm_bytes(const spmv_sddmm *s)
{
    return s != NULL ? s->bytes : 0;
}

static spmv_status apply(const spmv_sddmm *s, const void *a, const void *b, void *y)
{
    if (context_on_device(s->ctx))
        return sddmm_apply_cuda(s, a, b, y);
    const struct host_job job = {.sddmm = s, .exact = s->ctx->backend->id == SPMV_BACKEND_REF, .a = a, .b = b, .y = y};
    static pass_table functions = PASS_TABLE(apply);
    pass_on_host(functions[s->type], &job, s->vectors);
    return SPMV_OK;
}

spmv_status spmv_sddmm_apply(spmv_sddmm *s, const void *a, const void *b, void *y)
{
    bool outer = false;
    if (s == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (s->p.nnz == 0)
        return SPMV_OK;
    if (a == NULL || b == NULL || y == NULL)
        return context_need(s->ctx, "spmv_sddmm_apply", a == NULL ? "a" : b == NULL ? "b" : "y", NULL);
    const spmv_status st = context_hold(s->ctx, &outer);
    return st != SPMV_OK ? st : context_release(s->ctx, outer, apply(s, a, b, y));
}

/* x in the type of sums: *x itself, or its copy in s->wide. */
static spmv_status widen(spmv_sddmm *s, const void **x)
{
    if (!type_is_half(s->type))
        return SPMV_OK;
    const spmv_status st = s->wide != NULL ? SPMV_OK : own(s, s->p.nnz * (int64_t)sizeof(float), &s->wide);
    const struct host_job job = {.sddmm = s, .a = *x, .y = s->wide};
    if (st != SPMV_OK)
        return st;
    *x = s->wide;
    if (context_on_device(s->ctx))
        return sddmm_widen_cuda(s, job.a, s->wide);
    pass_on_host(s->type == SPMV_BF16 ? widened_bf16 : widened_f16, &job, 1);
    return SPMV_OK;
}

static spmv_status softmax(spmv_sddmm *s, const void *x, void *y)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const p = &s->p;
    static pass_table exponentials = PASS_TABLE(exponentials), quotients = PASS_TABLE(quotients);
    const bool device = context_on_device(s->ctx);
    TRY(widen(s, &x));
    void *const powers = s->wide != NULL ? s->wide : y;
    const struct host_job job = {.sddmm = s, .a = x, .y = powers}, last = {.sddmm = s, .a = powers, .y = y};
    enum { EXPONENTIAL_WORK = 8 };
    const spmv_segments rows = {
        .form = SPMV_SEGMENT_OFFSETS, .heads = p->row_ptr, .bits = p->row_ptr_bits, .count = p->rows};
    TRY(spmv_segreduce(s->ctx, SPMV_MAX, s->sums_type, &rows, x, s->largest, p->nnz));
    if (device)
        TRY(sddmm_exponentials_cuda(s, x, powers));
    else
        pass_on_host(exponentials[s->sums_type], &job, EXPONENTIAL_WORK);
    TRY(spmv_segreduce(s->ctx, SPMV_ADD, s->sums_type, &rows, powers, s->sums, p->nnz));
    if (device)
        TRY(sddmm_quotients_cuda(s, powers, y));
    else
        pass_on_host(quotients[s->type], &last, 1);
done:
    return st;
}

spmv_status spmv_sddmm_softmax(spmv_sddmm *s, const void *x, void *y)
{
    bool outer = false;
    if (s == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (s->p.nnz == 0)
        return SPMV_OK;
    if (x == NULL || y == NULL)
        return context_need(s->ctx, "spmv_sddmm_softmax", x == NULL ? "x" : "y", NULL);
    const spmv_status st = context_hold(s->ctx, &outer);
    return st != SPMV_OK ? st : context_release(s->ctx, outer, softmax(s, x, y));
}
