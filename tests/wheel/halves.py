# SPDX-License-Identifier: BSD-3-Clause
"""Device arrays through mpi4py, as CuPy's are (__cuda_array_interface__): each rank sends half of one to the next and adds all up."""
import ctypes

from mpi4py import MPI

cuda = ctypes.CDLL("libcudart.so.12")


def succeeds(code):
    if code != 0:
        raise SystemExit(f"CUDA error {code}")


class Array:
    def __init__(self, count, value):
        self.count, self.address = count, ctypes.c_void_p()
        succeeds(cuda.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(8 * count)))
        host = (ctypes.c_double * count)(*[value] * count)
        succeeds(cuda.cudaMemcpy(self.address, host, ctypes.c_size_t(8 * count), 1))

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.count,), "typestr": "<f8", "data": (self.address.value, False), "version": 3}

    def values(self):
        host = (ctypes.c_double * self.count)()
        succeeds(cuda.cudaMemcpy(host, self.address, ctypes.c_size_t(8 * self.count), 2))
        return list(host)


comm = MPI.COMM_WORLD
count = 100_000
mine, other, total = Array(count, comm.rank + 1.0), Array(count, 0.0), Array(count, 0.0)
following, previous = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
comm.Sendrecv([mine, count // 2, MPI.DOUBLE], dest=following, recvbuf=[other, count // 2, MPI.DOUBLE], source=previous)
comm.Allreduce(mine, total)
assert other.values() == [previous + 1.0] * (count // 2) + [0.0] * (count - count // 2)
assert total.values() == [comm.size * (comm.size + 1) / 2] * count
if comm.rank == 0:
    print(f"device arrays on {comm.size} ranks of {MPI.Get_library_version().split()[0]}")
