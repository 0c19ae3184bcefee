// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of a rank to itself. They wait in one byte queue until progress(), as messages of other
// ranks do, so a handler never runs inside the call that sent. The queue keeps its memory: no
// allocation per message.
#pragma once

#include "transport/transport.hpp"

#include <cstdlib>
#include <memory>

namespace gantry::transport::self {

// Records of [kind, header size, payload size, header, payload], one behind the other.
class MessageQueue {
  public:
    Status append(MessageKind kind, ConstSpan header, ConstSpan payload);
    int deliver_all(int rank, Receiver& receiver);
    bool empty() const { return used_ == 0; }

  private:
    struct FreeMemory {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    bool reserve(Bytes bytes);
    std::unique_ptr<std::byte, FreeMemory> memory_;
    Bytes used_ = 0;
    Bytes capacity_ = 0;
};

class SelfTransport final : public Transport {
  public:
    explicit SelfTransport(int rank) : rank_(rank) {}
    const char* name() const override { return "self"; }
    PeerFacts facts(int peer) const override;
    bool reaches(int peer) const override { return peer == rank_; }
    Status publish(job::Job&) override { return success(); }
    Status open(job::Job& job, Receiver& receiver) override;
    Task<Status> close(Executor& executor) override;
    Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Result<Region> register_memory(const Extent& extent) override;
    void release_memory(const Region&) override {}
    RemoteKey key(const Region&) const override { return {}; }
    void put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
             const RemoteKey& key, Bytes offset, Completion& done) override;
    int progress() override;
    bool busy() const override { return !arriving_.empty(); }

  private:
    int rank_;
    Receiver* receiver_ = nullptr;
    MessageQueue arriving_;
    MessageQueue delivering_;  // handlers may send meanwhile: that goes to `arriving_`
};

}  // namespace gantry::transport::self
