/* options.c — compiler options as people write them → what each compiler gets.
 *
 * People write nvcc's spellings; NVRTC knows some of them, knows others under another name, and refuses the rest. One table says for
 * each what becomes of it. A spelling it lacks is an error with the nearest one it has: a flag that silently does nothing has cost
 * more hours than one that is refused. */
#include "model/options.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* ---------------------------------------------------------------- splitting ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One word, quotes taken off; *at is left behind it. */
static jtn_status split_word(const char *text, const char **at, jtn_buf *word)
{
    char quote = 0;

    for (; **at && (quote || !is_blank(**at)); ++*at) {
        char c = **at;

        if (c == '\\' && quote != '\'' && (*at)[1]) {
            ++*at;
            jtn__buf_put(word, *at, 1);
        } else if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
        } else {
            jtn__buf_put(word, &c, 1);
        }
    }
    if (quote)
        return jtn__fail(JTN_ERROR_ARGUMENT, "the options \"%s\" open a quote (%c) and do not close it", text, quote);
    return word->failed;
}

jtn_status jtn__options_split(const char *text, jtn_list *out)
{
    const char *at = text;
    jtn_buf word;
    jtn_status status = JTN_OK;

    jtn__buf_init(&word, 1 << 20);
    for (;;) {
        while (is_blank(*at))
            at++;
        if (!*at)
            break;
        jtn__buf_clear(&word);
        JTN_GO(split_word(text, &at, &word));
        if (word.size)
            JTN_GO(jtn__list_add(out, word.data));
    }
out:
    jtn__buf_deinit(&word);
    return status;
}

/* ---------------------------------------------------------------- the table ---- */

typedef enum {
    TO_NVRTC,       /* as `to`, with its value joined by '=' */
    TO_NVRTC_PLAIN, /* as `to`, which is whole */
    TO_MACRO,       /* -D, -U: joined */
    TO_INCLUDE,     /* a folder */
    TO_HOST,        /* for the host compiler */
    TO_LINK,        /* for the linker */
    TO_PTXAS,       /* a list of ptxas options */
    TO_ARCH,        /* an architecture */
    TO_GENCODE,     /* arch=…,code=… */
    TO_NOTHING,     /* dropped; `to` says why */
} jtn_fate;

/* How the value stands: none; behind '='; the next word; joined without '='; as many of these as are or-ed. */
enum { NO_VALUE = 1, EQUALS = 2, NEXT = 4, JOINED = 8 };

static const struct {
    const char *spelling;
    int value;
    jtn_fate fate;
    const char *to;
} table[] = {
    {"-D", JOINED | NEXT, TO_MACRO, "-D"},
    {"--define-macro", EQUALS | NEXT, TO_MACRO, "-D"},
    {"-U", JOINED | NEXT, TO_MACRO, "-U"},
    {"--undefine-macro", EQUALS | NEXT, TO_MACRO, "-U"},
    {"-isystem", JOINED | NEXT, TO_INCLUDE, NULL},
    {"--system-include", EQUALS | NEXT, TO_INCLUDE, NULL},
    {"-I", JOINED | NEXT, TO_INCLUDE, NULL},
    {"--include-path", EQUALS | NEXT, TO_INCLUDE, NULL},
    {"-use_fast_math", NO_VALUE, TO_NVRTC_PLAIN, "--use_fast_math"},
    {"-fmad", EQUALS | NEXT, TO_NVRTC, "--fmad"},
    {"-ftz", EQUALS | NEXT, TO_NVRTC, "--ftz"},
    {"-prec-div", EQUALS | NEXT, TO_NVRTC, "--prec-div"},
    {"-prec-sqrt", EQUALS | NEXT, TO_NVRTC, "--prec-sqrt"},
    {"-maxrregcount", EQUALS | NEXT, TO_NVRTC, "--maxrregcount"},
    {"-std", EQUALS | NEXT, TO_NVRTC, "-std"},
    {"-lineinfo", NO_VALUE, TO_NVRTC_PLAIN, "--generate-line-info"},
    {"-generate-line-info", NO_VALUE, TO_NVRTC_PLAIN, "--generate-line-info"},
    {"-G", NO_VALUE, TO_NVRTC_PLAIN, "--device-debug"},
    {"-device-debug", NO_VALUE, TO_NVRTC_PLAIN, "--device-debug"},
    {"-rdc", EQUALS | NEXT, TO_NVRTC, "--relocatable-device-code"},
    {"-relocatable-device-code", EQUALS | NEXT, TO_NVRTC, "--relocatable-device-code"},
    {"-extra-device-vectorization", NO_VALUE, TO_NVRTC_PLAIN, "--extra-device-vectorization"},
    {"-restrict", NO_VALUE, TO_NVRTC_PLAIN, "--restrict"},
    {"-diag-suppress", EQUALS | NEXT, TO_NVRTC, "--diag-suppress"},
    {"-diag-error", EQUALS | NEXT, TO_NVRTC, "--diag-error"},
    {"-diag-warn", EQUALS | NEXT, TO_NVRTC, "--diag-warn"},
    {"-w", NO_VALUE, TO_NVRTC_PLAIN, "--disable-warnings"},
    {"-disable-warnings", NO_VALUE, TO_NVRTC_PLAIN, "--disable-warnings"},
    {"-device-int128", NO_VALUE, TO_NVRTC_PLAIN, "--device-int128"},
    {"-extended-lambda", NO_VALUE, TO_NOTHING, "NVRTC takes device lambdas as they are"},
    {"-expt-extended-lambda", NO_VALUE, TO_NOTHING, "NVRTC takes device lambdas as they are"},
    {"-dopt", EQUALS | NEXT, TO_NVRTC, "--dopt"},
    {"-split-compile", EQUALS | NEXT, TO_NVRTC, "--split-compile"},
    {"-include", EQUALS | NEXT, TO_NVRTC, "--pre-include"},
    {"-pre-include", EQUALS | NEXT, TO_NVRTC, "--pre-include"},
    {"-minimal", NO_VALUE, TO_NVRTC_PLAIN, "--minimal"},
    {"-Xptxas", EQUALS | NEXT, TO_PTXAS, NULL},
    {"-ptxas-options", EQUALS | NEXT, TO_PTXAS, NULL},
    {"-arch", EQUALS | NEXT, TO_ARCH, NULL},
    {"-gpu-architecture", EQUALS | NEXT, TO_ARCH, NULL},
    {"-gencode", EQUALS | NEXT, TO_GENCODE, NULL},
    {"-generate-code", EQUALS | NEXT, TO_GENCODE, NULL},
    {"-Xcompiler", EQUALS | NEXT, TO_HOST, NULL},
    {"-compiler-options", EQUALS | NEXT, TO_HOST, NULL},
    {"-Xcudafe", EQUALS | NEXT, TO_NOTHING, "NVRTC has no front end of its own to tell"},
    {"-source-in-ptx", NO_VALUE, TO_NOTHING, "PTX is not shown"},
    {"-src-in-ptx", NO_VALUE, TO_NOTHING, "PTX is not shown"},
    {"-Xlinker", EQUALS | NEXT, TO_LINK, NULL},
    {"-linker-options", EQUALS | NEXT, TO_LINK, NULL},
    {"-l", JOINED, TO_LINK, "-l"},
    {"-L", JOINED, TO_LINK, "-L"},
    {"-expt-relaxed-constexpr", NO_VALUE, TO_NOTHING, "always on"},
    {"-O", JOINED | NO_VALUE, TO_NOTHING, "device code is always optimised"},
    {"-optimize", EQUALS | NEXT, TO_NOTHING, "device code is always optimised"},
    {"-g", NO_VALUE, TO_NOTHING, "host debug information; -lineinfo or -G are the device's"},
    {"-debug", NO_VALUE, TO_NOTHING, "host debug information; -lineinfo or -G are the device's"},
    {"-fPIC", NO_VALUE, TO_NOTHING, "host code is always position-independent"},
    {"-res-usage", NO_VALUE, TO_NOTHING, "ask a kernel's attributes instead"},
    {"-resource-usage", NO_VALUE, TO_NOTHING, "ask a kernel's attributes instead"},
    {"-code", EQUALS | NEXT, TO_NOTHING, "the architecture says it"},
    {"-gpu-code", EQUALS | NEXT, TO_NOTHING, "the architecture says it"},
    {"-ccbin", EQUALS | NEXT, TO_NOTHING, "JITNEY_CXX names the host compiler"},
    {"-compiler-bindir", EQUALS | NEXT, TO_NOTHING, "JITNEY_CXX names the host compiler"},
    {"-allow-unsupported-compiler", NO_VALUE, TO_NOTHING, "any host compiler is allowed"},
    {"-threads", EQUALS | NEXT, TO_NOTHING, "MAX_JOBS says how many"},
    {"-t", JOINED | NEXT, TO_NOTHING, "MAX_JOBS says how many"},
    {"-x", EQUALS | NEXT, TO_NOTHING, "the source's name tells its language"},
    {"-c", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-dc", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-m64", NO_VALUE, TO_NOTHING, "always 64 bits"},
    {"-m", EQUALS | NEXT, TO_NOTHING, "always 64 bits"},
    {"-Werror", EQUALS | NEXT | NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-Wno-deprecated-gpu-targets", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-Wno-deprecated-declarations", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-cudart", EQUALS | NEXT, TO_NOTHING, "there is no CUDA runtime"},
    {"-default-stream", EQUALS | NEXT, TO_NOTHING, "launches go to the tensors' current stream"},
    {"-default-device", NO_VALUE, TO_NOTHING, "always on"},
    {"-keep", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-v", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-verbose", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-forward-unknown-to-host-compiler", NO_VALUE, TO_NOTHING, "nvcc's own"},
    {"-Wall", NO_VALUE, TO_NOTHING, "the host compiler's"},
    {"-Wextra", NO_VALUE, TO_NOTHING, "the host compiler's"},
};

#define TABLE_SIZE (sizeof table / sizeof *table)

/* ---------------------------------------------------------------- one option ---- */

static bool is_torch_half_macro(const char *macro)
{
    return strncmp(macro, "__CUDA_NO_HALF", 14) == 0 || strncmp(macro, "__CUDA_NO_BFLOAT16", 18) == 0;
}

static jtn_status add_host_words(const char *value, jtn_list *out)
{
    jtn_status status = JTN_OK;
    char *words = jtn__strdup(value);

    if (!words)
        return JTN_ERROR_MEMORY;
    for (char *c = words; *c; c++) /* nvcc: a comma separates */
        if (*c == ',')
            *c = ' ';
    status = jtn__options_split(words, out);
    jtn__free(words);
    return status;
}

static jtn_status add_ptxas(const char *value, jtn_device_options *out)
{
    jtn_list words = {0};
    jtn_status status = add_host_words(value, &words);

    for (size_t i = 0; status == JTN_OK && i < words.count; i++) {
        const char *word = words.items[i];

        if (strcmp(word, "-v") == 0 || strcmp(word, "v") == 0 || strcmp(word, "--verbose") == 0)
            out->verbose_ptxas = true;
        else
            status = jtn__list_addf(&out->nvrtc, "--ptxas-options=%s%s", word[0] == '-' ? "" : "-", word);
    }
    jtn__list_deinit(&words);
    return status;
}

static jtn_status add_arch(const char *value, jtn_device_options *out)
{
    char *arch = NULL;

    if (strncmp(value, "native", 6) == 0 || strncmp(value, "all", 3) == 0)
        return jtn__list_addf(&out->notes, "-arch=%s: the GPU that is present is compiled for", value);
    JTN_TRY(jtn__arch_parse(value, &arch));
    if (jtn__list_has(&out->arch, arch)) {
        jtn__free(arch);
        return JTN_OK;
    }
    return jtn__list_add_take(&out->arch, arch);
}

/* "arch=compute_90,code=sm_90" or "…,code=[sm_90,compute_90]": the machine code's architecture counts, else PTX's. */
static jtn_status add_gencode(const char *value, jtn_device_options *out)
{
    const char *code = strstr(value, "code=");
    const char *arch = strstr(value, "arch=");
    char one[32];
    size_t size;

    if (!code && !arch)
        return jtn__fail(JTN_ERROR_ARGUMENT,
                         "-gencode %s names no architecture: arch=compute_XX,code=sm_XX is its form", value);
    code = code ? code + 5 : arch + 5;
    while (*code == '[' || *code == '"' || *code == '\'')
        code++;
    size = strcspn(code, ",]\"'");
    if (size >= sizeof one)
        size = sizeof one - 1;
    memcpy(one, code, size);
    one[size] = 0;
    return add_arch(one, out);
}

static jtn_status apply(size_t entry, const char *spelled, const char *value, jtn_device_options *out)
{
    const char *to = table[entry].to;

    switch (table[entry].fate) {
    case TO_NVRTC:
        return jtn__list_addf(&out->nvrtc, "%s=%s", to, value);
    case TO_NVRTC_PLAIN:
        return jtn__list_add(&out->nvrtc, to);
    case TO_MACRO:
        if (is_torch_half_macro(value))
            return jtn__list_addf(&out->notes, "%s%s: half and bfloat16 have their operators here", to, value);
        return jtn__list_addf(&out->nvrtc, "%s%s", to, value);
    case TO_INCLUDE:
        return jtn__list_add(&out->include_dirs, value);
    case TO_HOST:
        return add_host_words(value, &out->host);
    case TO_LINK:
        return jtn__list_addf(&out->link, "%s%s", to ? to : "", value);
    case TO_PTXAS:
        return add_ptxas(value, out);
    case TO_ARCH:
        return add_arch(value, out);
    case TO_GENCODE:
        return add_gencode(value, out);
    case TO_NOTHING:
        return jtn__list_addf(&out->notes, "%s: not needed: %s", spelled, to);
    }
    return JTN_OK;
}

/* ---------------------------------------------------------------- matching ---- */

/* Whether word begins with the spelling, "--" and "-" being the same for long names. Returns what is behind it, or NULL. */
static const char *match(const char *word, const char *spelling)
{
    size_t size = strlen(spelling);

    if (strncmp(word, spelling, size) == 0)
        return word + size;
    if (word[0] == '-' && strncmp(word + 1, spelling, size) == 0 && size > 2)
        return word + 1 + size;
    return NULL;
}

static bool fits(int value, const char *rest, bool has_next)
{
    if (!*rest)
        return (value & NO_VALUE) || ((value & NEXT) && has_next);
    if (*rest == '=')
        return value & (EQUALS | JOINED);
    return value & JOINED;
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t size = 0;

    a += strspn(a, "-");
    b += strspn(b, "-");
    while (a[size] && a[size] == b[size])
        size++;
    return size;
}

static jtn_status refuse(const char *word, bool has_next)
{
    size_t best = 0, length = 0;

    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const char *rest = match(word, table[i].spelling);

        if (rest && !*rest && !has_next)
            return jtn__fail(JTN_ERROR_ARGUMENT, "the CUDA option \"%s\" needs a value behind it", word);
        if (common_prefix(word, table[i].spelling) > length) {
            length = common_prefix(word, table[i].spelling);
            best = i;
        }
    }
    if (length >= 3)
        return jtn__fail(JTN_ERROR_ARGUMENT, "the CUDA option \"%s\" is not known; the nearest that is: \"%s\"", word,
                         table[best].spelling);
    return jtn__fail(
        JTN_ERROR_ARGUMENT,
        "the CUDA option \"%s\" is not known; options for the host compiler go into extra_cflags or behind -Xcompiler",
        word);
}

/* The longest spelling that fits wins: "-include" before "-I". */
static size_t find(const char *word, bool has_next)
{
    size_t best = TABLE_SIZE, length = 0;

    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const char *rest = match(word, table[i].spelling);

        if (rest && fits(table[i].value, rest, has_next) && strlen(table[i].spelling) > length) {
            best = i;
            length = strlen(table[i].spelling);
        }
    }
    return best;
}

/* "-line-info" is "-lineinfo" mistyped, not the library "ine-info". */
static bool is_mistyped(const char *word)
{
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const char *a = word, *b = table[i].spelling;

        do {
            a += strspn(a, "-");
            b += strspn(b, "-");
        } while (*a && *a == *b && a++ && b++);
        if (!*a && !*b && strlen(table[i].spelling) > 3)
            return true;
    }
    return false;
}

jtn_status jtn__options_device(const jtn_list *args, jtn_device_options *out)
{
    jtn_device_options options = {0};
    jtn_status status = JTN_OK;

    for (size_t i = 0; i < args->count; i++) {
        const char *word = args->items[i];
        bool has_next = i + 1 < args->count;
        size_t entry = find(word, has_next);
        const char *value;

        if (entry == TABLE_SIZE || (match(word, table[entry].spelling)[0] &&
                                    match(word, table[entry].spelling)[0] != '=' && is_mistyped(word))) {
            status = refuse(word, has_next);
            goto out;
        }
        value = match(word, table[entry].spelling);
        if (*value == '=' && (table[entry].value & EQUALS))
            value++;
        else if (!*value && (table[entry].value & NEXT) && !(table[entry].value & NO_VALUE))
            value = args->items[++i];
        JTN_GO(apply(entry, word, value, &options));
    }
    *out = options;
    return JTN_OK;
out:
    jtn__device_options_deinit(&options);
    return status;
}

void jtn__device_options_deinit(jtn_device_options *options)
{
    jtn__list_deinit(&options->nvrtc);
    jtn__list_deinit(&options->include_dirs);
    jtn__list_deinit(&options->host);
    jtn__list_deinit(&options->link);
    jtn__list_deinit(&options->arch);
    jtn__list_deinit(&options->notes);
}

/* ---------------------------------------------------------------- architectures ---- */

jtn_status jtn__arch_parse(const char *text, char **out)
{
    const char *at = text;
    const char *kind = "sm";
    int number = 0, digits = 0;
    char letter[2] = "";

    if (strncmp(at, "compute", 7) == 0)
        kind = "compute";
    if (isalpha((unsigned char)*at)) {
        if (strncmp(at, "compute", 7) != 0 && strncmp(at, "sm", 2) != 0)
            goto bad;
        at += *kind == 'c' ? 7 : 2;
        at += *at == '_';
    }
    for (; isdigit((unsigned char)*at) || (*at == '.' && digits); at++)
        if (*at != '.') {
            number = number * 10 + (*at - '0');
            digits++;
        } else if (!isdigit((unsigned char)at[1])) {
            goto bad;
        }
    if (*at == 'a' || *at == 'f')
        letter[0] = *at++;
    if (strcmp(at, "+PTX") == 0)
        at += 4;
    if (*at || digits < 2 || digits > 3)
        goto bad;
    return (*out = jtn__format("%s_%d%s", kind, number, letter)) ? JTN_OK : JTN_ERROR_MEMORY;
bad:
    return jtn__fail(
        JTN_ERROR_ARGUMENT,
        "\"%.60s\" is no GPU architecture: \"sm_90\", \"90\", \"9.0\" and \"sm_90a\" are, \"compute_90\" for PTX",
        text);
}
