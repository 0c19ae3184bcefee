// SPDX-License-Identifier: BSD-3-Clause
//
// Flags beside slots: a message all of whose pieces go into slots before anybody answers needs no
// chunks to say that they are there (protocols/send_by_flags.cpp). Its request to send names the first slot,
// behind which the others lie, and the number that the flag of each will have. Where it is one
// piece the copy engine writes that number behind the bytes, and the receiver goes on before the
// sender's processor knows (H100, 16 to 256 KiB through a slot: 0.9 to 2.9 us less than by an event
// and a word from the sender, docs/design/notify-by-flags.md); else the sender raises the flags.
//
// The slots for such messages are units of one part of the pool (SlotPool). Each of the first 256 of
// that part has a flag; what lies behind them, in a pool of more than 64 MiB, goes by chunks, as does all of it
// in one of more than 8 GiB, whose units are too many for a request.
//
//   flag of a unit:  | number: counts up with each message | one of each quarter | the rest of a cache line |
//
// A message cuts through where the persistent kernel copies it out of the device
// (Device::cut_through): it is one piece then, however large, and each 16 KiB of it have a number, too,
// which the kernel writes. Who
// takes it may begin with those. All of it is there when all of them are, or when the unit's number
// is: then it is the receiver's to give the slot back, and never the sender's.
//
// Puts after RTR have flags of their own (protocols/put_after_rtr.cpp).
//
// A slot may come back before its sender knows of the copy's end: it is free when both have
// happened (SlotPool::grant_early).
#pragma once

#include "transfer/slots.hpp"
#include "transfer/wire.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::transfer {

using transport::Flag;
using transport::kSlotFlags;

static_assert(kSlotFlags == 256, "wire::SlotFlag names a flag in one byte");

// More pieces flow better by chunks, which hold no slots for those behind them.
inline constexpr int kMostPiecesByFlags = 16;
// So many of them are under way at a time.
inline constexpr int kFewPieces = 4;

// A larger one needs much of the slots that there are for such. Where those of the last are not back
// yet, so many go by chunks, which is quicker than both by turns.
inline constexpr Bytes kLargeByFlags = kMiB;
inline constexpr int kGoByChunks = 32;

// What has a number of its own where a message cuts through.
inline constexpr Bytes kCutThroughPiece = kDeviceSlotUnit / transport::kPiecesOfSlotUnit;

// Where the pieces of such a message lie, as both ends know it from its RTS.
struct FlagPieces {
    std::uint64_t send_id = 0;
    Bytes bytes = 0;
    Bytes chunk = 0;                   // whole units where there are several pieces
    std::uint32_t unit = 0, flag = 0;  // the first of each

    std::uint32_t flag_of(std::uint32_t one) const { return flag + (one - unit); }
    int count() const { return static_cast<int>(divide_up(bytes, chunk)); }
    wire::Chunk piece(int index) const {
        const Bytes offset = static_cast<Bytes>(index) * chunk;
        const Bytes size = std::min(chunk, bytes - offset);
        const auto at = static_cast<std::uint32_t>(unit + offset / kDeviceSlotUnit);
        return {send_id,
                offset,
                size,
                at * kDeviceSlotUnit,
                at,
                static_cast<std::uint32_t>(divide_up(size, kDeviceSlotUnit)),
                static_cast<std::uint8_t>(transport::Pool::device_slots)};
    }
};

// Numbers of this rank's messages: no two that follow each other have the same.
class FlagNumbers {
  public:
    std::uint32_t next() {
        if (++number_ == 0) ++number_;
        return number_;
    }

  private:
    std::uint32_t number_ = 0;
};

inline bool shows(const Flag& flag, std::uint32_t number) {
    return __atomic_load_n(&flag.number, __ATOMIC_ACQUIRE) == number;
}
// Unless the device did it.
inline void raise(Flag& flag, std::uint32_t number) {
    if (!shows(flag, number)) __atomic_store_n(&flag.number, number, __ATOMIC_RELEASE);
}

// How much of a message that cuts through has come, behind `begin`, piece by piece.
Bytes has_come(const Flag* flags, std::uint32_t number, Bytes begin, Bytes bytes);

// Who waits for the pieces of one message itself; what waits by nobody is a chunk like any other.
struct FlagWaiter {};

// Flags of peers that messages wait for.
class AwaitedFlags {
  public:
    struct Awaited {
        int from;
        const Flag* flag;
        std::uint32_t number;
        wire::Chunk chunk;             // that it tells of
        FlagWaiter* waiter = nullptr;  // null: the chunk goes the way of chunks
        bool cuts_through = false;     // each piece of it has a number, too
        // Of a receive: what of that shall be told at once, and was.
        Bytes least = 0, told = 0;
    };
    struct Raised {
        int from;
        FlagWaiter* waiter;
        wire::Chunk chunk;
        Bytes offset, bytes;  // what is there of it, and was not told before
        bool all;             // nothing more of it is awaited
    };
    bool empty() const { return awaited_.empty(); }
    void await(const Awaited& flag) { awaited_.push_back(flag); }
    // The next one from `at` on that is up, taken out, or what has come of one that cuts through;
    // nothing when there is none. `at` moves past those that are not up.
    std::optional<Raised> next_raised(std::size_t& at);
    // What cuts through into that receive is told in such parts from now on.
    void tell_more(const FlagWaiter& waiter, Bytes least);
    // They will not come: of one message, or of all of that rank.
    void drop(int from, std::uint64_t send_id);
    void drop(int from);
    // What comes for that receive goes back by itself.
    void disown(const FlagWaiter& waiter);

  private:
    std::vector<Awaited> awaited_;
};

// This rank's part of all that.
struct NotifyFlags {
    FlagNumbers numbers;
    AwaitedFlags awaited;
    bool pinned = false;  // the driver knows this rank's flags
};

}  // namespace gantry::transfer
