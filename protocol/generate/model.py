# SPDX-License-Identifier: Apache-2.0
"""The model of the CUDA surface: what read.py makes of protocol/api and emitters turn into code.

    api = read_api(folder)               # Api
    for entry in api.entries:            # Entry, in order of file and line
        entry.name                       # ELF name: "cuMemAlloc_v2"
        entry.call_class                 # "local" "posted" "awaited" "pushed" "unsupported"
        entry.has_record                 # it has bytes on the wire: struct <name>_call exists
        entry.by_hand_client             # its behaviour in the client is written by hand
        for param in entry.params:       # Param, as the C function takes them
            param.kind                   # Kind: how it travels, if it does
        entry.call_fields                # [Field] of struct <name>_call, in wire order
        entry.reply_fields               # [Field] of struct <name>_reply, in wire order
"""

import dataclasses
import enum
import re


class Kind(enum.Enum):
    """How a parameter travels."""

    VALUE = "value"  # number, enumeration or device ordinal
    HANDLE = "handle"  # object id
    ADDRESS = "address"  # device address
    IN = "IN"  # one value behind a pointer, read
    OUT = "OUT"  # one value behind a pointer, written
    INOUT = "INOUT"
    IN_N = "IN_N"  # array of n, read
    OUT_N = "OUT_N"  # array of at most n, written
    IN_BYTES = "IN_BYTES"
    OUT_BYTES = "OUT_BYTES"
    STR = "STR"  # text that ends with a zero
    NEW = "NEW"  # object id that the client chooses
    NEW_VA = "NEW_VA"  # device range that the client chooses
    BULK_IN = "BULK_IN"  # bytes that may travel beside the record
    BULK_OUT = "BULK_OUT"
    IMAGE = "IMAGE"  # module image: its content hash travels
    KERNEL_PARAMS = "KERNEL_PARAMS"  # parameter block of a launch, packed by the kernel's layout
    CALLBACK = "CALLBACK"  # function of the program; never travels
    OPAQUE = "OPAQUE"  # memory of the program that means nothing elsewhere; never travels
    UNMARKED = "unmarked"  # a pointer without a word; only where there is no record


@dataclasses.dataclass(frozen=True)
class Type:
    """What types.api.h says about a C type."""

    name: str
    category: str  # "scalar" "enum" "handle" "address" "struct"
    cpp: str  # the type of its field in a record
    limit: str = ""  # enum: values are 0 <= v < limit, a constant of cuda.h

    @property
    def kind(self):
        return {"handle": Kind.HANDLE, "address": Kind.ADDRESS}.get(self.category, Kind.VALUE)


@dataclasses.dataclass(frozen=True)
class Size:
    """A length: a product of parameter names and integer constants, as written."""

    text: str

    @property
    def factors(self):
        return [f.strip() for f in self.text.split("*")]

    @property
    def names(self):
        return [f for f in self.factors if not f.isdigit()]


@dataclasses.dataclass(frozen=True)
class Param:
    name: str
    c_type: str  # the whole C type: "const void *"
    base: str  # without const and pointers: "void"
    pointers: int  # how many
    is_const: bool
    kind: Kind
    type: Type | None  # of base; None where types.api.h does not say (void, and types of local calls)
    size: Size | None = None  # argument of IN_N, OUT_N, …, NEW_VA
    nullable: bool = False
    device_read: Size | None = None
    device_write: Size | None = None
    layout_of: str = ""  # KERNEL_PARAMS(f): the parameter that says whose layout it is

    @property
    def c_declaration(self):
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.name}"

    @property
    def is_output(self):
        return self.kind in (Kind.OUT, Kind.INOUT, Kind.OUT_N, Kind.OUT_BYTES, Kind.BULK_OUT)


@dataclasses.dataclass(frozen=True)
class Field:
    """A member of a generated struct. `param` is None for members without a parameter of theirs."""

    name: str
    cpp: str  # C++ type of the member
    param: Param


@dataclasses.dataclass(frozen=True)
class Twin:
    """The variant of an entry in which stream 0 means the thread's own default stream."""

    suffix: str  # "_ptsz" or "_ptds"
    since: int  # driver version that cuGetProcAddress knows it from
    name: str  # ELF name


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str  # ELF name, also the name in CallId
    call_class: str  # "local" "posted" "awaited" "pushed" "unsupported"
    by_hand: frozenset  # of "client", "server"
    since: int  # driver version in which this form appeared; 0 for remora_* and unversioned names
    twin: Twin | None
    lowered: tuple  # names of the calls that it becomes; it then has no record of its own
    unsupported_code: str  # UNSUPPORTED(code)
    return_type: str
    params: tuple
    domain: str  # file it stands in, without .api.h: "memory"
    file: str
    line: int
    doc: str  # the comment above it
    call_id: int  # from call_ids.txt; 0 when it has none yet

    @property
    def base_name(self):
        """The name that cuGetProcAddress is asked for: without _v2, _v3, …"""
        return re.sub(r"_v\d+$", "", self.name)

    @property
    def is_session_call(self):
        """Ours (remora_*), not CUDA's: no export, no driver table slot."""
        return self.name.startswith("remora_")

    @property
    def by_hand_client(self):
        return "client" in self.by_hand

    @property
    def by_hand_server(self):
        return "server" in self.by_hand

    @property
    def has_record(self):
        return self.call_class in ("posted", "awaited", "pushed") and not self.lowered

    @property
    def has_reply(self):
        """It can be answered: every record of the client can (a posted one that asks for it)."""
        return self.has_record and self.call_class != "pushed"

    @property
    def where(self):
        return f"{self.file}:{self.line}"

    @property
    def c_signature(self):
        params = ", ".join(p.c_declaration for p in self.params) or "void"
        space = "" if self.return_type.endswith("*") else " "
        return f"{self.return_type}{space}{self.name}({params})"

    @property
    def call_fields(self):
        return _fields(self, _call_field)

    @property
    def reply_fields(self):
        return _fields(self, _reply_field) if self.has_reply else []

    def array_counted_by(self, count):
        """The inline array whose length is this parameter. The count then has no field: the array's
        own length says it (call.attributes.size())."""
        for param in self.params:
            if param.kind in (Kind.IN_N, Kind.IN_BYTES) and not param.nullable:
                if param.size.text == count.name:
                    return param
        return None

    def param(self, name):
        return next((p for p in self.params if p.name == name), None)


@dataclasses.dataclass(frozen=True)
class Api:
    entries: tuple  # of Entry
    types: dict  # C name → Type
    domains: tuple  # names of the files with entries, in order
    ids: dict  # name → number, all that call_ids.txt ever gave, also to names no longer described

    @property
    def by_name(self):
        return {e.name: e for e in self.entries}

    @property
    def records(self):
        return [e for e in self.entries if e.has_record]

    def of_domain(self, domain):
        return [e for e in self.entries if e.domain == domain]


def _fields(entry, rule):
    if not entry.has_record:
        return []
    fields, seen_kernel_params = [], False
    for param in entry.params:
        if entry.array_counted_by(param):
            continue
        if param.kind is Kind.KERNEL_PARAMS:
            # kernelParams and extra are two spellings of one block: one field, named by the first.
            if seen_kernel_params:
                continue
            seen_kernel_params = True
        cpp = rule(param)
        if cpp:
            fields.append(Field(_field_name(param, rule), cpp, param))
    return fields


def _field_name(param, rule):
    if rule is _call_field and param.kind is Kind.OUT and param.nullable:
        return param.name + "_wanted"
    return param.name


def _call_field(param):
    """C++ type of the parameter's member in <name>_call, or "" when it has none."""
    kind, cpp = param.kind, param.type.cpp if param.type else ""
    if kind in (Kind.VALUE, Kind.HANDLE, Kind.ADDRESS):
        return cpp
    if kind is Kind.OUT:
        return "bool" if param.nullable else ""
    plain = {
        Kind.IN: cpp,
        Kind.INOUT: cpp,
        Kind.IN_N: f"ArrayView<{cpp}>",
        Kind.IN_BYTES: "Bytes",
        Kind.STR: "std::string_view",
        Kind.NEW: "ObjectId",
        Kind.NEW_VA: "std::uint64_t",
        Kind.BULK_IN: "BulkIn",
        Kind.BULK_OUT: "BulkOut",
        Kind.IMAGE: "ContentHash",
        Kind.KERNEL_PARAMS: "Bytes",
    }.get(kind, "")
    return f"std::optional<{plain}>" if plain and param.nullable else plain


def _reply_field(param):
    """C++ type of the parameter's member in <name>_reply, or ""."""
    cpp = param.type.cpp if param.type else ""
    plain = {
        Kind.OUT: cpp,
        Kind.INOUT: cpp,
        Kind.OUT_N: f"ArrayView<{cpp}>",
        Kind.OUT_BYTES: "Bytes",
        Kind.BULK_OUT: "Bytes",
    }.get(param.kind, "")
    return f"std::optional<{plain}>" if plain and param.nullable else plain
