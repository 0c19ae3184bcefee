// SPDX-License-Identifier: BSD-3-Clause
//
// Opening and closing files, and what changes a file as a whole. Rank 0 does what is to happen once;
// all ranks then have one outcome.
#include "coll/barrier.hpp"
#include "io/agree.hpp"
#include "io/errors.hpp"
#include "io/file.hpp"

#include <fcntl.h>

namespace gantry::io {
namespace {

constexpr unsigned kPermissions = 0666;  // less what the process's mask denies

int flags_of(int mode) {
    int flags = (mode & MPI_MODE_RDWR) != 0     ? O_RDWR
                : (mode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                                : O_RDONLY;
    if ((mode & MPI_MODE_CREATE) != 0) flags |= O_CREAT;
    if ((mode & MPI_MODE_EXCL) != 0) flags |= O_EXCL;
    return flags;
}

Status outcome(std::int64_t returned, std::string_view what, std::string_view path) {
    if (returned >= 0) return success();
    return refused(fmt::format("{} \"{}\"", what, path), returned);
}

// MPI_ERR_NOT_SAME unless every rank says the same; and what some rank refuses is refused on all.
template <class T>
Task<Status> check_same(Executor& executor, coll::Team team, Status refused, T mine,
                        const char* what, const std::string* path) {
    std::vector<T> all;
    Status told = co_await tell_unless_refused(executor, team, std::move(refused), mine, &all);
    GANTRY_CO_TRY(told);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank] != all[0])
            co_return failure(
                MPI_ERR_NOT_SAME,
                "{} is {} on rank 0 and {} on rank {} for \"{}\"; it must be the same "
                "on all ranks",
                what, all[0], all[rank], rank, *path);
    co_return success();
}

}  // namespace

File::File(Files& its_files, p2p::Group its_group, std::string its_path, int its_mode,
           const Hints& its_hints)
    : files(its_files),
      group(std::move(its_group)),
      path(std::move(its_path)),
      mode(its_mode),
      hints(its_hints),
      view(std::make_shared<const View>()),
      planner_(&its_files.common) {
    files.known.push_back(this);
}

File::~File() {
    std::erase(files.known, this);
}

coll::Team File::team() {
    const int tag = static_cast<int>(sequence_++ & 0x1fff'ffff);
    return {&files.messenger, &files.context, &group, tag, 0, -1, 0, &planner_};
}

Task<Status> File::open_here(Executor& executor, int flags) {
    std::int64_t returned = 0;
    Status asked = co_await files.backend().call(
        executor,
        [name = path.c_str(), flags](System& system) {
            return static_cast<std::int64_t>(system.open(name, flags, kPermissions));
        },
        &returned);
    GANTRY_CO_TRY(asked);
    if (returned < 0) co_return outcome(returned, "opening", path);
    handle_ = static_cast<int>(returned);
    asked = co_await files.backend().call(
        executor,
        [handle = handle_](System& system) {
            return static_cast<std::int64_t>(system.is_in_memory(handle));
        },
        &returned);
    in_memory_ = returned == 1;
    co_return asked;
}

Task<Status> File::open(Executor& executor, coll::Team team, p2p::Group window, Status refused) {
    const int my_mode = mode;
    window_context_ = window.context;
    Status same =
        co_await check_same(executor, team, std::move(refused), my_mode, "argument amode", &path);
    GANTRY_CO_TRY(same);
    const int flags = flags_of(mode);
    Status opened;
    if (rank() == 0) opened = co_await open_here(executor, flags);
    Status agreed = co_await agree(executor, team, opened);
    GANTRY_CO_TRY(agreed);
    // The file is there now.
    const int later_flags = flags & ~(O_CREAT | O_EXCL);
    if (rank() != 0) opened = co_await open_here(executor, later_flags);
    std::int64_t end = 0;
    if (opened.ok() && (mode & MPI_MODE_APPEND) != 0) opened = co_await find_size(executor, &end);
    Status pointer;
    agreed = co_await agree(executor, team, opened);
    if (agreed.ok()) {
        pointer = co_await shared.open(executor, files.windows, std::move(window));
        position = end;
        if (pointer.ok() && rank() == 0 && end > 0) pointer = co_await shared.set(executor, end);
        agreed = co_await agree(executor, team, pointer);
    }
    if (!agreed.ok() && handle_ >= 0) {
        std::int64_t ignored = 0;
        const int handle = std::exchange(handle_, -1);
        Status asked = co_await files.backend().call(
            executor,
            [handle](System& system) { return static_cast<std::int64_t>(system.close(handle)); },
            &ignored);
    }
    co_return agreed;
}

Task<Status> File::close(Executor& executor, coll::Team team) {
    Status ended = co_await shared.close(executor);
    // Nobody's bytes are under way any more.
    Status met = co_await coll::barrier(executor, team);
    if (ended.ok()) ended = met;
    std::int64_t returned = 0;
    const int handle = std::exchange(handle_, -1);
    Status asked = co_await files.backend().call(
        executor,
        [this, handle](System& system) {
            close_storage(system);
            return static_cast<std::int64_t>(system.close(handle));
        },
        &returned);
    if (ended.ok()) ended = outcome(returned, "closing", path);
    if ((mode & MPI_MODE_DELETE_ON_CLOSE) != 0 && rank() == 0) {
        asked = co_await files.backend().call(
            executor,
            [name = path.c_str()](System& system) {
                return static_cast<std::int64_t>(system.remove(name));
            },
            &returned);
        if (ended.ok()) ended = outcome(returned, "deleting (MPI_MODE_DELETE_ON_CLOSE)", path);
    }
    Status agreed = co_await agree(executor, team, ended);
    co_return agreed;
}

Task<Status> File::find_size(Executor& executor, std::int64_t* bytes) {
    Status asked = co_await files.backend().call(
        executor, [handle = handle_](System& system) { return system.size(handle); }, bytes);
    GANTRY_CO_TRY(asked);
    co_return outcome(*bytes, "asking the size of", path);
}

// What others have written is in the file before it changes, and nobody writes before it has.
Task<Status> File::set_size(Executor& executor, coll::Team team, Status refused,
                            std::int64_t bytes) {
    Status told =
        co_await check_same(executor, team, std::move(refused), bytes, "argument size", &path);
    GANTRY_CO_TRY(told);
    std::int64_t returned = 0;
    if (rank() == 0)
        told = co_await files.backend().call(
            executor,
            [handle = handle_, bytes](System& system) {
                return static_cast<std::int64_t>(system.set_size(handle, bytes));
            },
            &returned);
    Status changed = outcome(returned, "setting the size of", path);
    Status agreed = co_await agree(executor, team, changed);
    co_return agreed;
}

Task<Status> File::preallocate(Executor& executor, coll::Team team, Status refused,
                               std::int64_t bytes) {
    Status told =
        co_await check_same(executor, team, std::move(refused), bytes, "argument size", &path);
    GANTRY_CO_TRY(told);
    std::int64_t returned = 0;
    if (rank() == 0 && bytes > 0)
        told = co_await files.backend().call(
            executor,
            [handle = handle_, bytes](System& system) {
                return static_cast<std::int64_t>(system.allocate(handle, bytes));
            },
            &returned);
    Status changed = outcome(returned, "allocating room for", path);
    Status agreed = co_await agree(executor, team, changed);
    co_return agreed;
}

// What a rank wrote is on the device before any rank goes on.
Task<Status> File::sync(Executor& executor, coll::Team team) {
    std::int64_t returned = 0;
    Status asked;
    if ((mode & MPI_MODE_RDONLY) == 0)
        asked = co_await files.backend().call(
            executor,
            [handle = handle_](System& system) {
                return static_cast<std::int64_t>(system.sync(handle));
            },
            &returned);
    Status synced = outcome(returned, "syncing", path);
    Status agreed = co_await agree(executor, team, synced);
    co_return agreed;
}

// The caller has seen to it that the ranks want views that fit together.
Task<Status> File::set_view(Executor& executor, coll::Team team, std::shared_ptr<const View> to) {
    view = std::move(to);
    position = 0;
    Status moved;
    if (rank() == 0) moved = co_await shared.set(executor, 0);
    Status agreed = co_await agree(executor, team, moved);
    co_return agreed;
}

Task<Status> File::seek_shared(Executor& executor, coll::Team team, std::int64_t to) {
    Status told =
        co_await check_same(executor, team, Status(), to, "the shared file pointer", &path);
    GANTRY_CO_TRY(told);
    Status moved;
    if (rank() == 0) moved = co_await shared.set(executor, to);
    Status agreed = co_await agree(executor, team, moved);
    co_return agreed;
}

Task<Status> File::take_turns(Executor& executor, coll::Team team, Status refused,
                              std::int64_t etypes, std::int64_t* first) {
    std::vector<std::int64_t> all;
    Status told = co_await tell_unless_refused(executor, team, std::move(refused), etypes, &all);
    GANTRY_CO_TRY(told);
    std::int64_t sum = 0, before_me = 0;
    for (int each = 0; each < team.size(); ++each) {
        if (each == rank()) before_me = sum;
        sum += all[static_cast<std::size_t>(each)];
    }
    std::int64_t base = 0;
    Status added;
    if (rank() == 0) added = co_await shared.add(executor, sum, &base);
    Status agreed = co_await agree(executor, team, added);
    GANTRY_CO_TRY(agreed);
    std::vector<std::int64_t> bases;
    told = co_await tell_all(executor, team, base, &bases);
    GANTRY_CO_TRY(told);
    *first = bases[0] + before_me;
    co_return success();
}

}  // namespace gantry::io
