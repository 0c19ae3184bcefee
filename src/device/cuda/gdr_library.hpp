// SPDX-License-Identifier: BSD-3-Clause
//
// GdrLibrary: NVIDIA's GDRCopy (libgdrapi.so.2), found at run time, which maps device memory for
// the processor through the PCIe bus where its kernel module is loaded. Looked for once, at the
// first question; the answer stays. It knows nothing of messages: bar_mappings.hpp decides what is
// mapped and when.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "device/cuda/gdr_abi.h"

#include <cstdint>
#include <string>

namespace gantry::device::cuda {

class GdrLibrary {
  public:
    GdrLibrary() = default;
    ~GdrLibrary() { close(); }
    GdrLibrary(const GdrLibrary&) = delete;
    GdrLibrary& operator=(const GdrLibrary&) = delete;

    // Whether BAR mappings can be had here: the library loads and its kernel module answers.
    bool ready() {
        if (state_ == State::not_asked) look();
        return state_ == State::ready;
    }
    // Why not, for people; empty when ready.
    const std::string& refusal() const { return refusal_; }

    struct Mapping {
        GdrHandle handle;
        void* mapped = nullptr;    // where `begin` is for the processor
        std::uintptr_t begin = 0;  // device addresses
        Bytes bytes = 0;
    };
    // Whole GPU pages of device memory of this process.
    Result<Mapping> map(std::uintptr_t begin, Bytes bytes);
    // Right also when the driver has revoked the mapping, since its memory was freed: nothing is
    // touched.
    void unmap(const Mapping& mapping);

    Status write(const Mapping& mapping, std::uintptr_t address, const void* from, Bytes bytes);
    Status read(const Mapping& mapping, std::uintptr_t address, void* to, Bytes bytes);

    void close();
    // A forked child: what it has is the parent's.
    void abandon() {
        connection_ = nullptr;
        state_ = State::absent;
    }

    static constexpr Bytes kPage = 64 * kKiB;  // a GPU's, what is pinned and mapped

  private:
    enum class State : std::uint8_t { not_asked, absent, ready };
    void look();
    Result<GdrHandle> pin(std::uintptr_t begin, Bytes bytes);

    State state_ = State::not_asked;
    std::string refusal_;
    void* library_ = nullptr;
    gdr* connection_ = nullptr;
    PFN_gdr_open open_ = nullptr;
    PFN_gdr_close close_ = nullptr;
    PFN_gdr_pin_buffer pin_ = nullptr;
    PFN_gdr_pin_buffer_v2 pin_v2_ = nullptr;
    PFN_gdr_unpin_buffer unpin_ = nullptr;
    PFN_gdr_get_info info_ = nullptr;
    PFN_gdr_map map_ = nullptr;
    PFN_gdr_unmap unmap_ = nullptr;
    PFN_gdr_copy_to_mapping copy_to_ = nullptr;
    PFN_gdr_copy_from_mapping copy_from_ = nullptr;
};

}  // namespace gantry::device::cuda
