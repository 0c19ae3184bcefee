// SPDX-License-Identifier: BSD-3-Clause
//
// AgreedQuestion: what ranks of a node ask when they have met. It is made of the call and of the offers of
// that very handshake, which all of them read alike, and of nothing else.
//
// Operations of one communicator overlap: they meet, measure and end in an order that is each rank's own.
// So whatever a rank has learned from another operation (what it measured, what it may read, what its device
// says) reaches a common choice by its offer alone. Functions here see no engine, no team and no clock.
#pragma once

#include "coll/node/memory_offer.hpp"
#include "plan/coll_question.hpp"

namespace gantry::coll {

struct ReductionCall;

class AgreedQuestion {
  public:
    // Of an exchange; of what members [first, end) send, who have posted. Where these are not all, nothing is
    // known of where the others take their blocks.
    AgreedQuestion(const plan::CallQuestion& call, const Offers& offers, int first, int end,
                   int only_receiver);
    // Of a reduction; all have posted.
    AgreedQuestion(const plan::CallQuestion& call, const Offers& offers,
                   const ReductionCall& reduction);
    // The same when some rank could not go over the node segment.
    AgreedQuestion by_messages() const;

    const plan::CollQuestion& asked() const { return asked_; }

  private:
    plan::CollQuestion asked_;
};

// What the ranks brought to a handshake. It advises what a rank offers to the next one (Planner).
struct Brought {
    bool time_sliced = false;  // some share a GPU that works for one process at a time
    bool mixed = false;        // small memory of the host and of devices
};
Brought brought_to(const Offers& offers);

bool all_take_on_devices(const Offers& offers);
// Whether some rank's result replaces its vector.
bool any_in_place(const Offers& offers, const ReductionCall& reduction);
// Who works for that member: the first of those that share its GPU, if that is time-sliced.
int worker_of(const Offers& offers, int member);

}  // namespace gantry::coll
