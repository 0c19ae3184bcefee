// SPDX-License-Identifier: BSD-3-Clause
//
// What programs of world tests are made of: buffers in every kind of memory, patterns that depend
// on who, what and where, and sends and receives as one awaited line.
#pragma once

#include "world/harness/world.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace gantry::world {

enum class Place : std::uint8_t { host, pinned, device };
std::string_view name(Place place);

// Byte i becomes a function of (key, i), and whether it is.
void fill_pattern(std::byte* memory, std::uint64_t key, Bytes bytes);
bool holds_pattern(const std::byte* memory, std::uint64_t key, Bytes bytes);

// A contiguous byte buffer of one rank. Device bytes are filled and checked behind the device's
// back.
class Bytebuffer {
  public:
    Bytebuffer(Rank& rank, Place place, Bytes bytes, int gpu = 0,
               device::IpcKind ipc = device::IpcKind::legacy);
    ~Bytebuffer();
    Bytebuffer(const Bytebuffer&) = delete;
    Bytebuffer& operator=(const Bytebuffer&) = delete;

    p2p::Buffer whole() { return part(0, bytes_); }
    p2p::Buffer part(Bytes offset, Bytes bytes);
    std::byte* address() { return address_; }
    Bytes bytes() const { return bytes_; }

    void fill(std::uint64_t key);
    void clear();
    // Whether the first `bytes` are those of fill(key) and the rest is clear.
    bool holds(std::uint64_t key, Bytes bytes);

  private:
    std::byte* stored();
    Rank& rank_;
    Place place_;
    Bytes bytes_;
    std::vector<std::byte> host_;
    std::byte* address_ = nullptr;
};

// What an operation gave: how it ended and, for a receive, what came.
struct Received {
    Status status{};
    p2p::Outcome outcome{};
};

// One operation to its end. `request` may be the failure to start it.
Task<Received> finish(Executor& executor, Rank& rank, Result<p2p::Request*> request);
// An empty message. A name, because a braced temporary in an awaiting expression is miscompiled.
inline constexpr p2p::Buffer kNothing{};

Task<Status> send(Rank& rank, p2p::Buffer buffer, int to, int tag,
                  p2p::SendMode mode = p2p::SendMode::standard);
Task<Received> receive(Rank& rank, p2p::Buffer buffer, int from, int tag);
// Rank 0 fills that buffer of its own and sends it to rank 1, which has posted its receive before and
// checks what came into its own.
Task<Status> pass_on(Rank& rank, Bytebuffer& buffer, std::uint64_t key);
// The same behind a first try whose request is refused while `refuse` is set.
Task<Status> pass_on_at_second_try(Rank& rank, Bytebuffer& buffer, std::uint64_t key, bool& refuse);
// The request to send of a device message, in any form.
bool is_request(transport::MessageKind kind);
// All ranks meet (a dissemination barrier of empty messages).
Task<Status> meet(Rank& rank, int tag);

// The failure that a check's program ends with. Not compiled into the checks: that takes long.
[[gnu::cold]] Status not_so(const char* file, int line, const char* condition);

// For a program's checks: co_return the failure that names what was wrong.
#define WORLD_CHECK(condition)                                                               \
    do {                                                                                     \
        if (!(condition)) co_return ::gantry::world::not_so(__FILE__, __LINE__, #condition); \
    } while (false)

}  // namespace gantry::world
