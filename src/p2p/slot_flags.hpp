// SPDX-License-Identifier: BSD-3-Clause
//
// SlotFlags: a message that is one piece in a slot needs no chunk to say that it is there. Its
// request to send names the slot and the number that the slot's flag will have; the copy engine
// writes that number behind the bytes, and the receiver goes on before the sender's processor knows
// (H100, 16 to 256 KiB through a slot: 0.9 to 2.9 us less than by an event and a word from the
// sender, docs/design/0002). Where no device does so, the sender raises the flag when its copy ends.
//
//   flag of a unit:  | number: counts up with each message | the rest of a cache line |
//
// A slot may come back before its sender knows of the copy's end: only the copy's end makes it free.
#pragma once

#include "p2p/wire.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::p2p {

using transport::kSlotFlags;
using transport::SlotFlag;

static_assert(kSlotFlags == 256, "wire::Flagged names a unit in one byte");

// Of this rank's slots.
class SlotFlags {
  public:
    // The next number of that unit's flag; 0: it has none.
    std::uint32_t next(std::uint32_t unit) {
        if (unit >= kSlotFlags) return 0;
        if (++numbers_[unit] == 0) ++numbers_[unit];
        return numbers_[unit];
    }

  private:
    std::array<std::uint32_t, kSlotFlags> numbers_{};
};

// Unless the device did it, or has gone further since.
void raise(SlotFlag& flag, std::uint32_t number);

// Flags of peers that messages wait for.
class AwaitedFlags {
  public:
    struct Awaited {
        int from;
        const SlotFlag* flag;
        std::uint32_t number;
        wire::Chunk chunk;  // that it tells of
    };
    bool empty() const { return awaited_.empty(); }
    void await(const Awaited& flag) { awaited_.push_back(flag); }
    // One that is up, taken out; nothing when there is none.
    std::optional<Awaited> next_raised();
    // They will not come: of one message, or of all of that rank.
    void drop(int from, std::uint64_t send_id);
    void drop(int from);

  private:
    std::vector<Awaited> awaited_;
};

}  // namespace gantry::p2p
