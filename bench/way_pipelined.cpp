// SPDX-License-Identifier: BSD-3-Clause
//
// By hand, the expert's way: the message goes in blocks; all device-to-host copies are queued at
// once on a stream, each block is sent when its event has fired, all receives are posted ahead, and
// each block that arrives is copied to the device asynchronously.
// Rows are packed and unpacked on the device, block by block, by strided copies in front of and behind
// those: the hand-written pipeline of the original system's slides.
#include "job.hpp"
#include "row_copies.hpp"
#include "way.hpp"

#include <algorithm>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 3;

class PipelinedWay final : public Way {
  public:
    PipelinedWay(Bytes message_bytes, int messages, Bytes block, Rows rows)
        : bytes_(message_bytes),
          block_(whole_rows(block, rows)),
          blocks_(static_cast<int>(std::max<Bytes>(1, divide_up(message_bytes, block_)))),
          outgoing_(message_bytes * static_cast<Bytes>(messages), true),
          incoming_(message_bytes * static_cast<Bytes>(messages), true) {
        if (rows.any()) {
            packed_ = std::make_unique<Buffer>(Placement::device, message_bytes, messages);
            unpacked_ = std::make_unique<Buffer>(Placement::device, message_bytes, messages);
        }
        if (!driver().started()) return;
        driver().check(driver().cuStreamCreate(&out_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        driver().check(driver().cuStreamCreate(&in_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        events_.resize(static_cast<std::size_t>(blocks_ * messages));
        for (CUevent& event : events_)
            driver().check(driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
                           "cuEventCreate");
    }
    ~PipelinedWay() override {
        for (CUevent event : events_)
            driver().cuEventDestroy_v2(event);
        if (out_ != nullptr) driver().cuStreamDestroy_v2(out_);
        if (in_ != nullptr) driver().cuStreamDestroy_v2(in_);
    }

    std::string name() const override { return "user-pipelined"; }

    void send(const Buffer& from) override {
        send_blocks(from, 0, from.messages());
        finish_sends();
    }
    void receive(const Buffer& into) override {
        post_blocks(into, 0, into.messages());
        finish_blocks(into, 0, into.messages());
    }
    void exchange(const Buffer& from, const Buffer& into) override {
        post_blocks(into, 0, into.messages());
        send_blocks(from, 0, from.messages());
        finish_blocks(into, 0, into.messages());
        finish_sends();
    }
    void send_one(const Buffer& from, int message) override {
        send_blocks(from, message, message + 1);
        finish_sends();
    }
    void receive_one(const Buffer& into, int message) override {
        post_blocks(into, message, message + 1);
        finish_blocks(into, message, message + 1);
    }

  private:
    static Bytes whole_rows(Bytes block, const Rows& rows) {
        if (!rows.any()) return std::max<Bytes>(1, block);
        return std::max<Bytes>(1, block / rows.block) * rows.block;
    }
    Bytes offset(int block) const { return static_cast<Bytes>(block) * block_; }
    Bytes length(int block) const { return std::min(block_, bytes_ - offset(block)); }
    std::byte* host(const HostMemory& memory, int message, int block) const {
        return memory.data() + bytes_ * static_cast<Bytes>(message) + offset(block);
    }
    CUevent event(int message, int block) const {
        return events_[static_cast<std::size_t>(message * blocks_ + block)];
    }

    void send_blocks(const Buffer& from, int begin, int end) {
        if (from.on_device())
            for (int message = begin; message < end; ++message)
                for (int block = 0; block < blocks_; ++block) {
                    const CUdeviceptr source = packed_source(from, message, block);
                    driver().check(driver().cuMemcpyDtoHAsync_v2(host(outgoing_, message, block),
                                                                 source, length(block), out_),
                                   "cuMemcpyDtoHAsync", length(block));
                    driver().check(driver().cuEventRecord(event(message, block), out_),
                                   "cuEventRecord");
                }
        for (int message = begin; message < end; ++message)
            for (int block = 0; block < blocks_; ++block) {
                std::byte* source = static_cast<std::byte*>(from.message(message)) + offset(block);
                if (from.on_device()) {
                    wait_for(event(message, block));
                    source = host(outgoing_, message, block);
                }
                MPI_Isend(source, static_cast<int>(length(block)), MPI_BYTE, peer(), kTag,
                          MPI_COMM_WORLD, &sends_.emplace_back());
            }
    }
    // Where a block lies in one piece, once what is queued on the stream has run.
    CUdeviceptr packed_source(const Buffer& from, int message, int block) const {
        if (packed_ == nullptr) return address_of(from.message(message)) + offset(block);
        const CUdeviceptr packed = address_of(packed_->message(message)) + offset(block);
        pack_on_device(packed, from, {message, offset(block), length(block)}, out_);
        return packed;
    }
    // The sends under way need this process: a program that slept until the next copy has ended
    // would only start them then.
    void wait_for(CUevent copied) {
        CUresult state = CUDA_SUCCESS;
        while ((state = driver().cuEventQuery(copied)) == CUDA_ERROR_NOT_READY) {
            int all = 0;
            MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all, MPI_STATUSES_IGNORE);
        }
        driver().check(state, "cuEventQuery");
    }
    void finish_sends() {
        MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
        sends_.clear();
    }
    void post_blocks(const Buffer& into, int begin, int end) {
        for (int message = begin; message < end; ++message)
            for (int block = 0; block < blocks_; ++block) {
                std::byte* place =
                    into.on_device()
                        ? host(incoming_, message, block)
                        : static_cast<std::byte*>(into.message(message)) + offset(block);
                MPI_Irecv(place, static_cast<int>(length(block)), MPI_BYTE, peer(), kTag,
                          MPI_COMM_WORLD, &receives_.emplace_back());
            }
    }
    void finish_blocks(const Buffer& into, int begin, int end) {
        std::size_t next = 0;
        for (int message = begin; message < end; ++message)
            for (int block = 0; block < blocks_; ++block) {
                MPI_Wait(&receives_[next++], MPI_STATUS_IGNORE);
                if (!into.on_device()) continue;
                const Buffer& target = unpacked_ != nullptr ? *unpacked_ : into;
                const CUdeviceptr place = address_of(target.message(message)) + offset(block);
                driver().check(driver().cuMemcpyHtoDAsync_v2(place, host(incoming_, message, block),
                                                             length(block), in_),
                               "cuMemcpyHtoDAsync", length(block));
                if (unpacked_ != nullptr)
                    unpack_on_device(into, {message, offset(block), length(block)}, place, in_);
            }
        if (into.on_device())
            driver().check(driver().cuStreamSynchronize(in_), "cuStreamSynchronize");
        receives_.clear();
    }

    Bytes bytes_, block_;
    int blocks_;
    HostMemory outgoing_, incoming_;
    std::unique_ptr<Buffer> packed_, unpacked_;  // of rows, on the device
    CUstream out_ = nullptr, in_ = nullptr;
    std::vector<CUevent> events_;
    std::vector<MPI_Request> sends_, receives_;
};

}  // namespace

std::unique_ptr<Way> pipelined_way(Bytes message_bytes, int messages, Bytes block, Rows rows) {
    return std::make_unique<PipelinedWay>(message_bytes, messages, block, rows);
}

}  // namespace gantry::bench
