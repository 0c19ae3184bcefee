// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentCopies: small copies of one context by a kernel that stays for a while
// (device/kernels/copy_resident.cu). Starting one is a few stores to page-locked memory, its end a
// load; no call of the driver is made for it.
//
//   consider()  -> [launch ........ stays ........ ended]      residency.hpp says when
//   take()             item  item item      item               while it runs, as far as is known
//
// The kernel may end just before an item comes. It says which item it takes no more, and the copies
// of those go another way: take_untaken().
#pragma once

#include "device/cuda/copies.hpp"
#include "device/cuda/copy_ring.hpp"
#include "device/cuda/kernel_module.hpp"
#include "device/cuda/pinned_memory.hpp"
#include "device/fused_queue.hpp"
#include "device/residency.hpp"

#include <deque>
#include <utility>
#include <vector>

namespace gantry::device::cuda {

class ResidentCopies {
  public:
    ResidentCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                   const CopySettings& settings);
    ResidentCopies(const ResidentCopies&) = delete;
    ResidentCopies& operator=(const ResidentCopies&) = delete;

    bool pending() const { return !flights_.empty() || !untaken_.empty(); }
    // False: no kernel stays, or its ring is full.
    bool take(const Copy& copy, Completion& done);
    // A copy was started another way, with the context current: launches a kernel if one shall stay
    // from now on.
    void consider();
    // Completes what has ended; returns how many.
    int progress();
    // What it did not take, or not all of, once nothing of it is being copied any more.
    std::vector<FusedQueue::Item> take_untaken() { return std::exchange(untaken_, {}); }
    struct Counts {
        std::uint64_t copies = 0, launches = 0, untaken = 0;
    };
    const Counts& counts() const { return counts_; }
    // Found dead, or closed.
    bool lost() const { return lost_; }
    // The context is gone: what was started fails.
    void abandon(CUresult why);
    // From now on none is launched.
    void launch_no_more() { closing_ = true; }
    // Waits for the kernel to end, with the context current and nothing pending.
    void close();

  private:
    struct Flight {
        Copy copy;
        Completion* done;
        std::uint64_t first;  // item
        unsigned items;
        unsigned ended;  // of them
    };
    enum class Kernel : std::uint8_t { none, launched, stays };

    bool stays(Nanoseconds now);
    bool has_ended();
    bool prepare();
    bool launch();
    void fail_all(const Status& why);
    bool goes_another_way(const Flight& flight) const;
    void look_closer();

    Driver& driver_;
    Context context_;
    const CopySettings& settings_;
    Residency residency_;
    KernelModule module_;
    CUfunction function_ = nullptr;
    PinnedMemory memory_;
    CopyRing ring_;
    CUstream stream_ = nullptr;
    Kernel kernel_ = Kernel::none;
    std::uint64_t launch_ = 0;  // its number
    Nanoseconds launched_at_ = 0, last_item_at_ = 0;
    std::uint64_t first_untaken_ = 0;  // item, when no kernel runs
    std::uint64_t next_ = 0;           // item to be put
    std::uint64_t copies_ = 0;         // of this kernel
    Counts counts_;
    std::deque<Flight> flights_;
    Doubt doubt_;
    std::vector<FusedQueue::Item> untaken_;
    bool closing_ = false;
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
