// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/memory.hpp"

#include <cstring>

namespace gantry::transport::ucx {

Memory::~Memory() {
    for (auto& [id, registered] : regions_)
        drop(registered);
}

void Memory::drop(Registered& registered) {
    for (std::size_t rail = 0; rail < registered.handles.size(); ++rail)
        library_->ucp_mem_unmap(rails_[rail].context(), registered.handles[rail]);
}

Result<Region> Memory::add(void* address, Bytes bytes) {
    Registered registered{static_cast<std::byte*>(address), bytes, {}, {}};
    const std::uint64_t id = next_id_++;
    const std::uint64_t head[] = {reinterpret_cast<std::uint64_t>(address), id};
    const auto head_bytes = std::as_bytes(std::span(head));
    std::vector<std::byte> key(head_bytes.begin(), head_bytes.end());
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
        if (Status failed = add_to(rail, address, bytes, registered, key)) {
            drop(registered);
            return failed;
        }
    }
    registered.key = RemoteKey(key);
    regions_.emplace(id, std::move(registered));
    return Region{id, address, bytes};
}

Status Memory::add_to(std::size_t rail, void* address, Bytes bytes, Registered& registered,
                      std::vector<std::byte>& key) {
    ucp_mem_map_params_t wanted{};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    wanted.address = address;
    wanted.length = bytes;
    wanted.memory_type = UCS_MEMORY_TYPE_HOST;
    ucp_mem_h handle = nullptr;
    ucs_status_t status = library_->ucp_mem_map(rails_[rail].context(), &wanted, &handle);
    if (status != UCS_OK)
        return library_.failed(fmt::format("registering {} bytes with the network", bytes), status);
    registered.handles.push_back(handle);
    void* packed = nullptr;
    std::size_t length = 0;
    status = library_->ucp_rkey_pack(rails_[rail].context(), handle, &packed, &length);
    if (status != UCS_OK) return library_.failed("naming registered memory to a peer", status);
    if (length > UINT8_MAX || key.size() + 1 + length > RemoteKey::kLongest) {
        library_->ucp_rkey_buffer_release(packed);
        return failure(MPI_ERR_INTERN,
                       "the key of registered memory has {} bytes on rail {}, more than a message "
                       "carries; use fewer rails (GANTRY_RAILS)",
                       length, rail);
    }
    key.push_back(static_cast<std::byte>(length));
    const auto* bytes_of_key = static_cast<const std::byte*>(packed);
    key.insert(key.end(), bytes_of_key, bytes_of_key + length);
    library_->ucp_rkey_buffer_release(packed);
    return success();
}

void Memory::remove(const Region& region) {
    const auto found = regions_.find(region.id);
    if (found == regions_.end()) return;
    drop(found->second);
    regions_.erase(found);
}

RemoteKey Memory::key(const Region& region) const {
    const auto found = regions_.find(region.id);
    return found == regions_.end() ? RemoteKey{} : found->second.key;
}

std::byte* Memory::at(std::uint64_t region, Bytes offset, Bytes bytes) const {
    const auto found = regions_.find(region);
    if (found == regions_.end()) return nullptr;
    const Registered& registered = found->second;
    if (offset > registered.bytes || bytes > registered.bytes - offset) return nullptr;
    return registered.address + offset;
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
