// SPDX-License-Identifier: BSD-3-Clause
//
// DynamicMemory: what ranks have attached to a dynamic window.
#pragma once

#include "rma/window_part.hpp"

#include <vector>

namespace gantry::rma {

class DynamicMemory : public WindowPart {
  public:
    struct Attached {
        std::uintptr_t base;
        Bytes bytes;
        device::Location location;
    };

    explicit DynamicMemory(Window& its_window) : WindowPart(its_window) {}

    Status attach(void* base, Bytes bytes);
    Status detach(const void* base);
    Attachments::Room room_for_attachments() const;

    // --- of this rank. Null: not all of these bytes are attached.
    const Attached* attached_around(std::uint64_t address, Bytes bytes) const;
    // The region that holds the first byte there; of no bytes one that ends there will do.
    const Attached* attached_at(std::uint64_t address, Bytes bytes) const;
    Status check_attached(const Access& access, std::uint64_t address) const;

    // --- of another rank of this node
    bool reaches_attached(const Access& access, std::uint64_t address);
    // Where bytes that are attached there are here.
    void locate_attached(Target& of, std::uint64_t address, Side& side);

  private:
    void publish(const Attached& attached);
    const Target::MappedRegion& mapped_region(Target& of, const device::IpcHandle& handle);

    std::vector<Attached> attached_;
};

}  // namespace gantry::rma
