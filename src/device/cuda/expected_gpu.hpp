// SPDX-License-Identifier: BSD-3-Clause
//
// Which GPU a rank will probably use, before its program has initialised a driver. Nothing of the
// driver is called: NVIDIA's kernel module lists the GPUs of this machine or container below /proc, by
// their PCI addresses, and CUDA_VISIBLE_DEVICES chooses among them. Several that are left are taken by
// the ranks of the node in turn, as programs do.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gantry::device::cuda {

// The addresses of all GPUs that NVIDIA's kernel module drives, in their order, which is that of the
// driver where all GPUs are alike. `proc`: the folder of procfs.
std::vector<std::string> gpus_of_machine(const std::string& proc);

// How CUDA_VISIBLE_DEVICES counts. Slurm may hide GPUs from a task and count those that it left; which
// they are, the list does not say.
enum class Numbers { of_the_machine, of_what_is_left };

// "0000:18:00.0"; empty: nothing is known.
std::string expected_gpu(const std::string& proc, const std::optional<std::string>& visible,
                         Numbers numbers, int local_rank);

}  // namespace gantry::device::cuda
