// SPDX-License-Identifier: BSD-3-Clause
//
// SelectionCache: the planner's answers, kept. `choose` is a pure function and programs repeat
// themselves, so every question that was answered before costs a look-up instead of a plan. All
// decisions about paths go through here; no protocol keeps an answer of its own.
//
// The key is the question with its facts, packed into four words. How many messages an allocation
// has staged is not part of it: an answer says from which count on it may be another one (Advice),
// and is found only below that.
//
//   question, facts -> key -> set of kWays selections -> hit: the selection
//                                                     -> miss: choose(), the oldest of the set goes
//
// Gathering the facts costs more than the look-up. Who knows that they are what they were, by the epoch
// of the peer, asks by a Hint instead: a few words that name the peer, its epoch, the two ends and the
// size. A hint leads to the selection that was noted under it.
#pragma once

#include "plan/plan.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace gantry::plan {

// One answered question.
struct Selection {
    Question question;
    Facts facts;
    Choice choice;
    // The sender's: the RTS made of this answer may be sent again in short while the conversation's
    // template has this version and the message comes from this allocation. 0: it may not.
    std::uint64_t rts_template = 0, rts_source = 0;
    const Plan& plan() const { return choice.plan; }
    const Advice& advice() const { return choice.advice; }
};

// What a hint is about: the low byte of Hint::ends.
enum class HintKind : std::uint8_t { offer = 1, verdict_on_get = 2, verdict_by_flags = 3 };

class SelectionCache {
  public:
    struct Counts {
        std::uint64_t hits = 0, misses = 0;
    };

    // `machine` and `tuning` outlive the cache. Not `enabled`: every question is planned anew.
    SelectionCache(const Machine& machine, const Tuning& tuning, bool enabled)
        : machine_(machine), tuning_(tuning), enabled_(enabled) {}

    // The answer to that question. The reference is good until the next call.
    Selection& select(const Question& question, const Facts& facts);

    struct Hint {
        std::uint64_t peer_and_epoch = 0, allocation = 0, bytes = 0, ends = 0;
        bool operator==(const Hint&) const = default;
    };
    // The selection that was noted under that hint; null: none is, any more.
    Selection* known(const Hint& hint) {
        if (hints_.empty()) return nullptr;
        const Noted& noted = hints_[place_of(hint)];
        if (noted.entry == nullptr || noted.hint != hint ||
            noted.entry->generation != noted.generation)
            return nullptr;
        ++counts_.hits;
        return &noted.entry->selection;
    }
    // `selection` is what select() gave last, and no answer for one allocation alone.
    void note(const Hint& hint, const Selection& selection);
    // Peers have other numbers from now on.
    void forget_everything() {
        sets_.clear();
        hints_.clear();
        newest_ = nullptr;
    }
    const Counts& counts() const { return counts_; }

  private:
    static constexpr std::size_t kSets = 64, kWays = 4;
    using Key = std::array<std::uint64_t, 4>;
    struct Entry {
        Key key{};
        std::uint32_t generation = 0;  // counts the selections that were here; 0: none yet
        Selection selection;
    };
    struct Noted {
        Hint hint;
        Entry* entry = nullptr;
        std::uint32_t generation = 0;
    };
    static constexpr std::size_t kHints = 256;
    static std::size_t place_of(const Hint& hint) {
        constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
        const std::uint64_t mixed =
            (hint.peer_and_epoch ^ (hint.allocation << 17) ^ (hint.bytes << 29) ^ hint.ends) *
            kSpread;
        return static_cast<std::size_t>(mixed >> 56) % kHints;
    }
    struct Set {
        std::array<Entry, kWays> entries;
        unsigned oldest = 0;
    };
    static Key key_of(const Question& question, const Facts& facts);

    const Machine& machine_;
    const Tuning& tuning_;
    const bool enabled_;
    std::vector<Set> sets_;     // made at the first question
    std::vector<Noted> hints_;  // made at the first note
    Entry* newest_ = nullptr;   // what select() gave last
    Counts counts_;
};

}  // namespace gantry::plan
