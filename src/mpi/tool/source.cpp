// SPDX-License-Identifier: BSD-3-Clause
//
// Sources of events: one, the library itself, whose time is the machine's steady clock.
#include "mpi/bodies.hpp"
#include "mpi/info/info.hpp"
#include "mpi/tool/tool.hpp"

#include "base/clock.hpp"

#include <limits>

namespace gantry::mpi {
namespace {

constexpr int kSources = 1;

Status no_such_source(int index) {
    return tool::no_such_index("source_index", index, kSources);
}

}  // namespace

Status t_source_get_num(int* num_sources) {
    *num_sources = kSources;
    return success();
}

Status t_source_get_info(int source_index, char* name, int* name_len, char* desc, int* desc_len,
                         MPI_T_source_order* ordering, MPI_Count* ticks_per_second,
                         MPI_Count* max_ticks, MPI_Info* info) {
    if (source_index != 0) return no_such_source(source_index);
    if (info != nullptr) {
        *info = make_info({});
        if (*info == MPI_INFO_NULL)
            return failure(MPI_T_ERR_MEMORY, "out of memory for an info object");
    }
    tool::give_text("gantry", name, name_len);
    tool::give_text("The library itself; its time is the machine's steady clock.", desc, desc_len);
    tool::give(ordering, MPI_T_SOURCE_ORDERED);
    tool::give(ticks_per_second, MPI_Count{kSecond});
    tool::give(max_ticks, std::numeric_limits<MPI_Count>::max());
    return success();
}

Status t_source_get_timestamp(int source_index, MPI_Count* timestamp) {
    if (source_index != 0) return no_such_source(source_index);
    *timestamp = SteadyClock().now();
    return success();
}

}  // namespace gantry::mpi
