// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/matcher.hpp"

namespace gantry::p2p {
namespace {

bool tag_fits(int wanted, int tag) {
    return wanted == MPI_ANY_TAG || wanted == tag;
}

// The list of that source, made at first use.
template <class List>
List& list_of(std::vector<std::unique_ptr<List>>& lists, int source) {
    const auto index = static_cast<std::size_t>(source);
    if (index >= lists.size()) lists.resize(index + 1);
    if (lists[index] == nullptr) lists[index] = std::make_unique<List>();
    return *lists[index];
}

Request* first_fitting(IntrusiveList<Request>& list, int tag) {
    for (Request* receive = list.next(nullptr); receive != nullptr; receive = list.next(receive))
        if (tag_fits(receive->tag, tag)) return receive;
    return nullptr;
}

}  // namespace

Matcher::~Matcher() {
    for (auto& [id, context] : contexts_) {
        while (Incoming* message = context->kept.pop_front()) {
            static_cast<Link<BySource>*>(message)->unlink();
            delete message;
        }
    }
}

Matcher::Context& Matcher::context(std::uint32_t id) {
    if (last_context_ != nullptr && last_id_ == id) return *last_context_;
    auto& slot = contexts_[id];
    if (slot == nullptr) slot = std::make_unique<Context>();
    last_id_ = id;
    last_context_ = slot.get();
    return *slot;
}

Request* Matcher::first_for(const wire::Envelope& envelope) {
    Context& queues = context(envelope.context);
    Request* named = first_fitting(list_of(queues.posted_by_source, envelope.source), envelope.tag);
    Request* any = first_fitting(queues.posted_any, envelope.tag);
    Request* oldest = named;
    if (named == nullptr || (any != nullptr && any->order < named->order)) {
        oldest = any;
        if (any != nullptr && any->done) [[unlikely]]
            any->go_on();  // it was pending (revoked.cpp)
    }
    return oldest;
}

Request* Matcher::arrive(const wire::Envelope& envelope) {
    Request* const oldest = first_for(envelope);
    if (oldest != nullptr) withdraw(*oldest);
    return oldest;
}

void Matcher::keep(std::unique_ptr<Incoming> message) {
    Context& queues = context(message->envelope.context);
    list_of(queues.kept_by_source, message->envelope.source).push_back(*message);
    queues.kept.push_back(*message.release());
    unexpected_.up();
}

Incoming* Matcher::search(Context& queues, int source, int tag) {
    if (source == MPI_ANY_SOURCE) {
        for (Incoming* m = queues.kept.next(nullptr); m != nullptr; m = queues.kept.next(m))
            if (tag_fits(tag, m->envelope.tag)) return m;
        return nullptr;
    }
    auto& list = list_of(queues.kept_by_source, source);
    for (Incoming* m = list.next(nullptr); m != nullptr; m = list.next(m))
        if (tag_fits(tag, m->envelope.tag)) return m;
    return nullptr;
}

std::unique_ptr<Incoming> Matcher::take(std::uint32_t id, int source, int tag) {
    if (unexpected_.now() == 0) return nullptr;
    Incoming* message = search(context(id), source, tag);
    return message != nullptr ? remove(*message) : nullptr;
}

std::unique_ptr<Incoming> Matcher::remove(Incoming& message) {
    static_cast<Link<BySource>&>(message).unlink();
    static_cast<Link<ByArrival>&>(message).unlink();
    unexpected_.down();
    return std::unique_ptr<Incoming>(&message);
}

std::unique_ptr<Incoming> Matcher::take_sent(int peer, std::uint64_t send_id) {
    for (auto& [id, queues] : contexts_)
        for (Incoming* m = queues->kept.next(nullptr); m != nullptr; m = queues->kept.next(m))
            if (m->peer == peer && (m->rendezvous ? m->rts.send_id : m->synchronous_id) == send_id)
                return remove(*m);
    return nullptr;
}

const Incoming* Matcher::find(std::uint32_t id, int source, int tag) {
    return unexpected_.now() == 0 ? nullptr : search(context(id), source, tag);
}

Incoming* Matcher::kept(const wire::Envelope& envelope) {
    Incoming* const newest =
        list_of(context(envelope.context).kept_by_source, envelope.source).back();
    return newest != nullptr && newest->envelope == envelope ? newest : nullptr;
}

void Matcher::post(Request& receive) {
    receive.order = next_order_++;
    waiting_.up();
    if (receive.location.on_device()) ++waiting_on_devices_;
    Context& queues = context(receive.context);
    if (receive.source == MPI_ANY_SOURCE)
        queues.posted_any.push_back(receive);
    else
        list_of(queues.posted_by_source, receive.source).push_back(receive);
}

bool Matcher::would_be_next(const Request& receive) {
    if (waiting_.now() == 0) return true;
    Context& queues = context(receive.context);
    return queues.posted_any.next(nullptr) == nullptr &&
           list_of(queues.posted_by_source, receive.source).next(nullptr) == nullptr;
}

template <class Goes>
void Matcher::withdraw_if(IntrusiveList<Request>& list, const Goes& goes,
                          std::vector<Request*>& gone) {
    for (Request* receive = list.next(nullptr); receive != nullptr;) {
        Request* following = list.next(receive);
        if (goes(*receive)) {
            withdraw(*receive);
            gone.push_back(receive);
        }
        receive = following;
    }
}

std::vector<Request*> Matcher::withdraw_from(int peer) {
    std::vector<Request*> gone;
    for (auto& [id, queues] : contexts_)
        for (auto& list : queues->posted_by_source)
            if (list != nullptr)
                withdraw_if(
                    *list, [peer](const Request& receive) { return receive.peer == peer; }, gone);
    return gone;
}

std::vector<Request*> Matcher::withdraw_of(std::uint32_t base) {
    const auto all = [](const Request&) { return true; };
    std::vector<Request*> gone;
    for (auto& [id, queues] : contexts_) {
        if (base_context(id) != base) continue;
        withdraw_if(queues->posted_any, all, gone);
        for (auto& list : queues->posted_by_source)
            if (list != nullptr) withdraw_if(*list, all, gone);
    }
    return gone;
}

std::vector<std::unique_ptr<Incoming>> Matcher::take_of(std::uint32_t base) {
    std::vector<std::unique_ptr<Incoming>> taken;
    for (auto& [id, queues] : contexts_)
        while (base_context(id) == base && queues->kept.front() != nullptr)
            taken.push_back(remove(*queues->kept.front()));
    return taken;
}

std::vector<Request*> Matcher::withdraw_any(const std::function<bool(const Request&)>& goes) {
    std::vector<Request*> gone;
    for (auto& [id, queues] : contexts_)
        withdraw_if(queues->posted_any, goes, gone);
    return gone;
}

}  // namespace gantry::p2p
