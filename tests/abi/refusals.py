# SPDX-License-Identifier: BSD-3-Clause
"""refusals.py OUT.c: writes a program that gives every entry point one bad argument at a time and
expects the right class.

Table-driven by the same data as the entry points: whatever a generated entry point judges is
tried here with null, freed and garbage handles, negative counts, ranks outside the communicator,
null pointers. All other arguments are good. Entry points that are not built must say so. The body
of a function is never reached; a program that hangs has found a missing judgement.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "api"))
sys.dont_write_bytecode = True

import bodies  # noqa: E402
import entries  # noqa: E402
import table  # noqa: E402

GOOD_HANDLE = {
    "COMMUNICATOR": "MPI_COMM_SELF",
    "DATATYPE": "MPI_INT",
    "OPERATION": "MPI_SUM",
    "GROUP": "group",
    "INFO": "info",
    "ERRHANDLER": "MPI_ERRORS_RETURN",
    "REQUEST": "MPI_REQUEST_NULL",
    "MESSAGE": "MPI_MESSAGE_NO_PROC",
    "SESSION": "session",
    "WINDOW": "win",
    "FILE": "MPI_FILE_NULL",
}
FREED = {
    "COMMUNICATOR": "freed_comm",
    "GROUP": "freed_group",
    "INFO": "freed_info",
    "ERRHANDLER": "freed_errhandler",
    "WINDOW": "freed_win",
}
BAD_NUMBERS = {
    "not_negative": ["-1"],
    "positive": ["0", "-1"],
    "color": ["-5"],
    "tag": ["-1", "MPI_ANY_TAG", "-77"],
    "tag_or_any": ["-1", "-77"],
    "destination": ["1", "-77", "MPI_ANY_SOURCE"],
    "source": ["1", "-77"],
    "target": ["1", "-77"],
    "member": ["1", "-1", "MPI_PROC_NULL"],
    "root": ["1", "-1", "MPI_PROC_NULL"],
    "lock_type": ["0", "303"],
    "thread_level": ["-5", "5", "4097"],
}
# Nothing was made of which these could be live: their functions are not tried before they are
# built.
NO_GOOD_VALUE = ("FILE",)
# Never return, or end what the program needs.
NOT_TRIED = ("MPI_Abort",)


def garbage(kind: str) -> list:
    handle = bodies.HANDLES[kind]["type"]
    wrong_constant = "0x209" if kind != "DATATYPE" else "0x101"
    return [
        f"({handle}){value}"
        for value in (
            "(void*)0",
            "(void*)1",
            f"(void*){wrong_constant}",
            "(void*)0x7ff0deadbee0",
            "(void*)&somewhere",
            "(void*)((char*)(void*)group + 4)",
            "(void*)-1",
        )
    ]


def good(entry, p) -> str:
    """A harmless value of the parameter's type."""
    kind = p.c_large if entry.large else p.c
    if p.kind in bodies.HANDLES:
        if p.direction == "in" and not p.array and "*" not in kind:
            return GOOD_HANDLE[p.kind]
        if p.direction == "out":
            return f"({bodies.HANDLES[p.kind]['type']}*)scratch_handles"
        return f"good_{bodies.HANDLES[p.kind]['object'].lower()}()"
    if p.kind in (
        "BUFFER",
        "C_BUFFER",
        "C_BUFFER2",
        "LOGICAL_VOID",
        "ATTRIBUTE_VAL",
        "ATTRIBUTE_VAL_10",
        "EXTRA_STATE",
        "EXTRA_STATE2",
    ):
        return "buffer2" if p.name.startswith("recv") or p.name == "inoutbuf" else "buffer1"
    if "function" in kind:
        return f"({kind.rstrip('*')}*)(void (*)(void))callback"
    if kind.startswith("MPI_T_") and "*" not in kind and kind != "MPI_T_cb_safety":
        return f"({kind})0"
    if p.kind == "STATUS":
        return "statuses"
    if p.kind == "STRING" and p.direction == "in":
        return '"text"'
    if p.c == "...":
        return ""
    if p.array == "[][3]":
        return "triples"
    if p.array and p.kind in entries.COUNTS:
        return f"({kind}*)(void*)&one_element"
    if "*" in kind or p.array:
        element = kind.removesuffix("*") if not p.array else kind
        return f"({element}*)(void*)scratch"
    return "0" if p.kind in ("RANK", "RANK_NNI", "TAG", "COLOR", "KEY") else "1"


def refused(entry, p) -> list:
    """(bad value, expected class) for one parameter, read off the judgement that its entry point
    makes."""
    statement = entry.judge(p)
    found = re.search(r'call\.(\w+)\("', statement)
    if not found:
        return []
    method = found.group(1)
    error = re.search(r", (MPI_ERR_\w+)\);", statement)
    error = error.group(1) if error else "MPI_ERR_ARG"
    if entry.function.chapter == "tool":  # one class for all that is judged before the body
        bad = BAD_NUMBERS.get(method, ["0"])
        return [(value, "MPI_T_ERR_INVALID") for value in bad]
    if p.kind in bodies.HANDLES:
        row = bodies.HANDLES[p.kind]
        bad = garbage(p.kind) + ([FREED[p.kind]] if p.kind in FREED else [])
        if method in ("object", "transfer_type", "handler_of_new"):
            return [(value, row["error"]) for value in [row["null"]] + bad]
        if method in ("info", "nullable"):
            return [(value, row["error"]) for value in bad]
        if method == "pointer":
            return [("0", "MPI_ERR_ARG")]
        if method == "handle_at":
            bad += [] if "Null::allowed" in statement else [row["null"]]
            return [("0", "MPI_ERR_ARG")] + [
                (f"at_{row['object'].lower()}({value})", row["error"]) for value in bad
            ]
        if method in ("handles", "transfer_types"):
            return [("0", "MPI_ERR_ARG")] + [
                (f"at_{row['object'].lower()}({value})", row["error"]) for value in bad
            ]
        return []
    if method in BAD_NUMBERS:
        return [(value, error) for value in BAD_NUMBERS[method]]
    if method in ("pointer", "string"):
        return [("0", error)]
    if method in ("buffer", "blocks"):
        in_place = entries.not_in_place(entry.function, p.name)
        return [("MPI_BOTTOM", "MPI_ERR_BUFFER")] + (
            [] if in_place else [("MPI_IN_PLACE", "MPI_ERR_BUFFER")]
        )
    if method.startswith(("array", "each")):
        return [("0", "MPI_ERR_ARG")]
    return []


def call(entry, replaced=None, value="") -> str:
    arguments = [value if p is replaced else good(entry, p) for p in entry.function.of(entry.large)]
    return f"{entry.name}({', '.join(a for a in arguments if a)})"


def lines_for(function) -> list:
    lines = []
    if function.row.get("direct") or function.name in NOT_TRIED:
        return lines
    for form in function.entries:
        entry = entries.Entry(function, *form)
        if not function.done:
            error = (
                "MPI_T_ERR_NOT_SUPPORTED"
                if function.chapter == "tool"
                else "MPI_ERR_UNSUPPORTED_OPERATION"
            )
            lines.append(f'    EXPECT({error}, "{entry.name}", {call(entry)});')
            continue
        if any(p.kind in NO_GOOD_VALUE and p.direction == "in" for p in function.parameters):
            continue
        for p in function.of(entry.large):
            for value, error in refused(entry, p):
                spoken = value.replace('"', "'")
                lines.append(
                    f'    EXPECT({error}, "{entry.name} with {p.name} = {spoken}", {call(entry, p, value)});'
                )
    return lines


def place(kind: str, name: str) -> str:
    """A C function that gives an address which holds a handle: a good one, or the one it is told.
    """
    row = bodies.HANDLES[kind]
    parameter, value = (
        (f"{row['type']} value", "value") if name == "at" else ("void", GOOD_HANDLE[kind])
    )
    return (
        f"static {row['type']}* {name}_{row['object'].lower()}({parameter}) {{\n    static {row['type']} place;\n"
        f"    place = {value};\n    return &place;\n}}\n"
    )


def main(out: str) -> None:
    functions = table.load()
    template = pathlib.Path(__file__).with_name("refusals.c.in").read_text()
    parts, calls = [], []
    for number, function in enumerate(functions):
        lines = lines_for(function)
        # What exchanges with neighbors takes a communicator that has some.
        if re.match("MPI_I?neighbor_", function.name, re.IGNORECASE):
            lines = [line.replace(GOOD_HANDLE["COMMUNICATOR"], "ring") for line in lines]
        if lines:
            parts.append(f"static void try_{number}(void) {{\n" + "\n".join(lines) + "\n}\n")
            calls.append(f"    try_{number}();")
    places = [
        place(kind, name)
        for kind, row in bodies.HANDLES.items()
        for name in ("at", "good")
        if any(f"{name}_{row['object'].lower()}(" in part for part in parts)
    ]
    text = (
        template.replace("@PLACES@\n", "".join(places))
        .replace("@TRIALS@\n", "".join(parts))
        .replace("@CALLS@\n", "\n".join(calls) + "\n")
    )
    path = pathlib.Path(out)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
