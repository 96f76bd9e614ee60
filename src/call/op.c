/* op.c — ops called from C: overloads, defaults, tensors made of DLTensors, results that live until the thread's next call. */
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"

/* ---------------------------------------------------------------- one call ---- */

jtn_status jtn__op_run(const jtn_op *op, jtn_call_arena *arena, const jtn_value *args, jtn_value *result)
{
    *result = (jtn_value){0};
    return __builtin_expect(op->call(op->closure, arena, args, result) == 0, 1) ? JTN_OK : JTN_ERROR_CALL;
}

/* ---------------------------------------------------------------- arguments from C ---- */

static void destroy_borrowed(jtn_tensor_box *box)
{
    jtn__free(box);
}

/* DLTensors become boxes, whose memory stays the caller's. */
static jtn_status box_tensor(const DLTensor *dl, jtn_value *out)
{
    jtn_tensor_box *box = jtn__alloc(sizeof *box);

    if (!box)
        return JTN_ERROR_MEMORY;
    box->head.dl = *dl;
    box->head.refcount = 1;
    box->destroy = destroy_borrowed;
    if (jtn__tensor_box_finish(box) != JTN_OK) {
        jtn__free(box);
        return JTN_ERROR_ARGUMENT;
    }
    *out = (jtn_value){.kind = JTN_TENSOR};
    out->as.t = &box->head;
    return JTN_OK;
}

static bool suits(const jtn_op *op, const jtn_value *args, size_t count)
{
    if (count > op->param_count)
        return false;
    for (size_t i = 0; i < op->param_count; i++)
        if (i < count ? !jtn__op_accepts(&op->params[i].type, &args[i]) : !op->params[i].has_default)
            return false;
    return true;
}

static jtn_status explain(const jtn_function *fn, const jtn_value *args, size_t count)
{
    const jtn_op *op = fn->op;
    jtn_status status;
    jtn_buf text;
    size_t i = 0;

    jtn__buf_init(&text, 0);
    while (i < count && i < op->param_count && jtn__op_accepts(&op->params[i].type, &args[i]))
        i++;
    if (op->next || i >= op->param_count || i >= count) {
        jtn__buf_printf(&text, "%s cannot be called with %zu argument%s: %s", fn->name, count, count == 1 ? "" : "s",
                        fn->signature);
    } else {
        jtn__buf_printf(&text, "%s: argument %zu (%s): expected %s, got ", fn->name, i + 1, op->params[i].name,
                        op->params[i].text);
        jtn__value_describe(&text, &args[i]);
    }
    status = jtn__fail(JTN_ERROR_ARGUMENT, "%s", text.failed == JTN_OK ? text.data : "an argument does not fit");
    jtn__buf_deinit(&text);
    return status;
}

/* ---------------------------------------------------------------- results ---- */

/* What the last result of a thread pointed to. */
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void kept_free(void *arena)
{
    jtn__call_arena_deinit(arena);
    jtn__free(arena);
}

static void kept_init(void)
{
    pthread_key_create(&kept_key, kept_free);
}

static jtn_status keep(jtn_call_arena *arena)
{
    jtn_call_arena *kept;

    pthread_once(&kept_once, kept_init);
    kept = pthread_getspecific(kept_key);
    if (!kept && arena->blocks && (kept = jtn__alloc(sizeof *kept)))
        pthread_setspecific(kept_key, kept);
    if (!kept)
        return arena->blocks ? JTN_ERROR_MEMORY : JTN_OK;
    jtn__call_arena_deinit(kept);
    *kept = *arena;
    arena->blocks = NULL;
    return JTN_OK;
}

static jtn_status run(jtn_function *fn, const jtn_op *op, const jtn_value *args, size_t count, jtn_value *result)
{
    jtn_value *values = jtn__alloc((op->param_count + 1) * sizeof *values);
    jtn_call_arena arena = {0};
    const char *message = NULL;
    jtn_status status = values ? JTN_OK : JTN_ERROR_MEMORY;

    for (size_t i = 0; status == JTN_OK && i < op->param_count; i++) {
        values[i] = i < count ? args[i] : op->params[i].default_value;
        if (values[i].kind == JTN_DLTENSOR)
            status = box_tensor(args[i].as.dl, &values[i]);
    }
    if (status == JTN_OK && (status = jtn__op_run(op, &arena, values, result)) != JTN_OK) {
        jtn__call_raise(&message);
        status =
            jtn__fail(JTN_ERROR_CALL, "%s: %s", fn->name, message && *message ? message : "it failed without a reason");
    }
    for (size_t i = 0; values && i < op->param_count && i < count; i++)
        if (args[i].kind == JTN_DLTENSOR && values[i].kind == JTN_TENSOR)
            jtn__abi.tensor_release(values[i].as.t);
    if (status == JTN_OK)
        status = keep(&arena);
    jtn__call_arena_deinit(&arena);
    jtn__free(values);
    return status;
}

jtn_status jtn__op_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result)
{
    for (const jtn_op *op = fn->op; op; op = op->next)
        if (suits(op, args, count))
            return run(fn, op, args, count, result);
    return explain(fn, args, count);
}
