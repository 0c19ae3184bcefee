// SPDX-License-Identifier: BSD-3-Clause
//
// UnmapWatch: UCX's hooks into munmap, brk and their like (libucm, which every UCX brings), so that
// a registration cache hears of memory that goes away. They are the same that UCX sets for its own
// caches; UCX_MEM_EVENTS=n keeps them out. Set once, they stay in the process; only our listening
// ends here.
#pragma once

#include "transport/ucx/library.hpp"
#include "transport/unmap_notes.hpp"

namespace gantry::transport::ucx {

class UnmapWatch {
  public:
    UnmapWatch() = default;
    UnmapWatch(const UnmapWatch&) = delete;
    UnmapWatch& operator=(const UnmapWatch&) = delete;
    ~UnmapWatch();

    // Begins to note, or says why unmapping would go unnoticed: a page that is unmapped here must
    // be heard of.
    Status start(const Library& library, UnmapNotes& notes);

  private:
    void stop();
    const Library* library_ = nullptr;  // set while it listens
    UnmapNotes* notes_ = nullptr;
};

// Tells UCX that whatever it knows of these bytes is gone. It keeps by address what it registers, and
// hears of device memory that the driver frees only through its CUDA modules, which are not loaded.
Status tell_unmapped(const Library& library, const void* address, Bytes bytes);

}  // namespace gantry::transport::ucx
