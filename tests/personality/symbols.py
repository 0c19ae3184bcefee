# SPDX-License-Identifier: BSD-3-Clause
"""symbols.py PERSONALITY_LIBRARY STANDARD_LIBRARY STANDARD_JSON: what the two libraries may say to each other.

The personality exports every function of the standard twice, PMPI_x and weak MPI_x, asks the system for nothing but
system libraries, and names no MPI function that it does not define. The standard's library, which is loaded beside it,
names no MPI function through the process: one would be answered by the personality.
"""
import json
import re
import subprocess
import sys

SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux[-\w]*|lib[atu]b?san|libstdc\+\+|libgcc_s)\.so(\.\d+)*$")
MPI = re.compile(r"P?MPIX?_\w+")


def nm(library, *options):
    said = subprocess.run(["nm", "-D", *options, library], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in said.splitlines()]


def main(personality, standard, table):
    rows = json.load(open(table, encoding="utf-8"))["functions"]
    names = {row["name"] for row in rows} | {row["name"] + "_c" for row in rows if row.get("large")}
    exported = {words[2]: (words[0], words[1]) for words in nm(personality, "--defined-only")}
    complaints = [f"missing: {name}" for name in sorted(names - set(exported))]
    for name in sorted(names & set(exported)):
        if exported[name][1] != "W" or exported.get("P" + name) != (exported[name][0], "T"):
            complaints.append(f"{name} is no weak name of P{name}")
    complaints += [f"asks the process for {words[-1]}" for words in nm(personality, "--undefined-only") if MPI.fullmatch(words[-1])]
    complaints += [f"{words[-1]} is exported" for words in nm(personality, "--defined-only") if "gantry" in words[-1]]
    dynamic = subprocess.run(["readelf", "-d", personality], check=True, capture_output=True, text=True).stdout
    complaints += [f"depends on {name}" for name in re.findall(r"Shared library: \[(.*?)\]", dynamic) if not SYSTEM.match(name)]
    relocations = subprocess.run(["readelf", "-rW", standard], check=True, capture_output=True, text=True).stdout
    complaints += [f"the standard's library would call the process's {name}"
                   for name in sorted({name for name in re.findall(r"\s(\w+) \+ [0-9a-f]+$", relocations, re.M) if MPI.fullmatch(name)})]
    print("\n".join(complaints) or f"{len(names)} functions, each in one library for the other")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
