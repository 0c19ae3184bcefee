// SPDX-License-Identifier: BSD-3-Clause
//
// Opening, closing, and what can be asked of a file (MPI 5.0 section 14.2).
#include "io/errors.hpp"
#include "io/file.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/comm/group.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/faults/faults.hpp"
#include "mpi/io/access.hpp"
#include "mpi/io/file.hpp"
#include "base/yield.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>

namespace gantry::mpi {
namespace {

constexpr int kEveryMode = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE |
                           MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN |
                           MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;

Status check_mode(int amode) {
    int ways = 0;
    for (const int way : {MPI_MODE_RDONLY, MPI_MODE_RDWR, MPI_MODE_WRONLY})
        ways += (amode & way) != 0;
    if (ways != 1)
        return failure(MPI_ERR_AMODE,
                       "argument amode ({}) must have exactly one of MPI_MODE_RDONLY, "
                       "MPI_MODE_RDWR and MPI_MODE_WRONLY",
                       amode);
    if ((amode & ~kEveryMode) != 0)
        return failure(MPI_ERR_AMODE, "argument amode ({}) has bits that are no MPI_MODE_", amode);
    const bool makes = (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0;
    if ((amode & MPI_MODE_RDONLY) != 0 && makes)
        return failure(MPI_ERR_AMODE,
                       "argument amode has MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL: "
                       "who only reads makes no file");
    if ((amode & MPI_MODE_RDWR) != 0 && (amode & MPI_MODE_SEQUENTIAL) != 0)
        return failure(MPI_ERR_AMODE,
                       "argument amode has MPI_MODE_SEQUENTIAL with MPI_MODE_RDWR: a sequence is "
                       "read or written, not both");
    return success();
}

// Programs name the file system in front of the name for other libraries.
std::string path_of(const char* filename) {
    std::string_view name(filename);
    for (const std::string_view prefix : {"ufs:", "nfs:", "lustre:", "gpfs:", "xfs:", "panfs:"})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return std::string(name);
}

void take_file_hints(File& file, const Info* info) {
    if (info == nullptr) return;
    for (const auto& [key, value] : info->pairs)
        if (file.file->hints.take(key, value)) set_pair(file.hints, key, value);
    for (const auto& [key, value] : file.file->hints.told())
        set_pair(file.hints, key, value);
}

Result<File*> wrap(Engine& engine, std::unique_ptr<io::File> file) {
    File* made = create(process().files);
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a file");
    made->engine = &engine;
    made->file = file.release();
    made->errhandler = retain(process().file_errhandler);
    made->etype = retain(find(MPI_BYTE));
    made->filetype = retain(find(MPI_BYTE));
    made->datarep = process().datareps.find("native");
    for (const auto& [key, value] : made->file->hints.told())
        set_pair(made->hints, key, value);
    set_pair(made->hints, kMemoryKindsKey, kMemoryKinds);
    end_if_revoked(*made);
    return made;
}

io::Hints hints_of(const InfoPairs& pairs) {
    io::Hints hints;
    for (const auto& [key, value] : pairs)
        hints.take(key, value);
    return hints;
}

// The contexts of a file and of its shared pointer: on all ranks that live, or a failure on all of them, since
// a rank without them could not tell the others.
Task<Status> share_contexts(Executor& executor, Comm* comm, coll::Team team,
                            faults::Agreements::Call call, std::uint32_t* file,
                            std::uint32_t* window) {
    Engine& engine = *comm->engine;
    Status shared = co_await share_context(executor, engine, team, file);
    if (comm->group.size() == 1) co_return shared;
    // Also where the first failed here: others, who have it, wait for this rank in the second.
    Status second = co_await share_context(executor, engine, team, window);
    if (shared.ok()) shared = std::move(second);
    Status agreed = co_await all_or_none(executor, comm, std::move(call), std::move(shared));
    co_return agreed;
}

Task<Status> make(Executor& executor, Comm* comm, coll::Team team, faults::Agreements::Call call,
                  std::string path, int amode, Status refused, InfoPairs pairs, MPI_File* made) {
    Engine& engine = *comm->engine;
    std::uint32_t context = 0, window_context = 0;
    Status shared =
        co_await share_contexts(executor, comm, team, std::move(call), &context, &window_context);
    GANTRY_CO_TRY(shared);
    p2p::Group group = comm->group;
    p2p::Group window = group;
    group.context = context | p2p::kCollectiveContext;
    window.context = window_context | p2p::kCollectiveContext;
    std::unique_ptr<io::File> file(new (std::nothrow) io::File(
        engine.files(), std::move(group), std::move(path), amode, hints_of(pairs)));
    GANTRY_ASSERT(file != nullptr);
    const coll::Team of_file = file->team();
    Task<Status> opening = file->open(executor, of_file, std::move(window), std::move(refused));
    Status opened = co_await file->together(executor, std::move(opening));
    GANTRY_CO_TRY(opened);
    Result<File*> wrapped = wrap(engine, std::move(file));
    if (!wrapped.ok()) co_return std::move(wrapped).status();
    for (const auto& [key, value] : pairs)
        if (value_of((*wrapped)->hints, key) == nullptr && (*wrapped)->file->hints.take(key, value))
            set_pair((*wrapped)->hints, key, value);
    *made = (*wrapped)->handle;
    co_return success();
}

Task<Status> end(Executor& executor, File* file, coll::Team team) {
    while (file->under_way > 0)
        co_await Yield(executor);
    Task<Status> closing = file->file->close(executor, team);
    Status closed = co_await file->file->together(executor, std::move(closing));
    delete std::exchange(file->file, nullptr);
    // The file's error handler is yet to hear of a failure.
    if (!closed.ok()) co_return closed;
    release(file);
    co_return success();
}

template <class... Args>
Pending run(File& fh, Task<Status> (io::File::*call)(Executor&, coll::Team, Args...),
            std::type_identity_t<Args>... args) {
    GANTRY_TRY(unless_revoked(fh));
    Executor& executor = fh.engine->executor();
    return Pending(*fh.engine,
                   fh.file->together(
                       executor, (fh.file->*call)(executor, fh.file->team(), std::move(args)...)));
}

Status check_size(const File& fh, MPI_Offset size) {
    if (size < 0) return failure(MPI_ERR_ARG, "argument size is {} and must not be negative", size);
    if ((fh.file->mode & MPI_MODE_SEQUENTIAL) != 0)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "\"{}\" is open with MPI_MODE_SEQUENTIAL: a sequence has no size",
                       fh.file->path);
    if ((fh.file->mode & MPI_MODE_RDONLY) != 0)
        return failure(MPI_ERR_READ_ONLY, "\"{}\" is open with MPI_MODE_RDONLY", fh.file->path);
    return success();
}

}  // namespace

void release(File* file) {
    if (!let_go(file)) return;
    release(file->errhandler);
    release(file->etype);
    release(file->filetype);
    process().files.destroy(file);
}

Pending file_open(Comm& comm, const char* filename, int amode, Info* info, MPI_File* fh) {
    InfoPairs pairs = info != nullptr ? info->pairs : InfoPairs{};
    return Pending(*comm.engine,
                   make(comm.engine->executor(), &comm, comm.team(), next_agreement(comm),
                        path_of(filename), amode, check_mode(amode), std::move(pairs), fh));
}

Pending file_close(MPI_File* fh) {
    File* file = find(*fh);
    GANTRY_TRY(check_no_split(*file));
    *fh = MPI_FILE_NULL;
    file->handles = 0;
    return Pending(*file->engine, end(file->engine->executor(), file, file->file->team()));
}

Status file_delete(const char* filename, Info*) {
    const std::string path = path_of(filename);
    io::System system;
    const int returned = system.remove(path.c_str());
    if (returned < 0) return io::refused(fmt::format("deleting \"{}\"", path), returned);
    return success();
}

Pending file_set_size(File& fh, MPI_Offset size) {
    GANTRY_TRY(check_no_split(fh));
    return run(fh, &io::File::set_size, check_size(fh, size), size);
}

Pending file_preallocate(File& fh, MPI_Offset size) {
    GANTRY_TRY(check_no_split(fh));
    return run(fh, &io::File::preallocate, check_size(fh, size), size);
}

Pending file_get_size(File& fh, MPI_Offset* size) {
    GANTRY_TRY(unless_revoked(fh));
    return Pending(*fh.engine, fh.file->find_size(fh.engine->executor(), size));
}

Pending file_sync(File& fh) {
    return run(fh, &io::File::sync);
}

Status file_get_group(File& fh, MPI_Group* group) {
    *group = make_group(fh.file->group.peers);
    if (*group == MPI_GROUP_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes",
                       fh.file->size());
    return success();
}

Status file_get_amode(File& fh, int* amode) {
    *amode = fh.file->mode;
    return success();
}

Status file_set_info(File& fh, Info* info) {
    take_file_hints(fh, info);
    return success();
}

Status file_get_info(File& fh, MPI_Info* info_used) {
    *info_used = make_info(fh.hints);
    if (*info_used == MPI_INFO_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status file_set_atomicity(File& fh, int flag) {
    fh.file->atomic = flag != 0;
    return success();
}

Status file_get_atomicity(File& fh, int* flag) {
    *flag = fh.file->atomic ? 1 : 0;
    return success();
}

}  // namespace gantry::mpi
