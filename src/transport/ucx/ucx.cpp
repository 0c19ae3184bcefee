// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end; connections.cpp connects, messages.cpp and puts.cpp move the bytes.
#include "transport/ucx/ucx.hpp"

#include "base/log.hpp"
#include "transport/ucx/peer.hpp"
#include "transport/wire_version.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace gantry::transport::ucx {
namespace {

constexpr std::string_view kKey = "ucx";
constexpr const char* kSysfs = "/sys";
constexpr std::string_view kDistancesKey = "rails";  // from a rank to its rails
// Of one message, so that receiving it never needs more than one copy out of UCX's buffer.
constexpr Bytes kEagerMax = 64 * kKiB;
// A frame of many small messages: what TCP of UCX sends without looking for registered memory.
constexpr Bytes kUsualFrame = 8000;
constexpr Bytes kLargestFrame =
    sizeof(FrameHead) + Frame::record_bytes(kMaxHeader, kEagerMax) + kFrameAlignment;

// What a rank puts into the store, followed by each rail's addresses: | length u16 | bytes |, then
// | length u16 | key of its card keepalive word | address u64 |, then | port u16 | count u16 | IPv4 addresses
// u32 ... |. The version comes first in all versions to come.
constexpr std::uint32_t kWireUpMagic = 0x47575550;  // "GWUP"
struct WireUp {
    std::uint32_t magic;
    std::uint32_t version;
    std::uint16_t major, minor;
    std::uint32_t rails;
    std::uint64_t cookie;
};

template <class Number>
void write(std::string& to, const Number& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
// | length u16 | bytes |
void write(std::string& to, const std::string& bytes) {
    write(to, static_cast<std::uint16_t>(bytes.size()));
    to += bytes;
}
template <class Number>
bool take(std::string_view& from, Number& value) {
    if (from.size() < sizeof value) return false;
    std::memcpy(&value, from.data(), sizeof value);
    from.remove_prefix(sizeof value);
    return true;
}
bool take(std::string_view& from, std::string& bytes) {
    std::uint16_t length = 0;
    if (!take(from, length) || from.size() < length) return false;
    bytes = from.substr(0, length);
    from.remove_prefix(length);
    return true;
}

}  // namespace

UcxTransport::UcxTransport(const Clock& clock, const config::Config& config, RankGpu gpu)
    : clock_(clock), config_(config), gpu_(std::move(gpu)), frames_(kUsualFrame, kLargestFrame) {}

UcxTransport::~UcxTransport() {
    // An engine that never closed (a failed start) still has endpoints; without them no callback
    // comes any more once the workers are gone.
    receiver_ = nullptr;
    for (const auto& peer : peers_) {
        peer->keys.drop(*library_);
        close_endpoints(*peer, UCP_EP_CLOSE_FLAG_FORCE);
        close_bulk(*peer, Incoming::closed);
        fail_unanswered(*peer, -1);  // nobody is told: frees them
        for (RailTo& rail : peer->rails)
            release_held(rail);
    }
    for (int turn = 0; turn < 1000 && !closing_.empty(); ++turn) {
        for (Rail& rail : rails_)
            rail.progress();
        watch_closing();
    }
    // Who does not answer is not waited for any longer; UCX ends the process over a request that is
    // still held when its worker goes.
    for (void* request : std::exchange(closing_, {}))
        (*library_)->ucp_request_free(request);
    memory_.reset();
    rails_.clear();
    for (const auto& peer : peers_) {
        drop_frames(*peer);
    }
}

PeerFacts UcxTransport::facts(int) const {
    PeerFacts facts;
    facts.put = true;
    facts.rails = static_cast<int>(rails_.size());
    facts.home_rail = home_rail_;
    facts.eager_max = kEagerMax;
    const bool tcp =
        std::all_of(rails_.begin(), rails_.end(), [](const Rail& rail) { return rail.only_tcp(); });
    const auto by_messages = [](const Rail& rail) { return rail.only_messages(); };
    const bool some_by_messages = std::ranges::any_of(rails_, by_messages);
    facts.registers_sources = !std::ranges::all_of(rails_, by_messages);
    facts.unattended = !some_by_messages;
    // What a rail that failed still reads may arrive late, and nobody here could tell.
    facts.get = facts.unattended && !several();
    // Whether a card really does is known when it registers some.
    facts.device_memory = !some_by_messages && config_.gpudirect != "off";
    if (tcp) facts.rdma_from = config_.tcp_zero_copy;
    // What exposes its memory is not sent again when its rail fails.
    if (tcp && !several() && config_.tcp_zero_copy > 0) facts.exposes_from = config_.tcp_expose;
    const model::Link& link = described_ ? *described_ : tcp ? tcp_ : card_;
    facts.eager_limit = link.eager_limit;
    const bool each_described = link.rail_rates.size() == rails_.size();
    facts.bytes_per_second =
        each_described ? link.all_rails() / static_cast<double>(rails_.size()) : link.rate.peak();
    facts.message_latency = link.latency;
    facts.put_cost = link.put_cost;
    return facts;
}

Stats UcxTransport::stats() const {
    return {memory_ ? memory_->counts() : RegistrationCounts{}, keys_};
}

// --- start ---------------------------------------------------------------------------------------

Status UcxTransport::publish(job::Job& job) {
    rank_ = job.rank();
    job_ = &job;
    const QuietStart quiet(config_);
    Result<std::unique_ptr<Library>> library = Library::load(config_);
    GANTRY_TRY(library.status());
    library_ = std::move(*library);
    Result<std::vector<Rail>> rails = open_rails(*library_, config_);
    GANTRY_TRY(rails.status());
    rails_ = std::move(*rails);
    keeps_cards_alive_ = std::ranges::any_of(
        rails_, [](const Rail& rail) { return !rail.card_keepalive_key().empty(); });
    memory_.emplace(*library_, rails_,
                    RegistrationLimits{static_cast<std::size_t>(config_.registration_entries),
                                       config_.registration_bytes});
    for (Rail& rail : rails_)
        listening_.push_back({this, rail.worker(), static_cast<int>(listening_.size())});
    open_doors();
    if (!config_.machine.empty()) {
        Result<model::Machine> machine = model::load(config_.machine);
        if (machine.ok())
            described_ = machine->network;
        else
            log::warn("ucx: {}", machine.status().text());
    }
    std::string value;
    write(value,
          WireUp{kWireUpMagic, kWireVersion, static_cast<std::uint16_t>(library_->version().major),
                 static_cast<std::uint16_t>(library_->version().minor),
                 static_cast<std::uint32_t>(rails_.size()), cookie_});
    for (const Rail& rail : rails_) {
        write(value, rail.address());
        write(value, rail.card_keepalive_key());
        write(value, rail.card_keepalive_word());
        const std::vector<Network> networks = networks_of(rail);
        const std::optional<Listener>& door =
            doors_[static_cast<std::size_t>(&rail - rails_.data())];
        const in_port_t port = door ? door->port() : 0;
        const std::size_t hosts = port == 0 ? 0 : std::min(networks.size(), BulkAddress::kMost);
        write(value, port);
        write(value, static_cast<std::uint16_t>(hosts));
        for (std::size_t host = 0; host < hosts; ++host)
            write(value, networks[host].address);
    }
    GANTRY_TRY(job.put(kKey, value));
    return several() ? publish_distances(job) : success();
}

Status UcxTransport::publish_distances(job::Job& job) {
    const Standpoint here = standpoint_of(gpu_, kSysfs);
    const Distances distances = distances_to(rails_, here.place, kSysfs);
    from_here_ = here.name;
    return job.put(kDistancesKey, to_bytes(distances));
}

// Every rank of the node computes the same assignment.
Status UcxTransport::choose_home_rail(job::Job& job) {
    std::vector<Distances> of_node;
    for (int rank = 0; rank < job.size(); ++rank) {
        if (job.nodes()[static_cast<std::size_t>(rank)] !=
            job.nodes()[static_cast<std::size_t>(rank_)])
            continue;
        const Result<std::string> told = job.get(rank, kDistancesKey);
        GANTRY_TRY(told.status());
        std::optional<Distances> distances = distances_from(told.value(), rails_.size());
        if (!distances)
            return failure(MPI_ERR_OTHER,
                           "rank {} tells of {} bytes about the distances to its rails, where {} "
                           "belong: the ranks of a node must have one GANTRY_RAILS and load the "
                           "same Gantry library",
                           rank, told.value().size(), 2 * rails_.size());
        of_node.push_back(std::move(*distances));
    }
    const auto own = static_cast<std::size_t>(job.local_rank());
    home_rail_ = assign_home_rails(of_node)[own];
    why_home_ = words(of_node[own][static_cast<std::size_t>(home_rail_)], from_here_);
    log::info("ucx: small messages go by rail {} of {}: {}", home_rail_, rails_.size(), why_home_);
    return success();
}

Status UcxTransport::open(job::Job& job, Receiver& receiver) {
    receiver_ = &receiver;
    for (int rank = 0; rank < job.size(); ++rank)
        peers_.push_back(std::make_unique<Peer>(*this, rank, rails_.size()));
    for (Listening& rail : listening_) {
        GANTRY_TRY(listen(rail, kFrameId, &UcxTransport::on_frame));
        GANTRY_TRY(listen(rail, kPieceId, &UcxTransport::on_piece));
    }
    // If every rank agrees with the next one, all agree; so one look finds any mixture.
    GANTRY_TRY(wire_up_of((rank_ + 1) % job.size()).status());
    return several() ? choose_home_rail(job) : success();
}

Status UcxTransport::listen(Listening& listening, unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = callback;
    handler.arg = &listening;
    const ucs_status_t status =
        (*library_)->ucp_worker_set_am_recv_handler(listening.worker, &handler);
    return status == UCS_OK ? success() : library_->failed("listening to the network", status);
}

Result<UcxTransport::WireUpOf> UcxTransport::wire_up_of(int rank) {
    Result<std::string> value = job_->get(rank, kKey);
    if (!value.ok())
        return value.status().with(fmt::format("looking for the network address of rank {}", rank));
    std::string_view rest = *value;
    WireUp theirs{};
    if (!take(rest, theirs) || theirs.magic != kWireUpMagic)
        return failure(MPI_ERR_OTHER,
                       "network: rank {} runs a Gantry from before wire version 4 and this rank "
                       "version {}: all ranks must load the same Gantry library",
                       rank, kWireVersion);
    if (theirs.version != kWireVersion) return mixed_versions("network", rank, theirs.version);
    if (!library_->version().speaks_with({theirs.major, theirs.minor, 0}))
        return failure(MPI_ERR_OTHER,
                       "rank {} loaded UCX {}.{} and this rank UCX {}.{} from {}: these do not "
                       "understand each other; give all hosts the same one (GANTRY_UCX)",
                       rank, theirs.major, theirs.minor, library_->version().major,
                       library_->version().minor, library_->path());
    if (theirs.rails != rails_.size())
        return failure(MPI_ERR_OTHER,
                       "rank {} has {} network rails and this rank {}: GANTRY_RAILS must name as "
                       "many devices on every host",
                       rank, theirs.rails, rails_.size());
    WireUpOf known{theirs.cookie, {}};
    for (std::uint32_t rail = 0; rail < theirs.rails; ++rail) {
        auto& [worker, card_keepalive_key, card_keepalive_word, bulk] = known.rails.emplace_back();
        std::uint16_t hosts = 0;
        bool whole = take(rest, worker) && take(rest, card_keepalive_key) &&
                     take(rest, card_keepalive_word) && take(rest, bulk.port) &&
                     take(rest, hosts) && hosts <= BulkAddress::kMost;
        bulk.hosts.resize(whole ? hosts : 0);
        for (in_addr_t& host : bulk.hosts)
            whole = whole && take(rest, host);
        if (!whole)
            return failure(MPI_ERR_INTERN, "the network address of rank {} is cut short", rank);
    }
    return known;
}

// --- progress and the end ------------------------------------------------------------------------

int UcxTransport::progress() {
    if (receiver_ == nullptr) return 0;
    wrote_at_once_ = false;
    // Before the network is looked at: between a message's arrival and the program's answer nothing
    // is done for earlier ones.
    if (!waiting_.empty()) post_open_frames();
    if (hot_ != nullptr) {
        read(*hot_);
        if (only_the_lane_matters()) return std::exchange(events_, 0);
    }
    int events = 0;
    for (Rail& rail : rails_)
        events += static_cast<int>(rail.progress());
    if (!sending_.empty() || !awaited_.empty() || expected_ > 0 || unknown_ > 0 || others())
        move_bulk();
    if (!doubted_.empty()) [[unlikely]]
        settle_doubts();
    if (!broken_.empty()) [[unlikely]]
        handle_broken();
    if (several())
        look_at_rails();
    else if (keeps_cards_alive_)
        card_keepalive_now_and_then();
    if (stage_ != Stage::running || !closing_.empty()) [[unlikely]]
        advance_closing();
    return events + std::exchange(events_, 0);
}

// Goodbyes, what is queued, then the endpoints; nothing of it may take longer than a peer may be
// unreachable.
Task<Status> UcxTransport::close(Executor& executor) {
    if (receiver_ != nullptr) {
        const Stats counted = stats();
        log::debug(
            "ucx: registrations: {} made, {} reused, {} evicted, {} invalidated, {} refused; keys: "
            "{} unpacked, {} reused",
            counted.registrations.registered, counted.registrations.reused,
            counted.registrations.evicted, counted.registrations.invalidated,
            counted.registrations.refused, counted.keys.unpacked, counted.keys.reused);
        for (const auto& peer : peers_) {
            if (!peer->connected || peer->left || !peer->lost.ok()) continue;
            Status said = append(*peer, kGoodbye, {}, {});
            if (!said.ok()) log::debug("ucx: {}", said.text());
            visit_in_progress(*peer);
        }
        flush();
        stage_ = Stage::draining;
        leaving_since_ = clock_.now();
        Completion left(executor);
        leaving_ = &left;
        Status status = co_await left;
        receiver_ = nullptr;
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

void UcxTransport::advance_closing() {
    watch_closing();
    const bool late = clock_.now() - leaving_since_ > config_.peer_timeout;
    if (stage_ == Stage::draining) {
        for (const auto& peer : peers_)
            if (!late && peer->connected &&
                (!peer->nothing_queued() || (!peer->left && !peer->kept.empty())))
                return;
        if (in_flight_ > 0 && !late) return;
        for (const auto& peer : peers_) {
            peer->keys.drop(*library_);
            close_endpoints(*peer, late || peer->left ? UCP_EP_CLOSE_FLAG_FORCE : 0);
            close_bulk(*peer, Incoming::closed);
        }
        hot_ = nullptr;
        accepted_.clear();
        stage_ = Stage::closing;
    }
    if (stage_ == Stage::closing && (closing_.empty() || late)) {
        stage_ = Stage::closed;
        std::exchange(leaving_, nullptr)->complete(success());
    }
}

}  // namespace gantry::transport::ucx
