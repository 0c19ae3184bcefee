// SPDX-License-Identifier: BSD-3-Clause
//
// What p2p messages look like on the wire; docs/wire.md draws them. Both ends run the same build of
// Gantry on the same kind of machine (checked at wire-up), so headers are plain structs, copied
// with memcpy. Append only, and bump kWireVersion (transport/wire_version.hpp).
#pragma once

#include "layout/signature.hpp"
#include "transfer/wire.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gantry::p2p::wire {

using namespace transfer::wire;

enum Kind : transport::MessageKind {
    kEager = 1,
    kEagerSynchronous = 2,
    kRts = 3,
    kCts = 4,
    kChunk = 5,
    kCredit = 6,
    kFin = 7,
    kEagerCredit = 8,
    kPayload = 10,
    kFins = 11,
    kRtsFromTemplate = 12,
    kRtr = 13,
    kRtrSameBuffer = 14,
    kPutRequest = 15,
    kRtsOtherBuffer = 16,
    kCancel = 17,
    kCancelled = 18,
    kSigned = 19,
};

// Identifies a message to the matcher. `sequence` numbers the envelopes of one sender to one
// receiver, over all communicators.
struct Envelope {
    std::uint32_t context;
    std::int32_t source;  // rank in the communicator
    std::int32_t tag;
    std::uint32_t sequence;
    std::uint64_t bytes;
    bool operator==(const Envelope&) const = default;
};

struct EagerSynchronous {
    Envelope envelope;
    std::uint64_t send_id;
};

struct RtsFromTemplate;

struct Rts {
    Envelope envelope;
    std::uint64_t send_id;
    Plan offer;
    std::uint64_t address;  // of the first data byte at the sender (with `handle`)
    // Kind none: the source cannot be mapped. Origin 0: not by this, which comes when it is asked for
    // (Cts::direct_next), and has no base. Its GPU is named all the same, and of a strided source the
    // allocation.
    Handle handle;
    std::uint8_t source_kind;  // device::MemoryKind
    std::uint8_t contiguous : 1;
    std::uint8_t synchronous : 1;
    std::uint8_t uses_driver : 1;        // this process can map device memory
    std::uint8_t busy : 1;               // it has device work pending
    std::uint8_t claims : 1;             // the message has a claim word (transfer/claim_words.hpp)
    std::uint8_t flag_cuts_through : 1;  // all of flag_*: SlotFlag
    std::uint8_t measures_read : 1;  // of a `cma` offer: read, whatever is known of it, and timed
    std::uint16_t flag_unit;
    std::uint32_t flag_number;
    std::uint64_t gpu_used;     // when this process copied inside the source's GPU last (the node's
                                // clock); 0: not lately, see transfer/shared_gpu.hpp
    std::uint8_t source_reach;  // plan::Reach at the sender, of this source
    std::uint8_t flag_first;
    std::uint16_t nothing;
    std::uint32_t inbox;  // where this process takes file descriptors; 0: nowhere
    SlotFlag slot_flag() const { return {flag_number, flag_unit, flag_first, flag_cuts_through}; }
    bool operator==(const Rts&) const = default;
    RtsFromTemplate own() const;  // what is each message's own
    void set_own(const RtsFromTemplate& own);
    void set(const SlotFlag& flag) {
        flag_number = flag.number;
        flag_unit = flag.unit;
        flag_first = flag.flag;
        flag_cuts_through = flag.cuts_through & 1;
    }
    // What cuts through is one piece whatever the offer says.
    void take_at_its_word() {
        if (flag_cuts_through != 0)
            offer.chunk = std::max<std::uint64_t>(offer.chunk, envelope.bytes);
    }
};

// An RTS that repeats the template of the conversation (p2p/rts_templates.cpp) but for what is each
// message's own: one cache line instead of four.
struct RtsFromTemplate {
    Envelope envelope;
    std::uint64_t send_id;
    std::uint64_t address;
    SlotFlag slot_flag{};
};
inline RtsFromTemplate Rts::own() const {
    return {envelope, send_id, address, slot_flag()};
}
inline void Rts::set_own(const RtsFromTemplate& own) {
    envelope = own.envelope;
    send_id = own.send_id;
    address = own.address;
    set(own.slot_flag);
}

// The same from another allocation, whose handle says no more of its own than the template's (origin
// 0): one cache line, still.
struct RtsOtherBuffer {
    RtsFromTemplate again;
    std::uint64_t buffer_id;
};
static_assert(sizeof(RtsOtherBuffer) <= 56, "else its record in a ring is two cache lines");

// A receive that waits for the peer's envelope `sequence`, if that has this context, source and tag
// (MPI_ANY_TAG: any), is no larger than `room`, and nothing else takes it: whoever sends it may
// copy to `address` at once. `buffer_id`: the allocation, as the last whole RTR named it.
struct RtrSameBuffer {
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
    std::uint32_t sequence;
    std::uint64_t room, address, buffer_id;
};
struct Rtr {
    RtrSameBuffer receive;
    Handle handle;
};
// The RTS of a message whose bytes are on their way to the address of the RTR. They lie there when the
// sender's flag of puts to this rank has that number; with number 0 a chunk in place says so.
struct PutRequest {
    Envelope envelope;
    std::uint64_t send_id;
    std::uint32_t flag_number;
};

struct Cts {
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
    std::uint8_t cannot_read;   // the receiver may not read the sender's memory
};

// Ids of announced messages (p2p/announced.cpp) have this bit: they are numbered apart from those whose RTS
// is an envelope.
inline constexpr std::uint64_t kAnnounced = std::uint64_t{1} << 62;
inline bool is_announced(std::uint64_t send_id) {
    return (send_id & kAnnounced) != 0;
}

enum class For : std::uint8_t { sender = 0, receiver = 1 };
struct Fin {
    std::uint64_t send_id;
    std::int32_t error_class;
    For target;
};

// Whether a message about another one is for its receiver, and may come before the RTS.
template <class Header>
bool may_follow(const Header&) {
    return true;
}
inline bool may_follow(const Fin& fin) {
    return fin.target == For::receiver;
}

// Under GANTRY_CHECK=1: behind the header of an envelope (kinds 1 to 3, 12, 15, 16), which travels as a
// message of kind kSigned then.
struct Signed {
    layout::Signature signature;
    std::uint8_t kind;
};
template <class Header>
struct SignedEnvelope {
    static_assert(sizeof(Header) % alignof(Signed) == 0);
    Header envelope;
    Signed behind;
};
static_assert(sizeof(SignedEnvelope<Rts>) <= transport::kMaxHeader);

// Several messages of one sender at once, all read by the receiver: their ids (u64 each) follow as
// payload.
struct Fins {
    std::uint64_t count;
};
inline constexpr std::size_t kFinsPerMessage = 64;
// All of a message whose RTS offered `eager`: its place among the messages was taken before the bytes
// had come out of a device.
struct Payload {
    std::uint64_t send_id;
};

struct EagerCredit {
    std::uint64_t bytes;
};

// The program wants to take back a message that nobody may have received yet; and the answer.
struct Cancel {
    std::uint64_t send_id;
};
struct Cancelled {
    std::uint64_t send_id;
    std::uint32_t dropped;  // 0: a receive has it
};

// The bytes follow the RTS, whatever the receiver says.
inline bool is_eager(const Plan& offer) {
    return offer.protocol == plan::Protocol::eager;
}

// An offer that copies nothing ahead: the receiver reads, and the sender only waits for its FIN.
template <class AnyPlan>  // as planned, or as written
bool expects_get(const AnyPlan& offer) {
    return offer.protocol == plan::Protocol::ipc && offer.executor == plan::Executor::receiver &&
           offer.ahead == 0;
}

// Of a node: the receiver reads the sender's host memory, and the sender only waits for its FIN.
template <class AnyPlan>
bool offers_read(const AnyPlan& offer) {
    return offer.protocol == plan::Protocol::cma;
}

// Of a node: all of the message is put into slots before the verdict.
template <class AnyPlan>
bool all_ahead(const AnyPlan& offer, Bytes bytes) {
    return offer.protocol == plan::Protocol::pipeline && offer.ahead > 0 &&
           static_cast<Bytes>(offer.ahead) * offer.chunk >= bytes;
}

// The RTS exposes the source (Transport::expose) under the send id. The receiver gets it and says
// nothing, or declines by a verdict.
inline bool exposes(const Plan& offer) {
    return offer.protocol == plan::Protocol::rdma && offer.executor == plan::Executor::receiver;
}

}  // namespace gantry::p2p::wire
