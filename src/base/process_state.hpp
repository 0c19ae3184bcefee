// SPDX-License-Identifier: BSD-3-Clause
//
// What the system tells of another process of this node.
#pragma once

#include <cstdint>

namespace gantry {

// Whether that process is gone, or ends right now. Two system calls and more for a living one.
bool process_has_ended(int process);
// Whether that is so of its first thread. A process that is killed loses its threads one after the other, and
// with the first one what others reach through /proc: its memory and its descriptors.
bool main_thread_has_ended(int process);
// When it started (clock ticks since boot), which tells it from a later one with the same number; 0:
// there is none.
std::uint64_t process_start_time(int process);

}  // namespace gantry
