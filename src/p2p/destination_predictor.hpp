// SPDX-License-Identifier: BSD-3-Clause
//
// DestinationPredictor: what a sender remembers about the other ends of its staged messages to one rank of its
// node, so that what it copies before the verdict lies in the right slots, in pieces of the right
// size. Programs repeat themselves; a wrong guess costs time, never data.
#pragma once

#include "device/device.hpp"
#include "transfer/slots.hpp"
#include "plan/plan.hpp"
#include "plan/question.hpp"

#include <cstdint>
#include <unordered_set>

namespace gantry::p2p {

class DestinationPredictor {
  public:
    // The verdict on a message from there.
    void learn(const device::Location& source, Bytes bytes, const plan::Plan& verdict) {
        if (bytes < kFrom) return;
        const bool put =
            verdict.protocol == plan::Protocol::ipc && verdict.executor == plan::Executor::sender;
        if (verdict.protocol != plan::Protocol::pipeline && !put) return;
        const bool to_device = put || verdict.sink_engine != plan::CopyEngine::cpu;
        if (!source.on_device()) {
            host_to_device_ = to_device;
        } else if (to_device) {
            device_to_host_.erase(source.buffer_id);
        } else {
            if (device_to_host_.size() >= kRemembered) device_to_host_.clear();
            device_to_host_.insert(source.buffer_id);
        }
    }
    // The verdict on a strided one, also where it comes after the last byte has left: on a GPU that
    // both use no kernel is to pack it.
    void learn_strided(const plan::Plan& verdict) {
        const bool tells = verdict.protocol == plan::Protocol::pipeline &&
                           verdict.sink_engine != plan::CopyEngine::cpu;
        if (!tells) return;
        if (verdict.source_engine == plan::CopyEngine::copy_engine_2d) gpu_shared_ = true;
        if (verdict.source_engine == plan::CopyEngine::kernel) gpu_shared_ = false;
    }
    bool gpu_shared() const { return gpu_shared_; }
    // The receiver read it out of our memory: nothing is to be copied ahead.
    void learn_read(const device::Location& source) {
        if (!device_to_host_.empty()) device_to_host_.erase(source.buffer_id);
    }
    // Fills in the sink of an offer whose likes ended elsewhere than in memory like their own.
    void expect(const device::Location& source, plan::Question& offer) const {
        if (offer.bytes < kFrom) return;
        const bool other =
            source.on_device() ? device_to_host_.contains(source.buffer_id) : host_to_device_;
        if (!other) return;
        offer.sink.kind =
            source.on_device() ? device::MemoryKind::host : device::MemoryKind::device;
        offer.sink_expected = true;
    }

  private:
    static constexpr Bytes kFrom =
        transfer::kDeviceSlotUnit;  // smaller ones are one piece either way
    static constexpr std::size_t kRemembered = 4096;
    std::unordered_set<std::uint64_t> device_to_host_;  // by allocation
    bool host_to_device_ = false;
    bool gpu_shared_ = false;
};

}  // namespace gantry::p2p
