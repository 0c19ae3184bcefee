// SPDX-License-Identifier: BSD-3-Clause
// What lies behind the driver's handles: devices, contexts, streams, events, and the operations in
// a stream. A handle is the object's address; Driver keeps the set of live ones, so that a freed,
// foreign or garbage handle is an error code. Objects of a destroyed context stay as tombstones.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "device/cuda/driver_abi.h"
#include "model.hpp"
#include "shared_page.hpp"

namespace simgpu {

struct Context;
struct Stream;
struct Pool;

enum class OpKind { copy, fill, kernel, host_function, value_write, value_wait, event, marker };
enum class OpState { queued, planned, running, done };
enum class RunsOn { scheduler, own_thread };

// One operation in a stream. Times are modelled; -1 until known.
struct Op {
    OpKind kind = OpKind::marker;
    OpState state = OpState::queued;
    RunsOn runs_on = RunsOn::scheduler;
    std::size_t bytes = 0;
    Stream* stream = nullptr;
    Cost cost;
    Nanoseconds enqueued = 0;
    Nanoseconds not_before = 0;  // when `ready` was first seen true
    Nanoseconds start = -1;
    Nanoseconds end = -1;
    bool never_completes = false;            // fault injection
    std::vector<std::shared_ptr<Op>> after;  // besides the previous operation of the stream
    std::function<bool()> ready;             // polled: value waits and events of other processes
    std::function<CUresult()> effect;        // applied late: finished at `end`, not at `start`
};
using OpRef = std::shared_ptr<Op>;

enum class CaptureState { none, active, invalidated };

struct ThreadState;

struct Stream {
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t id = 0;
    bool destroyed = false;
    bool is_default = false;
    std::deque<OpRef> queue;
    OpRef tail;                // the last operation ever enqueued
    Nanoseconds last_end = 0;  // of the last operation that is done
    CaptureState capture = CaptureState::none;
    CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    ThreadState* capture_thread = nullptr;

    bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
    Context* context = nullptr;
    unsigned flags = 0;
    OpRef recorded;             // null: never recorded, counts as complete
    EventSlot* slot = nullptr;  // interprocess events
    bool imported = false;
    bool destroyed = false;
};

struct Device {
    int ordinal = 0;  // -1: hidden from this process
    int physical = 0;
    int window = 0;  // of the arena
    std::size_t used_bytes = 0;
    Context* primary = nullptr;
    Pool* default_pool = nullptr;
    Pool* current_pool = nullptr;
};

struct Context {
    Device* device = nullptr;
    std::uint64_t id = 0;
    unsigned flags = 0;
    int references = 0;  // of a primary context
    bool primary = false;
    bool alive = false;
    CUresult sticky = CUDA_SUCCESS;
    Stream* legacy = nullptr;
    std::vector<Stream*> streams;  // live, the legacy stream included
    std::vector<Event*> events;
    std::vector<Context*> peers;  // access enabled to
};

// Plain thread-local pointers to leaked objects: a thread_local with a destructor is dead when
// atexit handlers of a program call the driver.
struct ThreadState {
    std::vector<Context*> contexts;
    std::vector<std::pair<Context*, Stream*>> default_streams;
    CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    bool per_thread_default = false;
    bool in_callback = false;
};

}  // namespace simgpu
