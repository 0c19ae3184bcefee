# SPDX-License-Identifier: BSD-3-Clause
"""`dev bench`: gantry-bench on two ranks, with the arguments as given (default: latency, device to device)."""
import build
from console import Failure, run, step
from demo import device
from environment import build_folder


def bench(preset, wish, machine, ranks, arguments):
    build.build(preset, build.DEMONSTRATION)
    folder = build_folder(preset)
    program = folder / "bin" / "gantry-bench"
    if not program.exists():
        raise Failure("gantry-bench is not built")
    _, env, found = device(preset, wish, machine)
    step(f"device: {found}")
    arguments = arguments or ["latency"]
    # A comparison starts its jobs itself.
    compares = arguments[0] == "overlap" or any(word.split("=")[0] == "--peers" for word in arguments)
    launcher = [] if compares else [folder / "bin" / "mpiexec", "-n", str(ranks)]
    run([*launcher, program, *arguments], "the benchmark", env=env)
    return 0
