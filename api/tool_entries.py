# SPDX-License-Identifier: BSD-3-Clause
"""The C entry points of the tool information interface (MPI_T_): they look up no handles and call no
error handler; what is wrong is the code that they return (abi/tool_call.hpp)."""


def judge(entry, p) -> str:
    """The statement that judges one parameter, or nothing: null pointers are refused, but where the
    standard takes them for "not wanted". Bodies judge indices and handles."""
    if p.kind == "THREAD_LEVEL" and p.direction == "in":
        return f'call.thread_level("{p.name}", {p.name});'
    points = "*" in p.c or p.array
    asks = entry.function.name.endswith(("_get_info", "_get_item"))
    may_be_null = ("TOOL_MPI_OBJ", "EXTRA_STATE", "STRING_LENGTH")
    if not points or p.kind in may_be_null or asks and p.direction != "in":
        return ""
    if p.array:
        return f'call.array("{p.name}", {p.name}, {entry.extent_of(p)});'
    return f'call.pointer("{p.name}", {p.name});'


def statements(entry) -> list:
    """The body of one entry point."""
    needs = "nothing" if entry.function.row.get("when") == "always" else "initialised"
    arguments = ", ".join(p.name for p in entry.parameters)
    return (
        [f'ToolCall call("{entry.name}", ToolCall::Needs::{needs});']
        + [line for line in map(entry.judge, entry.parameters) if line]
        + [
            "if (call.failed()) return call.leave();",
            f"return call.leave(mpi::{entry.function.body}({arguments}));",
        ]
    )
