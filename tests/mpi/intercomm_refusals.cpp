// SPDX-License-Identifier: BSD-3-Clause
//
// What inter-communicators refuse, and groups that cannot make one.
#include "intercomm.hpp"
#include "refused.hpp"

using namespace mpi_tests;

MPI_CASE(what_an_intercommunicator_refuses, 4) {
    const int border = 2;
    MPI_Comm inter = between(border), none = MPI_COMM_WORLD;
    return_errors(inter);
    return_errors(MPI_COMM_WORLD);
    int in = 1, out = 0, counts[2] = {1, 1};
    expect(MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM, {"inter-communicator"},
           "a scan");
    MPI_Request request;
    expect(MPI_Iexscan(&in, &out, 1, MPI_INT, MPI_SUM, inter, &request), MPI_ERR_COMM,
           {"inter-communicator"}, "an exclusive scan");
    expect(MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE", "inter-communicator"}, "allreduce in place");
    int both[2] = {0, 0};
    expect(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, both, 1, MPI_INT, inter), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "allgather in place");
    expect(MPI_Reduce_scatter(MPI_IN_PLACE, &out, counts, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "reduce_scatter in place");
    expect(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, both, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "gather in place");
    expect(MPI_Bcast(&in, 1, MPI_INT, 2, inter), MPI_ERR_ROOT, {"root"}, "a root outside");
    expect(MPI_Bcast(&in, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD), MPI_ERR_ROOT, {"root"},
           "MPI_ROOT inside one group");
    expect(MPI_Send(&in, 1, MPI_INT, 2, 0, inter), MPI_ERR_RANK, {"dest"}, "a remote rank too far");
    int minus[2] = {1, -1};
    expect(MPI_Allgatherv(&in, 1, MPI_INT, both, minus, counts, MPI_INT, inter), MPI_ERR_COUNT,
           {"recvcounts[1]"}, "a negative count of a remote rank");

    MPI_Group group;
    OK(MPI_Comm_group(inter, &group));
    expect(MPI_Comm_create_group(inter, group, 1, &none), MPI_ERR_COMM, {"inter-communicator"},
           "create_group");
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_remote_group(inter, &group));
    expect(MPI_Comm_create(inter, group, &none), MPI_ERR_GROUP, {"local group"},
           "the remote group's processes");
    OK(MPI_Group_free(&group));

    int number = 0;
    expect(MPI_Comm_remote_size(MPI_COMM_WORLD, &number), MPI_ERR_COMM, {"one group"},
           "the remote size of one group");
    expect(MPI_Comm_remote_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM, {"one group"},
           "the remote group of one group");
    expect(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &none), MPI_ERR_COMM, {"one group"},
           "merging one group");
    expect(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &none), MPI_ERR_COMM,
           {"inter-communicator"}, "an inter-communicator as local group");
    int two = 2, yes = 1, ends[2] = {1, 2}, edges[2] = {1, 0};
    expect(MPI_Cart_create(inter, 1, &two, &yes, 0, &none), MPI_ERR_COMM, {"inter-communicator"},
           "a grid");
    expect(MPI_Cart_map(inter, 1, &two, &yes, &number), MPI_ERR_COMM, {"inter-communicator"},
           "a place in a grid");
    expect(MPI_Graph_create(inter, 2, ends, edges, 0, &none), MPI_ERR_COMM, {"inter-communicator"},
           "a graph");
    expect(MPI_Graph_map(inter, 2, ends, edges, &number), MPI_ERR_COMM, {"inter-communicator"},
           "a place in a graph");
    expect(MPI_Dist_graph_create(inter, 0, nullptr, nullptr, nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                 0, &none),
           MPI_ERR_COMM, {"inter-communicator"}, "a distributed graph");
    expect(MPI_Dist_graph_create_adjacent(inter, 0, nullptr, MPI_UNWEIGHTED, 0, nullptr,
                                          MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &none),
           MPI_ERR_COMM, {"inter-communicator"}, "a distributed graph of neighbors");
    // Nothing of all that is left in the way.
    expect_it_carries(inter);
    OK(MPI_Comm_free(&inter));
}

MPI_CASE(groups_that_cannot_meet_are_refused, 4) {
    MPI_Comm half, pair, none = MPI_COMM_WORLD;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() < 2, 0, &half));
    for (MPI_Comm comm : {half, MPI_COMM_WORLD, MPI_COMM_SELF})
        return_errors(comm);
    const int other = rank() < 2 ? 2 : 0;
    expect(MPI_Intercomm_create(half, 2, MPI_COMM_WORLD, other, 0, &none), MPI_ERR_RANK,
           {"local_leader"}, "a local leader outside");
    CHECK(none == MPI_COMM_NULL);
    expect(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other, -1, &none), MPI_ERR_TAG, {"tag"},
           "a bad tag");
    // What only the leader can know, it tells its group.
    const bool leads = rank() % 2 == 0;
    const int code = MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 17, 0, &none);
    if (leads)
        expect(code, MPI_ERR_RANK, {"remote_leader"}, "a remote leader outside");
    else
        expect(code, MPI_ERR_COMM, {"leader"}, "a leader that failed");
    CHECK(none == MPI_COMM_NULL);
    const int no_bridge = MPI_Intercomm_create(half, 0, MPI_COMM_NULL, other, 0, &none);
    if (leads)
        expect(no_bridge, MPI_ERR_COMM, {"peer_comm"}, "no way to the other leader");
    else
        expect(no_bridge, MPI_ERR_COMM, {"leader"}, "a leader that failed");
    // Process 1 in both groups.
    MPI_Comm other_pair;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() < 2 ? 0 : MPI_UNDEFINED, 0, &pair));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() == 1 || rank() == 2 ? 0 : MPI_UNDEFINED, -rank(),
                      &other_pair));
    for (MPI_Comm comm : {pair, other_pair})
        if (comm != MPI_COMM_NULL) return_errors(comm);
    if (pair != MPI_COMM_NULL)
        expect(MPI_Intercomm_create(pair, 0, MPI_COMM_WORLD, 2, 3, &none), MPI_ERR_COMM,
               {rank() == 0 ? "process 1" : "leader"}, "a process in both groups");
    if (other_pair != MPI_COMM_NULL)
        expect(MPI_Intercomm_create(other_pair, 0, MPI_COMM_WORLD, 0, 3, &none), MPI_ERR_COMM,
               {rank() == 2 ? "process 1" : "leader"}, "a process in both groups");
    for (MPI_Comm* comm : {&pair, &other_pair, &half})
        if (*comm != MPI_COMM_NULL) OK(MPI_Comm_free(comm));
}
