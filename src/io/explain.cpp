// SPDX-License-Identifier: BSD-3-Clause
//
// What `gantry explain` is told of reads and writes (plan/io_table.hpp).
#include "io/file.hpp"

namespace gantry::io {
namespace {

plan::IoPath path_of(const File& file, const Access& access, bool together, bool on_device) {
    plan::IoPath path;
    path.file = file.path;
    path.operation = access.direction == Direction::read ? "read" : "write";
    if (together) path.operation += "_all";
    path.ranks = together ? file.size() : 1;
    path.memory = on_device ? "device" : "host";
    path.smallest = path.largest = path.bytes = access.bytes();
    path.calls = 1;
    return path;
}

}  // namespace

// Who made the calls of pieces that might have waited.
std::string File::who(const plan::IoCarrierPlan& carrier) const {
    switch (carrier.carrier) {
        case plan::IoCarrier::caller: return ", by the caller: the system had it in memory";
        case plan::IoCarrier::ring: return ", by " + files.backend().name();
        case plan::IoCarrier::threads: break;
    }
    if (*carrier.why == '\0') return ", by " + files.backend().name();
    return fmt::format(", by threads ({})", carrier.why);
}

void File::explain(const Access& access, bool on_device, const plan::IoPlan& plan,
                   const plan::IoCarrierPlan& carrier) const {
    if (!files.context.explain.on()) return;
    plan::IoPath row = path_of(*this, access, access.alone != nullptr, on_device);
    row.way = plan::name(plan.way);
    row.how = describe(plan);
    if (!plan.at_once) row.how += who(carrier);
    row.why = plan.why;
    if (access.alone != nullptr) row.why += fmt::format("; each rank alone: {}", access.alone);
    files.context.explain.file(row);
}

void File::explain(const Access& access, const plan::CollectiveIoPlan& plan, bool on_node,
                   const plan::IoCarrierPlan& carrier) const {
    if (!files.context.explain.on()) return;
    Result<device::Location> location = files.context.locate(access.buffer);
    const bool on_device = location.ok() && !transfer::in_host_memory(*location);
    plan::IoPath row = path_of(*this, access, true, on_device);
    row.way = "two phases";
    row.how = describe(plan, on_node);
    // Who is no aggregator has none.
    if (carrier.carrier != plan::IoCarrier::caller) row.how += who(carrier);
    row.why = plan.why;
    if (plan.on_node && !on_node) row.why += "; windows could not be shared";
    files.context.explain.file(row);
}

}  // namespace gantry::io
