// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 line protocol over one socket: "cmd=put kvsname=k key=a value=b\n" answered by
// "cmd=put_result rc=0 msg=success\n". Launchers differ in the order of fields and add their own,
// so answers are read by key. One question is outstanding at a time. `ask` waits (start-up, get,
// finalize); `send` and `poll` never do and serve the fence. An unknown command kills the job with
// some launchers: never probe.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "job/pmi_line.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::job {

class PmiWire {
  public:
    // A launcher on a loaded machine may take seconds; one that takes this long is not there.
    static constexpr Nanoseconds kPatience = 60 * kSecond;
    static constexpr Nanoseconds kForever = -kMillisecond;

    // Takes the socket over: it is closed at the end, and no longer inherited by programs that this
    // process starts.
    explicit PmiWire(int socket);
    PmiWire(PmiWire&& other) noexcept;
    PmiWire& operator=(PmiWire&&) = delete;
    ~PmiWire();

    // "host:port", as PMI_PORT says it.
    static Result<PmiWire> connect(std::string_view host_and_port);

    Status send(std::string_view line);
    // The next answer if it has arrived.
    Result<std::optional<PmiLine>> poll();
    // Sends, then waits for the answer, which must be `expected`.
    Result<PmiLine> ask(std::string_view line, std::string_view expected);
    Result<PmiLine> wait_for_answer(std::string_view question, Nanoseconds patience = kPatience);
    // The process at the other end, if it is one of this machine that made this socket; else 0.
    int other_process() const;
    // Ends a wait of another thread.
    void hang_up();
    // Waits until the launcher hangs up or the time is over.
    void wait_for_end(Nanoseconds at_most);
    // What our own launcher tells without being asked: lines "cmd=death ...", which may stand between a
    // question and its answer. Those that poll() and ask() have met since the last call.
    std::vector<PmiLine> take_deaths() { return std::exchange(deaths_, {}); }

  private:
    std::optional<PmiLine> take_line();
    std::optional<PmiLine> take_answer();

    int socket_ = -1;
    int owner_process_;  // a forked child must not talk to the launcher
    std::string received_;
    std::vector<PmiLine> deaths_;
};

}  // namespace gantry::job
