// SPDX-License-Identifier: BSD-3-Clause
//
// Info objects (MPI 5.0 chapter 10).
#include "mpi/info/info.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <algorithm>
#include <cstdlib>

namespace gantry::mpi {
namespace {

Status check_key(const char* key) {
    const std::size_t length = strnlen(key, MPI_MAX_INFO_KEY + 1);
    if (length == 0) return failure(MPI_ERR_INFO_KEY, "the info key is empty");
    if (length >= MPI_MAX_INFO_KEY)
        return failure(MPI_ERR_INFO_KEY,
                       "the info key has more than MPI_MAX_INFO_KEY - 1 = {} characters",
                       MPI_MAX_INFO_KEY - 1);
    return success();
}

Status check_writable(const Info& info) {
    if (info.read_only)
        return failure(MPI_ERR_INFO,
                       "MPI_INFO_ENV cannot be changed; make a copy with MPI_Info_dup");
    return success();
}

}  // namespace

const std::string* value_of(const InfoPairs& pairs, std::string_view key) {
    for (const auto& [name, value] : pairs)
        if (name == key) return &value;
    return nullptr;
}

void set_pair(InfoPairs& pairs, std::string_view key, std::string_view value) {
    for (auto& [name, old] : pairs) {
        if (name == key) {
            old = value;
            return;
        }
    }
    pairs.emplace_back(key, value);
}

void take_hints(InfoPairs& hints, const InfoPairs& wished) {
    for (const auto& [key, value] : wished)
        if (key != kMemoryKindsKey) set_pair(hints, key, value);
}

MPI_Info make_info(InfoPairs pairs) {
    Info* info = create(process().infos);
    if (info == nullptr) return MPI_INFO_NULL;
    info->pairs = std::move(pairs);
    return info->handle;
}

Status info_create(MPI_Info* info) {
    *info = make_info({});
    if (*info == MPI_INFO_NULL) return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status info_create_env(int, char**, MPI_Info* info) {
    *info = make_info(process().environment->pairs);
    if (*info == MPI_INFO_NULL) return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status info_dup(Info& info, MPI_Info* newinfo) {
    *newinfo = make_info(info.pairs);
    if (*newinfo == MPI_INFO_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status info_free(MPI_Info* info) {
    Info* object = find(*info);
    if (object->predefined)
        return failure(MPI_ERR_INFO, "MPI_INFO_ENV is predefined and cannot be freed");
    process().infos.destroy(object);
    *info = MPI_INFO_NULL;
    return success();
}

Status info_set(Info& info, const char* key, const char* value) {
    GANTRY_TRY(check_writable(info));
    GANTRY_TRY(check_key(key));
    if (strnlen(value, MPI_MAX_INFO_VAL + 1) >= MPI_MAX_INFO_VAL)
        return failure(
            MPI_ERR_INFO_VALUE,
            "the value for info key {} has more than MPI_MAX_INFO_VAL - 1 = {} characters", key,
            MPI_MAX_INFO_VAL - 1);
    set_pair(info.pairs, key, value);
    return success();
}

Status info_delete(Info& info, const char* key) {
    GANTRY_TRY(check_writable(info));
    GANTRY_TRY(check_key(key));
    if (std::erase_if(info.pairs, [key](const auto& pair) { return pair.first == key; }) == 0)
        return failure(MPI_ERR_INFO_NOKEY, "info key {} is not set", key);
    return success();
}

Status info_get_nkeys(Info& info, int* nkeys) {
    *nkeys = static_cast<int>(info.pairs.size());
    return success();
}

Status info_get_nthkey(Info& info, int n, char* key) {
    if (n < 0 || static_cast<std::size_t>(n) >= info.pairs.size())
        return failure(MPI_ERR_ARG,
                       "key number {} of an info object with {} keys (numbers start at 0)", n,
                       info.pairs.size());
    copy_text(info.pairs[static_cast<std::size_t>(n)].first, key, MPI_MAX_INFO_KEY);
    return success();
}

Status info_get_string(Info& info, const char* key, int* buflen, char* value, int* flag) {
    GANTRY_TRY(check_key(key));
    const std::string* found = value_of(info.pairs, key);
    *flag = found != nullptr;
    if (found == nullptr) return success();
    // The length includes the terminating zero, and a length of zero only asks for it.
    if (*buflen > 0 && value == nullptr)
        return failure(MPI_ERR_ARG, "argument value is a null pointer, but buflen is {}", *buflen);
    if (*buflen > 0) copy_text(*found, value, static_cast<std::size_t>(*buflen));
    *buflen = static_cast<int>(found->size()) + 1;
    return success();
}

Status info_get(Info& info, const char* key, int valuelen, char* value, int* flag) {
    GANTRY_TRY(check_key(key));
    if (valuelen < 0) return failure(MPI_ERR_ARG, "a value length of {} is negative", valuelen);
    const std::string* found = value_of(info.pairs, key);
    *flag = found != nullptr;
    // The deprecated form's length is without the zero.
    if (found != nullptr) copy_text(*found, value, static_cast<std::size_t>(valuelen) + 1);
    return success();
}

Status info_get_valuelen(Info& info, const char* key, int* valuelen, int* flag) {
    GANTRY_TRY(check_key(key));
    const std::string* found = value_of(info.pairs, key);
    *flag = found != nullptr;
    if (found != nullptr) *valuelen = static_cast<int>(found->size());
    return success();
}

}  // namespace gantry::mpi
