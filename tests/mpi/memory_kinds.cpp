// SPDX-License-Identifier: BSD-3-Clause
//
// Every kind of memory to every kind of memory, over sizes around each threshold, expected and
// unexpected; between two GPUs; both directions at once; to this rank itself.
#include "gpu.hpp"
#include "test.hpp"

#include <memory>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

const std::vector<std::size_t> kSizes = {0,     1,     8,       1000,         32768,
                                         32769, 65536, 1 << 20, (4 << 20) + 3};

void say_wrong(Kind from, Kind to, std::size_t bytes, std::ptrdiff_t at, const char* how) {
    fail(__FILE__, __LINE__,
         std::string(name(from)) + " to " + name(to) + ", " + std::to_string(bytes) + " bytes, " +
             how + ": first wrong byte at " + std::to_string(at));
}

// Rank 0 sends, rank 1 receives and compares; `unexpected`: the receive is posted only after the
// message was seen by a probe.
void transfer(Kind from, Kind to, std::size_t bytes, bool unexpected, int from_device = 0,
              int to_device = 0) {
    const unsigned seed = static_cast<unsigned>(bytes) * 31u + static_cast<unsigned>(from) * 7u +
                          static_cast<unsigned>(to);
    const int count = static_cast<int>(bytes);
    if (rank() == 0) {
        Memory source(from, bytes, from_device);
        source.fill(seed);
        OK(MPI_Send(source.data(), count, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
    } else {
        Memory sink(to, bytes + 16, to_device);
        sink.fill(seed + 1);
        MPI_Status status;
        if (unexpected) {
            OK(MPI_Probe(0, 5, MPI_COMM_WORLD, &status));
            int seen = -1;
            OK(MPI_Get_count(&status, MPI_BYTE, &seen));
            CHECK_EQ(seen, count);
        }
        OK(MPI_Recv(sink.data(), count, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status));
        int got = -1;
        OK(MPI_Get_count(&status, MPI_BYTE, &got));
        CHECK_EQ(got, count);
        const std::ptrdiff_t wrong = sink.differs(seed, bytes);
        if (wrong >= 0) say_wrong(from, to, bytes, wrong, unexpected ? "unexpected" : "expected");
        std::byte behind{};
        sink.read(&behind, 1, bytes);
        CHECK(behind == pattern(seed + 1, bytes));  // not a byte more
    }
}

void matrix(bool unexpected) {
    for (Kind from : every_kind())
        for (Kind to : every_kind())
            for (std::size_t bytes : kSizes)
                transfer(from, to, bytes, unexpected);
}

}  // namespace

MPI_CASE(every_kind_to_every_kind, 2) {
    matrix(false);
}
MPI_CASE(every_kind_to_every_kind_unexpected, 2) {
    matrix(true);
}

MPI_CASE(between_two_gpus, 2) {
    if (gpu().count < 2) skip("one GPU only");
    for (std::size_t bytes : kSizes)
        for (bool unexpected : {false, true}) {
            transfer(Kind::device, Kind::device, bytes, unexpected, 0, 1);
            transfer(Kind::device, Kind::host, bytes, unexpected, 1, 0);
            transfer(Kind::host, Kind::device, bytes, unexpected, 0, 1);
        }
}

MPI_CASE(one_process_uses_two_gpus_in_turn, 2) {
    if (gpu().count < 2) skip("one GPU only");
    for (int round = 0; round < 4; ++round)
        transfer(Kind::device, Kind::device, 300000, false, round % 2, (round / 2) % 2);
}

MPI_CASE(device_messages_in_both_directions_at_once, 2) {
    constexpr int kCount = 3 << 20;
    Memory source(Kind::device, kCount), sink(Kind::device, kCount);
    const int other = 1 - rank();
    for (unsigned round = 0; round < 4; ++round) {
        source.fill(10u * round + static_cast<unsigned>(rank()));
        MPI_Request requests[2];
        OK(MPI_Irecv(sink.data(), kCount, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(source.data(), kCount, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_EQ(sink.differs(10u * round + static_cast<unsigned>(other), kCount), -1);
    }
}

MPI_CASE(many_device_messages_in_flight, 2) {
    constexpr int kMessages = 64, kCount = 100000;
    std::vector<std::unique_ptr<Memory>> buffers;
    std::vector<MPI_Request> requests(kMessages);
    for (int i = 0; i < kMessages; ++i) {
        buffers.push_back(std::make_unique<Memory>(i % 3 == 0 ? Kind::host : Kind::device, kCount));
        if (rank() == 0) {
            buffers.back()->fill(static_cast<unsigned>(i));
            OK(MPI_Isend(buffers.back()->data(), kCount, MPI_BYTE, 1, i, MPI_COMM_WORLD,
                         &requests[static_cast<std::size_t>(i)]));
        } else {
            OK(MPI_Irecv(buffers.back()->data(), kCount, MPI_BYTE, 0, kMessages - 1 - i,
                         MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]));
        }
    }
    OK(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
    if (rank() == 1)
        for (int i = 0; i < kMessages; ++i)
            CHECK_EQ(buffers[static_cast<std::size_t>(i)]->differs(
                         static_cast<unsigned>(kMessages - 1 - i), kCount),
                     -1);
}

MPI_CASE(device_messages_to_oneself, 1) {
    for (Kind from : every_kind())
        for (Kind to : every_kind())
            for (std::size_t bytes : {std::size_t{8}, std::size_t{100000}, std::size_t{1} << 20}) {
                Memory source(from, bytes), sink(to, bytes);
                source.fill(3);
                MPI_Request request;
                OK(MPI_Isend(source.data(), static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                             &request));
                OK(MPI_Recv(sink.data(), static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                const std::ptrdiff_t wrong = sink.differs(3, bytes);
                if (wrong >= 0) say_wrong(from, to, bytes, wrong, "to oneself");
            }
}

MPI_CASE(inside_an_allocation, 2) {
    // The IPC handle names the allocation, the message lies somewhere in it.
    constexpr std::size_t kBlock = 5 << 20, kOffset = 1234567, kBytes = 1 << 20;
    Memory memory(Kind::device, kBlock);
    if (rank() == 0) {
        memory.fill(9);
        OK(MPI_Send(memory.data() + kOffset, kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(memory.data() + 77, kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        std::vector<std::byte> got(kBytes);
        memory.read(got.data(), kBytes, 77);
        bool same = true;
        for (std::size_t i = 0; i < kBytes; ++i)
            same = same && got[i] == pattern(9, i + kOffset);
        CHECK(same);
    }
}

MPI_CASE(pair_types_on_device_keep_their_holes, 2) {
    struct Pair {
        double value;
        int index;
    };
    constexpr int kCount = 1000;
    Memory memory(Kind::device, kCount * sizeof(Pair));
    memory.fill(rank() == 0 ? 4u : 5u);
    if (rank() == 0) {
        OK(MPI_Send(memory.data(), kCount, MPI_DOUBLE_INT, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(memory.data(), kCount, MPI_DOUBLE_INT, 0, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        std::vector<std::byte> got(kCount * sizeof(Pair));
        memory.read(got.data(), got.size());
        bool right = true;
        for (std::size_t i = 0; i < got.size(); ++i)
            right = right && got[i] == pattern(i % 16 < 12 ? 4u : 5u, i);
        CHECK(right);
    }
}

MPI_CASE(reused_device_addresses, 2) {
    // Freed and allocated again: the same address may be another buffer, for the pointer cache and
    // for mappings at the peer.
    for (unsigned round = 0; round < 30; ++round) {
        const std::size_t bytes = 50000 + round % 3 * 700000;
        Memory memory(Kind::device, bytes);
        memory.fill(rank() == 0 ? round : 1000);
        if (rank() == 0)
            OK(MPI_Send(memory.data(), static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(memory.data(), static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        if (rank() == 1) CHECK_EQ(memory.differs(round, bytes), -1);
    }
}

// Each rank's buffer is sent and replaced: in one run, several at once, with gaps, by less and by more
// than it holds, and by nothing.
MPI_CASE(device_memory_is_replaced_by_what_comes, 2) {
    const int other = 1 - rank(), device = rank() % gpu().count;
    const unsigned mine = static_cast<unsigned>(rank()), theirs = static_cast<unsigned>(other);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int bytes : {8, 1000, 200000, 5 << 20}) {
        about(std::to_string(bytes) + " bytes");
        const auto size = static_cast<std::size_t>(bytes);
        Memory memory(Kind::device, size, device);
        for (unsigned round = 0; round < 4; ++round) {
            memory.fill(mine + 2 * round);
            OK(MPI_Sendrecv_replace(memory.data(), bytes, MPI_BYTE, other, 0, other, 0,
                                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(memory.differs(theirs + 2 * round, size), -1);
        }
        // Rank 1 names the half: less comes to rank 0, more than it takes to rank 1.
        memory.fill(mine);
        MPI_Status status;
        const int ended = MPI_Sendrecv_replace(memory.data(), bytes / (1 + rank()), MPI_BYTE, other,
                                               1, other, 1, MPI_COMM_WORLD, &status);
        CHECK_EQ(error_class(ended), rank() == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
        if (rank() == 0) {
            int got = -1;
            OK(MPI_Get_count(&status, MPI_BYTE, &got));
            CHECK_EQ(got, bytes / 2);
            std::vector<std::byte> now(size);
            memory.read(now.data(), size);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < size; ++i)
                wrong += now[i] != pattern(i < size / 2 ? theirs : mine, i);
            CHECK_EQ(wrong, 0);
        }
        memory.fill(mine);
        OK(MPI_Sendrecv_replace(memory.data(), bytes, MPI_BYTE, MPI_PROC_NULL, 2, MPI_PROC_NULL, 2,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(memory.differs(mine, size), -1);
        std::vector<MPI_Request> requests(4);
        std::vector<std::unique_ptr<Memory>> several;
        for (unsigned i = 0; i < 4; ++i) {
            several.push_back(std::make_unique<Memory>(Kind::device, size, device));
            several.back()->fill(mine + 10 * i);
        }
        for (unsigned i = 0; i < 4; ++i)
            OK(MPI_Isendrecv_replace(several[i]->data(), bytes, MPI_BYTE, other,
                                     static_cast<int>(i), other, static_cast<int>(i),
                                     MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE));
        for (unsigned i = 0; i < 4; ++i)
            CHECK_EQ(several[i]->differs(theirs + 10 * i, size), -1);
    }
    // Every other block of 1,000 bytes.
    constexpr int kBlocks = 400, kBlock = 1000;
    Memory gaps(Kind::device, std::size_t{2} * kBlocks * kBlock, device);
    MPI_Datatype comb;
    OK(MPI_Type_vector(kBlocks, kBlock, 2 * kBlock, MPI_BYTE, &comb));
    OK(MPI_Type_commit(&comb));
    gaps.fill(mine);
    OK(MPI_Sendrecv_replace(gaps.data(), 1, comb, other, 3, other, 3, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
    std::vector<std::byte> now(gaps.bytes());
    gaps.read(now.data(), now.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < now.size(); ++i)
        wrong += now[i] != pattern(i / kBlock % 2 == 0 ? theirs : mine, i);
    CHECK_EQ(wrong, 0);
    OK(MPI_Type_free(&comb));
}
