// SPDX-License-Identifier: BSD-3-Clause
#include "device/device.hpp"

#include <mpi.h>

namespace gantry::device {

const char* name(Engine engine) {
    switch (engine) {
        case Engine::automatic: return "copy";
        case Engine::d2h: return "copy to host memory";
        case Engine::h2d: return "copy from host memory";
        case Engine::h2d_2d: return "copy from host memory, in rows";
        case Engine::d2d: return "copy inside a GPU";
        case Engine::peer: return "copy between GPUs";
        case Engine::fused: return "copy with others";
        case Engine::kernel: return "kernel of rows";
        case Engine::bar: return "copy by the processor";
    }
    return "?";
}

void Device::reduce(const Reduce& reduce, Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} of {} elements: there is no GPU",
                          layout::name(reduce.operation), reduce.count));
}

}  // namespace gantry::device
