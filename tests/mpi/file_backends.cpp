// SPDX-License-Identifier: BSD-3-Clause
//
// Who carries reads and writes out (io/backend.hpp): the kernel's ring where there is one, else threads.
#include "files.hpp"
#include "test.hpp"
#include "threads.hpp"

#include <dlfcn.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

using namespace mpi_tests;

namespace {

std::vector<unsigned char> contents(std::size_t bytes) {
    std::vector<unsigned char> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        all[i] = static_cast<unsigned char>(i * 7 + i / 4093);
    return all;
}

// Whether this machine has what a ring needs, asked without the library.
bool could_have_a_ring() {
    const char* const told = std::getenv("IO_SHIM_RING");
    if (told != nullptr && std::strcmp(told, "refuse") == 0) return false;
    if (dlopen("liburing.so.2", RTLD_NOW) == nullptr) return false;
    io_uring_params params{};
    const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 4, &params));
    if (ring >= 0) close(ring);
    return ring >= 0;
}

int rings_of_this_process() {
    int rings = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ignored;
        if (std::filesystem::read_symlink(entry.path(), ignored) == "anon_inode:[io_uring]")
            ++rings;
    }
    return rings;
}

void write_and_read(const std::string& path, MPI_Info info) {
    constexpr int kBytes = 3 << 20;
    const std::vector<unsigned char> sent = contents(kBytes);
    std::vector<unsigned char> got(kBytes);
    MPI_File file = open_file(path, kNew, MPI_COMM_SELF, info);
    OK(MPI_File_write_at(file, 5, sent.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 5, got.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    CHECK(got == sent);
}

}  // namespace

MPI_CASE(files_go_by_the_kernels_ring_where_it_lets_them, 1) {
    const bool expected = could_have_a_ring();
    CHECK_EQ(rings_of_this_process(), 0);
    const Folder folder;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "gantry_io_uring", "disable"));
    write_and_read(folder / "by threads", info);
    OK(MPI_Info_free(&info));
    write_and_read(folder / "as it comes", MPI_INFO_NULL);
    CHECK_EQ(rings_of_this_process(), expected ? 1 : 0);
}

// The kernel cancels what a thread gave it that ends.
MPI_CASE_OWN_INIT(a_thread_that_ends_leaves_its_writes_to_the_others, 1) {
    const Threaded threaded;
    const Folder folder;
    constexpr int kWrites = 8, kBytes = 4 << 20;
    const std::vector<unsigned char> sent = contents(static_cast<std::size_t>(kWrites) * kBytes);
    MPI_File file = open_file(folder / "file", kNew, MPI_COMM_SELF);
    MPI_Request requests[kWrites];
    in_threads(1, [&](int) {
        for (int i = 0; i < kWrites; ++i)
            OK(MPI_File_iwrite_at(file, static_cast<MPI_Offset>(i) * kBytes,
                                  sent.data() + static_cast<std::ptrdiff_t>(i) * kBytes, kBytes,
                                  MPI_BYTE, &requests[i]));
    });
    OK(MPI_Waitall(kWrites, requests, MPI_STATUSES_IGNORE));
    OK(MPI_File_close(&file));
    CHECK(bytes_of(folder / "file") == sent);
}
