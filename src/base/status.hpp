// SPDX-License-Identifier: BSD-3-Clause
//
// How Gantry says that something failed. A Status is one pointer: null means success, else it
// points to a shared record with an MPI error class and a sentence (what was attempted, on what,
// what the system said, how to mend it). It is cheap to return, copy and keep in a request. There
// are no exceptions below the C ABI: a failure travels as a value up to `abi/`, which
// gives it to the error handler. What only failures need is cold: the compiler keeps it, and the code
// that leads there, away from what runs when all goes well.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gantry {

class [[nodiscard]] Status {
  public:
    Status() = default;
    Status(const Status& other) : record_(other.record_) { retain(); }
    Status(Status&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
    Status& operator=(Status other) noexcept {
        std::swap(record_, other.record_);
        return *this;
    }
    ~Status() { release(); }

    static Status make(int error_class, std::string text);

    bool ok() const { return record_ == nullptr; }
    explicit operator bool() const { return !ok(); }  // `if (failed) ...`, as GANTRY_TRY reads it
    int error_class() const { return record_ != nullptr ? record_->error_class : MPI_SUCCESS; }
    std::string_view text() const {
        return record_ != nullptr ? record_->text : std::string_view{};
    }
    // The same failure, told with what the caller was doing: "context: text".
    Status with(std::string_view context) const;

  private:
    struct Record {
        std::atomic<int> references{1};
        int error_class;
        std::string text;
    };
    void retain() {
        if (record_ != nullptr) [[unlikely]]
            record_->references.fetch_add(1, std::memory_order_relaxed);
    }
    void release() {
        if (record_ != nullptr) [[unlikely]]
            give_up(record_);
    }
    [[gnu::cold]] static void give_up(Record* record);
    static Record out_of_memory_;
    Record* record_ = nullptr;
};

inline Status success() {
    return {};
}

template <class... Args>
[[gnu::cold, gnu::noinline]] Status failure(int error_class, fmt::format_string<Args...> text,
                                            Args&&... args) {
    return Status::make(error_class, fmt::format(text, std::forward<Args>(args)...));
}

// A value or the failure that prevented it.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {}
    bool ok() const { return status_.ok(); }
    const Status& status() const& { return status_; }
    Status status() && { return std::move(status_); }
    T& value() & { return *value_; }
    const T& value() const& { return *value_; }
    T&& value() && { return std::move(*value_); }
    T* operator->() { return &*value_; }
    T& operator*() { return *value_; }

  private:
    Status status_;
    std::optional<T> value_;
};

// Broken invariants of Gantry itself; never a judgement on user input. Prints where and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace gantry

// Statements, not expressions: return early when a Status, or a Result's Status, is a
// failure.
#define GANTRY_TRY(expression)                                                   \
    do {                                                                         \
        if (::gantry::Status status_of_try = (expression)) return status_of_try; \
    } while (false)
#define GANTRY_CO_TRY(expression)                         \
    do {                                                  \
        ::gantry::Status status_of_try = (expression);    \
        if (!status_of_try.ok()) co_return status_of_try; \
    } while (false)
#define GANTRY_ASSERT(expression)                                        \
    do {                                                                 \
        if (!(expression)) [[unlikely]]                                  \
            ::gantry::assertion_failed(#expression, __FILE__, __LINE__); \
    } while (false)
