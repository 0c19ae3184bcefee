// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentCopies: small copies of one context by a persistent kernel
// (device/kernels/copy_resident.cu): those between devices (fused.hpp), and those to and from host
// memory (streams.hpp); and those of messages that are cut through (Device::cut_through). It makes short reductions,
// too (resident_together.cpp), and moves rows of strided memory (resident_rows.cpp). Starting one is a few stores
// to page-locked memory, its end a load; the driver is called only to ask whether the program's host
// memory of more than a kibibyte is page-locked still.
//
//   consider()  -> [launch ........ stays ........ ended]      residency.hpp says when
//   take()             item  item item      item               while it runs, as far as is known
//
// The kernel may end just before an item comes. It says which item it takes no more, and the copies
// of those go another way: User::untaken. So do those of a kernel whose context has died.
#pragma once

#include "base/fifo.hpp"
#include "device/cuda/copies.hpp"
#include "device/cuda/copy_ring.hpp"
#include "device/cuda/kernel_module.hpp"
#include "device/cuda/pinned_memory.hpp"
#include "device/residency.hpp"

namespace gantry::device::cuda {

class ResidentCopies {
  public:
    ResidentCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                   const CopySettings& settings);
    ResidentCopies(const ResidentCopies&) = delete;
    ResidentCopies& operator=(const ResidentCopies&) = delete;

    // Whose copies they are. It outlives them. Its copies end in the order in which they were taken,
    // until one was not taken after all: then none behind it was.
    class User {
      public:
        virtual void ended() = 0;
        // No kernel took all of it, and nothing of it is being copied any more.
        virtual void untaken(const Copy& copy) = 0;
        virtual void failed(const Status& why) = 0;

      protected:
        ~User() = default;
    };

    struct Way {
        Ends ends = Ends::devices;
        bool page_locked = false;  // all of the host's end is, as far as is known
    };

    // With the context current, before anybody waits: all that launching one needs but for the launch.
    void make_ready() {
        if (module_.wanted()) (void)prepare();
    }
    bool pending() const { return !flights_.empty(); }
    // False: no kernel stays, it gains nothing on these copies, or its ring is full.
    bool take(const Copy& copy, const Way& way, Copies copies, User& user);
    // A copy to or from page-locked memory of ours, as part of a message cut through slots
    // (Device::cut_through). False: no kernel stays for long enough, or its ring is full.
    bool take_cut_through(const Copy& copy, Ends ends, User& user);
    // Copy::parts, Copy::rows, and a short reduction: by as many items as they need, with one end. Only what
    // suits.
    bool take_parts(const Copy& copy, std::span<const CopyPart> parts, User& user);
    bool take_rows(const Copy& copy, Bytes items, Ends ends, User& user);
    bool take_reduction(const Reduce& reduction, const Copy& copy, User& user);
    // Whether it takes them if it is there; if it was not, consider() follows.
    static bool suits(std::span<const CopyPart> parts);
    static bool suits(const Reduce& reduction);
    // The items that its rows take; 0: they do not suit.
    static Bytes items_of_rows(const Copy& copy);
    bool would_cut_through(Ends ends) const;
    // Such a message was begun another way.
    void consider_cut_through(Ends ends, Bytes message);
    // A copy that it could have taken was started another way, with the context current: launches a
    // kernel if one shall stay from now on.
    void consider(Ends ends, Copies copies);
    // Tells their users what has ended.
    void progress();
    struct Counts {
        std::uint64_t copies = 0, launches = 0, untaken = 0;
        std::uint64_t cuts_through = 0;  // messages that went piece by piece: not among the copies
    };
    const Counts& counts() const { return counts_; }
    // Found dead, or closed.
    bool lost() const { return lost_; }
    // The context is gone: nothing is copied any more.
    void abandon();
    // From now on none is launched.
    void launch_no_more() { closing_ = true; }
    // Waits for the kernel to end, with the context current and nothing pending.
    void close();

  private:
    struct Flight {
        Copy copy;
        User* user = nullptr;
        std::uint64_t first = 0;  // item
        unsigned items = 0;
        unsigned ended = 0;                // of them
        Bytes share = 0;                   // of each item
        bool in_slots = false;             // to be copied out of them in the end
        std::uint64_t* counted = nullptr;  // among Counts, if at all
    };
    enum class Kernel : std::uint8_t { none, launched, stays };

    bool stays(Nanoseconds now);
    bool has_ended();
    bool has_room(Bytes items) const;
    // A reduction, parts or rows: what would be a launch otherwise.
    bool takes_for_a_launch(Ends ends, Nanoseconds now);
    void took(const Copy& copy, User& user, std::uint64_t first, Bytes share, bool in_slots,
              std::uint64_t* counted, Nanoseconds now, Nanoseconds until);
    bool may_launch();
    bool prepare();
    bool launch();
    void give_back(const Flight& flight);
    void empty_slots(const Flight& flight) const;
    bool reaches(const Copy& copy, Ends ends);
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
    Nanoseconds link_busy_until_ = 0;  // by what flows out
    std::uint64_t first_untaken_ = 0;  // item, when no kernel runs
    std::uint64_t next_ = 0;           // item to be put
    Nanoseconds saved_ = 0;            // by this kernel
    Counts counts_;
    Fifo<Flight> flights_;
    unsigned taken_ = 0;  // while others were under way: the clock is read for some of them
    Doubt doubt_;
    bool closing_ = false;
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
