// SPDX-License-Identifier: BSD-3-Clause
//
// A way to make one-sided operations: the MPI library, or what the processor or the driver alone needs.
// Each way has a target memory of its own; the origin's buffers are shared by all.
//
// A round is all operations of a plan. Of a latency each has a synchronisation of its own, else one
// comes behind all of them.
#pragma once

#include "contents.hpp"
#include "job.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gantry::bench {

// One operation each: what it takes or brings.
struct OriginBuffers {
    const Buffer& operand;  // what is put, added or swapped in; of cas two items a message
    const Buffer& result;   // what comes back
};

class OneSidedWay {
  public:
    virtual ~OneSidedWay() = default;
    virtual std::string name() const = 0;
    // Of accumulate: false where each round only replaces what was there.
    virtual bool adds() const { return true; }
    // This rank's seconds of a round. Rounds are counted from 0 in each sample: cas swaps the two items of
    // its operand by turns.
    virtual double round(int number) = 0;
    // The target memory of this rank, outside of rounds.
    virtual void write_exposed(const std::byte* from) = 0;
    virtual void read_exposed(std::byte* to) = 0;
};

// Whether this rank begins operations, and whether the other one does.
inline bool is_origin(const Options& options) {
    return side() == 0 || goes_both_ways(options);
}
inline bool is_target(const Options& options) {
    return side() == 1 || goes_both_ways(options);
}

// Both ranks make the same ways in the same order.
std::unique_ptr<OneSidedWay> library_one_sided(const Options& options, const Plan& plan,
                                               const OriginBuffers& origin);
// By hand, of put and get between devices; both ranks make every round, with its fences.
std::unique_ptr<OneSidedWay> staged_one_sided(const Options& options, const Plan& plan,
                                              const OriginBuffers& origin);

enum class BareOneSided { memcpy, atomic, copy, kernel };
// The floors that there are for these placements.
std::vector<BareOneSided> one_sided_floors(const Options& options, const Plan& plan);
std::unique_ptr<OneSidedWay> bare_one_sided(BareOneSided kind, const Options& options,
                                            const Plan& plan, const OriginBuffers& origin);

}  // namespace gantry::bench
