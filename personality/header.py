# SPDX-License-Identifier: BSD-3-Clause
"""A header of the other MPI's ABI, for tests that compile a program of that ABI where its own header cannot be had:

    header.py PERSONALITY FILE

A FILE that ends with .c gets functions of these names instead, for a library that programs are only linked with.

Constants are those of values.def, prototypes the standard's; where types differ the C names are the same.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "api"))

import constants  # noqa: E402
import table  # noqa: E402

MPICH = """typedef int MPI_Comm, MPI_Group, MPI_Datatype, MPI_Op, MPI_Errhandler, MPI_Info, MPI_Win, MPI_Session, MPI_Request,
    MPI_Message;
typedef struct their_file* MPI_File;
typedef struct {
    int count_low, count_high_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
extern int* const MPI_UNWEIGHTED;
extern int* const MPI_WEIGHTS_EMPTY;
int MPIR_Dup_fn(int, int, void*, void*, void*, int*);
#define MPI_COMM_DUP_FN MPIR_Dup_fn
#define MPI_COMM_NULL_DELETE_FN 0
"""
OPENMPI = """typedef struct their_comm* MPI_Comm;
typedef struct their_group* MPI_Group;
typedef struct their_datatype* MPI_Datatype;
typedef struct their_op* MPI_Op;
typedef struct their_errhandler* MPI_Errhandler;
typedef struct their_info* MPI_Info;
typedef struct their_win* MPI_Win;
typedef struct their_session* MPI_Session;
typedef struct their_request* MPI_Request;
typedef struct their_message* MPI_Message;
typedef struct their_file* MPI_File;
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, cancelled;
    uint64_t bytes;
} MPI_Status;
int OMPI_C_MPI_COMM_DUP_FN(MPI_Comm, int, void*, void*, void*, int*);
int OMPI_C_MPI_COMM_NULL_DELETE_FN(MPI_Comm, int, void*, void*);
#define MPI_COMM_DUP_FN OMPI_C_MPI_COMM_DUP_FN
#define MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_COMM_NULL_DELETE_FN
"""
TYPES = {"mpich": MPICH, "openmpi": OPENMPI}
# Beyond the standard; Open MPI's are in a header of their own.
EXTENSIONS = """int MPIX_Comm_revoke(MPI_Comm);
int MPIX_Comm_is_revoked(MPI_Comm, int*);
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*);
int MPIX_Comm_agree(MPI_Comm, int*);
int MPIX_Comm_iagree(MPI_Comm, int*, MPI_Request*);
int MPIX_Comm_get_failed(MPI_Comm, MPI_Group*);
int MPIX_Comm_ack_failed(MPI_Comm, int, int*);
int MPIX_Comm_failure_ack(MPI_Comm);
int MPIX_Comm_failure_get_acked(MPI_Comm, MPI_Group*);
"""
POINTERS = {
    "MPI_STATUS_IGNORE": "MPI_Status*",
    "MPI_STATUSES_IGNORE": "MPI_Status*",
    "MPI_ERRCODES_IGNORE": "int*",
    "MPI_ARGV_NULL": "char**",
    "MPI_ARGVS_NULL": "char***",
    "MPI_BOTTOM": "void*",
    "MPI_IN_PLACE": "void*",
    "MPI_BUFFER_AUTOMATIC": "void*",
    "MPI_UNWEIGHTED": "int*",
    "MPI_WEIGHTS_EMPTY": "int*",
}


def callbacks() -> str:
    """The typedefs of functions, as the standard's header has them."""
    text = (HERE.parent / "api" / "mpi.h.in").read_text()
    begin = text.index("/* Callbacks. */")
    return text[begin : text.index("/* Predefined callbacks")]


def header(folder: pathlib.Path) -> str:
    handles = constants.handle_types()
    lines = ["#ifndef THEIR_MPI_H", "#define THEIR_MPI_H", "#include <stdint.h>"]
    lines += ["typedef intptr_t MPI_Aint;", "typedef int64_t MPI_Offset;", "typedef int64_t MPI_Count;"]
    lines += [TYPES[folder.name], EXTENSIONS, callbacks()]
    objects = folder / "objects.def"
    if objects.exists():
        for symbol, name in re.findall(r"^OBJECT\((\w+), \d+, (MPI_\w+)\)", objects.read_text(), re.M):
            lines += [f"extern char {symbol}[];", f"#ifndef {name}", f"#define {name} (({handles[name]})(void*){symbol})", "#endif"]
        lines.append("#define MPIX_C_FLOAT16 ((MPI_Datatype)(void*)ompi_mpi_short_float)")
    for name, value in constants.values(folder / "values.def").items():
        if name.endswith("_FN") or "CONVERSION_FN" in name:
            continue
        if name in POINTERS or name in handles:
            lines.append(f"#define {name} (({POINTERS.get(name, handles.get(name))}){value})")
        elif not name.startswith("MPI_T_"):
            lines.append(f"#define {name} ({value})")
    for function in table.load():
        if not function.name.startswith("MPI_T_"):
            lines += [function.signature(name, large) + ";" for name, large in function.entries]
    return "\n".join(lines) + "\n#endif\n"


def names() -> str:
    functions = [name for function in table.load() for name, _ in function.entries]
    return "".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in [*functions, "MPIR_Dup_fn"]) + (
        "int *MPI_UNWEIGHTED, *MPI_WEIGHTS_EMPTY;\n"
    )


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(names() if target.suffix == ".c" else header(HERE / sys.argv[1]))
