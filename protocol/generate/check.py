# SPDX-License-Identifier: Apache-2.0
"""The rules that a description keeps (docs/wire-format.md, annotations.h).

check(api, toolkit) returns messages, each beginning with file:line; none means that all is well.
That each declaration agrees with cuda.h is not checked here: the compiler does that
(protocol/api/check_headers.c).
"""

from import_headers import types_of
from model import Kind

# Which words go with a pointer of which shape.
_ONE_VALUE = {Kind.IN, Kind.OUT, Kind.INOUT}
_ARRAYS = {Kind.IN_N, Kind.OUT_N}
_BYTES = {Kind.IN_BYTES, Kind.OUT_BYTES, Kind.BULK_IN, Kind.BULK_OUT}
_WITHOUT_FIELD = {Kind.CALLBACK, Kind.OPAQUE}
_WRITTEN = {Kind.OUT, Kind.INOUT, Kind.OUT_N, Kind.OUT_BYTES, Kind.BULK_OUT, Kind.NEW, Kind.NEW_VA}
_TWINS = {"_ptsz", "_ptds"}
_MAY_BE_NULL = {Kind.IN, Kind.IN_N, Kind.IN_BYTES, Kind.STR, Kind.OUT, Kind.OUT_N, Kind.OUT_BYTES}
_SIDES = {"client", "server"}


def check(api, toolkit):
    errors = []
    for entry in api.entries:
        rules = _Rules(entry, api, toolkit, errors)
        rules.check_entry()
        for param in entry.params:
            rules.check_param(param)
    return errors


class _Rules:
    def __init__(self, entry, api, toolkit, errors):
        self.entry = entry
        self.api = api
        self.toolkit = toolkit
        self.errors = errors

    def fail(self, text):
        self.errors.append(f"{self.entry.where}: {self.entry.name}: {text}")

    def require(self, condition, text):
        if not condition:
            self.fail(text)

    def check_entry(self):
        entry = self.entry
        if not entry.call_id:
            self.fail(f"has no number; append '{len(self.api.ids) + 1} {entry.name}' to call_ids.txt "
                      "(generate.py --assign-ids)")
        self.require(entry.by_hand <= _SIDES, "BY_HAND knows client and server")
        self.require(not (entry.by_hand_server and not entry.has_record),
                     "has no record, so there is nothing for the server to do by hand")
        if entry.call_class == "local":
            self.require(entry.by_hand_client or entry.lowered,
                         "is local, so its answer is written by hand (BY_HAND(client)) or LOWERED")
        for lowered in entry.lowered:
            target = self.api.by_name.get(lowered)
            self.require(target is not None, f"is LOWERED to {lowered}, which is not described")
            if target and not entry.by_hand_client:
                self.require(len(entry.lowered) == 1 and self._types(entry) == self._types(target),
                             f"has other parameters than {lowered}, so it needs BY_HAND(client)")
        if entry.call_class == "posted" and not entry.by_hand_client:
            for param in entry.params:
                self.require(not param.is_output,
                             f"is POSTED and returns {param.name}, which the client does not choose: "
                             "make it AWAITED or BY_HAND(client)")
        if entry.is_session_call:
            self.require(not entry.since and not entry.twin, "is not CUDA's: no SINCE, no TWIN")
        else:
            self.check_against_toolkit()
        self.require((entry.return_type == "void") == (entry.call_class == "pushed"),
                     "returns CUresult, or void where it is PUSHED")

    def check_against_toolkit(self):
        entry = self.entry
        self.require(entry.name in self.toolkit.names, "is no call of this toolkit's cuda.h")
        self.require(entry.since, "needs SINCE(driver version)")
        self.check_form(entry.since, "")
        if entry.twin:
            self.require(entry.twin.suffix in _TWINS, "TWIN is _ptsz or _ptds")
            self.require(entry.twin.name in self.toolkit.names, f"has no twin {entry.twin.name}")
            self.check_form(entry.twin.since, entry.twin.suffix)
        for suffix in _TWINS:
            if entry.name + suffix in self.toolkit.names:
                self.require(entry.twin and entry.twin.suffix == suffix, f"needs TWIN({suffix}, …)")

    def check_form(self, version, suffix):
        """cudaTypedefs.h knows this form, with these parameter types."""
        forms, base = self.toolkit.forms, self.entry.base_name
        types = forms.get((base, version, suffix))
        if types is None:
            known = sorted(v for b, v, s in forms if b == base and s == suffix)
            self.fail(f"cudaTypedefs.h has no PFN_{base}_v{version}{suffix}; it has versions {known}")
        else:
            self.require(types == self._types(self.entry),
                         f"PFN_{base}_v{version}{suffix} takes {', '.join(types) or 'nothing'}")

    def check_param(self, param):
        name, kind = param.name, param.kind
        if self.entry.has_record:
            if kind is Kind.UNMARKED:
                what = "is a pointer without a word" if param.pointers else "has a type that types.api.h lacks"
                self.fail(f"{name} {what}; on the wire it would mean nothing")
                return
            if kind not in _WITHOUT_FIELD:
                self.check_shape(param)
        if kind is Kind.UNMARKED:
            return
        self.require(not (param.is_const and kind in _WRITTEN), f"{name} is const and written")
        self.require(not param.nullable or kind in _MAY_BE_NULL, f"{name} cannot be NULLABLE")
        for size in (param.size, param.device_read, param.device_write):
            for used in size.names if size else ():
                target = self.entry.param(used)
                self.require(target and target.kind is Kind.VALUE,
                             f"the size of {name} names {used}, which is no value among the parameters")
        if param.device_read or param.device_write:
            self.require(kind is Kind.ADDRESS, f"{name} is no device address")
        if kind is Kind.KERNEL_PARAMS:
            self.require(self.entry.param(param.layout_of), f"{name}: no parameter {param.layout_of}")

    def check_shape(self, param):
        name, kind, pointers = param.name, param.kind, param.pointers
        category = param.type.category if param.type else ""
        if kind in (Kind.VALUE, Kind.HANDLE, Kind.ADDRESS):
            self.require(category != "struct", f"{name} is a struct by value")
        elif kind in _ONE_VALUE | _ARRAYS:
            self.require(pointers == 1 and category, f"{name}: types.api.h lacks {param.base}")
            self.require(category != "handle", f"{name}: objects are named by the client (NEW)")
        elif kind in _BYTES:
            self.require(pointers == 1 and param.base in ("void", "char"), f"{name} is no plain bytes")
        elif kind is Kind.STR:
            self.require(pointers == 1 and param.base == "char", f"{name} is no text")
        elif kind is Kind.NEW:
            self.require(pointers == 1 and category == "handle", f"{name} is no pointer to a handle")
        elif kind is Kind.NEW_VA:
            self.require(pointers == 1 and category == "address", f"{name} is no pointer to an address")
        elif kind is Kind.IMAGE:
            self.require(pointers == 1 and param.base == "void", f"{name} is no image")
        elif kind is Kind.KERNEL_PARAMS:
            self.require(pointers == 2 and param.base == "void", f"{name} is no parameter array")

    @staticmethod
    def _types(entry):
        return types_of(", ".join(p.c_declaration for p in entry.params))
