// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/streams.hpp"

#include "device/cuda/copies.hpp"

#include <mpi.h>

#include <cstring>
#include <utility>

namespace gantry::device::cuda {
namespace {

constexpr int kEventsAtOnce = 32;

Status failure_of_kernel(const Order& order) {
    if (order.reduction != nullptr)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} {}: no kernel can make it",
                       layout::name(order.reduction->operation), describe(order.copy));
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "rows {}: no kernel can move them",
                   describe(order.copy));
}

Order in_rows(const Order& order) {
    Order rows = order;
    rows.copy.engine = Engine::h2d_2d;
    return rows;
}

// Of a copy that a kernel may have, said before its memory can be gone.
Engine engine_of(Queue queue) {
    switch (queue) {
        case Queue::d2h: return Engine::d2h;
        case Queue::h2d: return Engine::h2d;
        case Queue::d2d: return Engine::d2d;
        case Queue::peer: break;
    }
    return Engine::peer;
}

// GPUs of a node with queues of their own; more share them, and wait for each other.
constexpr std::size_t kPeers = 16;

Ends ends_of(Queue queue) {
    return queue == Queue::d2h   ? Ends::to_host
           : queue == Queue::h2d ? Ends::from_host
                                 : Ends::devices;
}

}  // namespace

Streams::Streams(Driver& driver, const Context& context, const GpuFacts& facts,
                 const CopySettings& settings)
    : driver_(driver),
      context_(context),
      settings_(settings),
      rows_into_shared_gpu_(facts),
      queues_(static_cast<std::size_t>(Queue::peer) + 2 * kPeers),
      flags_(driver, queues_.size(), Flags::kCacheLine, settings.flags),
      resident_(driver, context, facts, settings),
      small_(driver, context, facts, settings, resident_, Sizes::small),
      large_(driver, context, facts, settings, resident_, Sizes::large),
      together_(driver, context, settings, resident_),
      row_kernel_(driver, context, facts, settings.kernels),
      reductions_(driver, context, settings.kernels) {}

void Streams::make_ready() {
    const Current current(driver_, context_);
    if (!current.ok()) return;
    (void)flags_.ready();
    small_.make_ready();
    resident_.make_ready();
    together_.make_ready();
    row_kernel_.make_ready();
    reductions_.make_ready();
}

std::size_t Streams::queue(const Order& order) const {
    std::size_t index = static_cast<std::size_t>(order.queue);
    // Copies to another GPU and from it use the two directions of one link: at once.
    if (order.queue == Queue::peer)
        index += 2 * (static_cast<std::size_t>(std::max(order.peer, 0)) % kPeers) + order.outwards;
    GANTRY_ASSERT(index < queues_.size());
    return index;
}

bool Streams::start(const Order& order, Completion& done) {
    if (lost_) return false;
    if (order.copy.engine == Engine::fused && goes_with_others(order.copy)) {
        FusedCopies& fused = sizes_of(order.copy) == Sizes::small ? small_ : large_;
        if (fused.has_a_way()) {
            if (!fused.start(order.copy, done)) abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
            return !lost_;
        }
    }
    const std::size_t index = queue(order);
    QueueState& queue = use(index);
    const Copies copies = queue.pending.empty() ? Copies::alone : Copies::in_a_row;
    const bool brief = order.reduction != nullptr && copies == Copies::alone &&
                       ResidentCopies::suits(*order.reduction);
    if (brief && resident_.take_reduction(*order.reduction, order.copy, queue.taken)) {
        push_taken(queue, order.copy, done);
        queue.pending.back().reduction = std::make_unique<KeptReduction>(*order.reduction);
        return true;
    }
    const Bytes items = order.rows_may_stay ? ResidentCopies::items_of_rows(order.copy) : 0;
    if (items > 0 && resident_.take_rows(order.copy, items, ends_of(order.queue), queue.taken)) {
        push_taken(queue, order.copy, done);
        Pending& pending = queue.pending.back();
        pending.rows.assign(order.copy.rows.begin(), order.copy.rows.end());
        pending.copy.rows = pending.rows;
        return true;
    }
    if (suits_a_kernel(order, copies)) {
        Copy copy = order.copy;
        if (copy.engine == Engine::automatic) copy.engine = engine_of(order.queue);
        if (resident_.take(copy, *order.resident, copies, queue.taken)) {
            push_taken(queue, copy, done);
            return true;
        }
    }
    return start_in_queue(order, index, brief || items > 0, done);
}

Streams::QueueState& Streams::use(std::size_t index) {
    QueueState& queue = queues_[index];
    if (!std::exchange(queue.used, true)) used_.push_back(index);
    return queue;
}

void Streams::push_taken(QueueState& queue, const Copy& copy, Completion& done) {
    queue.pending.push_back({&done, nullptr, 0, copy, {}, 0, By::resident, nullptr, nullptr});
    ++in_flight_;
}

bool Streams::cut_through(const Order& order, Completion& done) {
    if (lost_) return false;
    QueueState& queue = use(this->queue(order));
    if (!resident_.take_cut_through(order.copy, ends_of(order.queue), queue.taken)) return false;
    push_taken(queue, order.copy, done);
    return true;
}

bool Streams::suits_a_kernel(const Order& order, Copies copies) {
    if (!order.resident) return false;
    return order.resident->ends != Ends::devices ||
           (copies == Copies::alone && order.copy.bytes <= kMostBetweenGpus);
}

Issued Streams::issue_in(const QueueState& queue, const Order& order) {
    if (order.reduction != nullptr) {
        if (reductions_.start(*order.reduction, queue.stream)) return {CUDA_SUCCESS, 1, ""};
        return {CUDA_ERROR_NOT_SUPPORTED, 0, nullptr};
    }
    if (order.from_host && rows_into_shared_gpu_.suit(order.copy.bytes, settings_.neighbours))
        return issue(driver_, row_kernel_, in_rows(order), queue.stream);
    return issue(driver_, row_kernel_, order, queue.stream);
}

bool Streams::start_in_queue(const Order& order, std::size_t index, bool brief, Completion& done) {
    const Current current(driver_, context_);
    if (!current.ok()) {
        abandon(current.result());
        return false;
    }
    QueueState& queue = queues_[index];
    Issued issued{CUDA_SUCCESS, 0, "cuStreamCreate for a copy"};
    if (queue.stream == nullptr) issued.result = create_stream(driver_, queue.stream);
    const bool alone = queue.pending.empty();
    std::uint32_t flag = 0;
    if (issued.result == CUDA_SUCCESS) {
        if (alone && order.may_be_written) flag = write_word(order, index);
        if (flag == 0) issued = issue_in(queue, order);
    }
    Status failure;
    if (issued.result != CUDA_SUCCESS) {
        // A reset of the context leaves its handle valid and our streams dead.
        if (issued.started == 0 &&
            (is_lost(issued.result) || issued.result == CUDA_ERROR_INVALID_HANDLE)) {
            abandon(issued.result);
            return false;
        }
        failure = issued.call == nullptr
                      ? failure_of_kernel(order)
                      : driver_.failed(issued.call, issued.result, describe(order.copy));
        if (issued.started == 0) {
            done.complete(std::move(failure));
            return true;
        }
    }
    Pending pending{&done,         nullptr,   flag, order.copy, std::move(failure),
                    issued.tables, By::stream};
    const bool for_others = order.copy.word != nullptr;
    if (flag == 0 && alone && (for_others || order.copy.notice == Notice::flag) && flags_.ready())
        write_flag(index, pending);
    if (pending.flag == 0) pending.event = record(queue.stream);
    queue.pending.push_back(std::move(pending));
    ++in_flight_;
    const Copies copies = alone ? Copies::alone : Copies::in_a_row;
    if (suits_a_kernel(order, copies))
        resident_.consider(order.resident->ends, copies);
    else if (brief)
        resident_.consider(ends_of(order.queue), Copies::alone);
    else if (order.may_cut_through && order.copy.pieces.message > 0)
        resident_.consider_cut_through(ends_of(order.queue), order.copy.pieces.message);
    return true;
}

void Streams::write_flag(std::size_t index, Pending& pending) {
    QueueState& queue = queues_[index];
    const std::uint32_t next = queue.next_flag();
    const Copy& copy = pending.copy;
    if (copy.word == nullptr) {
        if (flags_.write(queue.stream, index, next)) pending.flag = next;
    } else if (flags_.write(queue.stream, device_address(copy.word), copy.number)) {
        pending.flag = copy.number;
        pending.word = copy.word;
    }
}

// What no kernel took goes by a copy engine, and keeps its place in the queue.
void Streams::start_untaken(std::size_t index) {
    QueueState& queue = queues_[index];
    const Current current(driver_, context_);
    if (!current.ok()) return abandon(current.result());
    CUresult refused = CUDA_SUCCESS;
    if (queue.stream == nullptr) refused = create_stream(driver_, queue.stream);
    if (refused != CUDA_SUCCESS) queue.stream = nullptr;
    int ended = queue.taken.told_later(), untaken = queue.taken.take_untaken();
    for (Pending& each : queue.pending) {
        if (each.by != By::resident || ended-- > 0) continue;
        if (untaken-- == 0) break;
        Issued issued{refused, 0, "cuStreamCreate for a copy"};
        Order order{each.copy, static_cast<Queue>(index)};
        order.from_host = order.queue == Queue::h2d && each.rows.empty();
        if (each.reduction != nullptr) order.reduction = &each.reduction->reduce;
        if (refused == CUDA_SUCCESS) issued = issue_in(queue, order);
        if (is_lost(issued.result) || issued.result == CUDA_ERROR_INVALID_HANDLE)
            return abandon(issued.result);
        if (issued.result != CUDA_SUCCESS) {
            each.failure = issued.call != nullptr
                               ? driver_.failed(issued.call, issued.result, describe(each.copy))
                               : failure_of_kernel(order);
        }
        each.tables = issued.tables;
        each.by = issued.started > 0 ? By::stream : By::nobody;
        if (issued.started > 0) each.event = record(queue.stream);
    }
}

// A word from the host needs no copy engine: the stream writes it, and the flag behind it, in one
// call. 8 bytes took 4.4 us so and 5.8 by copy and event on an H200; each further word 1 us more
// (docs/design/network-small.md). Returns what the flag will be; 0: it must be copied.
std::uint32_t Streams::write_word(const Order& order, std::size_t index) {
    const Bytes bytes = order.copy.bytes;
    const CUdeviceptr to = device_address(order.copy.destination);
    if ((bytes != 4 && bytes != 8) || to % bytes != 0 || !flags_.writes_words()) return 0;
    std::uint64_t word = 0;
    std::memcpy(&word, order.copy.source, bytes);
    QueueState& queue = queues_[index];
    const std::uint32_t flag = queue.next_flag();
    return flags_.write_behind_word(queue.stream, index, flag, to, word, bytes) ? flag : 0;
}

// As many as one message ever has copies in flight, so that which of them meet does not decide
// whether a later message has to create some.
void Streams::create_events() {
    for (int i = 0; i < kEventsAtOnce; ++i) {
        CUevent event = nullptr;
        if (driver_.call(driver_.cu.cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            return;
        free_events_.push_back(event);
    }
}

// Null when no event can be had; the copy's end is then seen by a query of the stream.
CUevent Streams::record(CUstream stream) {
    if (free_events_.empty()) create_events();
    if (free_events_.empty()) return nullptr;
    CUevent event = free_events_.back();
    free_events_.pop_back();
    if (driver_.call(driver_.cu.cuEventRecord, event, stream) == CUDA_SUCCESS) return event;
    driver_.call(driver_.cu.cuEventDestroy_v2, event);
    return nullptr;
}

// The head of that queue has a flag, and it shows.
bool Streams::flag_shows(std::size_t index) {
    const QueueState& queue = queues_[index];
    if (queue.pending.empty() || queue.pending.front().flag == 0) return false;
    const Pending& head = queue.pending.front();
    if (head.word == nullptr) return flags_.reached(index, head.flag);
    return __atomic_load_n(head.word, __ATOMIC_ACQUIRE) == head.flag;
}

// Whether the driver must be asked about the head: it has no flag, or none shows for long.
bool Streams::doubtful(QueueState& queue) const {
    if (queue.pending.empty() || queue.pending.front().by != By::stream) return false;
    if (queue.pending.front().flag == 0) return true;
    return queue.doubt.is_due();
}

// Told without asking the driver; false when there is nothing to tell.
bool Streams::tell_head(std::size_t index) {
    QueueState& queue = queues_[index];
    if (queue.pending.empty()) return false;
    if (queue.pending.front().by == By::resident) {
        std::optional<Status> end = queue.taken.take_end();
        if (!end) return false;
        complete_head(queue, std::move(*end));
        return true;
    }
    if (queue.pending.front().by == By::stream && !flag_shows(index)) return false;
    complete_head(queue, std::move(queue.pending.front().failure));
    return true;
}

std::optional<Status> Streams::Taken::take_end() {
    if (ended_ > 0) {
        --ended_;
        return success();
    }
    if (failed_ == 0) return std::nullopt;
    --failed_;
    return why_;
}

int Streams::progress() {
    const int before = in_flight_;
    const bool small_pending = small_.pending(), large_pending = large_.pending(),
               together_pending = together_.pending();
    if (resident_.pending()) resident_.progress();
    for (const std::size_t index : used_)
        if (queues_[index].taken.has_untaken() && !lost()) start_untaken(index);
    int fused = small_pending && !lost() ? small_.progress() : 0;
    if (large_pending && !lost()) fused += large_.progress();
    if (together_pending && !lost()) fused += together_.progress();
    if (lost()) {
        abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        return fused + before;
    }
    if (in_flight_ == 0) return fused;
    bool ask = false;
    // Who is told of an end may start the first copy of another queue.
    for (std::size_t each = 0; each < used_.size(); ++each) {
        const std::size_t index = used_[each];
        QueueState& queue = queues_[index];
        while (tell_head(index)) {
        }
        queue.ask = doubtful(queue);
        ask = ask || queue.ask;
    }
    if (!ask) return fused + before - in_flight_;
    const Current current(driver_, context_);
    if (!current.ok()) {
        abandon(current.result());
        return fused + before;
    }
    // Each question costs as much as telling of an end does: the first end is told of at once.
    for (std::size_t each = 0; each < used_.size(); ++each) {
        QueueState& queue = queues_[used_[each]];
        const int asked_at = in_flight_;
        while (!lost_ && queue.ask && !queue.pending.empty() && in_flight_ == asked_at &&
               finish_head(queue)) {
        }
        if (in_flight_ != asked_at) break;
    }
    return fused + before - in_flight_;
}

// False when the head is not done yet.
bool Streams::finish_head(QueueState& queue) {
    Pending& head = queue.pending.front();
    if (head.by != By::stream) return tell_head(static_cast<std::size_t>(&queue - queues_.data()));
    const CUresult result = head.event != nullptr
                                ? driver_.call(driver_.cu.cuEventQuery, head.event)
                                : driver_.call(driver_.cu.cuStreamQuery, queue.stream);
    if (result == CUDA_ERROR_NOT_READY) return false;
    if (is_lost(result)) {
        abandon(result);
        return true;
    }
    if (result == CUDA_SUCCESS) {
        complete_head(queue, std::move(head.failure));
        return true;
    }
    Status failure = driver_.failed(
        head.event != nullptr ? "cuEventQuery after a copy" : "cuStreamQuery after a copy", result,
        describe(head.copy));
    if (head.event == nullptr) {
        complete_head(queue, head.failure.ok() ? std::move(failure) : std::move(head.failure));
        return true;
    }
    // The event says nothing about the copy any more: from now on the stream tells.
    head.failure = std::move(failure);
    driver_.call(driver_.cu.cuEventDestroy_v2, std::exchange(head.event, nullptr));
    return true;
}

void Streams::complete_head(QueueState& queue, Status status) {
    const Pending head = std::move(queue.pending.front());
    queue.pending.pop_front();
    --in_flight_;
    if (head.event != nullptr) free_events_.push_back(head.event);
    row_kernel_.give_back(head.tables);
    head.done->complete(std::move(status));
}

}  // namespace gantry::device::cuda
