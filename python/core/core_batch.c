/* Batches of systems with one pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

/* batch(context, pattern, (solver, precond, type, rtol, atol, iterations, restart)) */
static PyObject *batch_new(PyObject *module, PyObject *arguments)
{
    context *c = NULL;
    spmv_csr pattern;
    spmv_batch_options o;
    int type;
    long long iterations;
    call_state state;
    spmv_batch *made = NULL;
    (void)module;
    spmv_batch_options_init(&o, sizeof o);
    if (!PyArg_ParseTuple(arguments, "O&O&(ssiddLi)", to_context, &c, to_csr, &pattern, &o.solver, &o.precond, &type,
                          &o.rtol, &o.atol, &iterations, &o.restart) ||
        !context_begin(c, true, &state))
        return NULL;
    o.type = (spmv_type)type;
    o.max_iterations = iterations;
    return context_end(c, state, spmv_batch_create(c->ctx, &pattern, &o, &made))
               ? object_new(c, KIND_BATCH, made, Py_None)
               : NULL;
}

static spmv_status use_stream(const object *batch, unsigned long long stream)
{
    return stream != 0 ? spmv_context_set_stream(batch->context->ctx, address(stream)) : SPMV_OK;
}

/* batch_apply(batch, values, x, y, count, stream): addresses in the context's memory */
static PyObject *batch_apply(PyObject *module, PyObject *arguments)
{
    object *batch = NULL;
    unsigned long long values, x, y, stream;
    long long count;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKKLK", to_batch, &batch, &values, &x, &y, &count, &stream) ||
        !context_begin(batch->context, true, &state))
        return NULL;
    spmv_status st = use_stream(batch, stream);
    if (st == SPMV_OK)
        st = spmv_batch_apply(batch->made, address(values), address(x), address(y), count);
    return context_end(batch->context, state, st) ? Py_NewRef(Py_None) : NULL;
}

/* The members of the results as rows of integers (iterations, restarts) and of reals. */
static PyObject *list_results(const spmv_batch_result *results, long long count, int64_t *integers, double *reals)
{
    PyObject *const names = PyList_New(0);
    for (long long k = 0; k < count && names != NULL; k++) {
        const spmv_batch_result *const r = &results[k];
        PyObject *const name = PyUnicode_InternFromString(spmv_status_name(r->status));
        if (name == NULL || PyList_Append(names, name) != 0) {
            Py_XDECREF(name);
            Py_DECREF(names);
            return NULL;
        }
        Py_DECREF(name);
        integers[k] = r->iterations;
        integers[count + k] = r->restarts;
        reals[k] = r->norm_b;
        reals[count + k] = r->tolerance;
        reals[2 * count + k] = r->recurrence_residual;
        reals[3 * count + k] = r->true_residual;
    }
    return names;
}

/* batch_solve(batch, values, b, x, count, stream, integers, reals): (names of the statuses, message). integers,
 * reals: addresses of 2 and 4 rows of count numbers in host memory. An exception if nothing was solved. */
static PyObject *batch_solve(PyObject *module, PyObject *arguments)
{
    object *batch = NULL;
    unsigned long long values, b, x, stream, integers, reals;
    long long count;
    call_state state;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&KKKLKKK", to_batch, &batch, &values, &b, &x, &count, &stream, &integers,
                          &reals))
        return NULL;
    context *const c = batch->context;
    spmv_batch_result *const results = calloc((size_t)count + 1, sizeof *results);
    if (results == NULL)
        return PyErr_NoMemory();
    if (!context_begin(c, true, &state)) {
        free(results);
        return NULL;
    }
    spmv_status st = use_stream(batch, stream);
    if (st == SPMV_OK)
        st = spmv_batch_solve(batch->made, address(values), address(b), address(x), count, results, sizeof *results);
    char *const text = st != SPMV_OK ? strdup(spmv_last_error(c->ctx)) : NULL;
    const bool solved = st == SPMV_OK || (count > 0 && results[0].size > 0);
    PyObject *names = NULL;
    if (!solved)
        context_end(c, state, st);
    else if (context_end(c, state, SPMV_OK))
        names = list_results(results, count, address(integers), address(reals));
    PyObject *const made = names != NULL ? Py_BuildValue("(Ns)", names, text != NULL ? text : "") : NULL;
    free(text);
    free(results);
    return made;
}

PyMethodDef batch_methods[] = {{"batch", batch_new, METH_VARARGS, NULL},
                               {"batch_apply", batch_apply, METH_VARARGS, NULL},
                               {"batch_solve", batch_solve, METH_VARARGS, NULL},
                               {NULL, NULL, 0, NULL}};
