// SPDX-License-Identifier: BSD-3-Clause
//
// The floors: what the driver alone needs to bring one rank's bytes into the other's memory, with
// no library between. The device memory is mapped by CUDA IPC; who copies is the sender, or, when
// the receiver's memory is the host's, the receiver. The other rank sees the end in a word of
// shared page-locked memory.
//
//     put+flag   copy engine, then the device writes the word (cuStreamWriteValue32)
//     copy       copy engine, cuStreamSynchronize, then the processor writes the word
//     kernel     one launch of Gantry's own copying kernel for all messages; it writes the words
//
// With GANTRY_IPC=off nobody may map the other's device memory; between devices there is then
//
//     two copies   copy engine into shared page-locked memory, block by block, the device writes
//                  the word behind each; the receiver's copy engine takes each block from there
//
// No floor for messages between hosts, nor for managed memory, which cannot be mapped.
#include "way_bare.hpp"

#include "driver.hpp"
#include "job.hpp"
#include "pair_memory.hpp"
#include "side_by_side.hpp"

#include "device/kernels/copy_many.hpp"
#ifdef GANTRY_BENCH_KERNELS
#include "device/kernels/images.hpp"
#endif

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace gantry::bench {
namespace {

constexpr Bytes kBytesPerPart = 8 * kKiB;
// Of a window: they fill the link; more only mean more words to look at (docs/design/batches.md).
constexpr unsigned kEnoughBlocks = 64;
constexpr Bytes kWordStride = kernels::kFlagBytes;
constexpr unsigned kWords = 1024;  // of one rank: one per block of a launch
// Of two copies: pieces so large are as quick as any on the machines measured, four of them where
// the message has fewer.
constexpr Bytes kSmallestBlock = 256 * kKiB, kLargestBlock = 768 * kKiB;
constexpr int kLooksBeforeYield = 100000;  // for machines with fewer processors than ranks

// Words that both ranks of a pair and their GPUs write: first those that side 0 reads. Behind them
// is room for so many bytes of messages to each side.
class Words {
  public:
    explicit Words(Bytes room) : room_(room), memory_(kBytesOfWords + 2 * room) {}

    std::uint32_t& word(int reader, unsigned index) const {
        return *reinterpret_cast<std::uint32_t*>(memory_.data() + offset(reader, index));
    }
    CUdeviceptr device_word(int reader, unsigned index) const {
        return memory_.device() + offset(reader, index);
    }
    // What the other side reads of a message at this offset of its buffer.
    CUdeviceptr room(int reader, Bytes offset) const {
        return memory_.device() + kBytesOfWords + static_cast<Bytes>(reader) * room_ + offset;
    }

  private:
    static constexpr Bytes kBytesOfWords = 2 * kWords * kWordStride;
    static Bytes offset(int reader, unsigned index) {
        return (static_cast<Bytes>(reader) * kWords + index) * kWordStride;
    }
    Bytes room_;
    PairMemory memory_;
};

class BareWay final : public Way {
  public:
    BareWay(Bare kind, const Options& options, const Buffer& outgoing, const Buffer& incoming)
        : kind_(kind),
          device_here_(options.placement[side()] == Placement::device),
          device_there_(options.placement[1 - side()] == Placement::device),
          words_(kind == Bare::two_copies ? outgoing.total_bytes() : 0),
          their_incoming_(incoming, maps() && device_here_, maps() && device_there_),
          their_outgoing_(outgoing, maps() && device_here_, maps() && device_there_) {
        Driver& cuda = driver();
        cuda.check(cuda.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
#ifdef GANTRY_BENCH_KERNELS
        if (kind != Bare::kernel) return;
        cuda.check(cuda.cuModuleLoadData(&module_, kernels::copy_many().ptx), "cuModuleLoadData");
        cuda.check(cuda.cuModuleGetFunction(&many_, module_, "gantry_copy_many"),
                   "cuModuleGetFunction");
        cuda.check(cuda.cuModuleGetFunction(&few_, module_, "gantry_copy_few"),
                   "cuModuleGetFunction");
#endif
    }
    ~BareWay() override {
        driver().cuStreamSynchronize(stream_);
        driver().cuStreamDestroy_v2(stream_);
        if (module_ != nullptr) driver().cuModuleUnload(module_);
        meet();  // nobody unmaps what the other's device still writes
    }

    std::string name() const override {
        switch (kind_) {
            case Bare::put_and_flag: return "put+flag";
            case Bare::copy: return "copy";
            case Bare::kernel: return "kernel";
            case Bare::two_copies: return "two copies";
        }
        return "?";
    }
    void send(const Buffer& from) override {
        send_some(from, 0, from.messages());
    }
    void receive(const Buffer& into) override {
        receive_some(into, 0, into.messages());
    }
    void exchange(const Buffer& from, const Buffer& into) override {
        send(from);
        receive(into);
    }
    // A send returns before the engine has read its buffer.
    void settle() override {
        driver().check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
        meet();
    }
    void send_one(const Buffer& from, int message) override {
        send_some(from, message, 1);
    }
    void receive_one(const Buffer& into, int message) override {
        receive_some(into, message, 1);
    }

  private:
    static Bytes offset(const Buffer& buffer, int message) {
        return buffer.stride() * static_cast<Bytes>(message);
    }
    bool maps() const {
        return kind_ != Bare::two_copies;
    }
    static Bytes block_of(const Buffer& buffer) {
        return std::clamp(divide_up(buffer.message_bytes(), 4), kSmallestBlock, kLargestBlock);
    }
    void send_blocks(const Buffer& from, int message) {
        const Bytes block = block_of(from);
        Bytes done = 0;
        do {
            const Bytes bytes = std::min(block, from.message_bytes() - done);
            start(words_.room(1 - side(), offset(from, message) + done),
                  address_of(from.message(message)) + done, bytes);
            flag(1 - side(), ++sent_);
            done += bytes;
        } while (done < from.message_bytes());
    }
    void receive_blocks(const Buffer& into, int message) {
        const Bytes block = block_of(into);
        Bytes done = 0;
        do {
            const Bytes bytes = std::min(block, into.message_bytes() - done);
            await(0, ++received_);
            start(address_of(into.message(message)) + done,
                  words_.room(side(), offset(into, message) + done), bytes);
            done += bytes;
        } while (done < into.message_bytes());
    }
    // Behind all copies into this rank's memory.
    void finish_receive() {
        flag(side(), ++own_, kWords - 1);
        await(kWords - 1, own_);
    }
    void send_some(const Buffer& from, int first, int count) {
        if (kind_ == Bare::two_copies) {
            for (int i = first; i < first + count; ++i)
                send_blocks(from, i);
            return;
        }
        ++sent_;
        if (!device_there_) {  // the receiver copies
            store(1 - side(), sent_);
            return;
        }
        if (kind_ == Bare::kernel) return launch(from, first, count);
        for (int i = first; i < first + count; ++i)
            start(their_incoming_.at(offset(from, i)), address_of(from.message(i)),
                  from.message_bytes());
        if (kind_ == Bare::put_and_flag) return flag(1 - side(), sent_);
        driver().check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
        store(1 - side(), sent_);
    }
    void receive_some(const Buffer& into, int first, int count) {
        if (kind_ == Bare::two_copies) {
            for (int i = first; i < first + count; ++i)
                receive_blocks(into, i);
            return finish_receive();
        }
        ++received_;
        const unsigned words = kind_ == Bare::kernel && device_here_ ? blocks(into, count) : 1;
        for (unsigned word = 0; word < words; ++word)
            await(word, received_);
        if (device_here_) return;
        for (int i = first; i < first + count; ++i)
            start(address_of(into.message(i)), their_outgoing_.at(offset(into, i)),
                  into.message_bytes());
        if (kind_ == Bare::copy) {
            driver().check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
        } else {
            finish_receive();
        }
    }

    void start(CUdeviceptr to, CUdeviceptr from, Bytes bytes) {
        driver().check(driver().cuMemcpyAsync(to, from, bytes, stream_), "cuMemcpyAsync", bytes);
    }
    void flag(int reader, std::uint32_t number, unsigned word = 0) {
        driver().check(
            driver().cuStreamWriteValue32_v2(stream_, words_.device_word(reader, word), number, 0),
            "cuStreamWriteValue32");
    }
    void store(int reader, std::uint32_t number) {
        std::atomic_ref(words_.word(reader, 0)).store(number, std::memory_order_release);
    }
    void await(unsigned word, std::uint32_t number) {
        const std::atomic_ref<std::uint32_t> shown(words_.word(side(), word));
        int looks = 0;
        while (static_cast<std::int32_t>(shown.load(std::memory_order_acquire) - number) < 0)
            if (++looks > kLooksBeforeYield) sched_yield();
    }

    // Of one launch; both sides reckon alike.
    static unsigned parts(const Buffer& buffer, int count) {
        const Bytes most = (count == 1 ? kWords - 1 : kEnoughBlocks) / static_cast<unsigned>(count);
        return static_cast<unsigned>(std::clamp<Bytes>(
            divide_up(buffer.message_bytes(), kBytesPerPart), 1, std::max<Bytes>(most, 1)));
    }
    static unsigned blocks(const Buffer& buffer, int count) {
        return static_cast<unsigned>(count) * parts(buffer, count);
    }
    void launch(const Buffer& from, int first, int count) {
        if (count <= static_cast<int>(kernels::kFewCopies))
            launch_as<kernels::CopyFew>(few_, from, first, count);
        else
            launch_as<kernels::CopyMany>(many_, from, first, count);
    }
    template <class Work>
    void launch_as(CUfunction kernel, const Buffer& from, int first, int count) {
        Work work{};
        for (int i = 0; i < count; ++i)
            work.copy[i] = {their_incoming_.at(offset(from, first + i)),
                            address_of(from.message(first + i)), from.message_bytes()};
        work.flags = words_.device_word(1 - side(), 0);
        work.sequence = sent_;
        work.parts = parts(from, count);
        work.copies = static_cast<unsigned>(count);
        void* parameters[] = {&work};
        driver().check(
            driver().cuLaunchKernel(kernel, blocks(from, count), 1, 1, kernels::kCopyThreads, 1, 1,
                                    0, stream_, parameters, nullptr),
            "cuLaunchKernel");
    }

    Bare kind_;
    bool device_here_, device_there_;
    Words words_;
    PeersDevice their_incoming_, their_outgoing_;
    CUstream stream_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction many_ = nullptr, few_ = nullptr;
    std::uint32_t sent_ = 0, received_ = 0, own_ = 0;
};

}  // namespace

std::vector<Bare> floors_of(const Options& options, const Plan& plan) {
    bool any_device = false;
    for (const Placement placement : options.placement) {
        if (placement == Placement::managed || placement == Placement::openacc) return {};
        any_device = any_device || placement == Placement::device;
    }
    if (!any_device || !driver().has_floors()) return {};
    if (without_ipc()) {
        const bool both = options.placement[0] == options.placement[1];
        return both ? std::vector<Bare>{Bare::two_copies} : std::vector<Bare>{};
    }
    std::vector<Bare> kinds = {Bare::put_and_flag, Bare::copy};
#ifdef GANTRY_BENCH_KERNELS
    const bool both = options.placement[0] == options.placement[1];
    if (both && plan.messages <= static_cast<int>(kernels::kCopiesPerLaunch))
        kinds.push_back(Bare::kernel);
#else
    (void)plan;
#endif
    return kinds;
}

std::unique_ptr<Way> bare_way(Bare kind, const Options& options, const Buffer& outgoing,
                              const Buffer& incoming) {
    return std::make_unique<BareWay>(kind, options, outgoing, incoming);
}

}  // namespace gantry::bench
