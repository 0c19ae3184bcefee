// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice: what one simulated rank sees of its node's GPUs, on the world's virtual clock. Copies
// take modelled time and are applied at the END of their interval: a destination that is read too
// early is stale and a source that is overwritten too early is corrupt, always. Driver calls cost
// the rank's processor what the machine says. Faults are plain fields that a test sets.
#pragma once

#include "device/fake/gpus.hpp"
#include "device/fused_queue.hpp"
#include "device/fake/resident.hpp"
#include "device/bar_uses.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace gantry::device::fake {

struct Faults {
    int fail_copy = 0;       // the n-th copy from now ends with an error (1: the next); 0: none
    int fail_reduction = 0;  // likewise, of reductions
    bool fail_every_copy = false;  // as on a dead context
    int hang_copy = 0;             // likewise, but it never ends
    Nanoseconds hang_for = 0;      // 0: for ever; else so long, and then it goes on
    bool blind = false;            // ends of copies are not seen, while this is so
    bool refuse_ipc_export = false;
    bool refuse_ipc_open = false;
    bool refuse_descriptor = false;
    bool refuse_pin = false;
    bool refuse_bar = false;
};

// Exact counts of what the rank asked of its device.
struct Counts {
    std::uint64_t copies[model::kOperations] = {};  // by model::Operation
    Bytes bytes[model::kOperations] = {};
    std::uint64_t host_copies = 0;
    std::uint64_t launches = 0;           // kernels, for copies that waited together
    std::uint64_t row_launches = 0;       // kernels, for rows
    std::uint64_t reductions = 0;         // kernels, each for one
    Bytes reduced = 0;                    // bytes of their results
    std::uint64_t calls_for_several = 0;  // copies that waited, in one call of copy engines
    std::uint64_t resident_launches = 0, resident_copies = 0;  // persistent kernels
    std::uint64_t cuts_through = 0;  // staged messages that went through them piece by piece
    // Of the compute queue, each taken from another process that used it last.
    std::uint64_t turns = 0;
    std::uint64_t classified = 0, pins = 0, exports = 0, opens = 0, closes = 0, flushes = 0;
    std::uint64_t refused_opens = 0;
    std::uint64_t opens_beside_work = 0;  // while copies of this process were under way
    std::uint64_t anchors = 0;            // opened to stay
    std::uint64_t opens_again = 0;        // of what was open still, where nothing else was allowed
    std::uint64_t looks = 0;              // at copies in flight: completion queries
    std::uint64_t rechecks = 0;           // of exported memory
    std::uint64_t descriptors = 0;
    std::uint64_t bar_opens = 0, bar_reads = 0, bar_writes = 0;
    std::uint64_t all_copies() const;
};

class FakeDevice final : public Device {
  public:
    FakeDevice(model::Processor& processor, Gpus& gpus, int rank, int node);

    // --- what a program does with the driver ----------------------------------------------------
    void* allocate(int gpu, Bytes bytes, MemoryKind kind = MemoryKind::device,
                   IpcKind ipc = IpcKind::legacy);
    void free(void* address);
    // The stored bytes behind any address this rank may use (tests fill and check through it);
    // aborts when out of range.
    std::byte* behind(const void* address, Bytes bytes);
    void compute(int gpu, Nanoseconds duration) {
        gpus_.compute(first_gpu_ + gpu, rank_, duration);
    }

    Faults faults;
    bool has_gdrcopy = false;  // the machine does
    // GANTRY_KERNELS and GANTRY_IDLE_TIMEOUT; before anything else is asked.
    void let_kernels(bool copy, Nanoseconds stay);
    // What a network card wrote to this node's device memory shows from then on.
    std::function<void()> on_flush;
    // Something ended, which this rank's next progress() sees; or a word was written that others see.
    std::function<void()> on_end;
    const Counts& counts() const { return counts_; }
    void reset_counts() { counts_ = {}; }
    // The process died: its copies have no effect any more.
    void kill() { dead_ = true; }
    int in_flight() const { return in_flight_; }
    // The context of the mappings of peers' memory went, and they with it.
    void lose_mappings();

    // --- Device ---------------------------------------------------------------------------------
    bool active() override { return active_; }
    std::span<const GpuFacts> gpus() override { return facts_; }
    bool reaches(int gpu, const Uuid& other) override {
        return gpu_of(other) == gpu || gpus_.machine().peer_access;
    }
    Result<Location> classify(const void* address, Bytes bytes) override;
    void copy(const Copy& copy, Completion& done) override;
    bool cut_through(const Copy& copy, Completion* done) override;
    void reduce(const Reduce& reduce, Completion& done) override;
    void flush_batch(BatchHint more) override;
    int progress() override;
    bool pending() const override { return in_flight_ > 0; }
    bool has_bar_mapping(const Location& location, const void* address, Bytes bytes) override;
    Status settle_network_writes(int) override {
        ++counts_.flushes;
        if (on_flush) on_flush();
        return success();
    }
    Status pin(void* address, Bytes bytes) override;
    Result<IpcHandle> export_memory(const Location& location) override;
    Result<void*> open_memory(const IpcHandle& handle, int gpu,
                              Opening opening = Opening::allowed) override;
    void close_memory(const IpcHandle& handle, int gpu) override;
    bool opens_first(IpcKind kind, int gpu, const Uuid& other) override;
    Access access(const IpcHandle& handle, int gpu) override;
    std::uint32_t descriptor_inbox() override { return static_cast<std::uint32_t>(rank_) + 1; }
    Status send_descriptor(const IpcHandle& handle, std::uint32_t inbox) override;
    void* borrow(const void* like, Bytes bytes) override;
    void give_back(void* borrowed) override;
    void forget_memory(std::uint64_t buffer_id, const Uuid& gpu) override;
    bool still_valid(const IpcHandle& handle) override;
    void shut_down() override;

  private:
    // An address range of this process that names (a part of) an allocation: its own, or one opened
    // from a peer.
    struct Mapping {
        std::shared_ptr<Allocation> allocation;
        std::unique_ptr<GuardedRange> opened;  // the address range of a peer's memory
        int users = 0;
    };
    struct Place {  // one side of a copy
        std::byte* bytes = nullptr;
        MemoryKind kind = MemoryKind::host;
        int gpu = -1;
    };
    struct Finished {
        Completion* done;
        Status status;
        int batch = -1;     // of fused copies
        bool flag = false;  // its end is seen by a load
    };
    // Fused copies: of small and of large ones two batches each may fly, as on the real device; a
    // batch is one copy, one launch or one call.
    struct Fused {
        FusedQueue waiting;
        int first_batch;
    };
    void finish(Finished finished) {
        finished_.push_back(std::move(finished));
        if (on_end) on_end();
    }
    static constexpr int kBatches = 2;  // of each
    Fused& fused_of(const Copy& copy) { return sizes_of(copy) == Sizes::small ? small_ : large_; }
    // Of those that wait, as many as go together.
    void start(Fused& fused, int batch);
    bool kernel_suits(const Copy& copy) const;
    void copy_now(const Copy& copy, Completion& done, int batch);
    void copy_rows(const Copy& copy, Completion& done);
    void copy_rows_of(const Copy& copy, std::span<const CopyPart> parts, Completion& done);
    double row_time(model::Operation operation, Bytes bytes) const;
    void copy_parts(const Copy& copy, Completion& done);
    ResidentModel& resident(int gpu);
    void consider_resident(Ends ends, Copies copies, int gpu);
    void launch_resident(int gpu, bool pays);
    void copy_by_resident(const Copy& copy, Ends ends, Copies copies, Completion& done);
    Copies beside(int gpu, Ends ends) const;
    // Of copies between host and device memory: whether a persistent kernel can make it.
    std::optional<Ends> resident_ends(const Copy& copy);
    std::optional<Ends> cut_through_ends(const Copy& copy);
    // When the last copies of a direction end, by a persistent kernel and otherwise: what starts
    // later ends later.
    struct LastEnds {
        Nanoseconds resident = 0, usual = 0;
    };
    Nanoseconds behind_resident(int gpu, model::Operation operation, Nanoseconds end);
    model::Interval reserve(int gpu, const model::Work& work);
    // Whether a fault loses this copy; `end` moves when it only holds it up.
    bool hangs(Nanoseconds& end);
    void end_at(Nanoseconds end, const Copy& copy, const Place& source, const Place& sink,
                Completion& done, int batch, bool flag);
    // What the described machine says of a copy between those places.
    model::Work work_of(const Copy& copy, const Place& source, const Place& sink) const;
    Status fault_of(const Copy& copy);
    void launch(std::vector<FusedQueue::Item> together, int batch);
    void copy_in_one_call(const std::vector<FusedQueue::Item>& together, int batch);
    int free_batch(const Fused& fused) const {
        for (int batch = fused.first_batch; batch < fused.first_batch + kBatches; ++batch)
            if (flying_[batch] == 0) return batch;
        return -1;
    }
    bool flying(const Fused& fused) const {
        const int* const first = flying_ + fused.first_batch;
        return std::any_of(first, first + kBatches, [](int copies) { return copies > 0; });
    }
    Mapping* mapping_of(const void* address, std::uintptr_t* base);
    Result<Place> place(const void* address, Bytes bytes);
    bool pinned(const void* address, Bytes bytes) const;
    Status copy_by_bar(const Copy& copy);

    model::Processor& processor_;
    Gpus& gpus_;
    const int rank_;
    const int first_gpu_;
    std::vector<GpuFacts> facts_;
    std::map<std::uintptr_t, Mapping> mappings_;      // by first address
    bool had_pool_ = false;                           // of another GPU, opened
    std::map<std::uint64_t, std::uintptr_t> opened_;  // buffer id -> key in mappings_
    std::map<std::uintptr_t, Bytes> pins_;
    std::deque<Finished> finished_;
    // Of copies that were lost: by them LeakSanitizer finds what waits for ever in a killed rank.
    std::vector<Completion*> never_end_;
    Counts counts_;
    Launches launches_ = Launches::possible;
    Nanoseconds idle_timeout_ = 0;
    Fused small_, large_;
    std::vector<ResidentModel> residents_;  // by GPU
    std::map<std::pair<int, Ends>, LastEnds> last_ends_;
    struct Scratch {
        int gpu = 0;
        Bytes bytes = 0;
        bool lent = false;
    };
    std::map<void*, Scratch> scratch_;
    BarUses bar_uses_;
    std::set<std::uint64_t> bar_mappings_;  // by buffer id: whole allocations
    int flying_[2 * kBatches] = {};
    int in_flight_ = 0;
    bool active_ = false;
    bool dead_ = false;
};

}  // namespace gantry::device::fake
