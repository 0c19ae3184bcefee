// SPDX-License-Identifier: BSD-3-Clause
//
// Planner: what a communicator asks about its collectives, and the answers that it has had. Common is
// what all communicators of an engine share.
#pragma once

#include "base/config.hpp"
#include "coll/scratch.hpp"
#include "coll/team.hpp"
#include "plan/coll_plan.hpp"
#include "plan/explain.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

struct Nodes;

// The part of Common that must be the same on all ranks: rank 0 publishes its own when the job starts
// and everybody takes that. Plain data: it travels as bytes.
struct JobWide {
    plan::CollFacts facts;
    plan::CollTuning tuning;
    bool operator==(const JobWide&) const = default;
};

struct Common {
    Common(const config::Config& config, plan::Explain* its_explain)
        : scratch(config.coll_scratch), explain(its_explain) {
        job.tuning = plan::coll_tuning_from(config);
    }
    Scratch scratch;
    plan::Explain* explain;
    JobWide job;
    std::vector<int> nodes;  // by world rank; empty: one node
    // What this rank's steps have sent.
    std::uint64_t messages = 0;
    Bytes bytes = 0;
};

class Planner {
  public:
    // Null: nothing is known of the job. Questions are asked only once `common` is complete.
    explicit Planner(Common* common = nullptr);
    ~Planner();
    Planner(Planner&&) noexcept;
    Planner& operator=(Planner&&) noexcept;

    // `question` without its shape and board, which the team has.
    plan::CollPlan plan(const Team& team, plan::CollQuestion question);
    // The same of an operation that may go otherwise in the end: it is not explained.
    plan::CollPlan would_plan(const Team& team, plan::CollQuestion question) {
        return entry_of(team, question).choice.plan;
    }
    Common* common() const { return common_; }
    // How the team lies on nodes; made at the first use and kept.
    Nodes& nodes(const Team& team);
    // The members of a team on this node; the same list on all of them.
    struct OnNode {
        std::vector<int> members;  // ranks of the team
        std::vector<int> ranks;    // the same as ranks of the job
        int me = 0;                // this rank among them
        bool board = false;        // they see each other's pages of the board, if they are several
        // Where that rank of the team stands among them; -1: it is on another node.
        int index_of(int member) const;
    };
    const OnNode& on_node(const Team& team);
    // What the ranks of the team read on the board when they met last, all of them alike.
    struct Met {
        bool time_sliced = false;  // some share a GPU that works for one process at a time
        bool mixed = false;        // small memory of the host and of devices
        bool no_reads = false;     // some may not read the host memory of others
    };
    Met& met(const Team& team) { return part_of(team).met; }
    std::uint64_t asked() const { return asked_; }        // calls of plan()
    std::uint64_t answered() const { return answered_; }  // of them, those that made a choice

  private:
    struct Part {
        int first, count;
        plan::CollShape shape;
        bool board;                    // its members see each other's pages of the board
        std::unique_ptr<Nodes> nodes;  // null: not needed so far
        std::unique_ptr<const OnNode> on_node;
        Met met;
    };
    struct Entry {
        plan::CollQuestion question;
        plan::CollChoice choice;
        bool used = false;
    };
    Part& part_of(const Team& team);
    const Entry& entry_of(const Team& team, plan::CollQuestion question);

    Common* common_;
    std::vector<Part> parts_;     // teams that the group is used as: itself, the sides of it
    std::vector<Entry> answers_;  // by question
    std::uint64_t asked_ = 0, answered_ = 0;
};

// How that team's operation goes. Without a planner (tests of single algorithms) it is chosen anew.
plan::CollPlan plan_of(const Team& team, const plan::CollQuestion& question);

// Whether this rank's short blocks or vector of device memory shall lie in this rank's cell of the board: not
// where the others could not do the same.
bool brings_in_cell(const Team& team, plan::CollQuestion question);

// The ranks have met.
void note_met(const Team& team, Planner::Met met);

// What the user has fixed, for all ranks.
const plan::CollTuning& tuning_of(const Team& team);

// Where the team's scratch memory comes from; null: the system.
inline Scratch* scratch_of(const Team& team) {
    return team.planner != nullptr && team.planner->common() != nullptr
               ? &team.planner->common()->scratch
               : nullptr;
}

}  // namespace gantry::coll
