// SPDX-License-Identifier: BSD-3-Clause
//
// MailboxUse: which blocking collectives of a communicator go over its mailbox (coll/mailbox_call.hpp): the
// planner's answers, kept for each operation as the most bytes with which the mailbox wins. All ranks ask
// alike and count alike, so all open it in the same call.
#pragma once

#include "coll/planner.hpp"
#include "transfer/mailbox.hpp"

#include <array>
#include <memory>

namespace gantry::coll {

class MailboxUse {
  public:
    // The mailbox by which an operation of so many bytes goes; null: it goes the usual way.
    transfer::Mailbox* mailbox(plan::Collective operation, Bytes bytes) const {
        return bytes <= most_[static_cast<std::size_t>(operation)] ? mailbox_.get() : nullptr;
    }
    bool settled() const { return settled_; }
    // A call that could go there, while it is not settled whether there is a mailbox: a communicator that is
    // used a few times only needs none. Whether it shall be opened now, at the `at`th of them.
    bool wants_it(Bytes bytes, int at) { return bytes <= plan::kCell && ++calls_ >= at; }
    void settle() { settled_ = true; }
    // No call goes there any more; one that waits there ends with `why`.
    void revoke(const Status& why) {
        settled_ = true;
        is_revoked_ = true;
        if (mailbox_ == nullptr) return;
        mailbox_->fail(why);
        revoked_ = std::move(mailbox_);
    }
    // By all ranks of the team together, once.
    Task<Status> open(Executor& executor, Team team);

  private:
    int calls_ = 0;
    bool settled_ = false, is_revoked_ = false;
    std::unique_ptr<transfer::Mailbox> mailbox_, revoked_;
    std::array<Bytes, plan::kCollectives> most_{};
};

}  // namespace gantry::coll
