// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "protocol/image/elf.h"
#include "protocol/image/fatbin.h"
#include "protocol/image/mapped_memory.h"
#include "protocol/image/ptx_header.h"

namespace remora::image {
namespace {

// A wrapper as nvcc lays it into .nvFatBinSegment: magic, version, pointer to the fat binary, and
// in version 2 a null-terminated array of the fat binaries that went into the device link.
constexpr std::uint64_t kWrapperBytes = 24;
constexpr std::uint64_t kMostParts = 65536;

// A flattened linked image (docs/fat-binary.md): header, one size for each part, then the parts,
// each padded to 16 bytes. The first part is the linked one.
constexpr std::uint32_t kContainerMagic = 0x4C4D4552;  // "REML"
constexpr std::uint32_t kContainerVersion = 1;
constexpr std::uint64_t kContainerHeaderBytes = 16;
constexpr std::uint64_t kPartAlignment = 16;

Error invalid(std::string text) { return {ErrorKind::invalid_input, 0, std::move(text)}; }

/// One piece of an image: everything but a wrapper.
struct Part {
  Kind kind;
  Bytes bytes;
};

Result<Bytes> whole(const void* image, std::uint64_t size, std::string_view what) {
  if (size > kMaxImageBytes)
    return invalid(fmt::format("The {} claims {} bytes; at most {} are accepted.", what, size,
                               kMaxImageBytes));
  const Bytes bytes = mapped_prefix(image, size);
  if (bytes.size() < size)
    return invalid(
        fmt::format("The {} claims {} bytes, but memory ends after {}.", what, size, bytes.size()));
  return bytes;
}

Result<Bytes> find_cubin(const void* image) {
  Bytes tables = mapped_prefix(image, 64);
  for (int pass = 0; pass < 2; ++pass) {
    REMORA_TRY(const std::uint64_t tables_end, elf_tables_end(tables));
    REMORA_TRY(tables, whole(image, tables_end, "cubin"));
  }
  REMORA_TRY(const std::uint64_t size, elf_file_size(tables));
  return whole(image, size, "cubin");
}

Result<Bytes> find_ptx(const void* image) {
  for (std::uint64_t reach = 64 * 1024;; reach *= 2) {
    const Bytes bytes = mapped_prefix(image, reach);
    if (const void* end = std::memchr(bytes.data(), 0, bytes.size())) {
      const Bytes text = bytes.first(static_cast<const std::byte*>(end) - bytes.data() + 1);
      const std::string_view content(reinterpret_cast<const char*>(text.data()), text.size() - 1);
      if (!looks_like_ptx(content))
        return invalid("The image is neither a fat binary nor a cubin nor PTX text.");
      return text;
    }
    if (bytes.size() < reach || reach >= kMaxImageBytes)
      return invalid("The image is neither a fat binary nor a cubin nor PTX text with an end.");
  }
}

Result<Part> find_part(const void* image) {
  const Bytes header = mapped_prefix(image, kFatBinaryHeaderBytes);
  const std::uint32_t magic = load_at<std::uint32_t>(header, 0).value_or(0);
  if (magic == kFatBinaryMagic) {
    const auto size = claimed_fat_binary_size(header);
    if (!size) return invalid("The header of the fat binary makes no sense.");
    REMORA_TRY(const Bytes bytes, whole(image, *size, "fat binary"));
    return Part{Kind::fat_binary, bytes};
  }
  if (magic == kElfMagic) {
    REMORA_TRY(const Bytes bytes, find_cubin(image));
    return Part{Kind::cubin, bytes};
  }
  REMORA_TRY(const Bytes bytes, find_ptx(image));
  return Part{Kind::ptx_text, bytes};
}

/// The same for bytes with a known end, all of which must belong to the part.
Result<Part> read_part(Bytes bytes) {
  const std::uint32_t magic = load_at<std::uint32_t>(bytes, 0).value_or(0);
  if (magic == kFatBinaryMagic) {
    if (claimed_fat_binary_size(bytes) != bytes.size())
      return invalid(fmt::format("The fat binary of {} bytes claims {}.", bytes.size(),
                                 claimed_fat_binary_size(bytes).value_or(0)));
    return Part{Kind::fat_binary, bytes};
  }
  if (magic == kElfMagic) {
    REMORA_TRY(const std::uint64_t size, elf_file_size(bytes));
    if (size != bytes.size())
      return invalid(fmt::format("The cubin of {} bytes claims {}.", bytes.size(), size));
    return Part{Kind::cubin, bytes};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.find('\0') != text.size() - 1 || text.empty() || !looks_like_ptx(text))
    return invalid(fmt::format("An image of {} bytes is of no known kind.", bytes.size()));
  return Part{Kind::ptx_text, bytes};
}

Result<ImageView> follow_wrapper(const void* image) {
  const Bytes wrapper = mapped_prefix(image, kWrapperBytes);
  if (wrapper.size() < kWrapperBytes) return invalid("The fat binary's wrapper is cut short.");
  const auto version = load_unaligned<std::uint32_t>(wrapper.data() + 4);
  const auto* data = load_unaligned<const void*>(wrapper.data() + 8);
  const auto* list = load_unaligned<const std::byte*>(wrapper.data() + 16);
  if (version != 1 && version != 2)
    return invalid(
        fmt::format("The fat binary's wrapper has version {}; 1 and 2 are known.", version));
  REMORA_TRY(const Part main, find_part(data));
  ImageView view{main.kind, main.bytes, {}};
  // In version 1 the third word is a file name.
  if (version == 1 || list == nullptr) return view;
  view.kind = Kind::linked_fat_binary;
  for (;; list += sizeof(void*)) {
    const Bytes slot = mapped_prefix(list, sizeof(void*));
    if (slot.size() < sizeof(void*) || view.pre_link.size() == kMostParts)
      return invalid("The list of fat binaries in the wrapper has no end.");
    const auto* part_address = load_unaligned<const void*>(slot.data());
    if (part_address == nullptr) return view;
    REMORA_TRY(const Part part, find_part(part_address));
    view.pre_link.push_back(part.bytes);
  }
}

Result<ImageView> read_container(Bytes bytes) {
  const auto version = load_at<std::uint32_t>(bytes, 4);
  const auto count = load_at<std::uint32_t>(bytes, 8);
  if (!version || !count || *version != kContainerVersion || *count == 0 || *count > kMostParts)
    return invalid("The header of a linked image makes no sense.");
  std::uint64_t at =
      align_up(kContainerHeaderBytes + *count * sizeof(std::uint64_t), kPartAlignment);
  ImageView view{Kind::linked_fat_binary, {}, {}};
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto size =
        load_at<std::uint64_t>(bytes, kContainerHeaderBytes + i * sizeof(std::uint64_t));
    const auto part_bytes = size ? slice(bytes, at, *size) : std::nullopt;
    if (!part_bytes)
      return invalid(fmt::format("Part {} of a linked image passes its end, {}.", i, bytes.size()));
    REMORA_TRY(const Part part, read_part(*part_bytes));
    if (i == 0)
      view.main = part.bytes;
    else
      view.pre_link.push_back(part.bytes);
    at = align_up(at + *size, kPartAlignment);
  }
  if (at != bytes.size()) return invalid("A linked image has bytes behind its last part.");
  return view;
}

}  // namespace

Result<ImageView> find_extent(const void* image) {
  const auto magic = load_at<std::uint32_t>(mapped_prefix(image, sizeof(std::uint32_t)), 0);
  if (magic == kWrapperMagic) return follow_wrapper(image);
  REMORA_TRY(const Part part, find_part(image));
  return ImageView{part.kind, part.bytes, {}};
}

FlatImage flatten(const ImageView& image) {
  FlatImage flat;
  if (image.kind != Kind::linked_fat_binary) {
    flat.bytes = image.main;
    return flat;
  }
  std::vector<Bytes> parts{image.main};
  parts.insert(parts.end(), image.pre_link.begin(), image.pre_link.end());
  std::uint64_t size =
      align_up(kContainerHeaderBytes + parts.size() * sizeof(std::uint64_t), kPartAlignment);
  std::uint64_t at = size;
  for (const Bytes part : parts) size += align_up(part.size(), kPartAlignment);

  flat.storage.resize(size);
  std::byte* out = flat.storage.data();
  store_unaligned(out, kContainerMagic);
  store_unaligned(out + 4, kContainerVersion);
  store_unaligned(out + 8, static_cast<std::uint32_t>(parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    store_unaligned(out + kContainerHeaderBytes + i * sizeof(std::uint64_t),
                    std::uint64_t{parts[i].size()});
    std::ranges::copy(parts[i], out + at);
    at += align_up(parts[i].size(), kPartAlignment);
  }
  flat.bytes = flat.storage;
  return flat;
}

Result<ImageView> read_flat(Bytes bytes) {
  if (load_at<std::uint32_t>(bytes, 0) == kContainerMagic) return read_container(bytes);
  REMORA_TRY(const Part part, read_part(bytes));
  return ImageView{part.kind, part.bytes, {}};
}

LoadableImage::LoadableImage(const ImageView& image) : pointer_(image.main.data()) {
  if (image.kind != Kind::linked_fat_binary) return;
  for (const Bytes part : image.pre_link) parts_.push_back(part.data());
  parts_.push_back(nullptr);
  wrapper_ = {kWrapperMagic, 2, image.main.data(), parts_.data()};
  pointer_ = &wrapper_;
}

}  // namespace remora::image
