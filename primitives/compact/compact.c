/* compact: the public fronts, and the choice of the rung.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/choice.h"
#include "primitives/compact/compact_rungs.h"

/* The rungs of a backend: its default, the teaching form, which all backends have, and the rung
 * in between, if there is one. */
enum rung { OWN, IN_STEPS, BELOW, RUNGS };
static const char *const rung_names[][RUNGS] = {
    [SPMV_BACKEND_REF] = {"serial", COMPACT_MAP_SCAN_SCATTER},
    [SPMV_BACKEND_OMP] = {"tiles", COMPACT_MAP_SCAN_SCATTER},
    [SPMV_BACKEND_CUDA] = {"single-pass", COMPACT_MAP_SCAN_SCATTER, "count-write"}};

const char *spmv_compact_rung_name(spmv_backend backend, int index)
{
    const bool known = (unsigned)backend < sizeof rung_names / sizeof rung_names[0] && (unsigned)index < RUNGS;
    return known ? rung_names[backend][index] : NULL;
}

/* Argument checks shared by all forms. */
static spmv_status check(spmv_context *ctx, const char *caller, spmv_type type, const void *in, const void *out,
                         const int64_t *count, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!type_in_primitives(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: %d is not a type of primitives", caller, (int)type);
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", caller, (long long)n);
    if (count == NULL || (n > 0 && (in == NULL || out == NULL)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", caller,
                            count == NULL ? "count"
                            : in == NULL  ? "in"
                                          : "out");
    return SPMV_OK;
}

/* n >= 0 */
static spmv_status run(spmv_context *ctx, enum rung rung, const struct filter *filter, spmv_type type, const void *in,
                       void *out, int64_t *count, int64_t n)
{
    const int64_t zero = 0;
    if (n == 0)
        return ctx->backend->map_index(ctx, SPMV_I64, &zero, NULL, count, 1);
    if (rung == IN_STEPS)
        return compact_map_scan_scatter(ctx, filter, type, in, out, count, n);
    void *scratch = NULL;
    const spmv_status st = context_scratch(ctx, ctx->backend->compact_scratch(ctx, type, n), &scratch);
    if (st != SPMV_OK)
        return st;
    return (rung == BELOW ? ctx->backend->compact_below : ctx->backend->compact)(ctx, filter, type, in, out, count, n,
                                                                                 scratch);
}

/* Checks the arguments and runs. flags: of the filter, named `name` by the caller. */
static spmv_status run_flagged(spmv_context *ctx, const char *caller, const char *name, const void *flags,
                               enum rung rung, const struct filter *filter, spmv_type type, const void *in, void *out,
                               int64_t *count, int64_t n)
{
    const spmv_status st = check(ctx, caller, type, in, out, count, n);
    if (st != SPMV_OK)
        return st;
    if (flags == NULL && n > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", caller, name);
    return run(ctx, rung, filter, type, in, out, count, n);
}

static spmv_status find_method(spmv_context *ctx, const char *name, enum rung *rung)
{
    const char *const *const names = rung_names[ctx->backend->id];
    struct names methods = {.on = spmv_backend_name(ctx->backend->id)};
    const void *row = NULL;
    names_add_row(&methods, "auto", &names[OWN]);
    for (int m = 0; m < RUNGS && names[m] != NULL; m++)
        names_add_row(&methods, names[m], &names[m]);
    const spmv_status st = choice_take(ctx, SPMV_ERROR_METHOD, "spmv_compact_by", "rung", &methods, name, &row);
    if (st == SPMV_OK)
        *rung = (enum rung)((const char *const *)row - names);
    return st;
}

spmv_status spmv_compact_by(spmv_context *ctx, const char *rung, spmv_type type, const void *in, const uint8_t *flags,
                            void *out, int64_t *count, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    enum rung which = OWN;
    const spmv_status st = choice_is_auto(rung) ? SPMV_OK : find_method(ctx, rung, &which);
    return st != SPMV_OK ? st
                         : run_flagged(ctx, "spmv_compact", "flags", flags, which, &(struct filter){.mask = flags},
                                       type, in, out, count, n);
}

spmv_status spmv_compact(spmv_context *ctx, spmv_type type, const void *in, const uint8_t *flags, void *out,
                         int64_t *count, int64_t n)
{
    return spmv_compact_by(ctx, NULL, type, in, flags, out, count, n);
}

spmv_status spmv_compact_bits(spmv_context *ctx, spmv_type type, const void *in, const uint32_t *bits, void *out,
                              int64_t *count, int64_t n)
{
    return run_flagged(ctx, "spmv_compact_bits", "bits", bits, OWN, &(struct filter){.bits = bits}, type, in, out,
                       count, n);
}

spmv_status spmv_compact_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                            const void *host_scalar, const void *in, void *out, int64_t *count, int64_t n)
{
    struct filter filter;
    spmv_status st = check(ctx, "spmv_compact_if", type, in, out, count, n);
    if (st == SPMV_OK)
        st = filter_by_predicate(ctx, "spmv_compact_if", predicate, when, type, host_scalar, &filter);
    return st != SPMV_OK ? st : run(ctx, OWN, &filter, type, in, out, count, n);
}
