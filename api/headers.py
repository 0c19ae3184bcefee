# SPDX-License-Identifier: BSD-3-Clause
"""mpi.h, mpi-ext.h and the export map, from the table and their templates."""

import table
import text

HANDLES = (
    "Comm",
    "Errhandler",
    "File",
    "Group",
    "Info",
    "Message",
    "Op",
    "Request",
    "Session",
    "Win",
)
# MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY stand for them: small addresses, of which compilers warn where an array
# is declared.
WEIGHTS = ("weights", "sourceweights", "destweights")
EXTENSIONS = (
    "MPIX_Query_cuda_support",
    "MPIX_GPU_query_support",
    "MPIX_Op_create_x",
    "MPIX_Comm_create_errhandler_x",
    "MPIX_Win_create_errhandler_x",
    "MPIX_File_create_errhandler_x",
    "MPIX_Session_create_errhandler_x",
    "MPIX_Comm_revoke",
    "MPIX_Comm_is_revoked",
    "MPIX_Comm_shrink",
    "MPIX_Comm_ishrink",
    "MPIX_Comm_agree",
    "MPIX_Comm_iagree",
    "MPIX_Comm_get_failed",
    "MPIX_Comm_ack_failed",
    "MPIX_Comm_failure_ack",
    "MPIX_Comm_failure_get_acked",
    "MPIX_Win_revoke",
    "MPIX_Win_get_failed",
    "MPIX_File_revoke",
)


def prototypes(functions: list, prefix: str) -> str:
    lines = []
    for function in functions:
        for name, large in function.entries:
            signature = function.signature(prefix + name, large)
            for weights in WEIGHTS:
                signature = signature.replace(f"int {weights}[]", f"int* {weights}")
            lines += text.wrap(signature + ";", 118)
    return "\n".join(lines) + "\n"


def fortran_wrappers() -> str:
    """*_c2f and *_f2c as inline functions; MPI_Type_* takes an MPI_Datatype, the others a handle of
    their name."""
    pairs = [(kind, f"MPI_{kind}") for kind in HANDLES] + [("Type", "MPI_Datatype")]
    lines = []
    for kind, handle in sorted(pairs):
        lines += [
            f"static __inline__ MPI_Fint MPI_{kind}_c2f({handle} handle) {{ return MPI_{kind}_toint(handle); }}",
            f"static __inline__ {handle} MPI_{kind}_f2c(MPI_Fint handle) {{ return MPI_{kind}_fromint(handle); }}",
        ]
    lines += [
        "static __inline__ int MPI_Status_c2f(const MPI_Status* c_status, MPI_Fint* f_status) {",
        "    *(MPI_Status*)(void*)f_status = *c_status;",
        "    return MPI_SUCCESS;",
        "}",
        "static __inline__ int MPI_Status_f2c(const MPI_Fint* f_status, MPI_Status* c_status) {",
        "    *c_status = *(const MPI_Status*)(const void*)f_status;",
        "    return MPI_SUCCESS;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def mpi_h(functions: list) -> str:
    template = (table.HERE / "mpi.h.in").read_text()
    return (
        template.replace("@PROTOTYPES@\n", prototypes(functions, ""))
        .replace("@PROFILING_PROTOTYPES@\n", prototypes(functions, "P"))
        .replace("@FORTRAN_WRAPPERS@\n", fortran_wrappers())
    )


def mpi_ext_h() -> str:
    return (table.HERE / "mpi-ext.h.in").read_text()


def exported(functions: list) -> list:
    names = [
        prefix + name
        for function in functions
        for name, _ in function.entries
        for prefix in ("", "P")
    ]
    return sorted(names) + list(EXTENSIONS)


def export_map(functions: list) -> str:
    """No version node has a name: the standard ABI knows no symbol versions."""
    return (
        "{\n  global:\n"
        + "".join(f"    {name};\n" for name in exported(functions))
        + "  local: *;\n};\n"
    )
