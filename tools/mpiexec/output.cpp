// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gantry::mpiexec {

Sink::Sink(int descriptor) : descriptor_(descriptor) {
    // A pipe that polls as writable takes PIPE_BUF bytes; a file takes anything.
    struct stat about {};
    const bool is_file = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
    piece_ = is_file ? std::size_t{1} << 20 : std::size_t{PIPE_BUF};
}

void Sink::write_some() {
    if (queued_.empty()) return;
    const ssize_t written = write(descriptor_, queued_.data(), std::min(queued_.size(), piece_));
    if (written >= 0) {
        queued_.erase(0, static_cast<std::size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
        broken_ = true;
        error_ = errno == EPIPE ? 0 : errno;
        queued_.clear();
    }
}

void Sink::flush() {
    while (!queued_.empty()) {
        pollfd ready{descriptor_, POLLOUT, 0};
        poll(&ready, 1, -1);
        write_some();
    }
}

Forwarder::Forwarder(int source, Sink& sink, std::string prefix)
    : source_(source), sink_(&sink), prefix_(std::move(prefix)) {}

Forwarder::Forwarder(Forwarder&& other) noexcept
    : source_(std::exchange(other.source_, -1)),
      sink_(other.sink_),
      prefix_(std::move(other.prefix_)),
      line_(std::move(other.line_)) {}

Forwarder::~Forwarder() {
    close_source();
}

void Forwarder::close_source() {
    if (source_ >= 0) close(std::exchange(source_, -1));
}

void Forwarder::read_some() {
    if (source_ < 0) return;
    char buffer[65536];
    const ssize_t length = read(source_, buffer, sizeof buffer);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length <= 0) {
        if (!line_.empty()) {
            // Others write behind this: the line must end, as in every labelled or shared stream.
            line_.push_back('\n');
            flush_partial_line();
        }
        close_source();
        return;
    }
    std::string_view arrived(buffer, static_cast<std::size_t>(length));
    for (std::size_t newline = arrived.find('\n'); newline != std::string_view::npos;
         newline = arrived.find('\n')) {
        line_.append(arrived.substr(0, newline + 1));
        flush_partial_line();
        arrived.remove_prefix(newline + 1);
    }
    line_.append(arrived);
}

void Forwarder::flush_partial_line() {
    if (!prefix_.empty()) sink_->add(prefix_);
    sink_->add(line_);
    line_.clear();
}

std::string file_of_pattern(const std::string& pattern, int rank, std::size_t program) {
    std::string path;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char sort = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        char host[256] = "";
        if (sort == 'r')
            path += std::to_string(rank);
        else if (sort == 'g')
            path += std::to_string(program);
        else if (sort == 'h' && gethostname(host, sizeof host - 1) == 0)
            path += host;
        else if (sort == '%')
            path += '%';
        else {
            path += pattern[i];
            continue;
        }
        ++i;
    }
    return path;
}

}  // namespace gantry::mpiexec
