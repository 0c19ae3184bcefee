// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments on their way to the standard's function and back. Each class holds what the library
// sees; when the call is over, its destructor writes to the program's variable what has changed.
// A null pointer of the program stays one: the library judges it.
#pragma once

#include "common/callbacks.hpp"
#include "common/export.hpp"
#include "common/scratch.hpp"
#include "constants.hpp"
#include "theirs.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gantry::personality {

inline int error(int code) {
    return code == MPI_SUCCESS ? 0 : error_class_from(code);
}

// MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC, which are small numbers in the standard's ABI.
inline bool in_place(const void* buffer) {
    return buffer == theirs::kInPlace;
}
void* marker(std::uintptr_t value);
inline void* address(void* buffer) {
    const auto value = reinterpret_cast<std::uintptr_t>(buffer);
    return value >= theirs::kFirstMarker ? marker(value) : buffer;
}
inline const void* address(const void* buffer) {
    return address(const_cast<void*>(buffer));
}

// The address of a buffer that was attached, which may have been MPI_BUFFER_AUTOMATIC.
class DetachedBuffer {
  public:
    explicit DetachedBuffer(void* place) : place_(static_cast<void**>(place)) {}
    DetachedBuffer(const DetachedBuffer&) = delete;
    DetachedBuffer& operator=(const DetachedBuffer&) = delete;
    ~DetachedBuffer() {
        if (place_ != nullptr && *place_ == MPI_BUFFER_AUTOMATIC) *place_ = theirs::kAutomatic;
    }

  private:
    void** place_;
};

// How many ranks an array speaks of that has an element for each.
int peers(MPI_Comm comm);
enum class Direction { kTo, kFrom };
int neighbors(MPI_Comm comm, Direction direction);

// --- handles

// `ours` is the caller's, so that the compiler sees that the library cannot reach `theirs`.
template <class Handle>
class HandleOut {
  public:
    HandleOut(Their<Handle>* theirs, Handle& ours) : theirs_(theirs), ours_(ours) {}
    HandleOut(const HandleOut&) = delete;
    HandleOut& operator=(const HandleOut&) = delete;
    ~HandleOut() { give_handle(ours_, theirs_); }
    Handle* pointer() const { return theirs_ != nullptr ? &ours_ : nullptr; }

  private:
    Their<Handle>* const theirs_;
    Handle& ours_;
};

template <class Handle>
class HandleInOut {
  public:
    explicit HandleInOut(Their<Handle>* theirs)
        : theirs_(theirs),
          before_(theirs != nullptr ? to<Handle>(*theirs) : nullptr),
          ours_(before_) {}
    HandleInOut(const HandleInOut&) = delete;
    HandleInOut& operator=(const HandleInOut&) = delete;
    ~HandleInOut() {
        if (ours_ != before_) *theirs_ = from(ours_);
    }
    Handle* pointer() { return theirs_ != nullptr ? &ours_ : nullptr; }

  private:
    Their<Handle>* theirs_;
    Handle before_, ours_;
};

template <class Handle>
class HandlesIn {
  public:
    HandlesIn(const Their<Handle>* theirs, long count) : ours_(theirs == nullptr ? 0 : count) {
        for (long i = 0; i < ours_.count(); ++i)
            ours_[i] = to<Handle>(theirs[i]);
        there_ = theirs != nullptr;
    }
    bool ok() const { return ours_.ok(); }
    const Handle* data() { return there_ ? ours_.data() : nullptr; }

  private:
    Scratch<Handle> ours_;
    bool there_ = false;
};

// Only requests come in arrays that change, and they change to null.
template <class Handle>
class HandlesInOut {
    static_assert(std::is_same_v<Handle, MPI_Request>);

  public:
    HandlesInOut(Their<Handle>* theirs, long count)
        : theirs_(theirs), ours_(theirs == nullptr ? 0 : count) {
        Handle* const ours = ours_.data();
#pragma GCC unroll 4
        for (long i = 0, n = ours_.count(); i < n; ++i)
            ours[i] = to<Handle>(theirs[i]);
    }
    HandlesInOut(const HandlesInOut&) = delete;
    HandlesInOut& operator=(const HandlesInOut&) = delete;
    ~HandlesInOut() {
        const Handle* const ours = ours_.data();
        Their<Handle>* const theirs = theirs_;
        const Their<Handle> null = from(MPI_REQUEST_NULL);
#pragma GCC unroll 4
        for (long i = 0, n = ours_.count(); i < n; ++i)
            if (ours[i] == MPI_REQUEST_NULL) theirs[i] = null;
    }
    bool ok() const {
        return ours_.ok();
    }
    Handle* data() {
        return theirs_ != nullptr ? ours_.data() : nullptr;
    }

  private:
    Their<Handle>* theirs_;
    Scratch<Handle> ours_;
};

template <class Handle>
class HandlesOut {
  public:
    HandlesOut(Their<Handle>* theirs, long count)
        : theirs_(theirs), ours_(theirs == nullptr ? 0 : count) {
        for (long i = 0; i < ours_.count(); ++i)
            ours_[i] = nullptr;
    }
    HandlesOut(const HandlesOut&) = delete;
    HandlesOut& operator=(const HandlesOut&) = delete;
    ~HandlesOut() {
        for (long i = 0; i < ours_.count(); ++i)
            give_handle(ours_[i], &theirs_[i]);
    }
    bool ok() const { return ours_.ok(); }
    Handle* data() { return theirs_ != nullptr ? ours_.data() : nullptr; }
    long count() const { return ours_.count(); }

  private:
    Their<Handle>* theirs_;
    Scratch<Handle> ours_;
};

// --- statuses

// In a status that the library has not written; no rank and no error code.
inline constexpr int kUnwritten = -30001;

inline void prepare(MPI_Status& ours) {
    ours.MPI_SOURCE = kUnwritten;
    ours.MPI_ERROR = kUnwritten;
}
inline void give(const MPI_Status& ours, theirs::Status& theirs) {
    if (ours.MPI_ERROR != kUnwritten) theirs.MPI_ERROR = error(ours.MPI_ERROR);
    if (ours.MPI_SOURCE == kUnwritten) return;
    theirs.MPI_SOURCE = rank_from(ours.MPI_SOURCE);
    theirs.MPI_TAG = tag_from(ours.MPI_TAG);
    status_from(ours, theirs);
}
void take(const theirs::Status& theirs, MPI_Status& ours);

class StatusOut {
  public:
    explicit StatusOut(theirs::Status* theirs)
        : theirs_(theirs == theirs::kStatusIgnore ? nullptr : theirs) {
        if (theirs_ != nullptr) prepare(ours_);
    }
    StatusOut(const StatusOut&) = delete;
    StatusOut& operator=(const StatusOut&) = delete;
    ~StatusOut() {
        if (theirs_ != nullptr) give(ours_, *theirs_);
    }
    MPI_Status* pointer() { return theirs_ != nullptr ? &ours_ : MPI_STATUS_IGNORE; }

  private:
    theirs::Status* theirs_;
    MPI_Status ours_;
};

class StatusIn {
  public:
    explicit StatusIn(const theirs::Status* theirs) : there_(theirs != nullptr) {
        if (there_) take(*theirs, ours_);
    }
    const MPI_Status* pointer() const { return there_ ? &ours_ : nullptr; }

  private:
    bool there_;
    MPI_Status ours_;
};

// Only what the library changes is written: a program may have set the rest to anything.
class StatusInOut {
  public:
    explicit StatusInOut(theirs::Status* theirs) : theirs_(theirs) {
        if (theirs_ == nullptr) return;
        take(*theirs_, ours_);
        ours_.MPI_ERROR = kUnwritten;
        before_ = ours_;
    }
    StatusInOut(const StatusInOut&) = delete;
    StatusInOut& operator=(const StatusInOut&) = delete;
    ~StatusInOut() {
        if (theirs_ == nullptr) return;
        if (ours_.MPI_ERROR != before_.MPI_ERROR) theirs_->MPI_ERROR = error(ours_.MPI_ERROR);
        if (ours_.MPI_SOURCE != before_.MPI_SOURCE)
            theirs_->MPI_SOURCE = rank_from(ours_.MPI_SOURCE);
        if (ours_.MPI_TAG != before_.MPI_TAG) theirs_->MPI_TAG = tag_from(ours_.MPI_TAG);
        status_from(ours_, *theirs_);
    }
    MPI_Status* pointer() { return theirs_ != nullptr ? &ours_ : nullptr; }

  private:
    theirs::Status* theirs_;
    MPI_Status before_, ours_;
};

class StatusesOut {
  public:
    StatusesOut(theirs::Status* theirs, long count)
        : theirs_(theirs == theirs::kStatusIgnore ? nullptr : theirs),
          ours_(theirs_ == nullptr ? 0 : count) {
        for (long i = 0; i < ours_.count(); ++i)
            prepare(ours_[i]);
    }
    StatusesOut(const StatusesOut&) = delete;
    StatusesOut& operator=(const StatusesOut&) = delete;
    ~StatusesOut() {
        for (long i = 0; i < ours_.count(); ++i)
            give(ours_[i], theirs_[i]);
    }
    bool ok() const { return ours_.ok(); }
    MPI_Status* data() { return theirs_ != nullptr ? ours_.data() : MPI_STATUSES_IGNORE; }

  private:
    theirs::Status* theirs_;
    Scratch<MPI_Status> ours_;
};

// --- integers that stand for something; `map` is a function of constants.hpp

class ValuesIn {
  public:
    ValuesIn(const int* theirs, long count, int (*map)(int))
        : ours_(theirs == nullptr ? 0 : count) {
        for (long i = 0; i < ours_.count(); ++i)
            ours_[i] = map(theirs[i]);
        there_ = theirs != nullptr;
    }
    bool ok() const { return ours_.ok(); }
    const int* data() { return there_ ? ours_.data() : nullptr; }

  private:
    Scratch<int> ours_;
    bool there_ = false;
};

class ValueInOut {
  public:
    ValueInOut(int* theirs, int (*to)(int), int (*from)(int))
        : theirs_(theirs), from_(from), ours_(theirs != nullptr ? to(*theirs) : 0) {}
    ValueInOut(const ValueInOut&) = delete;
    ValueInOut& operator=(const ValueInOut&) = delete;
    ~ValueInOut() {
        if (theirs_ != nullptr) *theirs_ = from_(ours_);
    }
    int* pointer() { return theirs_ != nullptr ? &ours_ : nullptr; }

  private:
    int* theirs_;
    int (*from_)(int);
    int ours_;
};

// The library writes to the program's variable, and what it wrote is translated there.
class ValuesOut {
  public:
    ValuesOut(int* values, long count, int (*map)(int))
        : values_(values), count_(values == nullptr ? 0 : count), map_(map) {
        for (long i = 0; i < count_; ++i)
            values_[i] = kUnwritten;
    }
    ValuesOut(const ValuesOut&) = delete;
    ValuesOut& operator=(const ValuesOut&) = delete;
    ~ValuesOut() {
        for (long i = 0; i < count_; ++i)
            if (values_[i] != kUnwritten) values_[i] = map_(values_[i]);
    }
    bool ok() const { return true; }

  private:
    int* values_;
    long count_;
    int (*map_)(int);
};

class ValueOut {
  public:
    ValueOut(int* value, int (*map)(int)) : value_(value), map_(map) {
        if (value_ == nullptr) return;
        before_ = *value_;
        *value_ = kUnwritten;
    }
    ValueOut(const ValueOut&) = delete;
    ValueOut& operator=(const ValueOut&) = delete;
    ~ValueOut() {
        if (value_ != nullptr) *value_ = *value_ == kUnwritten ? before_ : map_(*value_);
    }

  private:
    int* value_;
    int before_ = 0;
    int (*map_)(int);
};

template <class Enum>
class EnumOut {
  public:
    EnumOut(Enum* value, int (*map)(int)) : value_(value), map_(map) {}
    EnumOut(const EnumOut&) = delete;
    EnumOut& operator=(const EnumOut&) = delete;
    ~EnumOut() {
        if (value_ != nullptr) *value_ = static_cast<Enum>(map_(static_cast<int>(*value_)));
    }

  private:
    Enum* value_;
    int (*map_)(int);
};

// --- strings

// The program's variable has room for `room` bytes; the library may write `kLongest`.
template <int kLongest>
class TextOut {
  public:
    TextOut(char* theirs, int room) : theirs_(theirs), room_(room) { ours_[0] = kNothing; }
    TextOut(const TextOut&) = delete;
    TextOut& operator=(const TextOut&) = delete;
    ~TextOut() {
        if (theirs_ == nullptr || room_ >= kLongest || ours_[0] == kNothing) return;
        const std::size_t length = strnlen(ours_, static_cast<std::size_t>(room_) - 1);
        std::memcpy(theirs_, ours_, length);
        theirs_[length] = '\0';
    }
    char* data() { return theirs_ == nullptr || room_ >= kLongest ? theirs_ : ours_; }

  private:
    static constexpr char kNothing = '\1';
    char* theirs_;
    int room_;
    char ours_[kLongest];
};

// --- MPI_Comm_idup, which writes its communicator when it is over

// Gives programs the handles of duplicates that are there; at the end of every call that may
// complete a request.
GANTRY_HIDDEN extern std::atomic<int> pending_duplicates;
void settle_duplicates();
// Where the library is to write the communicator that `where` gets; null: out of memory.
MPI_Comm* await_duplicate(theirs::Comm* where);
void forget_duplicate(const MPI_Comm* made);
struct SettleDuplicates {
    SettleDuplicates() = default;
    SettleDuplicates(const SettleDuplicates&) = delete;
    SettleDuplicates& operator=(const SettleDuplicates&) = delete;
    ~SettleDuplicates() {
        if (pending_duplicates.load(std::memory_order_acquire) != 0) [[unlikely]]
            settle_duplicates();
    }
};

}  // namespace gantry::personality
