// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/gpu_arbiter.hpp"

#include "base/log.hpp"

namespace gantry::transfer {
namespace {

// Longer between two looks at the device: the time of a copy that ended meanwhile is not known.
constexpr Nanoseconds kAbsence = 20 * kMicrosecond;

}  // namespace

GpuArbiter::GpuArbiter(Executor& executor, device::Device& device,
                       const std::vector<transport::Transport*>& transports, int world_rank,
                       SharedGpu::Limits limits)
    : executor_(executor), device_(device), limits_(limits), neighbours_(transports, world_rank) {
    device_.meet(&neighbours_);
}

GpuArbiter::~GpuArbiter() {
    device_.meet(nullptr);
}

bool GpuArbiter::is_time_sliced(int gpu) const {
    const device::GpuFacts& facts = device_.gpu_facts(gpu);
    return facts.queue_turn > 0 && neighbours_.use(facts.uuid);
}

void GpuArbiter::say_what_stood_idle() const {
    if (!neighbours_.marked_any()) return;
    int shared = -1, idle = 0, gpu = 0;
    for (const device::GpuFacts& facts : device_.gpus()) {
        const bool others = neighbours_.use(facts.uuid);
        if (neighbours_.marked(gpu) && others) shared = gpu;
        if (!neighbours_.marked(gpu) && !others) ++idle;
        ++gpu;
    }
    if (shared < 0 || idle == 0) return;
    log::warn(
        "ranks of this node shared GPU {}, while {} of {} GPUs stood idle: choose one for each "
        "rank (cudaSetDevice of its number on the node), or start with mpiexec --gpus-per-rank 1",
        shared, idle, gpu);
}

SharedGpu& GpuArbiter::shared(int gpu) {
    const auto index = static_cast<std::size_t>(gpu + 1);
    while (shared_.size() <= index)
        shared_.push_back(std::make_unique<SharedGpu>(limits_));
    return *shared_[index];
}

GpuArbiter::Watch::Watch(GpuArbiter& arbiter) : arbiter_(arbiter) {
    if (arbiter_.watches_++ == 0) arbiter_.last_look_ = arbiter_.executor_.now();
}

void GpuArbiter::look() {
    const Nanoseconds now = executor_.now();
    if (now - last_look_ > kAbsence) ++absences_;
    last_look_ = now;
}

bool GpuArbiter::name_claim(const Endpoint& to, std::uint64_t id) {
    std::uint32_t* words = to.own_shared != nullptr ? to.own_shared->claim_words() : nullptr;
    if (words == nullptr || !claim_words_.reserve(id)) return false;
    transfer::name_claim(words[id % kClaimWords], id);
    return true;
}

bool GpuArbiter::claim(const Endpoint& peer, std::uint64_t id, Claimant who) {
    transport::SharedSegment* const sender =
        who == Claimant::sender ? peer.own_shared : peer.shared;
    std::uint32_t* words = sender != nullptr ? sender->claim_words() : nullptr;
    return words != nullptr && take_claim(words[id % kClaimWords], id, who);
}

}  // namespace gantry::transfer
