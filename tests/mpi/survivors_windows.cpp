// SPDX-License-Identifier: BSD-3-Clause
//
// Windows and files of jobs that go on without ranks that died, and revoked ones (mpi-ext.h).
#include "files.hpp"
#include "gpu.hpp"
#include "survivors.hpp"
#include "test.hpp"
#include "tool.hpp"

namespace mpi_tests {
namespace {

int group_size(MPI_Group group) {
    int ranks = -1;
    OK(MPI_Group_size(group, &ranks));
    OK(MPI_Group_free(&group));
    return ranks;
}

MPI_Win window_of(Memory& memory) {
    MPI_Win win;
    OK(MPI_Win_create(memory.data(), 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

}  // namespace

// A lock that a rank held as it died, exclusive or shared, its part of a window, and its memory, which stays
// allocated as long as somebody maps it.
MPI_CASE_ENDING(survivors_of_a_window, 3) {
    if (!gpu().simulated) skip("ranks that die leave memory of a real GPU to its driver");
    use_device(0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    Memory host(Kind::host, 4096), device(Kind::device, 4096), got(Kind::host, 4096);
    host.fill(1);
    device.fill(1);
    MPI_Win of_host = window_of(host), of_device = window_of(device);
    const Tool tool;
    const Counted mapped(tool, "mappings_open");
    CHECK_EQ(mapped.read(), 2u);
    if (rank() == 2) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, of_device));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, of_host));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_when_told(2);
    for (MPI_Win* win : {&of_host, &of_device}) {
        about(win == &of_host ? "host" : "device");
        // What rank 2 held is given back, to both.
        for (const int target : {0, 1}) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, *win));
            OK(MPI_Get(got.data(), 64, MPI_BYTE, target, 0, 64, MPI_BYTE, *win));
            OK(MPI_Win_unlock(target, *win));
            CHECK_EQ(got.differs(1, 64), -1);
        }
        // The death may be news to this rank still: the other one has given back what rank 2 held.
        int code = MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, *win);
        for (; code == MPI_SUCCESS; code = MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, *win))
            static_cast<void>(MPI_Win_unlock(2, *win));
        CHECK_EQ(class_of(code), MPIX_ERR_PROC_FAILED);
        MPI_Group failed;
        OK(MPIX_Win_get_failed(*win, &failed));
        CHECK_EQ(group_size(failed), 1);
        CHECK_EQ(class_of(MPI_Win_fence(0, *win)), MPIX_ERR_PROC_FAILED);
        // Who frees a window after a death waits for nobody.
        OK(MPI_Sendrecv(nullptr, 0, MPI_INT, 1 - rank(), 3, nullptr, 0, MPI_INT, 1 - rank(), 3,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(class_of(MPI_Win_free(win)), MPIX_ERR_PROC_FAILED);
    }
    about("");
    CHECK_EQ(mapped.read(), 1u);
    // Neither frees its memory before.
    OK(MPI_Sendrecv(nullptr, 0, MPI_INT, 1 - rank(), 4, nullptr, 0, MPI_INT, 1 - rank(), 4,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    std::printf("survived\n");
}

// Some lock and read the parts of others, and come to MPI_Win_free at different times, when rank 2 dies.
MPI_CASE_ENDING(survivors_free_windows, 4) {
    if (!gpu().simulated) skip("ranks that die leave memory of a real GPU to its driver");
    use_device(0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const char* text = std::getenv("TESTS_SEED");
    std::srand(static_cast<unsigned>(text != nullptr ? std::atoi(text) : 1) * 8 +
               static_cast<unsigned>(rank()));
    Memory memory(Kind::device, 65536), origin(Kind::device, 65536);
    memory.fill(1);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int code = MPI_Barrier(comm);  // who is through first may be dead already
    CHECK(is_fine_or_of_faults(code));
    if (is_doomed()) die_later();
    bool good = code == MPI_SUCCESS;
    for (int window = 0; good || is_doomed(); ++window) {
        MPI_Win win;
        code = MPI_Win_create(memory.data(), 65536, 1, MPI_INFO_NULL, comm, &win);
        if (code == MPI_SUCCESS) {
            OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
            for (int i = std::rand() % 6; i > 0; --i) {
                const int target = std::rand() % size();
                code = MPI_Win_lock(std::rand() % 3 != 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED,
                                    target, 0, win);
                if (code != MPI_SUCCESS) break;
                const int bytes = 8 << std::rand() % 13;
                code =
                    std::rand() % 2 == 0
                        ? MPI_Get(origin.data(), bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win)
                        : MPI_Put(memory.data(), bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win);
                const int unlocked = MPI_Win_unlock(target, win);
                if (code == MPI_SUCCESS) code = unlocked;
                if (code != MPI_SUCCESS) break;
            }
            CHECK(is_fine_or_of_faults(code));
            good = code == MPI_SUCCESS;
            code = MPI_Win_free(&win);
        }
        CHECK(is_fine_or_of_faults(code));
        good = good && code == MPI_SUCCESS;
    }
    // Others may have freed theirs before the death, and wait for this rank to make the next.
    OK(MPIX_Comm_revoke(comm));
    OK(MPI_Comm_free(&comm));
    std::printf("survived\n");
}

// A rank dies in the middle of collective writes and reads; whoever is not told by them hears so when it
// closes the file.
MPI_CASE_ENDING(survivors_revoke_a_file, 4) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    constexpr int kBytes = 1 << 20;
    Memory block(Kind::host, kBytes);
    block.fill(static_cast<unsigned>(rank()));
    const char* path = std::getenv("MPI_TESTS_FILE");
    MPI_File file = open_file(path != nullptr ? path : "", MPI_MODE_RDWR | MPI_MODE_CREATE);
    int code = MPI_Barrier(MPI_COMM_WORLD);  // who is through first may be dead already
    CHECK(is_fine_or_of_faults(code));
    if (is_doomed()) die_later();
    for (int round = 0; code == MPI_SUCCESS || is_doomed(); ++round) {
        const MPI_Offset offset = static_cast<MPI_Offset>(kBytes) * rank();
        switch (round % 3) {
            case 0:
                code = MPI_File_write_at_all(file, offset, block.data(), kBytes, MPI_BYTE,
                                             MPI_STATUS_IGNORE);
                break;
            case 1:
                code = MPI_File_read_at_all(file, offset, block.data(), kBytes, MPI_BYTE,
                                            MPI_STATUS_IGNORE);
                break;
            default:
                code = MPI_File_write_shared(file, block.data(), 8, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        if (code == MPI_SUCCESS && round % 3 == 1)
            CHECK_EQ(block.differs(static_cast<unsigned>(rank()), kBytes), -1);
        if (code != MPI_SUCCESS) OK(MPIX_File_revoke(file));
    }
    CHECK(is_of_faults(code));
    code = MPI_File_close(&file);
    CHECK(is_of_faults(code));
    std::printf("survived\n");
}

// Every rank waits for something else that never comes; the first revokes. Nobody dies.
MPI_CASE(revoked_windows_end, 5) {
    if (!gpu().simulated) skip("needs the simulated GPU");
    use_device(0);
    for (int round = 0; round < 8; ++round) {
        Memory memory(round % 2 == 0 ? Kind::host : Kind::device, 4096), got(Kind::host, 4096);
        MPI_Win win = window_of(memory);
        MPI_Group world, others;
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        const int next[] = {(rank() + 1) % 5};
        OK(MPI_Group_incl(world, 1, next, &others));
        if (rank() == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        int code = MPI_SUCCESS;
        switch (rank() == 0 ? -1 : (rank() + round) % 4) {
            case 0: code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); break;
            case 1: code = MPI_Win_fence(0, win); break;
            case 2: code = MPI_Win_start(others, 0, win); break;
            case 3:
                code = MPI_Win_post(others, 0, win);
                if (code == MPI_SUCCESS) code = MPI_Win_wait(win);
                break;
            default: OK(MPIX_Win_revoke(win)); code = MPI_Win_flush(0, win);
        }
        CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
        // Whoever has not heard of it could have the lock.
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank() == 0) CHECK_EQ(class_of(MPI_Win_unlock(0, win)), MPIX_ERR_REVOKED);
        OK(MPIX_Win_revoke(win));
        CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win)), MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_Win_lock_all(0, win)), MPIX_ERR_REVOKED);
        MPI_Group failed;
        OK(MPIX_Win_get_failed(win, &failed));
        CHECK_EQ(group_size(failed), 0);
        CHECK_EQ(class_of(MPI_Win_free(&win)), MPIX_ERR_REVOKED);
        CHECK(win == MPI_WIN_NULL);
        // Its communicator is as before.
        int one = 1, sum = 0;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(sum, 5);
        OK(MPI_Group_free(&others));
        OK(MPI_Group_free(&world));
    }
}

MPI_CASE(revoked_files_end, 3) {
    Folder folder;
    int number = rank();
    for (int round = 0; round < 3; ++round) {
        MPI_File file = open_file(folder / "revoked", MPI_MODE_RDWR | MPI_MODE_CREATE);
        OK(MPI_Barrier(MPI_COMM_WORLD));  // who still opens it would find it revoked there
        int code = MPI_SUCCESS;
        switch (rank() == 0 ? -1 : round) {
            case 0:
                code =
                    MPI_File_write_at_all(file, 4 * rank(), &number, 1, MPI_INT, MPI_STATUS_IGNORE);
                break;
            case 1: code = MPI_File_sync(file); break;
            case 2:
                code = MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
                break;
            default: OK(MPIX_File_revoke(file)); code = MPI_File_sync(file);
        }
        CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE)),
                 MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_File_write_shared(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE)),
                 MPIX_ERR_REVOKED);
        MPI_Offset bytes = 0;
        CHECK_EQ(class_of(MPI_File_get_size(file, &bytes)), MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_File_close(&file)), MPIX_ERR_REVOKED);
        CHECK(file == MPI_FILE_NULL);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

}  // namespace mpi_tests
