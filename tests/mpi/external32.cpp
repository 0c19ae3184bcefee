// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack_external and its kin: the bytes that the standard prescribes (MPI 5.0 section 14.5.2),
// types of every shape, memory of devices, and what cannot be packed.
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <algorithm>
#include <climits>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr const char* kForm = "external32";
using Bytes = std::vector<unsigned char>;

// The value becomes these bytes, and they the value again.
template <class T>
void expect_bytes(const char* what, MPI_Datatype type, T value, const Bytes& wanted) {
    about(what);
    MPI_Aint size = -1, position = 0;
    OK(MPI_Pack_external_size(kForm, 1, type, &size));
    CHECK_EQ(size, wanted.size());
    Bytes packed(wanted.size() + 1, 0xEE);
    OK(MPI_Pack_external(kForm, &value, 1, type, packed.data(), size, &position));
    CHECK_EQ(position, size);
    CHECK(std::equal(wanted.begin(), wanted.end(), packed.begin()) && packed.back() == 0xEE);
    T back{};
    position = 0;
    OK(MPI_Unpack_external(kForm, packed.data(), size, &position, &back, 1, type));
    CHECK_EQ(position, size);
    CHECK(back == value);
    about("");
}
#define BYTES(type, value, ...) expect_bytes(#type, type, value, Bytes{__VA_ARGS__})

struct Pair {
    long value;
    int index;
    bool operator==(const Pair&) const = default;
};

}  // namespace

MPI_CASE(external32_is_as_the_standard_says, 1) {
    BYTES(MPI_INT, 0x01020304, 1, 2, 3, 4);
    BYTES(MPI_INT, -2, 0xff, 0xff, 0xff, 0xfe);
    BYTES(MPI_SHORT, short{0x0102}, 1, 2);
    BYTES(MPI_CHAR, 'x', 'x');
    BYTES(MPI_BYTE, static_cast<unsigned char>(7), 7);
    BYTES(MPI_C_BOOL, true, 1);
    BYTES(MPI_WCHAR, L'\u20ac', 0x20, 0xac);
    BYTES(MPI_LONG, -3L, 0xff, 0xff, 0xff, 0xfd);
    BYTES(MPI_UNSIGNED_LONG, 0xfffffffdUL, 0xff, 0xff, 0xff, 0xfd);
    BYTES(MPI_LONG_LONG, 0x0102030405060708LL, 1, 2, 3, 4, 5, 6, 7, 8);
    BYTES(MPI_INT64_T, std::int64_t{-1}, 255, 255, 255, 255, 255, 255, 255, 255);
    BYTES(MPI_AINT, MPI_Aint{258}, 0, 0, 0, 0, 0, 0, 1, 2);
    BYTES(MPI_COUNT, MPI_Count{258}, 0, 0, 0, 0, 0, 0, 1, 2);
    BYTES(MPI_FLOAT, -1.5f, 0xbf, 0xc0, 0, 0);
    BYTES(MPI_DOUBLE, 1.5, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0);
    BYTES(MPI_LONG_DOUBLE, 1.5L, 0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    BYTES(MPI_C_FLOAT_COMPLEX, std::complex<float>(1, 2), 0x3f, 0x80, 0, 0, 0x40, 0, 0, 0);
    BYTES(MPI_LONG_INT, (Pair{-2, 3}), 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3);
    MPI_Aint size = -1;
    OK(MPI_Pack_external_size(kForm, 3, MPI_C_LONG_DOUBLE_COMPLEX, &size));
    CHECK_EQ(size, 96);
    OK(MPI_Pack_external_size(kForm, 3, MPI_LONG_DOUBLE_INT, &size));
    CHECK_EQ(size, 60);
    MPI_Count large = -1;
    OK(MPI_Pack_external_size_c(kForm, MPI_Count{1} << 40, MPI_LONG, &large));
    CHECK_EQ(large, MPI_Count{1} << 42);
}

// A struct of a vector of vectors and a long, in memory of this kind: the bytes are those of its
// items, and unpacking touches nothing between them.
static void structured(Kind kind) {
    about(name(kind));
    constexpr std::size_t kInts = 9, kBytes = kInts * sizeof(int) + 4 + sizeof(long);
    MPI_Datatype inner, corners, type;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_vector(2, 1, 2, inner, &corners));
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, kInts * sizeof(int) + 4};
    const MPI_Datatype types[] = {corners, MPI_LONG};
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    MPI_Aint size = -1, position = 0;
    OK(MPI_Pack_external_size(kForm, 2, type, &size));
    CHECK_EQ(size, 2 * 5 * 4);

    MPI_Aint lower = 0, extent = 0;
    OK(MPI_Type_get_extent(type, &lower, &extent));
    const auto step = static_cast<std::size_t>(extent);
    Memory source(kind, step + kBytes), sink(kind, step + kBytes),
        packed(kind, static_cast<std::size_t>(size));
    std::vector<unsigned char> image(step + kBytes, 0x55);
    const std::size_t corner_of[] = {0, 2, 6, 8};
    for (std::size_t element = 0; element < 2; ++element) {
        for (int i = 0; i < 4; ++i) {
            const int value = 10 * static_cast<int>(element) + i;
            std::memcpy(&image[element * step + corner_of[i] * sizeof(int)], &value, sizeof value);
        }
        const long value = -100 - static_cast<long>(element);
        std::memcpy(&image[element * step + kInts * sizeof(int) + 4], &value, sizeof value);
    }
    source.write(image.data(), image.size());
    sink.write(std::vector<unsigned char>(image.size(), 0x55).data(), image.size());
    OK(MPI_Pack_external(kForm, source.data(), 2, type, packed.data(), size, &position));
    CHECK_EQ(position, size);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(size));
    packed.read(bytes.data(), bytes.size());
    CHECK(bytes[3] == 0 && bytes[7] == 1 && bytes[15] == 3 && bytes[19] == 0x9c &&
          bytes[16] == 0xff && bytes[23] == 10 && bytes[39] == 0x9b);
    position = 0;
    OK(MPI_Unpack_external(kForm, packed.data(), size, &position, sink.data(), 2, type));
    CHECK_EQ(position, size);
    std::vector<unsigned char> back(image.size());
    sink.read(back.data(), back.size());
    CHECK(back == image);
    for (MPI_Datatype* each : {&inner, &corners, &type})
        OK(MPI_Type_free(each));
    about("");
}

MPI_CASE(external32_of_structured_types, 1) {
    structured(Kind::host);
}
MPI_CASE(external32_of_device_memory, 1) {
    for (Kind kind : {Kind::device, Kind::managed, Kind::pinned, Kind::host})
        structured(kind);
}

MPI_CASE(external32_refuses_what_it_cannot_hold, 1) {
    return_errors(MPI_COMM_SELF);
    unsigned char packed[16] = {};
    MPI_Aint position = 0, size = 0;
    const long large = LONG_MAX;
    expect(MPI_Pack_external(kForm, &large, 1, MPI_LONG, packed, 16, &position), MPI_ERR_CONVERSION,
           {"MPI_LONG", "MPI_INT64_T"}, "a long of more than 32 bits");
    CHECK_EQ(position, 0);
    const int value = 5;
    expect(MPI_Pack_external(kForm, &value, 1, MPI_INT, packed, 3, &position), MPI_ERR_TRUNCATE,
           {"4 bytes", "3 bytes"}, "no room");
    position = 14;
    expect(MPI_Pack_external(kForm, &value, 1, MPI_INT, packed, 16, &position), MPI_ERR_TRUNCATE,
           {"position 14"}, "no room behind the position");
    int got = 0;
    expect(MPI_Unpack_external(kForm, packed, 16, &position, &got, 1, MPI_INT), MPI_ERR_TRUNCATE,
           {"position 14"}, "nothing behind the position");
    position = 0;
    expect(MPI_Pack_external("native", &value, 1, MPI_INT, packed, 16, &position), MPI_ERR_ARG,
           {"native", "external32"}, "another representation");
    expect(MPI_Pack_external_size("", 1, MPI_INT, &size), MPI_ERR_ARG, {"external32"}, "none");
    MPI_Datatype uncommitted;
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    expect(MPI_Pack_external(kForm, &value, 1, uncommitted, packed, 16, &position), MPI_ERR_TYPE,
           {"MPI_Type_commit"}, "not committed");
    OK(MPI_Pack_external_size(kForm, 2, uncommitted, &size));
    CHECK_EQ(size, 16);
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Pack_external(kForm, &value, 1, MPI_INT, packed, 16, &position));
    CHECK_EQ(position, 4);
}
