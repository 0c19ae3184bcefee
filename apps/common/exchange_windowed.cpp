// SPDX-License-Identifier: BSD-3-Clause
//
// A window over the fields: each rank puts its cells where its neighbours need them. All blocks have one
// layout, so the types of this rank's fields say where the target's cells are, too.
#include "exchange.hpp"
#include "piece_types.hpp"

#include <algorithm>

namespace gantry::apps {
namespace {

class Windowed final : public Exchange {
  public:
    Windowed(const ExchangeSetting& setting, const Pattern& pattern, Epochs epochs)
        : Exchange(setting, pattern), epochs_(epochs) {
        std::vector<int> targets, origins;
        for (const Message& message : messages_) {
            sent_.emplace_back(setting.fields, message, End::sender);
            received_.emplace_back(setting.fields, message, End::receiver);
            if (message.to != MPI_PROC_NULL) targets.push_back(message.to);
            if (message.from != MPI_PROC_NULL) origins.push_back(message.from);
        }
        if (epochs == Epochs::pscw) {
            targets_ = group_of(std::move(targets));
            origins_ = group_of(std::move(origins));
        }
    }
    ~Windowed() override {
        for (MPI_Group* group : {&targets_, &origins_})
            if (*group != MPI_GROUP_NULL) MPI_Group_free(group);
    }

  private:
    MPI_Group group_of(std::vector<int> ranks) const {
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
        MPI_Group all, some;
        MPI_Comm_group(setting_.comm, &all);
        MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
        MPI_Group_free(&all);
        return some;
    }

    void send() override {
        if (epochs_ == Epochs::fence) {
            MPI_Win_fence(MPI_MODE_NOPRECEDE, setting_.window);
        } else {
            MPI_Win_post(origins_, 0, setting_.window);
            MPI_Win_start(targets_, 0, setting_.window);
        }
        for (std::size_t m = 0; m < messages_.size(); ++m)
            if (messages_[m].to != MPI_PROC_NULL)
                MPI_Put(setting_.fields.base(), 1, sent_[m].get(), messages_[m].to, 0, 1,
                        received_[m].get(), setting_.window);
        setting_.watch.lap(Part::network);
    }

    void receive() override {
        if (epochs_ == Epochs::fence) {
            MPI_Win_fence(MPI_MODE_NOSUCCEED, setting_.window);
        } else {
            MPI_Win_complete(setting_.window);
            MPI_Win_wait(setting_.window);
        }
        setting_.watch.lap(Part::network);
    }

    Epochs epochs_;
    std::vector<PieceType> sent_, received_;
    MPI_Group targets_ = MPI_GROUP_NULL, origins_ = MPI_GROUP_NULL;
};

}  // namespace

std::unique_ptr<Exchange> make_windowed(const ExchangeSetting& setting, const Pattern& pattern,
                                        Epochs epochs) {
    return std::make_unique<Windowed>(setting, pattern, epochs);
}

}  // namespace gantry::apps
