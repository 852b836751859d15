/* NULL arguments of every public function return a status or the neutral value that the header
 * documents, and never crash.
 *
 * Each function of include/spmv has a row in one of two tables. The first holds the functions that
 * return a status: a call with valid arguments in which each pointer in turn is NULL. The second
 * holds all others. The test reads the headers to find functions or pointers that the tables lack.
 * Public enumerations out of range come last.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>

#include "tests/support/support.h"

enum { N = 4 };

/* Shared by the calls. The arrays are in the memory of the context, except `host`. */
static spmv_context *ctx;
static spmv_plan *plan;
static spmv_spgemm_plan *squared; /* of csr with itself */
static spmv_sddmm *sampled;       /* with one column */
static spmv_preconditioner *jacobi, *renewed;
static spmv_solver *solver;
static spmv_least_squares *fit;
static spmv_batch *batch; /* of diagonal matrices */
static spmv_context *reference;
static spmv_group *group; /* of one rank */
static spmv_group_matrix *group_matrix;
static spmv_group_solver *group_solver;
static spmv_csr csr;
static int64_t wide_columns[N]; /* of csr */
static char folder[] = "/tmp/spmv_null_XXXXXX", file[sizeof folder + 8], vector_file[sizeof folder + 8];
static double *host;
static void *x, *y, *z, *index32, *heads, *bits, *count, *counts, *keys, *scalar;
static spmv_segments segments;
static void *made; /* created by a call, released after it */
static int64_t n64, k64;

/* The index of the pointer that is NULL in this call; -1: none. */
static int turn;

/* Argument k of the call. */
static void *arg(int k, const void *pointer)
{
    return k == turn ? NULL : (void *)pointer;
}

static spmv_trace_fn trace_arg(int k, spmv_trace_fn trace)
{
    return k == turn ? NULL : trace;
}

static void no_trace(const spmv_trace *trace, void *user)
{
    (void)trace;
    (void)user;
}

static spmv_status no_precond(void *self, const void *r, void *to)
{
    (void)self;
    (void)r;
    (void)to;
    return SPMV_OK;
}

/* -------------------------------------------------------- functions with a status */

static spmv_status no_rank(spmv_group *of, void *user)
{
    (void)of;
    (void)user;
    return SPMV_OK;
}

static spmv_group_fn rank_arg(int k, spmv_group_fn run)
{
    return k == turn ? NULL : run;
}

/* A function, the number of pointers that must not be NULL (arguments 0, 1, ... of the call), the
 * number that may be NULL (the following ones), and the call. */
struct function {
    const char *name;
    int needed, optional;
    spmv_status (*call)(void);
};

#define CALL(NAME, ...)                                                                                                \
    static spmv_status call_##NAME(void)                                                                               \
    {                                                                                                                  \
        return spmv_##NAME(__VA_ARGS__);                                                                               \
    }
#define C arg(0, ctx)
#define SUM SPMV_ADD, SPMV_F64

CALL(context_create, arg(1, NULL), arg(0, &made))
CALL(backend_parse, arg(0, "ref"), arg(1, host))
CALL(convert_numbers, SPMV_F64, arg(0, host), SPMV_F32, arg(1, &n64), 2)
CALL(alloc, C, 64, arg(1, &made))
CALL(upload, C, arg(1, host), arg(2, x), 8)
CALL(download, C, arg(1, x), arg(2, host), 8)
CALL(context_scratch, C, 64, arg(1, &n64))
CALL(context_report, C, SPMV_OK, arg(1, "text"))
CALL(synchronize, C)

/* Without a GPU there are no streams. */
static spmv_status call_context_set_stream(void)
{
    const spmv_status st = spmv_context_set_stream(arg(0, ctx), arg(1, NULL));
    return st == SPMV_ERROR_UNSUPPORTED && support_backend != SPMV_BACKEND_CUDA ? SPMV_OK : st;
}

CALL(matrix_read, C, arg(1, file), arg(3, NULL), arg(2, &made), arg(4, NULL), 0)
CALL(matrix_write, C, arg(1, &csr), arg(2, file))
CALL(matrix_write_as, C, arg(1, &csr), arg(2, file), arg(3, NULL))
CALL(output_check, C, arg(1, file), arg(2, NULL))

/* Closes the file here; an existing file at its path stays. */
static spmv_status call_file_create(void)
{
    spmv_file *f = NULL;
    const spmv_status st = spmv_file_create(arg(0, ctx), arg(1, file), arg(2, &f));
    assert_int_equal(st == SPMV_OK, f != NULL);
    assert_int_equal(spmv_file_close(f, 0), SPMV_OK);
    return st;
}

static spmv_status call_file_write(void)
{
    spmv_file *f = NULL;
    assert_ok(ctx, spmv_file_create(ctx, file, &f));
    const spmv_status st = spmv_file_write(arg(0, f), arg(1, host), 8);
    assert_int_equal(spmv_file_close(f, 0), SPMV_OK);
    return st;
}

static spmv_status call_file_close(void)
{
    spmv_file *f = NULL;
    assert_ok(ctx, spmv_file_create(ctx, file, &f));
    const spmv_status st = spmv_file_close(arg(0, f), 0);
    return turn == 0 ? spmv_file_close(f, 0) : st;
}
CALL(vector_read, C, arg(1, vector_file), SPMV_F64, arg(2, &made), arg(3, &n64))
CALL(vectors_read, C, arg(1, vector_file), SPMV_F64, arg(2, &made), arg(3, &n64), arg(4, &k64))
CALL(vector_write, C, arg(1, vector_file), SPMV_F64, arg(2, host), N, arg(3, NULL))
CALL(vectors_write, C, arg(1, vector_file), SPMV_F64, arg(2, host), N, 1, arg(3, NULL))

static const int64_t places[1] = {0};
static const int32_t columns[1] = {0};
CALL(matrix_from_coo, C, 1, 1, 1, arg(1, places), arg(2, columns), arg(4, host), SPMV_F64, arg(3, &made), arg(5, NULL))
CALL(matrix_transpose, C, arg(1, &csr), arg(2, &made))
CALL(matrix_check, C, arg(1, &csr))
CALL(matrix_copy, C, arg(1, &csr), SPMV_MEMORY_HOST, arg(2, &made))
CALL(matrix_diagonal, C, arg(1, &csr), arg(2, host))
CALL(matrix_row_sums, C, arg(1, &csr), arg(2, host))
CALL(matrix_statistics, C, arg(1, &csr), arg(2, host), sizeof(size_t))
CALL(matrix_generate, C, arg(1, "diagonal:4"), SPMV_F64, arg(2, &made))
CALL(matrix_generate_within, C, arg(1, "diagonal:4"), arg(3, NULL), arg(2, &made))

CALL(spgemm_plan_create, C, arg(1, &csr), arg(2, &csr), arg(4, NULL), arg(3, &made))
CALL(spgemm_describe, arg(0, squared), arg(1, host), sizeof(size_t))
CALL(spgemm_values, arg(0, squared), arg(1, x), arg(2, y), arg(3, z))
CALL(spgemm, C, arg(1, &csr), arg(2, &csr), arg(4, NULL), arg(3, &made))
CALL(sddmm_create, C, arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(sddmm_apply, arg(0, sampled), arg(1, x), arg(2, x), arg(3, y))
CALL(sddmm_softmax, arg(0, sampled), arg(1, y), arg(2, z))
CALL(spgemm_triple, C, arg(1, &csr), arg(2, &csr), arg(3, &csr), arg(5, NULL), arg(4, &made))

CALL(plan_create, C, arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(plan_update_values, arg(0, plan), arg(1, x))
CALL(apply, arg(0, plan), arg(3, NULL), arg(1, x), arg(4, NULL), arg(2, y))
CALL(apply_with, arg(0, plan), arg(3, NULL), arg(1, x), arg(4, NULL), arg(2, y), arg(5, NULL))
CALL(plan_describe, arg(0, plan), arg(1, host), sizeof(size_t))

/* On a host context; the check expects y = A x. */
static spmv_status call_verify(void)
{
    spmv_context *const checker = support_context_on(SPMV_BACKEND_REF, 1);
    const double ones[N] = {1, 1, 1, 1}, product[N] = {2, 2, 2, 2};
    const spmv_status st = spmv_verify(arg(0, checker), arg(1, &csr), SPMV_OPERATION_N, arg(4, NULL), arg(2, ones),
                                       arg(5, NULL), arg(6, NULL), arg(3, product), SPMV_F64, arg(7, NULL), 0);
    assert_true(turn == 0 || st == SPMV_OK || strstr(spmv_last_error(checker), "NULL") != NULL);
    spmv_context_destroy(checker);
    return st;
}

CALL(type_parse, arg(0, "f64"), arg(1, host))
CALL(op_parse, arg(0, "add"), arg(1, host))
CALL(function_parse, arg(0, "copy"), arg(1, host))
CALL(predicate_parse, arg(0, "less"), arg(1, host))
CALL(op_identity, SUM, arg(0, host))

static double host_modes[3 * N];
static int mode_count;
static const spmv_preconditioner_class own = {.size = sizeof own, .name = "own", .apply = no_precond};
CALL(preconditioner_create, C, arg(3, NULL), arg(1, &csr), arg(4, NULL), arg(2, &made))
CALL(rigid_body_modes, C, arg(4, NULL), N / 2, 2, arg(1, host), 2, arg(2, host_modes), arg(3, &mode_count))
CALL(preconditioner_wrap, C, SPMV_F64, N, arg(1, &own), arg(3, NULL), arg(2, &made))
static spmv_status no_product(void *self, spmv_operation operation, const void *from, void *to)
{
    (void)self;
    (void)operation;
    (void)from;
    (void)to;
    return SPMV_OK;
}
static const spmv_operator_class own_operator = {.size = sizeof own_operator, .name = "own", .apply = no_product};
CALL(plan_wrap, C, SPMV_F64, N, N, SPMV_OPERATION_N, arg(1, &own_operator), arg(3, NULL), arg(2, &made))
CALL(preconditioner_apply, arg(0, jacobi), arg(1, x), arg(2, y))
CALL(preconditioner_apply_transposed, arg(0, jacobi), arg(1, x), arg(2, y))
CALL(preconditioner_update_values, arg(0, renewed), arg(1, x))
CALL(preconditioner_describe, arg(0, jacobi), arg(1, host), sizeof(size_t))
CALL(cg, arg(0, plan), arg(1, x), arg(2, y), arg(3, NULL), arg(4, NULL), 0)
CALL(estimate_singular_values, C, arg(1, &csr), 0.1, 0, arg(2, host), sizeof(size_t))
CALL(eigs, C, arg(1, &csr), arg(2, NULL), arg(3, NULL), arg(4, NULL), arg(5, NULL), 0)
CALL(svds, C, arg(1, &csr), arg(2, NULL), arg(3, NULL), arg(4, NULL), arg(5, NULL), arg(6, NULL), 0)
CALL(batch_create, C, arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(batch_apply, arg(0, batch), arg(1, x), arg(2, x), arg(3, y), 1)
CALL(batch_solve, arg(0, batch), arg(1, x), arg(2, x), arg(3, y), 1, arg(4, NULL), 0)
CALL(least_squares_create, C, arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(least_squares_solve, arg(0, fit), arg(1, x), arg(2, y), arg(3, NULL), 0)
CALL(solver_create, C, arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(solver_create_for_plan, arg(0, plan), arg(2, NULL), arg(1, &made))
CALL(solver_solve, arg(0, solver), arg(1, x), arg(2, y), arg(3, NULL), 0)
CALL(solver_solve_operation, arg(0, solver), SPMV_OPERATION_T, arg(1, x), arg(2, y), arg(3, NULL), 0)
CALL(solver_solve_many, arg(0, solver), SPMV_OPERATION_N, 1, arg(1, x), arg(2, y), arg(3, NULL), 0)
CALL(solver_update_values, arg(0, solver), arg(1, x))
CALL(solver_set_callbacks, arg(0, solver), NULL, NULL, NULL)
CALL(solver_describe, arg(0, solver), arg(1, host), sizeof(size_t))
CALL(solver_determinant, arg(0, solver), arg(1, host), sizeof(size_t))
CALL(solve, C, arg(1, &csr), arg(2, x), arg(3, y), arg(4, NULL), arg(5, NULL), 0)

CALL(map, C, SPMV_MAP_COPY, SPMV_F64, arg(1, x), arg(2, y), N)
CALL(map_binary, C, SUM, arg(1, x), arg(2, y), arg(3, z), N)
CALL(map_scalar, C, SUM, arg(1, host), arg(2, x), arg(3, z), N)
CALL(map_index, C, SPMV_F64, arg(1, host), arg(3, NULL), arg(2, z), N)
CALL(map_divide, C, SPMV_F64, arg(1, x), arg(2, x), arg(3, z), N)
CALL(map_axpby, C, SPMV_F64, arg(3, NULL), arg(1, x), arg(4, NULL), arg(2, z), N)
CALL(dot, C, SPMV_F64, arg(1, x), arg(2, x), arg(3, scalar), N)
CALL(gather, C, SPMV_F64, arg(1, x), N, arg(2, index32), 32, arg(3, z), N)
CALL(scatter, C, SPMV_F64, arg(1, x), arg(2, index32), 32, arg(3, z), N, N)
CALL(gather_masked, C, SPMV_F64, arg(1, x), N, arg(2, index32), 32, arg(3, heads), arg(4, z), N)
CALL(gather_if, C, SPMV_IS_LESS, 1, SPMV_F64, arg(1, host), arg(2, x), N, arg(3, index32), 32, arg(4, z), N)
CALL(scatter_masked, C, SPMV_F64, arg(1, x), arg(2, index32), 32, arg(3, heads), arg(4, z), N, N)
CALL(scatter_if, C, SPMV_IS_LESS, 1, SPMV_F64, arg(1, host), arg(2, x), arg(3, index32), 32, arg(4, z), N, N)
CALL(index_check, C, arg(1, index32), 32, 0, N, N)
CALL(compact, C, SPMV_F64, arg(1, x), arg(2, heads), arg(3, z), arg(4, count), N)
CALL(compact_if, C, SPMV_IS_LESS, 1, SPMV_F64, arg(1, host), arg(2, x), arg(3, z), arg(4, count), N)
CALL(compact_bits, C, SPMV_F64, arg(1, x), arg(2, bits), arg(3, z), arg(4, count), N)
CALL(compact_by, C, arg(5, NULL), SPMV_F64, arg(1, x), arg(2, heads), arg(3, z), arg(4, count), N)
CALL(expand_offsets, C, arg(1, index32), 32, arg(2, counts), N)
CALL(expand, C, SPMV_EXPAND_GATHER, SPMV_F64, arg(1, x), arg(2, counts), N, 64, arg(3, z), arg(4, NULL), arg(5, NULL),
     6)
CALL(reduce, C, SUM, arg(1, x), arg(2, scalar), N)
CALL(map_reduce, C, SPMV_MAP_COPY, SUM, arg(1, x), arg(2, scalar), N)
CALL(reduce_rung, C, arg(3, NULL), SUM, arg(1, x), arg(2, scalar), N)
CALL(scan, C, SPMV_INCLUSIVE, SUM, arg(1, x), arg(2, z), N)
CALL(map_scan, C, SPMV_MAP_COPY, SPMV_INCLUSIVE, SUM, arg(1, x), arg(2, z), N)
CALL(scan_host, C, SPMV_INCLUSIVE, SUM, arg(1, host), arg(2, host), N, arg(3, NULL))
CALL(reduce_host, C, SUM, arg(1, host), arg(2, host + N), N, arg(3, NULL))
CALL(scan_rung, C, arg(3, NULL), SPMV_INCLUSIVE, SUM, arg(1, x), arg(2, z), N)
CALL(block_scan, C, arg(3, NULL), SPMV_INCLUSIVE, SUM, arg(1, x), arg(2, z), arg(4, NULL), 2, N)
CALL(block_sums, C, SPMV_INCLUSIVE, SUM, arg(3, NULL), arg(1, x), arg(2, z), 2, N)
CALL(scan_trace, C, arg(4, NULL), SPMV_INCLUSIVE, SUM, arg(1, host), arg(2, host), N, trace_arg(3, no_trace),
     arg(5, NULL))
CALL(reduce_trace, C, arg(4, NULL), SUM, arg(1, host), arg(2, host + N), N, trace_arg(3, no_trace), arg(5, NULL))
CALL(flags_pack, C, arg(1, heads), arg(2, z), N)
CALL(flags_unpack, C, arg(1, bits), arg(2, z), N)
CALL(segscan, C, SPMV_INCLUSIVE, SUM, arg(1, &segments), arg(2, x), arg(3, z), N)
CALL(segscan_rung, C, arg(4, NULL), SPMV_INCLUSIVE, SUM, arg(1, heads), arg(2, x), arg(3, z), N)
static const uint8_t host_heads[N] = {1, 0, 1, 0};
CALL(segscan_trace, C, arg(5, NULL), SPMV_INCLUSIVE, SUM, arg(1, host_heads), arg(2, host), arg(3, host + N), N,
     trace_arg(4, no_trace), arg(6, NULL))
CALL(segreduce, C, SUM, arg(1, &segments), arg(2, x), arg(3, z), N)
CALL(sort_by_key, C, SPMV_I32, 0, 32, arg(1, keys), arg(2, x), 8, arg(3, z), arg(4, y), N)
CALL(sort_rung, C, arg(5, NULL), SPMV_I32, 0, 32, arg(1, keys), arg(2, x), 8, arg(3, z), arg(4, y), N)
CALL(histogram, C, SPMV_I32, arg(1, index32), arg(2, z), N, arg(3, NULL), N)
CALL(histogram_rung, C, arg(3, NULL), SPMV_I32, arg(1, index32), arg(2, z), N, arg(4, NULL), N)
CALL(rung_describe, C, arg(1, "scan"), arg(2, "blelloch"), arg(3, host), sizeof(size_t))

#define G arg(0, group_matrix)
CALL(group_run, 1, arg(1, NULL), rank_arg(0, no_rank), arg(2, NULL), arg(3, host), 8)
CALL(group_run_with, 1, arg(1, NULL), rank_arg(0, no_rank), arg(2, NULL), arg(3, host), 8)
CALL(group_matrix_create, arg(0, group), arg(1, &csr), arg(3, NULL), arg(2, &made))
CALL(group_matrix_create_wide, arg(0, group), arg(1, &csr), arg(2, wide_columns), arg(4, NULL), arg(3, &made))
CALL(group_matrix_read, arg(0, group), arg(1, file), arg(3, NULL), arg(4, NULL), arg(2, &made), arg(5, NULL), 8)
CALL(group_matrix_describe, G, arg(1, host), 8)
CALL(group_apply, G, arg(3, NULL), arg(1, x), arg(4, NULL), arg(2, y))
CALL(group_dot, G, arg(1, x), arg(2, y), arg(3, host))
CALL(group_scatter, G, SPMV_GROUP_ROWS, arg(1, host), arg(2, y))
CALL(group_gather, G, SPMV_GROUP_COLS, arg(1, x), arg(2, host))
CALL(group_preconditioner_create, G, arg(2, "none"), arg(1, &made))
CALL(group_preconditioner_create_with, G, arg(2, "none"), arg(3, NULL), arg(1, &made))
CALL(group_cg, G, arg(1, x), arg(2, y), arg(3, NULL), arg(4, NULL), 0)
CALL(group_solver_create, G, arg(2, NULL), arg(1, &made))
CALL(group_solver_solve, arg(0, group_solver), arg(1, x), arg(2, y), arg(3, NULL), 0)
CALL(group_solver_describe, arg(0, group_solver), arg(1, host), sizeof(size_t))
CALL(group_matrix_transpose, G, arg(1, &made))
CALL(group_matrix_update_values, G, arg(1, csr.val))
CALL(group_solver_update_values, arg(0, group_solver), arg(1, csr.val))

/* Of a product that is right. */
static spmv_status call_group_verify(void)
{
    const int now = turn;
    turn = -1;
    assert_ok(ctx, spmv_group_apply(group_matrix, NULL, x, NULL, z));
    turn = now;
    assert_int_equal(spmv_context_report(ctx, SPMV_OK, "nothing said"), SPMV_OK);
    return spmv_group_verify(arg(0, group_matrix), arg(1, reference), arg(4, NULL), arg(2, x), arg(5, NULL),
                             arg(6, NULL), arg(3, z), arg(7, NULL), 0);
}
#undef G

#define ROW(NAME, needed, optional)                                                                                    \
    {                                                                                                                  \
        "spmv_" #NAME, needed, optional, call_##NAME                                                                   \
    }
static const struct function functions[] = {
    ROW(context_create, 1, 1),
    ROW(backend_parse, 2, 0),
    ROW(convert_numbers, 2, 0),
    ROW(alloc, 2, 0),
    ROW(upload, 3, 0),
    ROW(download, 3, 0),
    ROW(context_scratch, 2, 0),
    ROW(context_report, 2, 0),
    ROW(synchronize, 1, 0),
    ROW(context_set_stream, 1, 1),
    ROW(matrix_read, 3, 2),
    ROW(matrix_write, 3, 0),
    ROW(matrix_write_as, 3, 1),
    ROW(output_check, 2, 1),
    ROW(file_create, 3, 0),
    ROW(file_write, 2, 0),
    ROW(file_close, 0, 1),
    ROW(vector_read, 4, 0),
    ROW(vectors_read, 5, 0),
    ROW(vector_write, 3, 1),
    ROW(vectors_write, 3, 1),
    ROW(matrix_from_coo, 4, 2),
    ROW(matrix_transpose, 3, 0),
    ROW(matrix_check, 2, 0),
    ROW(matrix_copy, 3, 0),
    ROW(matrix_diagonal, 3, 0),
    ROW(matrix_row_sums, 3, 0),
    ROW(matrix_statistics, 3, 0),
    ROW(matrix_generate, 3, 0),
    ROW(matrix_generate_within, 3, 1),
    ROW(spgemm_plan_create, 4, 1),
    ROW(spgemm_describe, 2, 0),
    ROW(spgemm_values, 4, 0),
    ROW(spgemm, 4, 1),
    ROW(sddmm_create, 3, 1),
    ROW(sddmm_apply, 4, 0),
    ROW(sddmm_softmax, 3, 0),
    ROW(spgemm_triple, 5, 1),
    ROW(plan_create, 3, 1),
    ROW(plan_update_values, 2, 0),
    ROW(apply, 3, 2),
    ROW(apply_with, 3, 3),
    ROW(plan_describe, 2, 0),
    ROW(verify, 4, 4),
    ROW(type_parse, 2, 0),
    ROW(op_parse, 2, 0),
    ROW(function_parse, 2, 0),
    ROW(predicate_parse, 2, 0),
    ROW(op_identity, 1, 0),
    ROW(preconditioner_create, 3, 2),
    ROW(rigid_body_modes, 4, 1),
    ROW(preconditioner_wrap, 3, 1),
    ROW(plan_wrap, 3, 1),
    ROW(preconditioner_apply, 3, 0),
    ROW(preconditioner_apply_transposed, 3, 0),
    ROW(preconditioner_update_values, 2, 0),
    ROW(preconditioner_describe, 2, 0),
    ROW(cg, 3, 2),
    ROW(estimate_singular_values, 3, 0),
    ROW(eigs, 2, 4),
    ROW(svds, 2, 5),
    ROW(batch_create, 3, 1),
    ROW(batch_apply, 4, 0),
    ROW(batch_solve, 4, 1),
    ROW(least_squares_create, 3, 1),
    ROW(least_squares_solve, 3, 1),
    ROW(solver_create, 3, 1),
    ROW(solver_create_for_plan, 2, 1),
    ROW(solver_solve, 3, 1),
    ROW(solver_solve_operation, 3, 1),
    ROW(solver_solve_many, 3, 1),
    ROW(solver_update_values, 2, 0),
    ROW(solver_set_callbacks, 1, 3),
    ROW(solver_describe, 2, 0),
    ROW(solver_determinant, 2, 0),
    ROW(solve, 4, 2),
    ROW(map, 3, 0),
    ROW(map_binary, 4, 0),
    ROW(map_scalar, 4, 0),
    ROW(map_index, 3, 1),
    ROW(map_divide, 4, 0),
    ROW(map_axpby, 3, 2),
    ROW(dot, 4, 0),
    ROW(gather, 4, 0),
    ROW(scatter, 4, 0),
    ROW(gather_masked, 5, 0),
    ROW(gather_if, 5, 0),
    ROW(scatter_masked, 5, 0),
    ROW(scatter_if, 5, 0),
    ROW(index_check, 2, 0),
    ROW(compact, 5, 0),
    ROW(compact_if, 5, 0),
    ROW(compact_bits, 5, 0),
    ROW(compact_by, 5, 1),
    ROW(expand_offsets, 3, 0),
    ROW(expand, 3, 3),
    ROW(reduce, 3, 0),
    ROW(map_reduce, 3, 0),
    ROW(reduce_rung, 3, 1),
    ROW(scan, 3, 0),
    ROW(map_scan, 3, 0),
    ROW(scan_host, 3, 1),
    ROW(reduce_host, 3, 1),
    ROW(scan_rung, 3, 1),
    ROW(block_scan, 3, 2),
    ROW(block_sums, 3, 1),
    ROW(scan_trace, 4, 2),
    ROW(reduce_trace, 4, 2),
    ROW(flags_pack, 3, 0),
    ROW(flags_unpack, 3, 0),
    ROW(segscan, 4, 0),
    ROW(segscan_rung, 4, 1),
    ROW(segscan_trace, 5, 2),
    ROW(segreduce, 4, 0),
    ROW(sort_by_key, 5, 0),
    ROW(sort_rung, 5, 1),
    ROW(histogram, 3, 1),
    ROW(histogram_rung, 3, 2),
    ROW(rung_describe, 4, 0),
    ROW(group_run, 1, 3),
    ROW(group_run_with, 1, 3),
    ROW(group_matrix_create, 3, 1),
    ROW(group_matrix_create_wide, 4, 1),
    ROW(group_matrix_read, 3, 3),
    ROW(group_matrix_describe, 2, 0),
    ROW(group_apply, 3, 2),
    ROW(group_dot, 4, 0),
    ROW(group_scatter, 3, 0),
    ROW(group_gather, 3, 0),
    ROW(group_verify, 4, 4),
    ROW(group_preconditioner_create, 2, 1),
    ROW(group_preconditioner_create_with, 2, 2),
    ROW(group_cg, 3, 2),
    ROW(group_solver_create, 2, 1),
    ROW(group_solver_solve, 3, 1),
    ROW(group_solver_describe, 2, 0),
    ROW(group_matrix_transpose, 2, 0),
    ROW(group_matrix_update_values, 2, 0),
    ROW(group_solver_update_values, 2, 0),
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Releases the object that the call created; the function name gives its type. */
static void release_made(const char *name)
{
    if (strstr(name, "context_create"))
        spmv_context_destroy(made);
    else if (strcmp(name, "spmv_alloc") == 0)
        spmv_free(ctx, made);
    else if (strstr(name, "spmv_vector") == name)
        spmv_host_free(made);
    else if (strstr(name, "spmv_matrix") == name)
        spmv_matrix_destroy(made);
    else if (strcmp(name, "spmv_group_solver_create") == 0)
        spmv_group_solver_destroy(made);
    else if (strstr(name, "spmv_group_matrix") == name)
        spmv_group_matrix_destroy(made);
    else if (strcmp(name, "spmv_spgemm") == 0 || strcmp(name, "spmv_spgemm_triple") == 0)
        spmv_matrix_destroy(made);
    else if (strcmp(name, "spmv_spgemm_plan_create") == 0)
        spmv_spgemm_plan_destroy(made);
    else if (strcmp(name, "spmv_sddmm_create") == 0)
        spmv_sddmm_destroy(made);
    else if (strstr(name, "plan_create") || strcmp(name, "spmv_plan_wrap") == 0)
        spmv_plan_destroy(made);
    else if (strstr(name, "preconditioner"))
        spmv_preconditioner_destroy(made);
    else if (strcmp(name, "spmv_batch_create") == 0)
        spmv_batch_destroy(made);
    else if (strstr(name, "least_squares_create"))
        spmv_least_squares_destroy(made);
    else if (strstr(name, "solver_create"))
        spmv_solver_destroy(made);
    made = NULL;
}

/* Fills the arrays with valid contents for the calls. */
static void fill_arrays(void)
{
    const double numbers[2 * N] = {1, 2, 3, 4, 0, 0, 0, 0};
    const int64_t offsets[N + 1] = {0, 1, 2, 4, 6};
    memcpy(host, numbers, sizeof numbers);
    assert_ok(ctx, spmv_upload(ctx, numbers, x, sizeof numbers));
    assert_ok(ctx, spmv_upload(ctx, numbers, y, sizeof numbers));
    assert_ok(ctx, spmv_upload(ctx, offsets, counts, sizeof offsets));
}

static void each_pointer_in_turn(void **state)
{
    (void)state;
    for (int f = 0; f < FUNCTIONS; f++) {
        const struct function *const function = &functions[f];
        for (turn = -1; turn < function->needed + function->optional; turn++) {
            fill_arrays();
            const bool refused = turn >= 0 && turn < function->needed;
            assert_int_equal(spmv_context_report(ctx, SPMV_OK, "nothing said"), SPMV_OK);
            const spmv_status st = function->call();
            if (st != (refused ? SPMV_ERROR_ARGUMENT : SPMV_OK))
                fail_msg("%s, pointer %d NULL: %s (%s)", function->name, turn, spmv_status_name(st),
                         spmv_last_error(ctx));
            if (refused && made != NULL)
                fail_msg("%s, pointer %d NULL: an output is there", function->name, turn);
            release_made(function->name);
        }
    }
}

/* With a context, the message names the function or what is missing. */
static void sentences(void **state)
{
    (void)state;
    static const char *const without[] = {"spmv_backend_parse", "spmv_type_parse", "spmv_op_parse",
                                          "spmv_convert_numbers", "spmv_function_parse", "spmv_predicate_parse",
                                          "spmv_op_identity",
                                          /* These have no context, or another one. */
                                          "spmv_verify", "spmv_context_create"};
    for (int f = 0; f < FUNCTIONS; f++) {
        bool has = true;
        for (size_t i = 0; i < sizeof without / sizeof *without; i++)
            has = has && strcmp(functions[f].name, without[i]) != 0;
        for (turn = 1; has && turn < functions[f].needed; turn++) {
            fill_arrays();
            assert_int_equal(spmv_context_report(ctx, SPMV_OK, "nothing said"), SPMV_OK);
            assert_int_equal(functions[f].call(), SPMV_ERROR_ARGUMENT);
            if (strcmp(spmv_last_error(ctx), "nothing said") == 0 || strlen(spmv_last_error(ctx)) < 10)
                fail_msg("%s, pointer %d NULL: the sentence is \"%s\"", functions[f].name, turn, spmv_last_error(ctx));
        }
    }
    turn = -1;
    assert_int_equal(spmv_context_create(NULL, NULL), SPMV_ERROR_ARGUMENT);
    assert_string_equal(spmv_last_error(NULL), "spmv_context_create: ctx is NULL");
}

/* ------------------------------------------------------------------ all others */

static void check_options(void)
{
    spmv_context_options_init(NULL, sizeof(spmv_context_options));
    spmv_read_options_init(NULL, sizeof(spmv_read_options));
    spmv_write_options_init(NULL, sizeof(spmv_write_options));
    spmv_generate_options_init(NULL, sizeof(spmv_generate_options));
    spmv_plan_options_init(NULL, sizeof(spmv_plan_options));
    spmv_spgemm_options_init(NULL, sizeof(spmv_spgemm_options));
    spmv_sddmm_options_init(NULL, sizeof(spmv_sddmm_options));
    spmv_epilogue_init(NULL, sizeof(spmv_epilogue));
    spmv_preconditioner_options_init(NULL, sizeof(spmv_preconditioner_options));
    spmv_pieces_options_init(NULL, sizeof(spmv_pieces_options));
    spmv_cg_options_init(NULL, sizeof(spmv_cg_options));
    spmv_solver_options_init(NULL, sizeof(spmv_solver_options));
    spmv_batch_options_init(NULL, sizeof(spmv_batch_options));
    spmv_least_squares_options_init(NULL, sizeof(spmv_least_squares_options));
    spmv_eigen_options_init(NULL, sizeof(spmv_eigen_options));
    spmv_group_matrix_options_init(NULL, sizeof(spmv_group_matrix_options));
    spmv_group_run_options_init(NULL, sizeof(spmv_group_run_options));
}

/* Groups; those of MPI need a launcher. */
static void check_groups(void)
{
    spmv_group *made_group = NULL;
    spmv_context *const none[1] = {NULL};
    assert_int_equal(spmv_group_create_threads(NULL, 1, &made_group), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_create_threads(none, 1, &made_group), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_create_threads(&ctx, 1, NULL), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_create_mpi(NULL, &made_group), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_create_mpi(ctx, NULL), SPMV_ERROR_ARGUMENT);
    assert_null(made_group);
    if (getenv("SPMV_MPI") == NULL && spmv_group_launcher() == NULL)
        assert_int_equal(spmv_group_create_mpi(ctx, &made_group), SPMV_ERROR_UNSUPPORTED);
    spmv_group_destroy(NULL);
    spmv_group_matrix_destroy(NULL);
    spmv_group_solver_destroy(NULL);
    spmv_group_break(NULL, SPMV_ERROR_READ, NULL);
    spmv_group_break(group, SPMV_OK, NULL); /* no failure */
    assert_int_equal(spmv_group_agree(group, SPMV_OK), SPMV_OK);
    assert_int_equal(spmv_group_agree(NULL, SPMV_OK), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_agree_on(group, SPMV_OK, "other options", NULL), SPMV_OK);
    assert_int_equal(spmv_group_agree_on(group, SPMV_OK, NULL, "text"), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_agree_on(NULL, SPMV_OK, "other options", "text"), SPMV_ERROR_ARGUMENT);
    int number = 3;
    assert_int_equal(spmv_group_broadcast(group, &number, sizeof number), SPMV_OK);
    assert_int_equal(number, 3);
    assert_int_equal(spmv_group_broadcast(group, NULL, 0), SPMV_OK);
    assert_int_equal(spmv_group_broadcast(group, NULL, 4), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_broadcast(group, &number, -1), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_broadcast(NULL, &number, sizeof number), SPMV_ERROR_ARGUMENT);
    assert_true(spmv_group_local_rank() >= -1);
    assert_int_equal(spmv_group_rank(NULL), 0);
    assert_int_equal(spmv_group_ranks(NULL), 0);
    assert_null(spmv_group_context(NULL));
    assert_string_equal(spmv_group_transport(NULL), "");
}

static void check_contexts(void)
{
    spmv_context_destroy(NULL);
    support_free_in(NULL, NULL, host);
    spmv_free(ctx, NULL);
    assert_int_equal(spmv_context_backend(NULL), SPMV_BACKEND_AUTO);
    assert_string_equal(spmv_context_describe(NULL), "");
    assert_int_equal(spmv_context_threads(NULL), 0);
    assert_null(spmv_context_stream(NULL));
    assert_non_null(spmv_last_error(NULL));
    assert_true(spmv_memory_available(NULL, NULL) > 0);
    assert_non_null(spmv_module_file(0, NULL, NULL, 0, NULL));
    assert_null(spmv_module_file(-1, NULL, NULL, 0, NULL));
    assert_null(spmv_module_file(1000, NULL, NULL, 0, NULL));
    spmv_memory_limit(0);
    assert_int_equal(spmv_context_set_cancel(NULL, NULL, NULL), SPMV_ERROR_ARGUMENT);
}

static void check_objects(void)
{
    spmv_csr view = csr, product_view = csr;
    spmv_host_free(NULL);
    spmv_matrix_destroy(NULL);
    spmv_plan_destroy(NULL);
    spmv_spgemm_plan_destroy(NULL);
    spmv_sddmm_destroy(NULL);
    assert_true(spmv_sddmm_bytes(NULL) == 0);
    spmv_batch_destroy(NULL);
    assert_true(spmv_batch_bytes(NULL) == 0);
    spmv_spgemm_pattern(NULL, NULL);
    spmv_spgemm_pattern(NULL, &product_view);
    assert_true(product_view.rows == 0 && product_view.row_ptr == NULL && product_view.col == NULL);
    spmv_preconditioner_destroy(NULL);
    spmv_solver_destroy(NULL);
    spmv_least_squares_destroy(NULL);
    assert_string_equal(spmv_matrix_comments(NULL), "");
    spmv_remove_unfinished();
    spmv_matrix_view(NULL, NULL);
    spmv_matrix_view(NULL, &view);
    assert_true(view.rows == 0 && view.cols == 0 && view.nnz == 0 && view.row_ptr == NULL && view.col == NULL &&
                view.val == NULL && view.memory == SPMV_MEMORY_HOST);
    assert_null(spmv_plan_context(NULL));
    assert_null(spmv_plan_passed_over(NULL, 0, NULL));
    assert_int_equal(spmv_spec_known(NULL), 0);
    assert_non_null(spmv_spec_form(0, NULL));
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, "diagonal:2", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, NULL);
    spmv_matrix_destroy(matrix);
    /* Outputs are empty after an error. */
    spmv_plan_info info = {.size = 1, .rows = 5};
    assert_int_equal(spmv_plan_describe(NULL, &info, sizeof info), SPMV_ERROR_ARGUMENT);
    assert_true(info.size == sizeof info && info.rows == 0 && info.method == NULL);
    spmv_preconditioner_info about = {.size = 1, .rows = 5};
    assert_int_equal(spmv_preconditioner_describe(NULL, &about, sizeof about), SPMV_ERROR_ARGUMENT);
    assert_true(about.size == sizeof about && about.rows == 0 && about.name == NULL);
    spmv_cg_result result = {.size = 1, .status = SPMV_OK};
    assert_int_equal(spmv_cg(NULL, x, y, NULL, &result, sizeof result), SPMV_ERROR_ARGUMENT);
    assert_true(result.size == sizeof result && result.status == SPMV_ERROR_ARGUMENT);
    spmv_solver_info seen = {.size = 1, .bytes = 5};
    assert_int_equal(spmv_solver_describe(NULL, &seen, sizeof seen), SPMV_ERROR_ARGUMENT);
    assert_true(seen.size == sizeof seen && seen.bytes == 0 && seen.solver == NULL);
    spmv_solver_result solved = {.size = 1, .status = SPMV_OK};
    assert_int_equal(spmv_solver_solve(NULL, x, y, &solved, sizeof solved), SPMV_ERROR_ARGUMENT);
    assert_true(solved.size == sizeof solved && solved.status == SPMV_ERROR_ARGUMENT);
    spmv_least_squares_result fitted = {.size = 1, .status = SPMV_OK};
    assert_int_equal(spmv_least_squares_solve(NULL, x, y, &fitted, sizeof fitted), SPMV_ERROR_ARGUMENT);
    assert_true(fitted.size == sizeof fitted && fitted.status == SPMV_ERROR_ARGUMENT);
    solved.status = SPMV_OK;
    assert_int_equal(spmv_solve(NULL, &csr, x, y, NULL, &solved, sizeof solved), SPMV_ERROR_ARGUMENT);
    assert_int_equal(solved.status, SPMV_ERROR_ARGUMENT);
}

/* Enumeration values below and above the valid range. */
static void check_names(void)
{
    static const int wrong[] = {-1, 31, 32, 99, 2147483647, -2147483647 - 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int w = wrong[i];
        assert_string_equal(spmv_backend_name((spmv_backend)w), "?");
        assert_int_equal(spmv_backend_built((spmv_backend)w), 0);
        assert_string_equal(spmv_status_name((spmv_status)w), "SPMV_?");
        assert_string_equal(spmv_status_text((spmv_status)w), "unknown status");
        assert_int_equal(spmv_status_class((spmv_status)w), -1);
        assert_int_equal(spmv_type_size((spmv_type)w), 0);
        assert_string_equal(spmv_type_name((spmv_type)w), "?");
        assert_string_equal(spmv_op_name((spmv_op)w), "?");
        assert_string_equal(spmv_function_name((spmv_function)w), "?");
        assert_string_equal(spmv_predicate_name((spmv_predicate)w), "?");
        assert_int_equal(spmv_op_commutes((spmv_op)w), 0);
        for (int t = 0; t < 2; t++) {
            const spmv_type type = t == 0 ? SPMV_F64 : (spmv_type)w;
            assert_int_equal(spmv_op_takes((spmv_op)w, type), 0);
            assert_int_equal(spmv_function_takes((spmv_function)w, type), 0);
            assert_int_equal(spmv_predicate_takes((spmv_predicate)w, type), 0);
        }
        for (int index = -1; index < 2; index++) {
            assert_null(spmv_method_name((spmv_backend)w, index));
            assert_null(spmv_spgemm_method_name((spmv_backend)w, index));
            assert_null(spmv_cg_rung_name((spmv_backend)w, index));
            assert_null(spmv_compact_rung_name((spmv_backend)w, index));
            assert_null(spmv_reduce_rung_name((spmv_backend)w, index));
            assert_null(spmv_scan_rung_name((spmv_backend)w, index));
            assert_null(spmv_segscan_rung_name((spmv_backend)w, index));
            assert_null(spmv_sort_rung_name((spmv_backend)w, index));
            assert_null(spmv_histogram_rung_name((spmv_backend)w, index));
        }
        if (w > 0 && w < 99)
            continue;
        const char *const names[] = {spmv_method_name(support_backend, w),
                                     spmv_spgemm_method_name(support_backend, w),
                                     spmv_cg_rung_name(support_backend, w),
                                     spmv_compact_rung_name(support_backend, w),
                                     spmv_reduce_rung_name(support_backend, w),
                                     spmv_scan_rung_name(support_backend, w),
                                     spmv_segscan_rung_name(support_backend, w),
                                     spmv_sort_rung_name(support_backend, w),
                                     spmv_histogram_rung_name(support_backend, w),
                                     spmv_preconditioner_name(w),
                                     spmv_solver_name(w),
                                     spmv_least_squares_name(w),
                                     spmv_batch_solver_name(w),
                                     spmv_eigen_name(w),
                                     spmv_spec_form(w, NULL)};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            assert_null(names[k]);
    }
    assert_non_null(spmv_version());
}

/* Name, and the number of pointers that are NULL in the functions above. */
static const struct {
    const char *name;
    int pointers;
    void (*check)(void);
} others[] = {
    {"spmv_context_options_init", 1, check_options},
    {"spmv_read_options_init", 1, check_options},
    {"spmv_write_options_init", 1, check_options},
    {"spmv_generate_options_init", 1, check_options},
    {"spmv_plan_options_init", 1, check_options},
    {"spmv_spgemm_options_init", 1, check_options},
    {"spmv_sddmm_options_init", 1, check_options},
    {"spmv_epilogue_init", 1, check_options},
    {"spmv_preconditioner_options_init", 1, check_options},
    {"spmv_pieces_options_init", 1, check_options},
    {"spmv_cg_options_init", 1, check_options},
    {"spmv_solver_options_init", 1, check_options},
    {"spmv_batch_options_init", 1, check_options},
    {"spmv_least_squares_options_init", 1, check_options},
    {"spmv_eigen_options_init", 1, check_options},
    {"spmv_group_matrix_options_init", 1, check_options},
    {"spmv_group_run_options_init", 1, check_options},
    {"spmv_group_create_threads", 3, check_groups},
    {"spmv_group_create_mpi", 2, check_groups},
    {"spmv_group_launcher", 0, check_groups},
    {"spmv_group_local_rank", 0, check_groups},
    {"spmv_group_destroy", 1, check_groups},
    {"spmv_group_rank", 1, check_groups},
    {"spmv_group_ranks", 1, check_groups},
    {"spmv_group_context", 1, check_groups},
    {"spmv_group_transport", 1, check_groups},
    {"spmv_group_agree", 1, check_groups},
    {"spmv_group_agree_on", 3, check_groups},
    {"spmv_group_broadcast", 2, check_groups},
    {"spmv_group_break", 2, check_groups},
    {"spmv_group_matrix_destroy", 1, check_groups},
    {"spmv_group_solver_destroy", 1, check_groups},
    {"spmv_context_destroy", 1, check_contexts},
    {"spmv_context_backend", 1, check_contexts},
    {"spmv_context_describe", 1, check_contexts},
    {"spmv_context_threads", 1, check_contexts},
    {"spmv_context_stream", 1, check_contexts},
    {"spmv_last_error", 1, check_contexts},
    {"spmv_free", 2, check_contexts},
    {"spmv_memory_available", 2, check_contexts},
    {"spmv_module_file", 3, check_contexts},
    {"spmv_memory_limit", 0, check_contexts},
    {"spmv_context_set_cancel", 3, check_contexts},
    {"spmv_host_free", 1, check_objects},
    {"spmv_matrix_view", 2, check_objects},
    {"spmv_matrix_destroy", 1, check_objects},
    {"spmv_matrix_comments", 1, check_objects},
    {"spmv_remove_unfinished", 0, check_objects},
    {"spmv_spec_known", 1, check_objects},
    {"spmv_spec_form", 1, check_objects},
    {"spmv_plan_destroy", 1, check_objects},
    {"spmv_spgemm_plan_destroy", 1, check_objects},
    {"spmv_sddmm_destroy", 1, check_objects},
    {"spmv_sddmm_bytes", 1, check_objects},
    {"spmv_batch_destroy", 1, check_objects},
    {"spmv_batch_bytes", 1, check_objects},
    {"spmv_spgemm_pattern", 2, check_objects},
    {"spmv_plan_context", 1, check_objects},
    {"spmv_plan_passed_over", 2, check_objects},
    {"spmv_preconditioner_destroy", 1, check_objects},
    {"spmv_solver_destroy", 1, check_objects},
    {"spmv_least_squares_destroy", 1, check_objects},
    {"spmv_backend_name", 0, check_names},
    {"spmv_backend_built", 0, check_names},
    {"spmv_method_name", 0, check_names},
    {"spmv_spgemm_method_name", 0, check_names},
    {"spmv_op_name", 0, check_names},
    {"spmv_function_name", 0, check_names},
    {"spmv_predicate_name", 0, check_names},
    {"spmv_op_commutes", 0, check_names},
    {"spmv_op_takes", 0, check_names},
    {"spmv_function_takes", 0, check_names},
    {"spmv_predicate_takes", 0, check_names},
    {"spmv_preconditioner_name", 0, check_names},
    {"spmv_solver_name", 0, check_names},
    {"spmv_least_squares_name", 0, check_names},
    {"spmv_batch_solver_name", 0, check_names},
    {"spmv_eigen_name", 0, check_names},
    {"spmv_compact_rung_name", 0, check_names},
    {"spmv_reduce_rung_name", 0, check_names},
    {"spmv_scan_rung_name", 0, check_names},
    {"spmv_segscan_rung_name", 0, check_names},
    {"spmv_sort_rung_name", 0, check_names},
    {"spmv_histogram_rung_name", 0, check_names},
    {"spmv_cg_rung_name", 0, check_names},
    {"spmv_status_name", 0, check_names},
    {"spmv_status_text", 0, check_names},
    {"spmv_status_class", 0, check_names},
    {"spmv_type_size", 0, check_names},
    {"spmv_type_name", 0, check_names},
    {"spmv_version", 0, check_names},
};
enum { OTHERS = sizeof others / sizeof *others };

static void neutral_values(void **state)
{
    (void)state;
    check_options();
    check_contexts();
    check_objects();
    check_groups();
    check_names();
}

/* ------------------------------------------------- the tables against the headers */

/* The number of pointers that the tables have for a function; -1: it is in neither. */
static int known_pointers(const char *name)
{
    for (int f = 0; f < FUNCTIONS; f++)
        if (strcmp(functions[f].name, name) == 0)
            return functions[f].needed + functions[f].optional;
    for (int o = 0; o < OTHERS; o++)
        if (strcmp(others[o].name, name) == 0)
            return others[o].pointers;
    return -1;
}

/* Compares one declaration, after SPMV_API up to the semicolon. */
static void check_declaration(const char *from, const char *end)
{
    const char *const open = memchr(from, '(', (size_t)(end - from)), *begin = open;
    char name[80];
    int pointers = 0;
    assert_non_null(open);
    while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')
        begin--;
    snprintf(name, sizeof name, "%.*s", (int)(open - begin), begin);
    for (const char *p = open; p < end; p++)
        /* The name of a function type ends in _fn and counts as a pointer. */
        pointers += (*p == '*' && p[1] != '*') + (strncmp(p, "_fn ", 4) == 0);
    if (known_pointers(name) != pointers)
        fail_msg("%s has %d pointers, the tables of this test have %d (-1: none): add what is missing", name, pointers,
                 known_pointers(name));
}

static int check_header(const char *path)
{
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    static char text[1 << 18];
    const size_t length = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_true(length < sizeof text - 1);
    text[length] = '\0';
    char *const old_names = strstr(text, "\n#ifndef SPMV_NO_OLD_NAMES"); /* the last section: see test_old_names.c */
    if (old_names != NULL)
        *old_names = '\0';
    int found = 0;
    for (const char *p = text; (p = strstr(p, "\nSPMV_API ")) != NULL; found++) {
        const char *const end = strchr(p, ';');
        assert_non_null(end);
        check_declaration(p + strlen("\nSPMV_API "), end);
        p = end;
    }
    return found;
}

static void tables_are_complete(void **state)
{
    (void)state;
    char path[1024];
    int found = 0;
    snprintf(path, sizeof path, "%s/include/spmv", support_source_dir());
    DIR *const headers = opendir(path);
    assert_non_null(headers);
    for (const struct dirent *e = readdir(headers); e != NULL; e = readdir(headers)) {
        const size_t length = strlen(e->d_name);
        snprintf(path, sizeof path, "%s/include/spmv/%s", support_source_dir(), e->d_name);
        if (length > 2 && strcmp(e->d_name + length - 2, ".h") == 0)
            found += check_header(path);
    }
    closedir(headers);
    assert_int_equal(found, FUNCTIONS + OTHERS); /* no removed function is left in the tables */
}

/* ------------------------------------------------------- enumerations out of range */

#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        const spmv_status status_ = (call);                                                                            \
        if (status_ != SPMV_ERROR_ARGUMENT && status_ != SPMV_ERROR_TYPE)                                              \
            fail_msg("%s with %d: %s", #call, w, spmv_status_name(status_));                                           \
    } while (0)

static void enumerations(void **state)
{
    (void)state;
    static const int wrong[] = {-1, 11, 99, 2147483647, -2147483647 - 1};
    spmv_context *const checker = support_context_on(SPMV_BACKEND_REF, 1);
    turn = -1;
    fill_arrays();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int w = wrong[i];
        const spmv_type type = (spmv_type)w;
        const double product[N] = {2, 4, 6, 8};
        /* backends and operations */
        spmv_context_options context_options;
        spmv_context_options_init(&context_options, sizeof context_options);
        context_options.backend = (spmv_backend)w;
        spmv_context *other = NULL;
        REFUSED(spmv_context_create(&context_options, &other));
        assert_true(other == NULL && strstr(spmv_last_error(NULL), "unknown backend") != NULL);
        spmv_plan_options options;
        spmv_plan_options_init(&options, sizeof options);
        options.operation = (spmv_operation)w;
        REFUSED(spmv_plan_create(ctx, &csr, &options, (spmv_plan **)&made));
        assert_fails(checker,
                     spmv_verify(checker, &csr, (spmv_operation)w, NULL, host, NULL, NULL, product, SPMV_F64, NULL, 0),
                     SPMV_ERROR_ARGUMENT, "unknown operation");
        spmv_cg_options cg;
        spmv_cg_options_init(&cg, sizeof cg);
        cg.symmetry_check = w;
        REFUSED(spmv_cg(plan, x, y, &cg, NULL, 0));
        spmv_solver_options solving;
        spmv_solver_options_init(&solving, sizeof solving);
        solving.symmetry_check = w;
        REFUSED(spmv_solve(ctx, &csr, x, y, &solving, NULL, 0));
        solving.symmetry_check = SPMV_SYMMETRY_TRUST;
        solving.type = (spmv_type)w;
        REFUSED(spmv_solve(ctx, &csr, x, y, &solving, NULL, 0));
        spmv_eigen_options pairs;
        spmv_eigen_options_init(&pairs, sizeof pairs);
        pairs.pairs = 1;
        pairs.which = w;
        REFUSED(spmv_eigs(ctx, &csr, &pairs, NULL, NULL, NULL, 0));
        pairs.which = SPMV_EIGEN_SMALLEST;
        pairs.symmetry_check = w;
        REFUSED(spmv_eigs(ctx, &csr, &pairs, NULL, NULL, NULL, 0));
        pairs.symmetry_check = SPMV_SYMMETRY_TRUST;
        pairs.type = (spmv_type)w;
        REFUSED(spmv_eigs(ctx, &csr, &pairs, NULL, NULL, NULL, 0));
        spmv_least_squares_options fitting;
        spmv_least_squares_options_init(&fitting, sizeof fitting);
        fitting.scaling = w;
        REFUSED(spmv_least_squares_create(ctx, &csr, &fitting, (spmv_least_squares **)&made));
        fitting.scaling = SPMV_SCALING_AUTO;
        fitting.type = (spmv_type)w;
        REFUSED(spmv_least_squares_create(ctx, &csr, &fitting, (spmv_least_squares **)&made));
        spmv_batch_options batched;
        spmv_batch_options_init(&batched, sizeof batched);
        batched.type = (spmv_type)w;
        REFUSED(spmv_batch_create(ctx, &csr, &batched, (spmv_batch **)&made));
        /* memory of the arrays */
        spmv_csr odd = csr;
        odd.memory = (spmv_memory)w;
        REFUSED(spmv_matrix_check(ctx, &odd));
        REFUSED(spmv_plan_create(ctx, &odd, NULL, (spmv_plan **)&made));
        REFUSED(spmv_verify(checker, &odd, SPMV_OPERATION_N, NULL, host, NULL, NULL, product, SPMV_F64, NULL, 0));
        REFUSED(spmv_preconditioner_create(ctx, "jacobi", &odd, NULL, (spmv_preconditioner **)&made));
        /* kinds and forms */
        REFUSED(spmv_scan(ctx, (spmv_scan_kind)w, SUM, x, z, N));
        REFUSED(spmv_map_scan(ctx, SPMV_MAP_COPY, (spmv_scan_kind)w, SUM, x, z, N));
        REFUSED(spmv_scan_host(ctx, (spmv_scan_kind)w, SUM, host, host, N, NULL));
        REFUSED(spmv_block_scan(ctx, NULL, (spmv_scan_kind)w, SUM, x, z, NULL, 2, N));
        REFUSED(spmv_block_sums(ctx, (spmv_scan_kind)w, SUM, x, y, z, 2, N));
        REFUSED(spmv_scan_trace(ctx, NULL, (spmv_scan_kind)w, SUM, host, host, N, no_trace, NULL));
        REFUSED(spmv_segscan(ctx, (spmv_scan_kind)w, SUM, &segments, x, z, N));
        REFUSED(spmv_segscan_rung(ctx, NULL, (spmv_scan_kind)w, SUM, heads, x, z, N));
        REFUSED(spmv_segscan_trace(ctx, NULL, (spmv_scan_kind)w, SUM, host_heads, host, host, N, no_trace, NULL));
        REFUSED(spmv_expand(ctx, (spmv_expand_form)w, SPMV_F64, x, counts, N, 64, z, NULL, NULL, 6));
        spmv_segments form = segments;
        form.form = (spmv_segment_form)w;
        REFUSED(spmv_segscan(ctx, SPMV_INCLUSIVE, SUM, &form, x, z, N));
        REFUSED(spmv_segreduce(ctx, SUM, &form, x, z, N));
        /* operators, functions, predicates */
        REFUSED(spmv_map(ctx, (spmv_function)w, SPMV_F64, x, z, N));
        REFUSED(spmv_map_binary(ctx, (spmv_op)w, SPMV_F64, x, y, z, N));
        REFUSED(spmv_reduce(ctx, (spmv_op)w, SPMV_F64, x, scalar, N));
        REFUSED(spmv_op_identity((spmv_op)w, SPMV_F64, host));
        REFUSED(spmv_gather_if(ctx, (spmv_predicate)w, 1, SPMV_F64, host, x, N, index32, 32, z, N));
        REFUSED(spmv_scatter_if(ctx, (spmv_predicate)w, 1, SPMV_F64, host, x, index32, 32, z, N, N));
        REFUSED(spmv_compact_if(ctx, (spmv_predicate)w, 1, SPMV_F64, host, x, z, count, N));
        /* types; 11 is not a type either */
        REFUSED(spmv_map(ctx, SPMV_MAP_COPY, type, x, z, N));
        REFUSED(spmv_map_index(ctx, type, host, NULL, z, N));
        REFUSED(spmv_dot(ctx, type, x, y, scalar, N));
        REFUSED(spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, type, x, z, N));
        REFUSED(spmv_gather(ctx, type, x, N, index32, 32, z, N));
        REFUSED(spmv_compact(ctx, type, x, heads, z, count, N));
        REFUSED(spmv_sort_by_key(ctx, type, 0, 8, keys, NULL, 0, z, NULL, N));
        REFUSED(spmv_histogram(ctx, type, index32, z, N, NULL, N));
        REFUSED(spmv_vector_write(ctx, vector_file, type, host, N, NULL));
        REFUSED(spmv_vector_read(ctx, vector_file, type, &made, &n64));
        REFUSED(spmv_matrix_generate(ctx, "diagonal:2", type, (spmv_matrix **)&made));
        REFUSED(spmv_preconditioner_wrap(ctx, type, N, &own, NULL, (spmv_preconditioner **)&made));
        REFUSED(spmv_plan_wrap(ctx, type, N, N, SPMV_OPERATION_N, &own_operator, NULL, (spmv_plan **)&made));
        REFUSED(spmv_verify(checker, &csr, SPMV_OPERATION_N, NULL, host, NULL, NULL, product, type, NULL, 0));
        odd = csr;
        odd.type = type;
        REFUSED(spmv_matrix_check(ctx, &odd));
        REFUSED(spmv_plan_create(ctx, &odd, NULL, (spmv_plan **)&made));
        REFUSED(spmv_matrix_write(ctx, &odd, file));
        options.operation = SPMV_OPERATION_N;
        options.type = type;
        REFUSED(spmv_plan_create(ctx, &csr, &options, (spmv_plan **)&made));
    }
    spmv_context_destroy(checker);
}

/* ------------------------------------------------------------------ begin and end */

static int begin(void **state)
{
    (void)state;
    static const int32_t row_ptr[N + 1] = {0, 1, 2, 3, 4}, col[N] = {0, 1, 2, 3}, expand_counts[N] = {0, 1, 2, 3};
    static const double val[N] = {2, 2, 2, 2};
    static const uint32_t words[1] = {5};
    static const int64_t starts[2] = {0, 2};
    const double zeros[2 * N] = {0};
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof file, "%s/a.mtx", folder);
    snprintf(vector_file, sizeof vector_file, "%s/b.txt", folder);
    ctx = support_context();
    static const int32_t diagonal_ptr[] = {0, 1, 2, 3, 4}, diagonal_col[] = {0, 1, 2, 3};
    csr = support_csr(N, N, row_ptr, col, val);
    for (int64_t k = 0; k < N; k++)
        wide_columns[k] = col[k];
    host = calloc(512, 1); /* also receives descriptions */
    void **const arrays[] = {&x, &y, &z, &count, &counts, &keys, &scalar};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = support_upload(ctx, zeros, sizeof zeros);
    index32 = support_upload(ctx, expand_counts, sizeof expand_counts);
    heads = support_upload(ctx, host_heads, sizeof host_heads);
    bits = support_upload(ctx, words, sizeof words);
    segments = (spmv_segments){SPMV_SEGMENT_STARTS, support_upload(ctx, starts, sizeof starts), 64, 2};
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.update_values = 1;
    assert_ok(ctx, spmv_plan_create(ctx, &csr, &options, &plan));
    assert_ok(ctx, spmv_spgemm_plan_create(ctx, &csr, &csr, NULL, &squared));
    assert_ok(ctx, spmv_sddmm_create(ctx, &csr, NULL, &sampled));
    assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &csr, NULL, &jacobi));
    spmv_preconditioner_options renewing;
    spmv_preconditioner_options_init(&renewing, sizeof renewing);
    renewing.update_values = 1;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "amg", &csr, &renewing, &renewed));
    assert_ok(ctx, spmv_solver_create(ctx, &csr, NULL, &solver));
    assert_ok(ctx, spmv_least_squares_create(ctx, &csr, NULL, &fit));
    const spmv_csr diagonal = support_csr(N, N, diagonal_ptr, diagonal_col, NULL);
    assert_ok(ctx, spmv_batch_create(ctx, &diagonal, NULL, &batch));
    reference = support_context_on(SPMV_BACKEND_REF, 1);
    assert_ok(ctx, spmv_group_create_threads(&ctx, 1, &group));
    assert_ok(ctx, spmv_group_matrix_create(group, &csr, NULL, &group_matrix));
    assert_ok(ctx, spmv_group_solver_create(group_matrix, NULL, &group_solver));
    assert_ok(ctx, spmv_matrix_write(ctx, &csr, file));
    assert_ok(ctx, spmv_vector_write(ctx, vector_file, SPMV_F64, host, N, NULL));
    return 0;
}

static int end(void **state)
{
    (void)state;
    void *const memory[] = {x, y, z, count, counts, keys, scalar, index32, heads, bits, (void *)segments.heads};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        spmv_free(ctx, memory[i]);
    spmv_group_solver_destroy(group_solver);
    spmv_group_matrix_destroy(group_matrix);
    spmv_group_destroy(group);
    spmv_context_destroy(reference);
    spmv_preconditioner_destroy(jacobi);
    spmv_preconditioner_destroy(renewed);
    spmv_solver_destroy(solver);
    spmv_least_squares_destroy(fit);
    spmv_batch_destroy(batch);
    spmv_plan_destroy(plan);
    spmv_spgemm_plan_destroy(squared);
    spmv_sddmm_destroy(sampled);
    spmv_context_destroy(ctx);
    remove(file);
    remove(vector_file);
    remove(folder);
    free(host);
    return 0;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_complete), cmocka_unit_test(each_pointer_in_turn), cmocka_unit_test(sentences),
        cmocka_unit_test(neutral_values),      cmocka_unit_test(enumerations),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
