// SPDX-License-Identifier: BSD-3-Clause
//
// Names of services, which the launcher keeps (MPI 5.0 section 11.9.4).
#include "mpi/bodies.hpp"
#include "mpi/dynamic/ask_job.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

namespace gantry::mpi {
namespace {

Task<Status> look_up(Executor& executor, Engine& engine, std::string service, char* port_name) {
    std::string port;
    Task<Status> question = engine.job().lookup_name(executor, std::move(service), &port);
    Status found = co_await ask_job(executor, engine, std::move(question));
    GANTRY_CO_TRY(found);
    copy_text(port, port_name, MPI_MAX_PORT_NAME, nullptr);
    co_return success();
}

}  // namespace

Pending publish_name(const char* service_name, Info*, const char* port_name) {
    Engine& engine = *process().engine;
    Task<Status> question = engine.job().publish_name(engine.executor(), service_name, port_name);
    return Pending(engine, ask_job(engine.executor(), engine, std::move(question)));
}

Pending unpublish_name(const char* service_name, Info*, const char*) {
    Engine& engine = *process().engine;
    Task<Status> question = engine.job().unpublish_name(engine.executor(), service_name);
    return Pending(engine, ask_job(engine.executor(), engine, std::move(question)));
}

Pending lookup_name(const char* service_name, Info*, char* port_name) {
    Engine& engine = *process().engine;
    return Pending(engine, look_up(engine.executor(), engine, service_name, port_name));
}

}  // namespace gantry::mpi
