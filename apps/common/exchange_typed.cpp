// SPDX-License-Identifier: BSD-3-Clause
//
// MPI is given the fields and datatypes that say which cells: by messages, by requests made once, or by
// one neighbourhood collective. Nothing is packed here.
#include "exchange.hpp"
#include "piece_types.hpp"

namespace gantry::apps {
namespace {

class Typed final : public Exchange {
  public:
    Typed(const ExchangeSetting& setting, const Pattern& pattern, Calls calls)
        : Exchange(setting, pattern), calls_(calls) {
        for (const Message& message : messages_) {
            sent_.emplace_back(setting.fields, message, End::sender);
            received_.emplace_back(setting.fields, message, End::receiver);
        }
        if (calls == Calls::neighbours) make_graph();
        if (calls == Calls::persistent) start(&MPI_Recv_init, &MPI_Send_init);
    }
    ~Typed() override {
        if (calls_ == Calls::persistent)
            for (MPI_Request& request : requests_)
                MPI_Request_free(&request);
        if (graph_ != MPI_COMM_NULL) MPI_Comm_free(&graph_);
    }

  private:
    // Two ways may lead to one rank: the k-th edge to it is its k-th edge from here, and both sides
    // list the ways in one order.
    void make_graph() {
        std::vector<int> to, from;
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            if (messages_[m].to != MPI_PROC_NULL) {
                to.push_back(messages_[m].to);
                send_types_.push_back(sent_[m].get());
            }
            if (messages_[m].from != MPI_PROC_NULL) {
                from.push_back(messages_[m].from);
                receive_types_.push_back(received_[m].get());
            }
        }
        MPI_Dist_graph_create_adjacent(setting_.comm, static_cast<int>(from.size()), from.data(),
                                       MPI_UNWEIGHTED, static_cast<int>(to.size()), to.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
        ones_.assign(std::max(to.size(), from.size()), 1);
        zeros_.assign(ones_.size(), 0);
    }

    template <class Receive, class Send>
    void start(Receive post_receive, Send post_send) {
        requests_.clear();
        void* base = setting_.fields.base();
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            const Message& message = messages_[m];
            post_receive(base, 1, received_[m].get(), message.from, message.tag, setting_.comm,
                         &requests_.emplace_back());
            post_send(base, 1, sent_[m].get(), message.to, message.tag, setting_.comm,
                      &requests_.emplace_back());
        }
    }

    void send() override {
        void* base = setting_.fields.base();
        switch (calls_) {
            case Calls::messages: start(&MPI_Irecv, &MPI_Isend); break;
            case Calls::persistent:
                MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
                break;
            case Calls::neighbours:
                requests_.resize(1);
                MPI_Ineighbor_alltoallw(base, ones_.data(), zeros_.data(), send_types_.data(), base,
                                        ones_.data(), zeros_.data(), receive_types_.data(), graph_,
                                        requests_.data());
                break;
        }
        setting_.watch.lap(Part::network);
    }

    void receive() override {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        setting_.watch.lap(Part::network);
    }

    Calls calls_;
    std::vector<PieceType> sent_, received_;
    std::vector<MPI_Request> requests_;
    MPI_Comm graph_ = MPI_COMM_NULL;
    std::vector<MPI_Datatype> send_types_, receive_types_;
    std::vector<int> ones_;
    std::vector<MPI_Aint> zeros_;
};

}  // namespace

std::unique_ptr<Exchange> make_typed(const ExchangeSetting& setting, const Pattern& pattern,
                                     Calls calls) {
    return std::make_unique<Typed>(setting, pattern, calls);
}

}  // namespace gantry::apps
