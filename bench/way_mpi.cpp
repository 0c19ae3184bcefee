// SPDX-License-Identifier: BSD-3-Clause
//
// The library itself: pointers as they are, MPI_Send and MPI_Recv for one message, MPI_Isend and
// MPI_Irecv for a window. Messages of rows have a datatype.
#include "job.hpp"
#include "way.hpp"

#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 1;

class LibraryWay final : public Way {
  public:
    ~LibraryWay() override {
        if (rows_ != MPI_DATATYPE_NULL) MPI_Type_free(&rows_);
    }
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
        MPI_Sendrecv(from.message(0), count(from), type(from), peer(), kTag, into.message(0),
                     count(into), type(into), peer(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void send_one(const Buffer& from, int message) override {
        MPI_Send(from.message(message), count(from), type(from), peer(), kTag, MPI_COMM_WORLD);
    }
    void receive_one(const Buffer& into, int message) override {
        MPI_Recv(into.message(message), count(into), type(into), peer(), kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }

  private:
    static int count(const Buffer& buffer) {
        return buffer.rows().any() ? 1 : static_cast<int>(buffer.message_bytes());
    }
    // Both buffers of a way have messages of one shape.
    MPI_Datatype type(const Buffer& buffer) {
        const Rows& rows = buffer.rows();
        if (!rows.any()) return MPI_BYTE;
        if (rows_ == MPI_DATATYPE_NULL) {
            MPI_Type_vector(static_cast<int>(rows.count(buffer.message_bytes())),
                            static_cast<int>(rows.block), static_cast<int>(rows.stride), MPI_BYTE,
                            &rows_);
            MPI_Type_commit(&rows_);
        }
        return rows_;
    }
    void start_sends(const Buffer& from) {
        for (int i = 0; i < from.messages(); ++i)
            MPI_Isend(from.message(i), count(from), type(from), peer(), kTag, MPI_COMM_WORLD,
                      &requests_.emplace_back());
    }
    void start_receives(const Buffer& into) {
        for (int i = 0; i < into.messages(); ++i)
            MPI_Irecv(into.message(i), count(into), type(into), peer(), kTag, MPI_COMM_WORLD,
                      &requests_.emplace_back());
    }
    void finish() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }
    MPI_Datatype rows_ = MPI_DATATYPE_NULL;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Way> library_way() {
    return std::make_unique<LibraryWay>();
}

}  // namespace gantry::bench
