// SPDX-License-Identifier: BSD-3-Clause
//
// Files that all ranks access together: interleaved views in two phases, the shared pointer, ordered
// and split calls, atomic mode.
#include "tests/all.hpp"
#include "files.hpp"
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <algorithm>
#include <random>

using namespace mpi_tests;

namespace {

MPI_Info info_of(std::initializer_list<std::pair<const char*, const char*>> hints) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (const auto& [key, value] : hints)
        OK(MPI_Info_set(info, key, value));
    return info;
}

unsigned char byte_at(std::size_t place) {
    return static_cast<unsigned char>(place * 31 + place / 255);
}

// One round of random blocks, each some rank's or nobody's; all ranks draw the same.
struct Pattern {
    std::vector<std::vector<int>> lengths, places;  // by rank
    int extent = 0;

    Pattern(unsigned seed, int ranks) : lengths(static_cast<std::size_t>(ranks)), places(lengths) {
        std::mt19937 random(seed);
        const unsigned longest = random() % 2 == 0 ? 20 : 1000;
        for (int block = 0; block < 40; ++block) {
            const auto owner = random() % static_cast<unsigned>(ranks + 1);
            const int bytes = 1 + static_cast<int>(random() % longest);
            if (owner < static_cast<unsigned>(ranks)) {
                lengths[owner].push_back(bytes);
                places[owner].push_back(extent);
            }
            extent += bytes;
        }
    }
    MPI_Datatype type(int of_rank) const {
        const auto r = static_cast<std::size_t>(of_rank);
        MPI_Datatype blocks, whole;
        OK(MPI_Type_indexed(static_cast<int>(lengths[r].size()), lengths[r].data(),
                            places[r].data(), MPI_BYTE, &blocks));
        OK(MPI_Type_create_resized(blocks, 0, extent, &whole));
        OK(MPI_Type_commit(&whole));
        OK(MPI_Type_free(&blocks));
        return whole;
    }
    std::size_t bytes(int of_rank) const {
        std::size_t all = 0;
        for (const int each : lengths[static_cast<std::size_t>(of_rank)])
            all += static_cast<std::size_t>(each);
        return all;
    }
    // Where that data byte of the rank's view is.
    std::size_t place(int of_rank, std::size_t byte) const {
        const std::size_t tile = byte / bytes(of_rank);
        byte %= bytes(of_rank);
        const auto r = static_cast<std::size_t>(of_rank);
        for (std::size_t block = 0;; ++block) {
            const auto length = static_cast<std::size_t>(lengths[r][block]);
            if (byte < length)
                return tile * static_cast<std::size_t>(extent) +
                       static_cast<std::size_t>(places[r][block]) + byte;
            byte -= length;
        }
    }
};

// Writes and reads all of it; a few bytes of the view are skipped first.
void exchange(const std::string& path, unsigned seed, Kind kind, bool strided_memory,
              MPI_Info info) {
    const Pattern pattern(seed, size());
    constexpr int kDisplacement = 13;
    constexpr std::size_t kSkipped = 3, kTiles = 4;
    const std::size_t mine = pattern.bytes(rank()) * kTiles;
    const std::size_t bytes = mine > kSkipped ? (mine - kSkipped) / 2 * 2 : 0;
    MPI_File file = open_file(path, kNew, MPI_COMM_WORLD, info);
    MPI_Datatype type = pattern.bytes(rank()) > 0 ? pattern.type(rank()) : MPI_BYTE;
    OK(MPI_File_set_view(file, kDisplacement, MPI_BYTE, type, "native", MPI_INFO_NULL));

    // In memory: all together, or two bytes of every three.
    const std::size_t step = strided_memory ? 3 : 2;
    std::vector<unsigned char> image(bytes / 2 * step + 1, 0xee);
    for (std::size_t byte = 0; byte < bytes; ++byte)
        image[byte / 2 * step + byte % 2] =
            byte_at(kDisplacement + pattern.place(rank(), kSkipped + byte));
    MPI_Datatype two, of_memory;
    OK(MPI_Type_contiguous(2, MPI_BYTE, &two));
    OK(MPI_Type_create_resized(two, 0, static_cast<MPI_Aint>(step), &of_memory));
    OK(MPI_Type_commit(&of_memory));
    Memory source(kind, image.size()), sink(kind, image.size());
    source.write(image.data(), image.size());
    MPI_Status status;
    OK(MPI_File_write_at_all(file, kSkipped, source.data(), static_cast<int>(bytes / 2), of_memory,
                             &status));
    CHECK_EQ(count_of(status, MPI_BYTE), bytes);
    OK(MPI_File_sync(file));
    if (rank() == 0) {
        const std::vector<unsigned char> file_bytes = bytes_of(path);
        for (int each = 0; each < size(); ++each) {
            const std::size_t its = pattern.bytes(each) * kTiles;
            for (std::size_t byte = kSkipped; byte < kSkipped + (its - kSkipped) / 2 * 2; ++byte) {
                if (its <= kSkipped) break;
                const std::size_t place = kDisplacement + pattern.place(each, byte);
                if (place >= file_bytes.size() || file_bytes[place] != byte_at(place)) {
                    fail(__FILE__, __LINE__,
                         "seed " + std::to_string(seed) + ": byte " + std::to_string(place) +
                             " of rank " + std::to_string(each));
                    break;
                }
            }
        }
    }
    std::vector<unsigned char> got(image.size(), 0xee);
    sink.write(got.data(), got.size());
    OK(MPI_File_seek(file, kSkipped, MPI_SEEK_SET));
    MPI_Request request;
    OK(MPI_File_iread_all(file, sink.data(), static_cast<int>(bytes / 2), of_memory, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_EQ(count_of(status, MPI_BYTE), bytes);
    sink.read(got.data(), got.size());
    CHECK(got == image);
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&of_memory));
    if (type != MPI_BYTE) OK(MPI_Type_free(&type));
    OK(MPI_File_close(&file));
}

}  // namespace

MPI_CASE(interleaved_views_are_written_and_read_together, 4) {
    const Folder folder;
    MPI_Info together = info_of(
        {{"romio_cb_write", "enable"}, {"romio_cb_read", "enable"}, {"cb_buffer_size", "4096"}});
    MPI_Info two =
        info_of({{"romio_cb_write", "enable"}, {"romio_cb_read", "enable"}, {"cb_nodes", "2"}});
    MPI_Info alone = info_of({{"romio_cb_write", "disable"}, {"romio_cb_read", "disable"}});
    for (unsigned seed = 1; seed <= gantry::seeds(8, 800); ++seed) {
        about("seed " + std::to_string(seed));
        MPI_Info info = seed % 4 == 0   ? MPI_INFO_NULL
                        : seed % 4 == 1 ? together
                        : seed % 4 == 2 ? two
                                        : alone;
        exchange(folder / std::to_string(seed), seed, Kind::host, seed % 2 == 0, info);
    }
    about("");
    for (MPI_Info* each : {&together, &two, &alone})
        OK(MPI_Info_free(each));
}

MPI_CASE(device_memory_is_written_and_read_together, 2) {
    const Folder folder;
    MPI_Info together = info_of(
        {{"romio_cb_write", "enable"}, {"romio_cb_read", "enable"}, {"cb_buffer_size", "16384"}});
    for (unsigned seed = 21; seed <= 20 + gantry::seeds(4, 200); ++seed) {
        about("seed " + std::to_string(seed));
        exchange(folder / std::to_string(seed), seed, Kind::device, seed % 2 == 0,
                 seed % 4 == 1 || seed % 4 == 2 ? together : MPI_INFO_NULL);
    }
    about("");
    OK(MPI_Info_free(&together));
}

// In the order of the calls on all ranks, waited for in an order of each rank's own.
MPI_CASE(several_calls_of_all_ranks_are_in_flight, 3) {
    const Folder folder;
    MPI_Info info = info_of({{"cb_buffer_size", "8192"}});
    MPI_File file = open_file(folder / "file", kNew, MPI_COMM_WORLD, info);
    constexpr int kRun = 24, kCalls = 6, kBytes = 24 * 500;
    MPI_Datatype run, mine;
    OK(MPI_Type_contiguous(kRun, MPI_BYTE, &run));
    OK(MPI_Type_create_resized(run, 0, kRun * size(), &mine));
    OK(MPI_Type_commit(&mine));
    OK(MPI_File_set_view(file, kRun * rank(), MPI_BYTE, mine, "native", MPI_INFO_NULL));
    std::vector<std::vector<unsigned char>> sent, got(kCalls, std::vector<unsigned char>(kBytes));
    std::vector<MPI_Request> requests(kCalls);
    for (int i = 0; i < kCalls; ++i)
        sent.emplace_back(kBytes, static_cast<unsigned char>(rank() * 16 + i));
    for (int i = 0; i < kCalls; ++i)
        OK(MPI_File_iwrite_at_all(file, i * kBytes, sent[static_cast<std::size_t>(i)].data(),
                                  kBytes, MPI_BYTE, &requests[static_cast<std::size_t>(i)]));
    for (int i = 0; i < kCalls; ++i)
        OK(MPI_Wait(&requests[static_cast<std::size_t>((i * 5 + rank()) % kCalls)],
                    MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < kCalls; ++i)
        OK(MPI_File_iread_at_all(file, i * kBytes, got[static_cast<std::size_t>(i)].data(), kBytes,
                                 MPI_BYTE, &requests[static_cast<std::size_t>(i)]));
    OK(MPI_Waitall(kCalls, requests.data(), MPI_STATUSES_IGNORE));
    CHECK(got == sent);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&run));
    OK(MPI_Type_free(&mine));
    OK(MPI_Info_free(&info));
}

// Who asks for more than there is gets what there is, on each rank.
MPI_CASE(reads_of_all_end_where_the_file_does, 3) {
    const Folder folder;
    const std::string path = folder / "file";
    if (rank() == 0) make_file(path, std::vector<unsigned char>(100 + 3 * 4 * 10 - 5, 'a'));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (const char* how : {"enable", "disable"}) {
        MPI_Info info = info_of({{"romio_cb_read", how}});
        MPI_File file = open_file(path, MPI_MODE_RDONLY, MPI_COMM_WORLD, info);
        MPI_Datatype mine;
        OK(MPI_Type_create_resized(MPI_INT, 0, 3 * 4, &mine));
        OK(MPI_Type_commit(&mine));
        OK(MPI_File_set_view(file, 100 + rank() * 4, MPI_BYTE, mine, "native", MPI_INFO_NULL));
        std::vector<unsigned char> got(80);
        MPI_Status status;
        OK(MPI_File_read_all(file, got.data(), 80, MPI_BYTE, &status));
        CHECK_EQ(count_of(status, MPI_BYTE), rank() == 0 ? 40 : rank() == 1 ? 39 : 36);
        OK(MPI_File_read_at_all(file, 1000, got.data(), 80, MPI_BYTE, &status));
        CHECK_EQ(count_of(status, MPI_BYTE), 0);
        OK(MPI_File_close(&file));
        OK(MPI_Type_free(&mine));
        OK(MPI_Info_free(&info));
    }
}

MPI_CASE(ranks_share_a_pointer, 3) {
    const Folder folder;
    const std::string path = folder / "file";
    MPI_File file = open_file(path, kNew);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    constexpr int kTimes = 40;
    for (int i = 0; i < kTimes; ++i) {
        const int values[] = {rank(), i};
        if (i % 2 == 0) {
            OK(MPI_File_write_shared(file, values, 2, MPI_INT, MPI_STATUS_IGNORE));
        } else {
            MPI_Request request;
            OK(MPI_File_iwrite_shared(file, values, 2, MPI_INT, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset place = 0;
    OK(MPI_File_get_position_shared(file, &place));
    CHECK_EQ(place, 3 * kTimes * 2);
    // Everything is there once, and each rank's in its order.
    std::vector<int> all(static_cast<std::size_t>(place)), next(3);
    OK(MPI_File_read_at(file, 0, all.data(), static_cast<int>(place), MPI_INT, MPI_STATUS_IGNORE));
    for (std::size_t i = 0; i < all.size(); i += 2)
        CHECK_EQ(all[i + 1], next[static_cast<std::size_t>(all[i])]++);
    OK(MPI_File_seek_shared(file, 6, MPI_SEEK_SET));
    int mine[2] = {};
    OK(MPI_File_read_ordered(file, mine, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(mine[0] == all[static_cast<std::size_t>(6 + 2 * rank())] &&
          mine[1] == all[static_cast<std::size_t>(7 + 2 * rank())]);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK_EQ(place, 12);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_END));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Of different lengths, the last one none.
    const std::vector<int> more(5, 100 + rank());
    OK(MPI_File_write_ordered_begin(file, more.data(), 2 - rank(), MPI_INT));
    MPI_Status status;
    OK(MPI_File_write_ordered_end(file, more.data(), &status));
    CHECK_EQ(count_of(status, MPI_INT), 2 - rank());
    int got[3] = {};
    OK(MPI_File_read_at(file, 3 * kTimes * 2, got, 3, MPI_INT, &status));
    CHECK_EQ(count_of(status, MPI_INT), 3);
    CHECK(got[0] == 100 && got[1] == 100 && got[2] == 101);
    int value = 0;
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
}

MPI_CASE(a_split_call_ends_what_it_began, 2) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew);
    std::vector<int> mine(500, 7 + rank()), got(500);
    const MPI_Offset place = rank() * 2000;
    OK(MPI_File_write_at_all_begin(file, place, mine.data(), 500, MPI_INT));
    expect(MPI_File_write_all_begin(file, mine.data(), 1, MPI_INT), MPI_ERR_IO, {"under way"},
           "a second one");
    expect(MPI_File_read_all_end(file, got.data(), MPI_STATUS_IGNORE), MPI_ERR_IO, {"another call"},
           "the end of another one");
    MPI_Status status;
    OK(MPI_File_write_at_all_end(file, mine.data(), &status));
    CHECK_EQ(count_of(status, MPI_INT), 500);
    expect(MPI_File_write_at_all_end(file, mine.data(), &status), MPI_ERR_IO, {"none"}, "again");
    OK(MPI_File_seek(file, place, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, got.data(), 500, MPI_INT));
    OK(MPI_File_read_all_end(file, got.data(), &status));
    CHECK_EQ(count_of(status, MPI_INT), 500);
    CHECK(got == mine);
    OK(MPI_File_close(&file));
}

// Overlapping writes of whole buffers: what is there in the end is one of them.
MPI_CASE(atomic_writes_are_whole, 3) {
    const Folder folder;
    const std::string path = folder / "file";
    MPI_File file = open_file(path, kNew);
    int flag = 1;
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 1);
    // Every second byte, so that no system call is the whole of it.
    MPI_Datatype every_second;
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 2, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, every_second, "native", MPI_INFO_NULL));
    const std::vector<unsigned char> mine(2000, static_cast<unsigned char>('a' + rank()));
    for (int again = 0; again < 5; ++again) {
        OK(MPI_File_write_at(file, 0, mine.data(), 2000, MPI_BYTE, MPI_STATUS_IGNORE));
        std::vector<unsigned char> got(2000);
        OK(MPI_File_read_at(file, 0, got.data(), 2000, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(std::all_of(got.begin(), got.end(),
                          [&](unsigned char each) { return each == got[0]; }));
    }
    OK(MPI_File_write_at_all(file, 0, mine.data(), 2000, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&every_second));
}

// A disk that is full on one rank alone is full for all.
MPI_CASE(a_failure_on_one_rank_is_one_on_all, 2) {
    const Folder folder;
    MPI_File file = open_file("/dev/full", MPI_MODE_WRONLY);
    const int value = 5;
    const int code =
        MPI_File_write_at_all(file, 0, &value, rank() == 0 ? 1 : 0, MPI_INT, MPI_STATUS_IGNORE);
    expect(code, MPI_ERR_NO_SPACE, {"/dev/full", "ENOSPC"}, "a full disk");
    if (rank() == 1) CHECK(text_of(code).find("on rank 0") != std::string::npos);
    OK(MPI_File_close(&file));
    expect_alive(MPI_COMM_WORLD);
}
