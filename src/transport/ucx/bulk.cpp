// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/bulk.hpp"

#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

namespace gantry::transport::ucx {
namespace {

bool is_loopback(in_addr_t address) {
    return (ntohl(address) >> 24) == IN_LOOPBACKNET;
}

}  // namespace

std::vector<Network> networks_of(const Rail& rail) {
    std::vector<Network> found;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return found;
    for (const std::string& resource : rail.resources())
        for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
            if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
            if (resource != std::string("tcp/") + one->ifa_name) continue;
            sockaddr_in address{}, mask{};
            std::memcpy(&address, one->ifa_addr, sizeof address);
            std::memcpy(&mask, one->ifa_netmask, sizeof mask);
            found.push_back({address.sin_addr.s_addr, mask.sin_addr.s_addr});
        }
    freeifaddrs(list);
    return found;
}

std::optional<sockaddr_in> choose_address(const BulkAddress& theirs,
                                          const std::vector<Network>& ours, SameHost same_host) {
    const auto may_be_theirs = [&](in_addr_t host) {
        return same_host == SameHost::yes || !is_loopback(host);
    };
    const auto near = [&](in_addr_t host) {
        return may_be_theirs(host) && std::ranges::any_of(ours, [&](const Network& network) {
                   return ((host ^ network.address) & network.mask) == 0;
               });
    };
    auto found = std::ranges::find_if(theirs.hosts, near);
    if (found == theirs.hosts.end()) found = std::ranges::find_if(theirs.hosts, may_be_theirs);
    if (theirs.port == 0 || found == theirs.hosts.end()) return std::nullopt;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = theirs.port;
    address.sin_addr.s_addr = *found;
    return address;
}

// --- the side that sends -------------------------------------------------------------------------

// Where a rail cannot listen, large puts to us go in pieces as all others do.
void UcxTransport::open_doors() {
    doors_.resize(rails_.size());
    if (config_.tcp_zero_copy == 0 && !several()) return;
    std::random_device source;
    cookie_ = std::uniform_int_distribution<std::uint64_t>()(source);
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].only_tcp()) continue;
        Result<Listener> door = Listener::open();
        if (door.ok())
            doors_[rail].emplace(std::move(*door));
        else
            log::info("ucx: {}", door.status().text());
    }
}

// The stream for a large transfer; null while there is none.
UcxTransport::Bulk* UcxTransport::bulk_to(Peer& peer, int rail) {
    if (config_.tcp_zero_copy == 0 && !several()) return nullptr;
    if (peer.bulk.empty()) peer.bulk.resize(rails_.size());
    std::unique_ptr<Bulk>& bulk = peer.bulk[static_cast<std::size_t>(rail)];
    if (bulk == nullptr) {
        bulk = std::make_unique<Bulk>(Bulk{&peer, rail, Bulk::State::refused, {}});
        if (Status refused = open_bulk(*bulk))
            log::debug("ucx: no bulk connection to rank {}: {}", peer.rank, refused.text());
    }
    // With several rails transfers may queue behind the greeting: if nobody takes it, the rail fails.
    const bool usable =
        bulk->state == Bulk::State::open || (several() && bulk->state == Bulk::State::asked);
    return usable ? bulk.get() : nullptr;
}

Result<UcxTransport::Door> UcxTransport::door_of(const Peer& peer, int rail) {
    Result<WireUpOf> known = wire_up_of(peer.rank);
    GANTRY_TRY(known.status());
    const auto index = static_cast<std::size_t>(rail);
    const SameHost same_host = job_->nodes()[static_cast<std::size_t>(peer.rank)] ==
                                       job_->nodes()[static_cast<std::size_t>(rank_)]
                                   ? SameHost::yes
                                   : SameHost::no;
    const std::optional<sockaddr_in> address =
        choose_address(known->rails[index].bulk, networks_of(rails_[index]), same_host);
    if (!address) return failure(MPI_ERR_OTHER, "it has no address for them");
    return Door{*address, known->cookie};
}

Status UcxTransport::open_bulk(Bulk& bulk) {
    Peer& peer = *bulk.peer;
    Result<Door> door = door_of(peer, bulk.rail);
    GANTRY_TRY(door.status());
    const Hello hello{kFrameMagic, static_cast<std::uint32_t>(rank_),
                      static_cast<std::uint32_t>(peer.rank), static_cast<std::uint32_t>(bulk.rail),
                      door->cookie};
    Result<OutStream> stream = OutStream::connect(
        door->address, std::as_bytes(std::span(&hello, 1)), config_.peer_timeout);
    GANTRY_TRY(stream.status());
    bulk.stream = std::move(*stream);
    bulk.state = Bulk::State::asked;
    sending_.push_back(&bulk);
    log::debug("ucx: opening a bulk connection to rank {}", peer.rank);
    return tell(peer, kBulkAsked, static_cast<std::uint64_t>(bulk.rail));
}

void UcxTransport::on_bulk_message(Peer& peer, MessageKind kind, ConstSpan header) {
    std::uint64_t what = 0;
    if (header.size() != sizeof what) return;
    std::memcpy(&what, header.data(), sizeof what);
    switch (kind) {
        case kBulkOpen: return on_bulk_open(peer, what);
        case kBulkAsked: return on_bulk_asked(what);
        default: return on_fetch(peer, what);
    }
}

void UcxTransport::on_bulk_open(Peer& peer, std::uint64_t rail) {
    if (rail >= peer.bulk.size() || peer.bulk[rail] == nullptr) return;
    if (peer.bulk[rail]->state != Bulk::State::asked) return;
    peer.bulk[rail]->state = Bulk::State::open;
    if (!several() && is_lane_of_both(rank_, peer.rank, rail) &&
        read_way_back(peer, *peer.bulk[rail]))
        use_lane(peer, *peer.bulk[rail]);
}

// A short message between transports that leaves with the others.
Status UcxTransport::tell(Peer& peer, MessageKind kind, std::uint64_t what) {
    Status said = append(peer, kind, std::as_bytes(std::span(&what, 1)), {});
    visit_in_progress(peer);
    return said;
}

void UcxTransport::send_zero_copy(Bulk& bulk, const StreamHead& head, const void* source,
                                  OutStream::Left left) {
    if (std::ranges::find(sending_, &bulk) == sending_.end()) sending_.push_back(&bulk);
    bulk.stream.push(head, static_cast<const std::byte*>(source), std::move(left));
    // Over a loopback a write takes as long as its bytes: one in a turn, or nothing is heard
    // between many.
    if (!std::exchange(wrote_at_once_, true)) move_out(bulk);
}

void UcxTransport::move_out(Bulk& bulk) {
    Result<int> left = bulk.stream.progress();
    if (left.ok()) {
        events_ += *left;
        return;
    }
    log::debug("ucx: a bulk connection ended: {}", left.status().text());
    // Before it was open nobody counted on it; now nobody knows what of a transfer arrived.
    if (std::exchange(bulk.state, Bulk::State::refused) == Bulk::State::open || several())
        note_broken(bulk.peer->rails[static_cast<std::size_t>(bulk.rail)],
                    UCS_ERR_CONNECTION_RESET);
}

void UcxTransport::put_zero_copy(Bulk& bulk, const std::byte* source, Putting& putting,
                                 std::uint64_t region, Bytes offset, Frame* told_of) {
    const std::uint64_t ticket = next_ticket_++;
    putting.steps += 2;  // the answer, and the source
    bulk.peer->unanswered.emplace(ticket, &putting);
    ++zero_copy_puts_;
    const Carried what = told_of != nullptr ? Carried::told_put : Carried::put;
    const StreamHead head{kFrameMagic,  static_cast<std::uint32_t>(what), ticket, region, offset,
                          putting.bytes};
    // Both in the queue before the first is written, which may end it.
    const auto left = [this, &putting](const Status& status) {
        finish_step(putting, status.ok() ? UCS_OK : UCS_ERR_CONNECTION_RESET);
    };
    if (told_of == nullptr) return send_zero_copy(bulk, head, source, left);
    bulk.stream.push(head, source, left);
    ++in_flight_;
    send_zero_copy(
        bulk, {kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0, told_of->used},
        told_of->bytes(), [this, told_of](const Status&) {
            frames_.give(told_of);
            --in_flight_;
        });
}

// --- the side that receives ----------------------------------------------------------------------

void UcxTransport::on_bulk_asked(std::uint64_t rail) {
    if (rail < doors_.size() && doors_[rail])
        awaited_.push_back({static_cast<std::size_t>(rail), clock_.now() + config_.peer_timeout});
}

void UcxTransport::accept_awaited() {
    std::erase_if(awaited_, [this, now = clock_.now()](const Awaited& awaited) {
        Socket socket = doors_[awaited.rail]->accept();
        if (!socket.open()) return now > awaited.until;
        accepted_.push_back(
            std::make_unique<Accepted>(*this, std::move(socket), now + config_.peer_timeout));
        ++unknown_;
        return true;
    });
}

// False: it is nobody of this job, or nobody in time.
bool UcxTransport::greet(Accepted& accepted) {
    Result<bool> whole =
        accepted.stream.read_greeting(std::as_writable_bytes(std::span(&accepted.hello, 1)));
    if (!whole.ok()) return false;
    if (!*whole) return clock_.now() < accepted.until;
    const Hello& hello = accepted.hello;
    const std::uint32_t rail = hello.rail & ~Hello::kTcpKeepalive;
    if (hello.magic != kFrameMagic || hello.from >= peers_.size() || rail >= rails_.size() ||
        hello.to != static_cast<std::uint32_t>(rank_) || hello.cookie != cookie_)
        return false;
    Peer& peer = peer_of(static_cast<int>(hello.from));
    if (!peer.lost.ok()) return false;
    if (rail != hello.rail) {
        received_tcp_keepalives_.push_back(
            {peer.rank, static_cast<int>(rail), accepted.stream.socket().again()});
        return false;  // this descriptor of it
    }
    accepted.from = peer.rank;
    watch(accepted);
    if (!several() && is_lane_of_both(peer.rank, rank_, hello.rail)) open_way_back(peer, accepted);
    Status said = tell(peer, kBulkOpen, hello.rail);
    if (!said.ok()) log::error("{}", said.text());
    return true;
}

std::byte* UcxTransport::Accepted::place(const StreamHead& head) {
    if (static_cast<Carried>(head.what) != Carried::exposure)
        return owner.memory_->at(head.region, head.offset, head.bytes);
    const Peer& peer = owner.peer_of(from);
    const auto fetch = peer.fetches.find(head.number);
    return fetch != peer.fetches.end() && fetch->second.bytes == head.bytes ? fetch->second.sink
                                                                            : nullptr;
}

void UcxTransport::Accepted::arrived(const StreamHead& head, bool dropped) {
    Peer& peer = owner.peer_of(from);
    const auto what = static_cast<Carried>(head.what);
    if (what == Carried::exposure) {
        --expected;
        --owner.expected_;
        return owner.finish_fetch(peer, head.number, dropped);
    }
    owner.answer_put(peer, head.number, dropped ? Answer::refused : Answer::in_place);
    untrue = what == Carried::told_put && dropped;
}

// Takes in what is there. At the end of a stream that owes nothing its peer has left, or is lost.
void UcxTransport::read(Accepted& accepted) {
    Result<int> arrived = accepted.stream.progress(accepted);
    if (arrived.ok()) {
        events_ += *arrived;
        return;
    }
    Peer& peer = peer_of(accepted.from);
    if (several()) {  // the rail is gone, as its connection of UCX will tell, or the peer has left
        close_accepted(accepted);
        return;
    }
    if (accepted.expected > 0 || !accepted.stream.between_transfers())
        note_broken(peer, UCS_ERR_CONNECTION_RESET);
    else
        doubt(peer);
    close_accepted(accepted);
}

// It is forgotten in the next turn: somebody may be going through accepted_.
void UcxTransport::close_accepted(Accepted& accepted) {
    watch_no_more(accepted);
    accepted.stream.close();
    expected_ -= std::exchange(accepted.expected, 0);
    if (hot_ == &accepted) hot_ = nullptr;
}

void UcxTransport::move_in() {
    for (std::size_t at = 0; at < accepted_.size(); ++at) {  // reading may bring one more
        Accepted& accepted = *accepted_[at];
        if (accepted.from < 0) {
            const bool stays = accepted.stream.open() && greet(accepted);
            if (!stays) accepted.stream.close();
            if (!stays || accepted.from >= 0) --unknown_;
        } else if ((accepted.expected > 0 || !accepted.watched) && &accepted != hot_) {
            read(accepted);
        }
    }
    if (others()) look_at_others();
    std::erase_if(accepted_, [](const auto& accepted) { return !accepted->stream.open(); });
}

// --- both ----------------------------------------------------------------------------------------

void UcxTransport::move_bulk() {
    if (!sending_.empty()) {
        for (std::size_t at = 0; at < sending_.size(); ++at)
            move_out(*sending_[at]);
        std::erase_if(sending_, [](const Bulk* bulk) { return bulk->stream.idle(); });
    }
    if (!awaited_.empty()) [[unlikely]]
        accept_awaited();
    if (expected_ > 0 || unknown_ > 0 || others()) move_in();
}

// With several rails: that rail failed.
void UcxTransport::close_bulk_of(RailTo& rail) {
    if (!rail.peer->bulk.empty()) {
        std::unique_ptr<Bulk>& bulk = rail.peer->bulk[static_cast<std::size_t>(rail.index)];
        if (bulk != nullptr) {
            bulk->stream.close(failure(MPI_ERR_OTHER, "the rail failed"));
            std::erase(sending_, bulk.get());
            bulk.reset();  // opened again when the rail is back
        }
    }
    close_accepted_of(rail);
}

void UcxTransport::close_accepted_of(const RailTo& rail) {
    for (const auto& accepted : accepted_)
        if (accepted->from == rail.peer->rank &&
            accepted->hello.rail == static_cast<std::uint32_t>(rail.index))
            close_accepted(*accepted);
    std::erase_if(received_tcp_keepalives_, [&](const ReceivedTcpKeepalive& tcp_keepalive) {
        return tcp_keepalive.from == rail.peer->rank && tcp_keepalive.rail == rail.index;
    });
}

// Nothing reads or writes our memory for that peer's sake any more, and what was under way ends.
void UcxTransport::close_bulk(Peer& peer, Incoming incoming) {
    if (std::exchange(peer.lane, nullptr) != nullptr) --lanes_;
    const auto close_one = [this](Bulk* bulk) {
        if (bulk == nullptr) return;
        bulk->state = Bulk::State::refused;
        bulk->stream.close(failure(MPI_ERR_OTHER, "the connection was closed"));
        std::erase(sending_, bulk);
    };
    for (const auto& bulk : peer.bulk)
        close_one(bulk.get());
    close_one(peer.back.get());
    // Who has left may have sent more messages than we have read.
    for (const auto& accepted : accepted_)
        if (accepted->from == peer.rank && incoming == Incoming::closed) close_accepted(*accepted);
    end_fetches(peer);
}

}  // namespace gantry::transport::ucx
