// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/fatbin.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace remora::image {
namespace {

// Offsets in an entry's header (docs/fat-binary.md).
constexpr std::size_t kEntryHeaderSize = 4;
constexpr std::size_t kEntryPayloadSize = 8;
constexpr std::size_t kEntryCompressedSize = 16;
constexpr std::size_t kEntryArch = 28;
constexpr std::size_t kEntryNameOffset = 32;
constexpr std::size_t kEntryNameLength = 36;
constexpr std::size_t kEntryFlags = 40;
constexpr std::size_t kEntryUncompressedSize = 56;
constexpr std::uint32_t kEntryHeaderLeast = 64;

Error broken(std::size_t offset, std::string_view what) {
  return {ErrorKind::invalid_input, 0,
          fmt::format("The fat binary is broken at byte {}: {}.", offset, what)};
}

Compression compression_of(std::uint64_t flags, std::uint32_t compressed_size) {
  if (compressed_size == 0) return Compression::none;
  if (flags & kFlagZstd) return Compression::zstd;
  return Compression::lz4;
}

/// The entry whose bytes (header and all that follows) are `rest`; sets `entry_bytes` to its
/// extent.
Result<FatBinaryEntry> read_entry(Bytes rest, std::size_t at, std::uint64_t& entry_bytes) {
  if (rest.size() < kEntryHeaderLeast) return broken(at, "an entry's header is cut short");
  const auto header_size = load_unaligned<std::uint32_t>(rest.data() + kEntryHeaderSize);
  const auto payload_size = load_unaligned<std::uint64_t>(rest.data() + kEntryPayloadSize);
  const auto compressed_size = load_unaligned<std::uint32_t>(rest.data() + kEntryCompressedSize);
  if (header_size < kEntryHeaderLeast)
    return broken(at, fmt::format("an entry's header claims {} bytes", header_size));
  const auto payload = slice(rest, header_size, payload_size);
  if (!payload)
    return broken(at, fmt::format("an entry claims {} bytes, {} are left", payload_size,
                                  rest.size() - std::min<std::size_t>(rest.size(), header_size)));
  if (compressed_size > payload_size)
    return broken(at, fmt::format("an entry of {} bytes claims {} compressed ones", payload_size,
                                  compressed_size));

  FatBinaryEntry entry;
  entry.kind = static_cast<EntryKind>(load_unaligned<std::uint16_t>(rest.data()));
  entry.arch = load_unaligned<std::uint32_t>(rest.data() + kEntryArch);
  entry.flags = load_unaligned<std::uint64_t>(rest.data() + kEntryFlags);
  entry.compression = compression_of(entry.flags, compressed_size);
  entry.stored =
      entry.compression == Compression::none ? *payload : payload->first(compressed_size);
  entry.uncompressed_size =
      entry.compression == Compression::none
          ? payload->size()
          : load_unaligned<std::uint64_t>(rest.data() + kEntryUncompressedSize);
  const auto name =
      slice(rest.first(header_size), load_unaligned<std::uint32_t>(rest.data() + kEntryNameOffset),
            load_unaligned<std::uint32_t>(rest.data() + kEntryNameLength));
  if (name && !name->empty())
    entry.name = {reinterpret_cast<const char*>(name->data()), name->size()};
  entry_bytes = header_size + payload_size;
  return entry;
}

Error not_decompressed(std::string_view method, std::string_view why) {
  return {ErrorKind::invalid_input, 0,
          fmt::format("An entry of the fat binary does not decompress ({}): {}.", method, why)};
}

}  // namespace

std::optional<std::uint64_t> claimed_fat_binary_size(Bytes header) {
  const auto magic = load_at<std::uint32_t>(header, 0);
  const auto header_size = load_at<std::uint16_t>(header, 6);
  const auto size = load_at<std::uint64_t>(header, 8);
  if (!size || *magic != kFatBinaryMagic || *header_size < kFatBinaryHeaderBytes)
    return std::nullopt;
  return checked_sum(*header_size, *size);
}

Result<std::vector<FatBinaryEntry>> read_fat_binary(Bytes bytes) {
  const auto claimed = claimed_fat_binary_size(bytes);
  if (!claimed) return broken(0, "this is not a fat binary's header");
  if (*claimed > bytes.size())
    return broken(0,
                  fmt::format("the header claims {} bytes, there are {}", *claimed, bytes.size()));
  bytes = bytes.first(*claimed);

  std::vector<FatBinaryEntry> entries;
  std::size_t at = load_unaligned<std::uint16_t>(bytes.data() + 6);
  while (at < bytes.size()) {
    std::uint64_t entry_bytes = 0;
    REMORA_TRY(FatBinaryEntry entry, read_entry(bytes.subspan(at), at, entry_bytes));
    at += entry_bytes;
    switch (entry.kind) {
      case EntryKind::ptx:
      case EntryKind::cubin:
      case EntryKind::lto_ir:
        entries.push_back(entry);
    }
  }
  return entries;
}

Result<std::vector<std::byte>> decompress(const FatBinaryEntry& entry, std::uint64_t most_bytes) {
  if (entry.uncompressed_size > most_bytes)
    return Error{ErrorKind::invalid_input, 0,
                 fmt::format("An entry of the fat binary claims {} bytes uncompressed; at most {} "
                             "are accepted.",
                             entry.uncompressed_size, most_bytes)};
  if (entry.compression == Compression::none)
    return std::vector<std::byte>(entry.stored.begin(), entry.stored.end());

  // A claim far beyond what either method can reach is refused before memory is taken for it.
  constexpr std::uint64_t kMostLz4Ratio = 255;
  std::vector<std::byte> content;
  if (entry.compression == Compression::lz4) {
    if (entry.uncompressed_size > kMostLz4Ratio * entry.stored.size() + 64)
      return not_decompressed("LZ4", "it claims more bytes than its size can hold");
    if (entry.stored.size() > INT_MAX || entry.uncompressed_size > INT_MAX)
      return not_decompressed("LZ4", "it is too large");
    content.resize(entry.uncompressed_size);
    const int size = LZ4_decompress_safe(
        reinterpret_cast<const char*>(entry.stored.data()), reinterpret_cast<char*>(content.data()),
        static_cast<int>(entry.stored.size()), static_cast<int>(content.size()));
    if (size < 0 || static_cast<std::size_t>(size) != content.size())
      return not_decompressed(
          "LZ4", fmt::format("{} of {} bytes come out", size < 0 ? 0 : size, content.size()));
    return content;
  }

  const unsigned long long frame_size =
      ZSTD_getFrameContentSize(entry.stored.data(), entry.stored.size());
  if (frame_size == ZSTD_CONTENTSIZE_ERROR)
    return not_decompressed("zstd", "it does not begin with a frame");
  if (frame_size != ZSTD_CONTENTSIZE_UNKNOWN && frame_size != entry.uncompressed_size)
    return not_decompressed("zstd", fmt::format("the frame holds {} bytes, the entry claims {}",
                                                frame_size, entry.uncompressed_size));
  content.resize(entry.uncompressed_size);
  const std::size_t size =
      ZSTD_decompress(content.data(), content.size(), entry.stored.data(), entry.stored.size());
  if (ZSTD_isError(size)) return not_decompressed("zstd", ZSTD_getErrorName(size));
  if (size != content.size())
    return not_decompressed("zstd", fmt::format("{} of {} bytes come out", size, content.size()));
  return content;
}

}  // namespace remora::image
