// SPDX-License-Identifier: BSD-3-Clause
//
// The program packs, by one launch for all messages, and MPI gets contiguous memory: the device's
// (packed, partitioned) or the host's, copied whole (staged) or in chunks (pipelined).
//
// openacc: packed, and the memory is acc_malloc's.
//
//   pipelined:  copy 0 | copy 1 | copy 2 |          a chunk is sent when its mark says that
//                      | send 0 | send 1 | send 2   its copy has ended; what comes is copied at once
#include "exchange.hpp"
#include "mover.hpp"
#include "openacc.hpp"

#include <algorithm>

namespace gantry::apps {
namespace {

constexpr std::size_t kAlignment = 512;

class Packed final : public Exchange {
  public:
    Packed(const ExchangeSetting& setting, const Pattern& pattern, Path path)
        : Exchange(setting, pattern), path_(path) {
        for (const Message& message : messages_) {
            const Whole values =
                path == Path::partitioned
                    ? partition(message) * static_cast<Whole>(message.pieces.size())
                    : values_of(message);
            const std::size_t bytes = static_cast<std::size_t>(values) * setting.fields.element();
            offset_.push_back(bytes_);
            size_.push_back(bytes);
            bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
        }
        if (path == Path::openacc) {
            acc_out_ = std::make_unique<OpenAccBuffer>(machine(), bytes_);
            acc_in_ = std::make_unique<OpenAccBuffer>(machine(), bytes_);
        }
        out_ = acc_out_ != nullptr ? acc_out_->memory() : allocate();
        in_ = acc_in_ != nullptr ? acc_in_->memory() : allocate();
        if (on_host()) {
            host_out_ = static_cast<std::byte*>(machine().allocate_host(bytes_));
            host_in_ = static_cast<std::byte*>(machine().allocate_host(bytes_));
        }
        std::vector<Move> pack, unpack;
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            std::size_t at = offset_[m];
            for (const Piece& piece : messages_[m].pieces) {
                if (messages_[m].to != MPI_PROC_NULL)
                    pack.push_back(pack_move(setting.fields, piece, out_ + at));
                if (messages_[m].from != MPI_PROC_NULL)
                    unpack.push_back(unpack_move(setting.fields, piece, in_ + at));
                at += static_cast<std::size_t>(path == Path::partitioned ? partition(messages_[m])
                                                                         : values_of(piece.from)) *
                      setting.fields.element();
            }
        }
        pack_ = std::make_unique<Mover>(machine(), setting.fields.element(), std::move(pack));
        unpack_ = std::make_unique<Mover>(machine(), setting.fields.element(), std::move(unpack));
        if (path == Path::partitioned) make_partitions();
        if (path == Path::pipelined) cut();
    }
    ~Packed() override {
        if (path_ == Path::partitioned)
            for (MPI_Request& request : requests_)
                MPI_Request_free(&request);
        if (path_ != Path::openacc) {
            machine().release(out_);
            machine().release(in_);
        }
        if (on_host()) {
            machine().release_host(host_out_);
            machine().release_host(host_in_);
        }
    }

  private:
    struct Chunk {
        std::size_t message, offset, bytes;
    };
    struct PartitionedSend {
        std::size_t request;
        int partitions;
    };

    bool on_host() const { return path_ == Path::staged || path_ == Path::pipelined; }
    std::byte* allocate() { return static_cast<std::byte*>(machine().allocate(bytes_)); }
    // Of partitions.
    std::byte* sent(std::size_t m) const { return out_ + offset_[m]; }
    std::byte* received(std::size_t m) const { return in_ + offset_[m]; }

    // Partitions have one size: the largest piece's.
    static Whole partition(const Message& message) {
        Whole most = 0;
        for (const Piece& piece : message.pieces)
            most = std::max(most, values_of(piece.from));
        return most;
    }

    // None for MPI_PROC_NULL: MPICH 5.0.2 crashes when such a one is marked ready.
    void make_partitions() {
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            const Message& message = messages_[m];
            const int partitions = static_cast<int>(message.pieces.size());
            const int each = static_cast<int>(partition(message));
            if (message.from != MPI_PROC_NULL)
                MPI_Precv_init(received(m), partitions, each, setting_.fields.type(), message.from,
                               message.tag, setting_.comm, MPI_INFO_NULL,
                               &requests_.emplace_back());
            if (message.to == MPI_PROC_NULL) continue;
            MPI_Psend_init(sent(m), partitions, each, setting_.fields.type(), message.to,
                           message.tag, setting_.comm, MPI_INFO_NULL, &requests_.emplace_back());
            partitioned_sends_.push_back({requests_.size() - 1, partitions});
        }
    }

    void cut() {
        const std::size_t most =
            std::max(setting_.chunk_bytes / setting_.fields.element(), std::size_t{1}) *
            setting_.fields.element();
        for (std::size_t m = 0; m < messages_.size(); ++m)
            for (std::size_t at = 0; at < size_[m]; at += most) {
                chunks_.push_back({m, at, std::min(most, size_[m] - at)});
                marks_.emplace_back(machine());
            }
    }

    void pack() {
        pack_->run();
        machine().wait(Stream::edge);
        setting_.watch.lap(Part::pack);
    }

    void send() override {
        pack();
        if (path_ == Path::pipelined) return send_chunks();
        if (path_ == Path::staged) {
            for (std::size_t m = 0; m < messages_.size(); ++m)
                machine().start_download(host_out_ + offset_[m], out_ + offset_[m], size_[m]);
            machine().wait(Stream::edge);
            setting_.watch.lap(Part::to_host);
        }
        if (path_ == Path::partitioned) {
            MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
            for (const PartitionedSend& one : partitioned_sends_)
                MPI_Pready_range(0, one.partitions - 1, requests_[one.request]);
        } else if (path_ == Path::openacc) {
            acc_out_->inside_host_data([this](std::byte* out) {
                acc_in_->inside_host_data([this, out](std::byte* in) { start_messages(out, in); });
            });
        } else {
            start_messages(on_host() ? host_out_ : out_, on_host() ? host_in_ : in_);
        }
        setting_.watch.lap(Part::network);
    }

    void start_messages(std::byte* out, std::byte* in) {
        requests_.clear();
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            const Message& message = messages_[m];
            const int count = static_cast<int>(values_of(message));
            MPI_Irecv(in + offset_[m], count, setting_.fields.type(), message.from, message.tag,
                      setting_.comm, &requests_.emplace_back());
            MPI_Isend(out + offset_[m], count, setting_.fields.type(), message.to, message.tag,
                      setting_.comm, &requests_.emplace_back());
        }
    }

    void receive() override {
        if (path_ == Path::pipelined) {
            take_chunks(Until::all);
        } else {
            MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        }
        setting_.watch.lap(Part::network);
        if (path_ == Path::staged)
            for (std::size_t m = 0; m < messages_.size(); ++m)
                machine().start_upload(in_ + offset_[m], host_in_ + offset_[m], size_[m]);
        if (on_host()) {
            machine().wait(Stream::edge);
            setting_.watch.lap(Part::to_device);
        }
        unpack_->run();
        machine().wait(Stream::edge);
        setting_.watch.lap(Part::unpack);
    }

    // --- chunks ---
    enum class Until { now, all };

    void send_chunks() {
        requests_.clear();
        sends_.clear();
        left_ = chunks_.size();
        for (const Chunk& chunk : chunks_) {
            const Message& message = messages_[chunk.message];
            MPI_Irecv(host_in_ + offset_[chunk.message] + chunk.offset,
                      static_cast<int>(chunk.bytes), MPI_BYTE, message.from, message.tag,
                      setting_.comm, &requests_.emplace_back());
        }
        for (std::size_t c = 0; c < chunks_.size(); ++c) {
            const std::size_t at = offset_[chunks_[c].message] + chunks_[c].offset;
            machine().start_download(host_out_ + at, out_ + at, chunks_[c].bytes);
            marks_[c].record();
        }
        for (std::size_t c = 0; c < chunks_.size(); ++c) {
            while (!marks_[c].done())
                take_chunks(Until::now);
            const Chunk& chunk = chunks_[c];
            const Message& message = messages_[chunk.message];
            MPI_Isend(host_out_ + offset_[chunk.message] + chunk.offset,
                      static_cast<int>(chunk.bytes), MPI_BYTE, message.to, message.tag,
                      setting_.comm, &sends_.emplace_back());
        }
        setting_.watch.lap(Part::network);
    }

    void take_chunks(Until until) {
        std::vector<int> which(chunks_.size());
        while (left_ > 0) {
            int some = 0;
            if (until == Until::now)
                MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &some,
                             which.data(), MPI_STATUSES_IGNORE);
            else
                MPI_Waitsome(static_cast<int>(requests_.size()), requests_.data(), &some,
                             which.data(), MPI_STATUSES_IGNORE);
            if (some == MPI_UNDEFINED) break;
            for (int i = 0; i < some; ++i) {
                const Chunk& chunk =
                    chunks_[static_cast<std::size_t>(which[static_cast<std::size_t>(i)])];
                const std::size_t at = offset_[chunk.message] + chunk.offset;
                machine().start_upload(in_ + at, host_in_ + at, chunk.bytes);
            }
            left_ -= static_cast<std::size_t>(some);
            if (until == Until::now) return;
        }
        if (until == Until::all)
            MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
    }

    Path path_;
    std::size_t bytes_ = 0;
    std::vector<std::size_t> offset_, size_;
    std::byte *out_ = nullptr, *in_ = nullptr, *host_out_ = nullptr, *host_in_ = nullptr;
    std::unique_ptr<OpenAccBuffer> acc_out_, acc_in_;
    std::unique_ptr<Mover> pack_, unpack_;
    std::vector<MPI_Request> requests_, sends_;
    std::vector<PartitionedSend> partitioned_sends_;
    std::vector<Chunk> chunks_;
    std::vector<Machine::Mark> marks_;
    std::size_t left_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_packed(const ExchangeSetting& setting, const Pattern& pattern,
                                      Path path) {
    return std::make_unique<Packed>(setting, pattern, path);
}

}  // namespace gantry::apps
