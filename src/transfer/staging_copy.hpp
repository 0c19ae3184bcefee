// SPDX-License-Identifier: BSD-3-Clause
//
// One piece of a message between a user's buffer and a slot: the stage of the pipeline that both of its
// ends have, whatever tells of the pieces (docs/design/staged-pipeline.md). Who copies follows from where the
// buffer lies:
//
//   host memory               this processor, at once; large messages share it with the progress thread
//   device memory             a copy engine
//   strided device memory     kernels or copy engines, as transfer/pack decides
#pragma once

#include "transfer/mover.hpp"

namespace gantry::transfer {

// How the pieces of one message are copied at one end.
struct Staging {
    Side side;
    plan::CopyEngine engine = plan::CopyEngine::cpu;  // of this end, by the plan
    device::Notice notice = device::Notice::event;
};

// Who copies host memory: this processor, within the cache or past it, or (past it) the progress
// thread, too: then others go on meanwhile, as with a device.
enum class HostCopy : std::uint8_t { cached, streaming, shared };
// What suits a message of that size whose pieces lie in that pool.
HostCopy host_copy_to_slots(const Context& context, const Side& side, transport::Pool pool,
                            Bytes message);
HostCopy host_copy_from_slots(const Context& context, const Side& side, transport::Pool pool,
                              Bytes message);
// Whether the copy goes on after the call that starts it.
inline bool takes_time(const Side& side, HostCopy how) {
    return side.on_device() || how == HostCopy::shared;
}

// Starts the copy of data bytes [offset, offset + bytes); `done` may be complete when it returns.
void copy_to_slot(Context& context, const Staging& staging, Bytes offset, Bytes bytes,
                  std::byte* slot, HostCopy how, Completion& done);
void copy_from_slot(Context& context, const Staging& staging, Bytes offset, Bytes bytes,
                    std::byte* slot, HostCopy how, Completion& done);

// The same copies of contiguous device memory, for who gives them to the device himself.
device::Copy device_to_slot(const Staging& staging, Bytes offset, Bytes bytes, std::byte* slot);
device::Copy slot_to_device(const Staging& staging, Bytes offset, Bytes bytes, std::byte* slot);

}  // namespace gantry::transfer
