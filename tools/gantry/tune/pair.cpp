// SPDX-License-Identifier: BSD-3-Clause
//
// Two processes. The other one serves: it uses the compute queue when told to, opens what it is
// named and says how long that took. One order and one answer at a time over a socket pair.
#include "base/process_memory.hpp"
#include "device/descriptor_inbox.hpp"
#include "tune.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <span>

namespace gantry::tool {

namespace {

enum class Verb : int { touch, open_legacy, keep_legacy, open_virtual, open_pool, flag, quit };

struct Order {
    Verb verb = Verb::quit;
    int gpu = 0;  // whose context opens
    std::size_t bytes = 0;
    unsigned char handle[64] = {};
    int rounds = 0;
};
struct Answer {
    double open_ns = 0, close_ns = 0;
    int good = 1;
    std::uint32_t inbox = 0;
};

struct alignas(64) Flag {
    std::atomic<std::uint32_t> value;
};
struct Flags {
    Flag there, back;
};

bool read_all(int socket, void* to, std::size_t bytes) {
    return ::recv(socket, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}
bool write_all(int socket, const void* from, std::size_t bytes) {
    return ::send(socket, from, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

class Server {
  public:
    Server(int socket, Flags& flags, Cuda& cuda)
        : socket_(socket), flags_(flags), cuda_(cuda), home_(-1) {}

    void serve() {
        Answer hello;
        hello.inbox = inbox_.number();
        write_all(socket_, &hello, sizeof hello);
        Order order;
        while (read_all(socket_, &order, sizeof order) && order.verb != Verb::quit) {
            const Answer answer = obey(order);
            if (!write_all(socket_, &answer, sizeof answer)) return;
        }
    }

  private:
    Answer obey(const Order& order) {
        if (order.verb == Verb::flag) {
            for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(order.rounds);
                 ++round) {
                while (flags_.there.value.load(std::memory_order_acquire) != round) {
                }
                flags_.back.value.store(round, std::memory_order_release);
            }
            return {};
        }
        if (home_ != order.gpu) {
            home_ = order.gpu;
            cuda_.use(home_);
            stream_ = cuda_.stream();
            small_ = cuda_.allocate(4096);
        }
        switch (order.verb) {
            case Verb::touch:
                cuda_.cuMemcpyDtoDAsync_v2(small_, small_ + 2048, 8, stream_);
                cuda_.wait(stream_);
                return {};
            case Verb::open_legacy:
            case Verb::keep_legacy: return open_legacy(order);
            case Verb::open_virtual: return open_virtual(order);
            case Verb::open_pool: return open_pool(order);
            default: return {};
        }
    }

    Answer open_legacy(const Order& order) {
        CUipcMemHandle handle;
        std::memcpy(&handle, order.handle, sizeof handle);
        CUdeviceptr address = 0;
        Answer answer;
        const double begin = now_ns();
        answer.good = cuda_.cuIpcOpenMemHandle_v2(
                          &address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS;
        answer.open_ns = now_ns() - begin;
        const double opened = now_ns();
        if (answer.good != 0 && order.verb == Verb::open_legacy) cuda_.cuIpcCloseMemHandle(address);
        answer.close_ns = now_ns() - opened;
        return answer;
    }

    device::Descriptor descriptor() {
        std::byte nothing{};
        device::DescriptorInbox::Letter letter;
        inbox_.take(std::span(&nothing, 1), letter);
        return std::move(letter.descriptor);
    }

    static void* as_argument(const device::Descriptor& descriptor) {
        return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.number()));
    }

    Answer open_virtual(const Order& order) {
        const device::Descriptor fd = descriptor();
        CUmemGenericAllocationHandle memory = 0;
        CUdeviceptr address = 0;
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, order.gpu},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        Answer answer;
        const double begin = now_ns();
        answer.good = cuda_.cuMemImportFromShareableHandle(
                          &memory, as_argument(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
                          CUDA_SUCCESS &&
                      cuda_.cuMemAddressReserve(&address, order.bytes, 0, 0, 0) == CUDA_SUCCESS &&
                      cuda_.cuMemMap(address, order.bytes, 0, memory, 0) == CUDA_SUCCESS &&
                      cuda_.cuMemSetAccess(address, order.bytes, &access, 1) == CUDA_SUCCESS;
        answer.open_ns = now_ns() - begin;
        return answer;
    }

    Answer open_pool(const Order& order) {
        const device::Descriptor fd = descriptor();
        CUmemoryPool pool = nullptr;
        CUdeviceptr address = 0;
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, order.gpu},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemPoolPtrExportData pointer;
        std::memcpy(&pointer, order.handle, sizeof pointer);
        Answer answer;
        const double begin = now_ns();
        answer.good = cuda_.cuMemPoolImportFromShareableHandle(
                          &pool, as_argument(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
                          CUDA_SUCCESS &&
                      cuda_.cuMemPoolSetAccess(pool, &access, 1) == CUDA_SUCCESS &&
                      cuda_.cuMemPoolImportPointer(&address, pool, &pointer) == CUDA_SUCCESS;
        answer.open_ns = now_ns() - begin;
        return answer;
    }

    int socket_;
    Flags& flags_;
    Cuda& cuda_;
    device::DescriptorInbox inbox_;
    int home_;
    CUstream stream_ = nullptr;
    CUdeviceptr small_ = 0;
};

Nanoseconds whole(double ns) {
    return static_cast<Nanoseconds>(std::llround(std::max(ns, 0.0)));
}

// This process's side.
class Client {
  public:
    Client(int socket, Flags& flags, Cuda& cuda) : socket_(socket), flags_(flags), cuda_(cuda) {
        Answer hello;
        if (!read_all(socket_, &hello, sizeof hello)) throw TuneFailure("the second process ended");
        inbox_ = hello.inbox;
    }

    Answer ask(const Order& order) {
        Answer answer;
        if (!write_all(socket_, &order, sizeof order) || !read_all(socket_, &answer, sizeof answer))
            throw TuneFailure("the second process ended");
        return answer;
    }

    double flag_ns() {
        constexpr int kRounds = 3000;
        Order order{Verb::flag, 0, 0, {}, kRounds};
        write_all(socket_, &order, sizeof order);
        std::vector<double> took;
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            const double begin = now_ns();
            flags_.there.value.store(round, std::memory_order_release);
            while (flags_.back.value.load(std::memory_order_acquire) != round) {
            }
            took.push_back(now_ns() - begin);
        }
        Answer done;
        read_all(socket_, &done, sizeof done);
        std::nth_element(took.begin(), took.begin() + kRounds / 4, took.end());
        return took[kRounds / 4] / 2;
    }

    // An operation of this process after the other one used the queue, or after its own.
    double after(int gpu, bool other_used_it, const std::function<void()>& start, CUstream stream) {
        start();
        cuda_.wait(stream);
        if (other_used_it) ask({Verb::touch, gpu, 0, {}, 0});
        const double begin = now_ns();
        start();
        cuda_.wait(stream);
        return now_ns() - begin;
    }

    // `verb`: whether it is closed again.
    Answer legacy(CUdeviceptr memory, int gpu, Verb verb = Verb::open_legacy) {
        CUipcMemHandle handle;
        if (cuda_.cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS) return {0, 0, 0, 0};
        Order order{verb, gpu, 0, {}, 0};
        std::memcpy(order.handle, &handle, sizeof handle);
        return ask(order);
    }

    Answer virtual_memory(int owner, int gpu) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, owner};
        const std::size_t bytes = 4 * kMiB;
        CUmemGenericAllocationHandle memory = 0;
        int fd = -1;
        if (cuda_.cuMemCreate(&memory, bytes, &properties, 0) != CUDA_SUCCESS ||
            cuda_.cuMemExportToShareableHandle(
                &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
            return {0, 0, 0, 0};
        return with(fd, {Verb::open_virtual, gpu, bytes, {}, 0});
    }

    Answer pool(int owner, int gpu) {
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, owner};
        CUmemoryPool pool = nullptr;
        CUdeviceptr memory = 0;
        CUmemPoolPtrExportData pointer{};
        int fd = -1;
        if (cuda_.cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS ||
            cuda_.cuMemAllocFromPoolAsync(&memory, 4 * kMiB, pool, nullptr) != CUDA_SUCCESS ||
            cuda_.cuCtxSynchronize() != CUDA_SUCCESS ||
            cuda_.cuMemPoolExportPointer(&pointer, memory) != CUDA_SUCCESS ||
            cuda_.cuMemPoolExportToShareableHandle(
                &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
            return {0, 0, 0, 0};
        Order order{Verb::open_pool, gpu, 0, {}, 0};
        std::memcpy(order.handle, &pointer, sizeof pointer);
        return with(fd, order);
    }

  private:
    Answer with(int fd, const Order& order) {
        const device::Descriptor descriptor(fd);
        const std::byte nothing{};
        if (!device::DescriptorInbox::send(inbox_, std::span(&nothing, 1), descriptor.number())
                 .ok())
            return {0, 0, 0, 0};
        return ask(order);
    }

    int socket_;
    Flags& flags_;
    Cuda& cuda_;
    std::uint32_t inbox_ = 0;
};

// Host memory that both processes have at this address: a fork's copy.
std::byte read_from[kMiB] = {std::byte{1}};

// What reading the other process's memory costs; false: the system refuses.
bool measure_reads(int process, model::Link& link) {
    std::vector<std::byte> here(sizeof read_from);
    int why = 0;
    const auto time = [&](Bytes bytes) {
        return time_of(21, [&] {
            iovec there{read_from, bytes}, mine{here.data(), bytes};
            why = access_process(ProcessAccess::read, process, {&there, 1}, {&mine, 1});
        });
    };
    const double call = time(8);
    if (why != 0) return false;
    link.read_latency = whole(call);
    std::vector<model::Rate::Point> points;
    for (const Bytes bytes : {64 * kKiB, kMiB})
        points.push_back(
            {bytes, static_cast<double>(bytes) * 1e9 / std::max(time(bytes) - call, 1.0)});
    link.read_rate = model::Rate(points);
    return true;
}

}  // namespace

Pair::Pair(std::string library) {
    int ends[2];
    shared_ =
        ::mmap(nullptr, sizeof(Flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_ == MAP_FAILED || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw TuneFailure("no shared memory or socket for the second process");
    process_ = ::fork();
    if (process_ == 0) {
        ::close(ends[0]);
        try {
            Cuda cuda(library);
            Server(ends[1], *static_cast<Flags*>(shared_), cuda).serve();
        } catch (const TuneFailure&) {
            _exit(1);  // the other one hears it from the socket
        }
        _exit(0);
    }
    ::close(ends[1]);
    socket_ = ends[0];
}

Pair::~Pair() {
    ::close(socket_);
    ::waitpid(process_, nullptr, 0);
}

void Pair::measure(Cuda& cuda, int gpu, int other_gpu, model::Machine& machine,
                   Progress& progress) {
    Client client(socket_, *static_cast<Flags*>(shared_), cuda);
    model::Gpu& described = machine.gpu;
    progress.step("a flag between two processes");
    machine.host.flag = whole(client.flag_ns());

    progress.step("reading memory of another process");
    if (!measure_reads(process_, machine.shared_memory)) machine.shared_memory.read_rate = {};

    progress.step("turns of the compute queue");
    cuda.use(gpu);
    CUstream stream = cuda.stream();
    const CUdeviceptr memory = cuda.allocate(kMiB);
    std::byte* pinned = cuda.allocate_host(kMiB);
    const auto turn = [&](const std::function<void()>& start) {
        const auto typical = [&](bool other) {
            return typical_of(9, [&] { return client.after(gpu, other, start, stream); });
        };
        return typical(true) - typical(false);
    };
    described.turn =
        whole(turn([&] { cuda.cuMemcpyDtoDAsync_v2(memory, memory + kMiB / 2, 8, stream); }));
    // Less than a copy is noise, as under MPS.
    if (described.turn < described.d2d.latency) described.turn = 0;
    const double counts = static_cast<double>(described.turn) / 2;
    const auto turn_below = [&](const std::byte* host) {
        Bytes below = 0;
        int without = 0;
        for (Bytes bytes = 8; described.turn > 0 && bytes <= 256 * kKiB && without < 2;
             bytes *= bytes < kKiB ? 8 : 2) {
            const double more =
                turn([&] { cuda.cuMemcpyHtoDAsync_v2(memory, host, bytes, stream); });
            without = more < counts ? without + 1 : 0;
            if (without == 0) below = bytes < kKiB ? bytes * 8 : bytes * 2;
        }
        return below;
    };
    const std::vector<std::byte> pageable(256 * kKiB, std::byte{1});
    described.h2d.turn_below = turn_below(pinned);
    described.pageable_h2d.turn_below = turn_below(pageable.data());

    progress.step("opening memory of another process");
    const auto best = [](const std::function<Answer()>& open) {
        Answer quickest = open();
        for (int again = 0; again < 4 && quickest.good != 0; ++again)
            if (const Answer answer = open(); answer.open_ns < quickest.open_ns) quickest = answer;
        return quickest;
    };
    const Answer same = best([&] { return client.legacy(memory, gpu); });
    machine.ipc = same.good != 0;
    if (machine.ipc) {
        described.calls.ipc_open = whole(same.open_ns);
        described.calls.ipc_close = whole(same.close_ns);
    }
    const auto take = [](const Answer& answer, Nanoseconds& into) {
        if (answer.good != 0) into = whole(answer.open_ns);
    };
    take(best([&] { return client.virtual_memory(gpu, gpu); }), described.calls.vmm_open);
    take(best([&] { return client.pool(gpu, gpu); }), described.calls.pool_open);
    if (other_gpu < 0 || !machine.peer_access) return;
    // As long as nothing of that GPU is open, each is a first one; from then on none is.
    model::CallCost& calls = described.calls;
    const auto more = [](const Answer& dearer, Nanoseconds usual, Nanoseconds& into) {
        if (dearer.good != 0) into = std::max<Nanoseconds>(whole(dearer.open_ns) - usual, 0);
    };
    const Answer first = best([&] { return client.legacy(memory, other_gpu); });
    client.legacy(cuda.allocate(4096), other_gpu, Verb::keep_legacy);
    take(best([&] { return client.legacy(memory, other_gpu); }), calls.ipc_open_peer);
    more(first, calls.ipc_open_peer, calls.ipc_pair);
    CUdeviceptr large = 0;
    if (cuda.cuMemAlloc_v2(&large, model::kLargeMapping) == CUDA_SUCCESS) {
        more(best([&] { return client.legacy(large, other_gpu); }), calls.ipc_open_peer,
             calls.ipc_open_large);
        cuda.cuMemFree_v2(large);
    }
    const Answer first_pool = client.pool(gpu, other_gpu);
    take(best([&] { return client.pool(gpu, other_gpu); }), calls.pool_open_peer);
    more(first_pool, calls.pool_open_peer, calls.pool_first);
}

}  // namespace gantry::tool
