// SPDX-License-Identifier: BSD-3-Clause
//
// Partitioned communication: partitions ready in any order, other partitions on the other side, host and
// device memory, rounds, and what is refused.
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"
#include "tool.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace mpi_tests;

namespace {

int value(int round, int index) {
    return round * 1'000'000 + index;
}

// `mine` partitions here of a message of `total` ints between two ranks.
struct Ints {
    Ints(int total, int mine, MPI_Comm comm, int tag = 7)
        : data(static_cast<std::size_t>(total), -1), partitions(mine) {
        const int count = total / mine;
        if (rank() == 0)
            OK(MPI_Psend_init(data.data(), mine, count, MPI_INT, 1, tag, comm, MPI_INFO_NULL,
                              &request));
        else
            OK(MPI_Precv_init(data.data(), mine, count, MPI_INT, 0, tag, comm, MPI_INFO_NULL,
                              &request));
    }
    ~Ints() { OK(MPI_Request_free(&request)); }
    Ints(const Ints&) = delete;
    Ints& operator=(const Ints&) = delete;

    void begin(int round) {
        for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = rank() == 0 ? value(round, static_cast<int>(i)) : -1;
        OK(MPI_Start(&request));
    }
    void end(int round) {
        MPI_Status status;
        OK(MPI_Wait(&request, &status));
        if (rank() == 0) return;
        int count = 0;
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK_EQ(count, static_cast<int>(data.size()));
        CHECK_EQ(status.MPI_SOURCE, 0);
        for (std::size_t i = 0; i < data.size(); ++i)
            if (data[i] != value(round, static_cast<int>(i)))
                return fail(__FILE__, __LINE__, "a wrong value at " + std::to_string(i));
    }

    std::vector<int> data;
    int partitions;
    MPI_Request request = MPI_REQUEST_NULL;
};

// Permutations that differ from round to round.
std::vector<int> order(int partitions, int round) {
    std::vector<int> all(static_cast<std::size_t>(partitions));
    std::iota(all.begin(), all.end(), 0);
    if (round % 2 == 1) std::reverse(all.begin(), all.end());
    std::rotate(all.begin(), all.begin() + round % partitions, all.end());
    return all;
}

}  // namespace

MPI_CASE(partitions_arrive_in_any_order_whatever_the_receivers_are, 2) {
    const int sizes[][3] = {{24, 8, 6},         {24, 1, 24},       {24, 24, 1},
                            {1 << 16, 64, 16},  {1 << 16, 4, 128}, {1 << 20, 16, 16},
                            {3 * 5 * 7, 21, 35}};
    for (const auto& [total, sends, receives] : sizes) {
        Ints ints(total, rank() == 0 ? sends : receives, MPI_COMM_WORLD);
        for (int round = 0; round < 4; ++round) {
            ints.begin(round);
            for (int partition : order(ints.partitions, round)) {
                if (rank() == 0) {
                    OK(MPI_Pready(partition, ints.request));
                } else {
                    int flag = 0;
                    OK(MPI_Parrived(ints.request, partition, &flag));
                }
            }
            ints.end(round);
        }
    }
}

MPI_CASE(a_partition_arrives_while_others_are_not_ready, 2) {
    // Small ones, which would share a message.
    constexpr int kPartitions = 8;
    Ints ints(kPartitions * 4, kPartitions, MPI_COMM_WORLD);
    for (int round = 0; round < 3; ++round) {
        ints.begin(round);
        for (int partition : order(kPartitions, round)) {
            int token = partition;
            if (rank() == 0) {
                OK(MPI_Pready(partition, ints.request));
                // The next is ready when the receiver has seen this one.
                OK(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            } else {
                int flag = 0;
                while (flag == 0)
                    OK(MPI_Parrived(ints.request, partition, &flag));
                CHECK_EQ(ints.data[static_cast<std::size_t>(partition) * 4],
                         value(round, partition * 4));
                OK(MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
            }
        }
        ints.end(round);
    }
}

MPI_CASE(partitions_that_are_ready_together_share_messages, 2) {
    // 64 partitions of 1 KiB: two messages of 32 KiB.
    constexpr int kPartitions = 64;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    {
        Ints ints(kPartitions * 256, kPartitions, comm);
        // The first round is also where the two meet.
        for (int round = 0; round < 2; ++round) {
            const Tool tool;
            Counted sent(tool, "comm_messages_sent", comm);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            tool.start_all();
            ints.begin(round);
            if (rank() == 0) {
                std::vector<int> odd;
                for (int i = 1; i < kPartitions; i += 2)
                    odd.push_back(i);
                OK(MPI_Pready_list(static_cast<int>(odd.size()), odd.data(), ints.request));
                for (int i = 0; i < kPartitions / 2; i += 2)
                    OK(MPI_Pready_range(i, i, ints.request));
                for (int i = kPartitions / 2; i < kPartitions; i += 2)
                    OK(MPI_Pready(i, ints.request));
            }
            ints.end(round);
            if (round == 1) CHECK_EQ(sent.read(), rank() == 0 ? 2 : 0);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    OK(MPI_Comm_free(&comm));
}

MPI_CASE(partitioned_requests_meet_in_the_order_in_which_they_were_made, 2) {
    // Ordinary messages with the same tag are others.
    Ints first(64, 4, MPI_COMM_WORLD, 3), second(64, 4, MPI_COMM_WORLD, 3);
    int plain = 5;
    MPI_Request ordinary;
    if (rank() == 0)
        OK(MPI_Isend(&plain, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &ordinary));
    else
        OK(MPI_Irecv(&plain, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &ordinary));
    second.begin(2);
    first.begin(1);
    for (Ints* each : {&first, &second})
        if (rank() == 0) OK(MPI_Pready_range(0, 3, each->request));
    second.end(2);
    first.end(1);
    OK(MPI_Wait(&ordinary, MPI_STATUS_IGNORE));
    CHECK_EQ(plain, 5);
}

// Who meets whom follows from the order of the calls that make them, also where one side, or both, free
// theirs before they have met, and whatever their sizes are.
MPI_CASE(partitioned_requests_that_are_freed_meet_each_other_all_the_same, 2) {
    constexpr int kTag = 6, kUseless = 3;
    for (const int freed_at_once : {0, 1, 2}) {
        int data[64];
        std::iota(data, data + 64, rank() == 0 ? 0 : 1000);
        const auto make = [&data](int partitions, MPI_Request* request) {
            if (rank() == 0)
                OK(MPI_Psend_init(data, partitions, 4, MPI_INT, 1, kTag, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, request));
            else
                OK(MPI_Precv_init(data, partitions, 4, MPI_INT, 0, kTag, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, request));
        };
        MPI_Request useless[kUseless], used;
        for (int i = 0; i < kUseless; ++i) {
            make(1 + 7 * i, &useless[i]);
            if (freed_at_once == rank() || freed_at_once == 2) OK(MPI_Request_free(&useless[i]));
        }
        make(8, &used);
        // The other side frees its own when the two have met, or not.
        for (MPI_Request& each : useless)
            if (freed_at_once != rank() && freed_at_once != 2) OK(MPI_Request_free(&each));
        for (int round = 0; round < 2; ++round) {
            if (rank() == 1) std::fill(data, data + 64, -1);
            OK(MPI_Start(&used));
            if (rank() == 0) OK(MPI_Pready_range(0, 7, used));
            OK(MPI_Wait(&used, MPI_STATUS_IGNORE));
            for (int i = 0; i < 32; ++i)
                CHECK_EQ(data[i], i);
        }
        OK(MPI_Request_free(&used));
    }
    // A sender that starts what its receiver has freed before they met hears of it.
    return_errors(MPI_COMM_WORLD);
    int word = 5;
    MPI_Request request;
    if (rank() == 1) {
        OK(MPI_Precv_init(&word, 1, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Request_free(&request));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank() == 0) {
        OK(MPI_Psend_init(&word, 1, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        int ended = MPI_Start(&request);
        if (ended == MPI_SUCCESS) {
            OK(MPI_Pready(0, request));
            ended = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        expect(ended, MPI_ERR_REQUEST, {"has freed"}, "freed by the receiver");
        OK(MPI_Request_free(&request));
    }
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(partitions_in_device_memory, 2) {
    constexpr int kPartitions = 8;
    constexpr std::size_t kBytes = 1 << 20;
    for (std::size_t bytes : {std::size_t{4096}, kBytes}) {
        Memory memory(Kind::device, bytes, rank() % gpu().count);
        const int count = static_cast<int>(bytes) / kPartitions;
        MPI_Request request;
        if (rank() == 0)
            OK(MPI_Psend_init(memory.data(), kPartitions, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &request));
        else
            OK(MPI_Precv_init(memory.data(), kPartitions / 2, 2 * count, MPI_BYTE, 0, 0,
                              MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (unsigned round = 0; round < 3; ++round) {
            memory.fill(rank() == 0 ? round : round + 100);
            OK(MPI_Start(&request));
            if (rank() == 0)
                for (int partition : order(kPartitions, static_cast<int>(round)))
                    OK(MPI_Pready(partition, request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (rank() == 1) CHECK_EQ(memory.differs(round, bytes), -1);
        }
        OK(MPI_Request_free(&request));
    }
}

MPI_CASE(partitions_of_derived_types_keep_the_gaps, 2) {
    // Pairs of ints with a gap behind each; the receiver takes the same ints as one run.
    constexpr int kPartitions = 6, kPairs = 5;
    MPI_Datatype pair, padded;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, 3 * sizeof(int), &padded));
    OK(MPI_Type_commit(&padded));
    std::vector<int> sparse(kPartitions * kPairs * 3, -9), dense(kPartitions * kPairs * 2, -9);
    MPI_Request request;
    if (rank() == 0) {
        for (int i = 0; i < kPartitions * kPairs * 2; ++i)
            sparse[static_cast<std::size_t>(i / 2 * 3 + i % 2)] = i;
        OK(MPI_Psend_init(sparse.data(), kPartitions, kPairs, padded, 1, 0, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &request));
    } else {
        OK(MPI_Precv_init(dense.data(), 1, kPartitions * kPairs * 2, MPI_INT, 0, 0, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &request));
    }
    OK(MPI_Type_free(&padded));
    OK(MPI_Type_free(&pair));
    OK(MPI_Start(&request));
    if (rank() == 0) OK(MPI_Pready_range(0, kPartitions - 1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank() == 1)
        for (int i = 0; i < kPartitions * kPairs * 2; ++i)
            CHECK_EQ(dense[static_cast<std::size_t>(i)], i);
    OK(MPI_Request_free(&request));
}

MPI_CASE(a_partitioned_receive_may_have_room_for_more, 2) {
    // 6 ints into 4 partitions of two pairs each: the last one is not reached.
    int data[16];
    std::fill(data, data + 16, rank() == 0 ? 3 : -1);
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    for (int sent : {6, 7, 0}) {
        MPI_Request request;
        if (rank() == 0)
            OK(MPI_Psend_init(data, sent, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &request));
        else
            OK(MPI_Precv_init(data, 4, 2, pair, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (int round = 0; round < 2; ++round) {
            std::fill(data, data + 16, rank() == 0 ? 3 : -1);
            OK(MPI_Start(&request));
            if (rank() == 0 && sent > 0) OK(MPI_Pready_range(0, sent - 1, request));
            MPI_Status status;
            OK(MPI_Wait(&request, &status));
            if (rank() == 0) continue;
            int count = -1;
            OK(MPI_Get_count(&status, MPI_INT, &count));
            CHECK_EQ(count, sent);
            for (int i = 0; i < 16; ++i)
                CHECK_EQ(data[i], i < sent ? 3 : -1);
        }
        OK(MPI_Request_free(&request));
    }
    OK(MPI_Type_free(&pair));
}

MPI_CASE(mistakes_with_partitions_are_refused, 2) {
    return_errors(MPI_COMM_WORLD);
    return_errors(MPI_COMM_SELF);
    int data[8] = {}, flag = -1;
    MPI_Request send, receive;
    OK(MPI_Psend_init(data, 4, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(data, 4, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL,
                      &receive));
    CHECK_EQ(error_class(
                 MPI_Psend_init(data, -1, 2, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &send)),
             MPI_ERR_ARG);
    CHECK_EQ(error_class(MPI_Precv_init(data, 4, 2, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF,
                                        MPI_INFO_NULL, &receive)),
             MPI_ERR_RANK);
    CHECK_EQ(error_class(MPI_Psend_init_c(data, 1 << 30, MPI_Count{1} << 40, MPI_INT, 0, 0,
                                          MPI_COMM_SELF, MPI_INFO_NULL, &send)),
             MPI_ERR_COUNT);
    expect(MPI_Pready(0, send), MPI_ERR_REQUEST, {"not started"}, "before MPI_Start");
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    expect(MPI_Pready(4, send), MPI_ERR_ARG, {"no partition 4"}, "behind the last");
    expect(MPI_Pready(-1, send), MPI_ERR_ARG, {"no partition -1"}, "negative");
    expect(MPI_Pready_range(2, 1, send), MPI_ERR_ARG, {"empty"}, "an empty range");
    expect(MPI_Pready(0, receive), MPI_ERR_REQUEST, {"MPI_Psend_init"}, "of a receive");
    expect(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST, {"MPI_Precv_init"}, "of a send");
    OK(MPI_Pready(1, send));
    expect(MPI_Pready(1, send), MPI_ERR_ARG, {"ready already"}, "twice");
    // All or nothing.
    expect(MPI_Pready_range(0, 3, send), MPI_ERR_ARG, {"partition 1"}, "one is ready");
    OK(MPI_Pready(0, send));
    const int rest[] = {2, 3};
    OK(MPI_Pready_list(2, rest, send));
    OK(MPI_Parrived(receive, 3, &flag));
    CHECK_EQ(flag, 1);
    // Of no request nothing is outstanding (MPI 5.0 section 4.2.3).
    flag = -1;
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK_EQ(flag, 1);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    // The next round begins with none ready, also to MPI_PROC_NULL.
    OK(MPI_Start(&send));
    OK(MPI_Pready_range(0, 3, send));
    expect(MPI_Pready(1, send), MPI_ERR_ARG, {"ready already"}, "twice");
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));

    // A receiver that has less room: both hear of it, and the communicator lives on.
    MPI_Request unequal;
    if (rank() == 0)
        OK(MPI_Psend_init(data, 4, 2, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &unequal));
    else
        OK(MPI_Precv_init(data, 4, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &unequal));
    int started = MPI_Start(&unequal);
    if (started == MPI_SUCCESS) {
        if (rank() == 0) OK(MPI_Pready_range(0, 3, unequal));
        started = MPI_Wait(&unequal, MPI_STATUS_IGNORE);
    }
    CHECK_EQ(error_class(started), MPI_ERR_TRUNCATE);
    OK(MPI_Request_free(&unequal));
    // One that never meets another may be freed.
    MPI_Request lonely;
    OK(MPI_Precv_init(data, 4, 1, MPI_INT, 1 - rank(), 77, MPI_COMM_WORLD, MPI_INFO_NULL, &lonely));
    OK(MPI_Request_free(&lonely));
    expect_alive(MPI_COMM_WORLD);
}
