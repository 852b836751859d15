/* Contexts: the lock, the end of a call, signals, forks, memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <time.h>

#include "core.h"

PyTypeObject *context_type, *object_type;

/* An object that another thread dropped while a call was running. */
struct released {
    struct released *next;
    enum object_kind kind;
    void *made;
};

/* ------------------------------------------------------------------ forks */

/* The runtime of OpenMP and that of CUDA do not survive a fork. */
static unsigned forks;
static bool used, used_before_fork;

static void in_the_child(void)
{
    forks++;
    used_before_fork = used;
}

static bool refuse_after_fork(void)
{
    PyErr_SetString(PyExc_RuntimeError,
                    "spmv was used before this process was forked: OpenMP and CUDA do not survive a fork; start "
                    "processes with the method \"spawn\" or \"forkserver\", or use spmv only in the child");
    return false;
}

/* ------------------------------------------------------------------ errors */

static PyObject *exception_of(spmv_status status)
{
    switch (status) {
    case SPMV_ERROR_TYPE:
        return PyExc_TypeError;
    case SPMV_ERROR_MEMORY:
        return PyExc_MemoryError;
    case SPMV_ERROR_OPEN:
    case SPMV_ERROR_READ:
    case SPMV_ERROR_WRITE:
    case SPMV_ERROR_CHANGED:
        return PyExc_OSError;
    case SPMV_ERROR_UNSUPPORTED:
        return PyExc_NotImplementedError;
    case SPMV_ERROR_BUSY:
    case SPMV_ERROR_CAPTURE:
    case SPMV_ERROR_DEVICE:
    case SPMV_ERROR_NO_DEVICE:
    case SPMV_ERROR_CHECK:
    case SPMV_CANCELLED:
        return PyExc_RuntimeError;
    default: /* arguments, sizes, formats, properties of the matrix */
        return PyExc_ValueError;
    }
}

void raise_status(spmv_status status, const char *text)
{
    PyObject *type = exception_of(status);
    PyObject *error = PyObject_CallFunction(type, "s", text != NULL && *text != '\0' ? text : spmv_status_text(status));
    PyObject *name = PyUnicode_FromString(spmv_status_name(status));
    if (error != NULL && name != NULL && PyObject_SetAttrString(error, "status", name) == 0)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(name);
}

void mark_status(spmv_status status)
{
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *name = PyUnicode_FromString(spmv_status_name(status));
    if (name == NULL || error == NULL || PyObject_SetAttrString(error, "status", name) != 0)
        PyErr_Clear(); /* some objects take no attributes */
    Py_XDECREF(name);
    PyErr_Restore(type, error, trace);
}

/* ------------------------------------------------------------------ calls */

static void destroy(spmv_context *ctx, enum object_kind kind, void *made)
{
    switch (kind) {
    case KIND_PLAN:
        spmv_plan_destroy(made);
        break;
    case KIND_SOLVER:
        spmv_solver_destroy(made);
        break;
    case KIND_PRECOND:
        spmv_preconditioner_destroy(made);
        break;
    case KIND_MATRIX:
        spmv_matrix_destroy(made);
        break;
    case KIND_SPGEMM:
        spmv_spgemm_plan_destroy(made);
        break;
    case KIND_SDDMM:
        spmv_sddmm_destroy(made);
        break;
    case KIND_BATCH:
        spmv_batch_destroy(made);
        break;
    case KIND_BLOCK:
        spmv_free(ctx, made);
        break;
    case KIND_GROUP:
        spmv_group_destroy(made);
        break;
    case KIND_GROUP_MATRIX:
        spmv_group_matrix_destroy(made);
        break;
    case KIND_GROUP_SOLVER:
        spmv_group_solver_destroy(((struct group_solver *)made)->solver);
        free(made);
        break;
    case KIND_DLPACK:
        break;
    }
}

static void destroy_unused(context *c)
{
    while (c->unused != NULL) {
        struct released *const first = c->unused;
        c->unused = first->next;
        destroy(c->ctx, first->kind, first->made);
        PyMem_Free(first);
    }
}

bool context_begin(context *c, bool release, call_state *state)
{
    const unsigned long me = PyThread_get_thread_ident();
    if (c->forks != forks)
        return refuse_after_fork();
    if (c->owner == me && c->depth > 0) {
        c->depth++;
    } else {
        if (PyThread_acquire_lock(c->lock, NOWAIT_LOCK) == 0) {
            Py_BEGIN_ALLOW_THREADS;
            PyThread_acquire_lock(c->lock, WAIT_LOCK);
            Py_END_ALLOW_THREADS;
        }
        c->owner = me;
        c->depth = 1;
    }
    *state = release ? PyEval_SaveThread() : NULL;
    return true;
}

bool context_end_quietly(context *c, call_state state)
{
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (c->depth == 1) {
        if (c->unused != NULL)
            destroy_unused(c);
        c->owner = 0;
        c->depth = 0;
        PyThread_release_lock(c->lock);
    } else {
        c->depth--;
    }
    return PyErr_Occurred() == NULL;
}

bool context_end(context *c, call_state state, spmv_status status)
{
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (status != SPMV_OK && PyErr_Occurred() == NULL)
        raise_status(status, spmv_last_error(c->ctx)); /* BUSY is of this thread, so it has a message */
    else if (status != SPMV_OK)
        mark_status(status);
    context_end_quietly(c, NULL);
    return status == SPMV_OK;
}

bool context_interrupted(context *c)
{
    enum { BETWEEN_LOOKS = 50 * 1000 * 1000 };
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const long long now = t.tv_sec * 1000000000LL + t.tv_nsec;
    if (c->leader != NULL && atomic_load(&c->leader->stops))
        return true;
    if (now < c->next_look)
        return false;
    c->next_look = now + BETWEEN_LOOKS;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const bool stop = PyErr_Occurred() != NULL || PyErr_CheckSignals() != 0;
    PyGILState_Release(gil);
    if (stop)
        atomic_store(&c->stops, true);
    return stop;
}

/* Ctrl-C ends set-ups too: the library asks this in long calls. */
static int cancelled(void *user)
{
    return context_interrupted(user);
}

/* Warnings of the library become warnings of Python, which a filter may turn into exceptions. */
static int on_event(const spmv_event *event, void *user)
{
    context *c = user;
    if (event->kind != SPMV_EVENT_WARNING)
        return context_interrupted(c);
    const PyGILState_STATE gil = PyGILState_Ensure();
    const bool stop = PyErr_Occurred() != NULL || PyErr_WarnEx(PyExc_UserWarning, event->text, 3) != 0;
    PyGILState_Release(gil);
    return stop;
}

/* ------------------------------------------------------------------ the types */

static void context_dealloc(PyObject *self)
{
    context *c = (context *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (c->ctx != NULL && c->forks == forks) {
        destroy_unused(c);
        spmv_context_destroy(c->ctx);
    }
    if (c->lock != NULL)
        PyThread_free_lock(c->lock);
    Py_XDECREF((PyObject *)c->leader);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* If another thread is within a call, that call destroys the object at its end. In a forked child
 * objects are left alone. */
static void object_dealloc(PyObject *self)
{
    object *o = (object *)self;
    context *c = o->context;
    PyTypeObject *type = Py_TYPE(self);
    if (o->made != NULL && c != NULL && c->forks == forks) {
        struct released *later = NULL;
        if (c->depth > 0 && c->owner != PyThread_get_thread_ident())
            later = PyMem_Malloc(sizeof *later);
        if (later != NULL) { /* in order: one that is dropped later may be used by those before */
            struct released **end = &c->unused;
            while (*end != NULL)
                end = &(*end)->next;
            *later = (struct released){.next = NULL, .kind = o->kind, .made = o->made};
            *end = later;
        } else {
            destroy(c->ctx, o->kind, o->made);
        }
    }
    Py_XDECREF(o->keep);
    Py_XDECREF((PyObject *)c);
    PyObject_Free(self);
    Py_DECREF(type);
}

bool core_types_make(PyObject *module)
{
    static PyType_Slot context_slots[] = {
        {Py_tp_dealloc, context_dealloc}, {Py_tp_doc, "A context of the library with its lock."}, {0, NULL}};
    static PyType_Slot object_slots[] = {
        {Py_tp_dealloc, object_dealloc}, {Py_tp_doc, "An object of the library."}, {0, NULL}};
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    PyType_Spec of_context = {"spmv._core.Context", sizeof(context), 0, flags, context_slots};
    PyType_Spec of_object = {"spmv._core.Object", sizeof(object), 0, flags, object_slots};
    context_type = (PyTypeObject *)PyType_FromSpec(&of_context);
    object_type = (PyTypeObject *)PyType_FromSpec(&of_object);
    pthread_atfork(NULL, NULL, in_the_child);
    return context_type != NULL && object_type != NULL && PyModule_AddType(module, context_type) == 0 &&
           PyModule_AddType(module, object_type) == 0;
}

PyObject *object_new(context *c, enum object_kind kind, void *made, PyObject *keep)
{
    object *o = PyObject_New(object, object_type);
    if (o == NULL) {
        if (c != NULL)
            destroy(c->ctx, kind, made);
        return NULL;
    }
    o->kind = kind;
    o->plan = (struct plan_facts){.work = 0};
    o->made = made;
    o->context = c;
    o->keep = keep;
    Py_XINCREF((PyObject *)c);
    Py_XINCREF(keep);
    return (PyObject *)o;
}

void object_keep(object *o, PyObject *keep)
{
    PyObject *const old = o->keep;
    o->keep = keep;
    Py_XDECREF(old);
}

/* ------------------------------------------------------------------ arguments */

int to_context(PyObject *from, void *to)
{
    if (!Py_IS_TYPE(from, context_type)) {
        PyErr_SetString(PyExc_TypeError, "not a context");
        return 0;
    }
    *(context **)to = (context *)from;
    return 1;
}

static int to_object(PyObject *from, enum object_kind kind, const char *name, void *to)
{
    if (!Py_IS_TYPE(from, object_type) || ((object *)from)->kind != kind) {
        PyErr_Format(PyExc_TypeError, "not a %s", name);
        return 0;
    }
    *(object **)to = (object *)from;
    return 1;
}

int to_plan(PyObject *from, void *to)
{
    return to_object(from, KIND_PLAN, "plan", to);
}

int to_solver(PyObject *from, void *to)
{
    return to_object(from, KIND_SOLVER, "solver", to);
}

int to_matrix_object(PyObject *from, void *to)
{
    return to_object(from, KIND_MATRIX, "matrix", to);
}

int to_spgemm_plan(PyObject *from, void *to)
{
    return to_object(from, KIND_SPGEMM, "plan of a product of matrices", to);
}

int to_sddmm(PyObject *from, void *to)
{
    return to_object(from, KIND_SDDMM, "sampled product", to);
}

int to_batch(PyObject *from, void *to)
{
    return to_object(from, KIND_BATCH, "batch", to);
}

int to_group(PyObject *from, void *to)
{
    return to_object(from, KIND_GROUP, "group", to);
}

int to_group_matrix(PyObject *from, void *to)
{
    return to_object(from, KIND_GROUP_MATRIX, "matrix of a group", to);
}

int to_group_solver(PyObject *from, void *to)
{
    return to_object(from, KIND_GROUP_SOLVER, "solver of a group", to);
}

int to_precond_or_none(PyObject *from, void *to)
{
    *(object **)to = NULL;
    return from == Py_None ? 1 : to_object(from, KIND_PRECOND, "preconditioner", to);
}

int to_csr(PyObject *from, void *to)
{
    long long rows, cols, nnz;
    unsigned long long row_ptr, col, val;
    int bits, type, memory;
    if (!PyArg_ParseTuple(from, "LLLKiKKii", &rows, &cols, &nnz, &row_ptr, &bits, &col, &val, &type, &memory))
        return 0;
    *(spmv_csr *)to = (spmv_csr){.rows = rows,
                                 .cols = cols,
                                 .nnz = nnz,
                                 .row_ptr = address(row_ptr),
                                 .row_ptr_bits = bits,
                                 .col = address(col),
                                 .val = address(val),
                                 .type = (spmv_type)type,
                                 .memory = (spmv_memory)memory};
    return 1;
}

bool to_scalar(PyObject *from, spmv_type type, spmv_c128 *space, const void **scalar)
{
    *scalar = NULL;
    if (from == Py_None)
        return true;
    *scalar = space;
    const bool complex = type == SPMV_C64 || type == SPMV_C128;
    if (type == SPMV_I32 || type == SPMV_I64) {
        const long long whole = PyLong_AsLongLong(from);
        if (type == SPMV_I64)
            memcpy(space, &(const int64_t){whole}, sizeof(int64_t));
        else if (whole == (int32_t)whole)
            memcpy(space, &(const int32_t){(int32_t)whole}, sizeof(int32_t));
        else
            PyErr_SetString(PyExc_OverflowError, "the number does not fit in 32 bits");
        return PyErr_Occurred() == NULL;
    }
    const double re = complex ? PyComplex_RealAsDouble(from) : PyFloat_AsDouble(from);
    const double im = complex ? PyComplex_ImagAsDouble(from) : 0;
    if (PyErr_Occurred() != NULL)
        return false;
    switch ((int)type) {
    case SPMV_F32:
    case SPMV_BF16: /* scalars are f32 */
    case SPMV_F16:
    case SPMV_C64:
        memcpy(space, &(const spmv_c64){(float)re, (float)im}, sizeof(spmv_c64));
        return true;
    case SPMV_F64:
    case SPMV_C128:
        *space = (spmv_c128){re, im};
        return true;
    default:
        PyErr_Format(PyExc_TypeError, "no scalar of type %s", spmv_type_name(type));
        return false;
    }
}

/* ------------------------------------------------------------------ functions */

static PyObject *context_create(PyObject *module, PyObject *arguments)
{
    const char *backend = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sii", &backend, &options.device, &options.threads))
        return NULL;
    if (used_before_fork) {
        refuse_after_fork();
        return NULL;
    }
    if (spmv_backend_parse(backend, &options.backend) != SPMV_OK)
        return PyErr_Format(PyExc_ValueError, "unknown device \"%s\"", backend);
    context *c = PyObject_New(context, context_type);
    if (c == NULL)
        return NULL;
    c->ctx = NULL;
    c->owner = 0;
    c->depth = 0;
    c->unused = NULL;
    c->next_look = 0;
    c->leader = NULL;
    atomic_init(&c->stops, false);
    c->forks = forks;
    c->lock = PyThread_allocate_lock();
    if (c->lock == NULL) {
        Py_DECREF((PyObject *)c);
        return PyErr_NoMemory();
    }
    options.on_event = on_event;
    options.user = c;
    used = true;
    spmv_status st;
    Py_BEGIN_ALLOW_THREADS;
    st = spmv_context_create(&options, &c->ctx);
    Py_END_ALLOW_THREADS;
    if (st == SPMV_OK)
        st = spmv_context_set_cancel(c->ctx, cancelled, c);
    if (st == SPMV_OK)
        return (PyObject *)c;
    if (PyErr_Occurred() == NULL)
        raise_status(st, spmv_last_error(NULL));
    Py_DECREF((PyObject *)c);
    return NULL;
}

static PyObject *context_info(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_context, &c))
        return NULL;
    return Py_BuildValue("ssi", spmv_backend_name(spmv_context_backend(c->ctx)), spmv_context_describe(c->ctx),
                         spmv_context_threads(c->ctx));
}

static PyObject *done(bool well)
{
    return well ? Py_NewRef(Py_None) : NULL;
}

static PyObject *context_wait(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_context, &c) || !context_begin(c, true, &state))
        return NULL;
    return done(context_end(c, state, spmv_synchronize(c->ctx)));
}

static PyObject *set_stream(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    unsigned long long stream;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&K", to_context, &c, &stream) || !context_begin(c, false, &state))
        return NULL;
    return done(context_end(c, state, spmv_context_set_stream(c->ctx, address(stream))));
}

static PyObject *get_stream(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_context, &c))
        return NULL;
    return PyLong_FromVoidPtr(spmv_context_stream(c->ctx));
}

static PyObject *block(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    long long bytes;
    void *memory = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&L", to_context, &c, &bytes) || !context_begin(c, false, &state))
        return NULL;
    if (!context_end(c, state, spmv_alloc(c->ctx, bytes, &memory)))
        return NULL;
    return object_new(c, KIND_BLOCK, memory, NULL);
}

static PyObject *address_of(PyObject *module, PyObject *arguments)
{
    PyObject *o = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!", object_type, &o))
        return NULL;
    return PyLong_FromVoidPtr(((object *)o)->made);
}

/* Copies between a buffer of Python and context memory: up, to the context's memory. */
static PyObject *copy(PyObject *arguments, bool up)
{
    context *c = NULL;
    unsigned long long there;
    Py_buffer here;
    call_state state;
    if (!PyArg_ParseTuple(arguments, up ? "O&Ky*" : "O&Kw*", to_context, &c, &there, &here))
        return NULL;
    bool well = context_begin(c, true, &state);
    if (well)
        well = context_end(c, state,
                           up ? spmv_upload(c->ctx, here.buf, address(there), here.len)
                              : spmv_download(c->ctx, address(there), here.buf, here.len));
    PyBuffer_Release(&here);
    return done(well);
}

static PyObject *upload(PyObject *module, PyObject *arguments)
{
    (void)module;
    return copy(arguments, true);
}

static PyObject *download(PyObject *module, PyObject *arguments)
{
    (void)module;
    return copy(arguments, false);
}

/* buffer_address(array): where an array in host memory begins; None: it does not tell. */
static PyObject *buffer_address(PyObject *module, PyObject *array)
{
    Py_buffer buffer;
    (void)module;
    if (PyObject_GetBuffer(array, &buffer, PyBUF_STRIDES) != 0) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    PyObject *const begin = PyLong_FromVoidPtr(buffer.buf);
    PyBuffer_Release(&buffer);
    return begin;
}

/* all_finite(address, n, bytes): whether n numbers of 8 or 4 bytes are finite; False for other numbers of bytes. */
static PyObject *all_finite(PyObject *module, PyObject *arguments)
{
    unsigned long long from;
    long long n;
    int bytes;
    static const uint64_t wide = 0x7ff0000000000000; /* exponents that no finite number has */
    static const uint32_t narrow = 0x7f800000;
    bool is = true;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KLi", &from, &n, &bytes))
        return NULL;
    if (bytes == 8)
        for (long long i = 0; i < n; i++)
            is &= (((const uint64_t *)address(from))[i] & wide) != wide;
    else if (bytes == 4)
        for (long long i = 0; i < n; i++)
            is &= (((const uint32_t *)address(from))[i] & narrow) != narrow;
    return PyBool_FromLong(is && (bytes == 8 || bytes == 4));
}

/* A read-only view of host memory; the caller keeps the memory alive. */
static PyObject *view_memory(PyObject *module, PyObject *arguments)
{
    unsigned long long from;
    Py_ssize_t bytes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Kn", &from, &bytes))
        return NULL;
    static char nothing[1];
    return PyMemoryView_FromMemory(bytes > 0 ? address(from) : nothing, bytes, PyBUF_READ);
}

static PyObject *backend_built(PyObject *module, PyObject *arguments)
{
    const char *name = NULL;
    spmv_backend backend;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "s", &name))
        return NULL;
    return PyBool_FromLong(spmv_backend_parse(name, &backend) == SPMV_OK && spmv_backend_built(backend));
}

PyMethodDef context_methods[] = {
    {"context", context_create, METH_VARARGS, NULL},      {"context_info", context_info, METH_VARARGS, NULL},
    {"wait", context_wait, METH_VARARGS, NULL},           {"set_stream", set_stream, METH_VARARGS, NULL},
    {"get_stream", get_stream, METH_VARARGS, NULL},       {"block", block, METH_VARARGS, NULL},
    {"address", address_of, METH_VARARGS, NULL},          {"upload", upload, METH_VARARGS, NULL},
    {"download", download, METH_VARARGS, NULL},           {"buffer_address", buffer_address, METH_O, NULL},
    {"all_finite", all_finite, METH_VARARGS, NULL},       {"view_memory", view_memory, METH_VARARGS, NULL},
    {"backend_built", backend_built, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
