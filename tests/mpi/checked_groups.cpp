// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: collectives of an inter-communicator. Both groups hear of a fault by the same
// words, but for who is local and who is remote, and nothing is written.
#include "checked.hpp"
#include "collective_forms.hpp"
#include "intercomm.hpp"
#include "test.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace mpi_tests;

namespace {

using Ints = std::vector<int>;

// The groups: world ranks 0 and 1, and 4, 3 and 2, which are its ranks 0, 1 and 2.
constexpr int kRanks = 5, kBorder = 2;
enum class Group { low, high };

bool in(Group group) {
    return is_low(kBorder) == (group == Group::low);
}
int number() {
    return is_low(kBorder) ? rank() : kRanks - 1 - rank();
}
bool is(Group group, int its_rank) {
    return in(group) && number() == its_rank;
}

std::string who(Group group, int its_rank) {
    return "rank " + std::to_string(its_rank) + " of the " + (in(group) ? "local" : "remote") +
           " group";
}

// Gathers to, and so on, this rank of the low group.
int root_at(int root) {
    if (in(Group::high)) return root;
    return is(Group::low, root) ? MPI_ROOT : MPI_PROC_NULL;
}

struct Inter {
    MPI_Comm comm;
    Ints out, in = Ints(8, -1);

    Inter() {
        start_checked();
        comm = between(kBorder);
        out.assign(8, rank());
    }
    ~Inter() {
        expect_it_carries(comm);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Finalize());
    }
    Inter(const Inter&) = delete;
    Inter& operator=(const Inter&) = delete;

    Refusal refused(const char* what, int error_class, std::string sentence) const {
        return {what, error_class, std::move(sentence), &in};
    }
    Refusal differ(const char* what, int error_class, const std::string& sender, const char* sent,
                   const std::string& receiver, const char* received) const {
        return refused(what, error_class,
                       sender + " sends " + sent + " to " + receiver + ", which receives " +
                           received + " from it");
    }
};

}  // namespace

MPI_CASE_OWN_INIT(checked_roots_of_two_groups_are_one_root, 5) {
    Inter inter;
    const auto bcast = [&](const Refusal& refusal, int root) {
        IN_EVERY_FORM(refusal, Bcast, Ibcast, inter.in.data(), 1, MPI_INT, root, inter.comm);
    };
    bcast(inter.refused("two roots", MPI_ERR_ROOT,
                        who(Group::low, 0) + " and " + who(Group::low, 1) + " both name MPI_ROOT"),
          in(Group::low) ? MPI_ROOT : 0);
    bcast(inter.refused("a root in each group", MPI_ERR_ROOT, " both name MPI_ROOT"),
          number() == 0 ? MPI_ROOT : MPI_PROC_NULL);
    bcast(inter.refused("no root", MPI_ERR_ROOT, "nobody names MPI_ROOT: "),
          in(Group::low) ? MPI_PROC_NULL : 1);
    bcast(inter.refused("beside the root", MPI_ERR_ROOT,
                        who(Group::low, 1) + " names MPI_ROOT, and " + who(Group::low, 0) +
                            " names root 0, not MPI_PROC_NULL"),
          is(Group::low, 0) ? 0 : root_at(1));
    bcast(inter.refused("another root", MPI_ERR_ROOT,
                        who(Group::low, 1) + " names MPI_ROOT, and " + who(Group::high, 2) +
                            " names root 0, not 1"),
          is(Group::high, 2) ? 0 : root_at(1));
    Ints wanted(8, -1);
    if (in(Group::high)) wanted[0] = 17;
    if (is(Group::low, 1)) inter.in[0] = wanted[0] = 17;
    OK(MPI_Bcast(inter.in.data(), 1, MPI_INT, root_at(1), inter.comm));
    CHECK(inter.in == wanted);
}

MPI_CASE_OWN_INIT(checked_functions_and_operations_of_two_groups_are_the_same, 5) {
    Inter inter;
    const auto refused = inter.refused("another function", MPI_ERR_OTHER,
                                       who(Group::high, 1) + " calls MPI_Barrier where " +
                                           who(Group::low, 0) + " calls MPI_Allreduce");
    int one = 1;
    refused(is(Group::high, 1)
                ? MPI_Barrier(inter.comm)
                : MPI_Allreduce(&one, inter.in.data(), 1, MPI_INT, MPI_SUM, inter.comm));
    const MPI_Op op = is(Group::high, 2) ? MPI_MAX : MPI_SUM;
    IN_EVERY_FORM(inter.refused("another operation", MPI_ERR_OP,
                                who(Group::high, 2) + " reduces by MPI_MAX, " + who(Group::low, 0) +
                                    " by MPI_SUM"),
                  Allreduce, Iallreduce, &one, inter.in.data(), 1, MPI_INT, op, inter.comm);
    IN_EVERY_FORM(inter.refused("to a root", MPI_ERR_OP,
                                who(Group::high, 2) + " reduces by MPI_MAX, " + who(Group::low, 1) +
                                    " by MPI_SUM"),
                  Reduce, Ireduce, &one, inter.in.data(), 1, MPI_INT, op, root_at(1), inter.comm);
}

MPI_CASE_OWN_INIT(checked_reductions_of_two_groups_have_the_same_vectors, 5) {
    Inter inter;
    const bool odd = is(Group::high, 1);
    IN_EVERY_FORM(inter.refused("allreduce", MPI_ERR_COUNT,
                                who(Group::high, 1) + " has 2 of MPI_INT, " + who(Group::low, 0) +
                                    " has 1 of MPI_INT"),
                  Allreduce, Iallreduce, inter.out.data(), inter.in.data(), odd ? 2 : 1, MPI_INT,
                  MPI_SUM, inter.comm);
    IN_EVERY_FORM(inter.refused("reduce", MPI_ERR_TYPE,
                                who(Group::high, 1) + " has 1 of MPI_FLOAT, " + who(Group::low, 1) +
                                    " has 1 of MPI_INT"),
                  Reduce, Ireduce, inter.out.data(), inter.in.data(), 1, odd ? MPI_FLOAT : MPI_INT,
                  MPI_SUM, root_at(1), inter.comm);
    // As long in both groups: 6 numbers.
    const int each = in(Group::low) ? 3 : 2;
    IN_EVERY_FORM(inter.refused("reduce_scatter_block", MPI_ERR_COUNT,
                                who(Group::high, 0) + " has 9 of MPI_INT, " + who(Group::low, 0) +
                                    " has 6 of MPI_INT"),
                  Reduce_scatter_block, Ireduce_scatter_block, inter.out.data(), inter.in.data(), 3,
                  MPI_INT, MPI_SUM, inter.comm);
    Ints shares = in(Group::low) ? Ints{2, 4} : Ints{1, 2, 3};
    const Ints right = shares;
    if (odd) std::swap(shares[0], shares[2]);
    IN_EVERY_FORM(
        inter.refused("reduce_scatter", MPI_ERR_COUNT,
                      who(Group::high, 1) + " names 3 of MPI_INT as the share of " +
                          who(Group::high, 0) + ", " + who(Group::high, 0) + " names 1 of MPI_INT"),
        Reduce_scatter, Ireduce_scatter, inter.out.data(), inter.in.data(), shares.data(), MPI_INT,
        MPI_SUM, inter.comm);
    OK(MPI_Reduce_scatter_block(inter.out.data(), inter.in.data(), each, MPI_INT, MPI_SUM,
                                inter.comm));
    OK(MPI_Reduce_scatter(inter.out.data(), inter.in.data(), right.data(), MPI_INT, MPI_SUM,
                          inter.comm));
    CHECK_EQ(inter.in[0], sum(theirs_in(inter.comm)));
}

MPI_CASE_OWN_INIT(checked_rooted_data_of_two_groups_is_compared, 5) {
    Inter inter;
    const bool odd = is(Group::high, 2);
    const int root = root_at(0);
    int* const in_data = inter.in.data();
    IN_EVERY_FORM(inter.refused("bcast", MPI_ERR_COUNT,
                                who(Group::high, 2) + " has 2 of MPI_INT, " + who(Group::low, 0) +
                                    " has 1 of MPI_INT"),
                  Bcast, Ibcast, in_data, odd ? 2 : 1, MPI_INT, root, inter.comm);
    IN_EVERY_FORM(inter.refused("gather", MPI_ERR_TYPE,
                                who(Group::high, 2) + " has 1 of MPI_FLOAT, " + who(Group::low, 0) +
                                    " has 1 of MPI_INT"),
                  Gather, Igather, inter.out.data(), 1, odd ? MPI_FLOAT : MPI_INT, in_data, 1,
                  MPI_INT, root, inter.comm);
    IN_EVERY_FORM(inter.refused("scatter", MPI_ERR_COUNT,
                                who(Group::high, 2) + " has 2 of MPI_INT, " + who(Group::low, 0) +
                                    " has 1 of MPI_INT"),
                  Scatter, Iscatter, inter.out.data(), 1, MPI_INT, in_data, odd ? 2 : 1, MPI_INT,
                  root, inter.comm);
    const Ints counts = {1, 2, 1}, places = {0, 1, 3};
    const int mine = counts[static_cast<std::size_t>(number())];
    IN_EVERY_FORM(inter.differ("gatherv", MPI_ERR_COUNT, who(Group::high, 2), "2 of MPI_INT",
                               who(Group::low, 0), "1 of MPI_INT"),
                  Gatherv, Igatherv, inter.out.data(), odd ? 2 : mine, MPI_INT, in_data,
                  counts.data(), places.data(), MPI_INT, root, inter.comm);
    IN_EVERY_FORM(inter.differ("scatterv", MPI_ERR_TYPE, who(Group::low, 0), "1 of MPI_INT",
                               who(Group::high, 2), "1 of MPI_FLOAT"),
                  Scatterv, Iscatterv, inter.out.data(), counts.data(), places.data(), MPI_INT,
                  in_data, mine, odd ? MPI_FLOAT : MPI_INT, root, inter.comm);
    // Beside the root nothing counts.
    const bool beside = is(Group::low, 1);
    const MPI_Datatype type = beside ? MPI_DATATYPE_NULL : MPI_INT;
    OK(MPI_Bcast(in_data, beside ? 99 : 1, type, root, inter.comm));
    OK(MPI_Reduce(inter.out.data(), in_data, beside ? 99 : 1, type, beside ? MPI_OP_NULL : MPI_SUM,
                  root, inter.comm));
    OK(MPI_Gatherv(inter.out.data(), beside ? 99 : mine, type, in_data,
                   beside ? nullptr : counts.data(), beside ? nullptr : places.data(), type, root,
                   inter.comm));
    CHECK(!is(Group::low, 0) || inter.in[0] == kRanks - 1);
}

MPI_CASE_OWN_INIT(checked_data_both_ways_between_two_groups_is_compared, 5) {
    Inter inter;
    const bool odd = is(Group::high, 2);
    // The low group sends one number to each, the high group two.
    const int sent = in(Group::low) ? 1 : 2, received = 3 - sent;
    int *const out = inter.out.data(), *const in_data = inter.in.data();
    IN_EVERY_FORM(inter.refused("allgather", MPI_ERR_COUNT,
                                who(Group::high, 2) + " has 2 of MPI_INT, " + who(Group::low, 0) +
                                    " has 1 of MPI_INT"),
                  Allgather, Iallgather, out, sent, MPI_INT, in_data, odd ? 2 : received, MPI_INT,
                  inter.comm);
    IN_EVERY_FORM(inter.refused("alltoall", MPI_ERR_TYPE,
                                who(Group::high, 2) + " has 2 of MPI_FLOAT, " + who(Group::low, 0) +
                                    " has 2 of MPI_INT"),
                  Alltoall, Ialltoall, out, sent, odd ? MPI_FLOAT : MPI_INT, in_data, received,
                  MPI_INT, inter.comm);
    OK(MPI_Allgather(out, sent, MPI_INT, in_data, received, MPI_INT, inter.comm));
    OK(MPI_Alltoall(out, sent, MPI_INT, in_data, received, MPI_INT, inter.comm));
    inter.in.assign(8, -1);

    Ints counts(3, received), sends(3, sent), places = {0, 2, 4}, bytes = {0, 8, 16};
    const std::vector<MPI_Datatype> types(3, MPI_INT);
    const Ints right = counts;
    if (odd) counts[1] = 2;
    const auto refused = inter.differ("lists", MPI_ERR_COUNT, who(Group::low, 1), "1 of MPI_INT",
                                      who(Group::high, 2), "2 of MPI_INT");
    IN_EVERY_FORM(refused, Allgatherv, Iallgatherv, out, sent, MPI_INT, in_data, counts.data(),
                  places.data(), MPI_INT, inter.comm);
    IN_EVERY_FORM(refused, Alltoallv, Ialltoallv, out, sends.data(), places.data(), MPI_INT,
                  in_data, counts.data(), places.data(), MPI_INT, inter.comm);
    IN_EVERY_FORM(refused, Alltoallw, Ialltoallw, out, sends.data(), bytes.data(), types.data(),
                  in_data, counts.data(), bytes.data(), types.data(), inter.comm);
    OK(MPI_Alltoallw(out, sends.data(), bytes.data(), types.data(), in_data, right.data(),
                     bytes.data(), types.data(), inter.comm));
    CHECK_EQ(inter.in[0], theirs_in(inter.comm)[0]);
}

MPI_CASE_OWN_INIT(checked_operations_of_any_communicator_work_in_every_form, 5) {
    start_checked();
    MPI_Comm inter = between(kBorder);
    for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
        every_collective(meeting_of(MPI_COMM_WORLD), form);
        every_collective(inter_meeting(inter), form);
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Finalize());
}
