// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>

namespace gantry {

// Stands in when even the record of a failure cannot be allocated; never freed (its count never
// reaches zero).
Status::Record Status::out_of_memory_{1, MPI_ERR_NO_MEM, "out of memory while reporting a failure"};

Status Status::make(int error_class, std::string text) {
    Status status;
    auto* record = new (std::nothrow) Record{1, error_class, std::move(text)};
    if (record == nullptr) {
        record = &out_of_memory_;
        record->references.fetch_add(1, std::memory_order_relaxed);
    }
    status.record_ = record;
    return status;
}

void Status::give_up(Record* record) {
    // Pairs with the other owners' releases: the last one must see their uses as finished.
    if (record->references.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
        record != &out_of_memory_)
        delete record;
}

Status Status::with(std::string_view context) const {
    if (ok()) return {};
    return make(error_class(), fmt::format("{}: {}", context, text()));
}

void assertion_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr,
                 "gantry: broken invariant `%s` at %s:%d (a bug in Gantry, please report it)\n",
                 expression, file, line);
    std::abort();
}

}  // namespace gantry
