/* Kinds of files that users have, but that are not read: most are recognised by their first bytes,
 * the others by the form of their first lines. The sentences name tools that convert them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/foreign.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What scipy.io and NumPy need: a matrix goes to a .mtx file, a vector to a text. */
#define MATRIX_OR_VECTOR(load)                                                                                         \
    "convert it in Python: scipy.io.mmwrite(\"A.mtx\", " load ") for a matrix, numpy.savetxt(\"b.txt\", " load         \
    ") for a vector"
#define UNPACK_FIRST "only gzip, xz, zstd, bzip2 and tar are unpacked; unpack it first"

struct signature {
    const char *bytes;
    size_t length;
    struct foreign kind;
};

#define BYTES(literal) literal, sizeof(literal) - 1

/* In upper or lower case. The longest of several that fit comes first. */
static const struct signature signatures[] = {
    {BYTES("\x89HDF\r\n\x1a\n"),
     {"an HDF5 file", "convert it in Python: scipy.io.mmwrite(\"A.mtx\", A) after reading A with h5py"}},
    {BYTES("\x80\x03"), {"a Python pickle", MATRIX_OR_VECTOR("pickle.load(open(\"FILE\", \"rb\"))")}},
    {BYTES("\x80\x04\x95"), {"a Python pickle", MATRIX_OR_VECTOR("pickle.load(open(\"FILE\", \"rb\"))")}},
    {BYTES("\x80\x05\x95"), {"a Python pickle", MATRIX_OR_VECTOR("pickle.load(open(\"FILE\", \"rb\"))")}},
    {BYTES("7z\xbc\xaf\x27\x1c"), {"a 7z archive", UNPACK_FIRST}},
    {BYTES("Rar!\x1a\x07"), {"a rar archive", UNPACK_FIRST}},
    {BYTES("LZIP"), {"compressed by lzip", UNPACK_FIRST}},
    {BYTES("\x04\x22\x4d\x18"), {"compressed by lz4", UNPACK_FIRST}},
    {BYTES("\x1f\x9d"), {"compressed by compress (.Z)", UNPACK_FIRST}},
    {BYTES("\x5d\x00\x00"), {"compressed by lzma", UNPACK_FIRST}},
    {BYTES("version https://git-lfs"),
     {"a pointer of Git LFS, not the file itself", "fetch the file with: git lfs pull"}},
    {BYTES("<!DOCTYPE"), {"a web page", "a download may have failed; look at it, and download the file again"}},
    {BYTES("<html"), {"a web page", "a download may have failed; look at it, and download the file again"}},
    {BYTES("<?xml"), {"an XML file", "write the matrix or vector as Matrix Market"}},
    {BYTES("{"), {"a JSON file", MATRIX_OR_VECTOR("X") ", where X is read with json.load"}},
    {BYTES("["), {"a list in brackets", MATRIX_OR_VECTOR("numpy.array(X)") ", where X is read with json.load"}},
    {BYTES("\xff\xfe"), {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"}},
    {BYTES("\xfe\xff"), {"text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"}},
    {BYTES("%PDF-"), {"a PDF file", "write the matrix or vector as Matrix Market"}},
    {BYTES("\x7f"
           "ELF"),
     {"a program", "give the name of a file with a matrix or vector"}},
};

static const struct foreign matlab_4 = {"a MATLAB file of version 4",
                                        "save it in MATLAB with save(\"FILE\", \"NAME\", \"-v7\")"};
static const struct foreign table = {"a table with commas or semicolons (.csv)",
                                     MATRIX_OR_VECTOR("numpy.loadtxt(\"FILE\", delimiter=\",\")")};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool begins(const char *text, const char *end, const char *bytes, size_t length)
{
    if ((size_t)(end - text) < length)
        return false;
    for (size_t k = 0; k < length; k++)
        if (lower(text[k]) != lower(bytes[k]))
            return false;
    return true;
}

/* The end of the line at text. */
static const char *line_end(const char *text, const char *end)
{
    const char *const found = memchr(text, '\n', (size_t)(end - text));
    return found != NULL ? found : end;
}

/* MATLAB 4 has no magic number: a type of four digits MOPT in 32 bits, rows, columns, 0 or 1 for complex numbers, the
 * length of the name, the name with a zero byte. */
static bool is_matlab_4(const char *text, const char *end)
{
    enum { HEAD = 20, NAME = 64 };
    unsigned char b[HEAD];
    if (end - text < HEAD + 2)
        return false;
    memcpy(b, text, HEAD);
    for (int big = 0; big < 2; big++) {
        unsigned number[HEAD / 4];
        for (int i = 0; i < HEAD / 4; i++)
            number[i] = big ? (unsigned)b[4 * i] << 24 | (unsigned)b[4 * i + 1] << 16 | (unsigned)b[4 * i + 2] << 8 |
                                  b[4 * i + 3]
                            : (unsigned)b[4 * i + 3] << 24 | (unsigned)b[4 * i + 2] << 16 |
                                  (unsigned)b[4 * i + 1] << 8 | b[4 * i];
        if (number[0] / 1000 <= 1 && number[0] / 100 % 10 == 0 && number[0] / 10 % 10 <= 5 && number[0] % 10 <= 2 &&
            number[3] <= 1 && number[4] >= 2 && number[4] <= NAME && end - text - HEAD >= (long)number[4] &&
            text[HEAD + number[4] - 1] == '\0' && ((text[HEAD] | 32) >= 'a' && (text[HEAD] | 32) <= 'z'))
            return true;
    }
    return false;
}

/* The first line has at least two separators between words. */
static bool is_table(const char *text, const char *end)
{
    const char *const stop = line_end(text, end);
    int separators = 0;
    for (const char *p = text; p < stop; p++) {
        if ((unsigned char)*p < ' ' && *p != '\t' && *p != '\r')
            return false;
        separators += *p == ',' || *p == ';';
    }
    return separators >= 2 && text[0] != '%' && text[0] != '#';
}

const struct foreign *foreign_kind(const char *text, const char *end)
{
    if (is_matlab_4(text, end))
        return &matlab_4;
    /* as an editor may write it */
    if (begins(text, end, "\xef\xbb\xbf", 3))
        text += 3;
    while (text < end && is_one_of(*text, " \t\r\n"))
        text++;
    for (size_t k = 0; k < sizeof signatures / sizeof signatures[0]; k++)
        if (begins(text, end, signatures[k].bytes, signatures[k].length))
            return &signatures[k].kind;
    return is_table(text, end) ? &table : NULL;
}
