// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of world tests as data: which operation, of how many numbers, from and into which memory.
// What must come out is a function of that alone, without any algorithm.
//
//     Operation operation(rank, communicator, what);
//     operation.fill();
//     Status done = co_await operation.run(executor, team);
//     WORLD_CHECK(operation.is_right());
#pragma once

#include "coll/blocks.hpp"
#include "coll/neighbor_exchange.hpp"
#include "coll/planner.hpp"
#include "coll/tell_memory.hpp"
#include "coll/team.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gantry::world {

enum class Kind : std::uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    reduce_scatter,
    scan,
    exscan,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    gather,
    gatherv,
    scatter,
    scatterv,
    neighbors,  // a ring; a block each way
};
inline constexpr int kKinds = 16;

// A rank's view of a communicator. Ranks make it of the same members with the same context.
class Communicator {
  public:
    Communicator(Rank& rank, std::uint32_t context, const std::vector<int>& members,
                 plan::Algorithm fixed);
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int rank() const { return group_.rank; }
    int size() const { return group_.size(); }
    // As mpi::Comm counts them: operations of either form in the order of the calls.
    coll::Team blocking() { return team(blocking_++); }
    // A blocking call with what follows it now and then, as mpi::blocking runs it.
    Task<Status> with_what_follows(Task<Status> call) {
        if (!planner_.known_memory().due()) return call;
        return coll::then_tell_memory(rank_.executor, std::move(call), blocking());
    }
    coll::Team background() { return team(background_++ | coll::kBackgroundTag); }
    // Before the first call, and alike on all ranks.
    plan::CollTuning& tuning() { return common_.job.tuning; }

  private:
    coll::Team team(int tag) {
        return {&rank_.messenger, &rank_.transfer, &group_, tag, 0, -1, 0, &planner_};
    }
    Rank& rank_;
    p2p::Group group_;
    coll::Common common_;
    coll::Planner planner_;
    int blocking_ = 0, background_ = 0;
};

struct What {
    Kind kind = Kind::barrier;
    std::size_t count = 0;  // numbers of a block or vector; of unequal blocks, about as many
    int root = 0;
    bool in_place = false;  // where the operation has that on all ranks
    // By rank: what it sends from, what it receives into. Where these are one, the second counts.
    std::vector<std::pair<Place, Place>> places;
    int gpus = 8;  // among which ranks are dealt
    device::IpcKind ipc = device::IpcKind::legacy;
    std::int64_t key = 0;  // its numbers are its own
};
std::string describe(const What& what);

class Operation {
  public:
    Operation(Rank& rank, const Communicator& communicator, What what);
    // New numbers for a further run.
    void fill(std::int64_t key);
    Task<Status> run(Executor& executor, coll::Team team);
    bool is_right();
    const What& what() const { return what_; }

  private:
    using Number = std::int64_t;
    // Blocks of the root's or of a rank's buffer, one behind the other; none where it has no blocks.
    std::vector<std::int64_t> sent_by(int rank) const;
    std::vector<std::int64_t> got_by(int rank) const;
    bool is_root() const { return me_ == what_.root; }
    bool in_place() const;
    std::size_t source_numbers() const;
    std::size_t sink_numbers() const;

    Number number(int rank, std::size_t index) const;
    Number* numbers(Bytebuffer& buffer);
    // Numbers [at, at + count) of the sink are those of that rank from `first` on; are the sums of those of the
    // first ranks.
    bool holds(std::size_t at, std::size_t count, int rank, std::size_t first);
    bool holds_sums(std::size_t at, std::size_t count, int ranks, std::size_t first);
    Bytebuffer& from() { return source_ != nullptr ? *source_ : *sink_; }

    Rank& rank_;
    const int me_, size_;
    What what_;
    // Where one memory is both, it is the sink.
    std::unique_ptr<Bytebuffer> source_, sink_;
    std::shared_ptr<const coll::Neighbors> neighbors_;
};

}  // namespace gantry::world
