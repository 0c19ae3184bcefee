// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_wire.hpp"

#include "job/tcp.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gantry::job {
namespace {

std::string_view without_newline(std::string_view line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
        line.remove_suffix(1);
    return line;
}

Status connection_lost(std::string_view what, int error) {
    return failure(
        MPI_ERR_OTHER,
        "the launcher's PMI socket, {}: {}. The launcher may have ended; start the program again",
        without_newline(what), error == 0 ? "closed by the launcher" : std::strerror(error));
}

}  // namespace

PmiWire::PmiWire(int socket) : socket_(socket), owner_process_(getpid()) {
    fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

PmiWire::PmiWire(PmiWire&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      owner_process_(other.owner_process_),
      received_(std::move(other.received_)),
      deaths_(std::move(other.deaths_)) {}

PmiWire::~PmiWire() {
    if (socket_ >= 0 && getpid() == owner_process_) close(socket_);
}

Result<PmiWire> PmiWire::connect(std::string_view host_and_port) {
    Result<Socket> connected = connect_to(host_and_port, kPatience, Retry::no);
    if (!connected.ok()) return connected.status().with("the launcher at PMI_PORT");
    return PmiWire(connected->release());
}

Status PmiWire::send(std::string_view line) {
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return connection_lost(line, errno);
        rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    return success();
}

std::optional<PmiLine> PmiWire::take_line() {
    const std::size_t newline = received_.find('\n');
    if (newline == std::string::npos) return std::nullopt;
    PmiLine answer(std::string_view(received_).substr(0, newline));
    received_.erase(0, newline + 1);
    return answer;
}

std::optional<PmiLine> PmiWire::take_answer() {
    while (std::optional<PmiLine> line = take_line()) {
        if (line->command() != "death") return line;
        deaths_.push_back(std::move(*line));
    }
    return std::nullopt;
}

Result<std::optional<PmiLine>> PmiWire::poll() {
    while (true) {
        if (std::optional<PmiLine> answer = take_answer()) return answer;
        char buffer[2048];
        const ssize_t length = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (length > 0) {
            received_.append(buffer, static_cast<std::size_t>(length));
            continue;
        }
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return std::optional<PmiLine>();
        return connection_lost("reading an answer", length == 0 ? 0 : errno);
    }
}

Result<PmiLine> PmiWire::wait_for_answer(std::string_view question, Nanoseconds patience) {
    while (true) {
        Result<std::optional<PmiLine>> answer = poll();
        GANTRY_TRY(answer.status());
        if (answer->has_value()) return std::move(**answer);
        pollfd waiting{socket_, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(patience / kMillisecond));
        if (ready == 0)
            return failure(MPI_ERR_OTHER, "the launcher did not answer '{}' within {} s",
                           without_newline(question), patience / kSecond);
        if (ready < 0 && errno != EINTR) return connection_lost(question, errno);
    }
}

Result<PmiLine> PmiWire::ask(std::string_view line, std::string_view expected) {
    GANTRY_TRY(send(line));
    Result<PmiLine> answer = wait_for_answer(line);
    GANTRY_TRY(answer.status());
    if (answer->command() != expected || !answer->accepted())
        return failure(MPI_ERR_OTHER, "the launcher answered '{}' with cmd={} rc={} {}",
                       without_newline(line), answer->command(), answer->text("rc"),
                       answer->text("msg"));
    return answer;
}

int PmiWire::other_process() const {
    ucred other{};
    socklen_t bytes = sizeof other;
    const bool known = getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0;
    return known && other.pid != getpid() ? other.pid : 0;
}

void PmiWire::hang_up() {
    shutdown(socket_, SHUT_RDWR);
}

void PmiWire::wait_for_end(Nanoseconds at_most) {
    pollfd waiting{socket_, POLLRDHUP, 0};
    ::poll(&waiting, 1, static_cast<int>(at_most / kMillisecond));
}

}  // namespace gantry::job
