// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/row_tables.hpp"

#include "base/log.hpp"

#include <sys/mman.h>

namespace gantry::device::cuda {
namespace {

constexpr Bytes slab_bytes(std::size_t tables) {
    return tables * RowTables::kTableBytes;
}

}  // namespace

RowTables::~RowTables() {
    abandon();
}

RowTables::Table RowTables::take() {
    std::size_t table = static_cast<std::size_t>(std::countr_one(used_));
    if (table >= kMostTables || (table >= slabs_.size() * kTablesAtOnce && !grow())) return {};
    const Held held = Held{1} << table;
    used_ |= held;
    const Slab& slab = slabs_[table / kTablesAtOnce];
    const Bytes offset = table % kTablesAtOnce * kTableBytes;
    return {slab.memory + offset, slab.device + offset, held};
}

bool RowTables::grow() {
    if (refused_) return false;
    constexpr Bytes kBytes = slab_bytes(kTablesAtOnce);
    refused_ = true;
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, kBytes, MADV_DONTFORK);
    Slab slab{static_cast<std::byte*>(memory), 0};
    CUresult result = driver_.call(
        driver_.cu.cuMemHostRegister_v2, memory, static_cast<std::size_t>(kBytes),
        static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    if (result == CUDA_SUCCESS) {
        result = driver_.call(driver_.cu.cuMemHostGetDevicePointer_v2, &slab.device, memory, 0u);
        if (result != CUDA_SUCCESS) driver_.call(driver_.cu.cuMemHostUnregister, memory);
    }
    if (result != CUDA_SUCCESS) {
        log::info("cuda: no tables of rows: {}; copy engines move lists of blocks",
                  result_name(result));
        munmap(memory, kBytes);
        return false;
    }
    slabs_.push_back(slab);
    refused_ = false;
    return true;
}

void RowTables::close() {
    for (const Slab& slab : slabs_)
        driver_.call(driver_.cu.cuMemHostUnregister, static_cast<void*>(slab.memory));
    abandon();
}

void RowTables::abandon() {
    for (const Slab& slab : slabs_)
        munmap(slab.memory, slab_bytes(kTablesAtOnce));
    slabs_.clear();
    used_ = 0;
    refused_ = true;
}

}  // namespace gantry::device::cuda
