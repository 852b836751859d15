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
    {BYTES("\x93NUMPY"), {"a NumPy array (.npy)", MATRIX_OR_VECTOR("numpy.load(\"FILE\")")}},
    {BYTES("MATLAB 5.0 MAT-file"),
     {"a MATLAB file (.mat)",
      "convert it in Python: M = scipy.io.loadmat(\"FILE\"), then scipy.io.mmwrite(\"A.mtx\", M[\"NAME\"]) with the "
      "variable's name; in files of the SuiteSparse collection the matrix is M[\"Problem\"][\"A\"][0, 0]"}},
    {BYTES("MATLAB 7.3 MAT-file"),
     {"a MATLAB file of version 7.3 (.mat)",
      "save it in MATLAB with save(\"FILE\", \"NAME\", \"-v7\"), then in Python: scipy.io.mmwrite(\"A.mtx\", "
      "scipy.io.loadmat(\"FILE\")[\"NAME\"])"}},
    {BYTES("\x89HDF\r\n\x1a\n"),
     {"an HDF5 file", "convert it in Python: scipy.io.mmwrite(\"A.mtx\", A) after reading A with h5py"}},
    {BYTES("\x00\x12\x7b\x50"),
     {"a matrix in PETSc's binary form",
      "convert it in Python, with PetscBinaryIO of PETSc: A = PetscBinaryIO().readBinaryFile(\"FILE\", "
      "mattype=\"scipy.sparse\")[0], then scipy.io.mmwrite(\"A.mtx\", A)"}},
    {BYTES("\x00\x12\x7b\x4e"),
     {"a vector in PETSc's binary form", "convert it in Python, with PetscBinaryIO of PETSc: numpy.savetxt(\"b.txt\", "
                                         "PetscBinaryIO().readBinaryFile(\"FILE\")[0])"}},
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

static const char zip_begins[] = "PK\x03\x04";
static const struct foreign numpy_archive = {
    "a NumPy archive (.npz)", "convert it in Python: scipy.io.mmwrite(\"A.mtx\", scipy.sparse.load_npz(\"FILE\")) if "
                              "scipy.sparse.save_npz wrote it; otherwise numpy.load(\"FILE\") has its arrays"};
static const struct foreign zip = {"a zip archive", UNPACK_FIRST};
static const struct foreign harwell_boeing = {
    "a Harwell-Boeing or Rutherford-Boeing file",
    "convert it in Python: scipy.io.mmwrite(\"A.mtx\", scipy.io.hb_read(\"FILE\")), or with RBread of SuiteSparse; "
    "many collections also have the matrix as .mtx"};
/* scipy.io.hb_read refuses them. */
static const struct foreign harwell_boeing_other = {
    "a Harwell-Boeing or Rutherford-Boeing file of a type that SciPy does not read",
    "convert it in MATLAB or Octave, with RBread and mwrite of SuiteSparse; many collections also have the matrix as "
    ".mtx"};
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

/* A zip archive of arrays of NumPy: the name of its first member ends in ".npy". */
static const struct foreign *kind_of_zip(const char *text, const char *end)
{
    enum { NAME_LENGTH_AT = 26, NAME_AT = 30 };
    if (end - text < NAME_AT)
        return &zip;
    const size_t length = (unsigned char)text[NAME_LENGTH_AT] | (size_t)(unsigned char)text[NAME_LENGTH_AT + 1] << 8;
    const bool numpy =
        length >= 4 && (size_t)(end - text) >= NAME_AT + length && memcmp(text + NAME_AT + length - 4, ".npy", 4) == 0;
    return numpy ? &numpy_archive : &zip;
}

/* Line 3 of a Harwell-Boeing file has the type, three letters, and at least three integers. */
static const struct foreign *kind_of_boeing(const char *text, const char *end)
{
    for (int k = 0; k < 2; k++) {
        text = line_end(text, end);
        if (text == end)
            return NULL;
        text++;
    }
    const char *const stop = line_end(text, end);
    if (stop - text < 3 || !is_one_of(lower(text[0]), "rcpiq") || !is_one_of(lower(text[1]), "suhzr") ||
        !is_one_of(lower(text[2]), "ae"))
        return NULL;
    int integers = 0;
    for (const char *p = text + 3; p < stop; p++) {
        if (!is_one_of(*p, "0123456789 \r"))
            return NULL;
        integers += *p != ' ' && *p != '\r' && p[-1] == ' ';
    }
    const bool read_by_scipy = lower(text[0]) == 'r' && lower(text[1]) == 'u' && lower(text[2]) == 'a';
    return integers < 3 ? NULL : read_by_scipy ? &harwell_boeing : &harwell_boeing_other;
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
    if (begins(text, end, zip_begins, sizeof zip_begins - 1))
        return kind_of_zip(text, end);
    const struct foreign *const boeing = kind_of_boeing(text, end);
    if (boeing != NULL)
        return boeing;
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
