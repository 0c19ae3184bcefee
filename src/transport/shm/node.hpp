// SPDX-License-Identifier: BSD-3-Clause
//
// The node segment, seen by one local rank: who is here, where their segments are, and the
// doorbells. Local ranks are numbered in order of their ranks in the job; number 0 makes the
// segment before the fence and the others map it after.
#pragma once

#include "job/job.hpp"
#include "transport/shm/layout.hpp"

#include <vector>

namespace gantry::transport::shm {

class Node {
  public:
    Node() : layout_(0) {}
    // Which ranks share our node; needs no memory.
    static std::vector<int> local_ranks(const job::Job& job);

    Status create(job::Job& job, int members);                    // number 0, before the fence
    Status attach(job::Job& job, int creator_rank, int members);  // the others, after it
    explicit operator bool() const { return static_cast<bool>(mapping_); }

    // Tells where our segment is; from now on others may reach us.
    // `home`: the layout says what of it lies there; of no process: all lies in `segment`.
    void enter(int self, const SegmentName& segment, const SegmentName& home = {});
    void leave(int self);
    MemberState state(int member) const;
    // Only for a member that is or was here.
    const Member& member(int member) const;

    std::uint64_t& host_rates(int member) const;

    void note_gpu(int self, std::uint64_t gpu);
    bool others_use(int self, std::uint64_t gpu) const;

    void ring_doorbell(int of_member, int self);
    // Calls visit(member) for each who rang since the last call.
    template <class Visit>
    int answer_doorbells(int self, Visit&& visit) {
        int rung = 0;
        for (std::size_t i = 0; i < words_used_; ++i) {
            std::atomic_ref<std::uint64_t> word(row(self)[i]);
            if (word.load(std::memory_order_relaxed) == 0) [[likely]]
                continue;
            // Pairs with the release in ring_doorbell: the ringer's segment and its entry here are
            // complete.
            std::uint64_t bits = word.exchange(0, std::memory_order_acquire);
            for (; bits != 0; bits &= bits - 1, ++rung)
                visit(static_cast<int>(i) * 64 + std::countr_zero(bits));
        }
        return rung;
    }

  private:
    Status map(int members);
    Member& entry(int member) const;
    std::uint64_t* row(int member) const;

    Segment segment_;
    SegmentMapping mapping_;
    NodeLayout layout_;
    int members_ = 0;
    std::size_t words_used_ = 0;
};

}  // namespace gantry::transport::shm
