// SPDX-License-Identifier: BSD-3-Clause
//
// UnmapNotes: what somebody who watches the process's mappings tells a registration cache. note()
// comes from any thread, in the middle of munmap or of the allocator, just before the memory goes:
// it neither allocates nor locks. take() is called by whoever holds the engine, before the cache
// answers anything; so memory that comes back at the same address finds its note taken.
//
//   a ring of notes; each writer takes a ticket, fills its place and marks it with the ticket.
//   A reader that is a whole ring behind, or meets a place that is being filled, has lost notes:
//   everything may be stale.
#pragma once

#include "base/units.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::transport {

class UnmapNotes {
  public:
    // Only unmappings inside of all ranges ever watched are noted.
    void watch(std::uintptr_t begin, Bytes bytes) {
        // One thread watches (the engine's); pairs with the loads in note(), which may be late:
        // what is being registered is not being unmapped by a correct program.
        if (begin < lowest_.load(std::memory_order_relaxed))
            lowest_.store(begin, std::memory_order_release);
        if (begin + bytes > highest_.load(std::memory_order_relaxed))
            highest_.store(begin + bytes, std::memory_order_release);
    }

    void note(std::uintptr_t begin, Bytes bytes) {
        if (begin >= highest_.load(std::memory_order_acquire) ||
            begin + bytes <= lowest_.load(std::memory_order_acquire))
            return;
        const std::uint64_t ticket = written_.fetch_add(1, std::memory_order_acq_rel);
        Note& note = notes_[ticket % kNotes];
        // Releases, so that a reader that sees these bytes sees our ticket too (a lap).
        note.begin.store(begin, std::memory_order_release);
        note.bytes.store(bytes, std::memory_order_release);
        // Pairs with the acquire in take().
        note.mark.store(ticket + 1, std::memory_order_release);
    }

    // Calls visit(begin, bytes) for each note since the last time; false when some are lost.
    template <class Visit>
    bool take(Visit&& visit) {
        const std::uint64_t end = written_.load(std::memory_order_acquire);
        if (read_ == end) return true;
        bool complete = end - read_ <= kNotes;
        for (; complete && read_ < end; ++read_) {
            const Note& note = notes_[read_ % kNotes];
            complete = note.mark.load(std::memory_order_acquire) == read_ + 1;
            const std::uintptr_t begin = note.begin.load(std::memory_order_acquire);
            const Bytes bytes = note.bytes.load(std::memory_order_acquire);
            complete = complete && written_.load(std::memory_order_acquire) - read_ <= kNotes;
            if (complete) visit(begin, bytes);
        }
        read_ = end;
        return complete;
    }

    static constexpr std::size_t kNotes = 256;

  private:
    struct Note {
        std::atomic<std::uint64_t> mark{0};
        std::atomic<std::uintptr_t> begin{0};
        std::atomic<Bytes> bytes{0};
    };
    std::array<Note, kNotes> notes_{};
    std::atomic<std::uint64_t> written_{0};
    std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX};
    std::atomic<std::uintptr_t> highest_{0};
    std::uint64_t read_ = 0;  // the reader's own
};

}  // namespace gantry::transport
