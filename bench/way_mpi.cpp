// SPDX-License-Identifier: BSD-3-Clause
//
// The library itself: pointers as they are, MPI_Send and MPI_Recv for one message, MPI_Isend and
// MPI_Irecv for a window.
#include "job.hpp"
#include "way.hpp"

#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 1;

class LibraryWay final : public Way {
  public:
    std::string name() const override { return library_name(); }

    void send(const Buffer& from) override {
        start_sends(from);
        finish();
    }
    void receive(const Buffer& into) override {
        start_receives(into);
        finish();
    }
    void exchange(const Buffer& from, const Buffer& into) override {
        start_receives(into);
        start_sends(from);
        finish();
    }
    void sendrecv(const Buffer& from, const Buffer& into) override {
        MPI_Sendrecv(from.message(0), static_cast<int>(from.message_bytes()), MPI_BYTE, peer(),
                     kTag, into.message(0), static_cast<int>(into.message_bytes()), MPI_BYTE,
                     peer(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void send_one(const Buffer& from, int message) override {
        MPI_Send(from.message(message), static_cast<int>(from.message_bytes()), MPI_BYTE, peer(),
                 kTag, MPI_COMM_WORLD);
    }
    void receive_one(const Buffer& into, int message) override {
        MPI_Recv(into.message(message), static_cast<int>(into.message_bytes()), MPI_BYTE, peer(),
                 kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

  private:
    void start_sends(const Buffer& from) {
        for (int i = 0; i < from.messages(); ++i)
            MPI_Isend(from.message(i), static_cast<int>(from.message_bytes()), MPI_BYTE, peer(),
                      kTag, MPI_COMM_WORLD, &requests_.emplace_back());
    }
    void start_receives(const Buffer& into) {
        for (int i = 0; i < into.messages(); ++i)
            MPI_Irecv(into.message(i), static_cast<int>(into.message_bytes()), MPI_BYTE, peer(),
                      kTag, MPI_COMM_WORLD, &requests_.emplace_back());
    }
    void finish() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Way> library_way() {
    return std::make_unique<LibraryWay>();
}

}  // namespace gantry::bench
