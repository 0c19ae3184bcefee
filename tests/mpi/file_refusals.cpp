// SPDX-License-Identifier: BSD-3-Clause
//
// Collective calls of a file with an argument that is wrong on one rank alone: all ranks have the error, with a
// sentence that says which rank it was and what is wrong there; nobody waits, and the next calls are in step.
// Ranks that say different things where they have promised the same go alike even so.
#include "files.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <functional>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

// Rank 1's arguments are wrong. It has its own sentence, the others have it with its number.
void expect_on_all(int code, int wanted, const char* word, const char* what) {
    if (rank() == 1)
        expect(code, wanted, {word}, what);
    else
        expect(code, wanted, {"on rank 1", word}, what);
}

bool bad() {
    return rank() == 1;
}

}  // namespace

MPI_CASE(a_mode_that_one_rank_gets_wrong_is_refused_on_all, 3) {
    const Folder folder;
    MPI_File file = MPI_FILE_NULL;
    const std::string path = folder / "file";
    expect_on_all(
        MPI_File_open(MPI_COMM_WORLD, path.c_str(), bad() ? MPI_MODE_RDONLY | MPI_MODE_RDWR : kNew,
                      MPI_INFO_NULL, &file),
        MPI_ERR_AMODE, "exactly one", "two ways");
    CHECK(file == MPI_FILE_NULL);
    file = open_file(path, kNew);
    OK(MPI_File_close(&file));
}

MPI_CASE(a_view_that_one_rank_gets_wrong_is_refused_on_all, 3) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew);
    expect_on_all(
        MPI_File_set_view(file, bad() ? -8 : 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
        MPI_ERR_ARG, "disp", "a negative displacement");
    expect_on_all(
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, bad() ? "mine" : "native", MPI_INFO_NULL),
        MPI_ERR_UNSUPPORTED_DATAREP, "mine", "no representation");
    expect_on_all(
        MPI_File_set_view(file, 0, MPI_INT, bad() ? MPI_BYTE : MPI_INT, "native", MPI_INFO_NULL),
        MPI_ERR_ARG, "filetype", "a filetype that is no number of etypes");
    MPI_Offset disp = 1;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
    CHECK(disp == 0 && etype == MPI_BYTE);
    OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_close(&file));
}

MPI_CASE(sizes_and_seeks_that_one_rank_gets_wrong_are_refused_on_all, 3) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew);
    OK(MPI_File_set_size(file, 50));
    expect_on_all(MPI_File_set_size(file, bad() ? -1 : 100), MPI_ERR_ARG, "size", "a size");
    expect_on_all(MPI_File_preallocate(file, bad() ? -1 : 100), MPI_ERR_ARG, "size", "room");
    MPI_Offset size = 0;
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 50);
    expect_on_all(MPI_File_seek_shared(file, 8, bad() ? 12345 : MPI_SEEK_SET), MPI_ERR_ARG,
                  "whence", "no whence");
    OK(MPI_File_get_position_shared(file, &size));
    CHECK_EQ(size, 0);
    OK(MPI_File_seek_shared(file, 8, MPI_SEEK_SET));
    OK(MPI_File_close(&file));
}

// In every form; behind each the next one is in step.
MPI_CASE(reads_and_writes_that_one_rank_gets_wrong_are_refused_on_all, 3) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int value = 7, got = 0;
    const MPI_Datatype part = bad() ? MPI_CHAR : MPI_INT;
    const MPI_Offset place = bad() ? -4 : rank();
    MPI_Status status;
    expect_on_all(MPI_File_write_ordered(file, &value, 1, part, &status), MPI_ERR_IO, "etype",
                  "in the order of ranks");
    expect_on_all(MPI_File_write_all(file, &value, 1, part, &status), MPI_ERR_IO, "etype",
                  "at the individual pointer");
    expect_on_all(MPI_File_write_at_all(file, place, &value, 1, MPI_INT, &status), MPI_ERR_ARG,
                  "offset", "at an offset");
    expect_on_all(MPI_File_read_at_all(file, place, &got, 1, MPI_INT, &status), MPI_ERR_ARG,
                  "offset", "a read");
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_File_iwrite_at_all(file, place, &value, 1, MPI_INT, &request);
    if (!bad()) {
        OK(code);
        code = MPI_Wait(&request, &status);
    }
    expect_on_all(code, MPI_ERR_ARG, "offset", "nonblocking");
    code = MPI_File_write_at_all_begin(file, place, &value, 1, MPI_INT);
    if (!bad()) {
        OK(code);
        code = MPI_File_write_at_all_end(file, &value, &status);
    }
    expect_on_all(code, MPI_ERR_ARG, "offset", "split");
    value = 100 + rank();
    OK(MPI_File_write_at_all(file, rank(), &value, 1, MPI_INT, &status));
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, (rank() + 1) % 3, &got, 1, MPI_INT, &status));
    CHECK_EQ(got, 100 + (rank() + 1) % 3);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    expect_on_all(MPI_File_write_at_all(file, place, &value, 1, MPI_INT, &status), MPI_ERR_ARG,
                  "offset", "converted");
    OK(MPI_File_close(&file));
}

MPI_CASE(ranks_whose_hints_and_modes_differ_write_and_read_all_the_same, 3) {
    const Folder folder;
    for (const bool atomic_differs : {false, true}) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "romio_cb_write", rank() == 0 ? "enable" : "disable"));
        OK(MPI_Info_set(info, "romio_cb_read", rank() == 1 ? "disable" : "enable"));
        OK(MPI_Info_set(info, "cb_buffer_size", rank() == 2 ? "8192" : "16384"));
        OK(MPI_Info_set(info, "cb_nodes", rank() == 2 ? "2" : "1"));
        MPI_File file =
            open_file(folder / (atomic_differs ? "atomic" : "file"), kNew, MPI_COMM_WORLD, info);
        OK(MPI_Info_free(&info));
        OK(MPI_File_set_atomicity(file, atomic_differs && rank() == 1 ? 1 : 0));
        MPI_Datatype mine;
        OK(MPI_Type_create_resized(MPI_INT, 0, 3 * 4, &mine));
        OK(MPI_Type_commit(&mine));
        OK(MPI_File_set_view(file, rank() * 4, MPI_INT, mine, "native", MPI_INFO_NULL));
        std::vector<int> sent(5000), got(5000);
        for (std::size_t i = 0; i < sent.size(); ++i)
            sent[i] = static_cast<int>(i) * 3 + rank();
        OK(MPI_File_write_at_all(file, 0, sent.data(), 5000, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at_all(file, 0, got.data(), 5000, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(got == sent);
        OK(MPI_File_close(&file));
        OK(MPI_Type_free(&mine));
    }
}
