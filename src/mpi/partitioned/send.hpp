// SPDX-License-Identifier: BSD-3-Clause
//
// The sending side. A group leaves as soon as all its units are ready. Units that are ready without the rest
// of their group are held until the next turn of progress, for company: a program marks them one behind the
// other. Then they go one by one, since their receiver may wait for just these.
//
//   unit:   open --(its last partition)--> ready --> sent in its group's message, or alone
//   group:  whole --(held, a turn of progress)--> split
#pragma once

#include "base/intrusive_list.hpp"
#include "mpi/partitioned/side.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace gantry::mpi {

class PartitionedSend final : public PartitionedSide, public Link<PartitionedSend> {
  public:
    PartitionedSend(PartitionedPlace place, const PartitionedBuffer& buffer, int peer, int tag)
        : PartitionedSide(Role::sends, std::move(place), buffer, peer, tag) {}
    ~PartitionedSend() override;

    Status open(std::shared_ptr<PartitionedSide> self) override;
    bool is_ready(std::uint32_t partition) const { return ready_[partition]; }
    // MPI_Pready of one that is not.
    void make_ready(std::uint32_t partition);
    // A turn of progress: sends what is held.
    void send_held();

  private:
    void message_ended(Transfer& transfer, const Status& status, Bytes bytes) override;
    void begin_round() override;
    void on_answer(const Status& status);
    void count_ready(std::uint32_t partition);
    void unit_is_ready(std::uint32_t unit);
    void send_group(std::uint32_t group);
    void send_unit(std::uint32_t unit);
    void split(std::uint32_t group);

    struct Group {
        std::uint32_t ready_units = 0;
        bool is_split = false;
    };
    Greeting greeting_{};
    Answer answer_{};
    Transfer greets_;
    std::unique_ptr<bool[]> ready_;               // by partition
    std::unique_ptr<std::uint32_t[]> waits_for_;  // by unit: partitions that are not ready
    std::unique_ptr<Group[]> groups_;
};

// Sends that hold something back, and sides that the program has freed before they met another.
class HeldPartitions {
  public:
    bool empty() const { return sends_.empty(); }
    void add(PartitionedSend& send) {
        if (!send.linked()) sends_.push_back(send);
    }
    // Sends all of it; returns how many sides had some.
    int send();
    void keep(const std::shared_ptr<PartitionedSide>& freed);
    // Those never meet anybody any more.
    void give_up();

  private:
    IntrusiveList<PartitionedSend> sends_;
    std::vector<std::weak_ptr<PartitionedSide>> freed_;
};

}  // namespace gantry::mpi
