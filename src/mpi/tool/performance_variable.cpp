// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to measure.
#include "mpi/bodies.hpp"
#include "mpi/tool/tool.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace tool {

bool is_continuous(CounterKind kind) {
    return kind == CounterKind::state || kind == CounterKind::level || kind == CounterKind::size;
}

MPI_Datatype type_of(CounterKind kind) {
    return kind == CounterKind::state ? MPI_INT : MPI_UNSIGNED_LONG_LONG;
}

int class_of(CounterKind kind) {
    switch (kind) {
        case CounterKind::state: return MPI_T_PVAR_CLASS_STATE;
        case CounterKind::level: return MPI_T_PVAR_CLASS_LEVEL;
        case CounterKind::size: return MPI_T_PVAR_CLASS_SIZE;
        case CounterKind::highwatermark: return MPI_T_PVAR_CLASS_HIGHWATERMARK;
        case CounterKind::counter: return MPI_T_PVAR_CLASS_COUNTER;
        case CounterKind::aggregate: return MPI_T_PVAR_CLASS_AGGREGATE;
    }
    return MPI_T_PVAR_CLASS_GENERIC;
}

}  // namespace tool

Status t_pvar_get_num(int* num_pvar) {
    *num_pvar = static_cast<int>(counter_rows().size());
    return success();
}

Status t_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                       MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                       int* bind, int* readonly, int* continuous, int* atomic) {
    const auto rows = counter_rows();
    if (pvar_index < 0 || static_cast<std::size_t>(pvar_index) >= rows.size())
        return tool::no_such_index("pvar_index", pvar_index, rows.size());
    const CounterRow& row = rows[static_cast<std::size_t>(pvar_index)];
    const bool runs_always = tool::is_continuous(row.kind);
    tool::give_text(row.name, name, name_len);
    tool::give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    tool::give(var_class, tool::class_of(row.kind));
    tool::give(datatype, tool::type_of(row.kind));
    tool::give(enumtype, row.kind == CounterKind::state
                             ? tool::the_tool().enumerations.phases().handle()
                             : MPI_T_ENUM_NULL);
    tool::give_text(row.sentence, desc, desc_len);
    tool::give(bind, row.comm_value != nullptr ? MPI_T_BIND_MPI_COMM : MPI_T_BIND_NO_OBJECT);
    tool::give(readonly, runs_always ? 1 : 0);
    tool::give(continuous, runs_always ? 1 : 0);
    tool::give(atomic, runs_always ? 0 : 1);
    return success();
}

Status t_pvar_get_index(const char* name, int var_class, int* pvar_index) {
    const auto rows = counter_rows();
    const auto found = std::ranges::find_if(rows, [&](const CounterRow& row) {
        return row.name == name && tool::class_of(row.kind) == var_class;
    });
    if (found == rows.end()) return tool::no_such_name("performance variable of that class", name);
    *pvar_index = static_cast<int>(found - rows.begin());
    return success();
}

}  // namespace gantry::mpi
