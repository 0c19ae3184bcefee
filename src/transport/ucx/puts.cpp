// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory of the UCX transport. A put of UCX ends when its source may be reused; the flush
// behind it ends when the bytes are at the peer, and that is what we promise.
#include "transport/ucx/peer.hpp"

#include <algorithm>
#include <new>

namespace gantry::transport::ucx {
namespace {

constexpr std::size_t kKeysKept = 64;

}  // namespace

Result<Region> UcxTransport::register_memory(void* address, Bytes bytes) {
    return memory_->add(address, bytes);
}
void UcxTransport::release_memory(const Region& region) {
    if (memory_) memory_->remove(region);
}
RemoteKey UcxTransport::key(const Region& region) const {
    return memory_->key(region);
}

Result<UcxTransport::Unpacked*> UcxTransport::unpack(Peer& peer, int rail, ConstSpan packed) {
    for (const auto& known : peer.keys)
        if (known->rail == rail && std::ranges::equal(known->packed, packed)) return known.get();
    if (peer.keys.size() >= kKeysKept)
        std::erase_if(peer.keys, [this](const auto& key) {
            if (key->users > 0) return false;
            (*library_)->ucp_rkey_destroy(key->key);
            return true;
        });
    auto made = std::make_unique<Unpacked>();
    made->rail = rail;
    made->packed.assign(packed.begin(), packed.end());
    const ucs_status_t status = (*library_)->ucp_ep_rkey_unpack(
        peer.endpoints[static_cast<std::size_t>(rail)], packed.data(), &made->key);
    if (status != UCS_OK)
        return library_->failed(fmt::format("reading a memory key of rank {}", peer.rank), status);
    peer.keys.push_back(std::move(made));
    return peer.keys.back().get();
}

// Keys belong to their endpoint. UCX counts what it still needs of them itself.
void UcxTransport::drop_keys(Peer& peer) {
    for (const auto& known : peer.keys)
        if (known->key != nullptr)
            (*library_)->ucp_rkey_destroy(std::exchange(known->key, nullptr));
    std::erase_if(peer.keys, [](const auto& known) { return known->users == 0; });
}

void UcxTransport::put(int rank, int rail, const void* source, Bytes bytes, const RemoteKey& key,
                       Bytes offset, Completion& done) {
    Peer& peer = peer_of(rank);
    const KeyView view = read_key(key, rail);
    if (!peer.lost.ok()) return done.complete(peer.lost);
    if (view.packed.empty())
        return done.complete(
            failure(MPI_ERR_INTERN, "rank {} sent no key for rail {} of its memory", rank, rail));
    if (peer.endpoints.empty() || peer.broken)
        return done.complete(
            failure(MPI_ERR_PROC_ABORTED, "a put to rank {}, which cannot be reached", rank));
    Result<Unpacked*> unpacked = unpack(peer, rail, view.packed);
    if (!unpacked.ok()) return done.complete(unpacked.status());
    auto* putting = new (std::nothrow) Putting{this, &done, *unpacked, 3, UCS_OK, rank, bytes};
    if (putting == nullptr)
        return done.complete(failure(MPI_ERR_NO_MEM, "no memory for a put of {} bytes", bytes));
    ++(*unpacked)->users;
    ++in_flight_;
    ucp_ep_h endpoint = peer.endpoints[static_cast<std::size_t>(rail)];
    ucp_request_param_t how{};
    how.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    how.user_data = putting;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    void* request = (*library_)->ucp_put_nbx(endpoint, source, bytes, view.address + offset,
                                             (*unpacked)->key, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(*putting, UCS_PTR_STATUS(request));
    request = (*library_)->ucp_ep_flush_nbx(endpoint, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(*putting, UCS_PTR_STATUS(request));
    finish_step(*putting, UCS_OK);  // the third: both are under way, so it may end now
}

void UcxTransport::on_put(void* request, ucs_status_t status, void* arg) {
    auto& putting = *static_cast<Putting*>(arg);
    (*putting.owner->library_)->ucp_request_free(request);
    ++putting.owner->events_;
    putting.owner->finish_step(putting, status);
}

void UcxTransport::finish_step(Putting& putting, ucs_status_t status) {
    if (status != UCS_OK && putting.status == UCS_OK) putting.status = status;
    if (--putting.steps > 0) return;
    --in_flight_;
    --putting.key->users;
    const std::unique_ptr<Putting> ended(&putting);
    if (receiver_ == nullptr) return;  // nobody waits any more
    putting.done->complete(putting.status == UCS_OK
                               ? success()
                               : library_->failed(fmt::format("putting {} bytes to rank {}",
                                                              putting.bytes, putting.peer),
                                                  putting.status));
}

}  // namespace gantry::transport::ucx
