// SPDX-License-Identifier: BSD-3-Clause
//
//   cell:  [list of sinks, a BlockPlace a member] [list of sources] [blocks in host memory, packed]
//
// Each part only if it is needed. What does not fit makes the offer `other`: the exchange then goes by
// messages.
#include "coll/node/exchange_offer.hpp"

#include "coll/exchange.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/planner.hpp"
#include "layout/layout.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace gantry::coll {
namespace {

using transfer::Buffer;

bool all_contiguous(const std::vector<Buffer>& blocks) {
    return std::all_of(blocks.begin(), blocks.end(), [](const Buffer& block) {
        return block.bytes() == 0 || block.contiguous();
    });
}

Bytes total(const std::vector<Buffer>& blocks) {
    Bytes bytes = 0;
    for (const Buffer& block : blocks)
        bytes += block.bytes();
    return bytes;
}

std::uintptr_t address_of(const Buffer& block) {
    return reinterpret_cast<std::uintptr_t>(block.data());
}

// The memory in which all blocks lie, which are contiguous and not all empty. Nothing: they lie in
// memory of several kinds, or in several allocations of a device.
std::optional<device::Location> locate(device::Device& device, const std::vector<Buffer>& blocks) {
    std::optional<device::Location> all;
    const auto add = [&](std::uintptr_t at, Bytes bytes) {
        Result<device::Location> location =
            device.classify(reinterpret_cast<const void*>(at), bytes);
        if (!location.ok()) return false;
        if (all && (all->kind != location->kind || all->buffer_id != location->buffer_id))
            return false;
        all = *location;
        return true;
    };
    // Blocks that follow each other are one question.
    std::uintptr_t begin = 0, end = 0;
    for (const Buffer& block : blocks) {
        if (block.bytes() == 0) continue;
        const std::uintptr_t at = address_of(block);
        if (end != 0 && at >= begin && at + block.bytes() <= end) continue;
        if (at == end) {
            end += block.bytes();
            continue;
        }
        if (end != 0 && !add(begin, end - begin)) return std::nullopt;
        begin = at;
        end = at + block.bytes();
    }
    if (!add(begin, end - begin)) return std::nullopt;
    return all;
}

// False: they lie, or are, unequal. A rank's own block does not count where it is in place. `only`: the
// others are empty.
bool are_regular(const std::vector<Buffer>& blocks, int me, int only, BlockPlaces& places) {
    if (only >= 0) {
        const Buffer& one = blocks[static_cast<std::size_t>(only)];
        places = {address_of(one), 0, one.bytes(), 0};
        return true;
    }
    const Buffer* first = nullptr;
    int first_index = 0;
    bool known = false;
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
        const Buffer& block = blocks[static_cast<std::size_t>(i)];
        if (i == me && block.bytes() == 0) continue;
        if (first == nullptr) {
            first = &block;
            first_index = i;
            places.bytes = block.bytes();
            continue;
        }
        if (block.bytes() != places.bytes) return false;
        const auto apart = static_cast<std::int64_t>(address_of(block) - address_of(*first));
        if (!known) {
            if (apart % (i - first_index) != 0) return false;
            places.distance = apart / (i - first_index);
            known = true;
        }
        if (apart != places.distance * (i - first_index)) return false;
    }
    if (first == nullptr) return true;
    if (places.bytes == 0) {
        places.distance = 0;
        return true;
    }
    places.first = address_of(*first) - static_cast<std::uint64_t>(places.distance * first_index);
    return true;
}

// Puts the list into the cell; false: it has no room.
bool write_list(const std::vector<BlockPlace>& list, std::span<std::byte> cell, Bytes at) {
    const Bytes bytes = list.size() * sizeof(BlockPlace);
    if (at + bytes > cell.size()) return false;
    std::memcpy(cell.data() + at, list.data(), bytes);
    return true;
}

bool describe(const std::vector<Buffer>& blocks, int me, int only, std::span<std::byte> cell,
              Bytes& used, BlockPlaces& places) {
    if (are_regular(blocks, me, only, places)) return true;
    places.listed = 1;
    std::vector<BlockPlace> list;
    for (const Buffer& block : blocks)
        list.push_back({block.bytes() > 0 ? address_of(block) : 0, block.bytes()});
    if (!write_list(list, cell, used)) return false;
    used += list.size() * sizeof(BlockPlace);
    return true;
}

void pack(const Buffer& block, std::byte* to, CellCopies* copies) {
    if (block.bytes() == 0) return;
    if (copies == nullptr) {
        layout::pack(*block.layout, block.address, 0, block.bytes(), to);
        return;
    }
    copies->from.push_back(block);
    copies->to.push_back(transfer::bytes_buffer(to, block.bytes()));
}

// Blocks that fit are packed into the cell: equal ones behind each other, one block that goes to all
// once. `copies`: they are in device memory, where a copy more for this rank's own costs nothing.
bool put_into_cell(const std::vector<Buffer>& blocks, int me, int only, std::span<std::byte> cell,
                   Bytes used, BlockPlaces& places, CellCopies* copies) {
    if (cell.empty()) return false;
    const bool own =
        copies != nullptr && only < 0 && blocks[static_cast<std::size_t>(me)].bytes() > 0;
    const auto is_put = [=](int i) { return i == me ? own : only < 0 || i == only; };
    bool same = true, equal = true;
    const Buffer* first = nullptr;
    Bytes bytes = 0;
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
        const Buffer& block = blocks[static_cast<std::size_t>(i)];
        if (!is_put(i)) continue;
        if (first == nullptr) first = &block;
        equal = equal && block.bytes() == first->bytes();
        same = same && equal && block.address == first->address && block.layout == first->layout;
        bytes += block.bytes();
    }
    if (first == nullptr) return true;
    if (same) {
        places = {used, 0, first->bytes(), 0};
        if (used + first->bytes() > cell.size()) return false;
        pack(*first, cell.data() + used, copies);
        return true;
    }
    std::vector<BlockPlace> list;
    Bytes at = used + (equal ? 0 : blocks.size() * sizeof(BlockPlace));
    if (at + bytes + (equal ? first->bytes() : 0) > cell.size()) return false;
    places = {at, static_cast<std::int64_t>(first->bytes()), first->bytes(), equal ? 0u : 1u};
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
        const Buffer& block = blocks[static_cast<std::size_t>(i)];
        const Bytes size = i == me && !equal ? 0 : block.bytes();
        list.push_back({at, size});
        if (i != me || (own && equal)) pack(block, cell.data() + at, copies);
        at += i == me && equal ? first->bytes() : size;
    }
    return equal || write_list(list, cell, used);
}

BlockPlace place_of(const BlockPlaces& places, std::span<const std::byte> cell, Bytes list,
                    int member) {
    if (places.listed == 0)
        return {places.first + static_cast<std::uint64_t>(places.distance * member), places.bytes};
    BlockPlace place;
    std::memcpy(&place, cell.data() + list + static_cast<Bytes>(member) * sizeof place,
                sizeof place);
    return place;
}

}  // namespace

MemoryOffer make_offer(const Team& team, const Traffic& traffic, std::span<std::byte> cell,
                       const plan::CallQuestion& question, CellCopies& copies) {
    transfer::Context& context = *team.context;
    device::Device& device = context.device;
    const int me = team.rank();
    MemoryOffer offer;
    offer.reads = may_read(team);
    if (team.failed_before()) {
        // Messages tell the others.
        offer.source = Held::other;
        return offer;
    }
    Bytes used = 0;
    const bool devices = context.config.cuda && device.active();
    offer.bytes = total(traffic.outgoing);
    if (total(traffic.incoming) > 0) {
        offer.sink = Held::other;
        if (devices && all_contiguous(traffic.incoming)) {
            const std::optional<device::Location> location = locate(device, traffic.incoming);
            if (location && location->on_device())
                offer.sink_handle = export_to_all(team, *location);
            if (offer.sink_handle.kind != device::IpcKind::none &&
                describe(traffic.incoming, me, traffic.only_sender, cell, used, offer.sinks))
                offer.sink = Held::device;
        }
    }
    if (offer.bytes == 0) return offer;
    offer.source = Held::other;
    offer.has_own = traffic.outgoing[static_cast<std::size_t>(me)].bytes() > 0;
    device::Location location;
    if (devices) {
        if (!all_contiguous(traffic.outgoing)) return offer;
        const std::optional<device::Location> found = locate(device, traffic.outgoing);
        if (!found) return offer;
        location = *found;
    }
    if (location.kind == device::MemoryKind::host || location.kind == device::MemoryKind::pinned) {
        if (put_into_cell(traffic.outgoing, me, traffic.only_receiver, cell, used, offer.sources,
                          nullptr)) {
            offer.source = Held::in_cell;
            return offer;
        }
        offer.sources = {};
        if (location.kind == device::MemoryKind::host && all_contiguous(traffic.outgoing) &&
            describe(traffic.outgoing, me, traffic.only_receiver, cell, used, offer.sources))
            offer.source = Held::host;
        return offer;
    }
    if (!location.on_device()) return offer;
    context.arbiter.use(location.gpu);
    offer.time_sliced = context.arbiter.is_time_sliced(location.gpu);
    if (!offer.time_sliced && brings_in_cell(team, question) &&
        put_into_cell(traffic.outgoing, me, traffic.only_receiver, cell, used, offer.sources,
                      &copies)) {
        context.pin_node_segment();
        offer.source = Held::in_cell;
        offer.on_device = true;
        offer.own_in_cell = offer.has_own && offer.sources.listed == 0 &&
                            traffic.only_receiver < 0 && !copies.from.empty();
        return offer;
    }
    copies = {};
    if (offer.time_sliced) offer.source_handle = export_to_all(team, location);
    offer.source_handle.gpu = device.gpu_facts(location.gpu).uuid;
    if (describe(traffic.outgoing, me, traffic.only_receiver, cell, used, offer.sources))
        offer.source = Held::device;
    return offer;
}

BlockPlace sink_place(const MemoryOffer& offer, std::span<const std::byte> cell, int member) {
    return place_of(offer.sinks, cell, 0, member);
}

BlockPlace source_place(const MemoryOffer& offer, std::span<const std::byte> cell, int size,
                        int member) {
    const Bytes list = offer.sinks.listed != 0 ? static_cast<Bytes>(size) * sizeof(BlockPlace) : 0;
    return place_of(offer.sources, cell, list, member);
}

}  // namespace gantry::coll
