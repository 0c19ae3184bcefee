// SPDX-License-Identifier: BSD-3-Clause
//
// The tool information interface as a tool uses it: before, during and after MPI. Counts are exact for
// the messages of a case.
#include "refused.hpp"
#include "test.hpp"
#include "tool.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr int kMessages = 12;
constexpr int kInts = 100;
constexpr std::uint64_t kBytes = kMessages * kInts * sizeof(int);

void send_and_receive(MPI_Comm comm, int messages = kMessages) {
    std::vector<int> data(kInts, 5);
    for (int i = 0; i < messages; ++i)
        if (rank() == 0)
            OK(MPI_Send(data.data(), kInts, MPI_INT, 1, i, comm));
        else
            OK(MPI_Recv(data.data(), kInts, MPI_INT, 0, i, comm, MPI_STATUS_IGNORE));
}

}  // namespace

MPI_CASE(tools_count_messages_and_their_bytes_exactly, 2) {
    const Tool tool;
    Counted sent(tool, "messages_sent"), received(tool, "messages_received");
    Counted bytes_sent(tool, "bytes_sent"), bytes_received(tool, "bytes_received");
    Counted at_once(tool, "messages_sent_at_once"), eager(tool, "messages_received_eager");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    tool.start_all();
    send_and_receive(MPI_COMM_WORLD);
    tool.stop_all();
    OK(MPI_Barrier(MPI_COMM_WORLD));  // stopped: not counted
    const bool sends = rank() == 0;
    CHECK_EQ(sent.read(), sends ? kMessages : 0);
    CHECK_EQ(at_once.read(), sends ? kMessages : 0);
    CHECK_EQ(bytes_sent.read(), sends ? kBytes : 0);
    CHECK_EQ(received.read(), sends ? 0 : kMessages);
    CHECK_EQ(eager.read(), sends ? 0 : kMessages);
    CHECK_EQ(bytes_received.read(), sends ? 0 : kBytes);
    tool.start_all();
    send_and_receive(MPI_COMM_WORLD, 1);
    CHECK_EQ(sent.read(), sends ? kMessages + 1 : 0);  // goes on from where it was stopped
    tool.reset_all();
    CHECK_EQ(sent.read(), 0);
    CHECK_EQ(received.read(), 0);
}

MPI_CASE(tools_tell_communicators_apart, 2) {
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    {
        const Tool tool;
        Counted of_comm(tool, "comm_messages_sent", comm),
            of_world(tool, "comm_messages_sent", MPI_COMM_WORLD);
        Counted bytes(tool, "comm_bytes_received", comm),
            messages(tool, "comm_messages_received", comm);
        tool.start_all();
        send_and_receive(comm);
        // A message that a matched probe takes belongs to its communicator, too.
        int value = 3;
        if (rank() == 0) {
            OK(MPI_Send(&value, 1, MPI_INT, 1, 99, comm));
        } else {
            MPI_Message message;
            OK(MPI_Mprobe(0, 99, comm, &message, MPI_STATUS_IGNORE));
            OK(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        }
        send_and_receive(MPI_COMM_WORLD, 2);
        const bool sends = rank() == 0;
        CHECK_EQ(of_comm.read(), sends ? kMessages + 1 : 0);
        CHECK_EQ(of_world.read(), sends ? 2 : 0);
        CHECK_EQ(messages.read(), sends ? 0 : kMessages + 1);
        CHECK_EQ(bytes.read(), sends ? 0 : kBytes + sizeof(int));
        OK(MPI_Comm_free(&comm));  // the handles keep what they count
        CHECK_EQ(of_comm.read(), sends ? kMessages + 1 : 0);
    }
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(tools_see_how_long_the_queues_are_and_were, 2) {
    const Tool tool;
    Counted unexpected(tool, "unexpected_messages"), most(tool, "unexpected_messages_peak");
    Counted posted(tool, "posted_receives"), most_posted(tool, "posted_receives_peak");
    Counted later(tool, "unexpected_messages_peak");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    most.start();
    most_posted.start();
    int values[kMessages] = {};
    if (rank() == 0) {
        for (int i = 0; i < kMessages; ++i)
            OK(MPI_Send(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD));
        // Nothing else goes there meanwhile.
        OK(MPI_Recv(nullptr, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        return;
    }
    // Messages of one sender come in order: with the last one all are there.
    OK(MPI_Probe(0, kMessages - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(unexpected.read(), kMessages);
    for (int i = 0; i < kMessages; ++i)
        OK(MPI_Recv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(unexpected.read(), 0);
    later.start();
    CHECK_EQ(most.read(), kMessages);
    CHECK_EQ(later.read(), 0);
    MPI_Request requests[3];
    for (int i = 0; i < 3; ++i)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, 1000 + i, MPI_COMM_WORLD, &requests[i]));
    CHECK_EQ(posted.read(), 3);
    for (MPI_Request& request : requests) {
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK_EQ(posted.read(), 0);
    CHECK_EQ(most_posted.read(), 3);
    CHECK_EQ(most_posted.read_and_reset(), 3);
    CHECK_EQ(most_posted.read(), 0);
    OK(MPI_Send(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
}

MPI_CASE_OWN_INIT(tools_set_parameters_before_init_and_a_few_later, 2) {
    unsetenv("GANTRY_EAGER_LIMIT");
    {
        const Tool tool;
        CHECK_EQ(tool.parameter<unsigned long long>("GANTRY_EAGER_LIMIT"), 0);
        OK(tool.set("GANTRY_EAGER_LIMIT", 1024ull));
        CHECK_EQ(tool.parameter<unsigned long long>("GANTRY_EAGER_LIMIT"), 1024);
        CHECK_EQ(tool.parameter<int>("GANTRY_IPC"), 1);
        CHECK_EQ(tool.set("GANTRY_IPC", 7), MPI_T_ERR_INVALID);
        CHECK_EQ(tool.set("GANTRY_DEPTH", MPI_Count{-3}), MPI_T_ERR_INVALID);
        CHECK_EQ(tool.phase(), 0);
    }
    start_mpi();
    const Tool tool;
    // The smaller message leaves at once, the larger one waits for its receiver.
    Counted at_once(tool, "messages_sent_at_once"), sent(tool, "messages_sent");
    tool.start_all();
    std::vector<char> data(2048);
    for (int bytes : {1024, 2048})
        if (rank() == 0)
            OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(at_once.read(), rank() == 0 ? 1 : 0);
    CHECK_EQ(sent.read(), rank() == 0 ? 2 : 0);
    CHECK_EQ(tool.parameter<unsigned long long>("GANTRY_EAGER_LIMIT"), 1024);
    CHECK_EQ(tool.set("GANTRY_EAGER_LIMIT", 4096ull), MPI_T_ERR_CVAR_SET_NOT_NOW);
    OK(tool.set("GANTRY_CLAIM_WAIT", MPI_Count{12345}));
    CHECK_EQ(tool.parameter<MPI_Count>("GANTRY_CLAIM_WAIT"), 12345);
    CHECK_EQ(tool.set("GANTRY_CLAIM_WAIT", MPI_Count{-1}), MPI_T_ERR_INVALID);
    CHECK_EQ(tool.phase(), 1);
    MPI_Finalize();
    CHECK_EQ(tool.parameter<unsigned long long>("GANTRY_EAGER_LIMIT"), 1024);
    CHECK_EQ(sent.read() >= (rank() == 0 ? 2u : 0u), true);
    CHECK_EQ(tool.phase(), 2);
}

MPI_CASE_OWN_INIT(tools_start_to_record_paths_while_the_program_runs, 2) {
    // %r: each rank its own.
    std::string folder = std::string(P_tmpdir) + "/gantry-tool-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) fail(__FILE__, __LINE__, "no temporary folder");
    const std::string file = folder + "/paths-%r.json";
    start_mpi();
    {
        const Tool tool;
        OK(tool.set_text("GANTRY_EXPLAIN_FILE", file));
        CHECK_EQ(tool.parameter_text("GANTRY_EXPLAIN_FILE") == file, true);
    }
    send_and_receive(MPI_COMM_WORLD, 1);
    const std::string mine = folder + "/paths-" + std::to_string(rank()) + ".json";
    MPI_Finalize();
    // A small host message is recorded by its sender alone.
    std::FILE* written = std::fopen(mine.c_str(), "r");
    CHECK_EQ(written != nullptr || rank() != 0, true);
    if (written != nullptr) std::fclose(written);
    std::remove(mine.c_str());
    std::remove(folder.c_str());
}

MPI_CASE(tools_mistakes_are_codes_and_end_nothing, 1) {
    // Errors of this communicator end the job; none of these is its.
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    int number = 0, index = 0, count = 0, provided = 0;
    CHECK_EQ(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided));
    CHECK_EQ(provided, MPI_THREAD_SERIALIZED);
    OK(MPI_T_finalize());  // counted: still initialised
    OK(MPI_T_cvar_get_num(&number));
    CHECK_EQ(MPI_T_cvar_get_num(nullptr), MPI_T_ERR_INVALID);
    MPI_T_cvar_handle control = MPI_T_CVAR_HANDLE_NULL;
    CHECK_EQ(MPI_T_cvar_handle_alloc(number, nullptr, &control, &count), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_cvar_handle_alloc(-1, nullptr, &control, &count), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_cvar_handle_free(&control), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_cvar_read(reinterpret_cast<MPI_T_cvar_handle>(&number), &count),
             MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_cvar_get_index("no such thing", &index), MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_cvar_handle_alloc(0, nullptr, &control, &count));
    const MPI_T_cvar_handle stale = control;
    OK(MPI_T_cvar_handle_free(&control));
    CHECK_EQ(control == MPI_T_CVAR_HANDLE_NULL, true);
    CHECK_EQ(MPI_T_cvar_read(stale, &count), MPI_T_ERR_INVALID_HANDLE);

    MPI_T_pvar_session one, other, none = MPI_T_PVAR_SESSION_NULL;
    OK(MPI_T_pvar_session_create(&one));
    OK(MPI_T_pvar_session_create(&other));
    MPI_T_pvar_handle counter, level, bound;
    unsigned long long value = 0;
    OK(MPI_T_pvar_get_index("messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index));
    CHECK_EQ(MPI_T_pvar_get_index("messages_sent", MPI_T_PVAR_CLASS_LEVEL, &count),
             MPI_T_ERR_INVALID_NAME);
    CHECK_EQ(MPI_T_pvar_handle_alloc(none, index, nullptr, &counter, &count),
             MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_pvar_handle_alloc(one, index, nullptr, &counter, &count));
    CHECK_EQ(MPI_T_pvar_read(other, counter, &value), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_pvar_read(one, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_get_index("requests", MPI_T_PVAR_CLASS_LEVEL, &index));
    OK(MPI_T_pvar_handle_alloc(one, index, nullptr, &level, &count));
    CHECK_EQ(MPI_T_pvar_start(one, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_EQ(MPI_T_pvar_stop(one, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_EQ(MPI_T_pvar_reset(one, level), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_EQ(MPI_T_pvar_write(one, level, &value), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_EQ(MPI_T_pvar_readreset(one, level, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
    OK(MPI_T_pvar_start(one, MPI_T_PVAR_ALL_HANDLES));
    value = 77;
    OK(MPI_T_pvar_write(one, counter, &value));
    value = 0;
    OK(MPI_T_pvar_read(one, counter, &value));
    CHECK_EQ(value, 77);
    OK(MPI_T_pvar_get_index("comm_bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, &index));
    MPI_Comm null = MPI_COMM_NULL;
    CHECK_EQ(MPI_T_pvar_handle_alloc(one, index, &null, &bound, &count), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_pvar_handle_alloc(one, index, nullptr, &bound, &count), MPI_T_ERR_INVALID);
    // A session takes its handles with it.
    OK(MPI_T_pvar_session_free(&one));
    CHECK_EQ(one == MPI_T_PVAR_SESSION_NULL, true);
    CHECK_EQ(MPI_T_pvar_read(other, counter, &value), MPI_T_ERR_INVALID_HANDLE);

    OK(MPI_T_event_get_num(&number));
    CHECK_EQ(number, 0);
    MPI_T_event_registration registration = nullptr;
    CHECK_EQ(MPI_T_event_handle_alloc(0, nullptr, MPI_INFO_NULL, &registration),
             MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_event_handle_free(registration, nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_get_index("none", &index), MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_source_get_num(&number));
    CHECK_EQ(number, 1);
    MPI_Count before = 0, after = 0;
    OK(MPI_T_source_get_timestamp(0, &before));
    OK(MPI_T_source_get_timestamp(0, &after));
    CHECK_EQ(before > 0 && before <= after, true);
    CHECK_EQ(MPI_T_source_get_timestamp(1, &after), MPI_T_ERR_INVALID_INDEX);
    // The last end takes everything, and a new beginning knows nothing of it.
    OK(MPI_T_finalize());
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    CHECK_EQ(MPI_T_pvar_session_free(&other), MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_finalize());
}

// Threads of a tool read and write beside the program's own, which did not ask for threads.
MPI_CASE(tools_have_threads_of_their_own, 2) {
    int provided = -1, level = -1;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&level));
    CHECK_EQ(level, MPI_THREAD_SINGLE);
    std::vector<std::thread> watchers;
    for (int watcher = 0; watcher < 2; ++watcher)
        watchers.emplace_back([] {
            const Tool tool;
            Counted sent(tool, "messages_sent");
            sent.start();
            std::uint64_t before = 0;
            for (int look = 0; look < 100; ++look) {
                const std::uint64_t now = sent.read();
                CHECK_EQ(now >= before, true);
                before = now;
                OK(tool.set<int>("GANTRY_EXPLAIN", 0));
            }
        });
    for (int round = 0; round < 30; ++round) {
        int mine = round, other = -1;
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank(), 0, &other, 1, MPI_INT, 1 - rank(), 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(other, round);
    }
    for (std::thread& watcher : watchers)
        watcher.join();
    OK(MPI_T_finalize());
}
