// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

namespace gantry::mpiexec {

const char* help_text() {
    return R"(Starts the ranks of an MPI program on this machine, or has a launcher start them on others.

  mpiexec [options] PROGRAM [ARGUMENTS...] [: [options] PROGRAM2 [ARGUMENTS...]]...

  -n N, -np N           how many ranks run PROGRAM (default 1); more than there are processors is fine
  --label, -l           begin every line of output with the rank that wrote it: "[3] ..."
  -outfile-pattern F    write each rank's output to a file of its own, -errfile-pattern F its errors: %r is the rank
  --stdin RANK          give standard input to that rank, or to none
  --keep-going          a rank that dies after MPI_Init does not end the job: the others go on without it (mpi-ext.h)
  --timeout SECONDS     end the job when it runs longer (0, the default: never); the exit code is then 124
  -env NAME VALUE       set an environment variable for this PROGRAM
  -genv NAME VALUE      set it for every PROGRAM; "-x NAME=VALUE" and "-x NAME VALUE" mean the same
  -wdir FOLDER          start PROGRAM in FOLDER
  --bind-to UNIT        which processors a rank may use. share (default): an even share of the cores, if there
                        are enough for all ranks; core: one core a rank; numa, socket: one of these; none
  --gpus-per-rank N     each rank sees N GPUs (CUDA_VISIBLE_DEVICES): those nearest to its processors
  --gpu-bind HOW        which ones: closest (default); none: all that mpiexec sees; 0,1,...: these, one rank after the other
  --report-bindings     say on standard error, a line a rank, which processors and GPUs it got
  --hosts a,b:4         run on these hosts (with that many ranks each); unless they are this machine, hands over to a launcher that is
                        installed: srun (inside an allocation), prterun, mpiexec.hydra or orterun
  -f FILE               the same with hosts from a file, one a line: "a", "a:4" or "a slots=4"
  -ppn N                ranks of each host, for such a launcher
  --launcher NAME       hand over to this one; --show prints its command line instead of running it
  -q                    do not say which options mean nothing here (--map-by, --rank-by, --mca A B, ...)
  --help, --version

Every rank sees PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS and LOCAL_RANK.
Standard input goes to rank 0. Output comes by whole lines. Options may be written with =: --bind-to=none.
A rank that dies, or exits without MPI_Finalize while others wait for it, ends the job; Ctrl-C is
passed on, and what has not ended 2 s later is killed.
The exit code is the first one that is not 0: a rank's own, the code of MPI_Abort, or 128 + signal.

  mpiexec -n 4 ./program input.dat
  mpiexec -n 1 ./master : -n 3 ./worker
  mpiexec -n 2 --label gdb -batch -ex run -ex backtrace --args ./program
)";
}

}  // namespace gantry::mpiexec
