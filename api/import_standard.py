#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes api/standard.json: the Forum's table of MPI functions, cut down to what Gantry needs.

Needed only when the standard changes (`pip install pympistandard`, then `python3
api/import_standard.py`); a build reads the committed result. One function per line, so that a new
edition of the standard is a readable diff.

What is kept: C functions and their parameters with kind, direction, length and C type (also of
the large-count twin). What is dropped: Fortran, callbacks (their typedefs stand in mpi.h.in), and
what the ABI left out (MPI_Fint, F08 status).
"""

import json
import pathlib
import sys

NOTICE = (
    "Derived from pympistandard {version} (https://github.com/mpi-forum/pympistandard). "
    "MIT License. Copyright (c) Martin Ruefenacht and the MPI Forum. "
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without restriction, including without '
    "limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the "
    "Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions: "
    "The above copyright notice and this permission notice shall be included in all copies or substantial portions of "
    'the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT '
    "NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO "
    "EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN "
    "ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR "
    "OTHER DEALINGS IN THE SOFTWARE."
)

FORTRAN_HANDLES = ("_c2f", "_f2c", "_c2f08", "_f082c", "_f082f", "_f2f08")


def c_type(expressed) -> str:
    return ("const " if expressed.constant else "") + str(expressed.type)


def parameter(raw, small, large) -> dict:
    """One parameter; fields that hold their default are left out."""
    expressed = small or large
    row = {
        "name": raw["name"],
        "kind": raw["kind"],
        "direction": raw["param_direction"],
        "c": "..." if raw["kind"] == "VARARGS" else c_type(expressed),
    }
    if large is not None and c_type(large) != row["c"]:
        row["c_large"] = c_type(large)
    if expressed.array and raw["kind"] != "VARARGS":
        row["array"] = expressed.array
    if raw["length"]:
        row["length"] = raw["length"]
    if raw["large_only"]:
        row["large_only"] = True
    if raw["root_only"]:
        row["root_only"] = True
    return row


def function(procedure) -> dict:
    raw = procedure._parseset
    small = {p.name: p for p in procedure.express.iso_c.parameters}
    twin = procedure.express.embiggen.iso_c if procedure.has_embiggenment() else None
    large = {p.name: p for p in twin.parameters} if twin else {}
    row = {"name": raw["name"], "returns": procedure.express.iso_c.return_type}
    if twin:
        row["large"] = True
    row["parameters"] = [
        parameter(p, small.get(p["name"]), large.get(p["name"]))
        for p in raw["parameters"]
        if "c_parameter" not in p["suppress"] and (p["name"] in small or p["name"] in large)
    ]
    return row


def main() -> None:
    import pympistandard

    pympistandard.use_api_version(1, force_bundled=True)
    try:
        from importlib.metadata import version

        edition = version("pympistandard")
    except ImportError:
        edition = "0.2.0"
    procedures = [
        p
        for p in pympistandard.PROCEDURES.values()
        if p._parseset["attributes"]["c_expressible"]
        and not p._parseset["name"].endswith(FORTRAN_HANDLES)
    ]
    rows = [function(p) for p in sorted(procedures, key=lambda p: p._parseset["name"])]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    text = '{"notice": %s,\n"functions": [\n%s\n]}\n' % (
        json.dumps(NOTICE.format(version=edition)),
        lines,
    )
    target = pathlib.Path(__file__).with_name("standard.json")
    target.write_text(text)
    names = len(rows) + sum(1 for row in rows if row.get("large"))
    print(
        f"{target}: {len(rows)} functions, {names} names with the large-count twins",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
