# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of one machine that believe themselves on several nodes: a PMI-1 launcher of the test's own says so. Ranks of one node meet in
shared memory, those of two nodes over the network.

The cases are in topologies.cpp.
"""
import ctypes
import os
import socket
import subprocess
import threading
import unittest

PROGRAM = os.environ.get("GANTRY_MPI_TESTS", "mpi_tests")
PATIENCE = 60


class Launcher:
    """Starts the ranks of a case and answers what they ask, each in a thread of its own."""

    def __init__(self, case, ranks, mapping, **more):
        self.store = {"PMI_process_mapping": mapping}
        self.meeting = threading.Barrier(ranks)
        self.ranks, self.processes, self.threads = ranks, [], []
        for rank in range(ranks):
            ours, theirs = socket.socketpair()
            env = dict(os.environ, PMI_FD=str(theirs.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(ranks), **more)
            self.processes.append(subprocess.Popen([PROGRAM, case], env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            theirs.close()
            self.threads.append(threading.Thread(target=self.serve, args=(ours,)))
            self.threads[-1].start()

    def answer(self, line):
        words = dict(word.split("=", 1) for word in line.split())
        command = words["cmd"]
        if command == "put":
            self.store[words["key"]] = words["value"]
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            found = self.store.get(words["key"])
            return "cmd=get_result rc=-1 msg=none" if found is None else f"cmd=get_result rc=0 msg=success value={found}"
        if command == "barrier_in":
            self.meeting.wait(PATIENCE)
            return "cmd=barrier_out rc=0"
        return {
            "init": "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
            "get_maxes": "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum rc=0 appnum=0",
            "get_universe_size": f"cmd=universe_size rc=0 size={self.ranks}",
            "get_my_kvsname": "cmd=my_kvsname rc=0 kvsname=nodes",
            "finalize": "cmd=finalize_ack rc=0",
        }[command]

    def serve(self, ours):
        """Until the rank's end."""
        with ours, ours.makefile("rw") as lines:
            try:
                for line in lines:
                    lines.write(self.answer(line) + "\n")
                    lines.flush()
            except (OSError, threading.BrokenBarrierError):
                pass  # a rank ended without the others: the exit codes say so

    def wait(self):
        """What each rank printed, and all exit codes."""
        said = []
        for process in self.processes:
            try:
                said.append(process.communicate(timeout=PATIENCE)[0])
            except subprocess.TimeoutExpired:
                process.kill()
                said.append(process.communicate()[0])
        self.meeting.abort()
        for thread in self.threads:
            thread.join()
        return said, [process.returncode for process in self.processes]


def network_is_here():
    try:
        ctypes.CDLL(os.environ.get("GANTRY_UCX") or "libucp.so.0")
    except OSError:
        return False
    return True


@unittest.skipUnless(network_is_here(), "the network needs UCX: apt install libucx0")
class Nodes(unittest.TestCase):
    def test_a_grid_may_be_reordered_by_node_and_the_log_says_how(self):
        # Blocks of one rank, dealt out over two nodes in turns.
        said, codes = Launcher("grid_over_two_nodes", 4, "(vector,(0,2,1))", GANTRY_LOG="info").wait()
        everything = "".join(said)
        self.assertEqual(codes, [0] * 4, everything)
        line = "topo: grid 4: the processes of a node in one run of rows; 1 of 3 pairs of neighbors are on two nodes (3 in rank order)"
        self.assertEqual([text.count(line) for text in said], [1, 0, 0, 0], everything)


if __name__ == "__main__":
    unittest.main()
