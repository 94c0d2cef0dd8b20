#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the description into code.

    generate.py --cuda INCLUDE --out DIR EMITTER…    writes what emit_EMITTER.py emits under DIR
    generate.py --cuda INCLUDE --check               checks the rules only
    generate.py --cuda INCLUDE --verify EMITTER --out DIR   fails when a file under DIR differs
    generate.py --assign-ids                         appends numbers of new entries to call_ids.txt

An emitter is a module with emit(api, toolkit) → {path below DIR: text}. A file whose text has not
changed is not touched. Errors name file and line of the description.
"""

import argparse
import importlib
import pathlib
import sys

from check import check
from import_headers import Toolkit
from read import SpecError, read_api

_API = pathlib.Path(__file__).resolve().parent.parent / "api"


def main():
    options = _arguments()
    try:
        api = read_api(_API)
        if options.assign_ids:
            return _assign_ids(api)
        if not options.cuda:
            sys.exit("--cuda is missing")
        toolkit = Toolkit(options.cuda, options.cc)
        errors = check(api, toolkit)
        if errors:
            sys.exit("\n".join(errors))
        for name in options.emitters:
            files = importlib.import_module(f"emit_{name}").emit(api, toolkit)
            if options.verify:
                _verify(name, files, options.out)
            else:
                _write(files, options.out)
    except SpecError as error:
        sys.exit(str(error))
    return 0


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", help="the toolkit's include folder")
    parser.add_argument("--cc", default="cc", help="C compiler that preprocesses cuda.h")
    parser.add_argument("--out", type=pathlib.Path, help="folder that files are written under")
    parser.add_argument("--check", action="store_true", help="check the rules and write nothing")
    parser.add_argument("--verify", action="store_true", help="compare instead of writing")
    parser.add_argument("--assign-ids", action="store_true", help="number new entries")
    parser.add_argument("emitters", nargs="*", metavar="EMITTER")
    options = parser.parse_args()
    if options.emitters and not options.out:
        parser.error("--out is missing")
    return options


def _write(files, out):
    for name, text in files.items():
        path = out / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _verify(emitter, files, out):
    stale = [n for n, text in files.items() if not (out / n).exists() or (out / n).read_text() != text]
    if stale:
        command = f"protocol/generate/generate.py --cuda INCLUDE --out {out} {emitter}"
        sys.exit(f"stale: {', '.join(stale)}\nIf the change is meant, refresh with: {command}")


def _assign_ids(api):
    numbers = len(api.ids)
    with (_API / "call_ids.txt").open("a") as file:
        for entry in api.entries:
            if not entry.call_id:
                numbers += 1
                file.write(f"{numbers} {entry.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
