// SPDX-License-Identifier: BSD-3-Clause
//
// Contexts that were revoked, and receives that might wait for a lost rank.
//
// On a revoked context nothing is started, what waits is given up, and what still comes is refused: its
// sender is told, so a send that no receive had taken ends there, too. What a receive has taken goes on
// to its end, since both of its ranks live or one of them is lost.
//
// A receive from any source of which a possible sender is lost is *pending*: it is done, with
// MPIX_ERR_PROC_FAILED_PENDING, for whoever looks at it, and posted all the same. It can be matched, and
// waits again once the program has acknowledged the loss.
#include "p2p/messages.hpp"

#include <algorithm>

namespace gantry::p2p {
Status revoked_status() {
    return failure(MPIX_ERR_REVOKED,
                   "the communicator is revoked: only MPIX_Comm_shrink and MPIX_Comm_agree work");
}

namespace {

bool has_member(const Group& group, int peer) {
    return std::ranges::find(group.peers, peer) != group.peers.end();
}

}  // namespace

void end_if_pending(Status& failed) {
    if (failed.error_class() == MPIX_ERR_PROC_FAILED_PENDING)
        failed = Status::make(MPIX_ERR_PROC_FAILED, std::string(failed.text()));
}

Status Messages::revoked(const Group& group) const {
    return is_revoked(group.context) ? revoked_status() : success();
}

bool Messages::is_revoked(std::uint32_t of) const {
    return std::ranges::find(revoked_contexts, base_context(of)) != revoked_contexts.end();
}

void Messages::revoke(std::uint32_t its_context) {
    const std::uint32_t base = base_context(its_context);
    if (is_revoked(base)) return;
    revoked_contexts.push_back(base);
    is_any_revoked = true;
    context.node_segment.revoke(base, base_context(~0u), revoked_status());
    for (Request* receive : matcher.withdraw_of(base))
        finish_request(*receive, revoked_status());
    for (std::unique_ptr<Incoming>& message : matcher.take_of(base))
        drop(std::move(message), revoked_status());
}

// Of a message that no receive will take.
void Messages::drop(std::unique_ptr<Incoming> message, const Status& why) {
    if (message->rendezvous) return refuse(std::move(message), why);
    message->failure = why;
    give_back(*message);
}

void Messages::keep_or_drop(std::unique_ptr<Incoming> message) {
    if (is_revoked(message->envelope.context)) return drop(std::move(message), revoked_status());
    matcher.keep(std::move(message));
}

void Messages::on_reason(int, transport::ConstSpan header, transport::ConstSpan) {
    const auto said = wire::read<Reason>(header);
    for (Reason& each : reasons) {
        if (each.context != said.context) continue;
        each.error_class = said.error_class;
        return;
    }
    reasons.push_back(said);
}

// Of a collective: why nothing comes from some rank.
static Status why_bad_news(const Messages& messages, const Group& group) {
    for (const int peer : messages.losses)
        if (has_member(group, peer))
            return failure(MPIX_ERR_PROC_FAILED, "rank {} is lost, so the operation failed", peer);
    for (const Reason& each : messages.reasons)
        if (each.context == base_context(group.context))
            return Status::make(each.error_class,
                                "the operation failed on another rank: it lost one, or "
                                "heard that the communicator is revoked");
    return success();
}

Status Messages::unacknowledged(const Group& group) {
    if (!group.is_of_program()) return why_bad_news(*this, group);
    for (std::size_t i = group.acknowledged; i < losses.size(); ++i)
        if (has_member(group, losses[i]))
            return failure(MPIX_ERR_PROC_FAILED_PENDING,
                           "rank {} is lost, from which this receive from any source might be; "
                           "MPIX_Comm_failure_ack lets it wait for the others",
                           losses[i]);
    return success();
}

void Messages::pend_if_unacknowledged(Request& receive) {
    if (!receive.group->is_of_program()) return;
    if (Status pending = unacknowledged(*receive.group); !pending.ok())
        receive.complete(std::move(pending));
}

void Messages::unpend_acknowledged(const Group& group) {
    if (!unacknowledged(group).ok()) return;
    matcher.each_any([&group](Request& receive) {
        if (receive.group == &group) receive.go_on();
    });
}

void Messenger::revoke(std::uint32_t context) {
    messages_->revoke(context);
}

bool Messenger::is_revoked(std::uint32_t context) const {
    return messages_->is_revoked(context);
}

const std::vector<int>& Messenger::losses() const {
    return messages_->losses;
}

void Messenger::acknowledged(const Group& group) {
    messages_->unpend_acknowledged(group);
}

}  // namespace gantry::p2p
