// SPDX-License-Identifier: BSD-3-Clause
#include "plan/window_ways.hpp"

#include "plan/p2p_model.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>

namespace gantry::plan {
namespace {

// A batch of fewer is not worth the copy; so what counts as small follows GANTRY_WINDOW_BATCH.
constexpr Bytes kLeastInBatch = 8;

// Reading two vectors and writing one, in copies of one vector.
constexpr Bytes kHalfPasses = 3;

}  // namespace

ChangePlace change_place(const device::GpuFacts& gpu, const ChangeQuestion& question,
                         std::string_view fixed) {
    if (fixed == "host") return ChangePlace::host;
    if (fixed == "gpu") return ChangePlace::gpu;
    const Bytes bytes = question.bytes;
    const Nanoseconds once = transfer_time(bytes, gpu.pageable_bytes_per_second);
    const Nanoseconds out = gpu.pageable_latency + once, in = gpu.copy_in_latency + once;
    const Nanoseconds on_host = out + in + (question.operand_on_device ? out : 0) +
                                transfer_time(kHalfPasses * bytes / 2, gpu.host_bytes_per_second);
    const Nanoseconds on_gpu = gpu.kernel_latency + (question.time_sliced ? gpu.queue_turn : 0) +
                               (question.operand_there ? 0 : in) +
                               transfer_time(kHalfPasses * bytes / 2, gpu.d2d_bytes_per_second);
    return on_gpu < on_host ? ChangePlace::gpu : ChangePlace::host;
}

WindowWay window_way(const WindowQuestion& question, const WindowFacts& facts) {
    using Verb = WindowQuestion::Verb;
    if (facts.direct) return WindowWay::direct;
    if (question.verb == Verb::changes_items) return WindowWay::message;
    const bool large = facts.straight_from > 0 && question.bytes >= facts.straight_from;
    // A put from elsewhere is copied to host memory first; a get has to be put where it belongs.
    const bool can_be_put = question.verb == Verb::put || question.origin_plain;
    if (facts.keyed && large && can_be_put && question.one_run) return WindowWay::straight;
    const bool is_rendezvous =
        facts.rendezvous_from > 0 && question.bytes >= facts.rendezvous_from && question.whole;
    if (is_rendezvous && (facts.on_device || question.origin_on_device))
        return WindowWay::rendezvous;
    if (!question.one_run) return WindowWay::message;
    const bool small = question.bytes * kLeastInBatch <= facts.batch_bytes;
    if (question.verb == Verb::put && question.origin_plain && small) return WindowWay::batch;
    return WindowWay::message;
}

std::string window_sentence(std::uint32_t window, int targets, const WindowFacts& facts) {
    std::string text = fmt::format("window {}: operations at {} rank{} ", window, targets,
                                   targets == 1 ? "" : "s");
    if (facts.direct)
        return text +
               fmt::format("are loads, stores and copies{}, and need no call of the target's",
                           facts.changed_by_gpu ? ", accumulates kernels of its GPU" : "");
    if (facts.keyed && facts.straight_from > 0) {
        text +=
            fmt::format("go straight over the network from {} on", bytes_text(facts.straight_from));
        if (facts.rails > 1) text += fmt::format(", over {} rails", facts.rails);
        text += " (puts, and gets as puts of the target), else as messages; ";
    } else if (facts.on_device && facts.rendezvous_from > 0) {
        text += fmt::format(
            "are announced from {} on, and go as large messages do (a pipeline of slots where the "
            "network "
            "does not reach device memory), else as messages; ",
            bytes_text(facts.rendezvous_from));
    } else {
        text += "go as messages; ";
    }
    text += facts.keyed && facts.unattended
                ? "puts that go straight need no call of the target's, all else does"
                : "all of them need the target to call MPI, or GANTRY_PROGRESS=thread there";
    return text;
}

}  // namespace gantry::plan
