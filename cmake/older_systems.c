// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ runtime of a recent compiler, which is linked into what is installed, asks for functions that the C library has since 2.35 and 2.36.
// With these in their place a prefix runs on systems with 2.34: what is left comes from libdl and libpthread, which 2.34 made a part of libc.
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <sys/random.h>

#define HERE __attribute__((visibility("hidden")))

// std::random_device's source.
HERE unsigned random_number(void) __asm__("arc4random");
unsigned random_number(void) {
    unsigned number = 0;
    while (getrandom(&number, sizeof number, 0) != sizeof number) {
    }
    return number;
}

// Where the unwinder finds the frames of the code at an address, as <dlfcn.h> of 2.35 describes it.
struct found_object {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map* map;
    void* frames;
    unsigned long long reserved[7];
};
struct search {
    ElfW(Addr) address;
    struct found_object* found;
};

static int look_at(struct dl_phdr_info* object, size_t size, void* data) {
    (void)size;
    struct search* search = data;
    int holds = 0;
    ElfW(Addr) frames = 0, low = ~(ElfW(Addr))0, high = 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* part = &object->dlpi_phdr[i];
        const ElfW(Addr) begin = object->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME) frames = begin;
        if (part->p_type != PT_LOAD) continue;
        if (begin < low) low = begin;
        if (end > high) high = end;
        holds |= begin <= search->address && search->address < end;
    }
    if (!holds) return 0;
    *search->found = (struct found_object){0, (void*)low, (void*)high, NULL, (void*)frames, {0}};
    return frames != 0 ? 1 : -1;
}

HERE int find_object(void* address, struct found_object* found) __asm__("_dl_find_object");
int find_object(void* address, struct found_object* found) {
    struct search search = {(ElfW(Addr))address, found};
    return dl_iterate_phdr(look_at, &search) == 1 ? 0 : -1;
}
