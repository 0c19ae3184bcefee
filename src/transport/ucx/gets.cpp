// SPDX-License-Identifier: BSD-3-Clause
//
// Gets: UCX's own, where a card reads the peer's registered memory without the peer's processor. There
// are none with several rails: UCX does not say when a rail that failed has written here for the last
// time.
#include "transport/ucx/peer.hpp"

#include <new>

namespace gantry::transport::ucx {

void UcxTransport::get(int rank, int rail, void* sink, Bytes bytes, const Region& into,
                       const RemoteKey& key, Bytes offset, Completion& done) {
    Peer& peer = peer_of(rank);
    const KeyView view = read_key(key, rail);
    if (Status unreached = reach(peer, rail, view)) return done.complete(unreached);
    if (several() || goes_by_messages(rail))
        return done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION,
                                     "no card of this machine reads memory of rank {}", rank));
    ucp_ep_h endpoint = peer.rails[static_cast<std::size_t>(rail)].endpoint;
    Result<RemoteKeys::Key*> unpacked =
        peer.keys.unpack(*library_, endpoint, rail, view.packed, keys_);
    if (!unpacked.ok())
        return done.complete(unpacked.status().with(fmt::format("a get from rank {}", rank)));
    auto* getting = new (std::nothrow)
        Putting{this, &done, *unpacked, 2, UCS_OK, rank, rail, bytes, Putting::Kind::get};
    if (getting == nullptr)
        return done.complete(failure(MPI_ERR_NO_MEM, "no memory for a get of {} bytes", bytes));
    ++in_flight_;
    ++peer.rails[static_cast<std::size_t>(rail)].puts;
    ++getting->key->users;
    ucp_request_param_t how = how_of(*getting, memory_->source(into, rail));
    void* request = (*library_)->ucp_get_nbx(endpoint, sink, bytes, view.address + offset,
                                             getting->key->key, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(*getting, UCS_PTR_STATUS(request));
    finish_step(*getting, UCS_OK);  // the one it began with
}

}  // namespace gantry::transport::ucx
