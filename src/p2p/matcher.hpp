// SPDX-License-Identifier: BSD-3-Clause
//
// Matcher: pairs envelopes with receives, as MPI 5.0 section 3.5 orders them. Above all transports
// there is this one. Envelopes are given to it in the sender's order; among the
// receives that fit, the oldest wins, also between named and any-source receives.
//
// Per context: posted receives by source and one list for any source (an order stamp decides
// between the two); unexpected messages by source and, for any-source receives, in order of
// arrival.
#pragma once

#include "base/ledger.hpp"
#include "p2p/incoming.hpp"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace gantry::p2p {

class Matcher {
  public:
    ~Matcher();
    // The oldest posted receive that takes this envelope, removed from the queues; null: none.
    Request* arrive(const wire::Envelope& envelope);
    // The one that would be removed.
    Request* first_for(const wire::Envelope& envelope);
    // Keeps a message nobody waits for. The matcher owns it until it is taken.
    void keep(std::unique_ptr<Incoming> message);

    // The oldest unexpected message that this receive takes, removed; null: none (post it then).
    std::unique_ptr<Incoming> take(std::uint32_t context, int source, int tag);
    const Incoming* find(std::uint32_t context, int source, int tag);
    // The newest unexpected message of that source, if it has that envelope; else null.
    Incoming* kept(const wire::Envelope& envelope);
    // The unexpected message that this rank of the job sent under that id, removed; null: none.
    std::unique_ptr<Incoming> take_sent(int peer, std::uint64_t send_id);
    void post(Request& receive);
    // Of a receive that is about to be posted: whether whatever comes next from its source and fits it
    // will be its own, as no older receive of the context could take it.
    bool would_be_next(const Request& receive);
    bool posted(const Request& receive) const { return receive.linked(); }
    void withdraw(Request& receive) {
        receive.unlink();
        waiting_.down();
        if (receive.location.on_device()) --waiting_on_devices_;
    }

    // Receives that name this peer (world rank), removed: it will never send again.
    std::vector<Request*> withdraw_from(int peer);
    // Of the receives from any source those that are to go, removed.
    std::vector<Request*> withdraw_any(const std::function<bool(const Request&)>& goes);
    // Receives and unexpected messages of a revoked context and those beside it, removed.
    std::vector<Request*> withdraw_of(std::uint32_t base);
    std::vector<std::unique_ptr<Incoming>> take_of(std::uint32_t base);
    template <class Visit>
    void each_any(const Visit& visit) {
        for (auto& [id, queues] : contexts_)
            for (Request* receive = queues->posted_any.next(nullptr); receive != nullptr;
                 receive = queues->posted_any.next(receive))
                visit(*receive);
    }
    const Level& unexpected() const { return unexpected_; }
    std::size_t waiting() const { return waiting_.now(); }  // receives that are posted
    const Level& receives_posted() const { return waiting_; }
    void begin_peaks_anew() {
        unexpected_.begin_anew();
        waiting_.begin_anew();
    }
    std::size_t waiting_on_devices() const { return waiting_on_devices_; }  // into device memory

  private:
    struct Context {
        std::vector<std::unique_ptr<IntrusiveList<Request>>> posted_by_source;
        IntrusiveList<Request> posted_any;
        std::vector<std::unique_ptr<IntrusiveList<Incoming, BySource>>> kept_by_source;
        IntrusiveList<Incoming, ByArrival> kept;
    };
    Context& context(std::uint32_t id);
    Incoming* search(Context& context, int source, int tag);
    std::unique_ptr<Incoming> remove(Incoming& message);
    template <class Goes>
    void withdraw_if(IntrusiveList<Request>& list, const Goes& goes, std::vector<Request*>& gone);

    std::unordered_map<std::uint32_t, std::unique_ptr<Context>> contexts_;
    Context* last_context_ = nullptr;
    std::uint32_t last_id_ = 0;
    std::uint64_t next_order_ = 0;
    Level unexpected_;
    Level waiting_;
    std::size_t waiting_on_devices_ = 0;
};

}  // namespace gantry::p2p
