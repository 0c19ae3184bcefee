// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_wire.hpp"

#include "job/tcp.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
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

// Fields are separated by blanks, keys end at the first '='. A word without '=' belongs to the
// value before it ("msg=not found").
PmiAnswer::PmiAnswer(std::string_view line) {
    std::string* latest = nullptr;
    while (!line.empty()) {
        const std::size_t blank = line.find(' ');
        const std::string_view word = line.substr(0, blank);
        line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
        const std::size_t equals = word.find('=');
        if (equals != std::string_view::npos)
            latest = &(fields_[std::string(word.substr(0, equals))] =
                           std::string(word.substr(equals + 1)));
        else if (latest != nullptr && !word.empty())
            latest->append(" ").append(word);
    }
}

std::string_view PmiAnswer::text(std::string_view key) const {
    const auto found = fields_.find(key);
    return found != fields_.end() ? std::string_view(found->second) : std::string_view{};
}

std::optional<int> PmiAnswer::number(std::string_view key) const {
    const std::string_view digits = text(key);
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

PmiWire::PmiWire(int socket) : socket_(socket), owner_process_(getpid()) {
    fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

PmiWire::PmiWire(PmiWire&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      owner_process_(other.owner_process_),
      received_(std::move(other.received_)) {}

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

std::optional<PmiAnswer> PmiWire::take_line() {
    const std::size_t newline = received_.find('\n');
    if (newline == std::string::npos) return std::nullopt;
    PmiAnswer answer(std::string_view(received_).substr(0, newline));
    received_.erase(0, newline + 1);
    return answer;
}

Result<std::optional<PmiAnswer>> PmiWire::poll() {
    while (true) {
        if (std::optional<PmiAnswer> answer = take_line()) return answer;
        char buffer[2048];
        const ssize_t length = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (length > 0) {
            received_.append(buffer, static_cast<std::size_t>(length));
            continue;
        }
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return std::optional<PmiAnswer>();
        return connection_lost("reading an answer", length == 0 ? 0 : errno);
    }
}

Result<PmiAnswer> PmiWire::wait_for_answer(std::string_view question, Nanoseconds patience) {
    while (true) {
        Result<std::optional<PmiAnswer>> answer = poll();
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

Result<PmiAnswer> PmiWire::ask(std::string_view line, std::string_view expected) {
    GANTRY_TRY(send(line));
    Result<PmiAnswer> answer = wait_for_answer(line);
    GANTRY_TRY(answer.status());
    if (answer->command() != expected || !answer->accepted())
        return failure(MPI_ERR_OTHER, "the launcher answered '{}' with cmd={} rc={} {}",
                       without_newline(line), answer->command(), answer->text("rc"),
                       answer->text("msg"));
    return answer;
}

void PmiWire::hang_up() {
    shutdown(socket_, SHUT_RDWR);
}

void PmiWire::wait_for_end(Nanoseconds at_most) {
    pollfd waiting{socket_, POLLRDHUP, 0};
    ::poll(&waiting, 1, static_cast<int>(at_most / kMillisecond));
}

}  // namespace gantry::job
