// SPDX-License-Identifier: BSD-3-Clause
#include "rma/windows.hpp"

#include "base/log.hpp"
#include "p2p/wire.hpp"

namespace gantry::rma {

Windows::Windows(transfer::Context& its_context, p2p::Messenger& its_messenger)
    : context(its_context), messenger(its_messenger), channels(its_context) {
    register_kinds<wire::kPut, wire::kGet, wire::kAccumulate, wire::kFetch, wire::kCompareAndSwap,
                   wire::kAnswer, wire::kLayout, wire::kFlush, wire::kExecuted, wire::kLock,
                   wire::kGranted, wire::kUnlock, wire::kPost, wire::kComplete, wire::kGetInto,
                   wire::kPuts, wire::kSettle, wire::kRendezvousPut, wire::kPutEnded,
                   wire::kRendezvousGet, wire::kAnswerFollows, wire::kLeft, wire::kLockRefused>();
    context.messages.tell_of_losses<&Windows::on_peer_lost>(*this);
}

Windows::~Windows() = default;

template <wire::Kind... kinds>
void Windows::register_kinds() {
    (context.messages.handle<&Windows::on_message<kinds>>(kinds, *this), ...);
}

template <wire::Kind kind>
void Windows::on_message(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    channels.arrive(from, kind, header, payload,
                    [this, from](wire::Kind its_kind, transport::ConstSpan its_header,
                                 transport::ConstSpan its_payload) {
                        wire::Head head;
                        std::memcpy(&head, its_header.data(), sizeof head);
                        const auto found = by_id_.find(head.window);
                        if (found == by_id_.end())
                            return arrive_too_late(from, its_kind, its_payload);
                        found->second->inbound.arrive(head.from, its_kind, its_header, its_payload);
                    });
}

// Its window ended here, after a failure: who still says something of it needs no answer. Who announced
// bytes waits for one.
void Windows::arrive_too_late(int from, wire::Kind kind, transport::ConstSpan payload) {
    log::debug("rma: a message of kind {} to a window that ended", static_cast<int>(kind));
    if (kind != wire::kRendezvousPut && kind != wire::kAnswerFollows) return;
    messenger.refuse(messenger.take_announced(from, wire::read<p2p::wire::Rts>(payload)),
                     failure(MPI_ERR_WIN, "the window has ended at its target"));
}

void Windows::on_peer_lost(int peer, const Status& why) {
    for (const auto& [id, window] : by_id_)
        window->on_peer_lost(peer, why);
}

int Windows::turn() {
    int events = 0;
    for (const auto& [id, window] : by_id_) {
        if (window->locks.anybody_waits()) events += window->locks.grant_locks();
        if (window->origin.serve_errand()) ++events;
    }
    for (Waiter* each = waiters_.front(); each != nullptr;) {
        Waiter& waiter = *each;
        each = waiters_.next(each);
        if (!waiter.condition()) continue;
        waiter.unlink();
        waiter.holds.complete(success());
        ++events;
    }
    if (events > 0) events += executor().run_ready();
    return events;
}

bool Windows::idle() const {
    for (const auto& [id, window] : by_id_)
        if (!window->idle()) return false;
    return awaiting_answers_.empty();
}

Task<Status> Windows::until(Executor& its_executor, std::function<bool()> condition) {
    if (condition()) co_return success();
    Waiter waiter(its_executor, std::move(condition));
    waiters_.push_back(waiter);
    Status held = co_await waiter.holds;
    co_return held;
}

std::uint64_t Windows::await_answer(Operation& operation) {
    operation.id = ++last_id_;
    awaiting_answers_.emplace(operation.id, &operation);
    return operation.id;
}

Operation* Windows::waiting_for(std::uint64_t id) const {
    const auto found = awaiting_answers_.find(id);
    return found != awaiting_answers_.end() ? found->second : nullptr;
}

Task<Status> Windows::create(Executor& its_executor, p2p::Group group, Wanted wanted,
                             std::unique_ptr<Window>* made) {
    std::unique_ptr<Window> window(new (std::nothrow) Window(*this, std::move(group)));
    if (window == nullptr) co_return failure(MPI_ERR_NO_MEM, "out of memory for a window");
    // Known before others may use it.
    by_id_[window->id()] = window.get();
    Status opened = co_await window->open(its_executor, wanted);
    // Others may have made the window before a rank was lost.
    if (!opened.ok() && !window->refused_by_all) window->leave_early();
    opened = window->outcome(std::move(opened));
    GANTRY_CO_TRY(opened);
    *made = std::move(window);
    co_return success();
}

}  // namespace gantry::rma
