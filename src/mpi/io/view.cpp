// SPDX-License-Identifier: BSD-3-Clause
//
// Views and file pointers (MPI 5.0 sections 14.3, 14.4.3 and 14.4.4).
#include "io/agree.hpp"
#include "io/file.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"
#include "mpi/io/access.hpp"
#include "mpi/io/file.hpp"

#include <functional>

namespace gantry::mpi {
namespace {

Result<io::View> view_of(const Datarep& datarep, MPI_Offset disp, const Datatype& etype,
                         const Datatype& filetype, bool writes) {
    io::View view;
    view.displacement = disp;
    Result<Bytes> etype_bytes = datarep.size_of(etype);
    GANTRY_TRY(etype_bytes.status());
    view.etype_bytes = *etype_bytes;
    Result<layout::Layout> layout = datarep.layout_of(filetype);
    GANTRY_TRY(layout.status());
    view.filetype = std::move(*layout);
    GANTRY_TRY(io::check(view, writes));
    return view;
}

void put(Datatype*& place, Datatype& datatype) {
    retain(&datatype);
    if (place != nullptr) release(place);
    place = &datatype;
}

struct NewView {
    io::View view;
    const Datarep* datarep = nullptr;
    Datatype *etype = nullptr, *filetype = nullptr;
    Status refused;  // here; then the rest means nothing
};

Result<NewView> new_view(const File& fh, MPI_Offset disp, Datatype& etype, Datatype& filetype,
                         const char* datarep) {
    const bool sequential = (fh.file->mode & MPI_MODE_SEQUENTIAL) != 0;
    if (disp == MPI_DISPLACEMENT_CURRENT && !sequential)
        return failure(MPI_ERR_ARG,
                       "argument disp is MPI_DISPLACEMENT_CURRENT, which is for files that are "
                       "open with MPI_MODE_SEQUENTIAL");
    if (disp < 0 && disp != MPI_DISPLACEMENT_CURRENT)
        return failure(MPI_ERR_ARG, "argument disp is {} and must not be negative", disp);
    const Datarep* found = process().datareps.find(datarep);
    if (found == nullptr)
        return failure(MPI_ERR_UNSUPPORTED_DATAREP,
                       "argument datarep is \"{}\"; there are \"native\", \"internal\", "
                       "\"external32\" and those of MPI_Register_datarep",
                       datarep);
    const bool writes = (fh.file->mode & MPI_MODE_RDONLY) == 0;
    Result<io::View> view = view_of(*found, disp, etype, filetype, writes);
    GANTRY_TRY(view.status());
    return NewView{std::move(*view), found, &etype, &filetype, {}};
}

Task<Status> change_view(Executor& executor, File* fh, coll::Team team, NewView wanted) {
    io::File& file = *fh->file;
    struct Said {
        std::size_t name;
        Bytes etype;
    };
    Said mine{};
    if (wanted.refused.ok())
        mine = {std::hash<std::string>{}(wanted.datarep->name), wanted.view.etype_bytes};
    std::vector<Said> all;
    Status told =
        co_await io::tell_unless_refused(executor, team, std::move(wanted.refused), mine, &all);
    GANTRY_CO_TRY(told);
    for (const Said& each : all) {
        if (each.name != all[0].name)
            co_return failure(MPI_ERR_NOT_SAME,
                              "argument datarep (\"{}\" here) differs between the ranks of \"{}\"",
                              wanted.datarep->name, file.path);
        if (each.etype != all[0].etype)
            co_return failure(MPI_ERR_NOT_SAME,
                              "argument etype has {} bytes on one rank of \"{}\" and {} on another",
                              all[0].etype, file.path, each.etype);
    }
    if (wanted.view.displacement == MPI_DISPLACEMENT_CURRENT) {
        std::int64_t etypes = 0;
        Status found = co_await file.shared.add(executor, 0, &etypes);
        GANTRY_CO_TRY(found);
        wanted.view.displacement =
            file.view->position_of(static_cast<Bytes>(etypes) * file.view->etype_bytes);
    }
    auto made = std::make_shared<const io::View>(std::move(wanted.view));
    Status set = co_await file.set_view(executor, team, std::move(made));
    GANTRY_CO_TRY(set);
    put(fh->etype, *wanted.etype);
    put(fh->filetype, *wanted.filetype);
    fh->datarep = wanted.datarep;
    co_return success();
}

// Where a seek leads, in etypes.
Task<Status> find_target(Executor& executor, File* fh, MPI_Offset offset, int whence, bool shared,
                         std::int64_t* target) {
    io::File& file = *fh->file;
    std::int64_t from = 0;
    if (whence == MPI_SEEK_CUR && shared) {
        Status found = co_await file.shared.add(executor, 0, &from);
        GANTRY_CO_TRY(found);
    } else if (whence == MPI_SEEK_CUR) {
        from = file.position;
    } else if (whence == MPI_SEEK_END) {
        std::int64_t bytes = 0;
        Status found = co_await file.find_size(executor, &bytes);
        GANTRY_CO_TRY(found);
        const Bytes before = file.view->data_before(bytes);
        from = static_cast<std::int64_t>(divide_up(before, file.view->etype_bytes));
    }
    if (__builtin_add_overflow(from, offset, target) || *target < 0)
        co_return failure(MPI_ERR_ARG, "a seek by {} from {} leads in front of the view of \"{}\"",
                          offset, from, file.path);
    co_return success();
}

Task<Status> seek(Executor& executor, File* fh, MPI_Offset offset, int whence) {
    std::int64_t target = 0;
    Status found = co_await find_target(executor, fh, offset, whence, false, &target);
    GANTRY_CO_TRY(found);
    fh->file->position = target;
    co_return success();
}

Task<Status> seek_shared(Executor& executor, File* fh, coll::Team team, Status refused,
                         MPI_Offset offset, int whence) {
    std::int64_t target = 0;
    Status found = std::move(refused);
    if (found.ok()) found = co_await find_target(executor, fh, offset, whence, true, &target);
    Status agreed = co_await io::agree(executor, team, found);
    GANTRY_CO_TRY(agreed);
    Status moved = co_await fh->file->seek_shared(executor, team, target);
    co_return moved;
}

Status check_whence(const File& fh, int whence, bool individual) {
    if (whence != MPI_SEEK_SET && whence != MPI_SEEK_CUR && whence != MPI_SEEK_END)
        return failure(MPI_ERR_ARG,
                       "argument whence is {}; it must be MPI_SEEK_SET, MPI_SEEK_CUR or "
                       "MPI_SEEK_END",
                       whence);
    if (individual && (fh.file->mode & MPI_MODE_SEQUENTIAL) != 0)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "\"{}\" is open with MPI_MODE_SEQUENTIAL: it has only the shared pointer",
                       fh.file->path);
    return success();
}

}  // namespace

Pending file_set_view(File& fh, MPI_Offset disp, Datatype& etype, Datatype& filetype,
                      const char* datarep, Info* info) {
    GANTRY_TRY(check_no_split(fh));
    Result<NewView> asked = new_view(fh, disp, etype, filetype, datarep);
    if (asked.ok()) GANTRY_TRY(file_set_info(fh, info));
    NewView wanted;
    if (asked.ok())
        wanted = std::move(*asked);
    else
        wanted.refused = std::move(asked).status();
    Executor& executor = fh.engine->executor();
    Task<Status> change = change_view(executor, &fh, fh.file->team(), std::move(wanted));
    return Pending(*fh.engine, fh.file->together(executor, std::move(change)));
}

Status file_get_view(File& fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype,
                     char* datarep) {
    *disp = fh.file->view->displacement;
    *etype = give_handle(fh.etype);
    *filetype = give_handle(fh.filetype);
    copy_text(fh.datarep->name, datarep, MPI_MAX_DATAREP_STRING);
    return success();
}

Status file_get_byte_offset(File& fh, MPI_Offset offset, MPI_Offset* disp) {
    const io::View& view = *fh.file->view;
    Bytes data_byte = 0;
    if (offset < 0 ||
        __builtin_mul_overflow(static_cast<Bytes>(offset), view.etype_bytes, &data_byte))
        return failure(MPI_ERR_ARG, "argument offset is {} and must not be negative", offset);
    *disp = view.position_of(data_byte);
    return success();
}

Status file_get_type_extent(File& fh, Datatype& datatype, MPI_Count* extent) {
    if (!fh.datarep->converts()) {
        *extent = datatype.extent();
        return success();
    }
    Result<layout::Layout> layout = fh.datarep->layout_of(datatype);
    GANTRY_TRY(layout.status());
    *extent = layout->extent;
    return success();
}

Status file_get_position(File& fh, MPI_Offset* offset) {
    GANTRY_TRY(check_whence(fh, MPI_SEEK_SET, true));
    *offset = fh.file->position;
    return success();
}

Pending file_get_position_shared(File& fh, MPI_Offset* offset) {
    return Pending(*fh.engine, fh.file->shared.add(fh.engine->executor(), 0, offset));
}

Pending file_seek(File& fh, MPI_Offset offset, int whence) {
    GANTRY_TRY(check_whence(fh, whence, true));
    return Pending(*fh.engine, seek(fh.engine->executor(), &fh, offset, whence));
}

Pending file_seek_shared(File& fh, MPI_Offset offset, int whence) {
    GANTRY_TRY(check_no_split(fh));
    Executor& executor = fh.engine->executor();
    Task<Status> seek = seek_shared(executor, &fh, fh.file->team(), check_whence(fh, whence, false),
                                    offset, whence);
    return Pending(*fh.engine, fh.file->together(executor, std::move(seek)));
}

}  // namespace gantry::mpi
