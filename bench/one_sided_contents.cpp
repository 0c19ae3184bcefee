// SPDX-License-Identifier: BSD-3-Clause
#include "one_sided_contents.hpp"

#include "pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::bench {
namespace {

// Small numbers that differ between samples, messages, ranks and items.
long number(std::uint64_t sample, int message, int from, Bytes item = 0) {
    return static_cast<long>((sample * 31 + static_cast<std::uint64_t>(message) * 7 +
                              static_cast<std::uint64_t>(from) * 3 + item) %
                                 1000 +
                             1);
}

Bytes operand_bytes(const Options& options, const Plan& plan) {
    return options.benchmark == Benchmark::cas ? 2 * kItemBytes : plan.bytes;
}

}  // namespace

OneSidedContents::OneSidedContents(const Options& options, const Plan& plan)
    : options_(options),
      plan_(plan),
      operand_(options.placement[side()], operand_bytes(options, plan), plan.messages),
      result_(options.placement[side()], plan.bytes, plan.messages),
      scratch_(std::max(operand_.total_bytes(), result_.total_bytes()), true) {}

void OneSidedContents::fill_operand() {
    for (int i = 0; i < plan_.messages; ++i) {
        switch (options_.benchmark) {
            case Benchmark::put: fill(place(operand_, i), {plan_.bytes, sample_, i, rank()}); break;
            case Benchmark::accumulate:
                for (Bytes item = 0; item < plan_.bytes / kItemBytes; ++item)
                    items<double>(operand_, i)[item] =
                        static_cast<double>(number(sample_, i, rank(), item));
                break;
            case Benchmark::fetch_op: *items<long>(operand_, i) = number(sample_, i, rank()); break;
            default:  // cas: from the first to the second, and back
                items<long>(operand_, i)[0] = number(sample_, i, peer(), 1);
                items<long>(operand_, i)[1] = number(sample_, i, rank());
        }
    }
}

void OneSidedContents::fill_exposed() {
    for (int i = 0; i < plan_.messages; ++i) {
        switch (options_.benchmark) {
            case Benchmark::put: *place(result_, i) = std::byte{0}; break;
            case Benchmark::get: fill(place(result_, i), {plan_.bytes, sample_, i, rank()}); break;
            case Benchmark::accumulate:
                for (Bytes item = 0; item < plan_.bytes / kItemBytes; ++item)
                    items<double>(result_, i)[item] =
                        static_cast<double>(number(sample_, i, rank(), item + 1));
                break;
            default: *items<long>(result_, i) = number(sample_, i, rank(), 1);
        }
    }
}

void OneSidedContents::renew(OneSidedWay& way) {
    ++sample_;
    if (!options_.validate) return;
    if (is_origin(options_) && options_.benchmark != Benchmark::get) {
        fill_operand();
        operand_.write(scratch_.data());
    }
    if (is_target(options_)) {
        fill_exposed();
        way.write_exposed(scratch_.data());
    }
}

void OneSidedContents::wrong(const OneSidedWay& way, int message, const std::string& what) const {
    give_up(
        fmt::format("wrong data in {} {} of sample {} ({}, {} bytes): {}\n  to see it again: {}",
                    name(options_.benchmark), message, sample_, way.name(), plan_.bytes, what,
                    command_for(options_, plan_.bytes)));
}

void OneSidedContents::check_pattern(const OneSidedWay& way, const Buffer& as, int message) const {
    if (auto found = mistake(place(as, message), {plan_.bytes, sample_, message, peer()}))
        wrong(way, message, *found);
}

void OneSidedContents::check_sums(const OneSidedWay& way, int message, int rounds) const {
    for (Bytes item = 0; item < plan_.bytes / kItemBytes; ++item) {
        const double is = items<double>(result_, message)[item];
        const long before = way.adds() ? number(sample_, message, rank(), item + 1) : 0;
        const long added = number(sample_, message, peer(), item) * (way.adds() ? rounds : 1);
        if (is != static_cast<double>(before + added))
            wrong(way, message,
                  fmt::format("item {} at the target is {} and should be {}", item, is,
                              before + added));
    }
}

void OneSidedContents::check_item(const OneSidedWay& way, int message, long is, long wanted,
                                  const char* what) const {
    if (is != wanted)
        wrong(way, message, fmt::format("{} is {} and should be {}", what, is, wanted));
}

void OneSidedContents::check(OneSidedWay& way, int rounds) {
    if (!options_.validate) return;
    const bool fetches =
        options_.benchmark == Benchmark::fetch_op || options_.benchmark == Benchmark::cas;
    const bool swaps = options_.benchmark == Benchmark::cas;
    // After so many rounds, begun by `from` at `at`.
    const auto value_after = [&](int message, int from, int at, int done) {
        const long first = number(sample_, message, at, 1);
        if (swaps) return done % 2 == 0 ? first : number(sample_, message, from);
        return first + done * number(sample_, message, from);
    };
    if (is_target(options_) && options_.benchmark != Benchmark::get) {
        way.read_exposed(scratch_.data());
        for (int i = 0; i < plan_.messages; ++i) {
            if (options_.benchmark == Benchmark::put) check_pattern(way, result_, i);
            if (options_.benchmark == Benchmark::accumulate) check_sums(way, i, rounds);
            if (fetches)
                check_item(way, i, *items<long>(result_, i), value_after(i, peer(), rank(), rounds),
                           "the item at the target");
        }
    }
    if (is_origin(options_) && (fetches || options_.benchmark == Benchmark::get)) {
        result_.read(scratch_.data());
        for (int i = 0; i < plan_.messages; ++i) {
            if (fetches)
                check_item(way, i, *items<long>(result_, i),
                           value_after(i, rank(), peer(), rounds - 1), "what was fetched last");
            else
                check_pattern(way, result_, i);
        }
    }
}

}  // namespace gantry::bench
