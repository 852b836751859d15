/* MATLAB files of version 7.3: HDF5 files, read by the HDF5 library, which is opened at run time.
 *
 * No header of HDF5 is needed: the declarations below are those of its stable functions, which have not changed
 * since version 1.10, the first with 64-bit identifiers. An older library is refused. A sparse matrix is a group with
 * the attribute MATLAB_sparse, its rows, and the arrays data, ir and jc; without entries there is jc alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "formats/io/exchange/mat.h"

typedef int64_t id; /* hid_t, below 0: an error */

/* H5G_info_t */
struct links_info {
    int storage;
    uint64_t links;
    int64_t order;
    bool mounted;
};

/* X(result, name, arguments) */
#define FUNCTIONS(X)                                                                                                   \
    X(int, H5open, (void))                                                                                             \
    X(int, H5get_libversion, (unsigned *, unsigned *, unsigned *))                                                     \
    X(int, H5Eset_auto2, (id, void *, void *))                                                                         \
    X(id, H5Pcreate, (id))                                                                                             \
    X(int, H5Pclose, (id))                                                                                             \
    X(int, H5Pset_fapl_core, (id, size_t, bool))                                                                       \
    X(int, H5Pset_file_image, (id, void *, size_t))                                                                    \
    X(id, H5Fopen, (const char *, unsigned, id))                                                                       \
    X(int, H5Fclose, (id))                                                                                             \
    X(id, H5Gopen2, (id, const char *, id))                                                                            \
    X(int, H5Gclose, (id))                                                                                             \
    X(int, H5Gget_info, (id, struct links_info *))                                                                     \
    X(long, H5Lget_name_by_idx, (id, const char *, int, int, uint64_t, char *, size_t, id))                            \
    X(int, H5Lexists, (id, const char *, id))                                                                          \
    X(id, H5Dopen2, (id, const char *, id))                                                                            \
    X(int, H5Dclose, (id))                                                                                             \
    X(id, H5Dget_space, (id))                                                                                          \
    X(id, H5Dget_type, (id))                                                                                           \
    X(int, H5Dread, (id, id, id, id, id, void *))                                                                      \
    X(int, H5Sget_simple_extent_ndims, (id))                                                                           \
    X(int, H5Sget_simple_extent_dims, (id, uint64_t *, uint64_t *))                                                    \
    X(int, H5Sclose, (id))                                                                                             \
    X(int, H5Tget_class, (id))                                                                                         \
    X(size_t, H5Tget_size, (id))                                                                                       \
    X(id, H5Tcreate, (int, size_t))                                                                                    \
    X(int, H5Tinsert, (id, const char *, size_t, id))                                                                  \
    X(int, H5Tclose, (id))                                                                                             \
    X(int, H5Aexists, (id, const char *))                                                                              \
    X(id, H5Aopen, (id, const char *, id))                                                                             \
    X(int, H5Aread, (id, id, void *))                                                                                  \
    X(int, H5Aclose, (id))

/* Constants of HDF5. */
enum { BY_NAME = 0, ASCENDING = 0, READ_ONLY = 0, DEFAULT = 0, ALL = 0 };
enum { TYPE_INTEGER = 0, TYPE_REAL = 1, TYPE_COMPOUND = 6, MOST_DEEP = 3, MANY = 4096 };

static struct {
    bool open;
    char why[256];
#define POINTER(result, name, arguments) result(*name) arguments;
    FUNCTIONS(POINTER)
#undef POINTER
    const id *file_access, *f64, *i64; /* H5P_FILE_ACCESS, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT64 */
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the library may be built without locks */

static bool find(void *library, const char *name, void *pointer)
{
    void *const symbol = dlsym(library, name);
    /* C has no cast from an object pointer to a function pointer */
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void open_library(void)
{
    static const char *const names[] = {
        "libhdf5_serial.so.310", "libhdf5.so.310",    "libhdf5.so.200", "libhdf5_serial.so.103",
        "libhdf5.so.103",        "libhdf5_serial.so", "libhdf5.so",     "libhdf5_openmpi.so.103"};
    void *library = NULL;
    unsigned major = 0, minor = 0, patch = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool found = library != NULL;
#define FIND(result, name, arguments) found = found && find(library, #name, &lib.name);
    FUNCTIONS(FIND)
#undef FIND
    found = found && lib.H5open() >= 0 && lib.H5get_libversion(&major, &minor, &patch) >= 0 &&
            (major > 1 || (major == 1 && minor >= 10));
    lib.open = found && find(library, "H5P_CLS_FILE_ACCESS_ID_g", &lib.file_access) &&
               find(library, "H5T_NATIVE_DOUBLE_g", &lib.f64) && find(library, "H5T_NATIVE_INT64_g", &lib.i64);
    snprintf(lib.why, sizeof lib.why, "%s",
             library == NULL ? "it was not found" : "it is older than version 1.10, or lacks a function");
}

/* ---------------------------------------------------------------- variables */

/* Shape and kind of an array. */
struct array {
    id dataset;
    int64_t n;
    int dimensions;
    uint64_t size[2];
    int class;
};

static bool open_array(id where, const char *name, struct array *a)
{
    *a = (struct array){.dataset = lib.H5Lexists(where, name, DEFAULT) > 0 ? lib.H5Dopen2(where, name, DEFAULT) : -1};
    if (a->dataset < 0)
        return false;
    const id space = lib.H5Dget_space(a->dataset), type = lib.H5Dget_type(a->dataset);
    a->dimensions = lib.H5Sget_simple_extent_ndims(space);
    if (a->dimensions == 1 || a->dimensions == 2)
        lib.H5Sget_simple_extent_dims(space, a->size, NULL);
    a->class = lib.H5Tget_class(type);
    lib.H5Sclose(space);
    lib.H5Tclose(type);
    a->n = 0;
    const uint64_t cols = a->dimensions == 2 ? a->size[1] : 1;
    const bool fits =
        a->size[0] <= INT64_MAX && cols <= INT64_MAX && multiply_fits((int64_t)a->size[0], (int64_t)cols, &a->n);
    if (fits && (a->dimensions == 1 || a->dimensions == 2) &&
        (a->class == TYPE_INTEGER || a->class == TYPE_REAL || a->class == TYPE_COMPOUND))
        return true;
    lib.H5Dclose(a->dataset);
    return false;
}

/* The attribute that makes a group a sparse matrix: its rows; -1 without it. */
static int64_t sparse_rows(id group)
{
    int64_t rows = -1;
    if (lib.H5Aexists(group, "MATLAB_sparse") <= 0)
        return -1;
    const id attribute = lib.H5Aopen(group, "MATLAB_sparse", DEFAULT);
    if (attribute < 0 || lib.H5Aread(attribute, *lib.i64, &rows) < 0)
        rows = -1;
    lib.H5Aclose(attribute);
    return rows;
}

static spmv_status list_links(struct exchange *x, id group, const char *prefix, int depth, struct mat_list *list);

/* Lists the link of this name: a group or an array. */
static spmv_status list_link(struct exchange *x, id group, const char *prefix, const char *link, int depth,
                             struct mat_list *list)
{
    struct mat_variable v = {.sparse = false};
    struct array a;
    spmv_status st = SPMV_OK;
    mat_name(v.name, prefix, link, (int64_t)strlen(link));
    if (open_array(group, link, &a)) {
        v.rows = a.dimensions == 2 ? (int64_t)a.size[1] : 1;
        v.cols = (int64_t)a.size[0];
        lib.H5Dclose(a.dataset);
        return mat_list_add(x, list, &v);
    }
    const id inner = lib.H5Gopen2(group, link, DEFAULT);
    if (inner < 0)
        return SPMV_OK;
    v.rows = sparse_rows(inner);
    v.sparse = v.rows >= 0;
    if (v.sparse)
        st = mat_list_add(x, list, &v);
    else if (depth < MOST_DEEP)
        st = list_links(x, inner, v.name, depth + 1, list);
    lib.H5Gclose(inner);
    return st;
}

static spmv_status list_links(struct exchange *x, id group, const char *prefix, int depth, struct mat_list *list)
{
    struct links_info info = {.links = 0};
    char link[MAT_NAME / 2];
    spmv_status st = SPMV_OK;
    if (lib.H5Gget_info(group, &info) < 0)
        return SPMV_OK;
    for (uint64_t i = 0; i < info.links && list->count < MANY && st == SPMV_OK; i++) {
        const long n = lib.H5Lget_name_by_idx(group, ".", BY_NAME, ASCENDING, i, link, sizeof link, DEFAULT);
        if (n > 0 && n < (long)sizeof link && link[0] != '#') /* #refs#: the contents of cells */
            st = list_link(x, group, prefix, link, depth, list);
    }
    return st;
}

/* ---------------------------------------------------------------- numbers */

/* Reads an array as f64, i64 or pairs of f64. */
static spmv_status read_numbers(struct exchange *x, const char *what, const struct array *a, bool integers,
                                void **memory, struct numbers *numbers)
{
    int64_t bytes = 0;
    const bool complex = a->class == TYPE_COMPOUND;
    const int width = complex ? 16 : 8;
    *numbers = (struct numbers){NULL, a->n,
                                integers  ? NUMBERS_SIGNED
                                : complex ? NUMBERS_COMPLEX
                                          : NUMBERS_REAL,
                                width, host_is_big()};
    if (!multiply_fits(a->n, width, &bytes) || bytes > x->max_bytes - x->size)
        return exchange_refuse(x, SPMV_ERROR_MEMORY, "%s: %lld numbers need more than the allowed %lld bytes of memory",
                               what, (long long)a->n, (long long)x->max_bytes);
    spmv_status st = host_alloc(x->ctx, max_i64(1, bytes), "values", memory);
    if (st != SPMV_OK)
        return st;
    numbers->at = *memory;
    id type = integers ? *lib.i64 : *lib.f64;
    if (complex) {
        type = lib.H5Tcreate(TYPE_COMPOUND, 16);
        lib.H5Tinsert(type, "real", 0, *lib.f64);
        lib.H5Tinsert(type, "imag", 8, *lib.f64);
    }
    if (a->n > 0 && lib.H5Dread(a->dataset, type, ALL, ALL, DEFAULT, *memory) < 0)
        st = exchange_fail(x, NULL, "%s: the HDF5 library cannot read it", what);
    if (complex)
        lib.H5Tclose(type);
    return st;
}

/* Opens and reads an array of a group. required false: a missing one has no numbers. */
static spmv_status read_array(struct exchange *x, id group, const char *name, bool required, bool integers,
                              void **memory, struct numbers *numbers)
{
    struct array a;
    *numbers = (struct numbers){NULL, 0, integers ? NUMBERS_SIGNED : NUMBERS_REAL, 8, host_is_big()};
    if (!open_array(group, name, &a))
        return required ? exchange_fail(x, NULL, "a sparse variable without the array %s", name) : SPMV_OK;
    const spmv_status st = read_numbers(x, name, &a, integers, memory, numbers);
    lib.H5Dclose(a.dataset);
    return st;
}

static spmv_status read_sparse(struct exchange *x, id group, int64_t rows)
{
    void *memory[3] = {NULL};
    struct numbers jc, ir, data;
    spmv_status st = SPMV_OK;
    TRY(read_array(x, group, "jc", true, true, &memory[0], &jc));
    TRY(read_array(x, group, "ir", false, true, &memory[1], &ir));
    TRY(read_array(x, group, "data", false, false, &memory[2], &data));
    if (jc.n < 1 || ir.n != data.n)
        TRY(exchange_fail(x, NULL, "a sparse variable with %lld rows of entries and %lld values", (long long)ir.n,
                          (long long)data.n));
    TRY(exchange_shape(x, NULL, rows, jc.n - 1));
    TRY(exchange_compressed(x, false, &jc, "jc", &ir, "ir"));
    TRY(exchange_values(x, &data, NULL));
done:
    host_free_all(memory[0], memory[1], memory[2]);
    return st;
}

/* Stored with the columns as rows. */
static spmv_status read_dense(struct exchange *x, id group, const char *name, const struct mat_variable *v)
{
    void *memory = NULL;
    struct numbers numbers;
    spmv_status st = read_array(x, group, name, true, false, &memory, &numbers);
    if (st == SPMV_OK)
        st = exchange_shape(x, NULL, v->rows, v->cols);
    x->dense = true;
    if (st == SPMV_OK)
        st = exchange_values(x, &numbers, NULL);
    host_free(memory);
    return st;
}

static spmv_status read_file(struct exchange *x, id file, struct mat_list *list)
{
    const struct mat_variable *v = NULL;
    char path[MAT_NAME];
    spmv_status st = SPMV_OK;
    const id root = lib.H5Gopen2(file, "/", DEFAULT);
    if (root < 0)
        return exchange_fail(x, NULL, "the HDF5 library cannot read it");
    TRY(list_links(x, root, "", 0, list));
    TRY(mat_choose(x, list, &v));
    memcpy(path, v->name, sizeof path);
    for (char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '/';
    if (v->sparse) {
        const id group = lib.H5Gopen2(root, path, DEFAULT);
        st = group >= 0 ? read_sparse(x, group, v->rows) : exchange_fail(x, NULL, "the HDF5 library cannot read it");
        lib.H5Gclose(group);
    } else {
        st = read_dense(x, root, path, v);
    }
done:
    lib.H5Gclose(root);
    return st;
}

bool mat_hdf5_begins(const unsigned char *head, int64_t bytes)
{
    static const char text[] = "MATLAB 7.3 MAT-file";
    return bytes >= (int64_t)sizeof text - 1 && memcmp(head, text, sizeof text - 1) == 0;
}

spmv_status mat_hdf5_read(struct exchange *x)
{
    struct mat_list list = {.count = 0};
    spmv_status st = SPMV_OK;
    pthread_once(&once, open_library);
    if (!lib.open)
        return exchange_refuse(
            x, SPMV_ERROR_UNSUPPORTED,
            "a MATLAB file of version 7.3 needs the HDF5 library (package libhdf5-103 or newer): %s; or "
            "save it in MATLAB with save(\"FILE\", \"NAME\", \"-v7\")",
            lib.why);
    pthread_mutex_lock(&lock);
    lib.H5Eset_auto2(DEFAULT, NULL, NULL); /* it would print its errors */
    const id access = lib.H5Pcreate(*lib.file_access);
    lib.H5Pset_fapl_core(access, 1 << 20, false);
    lib.H5Pset_file_image(access, (void *)(uintptr_t)x->bytes, (size_t)x->size);
    const id file = lib.H5Fopen("spmv", READ_ONLY, access);
    st = file >= 0 ? read_file(x, file, &list) : exchange_fail(x, NULL, "damaged: the HDF5 library cannot open it");
    if (file >= 0)
        lib.H5Fclose(file);
    lib.H5Pclose(access);
    pthread_mutex_unlock(&lock);
    host_free(list.variable);
    return st;
}
