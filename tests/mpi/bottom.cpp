// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of collectives behind MPI_BOTTOM: absolute addresses in datatypes, or for displacements.
#include "test.hpp"

#include <vector>

using namespace mpi_tests;

namespace {

MPI_Datatype at_address(const void* place, int count) {
    MPI_Aint address = 0;
    OK(MPI_Get_address(place, &address));
    MPI_Datatype type = MPI_DATATYPE_NULL, of = MPI_INT;
    OK(MPI_Type_create_struct(1, &count, &address, &of, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

// Blocks named by MPI_BOTTOM and their addresses: in the types, or in the displacements.
void exchange_behind_bottom(MPI_Comm comm, bool in_types) {
    constexpr int kCount = 3;
    int ranks = 0, me = 0;
    OK(MPI_Comm_size(comm, &ranks));
    OK(MPI_Comm_rank(comm, &me));
    const auto blocks_each = static_cast<std::size_t>(ranks);
    std::vector<int> out(blocks_each * kCount), in(blocks_each * kCount, -1);
    std::vector<MPI_Count> counts(blocks_each, in_types ? 1 : kCount);
    std::vector<MPI_Aint> from(blocks_each), to(blocks_each);
    std::vector<MPI_Datatype> sent(blocks_each, MPI_INT), received(blocks_each, MPI_INT);
    for (std::size_t block = 0; block < blocks_each; ++block) {
        for (int i = 0; i < kCount; ++i)
            out[block * kCount + static_cast<std::size_t>(i)] =
                100 * me + 10 * static_cast<int>(block) + i;
        if (in_types) {
            sent[block] = at_address(&out[block * kCount], kCount);
            received[block] = at_address(&in[block * kCount], kCount);
        } else {
            OK(MPI_Get_address(&out[block * kCount], &from[block]));
            OK(MPI_Get_address(&in[block * kCount], &to[block]));
        }
    }
    OK(MPI_Alltoallw_c(MPI_BOTTOM, counts.data(), from.data(), sent.data(), MPI_BOTTOM,
                       counts.data(), to.data(), received.data(), comm));
    for (std::size_t block = 0; block < blocks_each; ++block)
        for (int i = 0; i < kCount; ++i)
            CHECK_EQ(in[block * kCount + static_cast<std::size_t>(i)],
                     100 * static_cast<int>(block) + 10 * me + i);
    for (std::size_t block = 0; in_types && block < blocks_each; ++block) {
        OK(MPI_Type_free(&sent[block]));
        OK(MPI_Type_free(&received[block]));
    }
}

}  // namespace

MPI_CASE(blocks_behind_bottom_are_found_by_their_addresses, 3) {
    for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD})
        for (const bool in_types : {true, false})
            exchange_behind_bottom(comm, in_types);
    // A rank's own block, in the collectives that copy it.
    int out[2] = {rank(), 7}, in[2] = {-1, -1};
    MPI_Datatype sent = at_address(out, 2), received = at_address(in, 2);
    OK(MPI_Gather(MPI_BOTTOM, 1, sent, MPI_BOTTOM, 1, received, 0, MPI_COMM_SELF));
    CHECK_EQ(in[0] * 10 + in[1], rank() * 10 + 7);
    in[0] = in[1] = -1;
    OK(MPI_Allgather(MPI_BOTTOM, 1, sent, MPI_BOTTOM, 1, received, MPI_COMM_SELF));
    CHECK_EQ(in[0] * 10 + in[1], rank() * 10 + 7);
    OK(MPI_Type_free(&sent));
    OK(MPI_Type_free(&received));
    // Nothing says where: neither the type nor the displacement.
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    const int one = 1, nowhere = 0;
    const MPI_Datatype item = MPI_INT;
    CHECK_EQ(error_class(MPI_Alltoallw(MPI_BOTTOM, &one, &nowhere, &item, in, &one, &nowhere, &item,
                                       MPI_COMM_SELF)),
             MPI_ERR_BUFFER);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

MPI_CASE(neighbor_alltoallw_takes_addresses_for_displacements, 2) {
    const int dims[1] = {2}, periods[1] = {1};
    MPI_Comm ring;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    int out[2] = {10 * rank(), 10 * rank() + 1}, in[2] = {-1, -1};
    MPI_Aint from[2], to[2];
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Get_address(&out[i], &from[i]));
        OK(MPI_Get_address(&in[i], &to[i]));
    }
    const int counts[2] = {1, 1};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
    for (int form = 0; form < 3; ++form) {
        in[0] = in[1] = -1;
        if (form == 0) {
            OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to,
                                      types, ring));
        } else if (form == 1) {
            OK(MPI_Ineighbor_alltoallw(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to,
                                       types, ring, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Neighbor_alltoallw_init(MPI_BOTTOM, counts, from, types, MPI_BOTTOM, counts, to,
                                           types, ring, MPI_INFO_NULL, &request));
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&request));
        }
        const int other = 10 * (1 - rank());
        CHECK_EQ(in[0], other + 1);
        CHECK_EQ(in[1], other);
    }
    OK(MPI_Comm_free(&ring));
}
