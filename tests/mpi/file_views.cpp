// SPDX-License-Identifier: BSD-3-Clause
//
// Views against a model in memory: random filetypes, etypes, displacements, offsets and types of memory,
// one rank at a time; what is written is where the model has it, and nothing else has changed.
#include "tests/all.hpp"
#include "files.hpp"
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <array>
#include <random>

using namespace mpi_tests;

namespace {

using Bytes = std::vector<unsigned char>;

// A type, and where each of its data bytes lies, in their order.
struct Type {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    std::vector<std::size_t> places;
    std::size_t extent = 0;
    std::size_t place(std::size_t byte) const {
        return byte / places.size() * extent + places[byte % places.size()];
    }
};

// Blocks of so many bytes each, of items of `item` bytes, in rising order.
Type blocks(std::mt19937& random, int item, bool forward) {
    const int count = 1 + static_cast<int>(random() % 5);
    std::vector<int> lengths, starts;
    int at = static_cast<int>(random() % 3);
    for (int i = 0; i < count; ++i) {
        lengths.push_back(1 + static_cast<int>(random() % 4));
        starts.push_back(at);
        at += lengths.back() + static_cast<int>(random() % 4);
    }
    // Memory has them in any order.
    if (!forward)
        for (int i = count - 1; i > 0; --i) {
            const auto other = static_cast<std::size_t>(random() % static_cast<unsigned>(i + 1));
            std::swap(lengths[static_cast<std::size_t>(i)], lengths[other]);
            std::swap(starts[static_cast<std::size_t>(i)], starts[other]);
        }
    Type type;
    type.extent = static_cast<std::size_t>((at + static_cast<int>(random() % 3)) * item);
    MPI_Datatype of_item, of_blocks;
    OK(MPI_Type_contiguous(item, MPI_BYTE, &of_item));
    OK(MPI_Type_indexed(count, lengths.data(), starts.data(), of_item, &of_blocks));
    OK(MPI_Type_create_resized(of_blocks, 0, static_cast<MPI_Aint>(type.extent), &type.handle));
    OK(MPI_Type_commit(&type.handle));
    OK(MPI_Type_free(&of_item));
    OK(MPI_Type_free(&of_blocks));
    for (std::size_t i = 0; i < lengths.size(); ++i)
        for (int byte = 0; byte < lengths[i] * item; ++byte)
            type.places.push_back(static_cast<std::size_t>(starts[i] * item + byte));
    return type;
}

// Rows of a matrix whose columns this is a part of, as the standard's subarray has them.
Type part_of_matrix(std::mt19937& random, int item) {
    std::array<int, 2> sizes, parts, starts;
    for (std::size_t i = 0; i < 2; ++i) {
        sizes[i] = 2 + static_cast<int>(random() % 6);
        parts[i] = 1 + static_cast<int>(random() % static_cast<unsigned>(sizes[i]));
        starts[i] = static_cast<int>(random() % static_cast<unsigned>(sizes[i] - parts[i] + 1));
    }
    MPI_Datatype of_item;
    OK(MPI_Type_contiguous(item, MPI_BYTE, &of_item));
    Type type;
    OK(MPI_Type_create_subarray(2, sizes.data(), parts.data(), starts.data(), MPI_ORDER_C, of_item,
                                &type.handle));
    OK(MPI_Type_commit(&type.handle));
    OK(MPI_Type_free(&of_item));
    type.extent = static_cast<std::size_t>(sizes[0] * sizes[1] * item);
    for (int row = 0; row < parts[0]; ++row)
        for (int byte = 0; byte < parts[1] * item; ++byte)
            type.places.push_back(
                static_cast<std::size_t>(((starts[0] + row) * sizes[1] + starts[1]) * item + byte));
    return type;
}

void one_view(unsigned seed, Kind kind, const std::string& path) {
    std::mt19937 random(seed);
    const int item = 1 + static_cast<int>(random() % 4);
    Type in_file = random() % 3 == 0 ? part_of_matrix(random, item) : blocks(random, item, true);
    Type in_memory = blocks(random, item, false);
    MPI_Datatype etype;
    OK(MPI_Type_contiguous(item, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    const std::size_t displacement = random() % 50, etypes_before = random() % 20;
    const int count = 1 + static_cast<int>(random() % 30);
    const std::size_t bytes = in_memory.places.size() * static_cast<std::size_t>(count);

    // The file and the memory as they are, and as they should be.
    const std::size_t first = etypes_before * static_cast<std::size_t>(item);
    Bytes file_bytes(displacement + in_file.place(first + bytes) + 100);
    for (std::size_t i = 0; i < file_bytes.size(); ++i)
        file_bytes[i] = static_cast<unsigned char>(i * 3 + seed);
    make_file(path, file_bytes);
    Bytes image(in_memory.extent * static_cast<std::size_t>(count) + 1);
    for (std::size_t i = 0; i < image.size(); ++i)
        image[i] = static_cast<unsigned char>(i * 7 + 1);
    Memory memory(kind, image.size());
    memory.write(image.data(), image.size());
    for (std::size_t byte = 0; byte < bytes; ++byte)
        file_bytes[displacement + in_file.place(first + byte)] = image[in_memory.place(byte)];

    MPI_File file = open_file(path, MPI_MODE_RDWR, MPI_COMM_SELF);
    OK(MPI_File_set_view(file, static_cast<MPI_Offset>(displacement), etype, in_file.handle,
                         "native", MPI_INFO_NULL));
    MPI_Status status;
    MPI_Offset byte_offset = 0;
    OK(MPI_File_get_byte_offset(file, static_cast<MPI_Offset>(etypes_before), &byte_offset));
    CHECK_EQ(byte_offset, displacement + in_file.place(first));
    OK(MPI_File_write_at(file, static_cast<MPI_Offset>(etypes_before), memory.data(), count,
                         in_memory.handle, &status));
    CHECK_EQ(count_of(status, in_memory.handle), count);
    CHECK(bytes_of(path) == file_bytes);

    for (std::size_t i = 0; i < image.size(); ++i)
        image[i] = 0xcc;
    memory.write(image.data(), image.size());
    for (std::size_t byte = 0; byte < bytes; ++byte)
        image[in_memory.place(byte)] = file_bytes[displacement + in_file.place(first + byte)];
    OK(MPI_File_seek(file, static_cast<MPI_Offset>(etypes_before), MPI_SEEK_SET));
    MPI_Request request;
    OK(MPI_File_iread(file, memory.data(), count, in_memory.handle, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_EQ(count_of(status, MPI_BYTE), bytes);
    Bytes found(image.size());
    memory.read(found.data(), found.size());
    CHECK(found == image);
    OK(MPI_File_close(&file));
    for (MPI_Datatype* each : {&in_file.handle, &in_memory.handle, &etype})
        OK(MPI_Type_free(each));
}

}  // namespace

MPI_CASE(random_views_are_those_of_a_model, 1) {
    const Folder folder;
    for (unsigned seed = 1; seed <= gantry::seeds(150, 3000); ++seed) {
        about("seed " + std::to_string(seed));
        one_view(seed, seed % 5 == 0 ? Kind::device : Kind::host, folder / "file");
    }
    about("");
}

// Places that no 32 bits count.
MPI_CASE(a_view_reaches_behind_four_gigabytes, 1) {
    const Folder folder;
    const std::string path = folder / "file";
    MPI_File file = open_file(path, kNew | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype far;
    OK(MPI_Type_create_resized(MPI_INT, 0, MPI_Aint{3} << 30, &far));
    OK(MPI_Type_commit(&far));
    OK(MPI_File_set_view(file, (MPI_Offset{5} << 30) + 1, MPI_INT, far, "native", MPI_INFO_NULL));
    const int values[] = {1, 2, 3};
    int got[3] = {};
    OK(MPI_File_write_at(file, 2, values, 3, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 2, got, 3, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(std::memcmp(got, values, sizeof got) == 0);
    MPI_Offset size = 0;
    OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, (MPI_Offset{5} << 30) + 1 + 4 * (MPI_Offset{3} << 30) + 4);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    MPI_Offset place = 0;
    OK(MPI_File_get_position(file, &place));
    CHECK_EQ(place, 5);
    OK(MPI_Type_free(&far));
    OK(MPI_File_close(&file));
}

// As HDF5 makes them of the chunks of a dataset: members with bounds of their own make the extent of all less
// than what they reach. It uses one filetype; the second one would lie in the first.
MPI_CASE(a_filetype_longer_than_its_extent_is_used_once, 2) {
    constexpr int kChunk = 112, kChunks = 6, kBytes = kChunk * kChunks;
    MPI_Datatype chunk, bounded, filetype;
    OK(MPI_Type_contiguous(kChunk, MPI_BYTE, &chunk));
    OK(MPI_Type_create_resized(chunk, 0, kChunk, &bounded));
    int counts[kChunks];
    MPI_Aint places[kChunks];
    MPI_Datatype types[kChunks];
    for (int i = 0; i < kChunks; ++i) {
        counts[i] = 1;
        places[i] = 2 * i * kChunk;
        types[i] = i < kChunks / 2 ? chunk : bounded;
    }
    OK(MPI_Type_create_struct(kChunks, counts, places, types, &filetype));
    OK(MPI_Type_commit(&filetype));
    MPI_Aint low = 0, extent = 0, true_low = 0, reach = 0;
    OK(MPI_Type_get_extent(filetype, &low, &extent));
    OK(MPI_Type_get_true_extent(filetype, &true_low, &reach));
    CHECK(extent < reach);
    const Folder folder;
    MPI_File file = open_file(folder / "chunks", kNew);
    OK(MPI_File_set_view(file, rank() * kChunk, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    Bytes sent(kBytes), got(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i)
        sent[i] = static_cast<unsigned char>(1 + (i + static_cast<std::size_t>(rank())) % 250);
    OK(MPI_File_write_at_all(file, 0, sent.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, got.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(got == sent);
    CHECK_EQ(bytes_of(folder / "chunks").size(), 2 * kBytes);
    expect(MPI_File_write_at_all(file, 1, sent.data(), kBytes, MPI_BYTE, MPI_STATUS_IGNORE),
           MPI_ERR_IO, {"first filetype", "extent"}, "behind the only filetype");
    OK(MPI_File_close(&file));
    for (MPI_Datatype* type : {&chunk, &bounded, &filetype})
        OK(MPI_Type_free(type));
}

// As PnetCDF has it on ranks without a part of what all write.
MPI_CASE(a_rank_whose_filetype_is_empty_writes_nothing, 2) {
    const Folder folder;
    MPI_File file = open_file(folder / "file", kNew, MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Datatype mine;
    OK(MPI_Type_contiguous(rank() == 0 ? 4 : 0, MPI_BYTE, &mine));
    OK(MPI_Type_commit(&mine));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, mine, "native", MPI_INFO_NULL));
    const char bytes[4] = {1, 2, 3, 4};
    OK(MPI_File_write_at_all(file, 0, bytes, rank() == 0 ? 4 : 0, MPI_BYTE, MPI_STATUS_IGNORE));
    if (rank() == 1)
        CHECK(MPI_File_write_at(file, 0, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_Offset size = 0;
    OK(MPI_File_get_size(file, &size));
    CHECK(size == 4);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&mine));
}
