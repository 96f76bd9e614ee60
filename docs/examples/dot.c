/* dot.c — a plain C function, compiled at run time and called through its prototype.
 *
 *     cc dot.c $(pkg-config --cflags --libs jitney) -o dot && ./dot
 *
 * Run it twice: the second time nothing is compiled, the result comes from the cache. */
#include <stdio.h>

#include <jitney/jitney.h>

#define PROTOTYPE "float dot(const float *a, const float *b, int n)"

static const char source[] = PROTOTYPE "\n"
                             "{\n"
                             "    float sum = 0;\n"
                             "\n"
                             "    for (int i = 0; i < n; i++)\n"
                             "        sum += a[i] * b[i];\n"
                             "    return sum;\n"
                             "}\n";

static int complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, jtn_last_error());
    return 1;
}

/* A unit says what to compile; it is not needed any more once it is loaded. */
static jtn_status load(jtn_runtime *rt, jtn_module **mod)
{
    jtn_unit *unit = NULL;
    jtn_status status = jtn_unit_new(rt, "example_dot", &unit);

    if (status == JTN_OK)
        status = jtn_unit_add_text(unit, "dot.c", source, JTN_WHOLE);
    if (status == JTN_OK)
        status = jtn_unit_add_function(unit, PROTOTYPE, "Scalar product of two vectors");
    if (status == JTN_OK)
        status = jtn_load(rt, unit, mod);
    jtn_unit_free(unit);
    return status;
}

static int run(jtn_module *mod)
{
    float a[] = {1, 2, 3}, b[] = {4, 5, 6};
    jtn_value args[] = {jtn_ptr(a), jtn_ptr(b), jtn_int(3)}, result;
    jtn_function *dot;

    if (jtn_module_find(mod, "dot", &dot) != JTN_OK || jtn_call(dot, args, 3, &result) != JTN_OK)
        return complain("dot");
    printf("%s, %s: %g\n", jtn_function_signature(dot), jtn_module_origin(mod), result.as.d);

    /* An argument that does not fit is refused before anything runs. */
    args[2] = jtn_float(2.5);
    if (jtn_call(dot, args, 3, &result) == JTN_ERROR_ARGUMENT)
        printf("refused: %s\n", jtn_last_error());
    return 0;
}

int main(void)
{
    jtn_runtime *rt = NULL;
    jtn_module *mod = NULL;
    int code = 1;

    if (jtn_open(NULL, &rt) != JTN_OK || load(rt, &mod) != JTN_OK)
        complain("dot.c");
    else
        code = run(mod);
    jtn_module_close(mod);
    jtn_close(rt);
    return code;
}
