// SPDX-License-Identifier: BSD-3-Clause
#include "device/none/none_device.hpp"

#include <cstring>

namespace gantry::device::none {

void NoneDevice::copy(const Copy& copy, Completion& done) {
    if (copy.engine == Engine::bar) return done.complete(unsupported("a BAR mapping"));
    if (!copy.parts.empty()) return done.complete(unsupported("copies in one launch"));
    if (copy.bytes > 0) std::memmove(copy.destination, copy.source, copy.bytes);
    done.complete(success());
}

Status NoneDevice::unsupported(const char* what) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "{}: GPU support is switched off (GANTRY_CUDA=off)", what);
}

}  // namespace gantry::device::none
