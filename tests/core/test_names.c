/* Choices by name (core/choice.h): the default, unknown names and their message, reasons.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/choice.h"
#include "tests/support/support.h"

struct row {
    const char *name;
    int value;
};
static const struct row rows[] = {{"tree", 1}, {"blocks", 2}, {"single-pass", 3}, {NULL, 0}};

static void only_null_and_auto_leave_it_open(void **state)
{
    (void)state;
    assert_true(choice_is_auto(NULL) && choice_is_auto("auto"));
    assert_false(choice_is_auto("") || choice_is_auto("Auto") || choice_is_auto("automatic"));
}

static void a_name_has_its_row(void **state)
{
    spmv_context *const ctx = support_context_on(SPMV_BACKEND_REF, 0);
    struct names names = {.count = 0};
    const void *row = NULL;
    (void)state;
    names_add_row(&names, "auto", &rows[1]);
    names_add_table(&names, rows, sizeof *rows);
    names_add(&names, "tree"); /* it is there already */
    assert_int_equal(names.count, 4);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(choice_take(ctx, SPMV_ERROR_METHOD, "call", "rung", &names, rows[i].name, &row), SPMV_OK);
        assert_ptr_equal(row, &rows[i]);
        assert_string_equal(names_at(rows, sizeof *rows, i), rows[i].name);
    }
    assert_null(names_at(rows, sizeof *rows, 3));
    assert_null(names_at(rows, sizeof *rows, -1));
    assert_null(names_at(NULL, sizeof *rows, 0));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(choice_take(ctx, SPMV_ERROR_METHOD, "call", "rung", &names, i == 0 ? NULL : "auto", &row),
                         SPMV_OK);
        assert_ptr_equal(row, &rows[1]);
    }
    /* of rungs, the last is the default */
    assert_int_equal(choice_take_rung(ctx, "call", rows, sizeof *rows, NULL, &row), SPMV_OK);
    assert_ptr_equal(row, &rows[2]);
    spmv_context_destroy(ctx);
}

static void an_unknown_name_is_explained(void **state)
{
    spmv_context *const ctx = support_context_on(SPMV_BACKEND_REF, 0);
    const void *row = &rows[0];
    const struct {
        const char *name, *message;
    } cases[] = {
        {"bolcks",
         "call: unknown rung \"bolcks\" on ref; did you mean blocks? There are: auto, tree, blocks, single-pass"},
        {"single", "call: unknown rung \"single\" on ref; did you mean single-pass? There are: auto, tree, blocks, "
                   "single-pass"},
        {"TREE", "call: unknown rung \"TREE\" on ref; did you mean tree? There are: auto, tree, blocks, single-pass"},
        {"bush", "call: unknown rung \"bush\" on ref; there are: auto, tree, blocks, single-pass"},
        {"", "call: unknown rung \"\" on ref; there are: auto, tree, blocks, single-pass"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(choice_take_rung(ctx, "call", rows, sizeof *rows, cases[i].name, &row), SPMV_ERROR_METHOD);
        assert_string_equal(spmv_last_error(ctx), cases[i].message);
        assert_ptr_equal(row, &rows[0]);
    }
    assert_int_equal(choice_take_rung(NULL, "call", rows, sizeof *rows, "tree", &row), SPMV_ERROR_ARGUMENT);
    spmv_context_destroy(ctx);
}

/* A text that is too short is cut and ends with a 0. */
static void texts_are_cut(void **state)
{
    struct names names = {.on = "omp"};
    char text[200], cut[200];
    (void)state;
    names_add_table(&names, rows, sizeof *rows);
    names_unknown(&names, "rung", "single", 6, NULL, text, sizeof text);
    for (size_t size = 1; size <= strlen(text); size++) {
        memset(cut, 'x', sizeof cut);
        names_unknown(&names, "rung", "single", 6, NULL, cut, size);
        assert_true(strlen(cut) == size - 1 && strncmp(cut, text, size - 1) == 0);
    }
}

static void reasons_have_the_counted_facts(void **state)
{
    const struct choice_fact facts[] = {
        {"rows", 1234567890123, 0, NULL}, {"largest", 0.000123456, 3, NULL}, {"name", 0, 0, "ilu0"}, {0}};
    char text[100];
    (void)state;
    choice_reason("{rows} rows", facts, text, sizeof text);
    assert_string_equal(text, "1234567890123 rows");
    choice_reason("at most {largest}: {name} and {name}", facts, text, sizeof text);
    assert_string_equal(text, "at most 0.000123: ilu0 and ilu0");
    choice_reason("no facts", facts, text, sizeof text);
    assert_string_equal(text, "no facts");
    choice_reason("an unknown {fact} is left out", facts, text, sizeof text);
    assert_string_equal(text, "an unknown  is left out");
    choice_reason("{rows} rows", facts, text, 8);
    assert_string_equal(text, "1234567");
}

SUPPORT_MAIN(cmocka_unit_test(only_null_and_auto_leave_it_open), cmocka_unit_test(a_name_has_its_row),
             cmocka_unit_test(an_unknown_name_is_explained), cmocka_unit_test(texts_are_cut),
             cmocka_unit_test(reasons_have_the_counted_facts))
