// SPDX-License-Identifier: BSD-3-Clause
//
// Timeline: the virtual time of a simulated world. Whatever will happen (a copy ends, a message
// arrives) is an action at a time; running the next one jumps the clock to it. Actions at one time
// run in the order in which they were planned, and all chance comes from one seed, so a run repeats
// exactly: `trace_hash()` is equal for equal seeds. Real time plays no part.
//
// Processor is what one rank sees of it: its clock, which also runs while the rank is inside a call
// that costs time.
#pragma once

#include "base/clock.hpp"
#include "base/units.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace gantry::model {

class Timeline {
  public:
    explicit Timeline(std::uint64_t seed) : random_state_(seed) {}
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    Nanoseconds now() const { return now_; }
    void at(Nanoseconds time, std::function<void()> action) {
        events_.push_back({time > now_ ? time : now_, next_sequence_++, std::move(action)});
        std::push_heap(events_.begin(), events_.end());
    }
    bool empty() const { return events_.empty(); }
    Nanoseconds next_time() const { return events_.front().time; }
    void run_next() {
        std::pop_heap(events_.begin(), events_.end());
        Event event = std::move(events_.back());
        events_.pop_back();
        now_ = event.time;
        event.action();
    }
    // Time passes without an event, for those who wait by the clock.
    void advance_to(Nanoseconds time) { now_ = time > now_ ? time : now_; }

    // 0 <= result < bound; 0 when bound is 0 (splitmix64).
    std::uint64_t random(std::uint64_t bound) {
        random_state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t mixed = random_state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        mixed ^= mixed >> 31;
        return bound == 0 ? 0 : mixed % bound;
    }

    // Mixes what happened now into the hash of the run.
    void note(std::uint64_t what, std::uint64_t detail) {
        for (const std::uint64_t word : {static_cast<std::uint64_t>(now_), what, detail})
            trace_hash_ = (trace_hash_ ^ word) * 0x100000001b3u;
    }
    std::uint64_t trace_hash() const { return trace_hash_; }

  private:
    struct Event {
        Nanoseconds time;
        std::uint64_t sequence;
        std::function<void()> action;
        // For a heap whose first one is the earliest.
        bool operator<(const Event& other) const {
            return time != other.time ? time > other.time : sequence > other.sequence;
        }
    };
    std::vector<Event> events_;  // a heap
    std::uint64_t next_sequence_ = 0;
    std::uint64_t random_state_;
    std::uint64_t trace_hash_ = 0xcbf29ce484222325u;
    Nanoseconds now_ = 0;
};

// The thread of one rank. While it is busy the world does not call its progress.
class Processor final : public Clock {
  public:
    explicit Processor(Timeline& timeline) : timeline_(timeline) {}
    Nanoseconds now() const override { return busy() ? busy_until_ : timeline_.now(); }
    void spend(Nanoseconds time) { busy_until_ = now() + time; }
    bool busy() const { return busy_until_ > timeline_.now(); }
    Nanoseconds busy_until() const { return busy_until_; }
    Timeline& timeline() { return timeline_; }

  private:
    Timeline& timeline_;
    Nanoseconds busy_until_ = 0;
};

}  // namespace gantry::model
