# SPDX-License-Identifier: BSD-3-Clause
"""symbols.py LIBRARY STANDARD_JSON: the library exports the standard's 664 functions and the
documented extensions, no more.

Every PMPI_x is a strong function, MPI_x a weak one at the same address; no symbol versions; the
soname is the ABI's; and a program pulls in nothing but the system's own libraries (drivers and
networks are loaded when needed).
"""

import json
import re
import subprocess
import sys

EXTENSIONS = {"MPIX_Query_cuda_support", "MPIX_GPU_query_support", "MPIX_Op_create_x"} | {
    f"MPIX_{kind}_create_errhandler_x" for kind in ("Comm", "Win", "File", "Session")} | {
    f"MPIX_Comm_{name}" for name in ("revoke", "is_revoked", "shrink", "ishrink", "agree", "iagree", "get_failed", "ack_failed", "failure_ack",
                                     "failure_get_acked")} | {
    "MPIX_Win_revoke", "MPIX_Win_get_failed", "MPIX_File_revoke"
}
ERRATA = {"MPI_Psend_init_c", "MPI_Precv_init_c"}
SYSTEM = re.compile(
    r"(libc|libm|libdl|librt|libpthread|ld-linux[-\w]*|libasan|libubsan|libtsan|libstdc\+\+|libgcc_s)\.so(\.\d+)*$"
)
SANITIZER = re.compile(r"lib[atu]b?san")


def standard_names(path: str) -> set:
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["functions"]
    return (
        {row["name"] for row in rows}
        | {row["name"] + "_c" for row in rows if row.get("large")}
        | ERRATA
    )


def main(library: str, standard: str) -> int:
    complaints = []
    exported = {}
    for line in subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout.splitlines():
        address, kind, name = line.split()
        exported[name] = (address, kind)
    names = standard_names(standard)
    if len(names) != 664:
        complaints.append(f"the table has {len(names)} functions, not 664")
    wanted = names | {"P" + name for name in names} | EXTENSIONS
    complaints += [f"missing: {name}" for name in sorted(wanted - set(exported))]
    complaints += [
        f"exported but not of the ABI: {name}" for name in sorted(set(exported) - wanted)
    ]
    for name in sorted(names & set(exported)):
        address, kind = exported[name]
        strong = exported.get("P" + name, ("", ""))
        if kind != "W" or strong != (address, "T"):
            complaints.append(
                f"{name} is {kind} at {address}, P{name} is {strong[1]} at {strong[0]}: want W and T at one address"
            )
    dynamic = subprocess.run(
        ["readelf", "-d", library], check=True, capture_output=True, text=True
    ).stdout
    if "soname: [libmpi_abi.so.1]" not in dynamic:
        complaints.append("the soname is not libmpi_abi.so.1")
    needed = re.findall(r"Shared library: \[(.*?)\]", dynamic)
    complaints += [f"depends on {name}" for name in needed if not SYSTEM.match(name)]
    if any("stdc++" in name for name in needed) and not any(
        SANITIZER.match(name) for name in needed
    ):
        complaints.append("depends on the C++ library of the machine it was built on")
    print(
        "\n".join(complaints)
        or f"{len(names)} pairs and {len(EXTENSIONS)} extensions, nothing else"
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
