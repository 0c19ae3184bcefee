// SPDX-License-Identifier: BSD-3-Clause
// The whole state of the simulated driver in one process. One object, made by cuInit, never
// destroyed: atexit handlers of programs call the driver, and must get DEINITIALIZED rather than a
// crash. One lock guards it all; it is released around data movement and user code.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arena.hpp"
#include "lock.hpp"
#include "model.hpp"
#include "objects.hpp"
#include "registry.hpp"
#include "scheduler.hpp"
#include "settings.hpp"
#include "shared_page.hpp"

namespace simgpu {

// Frees memory of any kind that has no work left (memory.cpp).
void release_range(struct Driver& d, Range& range);

enum class Phase { untouched, ready, refused, torn_down, forked };

struct Driver {
    Mutex mutex;
    Settings settings;
    Model model;
    SharedPage page;
    Arena arena;
    Registry memory;
    Scheduler scheduler{*this};
    std::vector<Device*> devices;  // by ordinal
    std::vector<Device*> hidden;   // whose memory can be mapped all the same

    std::unordered_set<const void*> live_contexts, live_streams, live_events;
    std::unordered_set<const void*> tombstones;  // streams and events of destroyed contexts
    std::vector<std::unique_ptr<ThreadState>> threads;
    std::vector<Pool*> pools;  // created and imported ones; never deleted, memory refers to them
    bool had_pool = false;     // of another device, imported
    int captures = 0;          // streams being captured
    std::uint64_t last_id = 0;

    // Who maps device memory beside us (simgpu_on_free).
    void (*on_free)(std::uint64_t begin, std::size_t bytes) = nullptr;

    // Pages kept as poison for importers; the oldest go when there are too many.
    std::vector<Slice> kept;
    std::size_t kept_bytes = 0;
};

// Null until cuInit succeeded.
Driver* driver();
Phase phase();
void set_phase(Phase next);
CUresult start_driver();
ThreadState& this_thread();
// A thread of ours lends a state of its own for as long as it lives.
void adopt_thread_state(ThreadState* state);

// The calling thread's context or the error a call without one gets.
struct Current {
    Context* context = nullptr;
    CUresult result = CUDA_SUCCESS;
};
Current current_context(Driver& d);

// The driver's lock must be held by the caller of these.
// The device of memory that another process exported; null: it is kept from this process.
Device* exporters_device(Driver& d, int physical);
// What the first memory of another device adds to an opening in that context, while none is open.
Nanoseconds price_of_pair(Driver& d, const Device& memory, const Context& context);
Context* new_context(Driver& d, Device& device, unsigned flags);
void activate(Driver& d, Context& context);
// Waits for the context's work, then frees what belongs to it.
void deactivate(Driver& d, Context& context);
Stream* new_stream(Driver& d, Context& context, unsigned flags, int priority);

// The stream behind a handle in the current context: null, legacy, per-thread or a real one.
struct StreamRef {
    Stream* stream = nullptr;
    CUresult result = CUDA_SUCCESS;
};
StreamRef find_stream(Driver& d, CUstream handle);
CUresult check_event(Driver& d, CUevent handle);

// The pages of freed memory that somebody may still map stay poisoned, for a while.
void keep_poisoned(Driver& d, const Slice& slice);

CUcontext handle_of(Context* context);
Context* object_of(CUcontext handle);
CUstream handle_of(Stream* stream);
CUevent handle_of(Event* event);
Event* object_of(CUevent handle);

}  // namespace simgpu
