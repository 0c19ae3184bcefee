/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the program of another MPI: attributes, error handlers and codes, generalized requests, how datatypes were made,
 * groups, topologies, info. */
#include "program.h"

static int copies = 0, deletions = 0;
static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
    if (comm != MPI_COMM_WORLD || key == MPI_KEYVAL_INVALID || extra != &copies) failures += 100;
    ++copies;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int erase(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    ++deletions;
    return MPI_SUCCESS;
}

void attributes(void) {
    int key = MPI_KEYVAL_INVALID, other = MPI_KEYVAL_INVALID, value = 5, flag = 0, *found = NULL;
    MPI_Comm_create_keyval(copy, erase, &key, &copies);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_set_attr(MPI_COMM_WORLD, other, &value);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_attr(comm, key, &found, &flag);
    EXPECT(copies == 1 && flag && found == &value);
    MPI_Comm_get_attr(comm, other, &found, &flag);
    EXPECT(flag && found == &value);
    MPI_Comm_free(&comm);
    EXPECT(deletions == 1 && comm == MPI_COMM_NULL);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, other);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&other);
    EXPECT(key == MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
    EXPECT(flag && *found >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &found, &flag);
    EXPECT(flag &&
           *found >= MPI_ERR_LASTCODE - (MPI_ERR_LASTCODE > 1000 ? MPI_ERR_LASTCODE - 60 : 0));

    MPI_Win win;
    void* base = NULL;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &found, &flag);
    EXPECT(flag && *found == MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &found, &flag);
    EXPECT(flag && (*found == MPI_WIN_UNIFIED || *found == MPI_WIN_SEPARATE));
    int* values = base;
    for (int i = 0; i < 16; ++i)
        values[i] = 0;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&value, 1, MPI_INT, 1 - rank, 2, 1, MPI_INT, win);
    MPI_Accumulate(&value, 1, MPI_INT, 1 - rank, 3, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    EXPECT(values[2] == 5 && values[3] == 5);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    EXPECT(win == MPI_WIN_NULL);
}

static int heard = 0, heard_code = 0;
static MPI_Comm heard_of;
static void hear(MPI_Comm* comm, int* code, ...) {
    ++heard;
    heard_of = *comm;
    heard_code = *code;
}

void errors(void) {
    MPI_Errhandler handler, found;
    int class = -1, own = -1, code = -1, length = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_get_errhandler(comm, &found);
    EXPECT(found == handler);
    MPI_Errhandler_free(&found);
    MPI_Send(&rank, 1, MPI_INT, 17, 0, comm);
    MPI_Error_class(heard_code, &class);
    EXPECT(heard == 1 && heard_of == comm && class == MPI_ERR_RANK);
    EXPECT(MPI_Error_string(heard_code, text, &length) == MPI_SUCCESS && length > 0 &&
           (int)strlen(text) == length);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    MPI_Error_class(MPI_Send(&rank, 1, MPI_DATATYPE_NULL, 0, 0, comm), &class);
    EXPECT(class == MPI_ERR_TYPE);
    MPI_Error_class(MPI_Send(&rank, 1, MPI_INT, 0, -77, comm), &class);
    EXPECT(class == MPI_ERR_TAG);
    MPI_Add_error_class(&own);
    MPI_Add_error_code(own, &code);
    MPI_Add_error_string(code, "of our own");
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    EXPECT(class == own && strcmp(text, "of our own") == 0);
    MPI_Comm_free(&comm);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    EXPECT(found == MPI_ERRORS_ARE_FATAL);
}

static int queried = 0, freed = 0;
static int query(void* extra, MPI_Status* status) {
    queried += *(int*)extra;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = 12;
    return MPI_SUCCESS;
}
static int release(void* extra) {
    freed += *(int*)extra;
    return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

void requests_of_the_program(void) {
    int one = 1, count = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, release, cancel, &one, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(queried == 1 && freed == 1 && count == 3 && status.MPI_TAG == 12 &&
           status.MPI_SOURCE == MPI_UNDEFINED);
}

void datatypes(void) {
    int sizes[2] = {4, 6}, part[2] = {2, 3}, start[2] = {1, 1}, integers[16], number, addresses,
        types, combiner;
    MPI_Datatype made, inner[1];
    MPI_Aint no_addresses[1];
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_FORTRAN, MPI_DOUBLE, &made);
    MPI_Type_get_envelope(made, &number, &addresses, &types, &combiner);
    EXPECT(combiner == MPI_COMBINER_SUBARRAY && number == 8 && types == 1);
    MPI_Type_get_contents(made, number, addresses, types, integers, no_addresses, inner);
    EXPECT(integers[0] == 2 && integers[7] == MPI_ORDER_FORTRAN && inner[0] == MPI_DOUBLE);
    MPI_Type_free(&made);
    int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 1};
    MPI_Type_create_darray(2, rank, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT,
                           &made);
    MPI_Type_get_envelope(made, &number, &addresses, &types, &combiner);
    EXPECT(combiner == MPI_COMBINER_DARRAY && number == 12);
    MPI_Type_get_contents(made, number, addresses, types, integers, no_addresses, inner);
    EXPECT(integers[5] == MPI_DISTRIBUTE_BLOCK && integers[6] == MPI_DISTRIBUTE_NONE);
    EXPECT(integers[7] == MPI_DISTRIBUTE_DFLT_DARG && integers[11] == MPI_ORDER_C);
    MPI_Type_free(&made);
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Type_get_name(MPI_DOUBLE_INT, name, &number);
    EXPECT(strcmp(name, "MPI_DOUBLE_INT") == 0);
    struct {
        int here;
        double there;
    } item = {rank, 0.5}, got = {-1, -1};
    int blocks[2] = {1, 1};
    MPI_Aint at[2];
    MPI_Datatype fields[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Get_address(&item.here, &at[0]);
    MPI_Get_address(&item.there, &at[1]);
    MPI_Type_create_struct(2, blocks, at, fields, &made);
    MPI_Type_commit(&made);
    MPI_Request request;
    MPI_Isend(MPI_BOTTOM, 1, made, 1 - rank, 0, MPI_COMM_WORLD, &request);
    at[1] -= at[0], at[0] = 0;
    MPI_Type_free(&made);
    MPI_Type_create_struct(2, blocks, at, fields, &made);
    MPI_Type_commit(&made);
    MPI_Recv(&got, 1, made, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&made);
    EXPECT(got.here == 1 - rank && got.there == 0.5);
}

void groups_and_topologies(void) {
    int result = -1, peer = 1 - rank, kind = -1, before, behind, translated[2],
        ranks[2] = {0, MPI_PROC_NULL};
    MPI_Comm comm, line;
    MPI_Group group, empty;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    EXPECT(result == MPI_CONGRUENT);
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, 2, ranks, group, translated);
    EXPECT(translated[0] == 0 && translated[1] == MPI_PROC_NULL);
    MPI_Group_difference(group, group, &empty);
    EXPECT(empty == MPI_GROUP_EMPTY);
    MPI_Group_free(&group);
    EXPECT(group == MPI_GROUP_NULL);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &comm);
    EXPECT((comm == MPI_COMM_NULL) == (rank != 0));
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    MPI_Comm_free(&comm);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_size(comm, &result);
    EXPECT(result == 2);
    MPI_Comm_free(&comm);
    int dims[1] = {2}, periods[1] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
    MPI_Topo_test(line, &kind);
    MPI_Cart_shift(line, 0, 1, &before, &behind);
    EXPECT(kind == MPI_CART);
    EXPECT(rank == 0 ? before == MPI_PROC_NULL && behind == 1
                     : before == 0 && behind == MPI_PROC_NULL);
    MPI_Comm_free(&line);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    EXPECT(kind == MPI_UNDEFINED);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, MPI_UNWEIGHTED, 1, &peer,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &line);
    int in = 0, out = 0, weighted = 1, value = rank, other = -1, one = 1;
    MPI_Dist_graph_neighbors_count(line, &in, &out, &weighted);
    EXPECT(in == 1 && out == 1 && weighted == 0);
    MPI_Aint zero = 0;
    MPI_Datatype type = MPI_INT;
    MPI_Neighbor_alltoallw(&value, &one, &zero, &type, &other, &one, &zero, &type, line);
    EXPECT(other == 1 - rank);
    MPI_Comm_free(&line);
}

void information(void) {
    MPI_Info info, copied;
    char value[MPI_MAX_INFO_VAL];
    int flag = 0, level = -1, length = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Info_dup(info, &copied);
    MPI_Info_free(&info);
    EXPECT(info == MPI_INFO_NULL);
    MPI_Info_get(copied, "key", MPI_MAX_INFO_VAL - 1, value, &flag);
    EXPECT(flag && strcmp(value, "value") == 0);
    MPI_Info_free(&copied);
    MPI_Query_thread(&level);
    EXPECT(level == MPI_THREAD_MULTIPLE || level == MPI_THREAD_SERIALIZED);
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Get_processor_name(name, &length);
    EXPECT((int)strlen(name) == length);
}
