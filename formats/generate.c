/* SPECs: finding the generator by name, reading its arguments.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"

#include <stdio.h>

#define ROW(name_, form_, about_) {.name = #name_, .form = (form_), .about = (about_), .make = generate_##name_},
static const struct generator generators[] = {GENERATOR_LIST(ROW)};
#undef ROW
enum { GENERATORS = sizeof generators / sizeof generators[0] };

/* The generator whose name is the first length characters; NULL when there is none. */
static const struct generator *find_generator(const char *name, size_t length)
{
    for (int g = 0; g < GENERATORS; g++)
        if (strlen(generators[g].name) == length && memcmp(generators[g].name, name, length) == 0)
            return &generators[g];
    return NULL;
}

int spmv_spec_known(const char *spec)
{
    const char *colon = spec == NULL ? NULL : strchr(spec, ':');
    return colon != NULL && find_generator(spec, (size_t)(colon - spec)) != NULL;
}

/* The sentence lists the known ones. */
static spmv_status fail_unknown(spmv_context *ctx, const char *spec, size_t length)
{
    char known[512] = "";
    size_t used = 0;
    for (int g = 0; g < GENERATORS && used < sizeof known; g++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%s)", g == 0 ? "" : ", ", generators[g].form,
                                 generators[g].about);
    return context_fail(ctx, SPMV_ERROR_SPEC,
                        "unknown matrix SPEC \"%.100s\": no generator is called \"%.*s\"; known: %s", spec,
                        (int)(length < 100 ? length : 100), spec, known);
}

spmv_status spmv_matrix_generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_matrix **matrix)
{
    *matrix = NULL;
    if (spec == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_generate: the SPEC is NULL");
    if (type == SPMV_TYPE_DEFAULT)
        type = SPMV_F64;
    if (type != SPMV_F64 && type != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_matrix_generate: values of type %s: f64 or f32 it must be",
                            spmv_type_name(type));
    const size_t length = strcspn(spec, ":");
    const struct generator *generator = find_generator(spec, length);
    if (generator == NULL)
        return fail_unknown(ctx, spec, length);
    return generator->make(ctx, generator, spec[length] == ':' ? spec + length + 1 : "", type, matrix);
}

static spmv_status fail_form(spmv_context *ctx, const struct generator *self, const char *arguments)
{
    return context_fail(ctx, SPMV_ERROR_SPEC,
                        "malformed matrix SPEC \"%s:%.100s\": it should be %s with integers from 1", self->name,
                        arguments, self->form);
}

/* Digits only: no sign, no blank. *end: behind the last digit. False when the number is beyond 64 bits. */
static bool read_digits(const char *text, int64_t *value, const char **end)
{
    bool fits = true;
    *value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        const int digit = *text - '0';
        fits = fits && *value <= (INT64_MAX - digit) / 10;
        if (fits)
            *value = *value * 10 + digit;
    }
    *end = text;
    return fits;
}

spmv_status generator_integers(spmv_context *ctx, const struct generator *self, const char *arguments, int count,
                               int64_t *values)
{
    const char *at = arguments;
    bool fits = true;
    for (int i = 0; i < count; i++) {
        const char *end;
        fits = read_digits(at, &values[i], &end) && fits;
        if (end == at || values[i] == 0 || *end != (i + 1 < count ? ',' : '\0'))
            return fail_form(ctx, self, arguments);
        at = end + 1;
    }
    return fits ? SPMV_OK
                : context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%.100s\": a number is beyond 64 bits",
                               self->name, arguments);
}
