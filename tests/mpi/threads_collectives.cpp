// SPDX-License-Identifier: BSD-3-Clause
//
// Several threads of a rank in the same collective of one communicator at once. MPI leaves it to the program to
// order them; calls that are all alike go through, one behind the other.
#include "threads.hpp"

using namespace mpi_tests;

MPI_CASE_OWN_INIT(threads_call_the_same_collective_of_one_communicator, 2) {
    const Threaded mpi;
    MPI_Comm fresh = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &fresh));
    // Before and after the eighth small call, which opens a mailbox; short, long, and in the usual way.
    for (const int count : {1, 500, 20'000})
        in_threads(4, [&](int) {
            for (int round = 0; round < 12; ++round) {
                std::vector<int> numbers(static_cast<std::size_t>(count), rank() + 1);
                std::vector<int> sums(numbers.size());
                OK(MPI_Allreduce(numbers.data(), sums.data(), count, MPI_INT, MPI_SUM, fresh));
                CHECK_EQ(sums.front(), 3);
                CHECK_EQ(sums.back(), 3);
            }
        });
    in_threads(4, [&](int) {
        for (int round = 0; round < 50; ++round) {
            int word = rank() == 0 ? 7 : 0;
            OK(MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD));
            CHECK_EQ(word, 7);
        }
    });
    in_threads(4, [&](int) {
        for (int round = 0; round < 50; ++round)
            OK(MPI_Barrier(MPI_COMM_WORLD));
    });
    OK(MPI_Comm_free(&fresh));
}
