# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that our mpiexec does not start: ranks that meet at GANTRY_RENDEZVOUS, and hosts that another launcher serves."""
import os
import re
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
MPIEXEC = str(BUILD / "bin" / "mpiexec")
PROBE = os.environ.get("GANTRY_JOB_PROBE", str(BUILD / "tests" / "job_probe"))
PATIENCE = 60


def clean_environment(**more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "SLURM_", "GANTRY_"))}
    return dict(env, **more)


def free_place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def meet(ranks, size, *arguments, timeout="30s"):
    """[(exit status, output, errors)] of these ranks, started one by one."""
    place = free_place()
    started = [subprocess.Popen([PROBE, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=clean_environment(GANTRY_RENDEZVOUS=place, GANTRY_RANK=str(rank), GANTRY_SIZE=str(size),
                                                      GANTRY_RENDEZVOUS_TIMEOUT=timeout))
               for rank in ranks]
    ended = []
    for process in started:
        try:
            ended.append(process.communicate(timeout=PATIENCE))
        except subprocess.TimeoutExpired:
            process.kill()
            ended.append(process.communicate())
    return [(process.returncode, *text) for process, text in zip(started, ended)]


class Rendezvous(unittest.TestCase):
    def test_ranks_started_one_by_one_are_a_job(self):
        ended = meet(range(3), 3, "exchange", 5000)
        self.assertEqual([code for code, _, _ in ended], [0, 0, 0], ended)
        self.assertEqual([out for _, out, _ in ended],
                         [f"rank {r} of 3 on node 0, local {r} of 3, app 0, launcher rendezvous\n" for r in range(3)])

    def test_a_rank_that_never_comes_is_named(self):
        # Long enough that the two others have met by then on any machine.
        for code, _, errors in meet([0, 2], 3, "exchange", 1, timeout="3s"):
            self.assertEqual(code, 99)
            self.assertIn("rank 1 of 3 did not come", errors)

    def test_an_abort_ends_every_rank_with_its_code_and_reason(self):
        for aborting in (0, 1):
            ended = meet(range(3), 3, "abort", aborting, 7)
            self.assertEqual([code for code, _, _ in ended], [7, 7, 7], ended)
            for rank in {0, 1, 2} - {aborting}:
                self.assertIn(f"rank {aborting} ended the job with code 7: as the arguments say", ended[rank][2])

    def test_a_rank_that_left_fails_the_next_fence_of_the_others(self):
        ended = meet(range(3), 3, "desert", 1, 5)
        self.assertEqual([code for code, _, _ in ended], [99, 5, 99], ended)
        for rank in (0, 2):
            self.assertIn("rank 1 has ended without leaving MPI", ended[rank][2])

    def test_half_a_description_is_an_error_that_says_what_is_missing(self):
        done = subprocess.run([PROBE], env=clean_environment(GANTRY_RENDEZVOUS="here:1"), text=True, capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 99)
        self.assertRegex(done.stderr, r"GANTRY_RENDEZVOUS is 'here:1', GANTRY_RANK -1 and GANTRY_SIZE 0")

    def test_a_pmix_job_without_the_library_says_what_to_install(self):
        done = subprocess.run([PROBE], env=clean_environment(PMIX_NAMESPACE="job@1", PMIX_RANK="1",
                                                             GANTRY_PMIX_LIBRARY="/nowhere/libpmix.so.2"),
                              text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 99)
        self.assertRegex(done.stderr, r"PMIx launcher started this process as a rank of job@1.*apt-get install libpmix2")

    def test_the_launcher_can_be_chosen(self):
        run = dict(text=True, capture_output=True, timeout=PATIENCE)
        alone = subprocess.run([PROBE], env=clean_environment(PMIX_NAMESPACE="job@1", GANTRY_LAUNCHER="none"), **run)
        self.assertIn("launcher singleton", alone.stdout, alone.stderr)
        absent = subprocess.run([PROBE], env=clean_environment(GANTRY_LAUNCHER="pmi"), **run)
        self.assertIn("the environment shows no such launcher", absent.stderr)
        unknown = subprocess.run([PROBE], env=clean_environment(GANTRY_LAUNCHER="ssh"), **run)
        self.assertIn("GANTRY_LAUNCHER is 'ssh', but it takes auto, pmix", unknown.stderr)

    def test_two_launchers_that_disagree_are_pointed_out(self):
        done = subprocess.run([MPIEXEC, "-n", "1", "-env", "GANTRY_RANK", "3", PROBE], env=clean_environment(), text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GANTRY_RANK is 3, but a launcher says that this is rank 0", done.stderr)


class Handover(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def install(self, *names):
        for name in names:
            program = self.folder / name
            program.write_text('#!/bin/sh\necho "$(basename "$0")" "$@"\n')
            program.chmod(0o755)

    def run_mpiexec(self, *arguments, **env):
        return subprocess.run([MPIEXEC, *map(str, arguments)], text=True, capture_output=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, env=clean_environment(PATH=f"{self.folder}:/usr/bin:/bin", **env))

    def test_hydra_gets_hosts_ranks_and_variables(self):
        self.install("mpiexec.hydra")
        done = self.run_mpiexec("--launcher", "mpiexec.hydra", "--hosts", "a:2,b", "-genv", "A", "all", "--label", "-n", 3,
                                "-env", "B", "one", "./x", "1", ":", "-n", 2, "-wdir", "/t", "./y")
        self.assertEqual(done.stdout, "mpiexec.hydra -hosts a:2,b -prepend-rank -genv A all -n 3 -env B one ./x 1 : "
                                      "-n 2 -wdir /t ./y\n", done.stderr)

    def test_prrte_gets_them_in_its_own_words_and_our_variables_too(self):
        self.install("prterun")
        done = self.run_mpiexec("--launcher", "prterun", "--hosts", "a:2,b", "-n", 3, "./x", GANTRY_LOG="info",
                                LD_LIBRARY_PATH="/some/lib")
        self.assertRegex(done.stdout, r"^prterun --map-by :OVERSUBSCRIBE .*-n 3 --host a:2,b .*./x$")
        self.assertIn("-x GANTRY_LOG=info", done.stdout)
        self.assertIn("-x LD_LIBRARY_PATH=/some/lib", done.stdout)

    def test_slurm_is_taken_inside_an_allocation(self):
        self.install("srun", "prterun")
        done = self.run_mpiexec("--hosts", "a,b", "-n", 4, "-genv", "A", "b", "./x", SLURM_JOB_ID="7")
        self.assertEqual(done.stdout, "srun --ntasks 4 --kill-on-bad-exit=1 --nodelist a,b --nodes 2 --export ALL,A=b ./x\n",
                         done.stderr)
        outside = self.run_mpiexec("--hosts", "a,b", "-n", 4, "./x")
        self.assertTrue(outside.stdout.startswith("prterun "), outside)

    def test_every_launcher_is_told_of_a_timeout(self):
        for launcher, expected in {"prterun": "--timeout 90", "orterun": "--timeout 90", "srun": "--time 1:30"}.items():
            with self.subTest(launcher):
                self.install(launcher)
                done = self.run_mpiexec("--launcher", launcher, "--hosts", "a,b", "-n", 4, "--timeout", 90, "./x")
                self.assertIn(f" {expected} ", done.stdout, done.stderr)

    def test_every_launcher_is_told_to_go_on_without_ranks_that_die(self):
        words = {"mpiexec.hydra": "-disable-auto-cleanup", "prterun": "--runtime-options recoverable,notifyerrors",
                 "srun": "--kill-on-bad-exit=0", "orterun": "--enable-recovery"}
        self.install(*words)
        for launcher, expected in words.items():
            with self.subTest(launcher):
                start = ("--launcher", launcher, "--hosts", "a,b", "-n", 4)
                self.assertIn(f" {expected} ", self.run_mpiexec(*start, "--keep-going", "./x").stdout)
                self.assertNotIn(expected, self.run_mpiexec(*start, "./x").stdout)

    def test_every_launcher_is_asked_for_the_same_binding_in_its_words(self):
        words = {"mpiexec.hydra": "-bind-to socket", "prterun": "--bind-to package:REPORT", "srun": "--cpu-bind verbose,sockets",
                 "orterun": "--bind-to socket --report-bindings"}
        self.install(*words)
        for launcher, expected in words.items():
            with self.subTest(launcher):
                start = ("--launcher", launcher, "--hosts", "a,b", "-n", 4)
                done = self.run_mpiexec(*start, "--bind-to", "socket", "--report-bindings", "./x")
                self.assertIn(f" {expected} ", done.stdout, done.stderr)
                self.assertNotIn("bind", self.run_mpiexec(*start, "./x").stdout)

    def test_slurm_gives_ranks_their_gpus_and_no_other_launcher_is_asked(self):
        self.install("srun", "mpiexec.hydra", "prterun")
        gpus = ("--hosts", "a,b", "-n", 4, "--gpus-per-rank", 2, "--gpu-bind", "1,0", "./x")
        self.assertIn(" --gpus-per-task 2 --gpu-bind map_gpu:1,0 ", self.run_mpiexec("--launcher", "srun", *gpus).stdout)
        for launcher in ("mpiexec.hydra", "prterun"):
            done = self.run_mpiexec("--launcher", launcher, *gpus)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--gpus-per-rank and --gpu-bind need srun", done.stderr)

    def test_every_launcher_is_told_where_ranks_go_and_who_reads(self):
        words = {"mpiexec.hydra": "-ppn 2 -s 1", "prterun": "--map-by ppr:2:node:OVERSUBSCRIBE --stdin 1",
                 "srun": "--ntasks-per-node 2 --input 1", "orterun": "--oversubscribe --map-by ppr:2:node --stdin 1"}
        self.install(*words)
        for launcher, expected in words.items():
            with self.subTest(launcher):
                done = self.run_mpiexec("--launcher", launcher, "--hosts", "a,b", "-n", 4, "-ppn", 2, "--stdin", 1, "./x")
                self.assertIn(f" {expected} ", done.stdout, done.stderr)

    def test_without_a_number_of_ranks_hosts_say_it(self):
        self.install("mpiexec.hydra")
        for hosts, more, ranks in (("a:4,b:2", (), 6), ("a,b", ("-N", 3), 6), ("a:4,b:4", ("-n", 3), 3), ("a,b", (), 1)):
            done = self.run_mpiexec("--launcher", "mpiexec.hydra", "--hosts", hosts, *more, "./x")
            self.assertRegex(done.stdout, rf" -n {ranks} ./x$", (hosts, more, done.stderr))
        done = self.run_mpiexec("--hosts", "localhost:8", "-N", 2, "echo", "here")
        self.assertEqual(done.stdout, "here\n" * 2, done.stderr)

    def test_files_of_the_ranks_are_written_or_refused(self):
        self.install("srun", "mpiexec.hydra", "prterun", "orterun")
        start = ("--hosts", "a,b", "-n", 2, "-outfile-pattern", "out-%r-%h-%%r", "./x")
        self.assertIn(" --output out-%t-%N-%%r ", self.run_mpiexec("--launcher", "srun", *start).stdout)
        self.assertIn(" -outfile-pattern out-%r-%h-%%r ", self.run_mpiexec("--launcher", "mpiexec.hydra", *start).stdout)
        for launcher in ("prterun", "orterun"):
            done = self.run_mpiexec("--launcher", launcher, *start)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("-outfile-pattern", done.stderr)

    def test_a_variable_of_the_caller_is_passed_on_by_its_name(self):
        self.install("prterun")
        for option in ("-x", "-genvlist"):
            done = self.run_mpiexec("--launcher", "prterun", "--hosts", "a,b", "-n", 2, option, "FOO", "./x", FOO="bar")
            self.assertIn(" -x FOO=bar ", done.stdout, done.stderr)

    def test_this_machine_needs_no_launcher(self):
        for names in ("localhost", "127.0.0.1", os.uname().nodename, "localhost:2"):
            for option in ("-host", "-H", "--hosts"):
                done = self.run_mpiexec(option, names, "-n", 2, "echo", "here")
                self.assertEqual((done.stdout, done.returncode), ("here\nhere\n", 0), (option, names, done.stderr))
        hosts = self.folder / "hosts"
        hosts.write_text("localhost slots=3\n")
        done = self.run_mpiexec("--hostfile", hosts, "echo", "here")
        self.assertEqual(done.stdout, "here\n" * 3, done.stderr)

    def test_host_files_of_both_families_are_read(self):
        self.install("mpiexec.hydra")
        hosts = self.folder / "hosts"
        hosts.write_text("# nodes\nn1:4\nn2 slots=2 max_slots=3\n\nn3  # the old one\n")
        done = self.run_mpiexec("--launcher", "mpiexec.hydra", "-f", hosts, "-n", 2, "./x")
        self.assertEqual(done.stdout, "mpiexec.hydra -hosts n1:4,n2:2,n3 -n 2 ./x\n", done.stderr)
        hosts.write_text("n1\nn2:many\n")
        done = self.run_mpiexec("-f", hosts, "./x")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"line 2 of .*hosts is 'n2:many'")

    def test_without_any_it_says_what_to_install(self):
        done = self.run_mpiexec("--launcher", "prterun", "--hosts", "a", "./x")
        self.assertEqual(done.returncode, 127)
        self.assertIn("--launcher prterun is not a launcher that PATH has", done.stderr)
        for missing in ("mpiexec.hydra", "prterun", "orterun"):
            if subprocess.run(["which", missing], env={"PATH": "/usr/bin:/bin"}, capture_output=True).returncode == 0:
                self.skipTest(f"{missing} is installed")
        done = self.run_mpiexec("--hosts", "a", "./x")
        self.assertEqual(done.returncode, 127)
        self.assertRegex(done.stderr, r"apt-get install mpich .*pip install mpich")
