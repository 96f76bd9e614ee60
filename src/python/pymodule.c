/* pymodule.c — the bridge's start-up, exceptions, modules, and the import of a copied file. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "python/convert.h"

static PyObject *classes; /* a dict: exception classes and the module class, by name */
static PyObject *helpers; /* jitney._tensors, imported when first needed */
static jtn_runtime *runtime;

/* ---------------------------------------------------------------- exceptions ---- */

PyObject *jtn__py_class(jtn_status status)
{
    static const char *const names[] = {
#define NAME(name, value, text, exception, code) exception,
        JTN_STATUS_LIST(NAME)
#undef NAME
    };
    size_t at = (size_t)status < sizeof names / sizeof *names ? (size_t)status : JTN_ERROR_INTERNAL;
    PyObject *found = classes && names[at][0] ? PyDict_GetItemString(classes, names[at]) : NULL;

    return found ? found : status == JTN_ERROR_MEMORY ? PyExc_MemoryError : PyExc_RuntimeError;
}

PyObject *jtn__py_raise(jtn_status status)
{
    PyErr_SetString(jtn__py_class(status), jtn__error_message());
    return NULL;
}

PyObject *jtn__py_helper(const char *name)
{
    PyObject *helper;

    if (!helpers && !(helpers = PyImport_ImportModule("jitney._tensors")))
        return NULL;
    helper = PyObject_GetAttrString(helpers, name);
    py_drop(helper); /* the module keeps it */
    return helper;
}

/* ---------------------------------------------------------------- start-up ---- */

/* Where the type of an object stands differs between builds of Python: looked for, in an object whose type is known. */
static int calibrate(void)
{
    static const size_t offsets[] = {8, 24};
    PyObject *probe = PyFloat_FromDouble(1.0);

    for (size_t i = 0; probe && i < sizeof offsets / sizeof *offsets; i++)
        if (*(void **)(void *)((char *)probe + offsets[i]) == (void *)&PyFloat_Type) {
            jtn__py_type_offset = offsets[i];
            jtn__py_head_size = offsets[i] + sizeof(void *);
            Py_DecRef(probe);
            return 0;
        }
    py_drop(probe);
    PyErr_Format(PyExc_RuntimeError, "this Python's objects are of a form that Jitney does not know");
    return -1;
}

void *jtn_python_init(jtn_runtime *rt, void *given)
{
    union {
        void *(*function)(void);
        void *pointer;
    } import = {.function = jtn_python_import};

    if (!PyCapsule_New || !Py_IsInitialized || !Py_IsInitialized())
        return NULL;
    if (classes) /* a second time: the classes of a reloaded package */
        Py_DecRef(classes);
    classes = py_ref(given);
    if (!runtime && (calibrate() != 0 || jtn__py_kernel_types() != 0))
        return NULL;
    runtime = rt;
    jtn__framework_install();
    return PyCapsule_New(import.pointer, "jitney._import_api", NULL);
}

/* ---------------------------------------------------------------- modules ---- */

void *jtn_python_function(jtn_module *mod, jtn_function *fn)
{
    return fn->kind == JTN_FUNCTION_KERNEL ? jtn__py_kernel(mod, fn) : jtn__py_op(mod, fn);
}

static int set(PyObject *module, const char *name, PyObject *value)
{
    int failed = !value || PyObject_SetAttrString(module, name, value) != 0;

    py_drop(value);
    return failed ? -1 : 0;
}

static void capsule_free(PyObject *capsule)
{
    jtn__module_release(PyCapsule_GetPointer(capsule, "jitney.module"));
}

/* A kernel in a namespace is an attribute by its last part too, when that is free. */
static int add_functions(PyObject *module, jtn_module *mod)
{
    for (size_t i = 0; i < mod->function_count; i++) {
        const char *name = mod->functions[i]->name,
                   *last = strstr(name, "::") && !strpbrk(name, "<(") ? strrchr(name, ':') + 1 : NULL;
        PyObject *object = jtn_python_function(mod, mod->functions[i]);

        if (!object)
            return -1;
        if (last && jtn__module_lookup(mod, last) == mod->functions[i] &&
            PyObject_SetAttrString(module, last, object) != 0)
            return -1;
        if (set(module, name, object) != 0)
            return -1;
    }
    return 0;
}

static int fill_module(PyObject *module, jtn_module *mod)
{
    for (size_t i = 0; i < mod->value_count; i++)
        if (set(module, mod->values[i].name, jtn__to_python(NULL, &mod->values[i].value)) != 0)
            return -1;
    if (add_functions(module, mod) != 0)
        return -1;
    if (mod->path[0] && set(module, "__file__", PyUnicode_FromString(mod->path)) != 0)
        return -1;
    if (mod->doc && set(module, "__doc__", PyUnicode_FromString(mod->doc)) != 0)
        return -1;
    return set(module, "_handle", PyLong_FromUnsignedLongLong((uintptr_t)mod));
}

void *jtn_python_module(jtn_module *mod, const char *import_name)
{
    PyObject *type = classes ? PyDict_GetItemString(classes, "Module") : NULL;
    PyObject *capsule = type ? PyCapsule_New(mod, "jitney.module", capsule_free) : NULL;
    PyObject *module;

    if (!capsule) {
        jtn__module_release(mod);
        return type ? NULL : PyErr_Format(PyExc_RuntimeError, "the jitney package is not imported");
    }
    module = PyObject_CallFunction(type, "s", import_name);
    if (module && (PyObject_SetAttrString(module, "_capsule", capsule) != 0 || fill_module(module, mod) != 0)) {
        py_drop(module);
        module = NULL;
    }
    Py_DecRef(capsule);
    return module;
}

/* ---------------------------------------------------------------- import of a copied file ---- */

/* Py_mod_create: called by Python's import with the file's spec. */
static PyObject *create(PyObject *spec, void *def)
{
    PyObject *name = PyObject_GetAttrString(spec, "name"),
             *origin = name ? PyObject_GetAttrString(spec, "origin") : NULL;
    const char *name_text = origin ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *path = name_text ? PyUnicode_AsUTF8AndSize(origin, NULL) : NULL;
    PyObject *module = NULL;
    jtn_module *mod = NULL;
    jtn_status status;

    if (path) {
        status = jtn_module_open(runtime, path, &mod);
        module = status == JTN_OK ? jtn_python_module(mod, name_text) : jtn__py_raise(status);
    }
    py_drop(name);
    py_drop(origin);
    return module;
}

/* A module definition that all files share. Its head is as large as this Python's objects' heads. */
void *jtn_python_import(void)
{
    static PyModuleDef_Slot slots[] = {{Py_mod_create, create}, {0, NULL}};
    static union {
        char bytes[256];
        void *align;
    } definition;
    struct { /* what follows PyModuleDef_Base */
        const char *name, *doc;
        Py_ssize_t size;
        void *methods;
        PyModuleDef_Slot *slots;
    } rest = {"jitney module", NULL, 0, NULL, slots};

    /* the base is a head, an init function, an index and a copy */
    memcpy(definition.bytes + jtn__py_head_size + 3 * sizeof(void *), &rest, sizeof rest);
    return PyModuleDef_Init(&definition);
}
