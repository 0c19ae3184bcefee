// SPDX-License-Identifier: BSD-3-Clause
//
// SIGUSR1 as Hydra uses it in jobs that go on without ranks that died: to tell the others of a death. It is
// taken only from a program that left it alone, which it would end; and what somebody else sends ends the
// program still.
//
//   the program has its own handler, or ignores it   never taken
//   the launcher sends it                            noted, for whoever asks came()
//   anybody else does                                given back, and sent again: the program ends
//   the program installs a handler later             it has the signal; came() is never true again
//
// It is never given back because MPI has ended: Hydra sends it also for ranks that end in order.
#pragma once

namespace gantry::job::death_signal {

// `launcher`: the process that sends it; 0: not known, and whoever sends it counts. False: the program has its
// own use for the signal.
bool take(int launcher);
// Since the last call.
bool came();
// What came was meant for the program: it happens as if the signal had never been taken.
void hand_on();

}  // namespace gantry::job::death_signal
