// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/ports.hpp"

#include "mpi/engine/engine.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gantry::mpi {
namespace {

constexpr std::string_view kWelcome = "welcome", kHere = "here";

// An address of this machine that others reach; 127.0.0.1 where there is none.
std::string own_address() {
    std::string found = "127.0.0.1";
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET ||
            (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0)
            continue;
        char text[INET_ADDRSTRLEN] = {};
        const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
        if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) == nullptr) continue;
        found = text;
        break;
    }
    freeifaddrs(all);
    return found;
}

std::string random_word() {
    std::uint64_t bits = 0;
    [[maybe_unused]] const ssize_t drawn = getrandom(&bits, sizeof bits, 0);
    return fmt::format("{:016x}", bits);
}

Status no_port(std::string_view name) {
    return failure(MPI_ERR_PORT, "'{}' is no port that MPI_Open_port of this process gave", name);
}

struct Place {
    std::string address;  // host:number
    std::string word;
};
std::optional<Place> place_of(std::string_view port) {
    const std::size_t hash = port.rfind('#');
    const std::string_view address = port.substr(0, hash);
    if (hash == std::string_view::npos || hash + 1 == port.size() ||
        address.find(':') == std::string_view::npos)
        return std::nullopt;
    return Place{std::string(address), std::string(port.substr(hash + 1))};
}

}  // namespace

Result<std::string> Ports::open(const InfoPairs& info) {
    const std::string* const address = value_of(info, "ip_address");
    const std::string* const number = value_of(info, "ip_port");
    const std::string host = address != nullptr ? *address : own_address();
    auto port = std::make_shared<Port>();
    Result<job::Socket> listener =
        job::listen_at(fmt::format("{}:{}", host, number != nullptr ? *number : "0"));
    if (!listener.ok()) return failure(MPI_ERR_PORT, "{}", listener.status().text());
    port->listener = std::move(*listener);
    const int descriptor = port->listener.descriptor();
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &length);
    port->word = random_word();
    std::string name = fmt::format("{}:{}#{}", host, ntohs(bound.sin_port), port->word);
    ports_.emplace(name, std::move(port));
    return name;
}

Status Ports::close(std::string_view name) {
    const auto found = ports_.find(name);
    if (found == ports_.end()) return no_port(name);
    found->second->closed = true;
    ports_.erase(found);
    return success();
}

// --- accepting -----------------------------------------------------------------------------------

struct Ports::Wait {
    std::shared_ptr<Port> port;
    std::unique_ptr<job::Letters> guest;
};

void Ports::take_new(Port& port) {
    while (true) {
        job::Socket guest(accept4(port.listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!guest.is_open()) return;
        port.guests.push_back({job::Letters(std::move(guest)), false});
    }
}

// Of several calls that accept at one port, each takes one.
bool Ports::look(void* self) {
    Wait& wait = *static_cast<Wait*>(self);
    Port& port = *wait.port;
    if (port.closed) return true;
    take_new(port);
    for (auto guest = port.guests.begin(); guest != port.guests.end();) {
        Result<std::optional<std::string>> letter = guest->letters.poll();
        if (letter.ok() && !letter->has_value()) {
            ++guest;
            continue;
        }
        const std::string_view text = letter.ok() ? std::string_view(**letter) : "";
        if (!guest->welcomed && letter.ok() && text == port.word) {
            guest->welcomed = true;
            guest->letters.send(kWelcome);
            continue;
        }
        const bool here = guest->welcomed && text == kHere;
        if (here) wait.guest = std::make_unique<job::Letters>(std::move(guest->letters));
        guest = port.guests.erase(guest);
        if (here) return true;
    }
    return false;
}

Task<Status> Ports::accept(Executor& executor, Engine& engine, std::string name,
                           std::unique_ptr<SocketBridge>* bridge) {
    const auto found = ports_.find(name);
    if (found == ports_.end()) co_return no_port(name);
    Wait wait{found->second, nullptr};
    Status over = co_await engine.transfer().node_segment.until(executor, look, &wait);
    GANTRY_CO_TRY(over);
    if (wait.guest == nullptr)
        co_return failure(MPI_ERR_PORT, "port '{}' was closed while it was waited at", name);
    *bridge = std::make_unique<SocketBridge>(engine, std::move(*wait.guest));
    co_return success();
}

// --- connecting ----------------------------------------------------------------------------------

namespace {

struct Knock {
    job::Letters* letters;
    const Clock* clock;
    Nanoseconds until;
    Status status;
    static bool look(void* self) {
        Knock& knock = *static_cast<Knock*>(self);
        Result<std::optional<std::string>> letter = knock.letters->poll();
        if (letter.ok() && !letter->has_value() && knock.clock->now() < knock.until) return false;
        if (!letter.ok())
            knock.status = letter.status();
        else if (!letter->has_value())
            knock.status = failure(MPI_ERR_PORT, "nobody accepts there (MPI_Comm_accept)");
        return true;
    }
};

}  // namespace

Task<Status> connect_to_port(Executor& executor, Engine& engine, std::string port,
                             Nanoseconds patience, std::unique_ptr<SocketBridge>* bridge) {
    const std::optional<Place> place = place_of(port);
    if (!place)
        co_return failure(MPI_ERR_PORT,
                          "'{}' is no port; MPI_Open_port and MPI_Lookup_name give one", port);
    Result<job::Socket> socket = job::connect_to(place->address, patience, job::Retry::no);
    if (!socket.ok())
        co_return failure(MPI_ERR_PORT, "port '{}': {}", port, socket.status().text());
    job::Letters letters(std::move(*socket));
    letters.send(place->word);
    Knock knock{&letters, &engine.clock(), engine.clock().now() + patience, {}};
    Status over = co_await engine.transfer().node_segment.until(executor, Knock::look, &knock);
    GANTRY_CO_TRY(over);
    if (!knock.status.ok())
        co_return failure(MPI_ERR_PORT, "connecting to port '{}': {}", port, knock.status.text());
    letters.send(kHere);
    *bridge = std::make_unique<SocketBridge>(engine, std::move(letters));
    co_return success();
}

}  // namespace gantry::mpi
