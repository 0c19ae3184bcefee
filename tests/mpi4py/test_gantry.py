# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py on Gantry, as a program would use it: mpiexec -n 2 python test_gantry.py

Host arrays of NumPy, Python objects (pickled by mpi4py), and GPU memory through the CUDA array interface, in messages and collectives.
GPU memory comes from the driver itself by ctypes, so neither CuPy nor a real GPU is needed: the simulated driver does. Threads: several
of a rank in MPI at once, and mpi4py's own pool of workers, which has a thread of its own in MPI.
"""
import ctypes
import sys
import threading
import unittest

import numpy
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
RIGHT, LEFT = (RANK + 1) % SIZE, (RANK - 1) % SIZE


class Driver:
    """The few calls of the CUDA driver that a program without CuPy needs."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.use()

    def use(self):
        """The calling thread may use the GPU from here on."""
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise OSError(f"{name} returned {result}")


class DeviceArray:
    """An array in GPU memory that says so by __cuda_array_interface__ (version 3), like CuPy's, Numba's or PyTorch's."""
    driver = None

    def __init__(self, host):
        DeviceArray.driver = DeviceArray.driver or Driver()
        self.shape, self.dtype, self.nbytes = host.shape, host.dtype, host.nbytes
        self.address = ctypes.c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(self.nbytes, 1)))
        host = numpy.ascontiguousarray(host)
        self.driver.call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(self.nbytes))
        self.driver.call("cuStreamSynchronize", None)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address.value, False), "strides": None, "version": 3}

    def get(self):
        host = numpy.empty(self.shape, self.dtype)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(host.ctypes.data), self.address, ctypes.c_size_t(self.nbytes))
        return host

    def __del__(self):
        self.driver.call("cuMemFree_v2", self.address)


def have_driver():
    try:
        DeviceArray.driver = DeviceArray.driver or Driver()
        return True
    except OSError:
        return False


def numbers(rank, count, dtype="d"):
    return (numpy.arange(count) % 1000 + 10000 * rank).astype(dtype)


def in_threads(number, work):
    """Calls work(0), work(1), ... each in a thread of its own; raises what the first of those that failed has raised."""
    failed = []

    def guarded(thread):
        try:
            work(thread)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(thread,)) for thread in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


class Host(unittest.TestCase):
    def test_arrays_go_around_a_ring(self):
        for count in (0, 1, 1000, 300000):
            for dtype in ("b", "i", "q", "f", "d", "D"):
                got = numpy.zeros(count, dtype)
                COMM.Sendrecv(numbers(RANK, count, dtype), RIGHT, 1, got, LEFT, 1)
                numpy.testing.assert_array_equal(got, numbers(LEFT, count, dtype))

    def test_nonblocking_messages(self):
        got = [numpy.zeros(50000) for _ in range(8)]
        requests = [COMM.Irecv(array, LEFT, tag) for tag, array in enumerate(got)]
        sent = [numbers(RANK, 50000) + tag for tag in range(8)]
        requests += [COMM.Isend(array, RIGHT, tag) for tag, array in reversed(list(enumerate(sent)))]
        MPI.Request.Waitall(requests)
        for tag, array in enumerate(got):
            numpy.testing.assert_array_equal(array, numbers(LEFT, 50000) + tag)

    def test_probe_before_receiving(self):
        request = COMM.Isend(numbers(RANK, 777), RIGHT, 5)
        status = MPI.Status()
        COMM.Probe(LEFT, MPI.ANY_TAG, status)
        self.assertEqual((status.Get_count(MPI.DOUBLE), status.Get_tag(), status.Get_source()), (777, 5, LEFT))
        got = numpy.empty(777)
        COMM.Recv(got, LEFT, 5)
        request.Wait()
        numpy.testing.assert_array_equal(got, numbers(LEFT, 777))

    def test_collectives(self):
        total = numpy.empty(1000)
        COMM.Allreduce(numbers(RANK, 1000), total, MPI.SUM)
        numpy.testing.assert_array_equal(total, sum(numbers(r, 1000) for r in range(SIZE)))
        array = numbers(0, 100) if RANK == 0 else numpy.zeros(100)
        COMM.Bcast(array, 0)
        numpy.testing.assert_array_equal(array, numbers(0, 100))
        every = numpy.empty((SIZE, 10))
        COMM.Allgather(numbers(RANK, 10), every)
        numpy.testing.assert_array_equal(every, [numbers(r, 10) for r in range(SIZE)])

    def test_a_truncated_message_is_an_exception_that_says_so(self):
        request = COMM.Isend(numbers(RANK, 100), RIGHT, 9)
        with self.assertRaises(MPI.Exception) as raised:
            COMM.Recv(numpy.empty(10), LEFT, 9)
        self.assertEqual(raised.exception.Get_error_class(), MPI.ERR_TRUNCATE)
        request.Wait()
        COMM.Barrier()


class Objects(unittest.TestCase):
    thing = {"name": "lattice", "sizes": [3, 4, 5], "nested": {"pi": 3.25, "none": None}, "text": "\u00e9" * 1000}

    def test_objects_go_around_a_ring(self):
        for extra in ("", "x" * 2000000):
            got = COMM.sendrecv({**self.thing, "from": RANK, "extra": extra}, RIGHT, 2, source=LEFT, recvtag=2)
            self.assertEqual(got, {**self.thing, "from": LEFT, "extra": extra})

    def test_objects_in_collectives(self):
        self.assertEqual(COMM.bcast(self.thing if RANK == 0 else None, 0), self.thing)
        self.assertEqual(COMM.allgather((RANK, self.thing)), [(r, self.thing) for r in range(SIZE)])
        self.assertEqual(COMM.scatter([[r] * r for r in range(SIZE)] if RANK == 0 else None, 0), [RANK] * RANK)
        self.assertEqual(COMM.allreduce(RANK + 1), SIZE * (SIZE + 1) // 2)
        self.assertEqual(COMM.alltoall([f"{RANK}->{r}" for r in range(SIZE)]), [f"{r}->{RANK}" for r in range(SIZE)])

    def test_objects_of_a_split_communicator(self):
        alone = COMM.Split(RANK)
        self.assertEqual(alone.allgather("me"), ["me"])
        alone.Free()


class Threads(unittest.TestCase):
    def test_mpi4py_gets_the_thread_level_that_it_asks_for(self):
        self.assertEqual(MPI.Query_thread(), MPI.THREAD_MULTIPLE)

    def test_threads_send_and_receive_at_once(self):
        comms = [COMM.Dup() for _ in range(4)]

        def work(thread):
            for count in (1, 1000, 100000):
                got = numpy.zeros(count)
                comms[thread].Sendrecv(numbers(RANK, count) + thread, RIGHT, thread, got, LEFT, thread)
                numpy.testing.assert_array_equal(got, numbers(LEFT, count) + thread)
                self.assertEqual(comms[thread].allreduce(thread + RANK), thread * SIZE + SIZE * (SIZE - 1) // 2)

        in_threads(len(comms), work)
        for comm in comms:
            comm.Free()

    @unittest.skipUnless(SIZE > 1, "the workers of a pool are the other ranks")
    def test_a_pool_of_futures_is_given_work_by_several_threads(self):
        with MPICommExecutor(COMM, root=0) as pool:
            if pool is not None:  # the others work in here until the pool is left

                def work(thread):
                    asked = [pool.submit(pow, thread + 2, number) for number in range(20)]
                    self.assertEqual([each.result() for each in asked], [(thread + 2)**number for number in range(20)])
                    self.assertEqual(list(pool.map(len, ["x" * length for length in range(20)], chunksize=3)), list(range(20)))

                in_threads(3, work)
                failed = pool.submit(divmod, 1, 0)
                self.assertIsInstance(failed.exception(), ZeroDivisionError)


@unittest.skipUnless(have_driver(), "there is no CUDA driver")
class Device(unittest.TestCase):
    def test_device_arrays_go_around_a_ring(self):
        for count in (1, 1000, 500000):
            for dtype in ("i", "f", "d"):
                sent, got = DeviceArray(numbers(RANK, count, dtype)), DeviceArray(numpy.zeros(count, dtype))
                COMM.Sendrecv(sent, RIGHT, 3, got, LEFT, 3)
                numpy.testing.assert_array_equal(got.get(), numbers(LEFT, count, dtype))

    def test_device_to_host_and_host_to_device(self):
        for count in (10, 400000):
            host, device = numpy.zeros(count), DeviceArray(numpy.zeros(count))
            requests = [COMM.Irecv(host, LEFT, 0), COMM.Irecv(device, LEFT, 1),
                        COMM.Isend(sent := DeviceArray(numbers(RANK, count)), RIGHT, 0), COMM.Isend(numbers(RANK, count), RIGHT, 1)]
            MPI.Request.Waitall(requests)
            del sent
            numpy.testing.assert_array_equal(host, numbers(LEFT, count))
            numpy.testing.assert_array_equal(device.get(), numbers(LEFT, count))

    def test_device_arrays_in_collectives(self):
        total = DeviceArray(numpy.zeros(30000))
        COMM.Allreduce(DeviceArray(numbers(RANK, 30000)), total, MPI.SUM)
        numpy.testing.assert_array_equal(total.get(), sum(numbers(r, 30000) for r in range(SIZE)))
        array = DeviceArray(numbers(RANK, 1000))
        COMM.Bcast(array, SIZE - 1)
        numpy.testing.assert_array_equal(array.get(), numbers(SIZE - 1, 1000))

    def test_two_threads_send_device_arrays(self):
        def work(thread):
            DeviceArray.driver.use()
            for count in (1, 1000, 500000):
                sent, got = DeviceArray(numbers(RANK, count) + thread), DeviceArray(numpy.zeros(count))
                COMM.Sendrecv(sent, RIGHT, 10 + thread, got, LEFT, 10 + thread)
                numpy.testing.assert_array_equal(got.get(), numbers(LEFT, count) + thread)

        in_threads(2, work)

    def test_device_arrays_to_oneself(self):
        sent, got = DeviceArray(numbers(7, 1000)), DeviceArray(numpy.zeros(1000))
        COMM.Sendrecv(sent, RANK, 4, got, RANK, 4)
        numpy.testing.assert_array_equal(got.get(), numbers(7, 1000))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2 if RANK == 0 else 0)
    if RANK == 0:
        print(MPI.Get_library_version().strip().splitlines()[0])
    # One rank's failure is the job's; sys.exit alone would leave its peer in MPI_Finalize.
    sys.exit(0 if COMM.allreduce(program.result.wasSuccessful(), MPI.LAND) else 1)
