// SPDX-License-Identifier: Apache-2.0
// The entries of one fat binary: PTX texts and cubins for several architectures, perhaps
// compressed (LZ4 raw block or zstd frame). The layout is a fact found by reading nvcc's output
// (docs/fat-binary.md). Works on bounded bytes; every offset is checked before use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace remora::image {

inline constexpr std::uint32_t kWrapperMagic = 0x466243B1;
inline constexpr std::uint32_t kFatBinaryMagic = 0xBA55ED50;
inline constexpr std::size_t kFatBinaryHeaderBytes = 16;

enum class EntryKind : std::uint16_t { ptx = 1, cubin = 2, lto_ir = 8 };
enum class Compression { none, lz4, zstd };

/// Entry flags that mean something to us.
inline constexpr std::uint64_t kFlagLz4 = 0x2000;
inline constexpr std::uint64_t kFlagZstd = 0x8000;
inline constexpr std::uint64_t kFlagArchSpecific = 0x100000;    // sm_90a: runs on that one only
inline constexpr std::uint64_t kFlagFamilySpecific = 0x200000;  // sm_100f: runs on its family only

struct FatBinaryEntry {
  EntryKind kind = EntryKind::ptx;
  std::uint32_t arch = 0;  // 75, 90, 121: ten times the compute capability
  std::uint64_t flags = 0;
  Compression compression = Compression::none;
  Bytes stored;                         // as it lies in the fat binary, without padding
  std::uint64_t uncompressed_size = 0;  // equal to stored.size() when not compressed
  std::string_view name;                // source name, often empty
};

/// All entries in order. Entries of unknown kinds are left out; a broken one is an error.
Result<std::vector<FatBinaryEntry>> read_fat_binary(Bytes bytes);

/// The size that the header of a fat binary claims, header included; nothing if it is not one.
std::optional<std::uint64_t> claimed_fat_binary_size(Bytes header);

/// An entry of more than this uncompressed is refused: no compiler writes it, an attacker might.
inline constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;

/// The entry's content, decompressed. The exact size must come out.
Result<std::vector<std::byte>> decompress(const FatBinaryEntry& entry,
                                          std::uint64_t most_bytes = kMaxEntryBytes);

}  // namespace remora::image
