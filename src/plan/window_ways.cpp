// SPDX-License-Identifier: BSD-3-Clause
#include "plan/window_ways.hpp"

#include <fmt/format.h>

namespace gantry::plan {
namespace {

// A batch of fewer is not worth the copy.
constexpr Bytes kLeastInBatch = 8;

}  // namespace

WindowWay window_way(const WindowQuestion& question, const WindowFacts& facts) {
    using Verb = WindowQuestion::Verb;
    if (facts.direct) return WindowWay::direct;
    if (question.verb == Verb::changes_items || !question.one_run) return WindowWay::message;
    const bool large = facts.straight_from > 0 && question.bytes >= facts.straight_from;
    // A put from elsewhere is copied to host memory first; a get has to be put where it belongs.
    const bool can_be_put = question.verb == Verb::put || question.origin_plain;
    if (facts.keyed && large && can_be_put) return WindowWay::straight;
    const bool small = question.bytes * kLeastInBatch <= facts.batch_bytes;
    if (question.verb == Verb::put && question.origin_plain && small) return WindowWay::batch;
    return WindowWay::message;
}

std::string window_sentence(std::uint32_t window, int targets, const WindowFacts& facts) {
    std::string text = fmt::format("window {}: operations at {} rank{} ", window, targets,
                                   targets == 1 ? "" : "s");
    if (facts.direct)
        return text + "are loads, stores and copies, and need no call of the target's";
    if (facts.keyed && facts.straight_from > 0) {
        text += fmt::format("go straight over the network from {} on", facts.straight_from);
        if (facts.rails > 1) text += fmt::format(", over {} rails", facts.rails);
        text += " (puts, and gets as puts of the target), else as messages; ";
    } else {
        text += "go as messages; ";
    }
    text += facts.keyed && facts.unattended
                ? "puts that go straight need no call of the target's, all else does"
                : "all of them need the target to call MPI, or GANTRY_PROGRESS=thread there";
    return text;
}

}  // namespace gantry::plan
