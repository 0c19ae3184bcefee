// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentCopies: what takes several items of the ring and has one end: copies that are made together,
// and reductions of short vectors. A collective operation of small vectors costs no launch so.
//
//   parts       [part 0] [part 1] ...            each as large as one block copies in no time
//   reduction   [addresses] [share 0] [addresses] [share 1] ...
//
// What was taken in part only is made anew another way. For a reduction whose result takes the place of
// a vector that must not be: it is one item, beside its addresses.
#include "device/cuda/resident.hpp"

#include "base/clock.hpp"
#include "device/cuda/copies.hpp"
#include "device/reduce_kernels.hpp"
#include "device/together_facts.hpp"

#include <algorithm>
#include <optional>

namespace gantry::device::cuda {
namespace {

static_assert(kTogether.elements_at_once == kernels::kResidentThreads);
static_assert(kTogether.elements_in_place < std::uint64_t{1} << kernels::kCountBits);

std::optional<kernels::ResidentElement> element_of(ReduceKernelName name) {
    switch (name) {
#define GANTRY_ELEMENT(name, ...) \
    case ReduceKernelName::name: return kernels::ResidentElement::name;
        GANTRY_REDUCE_RESIDENT(GANTRY_ELEMENT)
#undef GANTRY_ELEMENT
        default: return std::nullopt;
    }
}

Bytes items_of(std::span<const CopyPart> parts) {
    Bytes items = 0;
    for (const CopyPart& part : parts)
        items += divide_up(part.bytes, kTogether.bytes_of_item);
    return items;
}

bool replaces_a_source(const Reduce& reduction) {
    const auto is_source = [&](const void* destination) {
        return std::find(reduction.sources.begin(), reduction.sources.end(), destination) !=
               reduction.sources.end();
    };
    return is_source(reduction.destination) ||
           std::any_of(reduction.also.begin(), reduction.also.end(), is_source);
}

}  // namespace

bool ResidentCopies::suits(std::span<const CopyPart> parts) {
    return items_of(parts) <= kTogether.items &&
           std::all_of(parts.begin(), parts.end(),
                       [](const CopyPart& part) { return part.bytes <= kTogether.bytes_of_copy; });
}

bool ResidentCopies::suits(const Reduce& reduction) {
    const std::optional<ReduceKernel> how = reduce_kernel(reduction.operation, reduction.element);
    if (!how || !element_of(how->name) || how->units != 1) return false;
    if (reduction.sources.size() > kernels::kMostOperands ||
        reduction.also.size() >= kernels::kMostOperands)
        return false;
    return reduction.count <=
           (replaces_a_source(reduction) ? kTogether.elements_in_place : kTogether.elements);
}

bool ResidentCopies::takes_for_a_launch(Ends ends, Nanoseconds now) {
    return kernel_ != Kernel::none && residency_.makes(ends) && stays(now) &&
           link_busy_until_ - now <= kMostBacklog;
}

bool ResidentCopies::take_parts(const Copy& copy, std::span<const CopyPart> parts, User& user) {
    const Nanoseconds now = SteadyClock{}.now();
    if (!takes_for_a_launch(Ends::devices, now) || !has_room(items_of(parts))) return false;
    for (const CopyPart& part : parts)
        if (std::max(device_address(part.destination), device_address(part.source)) + part.bytes >=
            CopyRing::kMostAddress)
            return false;
    const std::uint64_t first = next_;
    for (const CopyPart& part : parts)
        for (Bytes begin = 0; begin < part.bytes; begin += kTogether.bytes_of_item)
            ring_.put(next_++, device_address(part.destination) + begin,
                      device_address(part.source) + begin,
                      std::min(kTogether.bytes_of_item, part.bytes - begin));
    took(copy, user, first, 0, false, &counts_.copies, now, 0);
    saved_ += residency_.saving(Ends::devices);
    return true;
}

bool ResidentCopies::take_reduction(const Reduce& reduction, const Copy& copy, User& user) {
    const Nanoseconds now = SteadyClock{}.now();
    if (!takes_for_a_launch(Ends::devices, now)) return false;
    const ReduceKernel how = *reduce_kernel(reduction.operation, reduction.element);
    const std::uint64_t share =
        replaces_a_source(reduction) ? kTogether.elements_in_place : kTogether.elements_at_once;
    kernels::ReduceWork work{};
    work.operation = static_cast<kernels::Word>(how.operation);
    CUdeviceptr all = 0, largest = 0;
    const auto seen = [&](const void* vector) {
        const CUdeviceptr address = device_address(vector);
        all |= address;
        largest = std::max(largest, address);
        return address;
    };
    for (const void* source : reduction.sources)
        work.source[work.operands++] = seen(source);
    work.destination[work.destinations++] = seen(reduction.destination);
    for (void* destination : reduction.also)
        work.destination[work.destinations++] = seen(destination);
    const std::uint64_t shares = divide_up(reduction.count, share);
    if (all % how.alignment != 0 ||
        largest + reduction.count * how.element >= CopyRing::kMostAddress ||
        !has_room(shares * CopyRing::items_of(work)))
        return false;
    const std::uint64_t first = next_;
    for (std::uint64_t begin = 0; begin < reduction.count; begin += share) {
        work.count = std::min(share, reduction.count - begin);
        ring_.put_reduction(next_, work, *element_of(how.name));
        next_ += CopyRing::items_of(work);
        for (kernels::Word i = 0; i < work.operands; ++i)
            work.source[i] += share * how.element;
        for (kernels::Word i = 0; i < work.destinations; ++i)
            work.destination[i] += share * how.element;
    }
    took(copy, user, first, 0, false, &counts_.copies, now, 0);
    saved_ += residency_.saving(Ends::devices);
    return true;
}

}  // namespace gantry::device::cuda
