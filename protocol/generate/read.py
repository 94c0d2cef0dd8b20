# SPDX-License-Identifier: Apache-2.0
"""Reads the description of the CUDA surface, protocol/api, into the model of model.py.

The description is C that compiles after <cuda.h> with the annotation words empty; here the same
text is read with the words kept. A file is a sequence of declarations that end with ';':

    types.api.h     HANDLE(CUstream); ADDRESS(CUdeviceptr); ENUM(CUlimit, CU_LIMIT_MAX); …
    <domain>.api.h  word… return-type name(word… type name, …);

What the words mean is in annotations.h; which combinations are allowed is in check.py.
"""

import pathlib
import re

from model import Api, Entry, Kind, Param, Size, Twin, Type

SCALARS = {
    "unsigned char": "std::uint8_t",
    "unsigned short": "std::uint16_t",
    "int": "std::int32_t",
    "unsigned int": "std::uint32_t",
    "unsigned long long": "std::uint64_t",
    "size_t": "std::uint64_t",
    "float": "float",
    "double": "double",
    "int32_t": "std::int32_t",
    "uint32_t": "std::uint32_t",
    "uint64_t": "std::uint64_t",
    "cuuint32_t": "std::uint32_t",
    "cuuint64_t": "std::uint64_t",
}

CLASS_WORDS = {"LOCAL", "POSTED", "AWAITED", "PUSHED", "UNSUPPORTED"}
ENTRY_WORDS = CLASS_WORDS | {"BY_HAND", "SINCE", "TWIN", "LOWERED"}
KIND_WORDS = {kind.value: kind for kind in Kind if kind.value.isupper()}
SIZED_WORDS = {"IN_N", "OUT_N", "IN_BYTES", "OUT_BYTES", "NEW_VA", "BULK_IN", "BULK_OUT"}
PARAM_WORDS = set(KIND_WORDS) | {"NULLABLE", "DEVICE_READ", "DEVICE_WRITE"}


class SpecError(Exception):
    """A mistake in the description; the text begins with file:line."""


def read_api(folder):
    """The Api of a folder of *.api.h files. Raises SpecError."""
    folder = pathlib.Path(folder)
    types = read_types(folder / "types.api.h")
    ids = read_call_ids(folder / "call_ids.txt")
    entries, domains = [], []
    for path in sorted(folder.glob("*.api.h")):
        if path.name == "types.api.h":
            continue
        domain = path.name.removesuffix(".api.h")
        domains.append(domain)
        for declaration in _declarations(path):
            entries.append(_EntryParser(declaration, domain, types, ids).parse())
    seen = {}
    for entry in entries:
        if entry.name in seen:
            raise SpecError(f"{entry.where}: {entry.name} is already described in {seen[entry.name]}")
        seen[entry.name] = entry.where
    return Api(tuple(entries), types, tuple(domains), ids)


def read_types(path):
    types = {name: Type(name, "scalar", cpp) for name, cpp in SCALARS.items()}
    for declaration in _declarations(path):
        cursor = _Cursor(declaration)
        word = cursor.identifier("HANDLE, ADDRESS, ORDINAL, ENUM or STRUCT")
        name, *rest = cursor.arguments()
        cursor.expect_end()
        if word == "HANDLE" and not rest:
            types[name] = Type(name, "handle", "ObjectId")
        elif word == "ADDRESS" and not rest:
            types[name] = Type(name, "address", "std::uint64_t")
        elif word == "ORDINAL" and not rest:
            types[name] = Type(name, "scalar", "std::int32_t")
        elif word == "ENUM" and len(rest) == 1:
            types[name] = Type(name, "enum", "std::int32_t", rest[0])
        elif word == "STRUCT" and not rest:
            types[name] = Type(name, "struct", name)
        else:
            cursor.fail(f"{word} with {len(rest) + 1} arguments says nothing about a type")
    return types


def read_call_ids(path):
    ids = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(\d+)\s+(\w+)", line)
        if not match:
            raise SpecError(f"{_short(path)}:{number}: expected a number and a name")
        value, name = int(match[1]), match[2]
        if name in ids:
            raise SpecError(f"{_short(path)}:{number}: {name} has a number already")
        if value != len(ids) + 1:
            raise SpecError(f"{_short(path)}:{number}: numbers rise by one; {len(ids) + 1} is next")
        ids[name] = value
    return ids


def _short(path):
    """The path as errors and generated comments show it: from the repository's root."""
    return "/".join(path.resolve().parts[-3:])


class _Declaration:
    def __init__(self, file, tokens, doc):
        self.file = file
        self.tokens = tokens  # [(text, line)]
        self.doc = doc


_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+|[(),;*]|\S")
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*", re.S | re.M)


def _declarations(path):
    text = path.read_text()
    lines = text.splitlines()
    code = _NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    pending = []
    for number, line in enumerate(code.splitlines(), 1):
        for match in _TOKEN.finditer(line):
            if match[0] != ";":
                pending.append((match[0], number))
                continue
            yield _Declaration(_short(path), pending, _comment_above(lines, pending[0][1]))
            pending = []
    if pending:
        raise SpecError(f"{_short(path)}:{pending[0][1]}: the declaration does not end with ';'")


def _comment_above(lines, number):
    words, i = [], number - 2
    while i >= 0 and lines[i].startswith("//"):
        words.insert(0, lines[i].removeprefix("//").strip())
        i -= 1
    return " ".join(words)


class _Cursor:
    """Walks over the tokens of one declaration."""

    def __init__(self, declaration):
        self.declaration = declaration
        self.tokens = declaration.tokens
        self.at = 0

    def fail(self, text):
        line = self.tokens[min(self.at, len(self.tokens) - 1)][1]
        raise SpecError(f"{self.declaration.file}:{line}: {text}")

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self):
        text = self.peek()
        self.at += 1
        return text

    def accept(self, text):
        if self.peek() == text:
            self.at += 1
            return True
        return False

    def expect(self, text):
        if not self.accept(text):
            self.fail(f"expected '{text}', found '{self.peek()}'")

    def identifier(self, what):
        if not re.match(r"[A-Za-z_]", self.peek()):
            self.fail(f"expected {what}, found '{self.peek()}'")
        return self.take()

    def arguments(self):
        """(a, b * c) → ["a", "b * c"]; [] where there is no parenthesis."""
        if not self.accept("("):
            return []
        arguments, current = [], []
        while not self.accept(")"):
            if not self.peek():
                self.fail("expected ')'")
            if self.accept(","):
                arguments.append(" ".join(current))
                current = []
            else:
                current.append(self.take())
        return arguments + [" ".join(current)]

    def expect_end(self):
        if self.peek():
            self.fail(f"expected ';', found '{self.peek()}'")


class _EntryParser(_Cursor):
    def __init__(self, declaration, domain, types, ids):
        super().__init__(declaration)
        self.domain = domain
        self.types = types
        self.ids = ids

    def parse(self):
        words = self.words(ENTRY_WORDS)
        classes = [word for word in words if word in CLASS_WORDS]
        if len(classes) != 1:
            self.fail("an entry has exactly one of " + ", ".join(sorted(CLASS_WORDS)))
        return_type, name = self.return_type_and_name()
        line = self.tokens[self.at - 1][1]
        twin = None
        if "TWIN" in words:
            suffix, since = self.exactly(words, "TWIN", 2)
            twin = Twin(suffix, self.version(since), name + suffix)
        entry = Entry(
            name=name,
            call_class=classes[0].lower(),
            by_hand=frozenset(words.get("BY_HAND", [])),
            since=self.version(self.exactly(words, "SINCE", 1)[0]) if "SINCE" in words else 0,
            twin=twin,
            lowered=tuple(words.get("LOWERED", [])),
            unsupported_code=self.exactly(words, "UNSUPPORTED", 1)[0]
            if "UNSUPPORTED" in words
            else "",
            return_type=return_type,
            params=self.params(),
            domain=self.domain,
            file=self.declaration.file,
            line=line,
            doc=self.declaration.doc,
            call_id=self.ids.get(name, 0),
        )
        self.expect_end()
        return entry

    def words(self, known):
        """Leading annotation words → {word: [arguments]}."""
        words = {}
        while self.peek() in known:
            word = self.take()
            if word in words:
                self.fail(f"{word} stands twice")
            words[word] = self.arguments()
        return words

    def exactly(self, words, word, count):
        if len(words[word]) != count:
            self.fail(f"{word} takes {count} argument(s)")
        return words[word]

    def version(self, text):
        if not text.isdigit():
            self.fail(f"'{text}' is not a driver version")
        return int(text)

    def return_type_and_name(self):
        spelled = []
        while self.peek() != "(":
            if self.peek() != "*":
                self.identifier("a type and a name")
                self.at -= 1
            spelled.append(self.take())
        if len(spelled) < 2:
            self.fail("expected a return type and a name; is an annotation word unknown?")
        return " ".join(spelled[:-1]), spelled[-1]

    def params(self):
        self.expect("(")
        if self.accept("void"):
            if self.accept(")"):
                return ()
            self.at -= 1
        params = [self.param()]
        while self.accept(","):
            params.append(self.param())
        self.expect(")")
        return tuple(params)

    def param(self):
        words = self.words(PARAM_WORDS)
        spelled = []
        while self.peek() not in (",", ")"):
            if self.peek() != "*":
                self.identifier("a parameter")
                self.at -= 1
            spelled.append(self.take())
        if len(spelled) < 2 or spelled[-1] == "*":
            self.fail("expected a type and a name of a parameter")
        *c_type, name = spelled
        base = " ".join(t for t in c_type if t not in ("const", "*"))
        param_type = self.types.get(base)
        pointers = c_type.count("*")
        kinds = [word for word in words if word in KIND_WORDS]
        if len(kinds) > 1:
            self.fail(f"{name} has more than one of {', '.join(kinds)}")
        word = kinds[0] if kinds else ""
        if word:
            kind = KIND_WORDS[word]
        elif pointers:
            kind = Kind.UNMARKED
        else:
            kind = param_type.kind if param_type else Kind.UNMARKED
        return Param(
            name=name,
            c_type=" ".join(c_type).replace("* *", "**"),
            base=base,
            pointers=pointers,
            is_const="const" in c_type,
            kind=kind,
            type=param_type,
            size=Size(self.exactly(words, word, 1)[0]) if word in SIZED_WORDS else None,
            nullable="NULLABLE" in words,
            device_read=self.range(words, "DEVICE_READ"),
            device_write=self.range(words, "DEVICE_WRITE"),
            layout_of=self.exactly(words, word, 1)[0] if word == "KERNEL_PARAMS" else "",
        )

    def range(self, words, word):
        return Size(self.exactly(words, word, 1)[0]) if word in words else None
