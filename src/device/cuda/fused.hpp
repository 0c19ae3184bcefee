// SPDX-License-Identifier: BSD-3-Clause
//
// FusedCopies: copies between a GPU and memory of other processes, in one context: the small ones, or
// the large ones. One that finds nothing in flight, and no other beside it, goes at once by a copy
// engine, which is the faster way for a single copy; those that come while something is in flight wait
// and then go together. Small ones in one kernel launch (docs/design/batches.md), each ending by
// flags of its own; large ones in one call for copy engines (cuMemcpyBatchAsync), which copies them at
// once, with one end:
//
//   copy --------> [copy engine]
//   small copies ..waiting..          [one kernel: flag flag flag flag]
//   large copies ..waiting..          [copies at once] flag or event
//
// Where a kernel stays on the GPU (resident.hpp), it takes those that it can. A launch costs the
// processor 4 us, such a call 2 to 3 and 0.6 for each further copy (docs/design/batches.md);
// when it is worth that, says fused_queue.hpp. What goes behind copies in flight has a stream of its
// own. Small ones share a call, too, where there are no kernels or no flags, and above kMostFused where
// another rank uses the GPU or they lie askew.
#pragma once

#include "device/cuda/copies.hpp"
#include "device/cuda/flags.hpp"
#include "device/cuda/kernel_module.hpp"
#include "device/cuda/resident.hpp"
#include "device/fused_queue.hpp"

#include <array>
#include <utility>
#include <vector>

namespace gantry::device::cuda {

class FusedCopies {
  public:
    FusedCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                const CopySettings& settings, ResidentCopies& resident, Sizes sizes);
    ~FusedCopies();
    FusedCopies(const FusedCopies&) = delete;
    FusedCopies& operator=(const FusedCopies&) = delete;

    // With the context current, before anybody waits: all that a launch needs.
    void make_ready() { (void)prepare_kernel(); }
    bool pending() const { return flying() || !waiting_.empty() || taken_.pending(); }
    // Whether it has a way for several at once.
    bool has_a_way() const { return one_call_ || module_.wanted(); }
    // False when the context was found dead before anything was started: `done` is untouched.
    bool start(const Copy& copy, Completion& done);
    void flush_batch(BatchHint more);
    // Completes what has ended and starts what waited; returns how many ended.
    int progress();
    bool lost() const { return lost_; }
    // Nothing new is launched to stay, and what such a kernel has is progressed by its owner.
    void close();
    // The context is gone: what was started fails.
    void abandon(CUresult why);
    // Of a context that is gone: what waited still, or was a resident kernel's.
    std::vector<FusedQueue::Item> take_unstarted();

  private:
    using Item = FusedQueue::Item;
    enum class Seen : std::uint8_t { flags, query };
    // What was started together: one launch, one call, or copies one by one.
    struct Batch {
        CUstream stream = nullptr;
        CUevent behind = nullptr;  // recorded behind copies that are asked about
        std::size_t first_flag = 0;
        std::uint32_t sequence = 0;
        std::vector<Item> items;  // done == nullptr: ended
        std::size_t first = 0;    // the first of them that has not ended
        std::size_t unfinished = 0;
        unsigned parts = 1;     // blocks, and flags, of each
        bool one_flag = false;  // a single flag after all of them
        Seen seen = Seen::flags;
        bool recorded = false;  // `behind` is, for what flies now
        Doubt doubt;
    };

    bool flying() const;
    Batch* free_batch();
    Launches launches() const { return module_.wanted() ? Launches::possible : Launches::none; }
    CUresult flush_batch(Batch& batch);
    bool launch(Batch& batch);
    template <class Work>
    CUresult launch_as(CUfunction kernel, const Batch& batch);
    bool start_together(Batch& batch);
    bool suits_a_kernel(const Batch& batch) const;
    bool copy_in_one_call(const Batch& batch);
    CUresult copy_one_by_one(Batch& batch);
    void watch(Batch& batch);
    bool record(Batch& batch);
    static void finish(Batch& batch, std::size_t index, Status status);
    void fail_waiting(const Status& why);
    int progress(Batch& batch);
    int look(Batch& batch);
    int ask(Batch& batch);
    bool prepare_kernel();

    Driver& driver_;
    Context context_;
    const CopySettings& settings_;
    const Uuid gpu_;
    const bool takes_turns_;  // of the compute queue, where another rank uses the GPU
    Flags flags_;
    KernelModule module_;
    CUfunction many_ = nullptr, few_ = nullptr;
    std::array<Batch, 2> batches_;
    FusedQueue waiting_;
    // What a persistent kernel has.
    class Taken final : public ResidentCopies::User {
      public:
        bool pending() const { return !taken_.empty() || !untaken_.empty(); }
        void add(Completion& done) { taken_.push(&done); }
        std::vector<Item> take_untaken() { return std::exchange(untaken_, {}); }
        // How many have ended since this was asked last.
        int take_ended() { return std::exchange(ended_, 0); }
        void ended() override { tell(success()); }
        void untaken(const Copy& copy) override { untaken_.push_back({copy, taken_.pop()}); }
        void failed(const Status& why) override { tell(why); }

      private:
        void tell(const Status& status) {
            ++ended_;
            taken_.pop()->complete(status);
        }
        Fifo<Completion*> taken_;
        std::vector<Item> untaken_;
        int ended_ = 0;
    };
    ResidentCopies& resident_;
    Taken taken_;
    const unsigned enough_blocks_;
    bool one_call_;  // for several copies: the driver has it
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
