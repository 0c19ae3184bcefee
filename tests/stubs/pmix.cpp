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
#include <vector>

namespace {

using namespace gantry::job::pmix;

std::mutex mutex;
std::map<std::pair<std::uint32_t, std::string>, std::string> bytes, staged;
std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> numbers;
std::map<std::pair<std::uint32_t, std::string>, std::string> texts;
Done waiting = nullptr;
void* waiting_data = nullptr;
int fences = 0;
int abort_code = -1;
std::string abort_text;
// What was asked to be started, one program a line; and what the launcher says to that.
std::string spawned;
int spawn_code = 0;
std::map<std::string, std::string> published;

OnEvent on_event = nullptr;
std::vector<Info> event_infos;

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
    on_event = nullptr;
    event_infos.clear();
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
        Done done = nullptr;
        {
            const std::lock_guard guard(mutex);
            bytes.insert(staged.begin(), staged.end());
            done = std::exchange(waiting, nullptr);
        }
        if (done != nullptr) done(code, waiting_data);
    }).join();
}
// The launcher tells that a process of that job has died; false: nobody wants to know.
bool stub_die(const char* nspace, std::uint32_t rank) {
    if (on_event == nullptr) return false;
    Proc dead{};
    std::strcpy(dead.nspace, nspace);
    dead.rank = rank;
    Proc launcher{};
    std::strcpy(launcher.nspace, "prterun");
    Info affected{};
    std::strcpy(affected.key, "pmix.evproc");
    affected.value.type = kProc;
    affected.value.data.proc = &dead;
    std::vector<Info> infos{affected};
    infos.insert(infos.end(), event_infos.begin(), event_infos.end());
    bool went_on = false;
    std::thread([&] {
        on_event(
            1, kProcAbortedBySignal, &launcher, infos.data(), infos.size(), nullptr, 0,
            [](Code, Info*, std::size_t, Done, void*, void* chain) {
                *static_cast<bool*>(chain) = true;
            },
            &went_on);
    }).join();
    return went_on;
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
Code PMIx_Fence_nb(const Proc*, std::size_t, const Info*, std::size_t, Done done, void* data) {
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
const char* stub_spawned(int code) {
    spawn_code = code;
    return spawned.c_str();
}
Code PMIx_Spawn_nb(const Info*, std::size_t, const App* apps, std::size_t count, SpawnDone done,
                   void* data) {
    spawned.clear();
    for (std::size_t i = 0; i < count; ++i) {
        spawned += std::to_string(apps[i].ranks);
        for (char** word = apps[i].arguments; *word != nullptr; ++word)
            spawned += std::string(" ") + *word;
        if (apps[i].folder != nullptr) spawned += std::string(" in ") + apps[i].folder;
        for (std::size_t info = 0; info < apps[i].infos; ++info)
            spawned += std::string(" ") + apps[i].info[info].key + "=" +
                       apps[i].info[info].value.data.string;
        spawned += std::string(" ") + apps[i].environment[0] + "\n";
    }
    std::thread([done, data] { done(spawn_code, nullptr, data); }).detach();
    return 0;
}
Code PMIx_Publish_nb(const Info* infos, std::size_t, Done done, void* data) {
    const bool is_new = published.emplace(infos[0].key, infos[0].value.data.string).second;
    done(is_new ? 0 : kNotFound, data);
    return 0;
}
Code PMIx_Register_event_handler(Code*, std::size_t, Info* infos, std::size_t count,
                                 OnEvent handler, Registered registered, void* data) {
    on_event = handler;
    event_infos.assign(infos, infos + count);
    registered(0, 1, data);
    return 0;
}
Code PMIx_Lookup_nb(char** keys, const Info*, std::size_t, LookupDone done, void* data) {
    const auto found = published.find(keys[0]);
    Published what{};
    if (found != published.end()) {
        what.value.type = kString;
        what.value.data.string = found->second.data();
    }
    done(found != published.end() ? 0 : kNotFound, &what, found != published.end() ? 1 : 0, data);
    return 0;
}
Code PMIx_Unpublish_nb(char** keys, const Info*, std::size_t, Done done, void* data) {
    published.erase(keys[0]);
    done(0, data);
    return 0;
}
const char* PMIx_Error_string(Code code) {
    return code == kNotFound ? "PMIX_ERR_NOT_FOUND" : "PMIX_ERROR";
}
const char* PMIx_Get_version() {
    return "stub PMIx";
}
}
