/* SPECs: finding the generator by name, reading its arguments.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"

#include <stdio.h>

#include "random.h"

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

spmv_status generator_fail(spmv_context *ctx, const struct generator_request *request, const char *why)
{
    return context_fail(ctx, SPMV_ERROR_SPEC, "malformed matrix SPEC \"%s:%.100s\": it should be %s%s%s",
                        request->self->name, request->arguments, request->self->form, why[0] != '\0' ? " " : "", why);
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

spmv_status generator_integers(spmv_context *ctx, const struct generator_request *request, int count, int64_t *values)
{
    const char *at = request->arguments;
    bool fits = true;
    for (int i = 0; i < count; i++) {
        const char *end;
        fits = read_digits(at, &values[i], &end) && fits;
        if (end == at || values[i] == 0 || *end != (i + 1 < count ? ',' : '\0'))
            return generator_fail(ctx, request, "with integers from 1");
        at = end + 1;
    }
    return fits ? SPMV_OK
                : context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%.100s\": a number is beyond 64 bits",
                               request->self->name, request->arguments);
}

/* Reads one option, text up to length: false when it is none. *bad: it is one, but its value is not. */
static bool read_option(const char *text, size_t length, struct generator_request *request, bool *bad)
{
    static const char *const names[] = {
        [GENERATOR_OWN] = "own", [GENERATOR_RANDOM] = "random", [GENERATOR_CONSTANT] = "constant"};
    if (length > 5 && memcmp(text, "seed=", 5) == 0) {
        int64_t seed;
        const char *end;
        *bad = !read_digits(text + 5, &seed, &end) || end != text + length;
        request->seed = (uint64_t)seed;
        return true;
    }
    if (length < 7 || memcmp(text, "values=", 7) != 0)
        return false;
    *bad = true;
    for (int v = GENERATOR_OWN; v <= GENERATOR_CONSTANT; v++) {
        if (strlen(names[v]) == length - 7 && memcmp(text + 7, names[v], length - 7) == 0) {
            request->values = (enum generator_values)v;
            *bad = false;
        }
    }
    return true;
}

/* Takes the options out of the arguments, which are rewritten. The same option twice: the later one counts. */
static bool take_options(char *arguments, struct generator_request *request)
{
    char *to = arguments;
    bool more = true;
    for (const char *at = arguments; more;) {
        const size_t length = strcspn(at, ",");
        bool bad = false;
        more = at[length] == ',';
        if (!read_option(at, length, request, &bad)) {
            if (at != arguments && to != arguments)
                *to++ = ',';
            memmove(to, at, length);
            to += length;
        } else if (bad) {
            return false;
        }
        at += length + 1;
    }
    *to = '\0';
    return true;
}

void generator_fill_values(spmv_context *ctx, const struct generator_request *request, spmv_matrix *m)
{
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static)
    for (int64_t k = 0; k < m->nnz; k++) {
        const double value = request->values == GENERATOR_CONSTANT
                                 ? 1
                                 : random_value(random_bits(request->seed, GENERATOR_STREAM_VALUES, (uint64_t)k));
        if (m->type == SPMV_F32)
            ((float *)m->val)[k] = (float)value;
        else
            ((double *)m->val)[k] = value;
    }
}

spmv_status spmv_matrix_generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_matrix **matrix)
{
    char arguments[512];
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
    struct generator_request request = {
        .self = generator, .arguments = spec[length] == ':' ? spec + length + 1 : "", .type = type, .seed = 1};
    if (strlen(request.arguments) >= sizeof arguments)
        return generator_fail(ctx, &request, "in less than 512 characters");
    snprintf(arguments, sizeof arguments, "%s", request.arguments);
    if (!take_options(arguments, &request))
        return generator_fail(ctx, &request, "then seed=NUMBER or values=own, random or constant");
    request.arguments = arguments;
    return generator->make(ctx, &request, matrix);
}
