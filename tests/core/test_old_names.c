/* Old names of members, functions, types, lists and headers: a program that uses them compiles and
 * gets what the new names give.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#undef SPMV_NO_OLD_NAMES
#include <spmv/multiply.h>
#include <spmv/operator.h>

#include "tests/support/support.h"

enum { N = 64 };

struct problem {
    spmv_context *ctx;
    spmv_matrix *matrix;
    spmv_csr a;
    double b[N], x[N];
};

/* On the host, where arrays are in the context's memory. */
static void open_problem(struct problem *p)
{
    p->ctx = support_context_on(support_backend, 0);
    assert_ok(p->ctx, spmv_matrix_generate(p->ctx, "poisson2d:8", SPMV_F64, &p->matrix));
    spmv_matrix_view(p->matrix, &p->a);
    for (int i = 0; i < N; i++) {
        p->b[i] = 1;
        p->x[i] = 0;
    }
}

static void close_problem(struct problem *p)
{
    spmv_matrix_destroy(p->matrix);
    spmv_context_destroy(p->ctx);
}

static void members_of_the_solver(void **state)
{
    (void)state;
    struct problem p;
    open_problem(&p);
    const spmv_solver_options named = {.size = sizeof named, .method = "minres"};
    assert_string_equal(named.solver, "minres");
    spmv_solver_options options = support_solver_options();
    options.method = "minres";
    options.precond = "none";
    spmv_solver *solver = NULL;
    spmv_solver_info info;
    spmv_solver_result result;
    assert_ok(p.ctx, spmv_solver_create(p.ctx, &p.a, &options, &solver));
    assert_ok(p.ctx, spmv_solver_describe(solver, &info, sizeof info));
    assert_string_equal(info.method, "minres");
    assert_ok(p.ctx, spmv_solver_solve(solver, p.b, p.x, &result, sizeof result));
    assert_string_equal(result.method, "minres");
    assert_ptr_equal(result.method, result.solver);
    assert_true(result.why_method[0] != '\0');
    assert_string_equal(result.why_method, result.why_solver);
    assert_int_equal(sizeof result.why_method, sizeof result.why_solver);
    spmv_solver_destroy(solver);
    close_problem(&p);
}

static void members_of_conjugate_gradients(void **state)
{
    (void)state;
    struct problem p;
    open_problem(&p);
    const spmv_cg_options named = {.size = sizeof named, .method = "textbook"};
    assert_string_equal(named.rung, "textbook");
    spmv_cg_options options = support_cg_options();
    options.method = "textbook";
    spmv_plan *plan = NULL;
    spmv_cg_result result;
    assert_ok(p.ctx, spmv_plan_create(p.ctx, &p.a, NULL, &plan));
    assert_ok(p.ctx, spmv_cg(plan, p.b, p.x, &options, &result, sizeof result));
    assert_string_equal(result.method, "textbook");
    assert_ptr_equal(result.method, result.rung);
    spmv_plan_destroy(plan);
    close_problem(&p);
}

static void names_of_solvers_and_rungs(void **state)
{
    (void)state;
    for (int i = 0; i == 0 || spmv_solver_name(i - 1) != NULL; i++)
        assert_ptr_equal(spmv_solver_method_name(i), spmv_solver_name(i));
    for (int i = 0; i == 0 || spmv_cg_rung_name(support_backend, i - 1) != NULL; i++)
        assert_ptr_equal(spmv_cg_method_name(support_backend, i), spmv_cg_rung_name(support_backend, i));
    for (int i = 0; i == 0 || spmv_compact_rung_name(support_backend, i - 1) != NULL; i++)
        assert_ptr_equal(spmv_compact_method_name(support_backend, i), spmv_compact_rung_name(support_backend, i));
    for (int i = 0; i == 0 || spmv_spgemm_method_name(support_backend, i - 1) != NULL; i++)
        assert_ptr_equal(spmv_multiply_method_name(support_backend, i), spmv_spgemm_method_name(support_backend, i));
}

static void same_matrix(const spmv_csr *a, const spmv_csr *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->nnz, b->nnz);
    assert_memory_equal(a->val, b->val, (size_t)a->nnz * sizeof(double));
}

static void sparse_products(void **state)
{
    (void)state;
    struct problem p;
    open_problem(&p);
    spmv_matrix *old = NULL, *new = NULL;
    spmv_csr c, expected;
    assert_ok(p.ctx, spmv_spgemm(p.ctx, &p.a, &p.a, NULL, &new));
    spmv_matrix_view(new, &expected);
    spmv_multiply_options options;
    spmv_multiply_options_init(&options, sizeof options);
    assert_int_equal(options.size, sizeof options);
    assert_ok(p.ctx, spmv_multiply(p.ctx, &p.a, &p.a, &options, &old));
    spmv_matrix_view(old, &c);
    same_matrix(&c, &expected);
    spmv_matrix_destroy(old);

    spmv_multiply_plan *plan = NULL;
    spmv_multiply_info info;
    assert_ok(p.ctx, spmv_multiply_plan_create(p.ctx, &p.a, &p.a, &options, &plan));
    assert_ok(p.ctx, spmv_multiply_describe(plan, &info, sizeof info));
    assert_int_equal(info.nnz, expected.nnz);
    spmv_multiply_pattern(plan, &c);
    assert_int_equal(c.nnz, expected.nnz);
    double *const values = malloc((size_t)c.nnz * sizeof *values);
    assert_non_null(values);
    assert_ok(p.ctx, spmv_multiply_values(plan, p.a.val, p.a.val, values));
    assert_memory_equal(values, expected.val, (size_t)c.nnz * sizeof *values);
    free(values);
    spmv_multiply_plan_destroy(plan);
    spmv_matrix_destroy(new);

    assert_ok(p.ctx, spmv_spgemm_triple(p.ctx, &p.a, &p.a, &p.a, NULL, &new));
    assert_ok(p.ctx, spmv_multiply_triple(p.ctx, &p.a, &p.a, &p.a, NULL, &old));
    spmv_matrix_view(new, &expected);
    spmv_matrix_view(old, &c);
    same_matrix(&c, &expected);
    spmv_matrix_destroy(old);
    spmv_matrix_destroy(new);
    close_problem(&p);
}

/* The lists with their former columns: a device type, which is the C type, and flags. */
static void lists(void **state)
{
    (void)state;
#define OLD(NAME, name, value, T, D, CLASS, ARG) #NAME " " #name " " #value " " #T " " #D " " #CLASS " " #ARG ";"
#define NEW(NAME, name, value, T, CLASS, ARG) #NAME " " #name " " #value " " #T " " #T " " #CLASS " " #ARG ";"
    assert_string_equal(SPMV_TYPE_LIST(OLD, a), SPMV_TYPES(NEW, a));
    assert_string_equal(SPMV_COMPLEX_LIST(OLD, a), SPMV_COMPLEX_TYPES(NEW, a));
    assert_string_equal(SPMV_NUMBER_LIST(OLD, a), SPMV_NUMBER_TYPES(NEW, a));
#undef OLD
#undef NEW
#define OLD(OP, op, TYPE, type, T, D, CLASS) #OP " " #op " " #TYPE " " #type " " #T " " #D " " #CLASS ";"
#define NEW(OP, op, TYPE, type, T, CLASS) #OP " " #op " " #TYPE " " #type " " #T " " #T " " #CLASS ";"
    assert_string_equal(SPMV_PAIR_LIST(OLD), SPMV_OPERATOR_PAIRS(NEW));
    assert_string_equal(SPMV_FUNCTION_PAIR_LIST(OLD), SPMV_FUNCTION_PAIRS(NEW));
    assert_string_equal(SPMV_PREDICATE_PAIR_LIST(OLD), SPMV_PREDICATE_PAIRS(NEW));
#undef OLD
#undef NEW
    /* commutes, then the classes */
#define OLD(NAME, name, value, commutes, I, R, C, T, ARG) #NAME "=" #name "=" #value #commutes #I #R #C #T #ARG " "
    assert_string_equal(SPMV_OP_LIST(OLD, a), "ADD=add=111110a MUL=mul=211110a MIN=min=311100a MAX=max=411100a "
                                              "LAST=last=501100a COMPOSE=compose=600001a MAXSUM=maxsum=700001a ");
#undef OLD
#define OLD(NAME, name, value, I, R, C, T, ARG) #NAME "=" #name "=" #value #I #R #C #T #ARG " "
    assert_string_equal(SPMV_FUNCTION_LIST(OLD, a),
                        "COPY=copy=11110a NEG=neg=21100a ABS=abs=31100a SQUARE=square=41100a "
                        "RECIPROCAL=reciprocal=50100a SQRT=sqrt=60100a ");
    assert_string_equal(SPMV_PREDICATE_LIST(OLD, a),
                        "LESS=less=11100a LESS_EQUAL=less_equal=21100a GREATER=greater=31100a "
                        "GREATER_EQUAL=greater_equal=41100a EQUAL=equal=51100a NOT_EQUAL=not_equal=61100a "
                        "NONZERO=nonzero=71100a ");
#undef OLD
}

SUPPORT_MAIN(cmocka_unit_test(members_of_the_solver), cmocka_unit_test(members_of_conjugate_gradients),
             cmocka_unit_test(names_of_solvers_and_rungs), cmocka_unit_test(sparse_products), cmocka_unit_test(lists))
