// SPDX-License-Identifier: BSD-3-Clause
//
// RailShares: which rail of a peer carries a put, or which part of it. A rail is one port of one
// network card. Plain arithmetic without a transport, so that a test sees every rule.
//
//   bytes of the put             binding    round robin    even                weighted
//   up to small_max              home rail  home rail      home rail           home rail
//   less than two stripes        home rail  the next one   the next one        the rail that ends it first
//   more                         home rail  the next one   equal stripes       stripes that end together
//
// Weighted takes each rail's rate as measured, and what it still has to carry, into account, so
// unequal rails all end at the same time. A rate is bytes by time of the last puts, over twice as many
// bytes as were under way at once: a process that comes late finds many of them ended at one moment, and
// only together do they say how long they took.
#pragma once

#include "base/units.hpp"

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace gantry::transfer {

inline constexpr int kMostRails = 8;

enum class RailPolicy : std::uint8_t { binding, round_robin, even, weighted };
// The policy of that name; nothing when there is none.
std::optional<RailPolicy> rail_policy(std::string_view name);

struct RailRules {
    RailPolicy policy = RailPolicy::weighted;
    Bytes small_max = 16 * kKiB;  // larger puts leave the home rail
    Bytes stripe = 64 * kKiB;     // no part of a divided put is smaller
};

// One part of a put, and the rail that carries it.
struct Stripe {
    int rail = 0;
    Bytes offset = 0, bytes = 0;
};

class Stripes {
  public:
    void add(const Stripe& stripe) { stripes_[static_cast<std::size_t>(count_++)] = stripe; }
    std::span<const Stripe> all() const {
        return std::span(stripes_).first(static_cast<std::size_t>(count_));
    }

  private:
    std::array<Stripe, kMostRails> stripes_;
    int count_ = 0;
};

class RailShares {
  public:
    // `home`: the rail of small puts. `rate`: bytes per second of each rail before anything is
    // measured. `latency`: of an empty put, which a measured time contains.
    RailShares(int rails, int home, double rate, Nanoseconds latency);

    // The parts of a put over the rails that are up, on at most `most` of them. At least one rail is
    // up.
    Stripes divide(Bytes bytes, int most, const RailRules& rules);

    // A part leaves, and it has ended: its bytes are at the peer, or the rail failed.
    void begin(int rail, Bytes bytes, Nanoseconds now);
    void end(int rail, Bytes bytes, Nanoseconds now, bool arrived);

    int rails() const { return rails_; }
    int home_rail() const { return home_; }
    int up() const;
    bool is_up(int rail) const { return at(rail).up; }
    void lose(int rail) {
        at(rail).up = false;
        ++at(rail).losses;
    }
    void regain(int rail) { at(rail).up = true; }

    // What is told to people: the bytes so far, the rate, whether that was measured, and what failed.
    Bytes carried(int rail) const { return at(rail).carried; }
    double rate(int rail) const { return at(rail).rate; }
    bool is_measured(int rail) const { return at(rail).measured_time > 0; }
    int losses(int rail) const { return at(rail).losses; }
    std::uint64_t failed_parts(int rail) const { return at(rail).failed_parts; }

  private:
    struct Rail {
        bool up = true;
        double rate = 0;
        Bytes outstanding = 0;
        Bytes carried = 0;
        int losses = 0;
        std::uint64_t failed_parts = 0;
        // The measurement under way: since the rail was idle, or since the last one ended.
        Nanoseconds since = 0;
        Bytes arrived = 0;
        bool from_idle = true;
        Bytes most_outstanding = 0;  // since the rail was idle
        // The last ones together.
        double measured_bytes = 0, measured_time = 0;
    };
    Rail& at(int rail) { return all_[static_cast<std::size_t>(rail)]; }
    const Rail& at(int rail) const { return all_[static_cast<std::size_t>(rail)]; }
    void measure(Rail& carrier, Nanoseconds now) const;
    int home() const;
    int next();
    int earliest(Bytes bytes) const;
    Stripes even(Bytes bytes, int most, Bytes stripe);
    Stripes weighted(Bytes bytes, int most, Bytes stripe) const;

    int rails_;
    int home_;
    Nanoseconds latency_;
    int last_ = 0;  // of the rails in turn
    std::array<Rail, kMostRails> all_;
};

}  // namespace gantry::transfer
