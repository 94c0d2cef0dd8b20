// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/module_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "protocol/image/elf.h"
#include "protocol/image/fatbin.h"
#include "protocol/image/ptx_header.h"

namespace remora::image {
namespace {

/// PTX as text: up to the first NUL, since fat binaries pad with NULs.
std::string_view text_of(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

Result<ModuleContents> contents_of(const FatBinaryEntry& entry) {
  std::vector<std::byte> storage;
  Bytes content = entry.stored;
  if (entry.compression != Compression::none) {
    REMORA_TRY(storage, decompress(entry));
    content = storage;
  }
  return entry.kind == EntryKind::cubin ? read_cubin(content) : scan_ptx(text_of(content));
}

/// Cheapest to read first: a cubin in place has its names in tables, PTX has to be scanned.
std::uint64_t cost_of(const FatBinaryEntry& entry) {
  if (entry.compression != Compression::none) return 4 * entry.uncompressed_size;
  return entry.kind == EntryKind::cubin ? 0 : entry.uncompressed_size;
}

Result<ModuleContents> summarize_fat_binary(Bytes bytes) {
  REMORA_TRY(std::vector<FatBinaryEntry> entries, read_fat_binary(bytes));
  std::erase_if(entries, [](const auto& entry) { return entry.kind == EntryKind::lto_ir; });
  std::ranges::stable_sort(entries, {}, cost_of);
  Error why{ErrorKind::not_found, 0, "The fat binary holds neither PTX nor a cubin."};
  for (const FatBinaryEntry& entry : entries) {
    auto contents = contents_of(entry);
    if (contents) return contents;
    why = std::move(contents).error();
  }
  return why;
}

/// Can a device of this capability run the entry, compiling it if it is PTX?
bool can_run(const FatBinaryEntry& entry, std::uint32_t compute_capability) {
  if (entry.flags & kFlagArchSpecific) return entry.arch == compute_capability;
  if (entry.flags & kFlagFamilySpecific)
    return entry.arch / 10 == compute_capability / 10 && entry.arch <= compute_capability;
  return entry.arch <= compute_capability;
}

Result<PtxText> select_from_fat_binary(Bytes bytes, std::uint32_t compute_capability) {
  REMORA_TRY(const std::vector<FatBinaryEntry> entries, read_fat_binary(bytes));
  const FatBinaryEntry* best = nullptr;
  std::string others;
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind == EntryKind::ptx && can_run(entry, compute_capability)) {
      if (best == nullptr || entry.arch > best->arch) best = &entry;
    } else {
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ",
                            entry.kind == EntryKind::ptx     ? "PTX"
                            : entry.kind == EntryKind::cubin ? "machine code"
                                                             : "LTO code",
                            entry.arch);
    }
  }
  if (best == nullptr)
    return Error{
        ErrorKind::not_found, 0,
        fmt::format("The fat binary holds no PTX for compute capability {}.{}; it holds {}.",
                    compute_capability / 10, compute_capability % 10,
                    others.empty() ? "nothing" : others)};
  if (best->compression == Compression::none)
    return PtxText{best->arch, std::string(text_of(best->stored))};
  REMORA_TRY(const std::vector<std::byte> content, decompress(*best));
  return PtxText{best->arch, std::string(text_of(content))};
}

}  // namespace

Result<ModuleContents> summarize(const ImageView& image) {
  switch (image.kind) {
    case Kind::ptx_text:
      return scan_ptx(text_of(image.main));
    case Kind::cubin:
      return read_cubin(image.main);
    case Kind::fat_binary:
      return summarize_fat_binary(image.main);
    case Kind::linked_fat_binary:
      return summarize_fat_binary(image.main);
  }
  return Error{ErrorKind::internal, 0, "An image is of no known kind."};
}

Result<std::vector<PtxText>> select_ptx(const ImageView& image, std::uint32_t compute_capability) {
  std::vector<PtxText> texts;
  switch (image.kind) {
    case Kind::ptx_text: {
      const std::string_view text = text_of(image.main);
      const auto arch = ptx_target(text);
      texts.push_back({arch ? *arch : 0, std::string(text)});
      return texts;
    }
    case Kind::cubin:
      return Error{ErrorKind::not_found, 0, "The image is machine code (a cubin) without PTX."};
    case Kind::fat_binary: {
      REMORA_TRY(PtxText text, select_from_fat_binary(image.main, compute_capability));
      texts.push_back(std::move(text));
      return texts;
    }
    case Kind::linked_fat_binary:
      for (const Bytes part : image.pre_link) {
        REMORA_TRY(PtxText text, select_from_fat_binary(part, compute_capability));
        texts.push_back(std::move(text));
      }
      return texts;
  }
  return Error{ErrorKind::internal, 0, "An image is of no known kind."};
}

}  // namespace remora::image
