// SPDX-License-Identifier: BSD-3-Clause
//
// `gantry tune`: measures what the planner's facts say (model/machine.hpp) on the machine it runs
// on.
//
//   tune.cpp     the command: what differs from the built-in description, the files
//   gpu.cpp      one process: copies of every kind, driver calls, a kernel
//   resident.cpp copies by a persistent kernel
//   pair.cpp     two processes: turns of the compute queue, mappings, a flag between processors
//   host.cpp     copies by one processor
//   windows.cpp  loads and stores of device memory by the processor (GDRCopy)
//   chart.cpp    the curves as SVG
//
// Rates are measured warm: the link is kept busy for some rounds before the clock runs, because it
// sleeps when idle. Of several samples the lower quartile counts.
#pragma once

#include "cuda.hpp"
#include "model/machine.hpp"

#include <string>
#include <string_view>

namespace gantry::tool {

// Tells how far it is; one line that is rewritten on a terminal, nothing elsewhere.
class Progress {
  public:
    explicit Progress(int steps);
    ~Progress();
    void step(std::string_view what);

  private:
    int steps_, done_ = 0;
    bool terminal_;
};

struct CopyCurve {  // what the chart draws
    std::string name;
    std::vector<std::pair<Bytes, double>> time_ns;
};

void measure_gpu(Cuda& cuda, int gpu, int other_gpu, model::Machine& machine,
                 std::vector<CopyCurve>& curves, Progress& progress);
// `pinned`: page-locked host memory. 0 where the driver runs no such kernel.
void measure_resident(Cuda& cuda, CUstream stream, CUdeviceptr first, CUdeviceptr second,
                      const std::byte* pinned, model::KernelCost& kernel);
void measure_host(model::Machine& machine, Progress& progress);
// False: there is no GDRCopy here, and nothing was measured.
bool measure_windows(Cuda& cuda, model::Machine& machine, Progress& progress);

// The other process, started before this one has touched the driver (a driver does not survive a
// fork), and what is measured with it.
class Pair {
  public:
    explicit Pair(std::string library);
    ~Pair();
    void measure(Cuda& cuda, int gpu, int other_gpu, model::Machine& machine, Progress& progress);

  private:
    int socket_ = -1;
    int process_ = -1;
    void* shared_ = nullptr;
};

std::string chart(const model::Machine& machine, const std::vector<CopyCurve>& curves);

}  // namespace gantry::tool
