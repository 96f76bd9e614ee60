/* cxx_find.c — the host compiler: where it is, and what it is.
 *
 * What it is: the contents of its driver, of the compiler proper that the driver starts, of assembler and linker, and the C
 * library's version. Reading those takes tens of milliseconds, so the answer is kept in the cache with the files' ids: a warm
 * call is one small read and a few stats. */
#include "compile/cxx_private.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/wire.h"
#include "model/options.h"

static const char *const default_names[] = {"c++", "g++", "clang++"};
static const char *const tool_names[] = {"cc1plus", "cc1", "as", "ld"};

/* A value of JITNEY_CXX or CXX: a path, or a command with arguments. */
static jtn_status take_value(const char *value, jtn_list *command)
{
    jtn_list words = {0};
    char *program = NULL;
    jtn_status status;

    if (jtn__process_find(value, &program) == JTN_OK) {
        status = jtn__list_add_take(command, program);
        return status;
    }
    JTN_GO(jtn__options_split(value, &words));
    if (!words.count) {
        status = jtn__fail(JTN_ERROR_NOT_FOUND, "it is empty");
        goto out;
    }
    JTN_GO(jtn__process_find(words.items[0], &program));
    JTN_GO(jtn__list_add_take(command, program));
    for (size_t i = 1; i < words.count; i++)
        JTN_GO(jtn__list_add(command, words.items[i]));
out:
    jtn__list_deinit(&words);
    return status;
}

static jtn_status find_command(jtn_list *command)
{
    static const char *const variables[] = {"JITNEY_CXX", "CXX"};
    char *program;

    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);

        if (!value || !*value)
            continue;
        if (take_value(value, command) == JTN_OK)
            return JTN_OK;
        return jtn__fail(JTN_ERROR_TOOL, "%s=%s names no C++ compiler: %s; unset it or name one that exists",
                         variables[i], value, jtn__error_message());
    }
    for (size_t i = 0; i < sizeof default_names / sizeof *default_names; i++)
        if (jtn__process_find(default_names[i], &program) == JTN_OK)
            return jtn__list_add_take(command, program);
    return jtn__fail(
        JTN_ERROR_TOOL,
        "no C++ compiler was found: looked for c++, g++ and clang++ in PATH (%s); install one (apt install g++) "
        "or name it with JITNEY_CXX",
        getenv("PATH") ? getenv("PATH") : "not set");
}

jtn_status jtn__cxx_find(jtn_cxx **out)
{
    jtn_cxx *cxx = jtn__alloc(sizeof *cxx);
    jtn_status status = cxx ? find_command(&cxx->command) : JTN_ERROR_MEMORY;

    if (status != JTN_OK) {
        if (cxx)
            jtn__list_deinit(&cxx->command);
        jtn__free(cxx);
        return status;
    }
    pthread_mutex_init(&cxx->lock, NULL);
    *out = cxx;
    return JTN_OK;
}

void jtn__cxx_free(jtn_cxx *cxx)
{
    if (!cxx)
        return;
    jtn__pch_wait(-1);
    jtn__list_deinit(&cxx->command);
    pthread_mutex_destroy(&cxx->lock);
    jtn__free(cxx);
}

const char *jtn__cxx_path(const jtn_cxx *cxx)
{
    return cxx->command.items[0];
}

/* ---------------------------------------------------------------- identity ---- */

/* Full path of a tool as the driver would start it; *out NULL when it has none of its own. */
static jtn_status ask_tool(const jtn_cxx *cxx, const char *tool, char **out)
{
    jtn_list argv = {0};
    jtn_buf text;
    int exit_code = 0;
    jtn_status status;

    *out = NULL;
    jtn__buf_init(&text, 1 << 16);
    JTN_GO(jtn__list_add_all(&argv, &cxx->command));
    JTN_GO(jtn__list_addf(&argv, "-print-prog-name=%s", tool));
    JTN_GO(jtn__process_run(argv.items, NULL, 60000, &text, &exit_code));
    if (exit_code != 0 || !text.size)
        goto out;
    text.data[strcspn(text.data, "\r\n")] = 0;
    if (jtn__process_find(text.data, out) != JTN_OK)
        *out = NULL;
out:
    jtn__list_deinit(&argv);
    jtn__buf_deinit(&text);
    return status;
}

/* The files that make up the compiler. */
static jtn_status list_files(const jtn_cxx *cxx, jtn_list *files, bool *gnu)
{
    for (size_t i = 0; i < cxx->command.count; i++) {
        char *program;

        if (cxx->command.items[i][0] == '-' || jtn__process_find(cxx->command.items[i], &program) != JTN_OK)
            continue;
        JTN_TRY(jtn__list_add_take(files, program));
    }
    *gnu = false;
    for (size_t i = 0; i < sizeof tool_names / sizeof *tool_names; i++) {
        char *tool;

        JTN_TRY(ask_tool(cxx, tool_names[i], &tool));
        if (tool) {
            *gnu |= i == 0;
            JTN_TRY(jtn__list_add_take(files, tool));
        }
    }
    return JTN_OK;
}

static jtn_status digest_files(const jtn_cxx *cxx, const jtn_list *files, jtn_digest *out)
{
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "C library", gnu_get_libc_version());
    for (size_t i = 1; i < cxx->command.count; i++)
        jtn__hash_text(&hash, "argument", cxx->command.items[i]);
    for (size_t i = 0; i < files->count; i++) {
        jtn_digest digest;

        JTN_TRY(jtn__file_digest(files->items[i], &digest));
        jtn__hash_field(&hash, "file", digest.bytes, sizeof digest.bytes);
    }
    jtn__hash_final(&hash, out);
    return JTN_OK;
}

/* The memo's name: the command as found. Who finds another compiler under the same path is told by the files' ids. */
static void memo_name(const jtn_cxx *cxx, jtn_digest *out)
{
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "format", "cxx 1");
    jtn__hash_text(&hash, "C library", gnu_get_libc_version());
    jtn__hash_text(&hash, "PATH", getenv("PATH"));
    for (size_t i = 0; i < cxx->command.count; i++)
        jtn__hash_text(&hash, "command", cxx->command.items[i]);
    jtn__hash_final(&hash, out);
}

static bool recall(jtn_cxx *cxx, jtn_cache *cache, const jtn_digest *name)
{
    jtn_buf bytes;
    bool found = false, same;
    jtn_reader r;
    jtn_view digest;
    uint8_t gnu;

    jtn__buf_init(&bytes, 1 << 20);
    if (jtn__memo_get(cache, "cxx", name, &bytes, &found) != JTN_OK || !found) {
        jtn__buf_deinit(&bytes);
        return false;
    }
    r = (jtn_reader){.data = bytes.data, .size = bytes.size};
    gnu = jtn__get_u8(&r);
    digest = jtn__get_bytes(&r);
    same = digest.size == sizeof cxx->identity.bytes;
    for (uint32_t count = jtn__get_count(&r, 16); same && count-- > 0;) {
        jtn_view path = jtn__get_bytes(&r), id = jtn__get_bytes(&r);
        jtn_file_id now;

        same = !r.bad && path.size && jtn__file_id(path.data, &now) == JTN_OK && id.size == sizeof now &&
               memcmp(id.data, &now, sizeof now) == 0;
    }
    if (same && !r.bad) {
        memcpy(cxx->identity.bytes, digest.data, sizeof cxx->identity.bytes);
        cxx->gnu = gnu;
    }
    same = same && !r.bad;
    jtn__buf_deinit(&bytes);
    return same;
}

static void remember(const jtn_cxx *cxx, jtn_cache *cache, const jtn_digest *name, const jtn_list *files)
{
    jtn_buf bytes;

    jtn__buf_init(&bytes, 1 << 20);
    jtn__put_u8(&bytes, cxx->gnu);
    jtn__put_bytes(&bytes, cxx->identity.bytes, sizeof cxx->identity.bytes);
    jtn__put_u32(&bytes, (uint32_t)files->count);
    for (size_t i = 0; i < files->count; i++) {
        jtn_file_id id;

        if (jtn__file_id(files->items[i], &id) != JTN_OK || jtn__file_id_racy(&id))
            goto out; /* a change could go unseen: ask again next time */
        jtn__put_bytes(&bytes, files->items[i], strlen(files->items[i]) + 1);
        jtn__put_bytes(&bytes, &id, sizeof id);
    }
    if (bytes.failed == JTN_OK)
        (void)jtn__memo_put(cache, "cxx", name, (jtn_view){bytes.data, bytes.size});
out:
    jtn__buf_deinit(&bytes);
}

static jtn_status identify(jtn_cxx *cxx, jtn_cache *cache)
{
    jtn_digest name;
    jtn_list files = {0};
    jtn_status status = JTN_OK;

    memo_name(cxx, &name);
    if (cache && recall(cxx, cache, &name))
        return JTN_OK;
    JTN_GO(list_files(cxx, &files, &cxx->gnu));
    JTN_GO(digest_files(cxx, &files, &cxx->identity));
    if (cache)
        remember(cxx, cache, &name, &files);
out:
    jtn__list_deinit(&files);
    return status;
}

jtn_status jtn__cxx_identity(jtn_cxx *cxx, jtn_cache *cache, jtn_digest *out)
{
    jtn_status status = JTN_OK;

    pthread_mutex_lock(&cxx->lock);
    if (!cxx->identified)
        status = identify(cxx, cache);
    cxx->identified |= status == JTN_OK;
    if (status == JTN_OK)
        *out = cxx->identity;
    pthread_mutex_unlock(&cxx->lock);
    return status;
}
