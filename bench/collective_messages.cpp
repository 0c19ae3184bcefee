// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of all ranks at once, as a collective operation is measured:
//
//   fan_in    every rank sends to rank 0      how a receiver bears many senders
//   fan_out   rank 0 sends to every rank      and a sender many receivers
//   pairs     rank r and rank r + P/2 swap    how links bear many pairs
#include "collective_way.hpp"

#include "job.hpp"

#include <mpi.h>

#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 6;

class Messages final : public CollectiveWay {
  public:
    Messages(const Collective& call, const Buffer& out, const Buffer& in)
        : call_(call), out_(out.message(0)), in_(in.message(0)) {}
    std::string name() const override { return library_name(); }
    void finish() override {
        requests_.clear();
        const bool is_root = call_.rank == kCollectiveRoot;
        switch (call_.operation) {
            case Operation::fan_in:
                for (int from = 0; is_root && from < call_.ranks; ++from)
                    receive(block(in_, from), from);
                send(out_, kCollectiveRoot);
                break;
            case Operation::fan_out:
                receive(in_, kCollectiveRoot);
                for (int to = 0; is_root && to < call_.ranks; ++to)
                    send(block(out_, to), to);
                break;
            default: receive(in_, partner(call_)); send(out_, partner(call_));
        }
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }

  private:
    int count() const { return static_cast<int>(call_.count); }
    void* block(void* all, int number) const {
        return static_cast<std::byte*>(all) + static_cast<Bytes>(number) * block_bytes(call_);
    }
    void send(const void* from, int to) {
        requests_.push_back(MPI_REQUEST_NULL);
        MPI_Isend(from, count(), type_of(call_.element), to, kTag, MPI_COMM_WORLD,
                  &requests_.back());
    }
    void receive(void* into, int from) {
        requests_.push_back(MPI_REQUEST_NULL);
        MPI_Irecv(into, count(), type_of(call_.element), from, kTag, MPI_COMM_WORLD,
                  &requests_.back());
    }

    const Collective call_;
    void *out_, *in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<CollectiveWay> library_messages(const Collective& call, const Buffer& out,
                                                const Buffer& in) {
    return std::make_unique<Messages>(call, out, in);
}

}  // namespace gantry::bench
