// SPDX-License-Identifier: BSD-3-Clause
//
// Files of jobs that go on without ranks that died, under `mpiexec --keep-going`: survivors_test.py starts them.
#include "survivors.hpp"
#include "test.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace mpi_tests {

// A rank dies while all write and read a file together. What the others are told, and that a file of those
// that live is as any other.
MPI_CASE_ENDING(survivors_of_a_file, 4) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const char* folder = std::getenv("MPI_TESTS_FOLDER");
    const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/shared";
    const bool together = std::getenv("MPI_TESTS_TOGETHER") != nullptr;
    constexpr int kRun = 32, kRuns = 2000;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (const char* key : {"romio_cb_write", "romio_cb_read"})
        OK(MPI_Info_set(info, key, together ? "enable" : "disable"));
    OK(MPI_Info_set(info, "cb_buffer_size", "16384"));
    const auto open = [&](MPI_Comm comm, MPI_File* file) {
        int me = 0, ranks = 0;
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &ranks);
        const int code =
            MPI_File_open(comm, path.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE, info, file);
        if (code != MPI_SUCCESS) return code;
        MPI_Datatype run, view;
        OK(MPI_Type_contiguous(kRun, MPI_BYTE, &run));
        OK(MPI_Type_create_resized(run, 0, kRun * ranks, &view));
        OK(MPI_Type_commit(&view));
        const int set =
            MPI_File_set_view(*file, kRun * me, MPI_BYTE, view, "native", MPI_INFO_NULL);
        OK(MPI_Type_free(&run));
        OK(MPI_Type_free(&view));
        return set;
    };
    std::vector<unsigned char> out(kRun * kRuns), in(out.size());
    const int bytes = kRun * kRuns;
    // Until a call fails; with a limit also where nobody dies any more.
    const auto write_and_read = [&](MPI_File file, int rounds) {
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t i = 0; i < out.size(); ++i)
                out[i] =
                    static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(rank() + round));
            int code =
                MPI_File_write_at_all(file, 0, out.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
            if (code == MPI_SUCCESS)
                code = MPI_File_read_at_all(file, 0, in.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS) return code;
            CHECK(in == out);
        }
        return MPI_SUCCESS;
    };
    MPI_File file;
    OK(open(MPI_COMM_WORLD, &file));
    if (is_doomed()) die_later();
    CHECK_EQ(class_of(write_and_read(file, 1 << 30)), MPIX_ERR_PROC_FAILED);
    // So does what comes later, everywhere, and what each rank does alone goes on.
    CHECK_EQ(class_of(MPI_File_sync(file)), MPIX_ERR_PROC_FAILED);
    OK(MPI_File_write_at(file, 0, out.data(), kRun, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQ(class_of(MPI_File_close(&file)), MPIX_ERR_PROC_FAILED);
    CHECK(file == MPI_FILE_NULL);
    CHECK(is_of_faults(open(MPI_COMM_WORLD, &file)));
    MPI_Comm living = MPI_COMM_NULL;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    OK(open(living, &file));
    OK(write_and_read(file, 3));
    OK(MPI_File_close(&file));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&living));
    std::printf("survived\n");
}

}  // namespace mpi_tests
