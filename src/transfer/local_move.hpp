// SPDX-License-Identifier: BSD-3-Clause
//
// Data from one place to another that this process both reaches: one copy, or two where the ends have
// no copy between them.
#pragma once

#include "transfer/mover.hpp"

namespace gantry::transfer {

// The first `accepted` of the source's bytes; it has `source_bytes`.
Task<Status> move_locally(Executor& executor, Context& context, Side source, Bytes source_bytes,
                          Side sink, Bytes accepted);

// Between two buffers of this process, of any layout and kind of memory; the sink has room for all of the
// source.
Task<Status> copy_local(Executor& executor, Context& context, Buffer source, Buffer sink);

// Between a strided end in device memory and contiguous memory, `packed`, that is mapped for its GPU or
// lies on it: by a kernel, else as above.
Task<Status> move_packed(Executor& executor, Context& context, Side strided, std::byte* packed,
                         int gpu_of_packed, Bytes bytes, Way way, device::Notice notice);

}  // namespace gantry::transfer
