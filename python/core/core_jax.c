/* The functions that XLA calls for the operations of spmv.jax: one for each platform.
 *
 * They pass addresses, shapes and the stream to a function of Python, which runs the operation. So this
 * file needs no header of XLA: it declares the parts of its C interface for foreign functions that it
 * reads (xla/ffi/api/c_api.h, major version 0). A minor version adds members at the end of structs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

enum { EXTENSION_METADATA = 1, STAGE_EXECUTE = 3, ATTRIBUTE_ARRAY = 1, TYPE_S64 = 5, ERROR_INTERNAL = 13, MAJOR = 0 };

struct extension {
    size_t size;
    int type;
    struct extension *next;
};

struct version {
    size_t size;
    struct extension *extensions;
    int major, minor;
};

/* A question for the version that a function follows. */
struct metadata_extension {
    struct extension base;
    struct metadata {
        size_t size;
        struct version version;
        uint32_t traits;
    } * metadata;
};

struct error_arguments {
    size_t size;
    struct extension *extensions;
    const char *message;
    int code;
};

struct stream_arguments {
    size_t size;
    struct extension *extensions;
    void *context;
    void *stream;
};

struct interface {
    size_t size;
    struct extension *extensions;
    struct version version;
    const void *internal;
    void *(*error_create)(struct error_arguments *);
    const void *error_message, *error_destroy, *handler_register;
    void *(*stream_get)(struct stream_arguments *);
};

struct buffer {
    size_t size;
    struct extension *extensions;
    int type;
    void *data;
    int64_t rank;
    int64_t *extents;
};

struct array {
    int type;
    size_t size;
    const int64_t *data;
};

/* Arguments and results. */
struct operands {
    size_t size;
    struct extension *extensions;
    int64_t count;
    int *types;
    struct buffer **buffers;
};

struct attributes {
    size_t size;
    struct extension *extensions;
    int64_t count;
    int *types;
    void **names;
    struct array **arrays;
};

struct frame {
    size_t size;
    struct extension *extensions;
    const struct interface *api;
    void *context;
    int stage;
    struct operands arguments, results;
    struct attributes attributes;
};

static PyObject *operation; /* operation(on_gpu, stream, numbers, buffers); NULL: spmv.jax is not imported */

static void *error_new(const struct frame *f, const char *message)
{
    struct error_arguments a = {.size = sizeof a, .message = message, .code = ERROR_INTERNAL};
    return f->api->error_create(&a);
}

/* Answers with the version of the caller, if this file knows its major version. */
static bool asks_for_metadata(const struct frame *f)
{
    struct extension *const e = f->extensions;
    if (e == NULL || e->type != EXTENSION_METADATA)
        return false;
    struct metadata *const m = ((struct metadata_extension *)e)->metadata;
    m->version.major = MAJOR;
    m->version.minor = f->api != NULL && f->api->version.major == MAJOR ? f->api->version.minor : 0;
    m->traits = 0;
    return true;
}

/* Appends (address, type, extents) for each buffer. */
static bool append(PyObject *list, const struct operands *from)
{
    for (int64_t i = 0; i < from->count; i++) {
        const struct buffer *const b = from->buffers[i];
        PyObject *extents = PyTuple_New((Py_ssize_t)b->rank);
        for (int64_t d = 0; d < b->rank && extents != NULL; d++)
            PyTuple_SetItem(extents, (Py_ssize_t)d, PyLong_FromLongLong(b->extents[d]));
        PyObject *item = Py_BuildValue("KiN", (unsigned long long)(uintptr_t)b->data, b->type, extents);
        const bool well = item != NULL && PyList_Append(list, item) == 0;
        Py_XDECREF(item);
        if (!well)
            return false;
    }
    return true;
}

/* Calls the function of Python; false: it raised an exception. */
static bool call(const struct frame *f, bool on_gpu, void *stream)
{
    const struct array *const given = f->attributes.arrays[0];
    PyObject *buffers = PyList_New(0), *numbers = PyTuple_New((Py_ssize_t)given->size), *result = NULL;
    for (size_t i = 0; i < given->size && numbers != NULL; i++)
        PyTuple_SetItem(numbers, (Py_ssize_t)i, PyLong_FromLongLong(given->data[i]));
    if (buffers != NULL && numbers != NULL && append(buffers, &f->arguments) && append(buffers, &f->results))
        result = PyObject_CallFunction(operation, "iKOO", (int)on_gpu, (unsigned long long)(uintptr_t)stream, numbers,
                                       buffers);
    Py_XDECREF(buffers);
    Py_XDECREF(numbers);
    Py_XDECREF(result);
    return result != NULL;
}

/* The pending exception as an error of XLA. */
static void *error_of_python(const struct frame *f)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
    const char *message = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    void *const error = error_new(f, message != NULL ? message : "spmv: an operation failed");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return error;
}

static void *handle(struct frame *f, bool on_gpu)
{
    struct stream_arguments s = {.size = sizeof s, .context = f->context};
    void *error = NULL;
    if (asks_for_metadata(f) || f->stage != STAGE_EXECUTE)
        return NULL;
    if (f->attributes.count != 1 || f->attributes.types[0] != ATTRIBUTE_ARRAY ||
        f->attributes.arrays[0]->type != TYPE_S64 || !Py_IsInitialized())
        return error_new(f, "spmv: not a call of spmv.jax");
    if (on_gpu && (error = f->api->stream_get(&s)) != NULL)
        return error;
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (!call(f, on_gpu, s.stream))
        error = error_of_python(f);
    PyGILState_Release(gil);
    return error;
}

static void *handle_on_cpu(struct frame *f)
{
    return handle(f, false);
}

static void *handle_on_gpu(struct frame *f)
{
    return handle(f, true);
}

/* jax_handlers(operation): the functions for CPUs and for CUDA, as capsules that JAX registers. */
static PyObject *jax_handlers(PyObject *module, PyObject *given)
{
    static const char name[] = "xla._CUSTOM_CALL_TARGET";
    (void)module;
    PyObject *const old = operation;
    operation = Py_NewRef(given);
    Py_XDECREF(old);
    return Py_BuildValue("NN", PyCapsule_New((void *)(uintptr_t)handle_on_cpu, name, NULL),
                         PyCapsule_New((void *)(uintptr_t)handle_on_gpu, name, NULL));
}

PyMethodDef jax_methods[] = {{"jax_handlers", jax_handlers, METH_O, NULL}, {NULL, NULL, 0, NULL}};
