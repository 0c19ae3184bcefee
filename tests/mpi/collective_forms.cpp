// SPDX-License-Identifier: BSD-3-Clause
//
// The forms of a collective come from one body. Here every operation runs in every form with blocks
// of uneven length; the program's datatype is freed as soon as the call has returned, and what is
// persistent is started twice.
#include "collective_forms.hpp"

#include "test.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

namespace mpi_tests {
namespace {

// The request of a collective that was called in this form; null for a blocking one.
#define IN_FORM(form, operation, nonblocking_operation, ...)                           \
    [&] {                                                                              \
        about(std::string(#operation) + (form == Form::persistent    ? "_init"         \
                                         : form == Form::nonblocking ? ", nonblocking" \
                                                                     : ", blocking")); \
        MPI_Request made = MPI_REQUEST_NULL;                                           \
        if (form == Form::blocking)                                                    \
            OK(MPI_##operation(__VA_ARGS__));                                          \
        else if (form == Form::nonblocking)                                            \
            OK(MPI_##nonblocking_operation(__VA_ARGS__, &made));                       \
        else                                                                           \
            OK(MPI_##operation##_init(__VA_ARGS__, MPI_INFO_NULL, &made));             \
        return made;                                                                   \
    }()

// Completes the operation, and lets `check` look at its result after each time.
template <class Check>
void finish(Form form, MPI_Request request, Check check) {
    const int rounds = form == Form::persistent ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
        if (form == Form::persistent) OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check();
    }
    if (form == Form::persistent) OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
}

// Ints by a datatype of the program's own, which it frees while the operation runs.
class OwnType {
  public:
    OwnType() {
        OK(MPI_Type_contiguous(1, MPI_INT, &type_));
        OK(MPI_Type_commit(&type_));
    }
    MPI_Datatype get() const { return type_; }
    void free() { OK(MPI_Type_free(&type_)); }

  private:
    MPI_Datatype type_;
};

using Ints = std::vector<int>;

int item(int from, int to, int place) {
    return from * 1000003 + to * 10007 + place;
}
int place_of(const Ints& group, int member) {
    return static_cast<int>(std::find(group.begin(), group.end(), member) - group.begin());
}
bool contains(const Ints& group, int member) {
    return std::find(group.begin(), group.end(), member) != group.end();
}

// Blocks with counts, one unused element before each.
struct Blocks {
    std::vector<int> counts, displs;
    Ints data;
    // What one process sends to another: `number` says how much.
    template <class Number>
    Blocks(const Ints& members, Number number) {
        int end = 0;
        for (int member : members) {
            counts.push_back(number(member));
            displs.push_back(end + 1);
            end += counts.back() + 1;
        }
        data.assign(static_cast<std::size_t>(end) + 1, -1);
    }
    void fill(std::size_t block, int from, int to) {
        for (int place = 0; place < counts[block]; ++place)
            data[static_cast<std::size_t>(displs[block] + place)] = item(from, to, place);
    }
    void clear() { std::fill(data.begin(), data.end(), -1); }
};

// How much a process sends to everybody, and from one process to another.
int amount(int from) {
    return from % 4 * 300;
}
int amount(int from, int to) {
    return (from + 2 * to) % 3 * 500;
}

Ints block(int from, int to, int count) {
    Ints values;
    for (int place = 0; place < count; ++place)
        values.push_back(item(from, to, place));
    return values;
}
void append(Ints& values, const Ints& more) {
    values.insert(values.end(), more.begin(), more.end());
}

void barriers(const Meeting& at, Form form) {
    finish(form, IN_FORM(form, Barrier, Ibarrier, at.comm), [] {});
}

void allgathers(const Meeting& at, Form form, int count) {
    const Ints out = block(rank(), 0, count);
    Ints expected, in;
    for (int peer : at.peers)
        append(expected, block(peer, 0, count));
    in.assign(expected.size(), -1);
    OwnType type;
    MPI_Request request = IN_FORM(form, Allgather, Iallgather, out.data(), count, type.get(),
                                  in.data(), count, type.get(), at.comm);
    type.free();
    finish(form, request, [&] {
        CHECK(in == expected);
        in.assign(in.size(), -1);
    });

    const Ints uneven = block(rank(), 0, amount(rank()));
    Blocks got(at.peers, [](int from) { return amount(from); }), wanted = got;
    for (std::size_t i = 0; i < at.peers.size(); ++i)
        wanted.fill(i, at.peers[i], 0);
    OwnType again;
    request = IN_FORM(form, Allgatherv, Iallgatherv, uneven.data(), amount(rank()), again.get(),
                      got.data.data(), got.counts.data(), got.displs.data(), again.get(), at.comm);
    again.free();
    finish(form, request, [&] {
        CHECK(got.data == wanted.data);
        got.clear();
    });
}

void alltoalls(const Meeting& at, Form form, int count) {
    Ints out, in, expected;
    for (int peer : at.peers) {
        append(out, block(rank(), peer, count));
        append(expected, block(peer, rank(), count));
    }
    in.assign(expected.size(), -1);
    OwnType type;
    MPI_Request request = IN_FORM(form, Alltoall, Ialltoall, out.data(), count, type.get(),
                                  in.data(), count, type.get(), at.comm);
    type.free();
    finish(form, request, [&] {
        CHECK(in == expected);
        in.assign(in.size(), -1);
    });

    Blocks sent(at.peers, [](int to) { return amount(rank(), to); }),
        got(at.peers, [](int from) { return amount(from, rank()); }), wanted = got;
    for (std::size_t i = 0; i < at.peers.size(); ++i) {
        sent.fill(i, rank(), at.peers[i]);
        wanted.fill(i, at.peers[i], rank());
    }
    OwnType again;
    request = IN_FORM(form, Alltoallv, Ialltoallv, sent.data.data(), sent.counts.data(),
                      sent.displs.data(), again.get(), got.data.data(), got.counts.data(),
                      got.displs.data(), again.get(), at.comm);
    again.free();
    finish(form, request, [&] {
        CHECK(got.data == wanted.data);
        got.clear();
    });

    OwnType third;
    const auto bytes = [](Ints displs) {
        for (int& displ : displs)
            displ *= static_cast<int>(sizeof(int));
        return displs;
    };
    const Ints out_bytes = bytes(sent.displs), in_bytes = bytes(got.displs);
    std::vector<MPI_Datatype> types(at.peers.size(), third.get());
    request = IN_FORM(form, Alltoallw, Ialltoallw, sent.data.data(), sent.counts.data(),
                      out_bytes.data(), types.data(), got.data.data(), got.counts.data(),
                      in_bytes.data(), types.data(), at.comm);
    third.free();
    finish(form, request, [&] { CHECK(got.data == wanted.data); });
}

// The sum of what all peers have at places first..first+count.
Ints sums(const Ints& peers, int first, int count) {
    Ints values(static_cast<std::size_t>(count), 0);
    for (int peer : peers)
        for (int place = 0; place < count; ++place)
            values[static_cast<std::size_t>(place)] += item(peer, 0, first + place);
    return values;
}

void reductions(const Meeting& at, Form form, int count) {
    const Ints out = block(rank(), 0, count);
    Ints in(out.size(), -1);
    finish(form,
           IN_FORM(form, Allreduce, Iallreduce, out.data(), in.data(), count, MPI_INT, MPI_SUM,
                   at.comm),
           [&] {
               CHECK(in == sums(at.peers, 0, count));
               in.assign(in.size(), -1);
           });

    // Vectors of the same length in both groups, divided among the ranks of each.
    const int members = static_cast<int>(at.mine.size()),
              others = static_cast<int>(at.peers.size());
    const int me = place_of(at.mine, rank()), total = members * others * count;
    const Ints whole = block(rank(), 0, total);
    const int share = others * count;
    Ints mine(static_cast<std::size_t>(share), -1);
    finish(form,
           IN_FORM(form, Reduce_scatter_block, Ireduce_scatter_block, whole.data(), mine.data(),
                   share, MPI_INT, MPI_SUM, at.comm),
           [&] {
               CHECK(mine == sums(at.peers, me * share, share));
               mine.assign(mine.size(), -1);
           });

    std::vector<int> counts(at.mine.size(), total / (members + 1));
    counts[0] = total - (members - 1) * counts[0];
    const int before = std::accumulate(counts.begin(), counts.begin() + me, 0);
    const int own = counts[static_cast<std::size_t>(me)];
    Ints uneven(static_cast<std::size_t>(own), -1);
    finish(form,
           IN_FORM(form, Reduce_scatter, Ireduce_scatter, whole.data(), uneven.data(),
                   counts.data(), MPI_INT, MPI_SUM, at.comm),
           [&] {
               CHECK(uneven == sums(at.peers, before, own));
               uneven.assign(uneven.size(), -1);
           });
}

void scans(const Meeting& at, Form form, int count) {
    const int me = place_of(at.mine, rank());
    const Ints below(at.mine.begin(), at.mine.begin() + me);
    const Ints out = block(rank(), 0, count);
    Ints in(out.size(), -1);
    finish(form,
           IN_FORM(form, Scan, Iscan, out.data(), in.data(), count, MPI_INT, MPI_SUM, at.comm),
           [&] {
               Ints upto = below;
               upto.push_back(rank());
               CHECK(in == sums(upto, 0, count));
               in.assign(in.size(), -1);
           });
    finish(form,
           IN_FORM(form, Exscan, Iexscan, out.data(), in.data(), count, MPI_INT, MPI_SUM, at.comm),
           [&] {
               if (me > 0) CHECK(in == sums(below, 0, count));
               in.assign(in.size(), -1);
           });
}

void rooted(const Meeting& at, Form form, int count, int root_process) {
    const bool on_my_side = contains(at.mine, root_process), is_root = rank() == root_process;
    // Whether this process sends to the root or hears from it.
    const bool leaf = !at.inter || !on_my_side;
    int root = place_of(on_my_side ? at.mine : at.peers, root_process);
    if (at.inter && on_my_side) root = is_root ? MPI_ROOT : MPI_PROC_NULL;

    Ints data(static_cast<std::size_t>(count), -1);
    if (is_root) data = block(root_process, 0, count);
    OwnType type;
    MPI_Request request =
        IN_FORM(form, Bcast, Ibcast, data.data(), count, type.get(), root, at.comm);
    type.free();
    finish(form, request, [&] {
        if (leaf || is_root) CHECK(data == block(root_process, 0, count));
        if (!is_root) data.assign(data.size(), -1);
    });

    const Ints out = block(rank(), root_process, count);
    Ints all;
    if (is_root)
        for (int peer : at.peers)
            append(all, block(peer, root_process, count));
    Ints in(all.size(), -1);
    finish(form,
           IN_FORM(form, Gather, Igather, out.data(), count, MPI_INT, in.data(), count, MPI_INT,
                   root, at.comm),
           [&] {
               CHECK(in == all);
               in.assign(in.size(), -1);
           });

    Blocks got(is_root ? at.peers : Ints(), [](int from) { return amount(from); }), wanted = got;
    for (std::size_t i = 0; i < got.counts.size(); ++i)
        wanted.fill(i, at.peers[i], root_process);
    const Ints uneven = block(rank(), root_process, amount(rank()));
    finish(form,
           IN_FORM(form, Gatherv, Igatherv, uneven.data(), amount(rank()), MPI_INT, got.data.data(),
                   got.counts.data(), got.displs.data(), MPI_INT, root, at.comm),
           [&] {
               CHECK(got.data == wanted.data);
               got.clear();
           });

    Ints parts;
    if (is_root)
        for (int peer : at.peers)
            append(parts, block(root_process, peer, count));
    Ints mine(static_cast<std::size_t>(count), -1);
    const Ints expected = leaf ? block(root_process, rank(), count) : mine;
    finish(form,
           IN_FORM(form, Scatter, Iscatter, parts.data(), count, MPI_INT, mine.data(), count,
                   MPI_INT, root, at.comm),
           [&] {
               CHECK(mine == expected);
               mine.assign(mine.size(), -1);
           });

    Blocks sent(is_root ? at.peers : Ints(), [](int to) { return amount(to); });
    for (std::size_t i = 0; i < sent.counts.size(); ++i)
        sent.fill(i, root_process, at.peers[i]);
    Ints share(static_cast<std::size_t>(amount(rank())), -1);
    const Ints own = leaf ? block(root_process, rank(), amount(rank())) : share;
    finish(
        form,
        IN_FORM(form, Scatterv, Iscatterv, sent.data.data(), sent.counts.data(), sent.displs.data(),
                MPI_INT, share.data(), amount(rank()), MPI_INT, root, at.comm),
        [&] {
            CHECK(share == own);
            share.assign(share.size(), -1);
        });

    Ints sum(static_cast<std::size_t>(count), -1);
    const Ints summand = block(rank(), 0, count);
    finish(form,
           IN_FORM(form, Reduce, Ireduce, summand.data(), sum.data(), count, MPI_INT, MPI_SUM, root,
                   at.comm),
           [&] {
               if (is_root) CHECK(sum == sums(at.peers, 0, count));
               sum.assign(sum.size(), -1);
           });
}

}  // namespace

Meeting meeting_of(MPI_Comm comm) {
    MPI_Group group, world;
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int members = 0;
    OK(MPI_Group_size(group, &members));
    Ints own(static_cast<std::size_t>(members)), in_world(own.size());
    std::iota(own.begin(), own.end(), 0);
    OK(MPI_Group_translate_ranks(group, members, own.data(), world, in_world.data()));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    return {comm, false, in_world, in_world};
}

void every_collective(const Meeting& meeting, Form form) {
    barriers(meeting, form);
    for (int count : {0, 1, 3000}) {
        allgathers(meeting, form, count);
        alltoalls(meeting, form, count);
        reductions(meeting, form, count);
        if (!meeting.inter) scans(meeting, form, count);
        std::vector<int> everybody = meeting.mine;
        if (meeting.inter) append(everybody, meeting.peers);
        // In the same order on both sides.
        std::sort(everybody.begin(), everybody.end());
        for (int root : everybody)
            rooted(meeting, form, count, root);
    }
    about("");
}

}  // namespace mpi_tests

using namespace mpi_tests;

MPI_CASE(every_collective_blocks_when_called_so, 3) {
    every_collective(meeting_of(MPI_COMM_WORLD), Form::blocking);
}
MPI_CASE(every_collective_has_a_nonblocking_form, 3) {
    every_collective(meeting_of(MPI_COMM_WORLD), Form::nonblocking);
}
MPI_CASE(every_collective_has_a_persistent_form, 3) {
    every_collective(meeting_of(MPI_COMM_WORLD), Form::persistent);
}
// Ranks in another order than in the world.
MPI_CASE(every_collective_in_every_form_on_five_ranks, 5) {
    MPI_Comm reversed;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &reversed));
    for (Form form : {Form::blocking, Form::nonblocking, Form::persistent})
        every_collective(meeting_of(reversed), form);
    OK(MPI_Comm_free(&reversed));
}
