// SPDX-License-Identifier: BSD-3-Clause
#include "driver.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>

#include "faults.hpp"
#include "pools.hpp"

namespace simgpu {
namespace {

std::atomic<Driver*> g_driver{nullptr};
std::atomic<Phase> g_phase{Phase::untouched};
thread_local ThreadState* t_thread = nullptr;

// A forked child has no driver: what its parent had stays the parent's.
void in_forked_child() {
    if (g_phase.load() == Phase::ready) {
        g_phase.store(Phase::forked);
    }
}

constexpr std::size_t kKeptPoisonBytes = std::size_t{64} << 20;

void add_hidden_devices(Driver& d) {
    if (d.settings.hidden == Hidden::refused) {
        return;
    }
    for (int physical = 0; physical < d.settings.devices; ++physical) {
        if (exporters_device(d, physical) == nullptr) {
            auto* device = new Device;
            device->ordinal = -1;
            device->physical = physical;
            device->window = static_cast<int>(d.devices.size() + d.hidden.size());
            d.hidden.push_back(device);
        }
    }
}

}  // namespace

Driver* driver() {
    return g_driver.load(std::memory_order_acquire);
}
Phase phase() {
    return g_phase.load(std::memory_order_acquire);
}

void set_phase(Phase next) {
    g_phase.store(next, std::memory_order_release);
}

CUresult start_driver() {
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    CUresult result = CUDA_SUCCESS;
    if (phase() == Phase::untouched) {
        Settings settings = parse_settings(getenv("SIMGPU"), getenv("CUDA_VISIBLE_DEVICES"));
        std::string complaint = settings.complaint;
        if (const char* file = getenv("SIMGPU_TRACE");
            file != nullptr && settings.trace_file.empty()) {
            settings.trace_file = file;
        }
        auto d = std::make_unique<Driver>();
        d->model = Model::load(settings.machine, settings.scale, settings.mps, &complaint);
        load_faults_from_environment(&complaint);
        if (!complaint.empty()) {
            complaint.resize(complaint.size() - 2);  // the last "; "
            fprintf(stderr, "simgpu: %s\n", complaint.c_str());
        }
        d->settings = std::move(settings);
        if (d->settings.visible.empty() || no_device_injected()) {
            result = CUDA_ERROR_NO_DEVICE;
        } else if (!d->arena.open(d->settings.devices)) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            d->page.open(d->settings.run);
            for (std::size_t index = 0; index < d->settings.visible.size(); ++index) {
                auto* device = new Device;
                device->ordinal = static_cast<int>(index);
                device->physical = d->settings.visible[index];
                device->window = device->ordinal;
                d->devices.push_back(device);
                device->primary = new_context(*d, *device, 0);
                device->primary->primary = true;
                device->default_pool = device->current_pool = new_default_pool(*device);
            }
            add_hidden_devices(*d);
            pthread_atfork(nullptr, nullptr, in_forked_child);
            g_driver.store(d.release(), std::memory_order_release);
            set_phase(Phase::ready);
        }
    } else if (phase() == Phase::forked) {
        result = CUDA_ERROR_NOT_INITIALIZED;
    } else if (phase() == Phase::torn_down) {
        result = CUDA_ERROR_DEINITIALIZED;
    }
    pthread_mutex_unlock(&once);
    return result;
}

ThreadState& this_thread() {
    if (t_thread == nullptr) {
        t_thread = new ThreadState;
        if (Driver* d = driver()) {
            static Mutex mutex;  // not the driver's: callers may hold that one
            Guard guard(mutex);
            d->threads.emplace_back(t_thread);  // reachable for ever: the leak checker sees no leak
        }
    }
    return *t_thread;
}

void adopt_thread_state(ThreadState* state) {
    t_thread = state;
}

Current current_context(Driver&) {
    const ThreadState& thread = this_thread();
    Context* context = thread.contexts.empty() ? nullptr : thread.contexts.back();
    if (context == nullptr) {
        return {nullptr, CUDA_ERROR_INVALID_CONTEXT};
    }
    if (!context->alive) {
        return {nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED};
    }
    return {context, context->sticky};
}

Stream* new_stream(Driver& d, Context& context, unsigned flags, int priority) {
    auto* stream = new Stream;
    stream->context = &context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++d.last_id;
    context.streams.push_back(stream);
    return stream;
}

Device* exporters_device(Driver& d, int physical) {
    for (const auto* some : {&d.devices, &d.hidden}) {
        for (Device* device : *some) {
            if (device->physical == physical) {
                return device;
            }
        }
    }
    return nullptr;
}

Nanoseconds price_of_pair(Driver& d, const Device& memory, const Context& context) {
    if (&memory == context.device) {
        return 0;
    }
    for (const auto& [base, range] : d.memory.all()) {
        const bool foreign = range.kind == MemoryKind::imported ||
                             (range.kind == MemoryKind::mapped && range.accessible);
        if (foreign && range.device == &memory &&
            (range.context == &context || range.context == nullptr)) {
            return 0;
        }
    }
    return d.model.calls().ipc_pair;
}

Context* new_context(Driver& d, Device& device, unsigned flags) {
    auto* context = new Context;
    context->device = &device;
    context->flags = flags;
    context->id = ++d.last_id;
    d.live_contexts.insert(context);
    return context;
}

void activate(Driver& d, Context& context) {
    if (!context.alive) {
        context.id = ++d.last_id;  // each life of a primary context has its own
        context.alive = true;
        context.sticky = CUDA_SUCCESS;
        context.legacy = new_stream(d, context, 0, 0);
        context.legacy->is_default = true;
    }
}

void deactivate(Driver& d, Context& context) {
    if (!context.alive) {
        return;
    }
    d.scheduler.wait_for_context(context);
    context.alive = false;
    for (Stream* stream : context.streams) {
        stream->destroyed = true;
        d.live_streams.erase(stream);
        d.tombstones.insert(stream);
    }
    for (Event* event : context.events) {
        event->destroyed = true;
        d.live_events.erase(event);
        d.tombstones.insert(event);
    }
    context.streams.clear();
    context.events.clear();
    context.legacy = nullptr;
    context.peers.clear();
    std::vector<Range*> owned;
    for (auto& [base, range] : d.memory.all()) {
        if (range.context == &context) {
            owned.push_back(&range);
        }
    }
    for (Range* range : owned) {
        release_range(d, *range);
    }
}

StreamRef find_stream(Driver& d, CUstream handle) {
    const Current current = current_context(d);
    if (current.result != CUDA_SUCCESS) {
        return {nullptr, current.result};
    }
    ThreadState& thread = this_thread();
    const bool per_thread =
        handle == CU_STREAM_PER_THREAD || (handle == nullptr && thread.per_thread_default);
    if (per_thread) {
        for (auto& [context, stream] : thread.default_streams) {
            if (context == current.context && !stream->destroyed) {
                return {stream, CUDA_SUCCESS};
            }
        }
        Stream* stream = new_stream(d, *current.context, 0, 0);
        thread.default_streams.emplace_back(current.context, stream);
        return {stream, CUDA_SUCCESS};
    }
    if (handle == nullptr || handle == CU_STREAM_LEGACY) {
        return {current.context->legacy, CUDA_SUCCESS};
    }
    if (d.live_streams.count(handle) == 0) {
        return {nullptr, d.tombstones.count(handle) != 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                         : CUDA_ERROR_INVALID_HANDLE};
    }
    auto* stream = reinterpret_cast<Stream*>(handle);
    return {stream, stream->context->sticky};
}

CUresult check_event(Driver& d, CUevent handle) {
    if (d.live_events.count(handle) != 0) {
        return CUDA_SUCCESS;
    }
    return d.tombstones.count(handle) != 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                           : CUDA_ERROR_INVALID_HANDLE;
}

CUcontext handle_of(Context* context) {
    return reinterpret_cast<CUcontext>(context);
}
Context* object_of(CUcontext handle) {
    return reinterpret_cast<Context*>(handle);
}
CUstream handle_of(Stream* stream) {
    return reinterpret_cast<CUstream>(stream);
}
CUevent handle_of(Event* event) {
    return reinterpret_cast<CUevent>(event);
}
Event* object_of(CUevent handle) {
    return reinterpret_cast<Event*>(handle);
}

void keep_poisoned(Driver& d, const Slice& slice) {
    d.kept.push_back(slice);
    d.kept_bytes += slice.bytes;
    while (d.kept_bytes > kKeptPoisonBytes && d.kept.size() > 1) {
        d.arena.drop_slice(d.kept.front(), KeepPages::no);
        d.kept_bytes -= d.kept.front().bytes;
        d.kept.erase(d.kept.begin());
    }
}

}  // namespace simgpu
