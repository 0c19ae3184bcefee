# SPDX-License-Identifier: BSD-3-Clause
"""a message and a small collective pass no more source files, and cost no more instructions, than these bounds, which only fall

Counted by bench/instructions in steady state, of one rank that waits for nobody. A file counts where callgrind sees at least one instruction
of it in most rounds: the generated entry point, and every .cpp of src/. Headers do not: what is inline is read where it is used.
What a personality translates is counted alone. `python3 tools/check/message_cost.py --list` names the files. Bounds of instructions leave a
hundredth, for what lies where differs from run to run. Who makes a count smaller lowers its bound.
"""
import ctypes
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys

import _rule

NOT_RUN = 77
# On a busy machine what ran meanwhile is seen, too: the least instructions count, and the files that each attempt has seen.
ATTEMPTS = 6

# Name, arguments of bench/instructions.c, the rank that is counted, two nodes; most files and most instructions of src/ (0: not
# bounded, since the rank waits for copies). Such a rank passes 25 to 42 files in one attempt, by what it meets while it waits: 40
# and 41 of a device message on a quiet machine.
KINDS = [
    ("MPI_Send of 8 B of host memory", ["host", "8", "0", "10", "40"], 0, False, 12, 730),
    ("MPI_Recv of 8 B of host memory", ["host", "8", "0", "10", "40"], 1, False, 0, 1540),
    ("MPI_Bcast of 8 B, root", ["bcast", "8", "0", "10", "40"], 0, False, 0, 775),
    ("MPI_Allreduce of 8 B, last rank", ["allreduce", "8", "0", "10", "40"], 1, False, 0, 1100),
    ("MPI_Alltoall of 8 B, last rank", ["alltoall", "8", "0", "10", "40"], 1, False, 0, 1046),
    ("MPI_Put of 8 B", ["put", "8", "0", "800", "100"], 0, False, 0, 390),
    ("MPI_Send of 8 B of device memory", ["device", "8", "0", "10", "600"], 0, False, 43, 0),
    ("MPI_Send of 4 MiB of strided device memory to another node", ["strided", "4194304", "0", "4", "10"], 0, True, 60, 0),
]

# What a program of another MPI pays for translating (personality/), of the rank that is counted: name, arguments, rank, most instructions.
TRANSLATED = [
    ("MPI_Irecv of 8 B and its part of MPI_Waitall, as MPICH's", ["host", "8", "64", "4", "20"], "mpich", 1, 60),
    ("MPI_Irecv of 8 B and its part of MPI_Waitall, as Open MPI's", ["host", "8", "64", "4", "20"], "openmpi", 1, 56),
    ("MPI_Put of 8 B, as MPICH's", ["put", "8", "0", "400", "50"], "mpich", 0, 36),
]


def load_counter():
    loader = importlib.machinery.SourceFileLoader("instructions", str(_rule.ROOT / "bench" / "instructions"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("instructions", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def lacking():
    """Why nothing can be counted here, or None."""
    for tool in ("valgrind", "gcc"):
        if shutil.which(tool) is None:
            return f"counting instructions needs {tool}"
    return None


def lacking_for_two_nodes():
    library = os.environ.get("GANTRY_UCX") or "libucp.so.0"
    try:
        ctypes.CDLL(os.path.join(library, "libucp.so.0") if os.path.isdir(library) else library)
    except OSError:
        return "the network needs UCX"
    refused = subprocess.run(["unshare", "--pid", "--fork", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "two nodes on one machine need root" if refused.returncode != 0 else None


def count(counter, costs):
    """(the files of one message, its instructions)."""
    ours = counter.gantry_only(costs)
    entry = {file.rsplit("/", 1)[-1] for file, cost in costs.items() if "generated" in file and file.endswith(".cpp") and cost >= 1}
    return sorted(entry | {file for file in ours if file.endswith(".cpp")}), round(sum(ours.values()))


def main():
    if why := lacking():
        print(f"not run: {why}")
        sys.exit(NOT_RUN)
    names = "--list" in sys.argv
    if names:
        sys.argv.remove("--list")
    folder = _rule.ROOT / "build" / _rule.arguments().preset
    counter, measured = load_counter(), {}

    def measure(arguments, two_nodes, name, attempt, through=None):
        key = (tuple(arguments), attempt, through)
        if key not in measured:
            measured[key] = counter.measure(folder, name, arguments, two_nodes, through)
        return measured[key]

    failed = False
    for name, arguments, rank, two_nodes, most_files, most_instructions in KINDS:
        if two_nodes and (why := lacking_for_two_nodes()):
            print(f"{name}: not run: {why}")
            continue
        files, instructions = None, None
        for attempt in range(ATTEMPTS):
            found, cost = count(counter, measure(arguments, two_nodes, name, attempt)[rank])
            files = found if files is None else [file for file in files if file in found]
            instructions = cost if instructions is None else min(cost, instructions)
            if (not most_files or len(files) <= most_files) and (not most_instructions or instructions <= most_instructions):
                break
        for counted, most, what in ((len(files), most_files, "files"), (instructions, most_instructions, "instructions")):
            if most and counted > most:
                print(f"{name}: {counted} {what}, at most {most} are allowed")
                failed = True
            elif most and most_instructions and counted < most * 0.96:
                print(f"{name}: {counted} {what}: lower the bound, which is {most}")
        if names:
            print(f"{name}: {len(files)} files, {instructions} instructions")
            for file in files:
                print(f"    {file}")
    for name, arguments, through, rank, most in TRANSLATED:
        costs = []
        while len(costs) < ATTEMPTS and (not costs or costs[-1] > most):
            costs.append(round(counter.personality_only(measure(arguments, False, name, len(costs), through)[rank])))
        if min(costs) > most:
            print(f"{name}: {min(costs)} instructions, at most {most} are allowed")
            failed = True
        elif min(costs) < most * 0.96:
            print(f"{name}: {min(costs)} instructions: lower the bound, which is {most}")
    sys.exit(1 if failed else 0)


main()
