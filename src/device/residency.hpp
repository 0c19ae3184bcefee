// SPDX-License-Identifier: BSD-3-Clause
//
// Residency: when a copying kernel shall stay on a GPU. A copy that such a kernel takes costs no
// call of the driver and ends about twice as soon, but launching one costs the processor a call and
// the program some room on its multiprocessors, and whoever waits for the whole device waits for
// it, too. So it is an investment, the same for every device:
//
//   invest()  a copy went the usual way, close behind another one. What a kernel that stayed had
//             saved is put aside; when that pays for a launch and a part of the time that it stays
//             in vain at its end, one is launched; not where another rank waits for turns of the GPU.
//   ended()   it ends by itself when nothing comes for `linger`, or after kLives times that, so
//             that nobody waits for it for ever. Had it too little to do, the next one must be
//             saved for twice as long, which is forgotten with time; had it enough, the next one
//             comes with the next copy.
//
// A program that waits for the whole device behind each burst of messages waits for all of that
// time, and its next message comes soon after the kernel's end. So a kernel whose end the next copy
// followed at once must have saved all of it.
#pragma once

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
// are quicker from 512 KiB up also alone (docs/design/0010, 13).
inline constexpr Bytes kMostBetweenGpus = 256 * kKiB;

class Residency {
  public:
    // `linger`: GANTRY_LINGER; 0: no kernel stays.
    Residency(const GpuFacts& facts, Nanoseconds linger)
        : gpu_(facts.uuid),
          takes_turns_(!facts.mps),
          linger_(linger),
          saving_{saving(facts.kernel_latency, facts.resident_latency),
                  saving(facts.copy_latency, facts.resident_out_latency),
                  saving(facts.copy_in_latency, facts.resident_in_latency)},
          makes_{makes(facts.kernel_latency, facts.resident_latency, 8),
                 makes(facts.copy_latency, facts.resident_out_latency, 2),
                 makes(facts.copy_in_latency, facts.resident_in_latency, 2)},
          shortest_(2 * facts.kernel_latency),
          saving_of_one_more_(std::max<Nanoseconds>(facts.chunk_cost - kItem, 0)),
          price_(facts.launch + linger / kUnnoticed),
          price_if_waited_for_(facts.launch + linger) {}

    // A kernel that gives up before the first copy can come to it is of no use.
    bool possible() const {
        return linger_ >= shortest_ && linger_ > 0 &&
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
    Nanoseconds linger() const { return linger_; }
    Nanoseconds life() const { return kLives * linger_; }

    // Whoever shares this GPU waits for kernels of others.
    bool takes_turns() const { return takes_turns_; }

    // `neighbours`: null, nobody is known.
    bool invest(Ends ends, Nanoseconds now, const Neighbours* neighbours,
                Copies copies = Copies::alone) {
        // A neighbour's kernels, and its copies inside the GPU, would wait until ours ends.
        return repays(saving(ends, copies), now) &&
               !(takes_turns_ && neighbours != nullptr && neighbours->use(gpu_));
    }
    // It took copies, the last one at `now`.
    void took(Nanoseconds now) { last_ = now; }
    // `saved`: by all the copies that it took.
    void ended(Nanoseconds saved, Nanoseconds now) {
        priced_at_ = now;
        ended_with_ = saved;
        saved_ = 0;
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
    // The last kernel, by what its copies saved, and when the first one behind it came.
    void judge(Nanoseconds saved, Nanoseconds gap) {
        const bool waited_for = gap > linger_ && gap <= linger_ + kSoonAfter;
        const bool repaid = saved >= (waited_for ? price_if_waited_for_ : price_);
        times_dearer_ = repaid ? 1 : std::min(2 * times_dearer_, kMostTimesDearer);
        next_at_once_ = repaid;
    }
    bool repays(Nanoseconds saving, Nanoseconds now) {
        const Nanoseconds gap = last_ > 0 ? now - last_ : linger_ + 1;
        const bool close = gap <= linger_;
        last_ = now;
        if (ended_with_ >= 0) judge(std::exchange(ended_with_, -1), gap);
        if (now - priced_at_ >= kForgets) {
            times_dearer_ = std::max(times_dearer_ / 2, 1);
            priced_at_ = now;
        }
        if (std::exchange(next_at_once_, false)) return true;
        if (close) saved_ += saving;
        if (saved_ < times_dearer_ * price_) return false;
        saved_ = 0;
        return true;
    }

    static constexpr int kLives = 20;
    static constexpr int kMostTimesDearer = 256;
    static constexpr int kUnnoticed = 5;  // nobody minds most of the time that one stays in vain
    // A program's own short kernel, a call, and the way to the next message.
    static constexpr Nanoseconds kSoonAfter = 40 * kMicrosecond;
    static constexpr Nanoseconds kItem = 500;  // the processor's work on a copy that one takes
    static constexpr Nanoseconds kForgets = 100 * kMillisecond;  // half of what is dearer

    const Uuid gpu_;
    const bool takes_turns_;
    Nanoseconds linger_;
    std::array<Nanoseconds, 3> saving_;  // of each copy, by Ends
    std::array<bool, 3> makes_;
    Nanoseconds shortest_;
    Nanoseconds saving_of_one_more_;
    Nanoseconds price_, price_if_waited_for_;  // of one that nobody needs
    Nanoseconds ended_with_ = -1;              // what the last one saved, until it is judged
    int times_dearer_ = 1;
    Nanoseconds priced_at_ = 0;
    Nanoseconds saved_ = 0;
    Nanoseconds last_ = 0;  // copy
    bool next_at_once_ = false;
};

}  // namespace gantry::device
