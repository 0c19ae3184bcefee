// SPDX-License-Identifier: BSD-3-Clause
#include "transport/fake/fabric.hpp"

#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace gantry::transport::fake {
namespace {

// A library that must copy into its own registered buffers does so piece by piece, while the wire
// is busy with the piece before.
constexpr Bytes kBouncePiece = 256 * kKiB;

Status gone(int rank) {
    return failure(MPI_ERR_PROC_ABORTED, "rank {} died", rank);
}

}  // namespace

Fabric::Fabric(model::Timeline& timeline, FabricOptions options, std::vector<int> nodes)
    : timeline_(timeline),
      options_(std::move(options)),
      nodes_(std::move(nodes)),
      rails_(nodes_.size() * static_cast<std::size_t>(options_.link.rails)),
      control_rails_(rails_.size()),
      bounces_(nodes_.size()),
      caps_(nodes_.size(), 0),
      outages_(rails_.size()),
      died_at_(nodes_.size(), -1) {
    for (int rank = 0; rank < static_cast<int>(nodes_.size()); ++rank) {
        ends_.push_back(std::make_unique<FakeTransport>(*this, rank));
        ranks_of_node_[nodes_[static_cast<std::size_t>(rank)]].push_back(rank);
    }
}

Fabric::~Fabric() = default;

// Shared memory also carries what a rank sends to itself.
bool Fabric::reaches(int from, int to) const {
    const bool same_node =
        nodes_[static_cast<std::size_t>(from)] == nodes_[static_cast<std::size_t>(to)];
    return same_node == (options_.medium == Medium::shared_memory);
}

void Fabric::kill(int rank, Nanoseconds notice) {
    died_at_[static_cast<std::size_t>(rank)] = timeline_.now();
    for (int other = 0; other < static_cast<int>(nodes_.size()); ++other) {
        if (other == rank || !reaches(other, rank)) continue;
        timeline_.at(timeline_.now() + notice, [this, other, rank] {
            if (!dead(other)) end(other).lost({rank, gone(rank)});
        });
    }
}

void Fabric::fail_rail(int rank, int rail, Nanoseconds notice) {
    outages_[static_cast<std::size_t>(rank * options_.link.rails + rail)] = {
        timeline_.now(), timeline_.now() + notice};
    timeline_.at(timeline_.now() + notice, [this, rank] {
        for (int other = 0; other < static_cast<int>(nodes_.size()); ++other) {
            if (other == rank || !reaches(other, rank) || rails_up(rank, other) != 0) continue;
            const auto lost = [](int peer) {
                return failure(MPI_ERR_PROC_ABORTED, "all rails to rank {} failed", peer);
            };
            if (!dead(other)) end(other).lost({rank, lost(rank)});
            if (!dead(rank)) end(rank).lost({other, lost(other)});
        }
    });
}

void Fabric::restore_rail(int rank, int rail) {
    outages_[static_cast<std::size_t>(rank * options_.link.rails + rail)] = {};
}

std::uint32_t Fabric::rails_up(int from, int to) const {
    std::uint32_t up = 0;
    for (int rail = 0; rail < options_.link.rails; ++rail) {
        const bool down = std::ranges::any_of(std::array{from, to}, [&](int end) {
            const Outage& out = outage(end, rail);
            return out.from != kNever && out.noticed <= timeline_.now();
        });
        if (!down) up |= 1u << rail;
    }
    return up;
}

// Lost is what is on its way, or leaves, while a port of either end is down.
Nanoseconds Fabric::lost_until(int from, int to, int rail, Nanoseconds moment) const {
    Nanoseconds known = kNever;
    for (const int end : {from, to}) {
        const Outage& out = outage(end, rail);
        if (out.from != kNever && out.from <= moment) known = std::max(known, out.noticed);
    }
    return known;
}

int Fabric::message_rail(int from, int to) const {
    const std::uint32_t up = rails_up(from, to);
    return up == 0 ? 0 : std::countr_zero(up);
}

bool Fabric::lost_with(int rank, Nanoseconds moment) const {
    const Nanoseconds died = died_at_[static_cast<std::size_t>(rank)];
    return died >= 0 && died < moment;
}

// A card may read or write device memory more slowly than it sends.
model::Link Fabric::link_between(MemoryPlace read, MemoryPlace written) const {
    model::Link link = options_.link;
    double rate = link.rate.peak();
    if (link.device_read > 0 && read == MemoryPlace::device)
        rate = std::min(rate, link.device_read);
    if (link.device_write > 0 && written == MemoryPlace::device)
        rate = std::min(rate, link.device_write);
    if (rate < link.rate.peak()) link.rate = model::Rate(rate);
    return link;
}

Fabric::Flight Fabric::fly(int from, int to, int rail_index, model::Transfer transfer, Bytes bytes,
                           const model::Link& described) {
    model::Link link = described;
    if (!link.rail_rates.empty()) {
        const double own = link.rail_rates[static_cast<std::size_t>(rail_index)];
        if (own < link.rate.peak() || link.rate == options_.link.rate) link.rate = model::Rate(own);
    }
    Nanoseconds ready = timeline_.now();
    const bool control = transfer == model::Transfer::message && bytes <= link.control_max;
    const Queue queue = control ? Queue::control : Queue::bulk;
    Rail& out = rail(from, rail_index, queue);
    Rail& in = rail(to, rail_index, queue);
    const bool bounced = !options_.bounce.points().empty() && bytes > 0 && !control;
    const Bytes piece = std::min(bytes, kBouncePiece);
    Rail& out_copy = bounces_[static_cast<std::size_t>(from)];
    Rail& in_copy = bounces_[static_cast<std::size_t>(to)];
    if (bounced) {  // the wire starts when the first piece has been copied and ends after the last
                    // one
        const Nanoseconds start = std::max(out_copy.sends_until, ready);
        ready = start + options_.bounce.time(piece);
        out_copy.sends_until = start + options_.bounce.time(bytes);
    }
    model::Carried carried =
        model::carry(link, transfer, bytes, ready, out.sends_until, in.receives_until);
    if (bounced) {
        const Nanoseconds late = out_copy.sends_until + link.rate.time(piece) - carried.left;
        carried.left += std::max<Nanoseconds>(late, 0);
        carried.arrived += std::max<Nanoseconds>(late, 0);
    }
    if (link.shared_cap > 0 && !control) {  // both directions of all rails of a rank together
        const auto held = static_cast<Nanoseconds>(static_cast<double>(bytes + link.header) * 1e9 /
                                                   link.shared_cap);
        Nanoseconds &sender = caps_[static_cast<std::size_t>(from)],
                    &receiver = caps_[static_cast<std::size_t>(to)];
        sender = std::max(sender, ready) + held;
        carried.left = std::max(carried.left, sender);
        carried.arrived = std::max(carried.arrived, carried.left + link.latency);
        receiver = std::max(receiver, ready + link.latency) + held;
        carried.arrived = std::max(carried.arrived, receiver);
    }
    out.sends_until = carried.left;
    in.receives_until = carried.arrived;
    Nanoseconds arrives = carried.arrived;
    if (bounced) {
        const Nanoseconds first = arrives - link.rate.time(bytes - piece);
        const Nanoseconds all =
            std::max(in_copy.receives_until, first) + options_.bounce.time(bytes);
        arrives = in_copy.receives_until = std::max(all, arrives + options_.bounce.time(piece));
    }
    return {carried.left,
            arrives + static_cast<Nanoseconds>(
                          timeline_.random(static_cast<std::uint64_t>(options_.jitter))),
            rail_index};
}

void Fabric::send(int from, int to, Packet packet) {
    Count& count = counts_[packet.kind];
    ++count.messages;
    count.header_bytes += packet.header.size();
    count.payload_bytes += packet.payload.size();
    note({timeline_.now(), from, to, packet.kind, packet.header.size(), packet.payload.size()});
    Flight flight = fly(from, to, message_rail(from, to), model::Transfer::message,
                        packet.header.size() + packet.payload.size(), options_.link);
    if (options_.order == Order::kept) {
        Nanoseconds& last = last_arrival_[{from, to}];
        last = flight.arrives = std::max(last, flight.arrives);
    }
    const bool twice =
        options_.duplicate && options_.duplicate(packet.kind) && timeline_.random(4) == 0;
    const auto shared = std::make_shared<const Packet>(std::move(packet));
    deliver(from, to, flight, shared);
    if (!twice) return;
    flight.arrives += options_.link.latency + options_.jitter;
    deliver(from, to, flight, shared);
}

// A message whose rail fails before it has arrived goes over another one as soon as that is known:
// transports keep what has not been acknowledged.
void Fabric::deliver(int from, int to, Flight flight, std::shared_ptr<const Packet> packet) {
    timeline_.at(flight.arrives, [this, from, to, flight, packet] {
        if (lost_with(from, flight.left) || dead(to)) return;
        const Nanoseconds known = lost_until(from, to, flight.rail, timeline_.now());
        if (known != kNever) {
            const Bytes bytes = packet->header.size() + packet->payload.size();
            timeline_.at(std::max(known, timeline_.now()), [this, from, to, packet, bytes] {
                if (dead(from)) return;
                if (rails_up(from, to) == 0) return;  // the peer is told of as lost
                deliver(from, to,
                        fly(from, to, message_rail(from, to), model::Transfer::message, bytes,
                            options_.link),
                        packet);
            });
            return;
        }
        timeline_.note(static_cast<std::uint64_t>(to) << 8 | packet->kind, packet->payload.size());
        end(to).came(*packet);
    });
}

void Fabric::put(int from, int to, int rail_index, const std::byte* source, Bytes bytes,
                 const RemoteKey& key, Bytes offset, Completion& done) {
    ++puts_.messages;
    puts_.payload_bytes += bytes;
    note({timeline_.now(), from, to, kPut, 0, bytes});
    const bool from_device = options_.behind && options_.behind(from, source, bytes) != nullptr;
    const Flight flight =
        fly(from, to, rail_index, model::Transfer::put, bytes,
            link_between(from_device ? MemoryPlace::device : MemoryPlace::host, place_of(to, key)));
    timeline_.at(flight.arrives, [this, from, to, source, bytes, key, offset, flight, &done] {
        if (dead(from)) return;  // nobody is left to hear of it
        timeline_.note(static_cast<std::uint64_t>(to) << 8 | 0xff, bytes);
        const Nanoseconds known = lost_until(from, to, flight.rail, timeline_.now());
        Status status = dead(to)          ? gone(to)
                        : known != kNever ? failure(MPI_ERR_PROC_ABORTED,
                                                    "rail {} to rank {} failed", flight.rail, to)
                                          : write(from, to, source, bytes, key, offset);
        const Nanoseconds told = std::max(flight.arrives + options_.link.latency, known);
        timeline_.at(told, [this, from, &done, status] {
            if (!dead(from)) end(from).ended({&done, status});
        });
    });
}

// The bytes are read when they leave: the lender may reuse its memory from then on.
void Fabric::get_exposed(int to, int from, std::uint64_t number, std::byte* sink, Bytes bytes,
                         Completion& done) {
    auto& fetches = end(to).fetches_;
    std::erase_if(fetches, [](const auto& fetch) { return fetch->done == nullptr; });
    const auto fetch = fetches.emplace_back(
        std::make_shared<FakeTransport::Fetch>(FakeTransport::Fetch{from, &done}));
    note({timeline_.now(), to, from, kFetch, sizeof number, 0});
    timeline_.at(timeline_.now() + options_.link.latency, [=, this] {
        const auto exposure = exposures_.find({from, number});
        if (dead(from) || dead(to) || exposure == exposures_.end()) return;
        GANTRY_ASSERT(bytes == exposure->second.bytes);
        ++puts_.messages;
        puts_.payload_bytes += bytes;
        note({timeline_.now(), from, to, kPut, 0, bytes});
        const Flight flight = fly(from, to, 0, model::Transfer::put, bytes, options_.link);
        const auto data = std::make_shared<std::vector<std::byte>>();
        timeline_.at(flight.left, [=, this] {
            const auto left = exposures_.find({from, number});
            if (dead(from) || left == exposures_.end()) return;
            data->assign(left->second.source, left->second.source + bytes);
            end(from).ended({left->second.done, success()});
        });
        timeline_.at(flight.arrives, [=, this] {
            if (lost_with(from, flight.left) || dead(to) || fetch->done == nullptr) return;
            timeline_.note(static_cast<std::uint64_t>(to) << 8 | 0xfd, bytes);
            std::copy(data->begin(), data->end(), sink);
            end(to).ended({std::exchange(fetch->done, nullptr), success()});
        });
    });
}

// The reader's processor copies, and the bytes are read at the end: an owner that reuses its memory before
// it hears of the end corrupts them, always.
std::uint64_t& Fabric::host_rates(int rank) {
    return *end(rank).shared_segment(rank)->host_rates();
}

void Fabric::read_memory(int to, int from, const std::byte* source, std::byte* sink, Bytes bytes,
                         Completion& done) {
    const Nanoseconds time = options_.link.read_latency + options_.link.read_rate.time(bytes);
    ++puts_.messages;
    puts_.payload_bytes += bytes;
    note({timeline_.now(), from, to, kRead, 0, bytes});
    if (options_.spend) options_.spend(to, time);
    timeline_.at(timeline_.now() + time, [=, this, &done] {
        if (dead(to)) return;
        timeline_.note(static_cast<std::uint64_t>(to) << 8 | 0xfc, bytes);
        Status status = success();
        if (dead(from))
            status = gone(from);
        else if (options_.refuse_read && options_.refuse_read(to))
            status = failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake read of {} bytes of rank {}",
                             bytes, from);
        else if (bytes > 0)
            std::memcpy(sink, source, bytes);
        end(to).ended({&done, std::move(status)});
    });
}

// Where a put of a peer goes, or what a get reads.
Result<std::byte*> Fabric::place(int to, Bytes bytes, const RemoteKey& key, Bytes offset,
                                 const char* what) {
    std::uint64_t id = 0;
    std::memcpy(&id, key.bytes.data(), sizeof id);
    const auto region = regions_.find({to, id});
    if (region == regions_.end() || end(to).cache_.in_use(id) == nullptr)
        return failure(MPI_ERR_RMA_ATTACH,
                       "{} of {} bytes to rank {}: its region {} is not registered", what, bytes,
                       to, id);
    if (offset + bytes > region->second.size)
        return failure(MPI_ERR_RMA_RANGE,
                       "{} of {} bytes at {} to rank {} leaves its region of {} bytes", what, bytes,
                       offset, to, region->second.size);
    return region->second.bytes + offset;
}

Status Fabric::write(int from, int to, const std::byte* source, Bytes bytes, const RemoteKey& key,
                     Bytes offset) {
    Result<std::byte*> sink = place(to, bytes, key, offset, "put");
    GANTRY_TRY(sink.status());
    const std::byte* stored = options_.behind ? options_.behind(from, source, bytes) : nullptr;
    const std::byte* read = stored != nullptr ? stored : source;
    store(to, place_of(to, key), *sink, read, bytes);
    return success();
}

void Fabric::store(int rank, MemoryPlace place, std::byte* sink, const std::byte* read,
                   Bytes bytes) {
    if (place == MemoryPlace::device)
        unsettled_[rank].push_back({sink, {read, read + bytes}});
    else if (bytes > 0)
        std::memcpy(sink, read, bytes);
}

// The card of the peer reads when the request arrives.
void Fabric::get(int to, int from, int rail_index, std::byte* sink, Bytes bytes, const Region& into,
                 const RemoteKey& key, Bytes offset, Completion& done) {
    ++gets_.messages;
    gets_.payload_bytes += bytes;
    note({timeline_.now(), to, from, kGet, 0, bytes});
    const MemoryPlace sink_place =
        into.id == 0 ? MemoryPlace::host : place_of(to, end(to).key(into));
    const Flight asked = fly(to, from, rail_index, model::Transfer::message, 0, options_.link);
    const auto ends = [this, to, &done](Nanoseconds when, Status status) {
        timeline_.at(std::max(when, timeline_.now()), [this, to, &done, status] {
            if (!dead(to)) end(to).ended({&done, status});
        });
    };
    const auto is_lost = [this, to, from, rail_index, ends] {
        const Nanoseconds known = lost_until(from, to, rail_index, timeline_.now());
        if (known != kNever)
            ends(known,
                 failure(MPI_ERR_PROC_ABORTED, "rail {} to rank {} failed", rail_index, from));
        return known != kNever;
    };
    timeline_.at(asked.arrives, [=, this] {
        if (is_lost()) return;
        if (dead(from)) return ends(timeline_.now() + options_.link.latency, gone(from));
        Result<std::byte*> source = place(from, bytes, key, offset, "get");
        if (!source.ok()) return ends(timeline_.now() + options_.link.latency, source.status());
        const auto data = std::make_shared<std::vector<std::byte>>(*source, *source + bytes);
        const Flight back = fly(from, to, rail_index, model::Transfer::put, bytes,
                                link_between(place_of(from, key), sink_place));
        timeline_.at(back.arrives, [=, this] {
            timeline_.note(static_cast<std::uint64_t>(to) << 8 | 0xfb, bytes);
            if (is_lost()) return;
            if (lost_with(from, back.left)) return ends(timeline_.now(), gone(from));
            std::byte* stored = options_.behind ? options_.behind(to, sink, bytes) : nullptr;
            store(to, sink_place, stored != nullptr ? stored : sink, data->data(), bytes);
            ends(timeline_.now(), success());
        });
    });
}

MemoryPlace Fabric::place_of(int to, const RemoteKey& key) const {
    std::uint64_t id = 0;
    std::memcpy(&id, key.bytes.data(), sizeof id);
    const auto region = regions_.find({to, id});
    return region == regions_.end() ? MemoryPlace::host : region->second.place;
}

void Fabric::settle(int rank) {
    for (const Unsettled& write : std::exchange(unsettled_[rank], {}))
        std::copy(write.bytes.begin(), write.bytes.end(), write.destination);
}

Bytes Fabric::bytes_on_the_wire() const {
    Bytes all = puts_.payload_bytes + gets_.payload_bytes;
    for (const Count& count : counts_)
        all += count.header_bytes + count.payload_bytes;
    return all;
}

std::uint64_t Fabric::messages() const {
    std::uint64_t all = puts_.messages + gets_.messages;
    for (const Count& count : counts_)
        all += count.messages;
    return all;
}

void Fabric::reset_counts() {
    counts_.fill({});
    puts_ = gets_ = {};
    trace_.clear();
}

}  // namespace gantry::transport::fake
