// SPDX-License-Identifier: BSD-3-Clause
//
// Timeline: what one rank did when, for `gantry trace`: calls of MPI, messages, pieces of messages,
// device copies and accesses of files, each with its begin and end. There is one only with GANTRY_TRACE_FILE; without it a
// place that would record looks at a null pointer.
//
//     call      MPI_Recv |------------------------------------|
//     received        3 from rank 0 |--------------------|        from the match to the request's end
//     piece                            |--| |--| |--|             what moves its bytes
//     access    MPI_File_write |-----------|                      of a file, its way
//     with_file                   |--| |--|                       what of it is with the system
//
// A message is named by its sender and receiver and by the sequence number of its envelope, which both
// ends know: so arrows between ranks need nothing on the wire.
#pragma once

#include "base/clock.hpp"
#include "base/status.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace gantry {

class Timeline {
  public:
    enum class Kind : std::uint8_t { call, sent, received, piece, access, with_file };

    struct Event {
        Kind kind = Kind::call;
        const char* what =
            "";  // static text: a function, the path of a message, what moved a piece, the way of an access
        Nanoseconds begin = 0, end = 0;
        int peer = -1;   // rank in MPI_COMM_WORLD
        int number = 0;  // of calls: the thread; of messages: the tag; of pieces: the GPU, or -1
        std::uint32_t sequence = 0;  // of messages
        Bytes bytes = 0;
    };

    // `most`: events kept; what comes later is counted only.
    Timeline(const Clock& clock, std::uint64_t most) : clock_(clock), most_(most) {}
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    Nanoseconds now() const { return clock_.now(); }
    // A call of the program that ends now.
    void call(const char* function, Nanoseconds begin);
    // A message leaves: its envelope enters the peer's queue. `send` (null: there is no request, the
    // message ends here) is what ended() names.
    void sent(const void* send, int peer, int tag, std::uint32_t sequence, Bytes bytes);
    // A receive has met its message.
    void matched(const void* receive, int peer, int tag, std::uint32_t sequence, Bytes bytes);
    // How the message of that receive came.
    void came(const void* receive, const char* path);
    // A request has ended: the message of it, if it is one.
    void ended(const void* request);
    // Bytes that were moved from `begin` until now. `gpu` -1: none took part.
    void piece(const char* what, Nanoseconds begin, int gpu, Bytes bytes);

    // A read or write of a file from `begin` until now, and what of it the system was asked for.
    void access(const char* way, Nanoseconds begin, Bytes bytes);
    void with_file(const char* what, Nanoseconds begin, Bytes bytes);

    // One line of JSON for each event, behind a line about the rank, to `file` (%r is the rank, %p the
    // process id). Messages that are under way end now.
    Status write(int rank, std::string file);

  private:
    Event* add(Event event);

    const Clock& clock_;
    const std::uint64_t most_;
    std::deque<Event> events_;
    std::uint64_t left_out_ = 0;
    std::unordered_map<const void*, Event*> under_way_;
};

}  // namespace gantry
