// SPDX-License-Identifier: BSD-3-Clause
// Events. A record is an operation without duration in its stream; the event holds the latest one,
// a wait binds the record it finds. Times are modelled times. An interprocess event is two counters
// in the shared page: records enqueued and records reached.
#include "entry.hpp"
#include "faults.hpp"

namespace {

using simgpu::CaptureState;
using simgpu::Current;
using simgpu::current_context;
using simgpu::Driver;
using simgpu::Event;
using simgpu::EventSlot;
using simgpu::object_of;
using simgpu::Op;
using simgpu::OpKind;
using simgpu::OpRef;
using simgpu::OpState;
using simgpu::StreamRef;

bool reached(const EventSlot& slot, std::uint64_t record) {
    return slot.completed.load(std::memory_order_acquire) >= record;
}

CUresult record(Driver& d, CUevent handle, CUstream stream, unsigned flags) {
    SIM_TRY(simgpu::check_event(d, handle));
    const StreamRef ref = simgpu::find_stream(d, stream);
    SIM_TRY(ref.result);
    Event& event = *object_of(handle);
    if (flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (event.context->device != ref.stream->context->device && !event.imported) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (ref.stream->capture == CaptureState::active) {
        return CUDA_SUCCESS;
    }
    simgpu::arm_scheduler_faults(d);
    auto op = std::make_shared<Op>();
    op->kind = OpKind::event;
    if (event.slot != nullptr) {
        EventSlot* slot = event.slot;
        const std::uint64_t number = slot->recorded.fetch_add(1, std::memory_order_acq_rel) + 1;
        op->effect = [slot, number] {
            std::uint64_t before = slot->completed.load(std::memory_order_relaxed);
            while (before < number && !slot->completed.compare_exchange_weak(before, number)) {
            }
            return CUDA_SUCCESS;
        };
    }
    event.recorded = d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

// Complete means: what the latest record waited for is done.
bool complete(const Event& event) {
    if (event.slot != nullptr) {
        return reached(*event.slot, event.slot->recorded.load(std::memory_order_acquire));
    }
    return event.recorded == nullptr || event.recorded->state == OpState::done;
}

CUresult elapsed(Driver& d, float* milliseconds, CUevent start, CUevent end) {
    SIM_TRY(simgpu::check_event(d, start));
    SIM_TRY(simgpu::check_event(d, end));
    const Event& first = *object_of(start);
    const Event& last = *object_of(end);
    if (((first.flags | last.flags) & CU_EVENT_DISABLE_TIMING) != 0 || first.recorded == nullptr ||
        last.recorded == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!complete(first) || !complete(last)) {
        return CUDA_ERROR_NOT_READY;
    }
    const double scale = d.model.timed() ? d.model.scale() : 1.0;
    *milliseconds = static_cast<float>(
        static_cast<double>(last.recorded->end - first.recorded->end) / 1e6 / scale);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
    SIM_ENTER(cuEventCreate);
    const Current current = current_context(d);
    SIM_TRY(current.result);
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (handle == nullptr || flags > 7 || (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    EventSlot* slot = shared ? d.page.new_event_slot() : nullptr;
    if (shared && slot == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    auto* event = new Event;
    event->context = current.context;
    event->flags = flags;
    event->slot = slot;
    current.context->events.push_back(event);
    d.live_events.insert(event);
    *handle = simgpu::handle_of(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    SIM_ENTER(cuEventDestroy_v2);
    SIM_TRY(simgpu::check_event(d, handle));
    Event* event = object_of(handle);
    if (event->slot != nullptr) {
        event->slot->references.fetch_sub(1);
    }
    d.live_events.erase(event);
    std::erase(event->context->events, event);
    delete event;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    SIM_ENTER(cuEventRecord);
    entry.costs(d.model.calls().event_record);
    return record(d, event, stream, 0);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    SIM_ENTER(cuEventRecordWithFlags);
    entry.costs(d.model.calls().event_record);
    return record(d, event, stream, flags);
}

CUresult cuEventQuery(CUevent handle) {
    SIM_ENTER(cuEventQuery);
    SIM_TRY(simgpu::refuse_during_capture(d));
    SIM_TRY(simgpu::check_event(d, handle));
    entry.costs(d.model.calls().event_query);
    const Event& event = *object_of(handle);
    if (!complete(event)) {
        const OpRef op = event.recorded;  // helping releases the lock: the event may go
        d.scheduler.help_a_query();
        SIM_TRY(simgpu::check_event(d, handle));
        if (!complete(event)) {
            entry.costs(d.model.calls().event_query_vain);
            return CUDA_ERROR_NOT_READY;
        }
    }
    if (event.recorded != nullptr) {
        simgpu::sanitizer::acquire(event.recorded.get());
    }
    return event.context->sticky;
}

CUresult cuEventSynchronize(CUevent handle) {
    SIM_ENTER(cuEventSynchronize);
    SIM_TRY(simgpu::refuse_during_capture(d));
    SIM_TRY(simgpu::check_event(d, handle));
    const Event& event = *object_of(handle);
    simgpu::Context& context = *event.context;
    if (event.slot != nullptr) {
        EventSlot* slot = event.slot;
        const std::uint64_t number = slot->recorded.load(std::memory_order_acquire);
        d.scheduler.wait_until([slot, number] { return reached(*slot, number); });
    } else if (const OpRef op = event.recorded) {
        d.scheduler.wait(op);
    }
    return context.sticky;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    SIM_ENTER(cuEventElapsedTime);
    return elapsed(d, milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    SIM_ENTER(cuEventElapsedTime_v2);
    return elapsed(d, milliseconds, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
    SIM_ENTER(cuStreamWaitEvent);
    SIM_TRY(simgpu::check_event(d, handle));
    const StreamRef ref = simgpu::find_stream(d, stream);
    SIM_TRY(ref.result);
    if (flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Event& event = *object_of(handle);
    if (ref.stream->capture == CaptureState::active || complete(event)) {
        return CUDA_SUCCESS;
    }
    auto op = std::make_shared<Op>();
    if (event.slot != nullptr) {
        EventSlot* slot = event.slot;
        const std::uint64_t number = slot->recorded.load(std::memory_order_acquire);
        op->ready = [slot, number] { return reached(*slot, number); };
    } else {
        op->after.push_back(event.recorded);
    }
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}
