// SPDX-License-Identifier: BSD-3-Clause
#include "device/device.hpp"

#include <mpi.h>

namespace gantry::device {

void Device::reduce(const Reduce& reduce, Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} of {} elements: there is no GPU",
                          layout::name(reduce.operation), reduce.count));
}

}  // namespace gantry::device
