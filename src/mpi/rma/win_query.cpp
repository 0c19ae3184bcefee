// SPDX-License-Identifier: BSD-3-Clause
//
// What can be asked of a window, and its dynamic memory.
#include "mpi/bodies.hpp"
#include "mpi/comm/group.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"
#include "mpi/rma/win.hpp"
#include "rma/window.hpp"

#include <cstring>

namespace gantry::mpi {

Status win_get_group(Win& win, MPI_Group* group) {
    *group = make_group(win.window->group.peers);
    if (*group == MPI_GROUP_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes", win.ranks);
    return success();
}

Status win_set_name(Win& win, const char* win_name) {
    win.name = object_name(win_name);
    win.engine->transfer().explain.name_window(win.window->number(), win.name);
    return success();
}

Status win_get_name(MPI_Win win, char* win_name, int* resultlen) {
    const Win* object = find(win);
    copy_text(object != nullptr ? object->name : "MPI_WIN_NULL", win_name, MPI_MAX_OBJECT_NAME,
              resultlen);
    return success();
}

Status win_set_info(Win& win, Info* info) {
    if (info != nullptr) take_hints(win.hints, info->pairs);
    return success();
}

Status win_get_info(Win& win, MPI_Info* info_used) {
    *info_used = make_info(win.hints);
    if (*info_used == MPI_INFO_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status win_shared_query(Win& win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
    rma::Window& window = *win.window;
    if (rank != MPI_PROC_NULL && (rank < 0 || rank >= window.size()))
        return failure(MPI_ERR_RANK,
                       "argument rank is {}; it must be a rank of the window's {}, or "
                       "MPI_PROC_NULL",
                       rank, window.size());
    // MPI_PROC_NULL stands for the lowest rank of this node that has memory, everywhere on the node.
    const rma::Target* found = nullptr;
    for (int each = 0; each < window.size() && found == nullptr; ++each) {
        const rma::Target& of = window.target(each);
        const bool is_first = of.control != nullptr && of.bytes > 0;
        if (rank == MPI_PROC_NULL ? is_first : each == rank) found = &of;
    }
    // What is not mapped here is nothing.
    if (found != nullptr && found->memory == nullptr) found = nullptr;
    // A rank that has no bytes has no place among the others.
    std::byte* const memory = found != nullptr && found->bytes > 0 ? found->memory : nullptr;
    *size = found != nullptr ? static_cast<MPI_Aint>(found->bytes) : 0;
    *disp_unit = found != nullptr ? found->unit : rank == MPI_PROC_NULL ? 0 : 1;
    std::memcpy(baseptr, &memory, sizeof memory);
    return success();
}

Status win_attach(Win& win, void* base, MPI_Aint size) {
    if (win.flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return failure(MPI_ERR_RMA_FLAVOR,
                       "MPI_Win_attach takes a window of MPI_Win_create_dynamic");
    return win.window->attach(base, static_cast<Bytes>(size));
}

Status win_detach(Win& win, const void* base) {
    if (win.flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return failure(MPI_ERR_RMA_FLAVOR,
                       "MPI_Win_detach takes a window of MPI_Win_create_dynamic");
    return win.window->detach(base);
}

}  // namespace gantry::mpi
