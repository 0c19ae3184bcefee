// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions, handles, and what is done with them.
#include "mpi/tool/performance_handle.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/tool/tool.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::mpi {
namespace tool {
namespace {

Counters counters_now() {
    const Process& p = process();
    Counters counters;
    if (p.engine != nullptr) {
        counters = p.engine->counters();
    } else if (const Result<config::Config> config = parameters_now(); config.ok()) {
        counters.host_pool_bytes = config.value().host_pool;
        counters.device_pool_bytes = config.value().device_pool;
    }
    counters.phase = static_cast<std::uint64_t>(p.phase.load());
    if (p.boundary_at_any_time != nullptr) {
        counters.threads_called = p.boundary_at_any_time->waiters().calls();
        counters.deputies_resigned = p.boundary_at_any_time->waiters().deputies_resigned();
    }
    return counters;
}

std::uint64_t of_comm(const CounterRow& row, const Comm& comm) {
    const CommCounters counters{.comm_messages_sent = comm.traffic.sent.messages,
                                .comm_bytes_sent = comm.traffic.sent.bytes,
                                .comm_messages_received = comm.traffic.received.messages,
                                .comm_bytes_received = comm.traffic.received.bytes};
    return counters.*row.comm_value;
}

// What the ledger says of that variable.
std::uint64_t ledger(const PerformanceHandle& handle, const Counters& counters) {
    return handle.comm != nullptr ? of_comm(*handle.row, *handle.comm)
                                  : counters.*handle.row->value;
}

bool is_peak(const PerformanceHandle& handle) {
    return handle.row->kind == CounterKind::highwatermark;
}

// The counters, once every running handle of a peak has taken it over. A peak is the level from now on.
Counters take_peaks() {
    const Counters counters = counters_now();
    the_tool().counters.for_each([&](PerformanceHandle& handle) {
        if (is_peak(handle) && handle.running)
            handle.seen = std::max(handle.seen, counters.*handle.row->value);
    });
    if (process().engine == nullptr) return counters;
    process().engine->begin_peaks_anew();
    return counters_now();
}

std::uint64_t value_of(const PerformanceHandle& handle, const Counters& counters) {
    if (is_continuous(handle.row->kind)) return ledger(handle, counters);
    const bool counts = handle.running && !is_peak(handle);
    return handle.seen + (counts ? ledger(handle, counters) - handle.since : 0);
}

void set(PerformanceHandle& handle, std::uint64_t value, const Counters& counters) {
    handle.seen = value;
    handle.since = ledger(handle, counters);
}

// Its first value: nothing counted yet, or of a peak what there is now.
void reset(PerformanceHandle& handle, const Counters& counters) {
    set(handle, is_peak(handle) ? ledger(handle, counters) : 0, counters);
}

void start(PerformanceHandle& handle, const Counters& counters) {
    if (handle.running) return;
    const std::uint64_t level = is_peak(handle) ? ledger(handle, counters) : 0;
    set(handle, std::max(handle.seen, level), counters);
    handle.running = true;
}

void stop(PerformanceHandle& handle, const Counters& counters) {
    handle.seen = value_of(handle, counters);
    handle.running = false;
}

void put(std::uint64_t value, CounterKind kind, void* to) {
    if (kind == CounterKind::state) {
        const int state = static_cast<int>(value);
        std::memcpy(to, &state, sizeof state);
    } else {
        std::memcpy(to, &value, sizeof value);
    }
}

PerformanceSession* find(MPI_T_pvar_session session) {
    return the_tool().sessions.find(session);
}

Status no_such_session() {
    return failure(MPI_T_ERR_INVALID_SESSION,
                   "argument pe_session is null, freed, or not a session of performance variables");
}

// The handle, if it belongs to that session.
Result<PerformanceHandle*> find(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    const PerformanceSession* owner = find(session);
    if (owner == nullptr) return no_such_session();
    PerformanceHandle* found = the_tool().counters.find(handle);
    if (found == nullptr || found->session != owner) return no_such_handle("handle");
    return found;
}

// Does it to the handle, or (MPI_T_PVAR_ALL_HANDLES) to all of the session but those that it cannot be
// done to; `refusal`: what one of these gets that is named alone.
using Action = void (*)(PerformanceHandle& handle, const Counters& counters);
Status act(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Action action, int refusal) {
    if (handle == MPI_T_PVAR_ALL_HANDLES) {
        const PerformanceSession* owner = find(session);
        if (owner == nullptr) return no_such_session();
        const Counters counters = take_peaks();
        the_tool().counters.for_each([&](PerformanceHandle& each) {
            if (each.session == owner && !is_continuous(each.row->kind)) action(each, counters);
        });
        return success();
    }
    Result<PerformanceHandle*> found = find(session, handle);
    if (!found.ok()) return std::move(found).status();
    if (is_continuous((*found)->row->kind))
        return failure(refusal, "{} is a {}: it always runs and can only be read",
                       (*found)->row->name, name((*found)->row->kind));
    action(**found, take_peaks());
    return success();
}

// The object that a handle of this variable is to be bound to.
Result<Comm*> bound_to(const CounterRow& row, const void* obj_handle) {
    if (row.comm_value == nullptr) return nullptr;
    MPI_Comm handle = MPI_COMM_NULL;
    if (obj_handle != nullptr) std::memcpy(&handle, obj_handle, sizeof handle);
    Comm* comm = mpi::find(handle);
    if (comm == nullptr)
        return failure(MPI_T_ERR_INVALID,
                       "argument obj_handle must be the address of a communicator's handle, as {} "
                       "counts what goes over one",
                       row.name);
    return comm;
}

}  // namespace

void free_handle(Tool& tool, PerformanceHandle& handle) {
    if (handle.comm != nullptr) release(handle.comm);
    --handle.session->handles;
    tool.counters.destroy(&handle);
}

}  // namespace tool

Status t_pvar_session_create(MPI_T_pvar_session* pe_session) {
    tool::PerformanceSession* made = tool::the_tool().sessions.create();
    if (made == nullptr)
        return failure(MPI_T_ERR_OUT_OF_SESSIONS,
                       "out of memory for a session of performance variables");
    *pe_session = reinterpret_cast<MPI_T_pvar_session>(made);
    return success();
}

Status t_pvar_session_free(MPI_T_pvar_session* pe_session) {
    tool::Tool& tool = tool::the_tool();
    tool::PerformanceSession* found = tool::find(*pe_session);
    if (found == nullptr) return tool::no_such_session();
    if (found->handles > 0)
        tool.counters.for_each([&](tool::PerformanceHandle& handle) {
            if (handle.session == found) tool::free_handle(tool, handle);
        });
    tool.sessions.destroy(found);
    *pe_session = MPI_T_PVAR_SESSION_NULL;
    return success();
}

Status t_pvar_handle_alloc(MPI_T_pvar_session pe_session, int pvar_index, void* obj_handle,
                           MPI_T_pvar_handle* handle, int* count) {
    const auto rows = counter_rows();
    tool::PerformanceSession* session = tool::find(pe_session);
    if (session == nullptr) return tool::no_such_session();
    if (pvar_index < 0 || static_cast<std::size_t>(pvar_index) >= rows.size())
        return tool::no_such_index("pvar_index", pvar_index, rows.size());
    const CounterRow& row = rows[static_cast<std::size_t>(pvar_index)];
    Result<Comm*> comm = tool::bound_to(row, obj_handle);
    if (!comm.ok()) return std::move(comm).status();
    tool::PerformanceHandle* made = tool::the_tool().counters.create(
        tool::PerformanceHandle{.session = session, .row = &row, .comm = *comm});
    if (made == nullptr)
        return failure(MPI_T_ERR_OUT_OF_HANDLES, "out of memory for a handle of {}", row.name);
    if (made->comm != nullptr) retain(made->comm);
    ++session->handles;
    *handle = reinterpret_cast<MPI_T_pvar_handle>(made);
    *count = 1;
    return success();
}

Status t_pvar_handle_free(MPI_T_pvar_session pe_session, MPI_T_pvar_handle* handle) {
    Result<tool::PerformanceHandle*> found = tool::find(pe_session, *handle);
    if (!found.ok()) return std::move(found).status();
    tool::free_handle(tool::the_tool(), **found);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return success();
}

Status t_pvar_start(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle) {
    return tool::act(pe_session, handle, tool::start, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

Status t_pvar_stop(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle) {
    return tool::act(pe_session, handle, tool::stop, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

Status t_pvar_reset(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle) {
    return tool::act(pe_session, handle, tool::reset, MPI_T_ERR_PVAR_NO_WRITE);
}

Status t_pvar_read(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, void* buf) {
    Result<tool::PerformanceHandle*> found = tool::find(pe_session, handle);
    if (!found.ok()) return std::move(found).status();
    tool::put(tool::value_of(**found, tool::take_peaks()), (*found)->row->kind, buf);
    return success();
}

Status t_pvar_readreset(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, void* buf) {
    Result<tool::PerformanceHandle*> found = tool::find(pe_session, handle);
    if (!found.ok()) return std::move(found).status();
    if (tool::is_continuous((*found)->row->kind))
        return failure(MPI_T_ERR_PVAR_NO_ATOMIC, "{} cannot be reset", (*found)->row->name);
    const Counters counters = tool::take_peaks();
    tool::put(tool::value_of(**found, counters), (*found)->row->kind, buf);
    tool::reset(**found, counters);
    return success();
}

Status t_pvar_write(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, const void* buf) {
    Result<tool::PerformanceHandle*> found = tool::find(pe_session, handle);
    if (!found.ok()) return std::move(found).status();
    if (tool::is_continuous((*found)->row->kind))
        return failure(MPI_T_ERR_PVAR_NO_WRITE, "{} can only be read", (*found)->row->name);
    std::uint64_t value = 0;
    std::memcpy(&value, buf, sizeof value);
    tool::set(**found, value, tool::take_peaks());
    return success();
}

}  // namespace gantry::mpi
