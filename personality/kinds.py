# SPDX-License-Identifier: BSD-3-Clause
"""What is done to an argument on its way from another MPI's call to the standard's, by its kind in
the table of functions (api/standard.json).

`converted` gives for one parameter (declarations before the call, argument). A declaration makes an
object of common/arguments.hpp; what it has to write back it writes when the call is over.
"""

import re

HANDLES = {
    "COMMUNICATOR": "MPI_Comm",
    "DATATYPE": "MPI_Datatype",
    "OPERATION": "MPI_Op",
    "GROUP": "MPI_Group",
    "ERRHANDLER": "MPI_Errhandler",
    "SESSION": "MPI_Session",
    "WINDOW": "MPI_Win",
    "FILE": "MPI_File",
    "INFO": "MPI_Info",
    "REQUEST": "MPI_Request",
    "MESSAGE": "MPI_Message",
}
# Kind -> group of constants (constants.py).
VALUES = {
    "RANK": "rank",
    "RANK_NNI": "rank",
    "TAG": "tag",
    "COMBINER": "combiner",
    "COMM_COMPARISON": "comparison",
    "GROUP_COMPARISON": "comparison",
    "TOPOLOGY_TYPE": "topology",
    "TYPECLASS": "typeclass",
    "LOCK_TYPE": "lock_type",
    "ORDER": "order",
    "DISTRIB_ENUM": "distribution",
    "DTYPE_DISTRIBUTION": "distribution_argument",
    "SPLIT_TYPE": "split_type",
    "THREAD_LEVEL": "thread_level",
    "UPDATE_MODE": "whence",
    "KEYVAL": "keyval",
    "ERROR_CLASS": "error_class",
    "ERROR_CODE": "error_class",
    "ACCESS_MODE": "file_mode",
    "ASSERT": "assertion",
    "TOOL_VAR_VERBOSITY": "verbosity",
    "BIND_TYPE": "bind",
    "VARIABLE_SCOPE": "scope",
    "PVAR_CLASS": "pvar_class",
}
ENUMS = {"CALLBACK_SAFETY": "callback_safety", "SOURCE_ORDERING": "source_order"}
# Integers that are no constants although their kind says so: an exit code, ranks that a topology
# lists, errors of several processes.
AS_THEY_ARE = {
    "MPI_Abort.errorcode",
    "MPI_Graph_create.edges",
    "MPI_Graph_map.edges",
    "MPI_Graph_get.edges",
    "MPI_Graph_neighbors.neighbors",
    "MPI_Group_range_incl.ranges",
    "MPI_Group_range_excl.ranges",
    "MPI_Dist_graph_create.sources",
    "MPI_Dist_graph_create.destinations",
    "MPI_Dist_graph_create_adjacent.sources",
    "MPI_Dist_graph_create_adjacent.destinations",
    "MPI_Dist_graph_neighbors.sources",
    "MPI_Dist_graph_neighbors.destinations",
    "MPI_Comm_spawn.array_of_errcodes",
    "MPI_Comm_spawn_multiple.array_of_errcodes",
}
# Where MPI_IN_PLACE, MPI_BOTTOM and MPI_BUFFER_AUTOMATIC may stand for a buffer.
MARKED_CHAPTERS = ("coll", "topology")
MARKED = re.compile("MPI_(Comm_|Session_)?(Buffer_attach|attach_buffer|detach_buffer|Buffer_detach)")


def marked(function) -> bool:
    return function.chapter in MARKED_CHAPTERS or MARKED.fullmatch(function.name) is not None


def extent(function, p) -> str:
    """How many elements an array has, as C++."""
    if p.length and p.length != "*" and not isinstance(p.length, list):
        counted = next(q for q in function.parameters if q.name == p.length)
        pointer = "*" in counted.c
        return f"{p.length} == nullptr ? 0 : *{p.length}" if pointer else p.length
    if p.kind == "STATUS":
        return "incount" if any(q.name == "incount" for q in function.parameters) else "count"
    if "eighbor" in function.name:
        ours = "kTo" if p.name.startswith("send") else "kFrom"
        return f"neighbors(to<MPI_Comm>(comm), Direction::{ours})"
    return "peers(to<MPI_Comm>(comm))"


def handle(function, p) -> tuple:
    kind = HANDLES[p.kind]
    if p.array:
        way = {"in": "HandlesIn", "inout": "HandlesInOut", "out": "HandlesOut"}[p.direction]
        length = extent(function, p)
        if p.name == "sendtypes":
            length = f"in_place(sendbuf) ? 0 : {length}"
        made = f"{way}<{kind}> {p.name}_({p.name}, {length});"
        return [made], f"{p.name}_.data()"
    if "*" not in p.c:
        return [], f"to<{kind}>({p.name})"
    if p.direction != "out":
        return [f"HandleInOut<{kind}> {p.name}_({p.name});"], f"{p.name}_.pointer()"
    made = [f"{kind} {p.name}_ours = nullptr;", f"const HandleOut<{kind}> {p.name}_({p.name}, {p.name}_ours);"]
    return made, f"{p.name}_.pointer()"


def status(function, p) -> tuple:
    if p.array:
        made = f"StatusesOut {p.name}_({p.name}, {extent(function, p)});"
        return [made], f"{p.name}_.data()"
    way = {"in": "StatusIn", "inout": "StatusInOut", "out": "StatusOut"}[p.direction]
    return [f"{way} {p.name}_({p.name});"], f"{p.name}_.pointer()"


def value(function, p) -> tuple:
    group = VALUES[p.kind]
    if p.array:
        if p.direction == "out":
            return [f"const ValuesOut {p.name}_({p.name}, {extent(function, p)}, {group}_from);"], p.name
        made = f"ValuesIn {p.name}_({p.name}, {extent(function, p)}, {group}_to);"
        return [made], f"{p.name}_.data()"
    if "*" not in p.c:
        return [], f"{group}_to({p.name})"
    if p.direction == "inout":
        return [f"ValueInOut {p.name}_({p.name}, {group}_to, {group}_from);"], f"{p.name}_.pointer()"
    return [f"const ValueOut {p.name}_({p.name}, {group}_from);"], p.name


def text(p) -> tuple:
    """A string that the library may write longer than the program has room for."""
    limit = p.length
    made = f"TextOut<{limit}> {p.name}_({p.name}, kTheir_{limit});"
    return [made], f"{p.name}_.data()"


def converted(function, p) -> tuple:
    if f"{function.name}.{p.name}" in AS_THEY_ARE:
        return [], p.name
    if p.kind in HANDLES:
        return handle(function, p)
    if p.kind == "STATUS":
        return status(function, p)
    if p.kind in VALUES:
        return value(function, p)
    if p.kind in ENUMS:
        group = ENUMS[p.kind]
        if "*" in p.c:
            return [f"const EnumOut<{p.c[:-1]}> {p.name}_({p.name}, {group}_from);"], p.name
        return [], f"static_cast<{p.c}>({group}_to(static_cast<int>({p.name})))"
    if p.kind == "WEIGHT":
        return [], f"weights_of({p.name})"
    if p.kind == "PVAR" and "*" not in p.c:
        return [], f"variable_of({p.name})"
    if p.kind == "C_BUFFER2":
        return [f"const DetachedBuffer {p.name}_({p.name});"], p.name
    if p.kind == "BUFFER" and marked(function):
        return [], f"address({p.name})"
    if function.name == "MPI_File_set_view" and p.name == "disp":
        return [], f"displacement_to({p.name})"
    if p.kind == "STRING" and p.direction == "out" and str(p.length).startswith("MPI_MAX_"):
        return text(p)
    return [], p.name
