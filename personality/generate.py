#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the sources of a personality from the table of MPI functions (api/) and the values of its
constants.

    generate.py PERSONALITY DIR    into DIR: constants.hpp, handles.hpp or predefined.def, standard_functions.def, exports.map,
                                   a source per chapter, sources.txt that lists these, and bindings.c
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "api"))

import bindings  # noqa: E402
import constants  # noqa: E402
import entries  # noqa: E402
import table  # noqa: E402

EXPORTS = {"mpich": ["MPIR_Dup_fn"], "openmpi": ["ompi_mpi_*", "ompi_message_*", "ompi_request_null", "OMPI_C_MPI_*"]}


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(personality: str, folder: pathlib.Path) -> int:
    functions = table.load()
    values = HERE / personality
    sources = entries.files(functions)
    write(folder / "constants.hpp", constants.header(values))
    if (values / "objects.def").exists():
        write(folder / "predefined.def", constants.objects(values))
    else:
        write(folder / "handles.hpp", constants.handles(values))
    write(folder / "standard_functions.def", entries.standard_table(functions))
    write(folder / "exports.map", entries.export_map(EXPORTS[personality]))
    write(folder / "bindings.c", bindings.source(functions, values))
    for name, text in sources.items():
        write(folder / name, text)
    write(folder / "sources.txt", "".join(f"{folder / name}\n" for name in sources))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
