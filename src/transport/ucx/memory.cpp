// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/memory.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::transport::ucx {
namespace {

bool go_by_address(const std::vector<Rail>& rails) {
    return std::ranges::all_of(rails, [](const Rail& rail) { return rail.only_tcp(); });
}

// A key of UCX begins with the set of memory domains that hold the memory (64 bits in 1.13
// to 1.22).
bool names_a_card(const void* packed, std::size_t length) {
    std::uint64_t domains = 0;
    if (length < sizeof domains) return false;
    std::memcpy(&domains, packed, sizeof domains);
    return domains != 0;
}

}  // namespace

Memory::Memory(const Library& library, const std::vector<Rail>& rails, RegistrationLimits limits,
               Watching watching)
    : library_(library),
      rails_(rails),
      should_watch_(watching == Watching::always || !go_by_address(rails)),
      cache_(*this, limits, should_watch_ ? HostPages::unnoticed : HostPages::any) {}

Result<Region> Memory::add(const Extent& extent) {
    // Only now: a program that moves nothing large keeps its allocator as it is.
    if (extent.place == MemoryPlace::host && std::exchange(should_watch_, false)) start_watching();
    return cache_.take(extent);
}

void Memory::start_watching() {
    if (Status refused = watch_.start(library_, cache_.notes())) {
        log::info("ucx: host memory is registered anew for each message: {}", refused.text());
        return;
    }
    cache_.set_host_pages(HostPages::noticed);
}

Status Memory::map(std::uint64_t id, const Extent& extent) {
    Registered registered;
    const std::uint64_t head[] = {reinterpret_cast<std::uint64_t>(extent.address), id};
    const auto head_bytes = std::as_bytes(std::span(head));
    std::vector<std::byte> key(head_bytes.begin(), head_bytes.end());
    registered.extent = extent;
    if (extent.place == MemoryPlace::device)
        GANTRY_TRY(ucx::tell_unmapped(library_, extent.address, extent.bytes));
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
        if (Status failed = map_on(rail, extent, registered, key)) {
            drop(registered);
            return failed;
        }
    }
    registered.key = RemoteKey(key);
    registered_.emplace(id, std::move(registered));
    return success();
}

void Memory::unmap(std::uint64_t id) {
    const auto found = registered_.find(id);
    if (found == registered_.end()) return;
    drop(found->second);
    registered_.erase(found);
}

void Memory::gone(std::uint64_t id) {
    const auto found = registered_.find(id);
    if (found != registered_.end()) tell_unmapped(found->second.extent);
}

void Memory::tell_unmapped(const Extent& extent) const {
    if (extent.place != MemoryPlace::device) return;
    (void)ucx::tell_unmapped(library_, extent.address, extent.bytes);  // it could be when it came
}

void Memory::drop(Registered& registered) {
    for (std::size_t rail = 0; rail < registered.handles.size(); ++rail)
        library_->ucp_mem_unmap(rails_[rail].context(), registered.handles[rail]);
    tell_unmapped(registered.extent);
}

Status Memory::map_on(std::size_t rail, const Extent& extent, Registered& registered,
                      std::vector<std::byte>& key) {
    const bool on_device = extent.place == MemoryPlace::device;
    ucp_mem_map_params_t wanted{};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    wanted.address = extent.address;
    wanted.length = extent.bytes;
    wanted.memory_type = on_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
    ucp_mem_h handle = nullptr;
    ucs_status_t status = library_->ucp_mem_map(rails_[rail].context(), &wanted, &handle);
    if (status != UCS_OK)
        return library_.failed(fmt::format("registering {} bytes {}with the network", extent.bytes,
                                           on_device ? "of device memory " : ""),
                               status);
    registered.handles.push_back(handle);
    void* packed = nullptr;
    std::size_t length = 0;
    status = library_->ucp_rkey_pack(rails_[rail].context(), handle, &packed, &length);
    if (status != UCS_OK) return library_.failed("naming registered memory to a peer", status);
    const auto* bytes_of_key = static_cast<const std::byte*>(packed);
    const bool fits = length <= UINT8_MAX && key.size() + 1 + length <= RemoteKey::kLongest;
    const bool reached = !on_device || names_a_card(packed, length);
    if (fits && reached) {
        key.push_back(static_cast<std::byte>(length));
        key.insert(key.end(), bytes_of_key, bytes_of_key + length);
    }
    library_->ucp_rkey_buffer_release(packed);
    if (!reached)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "no card of network rail {} reaches device memory", rail);
    if (!fits)
        return failure(MPI_ERR_INTERN,
                       "the key of registered memory has {} bytes on rail {}, more than a message "
                       "carries; use fewer rails (GANTRY_RAILS)",
                       length, rail);
    return success();
}

RemoteKey Memory::key(const Region& region) const {
    const auto found = registered_.find(region.id);
    return found == registered_.end() ? RemoteKey{} : found->second.key;
}

std::byte* Memory::at(std::uint64_t region, Bytes offset, Bytes bytes) const {
    const Extent* extent = cache_.in_use(region);
    if (extent == nullptr || extent->place != MemoryPlace::host) return nullptr;
    if (offset > extent->bytes || bytes > extent->bytes - offset) return nullptr;
    return static_cast<std::byte*>(extent->address) + offset;
}

Memory::Source Memory::source(const Region& region, int rail) const {
    const auto found = registered_.find(region.id);
    const Extent* extent = cache_.in_use(region.id);
    if (found == registered_.end() || extent == nullptr) return {};
    return {found->second.handles[static_cast<std::size_t>(rail)],
            extent->place == MemoryPlace::device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST};
}

KeyView read_key(const RemoteKey& key, int rail) {
    KeyView read;
    ConstSpan rest = key.view();
    std::uint64_t head[2];
    if (rest.size() < sizeof head) return read;
    std::memcpy(head, rest.data(), sizeof head);
    read.address = head[0];
    read.region = head[1];
    rest = rest.subspan(sizeof head);
    for (int at = 0; !rest.empty(); ++at) {
        const auto length = static_cast<std::size_t>(rest.front());
        if (rest.size() < 1 + length) return read;
        if (at == rail) {
            read.packed = rest.subspan(1, length);
            return read;
        }
        rest = rest.subspan(1 + length);
    }
    return read;
}

}  // namespace gantry::transport::ucx
