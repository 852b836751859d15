/* Names, texts and properties of statuses, types, operators, map functions and predicates,
 * generated from the lists.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/loops/loops.h"
#include "core/loops/ops.h"
#include "core/runtime.h"

const char *spmv_version(void)
{
    return SPMV_VERSION;
}

const char *spmv_status_name(spmv_status status)
{
#define CASE(NAME, value, text)                                                                                        \
    case SPMV_##NAME:                                                                                                  \
        return "SPMV_" #NAME;
    switch (status) {
        SPMV_STATUS_LIST(CASE)
    }
#undef CASE
    return "SPMV_?";
}

const char *spmv_status_text(spmv_status status)
{
#define CASE(NAME, value, text)                                                                                        \
    case SPMV_##NAME:                                                                                                  \
        return text;
    switch (status) {
        SPMV_STATUS_LIST(CASE)
    }
#undef CASE
    return "unknown status";
}

int spmv_status_class(spmv_status status)
{
#define CASE(NAME, value, text)                                                                                        \
    case SPMV_##NAME:                                                                                                  \
        return (value) / 100;
    switch (status) {
        SPMV_STATUS_LIST(CASE)
    }
#undef CASE
    return -1;
}

#define LIMIT_CHECK(NAME, name, value, T, CLASS, ARG)                                                                  \
    _Static_assert((value) > 0 && (value) < SPMV_TYPE_LIMIT, "type value out of range");
SPMV_TYPES(LIMIT_CHECK, )
SPMV_COMPLEX_TYPES(LIMIT_CHECK, )
SPMV_HALF_TYPES(LIMIT_CHECK, )

size_t spmv_type_size(spmv_type type)
{
#define ROW(NAME, name, value, T, CLASS, ARG) [value] = sizeof(T),
    static const size_t size[SPMV_TYPE_LIMIT] = {SPMV_TYPES(ROW, ) SPMV_COMPLEX_TYPES(ROW, ) SPMV_HALF_TYPES(ROW, )};
#undef ROW
    return (unsigned)type < SPMV_TYPE_LIMIT ? size[type] : 0;
}

bool type_in_primitives(spmv_type type)
{
    return spmv_type_size(type) > 0 && !type_is_complex(type) && !type_is_half(type);
}

#define TYPE_ROW(NAME, name, value, T, CLASS, ARG) [value] = #name,
static const char *const type_names[SPMV_TYPE_LIMIT] = {SPMV_TYPES(TYPE_ROW, ) SPMV_COMPLEX_TYPES(TYPE_ROW, )
                                                            SPMV_HALF_TYPES(TYPE_ROW, )};
#define OP_ROW(NAME, name, value, commutes, i, r, t, ARG) [value] = #name,
static const char *const op_names[SPMV_OP_LIMIT] = {SPMV_OPERATORS(OP_ROW, )};
#define FUNCTION_ROW(NAME, name, value, i, r, ARG) [value] = #name,
static const char *const function_names[SPMV_FUNCTION_LIMIT] = {SPMV_FUNCTIONS(FUNCTION_ROW, )};
#define PREDICATE_ROW(NAME, name, value, ARG) [value] = #name,
static const char *const predicate_names[SPMV_PREDICATE_LIMIT] = {SPMV_PREDICATES(PREDICATE_ROW, )};

static const char *name_of(const char *const *names, int limit, int value)
{
    return value >= 0 && value < limit && names[value] != NULL ? names[value] : "?";
}

/* The value of that name, or 0 if there is none. */
static int value_of(const char *const *names, int limit, const char *name)
{
    for (int v = 1; name != NULL && v < limit; v++)
        if (names[v] != NULL && strcmp(names[v], name) == 0)
            return v;
    return 0;
}

const char *spmv_type_name(spmv_type type)
{
    return name_of(type_names, SPMV_TYPE_LIMIT, (int)type);
}

const char *spmv_op_name(spmv_op op)
{
    return name_of(op_names, SPMV_OP_LIMIT, (int)op);
}

const char *spmv_function_name(spmv_function function)
{
    return name_of(function_names, SPMV_FUNCTION_LIMIT, (int)function);
}

const char *spmv_predicate_name(spmv_predicate predicate)
{
    return name_of(predicate_names, SPMV_PREDICATE_LIMIT, (int)predicate);
}

spmv_status spmv_type_parse(const char *name, spmv_type *type)
{
    if (type == NULL)
        return SPMV_ERROR_ARGUMENT;
    *type = (spmv_type)value_of(type_names, SPMV_TYPE_LIMIT, name);
    if (name == NULL)
        return SPMV_ERROR_ARGUMENT;
    return *type != SPMV_TYPE_DEFAULT ? SPMV_OK : SPMV_ERROR_TYPE;
}

static void widen_numbers(spmv_type type, const void *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = real_at(type, from, i);
}

/* Pairs with f32, which are used most, have loops that compilers vectorise. */
static bool convert_floats(spmv_type from_type, const void *from, spmv_type to_type, void *to, int64_t n)
{
#define LOOP(From, To, convert)                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                    \
    ((To *)to)[i] = convert(((const From *)from)[i])
    if (from_type == SPMV_BF16 && to_type == SPMV_F32)
        LOOP(spmv_bf16, float, float_of_bf16);
    else if (from_type == SPMV_F16 && to_type == SPMV_F32)
        LOOP(spmv_f16, float, float_of_f16);
    else if (from_type == SPMV_F32 && to_type == SPMV_BF16)
        LOOP(float, spmv_bf16, bf16_of_float);
    else if (from_type == SPMV_F32 && to_type == SPMV_F16)
        LOOP(float, spmv_f16, f16_of_float);
    else
        return false;
#undef LOOP
    return true;
}

spmv_status spmv_convert_numbers(spmv_type from_type, const void *from, spmv_type to_type, void *to, int64_t n)
{
    enum { AT_ONCE = 256 };
    double some[AT_ONCE];
    if (n < 0 || (n > 0 && (from == NULL || to == NULL)))
        return SPMV_ERROR_ARGUMENT;
    if (real_bytes(from_type) == 0 || real_bytes(to_type) == 0)
        return SPMV_ERROR_TYPE;
    if (convert_floats(from_type, from, to_type, to, n))
        return SPMV_OK;
    for (int64_t begin = 0; begin < n; begin += AT_ONCE) {
        const int64_t count = min_i64(AT_ONCE, n - begin);
        widen_numbers(from_type, (const char *)from + begin * real_bytes(from_type), some, count);
        for (int64_t i = 0; i < count; i++)
            real_set(to_type, to, begin + i, some[i]);
    }
    return SPMV_OK;
}

spmv_status spmv_op_parse(const char *name, spmv_op *op)
{
    if (op == NULL)
        return SPMV_ERROR_ARGUMENT;
    *op = (spmv_op)value_of(op_names, SPMV_OP_LIMIT, name);
    return (int)*op != 0 ? SPMV_OK : SPMV_ERROR_ARGUMENT;
}

spmv_status spmv_function_parse(const char *name, spmv_function *function)
{
    if (function == NULL)
        return SPMV_ERROR_ARGUMENT;
    *function = (spmv_function)value_of(function_names, SPMV_FUNCTION_LIMIT, name);
    return (int)*function != 0 ? SPMV_OK : SPMV_ERROR_ARGUMENT;
}

spmv_status spmv_predicate_parse(const char *name, spmv_predicate *predicate)
{
    if (predicate == NULL)
        return SPMV_ERROR_ARGUMENT;
    *predicate = (spmv_predicate)value_of(predicate_names, SPMV_PREDICATE_LIMIT, name);
    return (int)*predicate != 0 ? SPMV_OK : SPMV_ERROR_ARGUMENT;
}

int spmv_op_commutes(spmv_op op)
{
#define ROW(NAME, name, value, commutes, i, r, t, ARG) [value] = commutes,
    static const signed char flag[SPMV_OP_LIMIT] = {SPMV_OPERATORS(ROW, )};
#undef ROW
    return (unsigned)op < SPMV_OP_LIMIT ? flag[op] : 0;
}

/* 1 for each pair that exists. */
#define ENTRY(pair) 1

int spmv_op_takes(spmv_op op, spmv_type type)
{
    static const signed char flag[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = PAIR_TABLE;
    return (unsigned)op < SPMV_OP_LIMIT && (unsigned)type < SPMV_TYPE_LIMIT ? flag[op][type] : 0;
}

int spmv_function_takes(spmv_function function, spmv_type type)
{
    static const signed char flag[SPMV_FUNCTION_LIMIT][SPMV_TYPE_LIMIT] = FUNCTION_TABLE;
    return (unsigned)function < SPMV_FUNCTION_LIMIT && (unsigned)type < SPMV_TYPE_LIMIT ? flag[function][type] : 0;
}

int spmv_predicate_takes(spmv_predicate predicate, spmv_type type)
{
    static const signed char flag[SPMV_PREDICATE_LIMIT][SPMV_TYPE_LIMIT] = PREDICATE_TABLE;
    return (unsigned)predicate < SPMV_PREDICATE_LIMIT && (unsigned)type < SPMV_TYPE_LIMIT ? flag[predicate][type] : 0;
}

spmv_status spmv_op_identity(spmv_op op, spmv_type type, void *host_identity)
{
    if (host_identity == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!spmv_op_takes(op, type))
        return SPMV_ERROR_TYPE;
    op_loops(op, type)->identity(host_identity);
    return SPMV_OK;
}
