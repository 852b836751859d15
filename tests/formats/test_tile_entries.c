/* Entries of a tile, parsed with each instruction set: the same entries, lines, errors and
 * warnings, with values rounded as by strtod and strtof.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "formats/io/text/tile_entries.h"
#include "tests/support/support.h"

/* Size of a text; entries of a tile. */
enum { BYTES = 1 << 16, ENTRIES = 4096 };

/* The result of parsing a text in one way. */
struct outcome {
    struct findings found;
    struct ordered_tile tile;
    int64_t row[ENTRIES];
    char val[ENTRIES * sizeof(double)];
    int32_t col[ENTRIES];
    uint32_t first[ENTRIES];
};

static char memory[BYTES + 2 * TEXT_PADDING];
static char *const text = memory + TEXT_PADDING;
static struct outcome plain, wide;

static void run(tile_entries_way *way, const struct mtx_header *header, spmv_type type, int64_t bytes,
                struct outcome *o)
{
    const struct coo_shape shape = {.row_shift = 0};
    const struct tile_kind kind = {header, type, &shape};
    const struct text_tile tile = {.begin = text, .end = text + bytes};
    o->tile = (struct ordered_tile){.capacity = ENTRIES};
    o->tile.row = o->row;
    o->tile.val = o->val;
    o->tile.col = o->col;
    o->tile.first = o->first;
    o->tile.ordered = true;
    way(&kind, &tile, (struct tile_target){.ordered = &o->tile}, &o->found);
}

static void same_remarks(const struct remarks *a, const struct remarks *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->line, b->line);
    assert_int_equal(a->column, b->column);
}

/* Parses the text in both ways. The memory after it has the remains of the tile before. */
static void both(const struct mtx_header *header, spmv_type type, int64_t bytes)
{
    const size_t size = header->field == SPMV_FIELD_PATTERN ? 0 : spmv_type_size(type);
    run(tile_entries_plain, header, type, bytes, &plain);
    run(tile_entries_avx2(), header, type, bytes, &wide);
    const struct findings *const a = &plain.found, *const b = &wide.found;
    if (a->status != b->status || a->error_line != b->error_line || a->error_column != b->error_column ||
        strcmp(a->sentence, b->sentence) != 0 || a->lines != b->lines || a->entries != b->entries ||
        a->entry_is_bad != b->entry_is_bad)
        fail_msg("'%.*s': %lld entries, %lld:%lld '%s', and %lld entries, %lld:%lld '%s'", (int)bytes, text,
                 (long long)a->entries, (long long)a->error_line, (long long)a->error_column, a->sentence,
                 (long long)b->entries, (long long)b->error_line, (long long)b->error_column, b->sentence);
    same_remarks(&a->rounded, &b->rounded);
    same_remarks(&a->not_finite, &b->not_finite);
    assert_int_equal(plain.tile.n, wide.tile.n);
    assert_int_equal(plain.tile.sequences, wide.tile.sequences);
    assert_int_equal(plain.tile.ordered, wide.tile.ordered);
    assert_memory_equal(plain.row, wide.row, (size_t)plain.tile.sequences * sizeof plain.row[0]);
    assert_memory_equal(plain.first, wide.first, (size_t)plain.tile.sequences * sizeof plain.first[0]);
    assert_memory_equal(plain.col, wide.col, (size_t)plain.tile.n * sizeof plain.col[0]);
    for (int64_t k = 0; k < plain.tile.n; k++)
        if (memcmp(plain.val + (size_t)k * size, wide.val + (size_t)k * size, size) != 0)
            fail_msg("'%.*s': entry %lld has another value", (int)min_i64(bytes, 200), text, (long long)k);
}

static const spmv_type types[] = {SPMV_F64, SPMV_F32};

static struct mtx_header header_of(spmv_field field)
{
    return (struct mtx_header){.field = field,
                               .symmetry = SPMV_SYMMETRY_GENERAL,
                               .rows = 3000000,
                               .cols = 99999999,
                               .entries = ENTRIES,
                               .size_line = 2};
}

/* Compares with the value by strtod of the number, which follows the row and column on the line. */
static void as_strtod(spmv_type type, const char *number, int64_t k)
{
    if (type == SPMV_F64) {
        const double want = strtod(number, NULL);
        if (memcmp(&want, wide.val + (size_t)k * sizeof want, sizeof want) != 0)
            fail_msg("%s is not %.17g", number, want);
    } else {
        const float want = strtof(number, NULL);
        if (memcmp(&want, wide.val + (size_t)k * sizeof want, sizeof want) != 0)
            fail_msg("%s is not %.9g", number, (double)want);
    }
}

/* ---------------------------------------------------------------- numbers */

/* A number of the given kind, in a form that programs write. */
static void write_number(char *to, size_t room, int kind, uint64_t *seed)
{
    static const char *const formats[] = {"%.17g", "%.16g", "%.15g", "%g",   "%.16e",
                                          "%.6e",  "%.3f",  "%.0f",  "%.9g", "%.12f"};
    enum { FORMATS = sizeof formats / sizeof formats[0] };
    const int64_t random = (int64_t)support_random(seed);
    const double unit = 1e-18 * (double)(random % 1000000000000000000);
    const int power = (int)(support_random(seed) % 41) - 20;
    double x = unit;
    if (kind / FORMATS % 4 == 1)
        x = unit * strtod((const char *[]){"1e-5", "1e-3", "1e-1", "1e1", "1e3", "1e7"}[(power + 20) % 6], NULL);
    if (kind / FORMATS % 4 == 2)
        x = (double)(random % 2000) / 16; /* few digits, including ties of f32 */
    if (kind / FORMATS % 4 == 3)
        x = (random < 0 ? -1.0 : 1.0) + (double)(random % 64) * 0x1p-24;
    snprintf(to, room, formats[kind % FORMATS], x);
}

static void numbers_as_strtod(void **state)
{
    (void)state;
    enum { LINES = 1000, NUMBER = 48, ROUNDS = 40 };
    static char number[LINES][NUMBER];
    uint64_t seed = 20;
    if (tile_entries_avx2() == NULL)
        skip();
    const struct mtx_header header = header_of(SPMV_FIELD_REAL);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            int64_t bytes = 0;
            for (int k = 0; k < LINES; k++) {
                write_number(number[k], NUMBER, round, &seed);
                bytes += snprintf(text + bytes, (size_t)(BYTES - bytes), "%d %lld %s%s\n", 1 + k * 2999,
                                  (long long)(1 + support_random(&seed) % (k % 2 == 0 ? 99999999 : 9)), number[k],
                                  round % 5 == 4 ? "\r" : "");
            }
            both(&header, types[t], bytes);
            assert_int_equal(wide.tile.n, LINES);
            for (int k = 0; k < LINES; k++) {
                assert_int_equal(wide.row[k], k * 2999);
                as_strtod(types[t], number[k], k);
            }
        }
}

/* Limits of the ranges, and of what one vector step handles. */
static void numbers_at_the_seams(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "0.0",
                                          "-0.000",
                                          "0e5",
                                          "1",
                                          "-1",
                                          "+1",
                                          ".5",
                                          "-.5",
                                          "5.",
                                          "-5.",
                                          "1e0",
                                          "1E3",
                                          "1e+3",
                                          "1e-3",
                                          "1d3",
                                          "1.5D-02",
                                          "0.577-104",
                                          "-1.5+003",
                                          "1.5-04",
                                          "12345678",
                                          "123456789",
                                          "-12345678.5",
                                          "123456789.5",
                                          "9007199254740993",
                                          "9007199254740993.0",
                                          "1.00000000000000011102230246251565",
                                          "0.1000000000000000055511151231257827",
                                          "1.0000000596046448",
                                          "1.000000059604645",
                                          "1.00000005960464477539",
                                          "0.5000000298023224",
                                          "16777217.0",
                                          "33554431.5",
                                          "0.99999999999999994",
                                          "0.999999999999999944",
                                          "0.9999999999999999",
                                          "9.9999999999999999",
                                          "999.99999999999999999",
                                          "1000.0000000000000000001",
                                          "0.00000000000000000000001",
                                          "0.000000000000000000000012",
                                          "123456789012345678.1",
                                          "1234567890123456789.1",
                                          "18446744073709551615.0",
                                          "9999999999999999999.0",
                                          "1.7976931348623157e308",
                                          "-1.7976931348623157e+308",
                                          "2.2250738585072014e-308",
                                          "2.2250738585072011e-308",
                                          "4.9e-324",
                                          "1e-400",
                                          "3.4028234663852886e38",
                                          "1.1754943508222875e-38",
                                          "1.4e-45",
                                          "1e-0005",
                                          "1e00005",
                                          "1.5e-7",
                                          "0e999",
                                          "0.0e-999",
                                          "8.5",
                                          "8.25",
                                          "8.125",
                                          "4503599627370497.5",
                                          "4503599627370496.5",
                                          "2.5e-1",
                                          "7.0064923216240854e-46"};
    if (tile_entries_avx2() == NULL)
        skip();
    const struct mtx_header header = header_of(SPMV_FIELD_REAL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            memset(memory, (int)('0' + i % 10), sizeof memory);
            both(&header, types[t], snprintf(text, BYTES, "12 %d %s\n", 1 + (int)i, numbers[i]));
            /* strtod does not read Fortran's exponents */
            if (strpbrk(numbers[i], "dD") != NULL || strstr(numbers[i], "7-104") != NULL ||
                strstr(numbers[i], "5+003") != NULL || wide.found.status != SPMV_OK)
                continue;
            assert_int_equal(wide.tile.n, 1);
            as_strtod(types[t], numbers[i], 0);
        }
}

/* ---------------------------------------------------------------- lines */

/* Other forms of lines, valid and invalid, at every position relative to the end of a tile. */
static void other_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {"1 1 1.5",
                                        "  1 1 1.5",
                                        "1  1 1.5",
                                        "1 1  1.5",
                                        "1\t1\t1.5",
                                        "1 1\t1.5",
                                        "1 1 1.5 ",
                                        "1 1 1.5\r",
                                        "1 1 1.5 \r",
                                        "1 1 1.5\r\r",
                                        "01 1 1.5",
                                        "+1 1 1.5",
                                        "123456789 1 1.5",
                                        "000000001 1 1.5",
                                        "1 000000001 1.5",
                                        "0 1 1.5",
                                        "1 0 1.5",
                                        "3000000 99999999 1.5",
                                        "3000001 1 1.5",
                                        "1 100000000 1.5",
                                        "-1 1 1.5",
                                        "1 -1 1.5",
                                        "1 1",
                                        "1 1 ",
                                        "1",
                                        "",
                                        " ",
                                        "%x",
                                        "% 1 1 1",
                                        "1 1 x",
                                        "1 1 -",
                                        "1 1 --1",
                                        "1 1 +-1",
                                        "1 1 -+1",
                                        "1 1 .",
                                        "1 1 -.",
                                        "1 1 e5",
                                        "1 1 1e",
                                        "1 1 1e+",
                                        "1 1 1.5e-",
                                        "1 1 1.5e--3",
                                        "1 1 1.5e3.0",
                                        "1 1 1..5",
                                        "1 1 1.5.5",
                                        "1 1 1,5",
                                        "1 1 1.5x",
                                        "1 1 1.5 2",
                                        "1 1 0x10",
                                        "1 1 inf",
                                        "1 1 -nan",
                                        "1 1 1e999",
                                        "1 1 -1e99999",
                                        "1 1 1e-99999",
                                        "1 1 1.5e10000",
                                        "1.0 1 1.5",
                                        "1 1.0 1.5",
                                        "1 1 1234567890123456789012345678901234567890.12345678901234567890",
                                        "12345678 12345678 -0.12345678901234567890",
                                        "1 1 0.000000000000000000000000000000000000000000000000000000000000000001",
                                        "1 1 1.5\0"};
    if (tile_entries_avx2() == NULL)
        skip();
    for (spmv_field field = SPMV_FIELD_REAL; field <= SPMV_FIELD_PATTERN; field++) {
        const struct mtx_header header = header_of(field);
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
                for (int before = 0; before < 3; before++) {
                    memset(memory, before == 0 ? '\n' : before == 1 ? '7' : '.', sizeof memory);
                    const int64_t head = snprintf(text, BYTES, "%s", before == 1 ? "1 1 0.25\n" : "");
                    const int64_t length = (int64_t)strlen(lines[i]);
                    memcpy(text + head, lines[i], (size_t)length);
                    text[head + length] = '\n';
                    both(&header, types[t], head + length + 1);
                }
    }
}

/* Ordinary lines with a byte or two replaced, removed or doubled. */
static void damaged_lines(void **state)
{
    (void)state;
    static const char bytes[] = "0123456789 \t\r\n.-+eEdD%xn\0\x80\xff:/";
    enum { TRIES = 100000 };
    uint64_t seed = 7;
    if (tile_entries_avx2() == NULL)
        skip();
    for (int i = 0; i < TRIES; i++) {
        const struct mtx_header header = header_of(i % 8 == 0 ? SPMV_FIELD_INTEGER : SPMV_FIELD_REAL);
        char line[128];
        write_number(line, sizeof line, i % 40, &seed);
        int64_t n = snprintf(text, BYTES, "%d %d %s\n1 2 3.5\n", 1 + (int)(support_random(&seed) % 3000000),
                             1 + (int)(support_random(&seed) % 99999999), line);
        for (uint64_t changes = support_random(&seed) % 3; changes > 0; changes--) {
            const int64_t at = (int64_t)(support_random(&seed) % (uint64_t)n);
            const char byte = bytes[support_random(&seed) % (sizeof bytes - 1)];
            if (support_random(&seed) % 4 == 0) {
                memmove(text + at + 1, text + at, (size_t)(n - at));
                n++;
            } else if (support_random(&seed) % 4 == 0 && n > 2) {
                memmove(text + at, text + at + 1, (size_t)(n - at - 1));
                n--;
            }
            text[min_i64(at, n - 1)] = byte;
        }
        text[n - 1] = '\n';
        both(&header, types[i % 2], n);
    }
}

SUPPORT_MAIN(cmocka_unit_test(numbers_as_strtod), cmocka_unit_test(numbers_at_the_seams), cmocka_unit_test(other_lines),
             cmocka_unit_test(damaged_lines))
