/* Matrix SPECs: finds the generator by name and reads its arguments.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/generate.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/name_list.h"
#include "core/reals.h"
#include "formats/generate/random.h"

#define ROW(name_, function_, axes_, form_, about_)                                                                    \
    {.name = #name_, .form = (form_), .about = (about_), .axes = (axes_), .make = generate_##function_},
static const struct generator generators[] = {GENERATOR_LIST(ROW)};
#undef ROW
enum { GENERATORS = sizeof generators / sizeof generators[0] };
NAMES_HOLD(GENERATORS);

/* The generator whose name is the first length characters; NULL if there is none. */
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

const char *spmv_spec_form(int index, const char **about)
{
    const bool there = index >= 0 && index < GENERATORS;
    if (about != NULL)
        *about = there ? generators[index].about : NULL;
    return there ? generators[index].form : NULL;
}

/* The message lists the known generators. */
static spmv_status fail_unknown(spmv_context *ctx, const char *spec, size_t length)
{
    struct names names = {.count = 0}, forms = {.count = 0};
    char list[768]; /* only the forms: a context's message has at most 1024 characters */
    for (int g = 0; g < GENERATORS; g++) {
        names_add(&names, generators[g].name);
        names_add(&forms, generators[g].form);
    }
    const char *const nearest = names_nearest(&names, spec, length);
    names_join(&forms, list, sizeof list);
    return context_fail(ctx, SPMV_ERROR_SPEC,
                        "unknown matrix SPEC \"%.64s\": no generator has the name \"%.*s\"; %s%s%s: %s", spec,
                        (int)(length < 64 ? length : 64), spec, nearest != NULL ? "did you mean " : "there are",
                        nearest != NULL ? nearest : "", nearest != NULL ? "? There are" : "", list);
}

spmv_status generator_fail(spmv_context *ctx, const struct generator_request *request, const char *why)
{
    return context_fail(ctx, SPMV_ERROR_SPEC, "malformed matrix SPEC \"%s:%.100s\": expected %s%s%s",
                        request->self->name, request->arguments, request->self->form, why[0] != '\0' ? " " : "", why);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number: digits times 10^power. */
struct decimal {
    int64_t digits;
    int count, power, fraction; /* digits read; the power; digits behind the point */
    bool fits;                  /* the digits are in 63 bits */
};

/* Reads digits, at most one point between digits, and an exponent, such as 12, 2.5, 1e8 and 2.5e-3: no sign before
 * the number, no blank. *end: after the last character of the number; text: there is none. */
static struct decimal read_number(const char *text, const char **end)
{
    struct decimal d = {.fits = true};
    const char *at = text;
    for (bool behind = false; is_digit(*at) || (!behind && at != text && *at == '.' && is_digit(at[1])); at++) {
        behind = behind || *at == '.';
        if (*at == '.')
            continue;
        const int digit = *at - '0';
        d.fits = d.fits && d.digits <= (INT64_MAX - digit) / 10;
        d.digits = d.fits ? d.digits * 10 + digit : d.digits;
        d.count++;
        d.fraction += behind;
    }
    const bool sign = at != text && (*at == 'e' || *at == 'E') && (at[1] == '+' || at[1] == '-');
    if (at != text && (*at == 'e' || *at == 'E') && is_digit(at[1 + sign])) {
        const bool negative = at[1] == '-';
        int power = 0;
        for (at += 1 + sign; is_digit(*at); at++)
            power = power < 1000 ? power * 10 + (*at - '0') : power;
        d.power = negative ? -power : power;
    }
    d.power -= d.fraction;
    *end = at;
    return d;
}

/* Reads an integer, which may have an exponent, such as 1e8. *end: after the number; text: it is none. False
 * if the number exceeds 64 bits. */
static bool read_integer(const char *text, int64_t *value, const char **end)
{
    struct decimal d = read_number(text, end);
    for (; d.fits && d.digits != 0 && d.power > 0; d.power--) {
        d.fits = d.digits <= INT64_MAX / 10;
        d.digits = d.fits ? d.digits * 10 : d.digits;
    }
    for (; d.digits % 10 == 0 && d.digits != 0 && d.power < 0; d.power++)
        d.digits /= 10;
    if (d.digits != 0 && d.power < 0)
        *end = text;
    *value = d.digits;
    return d.fits;
}

/* Reads a real number. Up to 15 digits and powers of ten up to 10^22 are exact, so the product or quotient is
 * the correctly rounded number. False if there are more. */
static bool read_decimal(const char *text, double *value, const char **end)
{
    const struct decimal d = read_number(text, end);
    double scale = 1;
    for (int p = abs(d.power); p > 0 && scale < 1e22; p--)
        scale *= 10;
    *value = d.power < 0 ? (double)d.digits / scale : (double)d.digits * scale;
    return d.count <= 15 && abs(d.power) <= 22;
}

spmv_status generator_arguments(spmv_context *ctx, const struct generator_request *request, const char *kinds,
                                const char *why, struct generator_argument *arguments, int *given)
{
    const char *at = request->arguments, *end = at;
    bool fits = true, optional = false;
    int count = 0;
    for (; *kinds != '\0'; kinds++) {
        if (*kinds == '?') {
            optional = true;
            continue;
        }
        if (optional && *end == '\0')
            break;
        struct generator_argument *a = &arguments[count++];
        bool good = true;
        if (*kinds == 'd') {
            a->n = 0;
            good = read_decimal(at, &a->real, &end);
        } else {
            fits = read_integer(at, &a->n, &end) && fits;
            a->real = (double)a->n;
            good = *kinds == 'z' || a->n > 0;
        }
        const bool last = kinds[1] == '\0', may_end = last || kinds[1] == '?' || optional;
        if (end == at || !good || !((*end == ',' && !last) || (*end == '\0' && may_end)))
            return generator_fail(ctx, request, why);
        at = end + 1;
    }
    if (given != NULL)
        *given = count;
    return fits ? SPMV_OK
                : context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%.100s\": a number is beyond 64 bits",
                               request->self->name, request->arguments);
}

spmv_status generator_integers(spmv_context *ctx, const struct generator_request *request, int count, int64_t *values)
{
    enum { MOST = 8 };
    struct generator_argument arguments[MOST];
    char kinds[MOST + 1] = "nnnnnnnn";
    kinds[count] = '\0';
    const spmv_status st = generator_arguments(ctx, request, kinds, "with integers from 1", arguments, NULL);
    for (int i = 0; i < count && st == SPMV_OK; i++)
        values[i] = arguments[i].n;
    return st;
}

spmv_status generator_columns(spmv_context *ctx, const struct generator_request *request, int64_t cols)
{
    return cols <= INT32_MAX
               ? SPMV_OK
               : context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%.100s\": %lld columns, at most %d are possible",
                              request->self->name, request->arguments, (long long)cols, INT32_MAX);
}

spmv_status generator_fits(spmv_context *ctx, const struct generator_request *request, int64_t rows, int64_t cols,
                           double entries, double beside)
{
    char why[JOB_WHY];
    const double bytes = entries * (double)(sizeof(int32_t) + spmv_type_size(request->type)) + 8 * (double)rows;
    if (!(bytes + beside < 0x1p62))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%.100s\": its size in bytes exceeds 64 bits",
                            request->self->name, request->arguments);
    /* complex values are made while the real ones are still in memory */
    const double wide = entries * (double)spmv_type_size(request->wide);
    const bool widens = request->wide != request->type;
    const spmv_matrix_size size = {.rows = rows,
                                   .cols = cols,
                                   .entries = (int64_t)entries,
                                   .type = request->wide,
                                   .matrix_bytes =
                                       matrix_arrays_bytes(rows, (int64_t)entries, spmv_type_size(request->wide)),
                                   .load_bytes = (int64_t)(bytes + (widens && wide > beside ? wide : beside))};
    return job_fits(&request->limit, size, why) ? SPMV_OK
                                                : context_fail(ctx, SPMV_ERROR_MEMORY, "matrix SPEC \"%s:%.100s\": %s",
                                                               request->self->name, request->arguments, why);
}

/* Reads one option, the text up to length. False if it is not an option. *bad: it is an option with
 * an invalid value. */
static bool read_option(const char *text, size_t length, struct generator_request *request, bool *bad)
{
    static const char *const names[] = {
        [GENERATOR_OWN] = "own", [GENERATOR_RANDOM] = "random", [GENERATOR_CONSTANT] = "constant"};
    if (length > 5 && memcmp(text, "seed=", 5) == 0) {
        int64_t seed;
        const char *end;
        *bad = !read_integer(text + 5, &seed, &end) || end != text + length;
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

/* Removes the options from the arguments, which are rewritten. If an option is repeated, the last
 * one counts. */
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

void generator_fill_values(spmv_context *ctx, const struct generator_request *request, int64_t first, spmv_matrix *m)
{
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static)
    for (int64_t k = 0; k < m->nnz; k++) {
        const double value =
            request->values == GENERATOR_CONSTANT
                ? 1
                : random_value(random_bits(request->seed, GENERATOR_STREAM_VALUES, (uint64_t)(first + k)));
        real_set(m->type, m->val, k, value);
    }
}

void spmv_generate_options_init(spmv_generate_options *options, size_t size)
{
    const spmv_generate_options defaults = {.size = sizeof defaults, .type = SPMV_TYPE_DEFAULT};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status spmv_matrix_generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_matrix **matrix)
{
    spmv_generate_options options;
    spmv_generate_options_init(&options, sizeof options);
    options.type = type;
    return spmv_matrix_generate_within(ctx, spec, &options, matrix);
}

static spmv_status check_options(spmv_context *ctx, const spmv_generate_options *given, spmv_generate_options *options)
{
    spmv_generate_options_init(options, sizeof *options);
    const spmv_status st = options_take(ctx, "generate", options, sizeof *options, given);
    if (st != SPMV_OK)
        return st;
    if (options->max_bytes == 0)
        options->max_bytes = host_memory_bytes();
    return OPTIONS_CHECK(ctx, "spmv_matrix_generate", {"max_bytes", (double)options->max_bytes, 0, INFINITY},
                         {"parts", options->parts, 0, INFINITY},
                         {"part", options->part, 0, options->parts > 0 ? options->parts - 1 : 0});
}

/* Replaces a matrix by its rows from first to last - 1. */
static spmv_status cut_rows(spmv_context *ctx, int64_t first, int64_t last, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    const spmv_matrix *whole = *matrix;
    spmv_matrix *part = NULL;
    const int64_t from = whole->row_ptr[first], nnz = whole->row_ptr[last] - from;
    const size_t size = value_size(whole->type, whole->pattern);
    TRY(matrix_allocate(ctx, last - first, whole->cols, nnz, whole->type, whole->pattern, &part));
    for (int64_t i = first; i <= last; i++)
        part->row_ptr[i - first] = whole->row_ptr[i] - from;
    if (nnz > 0)
        memcpy(part->col, whole->col + from, (size_t)nnz * sizeof *part->col);
    if (nnz > 0 && size > 0)
        memcpy(part->val, value_at(whole->val, from, size), (size_t)nnz * size);
    spmv_matrix_destroy(*matrix);
    *matrix = part;
done:
    return st;
}

spmv_status spmv_matrix_generate_within(spmv_context *ctx, const char *spec, const spmv_generate_options *given,
                                        spmv_matrix **matrix)
{
    char arguments[512];
    bool is_part = false;
    spmv_generate_options options;
    spmv_status st = context_need(ctx, "spmv_matrix_generate", "matrix", matrix);
    if (st != SPMV_OK)
        return st;
    *matrix = NULL;
    st = check_options(ctx, given, &options);
    if (st != SPMV_OK)
        return st;
    spmv_type type = options.type;
    if (spec == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_generate: the SPEC is NULL");
    if (type == SPMV_TYPE_DEFAULT)
        type = SPMV_F64;
    const spmv_type part = type_part(type); /* values are generated as real numbers */
    if (!type_is_floating(type))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_matrix_generate: values of type %s; supported: f64, f32, c128 and c64",
                            spmv_type_name(type));
    const size_t length = strcspn(spec, ":");
    const struct generator *generator = find_generator(spec, length);
    if (generator == NULL)
        return fail_unknown(ctx, spec, length);
    struct generator_request request = {.self = generator,
                                        .arguments = spec[length] == ':' ? spec + length + 1 : "",
                                        .type = part,
                                        .wide = type,
                                        .seed = 1,
                                        .limit = {options.max_bytes, options.job_bytes, options.user},
                                        .part = options.part,
                                        .parts = options.parts,
                                        .is_part = &is_part};
    if (strlen(request.arguments) >= sizeof arguments)
        return generator_fail(ctx, &request, "in less than 512 characters");
    snprintf(arguments, sizeof arguments, "%s", request.arguments);
    if (!take_options(arguments, &request))
        return generator_fail(ctx, &request, "then seed=NUMBER or values=own, random or constant");
    request.arguments = arguments;
    st = generator->make(ctx, &request, matrix);
    if (st == SPMV_OK && options.parts > 0 && !is_part)
        st = cut_rows(ctx, generator_part_begin((*matrix)->rows, options.part, options.parts),
                      generator_part_begin((*matrix)->rows, options.part + 1, options.parts), matrix);
    if (st == SPMV_OK && part != type)
        st = matrix_widen(ctx, *matrix, type);
    if (st != SPMV_OK) {
        spmv_matrix_destroy(*matrix);
        *matrix = NULL;
    }
    return st;
}
