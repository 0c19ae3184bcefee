// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory and files by GPUDirect Storage, with a simulated libcufile (simgpu/cufile) that counts its
// calls and refuses or fails when it is told to. Without a libcufile these cases do not run.
#include "files.hpp"
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <dlfcn.h>

#include <cerrno>

using namespace mpi_tests;

namespace {

constexpr int kMiB = 1 << 20;
constexpr std::size_t kBytes = 20u * kMiB;

struct Counts {
    std::uint64_t reads = 0, writes = 0, files = 0;
};
Counts counts() {
    static void (*const of_library)(std::uint64_t*) = [] {
        void* const library = dlopen("libcufile.so.0", RTLD_NOW);
        void* const found = library != nullptr ? dlsym(library, "simgpu_cufile_calls") : nullptr;
        if (found == nullptr) skip("no simulated libcufile.so.0");
        return reinterpret_cast<void (*)(std::uint64_t*)>(found);
    }();
    std::uint64_t all[3] = {};
    of_library(all);
    return {all[0], all[1], all[2]};
}

std::vector<unsigned char> contents(std::size_t bytes, unsigned seed) {
    std::vector<unsigned char> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        all[i] = static_cast<unsigned char>(i * 7 + i / 4093 + seed);
    return all;
}

// Writes and reads so much with this view, and tells how many calls of the library that took.
Counts exchange(const std::string& path, std::size_t bytes, MPI_Datatype view, MPI_Info info) {
    const Counts before = counts();
    MPI_File file = open_file(path, kNew, MPI_COMM_SELF, info);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
    const std::vector<unsigned char> sent = contents(bytes, 5);
    Memory source(Kind::device, bytes), sink(Kind::device, bytes);
    source.write(sent.data(), bytes);
    MPI_Status status;
    OK(MPI_File_write_at(file, 0, source.data(), static_cast<int>(bytes), MPI_BYTE, &status));
    CHECK_EQ(count_of(status, MPI_BYTE), bytes);
    OK(MPI_File_read_at(file, 0, sink.data(), static_cast<int>(bytes), MPI_BYTE, &status));
    CHECK_EQ(count_of(status, MPI_BYTE), bytes);
    std::vector<unsigned char> got(bytes);
    sink.read(got.data(), bytes);
    CHECK(got == sent);
    OK(MPI_File_close(&file));
    const Counts after = counts();
    CHECK_EQ(after.files, 0);
    return {after.reads - before.reads, after.writes - before.writes, 0};
}

}  // namespace

MPI_CASE(device_memory_goes_to_files_by_direct_storage, 1) {
    counts();
    const Folder folder;
    // Pieces of 8 MiB.
    Counts calls = exchange(folder / "whole", kBytes, MPI_BYTE, MPI_INFO_NULL);
    CHECK_EQ(calls.writes, 3);
    CHECK_EQ(calls.reads, 3);
    CHECK(bytes_of(folder / "whole") == contents(kBytes, 5));
    // Long runs of a view: a call for each.
    MPI_Datatype run, view;
    OK(MPI_Type_contiguous(kMiB, MPI_BYTE, &run));
    OK(MPI_Type_create_resized(run, 0, 3 * kMiB, &view));
    OK(MPI_Type_commit(&view));
    calls = exchange(folder / "runs", 4u * kMiB, view, MPI_INFO_NULL);
    CHECK_EQ(calls.writes, 4);
    CHECK_EQ(calls.reads, 4);
    OK(MPI_Type_free(&run));
    OK(MPI_Type_free(&view));
    // Short ones, and little data, go through slots.
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 2, &view));
    OK(MPI_Type_commit(&view));
    calls = exchange(folder / "short runs", 100000, view, MPI_INFO_NULL);
    CHECK_EQ(calls.writes + calls.reads, 0);
    OK(MPI_Type_free(&view));
    calls = exchange(folder / "little", 1000, MPI_BYTE, MPI_INFO_NULL);
    CHECK_EQ(calls.writes + calls.reads, 0);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "gantry_direct_storage", "disable"));
    calls = exchange(folder / "hint", kBytes, MPI_BYTE, info);
    CHECK_EQ(calls.writes + calls.reads, 0);
    OK(MPI_Info_free(&info));
}

MPI_CASE(what_direct_storage_does_not_do_is_done_otherwise_or_is_an_error, 1) {
    counts();
    const Folder folder;
    // A file system that it does not reach.
    setenv("SIMGPU_CUFILE", "refuse=register", 1);
    Counts calls = exchange(folder / "refused", kBytes, MPI_BYTE, MPI_INFO_NULL);
    CHECK_EQ(calls.writes + calls.reads, 0);
    // Calls that move half of what they should.
    setenv("SIMGPU_CUFILE", "short", 1);
    calls = exchange(folder / "halves", 4u * kMiB, MPI_BYTE, MPI_INFO_NULL);
    CHECK(calls.writes > 20 && calls.reads > 20);
    unsetenv("SIMGPU_CUFILE");
    MPI_File file = open_file(folder / "full", kNew, MPI_COMM_SELF);
    const std::vector<unsigned char> sent = contents(2u * kMiB, 9);
    Memory memory(Kind::device, sent.size());
    memory.write(sent.data(), sent.size());
    const auto write = [&] {
        return MPI_File_write_at(file, 0, memory.data(), 2 * kMiB, MPI_BYTE, MPI_STATUS_IGNORE);
    };
    OK(write());
    setenv("SIMGPU_CUFILE", ("error=" + std::to_string(ENOSPC)).c_str(), 1);
    expect(write(), MPI_ERR_NO_SPACE, {"full", "ENOSPC"}, "a full disk");
    unsetenv("SIMGPU_CUFILE");
    OK(write());
    // The end of the file.
    MPI_Status status;
    OK(MPI_File_read_at(file, kMiB, memory.data(), 2 * kMiB, MPI_BYTE, &status));
    CHECK_EQ(count_of(status, MPI_BYTE), kMiB);
    OK(MPI_File_close(&file));
    CHECK_EQ(counts().files, 0);
}

// Without its kernel module cuFile would copy through host memory of its own.
MPI_CASE(direct_storage_without_its_kernel_module_is_none, 1) {
    counts();
    setenv("SIMGPU_CUFILE", "module=0", 1);
    const Folder folder;
    const Counts calls = exchange(folder / "file", kBytes, MPI_BYTE, MPI_INFO_NULL);
    CHECK_EQ(calls.writes + calls.reads, 0);
}

// NVMe and GPU reach each other by the kernel's own copies, and the program has opened the driver for itself.
MPI_CASE(direct_storage_needs_no_kernel_module_where_the_kernel_copies, 1) {
    counts();
    setenv("SIMGPU_CUFILE", "module=0,pci,opened", 1);
    const Folder folder;
    const Counts calls = exchange(folder / "file", kBytes, MPI_BYTE, MPI_INFO_NULL);
    CHECK_EQ(calls.writes, 3);
    CHECK_EQ(calls.reads, 3);
}
