// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init to MPI_Finalize (MPI 5.0 section 11.2).
#include "mpi/bodies.hpp"
#include "mpi/dynamic/connect.hpp"
#include "mpi/dynamic/upbringing.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace gantry::mpi {
namespace {

Comm* predefined_comm(Engine& engine, MPI_Comm handle, const char* name, std::uint32_t context,
                      std::vector<int> peers, int rank) {
    Process& p = process();
    Comm* comm = make_comm(engine, context, std::move(peers), rank, p.initial_errhandler);
    if (comm == nullptr) return nullptr;
    comm->handle = handle;
    comm->predefined = true;
    comm->name = name;
    return comm;
}

}  // namespace

// Of a spawned job: the one that its parents named.
static Status choose_initial_errhandler(Engine& engine) {
    Result<std::string> told = engine.job().parent_port();
    GANTRY_TRY(told.status());
    if (Errhandler* const named = initial_errhandler(*told, std::max(engine.job().app_number(), 0)))
        process().initial_errhandler = named;
    return success();
}

Status make_world(Engine& engine) {
    Process& p = process();
    if (p.world != nullptr) return success();
    GANTRY_TRY(choose_initial_errhandler(engine));
    std::vector<int> everybody(static_cast<std::size_t>(engine.size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    p.world = predefined_comm(engine, MPI_COMM_WORLD, "MPI_COMM_WORLD", kWorldContext,
                              std::move(everybody), engine.rank());
    p.self =
        predefined_comm(engine, MPI_COMM_SELF, "MPI_COMM_SELF", kSelfContext, {engine.rank()}, 0);
    if (p.world == nullptr || p.self == nullptr)
        return failure(MPI_ERR_NO_MEM, "out of memory for MPI_COMM_WORLD");
    return success();
}

namespace {

Task<Status> start_world(Executor& executor, Engine& engine) {
    Status started = co_await engine.need_start(executor);
    GANTRY_CO_TRY(started);
    Status made = make_world(engine);
    GANTRY_CO_TRY(made);
    Status raised = raise_boundary(engine, process().thread_level);
    GANTRY_CO_TRY(raised);
    process().phase = Process::Phase::running;
    Status connected = co_await connect_to_parents(executor, engine);
    co_return connected;
}

// Ends the world model; the engine goes too unless a session still uses it.
Task<Status> stop_world(Executor& executor, Engine& engine) {
    Process& p = process();
    if (p.sessions_open == 0) {
        drop_boundary();
        Status stopped = co_await engine.stop(executor);
        GANTRY_CO_TRY(stopped);
    }
    if (p.parent != nullptr) release(take_handle(p.parent));
    release(std::exchange(p.world, nullptr));
    release(std::exchange(p.self, nullptr));
    p.phase = Process::Phase::finalized;
    co_return success();
}

}  // namespace

Pending init_thread(int*, char***, int required, int* provided) {
    Process& p = process();
    if (p.phase == Process::Phase::running)
        return failure(MPI_ERR_OTHER, "MPI is initialised already; MPI_Init may be called once");
    if (p.phase == Process::Phase::finalized)
        return failure(MPI_ERR_OTHER,
                       "MPI was finalised; MPI_Init can be called once, before MPI_Finalize");
    GANTRY_TRY(need_engine());
    p.main_thread = std::this_thread::get_id();
    p.thread_level = required;
    *provided = p.thread_level;
    return Pending(*p.engine, start_world(p.engine->executor(), *p.engine));
}

Pending init(int* argc, char*** argv) {
    int provided = MPI_THREAD_SINGLE;
    return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

Pending finalize() {
    Process& p = process();
    if (p.phase != Process::Phase::running)
        return failure(MPI_ERR_OTHER, "MPI_Finalize without a running MPI");
    // What hangs on MPI_COMM_SELF ends first, while everything still works (MPI 5.0 section 11.4).
    GANTRY_TRY(p.self->attributes.remove_all(MPI_COMM_SELF));
    GANTRY_TRY(p.world->attributes.remove_all(MPI_COMM_WORLD));
    p.engine->checks().leaks();
    return Pending(*p.engine, stop_world(p.engine->executor(), *p.engine));
}

Status initialized(int* flag) {
    *flag = process().phase != Process::Phase::before;
    return success();
}

Status finalized(int* flag) {
    *flag = process().phase == Process::Phase::finalized;
    return success();
}

Status query_thread(int* provided) {
    *provided = process().thread_level;
    return success();
}

Status is_thread_main(int* flag) {
    *flag = process().main_thread == std::this_thread::get_id();
    return success();
}

Status abort(Comm& comm, int errorcode) {
    Process& p = process();
    // A shell shows the low eight bits of an exit code; a failure must not look like success.
    const int code = (errorcode & 0xff) != 0 ? errorcode & 0xff : 1;
    const std::string reason =
        fmt::format("MPI_Abort({}, {}) on rank {}",
                    comm.name.empty() ? "a communicator" : comm.name, errorcode, p.engine->rank());
    drop_boundary();
    std::fflush(nullptr);
    p.engine->job().abort(code, reason);
    _exit(code);
}

}  // namespace gantry::mpi
