// SPDX-License-Identifier: BSD-3-Clause
#include "contents.hpp"

#include "job.hpp"
#include "pattern.hpp"

#include <fmt/format.h>

namespace gantry::bench {

Contents::Contents(const Options& options, const Plan& plan)
    : options_(options),
      plan_(plan),
      outgoing_(options.placement[side()], plan.bytes, plan.messages),
      incoming_(options.placement[side()], plan.bytes, plan.messages),
      scratch_(outgoing_.total_bytes(), true) {}

bool Contents::sends() const {
    return side() == 0 || plan_.both_ways;
}
bool Contents::receives() const {
    return side() == 1 || plan_.both_ways;
}

void Contents::renew() {
    ++sample_;
    if (!options_.validate || !sends()) return;
    for (int i = 0; i < plan_.messages; ++i)
        fill(place(i), {plan_.bytes, sample_, i, rank()});
    outgoing_.write(scratch_.data());
}

void Contents::check(const std::string& way) {
    if (!options_.validate || !receives()) return;
    incoming_.read(scratch_.data());
    for (int i = 0; i < plan_.messages; ++i)
        if (auto wrong = mistake(place(i), {plan_.bytes, sample_, i, peer()}))
            give_up(fmt::format(
                "wrong data in message {} of sample {} from rank {} ({}, {} "
                "bytes): {}\n  to see it again: {}",
                i, sample_, peer(), way, plan_.bytes, *wrong, command_for(options_, plan_.bytes)));
}

}  // namespace gantry::bench
