// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs of a simulated world: what all its ranks share. Keeps when each engine is free and which
// process used the compute queue last, and owns device memory: an address range that nobody may
// touch (a stray host access faults at once) with its bytes elsewhere.
#pragma once

#include "device/device.hpp"
#include "model/cost.hpp"
#include "model/timeline.hpp"

#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace gantry::device::fake {

// Address space that is reserved and never accessible.
class GuardedRange {
  public:
    explicit GuardedRange(Bytes bytes);
    ~GuardedRange();
    GuardedRange(const GuardedRange&) = delete;
    GuardedRange& operator=(const GuardedRange&) = delete;
    std::uintptr_t base() const { return base_; }

  private:
    std::uintptr_t base_ = 0;
    Bytes mapped_ = 0;
};

struct Allocation {
    std::uint64_t id = 0;
    int gpu = 0;  // world-wide number
    MemoryKind kind = MemoryKind::device;
    IpcKind ipc = IpcKind::legacy;
    Bytes size = 0;
    std::unique_ptr<std::byte[]> bytes;  // what is stored
    std::unique_ptr<GuardedRange>
        guard;  // the address of device memory; other kinds live at `bytes`
    bool freed = false;
    std::uintptr_t base() const {
        return guard != nullptr ? guard->base() : reinterpret_cast<std::uintptr_t>(bytes.get());
    }
};

class Gpus {
  public:
    Gpus(model::Timeline& timeline, const model::Machine& machine, int nodes);

    const model::Machine& machine() const { return machine_; }
    model::Timeline& timeline() { return timeline_; }
    int per_node() const { return machine_.gpus_per_node; }
    static Uuid uuid(int gpu);

    std::shared_ptr<Allocation> allocate(int gpu, Bytes bytes, MemoryKind kind, IpcKind ipc);
    // An allocation that another process exported; null once nobody holds it.
    std::shared_ptr<Allocation> find(std::uint64_t id) const;

    // File descriptors of allocations that lie in a process's inbox.
    void give_descriptor(std::uint64_t id, std::uint32_t inbox) {
        descriptors_.insert({id, inbox});
    }
    bool has_descriptor(std::uint64_t id, std::uint32_t inbox) const {
        return descriptors_.contains({id, inbox});
    }

    struct Reserved {
        model::Interval interval;
        bool turn = false;  // it took the compute queue from another process
    };
    // Gives the work its place on its engine and holds the engine for it; up to `jitter` longer
    // than modelled.
    Reserved reserve(int gpu, const model::Work& work, int process, Nanoseconds ready);
    void set_jitter(Nanoseconds jitter) { jitter_ = jitter; }
    // A program's own kernel: keeps the compute queue busy for that long.
    void compute(int gpu, int process, Nanoseconds duration);

  private:
    struct State {
        Nanoseconds free_at[model::kEngines] = {};
        std::int64_t last_process = -1;
    };
    model::Timeline& timeline_;
    model::Machine machine_;
    std::vector<State> states_;
    std::vector<std::weak_ptr<Allocation>> allocations_;  // index + 1 is the id
    std::set<std::pair<std::uint64_t, std::uint32_t>> descriptors_;
    Nanoseconds jitter_ = 0;
};

}  // namespace gantry::device::fake
