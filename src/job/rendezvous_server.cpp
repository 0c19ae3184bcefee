// SPDX-License-Identifier: BSD-3-Clause
#include "job/rendezvous_server.hpp"

#include "base/blocked_signals.hpp"
#include "base/log.hpp"
#include "job/pmi_wire.hpp"
#include "job/store_text.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gantry::job {
namespace {

constexpr std::size_t kLongestGreeting = 512;
// For the others to end when rank 0 leaves without having finalized: they may wait for it for ever.
constexpr auto kLongestGoodbye = std::chrono::seconds(10);

// Short lines into sockets that are nearly empty: what does not fit at once is for a reader that
// does not read.
void say(int socket, std::string_view line) {
    [[maybe_unused]] const ssize_t sent =
        send(socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string ended_inside(int rank) {
    return fmt::format("rank {} has ended without leaving MPI", rank);
}

}  // namespace

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(const Meeting& meeting) {
    Result<Socket> listener = listen_at(meeting.place);
    GANTRY_TRY(listener.status());
    std::unique_ptr<RendezvousServer> server(
        new RendezvousServer(meeting, std::move(listener.value())));
    const BlockedSignals blocked;
    server->thread_ = std::thread([raw = server.get()] { raw->run(); });
    return server;
}

RendezvousServer::RendezvousServer(const Meeting& meeting, Socket listener)
    : meeting_(meeting),
      owner_process_(getpid()),
      deadline_(Clock::now() + std::chrono::nanoseconds(meeting.patience)),
      listener_(std::move(listener)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      pmi_(meeting.size,
           fmt::format("{}-{}-{}", meeting.name, getpid(),
                       std::chrono::system_clock::now().time_since_epoch().count()),
           ""),
      seats_(static_cast<std::size_t>(meeting.size), -1),
      lifelines_(static_cast<std::size_t>(meeting.size)) {
    pmi_.offer_deaths();
    pmi_.offer_copies(meeting.copies);
}

RendezvousServer::~RendezvousServer() {
    if (getpid() != owner_process_) {
        thread_.detach();
        return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.descriptor(), &one, sizeof one);
    thread_.join();
}

int RendezvousServer::present() const {
    return static_cast<int>(
        std::count_if(seats_.begin(), seats_.end(), [](int socket) { return socket >= 0; }));
}

// Whoever has finalized asks for nothing more, though its connection may stay until it exits.
bool RendezvousServer::others_have_left() const {
    for (std::size_t rank = 1; rank < seats_.size(); ++rank)
        if (seats_[rank] >= 0 && pmi_.membership(static_cast<int>(rank)) != Membership::finalized)
            return false;
    return true;
}

bool RendezvousServer::is_over() const {
    return gave_up_ || (leaving_ && (!welcomed_ || others_have_left() ||
                                     (leave_at_ && Clock::now() >= *leave_at_)));
}

// A rank may take long to leave: what it still sends, a network that fails, work between its last
// session and its end. As long as it is there it finds the store, and an answer to its finalize.
void RendezvousServer::begin_to_leave() {
    leaving_ = true;
    listener_ = Socket();  // nobody is missing any more
    if (!welcomed_) return;
    if (pmi_.membership(0) == Membership::finalized) return;
    pmi_.break_barriers(ended_inside(0));
    leave_at_ = Clock::now() + kLongestGoodbye;
}

void RendezvousServer::run() {
    std::vector<pollfd> polled;
    std::vector<int> rank_of;  // of polled[2...], as far as they are ranks
    while (!is_over()) {
        polled.assign({{wake_.descriptor(), leaving_ ? short{0} : short{POLLIN}, 0},
                       {listener_.descriptor(), POLLIN, 0}});
        rank_of.clear();
        for (std::size_t rank = 0; rank < seats_.size(); ++rank)
            if (seats_[rank] >= 0) {
                polled.push_back({seats_[rank], POLLIN, 0});
                rank_of.push_back(static_cast<int>(rank));
            }
        const std::size_t guests = guests_.size();
        for (const Guest& guest : guests_)
            polled.push_back({guest.socket.descriptor(), POLLIN, 0});

        int wait = -1;
        const auto until = welcomed_ ? leave_at_ : std::optional(deadline_);
        if (until)
            wait = static_cast<int>(std::clamp<long>(
                std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count(), 0,
                1000000));
        poll(polled.data(), polled.size(), wait);

        for (std::size_t i = 0; i < rank_of.size(); ++i)
            if (polled[2 + i].revents != 0) serve(rank_of[i]);
        for (std::size_t i = 0; i < guests; ++i)
            if (polled[2 + rank_of.size() + i].revents != 0) read_guest(guests_[i]);
        std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.is_open(); });
        if (polled[1].revents != 0) accept_guest();
        if (!welcomed_ && present() == meeting_.size) welcome_everybody();
        if (!welcomed_ && Clock::now() >= deadline_) give_up();
        if (polled[0].revents != 0 && !leaving_) begin_to_leave();
    }
    for (std::size_t rank = 0; rank < seats_.size(); ++rank)
        if (seats_[rank] >= 0) pmi_.close_socket(static_cast<int>(rank));
}

void RendezvousServer::accept_guest() {
    Socket guest(accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (guest.is_open()) guests_.push_back({std::move(guest), {}});
}

void RendezvousServer::read_guest(Guest& guest) {
    char buffer[kLongestGreeting];
    const ssize_t length = recv(guest.socket.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length > 0) guest.received.append(buffer, static_cast<std::size_t>(length));
    const std::size_t newline = guest.received.find('\n');
    if (newline != std::string::npos)
        seat(guest, std::string_view(guest.received).substr(0, newline));
    else if (length <= 0 || guest.received.size() >= kLongestGreeting)
        guest.socket = Socket();
}

// A greeting that does not fit is answered and hung up on; the others go on.
void RendezvousServer::seat(Guest& guest, std::string_view line) {
    const PmiLine greeting(line);
    const int rank = greeting.number("pmiid").value_or(-1);
    const bool known = rank >= 0 && rank < meeting_.size;
    Socket socket = std::move(guest.socket);
    guest.socket = Socket();
    const auto refuse = [&](std::string_view why) {
        say(socket.descriptor(), fmt::format("cmd=initack rc=-1 msg={}\n", why));
    };
    if (greeting.command() == "lifeline" && known && welcomed_) {
        say(socket.descriptor(), "cmd=lifeline rc=0\n");
        if (passed_on_) say(socket.descriptor(), abort_line());
        lifelines_[static_cast<std::size_t>(rank)] = std::move(socket);
        return;
    }
    if (greeting.command() != "initack") return;
    const int size = greeting.number("size").value_or(-1);
    if (size != meeting_.size || !known)
        return refuse(
            fmt::format("this process says that it is rank {} of {}, but rank 0 waits "
                        "for {} ranks",
                        rank, size, meeting_.size));
    int& seat = seats_[static_cast<std::size_t>(rank)];
    if (seat >= 0 || welcomed_)
        return refuse(fmt::format("another process is already rank {}", rank));
    notice_when_its_host_is_gone(socket.descriptor(), meeting_.silence);
    seat = socket.release();
    pmi_.add_rank(rank, seat, 0);
}

void RendezvousServer::welcome_everybody() {
    welcomed_ = true;
    for (std::size_t rank = 0; rank < seats_.size(); ++rank)
        say(seats_[rank], fmt::format("cmd=initack rc=0\ncmd=set size={}\ncmd=set rank={}\n"
                                      "cmd=set debug=0\n",
                                      meeting_.size, rank));
}

void RendezvousServer::give_up() {
    gave_up_ = true;
    constexpr std::size_t kMostNames = 8;
    std::string missing;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < seats_.size(); ++rank)
        if (seats_[rank] < 0 && ++count <= kMostNames)
            missing += fmt::format("{}{}", missing.empty() ? "" : " ", rank);
    if (count > kMostNames) missing += fmt::format(" and {} more", count - kMostNames);
    for (const int seat : seats_)
        if (seat >= 0)
            say(seat,
                fmt::format("cmd=initack rc=-1 msg=rank {} of {} did not come to {} within "
                            "{:.1f} s\n",
                            missing, meeting_.size, meeting_.place,
                            static_cast<double>(meeting_.patience) / static_cast<double>(kSecond)));
}

void RendezvousServer::serve(int rank) {
    const bool stays = pmi_.serve(rank);
    if (pmi_.abort_call() && !passed_on_) pass_on_abort();
    if (!pmi_.offence().empty()) log::warn("job: {}", pmi_.offence());
    if (!stays || pmi_.socket(rank) < 0) rank_left(rank);
}

std::string RendezvousServer::abort_line() const {
    const AbortCall& call = *pmi_.abort_call();
    return fmt::format("cmd=abort exitcode={} rank={} text={}\n", call.code, call.rank,
                       base64(call.reason));
}

// Everybody but the one that aborts hears of it; the closed connection tells that one.
void RendezvousServer::pass_on_abort() {
    passed_on_ = true;
    const int aborting = pmi_.abort_call()->rank;
    // Rank 0 last: its end is the end of this thread.
    for (std::size_t rank = lifelines_.size(); rank-- > 0;)
        if (static_cast<int>(rank) != aborting && lifelines_[rank].is_open())
            say(lifelines_[rank].descriptor(), abort_line());
    pmi_.close_socket(aborting);
}

void RendezvousServer::rank_left(int rank) {
    seats_[static_cast<std::size_t>(rank)] = -1;
    lifelines_[static_cast<std::size_t>(rank)] = Socket();
    if (!welcomed_ || pmi_.membership(rank) == Membership::finalized) return;
    pmi_.break_barriers(ended_inside(rank));
    if (!pmi_.number().empty()) pmi_.tell_death(pmi_.number(), rank);
}

}  // namespace gantry::job
