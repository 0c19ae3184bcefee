# SPDX-License-Identifier: BSD-3-Clause
"""The C entry points: what stands in each `PMPI_x` (entry_files.py writes them).

Every built entry point reads the same: look up the handles, judge the other arguments in order
(the first failure counts), widen what the int form has narrower, call the body, narrow what it
returned, leave through the error handler if it failed. The three forms of a collective differ in
the function that carries out what the body described (mpi/coll/collective_call.hpp). What is judged how comes from kinds.toml;
here stand only the things that need more than one parameter at a time.
"""

import re

import bodies
import tool_entries
from bodies import HANDLES, KINDS

SCOPES = ("COMMUNICATOR", "WINDOW", "FILE", "SESSION")
# Calls that touch nothing which threads of a program share, besides their arguments.
ANYWHERE = re.compile(
    "MPI_(Get_version|Get_library_version|Get_address|Pcontrol|Test_cancelled|Abi_get_version"
    "|Status_[gs]et_(error|source|tag|cancelled))"
)
COUNTS = (
    "POLYXFER_NUM_ELEM",
    "POLYXFER_NUM_ELEM_NNI",
    "POLYDTYPE_NUM_ELEM",
    "POLYDTYPE_NUM_ELEM_NNI",
)
MOVES_DATA = ("pt2pt", "partitioned", "coll", "topology", "rma", "io")


def not_in_place(function, buffer: str) -> str:
    """C++: MPI_IN_PLACE does not stand for this buffer of a collective; empty where it never may.
    It stands for the send buffer, of a scatter for the receive buffer, only at the root if there is
    one, and never between the groups of an inter-communicator, where it is judged as an address."""
    scatter = "catter" in function.name and "educe" not in function.name
    names = {p.name for p in function.parameters}
    if function.chapter != "coll" or "recvbuf" not in names:
        return ""
    if buffer != ("recvbuf" if scatter else "sendbuf"):
        return ""
    if "root" in names:
        return f"!(call.is_root() && call.in_place({buffer}))"
    return f"!call.in_place({buffer})"


class Side:
    """One side of a two-sided collective: its parameters and the C++ condition under which they
    mean anything."""

    def __init__(self, function, side: str):
        other_displacements = (
            {"displs"} if (side == "send") == ("catterv" in function.name) else set()
        )
        mine = {
            "send": {"sendbuf", "sendcount", "sendcounts", "sdispls", "sendtype", "sendtypes"},
            "recv": {"recvbuf", "recvcount", "recvcounts", "rdispls", "recvtype", "recvtypes"},
        }[side] | other_displacements
        self.parameters = [p for p in function.parameters if p.name in mine]
        self.flag = "sends" if side == "send" else "receives"
        at_root = any(p.root_only for p in self.parameters if "type" in p.name)
        rooted = any(p.name == "root" for p in function.parameters)
        terms = [f"call.{'is_root' if at_root else 'is_leaf'}()"] if rooted else []
        terms += [not_in_place(function, side + "buf")]
        self.condition = " && ".join(term for term in terms if term) or "true"


class Entry:
    def __init__(self, function, name: str, large: bool):
        self.function, self.name, self.large = function, name, large
        self.parameters = function.parameters
        self.sides = (
            [Side(function, "send"), Side(function, "recv")] if bodies.two_sided(function) else []
        )

    # --- what belongs together

    def flag_of(self, parameter) -> str:
        for side in self.sides:
            if parameter in side.parameters:
                return side.flag
        rooted = self.function.chapter == "coll" and any(p.name == "root" for p in self.parameters)
        if rooted and parameter.name in ("sendbuf", "buffer"):
            if parameter.name == "buffer":
                return "call.takes_part()"
            return "call.is_leaf() && " + not_in_place(self.function, parameter.name)
        if rooted and bodies.by_pointer(self.function, parameter):
            return "call.takes_part()"
        if self.function.chapter == "topology" and parameter.kind == "BUFFER":
            # Who has no neighbors may have no buffer.
            return f"{self.extent_of(parameter)} > 0"
        if parameter.name == "sendbuf":
            return not_in_place(self.function, parameter.name)
        if parameter.root_only:
            return "call.is_root()" if self.function.chapter == "coll" else "unknown"
        return ""

    def described_by(self, buffer) -> tuple:
        """The parameters that count a buffer's elements and give their type."""
        rest = self.parameters[self.parameters.index(buffer) + 1 :]
        count = next((p for p in rest if p.kind in COUNTS), None)
        kind = next((p for p in rest if p.kind == "DATATYPE" and p.direction == "in"), None)
        if count is None or kind is None or rest.index(count) > rest.index(kind):
            return None, None
        return count, kind

    def partners(self, buffer) -> tuple:
        """The count and the datatype of a buffer as C++, if it is one block."""
        count, kind = self.described_by(buffer)
        if count is None or kind.array:
            return None, None
        if not count.array:
            return count.name, kind.name
        # Of all shares, a rank receives its own.
        own = "educe_scatter" in self.function.name and buffer.name == "recvbuf"
        return (f"call.share({count.name})", kind.name) if own else (None, None)

    def extent_of(self, parameter) -> str:
        """How many elements an array has, as C++; empty if that cannot be known here."""
        if isinstance(parameter.length, list):
            return parameter.length[0]
        if parameter.length and parameter.length != "*":
            return parameter.length
        if self.function.chapter == "coll":
            return "call.members()" if "educe_scatter" in self.function.name else "call.peers()"
        if self.function.chapter == "topology" and "eighbor" in self.function.name:
            return (
                "call.sends_to()"
                if parameter.name.startswith(("send", "sdispl"))
                else "call.receives_from()"
            )
        return ""

    def wildcards(self) -> bool:
        return self.function.row.get("wildcards", True) and any(
            p.name == "source" for p in self.parameters
        )

    # --- statements

    def moves(self, p) -> bool:
        """Whether data is moved with this datatype."""
        return p.kind == "DATATYPE" and (
            self.function.chapter in MOVES_DATA
            and any(q.kind == "BUFFER" for q in self.parameters)
            or self.function.name
            in ("MPI_Pack", "MPI_Unpack", "MPI_Pack_external", "MPI_Unpack_external")
        )

    def made(self, p) -> str:
        """For the error handler of what the call is to make: its Errhandler::Kind."""
        scopes = [q for q in self.parameters if q.kind in SCOPES]
        if p.kind != "ERRHANDLER" or any(q.direction != "out" for q in scopes):
            return ""
        return "session" if any(q.kind == "SESSION" for q in scopes) else "comm"

    def judge_object(self, p) -> str:
        function = self.function
        if self.made(p):
            kind = f"mpi::Errhandler::Kind::{self.made(p)}"
            return f'auto* {p.name}_ = call.handler_of_new("{p.name}", {p.name}, {kind});'
        if bodies.listed(function, p, "optional") or self.flag_of(p) == "unknown":
            return f"auto* {p.name}_ = call.optional({p.name});"
        if p.kind == "INFO" and bodies.by_pointer(function, p):
            judged = f'call.info("{p.name}", {p.name});'
            return f"auto* {p.name}_ = {judged}" if self.taken_by_body(p) else judged
        method = "transfer_type" if self.moves(p) else "object"
        judged = f'call.{method}("{p.name}", {p.name}{self.count_beside(p)})'
        flag = self.flag_of(p)
        if flag and bodies.by_pointer(function, p):
            judged = f"{flag} ? {judged} : nullptr"
        return f"auto* {p.name}_ = {judged};"

    def count_beside(self, p) -> str:
        """The count of the data that is moved with this datatype, as a further argument."""
        buffers = [q for q in self.parameters if q.kind == "BUFFER"] if self.moves(p) else []
        counts = [count for count, kind in map(self.partners, buffers) if kind == p.name]
        return f", {counts[0]}" if counts and counts[0].isidentifier() else ""

    def judge_handle(self, p) -> str:
        """Handles that stay the ABI's: output pointers, what they hold, arrays."""
        nullable = bodies.listed(self.function, p, "nullable")
        null = "Null::allowed" if nullable else "Null::refused"
        if p.array and p.direction != "out":
            extent = self.extent_of(p)
            if self.moves(p):
                counts = p.name.replace("types", "counts")
                judged = f'call.transfer_types("{p.name}", {p.name}, {counts}, {extent});'
                return judged if extent else ""
            return f'call.handles("{p.name}", {p.name}, {extent}, {null});' if extent else ""
        if p.array:
            return f'call.array("{p.name}", {p.name}, {self.extent_of(p)});'
        if "*" not in p.c:
            return f'call.nullable("{p.name}", {p.name});'
        if p.direction == "out":
            return f'call.pointer("{p.name}", {p.name});'
        return f'call.handle_at("{p.name}", {p.name}, {null});'

    def may_be_null(self, p) -> bool:
        rules = KINDS["may_be_null"]
        if p.kind in ("FUNCTION", "POLYFUNCTION"):
            return p.c.rstrip("*") not in rules["callbacks"] and p.kind != "POLYFUNCTION"
        return any(
            key in rules["kinds"]
            for key in (p.kind, f"{p.kind}.{p.direction}", f"{p.kind}.array" if p.array else "")
        )

    def judge_value(self, p) -> str:
        rule = KINDS["by_name"].get(p.name)
        if rule is None or rule.get("kind", p.kind) != p.kind:
            rule = KINDS["value"].get(p.kind)
        if rule is None:
            return ""
        check, error = rule["check"], rule["error"]
        if check == "tag":
            check = "tag_or_any" if self.wildcards() and p.name in ("tag", "recvtag") else "tag"
        if check == "source" and not self.wildcards():
            check = "destination"
        return f'call.{check}("{p.name}", {p.name}, {error});'

    def judge_buffer(self, p) -> str:
        count, kind = self.partners(p)
        if p.name == "location" or bodies.listed(self.function, p, "unjudged"):
            return ""
        if count is None:
            return self.judge_blocks(p)
        return f'call.buffer("{p.name}", {p.name}, {count}, {kind});'

    def judge_blocks(self, p) -> str:
        """A buffer of one block for each rank."""
        counts, kind = self.described_by(p)
        if counts is None or not self.function.form:
            return ""
        between = self.parameters[self.parameters.index(counts) + 1 : self.parameters.index(kind)]
        places = next((other.name for other in between if "displs" in other.name), "nullptr")
        extent = self.extent_of(counts)
        return f'call.blocks("{p.name}", {p.name}, {counts.name}, {places}, {extent}, {kind.name});'

    def judge_array(self, p) -> str:
        extent = self.extent_of(p)
        rule = KINDS["value"].get(p.kind)
        if not extent:
            return ""
        if rule and rule["check"] in ("not_negative", "positive"):
            return f'call.each_{rule["check"]}("{p.name}", {p.name}, {extent}, {rule["error"]});'
        return f'call.array("{p.name}", {p.name}, {extent});'

    def judge(self, p) -> str:
        """The statement that judges one parameter, or nothing."""
        if self.function.chapter == "tool":
            return tool_entries.judge(self, p)
        if p.large_only and not self.large or p.c == "...":
            return ""
        if bodies.is_object(self.function, p):
            return self.judge_object(p)
        if p.kind in HANDLES:
            statement = self.judge_handle(p)
        elif p.kind == "BUFFER":
            statement = self.judge_buffer(p)
        elif self.may_be_null(p) or bodies.listed(self.function, p, "unjudged"):
            statement = ""
        elif p.array and p.kind != "STRING":
            statement = self.judge_array(p)
        elif p.direction == "in" and (p.kind == "STRING" or "*" not in p.c):
            statement = self.judge_value(p)
        else:
            statement = f'call.pointer("{p.name}", {p.name});'
        flag = self.flag_of(p)
        if not statement or flag == "unknown":
            return ""
        return f"if ({flag}) {statement}" if flag else statement

    def distinct(self) -> list:
        """Send and receive buffers of a collective must not be the same memory."""
        names = {p.name: p for p in self.parameters}
        if self.function.chapter != "coll" or "sendbuf" not in names or "recvbuf" not in names:
            return []
        send, receive = self.partners(names["sendbuf"])[0], self.partners(names["recvbuf"])[0]
        if "educe_scatter" in self.function.name:
            send = receive
        if send is None or receive is None:
            return []
        terms = [
            self.flag_of(names["sendbuf"]),
            self.flag_of(names["recvbuf"]),
            f"{send} > 0",
            f"{receive} > 0",
        ]
        condition = " && ".join(dict.fromkeys(term for term in terms if term))
        return [f"if ({condition}) call.distinct(sendbuf, recvbuf);"]

    def widen(self, p) -> tuple:
        """(statements before the call, argument, statements after it) for a parameter narrower than
        the body's."""
        if p.array:
            flag = self.flag_of(p)
            extent = f"{flag} ? {self.extent_of(p)} : 0" if flag else self.extent_of(p)
            element = p.c_large.removeprefix("const ")
            return (
                [f"Widened<{element}> {p.name}_(call, {p.name}, {extent});"],
                f"{p.name}_.data()",
                [],
            )
        if "*" in p.c:
            kind = p.c_large.rstrip("*")
            start = f"*{p.name}" if p.direction == "inout" else "0"
            return (
                [f"{kind} {p.name}_ = {start};"],
                f"&{p.name}_",
                [f"*{p.name} = narrow({p.name}_);"],
            )
        return [], p.name, []

    def argument(self, p) -> tuple:
        if p.c == "...":
            return [], None, []
        if p.large_only and not self.large:
            return [], "nullptr" if "*" in p.c or p.array else "0", []
        if bodies.is_object(self.function, p):
            return [], p.name + "_" if bodies.by_pointer(self.function, p) else f"*{p.name}_", []
        if p.kind == "POLYFUNCTION":
            return [], f"nullptr, {p.name}" if self.large else f"{p.name}, nullptr", []
        if bodies.widened(p) and not self.large:
            return self.widen(p)
        return [], p.name, []

    def taken_by_body(self, p) -> bool:
        """The body of a collective describes the operation; what only its nonblocking and
        persistent forms have is no part of that."""
        extra = {"nonblocking": ("request",), "persistent": ("info", "request")}
        return p.name not in extra.get(self.function.form, ())

    def call_of_body(self, arguments: list) -> str:
        """C++: the Status of the body, carried out."""
        function = self.function
        body = f"mpi::{function.body}({', '.join(arguments)})"
        if self.large and any(p.name == "newtype" for p in self.parameters):
            body = f"mpi::with_large_counts({body}, newtype)"
        if function.form == "blocking":
            body = f"mpi::blocking(*comm_, {body})"
        elif function.form:
            return f"mpi::{function.form}(*comm_, {body}, request)"
        waits = function.row.get("blocking") or function.form == "blocking"
        return f"mpi::wait({body})" if waits else body

    def statements(self) -> list:
        function = self.function
        if function.row.get("direct"):
            call = f"return mpi::{function.body}({', '.join(p.name for p in self.parameters)});"
            # Those that look up handles do so inside the boundary; times and addresses need none.
            lookup = function.name.endswith(("_toint", "_fromint"))
            return ["const mpi::Visit visit;", call] if lookup else [call]
        if function.chapter == "tool":
            return tool_entries.statements(self)
        when = "When::always" if function.row.get("when") == "always" else "When::running"
        if ANYWHERE.fullmatch(function.name) and when == "When::always":
            when = "When::anywhere"
        lines = [f'Call call("{self.name}", {when});']
        if self.about_files():
            lines.append("call.about_files();")
        if function.row.get("outside"):
            arguments = ", ".join(p.name for p in self.parameters)
            call = f"mpi::outside::{function.body}({arguments})"
            lines.insert(0, f"if ({call}) return MPI_SUCCESS;")
        # The object whose error handler is to judge failures comes first, and what the other
        # judgements refer to.
        first = [
            p
            for p in self.parameters
            if p.kind in SCOPES
            and p.direction != "out"
            or bodies.is_object(function, p)
            and self.made(p)
        ] + [p for p in self.parameters if p.name == "root"]
        lines += [self.judge(p) for p in first]
        if function.row.get("one_group"):
            lines.append("call.one_group();")
        lines += [f"const bool {side.flag} = {side.condition};" for side in self.sides]
        lines += [self.judge(p) for p in self.parameters if p not in first]
        lines += self.distinct()
        lines = [line for line in lines if line]
        lines.append("if (call.failed()) return call.leave();")
        pieces = [self.argument(p) for p in self.parameters if self.taken_by_body(p)]
        before = [line for piece in pieces for line in piece[0]]
        after = [line for piece in pieces for line in piece[2]]
        lines += before
        if any("Widened<" in line for line in before):
            lines.append("if (call.failed()) return call.leave();")
        arguments = [piece[1] for piece in pieces if piece[1]]
        if function.form == "blocking":
            lines.append("mpi::Turn turn(*comm_);")
        if function.row.get("mailbox") and function.form == "blocking":
            quick = f"mpi::quick::{function.body}({', '.join(arguments)})"
            lines.append(f"if (auto ended = {quick}) return call.leave(turn.end(std::move(*ended)));")
        body = self.call_of_body(arguments)
        if function.form == "blocking":
            body = f"turn.end({body})"
        if after:
            lines += (
                [f"Status outcome = {body};", "if (outcome.ok()) {"]
                + ["    " + line for line in after]
                + ["}"]
            )
            body = "std::move(outcome)"
        return lines + [f"return call.leave({body});"]

    def about_files(self) -> bool:
        """Without a live file, MPI_FILE_NULL's error handler hears of a failure (MPI 5.0 section
        14.7)."""
        return self.function.chapter == "io" or any(
            p.kind == "FILE" and p.direction != "out" and self.function.chapter == "errhandler"
            for p in self.parameters
        )

    def head(self, used, name="", large=None) -> str:
        """The definition's first line; parameters that `used` denies have no name, so that no
        compiler asks about them."""
        large = self.large if large is None else large
        listed = [
            p.declaration(large, named=p.c == "..." or used(p)) for p in self.function.of(large)
        ]
        return f"{self.function.returns} {name or 'P' + self.name}({', '.join(listed)})"

    def definition(self) -> str:
        lines = self.statements()
        if not self.function.row.get("at_once"):
            return self.block(lines)
        # What judges stands apart, so that a call which is carried out at once need not keep its
        # arguments for it.
        judged = f"judged_{self.name}"
        arguments = ", ".join([p.name for p in self.parameters] + [judged])
        at_once = f"return mpi::at_once::{self.function.body}({arguments});"
        return f"static {self.block(lines, judged, large=True)}\n{self.block([at_once])}"

    def block(self, lines: list, name="", large=None) -> str:
        used = lambda p: any(re.search(rf"\b{p.name}\b", line) for line in lines)
        head = self.head(used, name, large)
        return "\n".join([head + " {"] + ["    " + line for line in lines] + ["}"])

    def stub(self) -> str:
        """A function that is not built: it exists, says so, and is an error like any other."""
        scope = next(
            (
                p
                for p in self.function.of(self.large)
                if p.kind in SCOPES and p.direction == "in" and not p.array
            ),
            None,
        )
        if self.function.chapter == "io" and (scope is None or scope.kind != "FILE"):
            scope = None
            answer = f'not_built("{self.name}", MPI_FILE_NULL)'
        else:
            answer = f'not_built("{self.name}"{f", {scope.name}" if scope else ""})'
        if self.function.chapter == "tool":
            scope, answer = None, "MPI_T_ERR_NOT_SUPPORTED"
        return f"{self.head(lambda p: p is scope)} {{ return {answer}; }}"
