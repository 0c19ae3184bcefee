// SPDX-License-Identifier: BSD-3-Clause
//
// What reductions of device memory cost in launches and in copies through the host: exact numbers,
// counted by the simulated driver. A real GPU counts nothing, so there these cases do not run.
#include "gpu.hpp"
#include "test.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

// Copies whose other end is a slot or other memory of the host.
std::uint64_t copies_through_host() {
    std::uint64_t all = 0;
    for (const char* symbol : {"cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoD_v2",
                               "cuMemcpyHtoDAsync_v2", "cuMemcpy2DAsync_v2"})
        all += calls(symbol);
    return all;
}

// Vectors of doubles in device memory: rank + 1 in the one that is sent.
struct Vectors {
    explicit Vectors(std::size_t numbers)
        : count(numbers), out(Kind::device, numbers * 8), in(Kind::device, numbers * 8) {
        const std::vector<double> mine(count, rank() + 1);
        out.write(mine.data(), count * 8);
        in.write(mine.data(), count * 8);
    }
    bool all_are(double wanted) const {
        std::vector<double> got(count);
        in.read(got.data(), count * 8);
        for (double each : got)
            if (each != wanted) return false;
        return true;
    }
    std::size_t count;
    Memory out, in;
};

constexpr int kLong = 1 << 18;  // 2 MiB

}  // namespace

MPI_CASE(a_local_reduction_of_device_memory_is_one_launch, 1) {
    only_on_the_simulator();
    for (const int count : {1, 1000, kLong}) {
        about(std::to_string(count) + " numbers");
        Vectors vectors(static_cast<std::size_t>(count));
        OK(MPI_Reduce_local(vectors.out.data(), vectors.in.data(), count, MPI_DOUBLE, MPI_SUM));
        CHECK(vectors.all_are(2));
        reset_calls();
        OK(MPI_Reduce_local(vectors.out.data(), vectors.in.data(), count, MPI_DOUBLE, MPI_SUM));
        CHECK_EQ(calls().launches, 1u);
        CHECK_EQ(calls().copies, 0u);
        CHECK_EQ(calls().set_up, 0u);
        CHECK_EQ(calls().synchronise, 0u);
        CHECK(vectors.all_are(3));
    }
    about("");
}

// The last rounds, when peers' memory is mapped, of an allreduce on `ranks` ranks of one node.
static void long_allreduce(double sum, std::uint64_t launches) {
    only_on_the_simulator();
    Vectors vectors(kLong);
    const auto round = [&] {
        OK(MPI_Allreduce(vectors.out.data(), vectors.in.data(), kLong, MPI_DOUBLE, MPI_SUM,
                         MPI_COMM_WORLD));
        CHECK(vectors.all_are(sum));
    };
    for (int i = 0; i < 24; ++i)
        round();
    reset_calls();
    OK(MPI_Allreduce(vectors.out.data(), vectors.in.data(), kLong, MPI_DOUBLE, MPI_SUM,
                     MPI_COMM_WORLD));
    CHECK_EQ(calls().launches, launches);
    // Of three, two may go the way of slots while the third keeps their GPUs busy.
    if (size() == 2) CHECK_EQ(copies_through_host(), 0u);
    CHECK_EQ(calls("cuMemAlloc_v2"), 0u);
    CHECK(vectors.all_are(sum));
}

// A rank combines its share, in two pieces, with that of each other rank.
MPI_CASE(a_long_allreduce_of_2_on_devices_leaves_the_host_alone, 2) {
    long_allreduce(3, 2);
}
MPI_CASE(a_long_allreduce_of_3_on_devices_is_made_there, 3) {
    long_allreduce(6, 4);
}

MPI_CASE(a_short_allreduce_on_devices_needs_no_launch, 2) {
    only_on_the_simulator();
    Vectors vectors(10);
    for (int i = 0; i < 8; ++i) {
        reset_calls();
        OK(MPI_Allreduce(vectors.out.data(), vectors.in.data(), 10, MPI_DOUBLE, MPI_SUM,
                         MPI_COMM_WORLD));
        CHECK_EQ(calls().launches, 0u);
        CHECK(vectors.all_are(3));
    }
}

// Addresses that a GPU cannot read numbers from, types that it does not have, and operations of the
// program go through the host, in pieces.
MPI_CASE(what_no_kernel_reduces_goes_through_the_host, 1) {
    only_on_the_simulator();
    constexpr int kCount = 300001;
    struct Odd {
        MPI_Datatype type;
        std::size_t bytes, shift;
    };
    for (const Odd& each : {Odd{MPI_DOUBLE, 8, 4}, Odd{MPI_INT, 4, 1},
                            Odd{MPI_LONG_DOUBLE, sizeof(long double), 0}}) {
        about(std::to_string(each.bytes) + " bytes, shifted by " + std::to_string(each.shift));
        const std::size_t bytes = kCount * each.bytes;
        Memory out(Kind::device, bytes + 16), in(Kind::device, bytes + 16);
        const auto numbers = [&](int value) {
            std::vector<std::byte> all(bytes);
            for (std::size_t i = 0; i < kCount; ++i) {
                const double real = value;
                const int integer = value;
                const long double wide = value;
                std::memcpy(&all[i * each.bytes],
                            each.type == MPI_DOUBLE ? static_cast<const void*>(&real)
                            : each.type == MPI_INT  ? static_cast<const void*>(&integer)
                                                    : static_cast<const void*>(&wide),
                            each.bytes == 16 ? 10 : each.bytes);
            }
            return all;
        };
        const std::vector<std::byte> twos = numbers(2), fives = numbers(5), sevens = numbers(7);
        out.write(twos.data(), bytes, each.shift);
        in.write(fives.data(), bytes, each.shift);
        reset_calls();
        OK(MPI_Reduce_local(out.data() + each.shift, in.data() + each.shift, kCount, each.type,
                            MPI_SUM));
        CHECK_EQ(calls().launches, 0u);
        std::vector<std::byte> got(bytes);
        in.read(got.data(), bytes, each.shift);
        bool right = true;
        for (std::size_t i = 0; i < kCount && right; ++i)
            right = std::memcmp(&got[i * each.bytes], &sevens[i * each.bytes],
                                each.bytes == 16 ? 10 : each.bytes) == 0;
        CHECK(right);
    }
    about("");
}

// The program's function runs on pieces, each element once and in place.
static std::int64_t elements_seen = 0;
static int calls_seen = 0;
static void subtract(void* in, void* inout, int* length, MPI_Datatype*) {
    ++calls_seen;
    elements_seen += *length;
    auto* a = static_cast<int*>(in);
    auto* b = static_cast<int*>(inout);
    for (int i = 0; i < *length; ++i)
        b[i] = a[i] - b[i];
}

MPI_CASE(operations_of_the_program_reduce_device_memory_in_pieces, 1) {
    only_on_the_simulator();
    constexpr int kCount = 1000003;
    MPI_Op op;
    OK(MPI_Op_create(subtract, 0, &op));
    std::vector<int> first(kCount), second(kCount);
    for (int i = 0; i < kCount; ++i) {
        first[static_cast<std::size_t>(i)] = 3 * i;
        second[static_cast<std::size_t>(i)] = i;
    }
    Memory in(Kind::device, kCount * sizeof(int)), inout(Kind::device, kCount * sizeof(int));
    in.write(first.data(), in.bytes());
    inout.write(second.data(), inout.bytes());
    elements_seen = calls_seen = 0;
    OK(MPI_Reduce_local(in.data(), inout.data(), kCount, MPI_INT, op));
    CHECK_EQ(elements_seen, kCount);
    CHECK(calls_seen > 4);
    inout.read(second.data(), inout.bytes());
    bool right = true;
    for (int i = 0; i < kCount; ++i)
        right = right && second[static_cast<std::size_t>(i)] == 2 * i;
    CHECK(right);
    in.read(second.data(), in.bytes());
    CHECK(second == first);
    OK(MPI_Op_free(&op));
}
