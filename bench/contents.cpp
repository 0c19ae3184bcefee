// SPDX-License-Identifier: BSD-3-Clause
#include "contents.hpp"

#include "job.hpp"
#include "pattern.hpp"

#include <fmt/format.h>

#include <cstring>

namespace gantry::bench {
namespace {

constexpr int kBetween = 0xA5;  // rows

}  // namespace

Contents::Contents(const Options& options, const Plan& plan)
    : options_(options),
      plan_(plan),
      outgoing_(options.placement[side()], plan.bytes, plan.messages, options.rows),
      incoming_(options.placement[side()], plan.bytes, plan.messages, options.rows),
      scratch_(outgoing_.total_bytes(), true),
      packed_(options.rows.any() ? plan.bytes : 0) {}

bool Contents::sends() const {
    return side() == 0 || plan_.both_ways;
}
bool Contents::receives() const {
    return side() == 1 || plan_.both_ways;
}

void Contents::spread(int message) {
    const Rows& rows = options_.rows;
    for (Bytes row = 0; row < rows.count(plan_.bytes); ++row)
        std::memcpy(place(message) + row * rows.stride, packed_.data() + row * rows.block,
                    rows.block);
}

std::optional<Bytes> Contents::collect(int message) {
    const Rows& rows = options_.rows;
    for (Bytes row = 0; row < rows.count(plan_.bytes); ++row)
        std::memcpy(packed_.data() + row * rows.block, place(message) + row * rows.stride,
                    rows.block);
    for (Bytes at = 0; at < outgoing_.stride(); ++at) {
        const bool between = at >= rows.span(plan_.bytes) || at % rows.stride >= rows.block;
        if (between && place(message)[at] != std::byte{kBetween}) return at;
    }
    return std::nullopt;
}

void Contents::renew() {
    ++sample_;
    if (!options_.validate) return;
    if (options_.rows.any() && receives()) {
        std::memset(scratch_.data(), kBetween, incoming_.total_bytes());
        incoming_.write(scratch_.data());
    }
    if (!sends()) return;
    for (int i = 0; i < plan_.messages; ++i) {
        const Pattern pattern{plan_.bytes, sample_, i, rank()};
        fill(options_.rows.any() ? packed_.data() : place(i), pattern);
        if (options_.rows.any()) spread(i);
    }
    outgoing_.write(scratch_.data());
}

void Contents::check(const std::string& way) {
    if (!options_.validate || !receives()) return;
    incoming_.read(scratch_.data());
    for (int i = 0; i < plan_.messages; ++i) {
        const std::optional<Bytes> spoilt = options_.rows.any() ? collect(i) : std::nullopt;
        if (spoilt)
            give_up(fmt::format(
                "message {} of sample {} from rank {} ({}, {} bytes) wrote between its "
                "rows, at byte {}\n  to see it again: {}",
                i, sample_, peer(), way, plan_.bytes, *spoilt, command_for(options_, plan_.bytes)));
        const std::byte* came = options_.rows.any() ? packed_.data() : place(i);
        if (auto wrong = mistake(came, {plan_.bytes, sample_, i, peer()}))
            give_up(fmt::format(
                "wrong data in message {} of sample {} from rank {} ({}, {} "
                "bytes): {}\n  to see it again: {}",
                i, sample_, peer(), way, plan_.bytes, *wrong, command_for(options_, plan_.bytes)));
    }
}

}  // namespace gantry::bench
