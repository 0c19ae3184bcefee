// SPDX-License-Identifier: BSD-3-Clause
//
// Ports, MPI_Comm_accept, MPI_Comm_connect and MPI_Comm_join (MPI 5.0 section 11.9).
#include "mpi/dynamic/connect.hpp"

#include "mpi/bodies.hpp"
#include "mpi/dynamic/handshake.hpp"
#include "mpi/dynamic/ports.hpp"
#include "mpi/dynamic/upbringing.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <fcntl.h>

#include <charconv>

namespace gantry::mpi {

Task<Status> introduce(Executor& executor, Introduction who, Bridge* bridge, Status judged,
                       MPI_Comm* newcomm) {
    Engine& engine = *who.comm->engine;
    Handshake handshake;
    handshake.engine = &engine;
    handshake.local = who.team;
    handshake.leader = who.root;
    handshake.bridge = bridge;
    handshake.judged = std::move(judged);
    Met met;
    Status done = co_await meet(executor, &handshake, &met);
    GANTRY_CO_TRY(done);
    Comm* made = make_intercomm(engine, met.context, who.comm->members(), std::move(met.theirs),
                                who.comm->rank(), who.comm->errhandler);
    if (made == nullptr)
        co_return failure(MPI_ERR_NO_MEM, "out of memory for an inter-communicator");
    *newcomm = made->handle;
    co_return success();
}

namespace {

Status check_local(const Comm& comm, const char* function) {
    if (!comm.is_inter()) return success();
    return failure(MPI_ERR_COMM, "{} takes a communicator of one group, and comm has two",
                   function);
}

Nanoseconds patience_of(const Info* info, const Engine& engine) {
    const std::string* const said = info != nullptr ? value_of(info->pairs, "timeout") : nullptr;
    int seconds = 0;
    if (said != nullptr) std::from_chars(said->data(), said->data() + said->size(), seconds);
    return seconds > 0 ? seconds * kSecond : engine.config().peer_timeout;
}

Task<Status> accept_at(Executor& executor, Introduction who, std::string port, MPI_Comm* newcomm) {
    Engine& engine = *who.comm->engine;
    std::unique_ptr<SocketBridge> bridge;
    Status judged;
    if (who.team.rank() == who.root)
        judged = co_await engine.ports().accept(executor, engine, std::move(port), &bridge);
    Status done = co_await introduce(executor, who, bridge.get(), judged, newcomm);
    co_return done;
}

Task<Status> connect_at(Executor& executor, Introduction who, std::string port,
                        Nanoseconds patience, MPI_Comm* newcomm) {
    Engine& engine = *who.comm->engine;
    std::unique_ptr<SocketBridge> bridge;
    Status judged;
    if (who.team.rank() == who.root)
        judged = co_await connect_to_port(executor, engine, std::move(port), patience, &bridge);
    Status done = co_await introduce(executor, who, bridge.get(), judged, newcomm);
    co_return done;
}

Task<Status> join_over(Executor& executor, Introduction who, int descriptor, MPI_Comm* newcomm) {
    SocketBridge bridge(*who.comm->engine, job::Letters::borrowed(descriptor));
    Status done = co_await introduce(executor, who, &bridge, success(), newcomm);
    co_return done;
}

// Only the root's arguments count.
std::string port_of(const Comm& comm, int root, const char* port_name) {
    return comm.rank() == root && port_name != nullptr ? std::string(port_name) : std::string();
}

}  // namespace

Status open_port(Info* info, char* port_name) {
    Result<std::string> port =
        process().engine->ports().open(info != nullptr ? info->pairs : InfoPairs{});
    if (!port.ok()) return std::move(port).status();
    if (port->size() >= MPI_MAX_PORT_NAME)
        return failure(MPI_ERR_PORT, "the name of the port has {} characters", port->size());
    copy_text(*port, port_name, MPI_MAX_PORT_NAME, nullptr);
    return success();
}

Status close_port(const char* port_name) {
    return process().engine->ports().close(port_name);
}

Pending comm_accept(const char* port_name, Info*, int root, Comm& comm, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    GANTRY_TRY(check_local(comm, "MPI_Comm_accept"));
    const Introduction who{&comm, comm.team(), root};
    return Pending(*comm.engine, accept_at(comm.engine->executor(), who,
                                           port_of(comm, root, port_name), newcomm));
}

Pending comm_connect(const char* port_name, Info* info, int root, Comm& comm, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    GANTRY_TRY(check_local(comm, "MPI_Comm_connect"));
    const Introduction who{&comm, comm.team(), root};
    return Pending(*comm.engine,
                   connect_at(comm.engine->executor(), who, port_of(comm, root, port_name),
                              patience_of(info, *comm.engine), newcomm));
}

Pending comm_join(int fd, MPI_Comm* intercomm) {
    *intercomm = MPI_COMM_NULL;
    if (fcntl(fd, F_GETFD) < 0)
        return failure(MPI_ERR_ARG, "argument fd is {}, which is no open descriptor", fd);
    Comm& self = *process().self;
    const Introduction who{&self, self.team(), 0};
    return Pending(*self.engine, join_over(self.engine->executor(), who, fd, intercomm));
}

Task<Status> connect_to_parents(Executor& executor, Engine& engine) {
    Process& p = process();
    Result<std::string> port = engine.job().parent_port();
    GANTRY_CO_TRY(port.status());
    if (port->empty()) co_return success();
    port->resize(parents_port(*port).size());
    const Introduction who{p.world, p.world->team(), 0};
    MPI_Comm handle = MPI_COMM_NULL;
    Status connected =
        co_await connect_at(executor, who, *port, engine.config().peer_timeout, &handle);
    GANTRY_CO_TRY(connected);
    p.parent = find(handle);
    p.parent->name = "MPI_COMM_PARENT";
    co_return success();
}

}  // namespace gantry::mpi
