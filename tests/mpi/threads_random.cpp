// SPDX-License-Identifier: BSD-3-Clause
//
// Random programs of several threads a rank against a sequential model. Of each rank half of the
// threads send and half receive; whatever the threads do, between a sending thread and those who
// receive its tag every message arrives once, and one thread receives those of a (source,
// communicator, tag) in the order in which they were sent.
//
//   own tags     sent by one thread, received by one thread, by tag or by a probe of its tag
//   shared tag   sent by every sending thread, received by whoever asks: wildcards, matched probes
//
// Again with a seed of its own: GANTRY_TEST_SEED.
#include "threads.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

using namespace mpi_tests;

namespace {

constexpr int kMessages = 60;  // of one sending thread, to each way of receiving
constexpr int kMostInts = 30000;
constexpr int kShared = 0, kFirstOwn = 100, kNever = 99;

using Random = std::mt19937;

int between(Random& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
}

// Short ones mostly, long enough now and then for every protocol.
int length_of(Random& random) {
    const int kind = between(random, 0, 9);
    if (kind < 6) return between(random, 3, 40);
    return kind < 9 ? between(random, 40, 2000) : between(random, 2000, kMostInts);
}

// What a message says: who sent it and its number among that thread's messages to that receiver.
std::vector<int> message(int sender, int number, int length) {
    std::vector<int> data(static_cast<std::size_t>(length), sender * 7 + number);
    data[0] = sender;
    data[1] = number;
    return data;
}

struct Program {
    unsigned seed = 0;
    int threads = 2;  // a pair of them sends and receives
    MPI_Comm comms[2] = {};
    int pairs() const { return threads / 2; }
    int peer() const { return (rank() + 1) % size(); }
};

// --- senders -------------------------------------------------------------------------------------

void send_all(const Program& program, int pair, int tag, MPI_Comm comm, Random& random) {
    const int sender = rank() * 100 + pair;
    std::vector<std::vector<int>> data;
    std::vector<MPI_Request> window;
    const auto finish = [&] {
        const int open = static_cast<int>(window.size());
        for (int left = open; left > 0;) {
            int index = -1, flag = 0;
            switch (between(random, 0, 3)) {
                case 0: OK(MPI_Waitany(open, window.data(), &index, MPI_STATUS_IGNORE)); break;
                case 1:
                    OK(MPI_Testany(open, window.data(), &index, &flag, MPI_STATUS_IGNORE));
                    break;
                default: OK(MPI_Waitall(open, window.data(), MPI_STATUSES_IGNORE)); left = 0;
            }
            if (index >= 0) --left;
        }
        window.clear();
        data.clear();
    };
    for (int number = 0; number < kMessages; ++number) {
        data.push_back(message(sender, number, length_of(random)));
        const std::vector<int>& sent = data.back();
        const int length = static_cast<int>(sent.size()), to = program.peer();
        MPI_Request request = MPI_REQUEST_NULL;
        switch (between(random, 0, 6)) {
            case 0: OK(MPI_Send(sent.data(), length, MPI_INT, to, tag, comm)); break;
            case 1: OK(MPI_Ssend(sent.data(), length, MPI_INT, to, tag, comm)); break;
            case 2: OK(MPI_Issend(sent.data(), length, MPI_INT, to, tag, comm, &request)); break;
            case 3:
                OK(MPI_Send_init(sent.data(), length, MPI_INT, to, tag, comm, &request));
                OK(MPI_Start(&request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Request_free(&request));
                break;
            default: OK(MPI_Isend(sent.data(), length, MPI_INT, to, tag, comm, &request));
        }
        if (request != MPI_REQUEST_NULL) window.push_back(request);
        if (between(random, 0, 5) == 0) finish();
    }
    finish();
}

// --- receivers -----------------------------------------------------------------------------------

// What a thread has received of each sender, in the order of its receives.
using Seen = std::map<int, std::vector<int>>;

void take(Seen& seen, const std::vector<int>& data, const MPI_Status& status) {
    int length = 0;
    OK(MPI_Get_count(&status, MPI_INT, &length));
    CHECK(length >= 3);
    CHECK_EQ(data[0] / 100, status.MPI_SOURCE);
    const std::vector<int> expected = message(data[0], data[1], length);
    CHECK(std::equal(expected.begin(), expected.end(), data.begin()));
    seen[data[0]].push_back(data[1]);
}

// One that is never sent, taken back.
void cancel_one(MPI_Comm comm) {
    int never = 0, cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(&never, 1, MPI_INT, MPI_ANY_SOURCE, kNever, comm, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK_EQ(cancelled, 1);
}

// Several receives at once, completed in any order, and told in the order of posting.
int receive_window(Seen& seen, int most, int source, int tag, MPI_Comm comm, Random& random) {
    const int open = between(random, 1, most);
    std::vector<std::vector<int>> data(static_cast<std::size_t>(open), std::vector<int>(kMostInts));
    std::vector<MPI_Request> requests(data.size());
    std::vector<MPI_Status> statuses(data.size());
    for (std::size_t i = 0; i < data.size(); ++i)
        OK(MPI_Irecv(data[i].data(), kMostInts, MPI_INT, source, tag, comm, &requests[i]));
    if (between(random, 0, 1) == 0) {
        OK(MPI_Waitall(open, requests.data(), statuses.data()));
    } else {
        std::vector<int> indices(data.size());
        std::vector<MPI_Status> some(data.size());
        for (int done = 0, count = 0; done < open; done += count) {
            OK(MPI_Waitsome(open, requests.data(), &count, indices.data(), some.data()));
            for (int i = 0; i < count; ++i)
                statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] =
                    some[static_cast<std::size_t>(i)];
        }
    }
    for (std::size_t i = 0; i < data.size(); ++i)
        take(seen, data[i], statuses[i]);
    return open;
}

void receive_matched(Seen& seen, int source, int tag, MPI_Comm comm, Random& random) {
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (between(random, 0, 1) == 0) {
        OK(MPI_Mprobe(source, tag, comm, &found, &status));
    } else {
        for (int flag = 0; flag == 0;)
            OK(MPI_Improbe(source, tag, comm, &flag, &found, &status));
    }
    std::vector<int> data(kMostInts);
    MPI_Request request;
    MPI_Status received;
    OK(MPI_Imrecv(data.data(), kMostInts, MPI_INT, &found, &request));
    OK(MPI_Wait(&request, &received));
    CHECK_EQ(received.MPI_TAG, status.MPI_TAG);
    take(seen, data, received);
}

// `alone`: nobody else receives what this tag matches, so that a plain probe may be relied on.
Seen receive_all(int number, int source, int tag, MPI_Comm comm, bool alone, Random& random) {
    Seen seen;
    std::vector<int> data(kMostInts);
    for (int left = number; left > 0;) {
        MPI_Status status;
        switch (between(random, 0, alone ? 5 : 3)) {
            case 0: cancel_one(comm); break;
            case 1:
                receive_matched(seen, source, tag, comm, random);
                --left;
                break;
            case 2:
                left -= receive_window(seen, std::min(left, 6), source, tag, comm, random);
                break;
            case 3:
                OK(MPI_Recv(data.data(), kMostInts, MPI_INT, source, tag, comm, &status));
                take(seen, data, status);
                --left;
                break;
            default:
                OK(MPI_Probe(source, tag, comm, &status));
                int length = 0;
                OK(MPI_Get_count(&status, MPI_INT, &length));
                OK(MPI_Recv(data.data(), length, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm,
                            &status));
                take(seen, data, status);
                --left;
        }
    }
    return seen;
}

// --- the model -----------------------------------------------------------------------------------

bool in_order(const std::vector<int>& received) {
    return std::adjacent_find(received.begin(), received.end(), std::greater_equal<>()) ==
           received.end();
}

void check(const Program& program, const std::vector<Seen>& own, const std::vector<Seen>& shared) {
    const int from = (rank() + size() - 1) % size();
    Seen all;
    for (int pair = 0; pair < program.pairs(); ++pair) {
        const auto index = static_cast<std::size_t>(pair);
        const int sender = from * 100 + pair;
        CHECK_EQ(own[index].size(), 1);
        CHECK(own[index].count(sender) == 1 && own[index].at(sender) == numbers(kMessages, 0));
        for (const auto& [who, received] : shared[index]) {
            CHECK(in_order(received));
            all[who].insert(all[who].end(), received.begin(), received.end());
        }
    }
    CHECK_EQ(all.size(), program.pairs());
    for (auto& [who, received] : all) {
        std::sort(received.begin(), received.end());
        CHECK(received == numbers(kMessages, 0));
    }
}

void run(const Program& program) {
    std::vector<Seen> own(static_cast<std::size_t>(program.pairs())), shared(own.size());
    in_threads(program.threads, [&](int thread) {
        const int pair = thread / 2;
        const auto index = static_cast<std::size_t>(pair);
        Random random(program.seed * 1000 + static_cast<unsigned>(rank() * 100 + thread));
        const bool sends = thread % 2 == 0;
        const bool own_first = (program.seed + static_cast<unsigned>(pair)) % 2 == 0;
        for (const bool to_one : {own_first, !own_first}) {
            const MPI_Comm comm = program.comms[to_one ? 1 : 0];
            if (sends) {
                send_all(program, pair, to_one ? kFirstOwn + pair : kShared, comm, random);
            } else if (to_one) {
                const int from = (rank() + size() - 1) % size();
                const bool any = between(random, 0, 1) == 0;
                own[index] = receive_all(kMessages, any ? MPI_ANY_SOURCE : from, kFirstOwn + pair,
                                         comm, true, random);
            } else {
                // Also a tag that would do; cancel_one() has its own.
                const bool any = between(random, 0, 1) == 0;
                shared[index] = receive_all(kMessages, MPI_ANY_SOURCE, any ? MPI_ANY_TAG : kShared,
                                            comm, false, random);
            }
        }
    });
    check(program, own, shared);
}

void random_programs(int threads, unsigned first_seed, int programs) {
    const Threaded mpi;
    const char* wanted = std::getenv("GANTRY_TEST_SEED");
    if (wanted != nullptr) {
        first_seed = static_cast<unsigned>(std::atoi(wanted));
        programs = 1;
    }
    for (unsigned seed = first_seed; seed < first_seed + static_cast<unsigned>(programs); ++seed) {
        about("seed " + std::to_string(seed) + ", " + std::to_string(threads) + " threads");
        Program program;
        program.seed = seed;
        program.threads = threads;
        program.comms[0] = MPI_COMM_WORLD;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &program.comms[1]));
        run(program);
        OK(MPI_Comm_free(&program.comms[1]));
    }
    about("");
}

}  // namespace

MPI_CASE_OWN_INIT(threads_random_programs_of_two, 2) {
    random_programs(2, 1, 6);
}
MPI_CASE_OWN_INIT(threads_random_programs_of_four, 2) {
    random_programs(4, 100, 4);
}
MPI_CASE_OWN_INIT(threads_random_programs_of_eight, 2) {
    random_programs(8, 200, 2);
}
MPI_CASE_OWN_INIT(threads_random_programs_of_three_ranks, 3) {
    random_programs(4, 300, 2);
}
