// SPDX-License-Identifier: BSD-3-Clause
//
// TogetherCopies: copies of one operation (Copy::parts) between a GPU and memory that it
// reaches, in one context. All are made by one launch, which is seen to end when every block has
// raised its flag:
//
//   copy 0: [block block block]   copy 1: [block block block]   ...   flags, looked at in order
//
// Where a kernel stays on the GPU (resident.hpp), it takes small ones. Unlike FusedCopies nothing waits for company, and large copies get as many blocks as the link can
// use: stores to three peers of 1 MiB each need 16 blocks of 512 threads a peer (bench/results).
#pragma once

#include "device/cuda/copies.hpp"
#include "device/cuda/flags.hpp"
#include "device/cuda/kernel_module.hpp"
#include "device/cuda/resident.hpp"

#include <array>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace gantry::device::cuda {

class TogetherCopies {
  public:
    TogetherCopies(Driver& driver, const Context& context, const CopySettings& settings,
                   ResidentCopies& resident);
    TogetherCopies(const TogetherCopies&) = delete;
    TogetherCopies& operator=(const TogetherCopies&) = delete;

    // With the context current, before anybody waits: all that a launch needs, if loading it is quick.
    void make_ready() {
        if (module_.is_compiled(kernels::copy_many())) (void)prepare();
    }
    bool pending() const;
    // False: nothing was started, and `done` is untouched; lost() says whether the context is dead.
    bool start(const Copy& copy, Completion& done);
    // Completes what has ended; returns how many.
    int progress();
    bool lost() const { return lost_; }
    // With the context current, before it goes.
    void close();
    // The context is gone: what was started fails.
    void abandon(CUresult why);

  private:
    static constexpr std::size_t kBatches = 4;
    static constexpr std::size_t kFlags = 1024;  // of each

    struct Batch {
        CUstream stream = nullptr;
        std::size_t first_flag = 0, flags = 0;
        std::size_t raised = 0;  // so many of them are seen
        std::uint32_t sequence = 0;
        Completion* done = nullptr;  // null: it does not fly
        Copy copy;                   // without its parts
        Doubt doubt;
    };
    // What a persistent kernel has; it ends in this order.
    struct TakenJob {
        Copy copy;  // without its parts
        std::vector<CopyPart> parts;
        Completion* done;
    };
    class Taken final : public ResidentCopies::User {
      public:
        explicit Taken(TogetherCopies& owner) : owner_(owner) {}
        void ended() override { tell(success()); }
        void untaken(const Copy&) override { owner_.start_again(take()); }
        void failed(const Status& why) override { tell(why); }
        bool pending() const { return !jobs_.empty(); }
        void add(const Copy& copy, std::span<const CopyPart> parts, Completion& done) {
            jobs_.push_back({copy, {parts.begin(), parts.end()}, &done});
        }
        int take_ended() { return std::exchange(ended_, 0); }
        void tell(const Status& status);

      private:
        TakenJob take();

        TogetherCopies& owner_;
        std::deque<TakenJob> jobs_;
        int ended_ = 0;
    };

    bool launch_all(const Copy& copy, std::span<const CopyPart> copies, Completion& done);
    void start_again(TakenJob job);
    bool prepare();
    CUresult launch(Batch& batch, std::span<const CopyPart> copies, unsigned parts);
    template <class Work>
    CUresult launch_as(CUfunction kernel, const Batch& batch, std::span<const CopyPart> copies,
                       std::size_t first_flag, unsigned parts);
    bool has_ended(Batch& batch);
    CUresult ask(Batch& batch);
    void finish(Batch& batch, Status status);

    Driver& driver_;
    Context context_;
    Flags flags_;
    KernelModule module_;
    CUfunction many_ = nullptr, few_ = nullptr;
    std::array<Batch, kBatches> batches_;
    ResidentCopies& resident_;
    Taken taken_{*this};
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
