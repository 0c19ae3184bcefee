// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_server.hpp"

#include "job/store_text.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gantry::job {
namespace {

constexpr std::size_t kLongestLine = 65536;
constexpr int kLongestName = 256;
constexpr int kLongestKey = 64;
constexpr int kLongestValue = 1024;
constexpr std::size_t kBytesOfACopy = 8192;  // that one answer brings, about

}  // namespace

PmiServer::PmiServer(int size, std::string job_name, std::string mapping)
    : job_name_(std::move(job_name)),
      mapping_(std::move(mapping)),
      clients_(static_cast<std::size_t>(size)) {
    if (!mapping_.empty()) store_.emplace("PMI_process_mapping", mapping_);
}

void PmiServer::add_rank(int rank, int socket, int app) {
    clients_[index(rank)].socket = socket;
    clients_[index(rank)].app = app;
}

void PmiServer::close_socket(int rank) {
    Client& client = clients_[index(rank)];
    if (client.socket >= 0) close(std::exchange(client.socket, -1));
}

bool PmiServer::serve(int rank) {
    Client& client = clients_[index(rank)];
    while (client.socket >= 0) {
        char buffer[16384];
        const ssize_t length = recv(client.socket, buffer, sizeof buffer, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (length <= 0) {
            close_socket(rank);
            return false;
        }
        client.received.append(buffer, static_cast<std::size_t>(length));
        std::size_t taken = 0;
        for (std::size_t newline = client.received.find('\n'); newline != std::string::npos;
             newline = client.received.find('\n', taken)) {
            handle(rank, std::string_view(client.received).substr(taken, newline - taken));
            taken = newline + 1;
        }
        client.received.erase(0, taken);
        if (client.received.size() > kLongestLine)
            offence_ = fmt::format(
                "rank {} sent more than {} bytes without an end of line on its PMI socket", rank,
                kLongestLine);
        if (!offence_.empty()) close_socket(rank);
    }
    return false;
}

void PmiServer::handle(int rank, std::string_view line) {
    Client& client = clients_[index(rank)];
    if (client.spawn.open()) return handle_spawn(rank, line);
    const PmiLine fields(line);
    const std::string_view command = fields.command();
    if (command == "init") {
        enter(rank);
    } else if (command == "get_maxes") {
        answer(rank, fmt::format("cmd=maxes rc=0 kvsname_max={} keylen_max={} vallen_max={}\n",
                                 kLongestName, kLongestKey, kLongestValue));
    } else if (command == "get_appnum") {
        answer(rank, fmt::format("cmd=appnum rc=0 appnum={}\n", client.app));
    } else if (command == "get_universe_size") {
        answer(rank, fmt::format("cmd=universe_size rc=0 size={}\n", clients_.size()));
    } else if (command == "get_my_kvsname") {
        answer(rank, fmt::format("cmd=my_kvsname rc=0 kvsname={}\n", name_of_round()));
    } else if (command == "put") {
        put(rank, fields);
    } else if (command == "get") {
        get(rank, fields);
    } else if (command == "barrier_in") {
        enter_barrier(rank);
    } else if (command == "finalize") {
        client.membership = Membership::finalized;
        answer(rank, "cmd=finalize_ack rc=0\n");
        begin_round_if_all_left();
    } else if (command == "abort") {
        // PMI-1 knows the code alone; our own client adds the reason when init offered
        // "abort_text".
        if (!abort_call_)
            abort_call_ = AbortCall{rank, fields.number("exitcode").value_or(1),
                                    from_base64(fields.text("text")).value_or("")};
    } else if (command == "publish_name" || command == "unpublish_name" ||
               command == "lookup_name") {
        handle_name(rank, command.substr(0, command.find('_')), fields);
    } else if (command == "copy_store") {
        copy_store(rank, fields);
    } else if (command == "watch_deaths") {
        watch_deaths(rank, fields);
    } else if (fields.text("mcmd") == "spawn") {
        client.spawn.begin();
    } else {
        offence_ = fmt::format("rank {} sent '{}' on its PMI socket, which PMI-1 does not know",
                               rank, line.substr(0, 80));
    }
}

void PmiServer::handle_name(int rank, std::string_view verb, const PmiLine& fields) {
    const std::string service(fields.text("service"));
    const auto refuse = [&](std::string_view why) {
        answer(rank, fmt::format("cmd={}_result rc=1 msg={}\n", verb, why));
    };
    if (names_ == nullptr) return refuse("no_name_server");
    const auto known = names_->find(service);
    if (verb == "publish") {
        if (known != names_->end()) return refuse("it_is_published_already");
        names_->emplace(service, fields.text("port"));
    } else if (known == names_->end()) {
        return refuse("nothing_is_published_under_that_name");
    }
    if (verb == "lookup")
        return answer(rank,
                      fmt::format("cmd=lookup_result rc=0 msg=success port={}\n", known->second));
    if (verb == "unpublish") names_->erase(known);
    answer(rank, fmt::format("cmd={}_result rc=0 msg=success\n", verb));
}

void PmiServer::handle_spawn(int rank, std::string_view line) {
    std::optional<SpawnRequest> request = clients_[index(rank)].spawn.take(line);
    if (!request) return;
    if (!takes_spawns_)
        return answer(rank, "cmd=spawn_result rc=1 msg=this_launcher_cannot_spawn\n");
    spawns_.push_back({rank, std::move(*request)});
}

std::optional<PmiServer::Spawn> PmiServer::next_spawn() {
    if (spawns_.empty()) return std::nullopt;
    Spawn first = std::move(spawns_.front());
    spawns_.erase(spawns_.begin());
    return first;
}

void PmiServer::answer_spawn(int rank, std::string_view failure) {
    if (failure.empty()) return answer(rank, "cmd=spawn_result rc=0 msg=success\n");
    answer(rank, fmt::format("cmd=spawn_result rc=1 msg=not_started text={}\n", base64(failure)));
}

void PmiServer::enter(int rank) {
    Client& client = clients_[index(rank)];
    switch (client.membership) {
        case Membership::outside: welcome(rank); break;
        case Membership::inside:
            offence_ = fmt::format(
                "rank {} starts MPI again, but its last program ended without MPI_Finalize", rank);
            break;
        case Membership::finalized:
            client.waits_for_round = true;
            begin_round_if_all_left();
            break;
    }
}

void PmiServer::welcome(int rank) {
    clients_[index(rank)].membership = Membership::inside;
    answer(rank, fmt::format(
                     "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1 abort_text=1{}{}\n",
                     offers_deaths_ ? " deaths=1" : "", copies_ > 0 ? " copies=1" : ""));
}

void PmiServer::begin_round_if_all_left() {
    bool wanted = false;
    for (const Client& client : clients_) {
        if (client.membership != Membership::finalized) return;
        wanted = wanted || client.waits_for_round;
    }
    if (!wanted) return;
    ++round_;
    has_begun_ = false;
    store_.clear();
    stored_bytes_ = 0;
    deaths_.clear();
    number_.clear();
    if (!mapping_.empty()) store_.emplace("PMI_process_mapping", mapping_);
    for (Client& client : clients_)
        if (!client.lost) client.membership = Membership::outside;
    for (Client& client : clients_)
        client.watches_deaths = false;
    for (std::size_t i = 0; i < clients_.size(); ++i)
        if (std::exchange(clients_[i].waits_for_round, false)) welcome(static_cast<int>(i));
}

bool PmiServer::nobody_came() const {
    if (round_ > 0) return false;
    for (const Client& client : clients_)
        if (client.membership != Membership::outside) return false;
    return true;
}

std::string PmiServer::name_of_round() const {
    return round_ == 0 ? job_name_ : fmt::format("{}-{}", job_name_, round_);
}

void PmiServer::put(int rank, const PmiLine& fields) {
    const std::string_view key = fields.text("key");
    const std::string_view value = fields.text("value");
    if (key.empty() || key.size() >= kLongestKey || value.size() >= kLongestValue) {
        answer(rank, "cmd=put_result rc=-1 msg=key_or_value_too_long\n");
    } else if (!store_.emplace(key, value).second) {
        answer(rank, "cmd=put_result rc=-1 msg=duplicate_key\n");
    } else {
        stored_bytes_ += key.size() + value.size();
        answer(rank, "cmd=put_result rc=0 msg=success\n");
    }
}

// The next pieces behind that key. Neither names nor values of ours have blanks.
void PmiServer::copy_store(int rank, const PmiLine& fields) {
    if (stored_bytes_ * clients_.size() > copies_)
        return answer(rank, "cmd=copied rc=-1 msg=the_store_is_too_large\n");
    std::string pieces;
    auto next = store_.upper_bound(fields.text("after"));
    for (; next != store_.end() && pieces.size() < kBytesOfACopy; ++next)
        pieces += fmt::format(" {}={}", next->first, next->second);
    answer(rank, fmt::format("cmd=copied rc=0 last={}{}\n", next == store_.end() ? 1 : 0, pieces));
}

void PmiServer::get(int rank, const PmiLine& fields) {
    const auto found = store_.find(fields.text("key"));
    if (found == store_.end())
        answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    else
        answer(rank, fmt::format("cmd=get_result rc=0 msg=success value={}\n", found->second));
}

void PmiServer::enter_barrier(int rank) {
    Client& client = clients_[index(rank)];
    if (client.in_barrier) return;
    if (!broken_.empty())
        return answer(rank, fmt::format("cmd=barrier_out rc=-1 msg={}\n", broken_));
    client.in_barrier = true;
    ++in_barrier_;
    open_barrier_if_all_came();
}

void PmiServer::open_barrier_if_all_came() {
    if (in_barrier_ == 0 || in_barrier_ < static_cast<int>(clients_.size()) - lost_) return;
    has_begun_ = true;
    in_barrier_ = 0;
    for (std::size_t i = 0; i < clients_.size(); ++i)
        if (std::exchange(clients_[i].in_barrier, false))
            answer(static_cast<int>(i), "cmd=barrier_out rc=0\n");
}

void PmiServer::lose(int rank) {
    Client& client = clients_[index(rank)];
    if (std::exchange(client.lost, true)) return;
    ++lost_;
    close_socket(rank);
    client.membership = Membership::finalized;
    if (std::exchange(client.in_barrier, false)) --in_barrier_;
    open_barrier_if_all_came();
    begin_round_if_all_left();
}

// There is no answer. Lines about deaths come between answers, so only who asks gets them: our own client.
void PmiServer::watch_deaths(int rank, const PmiLine& fields) {
    if (number_.empty()) {
        number_ = fields.text("job");
        for (std::size_t i = 0; i < clients_.size(); ++i)
            if (clients_[i].lost) tell_death(number_, static_cast<int>(i));
    }
    Client& client = clients_[index(rank)];
    client.watches_deaths = true;
    for (const std::string& line : deaths_)
        send(client.socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void PmiServer::tell_death(std::string_view job, int rank) {
    deaths_.push_back(fmt::format("cmd=death job={} rank={}\n", job, rank));
    const std::string& line = deaths_.back();
    for (const Client& client : clients_)
        if (client.watches_deaths && client.socket >= 0)
            send(client.socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void PmiServer::break_barriers(std::string why) {
    if (!broken_.empty()) return;
    broken_ = std::move(why);
    in_barrier_ = 0;
    for (std::size_t i = 0; i < clients_.size(); ++i)
        if (std::exchange(clients_[i].in_barrier, false))
            answer(static_cast<int>(i), fmt::format("cmd=barrier_out rc=-1 msg={}\n", broken_));
}

void PmiServer::answer(int rank, std::string_view line) {
    // Answers are short and a rank asks one question at a time: its socket has room, or it does not
    // play by the rules.
    const ssize_t sent =
        send(clients_[index(rank)].socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN)
        offence_ = fmt::format("rank {} does not read the answers on its PMI socket", rank);
}

}  // namespace gantry::job
