# SPDX-License-Identifier: BSD-3-Clause
"""Python objects through mpi4py's lower-case methods: pickled, probed for their size, received in order."""
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
assert comm.size == 2

mine = {"rank": rank, "values": list(range(1000)), "nested": {"text": "x" * 100000}}
theirs = comm.sendrecv(mine, dest=other, source=other)
assert theirs["rank"] == other and theirs["values"] == mine["values"] and theirs["nested"] == mine["nested"]

requests = [comm.isend(("message", number), dest=other, tag=number) for number in range(20)]
received = [comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG) for _ in range(20)]
assert received == [("message", number) for number in range(20)]  # non-overtaking, also with wildcards
MPI.Request.waitall(requests)

assert comm.bcast(mine if rank == 0 else None)["rank"] == 0
assert comm.allreduce(rank + 1) == 3
assert comm.gather(rank * rank) == ([0, 1] if rank == 0 else None)

try:
    comm.send("nobody", dest=17)
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_RANK
else:
    raise AssertionError("a send to rank 17 of 2 was accepted")
comm.Barrier()
print(f"ok rank {rank}", flush=True)
