// SPDX-License-Identifier: BSD-3-Clause
//
// NodeMemory: what the ranks of one node share of a window: a control block for each of them, and
// behind these the memory of each if the window is allocated by Gantry. The lowest rank of the node
// makes the segment, everybody maps all of it. A rank that is alone, or whose peers are reached by the
// network only, has plain memory of its own in the same shape.
//
//     [ControlBlock of local rank 0][... 1]... [who waits][posts][completes][shared holders][errands] | page | [memory of local rank 0][... 1]...
//
// A dynamic window has, instead of memory, what each rank has attached (attachments.hpp).
//
// Who waits: for each target the places of its queue (lock_queue.hpp), one for each rank of the node and
// the owner's for those of other nodes.
//
// Posts, completes: for each rank and each other one how often that has exposed its memory to it, and
// ended an access to it.
//
// Shared holders: a byte for each target and origin (Share), of what that origin itself holds of that
// target's lock. A count alone would not tell whose share a rank that died took along.
#pragma once

#include "rma/attachments.hpp"
#include "rma/control.hpp"
#include "rma/errand.hpp"
#include "base/segment.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gantry::rma {

// none -> changes -> holds -> changes -> none. Of a rank that died as it changed the count, nobody knows
// whether it is counted.
enum class Share : std::uint8_t { none, changes, holds };

class NodeMemory {
  public:
    // Where each local rank's memory begins, from the first one's; and how much all have.
    struct Parts {
        std::vector<Bytes> begin;
        Bytes bytes = 0;
        Bytes alignment = 1;         // of the first part, in each process
        bool errands = false;        // of memory that nobody maps
        Attachments::Room attaches;  // of a dynamic window; else nothing
    };
    // `adjoining`: each part begins right behind the one before it, as shared windows promise.
    static Parts parts(const std::vector<Bytes>& sizes, bool adjoining, Bytes alignment);

    // For a rank alone.
    Status make_private(const Parts& parts);
    // The maker's share of a segment, then everybody's. `self`: my number among the local ranks.
    Result<SegmentName> make_shared(const Parts& parts);
    Status map_shared(const SegmentName& name, const Parts& parts, std::size_t self,
                      Bytes own_bytes);

    ControlBlock* control(std::size_t local) const { return &controls_[local]; }
    std::span<std::uint32_t> waiting_places(std::size_t target) const {
        const std::size_t places = parts_.begin.size() + 1;
        return {places_ + target * places, places};
    }
    std::uint32_t& posts(std::size_t of, std::size_t by) const {
        return posts_[of * parts_.begin.size() + by];
    }
    std::uint32_t& completes(std::size_t of, std::size_t by) const {
        return completes_[of * parts_.begin.size() + by];
    }
    // What rank `origin` holds of the lock of rank `target`.
    std::atomic_ref<Share> share(std::size_t target, std::size_t origin) const {
        return std::atomic_ref(shares_[target * parts_.begin.size() + origin]);
    }
    // Null: the window has none.
    ErrandBox* errands(std::size_t local) const {
        return errands_ != nullptr ? &errands_[local] : nullptr;
    }
    // Of a dynamic window; nothing: of a rank alone.
    std::optional<Attachments> attachments(std::size_t local) const {
        if (parts_.attaches.regions == 0 || mapping_.address() == nullptr) return {};
        return Attachments(memory_ + local * Attachments::bytes_of(parts_.attaches),
                           parts_.attaches);
    }
    std::size_t ranks() const { return parts_.begin.size(); }
    std::byte* memory(std::size_t local) const { return memory_ + parts_.begin[local]; }

  private:
    static Bytes control_bytes(const Parts& parts);
    static Bytes memory_offset(const Parts& parts);
    static Bytes table_bytes(const Parts& parts);
    static Bytes memory_bytes(const Parts& parts);
    void lay_out(std::byte* begin, const Parts& parts);

    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> private_;
    Segment segment_;
    SegmentMapping mapping_;
    Parts parts_;
    ControlBlock* controls_ = nullptr;
    std::uint32_t *places_ = nullptr, *posts_ = nullptr, *completes_ = nullptr;
    Share* shares_ = nullptr;
    ErrandBox* errands_ = nullptr;
    std::byte* memory_ = nullptr;
};

}  // namespace gantry::rma
