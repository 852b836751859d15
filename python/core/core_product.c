/* Plans and products. multiply is the fast path for arrays in host memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

static struct span span_of(const void *begin, int64_t bytes)
{
    return (struct span){begin, begin != NULL ? (const char *)begin + bytes : NULL};
}

static PyObject *plan_new(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    spmv_plan_options o;
    int operation, type;
    PyObject *keep = NULL;
    call_state state;
    spmv_plan *plan = NULL;
    (void)module;
    spmv_plan_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&iziiiippO", to_context, &c, to_csr, &a, &operation, &o.method, &type,
                          &o.vectors, &o.update_values, &o.compression, &o.x_layout, &o.y_layout, &keep) ||
        !context_begin(c, true, &state))
        return NULL;
    o.operation = (spmv_operation)operation;
    o.type = (spmv_type)type;
    if (!context_end(c, state, spmv_plan_create(c->ctx, &a, &o, &plan)))
        return NULL;
    object *made = (object *)object_new(c, KIND_PLAN, plan, keep);
    spmv_plan_info info;
    if (made != NULL && spmv_plan_describe(plan, &info, sizeof info) == SPMV_OK)
        made->plan = (struct plan_facts){.type = info.type,
                                         .rows = info.rows,
                                         .cols = info.cols,
                                         .work = (info.nnz + info.rows) * info.vectors,
                                         .vectors = info.vectors};
    if (made != NULL && a.memory == SPMV_MEMORY_CONTEXT) {
        made->plan.borrowed[0] = span_of(a.row_ptr, (a.rows + 1) * (a.row_ptr_bits / 8));
        made->plan.borrowed[1] = span_of(a.col, a.nnz * (int64_t)sizeof *a.col);
        made->plan.borrowed[2] = span_of(a.val, a.nnz * (int64_t)spmv_type_size(a.type));
    }
    return (PyObject *)made;
}

static PyObject *plan_info(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    spmv_plan_info i;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_plan, &p))
        return NULL;
    spmv_plan_describe(p->made, &i, sizeof i);
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:L,s:L,s:L,s:L,s:d,s:i}", "method", i.method, "why", i.why, "layout",
                         i.layout, "type", spmv_type_name(i.type), "rows", (long long)i.rows, "cols", (long long)i.cols,
                         "nnz", (long long)i.nnz, "bytes", (long long)i.bytes, "seconds", i.seconds, "vectors",
                         i.vectors);
}

/* A product that takes less time than releasing and taking Python's lock may. */
enum { QUICK = 20000 };

static bool overlaps_matrix(const object *p, const char *y)
{
    const char *const end = y + p->plan.rows * p->plan.vectors * (int64_t)spmv_type_size(p->plan.type);
    for (int i = 0; i < 3; i++)
        if (y < p->plan.borrowed[i].end && p->plan.borrowed[i].begin < end)
            return true;
    return false;
}

/* stream: the context's stream from now on; NULL: as it is. */
static bool apply_to(object *p, const void *x, void *y, PyObject *by, PyObject *plus, void *stream)
{
    spmv_c128 space[2];
    const void *alpha = NULL, *beta = NULL;
    call_state state;
    if (overlaps_matrix(p, y)) {
        PyErr_SetString(PyExc_ValueError, "out overlaps the arrays of the matrix, which the plan uses");
        return false;
    }
    if (!to_scalar(by, p->plan.type, &space[0], &alpha) || !to_scalar(plus, p->plan.type, &space[1], &beta) ||
        !context_begin(p->context, p->plan.work > QUICK, &state))
        return false;
    spmv_status st = stream != NULL ? spmv_context_set_stream(p->context->ctx, stream) : SPMV_OK;
    if (st == SPMV_OK)
        st = spmv_apply(p->made, alpha, x, beta, y);
    return context_end(p->context, state, st);
}

/* Types of vectors: the format in the buffer protocol, and the alignment. */
static const struct buffer_type {
    const char *format; /* NULL: not a type of vectors, or without a format */
    size_t aligned;
} buffer_types[SPMV_TYPE_LIMIT] = {[SPMV_F16] = {"e", sizeof(spmv_f16)},
                                   [SPMV_F32] = {"f", sizeof(float)},
                                   [SPMV_F64] = {"d", sizeof(double)},
                                   [SPMV_C64] = {"Zf", sizeof(float)},
                                   [SPMV_C128] = {"Zd", sizeof(double)}};

/* Whether the buffer has elements of the type. */
static bool has_type(const Py_buffer *buffer, spmv_type type)
{
    const struct buffer_type expected = buffer_types[type];
    const char *format = buffer->format;
    if (format == NULL || expected.format == NULL)
        return false;
    if (format[0] == '@' || format[0] == '=')
        format++;
    return strcmp(format, expected.format) == 0 && (uintptr_t)buffer->buf % expected.aligned == 0;
}

/* Gets n elements (n rows of the plan's vectors) of the plan's type in C order. */
static bool take_buffer(PyObject *from, const object *p, int64_t n, int flags, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(from, buffer, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
    }
    const int k = p->plan.vectors;
    const bool shaped = k == 1 ? buffer->ndim == 1 && buffer->shape[0] == n
                               : buffer->ndim == 2 && buffer->shape[0] == n && buffer->shape[1] == k;
    if (shaped && has_type(buffer, p->plan.type))
        return true;
    PyBuffer_Release(buffer);
    return false;
}

/* multiply(plan, x, out, alpha, beta): out = alpha A x + beta out for arrays in host memory. Returns
 * False, and does nothing, if an array is not of that kind, shape and type: the caller then finds out
 * why. */
static PyObject *multiply(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    object *p = NULL;
    Py_buffer x, y;
    (void)module;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "multiply takes 5 arguments");
        return NULL;
    }
    if (!to_plan(arguments[0], &p))
        return NULL;
    if (!take_buffer(arguments[1], p, p->plan.cols, 0, &x))
        return Py_NewRef(Py_False);
    if (!take_buffer(arguments[2], p, p->plan.rows, PyBUF_WRITABLE, &y)) {
        PyBuffer_Release(&x);
        return Py_NewRef(Py_False);
    }
    PyObject *result = NULL;
    if ((char *)x.buf < (char *)y.buf + y.len && (char *)y.buf < (char *)x.buf + x.len)
        PyErr_SetString(PyExc_ValueError, "x and out overlap");
    else if (apply_to(p, x.buf, y.buf, arguments[3], arguments[4], NULL))
        result = Py_NewRef(Py_True);
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    return result;
}

/* apply(plan, x, y, alpha, beta[, stream]): the same with addresses in the context's memory. */
static PyObject *apply(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    unsigned long long x, y, stream = 0;
    PyObject *alpha = NULL, *beta = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKOO|K", to_plan, &p, &x, &y, &alpha, &beta, &stream))
        return NULL;
    return apply_to(p, address(x), address(y), alpha, beta, address(stream)) ? Py_NewRef(Py_None) : NULL;
}

/* keep replaces the arrays that the plan borrowed. */
static PyObject *update_values(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    unsigned long long values;
    PyObject *keep = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KO", to_plan, &p, &values, &keep) || !context_begin(p->context, true, &state))
        return NULL;
    if (!context_end(p->context, state, spmv_plan_update_values(p->made, address(values))))
        return NULL;
    if (p->plan.borrowed[2].begin != NULL) {
        const int64_t bytes = p->plan.borrowed[2].end - p->plan.borrowed[2].begin;
        p->plan.borrowed[2] = span_of(address(values), bytes);
    }
    object_keep(p, Py_NewRef(keep));
    return Py_NewRef(Py_None);
}

/* One operand of products: address, and bytes from one product to the next. */
struct operand {
    unsigned long long first;
    long long step;
};

static void *operand_of(const struct operand *o, long long product)
{
    return o->first != 0 ? (char *)address(o->first) + product * o->step : NULL;
}

/* products(plan, stream, count, values, step, x, step, y, step, numbers, bits, space): count products, each
 * with its own values. The plan was made with update_values. With numbers, entry e of the plan's matrix
 * has the value number numbers[e]; the values are gathered into space. All under one lock, so no other thread
 * changes the values in between. The plan has no values afterwards. */
static PyObject *products(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    struct operand values, x, y;
    unsigned long long stream, numbers, space;
    long long count;
    int bits;
    call_state state;
    spmv_plan_info about;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KLKLKLKLKiK", to_plan, &p, &stream, &count, &values.first, &values.step,
                          &x.first, &x.step, &y.first, &y.step, &numbers, &bits, &space) ||
        !context_begin(p->context, p->plan.work > QUICK / (count > 0 ? count : 1), &state))
        return NULL;
    spmv_context *const ctx = p->context->ctx;
    spmv_status st = stream != 0 ? spmv_context_set_stream(ctx, address(stream)) : SPMV_OK;
    spmv_plan_describe(p->made, &about, sizeof about);
    for (long long i = 0; i < count && st == SPMV_OK; i++) {
        if (about.nnz > 0 && (i == 0 || values.step != 0)) {
            const void *from = operand_of(&values, i);
            if (numbers != 0) {
                st = spmv_gather(ctx, about.value_type, from, about.nnz, address(numbers), bits, address(space),
                                 about.nnz);
                from = address(space);
            }
            if (st == SPMV_OK)
                st = spmv_plan_update_values(p->made, from);
        }
        if (st == SPMV_OK)
            st = spmv_apply(p->made, NULL, operand_of(&x, i), NULL, operand_of(&y, i));
    }
    p->plan.borrowed[2] = span_of(NULL, 0);
    return context_end(p->context, state, st) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *sddmm_new(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr p;
    spmv_sddmm_options o;
    int type;
    PyObject *keep = NULL;
    call_state state;
    spmv_sddmm *made = NULL;
    (void)module;
    spmv_sddmm_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&iiO", to_context, &c, to_csr, &p, &type, &o.vectors, &keep) ||
        !context_begin(c, true, &state))
        return NULL;
    o.type = (spmv_type)type;
    return context_end(c, state, spmv_sddmm_create(c->ctx, &p, &o, &made)) ? object_new(c, KIND_SDDMM, made, keep)
                                                                           : NULL;
}

/* A call on the given stream; NULL: the context's. */
static PyObject *sddmm_run(object *s, const void *a, const void *b, void *y, void *stream, bool softmax)
{
    call_state state;
    if (!context_begin(s->context, true, &state))
        return NULL;
    spmv_status st = stream != NULL ? spmv_context_set_stream(s->context->ctx, stream) : SPMV_OK;
    if (st == SPMV_OK)
        st = softmax ? spmv_sddmm_softmax(s->made, a, y) : spmv_sddmm_apply(s->made, a, b, y);
    return context_end(s->context, state, st) ? Py_NewRef(Py_None) : NULL;
}

/* sddmm_apply(sddmm, a, b, y, stream), sddmm_softmax(sddmm, x, y, stream): addresses in the context's memory. */
static PyObject *sddmm_apply(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long a, b, y, stream;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKKK", to_sddmm, &s, &a, &b, &y, &stream))
        return NULL;
    return sddmm_run(s, address(a), address(b), address(y), address(stream), false);
}

static PyObject *sddmm_softmax(PyObject *module, PyObject *arguments)
{
    object *s = NULL;
    unsigned long long x, y, stream;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKK", to_sddmm, &s, &x, &y, &stream))
        return NULL;
    return sddmm_run(s, address(x), NULL, address(y), address(stream), true);
}

static PyObject *method_names(PyObject *module, PyObject *arguments)
{
    const char *backend = NULL, *of = NULL;
    spmv_backend b;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ss", &of, &backend))
        return NULL;
    if (spmv_backend_parse(backend, &b) != SPMV_OK)
        return PyErr_Format(PyExc_ValueError, "unknown device \"%s\"", backend);
    PyObject *names = PyList_New(0);
    for (int i = 0; names != NULL; i++) {
        const char *name = strcmp(of, "plan") == 0      ? spmv_method_name(b, i)
                           : strcmp(of, "cg") == 0      ? spmv_cg_rung_name(b, i)
                           : strcmp(of, "precond") == 0 ? spmv_preconditioner_name(i)
                                                        : spmv_spgemm_method_name(b, i);
        if (name == NULL)
            break;
        PyObject *text = PyUnicode_FromString(name);
        if (text == NULL || PyList_Append(names, text) != 0)
            Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

PyMethodDef product_methods[] = {{"plan", plan_new, METH_VARARGS, NULL},
                                 {"plan_info", plan_info, METH_VARARGS, NULL},
                                 {"multiply", (PyCFunction)(void (*)(void))multiply, METH_FASTCALL, NULL},
                                 {"apply", apply, METH_VARARGS, NULL},
                                 {"update_values", update_values, METH_VARARGS, NULL},
                                 {"products", products, METH_VARARGS, NULL},
                                 {"sddmm", sddmm_new, METH_VARARGS, NULL},
                                 {"sddmm_apply", sddmm_apply, METH_VARARGS, NULL},
                                 {"sddmm_softmax", sddmm_softmax, METH_VARARGS, NULL},
                                 {"method_names", method_names, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
