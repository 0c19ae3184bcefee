// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice's copies: what they cost on the described machine, and their effect at their end.
#include "device/fake/device.hpp"

#include "device/kernels/copy_many.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gantry::device::fake {
namespace {

using model::Operation;

bool due(int& countdown) {
    return countdown > 0 && --countdown == 0;
}

}  // namespace

void FakeDevice::copy(const Copy& copy, Completion& done) {
    if (copy.engine == Engine::bar) return done.complete(copy_by_bar(copy));
    if (!copy.parts.empty()) return copy_parts(copy, done);
    ++in_flight_;
    if (copy.engine != Engine::fused || !goes_with_others(copy)) {
        const std::optional<Ends> ends = resident_ends(copy);
        const Copies copies = ends ? beside(copy.gpu, *ends) : Copies::alone;
        if (ends && resident(copy.gpu).takes(*ends, copies) &&
            resident(copy.gpu).stays(processor_.now()))
            return copy_by_resident(copy, *ends, copies, done);
        copy_now(copy, done, -1);
        if (ends)
            consider_resident(*ends, copies, copy.gpu);
        else if (const std::optional<Ends> flowing = cut_through_ends(copy);
                 flowing && copy.pieces.message > 0)
            launch_resident(copy.gpu,
                            resident(copy.gpu).consider_cut_through(
                                *flowing, processor_.now(), copy.pieces.message, neighbours_));
        return;
    }
    const bool suits_a_kernel =
        copy.bytes <= kMostFused || (copy.bytes <= kMostBetweenGpus && in_flight_ == 1);
    if (suits_a_kernel && resident(copy.gpu).stays(processor_.now()))
        return copy_by_resident(copy, Ends::devices, Copies::alone, done);
    Fused& fused = fused_of(copy);
    fused.waiting.push(copy, done);
    const int batch = free_batch(fused);
    if (batch >= 0 && fused.waiting.goes_at_once(flying(fused), launches_)) start(fused, batch);
}

void FakeDevice::flush_batch(BatchHint more) {
    for (Fused* fused : {&small_, &large_}) {
        const bool now = fused->waiting.goes_after_all(flying(*fused), more);
        if (const int batch = free_batch(*fused); now && batch >= 0) start(*fused, batch);
    }
}

void FakeDevice::start(Fused& fused, int batch) {
    while (flying_[batch] == 0 && !fused.waiting.empty()) {
        std::vector<FusedQueue::Item> together;
        fused.waiting.copy_first(fused.waiting.first_group(kernels::kCopiesPerLaunch), together);
        fused.waiting.drop_first(together.size());
        flying_[batch] = static_cast<int>(together.size());
        const Copy first = together.front().copy;
        const bool alone = together.size() == 1;
        if (alone)
            copy_now(first, *together.front().done, batch);
        else if (kernel_suits(first))
            launch(std::move(together), batch);
        else
            copy_in_one_call(together, batch);
        if (first.bytes <= (alone ? kMostBetweenGpus : kMostFused))
            consider_resident(Ends::devices, Copies::alone, first.gpu);
    }
}

bool FakeDevice::kernel_suits(const Copy& copy) const {
    const GpuFacts& facts = facts_[static_cast<std::size_t>(copy.gpu)];
    const bool would_wait =
        facts.queue_turn > 0 && neighbours_ != nullptr && neighbours_->use(facts.uuid);
    return launches_ == Launches::possible && sizes_of(copy) == Sizes::small &&
           (copy.bytes <= kMostFused || !would_wait);
}

void FakeDevice::let_kernels(bool copy, Nanoseconds stay) {
    launches_ = copy ? Launches::possible : Launches::none;
    idle_timeout_ = copy ? stay : 0;
    for (GpuFacts& facts : facts_)
        if (idle_timeout_ == 0) facts.let_no_kernel_stay();
}

ResidentModel& FakeDevice::resident(int gpu) {
    const auto index = static_cast<std::size_t>(gpu);
    while (residents_.size() <= index)
        residents_.emplace_back(facts_[residents_.size()], idle_timeout_);
    return residents_[index];
}

std::optional<Ends> FakeDevice::resident_ends(const Copy& copy) {
    if (copy.bytes > kMostBetweenGpus || copy.bytes == 0 || !copy.rows.empty()) return std::nullopt;
    Result<Place> from = place(copy.source, copy.bytes);
    Result<Place> to = place(copy.destination, copy.bytes);
    if (!from.ok() || !to.ok()) return std::nullopt;
    const auto goes = [&](const Place& device, const Place& host, Ends ends) {
        const bool through_slots = copy.bytes <= kMostThroughSlots;
        return device.kind == MemoryKind::device && device.gpu == first_gpu_ + copy.gpu &&
               (host.kind == MemoryKind::pinned ||
                (host.kind == MemoryKind::host && through_slots)) &&
               resident(copy.gpu).makes(ends);
    };
    const bool alone = in_flight_ == 1;
    if (from->kind == MemoryKind::device && to->kind == MemoryKind::device &&
        from->gpu != to->gpu && alone && resident(copy.gpu).makes(Ends::devices))
        return Ends::devices;
    if (copy.bytes > kMostOfResident) return std::nullopt;
    if (goes(*from, *to, Ends::to_host)) return Ends::to_host;
    if (goes(*to, *from, Ends::from_host)) return Ends::from_host;
    return std::nullopt;
}

// Whether others of that direction are under way.
Copies FakeDevice::beside(int gpu, Ends ends) const {
    const auto last = last_ends_.find({gpu, ends});
    const bool alone = ends == Ends::devices || last == last_ends_.end() ||
                       std::max(last->second.resident, last->second.usual) <= processor_.now();
    return alone ? Copies::alone : Copies::in_a_row;
}

Nanoseconds FakeDevice::behind_resident(int gpu, Operation operation, Nanoseconds end) {
    const bool out = operation == Operation::d2h || operation == Operation::pageable_d2h;
    const bool in = operation == Operation::h2d || operation == Operation::h2d_2d ||
                    operation == Operation::pageable_h2d;
    if (!out && !in) return end;
    LastEnds& last = last_ends_[{gpu, out ? Ends::to_host : Ends::from_host}];
    end = std::max(end, last.resident);
    last.usual = std::max(last.usual, end);
    return end;
}

void FakeDevice::consider_resident(Ends ends, Copies copies, int gpu) {
    launch_resident(gpu, resident(gpu).consider(ends, copies, processor_.now(), neighbours_));
}

void FakeDevice::launch_resident(int gpu, bool pays) {
    if (!pays) return;
    ++counts_.resident_launches, ++resident_.launches;
    processor_.spend(gpus_.machine().gpu.calls.launch);
    resident(gpu).launch(processor_.now(), gpus_.machine().gpu);
}

std::optional<Ends> FakeDevice::cut_through_ends(const Copy& copy) {
    if (copy.pieces.size == 0 || copy.bytes == 0 || copy.bytes > kMostCutThrough)
        return std::nullopt;
    Result<Place> from = place(copy.source, copy.bytes);
    Result<Place> to = place(copy.destination, copy.bytes);
    if (!from.ok() || !to.ok()) return std::nullopt;
    const auto goes = [&](const Place& device, const Place& host) {
        return device.kind == MemoryKind::device && device.gpu == first_gpu_ + copy.gpu &&
               host.kind == MemoryKind::pinned;
    };
    if (goes(*from, *to)) return Ends::to_host;
    if (goes(*to, *from)) return Ends::from_host;
    return std::nullopt;
}

// Each piece lies there, and is told, at its own time; the copy ends with the last. One that fails
// does so halfway.
bool FakeDevice::cut_through(const Copy& copy, Completion* done) {
    if (done == nullptr) {
        const Ends asked = copy.engine == Engine::d2h ? Ends::to_host : Ends::from_host;
        return std::any_of(residents_.begin(), residents_.end(), [&](const ResidentModel& each) {
            return each.cuts_through(asked, processor_.now());
        });
    }
    const std::optional<Ends> ends = cut_through_ends(copy);
    if (!ends || !resident(copy.gpu).cuts_through(*ends, processor_.now())) return false;
    const bool out = *ends == Ends::to_host;
    if (out ? !resident(copy.gpu).cut_through_pays(copy.bytes)
            : resident(copy.gpu).has_backlog(processor_.now()))
        return false;
    ++in_flight_;
    ++counts_.resident_copies, ++resident_.copies;
    if ((out || copy.pieces.cut_through) && copy.pieces.message > 0) ++counts_.cuts_through;
    const Place source = place(copy.source, copy.bytes).value();
    const Place sink = place(copy.destination, copy.bytes).value();
    Nanoseconds extra = 0;
    const bool never = hangs(extra);
    const Status status = fault_of(copy);
    LastEnds& last = last_ends_[{copy.gpu, *ends}];
    std::uint32_t number = copy.number;
    resident(copy.gpu).cut_through(
        *ends, processor_.now(), copy, gpus_.machine().gpu,
        [&](Bytes begin, Bytes bytes, Nanoseconds end) {
            last.resident = std::max({end + extra, last.usual, last.resident});
            if (never || (!status.ok() && begin > copy.bytes / 2)) return;
            std::uint32_t* const word = out ? copy.pieces.word(begin / copy.pieces.size) : nullptr;
            gpus_.timeline().at(last.resident, [this, to = sink.bytes + begin,
                                                from = source.bytes + begin, bytes, word, number] {
                if (dead_) return;
                gpus_.timeline().note(static_cast<std::uint64_t>(rank_), bytes);
                std::memmove(to, from, bytes);
                if (word != nullptr) *word = number;
                if (on_end) on_end();
            });
        });
    if (never) {
        never_end_.push_back(done);
        return true;
    }
    gpus_.timeline().at(last.resident, [this, done, status] {
        if (dead_) return never_end_.push_back(done);
        finish({done, status, -1, true});
    });
    return true;
}

void FakeDevice::copy_by_resident(const Copy& copy, Ends ends, Copies copies, Completion& done) {
    Result<Place> from = place(copy.source, copy.bytes);
    Result<Place> to = place(copy.destination, copy.bytes);
    if (!from.ok() || !to.ok()) {
        finish({&done, (from.ok() ? to : from).status().with("fake copy")});
        return;
    }
    ++counts_.resident_copies, ++resident_.copies;
    if (from->kind == MemoryKind::host || to->kind == MemoryKind::host)
        processor_.spend(gpus_.machine().host.memcpy.time(copy.bytes));  // into or out of slots
    // Told behind those that are under way already.
    LastEnds& last = last_ends_[{copy.gpu, ends}];
    const Nanoseconds end = last.resident = std::max(
        resident(copy.gpu).copy(ends, copies, processor_.now(), copy.bytes, gpus_.machine().gpu),
        last.usual);
    Copy made = copy;
    made.word = nullptr;  // it writes no words but its own
    end_at(end, made, from.value(), to.value(), done, -1, true);
}

model::Work FakeDevice::work_of(const Copy& copy, const Place& source, const Place& sink) const {
    const bool from_device = source.kind == MemoryKind::device;
    const bool to_device = sink.kind == MemoryKind::device;
    model::Work work{Operation::d2d, copy.bytes, 1, 0};
    if (from_device && to_device) {
        const bool gets = sink.gpu == first_gpu_ + copy.gpu;
        work.operation = source.gpu == sink.gpu ? Operation::d2d
                         : gets                 ? Operation::peer_get
                                                : Operation::peer;
    } else if (from_device) {
        work.operation = sink.kind == MemoryKind::host ? Operation::pageable_d2h : Operation::d2h;
    } else {
        RowsIntoSharedGpu shared(facts_[static_cast<std::size_t>(copy.gpu)]);
        const bool rows = copy.engine == Engine::h2d_2d || shared.suit(copy.bytes, neighbours_);
        work.operation = source.kind == MemoryKind::host ? Operation::pageable_h2d
                         : rows                          ? Operation::h2d_2d
                                                         : Operation::h2d;
        work.rows = rows ? 2 : 1;
    }
    return work;
}

void FakeDevice::copy_now(const Copy& copy, Completion& done, int batch) {
    if (!copy.rows.empty()) return copy_rows(copy, done);
    const bool flag = copy.notice == Notice::flag || (batch >= 0 && copy.bytes <= kMostFused);
    processor_.spend(gpus_.machine().gpu.calls.copy);
    const Result<Place> from = place(copy.source, copy.bytes);
    const Result<Place> to = place(copy.destination, copy.bytes);
    if (!from.ok() || !to.ok()) {
        finish({&done, (from.ok() ? to : from).status().with("fake copy"), batch});
        return;
    }
    const Place source = from.value();
    const Place sink = to.value();
    model::Interval interval;
    if (source.kind != MemoryKind::device && sink.kind != MemoryKind::device) {
        // The calling thread copies.
        ++counts_.host_copies;
        processor_.spend(gpus_.machine().host.memcpy.time(copy.bytes));
        interval = {processor_.now(), processor_.now()};
    } else {
        const model::Work work = work_of(copy, source, sink);
        ++counts_.copies[static_cast<int>(work.operation)];
        counts_.bytes[static_cast<int>(work.operation)] += copy.bytes;
        interval = reserve(copy.gpu, work);
        interval.end = behind_resident(copy.gpu, work.operation, interval.end);
    }
    end_at(interval.end, copy, source, sink, done, batch, flag);
}

void FakeDevice::end_at(Nanoseconds end, const Copy& copy, const Place& source, const Place& sink,
                        Completion& done, int batch, bool flag) {
    if (hangs(end)) return never_end_.push_back(&done);
    const Status status = fault_of(copy);
    const Bytes bytes = copy.bytes;
    std::uint32_t* const word = status.ok() ? copy.word : nullptr;
    const std::uint32_t number = copy.number;
    gpus_.timeline().at(end, [this, source, sink, bytes, &done, status, batch, flag, word, number] {
        if (dead_) return never_end_.push_back(&done);
        gpus_.timeline().note(static_cast<std::uint64_t>(rank_), bytes);
        if (status.ok()) std::memmove(sink.bytes, source.bytes, bytes);
        if (word != nullptr) *word = number;
        finish({&done, status, batch, flag});
    });
}

model::Interval FakeDevice::reserve(int gpu, const model::Work& work) {
    const Gpus::Reserved reserved = gpus_.reserve(first_gpu_ + gpu, work, rank_, processor_.now());
    if (reserved.turn) ++counts_.turns;
    return reserved.interval;
}

bool FakeDevice::hangs(Nanoseconds& end) {
    if (!due(faults.hang_copy)) return false;
    end += faults.hang_for;
    return faults.hang_for == 0;
}

Status FakeDevice::fault_of(const Copy& copy) {
    if (!due(faults.fail_copy) && !faults.fail_every_copy) return success();
    return failure(
        MPI_ERR_OTHER,
        "fake copy of {} bytes on GPU {}: CUDA_ERROR_ILLEGAL_ADDRESS (a fault set by the test)",
        copy.bytes, copy.gpu);
}

void FakeDevice::launch(std::vector<FusedQueue::Item> together, int batch) {
    ++counts_.launches;
    processor_.spend(gpus_.machine().gpu.calls.launch);
    Bytes bytes = 0;
    std::vector<Status> faults_of;
    for (const FusedQueue::Item& each : together) {
        bytes += each.copy.bytes;
        faults_of.push_back(fault_of(each.copy));
    }
    const model::Gpu& gpu = gpus_.machine().gpu;
    model::Interval interval =
        reserve(together.front().copy.gpu, {Operation::kernel, bytes, 1, 256 * together.size()});
    interval.end += gpu.peer.rate.time(bytes);
    gpus_.timeline().at(interval.end, [this, together = std::move(together),
                                       faults_of = std::move(faults_of), batch] {
        for (std::size_t i = 0; i < together.size(); ++i) {
            const FusedQueue::Item& each = together[i];
            if (dead_) {
                never_end_.push_back(each.done);
                continue;
            }
            const Result<Place> from = place(each.copy.source, each.copy.bytes);
            const Result<Place> to = place(each.copy.destination, each.copy.bytes);
            Status status = from.ok() ? to.status() : from.status();
            if (from.ok() && to.ok()) {
                gpus_.timeline().note(static_cast<std::uint64_t>(rank_), each.copy.bytes);
                std::memmove(to.value().bytes, from.value().bytes, each.copy.bytes);
                status = faults_of[i];
            }
            finish({each.done, status, batch, true});
        }
    });
}

// They run one behind the other and end together.
void FakeDevice::copy_in_one_call(const std::vector<FusedQueue::Item>& together, int batch) {
    ++counts_.calls_for_several;
    const model::CallCost& calls = gpus_.machine().gpu.calls;
    processor_.spend(calls.copy +
                     static_cast<Nanoseconds>(together.size() - 1) * calls.further_copy);
    struct Ready {
        FusedQueue::Item item;
        Place source, sink;
    };
    std::vector<Ready> ready;
    Nanoseconds end = processor_.now();
    for (const FusedQueue::Item& each : together) {
        const Result<Place> from = place(each.copy.source, each.copy.bytes);
        const Result<Place> to = place(each.copy.destination, each.copy.bytes);
        if (!from.ok() || !to.ok()) {
            finish({each.done, (from.ok() ? to : from).status().with("fake copy"), batch});
            continue;
        }
        model::Work work = work_of(each.copy, from.value(), to.value());
        work.further = !ready.empty();
        ++counts_.copies[static_cast<int>(work.operation)];
        counts_.bytes[static_cast<int>(work.operation)] += each.copy.bytes;
        end = reserve(each.copy.gpu, work).end;
        ready.push_back({each, from.value(), to.value()});
    }
    const bool flag = together.back().copy.notice == Notice::flag;
    for (const Ready& each : ready)
        end_at(end, each.item.copy, each.source, each.sink, *each.item.done, batch, flag);
}

int FakeDevice::progress() {
    ++counts_.looks;
    int completed = 0;
    while (!finished_.empty() && !faults.blind) {
        const Finished finished = finished_.front();
        finished_.pop_front();
        --in_flight_;
        ++completed;
        if (finished.batch >= 0) --flying_[finished.batch];
        processor_.spend(finished.flag ? gpus_.machine().host.flag
                                       : gpus_.machine().gpu.calls.event_query);
        finished.done->complete(finished.status);
    }
    for (Fused* fused : {&small_, &large_}) {
        const bool now = fused->waiting.goes_now(flying(*fused), launches_);
        if (const int batch = free_batch(*fused); now && batch >= 0) start(*fused, batch);
    }
    return completed;
}

}  // namespace gantry::device::fake
