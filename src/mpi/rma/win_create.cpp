// SPDX-License-Identifier: BSD-3-Clause
//
// Making and freeing windows (MPI 5.0 section 12.2).
#include "base/log.hpp"
#include "coll/team.hpp"
#include "mpi/bodies.hpp"
#include "mpi/check/agreement.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/faults/faults.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/rma/win.hpp"
#include "rma/windows.hpp"

#include <climits>
#include <cstring>

namespace gantry::mpi {
namespace {

using rma::Flavor;

int flavor_of(Flavor flavor) {
    switch (flavor) {
        case Flavor::allocate: return MPI_WIN_FLAVOR_ALLOCATE;
        case Flavor::shared: return MPI_WIN_FLAVOR_SHARED;
        case Flavor::dynamic: return MPI_WIN_FLAVOR_DYNAMIC;
        default: return MPI_WIN_FLAVOR_CREATE;
    }
}

// What MPI_Win_get_info tells of a window without hints of the program.
InfoPairs usual_hints(Flavor flavor) {
    InfoPairs hints;
    set_pair(hints, "no_locks", "false");
    set_pair(hints, "accumulate_ordering", "rar,raw,war,waw");
    set_pair(hints, "accumulate_ops", "same_op_no_op");
    set_pair(hints, "mpi_accumulate_granularity", "0");
    set_pair(hints, "same_size", "false");
    set_pair(hints, "same_disp_unit", "false");
    if (flavor == Flavor::shared) set_pair(hints, "alloc_shared_noncontig", "false");
    set_pair(hints, kMemoryKindsKey, kMemoryKinds);
    return hints;
}

Result<Win*> wrap(Engine& engine, std::unique_ptr<rma::Window> window, const rma::Wanted& wanted,
                  const InfoPairs& hints) {
    Win* win = create(process().wins);
    if (win == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a window");
    win->engine = &engine;
    win->ranks = window->size();
    win->checked = engine.checks().on();
    win->errhandler = retain(process().errors_are_fatal);
    win->hints = usual_hints(window->flavor);
    take_hints(win->hints, hints);
    win->flavor = flavor_of(window->flavor);
    if (window->flavor != Flavor::dynamic) win->base = reinterpret_cast<void*>(window->mine().base);
    win->bytes = static_cast<MPI_Aint>(wanted.bytes);
    win->unit = static_cast<int>(wanted.unit);
    win->window = window.release();
    end_if_revoked(*win);
    return win;
}

Task<Status> make(Executor& executor, Comm* comm, coll::Team team, rma::Wanted wanted,
                  InfoPairs hints, void* baseptr, MPI_Win* made) {
    Engine& engine = *comm->engine;
    std::uint32_t context = 0;
    Status shared = co_await share_context(executor, engine, team, &context);
    GANTRY_CO_TRY(shared);
    p2p::Group group = comm->group;
    group.context = context | p2p::kCollectiveContext;
    std::unique_ptr<rma::Window> window;
    Status created = co_await engine.windows().create(executor, std::move(group), wanted, &window);
    GANTRY_CO_TRY(created);
    Result<Win*> win = wrap(engine, std::move(window), wanted, hints);
    if (!win.ok()) co_return std::move(win).status();
    if (baseptr != nullptr) std::memcpy(baseptr, &(*win)->base, sizeof(void*));
    *made = (*win)->handle;
    co_return success();
}

// What ranks promise to name alike.
std::string promised(const rma::Wanted& wanted, const InfoPairs& hints) {
    const auto holds = [&hints](const char* hint) {
        const std::string* value = value_of(hints, hint);
        return value != nullptr && *value == "true";
    };
    std::string text;
    if (holds("same_size")) text += fmt::format("same_size and {} bytes ", wanted.bytes);
    if (holds("same_disp_unit")) text += fmt::format("same_disp_unit and {}", wanted.unit);
    return text;
}

Pending begin(const char* function, Comm& comm, const rma::Wanted& wanted, const Info* info,
              void* baseptr, MPI_Win* win) {
    const coll::Team team = comm.team();
    if (wanted.unit > INT_MAX)
        return failure(MPI_ERR_DISP, "a displacement unit of {} bytes; an int must hold it",
                       wanted.unit);
    InfoPairs hints = info != nullptr ? info->pairs : InfoPairs{};
    const Agreement said = Agreement(comm, function).names(promised(wanted, hints));
    const auto make_it = [&comm, wanted, hints = std::move(hints), baseptr,
                          win](const coll::Team& among) {
        return make(among.executor(), &comm, among, wanted, hints, baseptr, win);
    };
    return Pending(*comm.engine, run_behind(said, team, make_it));
}

rma::Wanted wanted(Flavor flavor, MPI_Aint bytes, MPI_Aint unit, const Info* info) {
    rma::Wanted made;
    made.flavor = flavor;
    made.bytes = static_cast<Bytes>(bytes);
    made.unit = unit;
    if (info == nullptr) return made;
    if (const std::string* apart = value_of(info->pairs, "alloc_shared_noncontig"))
        made.adjoining = *apart != "true";
    if (const std::string* least = value_of(info->pairs, "mpi_minimum_memory_alignment")) {
        const Bytes asked = std::strtoull(least->c_str(), nullptr, 10);
        if ((asked & (asked - 1)) == 0 && asked > made.alignment) made.alignment = asked;
    }
    return made;
}

Status check_may_free(const rma::Window& window) {
    // After a failure epochs end with the window: what would end them in order may fail, too.
    if (!window.lost.ok()) return success();
    const rma::Epochs& epochs = window.epochs;
    if (epochs.locks > 0 || epochs.lock_all)
        return failure(MPI_ERR_RMA_SYNC, "MPI_Win_free while a target is locked: unlock it first");
    if (epochs.started || epochs.posted)
        return failure(MPI_ERR_RMA_SYNC,
                       "MPI_Win_free inside an epoch: call MPI_Win_complete or MPI_Win_wait first");
    return success();
}

Task<Status> end(Executor& executor, Win* win) {
    Status closed = co_await win->window->close(executor);
    delete std::exchange(win->window, nullptr);
    // The window's error handler is yet to hear of a failure.
    if (!closed.ok()) co_return closed;
    release(win);
    co_return success();
}

}  // namespace

void release(Win* win) {
    if (!let_go(win)) return;
    release(win->errhandler);
    process().wins.destroy(win);
}

Pending win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm,
                   MPI_Win* win) {
    rma::Wanted made = wanted(Flavor::create, size, disp_unit, info);
    made.base = base;
    return begin("MPI_Win_create", comm, made, info, nullptr, win);
}

Pending win_allocate(MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm, void* baseptr,
                     MPI_Win* win) {
    return begin("MPI_Win_allocate", comm, wanted(Flavor::allocate, size, disp_unit, info), info,
                 baseptr, win);
}

Pending win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, Info* info, Comm& comm,
                            void* baseptr, MPI_Win* win) {
    return begin("MPI_Win_allocate_shared", comm, wanted(Flavor::shared, size, disp_unit, info),
                 info, baseptr, win);
}

Pending win_create_dynamic(Info* info, Comm& comm, MPI_Win* win) {
    return begin("MPI_Win_create_dynamic", comm, wanted(Flavor::dynamic, 0, 1, info), info, nullptr,
                 win);
}

Pending win_free(MPI_Win* win) {
    Win* object = find(*win);
    GANTRY_TRY(check_may_free(*object->window));
    if (object->checked && object->window->epochs.fence == rma::Epochs::Fence::used)
        log::warn(
            "mpi: MPI_Win_free behind operations that no MPI_Win_fence has ended: nobody knows "
            "whether they arrive");
    GANTRY_TRY(object->attributes.remove_all(object->handle));
    // The program's handle and this call hold it.
    if (find(*win) != object || object->references > 2)
        return failure(MPI_ERR_RMA_SYNC,
                       "MPI_Win_free while another thread is inside a call on the window");
    *win = MPI_WIN_NULL;
    object->handles = 0;
    return Pending(*object->engine, end(object->engine->executor(), object));
}

}  // namespace gantry::mpi
