// SPDX-License-Identifier: BSD-3-Clause
//
// Collective operations of device memory as programs made them without a library that takes it:
//
//   staged     all that a rank has is copied to pinned host memory, the library's operation works on
//              that, all that came is copied to the device
//   messages   of alltoall: one partner after the other, each block a device message of its own
#include "collective_way.hpp"

#include "job.hpp"

#include <mpi.h>

namespace gantry::bench {
namespace {

constexpr int kTag = 7;

class StagedCollective final : public CollectiveWay {
  public:
    StagedCollective(const Collective& call, const Buffer& out, const Buffer& in)
        : call_(call),
          out_(out),
          in_(in),
          host_out_(Placement::pinned, out.message_bytes(), 1),
          host_in_(Placement::pinned, in.message_bytes(), 1),
          by_host_(library_collective(call, Form::blocking, host_out_, host_in_)) {}
    std::string name() const override { return "staged"; }
    void finish() override {
        // A broadcast's vector lies in `in`, also the root's.
        const bool broadcasts = call_.operation == Operation::bcast;
        const bool is_source = broadcasts && call_.rank == kCollectiveRoot;
        if (blocks_out(call_) > 0) to_host(host_out_, out_);
        if (is_source) to_host(host_in_, in_);
        by_host_->finish();
        if (blocks_in(call_) > 0 && !is_source)
            copy_to_device(in_.message(0), static_cast<std::byte*>(host_in_.message(0)),
                           in_.message_bytes());
    }

  private:
    static void to_host(const Buffer& host, const Buffer& device) {
        copy_to_host(static_cast<std::byte*>(host.message(0)), device.message(0),
                     device.message_bytes());
    }
    const Collective call_;
    const Buffer &out_, &in_;
    Buffer host_out_, host_in_;
    std::unique_ptr<CollectiveWay> by_host_;
};

class MessagesInTurn final : public CollectiveWay {
  public:
    MessagesInTurn(const Collective& call, const Buffer& out, const Buffer& in)
        : call_(call), out_(out), in_(in) {}
    std::string name() const override { return "messages"; }
    void finish() override {
        const auto count = static_cast<int>(call_.count);
        const MPI_Datatype type = type_of(call_.element);
        for (int step = 0; step < call_.ranks; ++step) {
            const int to = (call_.rank + step) % call_.ranks;
            const int from = (call_.rank - step + call_.ranks) % call_.ranks;
            MPI_Sendrecv(block(out_, to), count, type, to, kTag, block(in_, from), count, type,
                         from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }

  private:
    void* block(const Buffer& all, int number) const {
        return static_cast<std::byte*>(all.message(0)) +
               static_cast<Bytes>(number) * block_bytes(call_);
    }
    const Collective call_;
    const Buffer &out_, &in_;
};

}  // namespace

std::unique_ptr<CollectiveWay> staged_collective(const Collective& call, const Buffer& out,
                                                 const Buffer& in) {
    return std::make_unique<StagedCollective>(call, out, in);
}

std::unique_ptr<CollectiveWay> messages_in_turn(const Collective& call, const Buffer& out,
                                                const Buffer& in) {
    return std::make_unique<MessagesInTurn>(call, out, in);
}

}  // namespace gantry::bench
