/* cxx_flags.c — the host compiler's command line: Jitney's flags, then the user's, sorted by the language they are for. */
#include "compile/cxx_private.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* -std= of C++ (c++17, gnu++20) or of C (c11, gnu17). */
static bool is_std(const char *flag, bool *c)
{
    if (!starts(flag, "-std=") && !starts(flag, "--std="))
        return false;
    *c = strstr(flag, "++") == NULL;
    return true;
}

/* Jitney's headers are C++17: an older standard asked for is raised, as newer ones of torch do. */
static bool is_old_std(const char *flag)
{
    const char *plus = strstr(flag, "++");

    return plus && (starts(plus, "++98") || starts(plus, "++03") || starts(plus, "++0x") || starts(plus, "++11") ||
                    starts(plus, "++1y") || starts(plus, "++14"));
}

/* "/O2", "/std:c++17": for another system's compiler; here it would be the name of a file. */
static bool is_foreign(const char *flag)
{
    return flag[0] == '/' && !jtn__file_exists(flag);
}

static bool has_flag(const jtn_list *flags, const char *with)
{
    for (size_t i = 0; i < flags->count; i++)
        if (starts(flags->items[i], with))
            return true;
    return false;
}

static jtn_status add_user_flags(const jtn_list *cflags, bool c, jtn_list *argv)
{
    for (size_t i = 0; i < cflags->count; i++) {
        const char *flag = cflags->items[i];
        bool for_c;

        if (!*flag || (is_std(flag, &for_c) && for_c != c))
            continue;
        if (is_foreign(flag)) {
            jtn__log(JTN_LOG_INFO, "%s: not a flag of this compiler, left out", flag);
            continue;
        }
        if (!c && is_std(flag, &for_c) && is_old_std(flag)) {
            jtn__log(JTN_LOG_INFO, "%s: raised to -std=c++17", flag);
            flag = "-std=c++17";
        }
        JTN_TRY(jtn__list_add(argv, flag));
    }
    return JTN_OK;
}

/* No absolute path gets into the object: __FILE__ in a header is relative to the folder it was found through. Debug
 * information is left true, so that a debugger finds the sources. */
static jtn_status add_prefix_maps(const jtn_host_job *job, jtn_list *argv)
{
    if (has_flag(job->cflags, "-g") && !has_flag(job->cflags, "-g0"))
        return JTN_OK;
    if (!strchr(job->data_dir, '='))
        JTN_TRY(jtn__list_addf(argv, "-ffile-prefix-map=%s/=jitney/", job->data_dir));
    for (size_t i = 0; i < job->root_count; i++)
        if (job->roots[i] && job->roots[i][0] && !strchr(job->roots[i], '='))
            JTN_TRY(jtn__list_addf(argv, "-ffile-prefix-map=%s/=", job->roots[i]));
    if (!strchr(job->staging, '='))
        JTN_TRY(jtn__list_addf(argv, "-ffile-prefix-map=%s/=", job->staging));
    return JTN_OK;
}

jtn_status jtn__cxx_flags(const jtn_cxx *cxx, const jtn_host_job *job, bool c, jtn_list *argv)
{
    static const char *const ours[] = {"-O2", "-fPIC", "-fvisibility=hidden", "-pipe", "-fdiagnostics-color=never"};

    JTN_TRY(jtn__list_add_all(argv, &cxx->command));
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        JTN_TRY(jtn__list_add(argv, ours[i]));
    if (!c)
        JTN_TRY(jtn__list_add(argv, "-std=c++17"));
    JTN_TRY(add_user_flags(job->cflags, c, argv));
    for (size_t i = 0; i < job->defines->count; i++)
        JTN_TRY(jtn__list_addf(argv, "-D%s", job->defines->items[i]));
    JTN_TRY(jtn__list_addf(argv, "-DTORCH_EXTENSION_NAME=%s", job->name));
    JTN_TRY(jtn__list_add(argv, "-DTORCH_API_INCLUDE_EXTENSION_H"));
    return add_prefix_maps(job, argv);
}

jtn_status jtn__cxx_own_headers(const jtn_cxx *cxx, const char *data_dir, jtn_list *argv)
{
    JTN_TRY(jtn__list_add(argv, "-isystem"));
    JTN_TRY(jtn__list_addf(argv, "%s/include/compat", data_dir));
    JTN_TRY(jtn__list_add(argv, "-isystem"));
    JTN_TRY(jtn__list_addf(argv, "%s/include", data_dir));
    return cxx->gnu ? jtn__list_add(argv, "-fno-canonical-system-headers") : JTN_OK;
}

/* A macro that the standard headers may look at. */
static bool is_reserved(const char *name)
{
    return name[0] == '_' || strncmp(name, "NDEBUG", 6) == 0;
}

jtn_status jtn__cxx_pch_flags(const jtn_host_job *job, jtn_list *flags)
{
    static const char *const kinds[] = {"-O", "-f", "-m", "-std=", "--std=", "-g", "-pthread"};
    jtn_list user = {0};
    jtn_status status = add_user_flags(job->cflags, false, &user);

    for (size_t i = 0; status == JTN_OK && i < user.count; i++) {
        const char *flag = user.items[i];
        bool macro = starts(flag, "-D") || starts(flag, "-U"), apart = macro && !flag[2] && i + 1 < user.count;
        bool wanted = macro && is_reserved(apart ? user.items[i + 1] : flag + 2);

        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            wanted |= starts(flag, kinds[k]);
        if (wanted)
            status = jtn__list_addf(flags, "%s%s", flag, apart ? user.items[i + 1] : "");
        i += apart;
    }
    for (size_t i = 0; status == JTN_OK && i < job->defines->count; i++)
        if (is_reserved(job->defines->items[i]))
            status = jtn__list_addf(flags, "-D%s", job->defines->items[i]);
    jtn__list_deinit(&user);
    return status;
}
