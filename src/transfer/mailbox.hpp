// SPDX-License-Identifier: BSD-3-Clause
//
// Mailbox: numbered cells between the ranks of one node, for the small blocking collectives of
// one communicator. Each rank has a few mailboxes in its page of the node segment; only their owner writes them.
//
//   head:        the last step that the owner has passed | its failure | epochs that brought device memory
//   cells 0..15: number of the step | bytes | what it says | up to 48 bytes   (a cache line each)
//   rooms 0..15: up to 4 KiB, for what does not fit into the line
//
// All ranks take the same steps in the same order. In step n a rank may fill cell n % 16, and others read
// it; a rank that has passed a step reads nothing of it any more. Who only fills cells waits for nobody,
// so a root runs ahead. Steps form epochs of 8: nobody begins an epoch before all have passed the one
// before the last. So a cell is free again when it is wanted, and everybody reads alike of that last but
// one epoch whether some rank brought device memory to it.
//
//     if (!mailbox.begin()) look again later;   // only at the start of an epoch
//     std::memcpy(mailbox.room(bytes), ...);  mailbox.post(bytes);
//     const MailboxCell* there = mailbox.cell_of(member);   // null: look again later
//     mailbox.pass(on_device);
//
// Nothing here waits: whoever looks calls progress() in between.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gantry::transfer {

class NodeSegment;

inline constexpr std::size_t kMailboxes = 4, kMailboxCells = 16, kMailboxEpoch = kMailboxCells / 2;
inline constexpr Bytes kMailboxRoom = 4 * kKiB, kMailboxBrief = 48;

struct alignas(64) MailboxCell {
    enum class Says : std::uint32_t { data, meet };
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;
    Says says = Says::data;
    alignas(16) std::byte brief[kMailboxBrief] = {};
};
static_assert(sizeof(MailboxCell) == 64);

// One mailbox of a rank, as it lies in shared memory. All of it is zero at first.
struct MailboxPage {
    alignas(64) std::uint64_t passed = 0;
    std::uint32_t failure = 0;  // MPI error class: the owner takes no further step
    std::uint64_t devices[4] = {};
    MailboxCell cells[kMailboxCells];
    alignas(64) std::byte rooms[kMailboxCells][kMailboxRoom] = {};
};

// A mailbox of this rank and those of the ranks that it was opened with. What the node segment keeps of it: until all
// have passed its last step, nobody else gets it.
struct MailboxRecord {
    bool open = false;                // a Mailbox uses it
    std::uint64_t last = 0;           // the last step that this rank has passed
    std::uint64_t generation = 0;     // how often it was opened
    std::vector<int> ranks;           // world ranks
    std::vector<MailboxPage*> pages;  // theirs; this rank's own, too
    std::vector<std::uint64_t> base;  // of the numbers in their pages
};
using MailboxRecords = std::array<MailboxRecord, kMailboxes>;

class Mailbox {
  public:
    Mailbox(NodeSegment& node_segment, std::shared_ptr<MailboxRecords> records, std::size_t index,
            int me);
    ~Mailbox() { record_.open = false; }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    int me() const { return me_; }
    int size() const { return static_cast<int>(record_.pages.size()); }

    // Whether the next step may begin.
    bool begin() { return record_.last < may_reach_ || begin_epoch(); }
    // Some rank brought device memory to the last but one epoch: all read that alike.
    bool met_devices() const { return met_devices_; }
    // Where this rank's bytes of the next step go; post() says that they are there.
    std::byte* room(Bytes bytes) {
        const std::size_t cell = place();
        return bytes <= kMailboxBrief ? own_->cells[cell].brief : own_->rooms[cell];
    }
    void post(Bytes bytes, MailboxCell::Says says = MailboxCell::Says::data) {
        MailboxCell& cell = own_->cells[place()];
        cell.bytes = static_cast<std::uint32_t>(bytes);
        cell.says = says;
        // Pairs with the acquire in cell_of().
        __atomic_store_n(&cell.number, own_base_ + record_.last + 1, __ATOMIC_RELEASE);
    }
    // What that member brings to the next step; null: it has not posted it.
    const MailboxCell* cell_of(int member) const {
        const auto index = static_cast<std::size_t>(member);
        const MailboxCell& cell = record_.pages[index]->cells[place()];
        const std::uint64_t number = __atomic_load_n(&cell.number, __ATOMIC_ACQUIRE);
        return number == record_.base[index] + record_.last + 1 ? &cell : nullptr;
    }
    // Of a cell that is there.
    const std::byte* bytes_of(int member) const {
        const auto index = static_cast<std::size_t>(member);
        const MailboxPage& page = *record_.pages[index];
        return page.cells[place()].bytes <= kMailboxBrief ? page.cells[place()].brief
                                                          : page.rooms[place()];
    }
    // This rank reads nothing more of the step. `on_device`: it brought device memory to it, or takes it
    // there.
    void pass(bool on_device);

    // Why that member will not take its next step: it is lost, or has failed.
    Status trouble(int member);
    // Who has not passed what begin() waits for; -1: nobody.
    int behind() const;
    // This rank takes no further step, and whoever waits for one learns it.
    void fail(const Status& why);
    const Status& failed() const { return failed_; }

  private:
    std::size_t place() const { return static_cast<std::size_t>(record_.last) % kMailboxCells; }
    std::uint64_t epoch() const { return record_.last / kMailboxEpoch; }
    bool has_passed(std::size_t member, std::uint64_t step) const {
        // Pairs with the release in pass(). A later generation: its owner is through with this one.
        return __atomic_load_n(&record_.pages[member]->passed, __ATOMIC_ACQUIRE) >=
               record_.base[member] + step;
    }
    bool begin_epoch();

    NodeSegment& node_segment_;
    const std::shared_ptr<MailboxRecords>
        records_;  // outlive the node segment where a communicator does
    MailboxRecord& record_;
    const int me_;
    MailboxPage* const own_;
    const std::uint64_t own_base_;
    std::uint64_t may_reach_ = 0;  // steps up to this one may begin
    bool met_devices_ = false;
    Status failed_;
};

}  // namespace gantry::transfer
