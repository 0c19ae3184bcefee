// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of halos, in as many variants as programs write it. All move the same bytes between the
// same places; a program chooses by name and calls begin() and end().
//
//   name          on the way                                                            who packs
//   copies        strided copies to the host, Isend of host memory, strided copies back    copy engine
//   staged        pack kernel, one copy to the host a message, Isend, copy, unpack kernel  program
//   pipelined     the same in chunks: a chunk is sent when its copy has ended              program
//   packed        pack kernel, Isend of device memory, unpack kernel                       program
//   datatypes     Isend and Irecv of the fields, with derived datatypes                    library
//   neighbours    MPI_Neighbor_alltoallw on a graph of the neighbours, the same datatypes  library
//   fence, pscw   MPI_Put into a window over the neighbour's fields                        library
//   persistent    the requests of `datatypes`, made once                                   library
//   partitioned   Psend_init of what the pack kernel wrote, a partition a piece            program
//   openacc       packed, in memory of acc_malloc, given to MPI in host_data use_device    program
#pragma once

#include "fields.hpp"
#include "pattern.hpp"
#include "stopwatch.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gantry::apps {

struct ExchangeSetting {
    MPI_Comm comm;
    Fields& fields;
    Stopwatch& watch;
    std::size_t chunk_bytes = 256 * 1024;
    MPI_Win window = MPI_WIN_NULL;  // over the slab; for fence and pscw
};

class Exchange {
  public:
    Exchange(const ExchangeSetting& setting, const Pattern& pattern);
    virtual ~Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // What the edge's stream was given is waited for, then sent. Until end() nobody may write what is
    // sent nor touch what is received.
    void begin();
    // What was received is in place for whatever the streams are given next.
    void end();

    Whole bytes_sent() const { return bytes_sent_; }
    int messages_sent() const { return messages_sent_; }

  protected:
    virtual void send() = 0;
    virtual void receive() = 0;
    Machine& machine() const { return setting_.fields.machine(); }

    ExchangeSetting setting_;
    std::vector<Message> messages_;

  private:
    class Wrap;
    std::vector<std::shared_ptr<Wrap>> wraps_;
    Whole bytes_sent_;
    int messages_sent_;
};

// The names above but openacc, which not every build has; V0 to V7 are understood, too.
const std::vector<std::string>& exchange_names();
// The name of what `words` means, or a Mistake that lists the names.
std::string exchange_name(const std::string& words);
bool needs_window(const std::string& name);
std::unique_ptr<Exchange> make_exchange(const std::string& name, const ExchangeSetting& setting,
                                        const Pattern& pattern);

// One file a family of variants.
std::unique_ptr<Exchange> make_copies(const ExchangeSetting&, const Pattern&);
enum class Path { staged, pipelined, packed, partitioned, openacc };
std::unique_ptr<Exchange> make_packed(const ExchangeSetting&, const Pattern&, Path path);
enum class Calls { messages, persistent, neighbours };
std::unique_ptr<Exchange> make_typed(const ExchangeSetting&, const Pattern&, Calls calls);
enum class Epochs { fence, pscw };
std::unique_ptr<Exchange> make_windowed(const ExchangeSetting&, const Pattern&, Epochs epochs);

}  // namespace gantry::apps
