/* package.c — an importable shared object for a module that has no host code.
 *
 * Python looks for PyInit_<module> in a module's file. The stub, built with Jitney, exports PyInit_ followed by 200
 * underscores; here the name is written over them and the symbol hash table (the old, simple DT_HASH kind, on purpose)
 * is made anew for the changed name. So a kernel-only module needs no host compiler and is still a file that imports. */
#include "compile/package.h"

#include <elf.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

#define PLACEHOLDER "PyInit_________"

typedef struct jtn_stub {
    char *data;
    size_t size;
    Elf64_Shdr *hash, *symbols, *strings;
} jtn_stub;

static uint32_t elf_hash(const char *name)
{
    uint32_t h = 0;

    for (; *name; name++) {
        h = (h << 4) + (unsigned char)*name;
        h ^= (h >> 24) & 0xf0;
        h &= 0x0fffffff;
    }
    return h;
}

static bool inside(const jtn_stub *stub, const Elf64_Shdr *section)
{
    return section->sh_offset <= stub->size && section->sh_size <= stub->size - section->sh_offset;
}

/* Finds the three tables the dynamic linker looks names up with. */
static bool find_tables(jtn_stub *stub)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)stub->data;
    Elf64_Shdr *sections;

    if (stub->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_shoff > stub->size ||
        header->e_shnum > (stub->size - header->e_shoff) / sizeof(Elf64_Shdr))
        return false;
    sections = (Elf64_Shdr *)(void *)(stub->data + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (!inside(stub, &sections[i]))
            continue;
        if (sections[i].sh_type == SHT_HASH)
            stub->hash = &sections[i];
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum) {
            stub->symbols = &sections[i];
            stub->strings = &sections[sections[i].sh_link];
        }
    }
    return stub->hash && stub->symbols && inside(stub, stub->strings);
}

static bool rename_symbol(jtn_stub *stub, const char *name)
{
    char *strings = stub->data + stub->strings->sh_offset;
    char *place = memmem(strings, stub->strings->sh_size, PLACEHOLDER, sizeof PLACEHOLDER - 1);

    if (!place || strlen(name) + sizeof "PyInit_" > strlen(place) + 1)
        return false;
    strcpy(place + sizeof "PyInit_" - 1, name);
    return true;
}

static bool rebuild_hash(jtn_stub *stub)
{
    uint32_t *table = (uint32_t *)(void *)(stub->data + stub->hash->sh_offset);
    size_t count = stub->symbols->sh_size / sizeof(Elf64_Sym);
    Elf64_Sym *symbols = (Elf64_Sym *)(void *)(stub->data + stub->symbols->sh_offset);
    uint32_t *buckets, *chains;

    if (stub->hash->sh_size < 8 || table[1] != count || stub->hash->sh_size < (2 + (size_t)table[0] + count) * 4)
        return false;
    buckets = table + 2;
    chains = buckets + table[0];
    memset(buckets, 0, ((size_t)table[0] + count) * 4);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t bucket;

        if (symbols[i].st_name >= stub->strings->sh_size)
            return false;
        bucket = elf_hash(stub->data + stub->strings->sh_offset + symbols[i].st_name) % table[0];
        chains[i] = buckets[bucket];
        buckets[bucket] = i;
    }
    return true;
}

jtn_status jtn__package_stub(const char *data_dir, const char *name, jtn_buf *out)
{
    char *path = jtn__path_join(data_dir, "stub.so");
    jtn_stub stub = {0};
    jtn_status status = path ? jtn__file_read(path, out) : JTN_ERROR_MEMORY;

    if (status == JTN_ERROR_NOT_FOUND)
        status =
            jtn__fail(JTN_ERROR_TOOL,
                      "Jitney's module stub \"%s\" is missing; the installation is incomplete, install it again", path);
    if (status == JTN_OK) {
        stub.data = out->data;
        stub.size = out->size;
        if (!find_tables(&stub) || !rename_symbol(&stub, name) || !rebuild_hash(&stub))
            status =
                jtn__fail(JTN_ERROR_INTERNAL,
                          "Jitney's module stub \"%s\" cannot carry the name \"%s\"; install Jitney again", path, name);
    }
    jtn__free(path);
    return status;
}
