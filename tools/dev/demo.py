# SPDX-License-Identifier: BSD-3-Clause
"""`dev demo`: the main job on what this machine has: 4 MiB from device to device between two processes."""
import shlex
from pathlib import Path

import build
from console import ROOT, Failure, cores, note, run, step
from environment import build_folder, for_programs, real_gpu, simulated_gpu


def choose_gpu(preset, wish):
    """(use the real driver?, what to tell the user)"""
    devices, why_not = real_gpu()
    if wish == "real" and not devices:
        raise Failure(f"--gpu real: {why_not}")
    if devices and wish != "simulated":
        return True, f"{devices} CUDA device{'s' if devices > 1 else ''} through the system's driver"
    if simulated_gpu(preset) is None:
        raise Failure("the simulated GPU was not built, so there is no device to show anything on")
    why = "as asked" if devices else why_not
    return False, f"the simulated GPU ({why})"


def device(preset, wish, machine):
    """(use the real driver?, the environment of programs, what to tell the user)"""
    real, found = choose_gpu(preset, wish)
    env = for_programs(preset, real)
    if real:
        return real, env, found
    known = sorted(path.stem for path in (ROOT / "src" / "model" / "machines").glob("*.json"))
    name = machine.split(",")[0]
    if name not in known and not Path(name).is_file():
        raise Failure(f"--machine {name}: neither a machine description's file nor one of {', '.join(known)}")
    env.setdefault("SIMGPU", f"machine={machine}")
    return real, env, f"{found}, machine {machine}"


def others_that_run():
    """How many threads of this machine run or wait for a processor, but this one."""
    return int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1


def demo(preset, wish, machine):
    build.build(preset, build.DEMONSTRATION)
    real, env, found = device(preset, wish, machine)
    folder = build_folder(preset)
    step(f"device: {found}")
    command = [folder / "bin" / "mpiexec", "-n", "2", folder / "bin" / "gantry-bench", "demo"]
    for program in (command[0], command[3]):
        if not program.exists():
            raise Failure(f"{program.name} is not built yet, so there is nothing to demonstrate")
    step("running " + shlex.join(str(word.relative_to(folder.parents[1]) if hasattr(word, "relative_to") else word)
                                 for word in command))
    before = others_that_run()
    run(command, "the demo", env=env)
    if not real and min(before, others_that_run()) >= cores():
        note("other programs keep all processors of this machine busy, which make the simulated GPU's copies: the times above say little")
    note("next: ./dev test, or ./dev install PREFIX and PREFIX/bin/mpicc your_program.c")
    return 0
