# SPDX-License-Identifier: BSD-3-Clause
"""Host arrays through mpi4py's upper-case methods (buffer protocol; the standard library's array, so nothing else is needed)."""
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank

for count in (0, 1, 1000, 100_000, 1_000_000):
    mine = array("d", (rank + number for number in range(count)))
    theirs = array("d", bytes(8 * count))
    receive = comm.Irecv(theirs, source=other, tag=count % 1000)
    comm.Send(mine, dest=other, tag=count % 1000)
    status = MPI.Status()
    receive.Wait(status)
    assert status.Get_count(MPI.DOUBLE) == count and status.Get_source() == other
    assert theirs == array("d", (other + number for number in range(count)))

total = array("d", bytes(8 * 1000))
comm.Allreduce(array("d", [float(rank + 1)] * 1000), total, op=MPI.SUM)
assert total == array("d", [3.0] * 1000)
comm.Barrier()
print(f"ok rank {rank}", flush=True)
