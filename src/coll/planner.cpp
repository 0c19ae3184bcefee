// SPDX-License-Identifier: BSD-3-Clause
#include "coll/planner.hpp"

#include "coll/host_image.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/nodes.hpp"
#include "transfer/node_segment.hpp"
#include "transfer/context.hpp"

#include <algorithm>
#include <map>

namespace gantry::coll {
namespace {

constexpr std::size_t kAnswers = 64;

std::size_t place_of(const plan::CollQuestion& question) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
    std::uint64_t mixed = question.bytes ^ (question.count << 23) ^
                          (static_cast<std::uint64_t>(question.operation) << 50);
    mixed ^= static_cast<std::uint64_t>(question.memory) << 55;
    mixed ^= static_cast<std::uint64_t>(question.node_segment.in_place) << 57;
    return static_cast<std::size_t>((mixed * kSpread) >> 58);
}
static_assert(kAnswers == std::size_t{1} << (64 - 58));

plan::CollShape shape_on(const Team& team, const std::vector<int>& nodes) {
    plan::CollShape shape;
    shape.ranks = shape.most = shape.fewest = team.size();
    if (nodes.empty()) return shape;
    std::map<int, int> ranks_of;
    int last = -1;
    for (int rank = 0; rank < team.size(); ++rank) {
        const int node = nodes[static_cast<std::size_t>(team.group->peer(team.in_group(rank)))];
        if (node != last && ranks_of.contains(node)) shape.in_order = false;
        ++ranks_of[node];
        last = node;
    }
    shape.nodes = static_cast<int>(ranks_of.size());
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    shape.most = std::ranges::max_element(ranks_of, fewer)->second;
    shape.fewest = std::ranges::min_element(ranks_of, fewer)->second;
    return shape;
}

bool share_node_segment(const Team& team) {
    return team.size() > 1 && team.context->node_segment.covers(ranks_of(team));
}

const JobWide& unknown_job() {
    static const JobWide unknown;
    return unknown;
}

static_assert(plan::kCell == transfer::kCellBytes);

}  // namespace

Planner::Planner(Common* common) : common_(common) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

Planner::Part& Planner::part_of(const Team& team) {
    const int count = team.size();
    for (Part& part : parts_)
        if (part.first == team.first && part.count == count) return part;
    const std::vector<int> one_node;
    parts_.push_back({team.first,
                      count,
                      shape_on(team, common_ != nullptr ? common_->nodes : one_node),
                      share_node_segment(team),
                      nullptr,
                      nullptr,
                      {}});
    const plan::CollShape& shape = parts_.back().shape;
    const bool whole = team.border == 0 && count == team.group->size();
    if (whole && shape.nodes > 1 && shape.most > 1 && common_ != nullptr &&
        common_->job.tuning.devices)
        known_memory_.begin();
    return parts_.back();
}

Nodes& Planner::nodes(const Team& team) {
    Part& part = part_of(team);
    if (part.nodes == nullptr) part.nodes = std::make_unique<Nodes>(team, common_);
    return *part.nodes;
}

int Planner::OnNode::index_of(int member) const {
    const auto found = std::ranges::lower_bound(members, member);
    return found != members.end() && *found == member ? static_cast<int>(found - members.begin())
                                                      : -1;
}

const Planner::OnNode& Planner::on_node(const Team& team) {
    Part& part = part_of(team);
    if (part.on_node != nullptr) return *part.on_node;
    auto found = std::make_unique<OnNode>();
    const auto node_of = [&](int member) {
        if (common_ == nullptr || common_->nodes.empty()) return 0;
        return common_->nodes[static_cast<std::size_t>(team.group->peer(team.in_group(member)))];
    };
    const int mine = node_of(team.rank());
    for (int member = 0; member < team.size(); ++member) {
        if (node_of(member) != mine) continue;
        if (member == team.rank()) found->me = static_cast<int>(found->members.size());
        found->members.push_back(member);
        found->ranks.push_back(team.group->peer(team.in_group(member)));
    }
    found->node_segment = team.context->node_segment.covers(found->ranks);
    part.on_node = std::move(found);
    return *part.on_node;
}

const Planner::Entry& Planner::entry_of(const Team& team, plan::CollQuestion question) {
    const JobWide& job = common_ != nullptr ? common_->job : unknown_job();
    question.shape = part_of(team).shape;
    // Neighbors on other nodes are no obstacle for those on this one.
    const bool covered = question.operation == plan::Collective::neighbor
                             ? on_node(team).node_segment
                             : part_of(team).node_segment;
    question.node_segment.there = covered && job.tuning.node_segment;
    if (answers_.empty()) answers_.resize(kAnswers);
    Entry& entry = answers_[place_of(question)];
    if (!entry.used || entry.question != question) {
        entry = {question, choose_collective(question, job.facts, job.tuning), true};
    }
    return entry;
}

plan::CollPlan Planner::explained(const Entry& entry) {
    if (common_ != nullptr && common_->explain != nullptr && common_->explain->on() &&
        !entry.choice.plan.meet) [[unlikely]]
        common_->explain->collective(entry.question, entry.choice);
    return entry.choice.plan;
}

namespace {

plan::CollQuestion question_over_mailbox(plan::Collective operation, Bytes bytes) {
    plan::CollQuestion question{.operation = operation, .bytes = bytes, .count = bytes};
    question.node_segment.mailbox = true;
    return question;
}

}  // namespace

bool Planner::takes_mailbox(const Team& team, plan::Collective operation, Bytes bytes) {
    const Entry& entry = entry_of(team, question_over_mailbox(operation, bytes));
    return entry.choice.plan.algorithm == plan::Algorithm::mailbox;
}

void Planner::explain_mailbox(const Team& team, plan::Collective operation, Bytes bytes) {
    explained(entry_of(team, question_over_mailbox(operation, bytes)));
}

bool Planner::brings_in_cell(const Team& team, const plan::CallQuestion& call) {
    const Brought brought = part_of(team).brought;
    if (brought.time_sliced || !plan::all_know_the_bytes(call.operation)) return false;
    plan::CollQuestion question = question_of(call);
    question.memory = brought.mixed ? plan::CollMemory::cells : plan::CollMemory::own_device;
    question.node_segment.on_devices = brought.mixed;
    // It is not explained: the operation may go otherwise in the end.
    return entry_of(team, question).choice.plan.algorithm == plan::Algorithm::cells;
}

namespace {

plan::CollPlan plan_anew(const Team& team, plan::CollQuestion question) {
    question.shape = shape_on(team, {});
    question.node_segment.there = share_node_segment(team);
    return choose_collective(question, {}, {}).plan;
}

}  // namespace

plan::CollPlan plan_of(const Team& team, const plan::CallQuestion& call) {
    if (team.planner != nullptr) return team.planner->plan(team, call);
    return plan_anew(team, plan::question_of(call));
}

plan::CollPlan plan_of(const Team& team, const AgreedQuestion& question) {
    if (team.planner != nullptr) return team.planner->plan(team, question);
    return plan_anew(team, question.asked());
}

plan::CollPlan plan_of(const Team& team, const plan::CallQuestion& call,
                       const p2p::Buffer& vector) {
    const plan::CollPlan plan = plan_of(team, call);
    if (team.planner != nullptr && !team.in_background()) {
        KnownMemory& known = team.planner->known_memory();
        if (known.begun()) [[unlikely]]
            known.bring(call.operation, call.bytes, !on_host(team, vector));
    }
    return plan;
}

const plan::CollTuning& tuning_of(const Team& team) {
    return team.planner != nullptr && team.planner->common() != nullptr
               ? team.planner->common()->job.tuning
               : unknown_job().tuning;
}

}  // namespace gantry::coll
