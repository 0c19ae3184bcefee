// SPDX-License-Identifier: BSD-3-Clause
//
// Events: Gantry has no types of them, so there is nothing to register, and no handle is good.
#include "mpi/bodies.hpp"
#include "mpi/tool/tool.hpp"

namespace gantry::mpi {
namespace {

Status no_registration() {
    return tool::no_such_handle("event_registration");
}
Status no_instance() {
    return tool::no_such_handle("event_instance");
}

}  // namespace

Status t_event_get_num(int* num_events) {
    *num_events = 0;
    return success();
}

Status t_event_get_info(int event_index, char*, int*, int*, MPI_Datatype*, MPI_Aint*, int*,
                        MPI_T_enum*, MPI_Info*, char*, int*, int*) {
    return tool::no_such_index("event_index", event_index, 0);
}

Status t_event_get_index(const char* name, int*) {
    return tool::no_such_name("event type", name);
}

Status t_event_handle_alloc(int event_index, void*, MPI_Info, MPI_T_event_registration*) {
    return tool::no_such_index("event_index", event_index, 0);
}

Status t_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function*) {
    return no_registration();
}
Status t_event_handle_get_info(MPI_T_event_registration, MPI_Info*) {
    return no_registration();
}
Status t_event_handle_set_info(MPI_T_event_registration, MPI_Info) {
    return no_registration();
}
Status t_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                                 MPI_T_event_cb_function*) {
    return no_registration();
}
Status t_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) {
    return no_registration();
}
Status t_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) {
    return no_registration();
}
Status t_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function*) {
    return no_registration();
}

Status t_event_read(MPI_T_event_instance, int, void*) {
    return no_instance();
}
Status t_event_copy(MPI_T_event_instance, void*) {
    return no_instance();
}
Status t_event_get_timestamp(MPI_T_event_instance, MPI_Count*) {
    return no_instance();
}
Status t_event_get_source(MPI_T_event_instance, int*) {
    return no_instance();
}

}  // namespace gantry::mpi
