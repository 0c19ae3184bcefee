// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T for tests: one initialisation with one session of performance variables, and variables by name.
#pragma once

#include "test.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mpi_tests {

class Tool {
  public:
    Tool() {
        int provided = -1;
        OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        OK(MPI_T_pvar_session_create(&session_));
    }
    ~Tool() {
        OK(MPI_T_pvar_session_free(&session_));
        OK(MPI_T_finalize());
    }
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    MPI_T_pvar_session session() const { return session_; }
    void start_all() const { OK(MPI_T_pvar_start(session_, MPI_T_PVAR_ALL_HANDLES)); }
    void stop_all() const { OK(MPI_T_pvar_stop(session_, MPI_T_PVAR_ALL_HANDLES)); }
    void reset_all() const { OK(MPI_T_pvar_reset(session_, MPI_T_PVAR_ALL_HANDLES)); }

    template <class Value>
    Value parameter(const char* name) const {
        Value value{};
        const Control control(name);
        CHECK_EQ(control.count, 1);
        OK(MPI_T_cvar_read(control.handle, &value));
        return value;
    }
    template <class Value>
    int set(const char* name, Value value) const {
        return MPI_T_cvar_write(Control(name).handle, &value);
    }
    std::string parameter_text(const char* name) const {
        const Control control(name);
        std::vector<char> text(static_cast<std::size_t>(control.count));
        OK(MPI_T_cvar_read(control.handle, text.data()));
        return text.data();
    }
    int set_text(const char* name, const std::string& value) const {
        return MPI_T_cvar_write(Control(name).handle, value.c_str());
    }
    // Of MPI in this process: 0 before, 1 running, 2 finalized.
    int phase() const {
        int index = -1, count = 0, value = -1;
        MPI_T_pvar_handle handle;
        OK(MPI_T_pvar_get_index("phase", MPI_T_PVAR_CLASS_STATE, &index));
        OK(MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle, &count));
        OK(MPI_T_pvar_read(session_, handle, &value));
        OK(MPI_T_pvar_handle_free(session_, &handle));
        return value;
    }

  private:
    struct Control {
        explicit Control(const char* name) {
            int index = -1;
            OK(MPI_T_cvar_get_index(name, &index));
            OK(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count));
        }
        ~Control() { OK(MPI_T_cvar_handle_free(&handle)); }
        Control(const Control&) = delete;
        Control& operator=(const Control&) = delete;
        MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
        int count = 0;
    };
    MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
};

// A performance variable of that session; its handle goes with the session.
class Counted {
  public:
    Counted(const Tool& tool, const std::string& name, MPI_Comm comm = MPI_COMM_NULL)
        : session_(tool.session()) {
        int number = 0, count = 0;
        OK(MPI_T_pvar_get_num(&number));
        for (int index = 0; index < number; ++index) {
            char found[128] = "";
            int length = sizeof found, bind = 0;
            OK(MPI_T_pvar_get_info(index, found, &length, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, &bind, nullptr, nullptr, nullptr));
            if (found != name) continue;
            CHECK_EQ(bind, comm == MPI_COMM_NULL ? MPI_T_BIND_NO_OBJECT : MPI_T_BIND_MPI_COMM);
            OK(MPI_T_pvar_handle_alloc(session_, index, &comm, &handle_, &count));
            CHECK_EQ(count, 1);
            return;
        }
        fail(__FILE__, __LINE__, "there is no performance variable " + name);
    }
    void start() { OK(MPI_T_pvar_start(session_, handle_)); }
    std::uint64_t read() const {
        unsigned long long value = ~0ull;
        OK(MPI_T_pvar_read(session_, handle_, &value));
        return value;
    }
    std::uint64_t read_and_reset() {
        unsigned long long value = ~0ull;
        OK(MPI_T_pvar_readreset(session_, handle_, &value));
        return value;
    }

  private:
    MPI_T_pvar_session session_;
    MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
};

}  // namespace mpi_tests
