// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace remora::image {
namespace {

// What NVIDIA adds to ELF, found by reading cubins (docs/fat-binary.md).
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint8_t kOtherKernel = 0x10;   // st_other of an entry function
constexpr std::uint8_t kOtherManaged = 0x04;  // st_other of a managed variable
constexpr std::uint8_t kFormatSized = 4;      // a record with a u16 length; others hold two bytes
constexpr std::uint8_t kAttributeParameter = 0x17;
constexpr std::uint8_t kAttributeParameterWide = 0x45;  // parameter blocks beyond 4 KiB
constexpr std::uint8_t kAttributeParameterBytes = 0x19;
constexpr std::string_view kInfoPrefix = ".nv.info.";

constexpr std::uint16_t kMostParameters = 4096;
constexpr std::size_t kParameterRecordBytes = 12;

Error broken(std::string_view what) {
  return {ErrorKind::invalid_input, 0, fmt::format("The cubin is broken: {}.", what)};
}

Result<Elf64_Ehdr> read_header(Bytes bytes) {
  const auto header = load_at<Elf64_Ehdr>(bytes, 0);
  if (!header) return broken("its header is cut short");
  if (load_unaligned<std::uint32_t>(header->e_ident) != kElfMagic ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return broken("it is not a 64-bit little-endian ELF file");
  if (header->e_machine != kMachineCuda)
    return broken(
        fmt::format("it is for machine {}, not for a GPU ({})", header->e_machine, kMachineCuda));
  if (header->e_shnum > 0 && header->e_shentsize != sizeof(Elf64_Shdr))
    return broken(fmt::format("a section header has {} bytes", header->e_shentsize));
  if (header->e_phnum > 0 && header->e_phentsize != sizeof(Elf64_Phdr))
    return broken(fmt::format("a program header has {} bytes", header->e_phentsize));
  return *header;
}

struct Section {
  Elf64_Shdr header;
  std::string_view name;
  Bytes bytes;  // empty for a section without bytes in the file
};

/// The text that begins at `offset` of a string table and ends with its NUL.
std::optional<std::string_view> text_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const std::string_view rest(reinterpret_cast<const char*>(table.data()) + offset,
                              table.size() - offset);
  const auto end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

/// More than 0xff00 sections, as large modules have: the count then stands in section 0.
std::uint64_t section_count(const Elf64_Ehdr& header, Bytes bytes) {
  if (header.e_shnum != 0 || header.e_shoff == 0) return header.e_shnum;
  const auto first = load_at<Elf64_Shdr>(bytes, header.e_shoff);
  return first ? first->sh_size : 0;
}

Result<std::vector<Section>> read_sections(Bytes bytes) {
  REMORA_TRY(const Elf64_Ehdr header, read_header(bytes));
  const std::uint64_t count = section_count(header, bytes);
  const auto table_bytes = checked_product(count, sizeof(Elf64_Shdr));
  const auto table = table_bytes ? slice(bytes, header.e_shoff, *table_bytes) : std::nullopt;
  if (!table) return broken("its section table passes the end");

  std::vector<Section> sections(count);
  for (std::size_t i = 0; i < count; ++i) {
    Section& section = sections[i];
    section.header = load_unaligned<Elf64_Shdr>(table->data() + i * sizeof(Elf64_Shdr));
    if (section.header.sh_type == SHT_NOBITS || section.header.sh_type == SHT_NULL) continue;
    const auto content = slice(bytes, section.header.sh_offset, section.header.sh_size);
    if (!content) return broken(fmt::format("section {} passes the end", i));
    section.bytes = *content;
  }
  const std::uint64_t names =
      header.e_shstrndx == SHN_XINDEX && count > 0 ? sections[0].header.sh_link : header.e_shstrndx;
  if (count > 0 && names >= count) return broken("its section names are missing");
  for (Section& section : sections) {
    const auto name = text_at(sections[names].bytes, section.header.sh_name);
    if (!name) return broken("a section's name passes the end");
    section.name = *name;
  }
  return sections;
}

struct ParameterRecord {
  std::uint16_t ordinal;
  Parameter place;
};

/// The parameter layout in the records of one .nv.info.<kernel> section.
Result<Kernel> read_kernel_info(std::string_view name, Bytes records) {
  std::vector<ParameterRecord> found;
  std::optional<std::uint32_t> total;
  std::size_t at = 0;
  while (at < records.size()) {
    if (records.size() - at < 4)
      return broken(fmt::format("the attributes of kernel {} are cut short", name));
    const auto format = static_cast<std::uint8_t>(records[at]);
    const auto attribute = static_cast<std::uint8_t>(records[at + 1]);
    const auto half = load_unaligned<std::uint16_t>(records.data() + at + 2);
    at += 4;
    if (format != kFormatSized) {
      if (attribute == kAttributeParameterBytes) total = half;
      continue;
    }
    const auto value = slice(records, at, half);
    if (!value) return broken(fmt::format("an attribute of kernel {} passes the end", name));
    at += half;
    if (attribute != kAttributeParameter && attribute != kAttributeParameterWide) continue;
    if (value->size() < kParameterRecordBytes)
      return broken(fmt::format("a parameter record of kernel {} is cut short", name));
    ParameterRecord record{load_unaligned<std::uint16_t>(value->data() + 4), {}};
    record.place.offset = load_unaligned<std::uint16_t>(value->data() + 6);
    record.place.size = attribute == kAttributeParameterWide
                            ? load_unaligned<std::uint16_t>(value->data() + 8)
                            : (load_unaligned<std::uint32_t>(value->data() + 8) >> 18) & 0x3FFF;
    if (record.ordinal >= kMostParameters)
      return broken(fmt::format("kernel {} has a parameter {}", name, record.ordinal));
    found.push_back(record);
  }

  std::ranges::sort(found, {}, &ParameterRecord::ordinal);
  Kernel kernel;
  kernel.name = name;
  for (const ParameterRecord& record : found) {
    if (record.ordinal != kernel.parameters.size() || record.place.offset < kernel.parameter_bytes)
      return broken(fmt::format("the parameters of kernel {} overlap or have gaps", name));
    kernel.parameters.push_back(record.place);
    kernel.parameter_bytes = record.place.offset + record.place.size;
  }
  if (total && *total != kernel.parameter_bytes)
    return broken(fmt::format("the parameters of kernel {} end at byte {}, not at {}", name,
                              kernel.parameter_bytes, *total));
  return kernel;
}

bool holds_globals(const Section& section) {
  return section.name == ".nv.global" || section.name == ".nv.global.init" ||
         section.name == ".nv.constant3";
}

}  // namespace

Result<ModuleContents> read_cubin(Bytes bytes) {
  REMORA_TRY(const std::vector<Section> sections, read_sections(bytes));
  std::unordered_map<std::string_view, Bytes> info_by_kernel;
  const Section* symbols = nullptr;
  for (const Section& section : sections) {
    if (section.name.starts_with(kInfoPrefix))
      info_by_kernel.emplace(section.name.substr(kInfoPrefix.size()), section.bytes);
    if (section.header.sh_type == SHT_SYMTAB) symbols = &section;
  }
  ModuleContents contents;
  if (symbols == nullptr) return contents;
  if (symbols->header.sh_link >= sections.size()) return broken("its symbol names are missing");
  const Bytes names = sections[symbols->header.sh_link].bytes;

  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->bytes.size();
       at += sizeof(Elf64_Sym)) {
    const auto symbol = load_unaligned<Elf64_Sym>(symbols->bytes.data() + at);
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    const bool is_kernel = type == STT_FUNC && (symbol.st_other & kOtherKernel) != 0;
    const bool is_global = type == STT_OBJECT && symbol.st_shndx < sections.size() &&
                           holds_globals(sections[symbol.st_shndx]);
    if (!is_kernel && !is_global) continue;
    const auto name = text_at(names, symbol.st_name);
    if (!name) return broken("a symbol's name passes the end");
    if (is_kernel) {
      const auto info = info_by_kernel.find(*name);
      if (info == info_by_kernel.end())
        return broken(fmt::format("kernel {} has no attributes", *name));
      REMORA_TRY(Kernel kernel, read_kernel_info(*name, info->second));
      contents.kernels.push_back(std::move(kernel));
    } else {
      contents.globals.push_back({std::string(*name), symbol.st_size,
                                  sections[symbol.st_shndx].name == ".nv.constant3",
                                  (symbol.st_other & kOtherManaged) != 0});
    }
  }
  return contents;
}

Result<std::uint64_t> elf_tables_end(Bytes bytes) {
  REMORA_TRY(const Elf64_Ehdr header, read_header(bytes));
  // Where the count stands in section 0, that one comes first.
  const std::uint64_t count =
      std::max<std::uint64_t>(section_count(header, bytes), header.e_shoff != 0 ? 1 : 0);
  const auto section_bytes = checked_product(count, sizeof(Elf64_Shdr));
  const auto sections_end =
      section_bytes ? checked_sum(header.e_shoff, *section_bytes) : std::nullopt;
  const auto programs_end =
      checked_sum(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (!sections_end || !programs_end) return broken("its tables pass the end of memory");
  return std::max({*sections_end, *programs_end, std::uint64_t{sizeof(Elf64_Ehdr)}});
}

Result<std::uint64_t> elf_file_size(Bytes bytes) {
  REMORA_TRY(std::uint64_t end, elf_tables_end(bytes));
  REMORA_TRY(const Elf64_Ehdr header, read_header(bytes));
  const std::uint64_t count = section_count(header, bytes);
  const auto table_bytes = checked_product(count, sizeof(Elf64_Shdr));
  const auto table = table_bytes ? slice(bytes, header.e_shoff, *table_bytes) : std::nullopt;
  if (!table) return broken("its section table passes the end");
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto section = load_unaligned<Elf64_Shdr>(table->data() + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    const auto section_end = checked_sum(section.sh_offset, section.sh_size);
    if (!section_end) return broken(fmt::format("section {} passes the end of memory", i));
    end = std::max(end, *section_end);
  }
  return end;
}

}  // namespace remora::image
