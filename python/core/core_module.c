/* The module spmv._core.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

static bool add_types(PyObject *module)
{
    PyObject *types = PyDict_New();
    bool well = types != NULL;
#define ADD(NAME, name, value, ctype, CLASS, ARG)                                                                      \
    if (well) {                                                                                                        \
        PyObject *number = PyLong_FromLong(SPMV_##NAME);                                                               \
        well = number != NULL && PyDict_SetItemString(types, #name, number) == 0;                                      \
        Py_XDECREF(number);                                                                                            \
    }
    SPMV_TYPES(ADD, )
    SPMV_COMPLEX_TYPES(ADD, )
    SPMV_HALF_TYPES(ADD, )
#undef ADD
    well = well && PyModule_AddObjectRef(module, "TYPES", types) == 0;
    Py_XDECREF(types);
    return well;
}

static int fill(PyObject *module)
{
    PyMethodDef *const all[] = {context_methods,  product_methods, matrix_methods, solve_methods, primitive_methods,
                                exchange_methods, group_methods,   jax_methods,    batch_methods};
    bool well = core_types_make(module) && add_types(module) &&
                PyModule_AddStringConstant(module, "VERSION", spmv_version()) == 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && well; i++)
        well = PyModule_AddFunctions(module, all[i]) == 0;
    return well ? 0 : -1;
}

/* The name that Python loads. */
PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "spmv._core", .m_doc = "The library spmv.",
                                     .m_slots = slots};
    return PyModuleDef_Init(&definition);
}
