// SPDX-License-Identifier: BSD-3-Clause
//
// The receiving side. Its receives are posted as a round begins, straight into the program's buffer.
#pragma once

#include "mpi/partitioned/side.hpp"

#include <memory>
#include <utility>

namespace gantry::mpi {

class PartitionedReceive final : public PartitionedSide {
  public:
    PartitionedReceive(PartitionedPlace place, const PartitionedBuffer& buffer, int peer, int tag)
        : PartitionedSide(Role::receives, std::move(place), buffer, peer, tag) {}

    Status open(std::shared_ptr<PartitionedSide> self) override;
    // Whether all bytes of this partition of ours are there; of a round that is over they are.
    bool has_arrived(std::uint32_t partition) const;

  private:
    void message_ended(Transfer& transfer, const Status& status, Bytes bytes) override;
    void begin_round() override;
    void on_greeting(const Status& status);
    void answer(Answer::Fits fits);
    void post_groups();
    void post_units(std::uint32_t group);

    Greeting greeting_{};
    Answer answer_{};
    Transfer answers_;
    std::unique_ptr<bool[]> arrived_;  // by unit
};

}  // namespace gantry::mpi
