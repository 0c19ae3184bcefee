// SPDX-License-Identifier: BSD-3-Clause
//
// Files: opening and closing, sizes, pointers, errors; and the forms of reads and writes. Views are
// in file_views.cpp, accesses of all ranks together in file_collectives.cpp.
#include "files.hpp"
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <array>
#include <numeric>

using namespace mpi_tests;

namespace {

std::vector<int> numbers(int first, int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), first);
    return all;
}

}  // namespace

MPI_CASE(a_file_is_made_sized_and_removed, 2) {
    const Folder folder;
    const std::string path = folder / "file";
    MPI_File file = open_file(path, kNew | MPI_MODE_EXCL);
    MPI_Offset size = -1;
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 0);
    OK(MPI_File_set_size(file, 1000));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 1000);
    OK(MPI_File_preallocate(file, 5000));
    OK(MPI_File_preallocate(file, 100));
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 5000);
    int mode = 0;
    OK(MPI_File_get_amode(file, &mode));
    CHECK_EQ(mode, kNew | MPI_MODE_EXCL);
    MPI_Group group, world;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int same = MPI_UNEQUAL;
    OK(MPI_Group_compare(group, world, &same));
    CHECK_EQ(same, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_sync(file));
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    CHECK(std::filesystem::exists(path));
    file = open_file(path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    CHECK(!std::filesystem::exists(path));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    file = open_file(folder / "other", kNew, MPI_COMM_SELF);
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank() == 0) OK(MPI_File_delete((folder / "other").c_str(), MPI_INFO_NULL));
}

MPI_CASE(hints_of_files_are_kept_and_told, 1) {
    const Folder folder;
    MPI_Info info, used;
    OK(MPI_Info_create(&info));
    for (const auto& [key, value] : {std::pair{"cb_buffer_size", "8192"},
                                     {"romio_cb_write", "enable"},
                                     {"cb_nodes", "many"},
                                     {"nobody_knows", "this"}})
        OK(MPI_Info_set(info, key, value));
    MPI_File file = open_file(folder / "file", kNew, MPI_COMM_SELF, info);
    OK(MPI_File_get_info(file, &used));
    const auto told = [&](const char* key) {
        char value[MPI_MAX_INFO_VAL + 1] = "";
        int room = MPI_MAX_INFO_VAL, flag = 0;
        OK(MPI_Info_get_string(used, key, &room, value, &flag));
        return flag != 0 ? std::string(value) : std::string("-");
    };
    CHECK(told("cb_buffer_size") == "8192");
    CHECK(told("romio_cb_write") == "enable");
    CHECK(told("romio_cb_read") == "automatic");
    CHECK(told("cb_nodes") == "-");
    CHECK(told("nobody_knows") == "-");
    OK(MPI_Info_free(&used));
    OK(MPI_Info_set(info, "romio_cb_write", "disable"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_get_info(file, &used));
    CHECK(told("romio_cb_write") == "disable");
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
}

MPI_CASE(what_a_file_refuses_is_told_in_a_sentence, 2) {
    const Folder folder;
    const std::string path = folder / "file", none = folder / "none";
    MPI_File file = MPI_FILE_NULL;
    const auto opened = [&](const std::string& name, int mode) {
        return MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, MPI_INFO_NULL, &file);
    };
    expect(opened(none, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE,
           {"MPI_File_open", none.c_str(), "ENOENT", "MPI_MODE_CREATE"}, "no such file");
    CHECK(file == MPI_FILE_NULL);
    expect(opened(none, MPI_MODE_RDONLY | MPI_MODE_RDWR), MPI_ERR_AMODE, {"exactly one"},
           "two ways");
    expect(opened(none, MPI_MODE_RDONLY | MPI_MODE_CREATE), MPI_ERR_AMODE, {"MPI_MODE_CREATE"},
           "a file that is only read is made");
    expect(opened(none, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL), MPI_ERR_AMODE,
           {"MPI_MODE_SEQUENTIAL"}, "a sequence both ways");
    expect(opened(folder / "", MPI_MODE_RDWR), MPI_ERR_BAD_FILE, {"folder"}, "a folder");
    expect(opened(none, rank() == 0 ? kNew : MPI_MODE_RDONLY), MPI_ERR_NOT_SAME, {"amode"},
           "modes that differ");
    expect(MPI_File_delete(none.c_str(), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, {none.c_str()},
           "nothing to delete");

    OK(opened(path, kNew));
    MPI_File second = MPI_FILE_NULL;
    expect(
        MPI_File_open(MPI_COMM_WORLD, path.c_str(), kNew | MPI_MODE_EXCL, MPI_INFO_NULL, &second),
        MPI_ERR_FILE_EXISTS, {path.c_str(), "MPI_MODE_EXCL"}, "there already");
    int value = 5;
    MPI_Status status;
    expect(MPI_File_write_at(file, -4, &value, 1, MPI_INT, &status), MPI_ERR_ARG,
           {"MPI_File_write_at", "offset", "-4"}, "a negative offset");
    expect(MPI_File_write_at(file, 0, &value, -1, MPI_INT, &status), MPI_ERR_COUNT, {"count"},
           "a negative count");
    expect(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG, {"whence", "MPI_SEEK_SET"}, "no whence");
    expect(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG, {"in front"}, "in front of it");
    expect(MPI_File_set_size(file, -1), MPI_ERR_ARG, {"size", "-1"}, "a negative size");
    expect(MPI_File_set_size(file, rank()), MPI_ERR_NOT_SAME, {"size"}, "sizes that differ");
    expect(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "mine", MPI_INFO_NULL),
           MPI_ERR_UNSUPPORTED_DATAREP, {"mine", "external32"}, "no representation");
    expect(MPI_File_set_view(file, -8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG,
           {"disp", "-8"}, "a negative displacement");
    expect(MPI_File_set_view(file, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_ARG,
           {"filetype", "etype"}, "a filetype that is no number of etypes");
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    char letter = 'x';
    expect(MPI_File_write(file, &letter, 1, MPI_CHAR, &status), MPI_ERR_IO, {"etype"},
           "a part of an etype");
    OK(MPI_File_close(&file));

    file = open_file(path, MPI_MODE_RDONLY);
    expect(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY,
           {path.c_str(), "MPI_MODE_RDONLY"}, "only read");
    OK(MPI_File_close(&file));
    file = open_file(path, MPI_MODE_WRONLY);
    expect(MPI_File_read(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS, {"MPI_MODE_WRONLY"},
           "only written");
    OK(MPI_File_close(&file));
    file = open_file(path, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    expect(MPI_File_read(file, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION,
           {"MPI_MODE_SEQUENTIAL"}, "a sequence");
    OK(MPI_File_close(&file));
    expect(MPI_File_close(&file), MPI_ERR_FILE, {"MPI_FILE_NULL"}, "closed already");
}

static int handler_calls = 0;
static void count_call(MPI_File*, int*, ...) {
    ++handler_calls;
}

// Also of what a request tells later.
MPI_CASE(the_handler_of_a_file_hears_of_its_failures, 1) {
    const Folder folder;
    const std::string path = folder / "file";
    make_file(path, {1, 2, 3});
    MPI_File file = open_file(path, MPI_MODE_RDONLY);
    MPI_Errhandler mine, found;
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(count_call, &mine));
    OK(MPI_File_set_errhandler(file, mine));
    int value = 0;
    CHECK_EQ(error_class(MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE)),
             MPI_ERR_READ_ONLY);
    CHECK_EQ(handler_calls, 1);
    OK(MPI_File_close(&file));
    // The folder of a process's memory: it opens, and nobody may write there.
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    file = open_file("/dev/full", MPI_MODE_WRONLY);
    MPI_Request request;
    OK(MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request));
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(error_class(code), MPI_ERR_NO_SPACE);
    CHECK(text_of(code).find("/dev/full") != std::string::npos);
    CHECK_EQ(handler_calls, 2);
    CHECK_EQ(error_class(MPI_File_write_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE)),
             MPI_ERR_NO_SPACE);
    CHECK_EQ(handler_calls, 3);
    OK(MPI_File_close(&file));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&mine));
}

MPI_CASE(every_pointer_goes_where_it_says, 2) {
    const Folder folder;
    const std::string path = folder / "file";
    MPI_File file = open_file(path, kNew);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    constexpr int kEach = 1000;
    const std::vector<int> mine = numbers(rank() * kEach, kEach);
    MPI_Status status;
    OK(MPI_File_write_at(file, rank() * kEach, mine.data(), kEach, MPI_INT, &status));
    CHECK_EQ(count_of(status, MPI_INT), kEach);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset place = -1;
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 0);
    std::vector<int> got(2 * kEach + 10, -1);
    OK(MPI_File_read(file, got.data(), kEach, MPI_INT, &status));
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, kEach);
    OK(MPI_File_read(file, got.data() + kEach, kEach, MPI_INT, &status));
    CHECK(std::vector<int>(got.begin(), got.begin() + 2 * kEach) == numbers(0, 2 * kEach));
    // At the end there is nothing, and nothing is wrong.
    OK(MPI_File_read(file, got.data(), 10, MPI_INT, &status));
    CHECK_EQ(count_of(status, MPI_INT), 0);
    OK(MPI_File_read_at(file, 2 * kEach - 3, got.data(), 10, MPI_INT, &status));
    CHECK_EQ(count_of(status, MPI_INT), 3);
    OK(MPI_File_seek(file, -5, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 2 * kEach - 5);
    OK(MPI_File_seek(file, -5, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 2 * kEach - 10);
    OK(MPI_File_seek(file, 7, MPI_SEEK_SET));
    OK(MPI_File_read(file, got.data(), 1, MPI_INT, &status));
    CHECK_EQ(got[0], 7);
    // The large-count forms are the same.
    MPI_Count count = 0;
    OK(MPI_File_read_at_c(file, 20, got.data(), MPI_Count{5}, MPI_INT, &status));
    OK(MPI_Get_count_c(&status, MPI_INT, &count));
    CHECK_EQ(count, 5);
    CHECK_EQ(got[0], 20);
    MPI_Offset byte = 0;
    OK(MPI_File_get_byte_offset(file, 100, &byte));
    CHECK_EQ(byte, 400);
    OK(MPI_File_close(&file));
    file = open_file(path, MPI_MODE_RDWR | MPI_MODE_APPEND);
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 2 * kEach * 4);
    OK(MPI_File_close(&file));
}

MPI_CASE(many_requests_are_in_flight_at_once, 2) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew);
    constexpr int kRequests = 50, kInts = 300;
    std::vector<std::vector<int>> sent, got(kRequests, std::vector<int>(kInts));
    std::vector<MPI_Request> requests(kRequests);
    for (int i = 0; i < kRequests; ++i)
        sent.push_back(numbers(1000 * i + rank(), kInts));
    const MPI_Offset base = rank() * kRequests * kInts * 4;
    OK(MPI_File_seek(file, base, MPI_SEEK_SET));
    for (int i = 0; i < kRequests; ++i)
        OK(MPI_File_iwrite(file, sent[static_cast<std::size_t>(i)].data(), kInts, MPI_INT,
                           &requests[static_cast<std::size_t>(i)]));
    std::vector<MPI_Status> statuses(kRequests);
    OK(MPI_Waitall(kRequests, requests.data(), statuses.data()));
    for (const MPI_Status& each : statuses)
        CHECK_EQ(count_of(each, MPI_INT), kInts);
    for (int i = 0; i < kRequests; ++i)
        OK(MPI_File_iread_at(file, base + i * kInts * 4, got[static_cast<std::size_t>(i)].data(),
                             kInts, MPI_INT, &requests[static_cast<std::size_t>(i)]));
    OK(MPI_Waitall(kRequests, requests.data(), MPI_STATUSES_IGNORE));
    CHECK(got == sent);
    // The type may be freed at once, and the request before its end.
    MPI_Datatype pairs;
    OK(MPI_Type_contiguous(2, MPI_INT, &pairs));
    OK(MPI_Type_commit(&pairs));
    OK(MPI_File_iwrite_at(file, base, sent[1].data(), kInts / 2, pairs, &requests[0]));
    OK(MPI_Type_free(&pairs));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_File_close(&file));
}

// Memory of every kind, contiguous and strided, is what the file has, and the other way round.
MPI_CASE(device_memory_is_written_and_read, 1) {
    const Folder folder;
    constexpr std::size_t kBytes = 1024 * 1024 + 12;
    constexpr std::size_t kElements = 6;
    MPI_Datatype strided;
    OK(MPI_Type_vector(1000, 3, 5, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    for (const Kind kind : every_kind()) {
        about(name(kind));
        const std::string path = folder / name(kind);
        Memory source(kind, kBytes), sink(kind, kBytes);
        source.fill(7);
        sink.fill(8);
        MPI_File file = open_file(path, kNew, MPI_COMM_SELF);
        MPI_Status status;
        OK(MPI_File_write(file, source.data(), kBytes, MPI_BYTE, &status));
        CHECK_EQ(count_of(status, MPI_BYTE), kBytes);
        OK(MPI_File_read_at(file, 0, sink.data(), kBytes, MPI_BYTE, &status));
        CHECK_EQ(count_of(status, MPI_BYTE), kBytes);
        CHECK_EQ(sink.differs(7, kBytes), -1);
        std::vector<unsigned char> image(kBytes);
        source.read(image.data(), kBytes);
        CHECK(bytes_of(path) == image);
        // Strided: the data bytes, one behind the other.
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_write_at(file, 0, source.data(), kElements, strided, &status));
        CHECK_EQ(count_of(status, strided), kElements);
        std::vector<unsigned char> packed;
        MPI_Aint lower = 0, extent = 0;
        OK(MPI_Type_get_extent(strided, &lower, &extent));
        for (std::size_t element = 0; element < kElements; ++element)
            for (std::size_t row = 0; row < 1000; ++row)
                for (std::size_t byte = 0; byte < 12; ++byte)
                    packed.push_back(
                        image[element * static_cast<std::size_t>(extent) + row * 20 + byte]);
        CHECK(bytes_of(path) == packed);
        sink.fill(9);
        std::vector<unsigned char> expected(kBytes), found(kBytes);
        sink.read(expected.data(), kBytes);
        std::size_t next = 0;
        for (std::size_t element = 0; element < kElements; ++element)
            for (std::size_t row = 0; row < 1000; ++row)
                for (std::size_t byte = 0; byte < 12; ++byte)
                    expected[element * static_cast<std::size_t>(extent) + row * 20 + byte] =
                        packed[next++];
        OK(MPI_File_read_at(file, 0, sink.data(), kElements, strided, &status));
        CHECK_EQ(count_of(status, strided), kElements);
        sink.read(found.data(), kBytes);
        CHECK(found == expected);
        OK(MPI_File_close(&file));
    }
    OK(MPI_Type_free(&strided));
    about("");
}

// Each byte is copied once, between the GPU and slots that were there before: nothing that grows with the
// buffer is allocated, pinned or copied.
MPI_CASE(a_device_buffer_goes_through_slots_once, 1) {
    only_on_the_simulator();
    const Folder folder;
    constexpr std::size_t kBytes = 24 * 1024 * 1024;
    constexpr std::uint64_t kPieces = 24;
    Memory memory(Kind::device, kBytes);
    memory.fill(3);
    MPI_File file = open_file(folder / "file", kNew, MPI_COMM_SELF);
    for (int again = 0; again < 2; ++again) {
        OK(MPI_File_write_at(file, 0, memory.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, memory.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    const Census before = census();
    clear_operations();
    OK(MPI_File_write_at(file, 0, memory.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQ(operations().copies, kPieces);
    CHECK_EQ(operations().bytes, kBytes);
    clear_operations();
    OK(MPI_File_read_at(file, 0, memory.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQ(operations().copies, kPieces);
    CHECK_EQ(operations().bytes, kBytes);
    CHECK(census() == before);
    CHECK_EQ(memory.differs(3, kBytes), -1);
    OK(MPI_File_close(&file));
}

MPI_CASE(a_file_of_32_bits_reads_everywhere, 1) {
    const Folder folder;
    const std::string path = folder / "file";
    for (const Kind kind : {Kind::host, Kind::device}) {
        MPI_File file = open_file(path, kNew, MPI_COMM_SELF);
        OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
        Memory memory(kind, 12);
        const int values[] = {1, -2, 0x01020304};
        memory.write(values, sizeof values);
        MPI_Status status;
        OK(MPI_File_write(file, memory.data(), 3, MPI_INT, &status));
        CHECK_EQ(count_of(status, MPI_INT), 3);
        const std::vector<unsigned char> bytes = bytes_of(path);
        CHECK_EQ(bytes.size(), 16);
        CHECK(bytes[7] == 1 && bytes[8] == 0xff && bytes[11] == 0xfe && bytes[12] == 1 &&
              bytes[15] == 4);
        const int zeros[3] = {};
        memory.write(zeros, sizeof zeros);
        OK(MPI_File_read_at(file, 0, memory.data(), 3, MPI_INT, &status));
        int got[3];
        memory.read(got, sizeof got);
        CHECK(std::memcmp(got, values, sizeof got) == 0);
        // A long has four bytes there.
        OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
        MPI_Aint extent = 0;
        OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
        CHECK_EQ(extent, 4);
        const long two[] = {5, -6};
        OK(MPI_File_write_at(file, 1, two, 2, MPI_LONG, &status));
        long back[2] = {};
        OK(MPI_File_read_at_all(file, 1, back, 2, MPI_LONG, &status));
        CHECK(back[0] == 5 && back[1] == -6);
        // Every second long, in a file that has four bytes for each.
        MPI_Datatype vector, pair;
        OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &vector));
        OK(MPI_Type_create_subarray(1, std::array{4}.data(), std::array{2}.data(),
                                    std::array{1}.data(), MPI_ORDER_C, MPI_LONG, &pair));
        OK(MPI_Type_commit(&vector));
        OK(MPI_Type_commit(&pair));
        OK(MPI_File_get_type_extent(file, vector, &extent));
        CHECK_EQ(extent, 12);
        OK(MPI_File_get_type_extent(file, pair, &extent));
        CHECK_EQ(extent, 16);
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_set_view(file, 0, MPI_LONG, vector, "external32", MPI_INFO_NULL));
        OK(MPI_File_write_at(file, 0, two, 2, MPI_LONG, &status));
        const std::vector<unsigned char> spread = bytes_of(path);
        CHECK_EQ(spread.size(), 12);
        CHECK(spread[3] == 5 && spread[7] == 0 && spread[11] == 0xfa);
        OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
        OK(MPI_Type_free(&vector));
        OK(MPI_Type_free(&pair));
        char name[MPI_MAX_DATAREP_STRING];
        MPI_Offset disp = 0;
        MPI_Datatype etype, filetype;
        OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
        CHECK(std::strcmp(name, "external32") == 0 && etype == MPI_LONG);
        OK(MPI_File_close(&file));
        OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
    }
}

namespace {

// A representation of the test's own: every byte upside down, and a byte in front of each int.
int extent_of_mine(MPI_Datatype, MPI_Aint* extent, void*) {
    *extent = 5;
    return MPI_SUCCESS;
}
int write_mine(void* user, MPI_Datatype, int count, void* file, MPI_Offset, void* state) {
    ++*static_cast<int*>(state);
    for (int i = 0; i < count; ++i) {
        auto* to = static_cast<unsigned char*>(file) + i * 5;
        to[0] = 'i';
        for (int byte = 0; byte < 4; ++byte)
            to[1 + byte] =
                static_cast<unsigned char>(~static_cast<unsigned char*>(user)[i * 4 + byte]);
    }
    return MPI_SUCCESS;
}
int read_mine(void* user, MPI_Datatype, int count, void* file, MPI_Offset, void* state) {
    ++*static_cast<int*>(state);
    for (int i = 0; i < count; ++i)
        for (int byte = 0; byte < 4; ++byte)
            static_cast<unsigned char*>(user)[i * 4 + byte] =
                static_cast<unsigned char>(~static_cast<unsigned char*>(file)[i * 5 + 1 + byte]);
    return MPI_SUCCESS;
}

}  // namespace

MPI_CASE(a_program_registers_its_own_representation, 1) {
    const Folder folder;
    int calls = 0;
    OK(MPI_Register_datarep("upside down", read_mine, write_mine, extent_of_mine, &calls));
    expect(MPI_Register_datarep("upside down", read_mine, write_mine, extent_of_mine, &calls),
           MPI_ERR_DUP_DATAREP, {"upside down"}, "twice");
    MPI_File file = open_file(folder / "file", kNew);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "upside down", MPI_INFO_NULL));
    const int values[] = {1, 2, 3};
    int got[3] = {};
    OK(MPI_File_write(file, values, 3, MPI_INT, MPI_STATUS_IGNORE));
    const std::vector<unsigned char> bytes = bytes_of(folder / "file");
    CHECK_EQ(bytes.size(), 15);
    CHECK(bytes[0] == 'i' && bytes[1] == 0xfe && bytes[6] == 0xfd);
    OK(MPI_File_read_at(file, 0, got, 3, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(std::memcmp(got, values, sizeof got) == 0);
    CHECK_EQ(calls, 2);
    OK(MPI_File_close(&file));
}
