// SPDX-License-Identifier: BSD-3-Clause
//
// A job that no launcher started: every rank was told host:port, its rank and the number of ranks
// (GANTRY_RENDEZVOUS, GANTRY_RANK, GANTRY_SIZE, or Slurm's variables under srun --mpi=none). Rank 0
// listens there and serves PMI-1 from a thread of its own; every rank, also rank 0, is an ordinary
// PMI-1 client with a second connection, its lifeline, on which it hears of an abort elsewhere:
//
//   rank -> "cmd=initack pmiid=3 size=8"          until all have come, or the time is over
//   rank <- "cmd=initack rc=0", set size/rank/debug; or rc=-1 and who is missing
//   rank -> "cmd=lifeline pmiid=3"                on the second connection
//   rank <- "cmd=lifeline rc=0"                   it is held; later only, at most once:
//   rank <- "cmd=abort exitcode=7 rank=5 text=.." it ends with that code
//
// A rank that ends without MPI_Finalize fails every later fence, and is told to all (pmi_deaths.cpp). Behind
// a fence each rank copies the store, so that ranks find each other also when rank 0 has died:
//
//   rank -> "cmd=copy_store after=KEY"            from the first piece on: KEY is empty
//   rank <- "cmd=copied rc=0 last=0 k=v k=v .."   the next pieces; or rc=-1: too large for all
//
// Whoever can reach the port can join: for networks whose users trust each other.
#pragma once

#include "job/pmi.hpp"

#include <memory>

namespace gantry::job {

struct Meeting {
    std::string place;  // host:port of rank 0
    int rank = 0;
    int size = 1;
    Nanoseconds patience = 60 * kSecond;
    Nanoseconds silence = 0;          // of a host until it counts as gone; 6 s at least
    Bytes copies = 0;                 // of the store, of all ranks together; 0: none
    const char* name = "rendezvous";  // what Job::launcher() says
};

Result<std::unique_ptr<Job>> meet(const Meeting& meeting);

// The meeting that the GANTRY_* variables describe; nothing when none is set.
Result<std::optional<Meeting>> explicit_meeting(const config::Config& config);
// That of srun --mpi=none: the first node of the step, a port that follows from the job's number.
Result<std::optional<Meeting>> slurm_meeting(const config::Config& config);
// "n[3-5,9],m1" -> "n3".
std::string first_host(std::string_view node_list);

}  // namespace gantry::job
