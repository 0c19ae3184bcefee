// SPDX-License-Identifier: BSD-3-Clause
//
// How the copies of a context end when the context does: abandoned with it, or waited for.
#include "device/cuda/copies.hpp"
#include "device/cuda/streams.hpp"

#include <utility>

namespace gantry::device::cuda {

// Streams and events died with their context: the handles are forgotten, not destroyed.
void Streams::abandon(CUresult why) {
    lost_ = true;
    flags_.abandon();
    resident_.abandon();
    small_.abandon(why);
    large_.abandon(why);
    together_.abandon(why);
    row_kernel_.abandon();
    reductions_.abandon();
    free_events_.clear();
    for (QueueState& queue : queues_) {
        queue.stream = nullptr;
        while (!queue.pending.empty())
            abandon_head(queue, why);
        queue.taken = {};
    }
}

void Streams::abandon_head(QueueState& queue, CUresult why) {
    Pending& head = queue.pending.front();
    if (head.by == By::nobody) {
        complete_head(queue, std::move(head.failure));
    } else if (head.by == By::stream) {
        head.event = nullptr;
        complete_head(queue, driver_.failed("the context was destroyed during a copy", why,
                                            describe(head.copy)));
    } else if (std::optional<Status> end = queue.taken.take_end()) {
        complete_head(queue, std::move(*end));
    } else if (head.reduction != nullptr || !head.rows.empty()) {
        complete_head(queue, context_destroyed(head.copy));
    } else {
        unstarted_.push_back({head.copy, head.done});
        queue.pending.pop_front();
        --in_flight_;
    }
}

std::vector<FusedQueue::Item> Streams::take_unstarted() {
    std::vector<FusedQueue::Item> all = small_.take_unstarted();
    for (const FusedQueue::Item& item : large_.take_unstarted())
        all.push_back(item);
    for (const FusedQueue::Item& item : std::exchange(unstarted_, {}))
        all.push_back(item);
    return all;
}

void Streams::close() {
    if (!lost_) close_all();
    for (const FusedQueue::Item& item : take_unstarted())
        item.done->complete(context_destroyed(item.copy));
}

void Streams::close_all() {
    resident_.launch_no_more();
    while (!lost_ && resident_.pending())
        progress();
    if (lost_) return;
    small_.close();
    large_.close();
    const Current current(driver_, context_);
    if (!current.ok()) {
        abandon(current.result());
        return;
    }
    resident_.close();
    together_.close();
    flags_.close();
    for (QueueState& queue : queues_) {
        if (queue.stream == nullptr) continue;
        if (!queue.pending.empty()) driver_.call(driver_.cu.cuStreamSynchronize, queue.stream);
        while (!lost_ && !queue.pending.empty() && finish_head(queue)) {
        }
        if (lost_) return;
        driver_.call(driver_.cu.cuStreamDestroy_v2, std::exchange(queue.stream, nullptr));
    }
    row_kernel_.close();  // nothing reads its tables any more
    reductions_.close();
    for (CUevent event : std::exchange(free_events_, {}))
        driver_.call(driver_.cu.cuEventDestroy_v2, event);
    lost_ = true;
}

}  // namespace gantry::device::cuda
