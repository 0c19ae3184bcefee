// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/mailbox.hpp"

#include "transfer/node_segment.hpp"

namespace gantry::transfer {

Mailbox::Mailbox(NodeSegment& node_segment, std::shared_ptr<MailboxRecords> records,
                 std::size_t index, int me)
    : node_segment_(node_segment),
      records_(std::move(records)),
      record_((*records_)[index]),
      me_(me),
      own_(record_.pages[static_cast<std::size_t>(me)]),
      own_base_(record_.base[static_cast<std::size_t>(me)]) {}

void Mailbox::pass(bool on_device) {
    if (on_device) {
        std::uint64_t& word = own_->devices[epoch() % std::size(own_->devices)];
        __atomic_store_n(&word, own_base_ + epoch() + 1, __ATOMIC_RELAXED);
    }
    ++record_.last;
    __atomic_store_n(&own_->passed, own_base_ + record_.last, __ATOMIC_RELEASE);
}

// A rank is at most one epoch ahead of this one, so what it wrote in the last but one epoch is still there.
bool Mailbox::begin_epoch() {
    if (!failed_.ok()) return false;
    if (epoch() >= 2) {
        const std::uint64_t asked = epoch() - 2;
        if (behind() >= 0) return false;
        met_devices_ = false;
        for (std::size_t member = 0; member < record_.pages.size(); ++member) {
            const std::uint64_t& word =
                record_.pages[member]->devices[asked % std::size(own_->devices)];
            met_devices_ |=
                __atomic_load_n(&word, __ATOMIC_RELAXED) == record_.base[member] + asked + 1;
        }
    }
    may_reach_ = (epoch() + 1) * kMailboxEpoch;
    return true;
}

int Mailbox::behind() const {
    if (record_.last < may_reach_ || epoch() < 2) return -1;
    const std::uint64_t step = (epoch() - 1) * kMailboxEpoch;
    for (std::size_t member = 0; member < record_.pages.size(); ++member)
        if (!has_passed(member, step)) return static_cast<int>(member);
    return -1;
}

Status Mailbox::trouble(int member) {
    if (!failed_.ok()) return failed_;
    const auto index = static_cast<std::size_t>(member);
    const int rank = record_.ranks[index];
    if (const Status& lost = node_segment_.lost(rank); !lost.ok()) return lost;
    if (const std::uint32_t error =
            __atomic_load_n(&record_.pages[index]->failure, __ATOMIC_ACQUIRE);
        error != 0)
        return failure(static_cast<int>(error), "rank {} failed in a collective operation", rank);
    return success();
}

void Mailbox::fail(const Status& why) {
    failed_ = failure(why.error_class(), "{}", why.text());
    may_reach_ = 0;
    __atomic_store_n(&own_->failure, static_cast<std::uint32_t>(why.error_class()),
                     __ATOMIC_RELEASE);
}

// --- mailboxes of a node segment ------------------------------------------------------------------------------

// Whoever opened its mailbox anew has left the one of before.
bool NodeSegment::is_through(const MailboxRecord& record) {
    for (std::size_t i = 0; i < record.pages.size(); ++i) {
        const std::uint64_t passed = __atomic_load_n(&record.pages[i]->passed, __ATOMIC_ACQUIRE);
        const bool failed = __atomic_load_n(&record.pages[i]->failure, __ATOMIC_ACQUIRE) != 0;
        if (passed < record.base[i] + record.last && !failed && !is_gone(record.ranks[i]))
            return false;
    }
    return true;
}

Task<Result<std::unique_ptr<Mailbox>>> NodeSegment::open_mailbox(Executor& executor,
                                                                 std::span<const int> ranks, int me,
                                                                 HandshakeKey key) {
    struct Offer {
        std::uint64_t index = kMailboxes;  // which mailbox; kMailboxes: none is free
        std::uint64_t base = 0;
    };
    Handshake handshake(*this, ranks, me, key);
    Status opened = co_await handshake.open(executor);
    if (!opened.ok()) co_return opened;
    Offer mine;
    for (std::size_t mailbox = 0; mailbox < kMailboxes && mine.index == kMailboxes; ++mailbox)
        if (!(*mailboxes_)[mailbox].open && is_through((*mailboxes_)[mailbox]))
            mine.index = mailbox;
    if (mine.index < kMailboxes) {
        MailboxRecord& record = (*mailboxes_)[mine.index];
        MailboxPage& page = own_->mailboxes[mine.index];
        mine.base = ++record.generation << 40;
        record.open = true;
        record.last = 0;
        record.ranks.clear();
        record.pages.clear();
        record.base.clear();
        __atomic_store_n(&page.failure, 0u, __ATOMIC_RELAXED);
        __atomic_store_n(&page.passed, mine.base, __ATOMIC_RELEASE);
    }
    handshake.post(mine);
    Status met = co_await handshake.all_posted(executor);
    bool all = met.ok();
    for (int member = 0; all && member < handshake.size(); ++member)
        all = handshake.offer<Offer>(member).index < kMailboxes;
    if (!all) {
        if (mine.index < kMailboxes) (*mailboxes_)[mine.index].open = false;
        if (!met.ok()) co_return met;
        co_return std::unique_ptr<Mailbox>();
    }
    MailboxRecord& record = (*mailboxes_)[mine.index];
    record.ranks.assign(ranks.begin(), ranks.end());
    for (int member = 0; member < handshake.size(); ++member) {
        const Offer& its = handshake.offer<Offer>(member);
        NodeSegmentPage& page =
            member == me ? *own_ : *peer(ranks[static_cast<std::size_t>(member)])->page;
        record.pages.push_back(&page.mailboxes[its.index]);
        record.base.push_back(its.base);
    }
    co_return std::make_unique<Mailbox>(*this, mailboxes_, mine.index, me);
}

}  // namespace gantry::transfer
