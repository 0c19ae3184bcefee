// SPDX-License-Identifier: BSD-3-Clause
//
// What p2p messages look like on the wire; docs/wire.md draws them. Both ends run the same build of
// Gantry on the same kind of machine (checked at wire-up), so headers are plain structs, copied
// with memcpy. Append only, and bump kWireVersion (transport/wire_version.hpp).
#pragma once

#include "device/device.hpp"
#include "plan/plan.hpp"
#include "transport/transport.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gantry::p2p::wire {

enum Kind : transport::MessageKind {
    kEager = 1,
    kEagerSynchronous = 2,
    kRequestToSend = 3,
    kClearToSend = 4,
    kChunk = 5,
    kCredit = 6,
    kFinish = 7,
    kBudget = 8,
    kForget = 9,
    kPayload = 10,
    kFinishMany = 11,
    kRequestAgain = 12,
    kReady = 13,
    kReadyAgain = 14,
    kPutRequest = 15,
    kRequestElsewhere = 16,
};

// Identifies a message to the matcher. `sequence` numbers the envelopes of one sender to one
// receiver, over all communicators.
struct Envelope {
    std::uint32_t context;
    std::int32_t source;  // rank in the communicator
    std::int32_t tag;
    std::uint32_t sequence;
    std::uint64_t bytes;
};

struct EagerSynchronous {
    Envelope envelope;
    std::uint64_t send_id;
};

// plan::Plan without its clause: offer in the RTS, verdict in the CTS.
struct Plan {
    std::uint8_t protocol, executor, source_engine, sink_engine, source_stage, sink_stage,
        completion, rails;
    std::int32_t depth, ahead;
    std::uint64_t chunk;
};

struct Handle {
    std::uint8_t kind;
    std::uint8_t bytes[64];
    std::uint8_t gpu[16];
    std::uint64_t buffer_id, base, size, origin, pool;
};

// A message that is on its way to slots, the first at this unit of its sender's device slots: each piece
// lies there when its unit's flag, of which the first is number `flag` of the sender's, shows that
// number (slot_flags.hpp). Number 0: chunks tell. `flows`: it is one piece whatever the offer says, and
// parts of it may be told before.
struct SlotFlag {
    std::uint32_t number = 0;
    std::uint16_t unit = 0;
    std::uint8_t flag = 0;
    std::uint8_t flows = 0;
};

struct RequestAgain;

struct RequestToSend {
    Envelope envelope;
    std::uint64_t send_id;
    Plan offer;
    std::uint64_t address;  // of the first data byte at the sender (with `handle`)
    // Kind 0: the source cannot be mapped. Origin 0: not by this, which comes when it is asked for
    // (ClearToSend::direct_next), and has no base. Its GPU is named all the same.
    Handle handle;
    std::uint8_t source_kind;  // device::MemoryKind
    std::uint8_t contiguous : 1;
    std::uint8_t synchronous : 1;
    std::uint8_t uses_driver : 1;  // this process can map device memory
    std::uint8_t busy : 1;         // it has device work pending
    std::uint8_t claims : 1;       // the message has a claim word (p2p/claims.hpp)
    std::uint8_t flag_flows : 1;   // all of flag_*: SlotFlag
    std::uint16_t flag_unit;
    std::uint32_t flag_number;
    std::uint64_t gpu_used;     // when this process copied inside the source's GPU last (the node's
                                // clock); 0: not lately, see p2p/shared_gpu.hpp
    std::uint8_t source_reach;  // plan::Reach at the sender, of this source
    std::uint8_t flag_first;
    std::uint16_t nothing;
    std::uint32_t inbox;  // where this process takes file descriptors; 0: nowhere
    SlotFlag slot_flag() const { return {flag_number, flag_unit, flag_first, flag_flows}; }
    RequestAgain own() const;  // what is each message's own
    void set_own(const RequestAgain& own);
    void set(const SlotFlag& flag) {
        flag_number = flag.number;
        flag_unit = flag.unit;
        flag_first = flag.flag;
        flag_flows = flag.flows & 1;
    }
    // What flows is one piece whatever the offer says.
    void take_at_its_word() {
        if (flag_flows != 0) offer.chunk = std::max<std::uint64_t>(offer.chunk, envelope.bytes);
    }
};

// A request to send that says of everything else what the last one to that peer that said more did:
// one cache line instead of four.
struct RequestAgain {
    Envelope envelope;
    std::uint64_t send_id;
    std::uint64_t address;
    SlotFlag slot_flag{};
};
inline RequestAgain RequestToSend::own() const {
    return {envelope, send_id, address, slot_flag()};
}
inline void RequestToSend::set_own(const RequestAgain& own) {
    envelope = own.envelope;
    send_id = own.send_id;
    address = own.address;
    set(own.slot_flag);
}

// The same of another allocation, of whose handle there is no more than the last gave of its own
// (origin 0): one cache line, still.
struct RequestElsewhere {
    RequestAgain again;
    std::uint64_t buffer_id;
};
static_assert(sizeof(RequestElsewhere) <= 56, "else its record in a ring is two cache lines");

// A receive that waits for the peer's envelope `sequence`, if that has this context, source and tag
// (MPI_ANY_TAG: any), is no larger than `room`, and nothing else takes it: whoever sends it may
// copy to `address` at once. `buffer_id`: the allocation, as the last whole announcement named it.
struct ReadyAgain {
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
    std::uint32_t sequence;
    std::uint64_t room, address, buffer_id;
};
struct Ready {
    ReadyAgain receive;
    Handle handle;
};
// The request to send of a message whose bytes are on their way to the announced address. They lie
// there when the sender's flag of puts to this rank has that number; of number 0, a chunk in place
// says so.
struct PutRequest {
    Envelope envelope;
    std::uint64_t send_id;
    std::uint32_t flag_number;
};

struct ClearToSend {
    std::uint64_t send_id;
    Plan verdict;
    std::uint64_t accepted;     // bytes the receiver has room for
    std::uint64_t key_bytes;    // the payload begins with the key of the sink buffer (rdma, direct
                                // sink) or of the receiver's slot pool
    std::uint64_t sink_offset;  // of the sink buffer inside `key`, or its address with `handle`
    Handle handle;              // sink device memory, when the sender executes an ipc plan
    std::uint64_t direct_next;  // messages of this source allocation are better copied directly
                                // from now on; 0: nothing to say
    std::uint64_t wanted;       // source allocation whose file descriptor should be sent to `inbox`
    std::uint32_t inbox;        // of the receiver; 0: none is wanted
    std::uint8_t sink_open;     // the receiver believes that the sender has mapped `handle` already
};

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
inline constexpr std::uint32_t kRefused = 0, kClosedMeanwhile = 1;

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

enum class For : std::uint8_t { sender = 0, receiver = 1 };
struct Finish {
    std::uint64_t send_id;
    std::int32_t error_class;
    For target;
};

// Several messages of one sender at once, all read by the receiver: their ids (u64 each) follow as
// payload.
struct FinishMany {
    std::uint64_t count;
};
inline constexpr std::size_t kFinishesPerMessage = 64;
// All of a message whose request to send offered `eager`: its place among the messages was taken
// before the bytes had come out of a device.
struct Payload {
    std::uint64_t send_id;
};

struct Budget {
    std::uint64_t bytes;
};

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

// The bytes follow the request, whatever the receiver says.
inline bool is_eager(const Plan& offer) {
    return static_cast<plan::Protocol>(offer.protocol) == plan::Protocol::eager;
}

// An offer that copies nothing ahead: the receiver reads, and the sender only waits for its
// `finish`.
inline bool expects_get(const Plan& offer) {
    return static_cast<plan::Protocol>(offer.protocol) == plan::Protocol::ipc &&
           static_cast<plan::Executor>(offer.executor) == plan::Executor::receiver &&
           offer.ahead == 0;
}

// Of a node: all of the message is put into slots before the verdict.
inline bool all_ahead(const Plan& offer, Bytes bytes) {
    return static_cast<plan::Protocol>(offer.protocol) == plan::Protocol::pipeline &&
           offer.ahead > 0 && static_cast<Bytes>(offer.ahead) * offer.chunk >= bytes;
}

// The message that announces it lends the source (Transport::lend); its number is the send id. The
// receiver fetches it and says nothing, or declines by a verdict.
inline bool lends(const Plan& offer) {
    return static_cast<plan::Protocol>(offer.protocol) == plan::Protocol::rdma &&
           static_cast<plan::Executor>(offer.executor) == plan::Executor::receiver;
}

Plan encode(const plan::Plan& plan);
plan::Plan decode(const Plan& plan);
Handle encode(const device::IpcHandle& handle);
device::IpcHandle decode(const Handle& handle);

}  // namespace gantry::p2p::wire
