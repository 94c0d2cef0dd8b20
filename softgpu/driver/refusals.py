#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a weak definition for every call that cuda.h declares: it refuses by name, with
CUDA_ERROR_NOT_SUPPORTED and one log line. What the driver implements is strong and wins at link.

    refusals.py CUDA_H OUTPUT
"""

import pathlib
import re
import sys

text = re.sub(r"/\*.*?\*/", "", pathlib.Path(sys.argv[1]).read_text(), flags=re.S)
names = set(re.findall(r"CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
# Older and per-thread forms stand behind macros: "#define cuMemAlloc cuMemAlloc_v2".
for old, new in re.findall(r"#define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_PT[DS][SZ]?\()?(cu[A-Z]\w*)\)?", text):
    names |= {old, new}

lines = [
    "// SPDX-License-Identifier: Apache-2.0",
    "#include <atomic>",
    "",
    '#include "base/log.h"',
    "",
    "namespace {",
    "int refuse(const char* name, std::atomic_flag& said) {",
    "  if (!said.test_and_set()) remora::log::warn(\"software GPU: {} is not supported\", name);",
    "  return 801;  // CUDA_ERROR_NOT_SUPPORTED",
    "}",
    "}  // namespace",
    "",
    "#define REFUSE(name)                                                                   \\",
    '  extern "C" __attribute__((weak, visibility("default"))) int name() {                 \\',
    "    static std::atomic_flag said;                                                       \\",
    "    return refuse(#name, said);                                                         \\",
    "  }",
]
lines += [f"REFUSE({name})" for name in sorted(names)]
pathlib.Path(sys.argv[2]).write_text("\n".join(lines) + "\n")
