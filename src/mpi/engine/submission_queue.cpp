// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/submission_queue.hpp"

#include "mpi/engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace gantry::mpi {

Status SubmissionQueue::open() {
    if (open_) return success();
    std::array<p2p::Request*, kSlots> requests{};
    for (p2p::Request*& each : requests) {
        Result<p2p::Request*> made = engine_.messenger().create_request(p2p::RequestKind::send);
        if (!made.ok()) {
            for (p2p::Request* unused : requests)
                if (unused != nullptr) engine_.messenger().discard(unused);
            return made.status();
        }
        each = *made;
    }
    std::sort(requests.begin(), requests.end());
    for (std::size_t i = 0; i < kSlots; ++i) {
        Slot& slot = slots_[i];
        slot.function = work_ended;
        slot.box = this;
        slot.shown = requests[i];
        slot.shown->posted = &slot;
    }
    open_ = true;
    return success();
}

p2p::Request* SubmissionQueue::put(const Post& post) {
    if (!open_) return nullptr;
    for (std::size_t looked = 0; looked < kLooks; ++looked) {
        Slot& slot = slots_[cursor_++ % kSlots];
        // What the last user's end wrote is seen.
        if (slot.state.load(std::memory_order_acquire) != State::free) continue;
        slot.post = post;
        p2p::Request& shown = *slot.shown;
        shown.kind = post.kind;
        shown.done = false;
        shown.outcome = {};
        shown.status = {};
        return &shown;
    }
    return nullptr;
}

void SubmissionQueue::post(const p2p::Request& request) {
    Slot& slot = slot_of(request);
    slot.state.store(State::posted, std::memory_order_relaxed);
    const std::uint32_t next = posted_.load(std::memory_order_relaxed);
    order_[next % kSlots] = &slot;
    // Sequentially consistent: who finds nothing here after having cleared a mark that something
    // was left, or before falling asleep, is told by what follows (mpi/engine/progress_thread.cpp).
    posted_.store(next + 1);
}

p2p::Request* SubmissionQueue::ended_well(MPI_Request handle) const {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    const auto at = std::lower_bound(
        slots_.begin(), slots_.end(), address, [](const Slot& slot, std::uintptr_t value) {
            return reinterpret_cast<std::uintptr_t>(slot.shown) < value;
        });
    if (!open_ || at == slots_.end() || reinterpret_cast<std::uintptr_t>(at->shown) != address)
        return nullptr;
    if (at->state.load(std::memory_order_acquire) != State::ended) return nullptr;
    return at->shown->owner != nullptr && at->shown->status.ok() ? at->shown : nullptr;
}

int SubmissionQueue::start() {
    int starts = 0;
    for (; has_posts(); ++starts)
        start(*order_[started_++ % kSlots]);
    count_ += static_cast<std::uint64_t>(starts);
    return starts;
}

void SubmissionQueue::start(Slot& slot) {
    const Post& post = slot.post;
    Result<p2p::Request*> working =
        post.kind == p2p::RequestKind::send
            ? engine_.messenger().isend(*post.group, post.buffer, post.peer, post.tag, post.mode)
            : engine_.messenger().ireceive(*post.group, post.buffer, post.peer, post.tag);
    if (!working.ok()) return end(slot, working.status());
    slot.working = *working;
    if (slot.working->done)
        work_ended(slot);
    else
        slot.working->then(slot, engine_.executor());
}

void SubmissionQueue::work_ended(Resumable& waiting) {
    Slot& slot = static_cast<Slot&>(waiting);
    SubmissionQueue& box = *slot.box;
    p2p::Request* working = std::exchange(slot.working, nullptr);
    slot.shown->outcome = working->outcome;
    Status status = working->status;
    box.engine_.messenger().release(working);
    box.end(slot, p2p::unless_pending(std::move(status)));
}

void SubmissionQueue::end(Slot& slot, Status status) {
    slot.shown->complete(std::move(status));
    const bool abandoned = std::exchange(slot.abandoned, false);
    slot.state.store(abandoned ? State::free : State::ended, std::memory_order_release);
}

void SubmissionQueue::give_back(p2p::Request& request) {
    Slot& slot = slot_of(request);
    if (slot.state.load(std::memory_order_relaxed) == State::ended) {
        slot.state.store(State::free, std::memory_order_relaxed);
        return;
    }
    slot.abandoned = true;
    if (slot.working != nullptr) engine_.messenger().let_go_of_memory(*slot.working);
}

p2p::Request* SubmissionQueue::at_work(const p2p::Request& request) {
    return slot_of(request).working;
}

}  // namespace gantry::mpi
