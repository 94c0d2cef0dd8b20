#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layout: a folder includes only from the floors below it, always from the root, and
every source file begins with its licence.

    include_rules_test.py ROOT
"""

import pathlib
import re
import subprocess
import sys

LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCE_SUFFIXES = {".h", ".cpp", ".c", ".cu", ".cuh", ".py", ".cmake", ".sh"}
SOURCE_NAMES = {"CMakeLists.txt", ".clang-format", ".clang-tidy"}

# What each folder may include from. Folders of one floor never include each other.
FLOOR_1 = {"protocol", "transport"}
ALLOWED = {
    "base": set(),
    "protocol": {"base"},
    "transport": {"base"},
    "client_shim": {"base"} | FLOOR_1,
    "server": {"base"} | FLOOR_1,
    "broker": {"base"} | FLOOR_1,
    "softgpu": {"base", "protocol/image", "protocol/cudart"},
    # protocol/image and protocol/cudart are targets of their own that stand on base alone.
    "protocol/image": {"base"},
    "protocol/cudart": {"base"},
}
FREE = {"cli", "bench", "tests", "examples"}  # the top floor
FOLDERS = {name.split("/")[0] for name in ALLOWED} | FREE

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def owner_of(path: str) -> str:
    """The most specific folder with a rule that `path` lies in."""
    two = "/".join(path.split("/")[:2])
    return two if two in ALLOWED else path.split("/")[0]


def is_allowed(path: str, included: str) -> bool:
    owner = owner_of(path)
    if owner in FREE:
        return True
    return any(included.startswith(folder + "/") for folder in ALLOWED[owner] | {owner})


def sources(root: pathlib.Path):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # an exported tree
        names = [str(p.relative_to(root)) for p in root.rglob("*")
                 if not {"build", ".git", ".cache"} & set(p.relative_to(root).parts)]
    for name in names:
        if (root / name).is_file():
            yield name


def problems_of(root: pathlib.Path):
    for name in sorted(sources(root)):
        path = root / name
        is_script = name.startswith(("scripts/", ".ci/")) and not path.suffix
        if path.suffix not in SOURCE_SUFFIXES and path.name not in SOURCE_NAMES and not is_script:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if LICENCE not in "\n".join(text.splitlines()[:2]):
            yield f"{name}: the licence line is missing ({LICENCE})."
        if path.suffix not in {".h", ".cpp", ".c", ".cu", ".cuh"}:
            continue
        folder = name.split("/")[0]
        if folder not in FOLDERS:
            continue
        for form, included in INCLUDE.findall(text):
            if form == "<":
                continue
            if included.startswith(".") or (
                    (path.parent / included).is_file() and not (root / included).is_file()
                    and folder != "examples"):
                yield f"{name}: includes {included!r}; includes are written from the root."
            elif included.split("/")[0] in FOLDERS and not is_allowed(name, included):
                yield f"{name}: includes {included!r}, which does not stand below {owner_of(name)}."


def self_test():
    """The rule itself can fail: known good and bad pairs."""
    good = [("softgpu/driver/module.cpp", "protocol/image/fatbin.h"), ("cli/run.cpp", "server/x.h"),
            ("protocol/wire/reader.h", "base/bytes.h"), ("server/a.cpp", "server/b.h"),
            ("protocol/cudart/a.cpp", "protocol/cudart/a.h"), ("protocol/wire/a.h", "protocol/image/b.h")]
    bad = [("softgpu/driver/module.cpp", "protocol/wire/reader.h"), ("base/log.cpp", "cli/run.h"),
           ("protocol/image/elf.cpp", "protocol/wire/reader.h"), ("server/a.cpp", "client_shim/b.h"),
           ("transport/a.cpp", "protocol/wire/reader.h"), ("client_shim/a.cpp", "softgpu/b.h")]
    assert all(is_allowed(*pair) for pair in good), good
    assert not any(is_allowed(*pair) for pair in bad), bad


def main() -> int:
    self_test()
    found = list(problems_of(pathlib.Path(sys.argv[1]).resolve()))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
