// SPDX-License-Identifier: BSD-3-Clause
//
// Dynamic staging: blocks in device memory go to other nodes through page-locked memory, in batches of
// one large block or several small ones. While one batch is sent, the next is copied out of the GPU;
// what comes is copied in as soon as its batch is complete, whichever that is.
//
//     out   | copy a | send 1 2 3      |          | copy c | send 7 8
//                    | copy b | send 4 5 6 |
//     in             | 1 | 3 | 2 | copy in | ...
//
// Ranks of the own node store into each other's mapped memory instead (exchange_directly), or send
// device messages. Blocks that are too large, or not in device memory, go from where they lie. There is one
// message for each block, whichever side stages.
//
// Each direction takes batches in the order of steps (step s: to rank + s, from rank - s), and has so
// many bytes and messages under way at most. The lowest step that is not done on all ranks is then
// under way at both its ranks, so nobody waits in a circle. A direction that gets no page-locked memory
// and holds none goes on with messages of device memory.
//
//     steps 1; messages sent per rank P - 1; memory: at most twice plan::kStagedLimits.pinned, page-locked
#include "coll/alltoall.hpp"
#include "coll/node/exchange.hpp"
#include "coll/host_image.hpp"
#include "coll/nodes.hpp"
#include "plan/coll_limits.hpp"
#include "transfer/context.hpp"
#include "transfer/local_move.hpp"
#include "transfer/mover.hpp"
#include "transfer/pipeline/stage.hpp"

#include <algorithm>
#include <utility>

namespace gantry::coll {
namespace {

enum class Way : std::uint8_t { out, in };

struct Batch {
    int first = 0, end = 0;  // steps
    Bytes bytes = 0;
    bool may_stage = false;  // where page-locked memory is free
    int steps() const { return end - first; }
};

// A block of a batch, and where it lies in the slot.
struct Part {
    p2p::Buffer block;
    Bytes at = 0;
};

class Direction {
  public:
    Direction(Run& run, const Blocks& blocks, Way way, Bytes unit, int outstanding)
        : run_(run), blocks_(blocks), way_(way), unit_(unit), most_messages_(outstanding) {}
    Direction(const Direction&) = delete;
    Direction& operator=(const Direction&) = delete;

    Task<Status> pass_all(Executor& executor, std::vector<bool> far) {
        Scope passing(executor);
        const std::vector<Batch> all = batches(far);
        for (const Batch& batch : all) {
            while (!has_room(batch)) {
                Completion left(executor);
                waiting_ = &left;
                Status none = co_await left;
            }
            transfer::HeldSlot slot;
            while (batch.may_stage) {
                slot = transfer::HeldSlot::try_take(run_.team.context->pools, batch.bytes,
                                                    transfer::SlotUse::ahead);
                if (slot || in_pinned_ == 0) break;
                Completion left(executor);
                waiting_ = &left;
                Status none = co_await left;
            }
            messages_ += batch.steps();
            (slot ? in_pinned_ : apart_) += batch.bytes;
            passing.spawn(pass(executor, batch, std::move(slot)));
        }
        Status passed = co_await passing.join(executor);
        co_return passed;
    }

  private:
    int peer(int step) const {
        const int size = run_.size();
        return (run_.rank() + (way_ == Way::out ? step : size - step)) % size;
    }

    // The pool is made when something is to be staged.
    bool there_is_pinned(Bytes bytes) {
        Result<transfer::SlotPool*> pool =
            run_.team.context->pools.own(transport::Pool::device_slots);
        return pool.ok() && bytes <= (*pool)->largest();
    }

    // One block each, or neighbours that are staged together.
    std::vector<Batch> batches(const std::vector<bool>& far) {
        std::vector<Batch> all;
        for (int step = 1; step < run_.size(); ++step) {
            if (!far[static_cast<std::size_t>(peer(step))]) continue;
            const p2p::Buffer block = blocks_.of(peer(step));
            const Bytes bytes = block.bytes();
            const bool staged = bytes > 0 && bytes <= plan::kStagedLimits.largest_block &&
                                !on_host(run_.team, block) && there_is_pinned(bytes);
            Batch* const last = all.empty() ? nullptr : &all.back();
            if (last != nullptr && staged && last->may_stage && last->end == step &&
                last->bytes + bytes <= unit_) {
                last->end = step + 1;
                last->bytes += bytes;
            } else {
                all.push_back({step, step + 1, bytes, staged});
            }
        }
        return all;
    }

    bool has_room(const Batch& batch) const {
        if (messages_ > 0 && messages_ + batch.steps() > most_messages_) return false;
        const Bytes before = batch.may_stage ? in_pinned_ : apart_;
        return before == 0 || before + batch.bytes <= (batch.may_stage ? plan::kStagedLimits.pinned
                                                                       : plan::kStagedLimits.apart);
    }

    // In the order of their addresses, where blocks follow each other by rank.
    std::vector<Part> parts(const Batch& batch) const {
        std::vector<Part> all(static_cast<std::size_t>(batch.steps()));
        Bytes at = 0;
        for (int i = 0; i < batch.steps(); ++i) {
            const int step = way_ == Way::out ? batch.first + i : batch.end - 1 - i;
            Part& part = all[static_cast<std::size_t>(step - batch.first)];
            part = {blocks_.of(peer(step)), at};
            at += part.block.bytes();
        }
        return all;
    }

    // Between blocks and slot, in as few copies as can be.
    Task<Status> copy_parts(Executor& executor, const std::vector<Part>& all, std::byte* slot) {
        std::vector<Part> sorted = all;
        std::ranges::sort(sorted, {}, &Part::at);
        Scope copies(executor);
        for (std::size_t i = 0; i < sorted.size();) {
            const p2p::Buffer& block = sorted[i].block;
            const Bytes at = sorted[i].at;
            if (!block.contiguous()) {
                const p2p::Buffer packed = transfer::bytes_buffer(slot + at, block.bytes());
                if (way_ == Way::out)
                    copies.spawn(transfer::copy_local(executor, *run_.team.context, block, packed));
                else
                    copies.spawn(transfer::copy_local(executor, *run_.team.context, packed, block));
                ++i;
                continue;
            }
            Bytes bytes = block.bytes();
            for (++i; i < sorted.size() && sorted[i].block.contiguous() &&
                      sorted[i].block.data() == block.data() + bytes;
                 ++i)
                bytes += sorted[i].block.bytes();
            std::byte *to = slot + at, *from = block.data();
            if (way_ == Way::in) std::swap(to, from);
            copies.spawn(transfer::copy(executor, *run_.team.context, to, from, bytes));
        }
        Status copied = co_await copies.join(executor);
        co_return copied;
    }

    Task<Status> pass(Executor& executor, Batch batch, transfer::HeldSlot slot) {
        const bool staged = static_cast<bool>(slot);
        const std::vector<Part> all = parts(batch);
        if (staged && way_ == Way::out) {
            Status copied = co_await copy_parts(executor, all, slot.memory());
            run_.note(std::move(copied));
        }
        InFlight messages(run_);
        for (int step = batch.first; step < batch.end; ++step) {
            const Part& part = all[static_cast<std::size_t>(step - batch.first)];
            p2p::Buffer buffer = part.block;
            if (staged)
                buffer = transfer::bytes_buffer(slot.memory() + part.at, part.block.bytes());
            if (way_ == Way::out)
                messages.send(buffer, peer(step));
            else
                messages.receive(buffer, peer(step));
        }
        Status passed = co_await messages.all(executor);
        if (staged && way_ == Way::in && !run_.failed()) {
            passed = co_await copy_parts(executor, all, slot.memory());
            run_.note(std::move(passed));
        }
        slot.give_back();
        (staged ? in_pinned_ : apart_) -= batch.bytes;
        messages_ -= batch.steps();
        if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->complete(success());
        co_return success();
    }

    Run& run_;
    const Blocks& blocks_;
    const Way way_;
    const Bytes unit_;
    const int most_messages_;
    // Under way.
    int messages_ = 0;
    Bytes in_pinned_ = 0, apart_ = 0;  // in slots; without one
    Completion* waiting_ = nullptr;    // for one of them to end
};

// Whether each rank is on another node.
std::vector<bool> far_ranks(const Run& run) {
    std::vector<bool> far(static_cast<std::size_t>(run.size()));
    const Nodes& nodes = nodes_of(run.team);
    for (int rank = 0; rank < run.size(); ++rank)
        far[static_cast<std::size_t>(rank)] = nodes.node_of(rank) != nodes.node();
    return far;
}

// Blocks between ranks of the own node, whose memory is not mapped.
Task<Status> message_in_node(Executor& executor, Run& run, const Blocks& outgoing,
                             const Blocks& incoming, const std::vector<bool>& far) {
    const int size = run.size(), rank = run.rank();
    InFlight messages(run);
    for (int step = 1; step < size; ++step) {
        const int from = (rank - step + size) % size, to = (rank + step) % size;
        if (!far[static_cast<std::size_t>(from)]) messages.receive(incoming.of(from), from);
        if (!far[static_cast<std::size_t>(to)]) messages.send(outgoing.of(to), to);
    }
    Status placed = co_await copy(executor, run.team, outgoing.of(rank), incoming.of(rank));
    run.note(std::move(placed));
    Status met = co_await messages.all(executor);
    co_return met;
}

Task<Status> exchange_in_node(Executor& executor, Run& run, const Blocks& outgoing,
                              const Blocks& incoming, const std::vector<bool>& far) {
    Nodes& nodes = nodes_of(run.team);
    const Team inside = inside_of(run, nodes, 0);
    const plan::CallQuestion question = alltoall_question(incoming, false);
    if (plan_of(inside, question).meet) {
        Traffic traffic(inside.size());
        for (int rank = 0; rank < run.size(); ++rank) {
            if (far[static_cast<std::size_t>(rank)]) continue;
            const auto number = static_cast<std::size_t>(nodes.number_of(rank));
            traffic.outgoing[number] = outgoing.of(rank);
            traffic.incoming[number] = incoming.of(rank);
        }
        Result<plan::CollPlan> met =
            co_await exchange_directly(executor, inside, std::move(traffic), question);
        if (!met.ok()) run.note(met.status());
        if (!met.ok() || goes_over_node_segment(met->algorithm)) co_return run.status();
    }
    Status exchanged = co_await message_in_node(executor, run, outgoing, incoming, far);
    co_return exchanged;
}

}  // namespace

Task<Status> alltoall_staged(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                             Bytes unit, int outstanding) {
    Run run(team);
    const std::vector<bool> far = far_ranks(run);
    Direction out(run, outgoing, Way::out, unit, outstanding),
        in(run, incoming, Way::in, unit, outstanding);
    Scope ways(executor);
    ways.spawn(in.pass_all(executor, far));
    ways.spawn(out.pass_all(executor, far));
    ways.spawn(exchange_in_node(executor, run, outgoing, incoming, far));
    Status done = co_await ways.join(executor);
    run.note(std::move(done));
    co_return run.status();
}

}  // namespace gantry::coll
