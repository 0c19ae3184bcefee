// SPDX-License-Identifier: BSD-3-Clause
//
// Planner: what a communicator asks about its collectives, and the answers that it has had, which are functions
// of the questions. Common is what all communicators of an engine share.
#pragma once

#include "base/config.hpp"
#include "coll/known_memory.hpp"
#include "coll/node/agreed.hpp"
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

    // What all ranks choose alike: by the call; or by the call and what all of them offered when they met.
    plan::CollPlan plan(const Team& team, const plan::CallQuestion& call) {
        plan::CollQuestion question = question_of(call);
        question.memory = team.memory;
        if (team.memory == plan::CollMemory::unknown && !team.in_background())
            question.memory = known_memory_.of(call.operation, call.bytes);
        return explained(entry_of(team, question));
    }
    plan::CollPlan plan(const Team& team, const AgreedQuestion& question) {
        return explained(entry_of(team, question.asked()));
    }
    // What suits this rank alone, and becomes its offer to the others. Without the shape and the node segment, which
    // the team has.
    plan::CollPlan plan_own(const Team& team, const plan::CollQuestion& question) {
        return explained(entry_of(team, question));
    }
    // Whether a blocking call of so many bytes goes over the mailbox of the communicator.
    bool takes_mailbox(const Team& team, plan::Collective operation, Bytes bytes);
    void explain_mailbox(const Team& team, plan::Collective operation, Bytes bytes);
    // Whether this rank's short blocks or vector of device memory shall lie in this rank's cell of the node segment:
    // not where the others could not do the same.
    bool brings_in_cell(const Team& team, const plan::CallQuestion& call);
    // The ranks have met. It advises brings_in_cell() and nothing else: the ranks of overlapping operations
    // end them in different orders.
    void note_brought(const Team& team, Brought brought) { part_of(team).brought = brought; }
    Common* common() const { return common_; }
    // Between nodes.
    KnownMemory& known_memory() { return known_memory_; }
    // How the team lies on nodes; made at the first use and kept.
    Nodes& nodes(const Team& team);
    // The members of a team on this node; the same list on all of them.
    struct OnNode {
        std::vector<int> members;  // ranks of the team
        std::vector<int> ranks;    // the same as ranks of the job
        int me = 0;                // this rank among them
        bool node_segment =
            false;  // they see each other's pages of the node segment, if they are several
        // Where that rank of the team stands among them; -1: it is on another node.
        int index_of(int member) const;
    };
    const OnNode& on_node(const Team& team);

  private:
    struct Part {
        int first, count;
        plan::CollShape shape;
        bool node_segment;             // its members see each other's pages of the node segment
        std::unique_ptr<Nodes> nodes;  // null: not needed so far
        std::unique_ptr<const OnNode> on_node;
        Brought brought;  // to the handshake that was the last one here
    };
    struct Entry {
        plan::CollQuestion question;
        plan::CollChoice choice;
        bool used = false;
    };
    Part& part_of(const Team& team);
    const Entry& entry_of(const Team& team, plan::CollQuestion question);
    plan::CollPlan explained(const Entry& entry);

    Common* common_;
    std::vector<Part> parts_;     // teams that the group is used as: itself, the sides of it
    std::vector<Entry> answers_;  // by question
    KnownMemory known_memory_;
};

// How that team's operation goes. Without a planner (tests of single algorithms) it is chosen anew.
plan::CollPlan plan_of(const Team& team, const plan::CallQuestion& call);
plan::CollPlan plan_of(const Team& team, const AgreedQuestion& question);
// The same of a call to which this rank brings that vector.
plan::CollPlan plan_of(const Team& team, const plan::CallQuestion& call, const p2p::Buffer& vector);

inline bool brings_in_cell(const Team& team, const plan::CallQuestion& call) {
    return team.planner != nullptr && team.planner->brings_in_cell(team, call);
}
inline void note_brought(const Team& team, Brought brought) {
    if (team.planner != nullptr) team.planner->note_brought(team, brought);
}

// What the user has fixed, for all ranks.
const plan::CollTuning& tuning_of(const Team& team);

// Where the team's scratch memory comes from; null: the system.
inline Scratch* scratch_of(const Team& team) {
    return team.planner != nullptr && team.planner->common() != nullptr
               ? &team.planner->common()->scratch
               : nullptr;
}

}  // namespace gantry::coll
