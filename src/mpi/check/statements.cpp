// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/statements.hpp"

#include "mpi/check/op_number.hpp"

#include <array>
#include <string>

namespace gantry::mpi {
namespace {

int count(const std::vector<Said>& all) {
    return static_cast<int>(all.size());
}

const Said& of(const std::vector<Said>& all, int member) {
    return all[static_cast<std::size_t>(member)];
}

std::string name_of_root(int root) {
    if (root == MPI_ROOT) return "MPI_ROOT";
    if (root == MPI_PROC_NULL) return "MPI_PROC_NULL";
    return std::to_string(root);
}

Status compare_functions(const std::vector<Said>& all, const Groups& groups) {
    for (int member = 1; member < count(all); ++member)
        if (of(all, member).function != all.front().function)
            return failure(MPI_ERR_OTHER, "{} calls {} where {} calls {}", groups.name(member),
                           of(all, member).function.data(), groups.name(0),
                           all.front().function.data());
    return success();
}

Status compare_ops(const std::vector<Said>& all, const Groups& groups) {
    int first = -1;
    for (int member = 0; member < count(all); ++member) {
        const std::int32_t op = of(all, member).op;
        if (op == Said::kNothing) continue;
        if (first < 0) first = member;
        if (op != of(all, first).op)
            return failure(MPI_ERR_OP, "{} reduces by {}, {} by {}", groups.name(member),
                           name_of_op(op), groups.name(first), name_of_op(of(all, first).op));
    }
    return success();
}

Status compare_arguments(const std::vector<Said>& all, const Groups& groups) {
    for (int member = 1; member < count(all); ++member)
        if (of(all, member).hash != all.front().hash)
            return failure(MPI_ERR_ARG, "{} calls {} with {} where {} calls it with {}",
                           groups.name(member), all.front().function.data(),
                           of(all, member).arguments.data(), groups.name(0),
                           all.front().arguments.data());
    return success();
}

Status compare_roots(const std::vector<Said>& all, const Groups& groups) {
    for (int member = 1; member < count(all); ++member)
        if (of(all, member).root != all.front().root)
            return failure(MPI_ERR_ROOT, "{} names root {}, {} names root {}", groups.name(member),
                           of(all, member).root, groups.name(0), all.front().root);
    return success();
}

Status compare_roots_of_two(const std::vector<Said>& all, const Groups& groups) {
    int root = -1;
    for (int member = 0; member < count(all); ++member) {
        if (of(all, member).root != MPI_ROOT) continue;
        if (root >= 0)
            return failure(MPI_ERR_ROOT,
                           "{} and {} both name MPI_ROOT: only the root does, and the others of "
                           "its group name MPI_PROC_NULL",
                           groups.name(root), groups.name(member));
        root = member;
    }
    const int last = count(all) - 1;
    if (root < 0)
        return failure(MPI_ERR_ROOT, "nobody names MPI_ROOT: {} names root {}, {} names root {}",
                       groups.name(0), name_of_root(all.front().root), groups.name(last),
                       name_of_root(all.back().root));
    for (int member = 0; member < count(all); ++member) {
        const bool beside = groups.group_of(member) == groups.group_of(root);
        const int due = beside ? MPI_PROC_NULL : groups.rank_of(root);
        if (member == root || of(all, member).root == due) continue;
        return failure(MPI_ERR_ROOT, "{} names MPI_ROOT, and {} names root {}, not {}",
                       groups.name(root), groups.name(member), name_of_root(of(all, member).root),
                       name_of_root(due));
    }
    return success();
}

// The first that was said of some data, which others are compared with.
struct First {
    int member = -1;
    Part part;

    Status compare(int other, const Part& with, const Groups& groups) {
        if (member < 0) {
            member = other;
            part = with;
        }
        if (with.matches(part)) return success();
        return failure(class_of_difference(with, part), "{} has {}, {} has {}", groups.name(other),
                       with.words(), groups.name(member), part.words());
    }
};

}  // namespace

Status compare_calls(const std::vector<Said>& all, const Groups& groups) {
    GANTRY_TRY(compare_functions(all, groups));
    GANTRY_TRY(compare_arguments(all, groups));
    const bool rooted = all.front().root != Said::kNothing;
    if (rooted && groups.are_two()) GANTRY_TRY(compare_roots_of_two(all, groups));
    if (rooted && !groups.are_two()) GANTRY_TRY(compare_roots(all, groups));
    return compare_ops(all, groups);
}

Status compare_data(const std::vector<Said>& all, const Groups& groups) {
    std::array<First, 2> of_group;  // what comes from it
    for (int member = 0; member < count(all); ++member) {
        const Said& said = of(all, member);
        const auto from = static_cast<std::size_t>(groups.group_of(member));
        First &own = of_group[from], &others = of_group[groups.are_two() ? 1 - from : from];
        if (said.sends != 0) GANTRY_TRY(own.compare(member, said.sent, groups));
        if (said.receives != 0) GANTRY_TRY(others.compare(member, said.received, groups));
    }
    return success();
}

}  // namespace gantry::mpi
