/* Work, depth and source of the rungs (spmv_rung_describe): every rung of a backend has them, and
 * the source file exists.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

static void check_rung(spmv_context *ctx, const char *primitive, const char *rung)
{
    char path[1024], words[64];
    spmv_rung_info info, again;
    assert_int_equal(spmv_rung_describe(ctx, primitive, rung, &info, sizeof info), SPMV_OK);
    assert_true(info.work[0] != '\0' && info.depth[0] != '\0');
    snprintf(path, sizeof path, "%s/%s", support_source_dir(), info.source);
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s, rung %s: there is no %s", primitive, rung, path);
    fclose(file);
    snprintf(words, sizeof words, "%s:64", rung);
    assert_int_equal(spmv_rung_describe(ctx, primitive, words, &again, sizeof again), SPMV_OK);
    assert_ptr_equal(again.source, info.source);
}

static void every_rung_is_described(void **state)
{
    static const struct {
        const char *primitive;
        const char *(*name)(spmv_backend backend, int index);
    } ladders[] = {{"scan", spmv_scan_rung_name},
                   {"segscan", spmv_segscan_rung_name},
                   {"reduce", spmv_reduce_rung_name},
                   {"sort", spmv_sort_rung_name},
                   {"histogram", spmv_histogram_rung_name}};
    spmv_context *ctx = *state;
    int rungs = 0;
    for (size_t k = 0; k < sizeof ladders / sizeof *ladders; k++)
        for (int i = 0; ladders[k].name(support_backend, i) != NULL; i++, rungs++)
            check_rung(ctx, ladders[k].primitive, ladders[k].name(support_backend, i));
    assert_true(rungs >= 5);
    check_rung(ctx, "expand", "scatter");
    check_rung(ctx, "expand", "gather");
    check_rung(ctx, "gather", "direct");
}

/* The call fails with this status, and its result is empty. */
static void check_failure(spmv_context *ctx, const char *primitive, const char *rung, spmv_status status)
{
    spmv_rung_info info;
    memset(&info, 1, sizeof info);
    assert_int_equal(spmv_rung_describe(ctx, primitive, rung, &info, sizeof info), status);
    assert_int_equal(info.size, sizeof info);
    assert_null(info.source);
    assert_null(info.work);
    assert_null(info.depth);
}

static void wrong_arguments(void **state)
{
    spmv_context *ctx = *state;
    spmv_rung_info info;
    check_failure(NULL, "scan", "blelloch", SPMV_ERROR_ARGUMENT);
    check_failure(ctx, NULL, "blelloch", SPMV_ERROR_ARGUMENT);
    check_failure(ctx, "scan", NULL, SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_rung_describe(ctx, "scan", "blelloch", NULL, sizeof info), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(spmv_last_error(ctx), "info is NULL"));
    check_failure(ctx, "scan", "blellochs", SPMV_ERROR_METHOD);
    check_failure(ctx, "scan", "", SPMV_ERROR_METHOD);
    check_failure(ctx, "scans", "blelloch", SPMV_ERROR_METHOD);
    assert_non_null(strstr(spmv_last_error(ctx), "scans has no rung \"blelloch\""));
    /* A caller whose structure has only the first fields. */
    memset(&info, 0, sizeof info);
    assert_int_equal(spmv_rung_describe(ctx, "scan", "blelloch", &info, offsetof(spmv_rung_info, work)), SPMV_OK);
    assert_non_null(info.source);
    assert_null(info.work);
}

SUPPORT_MAIN(with_context(every_rung_is_described), with_context(wrong_arguments))
