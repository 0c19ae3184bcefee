// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/node.hpp"

#include "transport/wire_version.hpp"

#include <cstring>
#include <iterator>
#include <new>
#include <string_view>

namespace gantry::transport::shm {
namespace {

constexpr const char* kWhat = "gantry-node";
constexpr std::string_view kKey = "shm";

}  // namespace

std::vector<int> Node::local_ranks(const job::Job& job) {
    const std::vector<int>& nodes = job.nodes();
    const int ours = nodes[static_cast<std::size_t>(job.rank())];
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        if (nodes[rank] == ours) ranks.push_back(static_cast<int>(rank));
    return ranks;
}

Status Node::create(job::Job& job, int members) {
    Result<Segment> segment = Segment::create(kWhat, NodeLayout(members).bytes());
    GANTRY_TRY(segment.status());
    segment_ = std::move(segment.value());
    GANTRY_TRY(segment_.reserve(0, segment_.bytes()));
    GANTRY_TRY(map(members));
    auto* head = new (mapping_.address()) NodeHead;
    head->version = kWireVersion;
    head->members = static_cast<std::uint32_t>(members);
    const SegmentName name = segment_.name();
    return job.put(kKey, std::string_view(reinterpret_cast<const char*>(&name), sizeof name));
}

Status Node::attach(job::Job& job, int creator_rank, int members) {
    const Result<std::string> text = job.get(creator_rank, kKey);
    GANTRY_TRY(text.status());
    SegmentName name;
    if (text.value().size() != sizeof name)
        return failure(
            MPI_ERR_OTHER,
            "shm: rank {} runs a Gantry that this one (wire version {}) cannot read; all "
            "ranks must load the same library",
            creator_rank, kWireVersion);
    std::memcpy(&name, text.value().data(), sizeof name);
    Result<Segment> segment = Segment::open(kWhat, name);
    if (!segment.ok())
        return segment.status().with(fmt::format("attaching to the node of rank {}", creator_rank));
    segment_ = std::move(segment.value());
    if (segment_.bytes() < sizeof(NodeHead))
        return failure(MPI_ERR_OTHER, "shm: the segment of rank {} has {} bytes only", creator_rank,
                       segment_.bytes());
    {  // another version's segment may be smaller than ours
        Result<SegmentMapping> start = segment_.map(0, sizeof(NodeHead));
        GANTRY_TRY(start.status());
        const auto* head = reinterpret_cast<const NodeHead*>(start->address());
        if (head->version != kWireVersion)
            return mixed_versions("shm", creator_rank, head->version);
        if (head->members != static_cast<std::uint32_t>(members))
            return failure(MPI_ERR_OTHER,
                           "shm: rank {} counts {} ranks on this node and this rank {}: the "
                           "launcher told them different things",
                           creator_rank, head->members, members);
    }
    return map(members);
}

Status Node::map(int members) {
    layout_ = NodeLayout(members);
    members_ = members;
    words_used_ = divide_up(static_cast<Bytes>(members), 64);
    Result<SegmentMapping> mapping = segment_.map(0, segment_.bytes());
    GANTRY_TRY(mapping.status());
    mapping_ = std::move(mapping.value());
    return success();
}

Member& Node::entry(int member) const {
    return *reinterpret_cast<Member*>(mapping_.address() +
                                      layout_.member_offset(static_cast<std::size_t>(member)));
}

std::uint64_t* Node::row(int member) const {
    return reinterpret_cast<std::uint64_t*>(
        mapping_.address() + layout_.doorbell_offset(static_cast<std::size_t>(member)));
}

void Node::enter(int self, const SegmentName& segment, const SegmentName& home) {
    Member& own = entry(self);
    own.segment = segment;
    own.home = home;
    own.start_time = own_start_time();
    own.probe = own_probe();
    // Pairs with the acquire in state().
    std::atomic_ref<std::uint32_t>(own.state).store(static_cast<std::uint32_t>(MemberState::here),
                                                    std::memory_order_release);
}

void Node::leave(int self) {
    // Pairs with the acquire in state(): what we wrote before is there for who sees us gone.
    std::atomic_ref<std::uint32_t>(entry(self).state)
        .store(static_cast<std::uint32_t>(MemberState::left), std::memory_order_release);
}

MemberState Node::state(int member) const {
    // Pairs with the releases in enter() and leave().
    return static_cast<MemberState>(
        std::atomic_ref<std::uint32_t>(entry(member).state).load(std::memory_order_acquire));
}

const Member& Node::member(int member) const {
    return entry(member);
}

std::uint64_t& Node::host_rates(int member) const {
    return entry(member).host_rates;
}

void Node::note_gpu(int self, std::uint64_t gpu) {
    Member& own = entry(self);
    for (std::uint64_t& place : own.gpus) {
        if (place == gpu) return;
        if (place != 0) continue;
        const bool last = &place == std::end(own.gpus) - 1;
        std::atomic_ref<std::uint64_t>(place).store(last ? Member::kEveryGpu : gpu,
                                                    std::memory_order_relaxed);
        return;
    }
}

// By those that left or died, too: who used a GPU may have left work on it.
bool Node::others_use(int self, std::uint64_t gpu) const {
    for (int member = 0; member < members_; ++member) {
        if (member == self) continue;
        for (std::uint64_t& place : entry(member).gpus) {
            const std::uint64_t used =
                std::atomic_ref<std::uint64_t>(place).load(std::memory_order_relaxed);
            if (used == 0) break;
            if (used == gpu || used == Member::kEveryGpu) return true;
        }
    }
    return false;
}

void Node::ring_doorbell(int of_member, int self) {
    const auto bit = static_cast<unsigned>(self);
    std::atomic_ref<std::uint64_t> word(row(of_member)[bit / 64]);
    // Pairs with the acquire in answer_doorbells.
    word.fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_release);
}

}  // namespace gantry::transport::shm
