/* Matrices: checks, files, generators, products of matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

static PyObject *matrix_check(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&", to_context, &c, to_csr, &a) || !context_begin(c, true, &state))
        return NULL;
    return context_end(c, state, spmv_matrix_check(c->ctx, &a)) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *index_check(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    unsigned long long index;
    int bits;
    long long lowest, limit, n;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KiLLL", to_context, &c, &index, &bits, &lowest, &limit, &n) ||
        !context_begin(c, true, &state))
        return NULL;
    return context_end(c, state, spmv_index_check(c->ctx, address(index), bits, lowest, limit, n)) ? Py_NewRef(Py_None)
                                                                                                   : NULL;
}

/* The tuple of a matrix, as to_csr reads it. */
static PyObject *tuple_of(const spmv_csr *a)
{
    return Py_BuildValue("LLLKiKKii", (long long)a->rows, (long long)a->cols, (long long)a->nnz,
                         (unsigned long long)(uintptr_t)a->row_ptr, a->row_ptr_bits,
                         (unsigned long long)(uintptr_t)a->col, (unsigned long long)(uintptr_t)a->val, (int)a->type,
                         (int)a->memory);
}

static PyObject *view(PyObject *module, PyObject *arguments)
{
    object *m = NULL;
    spmv_csr a;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_matrix_object, &m))
        return NULL;
    spmv_matrix_view(m->made, &a);
    return tuple_of(&a);
}

static PyObject *read_matrix(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    const char *path = NULL;
    int type;
    spmv_read_options o;
    spmv_read_info info;
    spmv_matrix *matrix = NULL;
    call_state state;
    (void)module;
    spmv_read_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&yi", to_context, &c, &path, &type) || !context_begin(c, true, &state))
        return NULL;
    o.type = (spmv_type)type;
    if (!context_end(c, state, spmv_matrix_read(c->ctx, path, &o, &matrix, &info, sizeof info)))
        return NULL;
    return object_new(c, KIND_MATRIX, matrix, NULL);
}

static PyObject *generate(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    const char *spec = NULL;
    int type;
    spmv_matrix *matrix = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&si", to_context, &c, &spec, &type) || !context_begin(c, true, &state))
        return NULL;
    if (!context_end(c, state, spmv_matrix_generate(c->ctx, spec, (spmv_type)type, &matrix)))
        return NULL;
    return object_new(c, KIND_MATRIX, matrix, NULL);
}

static PyObject *write_matrix(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    const char *path = NULL;
    int symmetry;
    spmv_write_options o;
    call_state state;
    (void)module;
    spmv_write_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&yiz", to_context, &c, to_csr, &a, &path, &symmetry, &o.comments) ||
        !context_begin(c, true, &state))
        return NULL;
    o.symmetry = (spmv_symmetry)symmetry;
    return context_end(c, state, spmv_matrix_write_as(c->ctx, &a, path, &o)) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *spgemm_matrices(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a, b;
    spmv_spgemm_options o;
    spmv_matrix *product = NULL;
    call_state state;
    (void)module;
    spmv_spgemm_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&O&z", to_context, &c, to_csr, &a, to_csr, &b, &o.method) ||
        !context_begin(c, true, &state))
        return NULL;
    if (!context_end(c, state, spmv_spgemm(c->ctx, &a, &b, &o, &product)))
        return NULL;
    return object_new(c, KIND_MATRIX, product, NULL);
}

/* ------------------------------------------------------------------ plans of products */

static PyObject *spgemm_plan(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a, b;
    spmv_spgemm_options o;
    spmv_spgemm_plan *plan = NULL;
    PyObject *keep = NULL;
    call_state state;
    (void)module;
    spmv_spgemm_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&O&zO", to_context, &c, to_csr, &a, to_csr, &b, &o.method, &keep) ||
        !context_begin(c, true, &state))
        return NULL;
    if (!context_end(c, state, spmv_spgemm_plan_create(c->ctx, &a, &b, &o, &plan)))
        return NULL;
    return object_new(c, KIND_SPGEMM, plan, keep);
}

static PyObject *spgemm_pattern(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    spmv_csr a;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_spgemm_plan, &p))
        return NULL;
    spmv_spgemm_pattern(p->made, &a);
    return tuple_of(&a);
}

static PyObject *spgemm_info(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    spmv_spgemm_info i;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&", to_spgemm_plan, &p))
        return NULL;
    spmv_spgemm_describe(p->made, &i, sizeof i);
    return Py_BuildValue("{s:s,s:s,s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:d}", "method", i.method, "why", i.why, "type",
                         spmv_type_name(i.type), "rows", (long long)i.rows, "cols", (long long)i.cols, "nnz",
                         (long long)i.nnz, "products", (long long)i.products, "bytes", (long long)i.bytes,
                         "working_bytes", (long long)i.working_bytes, "seconds", i.seconds);
}

/* spgemm_values(plan, values of A, values of B, values of C): addresses in the context's memory. */
static PyObject *spgemm_values(PyObject *module, PyObject *arguments)
{
    object *p = NULL;
    unsigned long long a, b, c;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKK", to_spgemm_plan, &p, &a, &b, &c) ||
        !context_begin(p->context, true, &state))
        return NULL;
    return context_end(p->context, state, spmv_spgemm_values(p->made, address(a), address(b), address(c)))
               ? Py_NewRef(Py_None)
               : NULL;
}

/* A transpose with ascending columns; twice it sorts the columns of a matrix. */
static PyObject *transpose(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr a;
    spmv_matrix *matrix = NULL;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&O&", to_context, &c, to_csr, &a) || !context_begin(c, true, &state))
        return NULL;
    if (!context_end(c, state, spmv_matrix_transpose(c->ctx, &a, &matrix)))
        return NULL;
    return object_new(c, KIND_MATRIX, matrix, NULL);
}

PyMethodDef matrix_methods[] = {{"matrix_check", matrix_check, METH_VARARGS, NULL},
                                {"index_check", index_check, METH_VARARGS, NULL},
                                {"matrix_view", view, METH_VARARGS, NULL},
                                {"matrix_read", read_matrix, METH_VARARGS, NULL},
                                {"matrix_generate", generate, METH_VARARGS, NULL},
                                {"matrix_write", write_matrix, METH_VARARGS, NULL},
                                {"matrix_spgemm", spgemm_matrices, METH_VARARGS, NULL},
                                {"spgemm_plan", spgemm_plan, METH_VARARGS, NULL},
                                {"spgemm_pattern", spgemm_pattern, METH_VARARGS, NULL},
                                {"spgemm_info", spgemm_info, METH_VARARGS, NULL},
                                {"spgemm_values", spgemm_values, METH_VARARGS, NULL},
                                {"matrix_transpose", transpose, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
