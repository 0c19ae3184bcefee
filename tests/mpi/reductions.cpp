// SPDX-License-Identifier: BSD-3-Clause
//
// Every predefined operation on every type that the standard allows it for (MPI 5.0 section 6.9.2),
// by Allreduce, Reduce, Scan, Exscan and Reduce_scatter, against the same computed by one rank
// after the other. Values are small integers, so that no order of operations changes a
// floating-point result.
#include "gpu.hpp"
#include "test.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <vector>

using namespace mpi_tests;

namespace {

template <class T>
struct Pair {
    T value;
    int index;
    bool operator==(const Pair&) const = default;
};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;
template <class T>
constexpr bool is_pair = false;
template <class T>
constexpr bool is_pair<Pair<T>> = true;

// What rank r contributes at a place.
template <class T>
T operand(MPI_Op op, int r, std::size_t place) {
    const int mixed = static_cast<int>((static_cast<std::size_t>(r) * 7 + place * 3) % 5);
    if constexpr (is_pair<T>) {
        return {static_cast<decltype(T::value)>(mixed),
                static_cast<int>(place) + r};  // equal values occur: the lower index wins
    } else if constexpr (std::is_same_v<T, bool>) {
        return mixed % 2 == 0;
    } else if constexpr (is_complex<T>) {
        using Part = typename T::value_type;
        return op == MPI_PROD ? T(static_cast<Part>(mixed % 2), Part{1})
                              : T(static_cast<Part>(mixed), static_cast<Part>(-r));
    } else {
        if (op == MPI_PROD)
            return static_cast<T>((static_cast<std::size_t>(r) + place) % 3 == 0 ? 2 : 1);
        if (op == MPI_MAX || op == MPI_MIN || op == MPI_SUM)
            return static_cast<T>(std::is_unsigned_v<T> ? mixed : mixed - 2);
        return static_cast<T>(mixed);
    }
}

template <class T>
T combine(MPI_Op op, const T& a, const T& b) {
    if constexpr (is_pair<T>) {
        const bool first = op == MPI_MAXLOC ? a.value > b.value : a.value < b.value;
        if (a.value == b.value) return {a.value, std::min(a.index, b.index)};
        return first ? a : b;
    } else if constexpr (is_complex<T>) {
        return op == MPI_SUM ? a + b : a * b;
    } else {
        if (op == MPI_LAND) return static_cast<T>(a && b);
        if (op == MPI_LOR) return static_cast<T>(a || b);
        if (op == MPI_LXOR) return static_cast<T>(!a != !b);
        if constexpr (!std::is_same_v<T, bool>) {
            if (op == MPI_MAX) return a > b ? a : b;
            if (op == MPI_MIN) return a < b ? a : b;
            if (op == MPI_SUM) return static_cast<T>(a + b);
            if (op == MPI_PROD) return static_cast<T>(a * b);
            if constexpr (std::is_integral_v<T>) {
                if (op == MPI_BAND) return static_cast<T>(a & b);
                if (op == MPI_BOR) return static_cast<T>(a | b);
                if (op == MPI_BXOR) return static_cast<T>(a ^ b);
            }
        }
        return a;
    }
}

// The operands of ranks `begin` to `end` combined in order, at places from `first` on.
template <class T>
std::vector<unsigned char> expected(MPI_Op op, int begin, int end, std::size_t first,
                                    std::size_t count) {
    std::vector<unsigned char> bytes(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
        T value = operand<T>(op, begin, first + i);
        for (int r = begin + 1; r < end; ++r)
            value = combine(op, value, operand<T>(op, r, first + i));
        std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
    }
    return bytes;
}

// Elements, not bytes: long double and pairs have holes.
template <class T>
bool same(const Memory& memory, const std::vector<unsigned char>& wanted) {
    std::vector<unsigned char> got(wanted.size());
    memory.read(got.data(), got.size());
    for (std::size_t at = 0; at < got.size(); at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, &got[at], sizeof(T));
        std::memcpy(&b, &wanted[at], sizeof(T));
        if (!(a == b)) return false;
    }
    return true;
}

struct Names {
    MPI_Op op;
    const char* text;
};
const Names kNames[] = {
    {MPI_MAX, "MPI_MAX"},   {MPI_MIN, "MPI_MIN"},       {MPI_SUM, "MPI_SUM"},
    {MPI_PROD, "MPI_PROD"}, {MPI_LAND, "MPI_LAND"},     {MPI_LOR, "MPI_LOR"},
    {MPI_LXOR, "MPI_LXOR"}, {MPI_BAND, "MPI_BAND"},     {MPI_BOR, "MPI_BOR"},
    {MPI_BXOR, "MPI_BXOR"}, {MPI_MAXLOC, "MPI_MAXLOC"}, {MPI_MINLOC, "MPI_MINLOC"}};

template <class T>
void reduce(Kind kind, MPI_Op op, MPI_Datatype type, const char* type_name, int count) {
    const char* op_name = "";
    for (const Names& each : kNames)
        if (each.op == op) op_name = each.text;
    const auto say = [&](const char* what) {
        about(std::string(what) + " " + op_name + " " + type_name + " x " + std::to_string(count) +
              " on " + name(kind) + ", " + std::to_string(size()) + " ranks");
    };
    const auto n = static_cast<std::size_t>(count);
    Memory out(kind, n * sizeof(T)), in(kind, n * sizeof(T));
    const std::vector<unsigned char> mine = expected<T>(op, rank(), rank() + 1, 0, n),
                                     all = expected<T>(op, 0, size(), 0, n);
    out.write(mine.data(), mine.size());

    say("allreduce");
    OK(MPI_Allreduce(out.data(), in.data(), count, type, op, MPI_COMM_WORLD));
    CHECK(same<T>(in, all));
    CHECK(same<T>(out, mine));
    say("allreduce in place");
    in.write(mine.data(), mine.size());
    OK(MPI_Allreduce(MPI_IN_PLACE, in.data(), count, type, op, MPI_COMM_WORLD));
    CHECK(same<T>(in, all));
    say("iallreduce");
    MPI_Request request;
    in.write(mine.data(), mine.size());
    OK(MPI_Iallreduce(out.data(), in.data(), count, type, op, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(same<T>(in, all));
    for (int root : {0, size() - 1}) {
        say("reduce");
        in.write(mine.data(), mine.size());
        OK(MPI_Reduce(out.data(), in.data(), count, type, op, root, MPI_COMM_WORLD));
        CHECK(same<T>(in, rank() == root ? all : mine));
        say("reduce in place");
        OK(MPI_Barrier(MPI_COMM_WORLD));
        in.write(mine.data(), mine.size());
        OK(MPI_Reduce(rank() == root ? MPI_IN_PLACE : out.data(),
                      rank() == root ? in.data() : nullptr, count, type, op, root, MPI_COMM_WORLD));
        CHECK(same<T>(in, rank() == root ? all : mine));
    }
    say("scan");
    OK(MPI_Scan(out.data(), in.data(), count, type, op, MPI_COMM_WORLD));
    CHECK(same<T>(in, expected<T>(op, 0, rank() + 1, 0, n)));
    say("exscan");
    in.write(mine.data(), mine.size());
    OK(MPI_Exscan(out.data(), in.data(), count, type, op, MPI_COMM_WORLD));
    CHECK(same<T>(in, rank() == 0 ? mine : expected<T>(op, 0, rank(), 0, n)));
    say("reduce_local");
    in.write(mine.data(), mine.size());
    OK(MPI_Reduce_local(out.data(), in.data(), count, type, op));
    CHECK(same<T>(out, mine));
    std::vector<unsigned char> twice(mine.size());
    for (std::size_t at = 0; at < mine.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, &mine[at], sizeof(T));
        value = combine(op, value, value);
        std::memcpy(&twice[at], &value, sizeof(T));
    }
    CHECK(same<T>(in, twice));
    say("reduce_scatter_block");
    const int share = count / size();
    Memory part(kind, static_cast<std::size_t>(share) * sizeof(T));
    OK(MPI_Reduce_scatter_block(out.data(), part.data(), share, type, op, MPI_COMM_WORLD));
    CHECK(same<T>(part,
                  expected<T>(op, 0, size(),
                              static_cast<std::size_t>(share) * static_cast<std::size_t>(rank()),
                              static_cast<std::size_t>(share))));
    about("");
}

struct Legal {
    MPI_Datatype type;
    const char* text;
    unsigned groups;
    void (*run)(Kind, MPI_Op, MPI_Datatype, const char*, int);
};
enum Group : unsigned { arithmetic = 1, order = 2, logical = 4, bits = 8, pairs = 16 };
constexpr unsigned kInteger = arithmetic | order | logical | bits, kFloat = arithmetic | order;
#define ROW(type, c_type, groups) \
    { type, #type, groups, reduce<c_type> }

std::vector<Legal> legal() {
    return {
        ROW(MPI_SIGNED_CHAR, signed char, kInteger),
        ROW(MPI_UNSIGNED_CHAR, unsigned char, kInteger), ROW(MPI_SHORT, short, kInteger),
        ROW(MPI_UNSIGNED_SHORT, unsigned short, kInteger), ROW(MPI_INT, int, kInteger),
        ROW(MPI_UNSIGNED, unsigned, kInteger), ROW(MPI_LONG, long, kInteger),
        ROW(MPI_UNSIGNED_LONG, unsigned long, kInteger), ROW(MPI_LONG_LONG, long long, kInteger),
        ROW(MPI_UNSIGNED_LONG_LONG, unsigned long long, kInteger),
        ROW(MPI_INT8_T, std::int8_t, kInteger), ROW(MPI_INT16_T, std::int16_t, kInteger),
        ROW(MPI_INT32_T, std::int32_t, kInteger), ROW(MPI_INT64_T, std::int64_t, kInteger),
        ROW(MPI_UINT8_T, std::uint8_t, kInteger), ROW(MPI_UINT16_T, std::uint16_t, kInteger),
        ROW(MPI_UINT32_T, std::uint32_t, kInteger), ROW(MPI_UINT64_T, std::uint64_t, kInteger),
        ROW(MPI_AINT, MPI_Aint, arithmetic | order | bits),
        ROW(MPI_COUNT, MPI_Count, arithmetic | order | bits),
        ROW(MPI_OFFSET, MPI_Offset, arithmetic | order | bits), ROW(MPI_FLOAT, float, kFloat),
        ROW(MPI_DOUBLE, double, kFloat), ROW(MPI_LONG_DOUBLE, long double, kFloat),
        ROW(MPI_C_BOOL, bool, logical), ROW(MPI_CXX_BOOL, bool, logical),
        ROW(MPI_BYTE, unsigned char, bits),
        // Not of the standard, but of every other library.
        ROW(MPI_CHAR, signed char, kInteger), ROW(MPI_CHARACTER, signed char, kInteger),
        ROW(MPI_WCHAR, wchar_t, kInteger),
        ROW(MPI_C_FLOAT_COMPLEX, std::complex<float>, arithmetic),
        ROW(MPI_C_DOUBLE_COMPLEX, std::complex<double>, arithmetic),
        ROW(MPI_C_LONG_DOUBLE_COMPLEX, std::complex<long double>, arithmetic),
        ROW(MPI_CXX_DOUBLE_COMPLEX, std::complex<double>, arithmetic),
        ROW(MPI_FLOAT_INT, Pair<float>, pairs), ROW(MPI_DOUBLE_INT, Pair<double>, pairs),
        ROW(MPI_LONG_INT, Pair<long>, pairs), ROW(MPI_2INT, Pair<int>, pairs),
        ROW(MPI_SHORT_INT, Pair<short>, pairs), ROW(MPI_LONG_DOUBLE_INT, Pair<long double>, pairs)};
}
#undef ROW

std::vector<MPI_Op> operations(unsigned groups) {
    std::vector<MPI_Op> found;
    if (groups & arithmetic) found.insert(found.end(), {MPI_SUM, MPI_PROD});
    if (groups & order) found.insert(found.end(), {MPI_MAX, MPI_MIN});
    if (groups & logical) found.insert(found.end(), {MPI_LAND, MPI_LOR, MPI_LXOR});
    if (groups & bits) found.insert(found.end(), {MPI_BAND, MPI_BOR, MPI_BXOR});
    if (groups & pairs) found.insert(found.end(), {MPI_MAXLOC, MPI_MINLOC});
    return found;
}

void every_combination(Kind kind, int count) {
    for (const Legal& each : legal())
        for (MPI_Op op : operations(each.groups))
            each.run(kind, op, each.type, each.text, count);
}

// Sizes around every algorithm's threshold, two types.
void every_size(Kind kind) {
    for (int count : {0, 1, 2, 9, 1000, 8192, 16384, 100003}) {
        reduce<double>(kind, MPI_SUM, MPI_DOUBLE, "MPI_DOUBLE", count);
        reduce<std::int8_t>(kind, MPI_MAX, MPI_INT8_T, "MPI_INT8_T", count);
    }
}

}  // namespace

MPI_CASE(reductions_of_1, 1) {
    every_combination(Kind::host, 17);
}
MPI_CASE(reductions_of_2, 2) {
    every_combination(Kind::host, 17);
}
MPI_CASE(reductions_of_3, 3) {
    every_combination(Kind::host, 17);
}
MPI_CASE(reductions_of_5, 5) {
    every_combination(Kind::host, 17);
}
MPI_CASE(reductions_of_2_on_devices, 2) {
    every_combination(Kind::device, 17);
}
MPI_CASE(reductions_of_3_on_devices, 3) {
    every_combination(Kind::device, 17);
}
MPI_CASE(reduction_sizes_of_2, 2) {
    every_size(Kind::host);
}
MPI_CASE(reduction_sizes_of_3, 3) {
    every_size(Kind::host);
}
MPI_CASE(reduction_sizes_of_4, 4) {
    every_size(Kind::host);
}
MPI_CASE(reduction_sizes_of_7, 7) {
    every_size(Kind::host);
}
MPI_CASE(reduction_sizes_of_8, 8) {
    every_size(Kind::host);
}
MPI_CASE(reduction_sizes_of_2_on_devices, 2) {
    every_size(Kind::device);
}
MPI_CASE(reduction_sizes_of_3_on_devices, 3) {
    every_size(Kind::device);
}

// --- by kernels, whatever the size ------------------------------------------------------------------

static void start_with_kernels() {
    setenv("GANTRY_REDUCE_ON", "gpu", 1);
    start_mpi();
}

MPI_CASE_OWN_INIT(reductions_of_2_by_kernels, 2) {
    start_with_kernels();
    every_combination(Kind::device, 17);
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reductions_of_3_by_kernels, 3) {
    start_with_kernels();
    every_combination(Kind::device, 17);
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reduction_sizes_of_2_by_kernels, 2) {
    start_with_kernels();
    every_size(Kind::device);
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reduction_sizes_of_3_by_kernels, 3) {
    start_with_kernels();
    every_size(Kind::device);
    OK(MPI_Finalize());
}

// Each rank's vectors lie in another kind of memory.
static void mixed_kinds() {
    start_with_kernels();
    const Kind kinds[] = {Kind::device, Kind::managed, Kind::pinned, Kind::host};
    for (std::size_t shift = 0; shift < std::size(kinds); ++shift)
        every_combination(kinds[(static_cast<std::size_t>(rank()) + shift) % std::size(kinds)], 17);
}
MPI_CASE_OWN_INIT(reductions_of_2_in_mixed_memory, 2) {
    mixed_kinds();
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reductions_of_3_in_mixed_memory, 3) {
    mixed_kinds();
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reductions_of_memory_that_pools_and_pages_give, 2) {
    start_with_kernels();
    for (Kind kind : {Kind::pool, Kind::vmm, Kind::shared_pool}) {
        reduce<double>(kind, MPI_SUM, MPI_DOUBLE, "MPI_DOUBLE", 100003);
        reduce<std::int8_t>(kind, MPI_BXOR, MPI_INT8_T, "MPI_INT8_T", 1001);
    }
    OK(MPI_Finalize());
}
MPI_CASE_OWN_INIT(reductions_of_3_without_kernels, 3) {
    setenv("GANTRY_KERNELS", "off", 1);
    start_with_kernels();
    every_combination(Kind::device, 17);
    every_size(Kind::device);
    OK(MPI_Finalize());
}

static void ignore_failure(MPI_Comm*, int*, ...) {}

// What GANTRY_CHECK=1 says of these is looked at by endings_test.py.
MPI_CASE_ENDING(checked_end, 2) {
    char one = 1, sum = 0;
    for (int i = 0; i < 2; ++i)
        OK(MPI_Allreduce(&one, &sum, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, 2);
    MPI_Comm named, nameless;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &named));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &nameless));
    OK(MPI_Comm_set_name(named, "halo"));
    MPI_Datatype row;
    OK(MPI_Type_contiguous(3, MPI_INT, &row));
    OK(MPI_Type_set_name(row, "row"));
    MPI_Group group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    MPI_Info info;
    OK(MPI_Info_create(&info));
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(ignore_failure, &handler));
    MPI_Op op;
    OK(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op));
    MPI_Request request;
    OK(MPI_Send_init(&one, 1, MPI_CHAR, rank(), 0, MPI_COMM_WORLD, &request));
}

// a then b: keeps the first of the left and the last of the right. Associative, does not commute.
static void join(void* left, void* right, int* length, MPI_Datatype* type) {
    if (*type != MPI_2INT) MPI_Abort(MPI_COMM_WORLD, 3);
    auto* a = static_cast<int(*)[2]>(left);
    auto* b = static_cast<int(*)[2]>(right);
    for (int i = 0; i < *length; ++i)
        b[i][0] = a[i][0];
}

static void ordered_reduction() {
    MPI_Op op;
    OK(MPI_Op_create(join, 0, &op));
    for (int count : {1, 20000}) {
        about(std::to_string(count) + " items");
        std::vector<int> out(static_cast<std::size_t>(2 * count), rank()), in(out.size(), -1);
        OK(MPI_Allreduce(out.data(), in.data(), count, MPI_2INT, op, MPI_COMM_WORLD));
        CHECK(in[0] == 0 && in[1] == size() - 1);
        CHECK(in[in.size() - 2] == 0 && in.back() == size() - 1);
        const int root = size() / 2;
        OK(MPI_Reduce(out.data(), in.data(), count, MPI_2INT, op, root, MPI_COMM_WORLD));
        if (rank() == root) CHECK(in[0] == 0 && in[1] == size() - 1);
        OK(MPI_Scan(out.data(), in.data(), count, MPI_2INT, op, MPI_COMM_WORLD));
        CHECK(in[0] == 0 && in[1] == rank());
    }
    about("");
    OK(MPI_Op_free(&op));
}

MPI_CASE(operations_that_do_not_commute_keep_the_order_of_4, 4) {
    ordered_reduction();
}
MPI_CASE(operations_that_do_not_commute_keep_the_order_of_7, 7) {
    ordered_reduction();
}

// --- local reduction of device memory, and types that are freed before their operation ends --------

// Sums two of every three integers; notes when it cannot ask about the type it is given.
static bool type_is_dead = false;
static void sum_pairs(void* in, void* inout, int* length, MPI_Datatype* type) {
    MPI_Aint lower_bound = 0, extent = 0;
    if (MPI_Type_get_extent(*type, &lower_bound, &extent) != MPI_SUCCESS) type_is_dead = true;
    auto* a = static_cast<int(*)[3]>(in);
    auto* b = static_cast<int(*)[3]>(inout);
    for (int i = 0; i < *length; ++i) {
        b[i][0] += a[i][0];
        b[i][2] += a[i][2];
    }
}

// The first and the third of three integers.
static MPI_Datatype pairs_with_a_hole() {
    MPI_Datatype type;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

MPI_CASE(reduce_local_takes_every_kind_of_memory, 1) {
    constexpr int kCount = 1000;
    MPI_Op op;
    OK(MPI_Op_create(sum_pairs, 1, &op));
    MPI_Datatype pairs = pairs_with_a_hole();
    std::vector<int> ones(3 * kCount, 1), twos(3 * kCount, 2), result(3 * kCount);
    const std::size_t bytes = ones.size() * sizeof(int);
    for (Kind in_kind : every_kind())
        for (Kind inout_kind : every_kind()) {
            about(std::string("from ") + name(in_kind) + " into " + name(inout_kind));
            Memory in(in_kind, bytes), inout(inout_kind, bytes);
            in.write(ones.data(), bytes);
            inout.write(twos.data(), bytes);
            OK(MPI_Reduce_local(in.data(), inout.data(), 3 * kCount, MPI_INT, MPI_SUM));
            inout.read(result.data(), bytes);
            CHECK(result == std::vector<int>(3 * kCount, 3));
            OK(MPI_Reduce_local(in.data(), inout.data(), kCount, pairs, op));
            inout.read(result.data(), bytes);
            for (int i = 0; i < 3 * kCount; ++i)
                if (result[static_cast<std::size_t>(i)] != (i % 3 == 1 ? 3 : 4)) {
                    fail(__FILE__, __LINE__, "wrong at " + std::to_string(i));
                    break;
                }
        }
    about("");
    OK(MPI_Type_free(&pairs));
    OK(MPI_Op_free(&op));
}

MPI_CASE(an_operation_may_ask_about_a_type_that_was_freed_meanwhile, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int out[6] = {1, 0, 2, 3, 0, 4}, in[6] = {};
    MPI_Op op;
    OK(MPI_Op_create(sum_pairs, 1, &op));
    MPI_Datatype pairs = pairs_with_a_hole();
    MPI_Request once, often;
    OK(MPI_Iallreduce(out, in, 2, pairs, op, MPI_COMM_WORLD, &once));
    OK(MPI_Allreduce_init(out, in, 2, pairs, op, MPI_COMM_WORLD, MPI_INFO_NULL, &often));
    const MPI_Datatype stale = pairs;
    OK(MPI_Type_free(&pairs));
    OK(MPI_Op_free(&op));
    OK(MPI_Wait(&once, MPI_STATUS_IGNORE));
    CHECK_EQ(in[5], 8);
    OK(MPI_Start(&often));
    OK(MPI_Wait(&often, MPI_STATUS_IGNORE));
    CHECK(!type_is_dead);
    // It lives for the operation only.
    int bytes = 0;
    CHECK_EQ(error_class(MPI_Type_size(stale, &bytes)), MPI_ERR_TYPE);
    OK(MPI_Request_free(&often));
}
