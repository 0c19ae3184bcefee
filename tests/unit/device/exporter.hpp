// SPDX-License-Identifier: BSD-3-Clause
//
// A second process with device memory to share: this program again, run as the one case
// `Exporter.DISABLED_Serves`, with a pipe to it and one back. It allocates, fills, compares and
// frees on command, and exports through a CudaDevice of its own.
#pragma once

#include "device/device.hpp"

#include <sys/types.h>

#include <cstdint>

namespace gantry::device::testing_support {

// Open descriptors of this process.
int count_open_descriptors();

class Exporter {
  public:
    Exporter();
    ~Exporter();
    Exporter(const Exporter&) = delete;
    Exporter& operator=(const Exporter&) = delete;

    // A new allocation, filled with `value`; its handle is what another process opens.
    IpcHandle allocate(Bytes bytes, std::uint8_t value, IpcKind kind = IpcKind::legacy);
    // Sends the file descriptor behind it; the answer is whether that worked.
    bool send_descriptor(const IpcHandle& handle, std::uint32_t inbox);
    // Makes the n-th call of a driver function fail there (simulated GPU).
    void inject(const char* fault);
    int open_descriptors();
    // Whether every byte of the allocation is `value`.
    bool holds(const IpcHandle& handle, std::uint8_t value);
    void free(const IpcHandle& handle);
    bool still_valid(const IpcHandle& handle);

    enum class Verb : std::uint8_t {
        allocate,
        holds,
        free,
        still_valid,
        send_descriptor,
        inject,
        count_descriptors,
        quit
    };
    struct Command {
        Verb verb;
        std::uint8_t value;
        Bytes bytes;
        IpcHandle handle;
        std::uint32_t inbox = 0;
        char text[64] = {};
    };
    struct Answer {
        bool yes;
        IpcHandle handle;
        int count = 0;
    };

  private:
    Answer ask(const Command& command);
    pid_t child_ = -1;
    int to_child_ = -1;
    int from_child_ = -1;
};

}  // namespace gantry::device::testing_support
