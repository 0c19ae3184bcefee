// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that move data, against what each rank can compute alone: every root, counts around
// the algorithms' thresholds, in place, host and device buffers, blocking and nonblocking, 1 to 8
// ranks. (reductions.cpp has the ones that compute.)
#include "gpu.hpp"
#include "test.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace mpi_tests;

namespace {

const std::vector<int> kCounts = {0, 1, 7, 1000, 40000};

// What rank `from` sends to rank `to` at this place.
int item(int from, int to, int place) {
    return from * 1000003 + to * 10007 + place;
}

// A vector of ints in memory of one kind.
class Ints {
  public:
    Ints(Kind kind, int count, int value = -1)
        : memory_(kind, sizeof(int) * static_cast<std::size_t>(count)), count_(count) {
        set(std::vector<int>(static_cast<std::size_t>(count), value));
    }
    void set(const std::vector<int>& values) {
        memory_.write(values.data(), values.size() * sizeof(int));
    }
    std::vector<int> get() const {
        std::vector<int> values(static_cast<std::size_t>(count_));
        memory_.read(values.data(), values.size() * sizeof(int));
        return values;
    }
    void* data() const { return memory_.data(); }

  private:
    Memory memory_;
    int count_;
};

// Blocks of `count` items: block b is what `from(b)` sends to `to(b)`.
template <class From, class To>
std::vector<int> blocks(int number, int count, From from, To to) {
    std::vector<int> all;
    for (int block = 0; block < number; ++block)
        for (int place = 0; place < count; ++place)
            all.push_back(item(from(block), to(block), place));
    return all;
}
const auto me = [](int) { return rank(); };
const auto it = [](int block) { return block; };
auto always(int number) {
    return [number](int) { return number; };
}

enum class Form { blocking, nonblocking };

// Completes a call that was given a request.
void finish(MPI_Request* request) {
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

void say(const char* what, Kind kind, int count, int root, Form form) {
    about(std::string(what) + " of " + std::to_string(count) + " in " + name(kind) +
          " memory, root " + std::to_string(root) +
          (form == Form::blocking ? "" : ", nonblocking") + ", " + std::to_string(size()) +
          " ranks");
}

void rooted(Kind kind, int count, int root, Form form) {
    MPI_Request request;
    const bool is_root = rank() == root;
    {
        say("bcast", kind, count, root, form);
        Ints buffer(kind, count);
        if (is_root) buffer.set(blocks(1, count, always(root), always(0)));
        if (form == Form::blocking) {
            OK(MPI_Bcast(buffer.data(), count, MPI_INT, root, MPI_COMM_WORLD));
        } else {
            OK(MPI_Ibcast(buffer.data(), count, MPI_INT, root, MPI_COMM_WORLD, &request));
            finish(&request);
        }
        CHECK(buffer.get() == blocks(1, count, always(root), always(0)));
    }
    {
        say("gather", kind, count, root, form);
        Ints out(kind, count), in(kind, is_root ? count * size() : 0);
        out.set(blocks(1, count, me, always(root)));
        if (form == Form::blocking) {
            OK(MPI_Gather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root,
                          MPI_COMM_WORLD));
        } else {
            OK(MPI_Igather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root,
                           MPI_COMM_WORLD, &request));
            finish(&request);
        }
        if (is_root) CHECK(in.get() == blocks(size(), count, it, always(root)));
        say("gather in place", kind, count, root, form);
        if (is_root) {
            std::vector<int> expected = blocks(size(), count, it, always(root)),
                             start(expected.size(), -1);
            if (count > 0)
                std::memcpy(&start[static_cast<std::size_t>(rank() * count)],
                            &expected[static_cast<std::size_t>(rank() * count)],
                            static_cast<std::size_t>(count) * sizeof(int));
            in.set(start);
            OK(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), count, MPI_INT, root,
                          MPI_COMM_WORLD));
            CHECK(in.get() == expected);
        } else {
            OK(MPI_Gather(out.data(), count, MPI_INT, nullptr, 0, MPI_DATATYPE_NULL, root,
                          MPI_COMM_WORLD));
        }
    }
    {
        say("scatter", kind, count, root, form);
        Ints out(kind, is_root ? count * size() : 0), in(kind, count);
        if (is_root) out.set(blocks(size(), count, always(root), it));
        if (form == Form::blocking) {
            OK(MPI_Scatter(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root,
                           MPI_COMM_WORLD));
        } else {
            OK(MPI_Iscatter(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root,
                            MPI_COMM_WORLD, &request));
            finish(&request);
        }
        CHECK(in.get() == blocks(1, count, always(root), me));
        OK(MPI_Scatter(out.data(), count, MPI_INT, is_root ? MPI_IN_PLACE : in.data(), count,
                       MPI_INT, root, MPI_COMM_WORLD));
        CHECK(in.get() == blocks(1, count, always(root), me));
    }
}

void to_all(Kind kind, int count, Form form) {
    MPI_Request request;
    {
        say("allgather", kind, count, 0, form);
        Ints out(kind, count), in(kind, count * size());
        out.set(blocks(1, count, me, always(0)));
        if (form == Form::blocking) {
            OK(MPI_Allgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT,
                             MPI_COMM_WORLD));
        } else {
            OK(MPI_Iallgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, MPI_COMM_WORLD,
                              &request));
            finish(&request);
        }
        const std::vector<int> expected = blocks(size(), count, it, always(0));
        CHECK(in.get() == expected);
        say("allgather in place", kind, count, 0, form);
        std::vector<int> start(expected.size(), -1);
        for (int i = rank() * count; i < (rank() + 1) * count; ++i)
            start[static_cast<std::size_t>(i)] = expected[static_cast<std::size_t>(i)];
        in.set(start);
        OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), count, MPI_INT,
                         MPI_COMM_WORLD));
        CHECK(in.get() == expected);
    }
    {
        say("alltoall", kind, count, 0, form);
        Ints out(kind, count * size()), in(kind, count * size());
        out.set(blocks(size(), count, me, it));
        if (form == Form::blocking) {
            OK(MPI_Alltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, MPI_COMM_WORLD));
        } else {
            OK(MPI_Ialltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, MPI_COMM_WORLD,
                             &request));
            finish(&request);
        }
        CHECK(in.get() == blocks(size(), count, it, me));
        CHECK(out.get() == blocks(size(), count, me, it));
        say("alltoall in place", kind, count, 0, form);
        OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), count, MPI_INT,
                        MPI_COMM_WORLD));
        CHECK(out.get() == blocks(size(), count, it, me));
    }
}

// Rank r's block has r + 1 items times `count` (rank 1's none), and the blocks lie apart.
void with_lists(Kind kind, int count) {
    const auto number = static_cast<std::size_t>(size());
    std::vector<int> counts(number), places(number), to_me(number), from_me(number),
        send_places(number), receive_places(number);
    int end = 0;
    for (int block = 0; block < size(); ++block) {
        const auto at = static_cast<std::size_t>(block);
        counts[at] = block == 1 ? 0 : (block + 1) * count;
        places[at] = end + 3;
        end = places[at] + counts[at];
    }
    const int mine = counts[static_cast<std::size_t>(rank())], root = size() - 1;
    const auto spread = [&](auto from, auto to) {
        std::vector<int> all(static_cast<std::size_t>(end), -1);
        for (int block = 0; block < size(); ++block)
            for (int place = 0; place < counts[static_cast<std::size_t>(block)]; ++place)
                all[static_cast<std::size_t>(places[static_cast<std::size_t>(block)] + place)] =
                    item(from(block), to(block), place);
        return all;
    };
    Ints own(kind, mine), all(kind, end);

    say("gatherv", kind, count, root, Form::blocking);
    own.set(blocks(1, mine, me, always(root)));
    OK(MPI_Gatherv(own.data(), mine, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                   root, MPI_COMM_WORLD));
    if (rank() == root) CHECK(all.get() == spread(it, always(root)));

    say("scatterv", kind, count, root, Form::blocking);
    all.set(spread(always(root), it));
    own.set(std::vector<int>(static_cast<std::size_t>(mine), -1));
    OK(MPI_Scatterv(all.data(), counts.data(), places.data(), MPI_INT, own.data(), mine, MPI_INT,
                    root, MPI_COMM_WORLD));
    CHECK(own.get() == blocks(1, mine, always(root), me));

    say("allgatherv", kind, count, root, Form::blocking);
    own.set(blocks(1, mine, me, always(0)));
    all.set(std::vector<int>(static_cast<std::size_t>(end), -1));
    OK(MPI_Allgatherv(own.data(), mine, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                      MPI_COMM_WORLD));
    CHECK(all.get() == spread(it, always(0)));

    // i sends j (i + 2 j) % 3 * count items.
    say("alltoallv", kind, count, root, Form::blocking);
    const auto length = [count](int from, int to) { return (from + 2 * to) % 3 * count; };
    int out_end = 0, in_end = 0;
    std::vector<int> outgoing, expected;
    for (int peer = 0; peer < size(); ++peer) {
        const auto at = static_cast<std::size_t>(peer);
        from_me[at] = length(rank(), peer);
        to_me[at] = length(peer, rank());
        send_places[at] = out_end;
        receive_places[at] = in_end;
        out_end += from_me[at];
        in_end += to_me[at];
        for (int place = 0; place < from_me[at]; ++place)
            outgoing.push_back(item(rank(), peer, place));
        for (int place = 0; place < to_me[at]; ++place)
            expected.push_back(item(peer, rank(), place));
    }
    Ints out(kind, out_end), in(kind, in_end);
    out.set(outgoing);
    OK(MPI_Alltoallv(out.data(), from_me.data(), send_places.data(), MPI_INT, in.data(),
                     to_me.data(), receive_places.data(), MPI_INT, MPI_COMM_WORLD));
    CHECK(in.get() == expected);

    say("alltoallw", kind, count, root, Form::blocking);
    in.set(std::vector<int>(expected.size(), -1));
    std::vector<MPI_Datatype> types(number, MPI_INT);
    for (int& place : send_places)
        place *= static_cast<int>(sizeof(int));
    for (int& place : receive_places)
        place *= static_cast<int>(sizeof(int));
    OK(MPI_Alltoallw(out.data(), from_me.data(), send_places.data(), types.data(), in.data(),
                     to_me.data(), receive_places.data(), types.data(), MPI_COMM_WORLD));
    CHECK(in.get() == expected);
}

void all_of_them(Kind kind) {
    for (int count : kCounts) {
        for (Form form : {Form::blocking, Form::nonblocking}) {
            for (int root = 0; root<size(); root += size()> 3 ? 3 : 1)
                rooted(kind, count, root, form);
            to_all(kind, count, form);
        }
        with_lists(kind, count / 4 + count % 2);
    }
    about("");
}

}  // namespace

MPI_CASE(collectives_of_1, 1) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_2, 2) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_3, 3) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_5, 5) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_7, 7) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_8, 8) {
    all_of_them(Kind::host);
}
MPI_CASE(collectives_of_2_on_devices, 2) {
    all_of_them(Kind::device);
}
MPI_CASE(collectives_of_3_on_devices, 3) {
    all_of_them(Kind::device);
}
MPI_CASE(collectives_of_4_on_devices, 4) {
    all_of_them(Kind::device);
}

MPI_CASE(a_barrier_holds_everybody_back, 5) {
    // A counter that all ranks share, beside MPI: nobody may leave before everybody has counted.
    char path[] = "gantry-barrier-XXXXXX";
    const int file = rank() == 0 ? mkstemp(path) : -1;
    if (rank() == 0) CHECK_EQ(ftruncate(file, 64), 0);
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    const int mine = rank() == 0 ? file : open(path, O_RDWR);
    void* shared = mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, mine, 0);
    if (shared == MAP_FAILED) return fail(__FILE__, __LINE__, "no shared page for the counter");
    auto* counter = static_cast<std::atomic<int>*>(shared);
    for (int round = 1; round <= 300; ++round) {
        counter->fetch_add(1);
        if (round % 2) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
        } else {
            MPI_Request request;
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
            finish(&request);
        }
        // The fast ones may have counted for the next round already, nobody for the one after.
        const int counted = counter->load();
        CHECK(counted >= round * size() && counted < (round + 1) * size());
    }
    munmap(shared, 64);
    close(mine);
    if (rank() == 0) unlink(path);
}

MPI_CASE(many_collectives_run_at_once, 4) {
    constexpr int kOperations = 20, kCount = 5000;
    std::vector<std::vector<int>> in, out;
    std::vector<MPI_Request> requests(kOperations);
    for (int i = 0; i < kOperations; ++i) {
        out.emplace_back(kCount, rank() + i);
        in.emplace_back(kCount, i % 2 == 0 || rank() == i % size() ? i : -1);
    }
    for (int i = 0; i < kOperations; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (i % 2 == 0)
            OK(MPI_Iallreduce(out[at].data(), in[at].data(), kCount, MPI_INT, MPI_SUM,
                              MPI_COMM_WORLD, &requests[at]));
        else
            OK(MPI_Ibcast(in[at].data(), kCount, MPI_INT, i % size(), MPI_COMM_WORLD,
                          &requests[at]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Waitall(kOperations, requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < kOperations; ++i)
        CHECK(in[static_cast<std::size_t>(i)] ==
              std::vector<int>(kCount, i % 2 == 0 ? 0 + 1 + 2 + 3 + 4 * i : i));
}

MPI_CASE(a_mixed_collective_has_host_and_device_ends, 4) {
    constexpr int kCount = 30000;
    const Kind mine = rank() % 2 == 0 ? Kind::device : Kind::host;
    Ints buffer(mine, kCount), all(mine == Kind::host ? Kind::device : Kind::host, kCount * size());
    buffer.set(blocks(1, kCount, me, always(0)));
    OK(MPI_Allgather(buffer.data(), kCount, MPI_INT, all.data(), kCount, MPI_INT, MPI_COMM_WORLD));
    CHECK(all.get() == blocks(size(), kCount, it, always(0)));
    OK(MPI_Bcast(buffer.data(), kCount, MPI_INT, 1, MPI_COMM_WORLD));
    CHECK(buffer.get() == blocks(1, kCount, always(1), always(0)));
}

// A ring by MPI_Alltoallw: to and from all others there are no elements, and no type.
MPI_CASE(alltoallw_needs_no_type_beside_a_count_of_0, 3) {
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<int> sends(ranks), receives(ranks), places(ranks);
    std::vector<MPI_Datatype> out(ranks, MPI_DATATYPE_NULL), in(ranks, MPI_DATATYPE_NULL);
    const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
    sends[static_cast<std::size_t>(next)] = receives[static_cast<std::size_t>(before)] = 1;
    out[static_cast<std::size_t>(next)] = in[static_cast<std::size_t>(before)] = MPI_INT;
    MPI_Request request;
    for (const char* form : {"blocking", "nonblocking", "persistent"}) {
        about(form);
        int mine = rank(), got = -1;
        if (*form == 'b') {
            OK(MPI_Alltoallw(&mine, sends.data(), places.data(), out.data(), &got, receives.data(),
                             places.data(), in.data(), MPI_COMM_WORLD));
        } else if (*form == 'n') {
            OK(MPI_Ialltoallw(&mine, sends.data(), places.data(), out.data(), &got, receives.data(),
                              places.data(), in.data(), MPI_COMM_WORLD, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Alltoallw_init(&mine, sends.data(), places.data(), out.data(), &got,
                                  receives.data(), places.data(), in.data(), MPI_COMM_WORLD,
                                  MPI_INFO_NULL, &request));
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&request));
        }
        CHECK_EQ(got, before);
    }
    about("");
    // With elements, the type that is missing is named.
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    out[static_cast<std::size_t>(next)] = MPI_DATATYPE_NULL;
    int mine = rank(), got = -1;
    CHECK_EQ(error_class(MPI_Alltoallw(&mine, sends.data(), places.data(), out.data(), &got,
                                       receives.data(), places.data(), in.data(), MPI_COMM_WORLD)),
             MPI_ERR_TYPE);
}
