// SPDX-License-Identifier: BSD-3-Clause
#include "io/shared_pointer.hpp"

#include "coll/exchange.hpp"

#include <utility>

namespace gantry::io {
namespace {

rma::Side side_of(std::int64_t* number, const layout::Layout& layout) {
    rma::Side side;
    side.buffer = {number, 1, &layout};
    return side;
}

}  // namespace

SharedPointer::SharedPointer() = default;
SharedPointer::~SharedPointer() = default;

Task<Status> SharedPointer::open(Executor& executor, rma::Windows& windows, p2p::Group group) {
    if (group.size() == 1) co_return success();
    rma::Wanted wanted;
    wanted.flavor = rma::Flavor::allocate;
    wanted.bytes = group.rank == 0 ? sizeof(std::int64_t) : 0;
    const bool holds_it = group.rank == 0;
    Status made = co_await windows.create(executor, std::move(group), wanted, &window_);
    GANTRY_CO_TRY(made);
    windows.context.explain.name_window(window_->number(), "the shared pointer of a file");
    Status locked = co_await window_->lock_all(executor, rma::Lock::unchecked);
    GANTRY_CO_TRY(locked);
    if (!holds_it) co_return success();
    Status begun = co_await set(executor, 0);
    co_return begun;
}

Task<Status> SharedPointer::close(Executor& executor) {
    if (window_ == nullptr) co_return success();
    Status unlocked = co_await window_->unlock_all(executor);
    Status closed = co_await window_->close(executor);
    window_.reset();
    co_return unlocked.ok() ? closed : unlocked;
}

void SharedPointer::revoke(const Status& why) {
    if (window_ != nullptr) window_->revoke(why);
}

Task<Status> SharedPointer::add(Executor& executor, std::int64_t etypes, std::int64_t* before) {
    if (window_ == nullptr) {
        *before = std::exchange(alone_, alone_ + etypes);
        co_return success();
    }
    Status changed = co_await change(executor, layout::Operation::sum, etypes, before);
    co_return changed;
}

Task<Status> SharedPointer::set(Executor& executor, std::int64_t to) {
    if (window_ == nullptr) {
        alone_ = to;
        co_return success();
    }
    std::int64_t before = 0;
    Status changed = co_await change(executor, layout::Operation::replace, to, &before);
    co_return changed;
}

Task<Status> SharedPointer::change(Executor& executor, layout::Operation operation,
                                   std::int64_t operand, std::int64_t* before) {
    rma::Access access;
    access.verb = rma::Verb::fetch;
    access.target = 0;
    access.origin = side_of(&operand, number_);
    access.result = side_of(before, number_);
    access.count = 1;
    access.layout = &number_;
    access.operation = operation;
    access.items = rma::items_of(layout::Element::int64);
    access.bytes = sizeof operand;
    Status changed = co_await window_->begin_and_wait(executor, access);
    co_return changed;
}

}  // namespace gantry::io
