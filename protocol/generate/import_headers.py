#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA toolkit's headers say: every exported driver name, and the versions by which
cuGetProcAddress knows its forms. The description is checked against this, and the names that it
lacks become refusing stubs, so that the table of exports is total.

    import_headers.py --cuda /usr/local/cuda/include    # lists what the description lacks
"""

import argparse
import functools
import pathlib
import re
import subprocess
import sys

_API = pathlib.Path(__file__).resolve().parent.parent / "api"


class Toolkit:
    """Reads the headers of `include` when first asked, with the C preprocessor `cc`."""

    def __init__(self, include, cc="cc"):
        self.include = pathlib.Path(include)
        self.cc = cc

    @functools.cached_property
    def names(self):
        """ELF names of all driver calls, graphics interop included, sorted."""
        return tuple(sorted(set(self._driver_names) | self._interop_names))

    @functools.cached_property
    def forms(self):
        """(base name, version, twin suffix or "") → parameter types, normalised by types_of()."""
        text = "".join(
            (self.include / header).read_text()
            for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h")
            if (self.include / header).exists()
        )
        pattern = r"typedef\s+CUresult\s*\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)\s*\(([^;]*)\);"
        return {
            (base, int(version), suffix): types_of(params)
            for base, version, suffix, params in re.findall(pattern, text)
        }

    @functools.cached_property
    def _driver_names(self):
        source = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n"
        if not (self.include / "cudaProfiler.h").exists():
            source = source.replace("#include <cudaProfiler.h>\n", "")
        done = subprocess.run(
            [self.cc, "-E", "-P", "-x", "c", "-I", str(self.include), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{self.cc} cannot read cuda.h of {self.include}:\n{done.stderr}")
        return re.findall(r"CUresult\s+(cu\w+)\s*\(", done.stdout)

    @property
    def _interop_names(self):
        """Read as text, since the headers of OpenGL, EGL and VDPAU need not be there."""
        names = set()
        for header in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"):
            path = self.include / header
            if not path.exists():
                continue
            text = path.read_text()
            names.update(re.findall(r"CUresult CUDAAPI (cu\w+)\s*\(", text))
            names.update(re.findall(r"#define cu\w+\s+(cu\w+)\s*$", text, re.M))
            for twin, name in re.findall(r"__CUDA_API_(PTDS|PTSZ)\((cu\w+)\)", text):
                names.update((name, f"{name}_{twin.lower()}"))
        return {name for name in names if not name.startswith("cuWGL")}

    def missing(self, api):
        """Names that the toolkit exports and the description lacks."""
        described = {e.name for e in api.entries} | {e.twin.name for e in api.entries if e.twin}
        return [name for name in self.names if name not in described]


def types_of(params):
    """'CUdevice_v1 *dev, size_t n' → ('CUdevice*', 'size_t'): without names and struct versions."""
    types = []
    for param in params.split(","):
        tokens = re.findall(r"\w+|\*", param)
        if tokens in ([], ["void"]):
            continue
        if len(tokens) > 1 and tokens[-1] != "*":
            tokens.pop()
        types.append(re.sub(r"_v\d+\b", "", " ".join(tokens)).replace(" *", "*"))
    return tuple(types)


def main():
    from read import read_api

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", required=True, help="the toolkit's include folder")
    parser.add_argument("--cc", default="cc", help="C compiler that preprocesses")
    options = parser.parse_args()
    for name in Toolkit(options.cuda, options.cc).missing(read_api(_API)):
        print(name)


if __name__ == "__main__":
    sys.exit(main())
