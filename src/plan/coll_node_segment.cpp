// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of ranks that share a node segment (docs/design/device-collectives.md), with their expected times:
//
//   cells    handshake: every rank posts a descriptor, and reads those of whom it waits for; of device memory
//            a copy out of the GPU before, and one into it behind
//   device   handshake, launch, bytes over the links; the root of an operation carries all of them
//
// One shot moves P - 1 vectors to each GPU, two shots 2 (P - 1) / P. Launches and rates are those of two
// and four H100s (bench/results).
#include "device/together_facts.hpp"
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {

bool all_know_the_bytes(Collective operation) {
    return operation != Collective::alltoallv && operation != Collective::gatherv &&
           operation != Collective::scatterv && operation != Collective::allgatherv &&
           operation != Collective::neighbor;
}

namespace {

constexpr int kMostOperands = 16;  // vectors that a kernel takes
// Stores of kernels to other GPUs, of what a copy engine reaches (H100s: 3.3e11 of 3.9e11); between one
// GPU and all others alone.
constexpr double kKernelStores = 0.85, kStoresOfOne = 0.93;
// Loads of a kernel that reduces vectors of other GPUs: of two, and the part that each further one costs.
constexpr double kKernelLoads = 0.75, kFurtherVector = 0.15;
// A kernel that stores into other GPUs' memory ends so much later.
constexpr double kStoredElsewhere = 1000;
// Pieces in which shares are passed on.
constexpr Bytes kShortestPiece = 512 * kKiB, kLongestPiece = 32 * kMiB;

constexpr const char* kTooLong = "longer than a cell of the node segment";
constexpr const char* kNotInCells = "not in the cells of the node segment";
constexpr const char* kUnequal = "some rank's blocks may be longer than a cell of the node segment";
constexpr const char* kNotOnDevices = "not in device memory that all ranks can map";

double time_of(Bytes bytes, double bytes_per_second) {
    return bytes_per_second > 0 ? static_cast<double>(bytes) * 1e9 / bytes_per_second : 0;
}

struct InNodeSegment {
    const CollAsk& ask;
    const CollNodeSegmentCost& cost = ask.facts.node_segment;
    const CollGpu& gpu = ask.facts.gpu;
    Bytes others = static_cast<Bytes>(ask.ranks - 1);

    // Every rank posts, and reads the rows of `read` others.
    double handshake(Bytes read) const {
        return ask.turn +
               ask.crowd * static_cast<double>(cost.handshake + cost.flag +
                                               cost.row * static_cast<Nanoseconds>(read));
    }
    // A launch by each, or by one for all that share its GPU, and the step that says it has ended.
    // `buffers` of each peer are looked up by everybody.
    // `short_enough`: a persistent kernel takes it, if one stays.
    double launch(Nanoseconds buffers, bool short_enough = false) const {
        const bool taken =
            short_enough && ask.tuning.resident && !ask.question.node_segment.time_sliced;
        return handshake(others) +
               static_cast<double>(gpu.handshake + cost.flag +
                                   (taken ? gpu.resident : gpu.launch)) +
               (ask.ranks - 2) * static_cast<double>(buffers * gpu.mapping);
    }
    double stores(Bytes bytes) const { return moved(bytes, kKernelStores); }
    // Of the vectors of all other ranks, so many bytes together.
    double loads(Bytes bytes) const {
        return moved(bytes, kKernelLoads / (1 + kFurtherVector * (ask.ranks - 2)));
    }
    double moved(Bytes bytes, double part) const {
        return ask.question.node_segment.time_sliced
                   ? time_of(bytes, gpu.local_bytes_per_second)
                   : time_of(bytes, part * gpu.peer_bytes_per_second);
    }
    // Out of a GPU into the cells, and in again.
    double through_gpus() const {
        return ask.on_device() ? static_cast<double>(gpu.to_cell + gpu.from_cell) : 0;
    }
    const char* not_in_cells(Bytes brought) const {
        const bool own_device = ask.question.memory == CollMemory::own_device;
        if (ask.question.memory != CollMemory::cells && !own_device) return kNotInCells;
        if (own_device && !all_know_the_bytes(ask.question.operation)) return kUnequal;
        return brought > kCell ? kTooLong : nullptr;
    }
    const char* not_on_devices() const {
        return ask.question.memory == CollMemory::device ||
                       ask.question.memory == CollMemory::own_device
                   ? nullptr
                   : kNotOnDevices;
    }
};

struct Moved {
    Bytes brought = 0;  // by the rank that brings most
    Bytes read = 0;     // by the rank that reads most, out of cells
    Bytes rows = 0;     // of other ranks that it reads
    Bytes carried = 0;  // by the GPU that stores or takes most
};

Moved moved_of(const InNodeSegment& way) {
    const Bytes bytes = way.ask.bytes, others = way.others;
    switch (way.ask.question.operation) {
        case Collective::bcast: return {bytes, bytes, 1, bytes * others};
        case Collective::scatter:
        case Collective::scatterv: return {bytes * others, bytes, 1, bytes * others};
        case Collective::gather:
        case Collective::gatherv: return {bytes, bytes * others, others, bytes * others};
        case Collective::allgatherv:
            return {way.ask.share(), bytes - way.ask.share(), others, way.ask.share() * others};
        case Collective::alltoall:
        case Collective::alltoallv: return {bytes * others, bytes * others, others, bytes * others};
        default: return {bytes, bytes * others, others, bytes * others};
    }
}

// A broadcast whose root stores a share to each rank, who stores it to the others. Of the whole vector, that
// takes one way out of the root; the others' stores follow by one piece.
CollCandidate in_shares(const InNodeSegment& way) {
    const CollAsk& ask = way.ask;
    CollCandidate best{.algorithm = Algorithm::direct_shares,
                       .why = "long: the root stores a share to each, who stores it to the others",
                       .impossible = way.not_on_devices()};
    if (ask.ranks < 3) best.impossible = "no third rank that a share could be passed on to";
    if (ask.question.node_segment.time_sliced)
        best.impossible = "ranks share a GPU: one works for all";
    const double out = way.moved(ask.bytes, kStoresOfOne);
    const double on = way.stores(ask.bytes * (way.others - 1) / way.others);
    for (Bytes segment = kShortestPiece; segment <= kLongestPiece; segment *= 2) {
        const Bytes piece = ask.tuning.segment != 0 ? ask.tuning.segment : segment;
        const auto pieces =
            static_cast<double>(std::max<Bytes>((ask.bytes + piece - 1) / piece, 1));
        const double time = way.launch(1) + out + on / pieces +
                            static_cast<double>(way.gpu.launch + way.cost.flag) +
                            (pieces - 1) * kStoredElsewhere;
        if (best.segment == 0 || time < best.time) best.time = time, best.segment = piece;
    }
    return best;
}

void exchange(const InNodeSegment& way, CollCandidates& list) {
    const Moved moved = moved_of(way);
    const CollAsk& ask = way.ask;
    const bool by_all = moved.rows == way.others && ask.question.operation != Collective::gather &&
                        ask.question.operation != Collective::gatherv;
    list.add(
        {.algorithm = Algorithm::cells,
         .time = way.handshake(moved.rows) + way.through_gpus() +
                 ask.crowd * time_of(moved.brought + moved.read, ask.facts.copy_bytes_per_second),
         .why = "short, in host memory: blocks lie on the node segment",
         .impossible = way.not_in_cells(moved.brought)});
    const Bytes each = moved.carried / std::max<Bytes>(way.others, 1);
    const bool brief = device::kTogether.takes(each, way.others);
    list.add({.algorithm = Algorithm::direct,
              .time = by_all ? way.launch(1, brief) + way.stores(moved.carried)
                             : way.launch(0, brief) + way.moved(moved.carried, kStoresOfOne),
              .why = "blocks are stored where they belong, in one launch",
              .impossible = way.not_on_devices()});
    if (ask.question.operation == Collective::bcast) list.add(in_shares(way));
}

const char* no_kernel(const InNodeSegment& way) {
    if (way.ask.ranks > kMostOperands) return "more vectors than one kernel takes";
    return way.ask.question.predefined ? way.not_on_devices() : "a function of the program";
}

const char* not_in_one_shot(const InNodeSegment& way) {
    const CollQuestion& question = way.ask.question;
    const bool everywhere = question.operation == Collective::allreduce;
    if (everywhere && question.node_segment.time_sliced)
        return "ranks share a GPU: one works for all";
    if (question.operation != Collective::reduce && question.node_segment.in_place)
        return "in place, others read what would be overwritten";
    return no_kernel(way);
}

void reduction(const InNodeSegment& way, CollCandidates& list) {
    const CollAsk& ask = way.ask;
    const Collective operation = ask.question.operation;
    const bool of_shares = operation == Collective::reduce_scatter;
    // What a rank reduces of each vector.
    const Bytes part = of_shares ? ask.share() : ask.bytes;
    list.add({.algorithm = Algorithm::cells,
              .time = way.handshake(way.others) + way.through_gpus() +
                      ask.crowd *
                          (time_of(part * way.others, ask.facts.reduce_bytes_per_second) +
                           time_of(ask.bytes + part * way.others, ask.facts.copy_bytes_per_second)),
              .why = "short, in host memory: vectors lie on the node segment",
              .impossible = way.not_in_cells(ask.bytes),
              .rank_order = true});
    // The root alone looks up vectors, everybody else vectors and results.
    const Nanoseconds buffers = operation == Collective::reduce ? 1 : 2;
    // Of elements of four and eight bytes; the rank's part, or the share of one.
    const std::uint64_t elements =
        of_shares ? ask.question.count / static_cast<std::uint64_t>(ask.ranks) : ask.question.count;
    const bool brief =
        elements <= (ask.question.node_segment.in_place ? device::kTogether.elements_in_place
                                                        : device::kTogether.elements);
    list.add({.algorithm = Algorithm::one_shot,
              .time = way.launch(buffers, brief) + way.loads(part * way.others),
              .why = "each reduces what it gets, out of the memory of all, in one launch",
              .impossible = not_in_one_shot(way),
              .rank_order = true});
    if (operation != Collective::allreduce && operation != Collective::reduce) return;
    const bool everywhere = operation == Collective::allreduce;
    // Shares that a GPU reads, and as many that it stores; the root's takes those of all.
    const Bytes shares = ask.share() * way.others;
    list.add({.algorithm = Algorithm::two_shots,
              .time = way.launch(buffers, brief) + (everywhere ? kStoredElsewhere : 0) +
                      way.loads(shares) + way.stores(shares) + static_cast<double>(way.cost.flag),
              .why = everywhere ? "long: each reduces a share, and stores it into all results"
                                : "long: each reduces a share into the root's result",
              .impossible = no_kernel(way),
              .rank_order = true});
}

// One launch stores all blocks, another one unpacks those that came strided.
void neighbor(const InNodeSegment& way, CollCandidates& list) {
    const CollQuestion& question = way.ask.question;
    const int launches = question.node_segment.strided || question.count == 0 ? 2 : 1;
    const double turn = question.node_segment.time_sliced ? static_cast<double>(way.gpu.turn) : 0;
    const Bytes peers = std::min(way.ask.neighbor_blocks(), way.others);
    list.add({.algorithm = Algorithm::direct,
              .time = way.handshake(peers) + static_cast<double>(way.gpu.handshake) +
                      launches * (static_cast<double>(way.gpu.launch) + turn) +
                      2 * static_cast<double>(way.cost.flag) + way.stores(way.ask.bytes) +
                      (launches - 1) * time_of(way.ask.bytes, way.gpu.local_bytes_per_second),
              .why = "all blocks for this node are stored in one launch, and unpacked in another",
              .impossible = way.not_on_devices()});
}

}  // namespace

void add_in_node_segment(const CollAsk& ask, CollCandidates& list) {
    const InNodeSegment way{ask};
    switch (ask.question.operation) {
        case Collective::barrier: return;
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::reduce_scatter:
        case Collective::scan: return reduction(way, list);
        case Collective::neighbor: return neighbor(way, list);
        default: return exchange(way, list);
    }
}

}  // namespace gantry::plan
