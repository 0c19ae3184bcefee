// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Comm_spawn and MPI_Comm_spawn_multiple (MPI 5.0 section 11.8): the root opens a port, asks the
// launcher for a job that is told of it, and accepts that job there.
#include "mpi/bodies.hpp"
#include "mpi/dynamic/ask_job.hpp"
#include "mpi/dynamic/connect.hpp"
#include "mpi/dynamic/handshake.hpp"
#include "mpi/dynamic/ports.hpp"
#include "mpi/dynamic/soft.hpp"
#include "mpi/dynamic/upbringing.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <unistd.h>

#include <climits>

namespace gantry::mpi {
namespace {

// What the root's arguments say, or why they cannot be meant.
struct Wanted {
    job::SpawnOrder order;
    Status judged;
};

void add_program(Wanted& wanted, const char* command, char** argv, int maxprocs, const Info* info) {
    job::SpawnedProgram program;
    if (command == nullptr || *command == '\0') {
        wanted.judged = failure(MPI_ERR_SPAWN, "the command to spawn is empty");
        return;
    }
    program.command.emplace_back(command);
    for (char** argument = argv; argument != nullptr && *argument != nullptr; ++argument)
        program.command.emplace_back(*argument);
    if (info != nullptr) program.info = info->pairs;
    wanted.judged = check_upbringing(program.info);
    if (!wanted.judged.ok()) return;
    // Relative paths are meant from where this process is, not from where the launcher is.
    char here[PATH_MAX];
    if (value_of(program.info, "wdir") == nullptr && getcwd(here, sizeof here) != nullptr)
        program.info.emplace_back("wdir", here);
    const std::string* const soft = value_of(program.info, "soft");
    Result<int> ranks =
        maxprocs < 1
            ? failure(MPI_ERR_SPAWN, "argument maxprocs is {} and must be at least 1", maxprocs)
            : (soft != nullptr ? largest_of_soft(*soft, maxprocs) : Result<int>(maxprocs));
    if (!ranks.ok()) {
        wanted.judged = ranks.status();
        return;
    }
    program.ranks = *ranks;
    wanted.order.programs.push_back(std::move(program));
}

int total(const job::SpawnOrder& order) {
    int ranks = 0;
    for (const job::SpawnedProgram& program : order.programs)
        ranks += program.ranks;
    return ranks;
}

// The root's part, up to the bridge to the root of the new job.
Task<Status> start_job(Executor& executor, Engine& engine, Wanted wanted,
                       std::unique_ptr<SocketBridge>* bridge) {
    GANTRY_CO_TRY(wanted.judged);
    Result<std::string> port = engine.ports().open({});
    GANTRY_CO_TRY(port.status());
    wanted.order.parent_port = upbringing(wanted.order, *port);
    Task<Status> question = engine.job().spawn(executor, std::move(wanted.order));
    Status done = co_await ask_job(executor, engine, std::move(question));
    if (done.ok()) done = co_await engine.ports().accept(executor, engine, *port, bridge);
    Status closed = engine.ports().close(*port);
    GANTRY_CO_TRY(done);
    co_return closed;
}

// How it ended for each of the processes; -1: how many there are is not known here.
void fill(int* codes, int count, int value) {
    if (codes == MPI_ERRCODES_IGNORE) return;
    for (int i = 0; i < count; ++i)
        codes[i] = value;
}

// `asked`: the most processes that the root asks for; only the root knows.
Task<Status> spawn(Executor& executor, Introduction who, Wanted wanted, int asked, int* codes,
                   MPI_Comm* newcomm) {
    Engine& engine = *who.comm->engine;
    std::unique_ptr<SocketBridge> bridge;
    Status judged;
    std::string counts = fmt::format("{} {}", total(wanted.order), asked);
    if (who.team.rank() == who.root)
        judged = co_await start_job(executor, engine, std::move(wanted), &bridge);
    // Everybody's array has as many places as the root asks for.
    const coll::Team team = who.comm->team();
    Status told = co_await tell(executor, team, who.root, &counts);
    GANTRY_CO_TRY(told);
    const int started = std::atoi(counts.c_str());
    const int places = std::atoi(counts.c_str() + counts.find(' '));
    Status done = co_await introduce(executor, who, bridge.get(), judged, newcomm);
    fill(codes, places, MPI_ERR_SPAWN);
    if (done.ok()) fill(codes, started, MPI_SUCCESS);
    co_return done;
}

Status check_local(const Comm& comm) {
    if (!comm.is_inter()) return success();
    return failure(MPI_ERR_COMM,
                   "processes are spawned by a communicator of one group, and comm has two");
}

}  // namespace

Pending comm_spawn(const char* command, char** argv, int maxprocs, Info* info, int root, Comm& comm,
                   MPI_Comm* intercomm, int* array_of_errcodes) {
    *intercomm = MPI_COMM_NULL;
    GANTRY_TRY(check_local(comm));
    const Introduction who{&comm, comm.team(), root};
    Wanted wanted;
    if (comm.rank() == root) add_program(wanted, command, argv, maxprocs, info);
    return Pending(*comm.engine, spawn(comm.engine->executor(), who, std::move(wanted), maxprocs,
                                       array_of_errcodes, intercomm));
}

Pending comm_spawn_multiple(int count, char** array_of_commands, char*** array_of_argv,
                            const int* array_of_maxprocs, const MPI_Info* array_of_info, int root,
                            Comm& comm, MPI_Comm* intercomm, int* array_of_errcodes) {
    *intercomm = MPI_COMM_NULL;
    GANTRY_TRY(check_local(comm));
    const Introduction who{&comm, comm.team(), root};
    Wanted wanted;
    int asked = 0;
    if (comm.rank() == root) {
        if (count < 1)
            wanted.judged =
                failure(MPI_ERR_COUNT, "argument count is {} and must be at least 1", count);
        for (int i = 0; i < count && wanted.judged.ok(); ++i) {
            char** const argv = array_of_argv != MPI_ARGVS_NULL ? array_of_argv[i] : nullptr;
            asked += array_of_maxprocs[i];
            add_program(wanted, array_of_commands[i], argv, array_of_maxprocs[i],
                        find(array_of_info[i]));
        }
    }
    return Pending(*comm.engine, spawn(comm.engine->executor(), who, std::move(wanted), asked,
                                       array_of_errcodes, intercomm));
}

}  // namespace gantry::mpi
