# SPDX-License-Identifier: BSD-3-Clause
"""What bench/programs/run runs: the arguments of each program, and how its output is read. `read` gives the value of each row, None for
one that the program itself says is wrong, and why, if something is."""
import re


class Case:
    files = ""  # what it prints into files where it is started; read like its output
    visible = ("all", "one")

    def __init__(self, name, program, unit, words):
        self.name, self.program, self.unit, self.words = name, program, unit, words

    def arguments(self, ranks, length):
        return [word.format(ranks=ranks) for word in self.words(length).split()]


class Heffte(Case):
    """speed3d: forward and backward transforms; it compares what comes back with what went in."""

    def __init__(self, mode, size):
        super().__init__(f"heFFTe c2c double -{mode} {size}^3", "speed3d_c2c", "ms",
                         lambda length: f"cufft double {size} {size} {size} -{mode} -mps -nruns{5 if length == 'short' else 100}")

    def read(self, output, _):
        seconds = re.search(r"Time per run: ([0-9.e+-]+)", output)
        tolerance, error = re.search(r"Tolerance: +([0-9.e+-]+)", output), re.search(r"Max error: +([0-9.e+-]+)", output)
        if not seconds or not tolerance or not error:
            return {self.name: None}, "no result"
        if not float(error[1]) <= float(tolerance[1]):
            return {self.name: None}, f"its error is {error[1]}, above {tolerance[1]}"
        return {self.name: 1e3 * float(seconds[1])}, ""


class Jacobi(Case):
    """It prints its line only where the field equals that of one GPU."""

    def __init__(self, variant, size):
        super().__init__(f"Jacobi {variant} {size}^2", f"jacobi_{variant}", "ms",
                         lambda length: f"-nx {size} -ny {size} -niter {100 if length == 'short' else 2000} -csv")

    def read(self, output, _):
        line = re.search(r"^mpi\w*, .*, ([0-9.]+), [0-9.]+$", output, re.M)
        return ({self.name: 1e3 * float(line[1])}, "") if line else ({self.name: None}, "no result, or a wrong one")


class Comb(Case):
    """Halos of a block in 26 directions, three variables, packed by its own kernels or by MPI_Pack; a row for each of its tests. It
    asserts every value that comes, and leaves the choice of a GPU to whoever starts it: so each rank sees one."""

    files = "Comb_*_summary"
    visible = ("one",)

    def __init__(self, side):
        super().__init__(f"Comb {side}^3 a rank", "comb", "ms", lambda length: (
            f"-divide {{ranks}}_1_1 -periodic 1_1_1 -ghost 1_1_1 -vars 3 -cycles {self.cycles(length)} "
            "-comm cutoff 250 -cuda_aware_mpi -comm disable all -comm enable mpi -exec disable all -exec enable cuda -exec enable mpi_type "
            "-memory disable all -memory enable cuda_device"))
        self.side = side

    def cycles(self, length):
        return 5 if length == "short" else 100

    def arguments(self, ranks, length):
        return [f"{ranks * self.side}_{self.side}_{self.side}", *super().arguments(ranks, length)]

    def read(self, output, length):
        rows, test = {}, None
        for line in output.splitlines():
            if match := re.match(r"Starting test Comm (.*)", line):
                test = f"{self.name}: {match[1]}"
            elif test and (match := re.match(r"bench-comm: *num \d+ avg ([0-9.]+) s", line)):
                rows[test] = 1e3 * float(match[1]) / self.cycles(length)
                test = None
        return (rows, "") if rows else ({self.name: None}, "no result")


class Osu(Case):
    """A table of sizes; a row for some of them."""

    def __init__(self, program, words, sizes, lower_is_better=True):
        super().__init__(f"OSU {program}", program, "us" if lower_is_better else "us/MB",
                         lambda length: f"{words} -c -x {5 if length == 'short' else 100} -i {5 if length == 'short' else 100}")
        self.sizes, self.lower_is_better = sizes, lower_is_better

    def read(self, output, _):
        rows, wrong = {}, ""
        for line in output.splitlines():
            words = line.split()
            if words and words[0].isdigit() and int(words[0]) in self.sizes and len(words) >= 2:
                row = f"{self.name} {words[0]} B"
                rows[row] = float(words[1]) if self.lower_is_better else 1e6 / float(words[1])
                if words[-1] == "Fail":
                    rows[row], wrong = None, f"{words[0]} B: its validation fails"
        return (rows, wrong) if rows else ({self.name: None}, "no result")


SIZES = (8, 1024, 65536, 1048576, 4194304)
ALL = [
    *(Heffte(mode, size) for size in (64, 128, 256, 512) for mode in ("p2p", "p2p_pl", "a2a", "a2av")),
    Jacobi("mpi", 2048),
    Jacobi("mpi_overlap", 2048),
    Comb(100),
    Osu("osu_latency", "-m 8:4194304 -d cuda D D", SIZES),
    Osu("osu_bw", "-m 8:4194304 -d cuda D D", SIZES, lower_is_better=False),
    Osu("osu_bibw", "-m 8:4194304 -d cuda D D", SIZES, lower_is_better=False),
    Osu("osu_allreduce", "-m 8:4194304 -d cuda", SIZES),
    Osu("osu_alltoall", "-m 8:4194304 -d cuda", SIZES),
]
