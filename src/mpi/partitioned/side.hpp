// SPDX-License-Identifier: BSD-3-Clause
//
// One side of a partitioned communication (MPI 5.0 chapter 4). The two meet once, in the order in which they
// were made, and agree on a layout; from then on each round is messages whose tags only they know.
//
//   sender                                                receiver
//     | -- greeting [partitions, bytes, where to answer] --> |   context "greetings", the program's tag
//     | <-- answer [layout, first tag] --------------------- |   context "partitions", from here on
//     |                                                      |   receives of all groups are posted
//     | -- group 0 ----------------------------------------> |   tag first + group: all its units
//     | -- group 1 without a byte -------------------------> |   its units come one by one
//     | -- unit 5, unit 4 ---------------------------------> |   tag first + groups + unit
//
// Messages of one tag keep their order, so a sender may start its next round before its receiver does.
//
// A side that the program frees before the two have met stays until they have, without its buffer: what it
// would have met must not be met by the next one with its tag. It answers that it is gone.
#pragma once

#include "base/executor.hpp"
#include "layout/layout.hpp"
#include "mpi/partitioned/layout.hpp"
#include "p2p/messenger.hpp"
#include "p2p/signatures.hpp"

#include <cstdint>
#include <memory>

namespace gantry::mpi {

// What the two tell each other. Both run the same Gantry: these are not kept for later versions.
struct Greeting {
    std::uint64_t partition_bytes;
    std::uint32_t partitions;
    std::uint32_t answer_tag;     // one of the sender's own
    layout::Signature signature;  // of all its data, if somebody checks; else no items
};
struct Answer {
    std::uint64_t element_bytes,
        message_bytes;        // of the receiver: with the greeting they give the layout
    std::uint32_t first_tag;  // of the receiver's own
    enum Fits : std::uint32_t { too_small, yes, freed } fits;
};

// What a program says as it makes one.
struct PartitionedBuffer {
    void* address = nullptr;
    std::uint32_t partitions = 0;
    std::uint64_t count = 0;                 // elements of each
    const layout::Layout* layout = nullptr;  // of an element; lives as long as rounds are started
    Bytes element_bytes() const { return layout->size; }
    Bytes partition_bytes() const { return count * element_bytes(); }
    Bytes bytes() const { return partitions * partition_bytes(); }
    // The elements of these bytes, which begin with one. Those of a sender that has less end anywhere.
    p2p::Buffer part(Bytes begin, Bytes end) const;
    p2p::Buffer whole() const { return {address, partitions * count, layout}; }
};

class HeldPartitions;

// Where the two meet.
struct PartitionedPlace {
    p2p::Messenger* messenger = nullptr;
    const p2p::Group* greetings = nullptr;   // kPartitionedContext
    const p2p::Group* partitions = nullptr;  // and kCollectiveContext
    std::uint32_t* tags = nullptr;  // of messages to this rank in `partitions`: taken so far
    HeldPartitions* held = nullptr;
    Bytes message_bytes = 0;                      // GANTRY_PARTITION_MESSAGE
    const p2p::Signatures* signatures = nullptr;  // null: nobody checks
    std::shared_ptr<void> owner;                  // of all these
    // The first of so many tags in a row. They come round again long after their messages are over.
    std::uint32_t take_tags(std::uint32_t number) const;
};

class PartitionedSide {
  public:
    enum class Role : std::uint8_t { sends, receives };
    // The peer may be MPI_PROC_NULL; then nothing is ever started.
    PartitionedSide(Role its_role, PartitionedPlace place, const PartitionedBuffer& buffer,
                    int peer, int tag);
    virtual ~PartitionedSide() = default;
    PartitionedSide(const PartitionedSide&) = delete;
    PartitionedSide& operator=(const PartitionedSide&) = delete;

    const Role role;
    std::uint32_t partitions() const { return buffer_.partitions; }
    bool has_peer() const { return peer_ != MPI_PROC_NULL; }

    // Greets the other side, or waits for its greeting. Once, before all else; `self` owns this.
    virtual Status open(std::shared_ptr<PartitionedSide> self) = 0;
    // MPI_Start: a request that is over with the round.
    Result<p2p::Request*> start();
    // The same of one without a peer, whose round is over at once: what was ready is so no more.
    void start_alone() { begin_round(); }
    // The program has freed its request, and with it buffer and type.
    void close();
    // The job ends: the other side is waited for no more.
    void give_up();

  protected:
    // A message under way. It keeps the side alive; message_ended() hears of its end.
    struct Transfer : Resumable {
        std::shared_ptr<PartitionedSide> side;
        p2p::Request* request = nullptr;
    };
    void watch(Transfer& transfer, const Result<p2p::Request*>& started);
    // The same of a message of the round: transfers [0, groups) are of groups, those behind them of units.
    void watch_part(Transfer& transfer, const Result<p2p::Request*>& started) {
        ++under_way_;
        watch(transfer, started);
    }
    virtual void message_ended(Transfer& transfer, const Status& status, Bytes bytes) = 0;
    virtual void begin_round() = 0;

    // The two have met: room for the messages of a round.
    Status agree(const PartitionLayout& layout, std::uint32_t first_tag);
    // They cannot meet: this round and all others fail.
    void part_for_ever(const Status& why);
    // Counts what a message of this round took to its end.
    void note(const Status& status, std::uint32_t units);
    std::uint32_t index_of(const Transfer& transfer) const {
        return static_cast<std::uint32_t>(&transfer - transfers_.get());
    }
    Transfer& of_group(std::uint32_t group) { return transfers_[group]; }
    Transfer& of_unit(std::uint32_t unit) { return transfers_[layout_.groups + unit]; }
    int tag_of_group(std::uint32_t group) const { return static_cast<int>(first_tag_ + group); }
    int tag_of_unit(std::uint32_t unit) const { return tag_of_group(layout_.groups + unit); }
    p2p::Buffer group_buffer(std::uint32_t group) const;
    p2p::Buffer unit_buffer(std::uint32_t unit) const;

    p2p::Messenger& messenger() const { return *place_.messenger; }

    const PartitionedPlace place_;
    const PartitionedBuffer buffer_;
    const int peer_, tag_;
    std::weak_ptr<PartitionedSide> self_;
    bool agreed_ = false;
    bool closed_ = false;
    Transfer hears_;  // what the other side says at first
    PartitionLayout layout_;
    p2p::Request* round_ = nullptr;  // under way; who started it gives it back
    Status mismatch_;                // of the two sides' types: every round ends with it

  private:
    static void transfer_ended(Resumable& transfer);

    std::uint32_t first_tag_ = 0;
    std::unique_ptr<Transfer[]> transfers_;
    std::uint32_t units_left_ = 0, under_way_ = 0;
    Status failure_;  // the first of this round
    Status broken_;
};

}  // namespace gantry::mpi
