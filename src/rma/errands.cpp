// SPDX-License-Identifier: BSD-3-Clause
//
// Errands of a window: what the origin does with a box, and its owner.
#include "base/relax.hpp"
#include "rma/windows.hpp"
#include "transfer/mover.hpp"

#include <sched.h>
#include <signal.h>

#include <cerrno>

namespace gantry::rma {
namespace {

// What the kernel's call takes, and each block of it: so long nobody is waited for in vain.
constexpr Nanoseconds kForACall = 3 * kMicrosecond, kForABlock = 300, kAtMost = 60 * kMicrosecond;
// Blocks of this size take as long in a box as in the kernel.
constexpr Bytes kLongBlock = kKiB;
// After an errand that nobody came for so many operations go another way, then twice as many.
constexpr int kFewest = 1, kMost = 63;
constexpr int kLooksBetweenClocks = 16;
constexpr Nanoseconds kLooksForLife = 10 * kMillisecond;

bool lives(int process) {
    return kill(process, 0) == 0 || errno != ESRCH;
}

}  // namespace

// True: it is carried out. False: nobody came for it.
Result<bool> Origin::await_errand(const Target& of, ErrandBox& box, Bytes blocks) {
    const Executor& executor = windows.executor();
    const Nanoseconds begin = executor.now();
    const Nanoseconds patience =
        std::min(kAtMost, kForACall + static_cast<Nanoseconds>(blocks) * kForABlock);
    for (Nanoseconds next_look_for_life = kLooksForLife;;) {
        for (int look = 0; look < kLooksBetweenClocks; ++look) {
            if (box.is_done()) return true;
            // Its owner may be waiting for me in turn.
            if (!serve_errand()) relax();
        }
        const Nanoseconds waited = executor.now() - begin;
        if (waited <= patience) continue;
        if (box.take_back()) return false;
        sched_yield();  // the owner is at it
        if (waited < next_look_for_life) continue;
        if (!lives(of.process))
            return failure(MPI_ERR_PROC_ABORTED, "rank {} of the window has died", of.peer);
        next_look_for_life += kLooksForLife;
    }
}

// How many bytes of an operation at memory that the kernel would copy were moved; a change is made as a
// whole or not at all.
Result<Bytes> Origin::run_errands(const Access& access, const Side& there) {
    Target& of = target(access.target);
    ErrandBox* const box = of.errands;
    if (box == nullptr) return 0;
    // Of scattered blocks the kernel's call takes so long that a vain errand does not count.
    if (of.errands_to_skip > 0 && there.contiguous()) {
        --of.errands_to_skip;
        return 0;
    }
    const bool changes = changes_items(access.verb);
    const Bytes most =
        access.verb == Verb::compare_and_swap ? ErrandBox::kData / 2 : ErrandBox::kData;
    if (access.bytes > most && (changes || there.contiguous())) return 0;
    for (Bytes first = 0; first < access.bytes; first += most) {
        const Bytes some = std::min(most, access.bytes - first);
        if (!box->begin()) return first;
        const Bytes blocks = box->name_rows(there, first, some);
        if (blocks == 0 || (blocks > 1 && some / blocks >= kLongBlock)) {
            box->end();
            return first;
        }
        box->verb = access.verb;
        box->operation = access.operation;
        box->element = access.items.element;
        if (access.verb != Verb::get && access.operation != layout::Operation::no_op)
            transfer::copy_out(access.origin, first, some, box->data);
        if (access.verb == Verb::compare_and_swap)
            transfer::copy_out(access.compare, 0, some, box->data + some);
        box->send();
        Result<bool> carried_out = await_errand(of, *box, blocks);
        GANTRY_TRY(carried_out.status());
        if (!*carried_out) {
            of.errands_in_vain = std::min(std::max(2 * of.errands_in_vain, kFewest), kMost);
            of.errands_to_skip = of.errands_in_vain;
            return first;
        }
        of.errands_in_vain = 0;
        const int error_class = box->error_class;
        if (reads(access.verb) && error_class == MPI_SUCCESS)
            transfer::copy_in(access.sink(), first, some, box->data);
        box->end();
        if (error_class != MPI_SUCCESS)
            return failure(error_class, "rank {} has no memory for an operation", access.target);
    }
    return access.bytes;
}

bool Origin::serve_errand() {
    ErrandBox* const box = mine().errands;
    if (box == nullptr || !box->take()) return false;
    const bool changes = changes_items(box->verb);
    ControlBlock& control = *mine().control;
    if (changes && !control.try_accumulate(rank())) {
        box->put_back();
        return false;
    }
    const Status carried_out = box->carry_out();
    if (changes) control.end_accumulate();
    box->error_class = carried_out.error_class();
    box->finish();
    return true;
}

}  // namespace gantry::rma
