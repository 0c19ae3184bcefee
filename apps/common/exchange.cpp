// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include "mistake.hpp"
#include "mover.hpp"

#include <algorithm>
#include <utility>

namespace gantry::apps {

class Exchange::Wrap {
  public:
    Wrap(const Fields& fields, const std::vector<Piece>& group)
        : mover_(fields.machine(), fields.element(), moves(fields, group)) {}
    void run() { mover_.run(); }

  private:
    static std::vector<Move> moves(const Fields& fields, const std::vector<Piece>& group) {
        std::vector<Move> all;
        for (const Piece& piece : group)
            all.push_back(wrap_move(fields, piece));
        return all;
    }
    Mover mover_;
};

Exchange::Exchange(const ExchangeSetting& setting, const Pattern& pattern)
    : setting_(setting),
      messages_(pattern.messages),
      bytes_sent_(pattern.values_sent() * static_cast<Whole>(setting.fields.element())),
      messages_sent_(pattern.messages_sent()) {
    for (const std::vector<Piece>& group : pattern.local)
        wraps_.push_back(std::make_shared<Wrap>(setting.fields, group));
}

void Exchange::begin() {
    machine().wait(Stream::edge);
    setting_.watch.lap(Part::compute);
    for (const std::shared_ptr<Wrap>& wrap : wraps_)
        wrap->run();
    if (!wraps_.empty() && !messages_.empty()) machine().wait(Stream::edge);
    setting_.watch.lap(Part::pack);
    if (!messages_.empty()) send();
}

void Exchange::end() {
    setting_.watch.lap(Part::compute);
    if (!messages_.empty()) receive();
}

namespace {

struct Variant {
    const char* name;
    const char* number;
};
constexpr Variant kVariants[] = {{"copies", "V0"},      {"staged", "V1"},    {"pipelined", "V2"},
                                 {"packed", "V3"},      {"datatypes", "V4"}, {"neighbours", "V5"},
                                 {"fence", "V6"},       {"pscw", "V6p"},     {"persistent", "V7"},
                                 {"partitioned", "V7p"}};
const std::string kOpenAcc = "openacc";

}  // namespace

const std::vector<std::string>& exchange_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Variant& variant : kVariants)
            all.emplace_back(variant.name);
        return all;
    }();
    return names;
}

std::string exchange_name(const std::string& words) {
    std::string known;
    for (const Variant& variant : kVariants) {
        if (words == variant.name || words == variant.number) return variant.name;
        known +=
            std::string(known.empty() ? "" : ", ") + variant.name + " (" + variant.number + ")";
    }
    if (words == kOpenAcc) return words;
    throw Mistake("--exchange " + words + " is none of: all, " + known + ", openacc");
}

bool needs_window(const std::string& name) {
    return name == "fence" || name == "pscw";
}

std::unique_ptr<Exchange> make_exchange(const std::string& name, const ExchangeSetting& setting,
                                        const Pattern& pattern) {
    if (name == "copies") return make_copies(setting, pattern);
    if (name == "staged") return make_packed(setting, pattern, Path::staged);
    if (name == "pipelined") return make_packed(setting, pattern, Path::pipelined);
    if (name == "packed") return make_packed(setting, pattern, Path::packed);
    if (name == "partitioned") return make_packed(setting, pattern, Path::partitioned);
    if (name == kOpenAcc) return make_packed(setting, pattern, Path::openacc);
    if (name == "datatypes") return make_typed(setting, pattern, Calls::messages);
    if (name == "neighbours") return make_typed(setting, pattern, Calls::neighbours);
    if (name == "persistent") return make_typed(setting, pattern, Calls::persistent);
    if (!setting.fields.one_allocation())
        throw Mistake("--exchange " + name + " needs --allocation slab: a window is over one");
    return make_windowed(setting, pattern, name == "fence" ? Epochs::fence : Epochs::pscw);
}

}  // namespace gantry::apps
