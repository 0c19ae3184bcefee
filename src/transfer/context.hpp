// SPDX-License-Identifier: BSD-3-Clause
//
// Context: everything that moves bytes for one engine, in one place: its peers, its memory as peers
// may name it, slots, flags, shared GPUs, and the planner's answers. It knows peers, memory, rails and
// GPUs; no tag, request, communicator or window. Point-to-point and one-sided communication stand on
// it side by side.
#pragma once

#include "base/config.hpp"
#include "base/scope.hpp"
#include "base/timeline.hpp"
#include "device/in_use.hpp"
#include "plan/explain.hpp"
#include "plan/selection_cache.hpp"
#include "transfer/active_messages.hpp"
#include "transfer/anchors.hpp"
#include "transfer/node_segment.hpp"
#include "transfer/buffer.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/export_table.hpp"
#include "transfer/gpu_arbiter.hpp"
#include "transfer/host_copies.hpp"
#include "transfer/host_reads.hpp"
#include "transfer/notify_flags.hpp"
#include "transfer/rail_scheduler.hpp"
#include "transfer/row_batch.hpp"
#include "transfer/staging_pool.hpp"

namespace gantry::transfer {

class Context {
  public:
    // All references outlive this. `transports` in order of preference.
    Context(Executor& executor, device::Device& device,
            std::vector<transport::Transport*> transports, int world_rank, int world_size,
            const config::Config& config, plan::Explain& explain, Timeline* timeline = nullptr);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    Executor& executor;
    device::Device& device;
    plan::Explain& explain;
    Timeline* const timeline;  // null: nobody traces
    const config::Config& config;
    std::vector<transport::Transport*> transports;  // more come with ranks of other jobs
    const int world_rank;
    const plan::Tuning tuning;

  private:
    plan::Machine machine_;

  public:
    plan::SelectionCache selections;
    ActiveMessages messages;
    Endpoints endpoints;
    NodeSegment node_segment;
    RailScheduler rails;
    StagingPools pools;
    ExportTable exports;  // our memory, for peers to map
    Anchors anchors;
    HostCopies host_copies;
    HostReads host_reads;
    RowBatch row_batch;  // strided copies between device memories
    GpuArbiter arbiter;
    NotifyFlags flags;
    device::InUse in_use;
    Scope operations;  // every coroutine and copy under way

    template <class Header>
    Status send(Endpoint& to, transport::MessageKind kind, const Header& header,
                transport::ConstSpan payload = {}) {
        return to.transport->send(to.rank, kind, wire::bytes_of(header), payload);
    }
    // Of what is to be on the timeline, behind its end: when it began; 0 where nobody traces.
    Nanoseconds begins() const { return timeline != nullptr ? timeline->now() : 0; }
    // `what` (static text) has moved so many bytes since then; `gpu` -1: no GPU took part.
    void moved(const char* what, Nanoseconds begin, int gpu, Bytes bytes) const {
        if (timeline != nullptr) [[unlikely]]
            timeline->piece(what, begin, gpu, bytes);
    }
    // Where a buffer is; host without any driver call while the program uses no GPU.
    Result<device::Location> locate(const Buffer& buffer);
    // What the planner knows of the way between this rank's end `mine` and that peer's GPU, which is
    // null while it is not known.
    plan::Facts facts_for(Endpoint& peer, const device::Location& mine, bool i_am_source,
                          const device::Uuid* other_gpu);
    const device::GpuFacts& gpu(int index) const { return machine_.gpu(index); }
    bool is_time_sliced(const plan::Facts& facts) const {
        return plan::is_time_sliced(facts, machine_);
    }
    // This rank's flags, which devices reach if they can. Empty: what goes to that peer is told by
    // messages.
    std::span<Flag> own_flags(Endpoint& to);
    // This rank's page of the node segment becomes page-locked, where the driver agrees: devices copy into cells.
    void pin_node_segment();
    // A transport to ranks of other jobs, behind those that there are; and its end.
    void add_transport(transport::Transport& transport);
    void remove_transport(transport::Transport& transport);
    // Everything here that is about that peer of another job: its number becomes another's.
    void forget(int peer);
    // What a lost peer holds of ours, and what is kept of its own: slots, anchors, mappings of its memory. Copies under
    // way keep theirs until they end.
    void give_up(int peer);
    // A peer that soon is gone for good closes what it has mapped of our memory.
    void withdraw_memory(int peer);

    // --- progress: parts of one turn of the engine, in this order; p2p/progress.cpp has what is between ---
    // Copies that have ended, and then who waited for them; to the end of what a call of the program waits for
    // (null: of nothing).
    int look_at_copies(const bool* awaited);
    // Of allocations that the program freed and peers may have mapped, and of anchors.
    void tell_peers() {
        // Reading the clock costs as much as a look at a ring, and exported memory is looked at rarely.
        if (!exports.empty() && ++turns_ % 8 == 0) tell_of_freed_memory();
        if (anchors.has_work()) keep_anchors();
    }
    // What transports bring.
    int deliver() {
        int events = 0;
        for (transport::Transport* transport : transports)
            events += transport->progress();
        return events;
    }
    // Steps on the node segment, copies of the processor, and whoever waits and may go on.
    int resume() {
        int events = node_segment.idle() ? 0 : node_segment.progress();
        // Behind the transports: what came from a peer may go to a copy engine meanwhile.
        events += host_copies.progress();
        if (executor.has_ready()) events += executor.run_ready();
        return events;
    }
    // For somebody who waits, after a turn that brought nothing: only the network again, a few
    // times, where all messages come by it and no device is at work.
    int look_again();
    bool idle() const;  // nothing is copied or awaited here
    bool busy() const;  // transports have something under way

  private:
    void learn_gpus();
    void learn_network();
    void tell_of_freed_memory();
    void keep_anchors();
    void on_anchor(int from, transport::ConstSpan anchor, transport::ConstSpan);
    bool node_segment_pinned_ = false;
    unsigned turns_ = 0;
    int looks_at_copies_ = 1;                       // at most, in one turn
    transport::Transport* only_network_ = nullptr;  // where every other rank is reached by it
};

inline plan::End end_of(const device::Location& location, const Buffer& buffer) {
    plan::End end;
    end.kind = location.kind;
    end.ipc = location.ipc;
    end.contiguous = buffer.contiguous();
    return end;
}

}  // namespace gantry::transfer
