// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/context.hpp"

#include "base/log.hpp"
#include "transfer/pack.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gantry::transfer {

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
      board(endpoints, transports, rank),
      rails(config),
      pools(device, transports, rank, config, [this] { endpoints.prices_changed(); }),
      exports(device),
      anchors(device, tuning.ipc && tuning.mechanisms.anchors),
      host_reads(tuning.mechanisms.cma, its_executor.clock()),
      arbiter(executor, device, transports, rank, {config.gpu_turns, config.gpu_trust}),
      operations(executor) {}

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

void Context::pin_board() {
    const std::span<std::byte> page = board.own_page();
    if (page.empty() || std::exchange(board_pinned_, true)) return;
    Status pinned = device.pin(page.data(), page.size());
    if (!pinned.ok()) log::warn("cells of the board are pageable: {}", pinned.text());
}

void Context::tell_of_freed_memory(transport::MessageKind kind) {
    for (const ExportTable::Row& freed : exports.take_freed(executor.now())) {
        const std::uint64_t buffer_id = freed.handle.buffer_id;
        wire::Forget forget{buffer_id, {}};
        std::memcpy(forget.gpu, freed.handle.gpu.data(), sizeof forget.gpu);
        for (const int rank : freed.peers) {
            Endpoint& told = endpoints.to(rank);
            if (!told.lost.ok()) continue;
            told.memory.freed(buffer_id);
            Status sent = send(told, kind, forget);
            if (!sent.ok())
                log::warn("rank {} was not told of a freed allocation: {}", rank, sent.text());
        }
    }
}

void Context::keep_anchors(transport::MessageKind kind) {
    while (const auto next = anchors.next_to_tell()) {
        Endpoint& told = endpoints.to(next->peer);
        if (!told.lost.ok()) continue;
        Status sent = send(told, kind, next->handle);
        if (!sent.ok()) log::info("rank {} was told of no anchor: {}", next->peer, sent.text());
        told.memory.prices_changed();
    }
    if (device.pending()) return;
    if (const int peer = anchors.open_one(); peer >= 0) endpoints.to(peer).memory.prices_changed();
}

}  // namespace gantry::transfer
