// SPDX-License-Identifier: BSD-3-Clause
//
// A line of PMI-1, read by key: "cmd=put_result rc=0 msg=success". Fields are separated by blanks, keys
// end at the first '='. A word without '=' belongs to the value before it ("msg=not found").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::job {

class PmiLine {
  public:
    explicit PmiLine(std::string_view line);
    std::string_view command() const { return text("cmd"); }
    bool has(std::string_view key) const { return fields_.contains(key); }
    const std::map<std::string, std::string, std::less<>>& fields() const { return fields_; }
    std::string_view text(std::string_view key) const;
    std::optional<int> number(std::string_view key) const;
    // The launcher's verdict: rc is absent or 0.
    bool accepted() const { return number("rc").value_or(0) == 0; }

  private:
    std::map<std::string, std::string, std::less<>> fields_;
};

}  // namespace gantry::job
