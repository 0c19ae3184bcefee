// SPDX-License-Identifier: BSD-3-Clause
//
// Messages whose requests are made once, at the first use of a buffer's place, and started for each message:
// persistent ones, and partitioned ones whose partitions are all marked ready in one call.
#include "job.hpp"
#include "way.hpp"

#include <map>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kPersistentTag = 11, kPartitionedTag = 12;
constexpr Bytes kPartitions = 8;

class StartedWay final : public Way {
  public:
    explicit StartedWay(Started kind) : kind_(kind) {}
    ~StartedWay() override {
        for (auto* made : {&sends_, &receives_})
            for (auto& [place, request] : *made)
                MPI_Request_free(&request);
    }

    std::string name() const override {
        return kind_ == Started::persistent ? "persistent" : "partitioned";
    }
    void send(const Buffer& from) override { run({&from, nullptr, 0, from.messages()}); }
    void receive(const Buffer& into) override { run({nullptr, &into, 0, into.messages()}); }
    void exchange(const Buffer& from, const Buffer& into) override {
        run({&from, &into, 0, from.messages()});
    }
    void send_one(const Buffer& from, int message) override {
        run({&from, nullptr, message, message + 1});
    }
    void receive_one(const Buffer& into, int message) override {
        run({nullptr, &into, message, message + 1});
    }

  private:
    struct Messages {
        const Buffer *from, *into;
        int first, end;
    };
    static int partitions(const Buffer& buffer) {
        const Bytes bytes = buffer.message_bytes();
        return bytes >= kPartitions && bytes % kPartitions == 0 ? static_cast<int>(kPartitions) : 1;
    }

    MPI_Request send_of(const Buffer& from, int message) {
        MPI_Request& request =
            sends_.try_emplace(from.message(message), MPI_REQUEST_NULL).first->second;
        if (request != MPI_REQUEST_NULL) return request;
        const int bytes = static_cast<int>(from.message_bytes());
        if (kind_ == Started::persistent)
            MPI_Send_init(from.message(message), bytes, MPI_BYTE, peer(), kPersistentTag,
                          MPI_COMM_WORLD, &request);
        else
            MPI_Psend_init(from.message(message), partitions(from), bytes / partitions(from),
                           MPI_BYTE, peer(), kPartitionedTag, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        return request;
    }
    MPI_Request receive_of(const Buffer& into, int message) {
        MPI_Request& request =
            receives_.try_emplace(into.message(message), MPI_REQUEST_NULL).first->second;
        if (request != MPI_REQUEST_NULL) return request;
        const int bytes = static_cast<int>(into.message_bytes());
        if (kind_ == Started::persistent)
            MPI_Recv_init(into.message(message), bytes, MPI_BYTE, peer(), kPersistentTag,
                          MPI_COMM_WORLD, &request);
        else
            MPI_Precv_init(into.message(message), partitions(into), bytes / partitions(into),
                           MPI_BYTE, peer(), kPartitionedTag, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        return request;
    }

    void run(const Messages& messages) {
        started_.clear();
        for (int i = messages.first; messages.into != nullptr && i < messages.end; ++i)
            started_.push_back(receive_of(*messages.into, i));
        const std::size_t sends = started_.size();
        for (int i = messages.first; messages.from != nullptr && i < messages.end; ++i)
            started_.push_back(send_of(*messages.from, i));
        MPI_Startall(static_cast<int>(started_.size()), started_.data());
        for (std::size_t i = sends; kind_ == Started::partitioned && i < started_.size(); ++i)
            MPI_Pready_range(0, partitions(*messages.from) - 1, started_[i]);
        MPI_Waitall(static_cast<int>(started_.size()), started_.data(), MPI_STATUSES_IGNORE);
    }

    Started kind_;
    std::map<void*, MPI_Request> sends_, receives_;
    std::vector<MPI_Request> started_;
};

}  // namespace

std::unique_ptr<Way> started_way(Started kind) {
    return std::make_unique<StartedWay>(kind);
}

}  // namespace gantry::bench
