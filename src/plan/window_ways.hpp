// SPDX-License-Identifier: BSD-3-Clause
//
// How an operation of a window travels to one target: the only place where that is decided.
//
//   direct    the target's memory is reached here: loads, stores and copies
//   rdma      puts and gets of the network between the two memories, without a copy in messages
//   rendezvous  large, and an end may be device memory that the network does not reach: by rendezvous like a large
//             message by an RTS that names {window, offset}, and moved as the planner of messages decides,
//             mostly by the staged pipeline
//   batch     a small put that waits for others to the same target
//   message   an active message that the target executes
//
// What changes items goes by message always: a put may be repeated when a rail fails, an accumulate
// may not, and messages are numbered.
#pragma once

#include "base/units.hpp"
#include "device/facts.hpp"
#include "plan/plan.hpp"
#include "transport/facts.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::plan {

enum class WindowWay : std::uint8_t { direct, rdma, rendezvous, batch, message };

// What is known of one target.
struct WindowFacts {
    bool direct = false;
    bool keyed = false;           // puts of the network reach it
    bool unattended = false;      // and need no call of the target's
    bool gets = false;            // gets of the network reach it, likewise
    bool changed_by_gpu = false;  // direct: accumulates there are made by a GPU, where they may be
    bool on_device = false;       // the target's memory is, or may be
    int rails = 1;
    Bytes rdma_from = 0;        // 0: never
    Bytes rendezvous_from = 0;  // 0: where it takes less time
    Bytes batch_bytes = 0;      // a batch holds so much; 0: there are none
};

struct WindowQuestion {
    enum class Verb : std::uint8_t { put, get, changes_items };
    Verb verb = Verb::put;
    Bytes bytes = 0;
    bool one_run = true;       // of bytes at the target
    bool origin_plain = true;  // one run of host memory
    bool origin_on_device = false;
    bool whole = true;  // all of both buffers moves
    // What it takes, of those that may_go_by_rendezvous().
    Nanoseconds by_rendezvous = 0, by_message = 0;
};

// A put or get of a target on another node by messages, an end or both of which are device memory.
struct MessageQuestion {
    WindowQuestion::Verb verb = WindowQuestion::Verb::put;
    Bytes bytes = 0;
    Bytes piece = 0;  // a message holds so much at most
    bool source_on_device = false, sink_on_device = false;
};

// A copy between the ends of a put or get whose target's memory is reached here.
struct WindowCopyQuestion {
    Bytes bytes = 0;
    bool contiguous = true;     // both ends
    bool on_devices = false;    // both ends
    bool between_gpus = false;  // the target's memory is mapped from another GPU than the origin's
    bool others = false;        // copies of this kind are under way
};

// fused: it shares a launch with copies that are under way, or a persistent kernel makes it. with_others: a longer one does, too,
// and waits for more of them as long as those before it fly.
enum class WindowCopy : std::uint8_t { alone, fused, with_others };

WindowCopy window_copy(const WindowCopyQuestion& question);

// An accumulate at device memory that this process reaches, for which there is a kernel: made by the GPU
// there, or by the processor on copies.
struct ChangeQuestion {
    Bytes bytes = 0;
    bool operand_there = false;  // the kernel reads the operand where it lies
    bool operand_on_device = false;
    bool time_sliced = false;  // a kernel waits for a time slice of its GPU
};

enum class ChangePlace : std::uint8_t { host, gpu };

// `fixed`: what the user said (GANTRY_REDUCE_ON).
ChangePlace change_place(const device::GpuFacts& gpu, const ChangeQuestion& question,
                         std::string_view fixed = "auto");

// Pieces are copied to host memory, sent, and copied to where they belong one after the other; a flush
// ends it.
Nanoseconds message_time(const MessageQuestion& question, const transport::PeerFacts& peer,
                         const device::GpuFacts& gpu);

// The same of one that is by rendezvous, whose bytes travel by that plan.
Nanoseconds rendezvous_time(WindowQuestion::Verb verb, const Plan& large,
                            const transport::PeerFacts& peer);

// Whether window_way() asks what a put or get takes.
bool may_go_by_rendezvous(const WindowQuestion& question, const WindowFacts& facts);
WindowWay window_way(const WindowQuestion& question, const WindowFacts& facts);
// For people: how operations travel to `targets` ranks of which all this is known.
std::string window_sentence(int targets, const WindowFacts& facts);

}  // namespace gantry::plan
