// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/peer_memory/read.hpp"

#include "base/yield.hpp"

#include <algorithm>

namespace gantry::transfer {
namespace {

constexpr int kCallsTried = 4;
constexpr Bytes kFewBytes = 8;

}  // namespace

Task<Status> read(Executor& executor, Context& context, PeerMemory from, std::byte* to,
                  Bytes piece) {
    for (Bytes taken = 0; taken < from.bytes; taken += piece) {
        if (taken > 0) co_await Yield(executor);
        const Bytes bytes = std::min(piece, from.bytes - taken);
        const Nanoseconds began = executor.now();
        Completion done(executor);
        from.owner.transport->read_memory(from.owner.rank, from.address + taken, to + taken, bytes,
                                          done);
        Status status = co_await done;
        GANTRY_CO_TRY(status);
        if (bytes >= HostReads::kSample)
            context.host_reads.read(from.owner, bytes, executor.now() - began);
    }
    co_return success();
}

Task<Status> try_calls(Executor& executor, Context& context, PeerMemory from, std::byte* to) {
    from.bytes = std::min(from.bytes, kFewBytes);
    for (int call = 0; call < kCallsTried; ++call) {
        const Nanoseconds began = executor.now();
        Status status = co_await read(executor, context, from, to);
        GANTRY_CO_TRY(status);
        context.host_reads.tried_call(executor.now() - began);
    }
    co_return success();
}

}  // namespace gantry::transfer
