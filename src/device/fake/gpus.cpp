// SPDX-License-Identifier: BSD-3-Clause
#include "device/fake/gpus.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace gantry::device::fake {
namespace {

constexpr Bytes kPage = 4096;

}  // namespace

GuardedRange::GuardedRange(Bytes bytes) : mapped_(round_up(bytes, kPage) + kPage) {
    void* range =
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GANTRY_ASSERT(range != MAP_FAILED);
    base_ = reinterpret_cast<std::uintptr_t>(range);
}

GuardedRange::~GuardedRange() {
    munmap(reinterpret_cast<void*>(base_), mapped_);
}

Gpus::Gpus(model::Timeline& timeline, const model::Machine& machine, int nodes)
    : timeline_(timeline),
      machine_(machine),
      states_(static_cast<std::size_t>(nodes * machine.gpus_per_node)) {}

Uuid Gpus::uuid(int gpu) {
    Uuid uuid{'f', 'a', 'k', 'e'};
    std::memcpy(uuid.data() + 4, &gpu, sizeof gpu);
    return uuid;
}

std::shared_ptr<Allocation> Gpus::allocate(int gpu, Bytes bytes, MemoryKind kind, IpcKind ipc) {
    auto allocation = std::make_shared<Allocation>();
    allocation->id = allocations_.size() + 1;
    allocation->gpu = gpu;
    allocation->kind = kind;
    allocation->ipc = kind == MemoryKind::device && machine_.ipc ? ipc : IpcKind::none;
    allocation->size = bytes;
    allocation->bytes = std::make_unique<std::byte[]>(bytes);
    if (kind == MemoryKind::device) allocation->guard = std::make_unique<GuardedRange>(bytes);
    allocations_.push_back(allocation);
    return allocation;
}

std::shared_ptr<Allocation> Gpus::find(std::uint64_t id) const {
    return id >= 1 && id <= allocations_.size() ? allocations_[id - 1].lock() : nullptr;
}

Gpus::Reserved Gpus::reserve(int gpu, const model::Work& work, int process, Nanoseconds ready) {
    State& state = states_[static_cast<std::size_t>(gpu)];
    const model::Engine engine = model::engine_of(machine_.gpu, work.operation);
    Nanoseconds& free_at = state.free_at[static_cast<int>(engine)];
    const Nanoseconds turn = model::turn_cost(machine_.gpu, work, process, state.last_process);
    Nanoseconds earliest = free_at;
    if (model::needs_turn(machine_.gpu, work)) {
        // The other process keeps the queue until its kernels are done.
        if (turn > 0)
            earliest = std::max(earliest, state.free_at[static_cast<int>(model::Engine::compute)]);
        state.last_process = process;
    }
    model::Interval interval = model::place(machine_.gpu, work, ready, earliest, turn);
    interval.end += static_cast<Nanoseconds>(timeline_.random(static_cast<std::uint64_t>(jitter_)));
    free_at = interval.end;
    return {interval, turn > 0};
}

void Gpus::compute(int gpu, int process, Nanoseconds duration) {
    State& state = states_[static_cast<std::size_t>(gpu)];
    Nanoseconds& free_at = state.free_at[static_cast<int>(model::Engine::compute)];
    free_at = std::max(free_at, timeline_.now()) + duration;
    state.last_process = process;
}

}  // namespace gantry::device::fake
