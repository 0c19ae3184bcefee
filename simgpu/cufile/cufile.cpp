// SPDX-License-Identifier: BSD-3-Clause
// A libcufile.so.0 (GPUDirect Storage) over the simulated driver's memory, in a folder of its own: only who
// puts that folder into LD_LIBRARY_PATH has it. As the real one it takes device addresses and a file that
// is open with O_DIRECT; unlike that one it copies through host memory of its own, a chunk at a time.
//
// SIMGPU_CUFILE=module=0: without the kernel module; pci: by the kernel's own copies. opened: the driver is open
// already. refuse=register: of no file system. short: each call
// moves half of what it was asked for. error=NUMBER: calls that move bytes fail with that errno. Counts are
// read through simgpu_cufile_calls.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "device/cuda/cufile_abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr int kContextOfPointer = 1;  // CU_POINTER_ATTRIBUTE_CONTEXT

struct Driver {
    int (*context_of)(void*, int, std::uint64_t) = nullptr;
    int (*push)(void*) = nullptr;
    int (*pop)(void**) = nullptr;
    int (*to_host)(void*, std::uint64_t, std::size_t) = nullptr;
    int (*to_device)(std::uint64_t, const void*, std::size_t) = nullptr;
};
const Driver& driver() {
    static const Driver the_driver = [] {
        Driver found;
        void* const library = dlopen("libcuda.so.1", RTLD_NOW);
        const auto find = [library](const char* name, auto& function) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        };
        find("cuPointerGetAttribute", found.context_of);
        find("cuCtxPushCurrent_v2", found.push);
        find("cuCtxPopCurrent_v2", found.pop);
        find("cuMemcpyDtoH_v2", found.to_host);
        find("cuMemcpyHtoD_v2", found.to_device);
        return found;
    }();
    return the_driver;
}

bool told(const char* word) {
    const char* const text = getenv("SIMGPU_CUFILE");
    return text != nullptr && strstr(text, word) != nullptr;
}
int told_error() {
    const char* const text = getenv("SIMGPU_CUFILE");
    const char* const error = text != nullptr ? strstr(text, "error=") : nullptr;
    return error != nullptr ? atoi(error + 6) : 0;
}

struct File {
    int number;
};

std::atomic<std::uint64_t> g_reads, g_writes, g_files;

// `move`: of a chunk of host memory and its place in the file and in the device.
template <class Move>
ssize_t in_chunks(const void* memory, std::size_t bytes, Move move) {
    if (const int error = told_error(); error != 0) {
        errno = error;
        return -1;
    }
    if (told("short") && bytes > 1) bytes /= 2;
    void* context = nullptr;
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    if (driver().context_of(&context, kContextOfPointer, address) != 0)
        return -kCufilePointerInvalid;
    driver().push(context);
    const std::unique_ptr<char[]> chunk(new char[std::min(bytes, kChunk)]);
    ssize_t moved = 0;
    while (static_cast<std::size_t>(moved) < bytes) {
        const std::size_t most = std::min(kChunk, bytes - static_cast<std::size_t>(moved));
        const ssize_t now =
            move(chunk.get(), address + static_cast<std::uint64_t>(moved), most, moved);
        if (now < 0 && moved == 0) moved = now;
        if (now <= 0) break;
        moved += now;
    }
    driver().pop(&context);
    return moved;
}

}  // namespace

EXPORT CufileError cuFileDriverOpen() {
    return {told("opened") ? kCufileAlreadyOpen : 0, 0};
}
EXPORT CufileError cuFileDriverGetProperties(CufileProperties* properties) {
    properties->kernel_module_major = told("module=0") ? 0 : 2;
    properties->supported = told("pci") ? 1u << kCufileNvmeByPci : 0;
    return {};
}
EXPORT CufileError cuFileHandleRegister(void** handle, CufileDescription* description) {
    if (told("refuse=register")) return {kCufileFileNotSupported, 0};
    if ((fcntl(description->handle.file, F_GETFL) & O_DIRECT) == 0) return {kCufileNotDirect, 0};
    *handle = new File{description->handle.file};
    ++g_files;
    return {};
}
EXPORT void cuFileHandleDeregister(void* handle) {
    delete static_cast<File*>(handle);
    --g_files;
}

// The file as the page cache has it: O_DIRECT would want aligned memory and offsets.
static int without_direct(int file) {
    const int flags = fcntl(file, F_GETFL);
    fcntl(file, F_SETFL, flags & ~O_DIRECT);
    return file;
}

EXPORT ssize_t cuFileRead(void* handle, void* memory, size_t bytes, off_t in_file,
                          off_t in_memory) {
    ++g_reads;
    const int file = without_direct(static_cast<File*>(handle)->number);
    return in_chunks(static_cast<char*>(memory) + in_memory, bytes,
                     [&](char* chunk, std::uint64_t device, std::size_t most, ssize_t skip) {
                         const ssize_t got = pread(file, chunk, most, in_file + skip);
                         if (got > 0)
                             driver().to_device(device, chunk, static_cast<std::size_t>(got));
                         return got;
                     });
}
EXPORT ssize_t cuFileWrite(void* handle, const void* memory, size_t bytes, off_t in_file,
                           off_t in_memory) {
    ++g_writes;
    const int file = without_direct(static_cast<File*>(handle)->number);
    return in_chunks(static_cast<const char*>(memory) + in_memory, bytes,
                     [&](char* chunk, std::uint64_t device, std::size_t most, ssize_t skip) {
                         driver().to_host(chunk, device, most);
                         return pwrite(file, chunk, most, in_file + skip);
                     });
}

// Calls of cuFileRead and cuFileWrite until now, and files that are registered.
EXPORT void simgpu_cufile_calls(std::uint64_t counts[3]) {
    counts[0] = g_reads;
    counts[1] = g_writes;
    counts[2] = g_files;
}
