// SPDX-License-Identifier: BSD-3-Clause
//
// Entry points where an argument means something only together with another one.
#include "common/arguments.hpp"
#include "common/export.hpp"
#include "common/standard.hpp"

namespace gantry::personality {

// --- starting: from here on a second MPI library would be one too many

GANTRY_EXPORT(int, Init, (int* argc, char*** argv)) {
    refuse_second_library();
    return error(standard.Init(argc, argv));
}
GANTRY_EXPORT(int, Init_thread, (int* argc, char*** argv, int required, int* provided)) {
    refuse_second_library();
    const ValueOut provided_(provided, thread_level_from);
    return error(standard.Init_thread(argc, argv, thread_level_to(required), provided));
}
GANTRY_EXPORT(int, Session_init,
              (theirs::Info info, theirs::Errhandler errhandler, theirs::Session* session)) {
    refuse_second_library();
    MPI_Session made = nullptr;
    const HandleOut<MPI_Session> session_(session, made);
    return error(standard.Session_init(to<MPI_Info>(info), to<MPI_Errhandler>(errhandler),
                                       session_.pointer()));
}
GANTRY_EXPORT(int, Pcontrol, (const int level, ...)) {
    return error(standard.Pcontrol(level));
}

// --- what returns no error code

GANTRY_EXPORT(double, Wtime, (void)) {
    return standard.Wtime();
}
GANTRY_EXPORT(double, Wtick, (void)) {
    return standard.Wtick();
}
GANTRY_EXPORT(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint disp)) {
    return standard.Aint_add(base, disp);
}
GANTRY_EXPORT(MPI_Aint, Aint_diff, (MPI_Aint addr1, MPI_Aint addr2)) {
    return standard.Aint_diff(addr1, addr2);
}

// This is not the standard ABI.
GANTRY_EXPORT(int, Abi_get_version, (int* major, int* minor)) {
    if (major == nullptr || minor == nullptr) return error(MPI_ERR_ARG);
    *major = *minor = -1;
    return 0;
}

// What a program of that ABI was compiled for, as its own MPI says.
GANTRY_EXPORT(int, Get_version, (int* version, int* subversion)) {
    if (version == nullptr || subversion == nullptr) return error(MPI_ERR_ARG);
    *version = kTheir_MPI_VERSION;
    *subversion = kTheir_MPI_SUBVERSION;
    return 0;
}

// Nobody has said what Fortran is like: that question belongs to the standard ABI, too.
GANTRY_EXPORT(int, Abi_get_fortran_info, (theirs::Info * info)) {
    if (info == nullptr) return error(MPI_ERR_ARG);
    *info = from(MPI_INFO_NULL);
    return 0;
}

// Small codes are classes, also those that the standard does not have.
GANTRY_EXPORT(int, Error_class, (int code, int* its_class)) {
    const int ours = error_class_to(code);
    if (ours == MPI_ERR_UNKNOWN && its_class != nullptr) {
        *its_class = code;
        return 0;
    }
    const ValueOut its_class_(its_class, error_class_from);
    return error(standard.Error_class(ours, its_class));
}

// --- fields of a status, which hold what the program's MPI has in them

#define GANTRY_STATUS_FIELD(name, field)                                                \
    GANTRY_EXPORT(int, Status_get_##name, (const theirs::Status* status, int* value)) { \
        if (status == nullptr || value == nullptr) return error(MPI_ERR_ARG);           \
        *value = status->field;                                                         \
        return 0;                                                                       \
    }                                                                                   \
    GANTRY_EXPORT(int, Status_set_##name, (theirs::Status * status, int value)) {       \
        if (status == nullptr) return error(MPI_ERR_ARG);                               \
        status->field = value;                                                          \
        return 0;                                                                       \
    }
GANTRY_STATUS_FIELD(source, MPI_SOURCE)
GANTRY_STATUS_FIELD(tag, MPI_TAG)
GANTRY_STATUS_FIELD(error, MPI_ERROR)
#undef GANTRY_STATUS_FIELD

// --- attributes: the library's own are numbers of the standard

namespace {

// `value` is the address of a pointer to an int.
void translate_attribute(int keyval, void* value) {
    static int io, host, last_code;
    static int flavors[4], models[2];
    int** place = static_cast<int**>(value);
    switch (keyval) {
        case MPI_IO: io = rank_from(**place), *place = &io; break;
        case MPI_HOST: host = rank_from(**place), *place = &host; break;
        case MPI_LASTUSEDCODE: last_code = error(**place), *place = &last_code; break;
        case MPI_WIN_CREATE_FLAVOR: {
            int& flavor = flavors[(**place - MPI_WIN_FLAVOR_CREATE) & 3];
            flavor = flavor_from(**place), *place = &flavor;
            break;
        }
        case MPI_WIN_MODEL: {
            int& model = models[(**place - MPI_WIN_UNIFIED) & 1];
            model = model_from(**place), *place = &model;
            break;
        }
        default: break;
    }
}

template <class Get, class Handle>
int get_attribute(Get* get, Handle handle, int keyval, void* value, int* flag) {
    const int code = get(handle, keyval_to(keyval), value, flag);
    if (code == MPI_SUCCESS && *flag != 0) translate_attribute(keyval_to(keyval), value);
    return error(code);
}

}  // namespace

GANTRY_EXPORT(int, Comm_get_attr, (theirs::Comm comm, int keyval, void* value, int* flag)) {
    return get_attribute(standard.Comm_get_attr, to<MPI_Comm>(comm), keyval, value, flag);
}
GANTRY_EXPORT(int, Attr_get, (theirs::Comm comm, int keyval, void* value, int* flag)) {
    return get_attribute(standard.Attr_get, to<MPI_Comm>(comm), keyval, value, flag);
}
GANTRY_EXPORT(int, Win_get_attr, (theirs::Win win, int keyval, void* value, int* flag)) {
    return get_attribute(standard.Win_get_attr, to<MPI_Win>(win), keyval, value, flag);
}
GANTRY_EXPORT(int, Type_get_attr, (theirs::Datatype type, int keyval, void* value, int* flag)) {
    return get_attribute(standard.Type_get_attr, to<MPI_Datatype>(type), keyval, value, flag);
}

// --- how a datatype was made: among its integers are constants

namespace {

void translate_contents(MPI_Datatype type, int* integers) {
    MPI_Count number = 0, addresses = 0, counts = 0, types = 0;
    int combiner = 0;
    if (integers == nullptr || standard.Type_get_envelope_c(type, &number, &addresses, &counts,
                                                            &types, &combiner) != MPI_SUCCESS)
        return;
    if (combiner == MPI_COMBINER_SUBARRAY || combiner == MPI_COMBINER_DARRAY)
        integers[number - 1] = order_from(integers[number - 1]);
    if (combiner != MPI_COMBINER_DARRAY) return;
    // size, rank, dimensions n, sizes (n, elsewhere if they are large), distributions, arguments, ...
    const int n = integers[2];
    int* distributions = integers + 3 + (counts > 0 ? 0 : n);
    for (int i = 0; i < n; ++i) {
        distributions[i] = distribution_from(distributions[i]);
        distributions[n + i] = distribution_argument_from(distributions[n + i]);
    }
}

}  // namespace

GANTRY_EXPORT(int, Type_get_contents,
              (theirs::Datatype type, int max_integers, int max_addresses, int max_datatypes,
               int integers[], MPI_Aint addresses[], theirs::Datatype types[])) {
    HandlesOut<MPI_Datatype> types_(types, max_datatypes);
    if (!types_.ok()) return error(MPI_ERR_NO_MEM);
    const int code = standard.Type_get_contents(to<MPI_Datatype>(type), max_integers, max_addresses,
                                                max_datatypes, integers, addresses, types_.data());
    if (code == MPI_SUCCESS) translate_contents(to<MPI_Datatype>(type), integers);
    return error(code);
}
GANTRY_EXPORT(int, Type_get_contents_c,
              (theirs::Datatype type, MPI_Count max_integers, MPI_Count max_addresses,
               MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
               MPI_Aint addresses[], MPI_Count large_counts[], theirs::Datatype types[])) {
    HandlesOut<MPI_Datatype> types_(types, max_datatypes);
    if (!types_.ok()) return error(MPI_ERR_NO_MEM);
    const int code = standard.Type_get_contents_c(to<MPI_Datatype>(type), max_integers,
                                                  max_addresses, max_large_counts, max_datatypes,
                                                  integers, addresses, large_counts, types_.data());
    if (code == MPI_SUCCESS) translate_contents(to<MPI_Datatype>(type), integers);
    return error(code);
}

// --- a communicator that is there when its request is over

namespace {

template <class Call>
int duplicate(theirs::Comm* newcomm, Call&& call) {
    MPI_Comm* made = nullptr;
    if (newcomm != nullptr && (made = await_duplicate(newcomm)) == nullptr)
        return error(MPI_ERR_NO_MEM);
    const int code = call(made);
    if (code != MPI_SUCCESS && made != nullptr) forget_duplicate(made);
    settle_duplicates();
    return error(code);
}

}  // namespace

GANTRY_EXPORT(int, Comm_idup,
              (theirs::Comm comm, theirs::Comm* newcomm, theirs::Request* request)) {
    MPI_Request its_request = nullptr;
    const HandleOut<MPI_Request> request_(request, its_request);
    return duplicate(newcomm, [&](MPI_Comm* made) {
        return standard.Comm_idup(to<MPI_Comm>(comm), made, request_.pointer());
    });
}
GANTRY_EXPORT(int, Comm_idup_with_info,
              (theirs::Comm comm, theirs::Info info, theirs::Comm* newcomm,
               theirs::Request* request)) {
    MPI_Request its_request = nullptr;
    const HandleOut<MPI_Request> request_(request, its_request);
    return duplicate(newcomm, [&](MPI_Comm* made) {
        return standard.Comm_idup_with_info(to<MPI_Comm>(comm), to<MPI_Info>(info), made,
                                            request_.pointer());
    });
}

// --- variables of the tool interface that are bound to an object: only communicators are

GANTRY_EXPORT(int, T_cvar_handle_alloc,
              (int index, void* object, MPI_T_cvar_handle* handle, int* count)) {
    return error(standard.T_cvar_handle_alloc(index, object, handle, count));
}
GANTRY_EXPORT(int, T_pvar_handle_alloc,
              (MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle,
               int* count)) {
    int bind = MPI_T_BIND_NO_OBJECT;
    standard.T_pvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr, &bind, nullptr, nullptr, nullptr);
    if (bind != MPI_T_BIND_MPI_COMM || object == nullptr)
        return error(standard.T_pvar_handle_alloc(session, index, object, handle, count));
    MPI_Comm comm = to<MPI_Comm>(*static_cast<theirs::Comm*>(object));
    return error(standard.T_pvar_handle_alloc(session, index, &comm, handle, count));
}

}  // namespace gantry::personality
