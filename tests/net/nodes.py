# SPDX-License-Identifier: BSD-3-Clause
"""Two machines that are network namespaces, joined by a cable (a veth pair) that can be shaped and cut.

Each node has namespaces of its own for network, processes, mounts (with its own /dev/shm and /sys) and host name, so that everybody takes
it for another machine: Gantry by its process namespace, UCX by what sysfs shows, the simulated GPU by /dev/shm. Needs root, or a kernel
that lets users make namespaces; run_in_namespaces() says why not. Every process dies with this one.
"""
import array
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

NOT_RUN = 77
INSIDE = "GANTRY_TEST_NODES"  # tells the second start of a script that it is inside
ADDRESS = "10.77.0.{}"
RAIL_ADDRESS = "10.77.{}.{}"  # of further rails
PR_SET_PDEATHSIG = 1
FULL_PACKET, DATA_OF_PACKET = 1514, 1448  # of TCP; jumbo packets are larger than the windows of a slow cable, and stall it


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def not_run(why):
    print(f"not run: {why}")
    sys.exit(NOT_RUN)


def need_ucx():
    library = os.environ.get("GANTRY_UCX") or "libucp.so.0"
    if os.path.isdir(library):
        library = os.path.join(library, "libucp.so.0")
    try:
        ctypes.CDLL(library)
    except OSError as refused:
        not_run(f"the network needs UCX ({refused}); `apt install libucx0` or set GANTRY_UCX")


def run_in_namespaces():
    """Starts this script again as root of a user namespace of its own; returns in there, and never outside."""
    if os.environ.get(INSIDE):
        return
    for tool in ("unshare", "nsenter", "ip", "tc"):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            not_run(f"two network namespaces need `{tool}` (apt install util-linux iproute2)")
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    for attempt in (unshare, ["unshare", "--net", "--mount"]):
        refused = subprocess.run(attempt + ["unshare", "--pid", "--fork", "--mount-proc", "true"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        if refused.returncode == 0:
            break
    else:
        not_run(f"this machine refuses namespaces: {refused.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.execvp(attempt[0], attempt + [sys.executable, "-B"] + sys.argv)


def child_of(pid, patience=10):
    """The process that a forking helper (unshare --fork, nsenter --pid) started."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            found = children.read().split()
        if found:
            return int(found[0])
        time.sleep(0.01)
    raise RuntimeError("a helper started nothing")


class Node:
    """One machine; `address` is where the others reach it."""

    def __init__(self, number):
        self.name, self.address, self.device = f"node{number}", ADDRESS.format(number + 1), f"cable{number}"
        self.rails = [self.device]  # more of them: further cables of two_nodes
        self.processor = None  # the only one that what is started here may use
        names = "127.0.0.1 localhost\\n" + "".join(f"{ADDRESS.format(other + 1)} node{other}\\n" for other in (0, 1))
        script = (f"mount -t sysfs sysfs /sys 2>/dev/null; mount -t tmpfs tmpfs /dev/shm && hostname {self.name} && ip link set lo up && "
                  f"printf '{names}' > /dev/shm/hosts && mount --bind /dev/shm/hosts /etc/hosts && echo up && exec cat")
        # `cat` ends, and with it every process of the node, when our end of its input closes.
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
                                        "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       preexec_fn=die_with_parent)
        if self.keeper.stdout.readline() != "up\n":
            not_run(f"{self.name} could not be set up")
        self.first = child_of(self.keeper.pid)

    def close(self):
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()

    def enter(self):
        one = [] if self.processor is None else ["taskset", "-c", str(self.processor)]
        return one + ["nsenter", "-t", str(self.first), "--net", "--mount", "--uts", "--ipc", "--pid", "--"]

    def start(self, command, env=None, **how):
        # Entering a mount namespace leads to its root folder.
        here = ["env", f"--chdir={os.getcwd()}"]
        return subprocess.Popen(self.enter() + here + command, env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL,
                                preexec_fn=die_with_parent, **how)

    def run(self, command):
        subprocess.run(self.enter() + command, check=True)

    def wait_for_carrier(self, patience=10):
        """Programs that look for networks before the kernel calls this one running do not find it."""
        end = time.monotonic() + patience
        for rail in range(len(self.rails)):
            while "LOWER_UP" not in self.cable(rail) or "state UP" not in self.cable(rail):
                if time.monotonic() > end:
                    raise RuntimeError(f"a cable of {self.name} stays down: {self.cable(rail)}")
                time.sleep(0.01)

    def cable(self, rail=0):
        return subprocess.run(self.enter() + ["ip", "link", "show", self.rails[rail]], stdout=subprocess.PIPE, text=True, check=True).stdout

    def cut(self, rail=0):
        self.run(["ip", "link", "set", self.rails[rail], "down"])

    def mend(self, rail=0):
        self.run(["ip", "link", "set", self.rails[rail], "up"])


def two_nodes(bytes_per_second=None, more_rails=()):
    """Two joined nodes; the cable carries `bytes_per_second` of data each way, as much as it can when None. `more_rails`: the same of each
    further cable. (nodes[i].rails: the devices' names.)"""
    nodes = [Node(0), Node(1)]
    for rail, rate in enumerate((bytes_per_second, *more_rails)):
        if rail > 0:
            for node in nodes:
                node.rails.append(f"{node.device}x{rail}")
        subprocess.run(["ip", "link", "add", nodes[0].rails[rail], "netns", str(nodes[0].first), "type", "veth",
                        "peer", "name", nodes[1].rails[rail], "netns", str(nodes[1].first)], check=True)
        for number, node in enumerate(nodes):
            address = node.address if rail == 0 else RAIL_ADDRESS.format(rail, number + 1)
            node.run(["ip", "address", "add", address + "/24", "dev", node.rails[rail]])
            node.mend(rail)
            if rate:
                node.run(["tc", "qdisc", "add", "dev", node.rails[rail], "root", "tbf", "rate", f"{int(rate * 8 * FULL_PACKET / DATA_OF_PACKET)}bit",
                          "burst", "160k", "limit", "64m"])
    for node in nodes:
        node.wait_for_carrier()
    return nodes


class RemoteShell:
    """Lets other libraries' launchers, which run on one node, start their part on another as they would by rsh: they are given tests/net/rsh,
    which asks us by a socket of the file system. (A process cannot enter another node from inside one.)"""

    def __init__(self, nodes):
        self.nodes = {node.address: node for node in nodes}
        self.folder = tempfile.mkdtemp(prefix="gantry-rsh-")
        self.path = os.path.join(self.folder, "door")
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self.path)
        self.door.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                guest, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self.run, args=(guest,), daemon=True).start()

    def run(self, guest):
        with guest:
            asked, streams, _, _ = socket.recv_fds(guest, 1 << 20, 3)
            while not asked.endswith(b"\0"):
                asked += guest.recv(1 << 20)
            host, command, folder, env = json.loads(asked[:-1])
            node = self.nodes.get(host)
            if node is None:
                os.write(streams[2], f"rsh: there is no node {host}\n".encode())
                code = 255
            else:
                # The parent-death signal is of the thread that starts a process; this one waits for it.
                process = subprocess.Popen(node.enter() + ["env", "-i", f"--chdir={folder}", *(f"{name}={value}" for name, value in env.items()),
                                                           "sh", "-c", command], stdin=streams[0], stdout=streams[1], stderr=streams[2])
                code = process.wait()
            for stream in streams:
                os.close(stream)
            try:
                guest.sendall(array.array("i", [code]).tobytes())
            except OSError:
                pass  # the launcher did not wait

    def close(self):
        self.door.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(process):
    """SIGKILL to what Node.start started (nsenter only waits for it)."""
    os.kill(child_of(process.pid), signal.SIGKILL)


def job_environment(nodes, rank, port=15000):
    """One rank on each node."""
    return {"GANTRY_RENDEZVOUS": f"{nodes[0].address}:{port}", "GANTRY_SIZE": str(len(nodes)), "GANTRY_RANK": str(rank)}
