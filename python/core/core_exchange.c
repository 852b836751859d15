/* DLPack: arrays of other libraries as addresses, and memory of the library for them.
 *
 * Source of the structs: the DLPack specification, version 0.8 ("dltensor" capsules), which every
 * library still reads and writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *manager;
    void (*deleter)(struct dl_managed *);
};

static const char fresh[] = "dltensor", used[] = "used_dltensor";

/* ------------------------------------------------------------------ import */

static void drop_import(PyObject *capsule)
{
    struct dl_managed *from = PyCapsule_GetPointer(capsule, "spmv");
    if (from != NULL && from->deleter != NULL)
        from->deleter(from);
}

static PyObject *numbers_of(const int64_t *from, int n)
{
    if (from == NULL)
        return Py_NewRef(Py_None);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n && tuple != NULL; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromLongLong(from[i]));
    return tuple;
}

/* dlpack_import(capsule): (keep, address, shape, strides, code, bits, device type, device number).
 * The array lives as long as keep. */
static PyObject *dlpack_import(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct dl_managed *from = PyCapsule_GetPointer(capsule, fresh);
    if (from == NULL)
        return NULL;
    PyObject *keep = PyCapsule_New(from, "spmv", drop_import);
    if (keep == NULL)
        return NULL;
    PyCapsule_SetName(capsule, used); /* the new capsule owns the array */
    const struct dl_tensor *t = &from->tensor;
    if (t->dtype.lanes != 1) {
        Py_DECREF(keep);
        PyErr_SetString(PyExc_TypeError, "an array of vector types");
        return NULL;
    }
    return Py_BuildValue("NKNNiiii", keep, (unsigned long long)((uintptr_t)t->data + t->byte_offset),
                         numbers_of(t->shape, t->ndim), numbers_of(t->strides, t->ndim), (int)t->dtype.code,
                         (int)t->dtype.bits, (int)t->device.type, (int)t->device.id);
}

/* ------------------------------------------------------------------ export */

struct exported {
    struct dl_managed managed;
    PyObject *owner;
    int64_t numbers[4]; /* shape, then strides */
};

static void drop_export(struct dl_managed *managed)
{
    struct exported *e = managed->manager;
    if (Py_IsInitialized()) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(e->owner);
        PyGILState_Release(gil);
    }
    free(e);
}

static void drop_capsule(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, fresh))
        return; /* a consumer has taken the array */
    struct dl_managed *managed = PyCapsule_GetPointer(capsule, fresh);
    managed->deleter(managed);
}

/* dlpack_export(owner, address, rows, columns, code, bits, device type, device number): a capsule
 * of an array in C order, with one dimension if columns is 0. */
static PyObject *dlpack_export(PyObject *module, PyObject *arguments)
{
    PyObject *owner = NULL;
    unsigned long long data;
    long long rows, columns;
    int code, bits, device, number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OKLLiiii", &owner, &data, &rows, &columns, &code, &bits, &device, &number))
        return NULL;
    struct exported *e = calloc(1, sizeof *e);
    if (e == NULL)
        return PyErr_NoMemory();
    const bool flat = columns == 0;
    e->numbers[0] = rows;
    e->numbers[1] = columns;
    e->numbers[2] = flat ? 1 : columns;
    e->numbers[3] = 1;
    struct dl_tensor *t = &e->managed.tensor;
    t->data = address(data);
    t->device.type = device;
    t->device.id = number;
    t->ndim = flat ? 1 : 2;
    t->dtype.code = (uint8_t)code;
    t->dtype.bits = (uint8_t)bits;
    t->dtype.lanes = 1;
    t->shape = e->numbers;
    t->strides = e->numbers + 2;
    e->managed.manager = e;
    e->managed.deleter = drop_export;
    e->owner = Py_NewRef(owner);
    PyObject *capsule = PyCapsule_New(&e->managed, fresh, drop_capsule);
    if (capsule == NULL)
        drop_export(&e->managed);
    return capsule;
}

PyMethodDef exchange_methods[] = {{"dlpack_import", dlpack_import, METH_O, NULL},
                                  {"dlpack_export", dlpack_export, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
