// SPDX-License-Identifier: BSD-3-Clause
#include "plan/io_plan.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::plan {
namespace {

// A transfer without a copy: large enough that its system calls cost nothing beside its bytes, small
// enough that several threads share an access.
constexpr Bytes kDirectPiece = 8 * kMiB;
// Through scratch memory or slots: the next piece is packed while this one is written.
constexpr Bytes kStagedPiece = 1 * kMiB;
constexpr int kDepth = 4;
// What the caller copies between two looks at everything else. Writers of one file wait for each other
// at each call, so larger calls cost less.
constexpr Bytes kAtOncePiece = 2 * kMiB;
// The same of what it packs first: what was packed is in a cache still.
constexpr Bytes kAtOncePacked = 256 * kKiB;
// And of what it reads for the sake of some of it.
constexpr Bytes kAtOnceSieved = 256 * kKiB;
// Shorter runs of memory are packed: a piece of a vector of the system costs some tens of nanoseconds.
constexpr Bytes kPackedBelow = 1 * kKiB;
// Runs from which on an access of its own is as good for each rank as one together.
constexpr Bytes kLargeRun = 256 * kKiB;
// An exchange copies bytes twice more than the read, into a message and out of it, and ranks wait for each
// other: a read that copies so many times what is wanted is no slower alone.
constexpr double kGapsPayBelow = 4;
// In windows that all ranks see they are copied once more.
constexpr double kGapsPayOnNodeBelow = 1.5;
// What lies in such a window is in a cache still when ranks copy it, if the file is in memory.
constexpr Bytes kNodeWindow = 512 * kKiB;
constexpr int kAggregatorsOfNode = 4;
constexpr Bytes kPage = 4 * kKiB;

}  // namespace

IoPlan io_plan(const IoQuestion& question) {
    IoPlan plan;
    const bool long_runs = std::min(question.file_run, question.bytes) >= kStorageRun;
    if (question.direct_storage && !question.strided_memory && long_runs) {
        plan = {IoWay::storage, kDirectPiece, kDepth, 0};
        plan.why = "the file system and the GPU reach each other, and runs are long";
        return plan;
    }
    if (question.on_device) {
        plan = {IoWay::slots, std::min(kStagedPiece, question.largest_slot), kDepth, 0};
        plan.engine = question.strided_memory ? CopyEngine::kernel : CopyEngine::copy_engine;
        plan.why = "a piece is copied between the GPU and a slot while others are with the file";
    } else if (question.memory_run < kPackedBelow && question.memory_run < question.bytes) {
        plan = {IoWay::packed, question.in_memory ? kAtOncePacked : kStagedPiece, kDepth, 0};
        plan.why = "runs of memory are short: to pack them costs less than to list them";
    } else {
        plan = {IoWay::direct, question.in_memory ? kAtOncePiece : kDirectPiece, kDepth, 0};
        plan.why = "runs of memory are long enough to need no copy";
    }
    // What is copied out of a GPU meanwhile is worth a thread.
    plan.at_once = question.in_memory && !question.on_device;
    if (plan.at_once) plan.sieved = kAtOnceSieved;
    const bool has_gaps = question.file_gap > 0 && question.file_run < question.bytes;
    if (question.writes || !has_gaps || question.sieve == IoSwitch::disable) return plan;
    // As many bytes in the gaps as calls are saved by them.
    if (question.sieve == IoSwitch::enable || question.file_gap <= kWorthACall)
        plan.sieve = std::max(kWorthACall, question.file_gap);
    return plan;
}

const char* name(IoWay way) {
    switch (way) {
        case IoWay::direct: return "direct";
        case IoWay::packed: return "packed";
        case IoWay::slots: return "slots";
        case IoWay::storage: return "storage";
    }
    return "";
}

namespace {

const char* how_text(const IoPlan& plan) {
    switch (plan.way) {
        case IoWay::direct: return "without a copy";
        case IoWay::packed: return "packed by the processor";
        case IoWay::slots:
            return plan.engine == CopyEngine::kernel ? "slots, packed by a kernel"
                                                     : "slots, by the copy engine";
        case IoWay::storage: return "by GPUDirect Storage";
    }
    return "";
}

}  // namespace

IoCarrierPlan io_carrier(const IoCarrierQuestion& question) {
    if (!question.has_ring) return {IoCarrier::threads, ""};
    if (question.direct_storage) return {IoCarrier::threads, "a call of cuFile waits"};
    if (!question.ring_allowed) return {IoCarrier::threads, "hint gantry_io_uring"};
    // A thread makes them one behind the other.
    if (!question.one_call)
        return {IoCarrier::threads, "each of several calls would wait for a look of the engine"};
    return {IoCarrier::ring, "one call"};
}

const char* name(IoCarrier carrier) {
    switch (carrier) {
        case IoCarrier::caller: return "caller";
        case IoCarrier::ring: return "ring";
        case IoCarrier::threads: return "threads";
    }
    return "";
}

std::string describe(const IoPlan& plan) {
    return fmt::format("{}, pieces of {}, {}{}", how_text(plan), bytes_text(plan.piece),
                       plan.at_once ? std::string("one after the other by the caller")
                                    : fmt::format("{} in flight", plan.depth),
                       plan.sieve > 0
                           ? fmt::format(", gaps up to {} are read along", bytes_text(plan.sieve))
                           : "");
}

std::string describe(const CollectiveIoPlan& plan, bool on_node) {
    return fmt::format("{} aggregator{}, parts of {}, windows of {}{}{}", plan.aggregators.size(),
                       plan.aggregators.size() == 1 ? "" : "s", bytes_text(plan.part),
                       bytes_text(plan.window), on_node ? " in memory that the ranks share" : "",
                       plan.at_once ? ", with the file by the aggregators themselves" : "");
}

namespace {

// Whether some rank's bytes lie between those of another one.
bool interleaved(std::span<const IoExtent> extents) {
    std::vector<IoExtent> with_data;
    for (const IoExtent& each : extents)
        if (each.bytes > 0) with_data.push_back(each);
    std::ranges::sort(with_data, {}, &IoExtent::low);
    for (std::size_t i = 1; i < with_data.size(); ++i)
        if (with_data[i].low < with_data[i - 1].high) return true;
    return false;
}

// The first ranks of each node, nodes in the order of their first ranks.
std::vector<int> aggregators_of(std::span<const int> nodes, int most) {
    std::map<int, int> of_node;
    std::vector<int> chosen;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        if (of_node[nodes[rank]]++ < kAggregatorsOfNode) chosen.push_back(static_cast<int>(rank));
    if (most <= 0 || static_cast<std::size_t>(most) >= chosen.size()) return chosen;
    // Fewer: one of each node first, then the second ones.
    std::ranges::stable_sort(chosen, {}, [&](int rank) {
        return std::count_if(chosen.begin(), chosen.end(), [&](int other) {
            return other < rank &&
                   nodes[static_cast<std::size_t>(other)] == nodes[static_cast<std::size_t>(rank)];
        });
    });
    chosen.resize(static_cast<std::size_t>(most));
    std::ranges::sort(chosen);
    return chosen;
}

}  // namespace

CollectiveIoPlan collective_io_plan(const CollectiveIoQuestion& question) {
    CollectiveIoPlan plan;
    Bytes bytes = 0, longest_run = 0;
    Bytes with_gaps = 0;
    bool overlap = false, gaps_known = true, on_node = true;
    for (const IoExtent& each : question.extents) {
        on_node = on_node && each.sees_windows;
        if (each.bytes == 0) continue;
        plan.low = bytes == 0 ? each.low : std::min(plan.low, each.low);
        plan.high = bytes == 0 ? each.high : std::max(plan.high, each.high);
        bytes += each.bytes;
        overlap = overlap || each.run == 0;
        longest_run = std::max(longest_run, each.run);
        with_gaps += each.with_gaps;
        gaps_known = gaps_known && each.with_gaps > 0;
    }
    const auto alone = [&plan](const char* why) {
        plan.why = why;
        return plan;
    };
    if (bytes == 0) return alone("there are no bytes");
    if (overlap) return alone("a view names bytes twice");
    if (question.atomic) return alone("atomic mode: each rank locks its bytes");
    if (question.together == IoSwitch::disable) return alone("a hint says so");
    if (question.together == IoSwitch::automatic) {
        if (!interleaved(question.extents))
            return alone("ranks have parts of the file for themselves");
        if (longest_run >= kLargeRun) return alone("runs are large");
        const double most_gaps = on_node ? kGapsPayOnNodeBelow : kGapsPayBelow;
        if (!question.writes && gaps_known &&
            static_cast<double>(with_gaps) < most_gaps * static_cast<double>(bytes))
            return alone("the file is in memory: to read gaps along costs less than an exchange");
    }
    plan.together = true;
    plan.why = question.together == IoSwitch::enable ? "a hint says so" : "ranks interleave";
    plan.aggregators = aggregators_of(question.nodes, question.aggregators);
    plan.sieve = question.writes ? 0 : kWorthACall;
    plan.at_once = question.in_memory;
    const Bytes unit = std::max(question.stripe, kPage);
    const Bytes reach = static_cast<Bytes>(plan.high - plan.low);
    // A part begins where a stripe does, as long as the file is counted from 0.
    const std::int64_t begin =
        plan.low / static_cast<std::int64_t>(unit) * static_cast<std::int64_t>(unit);
    plan.part = round_up(
        divide_up(reach + static_cast<Bytes>(plan.low - begin), plan.aggregators.size()), unit);
    plan.low = begin;
    plan.on_node = on_node;
    const Bytes window =
        on_node && question.in_memory ? std::min(question.window, kNodeWindow) : question.window;
    plan.window = std::min(round_up(window, unit), plan.part);
    const Bytes parts = divide_up(static_cast<Bytes>(plan.high - plan.low), plan.part);
    plan.aggregators.resize(std::min<std::size_t>(plan.aggregators.size(), parts));
    return plan;
}

}  // namespace gantry::plan
