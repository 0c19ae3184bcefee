// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/coll/quick.hpp"

#include "coll/host_image.hpp"
#include "coll/mailbox_call.hpp"
#include "mpi/coll/block_arguments.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/pending.hpp"

#include <algorithm>
#include <utility>

namespace gantry::mpi::quick {
namespace {

using coll::MailboxCall;
using coll::MailboxJob;
using plan::Collective;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Its ranks, for who sends no messages: the operation takes no tag, which all ranks count alike.
coll::Team without_tag(Comm& comm) {
    return {&comm.engine->messenger(),
            &comm.engine->transfer(),
            &comm.collective,
            0,
            0,
            -1,
            0,
            &comm.planner};
}

// The first calls of a communicator, until all its ranks open a mailbox, or have none.
bool opens_mailbox(Comm& comm, Bytes bytes) {
    coll::MailboxUse& use = comm.mailbox_use;
    Engine& engine = *comm.engine;
    if (comm.is_inter() || comm.size() < 2 || engine.checks().on()) {
        use.settle();
        return false;
    }
    if (!use.wants_it(bytes, coll::tuning_of(without_tag(comm)).mailbox_calls)) return false;
    // Whose mailbox cannot be opened hears why from the operation itself.
    return wait(Pending(engine, use.open(engine.executor(), comm.team()))).ok();
}

transfer::Mailbox* mailbox_of(Comm& comm, Collective operation, Bytes bytes) {
    if (!comm.mailbox_use.settled()) [[unlikely]]
        if (!opens_mailbox(comm, bytes)) return nullptr;
    return comm.mailbox_use.mailbox(operation, bytes);
}

// A rank's part of a call that goes over a mailbox.
class Running {
  public:
    Running(Comm& comm, transfer::Mailbox& mailbox, const MailboxJob& job)
        : comm_(comm), engine_(*comm.engine), call_(mailbox, job) {}

    Ended to_the_end(Bytes bytes) {
        Executor& executor = engine_.executor();
        transfer::NodeSegment& node_segment = context().node_segment;
        if (call_.job().on_device) [[unlikely]] {
            if (!call_.begun())
                (void)wait(Pending(engine_, call_.finish_begin(executor, node_segment)));
            if (Status staged = stage(); !staged.ok()) call_.fail(std::move(staged));
        }
        // Before the engine is driven, too: other ranks of a node answer within a microsecond or two.
        for (auto looks = engine_.is_crowded() ? 1 : context().config.coll_mailbox_looks; looks > 0;
             --looks) {
            if (call_.poll()) return ended(bytes);
            pause();
        }
        (void)wait(Pending(engine_, call_.finish(executor, node_segment)));
        return ended(bytes);
    }

  private:
    transfer::Context& context() { return engine_.transfer(); }
    coll::Team team() const { return without_tag(comm_); }

    // Host memory takes the place of what is in device memory, unless all go another way.
    Status stage() {
        if (call_.goes_elsewhere()) return success();
        MailboxJob& job = call_.job();
        const bool same = job.source.address == job.sink.address;
        if (job.source.bytes() > 0 && !coll::on_host(team(), job.source)) {
            GANTRY_TRY(source_.allocate(team(), job.source.count, *job.source.layout));
            GANTRY_TRY(wait(Pending(
                engine_, coll::copy(engine_.executor(), team(), job.source, source_.buffer()))));
            job.source = source_.buffer();
            if (same && job.sink.bytes() > 0) later_ = std::exchange(job.sink, job.source);
        }
        if (job.sink.bytes() > 0 && later_.bytes() == 0 && !coll::on_host(team(), job.sink)) {
            GANTRY_TRY(sink_.allocate(team(), job.sink.count, *job.sink.layout));
            if (job.in_place) {
                GANTRY_TRY(wait(Pending(
                    engine_, coll::copy(engine_.executor(), team(), job.sink, sink_.buffer()))));
            }
            later_ = std::exchange(job.sink, sink_.buffer());
        }
        return success();
    }

    Ended ended(Bytes bytes) {
        if (call_.meets()) return std::nullopt;
        if (engine_.explains()) [[unlikely]]
            comm_.planner.explain_mailbox(team(), call_.job().operation, bytes);
        if (!call_.status().ok()) [[unlikely]]
            return failure(call_.status().error_class(), "{}", call_.status().text());
        if (later_.bytes() > 0) [[unlikely]]
            return wait(
                Pending(engine_, coll::copy(engine_.executor(), team(), call_.job().sink, later_)));
        return success();
    }

    Comm& comm_;
    Engine& engine_;
    MailboxCall call_;
    coll::HostImage source_, sink_;
    p2p::Buffer later_;  // where the sink's bytes go from host memory
};

Ended over(Comm& comm, transfer::Mailbox& mailbox, MailboxJob& job, Bytes bytes) {
    Engine& engine = *comm.engine;
    // A call that waits for nobody drives nothing; what the program has in flight goes on all the same.
    if (engine.pending()) engine.progress();
    if (engine.device().active()) [[unlikely]] {
        const coll::Team team = without_tag(comm);
        const auto on_device = [&](const p2p::Buffer& buffer) {
            return buffer.bytes() > 0 && !coll::on_host(team, buffer);
        };
        job.on_device = job.on_device || on_device(job.source) || on_device(job.sink);
    }
    return Running(comm, mailbox, job).to_the_end(bytes);
}

// Whether the job's reduction can be made of whole cells; all ranks have the same operation and datatype.
bool reduces(MailboxJob& job, const Op& op, const Datatype& datatype) {
    if (!op.predefined || !op.commutative || !datatype.predefined ||
        !datatype.layout.contiguous() || datatype.layout.size == 0)
        return false;
    job.reduction = layout::reduction(op.operation, datatype.element);
    job.element = datatype.layout.size;
    return job.reduction != nullptr;
}

// The two sides of a reduction; in place, the receive buffer is both.
void set_sides(MailboxJob& job, const void* sendbuf, void* recvbuf, MPI_Count count,
               const Datatype& datatype) {
    job.in_place = sendbuf == MPI_IN_PLACE;
    job.source = buffer(job.in_place ? recvbuf : sendbuf, count, datatype);
    job.sink = buffer(recvbuf, count, datatype);
}

// One block for each rank, behind each other.
p2p::Buffer all_blocks(const void* address, MPI_Count count, const Datatype& datatype,
                       const Comm& comm) {
    return buffer(address, count * comm.size(), datatype);
}

// What the bodies refuse (check_distinct).
bool overlap(const p2p::Buffer& part, const void* all, MPI_Count count, const Datatype& datatype,
             int rank) {
    const auto* first = static_cast<const std::byte*>(all);
    const std::ptrdiff_t apart = datatype.layout.extent * static_cast<std::ptrdiff_t>(count);
    return part.address != nullptr &&
           (part.address == first || part.address == first + apart * rank);
}

Bytes bytes_of(MPI_Count count, const Datatype& datatype) {
    return static_cast<Bytes>(count) * datatype.layout.size;
}

Ended scatter_reduced(MailboxJob& job, const void* sendbuf, void* recvbuf, MPI_Count count,
                      MPI_Count share, const Datatype& datatype, const Op& op, Comm& comm) {
    if (job.whole == 0 || !reduces(job, op, datatype)) return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::reduce_scatter, job.whole);
    if (mailbox == nullptr) return std::nullopt;
    set_sides(job, sendbuf, recvbuf, share, datatype);
    job.source.count = static_cast<std::uint64_t>(count);
    return over(comm, *mailbox, job, job.whole);
}

Ended scan_of(const void* sendbuf, void* recvbuf, MPI_Count count, const Datatype& datatype,
              const Op& op, bool exclusive, Comm& comm) {
    const Bytes bytes = bytes_of(count, datatype);
    MailboxJob job{.operation = Collective::scan, .block = bytes, .exclusive = exclusive};
    if (bytes == 0 || !reduces(job, op, datatype)) return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::scan, bytes);
    if (mailbox == nullptr) return std::nullopt;
    set_sides(job, sendbuf, recvbuf, count, datatype);
    if (exclusive && comm.rank() == 0) job.sink = {};  // it gets nothing
    return over(comm, *mailbox, job, bytes);
}

}  // namespace

Ended barrier(Comm& comm) {
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::barrier, 0);
    if (mailbox == nullptr) return std::nullopt;
    MailboxJob job{.operation = Collective::barrier};
    return over(comm, *mailbox, job, 0);
}

Ended bcast(void* address, MPI_Count count, Datatype* datatype, int root, Comm& comm) {
    if (datatype == nullptr) return std::nullopt;  // on an inter-communicator
    const Bytes bytes = bytes_of(count, *datatype);
    transfer::Mailbox* const mailbox =
        bytes > 0 ? mailbox_of(comm, Collective::bcast, bytes) : nullptr;
    if (mailbox == nullptr) return std::nullopt;
    MailboxJob job{.operation = Collective::bcast, .block = bytes, .root = root};
    (comm.rank() == root ? job.source : job.sink) = buffer(address, count, *datatype);
    return over(comm, *mailbox, job, bytes);
}

Ended reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op* op,
             int root, Comm& comm) {
    if (datatype == nullptr || op == nullptr) return std::nullopt;
    const Bytes bytes = bytes_of(count, *datatype);
    MailboxJob job{.operation = Collective::reduce, .block = bytes, .root = root};
    if (bytes == 0 || !reduces(job, *op, *datatype)) return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::reduce, bytes);
    if (mailbox == nullptr) return std::nullopt;
    set_sides(job, sendbuf, recvbuf, count, *datatype);
    if (comm.rank() != root) job.sink = {};
    return over(comm, *mailbox, job, bytes);
}

Ended allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                Comm& comm) {
    const Bytes bytes = bytes_of(count, datatype);
    MailboxJob job{.operation = Collective::allreduce, .block = bytes};
    if (bytes == 0 || !reduces(job, op, datatype)) return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::allreduce, bytes);
    if (mailbox == nullptr) return std::nullopt;
    set_sides(job, sendbuf, recvbuf, count, datatype);
    return over(comm, *mailbox, job, bytes);
}

Ended reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                           Datatype& datatype, Op& op, Comm& comm) {
    const Bytes block = bytes_of(recvcount, datatype);
    const auto me = static_cast<Bytes>(comm.rank()), ranks = static_cast<Bytes>(comm.size());
    MailboxJob job{.operation = Collective::reduce_scatter,
                   .block = block,
                   .whole = block * ranks,
                   .share_first = block * me};
    return scatter_reduced(job, sendbuf, recvbuf, recvcount * comm.size(), recvcount, datatype, op,
                           comm);
}

Ended reduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts,
                     Datatype& datatype, Op& op, Comm& comm) {
    if (comm.is_inter()) return std::nullopt;
    const int me = comm.rank();
    MPI_Count all = 0, before = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (rank == me) before = all;
        all += recvcounts[rank];
    }
    MailboxJob job{.operation = Collective::reduce_scatter,
                   .block = bytes_of(recvcounts[me], datatype),
                   .whole = bytes_of(all, datatype),
                   .share_first = bytes_of(before, datatype)};
    return scatter_reduced(job, sendbuf, recvbuf, all, recvcounts[me], datatype, op, comm);
}

Ended scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
           Comm& comm) {
    return scan_of(sendbuf, recvbuf, count, datatype, op, false, comm);
}

Ended exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
             Comm& comm) {
    return scan_of(sendbuf, recvbuf, count, datatype, op, true, comm);
}

Ended gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
             MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    const bool is_root = comm.rank() == root;
    const Datatype* const known = is_root ? recvtype : sendtype;
    if (known == nullptr || comm.is_inter()) return std::nullopt;
    const Bytes block = bytes_of(is_root ? recvcount : sendcount, *known);
    MailboxJob job{.operation = Collective::gather, .block = block, .root = root};
    job.in_place = sendbuf == MPI_IN_PLACE;
    if (!job.in_place) job.source = buffer(sendbuf, sendcount, *sendtype);
    if (is_root) job.sink = all_blocks(recvbuf, recvcount, *recvtype, comm);
    if (block == 0 || (!job.in_place && job.source.bytes() != block)) return std::nullopt;
    if (is_root && !job.in_place && overlap(job.source, recvbuf, recvcount, *recvtype, root))
        return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::gather, block);
    return mailbox != nullptr ? over(comm, *mailbox, job, block) : std::nullopt;
}

Ended scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    const bool is_root = comm.rank() == root;
    const Datatype* const known = is_root ? sendtype : recvtype;
    if (known == nullptr || comm.is_inter()) return std::nullopt;
    const Bytes block = bytes_of(is_root ? sendcount : recvcount, *known);
    MailboxJob job{.operation = Collective::scatter, .block = block, .root = root};
    job.in_place = recvbuf == MPI_IN_PLACE;
    if (!job.in_place) job.sink = buffer(recvbuf, recvcount, *recvtype);
    if (is_root) job.source = all_blocks(sendbuf, sendcount, *sendtype, comm);
    if (block == 0 || (!job.in_place && job.sink.bytes() != block)) return std::nullopt;
    if (is_root && !job.in_place && overlap(job.sink, sendbuf, sendcount, *sendtype, root))
        return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::scatter, block);
    return mailbox != nullptr ? over(comm, *mailbox, job, block) : std::nullopt;
}

Ended allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, Comm& comm) {
    if (recvtype == nullptr || comm.is_inter()) return std::nullopt;
    const Bytes block = bytes_of(recvcount, *recvtype);
    MailboxJob job{.operation = Collective::allgather, .block = block};
    job.in_place = sendbuf == MPI_IN_PLACE;
    job.sink = all_blocks(recvbuf, recvcount, *recvtype, comm);
    if (job.in_place) {
        job.source = job.sink;
        job.source_first = block * static_cast<Bytes>(comm.rank());
    } else {
        job.source = buffer(sendbuf, sendcount, *sendtype);
        if (job.source.bytes() != block) return std::nullopt;
        if (overlap(job.source, recvbuf, recvcount, *recvtype, comm.rank())) return std::nullopt;
    }
    transfer::Mailbox* const mailbox =
        block > 0 ? mailbox_of(comm, Collective::allgather, block) : nullptr;
    return mailbox != nullptr ? over(comm, *mailbox, job, block) : std::nullopt;
}

// All ranks know all counts alike.
Ended allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                 Comm& comm) {
    if (recvtype == nullptr || comm.is_inter()) return std::nullopt;
    const int me = comm.rank();
    MPI_Count all = 0, largest = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
        all += recvcounts[rank];
        largest = std::max(largest, recvcounts[rank]);
    }
    if (all == 0 || bytes_of(largest, *recvtype) > transfer::kMailboxRoom) return std::nullopt;
    const Bytes bytes = bytes_of(all, *recvtype);
    const auto block_of = [&](int rank) {
        return buffer(static_cast<std::byte*>(recvbuf) +
                          recvtype->layout.extent * static_cast<std::ptrdiff_t>(displs[rank]),
                      recvcounts[rank], *recvtype);
    };
    MailboxJob job{.operation = Collective::allgatherv,
                   .block = bytes_of(recvcounts[me], *recvtype),
                   .counts = recvcounts,
                   .displacements = displs,
                   .in_place = sendbuf == MPI_IN_PLACE};
    job.source = job.in_place ? block_of(me) : buffer(sendbuf, sendcount, *sendtype);
    job.sink = buffer(recvbuf, 0, *recvtype);
    if (!job.in_place && (job.source.bytes() != job.block ||
                          (job.block > 0 && (job.source.address == block_of(me).address ||
                                             job.source.address == block_of(0).address))))
        return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::allgatherv, bytes);
    if (mailbox == nullptr) return std::nullopt;
    if (comm.engine->device().active()) [[unlikely]]
        for (int rank = 0; rank < comm.size() && !job.on_device; ++rank)
            job.on_device =
                recvcounts[rank] > 0 && !coll::on_host(without_tag(comm), block_of(rank));
    return over(comm, *mailbox, job, bytes);
}

Ended alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, Comm& comm) {
    // What is in place on one rank is so on all of them, and swapped pair by pair.
    if (recvtype == nullptr || comm.is_inter() || sendbuf == MPI_IN_PLACE) return std::nullopt;
    const Bytes block = bytes_of(recvcount, *recvtype);
    MailboxJob job{.operation = Collective::alltoall, .block = block};
    job.sink = all_blocks(recvbuf, recvcount, *recvtype, comm);
    job.source = all_blocks(sendbuf, sendcount, *sendtype, comm);
    if (block == 0 || job.source.bytes() != job.sink.bytes()) return std::nullopt;
    const auto apart = sendtype->layout.extent * static_cast<std::ptrdiff_t>(sendcount);
    const p2p::Buffer own =
        buffer(static_cast<const std::byte*>(sendbuf) + apart * comm.rank(), sendcount, *sendtype);
    if (overlap(own, recvbuf, recvcount, *recvtype, comm.rank())) return std::nullopt;
    transfer::Mailbox* const mailbox = mailbox_of(comm, Collective::alltoall, block);
    return mailbox != nullptr ? over(comm, *mailbox, job, block) : std::nullopt;
}

}  // namespace gantry::mpi::quick
