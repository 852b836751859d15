/* The data-parallel primitives. Each function takes addresses and lengths.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

/* Ends a call: None, or NULL with the exception. */
#define ENDED(c, state, call) (context_end((c), (state), (call)) ? Py_NewRef(Py_None) : NULL)

/* Reads the arguments, with the context first, and begins the call. */
#define BEGIN(format, ...)                                                                                             \
    context *c = NULL;                                                                                                 \
    call_state state;                                                                                                  \
    (void)module;                                                                                                      \
    if (!PyArg_ParseTuple(arguments, "O&" format, to_context, &c, __VA_ARGS__) || !context_begin(c, true, &state))     \
    return NULL

/* Ends a converter of a name for PyArg_ParseTuple. text: of the name; known: whether the library has
 * it. */
static int converted(PyObject *from, const char *kind, PyObject *text, bool known)
{
    if (!known && PyErr_Occurred() == NULL)
        PyErr_Format(PyExc_ValueError, "unknown %s %R", kind, from);
    Py_XDECREF(text);
    return known;
}

static int to_op(PyObject *from, void *to)
{
    PyObject *text = PyUnicode_AsUTF8String(from);
    return converted(from, "operator", text, text != NULL && spmv_op_parse(PyBytes_AsString(text), to) == SPMV_OK);
}

static int to_function(PyObject *from, void *to)
{
    PyObject *text = PyUnicode_AsUTF8String(from);
    return converted(from, "function", text,
                     text != NULL && spmv_function_parse(PyBytes_AsString(text), to) == SPMV_OK);
}

static int to_predicate(PyObject *from, void *to)
{
    PyObject *text = PyUnicode_AsUTF8String(from);
    return converted(from, "predicate", text,
                     text != NULL && spmv_predicate_parse(PyBytes_AsString(text), to) == SPMV_OK);
}

static PyObject *map(PyObject *module, PyObject *arguments)
{
    spmv_function function;
    int type;
    unsigned long long in, out;
    long long n;
    BEGIN("O&iKKL", to_function, &function, &type, &in, &out, &n);
    return ENDED(c, state, spmv_map(c->ctx, function, (spmv_type)type, address(in), address(out), n));
}

static PyObject *map_binary(PyObject *module, PyObject *arguments)
{
    spmv_op op;
    int type;
    unsigned long long a, b, out;
    long long n;
    BEGIN("O&iKKKL", to_op, &op, &type, &a, &b, &out, &n);
    return ENDED(c, state, spmv_map_binary(c->ctx, op, (spmv_type)type, address(a), address(b), address(out), n));
}

static PyObject *dot(PyObject *module, PyObject *arguments)
{
    int type;
    unsigned long long x, y, out;
    long long n;
    BEGIN("iKKKL", &type, &x, &y, &out, &n);
    return ENDED(c, state, spmv_dot(c->ctx, (spmv_type)type, address(x), address(y), address(out), n));
}

static PyObject *gather(PyObject *module, PyObject *arguments)
{
    int type, bits;
    unsigned long long in, index, out;
    long long in_n, n;
    BEGIN("iKLKiKL", &type, &in, &in_n, &index, &bits, &out, &n);
    return ENDED(c, state,
                 spmv_gather(c->ctx, (spmv_type)type, address(in), in_n, address(index), bits, address(out), n));
}

static PyObject *scatter(PyObject *module, PyObject *arguments)
{
    int type, bits;
    unsigned long long in, index, out;
    long long out_n, n;
    BEGIN("iKKiKLL", &type, &in, &index, &bits, &out, &out_n, &n);
    return ENDED(c, state,
                 spmv_scatter(c->ctx, (spmv_type)type, address(in), address(index), bits, address(out), out_n, n));
}

static PyObject *reduce(PyObject *module, PyObject *arguments)
{
    spmv_op op;
    int type;
    unsigned long long in, out;
    long long n;
    BEGIN("O&iKKL", to_op, &op, &type, &in, &out, &n);
    return ENDED(c, state, spmv_reduce(c->ctx, op, (spmv_type)type, address(in), address(out), n));
}

static PyObject *scan(PyObject *module, PyObject *arguments)
{
    spmv_op op;
    int type, exclusive;
    unsigned long long in, out;
    long long n;
    BEGIN("pO&iKKL", &exclusive, to_op, &op, &type, &in, &out, &n);
    return ENDED(c, state,
                 spmv_scan(c->ctx, exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE, op, (spmv_type)type, address(in),
                           address(out), n));
}

static PyObject *segmented(PyObject *module, PyObject *arguments)
{
    spmv_op op;
    int type, exclusive, reduces, form;
    unsigned long long heads, in, out;
    long long n, count;
    spmv_segments segments;
    memset(&segments, 0, sizeof segments);
    BEGIN("ppO&iiKiLKKL", &reduces, &exclusive, to_op, &op, &type, &form, &heads, &segments.bits, &count, &in, &out,
          &n);
    segments.form = (spmv_segment_form)form;
    segments.heads = address(heads);
    segments.count = count;
    if (reduces)
        return ENDED(c, state, spmv_segreduce(c->ctx, op, (spmv_type)type, &segments, address(in), address(out), n));
    return ENDED(c, state,
                 spmv_segscan(c->ctx, exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE, op, (spmv_type)type, &segments,
                              address(in), address(out), n));
}

static PyObject *compact(PyObject *module, PyObject *arguments)
{
    int type;
    unsigned long long in, flags, out, count;
    long long n;
    BEGIN("iKKKKL", &type, &in, &flags, &out, &count, &n);
    return ENDED(c, state,
                 spmv_compact(c->ctx, (spmv_type)type, address(in), address(flags), address(out), address(count), n));
}

static PyObject *compact_if(PyObject *module, PyObject *arguments)
{
    spmv_predicate predicate;
    int type;
    PyObject *number = NULL;
    unsigned long long in, out, count;
    long long n;
    spmv_c128 space;
    const void *scalar = NULL;
    BEGIN("O&iOKKKL", to_predicate, &predicate, &type, &number, &in, &out, &count, &n);
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (!to_scalar(number, (spmv_type)type, &space, &scalar)) {
        context_end_quietly(c, NULL);
        return NULL;
    }
    state = PyEval_SaveThread();
    return ENDED(
        c, state,
        spmv_compact_if(c->ctx, predicate, 1, (spmv_type)type, scalar, address(in), address(out), address(count), n));
}

static PyObject *sort(PyObject *module, PyObject *arguments)
{
    int type, width, value_bytes;
    unsigned long long keys, values, out_keys, out_values;
    long long n;
    BEGIN("iiKKiKKL", &type, &width, &keys, &values, &value_bytes, &out_keys, &out_values, &n);
    return ENDED(c, state,
                 spmv_sort_by_key(c->ctx, (spmv_type)type, 0, width, address(keys), address(values), value_bytes,
                                  address(out_keys), address(out_values), n));
}

static PyObject *histogram(PyObject *module, PyObject *arguments)
{
    unsigned long long index, counts;
    long long bins, n;
    BEGIN("KKLL", &index, &counts, &bins, &n);
    return ENDED(c, state, spmv_histogram(c->ctx, SPMV_I64, address(index), address(counts), bins, NULL, n));
}

static PyObject *expand_offsets(PyObject *module, PyObject *arguments)
{
    unsigned long long counts, offsets;
    int bits;
    long long n;
    BEGIN("KiKL", &counts, &bits, &offsets, &n);
    return ENDED(c, state, spmv_expand_offsets(c->ctx, address(counts), bits, address(offsets), n));
}

static PyObject *expand(PyObject *module, PyObject *arguments)
{
    int type;
    unsigned long long in, offsets, out;
    long long n, total;
    BEGIN("iKKLKL", &type, &in, &offsets, &n, &out, &total);
    return ENDED(c, state,
                 spmv_expand(c->ctx, SPMV_EXPAND_GATHER, (spmv_type)type, address(in), address(offsets), n, 64,
                             address(out), NULL, NULL, total));
}

PyMethodDef primitive_methods[] = {{"expand_offsets", expand_offsets, METH_VARARGS, NULL},
                                   {"expand", expand, METH_VARARGS, NULL},
                                   {"map", map, METH_VARARGS, NULL},
                                   {"map_binary", map_binary, METH_VARARGS, NULL},
                                   {"dot", dot, METH_VARARGS, NULL},
                                   {"gather", gather, METH_VARARGS, NULL},
                                   {"scatter", scatter, METH_VARARGS, NULL},
                                   {"reduce", reduce, METH_VARARGS, NULL},
                                   {"scan", scan, METH_VARARGS, NULL},
                                   {"segmented", segmented, METH_VARARGS, NULL},
                                   {"compact", compact, METH_VARARGS, NULL},
                                   {"compact_if", compact_if, METH_VARARGS, NULL},
                                   {"sort", sort, METH_VARARGS, NULL},
                                   {"histogram", histogram, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
