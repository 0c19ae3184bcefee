// SPDX-License-Identifier: BSD-3-Clause
#include "pair_memory.hpp"

#include "driver.hpp"
#include "job.hpp"

namespace gantry::bench {
namespace {

constexpr int kTag = 5;
constexpr unsigned kMapPeer = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

SharedPinned::Place agree(Bytes bytes) {
    SharedPinned::Place place;
    if (side() == 0) {
        place = SharedPinned::make(bytes);
        MPI_Send(&place, 2, MPI_LONG, peer(), kTag, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&place, 2, MPI_LONG, peer(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return place;
}

}  // namespace

PairMemory::PairMemory(Bytes bytes) : PairMemory(agree(bytes), bytes) {}

PairMemory::PairMemory(Place place, Bytes bytes) : SharedPinned(place, bytes) {
    meet();
    if (side() == 0) close(place);
}

PeersDevice::PeersDevice(const Buffer& mine, bool mine_is_device, bool peers_is_device) {
    CUipcMemHandle own{}, other{};
    Driver& cuda = driver();
    if (mine_is_device)
        cuda.check(cuda.cuIpcGetMemHandle(&own, address_of(mine.message(0))), "cuIpcGetMemHandle");
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, peer(), kTag, &other, sizeof other, MPI_BYTE, peer(),
                 kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (peers_is_device)
        cuda.check(cuda.cuIpcOpenMemHandle_v2(&address_, other, kMapPeer), "cuIpcOpenMemHandle",
                   mine.total_bytes());
}

PeersDevice::~PeersDevice() {
    if (address_ != 0) driver().cuIpcCloseMemHandle(address_);
}

}  // namespace gantry::bench
