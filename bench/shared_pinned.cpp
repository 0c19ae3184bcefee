// SPDX-License-Identifier: BSD-3-Clause
#include "shared_pinned.hpp"

#include "job.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gantry::bench {
namespace {

constexpr unsigned kPortableMapped = 1 | 2;

}  // namespace

SharedPinned::Place SharedPinned::make(Bytes bytes) {
    const int file = memfd_create("gantry-bench", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
        give_up("no shared memory for the floors");
    return {getpid(), file};
}

void SharedPinned::close(Place place) {
    ::close(static_cast<int>(place.file));
}

SharedPinned::SharedPinned(Place place, Bytes bytes) : bytes_(bytes) {
    const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || memory_ == MAP_FAILED)
        give_up(fmt::format("{} cannot be mapped: floors need processes of one user on one machine",
                            path));
    ::close(file);
    Driver& cuda = driver();
    if (!cuda.started()) return;
    cuda.check(cuda.cuMemHostRegister_v2(memory_, bytes_, kPortableMapped), "cuMemHostRegister",
               bytes_);
    cuda.check(cuda.cuMemHostGetDevicePointer_v2(&device_, memory_, 0),
               "cuMemHostGetDevicePointer");
}

SharedPinned::~SharedPinned() {
    if (device_ != 0) driver().cuMemHostUnregister(memory_);
    munmap(memory_, bytes_);
}

}  // namespace gantry::bench
