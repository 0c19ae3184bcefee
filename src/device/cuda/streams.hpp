// SPDX-License-Identifier: BSD-3-Clause
//
// Streams: Gantry's own non-blocking streams in one context, and the copies in flight on them.
// There is one queue per direction, since the directions have engines of their own, and one per peer
// GPU:
//
//   queue   d2h  [copy, event] [copy, event] ...   progress() looks at the head of each queue;
//          h2d                                    copies of a queue end in order
//          d2d
//          peer 0, peer 1, ...
//
// The end of a copy that is alone in its queue may be seen by a flag (flags.hpp): looking at it is a
// load, and no call of the driver is made unless it does not show for a millisecond. It is the word
// that somebody else waits for, if the copy names one. Copies between devices that come together have
// ways of their own (fused.hpp).
//
// Where a kernel stays on the GPU (resident.hpp), it makes small copies to and from host memory, too,
// short reductions, and rows. They have their place in the queue, and are told in their turn, although no stream knows of them.
//
// A copy that the driver refused, or whose event failed, completes only when the stream is known to
// be done with it, or when the context is known to be dead;
// then everything in it completes with that error.
#pragma once

#include "device/cuda/copy_calls.hpp"
#include "device/cuda/flags.hpp"
#include "device/cuda/fused.hpp"
#include "device/cuda/reduce_launcher.hpp"
#include "device/cuda/together.hpp"
#include "device/device.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace gantry::device::cuda {

class Streams {
  public:
    Streams(Driver& driver, const Context& context, const GpuFacts& facts,
            const CopySettings& settings);
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    // Before anybody waits for a copy: modules, flags and the ring of the persistent kernel are made
    // now, never in the middle of a program's steps.
    void make_ready();
    const Context& context() const { return context_; }
    const ResidentCopies& resident() const { return resident_; }
    // The context has died; nothing may be started here any more.
    bool lost() const {
        return lost_ || small_.lost() || large_.lost() || resident_.lost() || together_.lost();
    }
    bool pending() const {
        return in_flight_ > 0 || fused_pending() || together_.pending() || !unstarted_.empty();
    }

    // False when the context was found dead before anything was started: `done` is untouched, and
    // lost() is true.
    bool start(const Order& order, Completion& done);
    // Device::cut_through(), of queues d2h and h2d.
    bool cut_through(const Order& order, Completion& done);
    // Of a copy in parts. False: nothing has happened.
    bool copy_parts(const Copy& copy, Completion& done) {
        return !lost() && together_.start(copy, done);
    }
    void flush_batch(BatchHint more) {
        small_.flush_batch(more);
        large_.flush_batch(more);
    }
    // Completes what has ended; returns how many.
    int progress();
    // Waits for the copies in flight, then gives streams and events back. Quiet when the context is
    // dead.
    void close();
    // The context is gone: forgets its handles and fails what was in flight. No driver call.
    void abandon(CUresult why);
    // Then: what may go another way, as it was not started, or a persistent kernel had it.
    std::vector<FusedQueue::Item> take_unstarted();

  private:
    // A reduction whose lists outlive the call.
    struct KeptReduction {
        explicit KeptReduction(const Reduce& of)
            : sources(of.sources.begin(), of.sources.end()),
              also(of.also.begin(), of.also.end()),
              reduce(of) {
            reduce.sources = sources;
            reduce.also = also;
        }
        std::vector<const void*> sources;
        std::vector<void*> also;
        Reduce reduce;
    };
    enum class By : std::uint8_t { stream, resident, nobody };  // nobody: it failed to start
    struct Pending {
        Completion* done;
        CUevent event;       // null: seen by a flag, by a query of the whole stream, or resident
        std::uint32_t flag;  // what the flag will be; 0: no flag
        Copy copy;
        Status failure;  // what went wrong after the copy had started
        RowTables::Held tables = 0;
        By by = By::stream;
        const std::uint32_t* word = nullptr;         // the flag, where it is not the queue's
        std::unique_ptr<KeptReduction> reduction{};  // that the kernel makes instead of a copy
        std::vector<Rows> rows{};                    // of `copy`, while the kernel has it
    };
    // The copies of a queue that a kernel which stays has: those before the first that was not taken
    // are told with the queue's others.
    class Taken final : public ResidentCopies::User {
      public:
        void ended() override { ++ended_; }
        void untaken(const Copy&) override { ++untaken_; }
        void failed(const Status& why) override {
            why_ = why;
            ++failed_;
        }
        // How the oldest one ended, once; none: it has not.
        std::optional<Status> take_end();
        // Those that have ended and were not told; behind them, those that were not taken.
        int told_later() const { return ended_ + failed_; }
        bool has_untaken() const { return untaken_ > 0; }
        int take_untaken() { return std::exchange(untaken_, 0); }

      private:
        int ended_ = 0, failed_ = 0, untaken_ = 0;
        Status why_;
    };
    struct QueueState {
        CUstream stream = nullptr;
        std::deque<Pending> pending;
        std::uint32_t flags = 0;  // written so far
        Doubt doubt;              // of the flag of the head
        bool ask = false;         // of the driver, in this progress()
        bool used = false;        // listed in used_
        Taken taken;
        std::uint32_t next_flag() {
            doubt.reset();
            if (++flags == 0) ++flags;
            return flags;
        }
    };
    bool fused_pending() const { return small_.pending() || large_.pending(); }
    std::size_t queue(const Order& order) const;
    static bool suits_a_kernel(const Order& order, Copies copies);
    Issued issue_in(const QueueState& queue, const Order& order);
    QueueState& use(std::size_t index);
    void push_taken(QueueState& queue, const Copy& copy, Completion& done);
    // `brief`: a reduction, or rows, that a persistent kernel would take.
    bool start_in_queue(const Order& order, std::size_t index, bool brief, Completion& done);
    void write_flag(std::size_t index, Pending& pending);
    void start_untaken(std::size_t index);
    void close_all();
    std::uint32_t write_word(const Order& order, std::size_t index);
    bool flag_shows(std::size_t index);
    bool doubtful(QueueState& queue) const;
    void create_events();
    CUevent record(CUstream stream);
    bool finish_head(QueueState& queue);
    bool tell_head(std::size_t index);
    void complete_head(QueueState& queue, Status status);
    void abandon_head(QueueState& queue, CUresult why);

    Driver& driver_;
    Context context_;
    const CopySettings& settings_;
    RowsIntoSharedGpu rows_into_shared_gpu_;
    std::vector<QueueState> queues_;
    std::vector<std::size_t> used_;  // those that copies went through: most GPUs are nobody's here
    Flags flags_;                    // one of each queue
    ResidentCopies resident_;
    FusedCopies small_, large_;
    TogetherCopies together_;
    RowKernel row_kernel_;
    ReduceLauncher reductions_;
    std::vector<CUevent> free_events_;
    std::vector<FusedQueue::Item> unstarted_;  // of queues, when the context is gone
    int in_flight_ = 0;
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
