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
#include "transfer/board.hpp"
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
    Board board;
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
    // This rank's page of the board becomes page-locked, where the driver agrees: devices copy into cells.
    void pin_board();
    // The program freed allocations that peers may have mapped: tells them. Looks now and then.
    void tell_of_freed_memory(transport::MessageKind kind);
    // A transport to ranks of other jobs, behind those that there are; and its end.
    void add_transport(transport::Transport& transport);
    void remove_transport(transport::Transport& transport);
    // Everything here that is about that peer of another job: its number becomes another's.
    void forget(int peer);
    // A peer that soon is gone for good closes what it has mapped of our memory.
    void withdraw_memory(int peer, transport::MessageKind kind);
    // Tells peers of our anchors, and opens one of theirs at most.
    void keep_anchors(transport::MessageKind kind);

  private:
    void learn_gpus();
    bool board_pinned_ = false;
};

inline plan::End end_of(const device::Location& location, const Buffer& buffer) {
    plan::End end;
    end.kind = location.kind;
    end.ipc = location.ipc;
    end.contiguous = buffer.contiguous();
    return end;
}

}  // namespace gantry::transfer
