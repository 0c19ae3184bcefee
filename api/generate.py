#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes everything that follows from the table of MPI functions.

    generate.py --include DIR --sources DIR    what a build needs (CMake calls this when it configures)
    generate.py --coverage                     docs/coverage.md
    generate.py --check                        fails if docs/coverage.md is not what the table says

Reads standard.json (the Forum's table), functions.toml (our rows), kinds.toml (what each kind of
parameter means for us) and the two header templates. A file that would not change is not touched,
so that nothing compiles twice.
"""

import argparse
import pathlib
import sys

import bodies
import coverage
import entry_files
import headers
import table


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_build(functions: list, include: pathlib.Path, sources: pathlib.Path) -> None:
    write(include / "mpi.h", headers.mpi_h(functions))
    write(include / "mpi-ext.h", headers.mpi_ext_h())
    write(include / "mpi" / "bodies.hpp", bodies.header(functions))
    write(sources / "exports.map", headers.export_map(functions))
    generated = entry_files.files(functions)
    for name, source in generated.items():
        write(sources / name, source)
    for stale in set(sources.glob("*.cpp")) - {sources / name for name in generated}:
        stale.unlink()
    write(sources / "sources.txt", "".join(f"{sources / name}\n" for name in generated))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--include", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    functions = table.load()
    page = table.HERE.parent / "docs" / "coverage.md"
    if options.include and options.sources:
        write_build(functions, options.include, options.sources)
    if options.coverage:
        write(page, coverage.page(functions))
    if options.check and (not page.exists() or page.read_text() != coverage.page(functions)):
        print(
            "docs/coverage.md is not what api/functions.toml says: run python3 api/generate.py --coverage",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
