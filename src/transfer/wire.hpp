// SPDX-License-Identifier: BSD-3-Clause
//
// What the transfer layer's parts of messages look like on the wire: plans, names of device memory,
// pieces in slots and the credits for them. docs/wire.md draws the messages. Both ends run the same
// build of Gantry on the same kind of machine (checked at wire-up), so headers are plain structs,
// copied with memcpy. Append only, and bump kWireVersion (transport/wire_version.hpp).
#pragma once

#include "device/device.hpp"
#include "plan/plan.hpp"
#include "transport/transport.hpp"

#include <cstring>
#include <type_traits>

namespace gantry::transfer::wire {

// Kinds of this layer's own messages; those of p2p/wire.hpp have the other numbers.
inline constexpr transport::MessageKind kForget = 9;
inline constexpr transport::MessageKind kAnchor = 20;  // a Handle

// plan::Plan without its clause: offer in the RTS, verdict in the CTS.
struct Plan {
    plan::Protocol protocol;
    plan::Executor executor;
    plan::CopyEngine source_engine, sink_engine;
    plan::Stage source_stage, sink_stage;
    plan::Completion completion;
    std::uint8_t rails;
    std::int32_t depth, ahead;
    std::uint64_t chunk;
    bool operator==(const Plan&) const = default;
};

// Kind none: the memory cannot be mapped. Origin 0: not by this handle, which says only what kind of
// memory there is (ExportTable::export_lazily).
using Handle = device::IpcHandle;

// Pieces of a message whose arrival is notified by flags (transfer/notify_flags.hpp). The first piece is
// at `unit` of its sender's device slots, and its flag is number `flag` of the sender's. A piece lies in
// its slot when its flag shows `number`. Number 0: chunk messages tell. `cuts_through`: it is one piece
// whatever the offer says, and parts of the piece may be told before the whole.
struct SlotFlag {
    std::uint32_t number = 0;
    std::uint16_t unit = 0;
    std::uint8_t flag = 0;
    std::uint8_t cuts_through = 0;
    bool operator==(const SlotFlag&) const = default;
};

// A piece of a message in a slot.
struct Chunk {
    std::uint64_t send_id;
    std::uint64_t offset;  // of the piece in the message
    std::uint64_t bytes;
    std::uint64_t slot_offset;  // of the slot in its pool
    std::uint32_t unit, units;  // the slot, as its pool counts
    std::uint8_t pool;          // transport::Pool, or kInPlace
};
// The sender executed: `bytes` of the message are at their final place; 0: it could not, another
// verdict please (`unit` says whether it makes sense to try again some time).
inline constexpr std::uint8_t kInPlace = 0xff;
// Never on the wire: the receiver tells itself that it has claimed the message.
inline constexpr std::uint8_t kClaimed = 0xfe;
inline constexpr std::uint32_t kRefused = 0, kClosedMeanwhile = 1, kKeptAway = 2;

// Shared slots return to the sender's pool; put slots stay the receiver's and are granted again to
// the message.
struct Credit {
    std::uint64_t send_id;
    std::uint32_t unit;
    std::uint32_t units;  // 0: a grant of the receiver's slot `unit` to message `send_id`
    std::uint8_t pool;
};

inline Credit credit_for(const Chunk& chunk) {
    return {chunk.send_id, chunk.unit, chunk.units, chunk.pool};
}

// The program freed an allocation that the peer may have mapped.
struct Forget {
    std::uint64_t buffer_id;
    std::uint8_t gpu[16];
};

template <class Header>
transport::ConstSpan bytes_of(const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) <= transport::kMaxHeader);
    return std::as_bytes(std::span(&header, 1));
}
template <class Header>
Header read(transport::ConstSpan bytes) {
    Header header{};
    GANTRY_ASSERT(bytes.size() == sizeof(Header));
    std::memcpy(&header, bytes.data(), sizeof(Header));
    return header;
}

inline Plan encode(const plan::Plan& plan) {
    return {plan.protocol,      plan.executor,
            plan.source_engine, plan.sink_engine,
            plan.source_stage,  plan.sink_stage,
            plan.completion,    static_cast<std::uint8_t>(plan.rails),
            plan.depth,         plan.ahead,
            plan.chunk};
}
inline plan::Plan decode(const Plan& plan) {
    return {.protocol = plan.protocol,
            .executor = plan.executor,
            .source_engine = plan.source_engine,
            .sink_engine = plan.sink_engine,
            .source_stage = plan.source_stage,
            .sink_stage = plan.sink_stage,
            .completion = plan.completion,
            .chunk = plan.chunk,
            .depth = plan.depth,
            .ahead = plan.ahead,
            .rails = plan.rails};
}

}  // namespace gantry::transfer::wire
