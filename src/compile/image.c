/* image.c — which kernels a device image really holds.
 *
 * In a cubin, kernels are the function symbols marked as entries; in PTX, the names behind ".entry". */
#include "compile/image.h"

#include <elf.h>
#include <string.h>

/* Of NVIDIA's ELF machine: set in st_other of a kernel. */
#define STO_CUDA_ENTRY 0x10

static bool is_elf(const char *image, size_t size)
{
    return size >= sizeof(Elf64_Ehdr) && memcmp(image, ELFMAG, SELFMAG) == 0;
}

static jtn_status entries_of_table(const char *image, size_t size, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                                   jtn_list *out)
{
    size_t count = table->sh_size / sizeof(Elf64_Sym);

    if (table->sh_offset > size || table->sh_size > size - table->sh_offset || strings->sh_offset > size ||
        strings->sh_size > size - strings->sh_offset)
        return JTN_OK;
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        const char *name;

        memcpy(&symbol, image + table->sh_offset + i * sizeof symbol, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & STO_CUDA_ENTRY) ||
            symbol.st_name >= strings->sh_size)
            continue;
        name = image + strings->sh_offset + symbol.st_name;
        if (memchr(name, 0, strings->sh_size - symbol.st_name) && *name)
            JTN_TRY(jtn__list_add(out, name));
    }
    return JTN_OK;
}

static jtn_status entries_of_elf(const char *image, size_t size, jtn_list *out)
{
    Elf64_Ehdr header;

    memcpy(&header, image, sizeof header);
    if (header.e_shoff > size || header.e_shnum > (size - header.e_shoff) / sizeof(Elf64_Shdr))
        return JTN_OK;
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr table, strings;

        memcpy(&table, image + header.e_shoff + (size_t)i * sizeof table, sizeof table);
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= header.e_shnum)
            continue;
        memcpy(&strings, image + header.e_shoff + (size_t)table.sh_link * sizeof strings, sizeof strings);
        JTN_TRY(entries_of_table(image, size, &table, &strings, out));
    }
    return JTN_OK;
}

static jtn_status entries_of_ptx(const char *ptx, size_t size, jtn_list *out)
{
    const char *end = ptx + size;

    for (const char *at = ptx; (at = memmem(at, (size_t)(end - at), ".entry ", 7));) {
        char name[2048];
        size_t length = 0;

        at += 7;
        while (at + length < end && !strchr(" (\n\r", at[length]) && length < sizeof name - 1)
            length++;
        memcpy(name, at, length);
        name[length] = 0;
        JTN_TRY(jtn__list_add(out, name));
    }
    return JTN_OK;
}

jtn_status jtn__image_entries(const char *image, size_t size, jtn_list *out)
{
    return is_elf(image, size) ? entries_of_elf(image, size, out) : entries_of_ptx(image, size, out);
}
