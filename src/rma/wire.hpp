// SPDX-License-Identifier: BSD-3-Clause
//
// What one-sided messages look like on the wire; docs/wire.md draws them. Headers are plain structs,
// as in transfer/wire.hpp. Append only, and bump kWireVersion (transport/wire_version.hpp).
#pragma once

#include "transfer/wire.hpp"

namespace gantry::rma::wire {

using transfer::wire::bytes_of;
using transfer::wire::read;

enum Kind : transport::MessageKind {
    kPut = 64,
    kGet = 65,
    kAccumulate = 66,
    kFetch = 67,
    kCompareAndSwap = 68,
    kAnswer = 69,
    kLayout = 70,
    kFlush = 71,
    kExecuted = 72,
    kLock = 73,
    kGranted = 74,
    kUnlock = 75,
    kPost = 76,
    kComplete = 77,
    kGetInto = 78,
    kPuts = 79,
    kSettle = 80,
    kRendezvousPut = 81,
    kPutEnded = 82,
    kRendezvousGet = 83,
    kAnswerFollows = 84,
    kLeft = 85,         // the sender takes no part in the window any more, after a failure
    kLockRefused = 86,  // a rank died as it took or gave back its share of the lock
};

// Every header begins with this. `sequence` numbers all one-sided messages of one rank to another, so
// they are taken in the order in which they were sent.
struct Head {
    std::uint32_t sequence;
    std::uint32_t window;  // the context of its group
    std::int32_t from;     // the sender's rank in the window
};

// Data bytes [first, first + bytes) of `count` elements of a layout at `address` of the target.
// Layout 0: one run of bytes.
struct Span {
    std::uint64_t address, count, first, bytes;
    std::uint32_t layout;
};

struct Put {
    Head head;
    Span span;
};
struct Get {
    Head head;
    Span span;
    std::uint64_t id;  // of the operation, for the answer
};
// The operand's items follow as payload.
struct Accumulate {
    Head head;
    Span span;
    std::uint64_t id;  // kFetch: of the operation, for the answer
    std::uint8_t operation, element;
};
// The new value and the one to compare with follow as payload.
struct CompareAndSwap {
    Head head;
    Span span;
    std::uint64_t id;
};
// What an operation read: data bytes from `first` of its result. Or why it could not.
struct Answer {
    Head head;
    std::uint64_t id, first;
    std::int32_t error_class;
    std::uint64_t in_place;  // bytes that were put where they belong, instead of a payload
};
// A get whose bytes the target puts into memory of the origin, at `offset` of the region whose key
// follows as payload.
struct GetInto {
    Head head;
    Span span;
    std::uint64_t id;
    std::uint64_t offset;
};
// Small puts, one behind the other: for each a PutRow and its bytes.
struct Puts {
    Head head;
};
struct PutRow {
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint32_t unused;
};
// A put whose bytes come as an announced message (p2p/announced.cpp), whose RTS follows as payload.
struct RendezvousPut {
    Head head;
    Span span;
};
// All of such a put lies in its place, or why it does not.
struct PutEnded {
    Head head;
    std::int32_t error_class;
};
// A get that is answered by an announced message; its RTS follows as payload of the answer.
struct RendezvousGet {
    Head head;
    Span span;
    std::uint64_t id;
};
struct AnswerFollows {
    Head head;
    std::uint64_t id;
};
// Part of the description of a layout, from byte `offset` of `size`.
struct Layout {
    Head head;
    std::uint32_t layout;
    std::uint64_t offset, size;
    std::int64_t extent;
};
// Says how many messages of this window it has executed as soon as all before this are.
struct Flush {
    Head head;
};
struct Executed {
    Head head;
    std::uint64_t messages, bytes;
    std::int32_t error_class;  // of the first one that failed since the last message of this kind
};
enum class LockKind : std::uint8_t { shared, exclusive };
struct Lock {
    Head head;
    LockKind kind;
};
struct Left {
    Head head;
    std::int32_t error_class;  // why: a rank is lost, or the window revoked
};
struct Signal {
    Head head;
};

}  // namespace gantry::rma::wire
