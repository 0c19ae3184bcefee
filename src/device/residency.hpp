// SPDX-License-Identifier: BSD-3-Clause
//
// Residency: when a copying kernel shall stay on a GPU. A copy that such a kernel takes costs no
// call of the driver and ends about twice as soon, but launching one costs the processor a call and
// the program some room on its multiprocessors, and whoever waits for the whole device waits for
// it, too. So it is an investment, the same for every device:
//
//   invest()  a copy went the usual way, close behind another one. What a persistent kernel had
//             saved is put aside; when that pays for a launch and a part of the time that it stays
//             in vain at its end, one is launched; not where another rank waits for turns of the GPU.
//   ended()   it ends by itself when nothing comes for `idle_timeout`, or after kLives times that, so
//             that nobody waits for it for ever. Had it too little to do, the next one must be
//             saved for twice as long, which is forgotten with time; had it enough, the next one
//             comes with the next copy.
//
// A program that waits for the whole device behind each burst of messages waits for all of that
// time, and its next message comes soon after the kernel's end. So a kernel whose end the next copy
// followed at once must have saved all of it. And where a copy comes so late after the last one (two fifths of
// `idle_timeout`: 20 us, and a message to and fro between two GPUs takes 17) that the program has done something
// in between, which may be such a wait, it puts aside no more than a thirtieth of the time since then,
// towards all of the time that a kernel may be waited for in vain.
#pragma once

#include "base/break_even.hpp"
#include "device/facts.hpp"
#include "device/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace gantry::device {

// The copies that such a kernel can make: between device memories, and between device and host
// memory.
enum class Ends : std::uint8_t { devices, to_host, from_host };

// Whether a copy comes alone, or while others of its kind are under way.
enum class Copies : std::uint8_t { alone, in_a_row };

// With host memory; larger ones gain little. From any host memory, through page-locked slots, only
// what the processor copies in no time.
inline constexpr Bytes kMostOfResident = 128 * kKiB, kMostThroughSlots = 32 * kKiB;
// Between two GPUs a copy that comes alone; in a row they share a launch (fused.hpp); copy engines
// are quicker from 512 KiB up also alone (docs/design/persistent-kernel.md).
inline constexpr Bytes kMostBetweenGpus = 256 * kKiB;

// Of pieces that leave one after the other (Device::cut_through), what other copies may wait for behind them:
// a copy engine has begun by then.
inline constexpr Nanoseconds kMostBacklog = 6 * kMicrosecond;

class Residency {
  public:
    // `idle_timeout`: GANTRY_IDLE_TIMEOUT; 0: no kernel stays.
    Residency(const GpuFacts& facts, Nanoseconds idle_timeout)
        : gpu_(facts.uuid),
          takes_turns_(!facts.mps),
          idle_timeout_(idle_timeout),
          current_idle_timeout_(idle_timeout),
          saving_{saving(facts.kernel_latency, facts.resident_latency),
                  saving(facts.copy_latency, facts.resident_out_latency),
                  saving(facts.copy_in_latency, facts.resident_in_latency)},
          makes_{makes(facts.kernel_latency, facts.resident_latency, 8),
                 makes(facts.copy_latency, facts.resident_out_latency, 2),
                 makes(facts.copy_in_latency, facts.resident_in_latency, 2)},
          both_sooner_by_(facts.copy_latency - facts.resident_out_latency + facts.copy_in_latency -
                          facts.resident_in_latency),
          pace_(pace(facts.d2h_bytes_per_second)),
          shortest_(2 * facts.kernel_latency),
          saving_of_one_more_(std::max<Nanoseconds>(facts.chunk_cost - kItem, 0)),
          launch_(facts.launch) {}

    // A kernel that gives up before the first copy can come to it is of no use.
    bool possible() const {
        return idle_timeout_ >= shortest_ && idle_timeout_ > 0 &&
               std::any_of(makes_.begin(), makes_.end(), [](bool makes) { return makes; });
    }
    // Whether it makes such copies; else they go the usual way.
    bool makes(Ends ends) const { return makes_[static_cast<std::size_t>(ends)]; }
    // Whether it makes this one: to or from the host alone only where it saves something.
    bool takes(Ends ends, Copies copies) const {
        return makes(ends) && (ends == Ends::devices || saving(ends, copies) > 0);
    }
    // What it saves of a copy. Of one right behind others to or from the host that is what a call and
    // an engine's gap cost, though alone it may be no quicker.
    Nanoseconds saving(Ends ends, Copies copies = Copies::alone) const {
        const Nanoseconds saving = saving_[static_cast<std::size_t>(ends)];
        const bool follows = copies == Copies::in_a_row && ends != Ends::devices;
        return makes(ends) && follows ? std::max(saving, saving_of_one_more_) : saving;
    }
    // Whether it takes part of a message cut through slots, and what that saves at this end:
    // copy engines begin at the other one when a half of a large message is there, or all of it.
    bool cuts_through(Ends ends) const { return makes(ends) && pace_ > 0; }
    // Whether it is quicker in all, at two GPUs alike, though alone a kernel may be slower.
    bool cut_through_pays(Bytes bytes) const {
        return both_sooner_by_ + takes_to_leave(std::min(bytes, kLargestPiece)) > 0;
    }
    Nanoseconds saving_of_cut_through(Ends ends, Bytes bytes) const {
        return saving(ends) + takes_to_leave(std::min(bytes, kLargestPiece)) / 2;
    }
    // How long its bytes are on the way to the host; and of a mebibyte. A little slower than copy
    // engines, so that they do not pile up on the link (1 MiB by hand 43 us, 52 as fast as it goes).
    Nanoseconds takes_to_leave(Bytes bytes) const {
        return static_cast<Nanoseconds>(bytes * static_cast<Bytes>(pace_) / kMiB);
    }
    Nanoseconds pace() const { return pace_; }
    // Of the kernel that was paid for last: where large messages go to and fro, the next one comes
    // later.
    Nanoseconds idle_timeout() const { return current_idle_timeout_; }
    Nanoseconds life() const { return kLives * current_idle_timeout_; }

    // Whoever shares this GPU waits for kernels of others.
    bool is_time_sliced() const { return takes_turns_; }

    // `neighbours`: null, nobody is known.
    bool invest(Ends ends, Nanoseconds now, const Neighbours* neighbours,
                Copies copies = Copies::alone) {
        // A neighbour's kernels, and its copies inside the GPU, would wait until ours ends.
        return repays(saving(ends, copies), idle_timeout_, now, now) && !keeps_out(neighbours);
    }
    // The same of a message that would have cut_through.
    bool invest_in_cut_through(Ends ends, Bytes message, Nanoseconds now,
                               const Neighbours* neighbours) {
        const Nanoseconds takes = takes_to_leave(message);
        return repays(saving_of_cut_through(ends, message), idle_timeout_ + 4 * takes, now,
                      now + takes) &&
               !keeps_out(neighbours);
    }
    // It took copies, which keep it busy until then, if no others do for longer.
    void took(Nanoseconds until) { last_ = std::max(last_, until); }
    // `saved`: by all the copies that it took.
    void ended(Nanoseconds saved, Nanoseconds now) {
        priced_at_ = now;
        ended_with_ = saved;
        kernel_.begin_anew();
    }

  private:
    // A little slower alone (by one `part`), it is still quicker in a row; to and from the host only what
    // comes in a row goes by it then.
    static bool makes(Nanoseconds usual, Nanoseconds resident, int part) {
        return resident > 0 && resident <= usual + usual / part;
    }
    static Nanoseconds saving(Nanoseconds usual, Nanoseconds resident) {
        return resident > 0 ? std::max<Nanoseconds>(usual - resident, 0) : 0;
    }
    // Of a kernel that nobody needs.
    Nanoseconds price() const { return launch_ + current_idle_timeout_ / kUnnoticed; }
    // Of a copy that came late, in the currency of price().
    Nanoseconds in_doubt(Nanoseconds gap) const {
        return gap * price() / (kPartInVain * (launch_ + current_idle_timeout_));
    }
    // The last kernel, by what its copies saved, and when the first one behind it came.
    void judge(Nanoseconds saved, Nanoseconds gap) {
        const bool waited_for =
            gap > current_idle_timeout_ && gap <= current_idle_timeout_ + kSoonAfter;
        const bool repaid = saved >= (waited_for ? launch_ + current_idle_timeout_ : price());
        if (repaid)
            kernel_.was_worth_it();
        else
            kernel_.was_in_vain(kMostTimesDearer);
        next_at_once_ = repaid;
    }
    bool keeps_out(const Neighbours* neighbours) const {
        return takes_turns_ && neighbours != nullptr && neighbours->use(gpu_);
    }
    static Nanoseconds pace(double bytes_per_second) {
        return bytes_per_second > 0
                   ? static_cast<Nanoseconds>(kSlower * 1e9 * kMiB / bytes_per_second)
                   : 0;
    }
    // `lingers`: the kernel that this copy would like.
    bool repays(Nanoseconds saving, Nanoseconds wanted_idle_timeout, Nanoseconds now,
                Nanoseconds until) {
        const Nanoseconds gap = last_ > 0 ? now - last_ : wanted_idle_timeout + 1;
        const bool close = gap <= wanted_idle_timeout;
        const bool at_once = gap <= wanted_idle_timeout / 5 * 2;
        last_ = until;
        if (ended_with_ >= 0) judge(std::exchange(ended_with_, -1), gap);
        current_idle_timeout_ = wanted_idle_timeout;
        if (now - priced_at_ >= kForgets) {
            kernel_.forgive();
            priced_at_ = now;
        }
        if (std::exchange(next_at_once_, false)) return true;
        if (close) kernel_.put_aside(at_once ? saving : std::min(saving, in_doubt(gap)));
        if (!kernel_.covers(price())) return false;
        kernel_.begin_anew();
        return true;
    }

    static constexpr double kSlower = 1.07;
    static constexpr Bytes kLargestPiece = 512 * kKiB;
    static constexpr int kLives = 20;
    static constexpr std::int64_t kMostTimesDearer = 256;
    static constexpr int kUnnoticed = 5;  // nobody minds most of the time that one stays in vain
    // A program's own short kernel, a call, and the way to the next message.
    static constexpr Nanoseconds kSoonAfter = 40 * kMicrosecond;
    // Of a time with messages, what kernels may be waited for in vain.
    static constexpr int kPartInVain = 32;
    static constexpr Nanoseconds kItem = 500;  // the processor's work on a copy that one takes
    static constexpr Nanoseconds kForgets = 100 * kMillisecond;  // half of what is dearer

    const Uuid gpu_;
    const bool takes_turns_;
    Nanoseconds idle_timeout_, current_idle_timeout_;
    std::array<Nanoseconds, 3> saving_;  // of each copy, by Ends
    std::array<bool, 3> makes_;
    Nanoseconds both_sooner_by_;  // out and in of a few bytes
    Nanoseconds pace_;            // of a mebibyte
    Nanoseconds shortest_;
    Nanoseconds saving_of_one_more_;
    Nanoseconds launch_;
    Nanoseconds ended_with_ = -1;  // what the last one saved, until it is judged
    BreakEven kernel_;
    Nanoseconds priced_at_ = 0;
    Nanoseconds last_ = 0;  // copy
    bool next_at_once_ = false;
};

}  // namespace gantry::device
