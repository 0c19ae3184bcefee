// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that overlap, in real processes: every pair of eight operations, as the first ones of a fresh
// communicator and of a fresh job, and random programs on several communicators. A rank does something else
// between its calls now and then, so that ranks meet in different states. tests/world/overlapping_test.cpp has
// more of it, on a virtual clock.
#include "../all.hpp"
#include "gpu.hpp"
#include "test.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

enum class What { allreduce, bcast, alltoall, allgather, reduce, scan, gather, reduce_scatter };
constexpr int kWhats = 8;
constexpr const char* kNames[kWhats] = {"allreduce", "bcast", "alltoall", "allgather",
                                        "reduce",    "scan",  "gather",   "reduce_scatter_block"};
constexpr int kMany = 9000;  // numbers of 36,000 bytes

enum class Form { blocking, nonblocking, persistent };

// One operation of this rank, its memory and what must come out.
class Operation {
  public:
    Operation(MPI_Comm comm, What what, int count, int key, Kind kind)
        : comm_(comm), what_(what), count_(count), key_(key) {
        MPI_Comm_rank(comm, &me_);
        MPI_Comm_size(comm, &size_);
        root_ = key % size_;
        const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(size_);
        source_ = std::make_unique<Memory>(kind, std::max<std::size_t>(all, 1) * sizeof(int));
        sink_ = std::make_unique<Memory>(kind, std::max<std::size_t>(all, 1) * sizeof(int));
        std::vector<int> numbers(all, -1);
        sink_->write(numbers.data(), all * sizeof(int));
        for (std::size_t i = 0; i < all; ++i)
            numbers[i] = number(me_, static_cast<int>(i));
        if (what == What::bcast && me_ != root_) std::fill(numbers.begin(), numbers.end(), -1);
        source_->write(numbers.data(), all * sizeof(int));
    }
    ~Operation() {
        if (made_) OK(MPI_Request_free(&request_));
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    void start(Form form) {
        if (form != Form::persistent) return call(form);
        if (!made_) call(form);
        made_ = true;
        OK(MPI_Start(&request_));
    }
    void finish() {
        OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));
        check();
    }

  private:
    int number(int rank, int index) const { return key_ * 7 + rank * 1000 + index % 977; }
    int sum(int ranks, int index) const {
        int all = 0;
        for (int rank = 0; rank < ranks; ++rank)
            all += number(rank, index);
        return all;
    }

    void call(Form form) {
        void *s = source_->data(), *r = sink_->data();
        MPI_Request* const q = &request_;
        const int n = count_;
        const MPI_Comm c = comm_;
        const bool b = form == Form::blocking, i = form == Form::nonblocking;
        const MPI_Info none = MPI_INFO_NULL;
        switch (what_) {
            case What::allreduce:
                OK(b   ? MPI_Allreduce(s, r, n, MPI_INT, MPI_SUM, c)
                   : i ? MPI_Iallreduce(s, r, n, MPI_INT, MPI_SUM, c, q)
                       : MPI_Allreduce_init(s, r, n, MPI_INT, MPI_SUM, c, none, q));
                break;
            case What::bcast:
                OK(b   ? MPI_Bcast(s, n, MPI_INT, root_, c)
                   : i ? MPI_Ibcast(s, n, MPI_INT, root_, c, q)
                       : MPI_Bcast_init(s, n, MPI_INT, root_, c, none, q));
                break;
            case What::alltoall:
                OK(b   ? MPI_Alltoall(s, n, MPI_INT, r, n, MPI_INT, c)
                   : i ? MPI_Ialltoall(s, n, MPI_INT, r, n, MPI_INT, c, q)
                       : MPI_Alltoall_init(s, n, MPI_INT, r, n, MPI_INT, c, none, q));
                break;
            case What::allgather:
                OK(b   ? MPI_Allgather(s, n, MPI_INT, r, n, MPI_INT, c)
                   : i ? MPI_Iallgather(s, n, MPI_INT, r, n, MPI_INT, c, q)
                       : MPI_Allgather_init(s, n, MPI_INT, r, n, MPI_INT, c, none, q));
                break;
            case What::reduce:
                OK(b   ? MPI_Reduce(s, r, n, MPI_INT, MPI_SUM, root_, c)
                   : i ? MPI_Ireduce(s, r, n, MPI_INT, MPI_SUM, root_, c, q)
                       : MPI_Reduce_init(s, r, n, MPI_INT, MPI_SUM, root_, c, none, q));
                break;
            case What::scan:
                OK(b   ? MPI_Scan(s, r, n, MPI_INT, MPI_SUM, c)
                   : i ? MPI_Iscan(s, r, n, MPI_INT, MPI_SUM, c, q)
                       : MPI_Scan_init(s, r, n, MPI_INT, MPI_SUM, c, none, q));
                break;
            case What::gather:
                OK(b   ? MPI_Gather(s, n, MPI_INT, r, n, MPI_INT, root_, c)
                   : i ? MPI_Igather(s, n, MPI_INT, r, n, MPI_INT, root_, c, q)
                       : MPI_Gather_init(s, n, MPI_INT, r, n, MPI_INT, root_, c, none, q));
                break;
            case What::reduce_scatter:
                OK(b   ? MPI_Reduce_scatter_block(s, r, n, MPI_INT, MPI_SUM, c)
                   : i ? MPI_Ireduce_scatter_block(s, r, n, MPI_INT, MPI_SUM, c, q)
                       : MPI_Reduce_scatter_block_init(s, r, n, MPI_INT, MPI_SUM, c, none, q));
                break;
        }
    }

    int expected(int index) const {
        switch (what_) {
            case What::bcast: return number(root_, index);
            case What::allreduce:
            case What::reduce: return sum(size_, index);
            case What::scan: return sum(me_ + 1, index);
            case What::reduce_scatter: return sum(size_, me_ * count_ + index);
            case What::allgather:
            case What::gather: return number(index / count_, index % count_);
            case What::alltoall: return number(index / count_, me_ * count_ + index % count_);
        }
        return 0;
    }

    void check() {
        const bool rooted = what_ == What::reduce || what_ == What::gather;
        if (rooted && me_ != root_) return;
        const bool blocks =
            what_ == What::allgather || what_ == What::gather || what_ == What::alltoall;
        std::vector<int> got(static_cast<std::size_t>(blocks ? count_ * size_ : count_));
        (what_ == What::bcast ? source_ : sink_)->read(got.data(), got.size() * sizeof(int));
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (got[i] == expected(static_cast<int>(i))) continue;
            about(std::string(kNames[static_cast<int>(what_)]) + " of " + std::to_string(count_) +
                  " numbers, the one at " + std::to_string(i));
            CHECK_EQ(got[i], expected(static_cast<int>(i)));
            about("");
            return;
        }
    }

    const MPI_Comm comm_;
    const What what_;
    const int count_, key_;
    int me_ = 0, size_ = 1, root_ = 0;
    MPI_Request request_ = MPI_REQUEST_NULL;
    bool made_ = false;
    std::unique_ptr<Memory> source_, sink_;
};

// Something else, for a time that depends on the rank.
void compute(std::mt19937& dice) {
    volatile unsigned long work = 0;
    for (auto left = dice() % 8 == 0 ? dice() % 60'000 : dice() % 2'000; left > 0; --left)
        work = work + left;
}

void overlap(MPI_Comm comm, What one, What other, Kind kind, int key) {
    std::mt19937 dice(static_cast<unsigned>(key * 16 + rank()));
    for (int round = 0; round < 2; ++round) {
        Operation first(comm, one, kMany, key + round, kind),
            second(comm, other, kMany, key + round + 100, kind);
        compute(dice);
        first.start(Form::nonblocking);
        compute(dice);
        second.start(Form::nonblocking);
        const bool turned = dice() % 2 == 0;
        (turned ? second : first).finish();
        (turned ? first : second).finish();
    }
}

// What of the ranks lies in device memory.
enum class Mixture { host, device, mixed };

Kind kind_of(Mixture mixture) {
    const bool device = mixture == Mixture::device || (mixture == Mixture::mixed && rank() == 1);
    return device ? Kind::device : Kind::host;
}

void use_own_device() {
    use_device(rank() % gpu().count);
}

// Each pair in a communicator of its own.
void all_pairs(Mixture mixture) {
    if (mixture != Mixture::host) use_own_device();
    int key = 1;
    for (int one = 0; one < kWhats; ++one)
        for (int other = one; other < kWhats; ++other, ++key) {
            MPI_Comm comm = MPI_COMM_NULL;
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
            overlap(comm, static_cast<What>(one), static_cast<What>(other), kind_of(mixture), key);
            OK(MPI_Comm_free(&comm));
        }
}

// A program that is the same on all ranks but for when they do what.
void random_program(unsigned seed, Mixture mixture) {
    std::mt19937 common(seed), own(seed * 16 + static_cast<unsigned>(rank()));
    constexpr int kCounts[] = {0, 1, 12, 100, 1024, 1025, 4000, kMany, 40'000};
    std::array<MPI_Comm, 3> comms = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() == 0 ? 1 : 0, -rank(), &comms[2]));
    int key = 0;
    const auto make = [&] {
        const MPI_Comm comm = comms[common() % 3];
        const auto what = static_cast<What>(common() % kWhats);
        const int count = kCounts[common() % std::size(kCounts)];
        return std::make_unique<Operation>(comm, what, count, ++key, kind_of(mixture));
    };
    std::vector<std::unique_ptr<Operation>> again, pending;
    for (auto i = common() % 3; i > 0; --i)
        again.push_back(make());
    for (std::unique_ptr<Operation>& each : again) {
        each->start(Form::persistent);
        each->finish();
    }
    for (int round = 0; round < 6; ++round) {
        std::shuffle(again.begin(), again.end(), own);
        for (std::unique_ptr<Operation>& each : again) {
            compute(own);
            each->start(Form::persistent);
        }
        for (auto i = 1 + common() % 4; i > 0; --i) {
            compute(own);
            pending.push_back(make());
            pending.back()->start(Form::nonblocking);
        }
        for (auto i = common() % 4; i > 0; --i) {
            const std::unique_ptr<Operation> blocking = make();
            compute(own);
            blocking->start(Form::blocking);
            blocking->finish();
        }
        std::shuffle(pending.begin(), pending.end(), own);
        for (std::size_t some = own() % (pending.size() + 1); some > 0; --some) {
            pending.back()->finish();
            pending.pop_back();
        }
        for (std::unique_ptr<Operation>& each : again)
            each->finish();
    }
    for (std::unique_ptr<Operation>& each : pending)
        each->finish();
    again.clear();
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Comm_free(&comms[2]));
}

void random_programs(Mixture mixture, std::uint64_t first) {
    if (mixture != Mixture::host) use_own_device();
    for (std::uint64_t seed = first; seed < first + gantry::seeds(3, 200); ++seed)
        random_program(static_cast<unsigned>(seed), mixture);
}

}  // namespace

MPI_CASE(overlapping_pairs_of_host_memory, 3) {
    all_pairs(Mixture::host);
}
MPI_CASE(overlapping_pairs_of_device_memory, 3) {
    all_pairs(Mixture::device);
}
MPI_CASE(overlapping_pairs_of_mixed_memory, 3) {
    all_pairs(Mixture::mixed);
}

// Nothing is known of the other ranks when the second one begins.
MPI_CASE(overlapping_first_operations_of_a_job_allreduce_bcast, 3) {
    overlap(MPI_COMM_WORLD, What::allreduce, What::bcast, Kind::host, 1);
}
MPI_CASE(overlapping_first_operations_of_a_job_alltoall_gather, 3) {
    overlap(MPI_COMM_WORLD, What::alltoall, What::gather, Kind::host, 1);
}
MPI_CASE(overlapping_first_operations_of_a_job_reduce_allgather, 3) {
    overlap(MPI_COMM_WORLD, What::reduce, What::allgather, Kind::host, 1);
}

MPI_CASE(overlapping_random_programs_of_host_memory, 4) {
    random_programs(Mixture::host, 1);
}
MPI_CASE(overlapping_random_programs_of_device_memory, 3) {
    random_programs(Mixture::device, 1000);
}
MPI_CASE(overlapping_random_programs_of_mixed_memory, 3) {
    random_programs(Mixture::mixed, 2000);
}
