// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that cannot map the memory of another one, or whose GPU does not reach some block, fails its
// step with MPI_ERR_UNSUPPORTED_OPERATION. All its blocks go by messages then, and who waits for the
// step sees that.
//
// Nobody leaves while another rank may still store into its memory: the wait for a step ends when its
// owner has raised it, has failed or is lost.
#include "coll/node/neighbor.hpp"

#include "base/scope.hpp"
#include "coll/device_scratch.hpp"
#include "coll/node/exchange_offer.hpp"
#include "coll/node/exchange_scratch.hpp"
#include "coll/exchange.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/node/neighbor_blocks.hpp"
#include "coll/planner.hpp"
#include "transfer/node_segment.hpp"
#include "transfer/context.hpp"
#include "transfer/row_launch.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace gantry::coll {
namespace {

// Packed blocks begin at such addresses, so that a kernel moves wide units.
constexpr Bytes kBlockAlignment = 16;

// Where a block is taken; one for each source, in its order.
struct Room {
    std::uint64_t at = 0, bytes = 0;  // an address of the owner's
    std::int32_t from = 0;            // member of the node
    std::uint32_t in_scratch = 0;
};

Status too_long(Bytes bytes, int to, Bytes room) {
    return failure(
        MPI_ERR_TRUNCATE,
        "a block of {} bytes for neighbor {}, which receives only {}: counts and datatypes "
        "of both must agree",
        bytes, to, room);
}

class NodeExchange {
  public:
    NodeExchange(Executor& executor, const Team& team, NeighborTraffic traffic,
                 const plan::CallQuestion& call)
        : team_(team),
          context_(*team.context),
          node_(team.planner->on_node(team)),
          question_(plan::question_of(call)),
          traffic_(std::move(traffic)),
          to_(node_, traffic_.outgoing),
          from_(node_, traffic_.incoming),
          messages_(executor) {
        if (node_.ranks.size() > 1)
            handshake_.emplace(context_.node_segment, node_.ranks, node_.me,
                               transfer::Handshake::Key{team.group->context, team.tag, team.phase});
    }
    Task<Status> run(Executor& executor);

  private:
    void make_offer();
    bool make_room();
    bool goes_in_place(std::size_t place, std::uint64_t& allocation) const;
    void pair_own();

    void send_to(Executor& executor, int member);
    void receive_from(Executor& executor, int member);
    void exchange_own(Executor& executor);

    const MemoryOffer& offer_of(int member) const { return handshake_->offer<MemoryOffer>(member); }
    bool own_in_node_segment() const {
        return offer_.source != Held::other && offer_.sink != Held::other;
    }

    Task<Status> in_node_segment(Executor& executor);
    Task<Status> store(Executor& executor);
    Status plan_stores_to(int member, MappedPeers& mappings);
    Status plan_own();
    Task<Status> await_blocks_of(Executor& executor, int member);
    Task<Status> unpack(Executor& executor);

    const Team team_;
    transfer::Context& context_;
    const Planner::OnNode& node_;
    plan::CollQuestion question_;
    const NeighborTraffic traffic_;
    NeighborBlocks to_, from_;
    MemoryOffer offer_;
    std::vector<Room> rooms_;
    std::vector<int> own_;  // blocks for this rank itself: where each one goes out, and comes in
    std::vector<int> stored_to_;  // members whose room this rank stores into
    transfer::RowMoves stores_;
    DeviceScratch scratch_;
    std::optional<transfer::Handshake> handshake_;  // none: the rank is alone on its node
    Scope messages_;
};

std::size_t at(int place) {
    return static_cast<std::size_t>(place);
}

// --- the offer -----------------------------------------------------------------------------------

void NodeExchange::make_offer() {
    to_.locate(context_, traffic_.outgoing);
    from_.locate(context_, traffic_.incoming);
    offer_.source = to_.memory;
    offer_.sink = from_.memory;
    const bool on_device = to_.memory == Held::device || from_.memory == Held::device;
    question_.memory = on_device ? plan::CollMemory::own_device : plan::CollMemory::other;
    if (on_device) {
        question_.bytes = std::max(to_.bytes, from_.bytes);
        question_.count = std::max(to_.count, from_.count);
        question_.node_segment.time_sliced = to_.time_sliced || from_.time_sliced;
        question_.node_segment.strided = from_.strided;
    }
    const bool direct =
        team_.planner->plan_own(team_, question_).algorithm == plan::Algorithm::direct;
    if (!direct || team_.failed_before()) {
        if (to_.bytes > 0) offer_.source = Held::other;
        if (from_.bytes > 0) offer_.sink = Held::other;
    }
    pair_own();
    if (offer_.sink == Held::other) return;
    if (!make_room()) offer_.sink = Held::other;
}

// Blocks for this rank itself: the first that goes out comes into the first that comes in, and so on.
void NodeExchange::pair_own() {
    own_.assign(from_.each.size(), -1);
    std::size_t out = 0;
    for (std::size_t in = 0; in < from_.each.size(); ++in) {
        if (from_.each[in].member != node_.me) continue;
        while (out < to_.each.size() && to_.each[out].member != node_.me)
            ++out;
        if (out < to_.each.size()) own_[in] = static_cast<int>(out++);
    }
}

// Peers store into blocks of one allocation, which is the first one that they can map.
bool NodeExchange::goes_in_place(std::size_t place, std::uint64_t& allocation) const {
    const p2p::Buffer& block = traffic_.incoming[place].block;
    if (from_.each[place].member == node_.me)
        return own_[place] >= 0 &&
               transfer::RowMoves::are_alike(traffic_.outgoing[at(own_[place])].block, block);
    const device::Location& location = from_.each[place].location;
    if (!block.contiguous() || location.ipc != device::IpcKind::legacy) return false;
    if (allocation == 0) allocation = location.buffer_id;
    return location.buffer_id == allocation;
}

// False: there is none for some block.
bool NodeExchange::make_room() {
    std::vector<int> peers;  // who will store
    for (const int member : from_.members)
        if (member != node_.me) peers.push_back(node_.ranks[at(member)]);
    const std::size_t blocks = traffic_.incoming.size();
    std::vector<bool> through_scratch(blocks);
    std::uint64_t allocation = 0;
    std::size_t in_place = blocks;
    Bytes scratch = 0;
    const void* like = nullptr;
    for (std::size_t place = 0; place < blocks; ++place) {
        const Bytes bytes = traffic_.incoming[place].block.bytes();
        if (from_.each[place].member < 0 || bytes == 0) continue;
        if (goes_in_place(place, allocation)) {
            if (in_place == blocks && from_.each[place].member != node_.me) in_place = place;
            continue;
        }
        through_scratch[place] = true;
        scratch += round_up(bytes, kBlockAlignment);
        like = traffic_.incoming[place].block.data();
    }
    if (in_place < blocks) {
        offer_.sink_handle = export_to(team_, peers, from_.each[in_place].location);
        if (offer_.sink_handle.kind == device::IpcKind::none) return false;
    }
    std::byte* next = nullptr;
    if (scratch > 0) {
        scratch_ = DeviceScratch(team_, like, scratch);
        next = scratch_.data();
        if (next == nullptr) return false;
        Result<device::Location> location = context_.device.classify(next, scratch);
        if (!location.ok() || location->gpu != from_.gpu) return false;
        offer_.source_handle = export_to(team_, peers, *location);
        if (!peers.empty() && offer_.source_handle.kind == device::IpcKind::none) return false;
    }
    for (std::size_t place = 0; place < blocks; ++place) {
        const p2p::Buffer& block = traffic_.incoming[place].block;
        if (through_scratch[place]) {
            from_.each[place].packed = next;
            next += round_up(block.bytes(), kBlockAlignment);
        }
        if (from_.each[place].member < 0 || from_.each[place].member == node_.me) continue;
        std::byte* const address = through_scratch[place] ? from_.each[place].packed : block.data();
        rooms_.push_back({reinterpret_cast<std::uint64_t>(address), block.bytes(),
                          from_.each[place].member, through_scratch[place] ? 1u : 0u});
    }
    if (rooms_.empty()) return true;
    const std::span<std::byte> cell = handshake_->cell();
    if (rooms_.size() * sizeof(Room) > cell.size()) return false;
    std::memcpy(cell.data(), rooms_.data(), rooms_.size() * sizeof(Room));
    offer_.rooms = static_cast<std::uint32_t>(rooms_.size());
    return true;
}

// --- by messages ---------------------------------------------------------------------------------

void NodeExchange::send_to(Executor& executor, int member) {
    for (std::size_t place = 0; place < to_.each.size(); ++place)
        if (to_.each[place].member == member)
            messages_.spawn(send(executor, team_, traffic_.outgoing[place].block,
                                 traffic_.outgoing[place].rank));
}

void NodeExchange::receive_from(Executor& executor, int member) {
    for (std::size_t place = 0; place < from_.each.size(); ++place)
        if (from_.each[place].member == member)
            messages_.spawn(receive(executor, team_, traffic_.incoming[place].block,
                                    traffic_.incoming[place].rank));
}

void NodeExchange::exchange_own(Executor& executor) {
    receive_from(executor, node_.me);
    send_to(executor, node_.me);
}

// --- launch 1 ------------------------------------------------------------------------------------

Status NodeExchange::plan_own() {
    for (std::size_t place = 0; place < own_.size(); ++place) {
        if (own_[place] < 0) continue;
        const p2p::Buffer& source = traffic_.outgoing[at(own_[place])].block;
        const p2p::Buffer& sink = traffic_.incoming[place].block;
        if (source.bytes() == 0) continue;
        if (source.bytes() > sink.bytes())
            return too_long(source.bytes(), team_.rank(), sink.bytes());
        std::byte* const packed = from_.each[place].packed;
        stores_.add(source,
                    packed != nullptr ? transfer::bytes_buffer(packed, source.bytes()) : sink);
        from_.each[place].stored = packed != nullptr;
    }
    return success();
}

Status NodeExchange::plan_stores_to(int member, MappedPeers& mappings) {
    const MemoryOffer& offer = offer_of(member);
    const std::span<const std::byte> cell = handshake_->cell_of(member);
    std::uint32_t next = 0;
    Room room;
    // The next room for a block of this rank; false: there is none.
    const auto find_room = [&] {
        while (next < offer.rooms) {
            std::memcpy(&room, cell.data() + next++ * sizeof room, sizeof room);
            if (room.from == node_.me) return true;
        }
        return false;
    };
    for (std::size_t place = 0; place < to_.each.size(); ++place) {
        if (to_.each[place].member != member) continue;
        const p2p::Buffer& block = traffic_.outgoing[place].block;
        if (!find_room()) room = {};
        if (block.bytes() == 0) continue;
        if (block.bytes() > room.bytes)
            return too_long(block.bytes(), node_.members[at(member)], room.bytes);
        Result<std::byte*> mapped = mappings.at(
            room.in_scratch != 0 ? offer.source_handle : offer.sink_handle, to_.gpu, room.at);
        GANTRY_TRY(mapped.status());
        stores_.add(block, transfer::bytes_buffer(*mapped, block.bytes()));
    }
    return success();
}

Task<Status> NodeExchange::store(Executor& executor) {
    MappedPeers mappings(context_.device);
    Status planned = own_in_node_segment() ? plan_own() : success();
    for (const int member : stored_to_)
        if (planned.ok()) planned = plan_stores_to(member, mappings);
    GANTRY_CO_TRY(planned);
    Status stored = co_await stores_.run(executor, context_, to_.gpu);
    co_return stored;
}

// --- launch 2 ------------------------------------------------------------------------------------

// Ends when that neighbor has stored all its blocks for this rank, or they are on their way by messages.
Task<Status> NodeExchange::await_blocks_of(Executor& executor, int member) {
    Status posted = co_await handshake_->posted(executor, member);
    GANTRY_CO_TRY(posted);
    const Held kind = offer_of(member).source;
    if (kind == Held::other) receive_from(executor, member);
    if (kind != Held::device) co_return success();
    Status stored = co_await handshake_->raised(executor, member, kStored);
    if (stored.error_class() == MPI_ERR_UNSUPPORTED_OPERATION) {
        receive_from(executor, member);
        co_return success();
    }
    GANTRY_CO_TRY(stored);
    for (NeighborBlocks::End& end : from_.each)
        if (end.member == member) end.stored = end.packed != nullptr;
    co_return success();
}

Task<Status> NodeExchange::unpack(Executor& executor) {
    transfer::RowMoves moves;
    std::vector<p2p::Buffer> packed, blocks;
    for (std::size_t place = 0; place < from_.each.size(); ++place) {
        if (!from_.each[place].stored) continue;
        blocks.push_back(traffic_.incoming[place].block);
        packed.push_back(transfer::bytes_buffer(from_.each[place].packed, blocks.back().bytes()));
        moves.add(packed.back(), blocks.back());
    }
    Status unpacked = co_await moves.run(executor, context_, from_.gpu);
    if (unpacked.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        unpacked = co_await copy_blocks(executor, team_, std::move(packed), std::move(blocks));
    co_return unpacked;
}

// --- all of it -----------------------------------------------------------------------------------

Task<Status> NodeExchange::in_node_segment(Executor& executor) {
    if (handshake_) {
        Status opened = co_await handshake_->open(executor);
        GANTRY_CO_TRY(opened);
    }
    make_offer();
    if (handshake_) handshake_->post(offer_);
    if (!own_in_node_segment()) exchange_own(executor);
    FirstFailure failed;
    for (const int member : from_.members)
        if (member != node_.me && offer_.sink == Held::other) receive_from(executor, member);
    for (const int member : to_.members) {
        if (member == node_.me) continue;
        bool stores = offer_.source != Held::other;
        if (stores) {
            Status posted = co_await handshake_->posted(executor, member);
            stores = posted.ok() && offer_of(member).sink != Held::other;
            if (!posted.ok()) {
                failed.note(std::move(posted));
                continue;
            }
        }
        if (stores)
            stored_to_.push_back(member);
        else
            send_to(executor, member);
    }
    Status stored = failed.status();
    if (stored.ok()) stored = co_await store(executor);
    if (handshake_ && stored.ok()) handshake_->raise(kStored);
    if (handshake_ && !stored.ok()) handshake_->fail(stored);
    if (stored.error_class() == MPI_ERR_UNSUPPORTED_OPERATION) {
        for (const int member : stored_to_)
            send_to(executor, member);
        if (own_in_node_segment()) exchange_own(executor);
        for (NeighborBlocks::End& end : from_.each)
            end.stored = false;
    } else {
        failed.note(std::move(stored));
    }
    for (const int member : from_.members) {
        if (member == node_.me || offer_.sink == Held::other) continue;
        Status come = co_await await_blocks_of(executor, member);
        failed.note(std::move(come));
    }
    if (failed.status().ok()) {
        Status unpacked = co_await unpack(executor);
        failed.note(std::move(unpacked));
    }
    co_return failed.status();
}

Task<Status> NodeExchange::run(Executor& executor) {
    receive_from(executor, -1);
    send_to(executor, -1);
    FirstFailure failed;
    Status met = co_await in_node_segment(executor);
    failed.note(std::move(met));
    Status sent = co_await messages_.join(executor);
    failed.note(std::move(sent));
    co_return failed.status();
}

}  // namespace

Task<Status> neighbors_directly(Executor& executor, Team team, NeighborTraffic traffic,
                                plan::CallQuestion question) {
    NodeExchange exchange(executor, team, std::move(traffic), question);
    Status done = co_await exchange.run(executor);
    co_return done;
}

}  // namespace gantry::coll
