// SPDX-License-Identifier: BSD-3-Clause
//
// Resources and tables of the messenger; dispatch.cpp handles what arrives.
#include "p2p/core.hpp"

#include "base/log.hpp"
#include "p2p/strided.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace gantry::p2p {
namespace {

// Looks at the only network before anything else is asked again: each is a system call over TCP,
// and what lies between two of them is added to the latency of what arrives.
constexpr int kMoreLooks = 3;
// Looks at copies in flight in one turn, where a turn asks a network: that costs five times as much
// as to hear that a copy is not done (docs/design/network-small.md).
constexpr int kLooksBesideNetwork = 4;
// Longer between two looks at the device: the time of a copy that ended meanwhile is not known.
constexpr Nanoseconds kAbsence = 20 * kMicrosecond;
// Reading the clock costs as much as a look at a ring, and exported memory is looked at rarely.
constexpr unsigned kTurnsBetweenClocks = 8;

std::size_t index_of(transport::Pool which) {
    return static_cast<std::size_t>(which);
}

}  // namespace

Core::Core(Executor& core_executor, device::Device& core_device,
           std::vector<transport::Transport*> transports, int world_rank, int world_size,
           const config::Config& config, plan::Explain& core_explain)
    : executor(core_executor),
      device(core_device),
      explain(core_explain),
      tuning(plan::tuning_from(config)),
      named(core_device),
      operations(core_executor),
      config_(config),
      transports_(std::move(transports)),
      world_rank_(world_rank),
      peers_(static_cast<std::size_t>(world_size)) {
    for (int rank = 0; rank < world_size; ++rank) {
        Peer& each = peer(rank);
        for (transport::Transport* candidate : transports_) {
            if (!candidate->reaches(rank)) continue;
            each.transport = candidate;
            each.facts = candidate->facts(rank);
            each.eager_limit = plan::host_eager_limit(each.facts, tuning);
            if (!each.facts.self && !each.facts.shared_memory)
                looks_at_copies_ = kLooksBesideNetwork;
            break;
        }
        if (each.transport == nullptr)
            each.lost =
                failure(MPI_ERR_OTHER,
                        "no transport reaches rank {}: it runs on another node and no network "
                        "engine (UCX) is available",
                        rank);
    }
    only_network_ = the_only_network();
    device.meet(&gpu_neighbours_);
}

// The network, when every other rank is reached by it; else null.
transport::Transport* Core::the_only_network() const {
    transport::Transport* network = nullptr;
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
        const Peer& each = peers_[static_cast<std::size_t>(rank)];
        if (rank == world_rank_) continue;
        if (each.facts.shared_memory || (network != nullptr && network != each.transport))
            return nullptr;
        network = each.transport;
    }
    return network;
}

Core::~Core() {
    device.meet(nullptr);
    for (auto& [transport, region] : pool_regions_)
        transport->release_memory(region);
}

Result<SlotPool*> Core::pool(transport::Pool which) {
    std::optional<SlotPool>& pool = pools_[index_of(which)];
    const bool for_device = which == transport::Pool::device_slots;
    if (!pool) {
        std::span<std::byte> memory;
        Status refused;
        for (transport::Transport* candidate : transports_) {
            auto own = candidate->own_pool(which);
            if (own.ok() && !own->empty()) {
                memory = *own;
                break;
            }
            if (!own.ok() && own.status().error_class() != MPI_ERR_UNSUPPORTED_OPERATION)
                refused = own.status();
        }
        if (memory.empty() && !refused.ok()) return refused;
        if (memory.empty()) {  // no transport shares memory: the slots are ours alone
            private_slots_.reset(new (std::nothrow) std::byte[config_.device_pool]);
            if (private_slots_ == nullptr)
                return failure(MPI_ERR_NO_MEM,
                               "no memory for {} bytes of staging slots (GANTRY_DEVICE_POOL)",
                               config_.device_pool);
            memory = {private_slots_.get(), config_.device_pool};
        }
        pool.emplace(executor, memory, for_device ? kDeviceSlotUnit : config_.host_cell);
    }
    if (for_device && !slots_pinned_ && device.active()) {
        slots_pinned_ = true;
        Status pinned = device.pin(pool->memory().data(), pool->memory().size());
        if (!pinned.ok())
            log::warn("staging slots stay pageable, copies are slower: {}", pinned.text());
    }
    return &*pool;
}

Result<transport::Region> Core::pool_region(int to) {
    auto slots = pool(transport::Pool::device_slots);
    if (!slots.ok()) return slots.status();
    transport::Transport* transport = peer(to).transport;
    auto known = pool_regions_.find(transport);
    if (known == pool_regions_.end()) {
        auto region = transport->register_memory(
            {.address = (*slots)->memory().data(), .bytes = (*slots)->memory().size()});
        if (!region.ok()) return region.status();
        known = pool_regions_.emplace(transport, *region).first;
    }
    return known->second;
}

Result<std::byte*> Core::peer_slot(int owner, transport::Pool which, Bytes offset,
                                   bool for_device) {
    Peer& from = peer(owner);
    auto memory = from.transport->peer_pool(owner, which);
    if (!memory.ok()) return memory.status();
    if (for_device && !from.pool_pinned[index_of(which)]) {
        from.pool_pinned[index_of(which)] = true;
        Status pinned = device.pin(memory->data(), memory->size());
        if (!pinned.ok())
            log::warn("slots of rank {} stay pageable here, copies are slower: {}", owner,
                      pinned.text());
    }
    if (offset >= memory->size())
        return failure(MPI_ERR_INTERN, "rank {} names a slot at {} of a pool of {} bytes", owner,
                       offset, memory->size());
    return memory->data() + offset;
}

Result<device::Location> Core::locate(const Buffer& buffer) {
    if (buffer.bytes() == 0 || !config_.cuda) return device::Location{};
    if (buffer.layout->contiguous()) {
        const Bytes bytes = buffer.bytes();
        if (!in_use_.empty())
            if (const auto* same = in_use_.find(buffer.address, bytes, device.losses()))
                return *same;
        return device.classify(buffer.address, bytes);
    }
    return locate_blocks(device, buffer);
}

plan::End Core::end_of(const device::Location& location, const Buffer& buffer) const {
    plan::End end;
    end.kind = location.kind;
    end.ipc = location.ipc;
    end.contiguous = buffer.contiguous();
    return end;
}

plan::Facts Core::facts_for(int to, const device::Location& mine, bool i_am_source,
                            const device::Uuid* other_gpu) {
    plan::Facts facts;
    facts.peer = peer(to).facts;
    (i_am_source ? facts.source_reach : facts.sink_reach) =
        facts.peer.device_memory ? plan::Reach::device_memory : plan::Reach::host_memory;
    device::GpuFacts& my_gpu = i_am_source ? facts.source_gpu : facts.sink_gpu;
    device::GpuFacts& its_gpu = i_am_source ? facts.sink_gpu : facts.source_gpu;
    if (device.gpu_count() > 0) my_gpu = its_gpu = device.gpu_facts(std::max(mine.gpu, 0));
    if (other_gpu == nullptr) {
        // The other end is not known yet: expect what this machine can do, so that nothing is
        // copied ahead in vain.
        facts.peer_access = my_gpu.peer_bytes_per_second > 0;
        return facts;
    }
    const int other = device.gpu_of(*other_gpu);
    if (other >= 0) {
        its_gpu = device.gpu_facts(other);
        facts.same_gpu = other == mine.gpu && mine.on_device();
        facts.peer_access =
            facts.same_gpu || (mine.gpu >= 0 && device.can_access_peer(mine.gpu, other));
    }
    return facts;
}

plan::Facts Core::facts_for_offer(int to, const device::Location& source) {
    if (source.on_device()) use_gpu(source.gpu);
    plan::Facts facts = facts_for(to, source, true, nullptr);
    // It asked for this allocation by name, so its GPU reaches ours; whether they are one only it
    // knows.
    facts.ipc_open = facts.peer_access = peer(to).direct_buffers.contains(source.buffer_id);
    return facts;
}

const plan::Choice& Core::choose(const plan::Question& question, const plan::Facts& facts) {
    const auto kinds = 4 * static_cast<std::size_t>(question.source.kind) +
                       static_cast<std::size_t>(question.sink.kind);
    // A receiver asks twice about what lies in slots already.
    const auto asked = (question.sink_known ? 3u : 0u) + (question.already_staged ? 2u : 0u);
    Answer& answer = answers_[(question.bytes + kinds + asked) % answers_.size()];
    if (!answer.valid || answer.question != question || answer.facts != facts)
        answer = {question, facts, plan::choose(question, facts, tuning), true};
    return answer.choice;
}

Outgoing& Core::add_outgoing(int to, std::uint64_t id) {
    auto message = outgoing_memory_.create(executor);
    message->id = id;
    message->peer = to;
    Outgoing& reference = *message;
    outgoing_.emplace(reference.id, std::move(message));
    return reference;
}

Outgoing* Core::outgoing(std::uint64_t id) {
    auto found = outgoing_.find(id);
    if (found != outgoing_.end()) return found->second.get();
    Request* const request = unread_.take(id);
    if (request == nullptr) return nullptr;
    const Peer::Offer& offer = peer(request->peer).last_offer;
    Outgoing& message = add_outgoing(request->peer, id);
    message.request = request;
    message.buffer = request->buffer;
    message.location = request->location;
    message.bytes = request->buffer.bytes();
    message.question = offer.question;
    message.facts = offer.facts;
    message.choice = offer.choice;
    return &message;
}

Status Core::send_unread(Request& request, const wire::Envelope& envelope) {
    const std::uint64_t id = next_id_++;
    const auto address = reinterpret_cast<std::uintptr_t>(request.buffer.data());
    GANTRY_TRY(send(request.peer, wire::kRequestAgain, wire::RequestAgain{envelope, id, address}));
    unread_.add(id, request);
    hold_memory(request);
    return success();
}

void Core::make_whole(int to) {
    if (unread_.empty()) return;
    for (const std::uint64_t id : unread_.to(to))
        outgoing(id);
}

void Core::remove_outgoing(std::uint64_t id) {
    const auto found = outgoing_.find(id);
    if (found == outgoing_.end()) return;
    if (found->second->claimable) claim_words_.release(id);
    outgoing_.erase(found);
}

bool Core::name_claim(Outgoing& message) {
    std::uint32_t* words = peer(message.peer).transport->claim_words(world_rank_);
    if (words == nullptr || !claim_words_.reserve(message.id)) return false;
    p2p::name_claim(words[message.id % kClaimWords], message.id);
    message.claimable = true;
    return true;
}

bool Core::claim_as_sender(const Outgoing& message) {
    if (!message.claimable) return true;
    std::uint32_t* words = peer(message.peer).transport->claim_words(world_rank_);
    return take_claim(words[message.id % kClaimWords], message.id, Claimant::sender);
}

void Core::claim_later(int from, std::uint64_t send_id, Nanoseconds when) {
    claims_.wait(from, send_id, when);
}

void Core::claim_what_is_due() {
    while (const auto due = claims_.next(executor.now())) {
        Incoming* message = incoming(due->from, due->id);
        std::uint32_t* words = peer(due->from).transport->claim_words(due->from);
        if (message == nullptr || words == nullptr || !peer(due->from).lost.ok()) continue;
        if (!take_claim(words[due->id % kClaimWords], due->id, Claimant::receiver)) continue;
        wire::Chunk claimed{};
        claimed.pool = wire::kClaimed;
        message->arrived.push(claimed);
    }
}

void Core::start(Outgoing& message) {
    if (message.running) return;
    message.running = true;
    operations.spawn(send_rendezvous(executor, *this, message));
}

// Each may end, and leave the table, as it starts.
void Core::start_all_outgoing() {
    make_whole(-1);
    std::vector<Outgoing*> waiting;
    for (const auto& [id, message] : outgoing_)
        if (!message->running) waiting.push_back(message.get());
    for (Outgoing* message : waiting)
        start(*message);
}

void Core::add_incoming(std::unique_ptr<Incoming> message) {
    const auto key = std::make_pair(message->peer, message->rts.send_id);
    incoming_[key] = message.get();
    matched_[key] = std::move(message);
}

void Core::remove_incoming(int from, std::uint64_t id) {
    incoming_.erase({from, id});
    matched_.erase({from, id});
}

Incoming* Core::incoming(int from, std::uint64_t id) {
    auto found = incoming_.find({from, id});
    return found == incoming_.end() ? nullptr : found->second;
}

wire::Envelope Core::next_envelope(const Group& group, int to, int tag, Bytes bytes) {
    return wire::Envelope{group.context, group.source_number(group.rank), tag, peer(to).next_sent++,
                          bytes};
}

void Core::record_eager(int to, const device::Location& location, const Buffer& buffer) {
    plan::Question question;
    question.bytes = buffer.bytes();
    question.source = end_of(location, buffer);
    const plan::Facts facts = facts_for(to, location, true, nullptr);
    explain.record(question, facts, choose(question, facts), to, false);
}

Status Core::nothing_comes(const Group& group, int source) {
    if (source != MPI_ANY_SOURCE) return peer(group.peer(source)).lost;
    Status lost;
    for (const int member : group.peers) {
        if (member == world_rank_) continue;
        lost = peer(member).lost;
        if (lost.ok()) break;
    }
    return lost;
}

void Core::finish_request(Request& request, Status status) {
    const bool detached = request.detached;
    let_go_of_memory(request);
    request.complete(std::move(status));
    if (detached) requests.destroy(&request);
}

void Core::end_loan(Outgoing& message, const Status& why) {
    if (!message.lent || message.fetched.done()) return;
    peer(message.peer).transport->take_back(message.peer, message.id);
    message.fetched.complete(why);
}

void Core::read_whole(int from, std::uint64_t send_id) {
    Peer& sender = peer(from);
    if (sender.finished.empty()) tell_.push_back(from);
    sender.finished.push_back(send_id);
    if (sender.finished.size() == wire::kFinishesPerMessage) tell_finished();
}

void Core::tell_finished() {
    for (const int rank : tell_) {
        std::vector<std::uint64_t>& finished = peer(rank).finished;
        Status sent;
        if (finished.size() == 1)
            sent = send(rank, wire::kFinish,
                        wire::Finish{finished.front(), MPI_SUCCESS, wire::For::sender});
        else
            sent = send(rank, wire::kFinishMany, wire::FinishMany{finished.size()},
                        std::as_bytes(std::span(finished)));
        if (!sent.ok() && peer(rank).lost.ok())
            log::error("rank {} was not told of messages that were read: {}", rank, sent.text());
        finished.clear();
    }
    tell_.clear();
}

void Core::tell_of_freed_memory() {
    for (const NamedMemory::Row& freed : named.take_freed(executor.now())) {
        const std::uint64_t buffer_id = freed.handle.buffer_id;
        wire::Forget forget{buffer_id, {}};
        std::memcpy(forget.gpu, freed.handle.gpu.data(), sizeof forget.gpu);
        for (const int rank : freed.peers) {
            Peer& told = peer(rank);
            if (!told.lost.ok()) continue;
            told.direct_buffers.erase(buffer_id);
            told.mappings.freed(buffer_id);
            if (told.last_offer.source == buffer_id) told.last_offer.source = 0;
            Status sent = send(rank, wire::kForget, forget);
            if (!sent.ok())
                log::warn("rank {} was not told of a freed allocation: {}", rank, sent.text());
        }
    }
}

int Core::progress() {
    int events = 0;
    if (device.pending()) {
        if (watches_ > 0) {
            const Nanoseconds now = executor.now();
            if (now - last_look_ > kAbsence) ++absences_;
            last_look_ = now;
        }
        int ended = 0;
        for (int look = 0; ended == 0 && look < looks_at_copies_ && device.pending(); ++look)
            ended = device.progress();
        // Who waited for a copy goes on before the next copy and the network are asked about: it
        // may have something to send.
        do {
            events += ended;
            if (executor.has_ready()) events += executor.run_ready();
            // And so does the program, if it waited for just that: its next call may be what the
            // peer waits for.
            if (awaited_ != nullptr && awaited_->done) {
                awaited_ = nullptr;
                if (!tell_.empty()) tell_finished();
                return events;
            }
            ended = ended > 0 && device.pending() ? device.progress() : 0;
        } while (ended > 0);
    }
    if (!named.empty() && ++turns_ % kTurnsBetweenClocks == 0) tell_of_freed_memory();
    if (!claims_.empty()) claim_what_is_due();
    for (transport::Transport* transport : transports_)
        events += transport->progress();
    if (!flagged.awaited.empty()) events += take_raised_flags();
    // Each message for a device needs a receive that is posted: behind the last of these no more
    // come, until the program is told of an end.
    if (std::exchange(gets_wait_, false))
        device.start_waiting(matcher.waiting_on_devices() > 0 ? device::Company::expected
                                                              : device::Company::none);
    // Behind the transports: what came from a peer may go to a copy engine meanwhile.
    events += host_copies.progress();
    if (executor.has_ready()) events += executor.run_ready();
    if (!tell_.empty()) tell_finished();
    return events;
}

int Core::look_again() {
    int events = 0;
    if (only_network_ == nullptr || device.pending()) return 0;
    for (int look = 0; events == 0 && look < kMoreLooks; ++look)
        events = only_network_->progress();
    if (executor.has_ready()) events += executor.run_ready();
    return events;
}

bool Core::pending() const {
    if (!idle() || matcher.waiting() > 0) return true;
    for (const transport::Transport* transport : transports_)
        if (transport->busy()) return true;
    return false;
}

bool Core::idle() const {
    return operations.running() == 0 && !executor.has_ready() && !device.pending() &&
           outgoing_.empty() && unread_.empty() && flagged.awaited.empty();
}

}  // namespace gantry::p2p
