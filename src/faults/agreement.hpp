// SPDX-License-Identifier: BSD-3-Clause
//
// Agreements: all members of a group that live through it agree on one decision, whoever dies meanwhile.
//
//   member                        coordinator: the first member that is not lost
//     | -- contribution -------------> |   waits for one from each member that is not lost
//     | <------------------ proposal - |   made of all contributions, or a proposal that a member took before
//     | -- taken --------------------> |   waits for each member that is not lost
//     | <------------------ decision - |
//
// When a coordinator is lost, the next member takes over, and all begin with it anew: each sends it the
// latest proposal that it has taken, or its contribution. Nobody has the decision before everybody has taken
// its proposal, so the next coordinator finds it and proposes the same. A member that has the decision answers
// with it, also when its call has returned: it keeps the last one of each group, until the next agreement of
// the group is decided.
//
// This holds as long as losses are true: whoever is lost to one member is dead, and others hear of it.
// A call returns when its member, too, knows that those who failed are lost. 3 messages to and from each member without a loss.
#pragma once

#include "base/task.hpp"
#include "faults/wire.hpp"
#include "p2p/messenger.hpp"
#include "transfer/context.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace gantry::faults {

// A set of members of a group, by their ranks there.
class MemberSet {
  public:
    MemberSet() = default;
    explicit MemberSet(int members)
        : words_((static_cast<std::size_t>(members) + 63) / 64, std::uint64_t{0}) {}
    bool has(int member) const { return (words_[word(member)] >> (member % 64) & 1) != 0; }
    void add(int member) { words_[word(member)] |= std::uint64_t{1} << (member % 64); }
    void unite(const MemberSet& other) {
        for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
            words_[i] |= other.words_[i];
    }
    void intersect(const MemberSet& other) {
        for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
            words_[i] &= other.words_[i];
    }
    bool within(const MemberSet& other) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            if ((words_[i] & ~(i < other.words_.size() ? other.words_[i] : 0)) != 0) return false;
        return true;
    }
    std::vector<std::uint64_t>& words() { return words_; }
    const std::vector<std::uint64_t>& words() const { return words_; }
    bool operator==(const MemberSet&) const = default;

  private:
    static std::size_t word(int member) { return static_cast<std::size_t>(member) / 64; }
    std::vector<std::uint64_t> words_;
};

// What a member brings, and what all agree on.
struct Decision {
    std::uint32_t flags = ~0u;  // all of them, bit by bit
    std::uint64_t value = 0;    // the largest
    MemberSet failed;           // that any member knew to be lost
    MemberSet acknowledged;     // the failures that all have acknowledged
};

class Agreements {
  public:
    // Both outlive this. Registers its kind of message, and hears of losses behind the messenger.
    Agreements(transfer::Context& context, p2p::Messenger& messenger);
    Agreements(const Agreements&) = delete;
    Agreements& operator=(const Agreements&) = delete;
    ~Agreements();

    // The `sequence`th agreement of that group, which all members enter in the same order. What they know to be
    // lost is added. `make_value` is asked by whoever proposes, in place of the values; may be empty.
    struct Call {
        std::uint32_t context = 0;
        std::uint32_t sequence = 0;
        std::vector<int> peers;
        int rank = 0;
        Decision mine;
        std::function<std::uint64_t()> make_value;
        bool without_those_who_left =
            false;  // a member that has left MPI in order is not waited for
    };
    Task<Status> agree(Executor& executor, Call call, Decision* decided);

    // Agreements of which something is kept.
    std::size_t kept() const { return known_.size(); }

  private:
    using Key = std::pair<std::uint32_t, std::uint32_t>;
    struct Agreement;
    Agreement& known(const Key& key);
    void on_message(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void on_peer_lost(int peer, const Status& why);
    void forget_before(const Key& key);
    bool is_gone(const Agreement& agreement, int member) const;
    int coordinator_of(const Agreement& agreement) const;
    void send(const Agreement& agreement, int to, wire::Says says, int epoch,
              const Decision& decision);
    void send_to_all(const Agreement& agreement, wire::Says says, int epoch,
                     const Decision& decision);
    void take(Agreement& agreement, int from, wire::Says says, int epoch, Decision decision);
    void look(Agreement& agreement);
    void join(Agreement& agreement, int coordinator);
    void coordinate(Agreement& agreement);
    Decision make_proposal(Agreement& agreement);
    void decide(Agreement& agreement, Decision decision);
    static bool is_decided(void* agreement);
    static bool knows_failed(void* agreement);

    transfer::Context& context_;
    p2p::Messenger& messenger_;
    std::map<Key, std::unique_ptr<Agreement>> known_;
};

}  // namespace gantry::faults
