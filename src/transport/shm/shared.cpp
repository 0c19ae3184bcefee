// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks of a node see of each other beside messages: segments, and a peer's own memory.
#include "base/log.hpp"
#include "transport/shm/shm.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gantry::transport::shm {

SharedSegment* ShmTransport::shared_segment(int rank) {
    Peer* const peer = rank == rank_ && !peers_.empty() ? &numbered(self_) : peer_of(rank);
    return peer != nullptr ? &peer->shared : nullptr;
}

Result<std::span<std::byte>> ShmTransport::Shared::pool(Pool pool) {
    if (owner.number == shm.self_) {
        if (shm.home_ != nullptr) return shm.home_->shared_segment(shm.rank_)->pool(pool);
        if (!shm.own_) GANTRY_TRY(shm.make_own_segment());
        const config::Config& config = shm.config_;
        const Bytes bytes = pool == Pool::host_cells ? config.host_pool : config.device_pool;
        if (bytes == 0)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                           "the pool is switched off (its size is 0)");
        return shm.own_.reserve_pool(pool, round_up(bytes, page_bytes()));
    }
    GANTRY_TRY(shm.map_home(owner));
    const Result<std::span<std::byte>> slots = shm.home_of(owner).pool(pool);
    if (slots.ok() && slots.value().empty())
        return failure(MPI_ERR_INTERN, "shm: rank {} has not reserved that pool", owner.rank);
    return slots;
}

// Null: that rank's segment cannot be had.
const RankSegment* ShmTransport::segment_of(Peer& peer) {
    if (peer.number == self_) {
        const RankSegment& own = home_ != nullptr ? home_->own_ : own_;
        return own ? &own : nullptr;
    }
    if (Status failed = map_home(peer)) {
        // Of a death all hear otherwise.
        const bool died = failed.error_class() == MPI_ERR_PROC_ABORTED;
        if (!std::exchange(peer.named_unreachable, true) && !died) log::warn("{}", failed.text());
        return nullptr;
    }
    return &home_of(peer);
}

std::uint32_t* ShmTransport::Shared::claim_words() {
    const RankSegment* segment = shm.segment_of(owner);
    return segment != nullptr ? segment->claim_words() : nullptr;
}

std::span<Flag> ShmTransport::Shared::flags() {
    const RankSegment* segment = shm.segment_of(owner);
    if (segment == nullptr) return {};
    const std::size_t of_puts = shm.home_ != nullptr ? 0 : shm.peers_.size();
    return {segment->flags(), kSlotFlags + of_puts};
}

Flag* ShmTransport::Shared::put_flag(int to) {
    // A home has flags for the ranks of its own job alone.
    if (shm.home_ != nullptr) return nullptr;
    const std::span<Flag> all = flags();
    const Peer* peer = shm.peer_of(to);
    if (all.empty() || (to != shm.rank_ && peer == nullptr)) return nullptr;
    const int number = to == shm.rank_ ? shm.self_ : peer->number;
    return &all[kSlotFlags + static_cast<std::size_t>(number)];
}

std::span<std::byte> ShmTransport::Shared::node_segment() {
    if (owner.number == shm.self_) {
        if (shm.home_ != nullptr) return shm.home_->shared_segment(shm.rank_)->node_segment();
        if (shm.own_) return shm.own_.node_segment();
        if (Status failed = shm.make_own_segment()) {
            log::warn("{}", failed.text());
            return {};
        }
    } else if (!shm.home_of(owner) && shm.node_.state(owner.number) == MemberState::absent) {
        return {};  // it has not begun to communicate yet
    }
    const RankSegment* segment = shm.segment_of(owner);
    return segment != nullptr ? segment->node_segment() : std::span<std::byte>();
}

bool ShmTransport::Shared::left() const {
    return shm.node_ && shm.node_.state(owner.number) == MemberState::left;
}

void ShmTransport::Shared::note_gpu(std::uint64_t gpu) {
    if (shm.node_) shm.node_.note_gpu(shm.self_, gpu);
}

bool ShmTransport::Shared::others_use(std::uint64_t gpu) const {
    return shm.node_ && shm.node_.others_use(shm.self_, gpu);
}

// --- a peer's own memory -------------------------------------------------------------------------

bool ShmTransport::reads_memory(int rank) {
    Peer* const peer = peer_of(rank);
    if (peer == nullptr || peer->lost) return false;
    if (peer->reads == Reads::unknown && node_.state(peer->number) != MemberState::absent) {
        const bool allowed = gantry::reaches(node_.member(peer->number).probe);
        peer->reads = allowed ? Reads::allowed : Reads::refused;
        if (!allowed)
            log::info("shm: this process may not read the memory of rank {} (gantry doctor)", rank);
    }
    return peer->reads == Reads::allowed;
}

void ShmTransport::read_memory(int rank, std::uint64_t address, void* sink, Bytes bytes,
                               Completion& done) {
    Peer& peer = *peer_of(rank);
    if (peer.lost)
        return done.complete(failure(MPI_ERR_PROC_ABORTED,
                                     "reading the memory of rank {}: its process has ended", rank));
    iovec there{reinterpret_cast<void*>(address), bytes}, here{sink, bytes};
    const int process = node_.member(peer.number).probe.process;
    const int why = access_process(ProcessAccess::read, process, {&there, 1}, {&here, 1});
    if (why == 0) return done.complete(success());
    // What is not there concerns this message; everything else all of them.
    if (why != EFAULT) peer.reads = Reads::refused;
    done.complete(failure(why == ESRCH ? MPI_ERR_PROC_ABORTED : MPI_ERR_UNSUPPORTED_OPERATION,
                          "reading {} bytes of rank {} (process {}): {}", bytes, rank, process,
                          std::strerror(why)));
}

// --- remote memory: none; peers read our pools in place ------------------------------------------

Result<Region> ShmTransport::register_memory(const Extent&) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "transport shm has no remote memory; it shares slots");
}
void ShmTransport::put(int, int, const void*, Bytes, const Region&, const RemoteKey&, Bytes,
                       Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION,
                          "transport shm has no remote memory; it shares slots"));
}

}  // namespace gantry::transport::shm
