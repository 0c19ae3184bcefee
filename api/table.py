# SPDX-License-Identifier: BSD-3-Clause
"""The table the generator works on: the standard's functions (standard.json) joined with our rows
(functions.toml).

A Function is one body: it has one entry point, or two when the standard gives it a large-count
twin (`_c`). Everything that is odd about a function stands in functions.toml as a field or an
erratum, not in the generator.
"""

import dataclasses
import json
import pathlib
import re

try:
    import tomllib
except ImportError:
    raise SystemExit("api/generate.py needs Python 3.11 or newer (tomllib)") from None

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Parameter:
    name: str
    kind: str
    direction: str
    c: str
    c_large: str
    array: str
    length: object
    large_only: bool
    root_only: bool

    def declaration(self, large: bool, named: bool = True) -> str:
        if self.c == "...":
            return "..."
        return (
            f"{self.c_large if large else self.c} {self.name if named else ''}{self.array}".rstrip()
        )


@dataclasses.dataclass
class Function:
    name: str
    returns: str
    large: bool
    parameters: list
    chapter: str = ""
    row: dict = dataclasses.field(default_factory=dict)
    # Of a collective operation: "blocking", "nonblocking" or "persistent". All forms have the row
    # of the blocking one.
    form: str = ""

    @property
    def done(self) -> bool:
        return self.row.get("state") == "done"

    @property
    def body(self) -> str:
        """The name of the function in namespace gantry::mpi: MPI_Comm_get_attr -> comm_get_attr."""
        return self.row.get("body") or re.sub(r"^MPI_", "", self.name).lower()

    @property
    def entries(self) -> list:
        """(name, is it the large-count twin) of every entry point."""
        return [(self.name, False)] + ([(self.name + "_c", True)] if self.large else [])

    def of(self, large: bool) -> list:
        return [p for p in self.parameters if large or not p.large_only]

    def signature(self, name: str, large: bool) -> str:
        listed = ", ".join(p.declaration(large) for p in self.of(large)) or "void"
        return f"{self.returns} {name}({listed})"


def sources() -> list:
    """Every file a generated one depends on (CMake configures again when one changes)."""
    return sorted(p for p in HERE.iterdir() if p.suffix in (".py", ".toml", ".json", ".in"))


def parameter(raw: dict) -> Parameter:
    return Parameter(
        raw["name"],
        raw["kind"],
        raw["direction"],
        raw["c"],
        raw.get("c_large", raw["c"]),
        raw.get("array", ""),
        raw.get("length"),
        raw.get("large_only", False),
        raw.get("root_only", False),
    )


def forms_of(name: str) -> dict:
    """What the other forms of a collective function may be called: name -> form."""
    words = name.removeprefix("MPI_").split("_")
    nonblocking = [f"MPI_I{name[4].lower()}{name[5:]}"]
    if len(words) > 1:  # MPI_Comm_dup, MPI_Comm_idup
        nonblocking.append("MPI_" + "_".join([words[0], "i" + words[1], *words[2:]]))
    return {other: "nonblocking" for other in nonblocking} | {name + "_init": "persistent"}


def with_forms(rows: dict, table: dict) -> dict:
    """The rows of functions.toml and those of the forms that have none of their own: chapter ->
    name -> row. Notes in `table` which form each function is."""
    result = {}
    for chapter, functions in rows.items():
        result[chapter] = {}
        for name, row in functions.items():
            result[chapter][name] = row
            if not row.get("collective") or name not in table:
                continue
            table[name].form = "blocking"
            for other, form in forms_of(name).items():
                if other in table:
                    table[other].form = form
                    result[chapter][other] = row | {"body": table[name].body}
    return result


def load() -> list:
    """All functions, by name. Stops with a sentence if our rows and the standard disagree about
    which there are."""
    standard = json.loads((HERE / "standard.json").read_text())["functions"]
    rows = tomllib.loads((HERE / "functions.toml").read_text())
    errata = rows.pop("errata", {})
    table = {}
    for raw in standard:
        erratum = errata.get(raw["name"], {})
        for field in raw["parameters"]:
            field.update(erratum.get(field["name"], {}))
        table[raw["name"]] = Function(
            raw["name"],
            raw["returns"],
            raw.get("large", False) or erratum.get("large", False),
            [parameter(p) for p in raw["parameters"]],
        )
    for chapter, functions in with_forms(rows, table).items():
        for name, row in functions.items():
            if name not in table:
                raise SystemExit(
                    f"api/functions.toml: {name} in [{chapter}] is not a function of the standard"
                )
            if table[name].chapter:
                raise SystemExit(
                    f"api/functions.toml: {name} stands in [{table[name].chapter}] and in [{chapter}]"
                )
            table[name].chapter = chapter
            table[name].row = row
    missing = [name for name, function in table.items() if not function.chapter]
    if missing:
        raise SystemExit("api/functions.toml has no row for " + ", ".join(missing))
    return [table[name] for name in sorted(table)]
