// SPDX-License-Identifier: BSD-3-Clause
#include "faults/agreement.hpp"

#include "p2p/wire.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::faults {
namespace {

using wire::Says;

// What was said: a contribution of its own, or a proposal with the member that made it.
struct Said {
    int epoch = -1;
    Decision decision;
};

}  // namespace

struct Agreements::Agreement {
    Agreement(Agreements& its_owner, Key its_key) : owner(its_owner), key(its_key) {}
    Agreements& owner;
    const Key key;
    bool entered = false, waited_for = false, decided = false;
    Call call;
    struct Early {
        int from;
        Says says;
        Said said;
    };
    std::vector<Early> early;  // came before this member has entered
    int joined = -1;           // the coordinator that knows of this member
    Said taken;                // the latest proposal; epoch -1: none
    Decision decision;         // once it is decided
    Nanoseconds knows_by = 0;  // who failed; after that the others are taken at their word
    // Of the coordinator: what members have said, and who has taken its proposal.
    std::vector<std::optional<Said>> heard;
    bool proposed = false;
    std::vector<bool> has_taken;

    int size() const { return static_cast<int>(call.peers.size()); }
    int peer(int member) const { return call.peers[static_cast<std::size_t>(member)]; }
    int member(int peer) const {
        const auto found = std::ranges::find(call.peers, peer);
        return found == call.peers.end() ? -1 : static_cast<int>(found - call.peers.begin());
    }
};

Agreements::Agreements(transfer::Context& context, p2p::Messenger& messenger)
    : context_(context), messenger_(messenger) {
    context_.messages.handle<&Agreements::on_message>(wire::kAgree, *this);
    context_.messages.tell_of_losses<&Agreements::on_peer_lost>(*this);
}

Agreements::~Agreements() = default;

Agreements::Agreement& Agreements::known(const Key& key) {
    std::unique_ptr<Agreement>& place = known_[key];
    if (place == nullptr) place = std::make_unique<Agreement>(*this, key);
    return *place;
}

// All members have entered the one of that key, so each has the decisions of those before.
void Agreements::forget_before(const Key& key) {
    auto at = known_.lower_bound({key.first, 0});
    while (at != known_.end() && at->first < key)
        at = at->second->decided && !at->second->waited_for ? known_.erase(at) : std::next(at);
}

bool Agreements::is_gone(const Agreement& agreement, int member) const {
    const int peer = agreement.peer(member);
    if (peer == context_.world_rank) return false;
    transfer::Endpoint& endpoint = context_.endpoints.to(peer);
    if (!endpoint.lost.ok()) return true;
    return agreement.call.without_those_who_left && endpoint.shared != nullptr &&
           endpoint.shared->left();
}

int Agreements::coordinator_of(const Agreement& agreement) const {
    int member = 0;
    while (member < agreement.call.rank && is_gone(agreement, member))
        ++member;
    return member;
}

// --- entering ------------------------------------------------------------------------------------

Task<Status> Agreements::agree(Executor& executor, Call call, Decision* decided) {
    Agreement& agreement = known({call.context, call.sequence});
    agreement.waited_for = true;
    // A member that took part in several at once could miss one that others have forgotten.
    struct Before {
        Agreements& all;
        Agreement& this_one;
    } before{*this, agreement};
    const auto are_decided = [](void* pointer) {
        const auto& [all, this_one] = *static_cast<Before*>(pointer);
        for (auto at = all.known_.lower_bound({this_one.key.first, 0}); at->first < this_one.key;
             ++at)
            if (!at->second->decided) return false;
        return true;
    };
    Status turn = co_await context_.node_segment.until(executor, are_decided, &before);
    GANTRY_CO_TRY(turn);

    const auto members = call.peers.size();
    agreement.call = std::move(call);
    agreement.heard.resize(members);
    agreement.has_taken.resize(members);
    agreement.entered = true;
    for (Agreement::Early& each : std::exchange(agreement.early, {}))
        take(agreement, each.from, each.says, each.said.epoch, std::move(each.said.decision));
    look(agreement);
    Status waited = co_await context_.node_segment.until(executor, &is_decided, &agreement);
    agreement.knows_by = executor.now() + context_.config.peer_timeout;
    // So that what the program asks next, who has failed, is answered alike everywhere.
    Status known = co_await context_.node_segment.until(executor, &knows_failed, &agreement);
    *decided = agreement.decision;
    agreement.waited_for = false;
    GANTRY_CO_TRY(waited);
    co_return known;
}

// Whether this member knows that all who failed are lost. Who cannot be reached by another member, but
// by this one, is lost to both in the end.
bool Agreements::knows_failed(void* pointer) {
    auto& agreement = *static_cast<Agreement*>(pointer);
    Agreements& all = agreement.owner;
    for (int member = 0; member < agreement.size(); ++member) {
        if (member == agreement.call.rank || !agreement.decision.failed.has(member)) continue;
        if (all.is_gone(agreement, member)) continue;
        const int peer = agreement.peer(member);
        if (all.context_.executor.now() < agreement.knows_by) return false;
        all.context_.messages.on_peer_lost(
            peer, failure(MPI_ERR_PROC_ABORTED, "rank {} is lost to another rank", peer));
    }
    return true;
}

bool Agreements::is_decided(void* pointer) {
    auto& agreement = *static_cast<Agreement*>(pointer);
    // Nobody tells of members that leave.
    if (!agreement.decided && agreement.call.without_those_who_left)
        agreement.owner.look(agreement);
    return agreement.decided;
}

// --- what is said --------------------------------------------------------------------------------

// To a member that is lost nothing need be said, and its loss is told by itself.
void Agreements::send(const Agreement& agreement, int to, Says says, int epoch,
                      const Decision& decision) {
    transfer::Endpoint& endpoint = context_.endpoints.to(agreement.peer(to));
    if (!endpoint.lost.ok()) return;
    std::vector<std::uint64_t> words = decision.failed.words();
    const wire::Agree header{agreement.key.first,
                             agreement.key.second,
                             says,
                             epoch,
                             decision.flags,
                             static_cast<std::uint32_t>(words.size()),
                             decision.value};
    words.insert(words.end(), decision.acknowledged.words().begin(),
                 decision.acknowledged.words().end());
    static_cast<void>(
        context_.send(endpoint, wire::kAgree, header, std::as_bytes(std::span(words))));
}

void Agreements::send_to_all(const Agreement& agreement, Says says, int epoch,
                             const Decision& decision) {
    for (int member = 0; member < agreement.size(); ++member)
        if (member != agreement.call.rank) send(agreement, member, says, epoch, decision);
}

void Agreements::on_message(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    const auto said = p2p::wire::read<wire::Agree>(header);
    const Key key{said.context, said.sequence};
    if (said.says == Says::question && !known_.contains(key)) return;  // nobody waits for an answer
    // A later one is decided, so nobody needs this one.
    for (auto later = known_.upper_bound(key);
         later != known_.end() && later->first.first == key.first; ++later)
        if (later->second->decided) return;
    const std::size_t bytes = said.words * sizeof(std::uint64_t);
    if (payload.size() != 2 * bytes) return;
    Decision decision{said.flags, said.value, {}, {}};
    for (MemberSet* set : {&decision.failed, &decision.acknowledged}) {
        set->words().resize(said.words);
        if (bytes != 0) std::memcpy(set->words().data(), payload.data(), bytes);
        payload = payload.subspan(bytes);
    }
    Agreement& agreement = known(key);
    if (agreement.entered)
        take(agreement, from, said.says, said.epoch, std::move(decision));
    else
        agreement.early.push_back({from, said.says, {said.epoch, std::move(decision)}});
}

void Agreements::take(Agreement& agreement, int from, Says says, int epoch, Decision decision) {
    const int member = agreement.member(from);
    if (member < 0) return;
    if (agreement.decided) {
        // Whoever still asks does not know.
        if (says != Says::decision && says != Says::taken)
            send(agreement, member, Says::decision, -1, agreement.decision);
        return;
    }
    const auto place = static_cast<std::size_t>(member);
    switch (says) {
        case Says::question: return;
        case Says::contribution:
            agreement.heard[place] = Said{epoch, std::move(decision)};
            return look(agreement);
        case Says::proposal:
            if (epoch < agreement.taken.epoch) return;
            agreement.taken = {epoch, std::move(decision)};
            return send(agreement, member, Says::taken, epoch, {});
        case Says::taken: agreement.has_taken[place] = true; return look(agreement);
        case Says::decision: return decide(agreement, std::move(decision));
    }
}

void Agreements::on_peer_lost(int peer, const Status&) {
    for (auto& [key, agreement] : known_) {
        const int member = agreement->entered ? agreement->member(peer) : -1;
        if (member < 0) continue;
        if (!agreement->decided) {
            look(*agreement);
            continue;
        }
        // The next coordinator may not have heard the last one's decision, nor others from it.
        const int next = coordinator_of(*agreement);
        if (member > next) continue;
        if (next == agreement->call.rank)
            send_to_all(*agreement, Says::decision, -1, agreement->decision);
        else
            send(*agreement, next, Says::decision, -1, agreement->decision);
    }
}

// --- what follows --------------------------------------------------------------------------------

void Agreements::look(Agreement& agreement) {
    if (!agreement.entered || agreement.decided) return;
    const int coordinator = coordinator_of(agreement);
    if (agreement.joined != coordinator) join(agreement, coordinator);
    if (coordinator == agreement.call.rank) coordinate(agreement);
}

void Agreements::join(Agreement& agreement, int coordinator) {
    agreement.joined = coordinator;
    const bool has_proposal = agreement.taken.epoch >= 0;
    const Decision& mine = has_proposal ? agreement.taken.decision : agreement.call.mine;
    if (coordinator != agreement.call.rank)
        return send(agreement, coordinator, Says::contribution, agreement.taken.epoch, mine);
    agreement.heard[static_cast<std::size_t>(coordinator)] = Said{agreement.taken.epoch, mine};
    // A member across the network that this one has never spoken to is not known to be lost otherwise.
    for (int member = 0; member < agreement.size(); ++member)
        if (!context_.endpoints.to(agreement.peer(member)).facts.shared_memory &&
            member != coordinator)
            send(agreement, member, Says::question, -1, {});
}

void Agreements::coordinate(Agreement& agreement) {
    const auto all = [&](const auto& has) {
        for (int member = 0; member < agreement.size(); ++member)
            if (!has(static_cast<std::size_t>(member)) && !is_gone(agreement, member)) return false;
        return true;
    };
    if (!agreement.proposed) {
        if (!all([&](std::size_t member) { return agreement.heard[member].has_value(); })) return;
        agreement.proposed = true;
        agreement.taken = {agreement.call.rank, make_proposal(agreement)};
        agreement.has_taken[static_cast<std::size_t>(agreement.call.rank)] = true;
        send_to_all(agreement, Says::proposal, agreement.taken.epoch, agreement.taken.decision);
    }
    if (!all([&](std::size_t member) { return agreement.has_taken[member]; })) return;
    Decision decision = agreement.taken.decision;
    decide(agreement, std::move(decision));
}

Decision Agreements::make_proposal(Agreement& agreement) {
    const Said* latest = nullptr;
    for (const std::optional<Said>& each : agreement.heard)
        if (each && each->epoch >= 0 && (latest == nullptr || each->epoch > latest->epoch))
            latest = &*each;
    if (latest != nullptr) return latest->decision;
    Decision together = agreement.call.mine;
    for (const std::optional<Said>& each : agreement.heard) {
        if (!each) continue;
        together.flags &= each->decision.flags;
        together.value = std::max(together.value, each->decision.value);
        together.failed.unite(each->decision.failed);
        together.acknowledged.intersect(each->decision.acknowledged);
    }
    for (int member = 0; member < agreement.size(); ++member)
        if (is_gone(agreement, member)) together.failed.add(member);
    if (agreement.call.make_value) together.value = agreement.call.make_value();
    return together;
}

void Agreements::decide(Agreement& agreement, Decision decision) {
    agreement.decided = true;
    agreement.decision = std::move(decision);
    if (coordinator_of(agreement) == agreement.call.rank)
        send_to_all(agreement, Says::decision, -1, agreement.decision);
    forget_before(agreement.key);
}

}  // namespace gantry::faults
