# SPDX-License-Identifier: BSD-3-Clause
"""mpiexec of the build folder: how it starts ranks, passes streams and signals on, and how jobs end."""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
MPIEXEC = str(BUILD / "bin" / "mpiexec")
PROBE = os.environ.get("GANTRY_JOB_PROBE", str(BUILD / "tests" / "job_probe"))
PATIENCE = 60


def run(*arguments, text="", env=None):
    return subprocess.run([MPIEXEC, *map(str, arguments)], input=text, text=True, capture_output=True, timeout=PATIENCE,
                          env=dict(os.environ, **(env or {})))


def begin(*arguments, **options):
    return subprocess.Popen([MPIEXEC, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(condition, what):
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        os.sched_yield()


class Mpiexec(unittest.TestCase):
    # --- what ranks see -----------------------------------------------------------------------------------------------------
    def test_every_rank_sees_who_it_is(self):
        done = run("-n", 3, "sh", "-c", "echo $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS $LOCAL_RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 3 0 3 0", "1 3 1 3 1", "2 3 2 3 2"])

    def test_ranks_exchange_values_of_any_size(self):
        for size in (0, 1, 5000):
            done = run("-n", 3, PROBE, "exchange", size)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.splitlines()),
                             [f"rank {r} of 3 on node 0, local {r} of 3, app 0, launcher pmi" for r in range(3)])

    def test_more_ranks_than_processors_work(self):
        done = run("-n", 40, PROBE, "exchange", 10)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 40)

    def test_programs_behind_a_colon_share_a_job(self):
        done = run("-n", 1, PROBE, "exchange", 3, ":", "-np", 2, PROBE, "exchange", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r"rank (\d) of 3 .* app (\d)", done.stdout)), [("0", "0"), ("1", "1"), ("2", "1")])

    def test_without_a_launcher_a_program_is_a_job_of_its_own(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("PMI")}
        done = subprocess.run([PROBE, "exchange", "9"], env=env, text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.stdout, "rank 0 of 1 on node 0, local 0 of 1, app -1, launcher singleton\n")

    def test_variables_of_an_outer_launcher_do_not_reach_the_ranks(self):
        done = run("-n", 1, "sh", "-c", "echo ${PMIX_NAMESPACE-none} ${PMI_PORT-none}",
                   env={"PMIX_NAMESPACE": "outer", "PMI_PORT": "host:1"})
        self.assertEqual(done.stdout, "none none\n")

    def test_variables_and_folder_can_be_set(self):
        done = run("-genv", "A", "all", "-x", "B=equals", "-x", "C", "blank", "-wdir", "/", "-env", "D", "one", "sh", "-c",
                   "echo $A $B $C ${D-none}; pwd", ":", "sh", "-c", "echo $A $B $C ${D-none}")
        self.assertEqual(sorted(done.stdout.splitlines()), ["/", "all equals blank none", "all equals blank one"])

    def test_a_rank_inherits_no_descriptor_but_its_socket(self):
        done = run("-n", 3, "sh", "-c", "ls -l /proc/self/fd | grep -c -e socket -e pipe")
        # Output, errors, the PMI socket, and standard input of rank 0, which is the test's pipe; `ls` writes into a pipe of sh.
        self.assertEqual(sorted(done.stdout.split()), ["3", "3", "4"])

    # --- processors ---------------------------------------------------------------------------------------------------------
    def sets(self, *arguments, allowed=None, env=None):
        """The processors that each rank may use, by rank."""
        limit = (lambda: os.sched_setaffinity(0, allowed)) if allowed else None
        show = [sys.executable, "-c", "import os; print(os.environ['PMI_RANK'], *sorted(os.sched_getaffinity(0)))"]
        clean = {name: value for name, value in os.environ.items() if name != "GANTRY_PROGRESS"}
        done = subprocess.run([MPIEXEC, *map(str, arguments), *show], text=True, capture_output=True, timeout=PATIENCE,
                              env=dict(clean, **(env or {})), preexec_fn=limit)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(tuple(map(int, line.split())) for line in done.stdout.splitlines())
        return [set(line[1:]) for line in lines], done.stderr

    def two_cores(self):
        """One processor each of two cores of one NUMA node, as far as this machine tells."""
        firsts = []
        for processor in sorted(os.sched_getaffinity(0)):
            siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
            core = siblings.read_text() if siblings.exists() else str(processor)
            if core not in [known for known, _ in firsts]:
                firsts.append((core, processor))
        if len(firsts) < 2:
            self.skipTest("this process may use one core only")
        return {processor for _, processor in firsts[:2]}

    def test_ranks_get_a_share_of_the_cores_each(self):
        cores = self.two_cores()
        for options in (), ("--bind-to", "share"), ("-bind-to", "core"):
            ranks, _ = self.sets("-n", 2, *options, allowed=cores)
            self.assertEqual([len(rank) for rank in ranks], [1, 1], options)
            self.assertEqual(ranks[0] | ranks[1], cores, options)

    def test_ranks_that_have_no_core_of_their_own_are_not_bound(self):
        cores = self.two_cores()
        one = {min(cores)}
        for arguments, allowed in ((("-n", 1), cores), (("-n", 3), cores), (("-n", 2), one), (("-n", 2, "--bind-to", "none"), cores)):
            ranks, _ = self.sets(*arguments, allowed=allowed)
            self.assertTrue(all(rank == allowed for rank in ranks), (arguments, ranks))

    # --- GPUs: those of the simulated NVML
    def gpus(self, *arguments, devices=4, **env):
        if not (BUILD / "simgpu" / "nvml" / "libnvidia-ml.so.1").exists():
            self.skipTest("not run: there is no simulated NVML beside this mpiexec")
        done = run(*arguments, "sh", "-c", "echo $PMI_RANK ${CUDA_VISIBLE_DEVICES-unset}",
                   env=dict(env, SIMGPU=f"dev={devices}", LD_LIBRARY_PATH=str(BUILD / "simgpu" / "nvml")))
        seen = {int(line.split()[0]): [int(uuid[-2:], 16) - 1 if uuid.startswith("GPU-") else uuid for uuid in line.split()[1].split(",")]
                for line in done.stdout.splitlines()}
        return done, [seen[rank] for rank in sorted(seen)]

    def test_each_rank_sees_gpus_of_its_own_by_uuid(self):
        for arguments, expected in (((), [["unset"], ["unset"]]), (("--gpus-per-rank", 1), [[0], [1]]), (("--gpu-bind=closest",), [[0], [1]]),
                                    (("--gpu-bind", "3,2"), [[3], [2]]), (("--gpus-per-rank=2", "--gpu-bind", "0,1,2,3"), [[0, 1], [2, 3]]),
                                    (("--gpu-bind", "none"), [["unset"], ["unset"]])):
            done, seen = self.gpus("-n", 2, *arguments)
            self.assertEqual((done.returncode, seen), (0, expected), f"{arguments}: {done.stderr}")

    def test_gpus_are_those_that_the_callers_own_variable_leaves(self):
        self.assertEqual(self.gpus("-n", 2, "--gpus-per-rank", 1, CUDA_VISIBLE_DEVICES="3,1")[1], [[3], [1]])
        done, seen = self.gpus("-n", 1, "--gpus-per-rank", 1, CUDA_VISIBLE_DEVICES="7")
        self.assertEqual((done.returncode, seen), (2, []))
        self.assertIn('CUDA_VISIBLE_DEVICES="7" leaves no GPU of this machine\'s 4', done.stderr)
        self.assertEqual(self.gpus("-n", 1, "--gpus-per-rank", 1, "-env", "CUDA_VISIBLE_DEVICES", "2")[1], [["2"]])

    def test_gpus_of_ranks_are_reported_and_mistakes_named(self):
        done, _ = self.gpus("--report-bindings", "-n", 2, "--gpus-per-rank", 1)
        self.assertRegex(done.stderr, r"(?m)^mpiexec: rank 1 sees GPU-[0-9a-f-]+02 at 0000:[0-9a-f]{2}:00\.0$")
        for arguments, sentence in ((("--gpus-per-rank", 5), "--gpus-per-rank 5: this job may use 4 GPUs"),
                                    (("--gpu-bind", "4"), "there is no GPU 4; this job may use 4 GPUs, from 0 on"),
                                    (("--gpu-bind", "near"), 'closest, none or numbers like 0,1, not "near"'),
                                    (("--gpus-per-rank", 0), "--gpus-per-rank takes a number of GPUs")):
            done, seen = self.gpus("-n", 1, *arguments)
            self.assertEqual((done.returncode, seen), (2, []))
            self.assertIn(sentence, done.stderr)

    def test_bindings_are_reported(self):
        cores = self.two_cores()
        ranks, said = self.sets("--report-bindings", "-n", 2, allowed=cores)
        self.assertEqual(said, "".join(f"mpiexec: rank {i} is bound to processor {min(rank)}\n" for i, rank in enumerate(ranks)))
        self.assertEqual(self.sets("--report-bindings", "-n", 3, allowed=cores)[1],
                         "mpiexec: the ranks are not bound: 3 ranks share 2 cores\n")

    def test_more_ranks_than_cores_cannot_be_bound_to_cores(self):
        many = len(os.sched_getaffinity(0)) + 1
        done = run("--bind-to", "core", "-n", many, "true")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"--bind-to core: {many} ranks, but this job may use \d+ cores?; start fewer ranks")

    # --- streams ------------------------------------------------------------------------------------------------------------
    def test_standard_input_goes_to_rank_0_and_the_others_see_its_end(self):
        done = run("-n", 3, "--label", "cat", text="one\ntwo\n")
        self.assertEqual(done.stdout, "[0] one\n[0] two\n")
        self.assertEqual(done.returncode, 0)

    def test_labels_mark_every_line_of_both_streams(self):
        done = run("-n", 2, "--label", "sh", "-c", "echo out; echo err >&2; printf unfinished")
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] out", "[0] unfinished", "[1] out", "[1] unfinished"])
        self.assertEqual(sorted(done.stderr.splitlines()), ["[0] err", "[1] err"])

    def test_lines_of_different_ranks_do_not_mix(self):
        script = "import sys\nfor i in range(2000): sys.stdout.write(sys.argv[1] * 150); sys.stdout.write('\\n')"
        done = run("-n", 1, sys.executable, "-c", script, "a", ":", "-n", 1, sys.executable, "-c", script, "b")
        self.assertEqual(sorted(set(done.stdout.splitlines())), ["a" * 150, "b" * 150])
        self.assertEqual(len(done.stdout.splitlines()), 4000)

    def test_a_prompt_shows_before_its_line_ends(self):
        process = begin("-n", "1", "sh", "-c", "printf 'name? '; exec sleep 1000")
        self.assertEqual(process.stdout.read(6), "name? ")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    def test_a_reader_that_leaves_ends_the_job(self):
        process = begin("-n", "2", "yes")
        process.stdout.readline()
        process.stdout.close()
        process.stderr.read()
        self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGPIPE)
        process.stderr.close()

    def test_what_is_typed_at_a_terminal_reaches_rank_0(self):
        ours, terminal = pty.openpty()
        process = subprocess.Popen([MPIEXEC, "-n", "2", "head", "-n", "1"], stdin=terminal, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
        os.close(terminal)
        os.write(ours, b"typed\n")
        out, _ = process.communicate(timeout=PATIENCE)
        os.close(ours)
        self.assertEqual((out, process.returncode), ("typed\n", 0))

    def test_output_goes_to_files_by_pattern(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("-outfile-pattern", f"{folder}/out-%r", "-errfile-pattern", f"{folder}/err", "-n", 2, "sh", "-c",
                       "echo out $PMI_RANK; echo err $PMI_RANK >&2", ":", "-n", 1, "echo", "third")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual([Path(folder, f"out-{r}").read_text() for r in range(3)], ["out 0\n", "out 1\n", "third\n"])
            self.assertEqual(sorted(Path(folder, "err").read_text().splitlines()), ["err 0", "err 1"])
            done = run("-outfile-pattern", f"{folder}/missing/%r", "-n", 2, "true")
            self.assertEqual(done.returncode, 127)
            self.assertRegex(done.stderr, r"cannot write the output of rank 0 to .*/missing/0: No such file")

    def test_standard_input_goes_where_it_is_sent(self):
        self.assertEqual(run("-n", 3, "--stdin", 2, "--label", "cat", text="one\n").stdout, "[2] one\n")
        self.assertEqual(run("-n", 2, "--stdin=none", "cat", text="one\n").stdout, "")
        done = run("-n", 2, "--stdin", 2, "cat", text="one\n")
        self.assertEqual((done.returncode, done.stderr), (2, "mpiexec: --stdin 2: the ranks are 0 to 1\n"))

    def test_a_prompt_of_the_rank_that_reads_is_shown(self):
        process = subprocess.Popen([MPIEXEC, "-n", "3", "--stdin", "2", "sh", "-c",
                                    "if [ $PMI_RANK = 2 ]; then printf 'name? '; read name; echo hello $name; fi"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.read(6), "name? ")
        out, _ = process.communicate("you\n", timeout=PATIENCE)
        self.assertEqual((out, process.returncode), ("hello you\n", 0))

    # --- options of other launchers -----------------------------------------------------------------------------------------
    def test_options_of_other_launchers_mean_the_same(self):
        for option in ("--tag-output", "-prepend-rank", "--prepend-rank", "-l"):
            self.assertEqual(run(option, "-n", 1, "echo", "x").stdout, "[0] x\n", option)
        for options in (["-genvall"], ["-genvlist", "A,NOT_SET"], ["-ppn", 4], ["--bind-to=none"], ["-envall"], ["--oversubscribe"]):
            done = run(*options, "-n", 2, "sh", "-c", "echo $A", env={"A": "passed"})
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("passed\npassed\n", "", 0), options)
        self.assertEqual(run("-N", 3, "echo", "x").stdout, "x\n" * 3)

    def test_options_that_mean_nothing_on_one_machine_are_taken_and_named(self):
        options = ["--map-by", "core", "--rank-by=slot", "--mca", "btl", "self", "-ppn", 1]
        done = run(*options, "-n", 2, "true")
        self.assertEqual((done.returncode, done.stderr), (
            0, "mpiexec: all ranks run on this machine: --map-by core, --rank-by slot, --mca btl self, -ppn 1 are ignored\n"))
        done = run("-q", *options, "-n", 2, "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run("--mca", "btl", "self", "true")
        self.assertEqual(done.stderr, "mpiexec: all ranks run on this machine: --mca btl self is ignored\n")

    # --- how jobs end -------------------------------------------------------------------------------------------------------
    def test_the_first_code_that_is_not_0_is_returned(self):
        self.assertEqual(run("-n", 3, "sh", "-c", "exit $((PMI_RANK == 1 ? 9 : 0))").returncode, 9)
        self.assertEqual(run("-n", 2, PROBE, "after", 5).returncode, 5)

    def test_abort_ends_all_ranks_and_returns_its_code(self):
        done = run("-n", 3, PROBE, "abort", 1, 7)
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, r"mpiexec: rank 1 of 3 \(.*job_probe, process \d+\) ended the job with code 7: as the arguments say")

    def test_an_abort_with_a_code_that_looks_like_success_is_none(self):
        self.assertEqual(run("-n", 2, PROBE, "abort", 0, 256).returncode, 1)

    def test_a_killed_rank_ends_the_job_with_a_reason(self):
        for number, name in ((9, "SIGKILL"), (11, "SIGSEGV")):
            done = run("-n", 3, PROBE, "signal", 2, number)
            self.assertEqual(done.returncode, 128 + number)
            self.assertRegex(done.stderr, rf"mpiexec: rank 2 of 3 \(.*\) was killed by signal {number} \({name}, ")

    def test_a_death_is_the_reason_even_if_another_rank_aborts_because_of_it(self):
        for _ in range(5):
            done = run("-n", 2, PROBE, "avenge", 58)
            self.assertEqual(done.returncode, 128 + 9, done.stderr)
            self.assertIn("mpiexec: rank 1 of 2", done.stderr)

    def test_a_rank_that_exits_without_finalize_ends_the_job(self):
        for code, returned in ((0, 1), (4, 4)):
            done = run("-n", 3, PROBE, "leave", 1, code)
            self.assertEqual(done.returncode, returned)
            self.assertRegex(done.stderr, rf"^mpiexec: rank 1 of 3 \([^)]*\) exited with code {code} before MPI_Finalize")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            if code != 0:
                self.assertRegex(done.stderr, r"MPI_Finalize$")

    def test_a_rank_that_never_starts_mpi_does_not_leave_the_others_waiting(self):
        done = run("-n", 1, "true", ":", "-n", 2, PROBE, "exchange", 1)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"rank 0 of 3 \(true, .*\) exited with code 0 without MPI_Init")

    def test_the_reason_of_an_end_stands_behind_what_ranks_said(self):
        # More than a pipe holds, and the abort follows at once.
        script = f"head -c 300000 /dev/zero | tr '\\0' x | fold -w 100 >&2; echo >&2; exec {PROBE} abort 1 7"
        done = run("-n", 2, "sh", "-c", script)
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr.splitlines()[-1], r"^mpiexec: rank 1 of 2 .* ended the job with code 7")

    def test_one_mpi_program_after_another_runs_in_one_job(self):
        done = run("-n", 3, "sh", "-c", f"{PROBE} exchange 3 && {PROBE} exchange 7 && {PROBE} exchange 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         sorted(3 * [f"rank {r} of 3 on node 0, local {r} of 3, app 0, launcher pmi" for r in range(3)]))

    def test_a_second_program_that_some_ranks_do_not_run_is_told_in_words(self):
        done = run("-n", 1, PROBE, "exchange", 3, ":", "-n", 1, "sh", "-c", f"{PROBE} exchange 3; {PROBE} exchange 3")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"rank 0 of 2 .* has ended, but other ranks have started another MPI program")
        done = run("-n", 2, "sh", "-c", f"{PROBE} leave 1 0; {PROBE} exchange 3")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("starts MPI again, but its last program ended without MPI_Finalize", done.stderr)

    def test_a_full_disk_is_named(self):
        for command in (["echo", "lost"], ["yes"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([MPIEXEC, "-n", "2", *command], stdout=full, stderr=subprocess.PIPE, text=True,
                                      stdin=subprocess.DEVNULL, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("writing to standard output failed: No space left on device", done.stderr)
            self.assertNotIn("SIGPIPE", done.stderr)

    def test_a_time_limit_ends_the_job(self):
        done = run("--timeout", "0.2", "-n", 2, PROBE, "wait")
        self.assertEqual(done.returncode, 124)
        self.assertIn("--timeout 0.2", done.stderr)
        self.assertIn("GANTRY_CHECK=on", done.stderr)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = begin("-n", "2", PROBE, "wait")
            self.assertEqual([process.stdout.readline(), process.stdout.readline()], ["waiting\n"] * 2)
            process.send_signal(number)
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 128 + number)

    def test_a_rank_that_ignores_ctrl_c_is_killed(self):
        process = begin("-n", "1", "sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)

    def test_what_a_rank_started_ends_with_the_job(self):
        process = begin("-n", "1", "sh", "-c", "sleep 1000 & echo $!; wait")
        grandchild = int(process.stdout.readline())
        self.assertTrue(is_running(grandchild))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        wait_until(lambda: not is_running(grandchild), "the end of a grandchild")

    def test_nothing_outlives_a_killed_mpiexec(self):
        process = begin("-n", "2", "sh", "-c", "sleep 1000 & echo $$ $!; wait")
        family = [int(pid) for _ in range(2) for pid in process.stdout.readline().split()]
        self.assertEqual(len(family), 4)
        process.kill()
        process.communicate(timeout=PATIENCE)
        for pid in family:
            wait_until(lambda: not is_running(pid), "the end of the ranks and of what they started")

    # --- mistakes -----------------------------------------------------------------------------------------------------------
    def test_a_program_that_is_not_there_is_named(self):
        done = run("-n", 2, "no-such-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("cannot start no-such-program as rank 0: No such file or directory", done.stderr)
        self.assertIn("./no-such-program", done.stderr)

    def test_a_folder_of_path_that_may_not_be_searched_hides_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0)  # root may search it all the same: this shows something to plain users only
            done = run("-n", 1, "no-such-program", env={"PATH": f"{folder}:{os.environ['PATH']}"})
            os.chmod(folder, 0o700)
            self.assertIn("No such file or directory", done.stderr)

    def test_mistakes_in_the_command_line_are_explained(self):
        for arguments, sentence in ((["-n", "0", "true"], 'number of ranks from 1 to 4096, not "0"'), (["-n", "2"], "no program"),
                                    (["--what", "true"], "no option --what"), (["true", ":"], "behind the last ':'"),
                                    (["-n"], "needs a value"), (["--bind-to", "moon", "true"], 'none, not "moon"'),
                                    (["--label=yes", "true"], "takes no value"), (["--stdin", "x", "true"], "a rank, none or all"),
                                    (["--timeout", "soon", "true"], 'number of seconds (0: no limit), not "soon"'),
                                    (["--hosts", "-n", "2", "true"], '--hosts takes hosts such as a,b:4, not "-n"'),
                                    (["-env", "NAME=VALUE", "true"], "-env takes two words")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(sentence, done.stderr)

    def test_help_and_version(self):
        self.assertIn("--label", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"Gantry\) \d+\.\d+")


if __name__ == "__main__":
    unittest.main()
