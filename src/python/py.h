/* py.h — CPython, as far as the bridge uses it. The only header that names it.
 *
 * Declared by hand and weak: the library has no dependency on a Python, loads in processes without one, and one build serves every
 * version from 3.9 on, free-threaded ones included. Only functions of the stable ABI are used, and no struct of Python's but the few
 * whose layout that ABI fixes; where a field must be read (an object's type), its offset is found out at start-up (pymodule.c). */
#ifndef JTN_PYTHON_PY_H
#define JTN_PYTHON_PY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PY __attribute__((weak)) extern

typedef ssize_t Py_ssize_t;
typedef struct _object PyObject;
typedef struct _typeobject PyTypeObject;

typedef struct {
    const char *name;
    void *function;
    int flags;
    const char *doc;
} PyMethodDef;
typedef struct {
    const char *name;
    int type;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;
typedef struct {
    const char *name;
    PyObject *(*get)(PyObject *self, void *closure);
    int (*set)(PyObject *self, PyObject *value, void *closure);
    const char *doc;
    void *closure;
} PyGetSetDef;
typedef struct {
    int slot;
    void *function;
} PyType_Slot;
typedef struct {
    const char *name;
    int basicsize, itemsize;
    unsigned flags;
    PyType_Slot *slots;
} PyType_Spec;
typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

enum { METH_VARARGS = 1, METH_NOARGS = 4, METH_KEYWORDS = 2, METH_FASTCALL = 0x80 };
enum { PyBUF_FULL_RO = 0x011c }; /* strides, format, read-only allowed */
enum { T_PYSSIZET = 19, READONLY = 1 };
enum { Py_mp_subscript = 5, Py_tp_call = 50, Py_tp_dealloc = 52, Py_tp_doc = 56, Py_tp_repr = 66, Py_tp_members = 72, Py_tp_getset = 73, Py_tp_methods = 64 };
enum { Py_mod_create = 1 };
#define Py_TPFLAGS_HAVE_VECTORCALL (1u << 11)
#define Py_TPFLAGS_DEFAULT (1u << 18)
#define Py_TPFLAGS_LONG_SUBCLASS (1ul << 24)
#define Py_TPFLAGS_LIST_SUBCLASS (1ul << 25)
#define Py_TPFLAGS_TUPLE_SUBCLASS (1ul << 26)
#define Py_TPFLAGS_BYTES_SUBCLASS (1ul << 27)
#define Py_TPFLAGS_UNICODE_SUBCLASS (1ul << 28)
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))

PY PyTypeObject PyFloat_Type, PyLong_Type, PyBool_Type, PyUnicode_Type, PyTuple_Type, PyList_Type;
PY PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
PY PyObject *PyExc_RuntimeError, *PyExc_TypeError, *PyExc_ValueError, *PyExc_IndexError, *PyExc_KeyError, *PyExc_NotImplementedError,
    *PyExc_MemoryError, *PyExc_ImportError, *PyExc_AttributeError, *PyExc_OverflowError, *PyExc_BufferError;

PY void Py_IncRef(PyObject *object);
PY void Py_DecRef(PyObject *object);
PY int Py_IsInitialized(void);
PY int PyGILState_Ensure(void);
PY void PyGILState_Release(int state);

PY PyObject *PyErr_Occurred(void);
PY void PyErr_Clear(void);
PY void PyErr_SetString(PyObject *type, const char *text);
PY PyObject *PyErr_Format(PyObject *type, const char *format, ...);
PY PyObject *PyErr_NoMemory(void);
PY int PyErr_ExceptionMatches(PyObject *type);

PY PyObject *PyLong_FromLongLong(long long value);
PY PyObject *PyLong_FromUnsignedLongLong(unsigned long long value);
PY long long PyLong_AsLongLongAndOverflow(PyObject *object, int *overflow);
PY long long PyLong_AsLongLong(PyObject *object);
PY unsigned long long PyLong_AsUnsignedLongLong(PyObject *object);
PY PyObject *PyFloat_FromDouble(double value);
PY double PyFloat_AsDouble(PyObject *object);
PY PyObject *PyNumber_Index(PyObject *object);
PY PyObject *PyUnicode_FromStringAndSize(const char *text, Py_ssize_t size);
PY PyObject *PyUnicode_FromString(const char *text);
PY PyObject *PyUnicode_InternFromString(const char *text);
PY const char *PyUnicode_AsUTF8AndSize(PyObject *object, Py_ssize_t *size);
PY int PyUnicode_Compare(PyObject *a, PyObject *b);
PY int PyBytes_AsStringAndSize(PyObject *object, char **bytes, Py_ssize_t *size);

PY PyObject *PyTuple_New(Py_ssize_t size);
PY Py_ssize_t PyTuple_Size(PyObject *tuple);
PY PyObject *PyTuple_GetItem(PyObject *tuple, Py_ssize_t index);
PY int PyTuple_SetItem(PyObject *tuple, Py_ssize_t index, PyObject *item);
PY PyObject *PyList_New(Py_ssize_t size);
PY Py_ssize_t PyList_Size(PyObject *list);
PY PyObject *PyList_GetItem(PyObject *list, Py_ssize_t index);
PY int PyList_SetItem(PyObject *list, Py_ssize_t index, PyObject *item);
PY PyObject *PyDict_New(void);
PY PyObject *PyDict_GetItemString(PyObject *dict, const char *key);
PY int PyDict_SetItemString(PyObject *dict, const char *key, PyObject *value);
PY PyObject *PySequence_Tuple(PyObject *object);

PY PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
PY int PyObject_SetAttrString(PyObject *object, const char *name, PyObject *value);
PY PyObject *PyObject_CallObject(PyObject *callable, PyObject *args);
PY PyObject *PyObject_CallFunction(PyObject *callable, const char *format, ...);
PY PyObject *PyObject_CallMethod(PyObject *object, const char *name, const char *format, ...);
PY int PyObject_IsTrue(PyObject *object);
PY int PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PY void PyBuffer_Release(Py_buffer *view);
PY unsigned long PyType_GetFlags(PyTypeObject *type);
PY PyObject *PyType_FromSpec(PyType_Spec *spec);
PY PyObject *PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t items);
PY void PyObject_Free(void *memory);
PY void PyObject_ClearWeakRefs(PyObject *object);
PY PyObject *PyVectorcall_Call(PyObject *callable, PyObject *args, PyObject *kwargs);

PY PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *capsule));
PY void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
PY PyObject *PyCFunction_NewEx(PyMethodDef *method, PyObject *self, PyObject *module);
PY PyObject *PyImport_ImportModule(const char *name);
PY PyObject *PyImport_GetModuleDict(void);
PY PyObject *PyModuleDef_Init(void *def);

#define Py_None (&_Py_NoneStruct)
#define Py_True (&_Py_TrueStruct)
#define Py_False (&_Py_FalseStruct)

/* Where an object's type stands, and where its own fields begin: found out by jtn_python_init. */
extern __attribute__((visibility("hidden"))) size_t jtn__py_type_offset, jtn__py_head_size;

static inline PyTypeObject *py_type(PyObject *object)
{
    return *(PyTypeObject **)(void *)((char *)object + jtn__py_type_offset);
}

static inline void *py_fields(PyObject *object)
{
    return (char *)object + jtn__py_head_size;
}

static inline PyObject *py_ref(PyObject *object)
{
    Py_IncRef(object);
    return object;
}

static inline void py_drop(PyObject *object)
{
    if (object)
        Py_DecRef(object);
}

#endif
