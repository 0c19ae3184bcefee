// SPDX-License-Identifier: BSD-3-Clause
//
// A libpmix.so.2 for tests: rank 1 of two, a store in this process, and fences that open when the
// test says so, from a thread of its own as in the real library. The functions stub_* are the
// test's side of it.
#include "job/pmix_abi.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace gantry::job::pmix;

std::mutex mutex;
std::map<std::pair<std::uint32_t, std::string>, std::string> bytes, staged;
std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> numbers;
std::map<std::pair<std::uint32_t, std::string>, std::string> texts;
FenceDone waiting = nullptr;
void* waiting_data = nullptr;
int fences = 0;
int abort_code = -1;
std::string abort_text;

constexpr Code kNotFound = -46;

}  // namespace

extern "C" {

void stub_forget() {
    const std::lock_guard guard(mutex);
    bytes.clear();
    staged.clear();
    numbers.clear();
    texts.clear();
    waiting = nullptr;
    fences = 0;
    abort_code = -1;
}
void stub_number(std::uint32_t rank, const char* key, std::uint32_t value) {
    const std::lock_guard guard(mutex);
    numbers[{rank, key}] = value;
}
void stub_text(std::uint32_t rank, const char* key, const char* value) {
    const std::lock_guard guard(mutex);
    texts[{rank, key}] = value;
}
void stub_bytes(std::uint32_t rank, const char* key, const char* value) {
    const std::lock_guard guard(mutex);
    bytes[{rank, key}] = value;
}
int stub_fences() {
    const std::lock_guard guard(mutex);
    return fences;
}
void stub_open_fence(int code) {
    std::thread([code] {
        FenceDone done = nullptr;
        {
            const std::lock_guard guard(mutex);
            bytes.insert(staged.begin(), staged.end());
            done = std::exchange(waiting, nullptr);
        }
        if (done != nullptr) done(code, waiting_data);
    }).join();
}
int stub_abort(const char** text) {
    *text = abort_text.c_str();
    return abort_code;
}

Code PMIx_Init(Proc* self, Info*, std::size_t) {
    // A library without the munge plug-in, which is told to begin with it.
    const char* security = std::getenv("PMIX_MCA_psec");
    if (security != nullptr && std::strcmp(security, "native") != 0) return -31;
    std::strcpy(self->nspace, "stub/job@1");
    self->rank = 1;
    return 0;
}
Code PMIx_Finalize(const Info*, std::size_t) {
    return 0;
}
Code PMIx_Abort(int code, const char* text, Proc*, std::size_t) {
    abort_code = code;
    abort_text = text;
    return -1;  // as if the launcher were gone: the caller ends by itself
}
Code PMIx_Put(std::uint8_t, const char* key, Value* value) {
    const std::lock_guard guard(mutex);
    staged[{1, key}] = std::string(value->data.object.bytes, value->data.object.size);
    return 0;
}
Code PMIx_Commit() {
    return 0;
}
Code PMIx_Fence_nb(const Proc*, std::size_t, const Info*, std::size_t, FenceDone done, void* data) {
    const std::lock_guard guard(mutex);
    waiting = done;
    waiting_data = data;
    ++fences;
    return 0;
}
Code PMIx_Get(const Proc* proc, const char* key, const Info*, std::size_t, Value** value) {
    const std::lock_guard guard(mutex);
    const std::pair<std::uint32_t, std::string> name{proc->rank, key};
    auto* found = static_cast<Value*>(std::calloc(1, sizeof(Value)));
    if (numbers.contains(name)) {
        found->type = kUint32;
        found->data.uint32 = numbers[name];
    } else if (texts.contains(name)) {
        found->type = kString;
        found->data.string = strdup(texts[name].c_str());
    } else if (bytes.contains(name)) {
        found->type = kByteObject;
        found->data.object.size = bytes[name].size();
        found->data.object.bytes = static_cast<char*>(std::malloc(bytes[name].size() + 1));
        std::memcpy(found->data.object.bytes, bytes[name].data(), bytes[name].size());
    } else {
        std::free(found);
        return kNotFound;
    }
    *value = found;
    return 0;
}
const char* PMIx_Error_string(Code code) {
    return code == kNotFound ? "PMIX_ERR_NOT_FOUND" : "PMIX_ERROR";
}
const char* PMIx_Get_version() {
    return "stub PMIx";
}
}
