// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/context.hpp"

#include "base/log.hpp"
#include "transfer/pack.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gantry::transfer {
namespace {

// Looks at copies in flight in one turn, where a turn asks a network: that costs five times as much
// as to hear that a copy is not done (docs/design/network-small.md).
constexpr int kLooksBesideNetwork = 4;
// Looks at the only network before anything else is asked again: each is a system call over TCP,
// and what lies between two of them is added to the latency of what arrives.
constexpr int kMoreLooks = 3;

}  // namespace

Context::Context(Executor& its_executor, device::Device& its_device,
                 std::vector<transport::Transport*> its_transports, int rank, int world_size,
                 const config::Config& its_config, plan::Explain& its_explain,
                 Timeline* its_timeline)
    : executor(its_executor),
      device(its_device),
      explain(its_explain),
      timeline(its_timeline),
      config(its_config),
      transports(std::move(its_transports)),
      world_rank(rank),
      tuning(plan::tuning_from(its_config)),
      selections(machine_, tuning, tuning.mechanisms.selection_cache),
      endpoints(transports, rank, world_size, machine_),
      node_segment(endpoints, transports, rank),
      rails(config),
      pools(device, transports, rank, config, [this] { endpoints.prices_changed(); }),
      exports(device),
      anchors(device, tuning.ipc && tuning.mechanisms.anchors),
      host_reads(tuning.mechanisms.cma, its_executor.clock()),
      arbiter(executor, device, transports, rank, {config.gpu_turns, config.gpu_trust}),
      operations(executor) {
    messages.handle<&Context::on_anchor>(wire::kAnchor, *this);
    learn_network();
}

void Context::learn_network() {
    bool only = true;
    for (int rank = 0; rank < endpoints.size(); ++rank) {
        transport::Transport* const way = endpoints.transport_to(rank);
        const bool over_network =
            way != nullptr && !way->facts(rank).self && !way->facts(rank).shared_memory;
        if (over_network) looks_at_copies_ = kLooksBesideNetwork;
        if (rank == world_rank) continue;
        only = only && over_network && (only_network_ == nullptr || only_network_ == way);
        if (over_network) only_network_ = way;
    }
    if (!only) only_network_ = nullptr;
}

Result<device::Location> Context::locate(const Buffer& buffer) {
    if (buffer.bytes() == 0 || !config.cuda) return device::Location{};
    if (!buffer.layout->contiguous()) return locate_blocks(device, buffer);
    const Bytes bytes = buffer.bytes();
    if (!in_use.empty())
        if (const auto* same = in_use.find(buffer.address, bytes, device.losses())) return *same;
    return device.classify(buffer.address, bytes);
}

void Context::learn_gpus() {
    const std::span<const device::GpuFacts> all = device.gpus();
    if (machine_.gpus.size() < all.size()) machine_.gpus.assign(all.begin(), all.end());
}

plan::Facts Context::facts_for(Endpoint& peer, const device::Location& mine, bool i_am_source,
                               const device::Uuid* other_gpu) {
    plan::Facts facts;
    facts.network = peer.rank;
    (i_am_source ? facts.source_reach : facts.sink_reach) =
        peer.facts.device_memory ? plan::Reach::device_memory : plan::Reach::host_memory;
    if (device.gpu_count() > 0) {
        anchors.note_end(mine);
        learn_gpus();
        facts.source_gpu = facts.sink_gpu = std::max(mine.gpu, 0);
        facts.cold_slots = peer.facts.shared_memory && pools.are_cold(peer, i_am_source) &&
                           machine_.gpu(facts.source_gpu).page_lock > 0;
    }
    if (other_gpu == nullptr) {
        // The other end is not known yet: expect what this machine can do, so that nothing is
        // copied ahead in vain.
        facts.peer_access = machine_.gpu(facts.source_gpu).peer_bytes_per_second > 0;
        return facts;
    }
    // What this process does not see is taken for a GPU like its own.
    if (const int other = device.gpu_of(*other_gpu); other >= 0) {
        (i_am_source ? facts.sink_gpu : facts.source_gpu) = other;
        facts.same_gpu = other == mine.gpu && mine.on_device();
    }
    facts.peer_access = facts.same_gpu || (mine.gpu >= 0 && device.reaches(mine.gpu, *other_gpu));
    if (facts.peer_access && !facts.same_gpu && peer.facts.shared_memory) anchors.meet(peer.rank);
    facts.kept_away = mine.gpu >= 0 && device.is_kept_away(mine.gpu, *other_gpu);
    return facts;
}

std::span<Flag> Context::own_flags(Endpoint& to) {
    const std::span<Flag> own =
        to.own_shared != nullptr ? to.own_shared->flags() : std::span<Flag>();
    if (!own.empty() && !std::exchange(flags.pinned, true)) {
        Status pinned = device.pin(own.data(), own.size_bytes());
        if (!pinned.ok()) log::warn("ends of copies are told by the processor: {}", pinned.text());
    }
    return own;
}

void Context::pin_node_segment() {
    const std::span<std::byte> page = node_segment.own_page();
    if (page.empty() || std::exchange(node_segment_pinned_, true)) return;
    Status pinned = device.pin(page.data(), page.size());
    if (!pinned.ok()) log::warn("cells of the node segment are pageable: {}", pinned.text());
}

void Context::withdraw_memory(int peer) {
    for (const device::IpcHandle& handle : exports.told(peer)) {
        wire::Forget forget{handle.buffer_id, {}};
        std::memcpy(forget.gpu, handle.gpu.data(), sizeof forget.gpu);
        Status sent = send(endpoints.to(peer), wire::kForget, forget);
        if (!sent.ok()) log::info("peer {} keeps memory mapped: {}", peer, sent.text());
    }
    exports.forget(peer);
}

void Context::tell_of_freed_memory() {
    for (const ExportTable::Row& freed : exports.take_freed(executor.now())) {
        const std::uint64_t buffer_id = freed.handle.buffer_id;
        wire::Forget forget{buffer_id, {}};
        std::memcpy(forget.gpu, freed.handle.gpu.data(), sizeof forget.gpu);
        for (const int rank : freed.peers) {
            Endpoint& told = endpoints.to(rank);
            if (!told.lost.ok()) continue;
            told.memory.freed(buffer_id);
            Status sent = send(told, wire::kForget, forget);
            if (!sent.ok())
                log::warn("rank {} was not told of a freed allocation: {}", rank, sent.text());
        }
    }
}

void Context::on_anchor(int from, transport::ConstSpan anchor, transport::ConstSpan) {
    anchors.hear(from, wire::read<wire::Handle>(anchor));
}

void Context::add_transport(transport::Transport& transport) {
    transports.push_back(&transport);
    arbiter.tell_neighbours(transport);
}

void Context::remove_transport(transport::Transport& transport) {
    std::erase(transports, &transport);
}

void Context::forget(int peer) {
    if (endpoints.known(peer) != nullptr) {
        flags.awaited.drop(peer);
        pools.take_back(peer);
        pools.unpin(endpoints.to(peer));
    }
    exports.forget(peer);
    anchors.forget(peer);
    selections.forget_everything();
    endpoints.drop(peer);
}

void Context::give_up(int peer) {
    pools.take_back(peer);
    anchors.forget(peer);
    device.forget_ended_processes();
}

// Tells peers of our anchors, and opens one of theirs at most.
void Context::keep_anchors() {
    while (const auto next = anchors.next_to_tell()) {
        Endpoint& told = endpoints.to(next->peer);
        if (!told.lost.ok()) continue;
        Status sent = send(told, wire::kAnchor, next->handle);
        if (!sent.ok()) log::info("rank {} was told of no anchor: {}", next->peer, sent.text());
        told.memory.prices_changed();
    }
    if (device.pending()) return;
    if (const int peer = anchors.open_one(); peer >= 0) endpoints.to(peer).memory.prices_changed();
}

// Who waited for a copy goes on before the next copy and the network are asked about: it may have
// something to send.
int Context::look_at_copies(const bool* awaited) {
    arbiter.before_look();
    int events = 0, ended = 0;
    for (int look = 0; ended == 0 && look < looks_at_copies_ && device.pending(); ++look)
        ended = device.progress();
    do {
        events += ended;
        if (executor.has_ready()) events += executor.run_ready();
        if (awaited != nullptr && *awaited) return events;
        ended = ended > 0 && device.pending() ? device.progress() : 0;
    } while (ended > 0);
    return events;
}

int Context::look_again() {
    int events = 0;
    if (only_network_ == nullptr || device.pending()) return 0;
    for (int look = 0; events == 0 && look < kMoreLooks; ++look)
        events = only_network_->progress();
    if (executor.has_ready()) events += executor.run_ready();
    return events;
}

bool Context::idle() const {
    return operations.running() == 0 && !executor.has_ready() && !device.pending() &&
           flags.awaited.empty() && node_segment.idle();
}

bool Context::busy() const {
    return std::ranges::any_of(transports, [](const auto* each) { return each->busy(); });
}

}  // namespace gantry::transfer
