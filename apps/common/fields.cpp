// SPDX-License-Identifier: BSD-3-Clause
#include "fields.hpp"

namespace gantry::apps {
namespace {

constexpr std::size_t kAlignment = 512;

}  // namespace

Fields::Fields(Machine& machine, const Whole local[3], Whole halo, int count, std::size_t element,
               Allocation allocation)
    : Extent(local, halo), machine_(machine), element_(element), allocation_(allocation) {
    const std::size_t each = (bytes() + kAlignment - 1) / kAlignment * kAlignment;
    const auto fields = static_cast<std::size_t>(count);
    all_bytes_ = each * fields;
    const std::vector<std::byte> zeros(each);
    for (std::size_t number = 0; number < fields; ++number) {
        if (number == 0 || allocation == Allocation::separate)
            allocations_.push_back(
                machine.allocate(allocation == Allocation::slab ? all_bytes_ : each));
        fields_.push_back(allocation == Allocation::slab
                              ? static_cast<std::byte*>(allocations_[0]) + number * each
                              : allocations_.back());
        machine.upload(fields_.back(), zeros.data(), each);
    }
}

Fields::~Fields() {
    for (void* allocation : allocations_)
        machine_.release(allocation);
}

}  // namespace gantry::apps
