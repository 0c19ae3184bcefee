// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: before a collective operation runs, its ranks compare what must be the same on
// all of them. Where it is not, all of them fail with the same sentence and the operation does not
// run: nobody waits for ever, nothing is overwritten.
//
// An Agreement is what one rank's call says. It is made with the call, while the datatypes are there:
//
//     Agreement(comm, "MPI_Gatherv", root).sends(mine).names_received(all)
//
// A buffer or blocks without a layout do not count on this rank (block_arguments.hpp), and it says
// nothing of them. While there are no checks nothing is looked at.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/neighbor_exchange.hpp"
#include "coll/team.hpp"
#include "mpi/check/part.hpp"

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gantry::mpi {

struct Comm;
struct Op;

// What travels to all ranks.
struct Said {
    static constexpr std::int32_t kNothing = -1;
    std::array<char, 40> function{};  // of the blocking form
    std::int32_t root = kNothing;
    std::int32_t op = kNothing;            // a predefined one's number, or what is known of another
    std::int32_t sends = 0, receives = 0;  // whether there are:
    Part sent, received;
    // Other arguments that must be the same, for people, and all of them as a number.
    std::array<char, 64> arguments{};
    std::uint64_t hash = 0;
};

struct Terms {
    // Which descriptions of data belong together.
    enum class Rule : std::uint8_t {
        alike,      // what all ranks send and receive
        listed,     // a rank's list with what each rank in it says: a side of the v forms
        exchanged,  // what goes to a rank with what that one receives: both sides of v and w forms
        along_edges,  // the same between neighbors
        shares,       // the lists of all ranks; between two groups, of all in a group
    };
    Rule rule = Rule::alike;
    Said said;
    std::vector<Part> outgoing,
        incoming;  // by rank (of the other group, if there are two); or edge
    std::shared_ptr<const coll::Neighbors> neighbors;

    void sends(const p2p::Buffer& data);
    void receives(const p2p::Buffer& data);
    // Null: there is none on any rank.
    void lists(Rule its_rule, const coll::Blocks* sent, const coll::Blocks* received);
    void along_edges(const coll::Blocks& sent, const coll::Blocks& received,
                     std::shared_ptr<const coll::Neighbors> edges);
};

class Agreement {
  public:
    Agreement() = default;  // nothing is compared
    // Of the blocking form's name. `root` Said::kNothing, `op` null: the operation has none.
    Agreement(const Comm& comm, const char* function, int root = Said::kNothing,
              const Op* op = nullptr);

    // What goes to everybody who receives from this rank, or comes from everybody who sends to it, if
    // the call says it once for all.
    Agreement& sends(const p2p::Buffer& data) {
        if (terms_ != nullptr) [[unlikely]]
            terms_->sends(data);
        return *this;
    }
    Agreement& receives(const p2p::Buffer& data) {
        if (terms_ != nullptr) [[unlikely]]
            terms_->receives(data);
        return *this;
    }
    // Both, of the same size: a broadcast, a reduction.
    Agreement& has(const p2p::Buffer& data) { return sends(data).receives(data); }
    // What goes to each rank, or comes from each, where the other side says it once.
    Agreement& names_sent(const coll::Blocks& outgoing) {
        return lists(Terms::Rule::listed, &outgoing, nullptr);
    }
    Agreement& names_received(const coll::Blocks& incoming) {
        return lists(Terms::Rule::listed, nullptr, &incoming);
    }
    // Where both sides have a list.
    Agreement& exchanges(const coll::Blocks& outgoing, const coll::Blocks& incoming) {
        return lists(Terms::Rule::exchanged, &outgoing, &incoming);
    }
    // The same with neighbors.
    Agreement& exchanges(const coll::Blocks& outgoing, const coll::Blocks& incoming,
                         const std::shared_ptr<const coll::Neighbors>& neighbors) {
        if (terms_ != nullptr) [[unlikely]]
            terms_->along_edges(outgoing, incoming, neighbors);
        return *this;
    }
    // How a reduced vector is divided.
    Agreement& divides(const coll::Blocks& shares) {
        return lists(Terms::Rule::shares, nullptr, &shares);
    }

    // Arguments that all ranks must name alike, in words that follow "with".
    Agreement& names(const std::string& arguments);
    Agreement& names(const char* what, std::span<const int> numbers);

    bool is_empty() const { return terms_ == nullptr; }
    std::shared_ptr<const Terms> terms() const { return terms_; }

  private:
    Agreement& lists(Terms::Rule rule, const coll::Blocks* outgoing, const coll::Blocks* incoming) {
        if (terms_ != nullptr) [[unlikely]]
            terms_->lists(rule, outgoing, incoming);
        return *this;
    }

    std::shared_ptr<Terms> terms_;
};

// Makes the task of one run of an operation. The team has the tag of that run.
using StartCollective = std::function<Task<Status>(coll::Team)>;

// The comparison and then, where all agree, the operation. `mine` is not null.
Task<Status> run_if_agreed(Executor& executor, coll::Team team, std::shared_ptr<const Terms> mine,
                           StartCollective start);
// The operation, behind the comparison if there is one.
Task<Status> run_behind(const Agreement& agreement, coll::Team team, StartCollective start);

}  // namespace gantry::mpi
