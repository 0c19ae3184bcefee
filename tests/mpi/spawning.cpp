// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that are spawned: how they begin, what goes between them and their parents, and what is left of
// them.
#include "tests/all.hpp"
#include "gpu.hpp"
#include "spawning.hpp"

#include <dirent.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace mpi_tests {
namespace {

// Each rank and its partner of the other job send each other patterns.
void exchange_patterns(MPI_Comm inter, Kind kind) {
    constexpr std::size_t kSizes[] = {0, 8, 4096, 100'000, 5'000'000};
    for (const std::size_t bytes : kSizes) {
        about(std::string(name(kind)) + ", " + std::to_string(bytes) + " bytes");
        Memory outgoing(kind, bytes + 1), incoming(kind, bytes + 1);
        outgoing.fill(static_cast<unsigned>(bytes));
        const int count = static_cast<int>(bytes);
        OK(MPI_Sendrecv(outgoing.data(), count, MPI_BYTE, rank(), 3, incoming.data(), count,
                        MPI_BYTE, rank(), 3, inter, MPI_STATUS_IGNORE));
        CHECK_EQ(incoming.differs(static_cast<unsigned>(bytes), bytes), -1);
    }
    about("");
}

// Collectives of the two groups, and of the one that they become.
void reduce_together(MPI_Comm inter, int others, bool high) {
    const int mine = rank() + 1;
    int theirs = 0;
    OK(MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(theirs, others * (others + 1) / 2);
    MPI_Comm all = MPI_COMM_NULL;
    OK(MPI_Intercomm_merge(inter, high, &all));
    int place = -1, together = 0, sum = 0;
    MPI_Comm_rank(all, &place);
    MPI_Comm_size(all, &together);
    CHECK_EQ(place, high ? others + rank() : rank());
    CHECK_EQ(together, others + size());
    OK(MPI_Allreduce(&place, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK_EQ(sum, together * (together - 1) / 2);
    constexpr int kCount = 10'000;
    Memory source(Kind::device, kCount * sizeof(int)), sink(Kind::device, kCount * sizeof(int));
    std::vector<int> numbers(kCount, place + 1);
    source.write(numbers.data(), kCount * sizeof(int));
    OK(MPI_Allreduce(source.data(), sink.data(), kCount, MPI_INT, MPI_SUM, all));
    sink.read(numbers.data(), kCount * sizeof(int));
    for (const int number : numbers)
        if (number != together * (together + 1) / 2) {
            CHECK_EQ(number, together * (together + 1) / 2);
            break;
        }
    OK(MPI_Comm_free(&all));
}

int open_descriptors() {
    DIR* folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr)
        ++count;
    closedir(folder);
    return count;
}

int shared_mappings() {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find("gantry-") != std::string::npos;
    return count;
}

}  // namespace

MPI_CASE_CHILD(child_exchanges, 2) {
    use_device(0);
    MPI_Comm up = parent();
    CHECK(up != MPI_COMM_NULL);
    for (const Kind kind : {Kind::host, Kind::device})
        exchange_patterns(up, kind);
    reduce_together(up, 2, true);
    OK(MPI_Comm_disconnect(&up));
    CHECK(parent() == MPI_COMM_NULL);
}

MPI_CASE(parents_and_children_exchange_host_and_device_buffers, 2) {
    use_device(0);
    CHECK(parent() == MPI_COMM_NULL);
    MPI_Comm down = spawn_case("child_exchanges", 2);
    int inter = 0, others = 0;
    OK(MPI_Comm_test_inter(down, &inter));
    OK(MPI_Comm_remote_size(down, &others));
    CHECK(inter);
    CHECK_EQ(others, 2);
    for (const Kind kind : {Kind::host, Kind::device})
        exchange_patterns(down, kind);
    reduce_together(down, 2, false);
    OK(MPI_Comm_disconnect(&down));
    CHECK(down == MPI_COMM_NULL);
}

MPI_CASE_CHILD(child_leaves, 1) {
    MPI_Comm up = parent();
    int number = 0;
    OK(MPI_Recv(&number, 1, MPI_INT, 0, 0, up, MPI_STATUS_IGNORE));
    OK(MPI_Send(&number, 1, MPI_INT, 0, 0, up));
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE_CHILD(child_maps_device_memory, 1) {
    use_device(0);
    Memory memory(Kind::device, 1 << 20);
    MPI_Comm up = parent();
    for (int i = 0; i < 4; ++i)
        OK(MPI_Sendrecv_replace(memory.data(), 1 << 20, MPI_BYTE, 0, 0, 0, 0, up,
                                MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&up));
}

// Mappings of the children's memory, and what else a round leaves.
MPI_CASE_OWN_INIT(mappings_of_spawned_jobs_are_closed, 1) {
    only_on_the_simulator();
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    start_mpi();
    use_device(0);
    Memory memory(Kind::device, 1 << 20);
    for (int round = 0; round < 3; ++round) {
        MPI_Comm down = spawn_case("child_maps_device_memory", 1);
        for (int i = 0; i < 4; ++i)
            OK(MPI_Sendrecv_replace(memory.data(), 1 << 20, MPI_BYTE, 0, 0, 0, 0, down,
                                    MPI_STATUS_IGNORE));
        OK(MPI_Comm_disconnect(&down));
        CHECK_EQ(calls("cuIpcOpenMemHandle_v2"), calls("cuIpcCloseMemHandle"));
    }
    CHECK(calls("cuIpcOpenMemHandle_v2") > 0);
    MPI_Finalize();
}

// What the first two rounds have opened for good (a home segment, say) is not opened again.
MPI_CASE(memory_of_spawned_jobs_is_given_back, 2) {
    const int rounds = static_cast<int>(gantry::seeds(5, 1000));
    int descriptors = 0, mappings = 0;
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm down = spawn_case("child_leaves", 1);
        if (rank() == 0) {
            int back = -1;
            OK(MPI_Sendrecv(&round, 1, MPI_INT, 0, 0, &back, 1, MPI_INT, 0, 0, down,
                            MPI_STATUS_IGNORE));
            CHECK_EQ(back, round);
        }
        OK(MPI_Comm_disconnect(&down));
        if (round == 1) {
            descriptors = open_descriptors();
            mappings = shared_mappings();
        }
    }
    CHECK_EQ(open_descriptors(), descriptors);
    CHECK_EQ(shared_mappings(), mappings);
}

MPI_CASE_CHILD(child_of_several, 3) {
    int* number = nullptr;
    int found = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found));
    CHECK(found);
    if (found) CHECK_EQ(*number, rank() == 0 ? 0 : 1);
    MPI_Comm up = parent();
    OK(MPI_Barrier(up));
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE(several_programs_are_spawned_as_one_job, 2) {
    const std::string program = this_program();
    std::string child = "child_of_several";
    char* commands[] = {const_cast<char*>(program.c_str()), const_cast<char*>(program.c_str())};
    char* arguments[] = {child.data(), nullptr};
    char** all_arguments[] = {arguments, arguments};
    const int ranks[] = {1, 2};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int codes[3] = {-1, -1, -1};
    MPI_Comm down = MPI_COMM_NULL;
    OK(MPI_Comm_spawn_multiple(2, commands, all_arguments, ranks, infos, 1, MPI_COMM_WORLD, &down,
                               codes));
    for (const int code : codes)
        CHECK_EQ(code, MPI_SUCCESS);
    int others = 0;
    OK(MPI_Comm_remote_size(down, &others));
    CHECK_EQ(others, 3);
    OK(MPI_Barrier(down));
    OK(MPI_Comm_disconnect(&down));
}

namespace {

// Everybody puts its number into all windows, and counts at the first.
void use_window(MPI_Comm all) {
    constexpr int kTimes = 50;
    int place = 0, together = 0;
    MPI_Comm_rank(all, &place);
    MPI_Comm_size(all, &together);
    int* memory = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    OK(MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * (together + 1), sizeof(int),
                        MPI_INFO_NULL, all, &memory, &window));
    memory[together] = 0;
    OK(MPI_Win_fence(0, window));
    for (int target = 0; target < together; ++target)
        OK(MPI_Put(&place, 1, MPI_INT, target, place, 1, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < together; ++i)
        CHECK_EQ(memory[i], i);
    const int one = 1;
    int counted = 0;
    for (int i = 0; i < kTimes; ++i) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, together, 1, MPI_INT, MPI_SUM, window));
        OK(MPI_Win_unlock(0, window));
    }
    OK(MPI_Barrier(all));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
    OK(MPI_Get(&counted, 1, MPI_INT, 0, together, 1, MPI_INT, window));
    OK(MPI_Win_unlock(0, window));
    CHECK_EQ(counted, kTimes * together);
    OK(MPI_Win_free(&window));
}

}  // namespace

MPI_CASE_CHILD(child_uses_a_window, 2) {
    MPI_Comm up = parent(), all = MPI_COMM_NULL;
    OK(MPI_Intercomm_merge(up, 1, &all));
    use_window(all);
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Comm_disconnect(&up));
}

// The first ranks of both jobs have the same number in their jobs, and want the same lock.
MPI_CASE(a_window_spans_two_jobs, 2) {
    MPI_Comm down = spawn_case("child_uses_a_window", 2), all = MPI_COMM_NULL;
    OK(MPI_Intercomm_merge(down, 0, &all));
    use_window(all);
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Comm_disconnect(&down));
}

MPI_CASE_CHILD(child_of_soft, 2) {
    MPI_Comm up = parent();
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE(soft_asks_for_the_largest_number_that_will_do, 1) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "soft", "1,2:8:4,9"));
    std::string child = "child_of_soft";
    char* arguments[] = {child.data(), nullptr};
    int codes[5];
    MPI_Comm down = MPI_COMM_NULL;
    OK(MPI_Comm_spawn(this_program().c_str(), arguments, 5, info, 0, MPI_COMM_WORLD, &down, codes));
    OK(MPI_Info_free(&info));
    for (int i = 0; i < 5; ++i)
        CHECK_EQ(codes[i], i < 2 ? MPI_SUCCESS : MPI_ERR_SPAWN);
    OK(MPI_Comm_disconnect(&down));
}

// Its parents said how its errors end, and which memory it would use.
MPI_CASE_CHILD(child_returns_errors, 3) {
    MPI_Comm up = parent();
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF, up}) {
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
        OK(MPI_Comm_get_errhandler(comm, &handler));
        CHECK(handler == MPI_ERRORS_RETURN);
    }
    // A call without an object.
    void* memory = nullptr;
    CHECK_EQ(error_class(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory)), MPI_ERR_ARG);
    char kinds[256] = {};
    int length = sizeof kinds, flag = 0;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "mpi_memory_alloc_kinds", &length, kinds, &flag));
    CHECK_EQ(flag, 1);
    const std::string all = std::string(",") + kinds + ",";
    for (const char* kind : {",mpi,", ",system,", ",cuda:device,"})
        CHECK(all.find(kind) != std::string::npos);
    CHECK(all.find("level_zero") == std::string::npos);
    OK(MPI_Comm_disconnect(&up));
}

MPI_CASE_CHILD(child_aborts_by_default, 3) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    MPI_Comm up = parent();
    OK(MPI_Comm_disconnect(&up));
}

// Each program has the handler of its own info object.
MPI_CASE(the_initial_error_handler_of_a_job_is_what_its_parents_say, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Info infos[2];
    for (MPI_Info& info : infos)
        OK(MPI_Info_create(&info));
    OK(MPI_Info_set(infos[1], "mpi_initial_errhandler", "mpi_errors_return"));
    OK(MPI_Info_set(infos[1], "mpi_memory_alloc_kinds", "cuda:device,level_zero:device"));
    std::string program = this_program(), first = "child_aborts_by_default",
                second = "child_returns_errors";
    char* commands[] = {program.data(), program.data()};
    char *of_first[] = {first.data(), nullptr}, *of_second[] = {second.data(), nullptr};
    char** arguments[] = {of_first, of_second};
    const int ranks[] = {1, 2};
    MPI_Comm down = MPI_COMM_NULL;
    OK(MPI_Comm_spawn_multiple(2, commands, arguments, ranks, infos, 0, MPI_COMM_WORLD, &down,
                               MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&down));
    OK(MPI_Info_set(infos[1], "mpi_initial_errhandler", "mpi_errors_vanish"));
    CHECK_EQ(error_class(MPI_Comm_spawn(program.c_str(), of_second, 1, infos[1], 0, MPI_COMM_WORLD,
                                        &down, MPI_ERRCODES_IGNORE)),
             MPI_ERR_INFO_VALUE);
    for (MPI_Info& info : infos)
        OK(MPI_Info_free(&info));
}

MPI_CASE(what_cannot_be_spawned_is_an_error_on_all_ranks, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Comm down = MPI_COMM_WORLD;
    int codes[2] = {0, 0};
    CHECK_EQ(error_class(MPI_Comm_spawn("./no such program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 1,
                                        MPI_COMM_WORLD, &down, codes)),
             MPI_ERR_SPAWN);
    CHECK(down == MPI_COMM_NULL);
    CHECK_EQ(codes[1], MPI_ERR_SPAWN);
    CHECK_EQ(error_class(MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0,
                                        MPI_COMM_WORLD, &down, MPI_ERRCODES_IGNORE)),
             MPI_ERR_SPAWN);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "host", "nowhere.invalid"));
    CHECK_EQ(error_class(MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 1, info, 0,
                                        MPI_COMM_WORLD, &down, MPI_ERRCODES_IGNORE)),
             MPI_ERR_SPAWN);
    OK(MPI_Info_free(&info));
}

}  // namespace mpi_tests
