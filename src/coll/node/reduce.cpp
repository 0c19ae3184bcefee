// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that cannot map the memory of another one, or has no kernel for the operation, votes
// MPI_ERR_UNSUPPORTED_OPERATION before it has written anything.
#include "coll/node/reduce.hpp"

#include "base/scope.hpp"
#include "coll/device_scratch.hpp"
#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "coll/node/reduce_by_reading.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/node/reduce_offer.hpp"
#include "device/reduce_kernels.hpp"
#include "layout/layout.hpp"
#include "transfer/node_segment.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace gantry::coll {
namespace {

using Running = RunningReduction;

constexpr int kDone = 0, kTried = 1;  // phases: all is done; it can be done

// --- in host memory ------------------------------------------------------------------------------

// Two vectors of the program's layout: what was reduced so far, and the next rank's.
Task<Status> reduce_cells(Executor& executor, Running& running) {
    const Team& team = running.team;
    const ReductionCall& what = running.what;
    const int me = team.rank();
    if (!running.wants(me) || what.sink.bytes() == 0) co_return success();
    const auto [first, count] = running.range_of(me);
    const layout::Layout& layout = *what.source.layout;
    HostImage reduced, next;
    Status ready = reduced.allocate(team, count, layout);
    GANTRY_CO_TRY(ready);
    ready = next.allocate(team, count, layout);
    GANTRY_CO_TRY(ready);
    const Bytes begin = first * layout.size, bytes = count * layout.size;
    layout::unpack(layout, reduced.address(), 0, bytes,
                   running.handshake.cell_of(0).data() + begin);
    for (int member = 1; member < running.operands_of(me); ++member) {
        layout::unpack(layout, next.address(), 0, bytes,
                       running.handshake.cell_of(member).data() + begin);
        Apply next_one(executor, what.reducer, reduced.address(), next.address(), count);
        co_await next_one;
        reduced.swap(next);
    }
    p2p::Buffer sink = what.sink;
    sink.count = count;
    Status copied = co_await copy(executor, team, reduced.buffer(), sink);
    co_return copied;
}

// --- in device memory ----------------------------------------------------------------------------

// Elements [first, first + count) of the first vectors, reduced into `sink`.
struct Piece {
    std::uint64_t first = 0, count = 0;
    int operands = 0;
    void* sink = nullptr;
    bool to_all = false;  // into the same place of all other sinks, too
};

class OnDevice {
  public:
    explicit OnDevice(Running& running)
        : running_(running),
          context_(*running.team.context),
          mapped_(context_.device),
          gpu_(context_.device.gpu_of(running.offer(running.team.rank()).source_handle.gpu)) {}

    // Maps what this rank will need; nothing is written.
    Status prepare() {
        const int me = running_.team.rank();
        const Reducer& reducer = running_.what.reducer;
        const auto kernel = device::reduce_kernel(reducer.operation, reducer.element);
        if (!context_.config.kernels || !kernel)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no kernel makes this reduction");
        for (int member = 0; member < running_.size(); ++member) {
            const MemoryOffer& offer = running_.offer(member);
            std::byte *source = reinterpret_cast<std::byte*>(offer.sources.first),
                      *sink = reinterpret_cast<std::byte*>(offer.sinks.first);
            if (member != me) {
                Result<std::byte*> there =
                    mapped_.at(offer.source_handle, gpu_, offer.sources.first);
                GANTRY_TRY(there.status());
                source = *there;
                if (offer.sink == Held::device) {
                    there = mapped_.at(offer.sink_handle, gpu_, offer.sinks.first);
                    GANTRY_TRY(there.status());
                    sink = *there;
                }
            }
            if ((offer.sources.first | offer.sinks.first) % kernel->alignment != 0)
                return failure(MPI_ERR_UNSUPPORTED_OPERATION, "a vector lies askew");
            sources_.push_back(source);
            sinks_.push_back(sink);
        }
        return success();
    }
    std::byte* sink_of(int member) const { return sinks_[static_cast<std::size_t>(member)]; }
    Bytes element() const { return running_.what.source.layout->size; }

    Task<Status> reduce(Executor& executor, Piece piece) {
        if (piece.count == 0 || piece.operands == 0) co_return success();
        std::vector<const void*> operands;
        for (int member = 0; member < piece.operands; ++member)
            operands.push_back(sources_[static_cast<std::size_t>(member)] +
                               piece.first * element());
        device::Reduce job;
        job.operation = running_.what.reducer.operation;
        job.element = running_.what.reducer.element;
        job.sources = operands;
        job.destination = piece.sink;
        std::vector<void*> also;
        for (std::byte* sink : sinks_)
            if (std::byte* const other = sink + piece.first * element();
                piece.to_all && other != piece.sink)
                also.push_back(other);
        job.also = also;
        job.count = piece.count * running_.what.reducer.items;
        job.gpu = gpu_;
        Completion done(executor);
        context_.device.reduce(job, done);
        Status status = co_await done;
        co_return status;
    }

  private:
    Running& running_;
    transfer::Context& context_;
    MappedPeers mapped_;
    int gpu_;
    std::vector<std::byte*> sources_, sinks_;
};

// What each rank gets, by whoever works for it.
Task<Status> one_shot(Executor& executor, Running& running, OnDevice& device) {
    const int me = running.team.rank();
    Scope pieces(executor);
    for (int member = 0; member < running.size(); ++member) {
        if (!running.wants(member) || running.worker(member) != me) continue;
        const auto [first, count] = running.range_of(member);
        Piece piece{first, count, running.operands_of(member), device.sink_of(member)};
        pieces.spawn(device.reduce(executor, piece));
    }
    Status reduced = co_await pieces.join(executor);
    co_return reduced;
}

// A share by each who works, stored into all sinks.
Task<Status> two_shots(Executor& executor, Running& running, OnDevice& device) {
    const int me = running.team.rank();
    std::uint64_t workers = 0, number = 0;
    for (int member = 0; member < running.size(); ++member) {
        if (running.worker(member) != member) continue;
        if (member < me) ++number;
        ++workers;
    }
    if (running.worker(me) != me) co_return success();
    const std::uint64_t all = running.what.source.count;
    const std::uint64_t first = all * number / workers, end = all * (number + 1) / workers;
    const bool to_root = running.what.share == Share::root;
    std::byte* const result = device.sink_of(to_root ? running.what.root : me);
    Piece piece{first, end - first, running.size(), result + first * device.element(), !to_root};
    Status reduced = co_await device.reduce(executor, piece);
    co_return reduced;
}

// This rank's part. Mappings are given back before anybody hears that it is done.
Task<Status> work(Executor& executor, Running& running, plan::Algorithm algorithm) {
    OnDevice device(running);
    const bool works = running.worker(running.team.rank()) == running.team.rank();
    Status ready;
    if (works) ready = device.prepare();
    // What is overwritten cannot go another way: in place, nobody begins before all can.
    if (running.any_in_place())
        ready = co_await vote(executor, running.handshake, kTried, std::move(ready));
    if (!ready.ok() || !works) co_return ready;
    Status reduced;
    if (algorithm == plan::Algorithm::two_shots)
        reduced = co_await two_shots(executor, running, device);
    else
        reduced = co_await one_shot(executor, running, device);
    if (running.any_in_place() && reduced.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        reduced = failure(MPI_ERR_OTHER, "{}", reduced.text());
    co_return reduced;
}

}  // namespace

Task<Status> RunningReduction::act(Executor& executor, plan::CollPlan plan) {
    Status reduced;
    if (plan.algorithm == plan::Algorithm::cells) {
        reduced = co_await reduce_cells(executor, *this);
    } else if (plan.algorithm == plan::Algorithm::reads) {
        reduced = co_await reduce_by_reading(executor, *this);
    } else {
        reduced = co_await work(executor, *this, plan.algorithm);
        reduced = co_await vote(executor, handshake, kDone, std::move(reduced));
    }
    co_return reduced;
}

Task<Status> RunningReduction::settle(Executor& executor) {
    if (sink_scratch.data() == nullptr) co_return success();
    Status placed = co_await transfer::copy(executor, *team.context, sink_later.data(),
                                            sink_scratch.data(), sink_later.bytes());
    co_return placed;
}

Task<Result<plan::CollPlan>> reduce_directly(Executor& executor, Team team, ReductionCall* call,
                                             plan::CallQuestion question) {
    RunningReduction running(team, *call, question);
    Result<plan::CollPlan> done = co_await running.run(executor);
    call->reducer = running.what.reducer;
    co_return done;
}

}  // namespace gantry::coll
