// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions (MPI 5.0 section 11.3). They share the engine with the world model and with each other;
// the engine starts with the first of them and, once a session has used it, stays until
// MPI_Finalize or the end of the process. It is not started again: a launcher that was told that a
// process is done does not take it back, and MPI_Finalize cannot put off telling it, since programs
// may end by _exit or a signal afterwards. Sessions after MPI_Finalize therefore need one that was
// open then (docs/user/getting-started.md section 6).
#include "mpi/session/session.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <numeric>

namespace gantry::mpi {
namespace {

constexpr std::string_view kWorldSet = "mpi://WORLD";
constexpr std::string_view kSelfSet = "mpi://SELF";
constexpr std::string_view kSets[] = {kWorldSet, kSelfSet};

// The standard's key of the thread level, and the name that MPICH has for it.
constexpr std::string_view kThreadKeys[] = {"thread_level", "mpi_thread_support_level"};
constexpr std::pair<std::string_view, int> kThreadLevels[] = {
    {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
    {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
    {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
    {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE}};

// The level that the program asks for. Who does not ask has no threads that call MPI at once, unless
// the process said so before (MPI_Init_thread, another session).
int thread_level_for(const InfoPairs& hints, const Executor& executor) {
    for (const std::string_view key : kThreadKeys)
        if (const std::string* wanted = value_of(hints, key))
            for (const auto& [name, level] : kThreadLevels)
                if (name == *wanted) return level;
    return executor.several_threads() ? MPI_THREAD_MULTIPLE : kThreadsUnasked;
}

std::string_view name_of_level(int wanted) {
    for (const auto& [name, level] : kThreadLevels)
        if (level == wanted) return name;
    return {};
}

Status no_memory(const char* what) {
    return failure(MPI_ERR_NO_MEM, "out of memory for {}", what);
}

Task<Status> open_session(Executor& executor, Engine* engine, InfoPairs hints,
                          Errhandler* errhandler, MPI_Session* handle) {
    Status started = co_await engine->need_start(executor);
    GANTRY_CO_TRY(started);
    // Programs ask MPI_COMM_WORLD for their rank before they have made a communicator of a session.
    Status world = make_world(*engine);
    GANTRY_CO_TRY(world);
    Session* session = create(process().sessions);
    if (session == nullptr) co_return no_memory("a session");
    session->engine = engine;
    session->errhandler = retain(errhandler);
    set_pair(session->hints, kMemoryKindsKey, kMemoryKinds);
    take_hints(session->hints, hints);
    session->thread_level = thread_level_for(hints, executor);
    session->send_buffer = std::make_shared<SendBuffer>();
    Status raised = raise_boundary(*engine, session->thread_level);
    if (!raised.ok()) {
        release(session->errhandler);
        process().sessions.destroy(session);
        co_return raised;
    }
    ++process().sessions_open;
    *handle = session->handle;
    co_return success();
}

Task<Status> close_session(Executor& executor, Engine* engine, MPI_Session* handle) {
    Status drained = co_await engine->messenger().drain(executor);
    GANTRY_CO_TRY(drained);
    Session* session = find(*handle);
    release(session->errhandler);
    process().sessions.destroy(session);
    --process().sessions_open;
    if (!process().running()) drop_boundary();
    *handle = MPI_SESSION_NULL;
    co_return success();
}

bool same_set(std::string_view given, std::string_view known) {
    // Names of sets are compared without regard to case (they are URIs).
    return std::equal(given.begin(), given.end(), known.begin(), known.end(),
                      [](char a, char b) { return std::tolower(a) == std::tolower(b); });
}

Status unknown_set(const char* name) {
    return failure(MPI_ERR_ARG,
                   "there is no process set {}; this job has mpi://WORLD and mpi://SELF", name);
}

Task<Status> create_from(Executor& executor, Engine* engine, std::shared_ptr<p2p::Group> members,
                         int tag, Errhandler* errhandler, InfoPairs hints,
                         std::shared_ptr<SendBuffer> session_buffer, MPI_Comm* newcomm) {
    const coll::Team team{&engine->messenger(), &engine->transfer(), members.get(), tag};
    std::uint32_t context = 0;
    Status shared = co_await share_context(executor, *engine, team, &context);
    GANTRY_CO_TRY(shared);
    Comm* made = make_comm(*engine, context, members->peers, members->rank, errhandler);
    if (made == nullptr) co_return no_memory("a communicator");
    take_hints(made->hints, hints);
    made->session_buffer = std::move(session_buffer);
    *newcomm = made->handle;
    co_return success();
}

}  // namespace

Pending session_init(Info* info, Errhandler& errhandler, MPI_Session* session) {
    Process& p = process();
    GANTRY_TRY(need_engine());
    if (p.engine->stopped())
        return failure(MPI_ERR_OTHER,
                       "MPI was finalised and has left the job; a session that is open during "
                       "MPI_Finalize keeps MPI there, and more can be opened then");
    InfoPairs hints;
    if (info != nullptr) hints = info->pairs;
    return Pending(*p.engine, open_session(p.engine->executor(), p.engine.get(), std::move(hints),
                                           &errhandler, session));
}

Pending session_finalize(MPI_Session* session) {
    Engine* engine = find(*session)->engine;
    return Pending(*engine, close_session(engine->executor(), engine, session));
}

Status session_get_info(Session& session, MPI_Info* info_used) {
    InfoPairs pairs = session.hints;
    for (const std::string_view key : kThreadKeys)
        set_pair(pairs, key, name_of_level(session.thread_level));
    *info_used = make_info(std::move(pairs));
    return *info_used != MPI_INFO_NULL ? success() : no_memory("an info object");
}

Status session_get_num_psets(Session&, Info*, int* npset_names) {
    *npset_names = static_cast<int>(std::size(kSets));
    return success();
}

Status session_get_nth_pset(Session&, Info*, int n, int* pset_len, char* pset_name) {
    if (n < 0 || n >= static_cast<int>(std::size(kSets)))
        return failure(MPI_ERR_ARG, "process set number {} of {} (numbers start at 0)", n,
                       std::size(kSets));
    const std::string_view name = kSets[n];
    if (*pset_len > 0 && pset_name == nullptr)
        return failure(MPI_ERR_ARG, "argument pset_name is a null pointer, but pset_len is {}",
                       *pset_len);
    if (*pset_len > 0) copy_text(name, pset_name, static_cast<std::size_t>(*pset_len));
    *pset_len = static_cast<int>(name.size()) + 1;
    return success();
}

Status session_get_pset_info(Session& session, const char* pset_name, MPI_Info* info) {
    int size = 0;
    if (same_set(pset_name, kWorldSet))
        size = session.engine->size();
    else if (same_set(pset_name, kSelfSet))
        size = 1;
    else
        return unknown_set(pset_name);
    *info = make_info({{"mpi_size", std::to_string(size)}});
    return *info != MPI_INFO_NULL ? success() : no_memory("an info object");
}

Status group_from_session_pset(Session& session, const char* pset_name, MPI_Group* newgroup) {
    std::vector<int> peers;
    if (same_set(pset_name, kWorldSet)) {
        peers.resize(static_cast<std::size_t>(session.engine->size()));
        std::iota(peers.begin(), peers.end(), 0);
    } else if (same_set(pset_name, kSelfSet)) {
        peers = {session.engine->rank()};
    } else {
        return unknown_set(pset_name);
    }
    *newgroup = make_group(std::move(peers), session.send_buffer);
    return *newgroup != MPI_GROUP_NULL ? success() : no_memory("a group");
}

Pending comm_create_from_group(Group& group, const char* stringtag, Info* info,
                               Errhandler& errhandler, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (group.peers.empty()) return success();
    if (group.rank == MPI_UNDEFINED)
        return failure(MPI_ERR_GROUP,
                       "this process is not in the group that it makes a communicator of");
    Engine& engine = *process().engine;
    std::shared_ptr<p2p::Group> members =
        agreement_group(kEngineContext | p2p::kCollectiveContext, group.peers, group.rank);
    const int tag = agreement_tag(stringtag);
    InfoPairs hints;
    if (info != nullptr) hints = info->pairs;
    return Pending(engine,
                   create_from(engine.executor(), &engine, std::move(members), tag, &errhandler,
                               std::move(hints), group.session_buffer, newcomm));
}

}  // namespace gantry::mpi
