// SPDX-License-Identifier: BSD-3-Clause
//
// Windows: all windows of one engine. It delivers one-sided messages to them, and resumes tasks that
// wait for something in memory: a lock word, a counter.
#pragma once

#include "p2p/messenger.hpp"
#include "rma/channels.hpp"
#include "rma/window.hpp"

#include <functional>
#include <unordered_map>

namespace gantry::rma {

class Windows {
  public:
    // Both outlive this. The context delivers one-sided messages here from now on.
    Windows(transfer::Context& context, p2p::Messenger& messenger);
    ~Windows();
    Windows(const Windows&) = delete;
    Windows& operator=(const Windows&) = delete;

    // Everybody of the group calls it. The group's context is nobody else's.
    Task<Status> create(Executor& executor, p2p::Group group, Wanted wanted,
                        std::unique_ptr<Window>* made);

    // Looks at what tasks wait for; how much happened.
    int progress() { return by_id_.empty() ? 0 : turn(); }
    // Whether peers may want something of a window although the program makes no call.
    bool pending() const { return !by_id_.empty(); }
    bool idle() const;

    transfer::Context& context;
    p2p::Messenger& messenger;
    Channels channels;
    Executor& executor() { return context.executor; }
    const Status& lost(int peer) { return context.endpoints.to(peer).lost; }

    // Goes on when `condition` holds. It is asked at every progress().
    Task<Status> until(Executor& executor, std::function<bool()> condition);

    // Operations that wait for answers.
    std::uint64_t await_answer(Operation& operation);
    Operation* waiting_for(std::uint64_t id) const;
    void answered(std::uint64_t id) { awaiting_answers_.erase(id); }
    const std::unordered_map<std::uint64_t, Operation*>& awaiting_answers() const {
        return awaiting_answers_;
    }

  private:
    friend class Window;
    struct Waiter : Link<Waiter> {
        Waiter(Executor& executor, std::function<bool()> of)
            : condition(std::move(of)), holds(executor) {}
        std::function<bool()> condition;
        Completion holds;
    };
    int turn();
    template <wire::Kind... kinds>
    void register_kinds();
    template <wire::Kind kind>
    void on_message(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void arrive_too_late(int from, wire::Kind kind, transport::ConstSpan payload);
    void on_peer_lost(int peer, const Status& why);

    std::unordered_map<std::uint32_t, Window*> by_id_;
    int made_ = 0;
    IntrusiveList<Waiter> waiters_;
    std::unordered_map<std::uint64_t, Operation*> awaiting_answers_;
    std::uint64_t last_id_ = 0;
};

template <class Header>
Status Window::send(int to, wire::Kind kind, Header header, transport::ConstSpan payload) {
    header.head.window = id();
    header.head.from = rank();
    return windows.channels.send(target(to).peer, kind, header, payload);
}

}  // namespace gantry::rma
