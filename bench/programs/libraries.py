# SPDX-License-Identifier: BSD-3-Clause
"""How a job of each MPI library begins: a Gantry prefix, and the peers in a folder with impi/, ompi/ and ucx/ (docs/user/benchmarks.md)."""
import os
import subprocess
from pathlib import Path

FOREIGN = ("PMI", "PMIX_", "SLURM_", "OMPI_", "UCX_", "FI_", "I_MPI_", "MPIR_", "PRTE_", "GANTRY_", "CUDA_VISIBLE_DEVICES")
# Of a rank among those of its machine, as the launchers say it.
LOCAL_RANK = "${MPI_LOCALRANKID:-${OMPI_COMM_WORLD_LOCAL_RANK:-$LOCAL_RANK}}"
BOUND = {"all": 'unset CUDA_VISIBLE_DEVICES; exec "$@"',
         "one": f'export CUDA_VISIBLE_DEVICES={LOCAL_RANK}; exec "$@"'}


class Library:
    """`launcher`: the words before "-n". `abi`: whose header its programs were compiled with, "standard" or "ompi"."""

    def __init__(self, name, launcher, environment, abi="standard"):
        self.name, self.launcher, self.environment, self.abi = name, launcher, environment, abi

    def run(self, ranks, words, visible=None, seconds=120, folder=None):
        """The finished job: `.returncode` (None: stopped after `seconds`), `.stdout` with both outputs.

        `visible`: "all" or "one" GPU for each rank, whatever the launcher sets; None: what the launcher sets. `folder`: where it starts.
        """
        words = [str(word) for word in words]
        if visible is not None:
            words = ["/bin/sh", "-c", BOUND[visible], "sh", *words]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment.update(self.environment)
        command = ["timeout", "--kill-after=5", str(seconds), *self.launcher, "-n", str(ranks), *words]
        done = subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
        if done.returncode in (124, 137):
            done.returncode = None
        return done


def path_of(*folders):
    """LD_LIBRARY_PATH with these first. What else it names comes last: a driver, a runtime of CUDA."""
    return ":".join([*map(str, folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


def gantry(prefix, name="Gantry", **more):
    prefix = Path(prefix).resolve()
    return Library(name, [str(prefix / "bin" / "mpiexec")], {"LD_LIBRARY_PATH": path_of(prefix / "lib"), **more})


def intel(folder):
    at = Path(folder).resolve() / "impi"
    return Library("Intel MPI", [str(at / "bin" / "mpiexec.hydra")], {
        "I_MPI_ROOT": str(at), "LD_LIBRARY_PATH": path_of(at / "lib"), "FI_PROVIDER_PATH": str(at / "lib"), "I_MPI_FABRICS": "shm",
        "I_MPI_HYDRA_BOOTSTRAP": "fork", "I_MPI_OFFLOAD": "1"})


def open_mpi(folder, adapter=None):
    """Open MPI over UCX with CUDA. `adapter`: the folder of Gantry's libmpi_abi.so.1 that hands calls on to it; then a program of the
    standard ABI runs, if it calls nothing but what the adapter knows."""
    folder = Path(folder).resolve()
    at = folder / "ompi"
    words = [str(at / "bin" / "mpiexec"), "--oversubscribe"]
    for setting in ("pml ucx", "osc ucx", "opal_common_ucx_tls any", "opal_common_ucx_devices any"):
        words += ["--mca", *setting.split()]
    libraries = [*([adapter] if adapter else []), at / "lib", folder / "ucx" / "lib", folder / "libucx_cu13.libs"]
    return Library("Open MPI", words, {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPAL_PREFIX": str(at), "PMIX_PREFIX": str(at), "PRTE_PREFIX": str(at),
        "UCX_MODULE_DIR": str(folder / "ucx" / "lib" / "ucx"), "UCX_TLS": "cuda,sm,self", "UCX_WARN_UNUSED_ENV_VARS": "n",
        "LD_LIBRARY_PATH": path_of(*libraries)}, "standard" if adapter else "ompi")


def peers_in(folder, adapter=None):
    """Those that lie there."""
    found = []
    if folder and (Path(folder) / "impi" / "bin" / "mpiexec.hydra").exists():
        found.append(intel(folder))
    if folder and (Path(folder) / "ompi" / "bin" / "mpiexec").exists():
        found.append(open_mpi(folder, adapter))
    return found


def adapter_of(prefix):
    """The adapter for Open MPI in a prefix or in a build; None without."""
    for place in ("libexec/gantry/ompi-abi", "bench/ompi-abi"):
        if (Path(prefix) / place / "libmpi_abi.so.1").exists():
            return Path(prefix).resolve() / place
    return None
