// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/rail_shares.hpp"

#include "base/status.hpp"

#include <algorithm>

namespace gantry::transfer {
namespace {

// Fewer bytes say more about latency than about the rate.
constexpr Bytes kMeasuredFrom = 256 * kKiB;
// Of what was under way at once: so much of the past makes the rate.
constexpr double kRemembered = 2;
// A rail that seems to be much slower than the others still carries a little, so that its rate is
// measured again.
constexpr double kSlowest = 1.0 / 64;
constexpr double kNanosecondsPerSecond = 1e9;

}  // namespace

std::optional<RailPolicy> rail_policy(std::string_view name) {
    if (name == "binding") return RailPolicy::binding;
    if (name == "round_robin") return RailPolicy::round_robin;
    if (name == "even") return RailPolicy::even;
    if (name == "weighted") return RailPolicy::weighted;
    return std::nullopt;
}

RailShares::RailShares(int rails, int home, double rate, Nanoseconds latency)
    : rails_(std::clamp(rails, 1, kMostRails)), home_(home), latency_(latency), last_(home) {
    GANTRY_ASSERT(home >= 0 && home < rails_);
    for (Rail& rail : all_)
        rail.rate = rate;
}

int RailShares::up() const {
    int count = 0;
    for (int rail = 0; rail < rails_; ++rail)
        count += is_up(rail) ? 1 : 0;
    return count;
}

// The next one that is up stands in for a home rail that is down.
int RailShares::home() const {
    int rail = home_;
    while (!is_up(rail))
        rail = (rail + 1) % rails_;
    return rail;
}

int RailShares::next() {
    do
        last_ = (last_ + 1) % rails_;
    while (!is_up(last_));
    return last_;
}

// The rail that would have carried so many more bytes first; from the home rail on where several
// would.
int RailShares::earliest(Bytes bytes) const {
    int best = -1;
    double best_end = 0;
    for (int step = 0; step < rails_; ++step) {
        const int rail = (home_ + step) % rails_;
        if (!is_up(rail)) continue;
        const double end = static_cast<double>(at(rail).outstanding + bytes) / at(rail).rate;
        if (best < 0 || end < best_end) {
            best = rail;
            best_end = end;
        }
    }
    return best;
}

Stripes RailShares::divide(Bytes bytes, int most, const RailRules& rules) {
    GANTRY_ASSERT(up() > 0);
    Stripes one;
    const bool divisible = bytes >= 2 * rules.stripe && std::min(most, up()) > 1;
    if (rules.policy == RailPolicy::binding || bytes <= rules.small_max) {
        one.add({home(), 0, bytes});
    } else if (rules.policy == RailPolicy::round_robin ||
               (rules.policy == RailPolicy::even && !divisible)) {
        one.add({next(), 0, bytes});
    } else if (!divisible) {
        one.add({earliest(bytes), 0, bytes});
    } else if (rules.policy == RailPolicy::even) {
        return even(bytes, most, rules.stripe);
    } else {
        return weighted(bytes, most, rules.stripe);
    }
    return one;
}

Stripes RailShares::even(Bytes bytes, int most, Bytes stripe) {
    const auto parts = std::min(
        {static_cast<Bytes>(most), static_cast<Bytes>(up()), std::max<Bytes>(1, bytes / stripe)});
    Stripes stripes;
    Bytes offset = 0;
    for (Bytes part = 0; part < parts; ++part) {
        const Bytes end = bytes * (part + 1) / parts;
        stripes.add({next(), offset, end - offset});
        offset = end;
    }
    return stripes;
}

// All rails that take part end at one moment T: rail i carries T * rate(i) - outstanding(i). Rails
// which would carry less than a stripe do not take part; each one left out raises T for the others.
Stripes RailShares::weighted(Bytes bytes, int most, Bytes stripe) const {
    std::array<int, kMostRails> part{};
    int parts = 0;
    for (int step = 0; step < rails_; ++step) {
        const int rail = (home_ + step) % rails_;
        if (is_up(rail)) part[static_cast<std::size_t>(parts++)] = rail;
    }
    std::array<double, kMostRails> share{};
    while (true) {
        double rates = 0, outstanding = 0;
        for (int i = 0; i < parts; ++i) {
            rates += at(part[static_cast<std::size_t>(i)]).rate;
            outstanding += static_cast<double>(at(part[static_cast<std::size_t>(i)]).outstanding);
        }
        const double end = (static_cast<double>(bytes) + outstanding) / rates;
        int smallest = 0;
        for (int i = 0; i < parts; ++i) {
            const Rail& rail = at(part[static_cast<std::size_t>(i)]);
            share[static_cast<std::size_t>(i)] =
                end * rail.rate - static_cast<double>(rail.outstanding);
            if (share[static_cast<std::size_t>(i)] < share[static_cast<std::size_t>(smallest)])
                smallest = i;
        }
        const bool enough =
            share[static_cast<std::size_t>(smallest)] >= static_cast<double>(stripe);
        if (parts == 1 || (enough && parts <= most)) break;
        std::copy(part.begin() + smallest + 1, part.begin() + parts, part.begin() + smallest);
        --parts;
    }
    Stripes stripes;
    Bytes offset = 0;
    for (int i = 0; i < parts; ++i) {
        const auto exact = static_cast<Bytes>(share[static_cast<std::size_t>(i)]);
        const Bytes length = i + 1 == parts ? bytes - offset : std::min(exact, bytes - offset);
        stripes.add({part[static_cast<std::size_t>(i)], offset, length});
        offset += length;
    }
    return stripes;
}

void RailShares::begin(int rail, Bytes bytes, Nanoseconds now) {
    Rail& carrier = at(rail);
    if (carrier.outstanding == 0) {
        carrier.since = now;
        carrier.arrived = 0;
        carrier.from_idle = true;
        carrier.most_outstanding = 0;
    }
    carrier.outstanding += bytes;
    carrier.most_outstanding = std::max(carrier.most_outstanding, carrier.outstanding);
}

void RailShares::end(int rail, Bytes bytes, Nanoseconds now, bool arrived) {
    Rail& carrier = at(rail);
    GANTRY_ASSERT(carrier.outstanding >= bytes);
    carrier.outstanding -= bytes;
    if (!arrived) ++carrier.failed_parts;
    if (!arrived) return;
    carrier.carried += bytes;
    carrier.arrived += bytes;
    if (carrier.arrived >= kMeasuredFrom) measure(carrier, now);
}

void RailShares::measure(Rail& carrier, Nanoseconds now) const {
    // Behind an idle rail the first bytes take the latency, too.
    const Nanoseconds took = now - carrier.since - (carrier.from_idle ? latency_ : 0);
    carrier.measured_bytes += static_cast<double>(carrier.arrived);
    carrier.measured_time += static_cast<double>(std::max<Nanoseconds>(took, 0));
    carrier.since = now;
    carrier.arrived = 0;
    carrier.from_idle = false;
    const double remembered = kRemembered * static_cast<double>(carrier.most_outstanding);
    if (carrier.measured_bytes > remembered) {
        carrier.measured_time *= remembered / carrier.measured_bytes;
        carrier.measured_bytes = remembered;
    }
    if (carrier.measured_time <= 0) return;
    double fastest = 0;
    for (int other = 0; other < rails_; ++other)
        if (&at(other) != &carrier && is_up(other)) fastest = std::max(fastest, at(other).rate);
    carrier.rate = std::max(carrier.measured_bytes * kNanosecondsPerSecond / carrier.measured_time,
                            fastest * kSlowest);
}

}  // namespace gantry::transfer
