// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that go on without ranks that died (mpi-ext.h), under `mpiexec --keep-going`: survivors_test.py starts
// them, says who dies and when, and reads what they print.
#include "gpu.hpp"
#include "survivors.hpp"
#include "test.hpp"

#include <mpi-ext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

namespace mpi_tests {
namespace {

// What each rank sends to its neighbours in a round, in host and device memory, small and large.
constexpr int kMessages = 4;
constexpr int kBytes[kMessages] = {8, 300'000, 2048, 1 << 20};
constexpr Kind kKinds[kMessages] = {Kind::host, Kind::host, Kind::device, Kind::device};

unsigned seed_of(int sender, int generation, int round, int message) {
    return static_cast<unsigned>(((generation * 1000 + round) * 64 + sender) * 8 + message);
}

struct Load {
    std::vector<std::unique_ptr<Memory>> out, in;
    Memory sum{Kind::device, 4096}, all{Kind::device, 4096};
    Load() {
        for (int i = 0; i < kMessages; ++i) {
            out.push_back(std::make_unique<Memory>(kKinds[i], kBytes[i]));
            in.push_back(std::make_unique<Memory>(kKinds[i], kBytes[i]));
        }
        const std::vector<std::byte> nothing(4096);
        sum.write(nothing.data(), nothing.size());
    }
    // One round of a ring and of collectives. The first failure, or MPI_SUCCESS: then all was right.
    int round(MPI_Comm comm, int generation, int round) {
        int me = 0, ranks = 0;
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &ranks);
        const int from = (me + ranks - 1) % ranks, to = (me + 1) % ranks;
        MPI_Request requests[2 * kMessages];
        int first = MPI_SUCCESS;
        const auto note = [&first](int code) {
            if (code != MPI_SUCCESS && first == MPI_SUCCESS) first = code;
        };
        for (int i = 0; i < kMessages; ++i) {
            out[i]->fill(seed_of(me, generation, round, i));
            requests[i] = requests[kMessages + i] = MPI_REQUEST_NULL;
            note(MPI_Irecv(in[i]->data(), kBytes[i], MPI_BYTE, from, i, comm, &requests[i]));
            note(MPI_Isend(out[i]->data(), kBytes[i], MPI_BYTE, to, i, comm,
                           &requests[kMessages + i]));
        }
        // Who waits for the dead alone hears of it; who waits for others hears of it from them.
        if (first != MPI_SUCCESS) MPIX_Comm_revoke(comm);
        for (MPI_Request& request : requests) {
            note(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (first != MPI_SUCCESS) MPIX_Comm_revoke(comm);
        }
        if (first != MPI_SUCCESS) return first;
        for (int i = 0; i < kMessages; ++i)
            CHECK_EQ(in[i]->differs(seed_of(from, generation, round, i), kBytes[i]), -1);
        int one = 1, sum_of_ones = 0;
        note(MPI_Allreduce(&one, &sum_of_ones, 1, MPI_INT, MPI_SUM, comm));
        if (first == MPI_SUCCESS) CHECK_EQ(sum_of_ones, ranks);
        if (first == MPI_SUCCESS)
            note(MPI_Allreduce(sum.data(), all.data(), 1024, MPI_INT, MPI_SUM, comm));
        if (first == MPI_SUCCESS)
            note(MPI_Bcast(out[3]->data(), kBytes[3], MPI_BYTE, round % ranks, comm));
        return first;
    }
};

// All members of a shrunken communicator have the same group, without the dead.
void check_shrunken(MPI_Comm old, MPI_Comm shrunken) {
    MPI_Group before, after, lost;
    OK(MPI_Comm_group(old, &before));
    OK(MPI_Comm_group(shrunken, &after));
    OK(MPI_Group_difference(before, after, &lost));
    int ranks = 0, died = 0, members = 0;
    OK(MPI_Group_size(before, &ranks));
    OK(MPI_Group_size(lost, &died));
    OK(MPI_Group_size(after, &members));
    CHECK_EQ(members + died, ranks);
    CHECK(died > 0);
    std::vector<int> numbers(static_cast<std::size_t>(members)), places(numbers.size()),
        least(numbers.size());
    for (int i = 0; i < members; ++i)
        numbers[static_cast<std::size_t>(i)] = i;
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(after, members, numbers.data(), world, places.data()));
    // Who dies now is met in the next round.
    const int code =
        MPI_Allreduce(places.data(), least.data(), members, MPI_INT, MPI_MIN, shrunken);
    CHECK(is_fine_or_of_faults(code));
    if (code == MPI_SUCCESS) CHECK(places == least);
    for (MPI_Group* group : {&before, &after, &lost, &world})
        OK(MPI_Group_free(group));
}

}  // namespace

// Under load, until all that shall die are dead, and some rounds more.
MPI_CASE_ENDING(survivors_under_load, 5) {
    if (!gpu().simulated) skip("ranks that die leave memory of a real GPU to its driver");
    use_device(rank() % gpu().count);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    Load load;
    int first = load.round(comm, 0, 0);  // who is through first may be dead already
    CHECK(is_fine_or_of_faults(first));
    if (is_doomed()) die_later();
    int generation = 0, ranks = size();
    for (int round = 1, more = 3; more > 0 || is_doomed(); ++round) {
        const int code = first != MPI_SUCCESS ? std::exchange(first, MPI_SUCCESS)
                                              : load.round(comm, generation, round);
        int good = code == MPI_SUCCESS ? 1 : 0;
        if (good == 0) {
            CHECK(is_of_faults(code));
            OK(MPIX_Comm_revoke(comm));
        }
        // All go on, or none.
        const int agreed = MPIX_Comm_agree(comm, &good);
        CHECK(agreed == MPI_SUCCESS || class_of(agreed) == MPIX_ERR_PROC_FAILED);
        if (good == 1 && agreed == MPI_SUCCESS) {
            if (ranks == size() - doomed()) --more;
            continue;
        }
        MPI_Comm shrunken = MPI_COMM_NULL;
        OK(MPIX_Comm_shrink(comm, &shrunken));
        check_shrunken(comm, shrunken);
        OK(MPI_Comm_free(&comm));
        comm = shrunken;
        OK(MPI_Comm_size(comm, &ranks));
        ++generation;
        round = 0;
    }
    OK(MPI_Comm_free(&comm));
    std::printf("survived\n");
}

// What a program is told: who died, what a receive from any source does then, and what it acknowledges.
MPI_CASE_ENDING(survivors_acknowledge, 3) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int got[2] = {}, nothing = 0;
    MPI_Request any = MPI_REQUEST_NULL, again = MPI_REQUEST_NULL;
    OK(MPI_Recv_init(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &again));
    if (rank() == 0) {
        OK(MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &any));
        OK(MPI_Start(&again));
    }
    die_when_told(2);
    MPI_Group failed, acked;
    if (rank() == 0) {
        MPI_Status status;
        CHECK_EQ(class_of(MPI_Wait(&any, &status)), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(any != MPI_REQUEST_NULL);
        CHECK_EQ(class_of(MPI_Wait(&again, &status)), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK_EQ(class_of(MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
                                   MPI_STATUS_IGNORE)),
                 MPIX_ERR_PROC_FAILED);
        MPI_Request late;
        OK(MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &late));
        int flag = 0;
        CHECK_EQ(class_of(MPI_Test(&late, &flag, &status)), MPIX_ERR_PROC_FAILED_PENDING);
        OK(MPI_Cancel(&late));
        OK(MPI_Wait(&late, &status));
        OK(MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &late));
        OK(MPI_Request_free(&late));

        int count = -1;
        OK(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed));
        OK(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked));
        MPI_Group_size(failed, &count);
        CHECK_EQ(count, 1);
        CHECK(acked == MPI_GROUP_EMPTY);
        OK(MPI_Group_free(&failed));
        OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 0, &count));
        CHECK_EQ(count, 0);
        OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 5, &count));
        CHECK_EQ(count, 1);
        OK(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked));
        MPI_Group world;
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        int zero = 0, who = -1;
        OK(MPI_Group_translate_ranks(acked, 1, &zero, world, &who));
        CHECK_EQ(who, 2);
        OK(MPI_Group_free(&world));
        OK(MPI_Group_free(&acked));
        OK(MPI_Test(&any, &flag, &status));
        CHECK_EQ(flag, 0);
        OK(MPI_Send(&nothing, 0, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Wait(&any, &status));
        CHECK(any == MPI_REQUEST_NULL);
        OK(MPI_Wait(&again, &status));
        CHECK_EQ(got[0] + got[1], 55 + 66);
    } else {
        OK(MPI_Recv(&nothing, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        int out[2] = {55, 66};
        OK(MPI_Send(&out[0], 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
        OK(MPI_Send(&out[1], 1, MPI_INT, 0, 6, MPI_COMM_WORLD));
        CHECK_EQ(class_of(MPI_Recv(&nothing, 1, MPI_INT, 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)),
                 MPIX_ERR_PROC_FAILED);
    }
    OK(MPI_Request_free(&again));
    // Rank 1 has not acknowledged: all hear so.
    int flag = rank() == 0 ? 6 : 3;
    CHECK_EQ(class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag)), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(flag, 2);
    OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
    flag = rank() == 0 ? 12 : 6;
    MPI_Request request;
    OK(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(flag, 4);
    MPI_Comm two;
    OK(MPIX_Comm_ishrink(MPI_COMM_WORLD, &two, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int ranks = 0;
    MPI_Comm_size(two, &ranks);
    CHECK_EQ(ranks, 2);
    OK(MPI_Comm_free(&two));
    std::printf("survived\n");
}

// Who waits for a rank that it has never spoken to hears from the launcher alone that this one has died: no
// connection broke, and without shared memory nobody looks at its process.
MPI_CASE_ENDING(survivors_hear_from_the_launcher, 4) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const int victim = std::atoi(std::getenv("MPI_TESTS_DIE"));
    if (is_doomed()) raise(SIGKILL);
    int nothing = 0;
    CHECK_EQ(class_of(MPI_Recv(&nothing, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)),
             MPIX_ERR_PROC_FAILED);
    CHECK_EQ(class_of(MPI_Send(&nothing, 1, MPI_INT, victim, 1, MPI_COMM_WORLD)),
             MPIX_ERR_PROC_FAILED);
    MPI_Comm living;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
    CHECK_EQ(sum, 3);
    OK(MPI_Comm_free(&living));
    std::printf("survived\n");
}

// Rank 0, which served the rendezvous, dies, and then the last rank. Those that live have spoken to rank 0
// alone until then: they find each other, hear of the second death, and end.
MPI_CASE_ENDING(survivors_of_who_served, 6) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    die_when_told(0);
    const int last = size() - 1;
    const auto waits_for_the_dead = [](int victim) {
        return class_of(MPI_Recv(nullptr, 0, MPI_INT, victim, 1, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED;
    };
    CHECK(waits_for_the_dead(0));
    if (rank() == last) raise(SIGKILL);
    for (int other = 1; other < last; ++other) {
        if (other == rank()) continue;
        int mine = rank(), theirs = -1;
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, other, 2, &theirs, 1, MPI_INT, other, 2, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        CHECK_EQ(theirs, other);
    }
    CHECK(waits_for_the_dead(last));
    MPI_Comm living;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
    CHECK_EQ(sum, size() - 2);
    OK(MPI_Comm_free(&living));
    char port[MPI_MAX_PORT_NAME] = "port";
    MPI_Comm spawned;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK_EQ(class_of(MPI_Publish_name("name", MPI_INFO_NULL, port)), MPI_ERR_SERVICE);
    CHECK_EQ(class_of(MPI_Lookup_name("name", MPI_INFO_NULL, port)), MPI_ERR_NAME);
    CHECK_EQ(class_of(MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                     &spawned, MPI_ERRCODES_IGNORE)),
             MPI_ERR_SPAWN);
    std::printf("survived\n");
}

// A child that dies is known to parents that it has never spoken to.
MPI_CASE_CHILD(child_dies, 2) {
    if (rank() == 1) raise(SIGKILL);
    MPI_Comm up = parent();
    OK(MPI_Comm_set_errhandler(up, MPI_ERRORS_RETURN));
    int nothing = 0;
    OK(MPI_Recv(&nothing, 1, MPI_INT, 0, 2, up, MPI_STATUS_IGNORE));
    std::printf("survived\n");
}

MPI_CASE_ENDING(survivors_of_a_spawned_rank, 2) {
    MPI_Comm down = spawn_case("child_dies", 2);
    OK(MPI_Comm_set_errhandler(down, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int nothing = 0;
    CHECK_EQ(class_of(MPI_Recv(&nothing, 1, MPI_INT, 1, 1, down, MPI_STATUS_IGNORE)),
             MPIX_ERR_PROC_FAILED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank() == 0) OK(MPI_Send(&nothing, 1, MPI_INT, 0, 2, down));
    std::printf("survived\n");
}

// Every rank of five waits for something else that never comes; the first revokes. Nobody dies.
MPI_CASE(revoked_calls_end, 5) {
    if (!gpu().simulated) skip("needs the simulated GPU");
    use_device(0);
    for (int round = 0; round < 6; ++round) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        Memory host(Kind::host, 1 << 20), device(Kind::device, 1 << 20);
        int one = 1, sum = 0, flag = -1;
        for (int i = 0; i < 20 * (round % 2); ++i)  // small collectives have a mailbox then
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        OK(MPIX_Comm_is_revoked(comm, &flag));
        CHECK_EQ(flag, 0);
        // The first may be through, and revoke, while others are in it.
        int code = MPI_Barrier(comm);
        CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_REVOKED);
        // Those that are in a collective operation are in the same one.
        const int waits = rank() == 0 || code != MPI_SUCCESS ? -1 : (rank() + round) % 5;
        if (waits == 2)
            code = MPI_Ssend(host.data(), 1 << 20, MPI_BYTE, (rank() + 1) % 5, 1, comm);
        else if (waits == 3)
            code = MPI_Recv(device.data(), 1 << 20, MPI_BYTE, MPI_ANY_SOURCE, 2, comm,
                            MPI_STATUS_IGNORE);
        else if (waits >= 0 && round % 3 == 0)
            code = MPI_Barrier(comm);
        else if (waits >= 0 && round % 3 == 1)
            code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        else if (waits >= 0)
            code = MPI_Allreduce(MPI_IN_PLACE, device.data(), 1 << 17, MPI_INT, MPI_SUM, comm);
        if (rank() != 0) CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
        OK(MPIX_Comm_revoke(comm));
        OK(MPIX_Comm_revoke(comm));
        OK(MPIX_Comm_is_revoked(comm, &flag));
        CHECK_EQ(flag, 1);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_EQ(class_of(MPI_Isend(&one, 1, MPI_INT, 0, 1, comm, &request)), MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE)),
                 MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_Probe(0, 1, comm, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
        CHECK_EQ(class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm)), MPIX_ERR_REVOKED);
        MPI_Comm other = MPI_COMM_NULL;
        CHECK_EQ(class_of(MPI_Comm_dup(comm, &other)), MPIX_ERR_REVOKED);
        flag = 1 << rank() | 1 << 8;
        OK(MPIX_Comm_agree(comm, &flag));
        CHECK_EQ(flag, 1 << 8);
        MPI_Comm all;
        OK(MPIX_Comm_shrink(comm, &all));
        int alike = 0;
        OK(MPI_Comm_compare(all, comm, &alike));
        CHECK_EQ(alike, MPI_CONGRUENT);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK_EQ(sum, 5);
        OK(MPI_Comm_free(&all));
        OK(MPI_Comm_free(&comm));
    }
}

}  // namespace mpi_tests
