// SPDX-License-Identifier: BSD-3-Clause
//
// Every neighbor collective in every form and both widths, on grids and graphs of all kinds, in
// host and device memory. Ranks of a grid that has one or two processes along a dimension are each
// other's neighbor twice, or their own.
#include "collective_forms.hpp"
#include "gpu.hpp"
#include "test.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <string>

using namespace mpi_tests;

namespace {

using Ints = std::vector<int>;
using Counts = std::vector<MPI_Count>;
using Places = std::vector<MPI_Aint>;

// A communicator with a topology, as the test knows it: what comes from sources[k] was block
// sent_as[k] of its sender.
struct Pattern {
    MPI_Comm comm;
    int me;
    Ints sources, destinations, sent_as;
};

int item(int round, int from, int block, int index) {
    return round * 500'000'003 + from * 1'000'003 + block * 10'007 + index;
}

// Ints in memory of some kind.
class Numbers {
  public:
    Numbers(Kind kind, std::size_t count)
        : host_(count), memory_(kind, std::max<std::size_t>(count, 1) * sizeof(int)) {}
    void* data() { return memory_.data(); }
    int& operator[](int index) { return host_[static_cast<std::size_t>(index)]; }
    void clear() { std::fill(host_.begin(), host_.end(), -1); }
    void store() { memory_.write(host_.data(), host_.size() * sizeof(int)); }
    void load() { memory_.read(host_.data(), host_.size() * sizeof(int)); }

  private:
    Ints host_;
    Memory memory_;
};

// The blocks of one side: counts, where they begin (with one unused number before each), and where
// the last one ends.
struct Listed {
    Ints counts, displs;
    int end = 0;
    void add(int count) {
        counts.push_back(count);
        displs.push_back(end + 1);
        end += count + 1;
    }
    int size() const { return static_cast<int>(counts.size()); }
    Counts counts_c() const { return Counts(counts.begin(), counts.end()); }
    Places displs_c() const { return Places(displs.begin(), displs.end()); }
    Places byte_displs() const {
        Places bytes;
        for (int displ : displs)
            bytes.push_back(displ * static_cast<MPI_Aint>(sizeof(int)));
        return bytes;
    }
};

// How long a rank's block is: the same for all, or different ones.
int length(bool uneven, int from, int block) {
    return uneven ? (from + 2 * block) % 3 * 700 : 5;
}

// Both sides of an operation. `gathers`: one block, block 0, goes to everybody.
struct Sides {
    const Pattern& at;
    bool gathers;
    Listed sent, received;
    Numbers out, in;

    Sides(const Pattern& pattern, bool gather, bool uneven, Kind kind)
        : at(pattern),
          gathers(gather),
          sent(list_sent(pattern, gather, uneven)),
          received(list_received(pattern, gather, uneven)),
          out(kind, static_cast<std::size_t>(sent.end) + 1),
          in(kind, static_cast<std::size_t>(received.end) + 1) {}

    void prepare(int round) {
        for (int block = 0; block < sent.size(); ++block)
            for (int i = 0; i < sent.counts[static_cast<std::size_t>(block)]; ++i)
                out[sent.displs[static_cast<std::size_t>(block)] + i] =
                    item(round, at.me, block, i);
        out.store();
        in.clear();
        in.store();
    }
    void check(int round) {
        in.load();
        int wrong = 0;
        for (int block = 0; block < received.size(); ++block) {
            const auto k = static_cast<std::size_t>(block);
            if (in[received.displs[k] - 1] != -1) ++wrong;
            for (int i = 0; i < received.counts[k]; ++i) {
                const int expected =
                    at.sources[k] == MPI_PROC_NULL
                        ? -1
                        : item(round, at.sources[k], gathers ? 0 : at.sent_as[k], i);
                if (in[received.displs[k] + i] != expected) ++wrong;
            }
        }
        CHECK_EQ(wrong, 0);
    }

  private:
    static Listed list_sent(const Pattern& at, bool gather, bool uneven) {
        Listed list;
        const int blocks = gather ? 1 : static_cast<int>(at.destinations.size());
        for (int block = 0; block < blocks; ++block)
            list.add(length(uneven, at.me, block));
        return list;
    }
    static Listed list_received(const Pattern& at, bool gather, bool uneven) {
        Listed list;
        for (std::size_t k = 0; k < at.sources.size(); ++k)
            list.add(at.sources[k] == MPI_PROC_NULL
                         ? length(uneven, 1, 0)
                         : length(uneven, at.sources[k], gather ? 0 : at.sent_as[k]));
        return list;
    }
};

template <class Blocking, class Nonblocking, class Persistent>
void carry_out(Form form, Sides& sides, Blocking blocking, Nonblocking nonblocking,
               Persistent persistent) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == Form::persistent) persistent(&request);
    for (int round = 0; round < (form == Form::persistent ? 2 : 1); ++round) {
        sides.prepare(round);
        if (form == Form::blocking) blocking();
        if (form == Form::nonblocking) nonblocking(&request);
        if (form == Form::persistent) OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        sides.check(round);
    }
    if (form == Form::persistent) OK(MPI_Request_free(&request));
}

#define IN_FORM(form, sides, name, width, ...)                                           \
    (about("Neighbor_" #name #width), /* what a failed check is about */                 \
     carry_out(                                                                          \
         form, sides, [&] { OK(MPI_Neighbor_##name##width(__VA_ARGS__)); },              \
         [&](MPI_Request* made) { OK(MPI_Ineighbor_##name##width(__VA_ARGS__, made)); }, \
         [&](MPI_Request* made) {                                                        \
             OK(MPI_Neighbor_##name##_init##width(__VA_ARGS__, MPI_INFO_NULL, made));    \
         }),                                                                             \
     about(""))

void even_blocks_and_gathers(const Pattern& at, Form form, Kind kind) {
    // Blocks that follow each other: five numbers and the unused one before them.
    Sides even(at, true, false, kind);
    MPI_Datatype block = MPI_DATATYPE_NULL;
    const int one = 5, first = 1;
    OK(MPI_Type_indexed(1, &one, &first, MPI_INT, &block));
    MPI_Datatype spaced = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_resized(block, 0, 6 * sizeof(int), &spaced));
    OK(MPI_Type_commit(&spaced));
    IN_FORM(form, even, allgather, , even.out.data(), 1, spaced, even.in.data(), 1, spaced,
            at.comm);
    IN_FORM(form, even, allgather, _c, even.out.data(), 1, spaced, even.in.data(), 1, spaced,
            at.comm);
    Sides each(at, false, false, kind);
    IN_FORM(form, each, alltoall, , each.out.data(), 1, spaced, each.in.data(), 1, spaced, at.comm);
    IN_FORM(form, each, alltoall, _c, each.out.data(), 1, spaced, each.in.data(), 1, spaced,
            at.comm);
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&spaced));
    Sides uneven(at, true, true, kind);
    const int* mine = static_cast<const int*>(uneven.out.data()) + 1;
    const Counts counts = uneven.received.counts_c();
    const Places displs = uneven.received.displs_c();
    IN_FORM(form, uneven, allgatherv, , mine, uneven.sent.counts[0], MPI_INT, uneven.in.data(),
            uneven.received.counts.data(), uneven.received.displs.data(), MPI_INT, at.comm);
    IN_FORM(form, uneven, allgatherv, _c, mine, uneven.sent.counts[0], MPI_INT, uneven.in.data(),
            counts.data(), displs.data(), MPI_INT, at.comm);
}

void exchanges(const Pattern& at, Form form, Kind kind) {
    Sides sides(at, false, true, kind);
    const Listed &out = sides.sent, &in = sides.received;
    const Counts sendcounts = out.counts_c(), recvcounts = in.counts_c();
    const Places sdispls = out.displs_c(), rdispls = in.displs_c();
    IN_FORM(form, sides, alltoallv, , sides.out.data(), out.counts.data(), out.displs.data(),
            MPI_INT, sides.in.data(), in.counts.data(), in.displs.data(), MPI_INT, at.comm);
    IN_FORM(form, sides, alltoallv, _c, sides.out.data(), sendcounts.data(), sdispls.data(),
            MPI_INT, sides.in.data(), recvcounts.data(), rdispls.data(), MPI_INT, at.comm);
    const Places sbytes = out.byte_displs(), rbytes = in.byte_displs();
    const std::vector<MPI_Datatype> sendtypes(out.counts.size(), MPI_INT),
        recvtypes(in.counts.size(), MPI_INT32_T);
    IN_FORM(form, sides, alltoallw, , sides.out.data(), out.counts.data(), sbytes.data(),
            sendtypes.data(), sides.in.data(), in.counts.data(), rbytes.data(), recvtypes.data(),
            at.comm);
    IN_FORM(form, sides, alltoallw, _c, sides.out.data(), sendcounts.data(), sbytes.data(),
            sendtypes.data(), sides.in.data(), recvcounts.data(), rbytes.data(), recvtypes.data(),
            at.comm);
}

void every_operation(const Pattern& at, Kind kind) {
    for (Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
        even_blocks_and_gathers(at, form, kind);
        exchanges(at, form, kind);
    }
}

// --- patterns

Pattern grid(Ints dims, Ints periods, int reorder) {
    Pattern made;
    const int number = static_cast<int>(dims.size());
    OK(MPI_Cart_create(MPI_COMM_WORLD, number, dims.data(), periods.data(), reorder, &made.comm));
    OK(MPI_Comm_rank(made.comm, &made.me));
    for (int dimension = 0; dimension < number; ++dimension) {
        int back = -1, forth = -1;
        OK(MPI_Cart_shift(made.comm, dimension, 1, &back, &forth));
        made.sources.insert(made.sources.end(), {back, forth});
        made.sent_as.insert(made.sent_as.end(), {2 * dimension + 1, 2 * dimension});
    }
    made.destinations = made.sources;
    return made;
}

// A list of edges that all ranks know. Who has several edges to the same rank sends them in order.
struct Edges {
    std::vector<std::pair<int, int>> list;
    Pattern of(int me) const {
        Pattern made;
        made.me = me;
        for (const auto& [from, to] : list) {
            if (from == me) made.destinations.push_back(to);
            if (to != me) continue;
            made.sources.push_back(from);
            // The place of this edge among those that begin where it begins.
            int place = 0;
            for (const auto& other : list) {
                if (&other.first == &from) break;
                if (other.first == from) ++place;
            }
            made.sent_as.push_back(place);
        }
        return made;
    }
};

Edges random_edges(unsigned seed) {
    std::mt19937 random(seed);
    const auto ranks = static_cast<unsigned>(size());
    Edges edges;
    for (auto i = random() % (3 * ranks) + 1; i > 0; --i) {
        // By sender, and in the order of the list: as the ranks name them below.
        edges.list.push_back(
            {static_cast<int>(random() % ranks), static_cast<int>(random() % ranks)});
    }
    std::stable_sort(edges.list.begin(), edges.list.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return edges;
}

Pattern adjacent_graph(const Edges& edges) {
    Pattern made = edges.of(rank());
    OK(MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, static_cast<int>(made.sources.size()), made.sources.data(), MPI_UNWEIGHTED,
        static_cast<int>(made.destinations.size()), made.destinations.data(), MPI_UNWEIGHTED,
        MPI_INFO_NULL, 0, &made.comm));
    return made;
}

// Every rank names the edges that begin at it.
Pattern distributed_graph(const Edges& edges) {
    Pattern made = edges.of(rank());
    const int degree = static_cast<int>(made.destinations.size()), me = rank();
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &degree, made.destinations.data(),
                             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made.comm));
    return made;
}

// Rank 0 and each other rank are neighbors.
Pattern star() {
    Ints index, edges;
    for (int node = 1; node < size(); ++node)
        edges.push_back(node);
    index.push_back(size() - 1);
    for (int node = 1; node < size(); ++node) {
        edges.push_back(0);
        index.push_back(index.back() + 1);
    }
    Pattern made;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size(), index.data(), edges.data(), 0, &made.comm));
    made.me = rank();
    if (rank() == 0)
        for (int node = 1; node < size(); ++node) {
            made.sources.push_back(node);
            made.sent_as.push_back(0);
        }
    else {
        made.sources.push_back(0);
        made.sent_as.push_back(rank() - 1);
    }
    made.destinations = made.sources;
    return made;
}

void on(Pattern at, Kind kind) {
    every_operation(at, kind);
    OK(MPI_Comm_free(&at.comm));
}

void on_all(Kind kind) {
    Ints dims(2, 0);
    OK(MPI_Dims_create(size(), 2, dims.data()));
    on(grid({size()}, {1}, 0), kind);
    on(grid({size()}, {0}, 1), kind);
    on(grid({1, size()}, {1, 1}, 0), kind);
    on(grid(dims, {1, 1}, 1), kind);
    on(grid({dims[1], dims[0]}, {0, 1}, 0), kind);
    on(star(), kind);
    for (unsigned seed = 1; seed <= 3; ++seed) {
        on(adjacent_graph(random_edges(seed)), kind);
        on(distributed_graph(random_edges(seed + 10)), kind);
    }
}

}  // namespace

MPI_CASE(neighbor_collectives_of_1, 1) {
    on_all(Kind::host);
}
MPI_CASE(neighbor_collectives_of_2, 2) {
    on_all(Kind::host);
}
MPI_CASE(neighbor_collectives_of_4, 4) {
    on_all(Kind::host);
}
MPI_CASE(neighbor_collectives_of_5, 5) {
    on_all(Kind::host);
}
MPI_CASE(neighbor_collectives_of_8, 8) {
    on_all(Kind::host);
}
MPI_CASE(neighbor_collectives_in_device_memory_of_1, 1) {
    gpu();
    on_all(Kind::device);
}
MPI_CASE(neighbor_collectives_in_device_memory_of_4, 4) {
    use_device(rank() % gpu().count);
    on_all(Kind::device);
}

// Long enough for the protocols of large messages, through the faces of a block whose strided faces
// are sent by datatype.
MPI_CASE(faces_of_a_block_in_device_memory, 4) {
    use_device(rank() % gpu().count);
    constexpr int kEdge = 192;  // doubles, with a halo of one on each side of the first dimension
    const int dims[] = {2, 2}, periods[] = {1, 1};
    MPI_Comm comm;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &comm));
    int me = -1;
    OK(MPI_Comm_rank(comm, &me));
    const int whole[] = {kEdge + 2, kEdge + 2};
    MPI_Datatype faces[8];  // sent back, forth along each dimension; then received
    for (int dimension = 0; dimension < 2; ++dimension)
        for (int side = 0; side < 2; ++side) {
            int part[] = {kEdge, kEdge}, start[] = {1, 1};
            part[dimension] = 1;
            start[dimension] = side == 0 ? 1 : kEdge;
            OK(MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE,
                                        &faces[2 * dimension + side]));
            start[dimension] = side == 0 ? 0 : kEdge + 1;
            OK(MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE,
                                        &faces[4 + 2 * dimension + side]));
        }
    for (MPI_Datatype& face : faces)
        OK(MPI_Type_commit(&face));
    const std::size_t cells = (kEdge + 2) * (kEdge + 2);
    std::vector<double> block(cells, me);
    Memory memory(Kind::device, cells * sizeof(double));
    memory.write(block.data(), memory.bytes());
    const int counts[] = {1, 1, 1, 1};
    const MPI_Aint nowhere[] = {0, 0, 0, 0};
    OK(MPI_Neighbor_alltoallw(memory.data(), counts, nowhere, faces, memory.data(), counts, nowhere,
                              faces + 4, comm));
    memory.read(block.data(), memory.bytes());
    const auto at = [&block](int row, int column) {
        return block[static_cast<std::size_t>(row * (kEdge + 2) + column)];
    };
    for (int i = 1; i <= kEdge; ++i) {
        CHECK_EQ(at(0, i), me ^ 2);
        CHECK_EQ(at(kEdge + 1, i), me ^ 2);
        CHECK_EQ(at(i, 0), me ^ 1);
        CHECK_EQ(at(i, kEdge + 1), me ^ 1);
        CHECK_EQ(at(i, i), me);
    }
    CHECK_EQ(at(0, 0), me);
    for (MPI_Datatype& face : faces)
        OK(MPI_Type_free(&face));
    OK(MPI_Comm_free(&comm));
}

// Who has no neighbors needs no buffers.
MPI_CASE(neighbor_collectives_without_neighbors, 2) {
    MPI_Comm comm;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nullptr, MPI_WEIGHTS_EMPTY, 0, nullptr,
                                      MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Neighbor_allgather(nullptr, 4, MPI_INT, nullptr, 4, MPI_INT, comm));
    OK(MPI_Neighbor_alltoall(nullptr, 4, MPI_INT, nullptr, 4, MPI_INT, comm));
    OK(MPI_Neighbor_alltoallv(nullptr, nullptr, nullptr, MPI_INT, nullptr, nullptr, nullptr,
                              MPI_INT, comm));
    OK(MPI_Neighbor_alltoallw(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                              nullptr, comm));
    OK(MPI_Comm_free(&comm));
}

// Of two neighbors each one gets nothing: its count is 0 and there is no type.
MPI_CASE(neighbor_alltoallw_needs_no_type_beside_a_count_of_0, 2) {
    Pattern at = grid({2}, {1}, 0);  // the other rank, twice
    const MPI_Datatype out[] = {MPI_DATATYPE_NULL, MPI_INT}, in[] = {MPI_INT, MPI_DATATYPE_NULL};
    const int sends[] = {0, 1}, receives[] = {1, 0};
    const MPI_Aint nowhere[] = {0, 0};
    const int mine = rank();
    for (int form = 0; form < 3; ++form) {
        MPI_Request request = MPI_REQUEST_NULL;
        int got = -1;
        if (form == 0) {
            OK(MPI_Neighbor_alltoallw(&mine, sends, nowhere, out, &got, receives, nowhere, in,
                                      at.comm));
        } else if (form == 1) {
            OK(MPI_Ineighbor_alltoallw(&mine, sends, nowhere, out, &got, receives, nowhere, in,
                                       at.comm, &request));
        } else {
            OK(MPI_Neighbor_alltoallw_init(&mine, sends, nowhere, out, &got, receives, nowhere, in,
                                           at.comm, MPI_INFO_NULL, &request));
            OK(MPI_Start(&request));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (form == 2) OK(MPI_Request_free(&request));
        CHECK_EQ(got, 1 - rank());
    }
    OK(MPI_Comm_free(&at.comm));
}

// The communicator may be freed while the operation is under way, and its topology stays.
MPI_CASE(neighbor_collectives_outlive_their_communicator, 2) {
    Pattern at = grid({2}, {1}, 0);
    int out[2] = {10 * rank() + 1, 10 * rank() + 2}, in[2] = {-1, -1};
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, at.comm, &request));
    OK(MPI_Comm_free(&at.comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(in[0], 10 * (1 - rank()) + 2);
    CHECK_EQ(in[1], 10 * (1 - rank()) + 1);
}

// Blocks that lie further apart than an int can say, in memory of which few pages are touched.
MPI_CASE(neighbor_blocks_lie_far_apart, 2) {
    constexpr std::size_t kBytes = std::size_t{6} << 30;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) skip("no 6 GiB of addresses");
    int* numbers = static_cast<int*>(memory);
    Pattern at = grid({2}, {1}, 0);
    constexpr MPI_Aint kApart = MPI_Aint{1} << 30;  // ints
    const MPI_Count counts[] = {3, 3};
    const MPI_Aint out[] = {0, kApart}, in[] = {kApart + 10, 10};
    for (int block = 0; block < 2; ++block)
        for (int i = 0; i < 3; ++i)
            numbers[out[block] + i] = item(0, rank(), block, i);
    OK(MPI_Neighbor_alltoallv_c(numbers, counts, out, MPI_INT, numbers, counts, in, MPI_INT,
                                at.comm));
    for (int block = 0; block < 2; ++block)
        for (int i = 0; i < 3; ++i)
            CHECK_EQ(numbers[in[block] + i], item(0, 1 - rank(), 1 - block, i));
    OK(MPI_Comm_free(&at.comm));
    munmap(memory, kBytes);
}
