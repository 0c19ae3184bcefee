// SPDX-License-Identifier: BSD-3-Clause
//
// RemoteMemory: what this rank remembers about the mappings of device memory between it and one
// peer, by allocation. Opening a mapping costs 0.1 to 10 ms and stalls every driver call of its
// process, so it is an investment (plan/ipc_candidate.cpp, pays_at): messages go staged, and are
// counted, until the mapping repays itself. The count begins anew when the mapping is opened: if it
// is closed to make room for others, it has to repay itself again.
//
// Nothing here is needed for right data: what was forgotten only delays an opening.
#pragma once

#include "plan/use_counts.hpp"
#include "transfer/wire.hpp"

#include <cstdint>
#include <unordered_set>

namespace gantry::transfer {

class RemoteMemory {
  public:
    // A message from `source` into `sink` is staged. What is open need not repay itself.
    struct Open {
        bool get = false, put = false;
    };
    void staged(const wire::Handle& source, const device::Location& sink, Open open);
    // The sender's allocation is mapped here.
    void got(std::uint64_t source) {
        if (staged_gets_.of(source) > 0) ++epoch_;
        staged_gets_.forget(source);
    }
    // The sender has, has no more, cannot have a mapping of our allocation.
    void put(std::uint64_t sink);
    void put_closed(std::uint64_t sink);
    void put_refused(std::uint64_t sink);
    // None of our GPU's, which its process does not see.
    void put_kept_away() { is_kept_away_ = true; }
    bool is_kept_away() const { return is_kept_away_; }
    // Its descriptor could not be sent this time.
    void put_failed(std::uint64_t sink) { staged_puts_.forget(sink); }
    // We freed that allocation of ours.
    void freed(std::uint64_t sink);

    // Openings cost something else from now on.
    void prices_changed() { ++epoch_; }
    // Counts the changes of everything here but the counts of staged messages.
    std::uint32_t epoch() const { return epoch_; }
    // The peer would rather read that allocation of ours than be sent pieces of it.
    void ask_for(std::uint64_t source);
    bool is_asked_for(std::uint64_t source) const { return asked_for_.contains(source); }
    void refuse(std::uint64_t source) {
        asked_for_.erase(source);
        ++epoch_;
    }

    int gets_staged(std::uint64_t source) const { return staged_gets_.of(source); }
    int puts_staged(std::uint64_t sink) const { return staged_puts_.of(sink); }
    bool is_put_open(std::uint64_t sink) const { return put_open_.contains(sink); }
    bool is_put_refused(std::uint64_t sink) const { return put_refused_.contains(sink); }

  private:
    std::uint32_t epoch_ = 0;
    bool is_kept_away_ = false;
    plan::UseCounts staged_gets_, staged_puts_;
    std::unordered_set<std::uint64_t> put_open_, put_refused_, asked_for_;
};

}  // namespace gantry::transfer
