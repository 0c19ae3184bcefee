// SPDX-License-Identifier: BSD-3-Clause
#include "layout/external32.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gantry::layout {
namespace {

static_assert(std::endian::native == std::endian::little);
__extension__ using Float128 = __float128;

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <class T>
void store(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

// The low `bytes` of a little-endian item, the highest first.
void reverse(const std::byte* from, std::byte* to, Bytes bytes) {
    std::reverse_copy(from, from + bytes, to);
}

// The extended value of what `bytes` hold, sign and all.
std::int64_t extend(std::uint64_t value, Bytes bytes, bool is_signed) {
    const auto unused = static_cast<int>(64 - 8 * bytes);
    const std::uint64_t shifted = value << unused;
    return is_signed ? static_cast<std::int64_t>(shifted) >> unused
                     : static_cast<std::int64_t>(shifted >> unused);
}

bool narrow(const ExternalItem& item, const std::byte* native, std::byte* external) {
    std::uint64_t value = 0;
    std::memcpy(&value, native, item.native);
    const bool is_signed = item.form == ExternalForm::integer;
    if (extend(value, item.external, is_signed) != extend(value, item.native, is_signed))
        return false;
    reverse(native, external, item.external);
    return true;
}

void widen(const ExternalItem& item, const std::byte* external, std::byte* native) {
    std::uint64_t value = 0;
    reverse(external, reinterpret_cast<std::byte*>(&value), item.external);
    const std::int64_t whole = extend(value, item.external, item.form == ExternalForm::integer);
    std::memcpy(native, &whole, item.native);
}

bool write(const ExternalItem& item, const std::byte* native, std::byte* external) {
    switch (item.form) {
        case ExternalForm::reversed: reverse(native, external, item.native); return true;
        case ExternalForm::integer:
        case ExternalForm::natural: return narrow(item, native, external);
        case ExternalForm::extended: {
            std::byte quadruple[sizeof(Float128)];
            store(quadruple, static_cast<Float128>(load<long double>(native)));
            reverse(quadruple, external, sizeof quadruple);
            return true;
        }
    }
    return true;
}

void read(const ExternalItem& item, const std::byte* external, std::byte* native) {
    switch (item.form) {
        case ExternalForm::reversed: reverse(external, native, item.native); return;
        case ExternalForm::integer:
        case ExternalForm::natural: widen(item, external, native); return;
        case ExternalForm::extended: {
            std::byte quadruple[sizeof(Float128)];
            reverse(external, quadruple, sizeof quadruple);
            store(native, static_cast<long double>(load<Float128>(quadruple)));
            return;
        }
    }
}

}  // namespace

bool to_external32(const ExternalItem& item, const std::byte* native, std::byte* external) {
    for (Bytes i = 0; i < item.count; ++i)
        if (!write(item, native + i * item.native, external + i * item.external)) return false;
    return true;
}

void from_external32(const ExternalItem& item, const std::byte* external, std::byte* native) {
    for (Bytes i = 0; i < item.count; ++i)
        read(item, external + i * item.external, native + i * item.native);
}

}  // namespace gantry::layout
