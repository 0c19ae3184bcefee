// SPDX-License-Identifier: BSD-3-Clause
//
// Nobody leaves while another rank may still read its source or store into its sink: the step of a rank
// is raised when it has done both for the last time, and everybody waits for all steps. A rank that
// cannot map the memory of another one, or has no kernel for the operation, fails its step with
// MPI_ERR_UNSUPPORTED_OPERATION before it has written anything; then all go by messages.
#include "coll/direct_reduce.hpp"

#include "base/scope.hpp"
#include "coll/device_scratch.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "coll/host_reduce.hpp"
#include "coll/mapped_peers.hpp"
#include "coll/reduce_offer.hpp"
#include "device/reduce_kernels.hpp"
#include "layout/layout.hpp"
#include "transfer/board.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace gantry::coll {
namespace {

using Offer = ReduceOffer;
using Running = RunningReduction;
using Vector = Offer::Vector;

constexpr int kDone = 0, kTried = 1;  // steps: all is done; it can be done

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
    layout::unpack(layout, reduced.address(), 0, bytes, running.meeting.cell_of(0).data() + begin);
    for (int member = 1; member < running.operands_of(me); ++member) {
        layout::unpack(layout, next.address(), 0, bytes,
                       running.meeting.cell_of(member).data() + begin);
        Apply next_one(executor, what.reducer, reduced.address(), next.address(), count);
        co_await next_one;
        reduced.swap(next);
    }
    p2p::Buffer sink = what.sink;
    sink.count = count;
    Status copied = co_await copy(executor, team, reduced.buffer(), sink);
    co_return copied;
}

HostReduction reading(Running& running) {
    const int me = running.team.rank();
    HostReduction job{.team = running.team,
                      .meeting = running.meeting,
                      .call = running.what,
                      .wants = running.wants(me) && running.what.sink.bytes() > 0,
                      .operands = running.operands_of(me),
                      .overwrites = running.any_in_place(),
                      .in_the_way = is_in_the_way(running)};
    const auto [first, count] = running.range_of(me);
    job.range = {first, first + count};
    job.share = reinterpret_cast<std::byte*>(running.offer(me).share_at);
    for (int member = 0; member < running.size(); ++member) {
        job.sources.push_back(running.offer(member).source_at);
        job.shares.push_back(running.offer(member).share_at);
    }
    return job;
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
            const Offer& offer = running_.offer(member);
            std::byte *source = reinterpret_cast<std::byte*>(offer.source_at),
                      *sink = reinterpret_cast<std::byte*>(offer.sink_at);
            if (member != me) {
                Result<std::byte*> there = mapped_.at(offer.source_handle, gpu_, offer.source_at);
                GANTRY_TRY(there.status());
                source = *there;
                if (offer.sink == Vector::device) {
                    there = mapped_.at(offer.sink_handle, gpu_, offer.sink_at);
                    GANTRY_TRY(there.status());
                    sink = *there;
                }
            }
            if ((offer.source_at | offer.sink_at) % kernel->alignment != 0)
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

// What is overwritten cannot go another way: in place, nobody begins before all can.
Task<Status> agree_to_begin(Executor& executor, Running& running, Status ready) {
    if (!running.any_in_place()) co_return ready;
    if (!ready.ok()) {
        running.meeting.fail(ready);
        co_return ready;
    }
    running.meeting.raise(kTried);
    Status all = co_await running.meeting.all_raised(executor, kTried);
    co_return all;
}

// This rank's part. Mappings are given back before anybody hears that it is done.
Task<Status> work(Executor& executor, Running& running, plan::Algorithm algorithm) {
    OnDevice device(running);
    const bool works = running.worker(running.team.rank()) == running.team.rank();
    Status ready;
    if (works) ready = device.prepare();
    Status agreed = co_await agree_to_begin(executor, running, std::move(ready));
    if (!agreed.ok() || !works) co_return agreed;
    Status reduced;
    if (algorithm == plan::Algorithm::two_shots)
        reduced = co_await two_shots(executor, running, device);
    else
        reduced = co_await one_shot(executor, running, device);
    if (running.any_in_place() && reduced.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        reduced = failure(MPI_ERR_OTHER, "{}", reduced.text());
    co_return reduced;
}

Task<Status> reduce_on_device(Executor& executor, Running& running, plan::Algorithm algorithm) {
    Status reduced = co_await work(executor, running, algorithm);
    Status all = co_await end_together(executor, running.meeting, kDone, std::move(reduced));
    if (!all.ok() || running.sink_scratch.data() == nullptr) co_return all;
    const p2p::Buffer& sink = running.sink_later;
    Status placed = co_await transfer::copy(executor, *running.team.context, sink.data(),
                                            running.sink_scratch.data(), sink.bytes());
    co_return placed;
}

}  // namespace

Task<Result<plan::CollPlan>> reduce_directly(Executor& executor, Team team, ReductionCall* call,
                                             plan::CallQuestion question) {
    Running running(team, *call);
    Status opened = co_await running.meeting.open(executor);
    if (!opened.ok()) co_return opened;
    Offer offer = make_offer(running);
    call->reducer = running.what.reducer;
    if (offer.on_device && brings_in_cell(team, question)) {
        Status filled = co_await put_into_cell(executor, running, offer);
        running.unusable = !filled.ok();
        if (running.unusable) offer = make_offer(running);
    }
    if (offer.source != Vector::in_cell && offer.source != Vector::host && !running.unusable &&
        (offer.source == Vector::other || offer.sink == Vector::other || is_in_the_way(running))) {
        Status reachable = co_await make_reachable(executor, running);
        running.unusable = !reachable.ok();
        offer = make_offer(running);
    }
    running.meeting.post(offer);
    Status posted = co_await running.meeting.all_posted(executor);
    if (!posted.ok()) {
        running.meeting.fail(posted);
        co_return posted;
    }
    note_brought(team, brought_to(running.offers()));
    const AgreedQuestion agreed(question, running.offers(), running.what);
    const plan::CollPlan plan = plan_of(team, agreed);
    Status reduced;
    if (plan.algorithm == plan::Algorithm::cells) {
        reduced = co_await reduce_cells(executor, running);
    } else if (is_on_board(plan.algorithm)) {
        if (plan.algorithm == plan::Algorithm::reads)
            reduced = co_await reduce_by_reading(executor, reading(running));
        else
            reduced = co_await reduce_on_device(executor, running, plan.algorithm);
        if (reduced.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
            co_return plan_of(team, agreed.by_messages());
    }
    if (!reduced.ok()) co_return reduced;
    co_return plan;
}

}  // namespace gantry::coll
