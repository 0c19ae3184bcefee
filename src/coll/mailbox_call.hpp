// SPDX-License-Identifier: BSD-3-Clause
//
// MailboxCall: one small blocking collective over the mailbox of its communicator (transfer/mailbox.hpp).
//
//   who brings data    bcast, scatter: the root; everything else: everybody
//   who reads          reduce, gather: the root, all cells; bcast, scatter: the others, the root's;
//                      scan: each rank those of the ranks below it; everything else: everybody, all cells
//
// What does not fit into a room goes in pieces, each a step of its own; so a root runs ahead by up to 16
// pieces. Each rank that wants a result reduces all vectors in the order of the ranks.
//
//     steps: one for each piece; bytes: each is copied into a cell once, and out of it by each reader;
//     memory: none
//
// Device memory: where everybody reads what a rank brings, its first cell says `meet` instead, and all
// take the usual way (meets()). Where not everybody reads, and for who only takes, the caller brings host
// memory in its place. Either is remembered by the mailbox: two epochs later all ranks know it and take the
// usual way at once.
#pragma once

#include "base/task.hpp"
#include "coll/exchange.hpp"
#include "layout/reduce.hpp"
#include "plan/coll_question.hpp"
#include "transfer/mailbox.hpp"

namespace gantry::coll {

// Blocks of all ranks follow each other in a buffer, but those of an allgatherv in the sink.
struct MailboxJob {
    plan::Collective operation = plan::Collective::barrier;
    p2p::Buffer source = {}, sink = {};  // what this rank brings and gets, where it does
    Bytes source_first = 0;              // where its data begin in the source, in packed bytes
    // bcast, reduce, allreduce, scan: the vector; reduce_scatter: this rank's share; allgatherv: its own
    // block; else: a rank's block.
    Bytes block = 0;
    Bytes whole = 0,
          share_first = 0;  // reduce_scatter: the vector, and where the share begins in it
    // allgatherv: items of each rank's block, and where it lies in the sink.
    const std::int64_t* counts = nullptr;
    const std::int64_t* displacements = nullptr;
    int root = -1;
    bool exclusive = false;  // of a scan
    bool in_place = false;   // its own block lies where it belongs
    bool on_device = false;  // some of that is in device memory
    layout::Reduction reduction = nullptr;
    Bytes element = 1;        // a piece ends behind one
    std::uint64_t items = 1;  // of the reduction, in an element
};

class MailboxCall {
  public:
    MailboxCall(transfer::Mailbox& mailbox, const MailboxJob& job);

    // Whether the first step may begin. Until then the job's buffers may be exchanged for others.
    bool begun() { return begun_ || (begun_ = begin()); }
    MailboxJob& job() { return job_; }
    // Once it has begun: all take the usual way, or this rank will say so.
    bool goes_elsewhere() const { return mailbox_.met_devices() || says_meet(); }
    // This rank cannot take part.
    void fail(Status why);
    // Whether it is over; goes on as far as that is possible.
    bool poll();
    // Ends when it is over.
    Task<Status> finish(Executor& executor, transfer::NodeSegment& node_segment);
    Task<Status> finish_begin(Executor& executor, transfer::NodeSegment& node_segment);
    // Once it is over: nothing has happened on any rank, and all of them shall take the usual way.
    bool meets() const { return meets_; }
    const Status& status() const { return failure_.status(); }

  private:
    bool begin();
    void post();
    bool all_there();
    void take();
    void look_after(int member);
    bool says_meet() const { return job_.on_device && (one_sends_ ? me_ == job_.root : all_read_); }
    bool reads_all() const { return !one_sends_ && (!one_receives_ || me_ == job_.root); }
    // Where the part for `member` stands in what `owner` sends to all others.
    static std::size_t place_of(int member, int owner) {
        return static_cast<std::size_t>(member < owner ? member : member - 1);
    }
    Bytes block_of(int member) const { return static_cast<Bytes>(member) * job_.block + offset_; }
    void load(Bytes first, Bytes bytes, std::byte* to) const;
    void store(Bytes first, Bytes bytes, const std::byte* from);
    void keep_own(Bytes from, Bytes to);
    void store_listed(int member, const std::byte* from);
    Bytes brought_by(int member) const;
    // Its own operand lies in the source until the result is there, and need not be in a cell for itself.
    bool brings_itself() const { return source_contiguous_ && !job_.in_place; }
    const std::byte* operand(int member, Bytes first) const;
    void combine(Bytes first, Bytes bytes, int members);

    transfer::Mailbox& mailbox_;
    MailboxJob job_;
    const int me_, size_;
    const bool one_sends_, one_receives_, to_each_;
    const bool all_read_;  // everybody reads every cell
    const int read_;  // cells of members below this one are read, by who reads more than a root's
    bool begun_ = false, posted_ = false, meets_ = false, over_ = false;
    bool source_contiguous_ = false, sink_contiguous_ = false;
    Bytes piece_ = 0, offset_ = 0, length_ = 0;
    int next_ = 0;  // whose cell is waited for
    unsigned looks_ = 0;
    bool waits_ = false;  // looks come with turns of the engine
    FirstFailure failure_;
};

}  // namespace gantry::coll
