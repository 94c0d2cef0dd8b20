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

/// How far `bytes` must reach for elf_file_size(): to the end of the section and program tables. A
/// file with very many sections keeps their number in the table itself, so ask again with that many
/// bytes.
Result<std::uint64_t> elf_tables_end(Bytes bytes);

/// Where the file ends: at the largest end of a table or of a section that has bytes.
Result<std::uint64_t> elf_file_size(Bytes bytes);

}  // namespace remora::image
