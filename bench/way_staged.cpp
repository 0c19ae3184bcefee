// SPDX-License-Identifier: BSD-3-Clause
//
// By hand, the plain way: copy the message to pinned host memory (rows with a strided copy), send that,
// receive into pinned host memory, copy to the device. A side whose buffer is in host memory sends and
// receives it directly.
#include "job.hpp"
#include "row_copies.hpp"
#include "way.hpp"

#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 2;

class StagedWay final : public Way {
  public:
    StagedWay(Bytes message_bytes, int messages)
        : stride_(message_bytes),
          outgoing_(message_bytes * static_cast<Bytes>(messages), true),
          incoming_(message_bytes * static_cast<Bytes>(messages), true) {}

    std::string name() const override { return "staged"; }

    void send(const Buffer& from) override {
        start_sends(from);
        MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
        sends_.clear();
    }
    void receive(const Buffer& into) override {
        start_receives(into);
        finish_receives(into);
    }
    void exchange(const Buffer& from, const Buffer& into) override {
        start_receives(into);
        start_sends(from);
        finish_receives(into);
        MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
        sends_.clear();
    }
    void send_one(const Buffer& from, int message) override {
        MPI_Send(outgoing(from, message), static_cast<int>(from.message_bytes()), MPI_BYTE, peer(),
                 kTag, MPI_COMM_WORLD);
    }
    void receive_one(const Buffer& into, int message) override {
        void* place = place_for(into, message);
        MPI_Recv(place, static_cast<int>(into.message_bytes()), MPI_BYTE, peer(), kTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (into.on_device()) unpack_to_device(into, message, static_cast<std::byte*>(place));
    }

  private:
    void* outgoing(const Buffer& from, int message) {
        if (!from.on_device()) return from.message(message);
        std::byte* host = outgoing_.data() + stride_ * static_cast<Bytes>(message);
        pack_to_host(host, from, message);
        return host;
    }
    void* place_for(const Buffer& into, int message) const {
        return into.on_device() ? incoming_.data() + stride_ * static_cast<Bytes>(message)
                                : static_cast<std::byte*>(into.message(message));
    }
    void start_sends(const Buffer& from) {
        for (int i = 0; i < from.messages(); ++i) {
            void* host = outgoing(from, i);
            MPI_Isend(host, static_cast<int>(from.message_bytes()), MPI_BYTE, peer(), kTag,
                      MPI_COMM_WORLD, &sends_.emplace_back());
        }
    }
    void start_receives(const Buffer& into) {
        for (int i = 0; i < into.messages(); ++i)
            MPI_Irecv(place_for(into, i), static_cast<int>(into.message_bytes()), MPI_BYTE, peer(),
                      kTag, MPI_COMM_WORLD, &receives_.emplace_back());
    }
    void finish_receives(const Buffer& into) {
        for (int i = 0; i < into.messages(); ++i) {
            MPI_Wait(&receives_[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
            if (into.on_device())
                unpack_to_device(into, i, static_cast<std::byte*>(place_for(into, i)));
        }
        receives_.clear();
    }

    Bytes stride_;
    HostMemory outgoing_, incoming_;
    std::vector<MPI_Request> sends_, receives_;
};

}  // namespace

std::unique_ptr<Way> staged_way(Bytes message_bytes, int messages) {
    return std::make_unique<StagedWay>(message_bytes, messages);
}

}  // namespace gantry::bench
