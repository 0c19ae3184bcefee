// SPDX-License-Identifier: BSD-3-Clause
#include "plan/window_ways.hpp"

#include "plan/ask.hpp"
#include "plan/p2p_model.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>

namespace gantry::plan {
namespace {

// A batch of fewer is not worth the copy; so what counts as small follows GANTRY_WINDOW_BATCH.
constexpr Bytes kLeastInBatch = 8;

// Messages, one after the other, beside those that carry the bytes: what asks for them, says that they
// are there, and the flush that ends the operation with its answer. As the world counts them.
constexpr int kHopsOfPut = 2, kHopsOfGet = 4, kHopsOfRendezvousPut = 5, kHopsOfRendezvousGet = 4;

// Reading two vectors and writing one, in copies of one vector.
constexpr Bytes kHalfPasses = 3;

}  // namespace

// Between GPUs many puts and gets are short and under way at once: what they cost is their launches.
WindowCopy window_copy(const WindowCopyQuestion& question) {
    const bool fused =
        question.bytes > 0 && question.contiguous && question.on_devices && question.between_gpus;
    if (!fused) return WindowCopy::alone;
    return question.others && question.bytes <= device::kMostInOneLaunch ? WindowCopy::with_others
                                                                         : WindowCopy::fused;
}

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

Nanoseconds message_time(const MessageQuestion& question, const transport::PeerFacts& peer,
                         const device::GpuFacts& gpu) {
    const Nanoseconds hop = peer.message_latency;
    Line line;
    if (question.source_on_device)
        line.add({gpu.pageable_latency, gpu.pageable_latency, gpu.pageable_bytes_per_second});
    line.add({hop, kPieceHandling, peer.bytes_per_second});
    if (question.sink_on_device)
        line.add({gpu.pageable_latency, gpu.pageable_latency, gpu.pageable_bytes_per_second});
    line.fixed_chunk = question.piece;
    line.in_flight = question.bytes;
    line.tail = hop * (question.verb == WindowQuestion::Verb::put ? kHopsOfPut : kHopsOfGet);
    return best_pieces(line, question.bytes).expected;
}

Nanoseconds rendezvous_time(WindowQuestion::Verb verb, const Plan& large,
                            const transport::PeerFacts& peer) {
    const bool puts = verb == WindowQuestion::Verb::put;
    return large.expected +
           peer.message_latency * (puts ? kHopsOfRendezvousPut : kHopsOfRendezvousGet);
}

bool may_go_by_rendezvous(const WindowQuestion& question, const WindowFacts& facts) {
    return !facts.direct && question.verb != WindowQuestion::Verb::changes_items &&
           question.whole && (facts.on_device || question.origin_on_device);
}

WindowWay window_way(const WindowQuestion& question, const WindowFacts& facts) {
    using Verb = WindowQuestion::Verb;
    if (facts.direct) return WindowWay::direct;
    if (question.verb == Verb::changes_items) return WindowWay::message;
    // A get of the network saves the target a turn, whatever its size.
    const bool saves_a_turn = question.verb == Verb::get && facts.gets;
    const bool large = facts.rdma_from > 0 && (saves_a_turn || question.bytes >= facts.rdma_from);
    // A put from elsewhere is copied to host memory first; what a get reads has to come where it belongs.
    const bool can_be_put = question.verb == Verb::put || question.origin_plain;
    if (facts.keyed && large && can_be_put && question.one_run) return WindowWay::rdma;
    const bool pays = facts.rendezvous_from > 0 ? question.bytes >= facts.rendezvous_from
                                                : question.by_rendezvous < question.by_message;
    if (may_go_by_rendezvous(question, facts) && pays) return WindowWay::rendezvous;
    if (!question.one_run) return WindowWay::message;
    const bool small = question.bytes * kLeastInBatch <= facts.batch_bytes;
    if (question.verb == Verb::put && question.origin_plain && small) return WindowWay::batch;
    return WindowWay::message;
}

std::string window_sentence(int targets, const WindowFacts& facts) {
    std::string text = fmt::format("operations at {} rank{} ", targets, targets == 1 ? "" : "s");
    if (facts.direct)
        return text +
               fmt::format("are loads, stores and copies{}, and need no call of the target's",
                           facts.changed_by_gpu ? ", accumulates kernels of its GPU" : "");
    if (facts.keyed && facts.rdma_from > 0) {
        text += fmt::format("go by RDMA from {} on", bytes_text(facts.rdma_from));
        if (facts.rails > 1) text += fmt::format(", over {} rails", facts.rails);
        text += facts.gets ? " (gets of any size), else as messages; "
                           : " (puts, and gets as puts of the target), else as messages; ";
    } else if (facts.on_device && facts.rendezvous_from > 0) {
        text += fmt::format(
            "go by rendezvous from {} on, and go as large messages do (a pipeline of slots where "
            "the "
            "network does not reach device memory), else as messages; ",
            bytes_text(facts.rendezvous_from));
    } else {
        text += "go as messages; ";
    }
    text += facts.keyed && facts.unattended
                ? fmt::format("puts {}by RDMA need no call of the target's, all else does",
                              facts.gets ? "and gets " : "")
                : "all of them need the target to call MPI, or GANTRY_PROGRESS=thread there";
    return text;
}

}  // namespace gantry::plan
