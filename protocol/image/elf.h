// SPDX-License-Identifier: Apache-2.0
// Reads a cubin (an ELF file for one GPU architecture): its kernels, the layout of their parameters
// (.nv.info.<kernel>, KPARAM_INFO) and its global variables. The machine code stays opaque.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/image/module_contents.h"

namespace remora::image {

inline constexpr std::uint32_t kElfMagic = 0x464C457F;

/// Kernels and globals by name.
Result<ModuleContents> read_cubin(Bytes bytes);

/// Where the file ends: the largest end of the section table, the program headers and every section
/// that has bytes. `bytes` must reach to the end of the section table at least; how far that is
/// says elf_tables_end() from the first 64 bytes.
Result<std::uint64_t> elf_file_size(Bytes bytes);
Result<std::uint64_t> elf_tables_end(Bytes header);

}  // namespace remora::image
