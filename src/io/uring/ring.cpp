// SPDX-License-Identifier: BSD-3-Clause
//
// A ring by liburing: its header when this is compiled, its library when a file is first read or written.
#include "io/ring.hpp"

#include "io/errors.hpp"
#include "plan/io_plan.hpp"

#if __has_include(<liburing.h>)

#include <dlfcn.h>
#include <liburing.h>

#include <algorithm>
#include <array>

namespace gantry::io {
namespace {

constexpr unsigned kEntries = 64;

// The functions of the library; what is inline in its header reads the ring's memory alone.
struct Library {
    decltype(&::io_uring_queue_init) queue_init = nullptr;
    decltype(&::io_uring_queue_exit) queue_exit = nullptr;
    decltype(&::io_uring_submit) submit = nullptr;
    decltype(&::io_uring_submit_and_wait) submit_and_wait = nullptr;
    decltype(&::io_uring_peek_batch_cqe) peek = nullptr;

    Status load(const char* name) {
        // It stays loaded: rings of other engines may be open.
        void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "there is no {}", name);
        const bool whole = find(library, "io_uring_queue_init", queue_init) &&
                           find(library, "io_uring_queue_exit", queue_exit) &&
                           find(library, "io_uring_submit", submit) &&
                           find(library, "io_uring_submit_and_wait", submit_and_wait) &&
                           find(library, "io_uring_peek_batch_cqe", peek);
        if (!whole)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} lacks functions of liburing", name);
        return success();
    }

  private:
    template <class Function>
    static bool find(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }
};

class KernelRing final : public Ring {
  public:
    explicit KernelRing(const Library& library) : library_(library) {}
    ~KernelRing() override {
        if (open_) library_.queue_exit(&ring_);
    }
    KernelRing(const KernelRing&) = delete;
    KernelRing& operator=(const KernelRing&) = delete;

    Status open() {
        const int failed = library_.queue_init(kEntries, &ring_, 0);
        if (failed < 0)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "the kernel refuses io_uring: {}",
                           words_of_errno(-failed));
        open_ = true;
        return success();
    }

    int most() const override { return kEntries; }

    void ask(int file, Direction direction, const Call& call, std::uint64_t token) override {
        // Never null: no more are under way than there are entries.
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        const auto number = static_cast<unsigned>(call.number);
        const auto offset = static_cast<std::uint64_t>(call.offset);
        if (direction == Direction::read)
            io_uring_prep_readv(entry, file, call.pieces.data(), number, offset);
        else
            io_uring_prep_writev(entry, file, call.pieces.data(), number, offset);
        // What the kernel has in memory it would copy before submit() returns: much of it its threads do.
        if (call.bytes > plan::kMostReadNow) io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
        io_uring_sqe_set_data64(entry, token);
        submit();
    }

    std::size_t take(std::span<Ended> ended) override {
        if (waits_for_kernel_) submit();
        std::array<io_uring_cqe*, kEntries> entries;
        const unsigned number = library_.peek(
            &ring_, entries.data(), static_cast<unsigned>(std::min(ended.size(), entries.size())));
        for (unsigned i = 0; i < number; ++i)
            ended[i] = {io_uring_cqe_get_data64(entries[i]), entries[i]->res};
        if (number > 0) io_uring_cq_advance(&ring_, number);
        return number;
    }

    void wait() override { library_.submit_and_wait(&ring_, 1); }

  private:
    // A kernel that is short of memory takes entries later.
    void submit() { waits_for_kernel_ = library_.submit(&ring_) < 0; }

    const Library library_;
    io_uring ring_{};
    bool open_ = false, waits_for_kernel_ = false;
};

}  // namespace

Result<std::unique_ptr<Ring>> open_ring(const char* name) {
    Library library;
    GANTRY_TRY(library.load(name));
    auto ring = std::make_unique<KernelRing>(library);
    GANTRY_TRY(ring->open());
    return std::unique_ptr<Ring>(std::move(ring));
}

}  // namespace gantry::io

#else

namespace gantry::io {

Result<std::unique_ptr<Ring>> open_ring(const char*) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "built without liburing.h");
}

}  // namespace gantry::io

#endif
