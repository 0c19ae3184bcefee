// SPDX-License-Identifier: BSD-3-Clause
#include "rma/layouts.hpp"

#include <cstring>

namespace gantry::rma {
namespace {

void append(std::string& text, std::uint64_t number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& text, const layout::Form& form) {
    append(text, form.parts.size());
    for (const layout::Part& part : form.parts) {
        append(text, static_cast<std::uint64_t>(part.offset));
        append(text, part.width);
        append(text, part.count);
        append(text, static_cast<std::uint64_t>(part.stride));
        append(text, std::uint64_t{part.inner != nullptr});
        if (part.inner != nullptr) append(text, *part.inner);
    }
}

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    bool good() const { return good_; }
    layout::FormPtr form() {
        layout::FormBuilder builder;
        for (std::uint64_t parts = number(); parts > 0 && good_; --parts) {
            layout::Part part;
            part.offset = static_cast<std::ptrdiff_t>(number());
            part.width = number();
            part.count = number();
            part.stride = static_cast<std::ptrdiff_t>(number());
            if (number() != 0) part.inner = form();
            if (!good_) return nullptr;
            if (part.inner != nullptr)
                builder.add(part.offset, part.inner, part.count, part.stride);
            else
                builder.add(part);
        }
        return builder.finish();
    }

  private:
    std::uint64_t number() {
        std::uint64_t value = 0;
        good_ = good_ && text_.size() >= sizeof value;
        if (!good_) return 0;
        std::memcpy(&value, text_.data(), sizeof value);
        text_.remove_prefix(sizeof value);
        return value;
    }
    std::string_view text_;
    bool good_ = true;
};

}  // namespace

std::string describe(const layout::Layout& layout) {
    std::string text;
    if (layout.form != nullptr) append(text, *layout.form);
    return text;
}

Result<layout::Layout> layout_from(std::string_view description, std::ptrdiff_t extent) {
    if (description.empty()) return layout::Layout(nullptr, extent);
    Reader reader(description);
    layout::FormPtr form = reader.form();
    if (!reader.good())
        return failure(MPI_ERR_INTERN, "a datatype of {} bytes of description is cut off",
                       description.size());
    return layout::Layout(std::move(form), extent);
}

ToldLayouts::Number ToldLayouts::number_of(const std::string& description, std::ptrdiff_t extent) {
    std::string key = description;
    append(key, static_cast<std::uint64_t>(extent));
    const auto [found, is_new] =
        numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers_.size() + 1));
    return {found->second, is_new};
}

Status HeardLayouts::hear(const wire::Layout& part, transport::ConstSpan bytes) {
    if (part.offset == 0) partial_.clear();
    partial_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (partial_.size() < part.size) return success();
    Result<layout::Layout> layout = layout_from(partial_, part.extent);
    GANTRY_TRY(layout.status());
    layouts_.insert_or_assign(part.layout, std::move(*layout));
    partial_.clear();
    return success();
}

const layout::Layout* HeardLayouts::find(std::uint32_t layout) const {
    const auto found = layouts_.find(layout);
    return found != layouts_.end() ? &found->second : nullptr;
}

}  // namespace gantry::rma
