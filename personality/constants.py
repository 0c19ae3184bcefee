# SPDX-License-Identifier: BSD-3-Clause
"""The constants of another MPI, mapped both ways: constants.hpp, from its values.def and the standard's.

A constant belongs to a group (what a parameter of a kind may hold); a group becomes two functions,
GROUP_to (theirs -> the standard's) and GROUP_from. What a group does not know: on the way in it
becomes a value that no group knows, so that the library refuses it; on the way out it stays.
"""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
STANDARD = HERE.parent / "tests" / "abi" / "values.def"
HEADER = HERE.parent / "api" / "mpi.h.in"

# Values that exclude each other.
CHOICES = {
    "rank": "MPI_(ANY_SOURCE|PROC_NULL|ROOT)",
    "tag": "MPI_ANY_TAG",
    "combiner": r"MPI_COMBINER_\w+",
    "comparison": "MPI_(IDENT|CONGRUENT|SIMILAR|UNEQUAL)",
    "topology": "MPI_(CART|GRAPH|DIST_GRAPH)",
    "typeclass": r"MPI_TYPECLASS_\w+",
    "lock_type": r"MPI_LOCK_\w+",
    "order": r"MPI_ORDER_\w+",
    "distribution": "MPI_DISTRIBUTE_(BLOCK|CYCLIC|NONE)",
    "distribution_argument": "MPI_DISTRIBUTE_DFLT_DARG",
    "split_type": r"MPI_COMM_TYPE_\w+",
    "thread_level": r"MPI_THREAD_\w+",
    "whence": r"MPI_SEEK_\w+",
    "displacement": "MPI_DISPLACEMENT_CURRENT",
    "flavor": r"MPI_WIN_FLAVOR_\w+",
    "model": "MPI_WIN_(UNIFIED|SEPARATE)",
    "keyval": "MPI_(KEYVAL_INVALID|TAG_UB|IO|HOST|WTIME_IS_GLOBAL|APPNUM|LASTUSEDCODE|UNIVERSE_SIZE"
    "|WIN_(BASE|DISP_UNIT|SIZE|CREATE_FLAVOR|MODEL))",
    "error_class": r"MPI_(SUCCESS|ERR_(?!LASTCODE)\w+|T_ERR_\w+)",
    "verbosity": r"MPI_T_VERBOSITY_\w+",
    "bind": r"MPI_T_BIND_\w+",
    "scope": r"MPI_T_SCOPE_\w+",
    "pvar_class": r"MPI_T_PVAR_CLASS_\w+",
    "callback_safety": r"MPI_T_CB_\w+",
    "source_order": r"MPI_T_SOURCE_\w+",
}
# Names of a personality's own beside the standard's: what they are here. They are what comes back: programs in C name them.
EXTENSIONS = {
    "MPIX_C_FLOAT16": "MPI_REAL2",
    "MPIX_ERR_PROC_FAILED": "MPI_ERR_PROC_ABORTED",
    "MPIX_ERR_PROC_FAILED_PENDING": 102,
    "MPIX_ERR_REVOKED": 103,
}
# What an error is called where the other MPI has no such class.
NEAREST = {"MPI_ERR_ERRHANDLER": "MPI_ERR_ARG"}
# What a group takes besides its constants, as it is.
ANY_NUMBER = ("rank", "tag", "displacement", "distribution_argument", "keyval")
# Flags that are combined.
FLAGS = {
    "file_mode": r"MPI_MODE_(?!NO)\w+",
    "assertion": r"MPI_MODE_NO\w+",
}
HANDLE = re.compile(r"#define (MPI_\w+) +\(\((MPI_\w+)\)0x[0-9a-f]+\)")


def values(path: pathlib.Path) -> dict:
    found = re.findall(r"^VALUE\((\w+), (-?\w+)\)", path.read_text(), re.M)
    return {name: int(value, 0) for name, value in found}


def handle_types() -> dict:
    """Name of a predefined handle -> its type."""
    found = dict(HANDLE.findall(HEADER.read_text()))
    return {n: t for n, t in found.items() if "_T_" not in t and not n.startswith("MPI_T_")}


def extensions(theirs: dict, ours: dict) -> list:
    """(name, our value, their value) of what a personality has of EXTENSIONS."""
    return [(n, ours.get(here, here), theirs[n]) for n, here in EXTENSIONS.items() if n in theirs]


def pairs(pattern: str, ours: dict, theirs: dict) -> list:
    names = [n for n in ours if n in theirs and re.fullmatch(pattern, n)]
    return [(n, ours[n], theirs[n]) for n in names]


def choice(group: str, rows: list, only_to: list = ()) -> list:
    kind = "MPI_Offset" if group == "displacement" else "int"
    # A value of theirs, or one that the other side could not tell from a constant of its own.
    refused = "value < 0 && value != kUndefined" if group in ("rank", "tag") else ""
    otherwise = "value" if group in ANY_NUMBER else "kUnknown"
    if refused:
        otherwise = f"({refused}) ? kUnknown : value"
    elif group not in ANY_NUMBER:
        otherwise = "value == kUndefined ? value : kUnknown"
    out = "other_error_from(value)" if group == "error_class" else "value"
    if group == "error_class":
        otherwise = "other_error_to(value)"

    # Most ranks and tags are none of these.
    quick = ["    if (value >= 0) [[likely]]", "        return value;"] if refused else []

    def function(name: str, cases: list, rest: str) -> list:
        return (
            [f"constexpr {kind} {group}_{name}({kind} value) {{", *quick, "    switch (value) {"]
            + [f"        case {a}: return {b};  // {n}" for n, a, b in cases]
            + [f"        default: return {rest};", "    }", "}"]
        )

    nearest = []
    if group == "error_class":
        known = {name: (ours, theirs) for name, ours, theirs in rows}
        standard = values(STANDARD)
        nearest = [(n, standard[n], known[near][1]) for n, near in NEAREST.items() if n not in known]
    return function("to", [(n, t, o) for n, o, t in [*rows, *only_to]], otherwise) + function(
        "from", rows + nearest, out
    )


def flags(group: str, rows: list) -> list:
    if all(ours == theirs for _, ours, theirs in rows):
        same = "(int value) { return value; }"
        return [f"constexpr int {group}_{way}{same}" for way in ("to", "from")]
    known = " | ".join(str(theirs) for _, _, theirs in rows)
    unknown = 1 << 30

    def function(name: str, moved: list, rest: str) -> list:
        return (
            [f"constexpr int {group}_{name}(int value) {{", f"    int result = {rest};"]
            + [f"    if ((value & {a}) != 0) result |= {b};  // {n}" for n, a, b in moved]
            + ["    return result;", "}"]
        )

    return function(
        "to",
        [(n, t, o) for n, o, t in rows],
        f"(value & ~({known})) != 0 ? {unknown} : 0",
    ) + function("from", rows, "0")


HEAD = """// SPDX-License-Identifier: BSD-3-Clause
// Generated by personality/generate.py from {source}.
#pragma once

#include <mpi.h>

namespace gantry::personality {{

inline constexpr int kUndefined = {undefined};
inline constexpr int kUnknown = -29999;  // no constant of the standard

// Error codes that programs add count up from above each ABI's MPI_ERR_LASTCODE.
inline constexpr int kTheirLastCode = {last_code};
constexpr int other_error_to(int value) {{
    if (value >= kTheirLastCode) return MPI_ERR_LASTCODE + (value - kTheirLastCode);
    // Classes that only the other MPI has, of its extensions.
    return value > 0 && value < 128 ? MPI_ERR_UNKNOWN : -1;
}}
constexpr int other_error_from(int value) {{
    if (value < 0) return value;
    return value >= MPI_ERR_LASTCODE ? kTheirLastCode + (value - MPI_ERR_LASTCODE) : {other};  // MPI_ERR_OTHER
}}

"""


def header(folder: pathlib.Path) -> str:
    ours, theirs = values(STANDARD), values(folder / "values.def")
    lines = []
    for group, pattern in CHOICES.items():
        rows = pairs(pattern, ours, theirs)
        only_to = []
        if group == "error_class":
            own = [row for row in extensions(theirs, ours) if "_ERR_" in row[0]]
            only_to = [row for row in rows if row[1] in {here for _, here, _ in own}]
            rows = [row for row in rows if row not in only_to] + own
        lines += choice(group, rows, only_to) + [""]
    for group, pattern in FLAGS.items():
        lines += flags(group, pairs(pattern, ours, theirs)) + [""]
    for name in sorted(n for n in theirs if re.fullmatch(r"MPI_(MAX_\w+|(SUB)?VERSION)", n)):
        lines.append(f"inline constexpr int kTheir_{name} = {theirs[name]};")
    head = HEAD.format(
        source=f"{folder.name}/values.def", undefined=theirs["MPI_UNDEFINED"],
        last_code=theirs["MPI_ERR_LASTCODE"], other=theirs["MPI_ERR_OTHER"],
    )
    return head + "\n".join(lines) + "\n\n}  // namespace gantry::personality\n"


def objects(folder: pathlib.Path) -> str:
    """Where predefined handles are objects: X(symbol, bytes, the standard's value)."""
    ours = values(STANDARD) | {"none": 0}
    rows = re.findall(r"^OBJECT\((\w+), (\d+), (\w+)\)", (folder / "objects.def").read_text(), re.M)
    return "".join(f"X({symbol}, {size}, {ours[name]:#x})\n" for symbol, size, name in rows)


def handles(folder: pathlib.Path) -> str:
    """Rows of predefined handles by type, for what looks them up."""
    ours, theirs = values(STANDARD), values(folder / "values.def")
    by_type = {}
    for name, kind in handle_types().items():
        if name in theirs:
            by_type.setdefault(kind, []).append((name, ours[name], theirs[name]))
    # Behind the standard's names: of two for one value the last one comes back.
    for name, here, there in extensions(theirs, ours):
        if "_ERR_" not in name:
            by_type.setdefault("MPI_Datatype", []).append((name, here, there))
    lines = [
        "// SPDX-License-Identifier: BSD-3-Clause",
        f"// Generated by personality/generate.py from {folder.name}/values.def: predefined handles.",
        "#pragma once",
        "",
        "#include <mpi.h>",
        "",
        "namespace gantry::personality {",
        "",
        "struct PredefinedHandle {",
        "    unsigned theirs;",
        "    unsigned ours;",
        "};",
        "template <class Handle>",
        "struct Predefined;",
    ]
    for kind, rows in sorted(by_type.items()):
        lines += [
            "template <>",
            f"struct Predefined<{kind}> {{",
            "    static constexpr PredefinedHandle rows[] = {",
        ]
        lines += [f"        {{{t & 0xFFFFFFFF:#x}, {o:#x}}},  // {n}" for n, o, t in rows]
        lines += ["    };", "};"]
    return "\n".join(lines) + "\n\n}  // namespace gantry::personality\n"
