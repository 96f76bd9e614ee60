/* stub.c — what makes a module's file importable: `import demo` with demo.so copied anywhere.
 *
 * The linker gives jtn_ext_pyinit the name PyInit_<module>. It imports the jitney package, takes the library's import
 * function from the capsule the package publishes, and returns what that gives: a module definition that opens the file
 * Python is importing; everything else is in that file's trailer. Compiled once, when Jitney is built, and linked into
 * every module; it needs nothing but the Python that is already running, and outside of Python it is never called. */
#include <stddef.h>

#define WEAK __attribute__((weak))

/* Weak, so that the file also loads where there is no Python. */
extern WEAK void *PyImport_ImportModule(const char *name);
extern WEAK void *PyCapsule_Import(const char *name, int no_block);
extern WEAK void Py_DecRef(void *object);

void *jtn_ext_pyinit(void);

__attribute__((visibility("default"))) void *jtn_ext_pyinit(void)
{
    void *(*import_file)(void);
    void *package = PyImport_ImportModule("jitney");

    if (!package)
        return NULL; /* "No module named 'jitney'" */
    Py_DecRef(package);
    *(void **)&import_file = PyCapsule_Import("jitney._import_api", 0);
    return import_file ? import_file() : NULL;
}
