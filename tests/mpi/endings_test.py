# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that end badly, or must end quietly: the exit code, what is said, and that nothing outlives the job or hangs.

The cases are in endings.cpp and faults.cpp; a rank that comes back from its last call prints "came back".
"""
import os
import re
import subprocess
import unittest

from reasons import why_not

MPIEXEC = os.environ.get("GANTRY_MPIEXEC", "mpiexec")
PROGRAM = os.environ.get("GANTRY_MPI_TESTS", "mpi_tests")
PATIENCE = 100  # seconds; only ends a test that hangs


def run(case, ranks, **env):
    """(exit status, everything that was printed)."""
    env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run={case}", **env)
    done = subprocess.run([MPIEXEC, "-n", str(ranks), PROGRAM, case], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout


class Endings(unittest.TestCase):
    def ends(self, case, ranks, status, *sentences, **env):
        code, said = run(case, ranks, **env)
        self.assertEqual(code, status, said)
        self.assertNotIn("came back", said)
        for sentence in sentences:
            self.assertRegex(said, sentence)

    def test_errors_are_fatal_by_default_and_say_what_was_wrong(self):
        self.ends("ending_by_a_bad_rank", 2, 6,  # MPI_ERR_RANK
                  r"rank 1: MPI_Send failed: MPI_ERR_RANK: .*dest is 33.*between 0 and 1.*MPI_COMM_WORLD, rank 1 of 2",
                  r"rank 1 of 2; error handler MPI_ERRORS_ARE_FATAL\)\n.*ended the job with code 6: MPI_Send failed: MPI_ERR_RANK\.\n$")

    def test_a_mistake_that_has_no_communicator_names_whose_handler_ends_the_job(self):
        self.ends("ending_by_a_mistake_that_has_no_communicator", 2, 2,  # MPI_ERR_COUNT
                  r"rank 1: MPI_Type_contiguous failed: .* \(no communicator, so MPI_COMM_SELF's counts; error handler MPI_ERRORS_ARE_FATAL\)")

    def test_a_fatal_error_is_one_line_of_the_rank_and_then_one_of_mpiexec(self):
        for _ in range(5):
            said = run("ending_by_a_bad_rank", 2)[1]
            self.assertEqual([line.split()[0] for line in said.splitlines()], ["gantry:", "mpiexec:"], said)

    def test_what_a_rank_printed_before_its_fatal_error_is_not_lost(self):
        self.ends("ending_after_printing", 1, 6, "the last words")

    def test_ranks_that_share_a_gpu_while_another_one_stands_idle_are_told_once(self):
        told = r"gantry rank 0: warning: ranks of this node shared GPU 0, while 1 of 2 GPUs stood idle: .*mpiexec --gpus-per-rank 1\n"
        code, said = run("ending_after_all_used_one_gpu", 2)
        self.assertEqual((code, len(re.findall(told, said)), said.count("stood idle")), (0, 1, 1), said)
        # Nothing is idle where a rank sees one GPU only.
        code, said = run("ending_after_all_used_one_gpu", 2, CUDA_VISIBLE_DEVICES="1")
        self.assertEqual((code, "stood idle" in said), (0, False), said)

    def test_errors_abort_ends_the_job(self):
        self.ends("ending_by_errors_abort", 2, 2, r"rank 0: MPI_Send failed: MPI_ERR_COUNT", r"MPI_ERRORS_ABORT")

    def test_abort_ends_the_job_with_its_code(self):
        self.ends("ending_by_abort", 3, 42, r"rank 2 of 3 .* ended the job with code 42: MPI_Abort\(MPI_COMM_WORLD, 42\) on rank 2")

    def test_a_spawned_program_without_mpi_ends_the_jobs(self):
        self.ends("ending_by_a_child_without_mpi", 1, 1, r"rank 0 of 1 of spawned job 1 \(true, .* exited with code 0 without MPI_Init; the job is ended")

    def test_abort_of_a_spawned_rank_ends_the_jobs(self):
        self.ends("ending_by_a_child_that_aborts", 2, 7, r"rank 1 of 2 of spawned job 1 .* ended the job with code 7")

    def test_a_program_without_a_launcher_spawns_and_finds_names(self):
        for case in ["soft_asks_for_the_largest_number_that_will_do", "jobs_find_each_other_by_a_published_name"]:
            with self.subTest(case):
                done = subprocess.run([PROGRAM, case], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      timeout=PATIENCE)
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_ends_are_the_same_with_a_progress_thread(self):
        for case, ranks, status in [("ending_by_a_bad_rank", 2, 6), ("ending_by_errors_abort", 2, 2), ("ending_by_abort", 3, 42),
                                    ("ending_by_leaving_without_finalize", 2, 1), ("ending_by_a_killed_rank", 3, 137)]:
            with self.subTest(case):
                self.ends(case, ranks, status, GANTRY_PROGRESS="thread")

    def test_long_messages_are_left_to_the_progress_thread_and_short_ones_are_not(self):
        # Two kinds of memory, three rounds, 150 messages each, of which 100 are long; 64 find room.
        for hand_over, least, most in [("on", 6 * 64, 6 * 100), ("off", 0, 0)]:
            code, said = run("progress_keeps_the_order_of_what_is_left_to_it", 2, GANTRY_HAND_OVER=hand_over, GANTRY_LOG="info")
            self.assertEqual(code, 0, said)
            left = [int(number) for number in re.findall(r"(\d+) sends and receives were left to the progress thread", said)]
            self.assertEqual(len(left), 2 if least > 0 else 0, said)
            for number in left:
                self.assertTrue(least <= number <= most, said)

    def test_what_has_ended_is_taken_from_the_progress_thread(self):
        code, said = run("progress_lets_calls_take_what_has_ended", 2, GANTRY_LOG="info")
        self.assertEqual(code, 0, said)
        taken = [int(number) for number in re.findall(r"were left to the progress thread, (\d+) taken from it", said)]
        self.assertEqual(len(taken), 2, said)
        for number in taken:
            self.assertGreaterEqual(number, 20, said)  # those of the rounds in which nothing else is at work

    def test_what_a_persistent_kernel_took_is_explained(self):
        if os.environ.get("GANTRY_TEST_GPU") == "real":
            self.skipTest("on a GPU that processes share without MPS no kernel stays")
        case = "a_persistent_kernel_takes_some_messages"
        code, said = run(case, 2, GANTRY_EXPLAIN="on")
        if code == 77:
            self.skipTest(why_not(said))
        self.assertEqual(code, 0, said)  # it went on until a kernel had taken some
        taken = re.findall(r"rank \d: small device copies taken by persistent kernels: (\d+) \(launched: (\d+);", said)
        self.assertTrue(taken, said)
        for copies, kernels in taken:
            self.assertGreater(int(copies), 0, said)
            self.assertGreater(int(kernels), 0, said)
        said = run(case, 2, GANTRY_EXPLAIN="on", GANTRY_KERNELS="off")[1]
        self.assertNotIn("persistent kernels:", said)

    def test_windows_are_explained_by_number_and_name(self):
        code, said = run("some_windows", 2, GANTRY_EXPLAIN="on")
        self.assertEqual(code, 0, said)
        for rank in (0, 1):
            windows = re.findall(rf"rank {rank}: window (.*?): operations at 1 rank ", said)
            self.assertEqual(windows, ["1", "2 (halo)", "3"], said)

    def test_checks_tell_of_characters_and_of_what_was_not_freed(self):
        code, said = run("checked_end", 2, GANTRY_CHECK="1")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(re.findall(r"MPI_SUM of MPI_CHAR: the standard has no reduction of characters", said)), 2, said)
        self.assertEqual(len(re.findall(r"not freed: 2 communicators \(halo\), 1 datatype \(row\), 1 group, 1 info object, "
                                        r"1 error handler, 1 reduction operation, 1 request$", said, re.M)), 2, said)
        code, said = run("checked_end", 2)
        self.assertEqual(code, 0, said)
        self.assertEqual(said, "")

    def test_checks_tell_of_threads_in_collectives_of_one_communicator(self):
        said = ""
        for _ in range(200):  # on few cores a run may happen to end each thread's calls before the next one begins
            code, said = run("threads_call_the_same_collective_of_one_communicator", 2, GANTRY_CHECK="1")
            self.assertEqual(code, 0, said)
            if said:
                break
        self.assertRegex(said, "several threads are in collectives of communicator .* at once")
        code, said = run("threads_call_the_same_collective_of_one_communicator", 2)
        self.assertEqual(code, 0, said)
        self.assertEqual(said, "")

    def test_an_unknown_kind_of_progress_is_named(self):
        self.ends("ending_by_abort", 1, 13, "GANTRY_PROGRESS is 'perhaps', but it takes calls or thread",  # MPI_ERR_ARG
                  GANTRY_PROGRESS="perhaps")
        self.ends("ending_by_abort", 1, 13, "GANTRY_HAND_OVER is 'perhaps', but it takes auto, on or off",
                  GANTRY_HAND_OVER="perhaps")
        self.ends("ending_by_abort", 1, 13, "GANTRY_SHARE_COPIES is 'perhaps', but it takes auto, on or off",
                  GANTRY_SHARE_COPIES="perhaps")

    def test_an_unknown_kind_of_log_is_named(self):
        self.ends("ending_by_abort", 1, 13, "GANTRY_LOG is 'loud', but it takes off, error, warn, info or debug", GANTRY_LOG="loud")

    def test_a_rank_killed_inside_a_message_ends_the_job(self):
        self.ends("ending_by_a_killed_rank", 3, 137, r"rank 0 of 3 .* was killed by signal 9 \(SIGKILL")

    def test_a_segmentation_fault_ends_the_job(self):
        self.ends("ending_by_a_segmentation_fault", 2, 139, r"rank 1 of 2 .* was killed by signal 11 \(SIGSEGV")

    def test_a_rank_that_just_leaves_ends_the_job(self):
        self.ends("ending_by_leaving_without_finalize", 2, 1, r"rank 1 of 2 .* before MPI_Finalize")

    def test_a_rank_that_leaves_a_session_open_is_told_what_it_forgot(self):
        self.ends("ending_with_a_session_open", 2, 1,
                  r"rank 1 of 2 .* exited with code 0 before MPI_Finalize.*MPI_Finalize, and MPI_Session_finalize for each session")

    def test_a_context_destroyed_before_finalize_is_no_news(self):
        code, said = run("a_context_destroyed_before_finalize_is_dropped_quietly", 2, CUDA_VISIBLE_DEVICES="0")
        if code == 77:
            self.skipTest(why_not(said))
        self.assertEqual((code, said), (0, ""))

    def test_a_killed_job_leaves_nothing_in_shared_memory(self):
        def mine():
            return {name for name in os.listdir("/dev/shm") if re.search("gantry", name)}
        before = mine()
        run("ending_by_a_killed_rank", 3)
        self.assertEqual(mine() - before, set())


if __name__ == "__main__":
    unittest.main()
