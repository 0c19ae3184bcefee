# SPDX-License-Identifier: BSD-3-Clause
"""Device memory through mpi4py: an object with the CUDA array interface, as CuPy, Numba and PyTorch arrays have it, passed to Send
and Recv. The memory comes from the driver directly, so that no GPU package is needed; real and simulated driver are the same here.
"""
import ctypes

from mpi4py import MPI

driver = ctypes.CDLL("libcuda.so.1")


def check(status, what):
    assert status == 0, f"{what}: CUDA error {status}"


class DeviceArray:
    """Bytes of device memory."""

    def __init__(self, count):
        self.count, pointer = count, ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(count)), "cuMemAlloc")
        self.pointer = pointer.value
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (self.pointer, False), "version": 3}

    def write(self, content):
        check(driver.cuMemcpyHtoD_v2(ctypes.c_uint64(self.pointer), content, ctypes.c_size_t(self.count)), "copy to the device")

    def read(self):
        content = ctypes.create_string_buffer(self.count)
        check(driver.cuMemcpyDtoH_v2(content, ctypes.c_uint64(self.pointer), ctypes.c_size_t(self.count)), "copy from the device")
        return content.raw


comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
check(driver.cuInit(0), "cuInit")
context = ctypes.c_void_p()
check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")

for count in (1, 4096, 1_000_003, 8 << 20):
    pattern = bytes((7 * number) % 251 for number in range(4096))
    content = (pattern * (count // 4096 + 1))[:count]
    device = DeviceArray(count)
    if rank == 0:  # device to device, device to host, host to device
        device.write(content)
        comm.Send([device, MPI.BYTE], dest=1)
        comm.Send([device, MPI.BYTE], dest=1)
        comm.Send([bytearray(content), MPI.BYTE], dest=1)
    else:
        comm.Recv([device, MPI.BYTE], source=0)
        assert device.read() == content, f"device to device, {count} bytes"
        host = bytearray(count)
        comm.Recv([host, MPI.BYTE], source=0)
        assert host == content, f"device to host, {count} bytes"
        device.write(bytes(count))
        comm.Recv([device, MPI.BYTE], source=0)
        assert device.read() == content, f"host to device, {count} bytes"
comm.Barrier()
print(f"ok rank {rank}", flush=True)
