// SPDX-License-Identifier: BSD-3-Clause
#include "plan/selection_cache.hpp"

namespace gantry::plan {
namespace {

// Fields one behind the other in a word.
class Packer {
  public:
    template <class Value>
    Packer& add(Value value, unsigned bits) {
        word_ = word_ << bits | static_cast<std::uint64_t>(value);
        return *this;
    }
    std::uint64_t word() const { return word_; }

  private:
    std::uint64_t word_ = 0;
};

void add_end(Packer& packer, const End& end) {
    packer.add(end.kind, 2).add(end.ipc, 2).add(end.contiguous, 1);
}

std::size_t hash_of(const std::array<std::uint64_t, 4>& key) {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : key) {
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
}

// Neither allocation has staged so much that opening it may pay, and the answer is none that was
// given for one allocation.
bool holds(const Selection& selection, const Facts& facts) {
    return !selection.advice().opens && facts.uses < selection.advice().source_pays_at &&
           facts.put_uses < selection.advice().sink_pays_at;
}

}  // namespace

SelectionCache::Key SelectionCache::key_of(const Question& question, const Facts& facts) {
    Packer flags;  // all 64 bits are taken
    add_end(flags, question.source);
    add_end(flags, question.sink);
    flags.add(question.sink_known, 1)
        .add(question.sink_expected, 1)
        .add(question.synchronous, 1)
        .add(question.eager_credit, 1)
        .add(question.awaited, 1)
        .add(question.already_staged, 1)
        .add(question.sender_absent, 1)
        .add(facts.source_reach, 2)
        .add(facts.sink_reach, 2)
        .add(facts.last_user, 2)
        .add(facts.same_gpu, 1)
        .add(facts.gpu_shared, 1)
        .add(facts.peer_access, 1)
        .add(facts.ipc_open, 1)
        .add(facts.put_open, 1)
        .add(facts.rtr, 1)
        .add(facts.exposed, 1)
        .add(facts.descriptor, 1)
        .add(facts.sender_busy, 1)
        .add(facts.receiver_busy, 1)
        .add(facts.sender_opens, 1)
        .add(facts.receiver_opens, 1)
        .add(facts.source_bar, 1)
        .add(facts.sink_bar, 1)
        .add(facts.reads, 3)
        .add(facts.rates.slots, 8)
        .add(facts.rates.reads, 8)
        .add(facts.rates.call, 8);
    Packer places;
    places.add(static_cast<std::uint32_t>(facts.network), 26)
        .add(facts.cold_slots, 1)
        .add(facts.kept_away, 1)
        .add(facts.sender_first, 1)
        .add(facts.receiver_first, 1)
        .add(facts.source_large, 1)
        .add(facts.sink_large, 1)
        .add(static_cast<std::uint16_t>(facts.source_gpu), 16)
        .add(static_cast<std::uint16_t>(facts.sink_gpu), 16);
    return {question.bytes, question.started_chunk, flags.word(), places.word()};
}

Selection& SelectionCache::select(const Question& question, const Facts& facts) {
    if (sets_.empty()) sets_.resize(kSets);
    const Key key = key_of(question, facts);
    Set& set = sets_[hash_of(key) % kSets];
    Entry* place = nullptr;
    for (Entry& entry : set.entries) {
        if (entry.generation == 0 || entry.key != key) continue;
        if (enabled_ && holds(entry.selection, facts)) {
            ++counts_.hits;
            entry.selection.facts.uses = facts.uses;
            entry.selection.facts.put_uses = facts.put_uses;
            newest_ = &entry;
            return entry.selection;
        }
        place = &entry;
        break;
    }
    ++counts_.misses;
    if (place == nullptr) place = &set.entries[set.oldest++ % kWays];
    const std::uint32_t generation = place->generation + 1;
    *place = {key, generation, {question, facts, choose(question, facts, machine_, tuning_)}};
    newest_ = place;
    return place->selection;
}

void SelectionCache::note(const Hint& hint, const Selection& selection) {
    if (!enabled_ || newest_ == nullptr || &newest_->selection != &selection ||
        selection.advice().opens)
        return;
    if (hints_.empty()) hints_.resize(kHints);
    hints_[place_of(hint)] = {hint, newest_, newest_->generation};
}

}  // namespace gantry::plan
