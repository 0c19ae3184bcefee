// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that find each other: ports, names, sockets, and groups that meet through a third one.
#include "spawning.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace mpi_tests {
namespace {

constexpr const char* kService = "the service of this test";

// Every rank of both groups says its number to all of the other group.
void greet(MPI_Comm inter) {
    int others = 0;
    OK(MPI_Comm_remote_size(inter, &others));
    std::vector<int> heard(static_cast<std::size_t>(others), -1);
    const int mine = rank();
    OK(MPI_Allgather(&mine, 1, MPI_INT, heard.data(), 1, MPI_INT, inter));
    for (int i = 0; i < others; ++i)
        CHECK_EQ(heard[static_cast<std::size_t>(i)], i);
}

int connected_socket(bool listens) {
    const int one = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof place;
    if (!listens) {
        OK(MPI_Recv(&place.sin_port, sizeof place.sin_port, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        CHECK_EQ(connect(one, reinterpret_cast<sockaddr*>(&place), length), 0);
        return one;
    }
    CHECK_EQ(bind(one, reinterpret_cast<sockaddr*>(&place), length), 0);
    CHECK_EQ(listen(one, 1), 0);
    getsockname(one, reinterpret_cast<sockaddr*>(&place), &length);
    OK(MPI_Send(&place.sin_port, sizeof place.sin_port, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    const int other = accept(one, nullptr, nullptr);
    close(one);
    return other;
}

}  // namespace

MPI_CASE_CHILD(child_serves, 2) {
    MPI_Comm up = parent(), client = MPI_COMM_NULL;
    char port[MPI_MAX_PORT_NAME] = {};
    if (rank() == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(kService, MPI_INFO_NULL, port));
    }
    OK(MPI_Barrier(up));  // it is published now
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client));
    greet(client);
    OK(MPI_Comm_disconnect(&client));
    if (rank() == 0) {
        OK(MPI_Unpublish_name(kService, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE_CHILD(child_calls, 1) {
    MPI_Comm up = parent(), server = MPI_COMM_NULL;
    OK(MPI_Barrier(up));
    char port[MPI_MAX_PORT_NAME] = {};
    OK(MPI_Lookup_name(kService, MPI_INFO_NULL, port));
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server));
    greet(server);
    OK(MPI_Comm_disconnect(&server));
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE(jobs_find_each_other_by_a_published_name, 1) {
    MPI_Comm serves = spawn_case("child_serves", 2), calls = spawn_case("child_calls", 1);
    OK(MPI_Barrier(serves));
    OK(MPI_Barrier(calls));
    OK(MPI_Comm_disconnect(&serves));
    OK(MPI_Comm_disconnect(&calls));
}

MPI_CASE(halves_of_a_job_connect_again_and_again, 4) {
    MPI_Comm half = MPI_COMM_NULL;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half));
    char port[MPI_MAX_PORT_NAME] = {};
    if (rank() == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int round = 0; round < 3; ++round) {
        MPI_Comm inter = MPI_COMM_NULL;
        if (rank() % 2 == 0)
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 1, half, &inter));
        int others = 0, heard[2] = {-1, -1};
        OK(MPI_Comm_remote_size(inter, &others));
        CHECK_EQ(others, 2);
        const int mine = rank();
        OK(MPI_Allgather(&mine, 1, MPI_INT, heard, 1, MPI_INT, inter));
        CHECK_EQ(heard[0], 1 - rank() % 2);
        CHECK_EQ(heard[1], 3 - rank() % 2);
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank() == 0) OK(MPI_Close_port(port));
    OK(MPI_Comm_free(&half));
}

MPI_CASE(two_processes_join_over_a_socket, 2) {
    const int socket = connected_socket(rank() == 0);
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Comm_join(socket, &inter));
    const int mine = rank();
    int theirs = -1;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
    CHECK_EQ(theirs, 1 - rank());
    OK(MPI_Comm_disconnect(&inter));
    // The socket stays the program's, and nothing of ours is left in it.
    const char sent = static_cast<char>('a' + rank());
    char received = 0;
    CHECK_EQ(write(socket, &sent, 1), 1);
    CHECK_EQ(read(socket, &received, 1), 1);
    CHECK_EQ(received, static_cast<char>('a' + 1 - rank()));
    close(socket);
}

MPI_CASE_CHILD(child_meets_a_sibling, 2) {
    MPI_Comm up = parent(), family = MPI_COMM_NULL, siblings = MPI_COMM_NULL;
    OK(MPI_Intercomm_merge(up, 1, &family));
    // Whose number in the bridge of the parents is told by them.
    int tag = 0;
    OK(MPI_Bcast(&tag, 1, MPI_INT, 0, family));
    MPI_Comm doubled = MPI_COMM_NULL, part = MPI_COMM_NULL, some = MPI_COMM_NULL;
    OK(MPI_Comm_dup(family, &doubled));
    OK(MPI_Barrier(doubled));
    OK(MPI_Comm_split(doubled, rank(), 0, &part));
    int together = 0;
    OK(MPI_Comm_size(part, &together));
    CHECK_EQ(together, rank() == 0 ? 2 : 1);
    OK(MPI_Barrier(part));
    MPI_Group group = MPI_GROUP_NULL, pair = MPI_GROUP_NULL;
    OK(MPI_Comm_group(family, &group));
    const int members[] = {2, 0};
    OK(MPI_Group_incl(group, 2, members, &pair));
    if (rank() == 1) {
        OK(MPI_Comm_create_group(family, pair, 7, &some));
        OK(MPI_Barrier(some));
        OK(MPI_Comm_free(&some));
    }
    // All of the family, and another child's family, by the parent.
    OK(MPI_Intercomm_create(family, 0, MPI_COMM_NULL, 0, tag, &siblings));
    int others = 0;
    OK(MPI_Comm_remote_size(siblings, &others));
    CHECK_EQ(others, 2);
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, siblings));
    CHECK_EQ(sum, 2);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&pair));
    for (MPI_Comm* each : {&siblings, &part, &doubled, &family, &up})
        OK(MPI_Comm_disconnect(each));
}

// The second job of children is not known to the first: the parent is the bridge between them.
MPI_CASE_CHILD(child_meets_a_family, 2) {
    MPI_Comm up = parent(), siblings = MPI_COMM_NULL;
    OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, up, 0, 5, &siblings));
    int others = 0;
    OK(MPI_Comm_remote_size(siblings, &others));
    CHECK_EQ(others, 3);
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, siblings));
    CHECK_EQ(sum, 3);
    OK(MPI_Comm_disconnect(&siblings));
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE(jobs_that_never_met_are_joined_by_their_parent, 1) {
    MPI_Comm first = spawn_case("child_meets_a_sibling", 2);
    MPI_Comm second = spawn_case("child_meets_a_family", 2);
    MPI_Comm family = MPI_COMM_NULL, siblings = MPI_COMM_NULL;
    OK(MPI_Intercomm_merge(first, 0, &family));
    int tag = 5;
    OK(MPI_Bcast(&tag, 1, MPI_INT, 0, family));
    MPI_Comm doubled = MPI_COMM_NULL, part = MPI_COMM_NULL, some = MPI_COMM_NULL;
    OK(MPI_Comm_dup(family, &doubled));
    OK(MPI_Barrier(doubled));
    OK(MPI_Comm_split(doubled, 0, 0, &part));
    OK(MPI_Barrier(part));
    MPI_Group group = MPI_GROUP_NULL, pair = MPI_GROUP_NULL;
    OK(MPI_Comm_group(family, &group));
    const int members[] = {2, 0};
    OK(MPI_Group_incl(group, 2, members, &pair));
    OK(MPI_Comm_create_group(family, pair, 7, &some));
    OK(MPI_Barrier(some));
    OK(MPI_Comm_free(&some));
    OK(MPI_Intercomm_create(family, 0, second, 0, tag, &siblings));
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, siblings));
    CHECK_EQ(sum, 2);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&pair));
    for (MPI_Comm* each : {&siblings, &part, &doubled, &family, &first, &second})
        OK(MPI_Comm_disconnect(each));
}

MPI_CASE(ports_and_names_that_are_none_are_errors, 1) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MPI_Comm none = MPI_COMM_WORLD;
    for (const char* port : {"", "nonsense", "127.0.0.1:1#0123456789abcdef", "[::1#:]"})
        CHECK_EQ(error_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none)),
                 MPI_ERR_PORT);
    CHECK(none == MPI_COMM_NULL);
    CHECK_EQ(error_class(MPI_Comm_accept("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &none)),
             MPI_ERR_PORT);
    CHECK_EQ(error_class(MPI_Close_port("nonsense")), MPI_ERR_PORT);
    char port[MPI_MAX_PORT_NAME] = {};
    CHECK_EQ(error_class(MPI_Lookup_name("nobody's", MPI_INFO_NULL, port)), MPI_ERR_NAME);
    CHECK_EQ(error_class(MPI_Unpublish_name("nobody's", MPI_INFO_NULL, "x")), MPI_ERR_SERVICE);
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Publish_name("mine", MPI_INFO_NULL, port));
    CHECK_EQ(error_class(MPI_Publish_name("mine", MPI_INFO_NULL, port)), MPI_ERR_SERVICE);
    // A port at which nobody accepts is waited at for a time only.
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "1"));
    CHECK_EQ(error_class(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &none)), MPI_ERR_PORT);
    OK(MPI_Info_free(&info));
    OK(MPI_Unpublish_name("mine", MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
    CHECK_EQ(error_class(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none)),
             MPI_ERR_PORT);
}

}  // namespace mpi_tests
