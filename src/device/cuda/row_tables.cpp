// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/row_tables.hpp"

#include "base/log.hpp"

#include <utility>

namespace gantry::device::cuda {

RowTables::Table RowTables::take() {
    std::size_t table = static_cast<std::size_t>(std::countr_one(used_));
    if (table >= kMostTables || (table >= slabs_.size() * kTablesAtOnce && !grow())) return {};
    const Held held = Held{1} << table;
    used_ |= held;
    const PinnedMemory& slab = slabs_[table / kTablesAtOnce];
    const Bytes offset = table % kTablesAtOnce * kTableBytes;
    return {slab.memory() + offset, slab.device() + offset, held};
}

bool RowTables::grow() {
    if (refused_) return false;
    PinnedMemory slab;
    const CUresult result = slab.reserve(driver_, kTablesAtOnce * kTableBytes);
    refused_ = result != CUDA_SUCCESS;
    if (refused_)
        log::info("cuda: no tables of rows: {}; copy engines move lists of blocks",
                  result_name(result));
    else
        slabs_.push_back(std::move(slab));
    return !refused_;
}

void RowTables::close() {
    for (PinnedMemory& slab : slabs_)
        slab.close(driver_);
    abandon();
}

void RowTables::abandon() {
    slabs_.clear();
    used_ = 0;
    refused_ = true;
}

}  // namespace gantry::device::cuda
