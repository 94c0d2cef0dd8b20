// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/ptx_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/bytes.h"
#include "protocol/image/ptx_tokens.h"

namespace remora::image {
namespace {

struct FundamentalType {
  std::string_view directive;
  std::uint32_t size;
};
constexpr std::array kTypes = std::to_array<FundamentalType>({
    {".b8", 1},  {".u8", 1},  {".s8", 1},    {".b16", 2},    {".u16", 2},
    {".s16", 2}, {".f16", 2}, {".bf16", 2},  {".b32", 4},    {".u32", 4},
    {".s32", 4}, {".f32", 4}, {".f16x2", 4}, {".bf16x2", 4}, {".b64", 8},
    {".u64", 8}, {".s64", 8}, {".f64", 8},   {".b128", 16},
});

std::optional<std::uint32_t> size_of_type(std::string_view directive) {
  const auto* type = std::ranges::find(kTypes, directive, &FundamentalType::directive);
  if (type == kTypes.end()) return std::nullopt;
  return type->size;
}

std::optional<std::uint64_t> number_of(std::string_view token) {
  int base = 10;
  while (!token.empty() && (token.back() == 'U' || token.back() == 'u')) token.remove_suffix(1);
  if (token.starts_with("0x") || token.starts_with("0X")) {
    base = 16;
    token.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (error != std::errc{} || end != token.data() + token.size() || token.empty())
    return std::nullopt;
  return value;
}

/// Reads one text. Each read_* function begins behind the directive that announced its declaration.
class Scan {
 public:
  explicit Scan(std::string_view text) : tokens_(text) {}

  Result<ModuleContents> run();

 private:
  /// What stands between a state space and a name.
  struct TypeSpecifier {
    std::uint64_t element_size = 0;  // 0: an opaque type (texture, sampler, surface reference)
    std::uint64_t alignment = 0;
    bool is_managed = false;
    std::string_view name;  // the token that ended the specifier
  };

  Error unexpected(std::string_view token) const {
    return {ErrorKind::invalid_input, 0,
            fmt::format("The PTX text has {} where a declaration does not allow it (line {}).",
                        token.empty() ? "its end" : fmt::format("\"{}\"", token.substr(0, 80)),
                        tokens_.line())};
  }

  Result<void> read_entry();
  Result<void> read_parameters(Kernel& kernel, std::string_view& after);
  Result<void> read_variables(bool is_constant, bool is_extern);
  Result<TypeSpecifier> read_type();
  Result<std::uint64_t> read_dimensions(std::string_view& after, bool& is_open);
  Result<std::uint64_t> skip_initializer(std::string_view& after);
  Result<void> skip_function();

  PtxTokens tokens_;
  ModuleContents contents_;
};

Result<ModuleContents> Scan::run() {
  bool is_extern = false;
  for (std::string_view token = tokens_.next(); !token.empty(); token = tokens_.next()) {
    if (token == ".extern") {
      is_extern = true;
      continue;
    }
    if (token == ".entry") {
      REMORA_TRY_DO(read_entry());
    } else if (token == ".func") {
      REMORA_TRY_DO(skip_function());
    } else if (token == ".global" || token == ".const") {
      REMORA_TRY_DO(read_variables(token == ".const", is_extern));
    } else if (token == "{") {  // the content of a .section
      if (!tokens_.skip_block()) return unexpected("");
    } else if (token == "}") {
      return unexpected(token);
    }
    is_extern = false;
  }
  return std::move(contents_);
}

Result<void> Scan::read_entry() {
  Kernel kernel;
  kernel.name = tokens_.next();
  if (!is_ptx_name(kernel.name)) return unexpected(kernel.name);
  std::string_view token = tokens_.next();
  if (token == "(") REMORA_TRY_DO(read_parameters(kernel, token));
  // Between parameters and body stand performance directives (.maxntid 256, 1, 1).
  while (token != "{" && token != ";") {
    if (token.empty() || token == "}") return unexpected(token);
    token = tokens_.next();
  }
  if (token == ";") return {};  // a declaration
  if (!tokens_.skip_block()) return unexpected("");
  contents_.kernels.push_back(std::move(kernel));
  return {};
}

Result<void> Scan::read_parameters(Kernel& kernel, std::string_view& after) {
  std::string_view token = tokens_.next();
  while (token != ")") {
    if (token != ".param") return unexpected(token);
    REMORA_TRY(const TypeSpecifier type, read_type());
    if (type.element_size == 0) return unexpected(type.name);
    bool is_open = false;
    REMORA_TRY(const std::uint64_t count, read_dimensions(token, is_open));
    const auto size = checked_product(type.element_size, count);
    const std::uint64_t offset = align_up(kernel.parameter_bytes, type.alignment);
    constexpr std::uint64_t kMostParameterBytes = 65536;
    if (is_open || !size || *size > kMostParameterBytes || offset + *size > kMostParameterBytes)
      return unexpected(type.name);
    kernel.parameters.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(*size)});
    kernel.parameter_bytes = static_cast<std::uint32_t>(offset + *size);
    if (token == ",")
      token = tokens_.next();
    else if (token != ")")
      return unexpected(token);
  }
  after = tokens_.next();
  return {};
}

Result<Scan::TypeSpecifier> Scan::read_type() {
  TypeSpecifier type;
  std::uint64_t explicit_alignment = 0;
  std::uint64_t lanes = 1;
  std::uint64_t scalar_size = 0;
  bool is_opaque = false;
  bool describes_pointee = false;  // behind .ptr, space and alignment are of what it points to
  for (;;) {
    const std::string_view token = tokens_.next();
    if (token == ".align") {
      const std::string_view value = tokens_.next();
      const auto alignment = number_of(value);
      if (!alignment || !std::has_single_bit(*alignment) || *alignment > 65536)
        return unexpected(value);
      if (!describes_pointee) explicit_alignment = *alignment;
    } else if (token == ".ptr") {
      describes_pointee = true;
    } else if (token == ".attribute") {
      if (tokens_.next() != "(") return unexpected(token);
      int depth = 1;
      while (depth > 0) {
        const std::string_view part = tokens_.next();
        if (part.empty()) return unexpected(part);
        if (part == "(") ++depth;
        if (part == ")") --depth;
        if (part == ".managed") type.is_managed = true;
      }
    } else if (token == ".v2" || token == ".v4" || token == ".v8") {
      lanes = static_cast<std::uint64_t>(token[2] - '0');
    } else if (const auto size = size_of_type(token)) {
      scalar_size = *size;
    } else if (token == ".texref" || token == ".samplerref" || token == ".surfref") {
      is_opaque = true;
    } else if (describes_pointee && (token == ".global" || token == ".shared" ||
                                     token == ".const" || token == ".local")) {
      continue;
    } else if (is_ptx_name(token) && (scalar_size != 0 || is_opaque)) {
      type.name = token;
      type.element_size = scalar_size * lanes;
      type.alignment = explicit_alignment != 0 ? explicit_alignment : type.element_size;
      return type;
    } else {
      return unexpected(token);
    }
  }
}

/// Reads "[2][3]" and the token after it; 1 where there are none. "[]" leaves `is_open` set.
Result<std::uint64_t> Scan::read_dimensions(std::string_view& after, bool& is_open) {
  std::uint64_t count = 1;
  after = tokens_.next();
  while (after == "[") {
    const std::string_view extent = tokens_.next();
    if (extent == "]") {
      is_open = true;
    } else {
      const auto number = number_of(extent);
      const auto product = number ? checked_product(count, *number) : std::nullopt;
      if (!product) return unexpected(extent);
      count = *product;
      const std::string_view close = tokens_.next();
      if (close != "]") return unexpected(close);
    }
    after = tokens_.next();
  }
  return count;
}

/// Skips what follows "=" and tells how many elements it lists; `after` is the "," or ";" behind
/// it.
Result<std::uint64_t> Scan::skip_initializer(std::string_view& after) {
  int depth = 0;
  std::uint64_t elements = 0;
  bool is_element_begun = false;
  for (;;) {
    after = tokens_.next();
    if (after.empty()) return unexpected(after);
    if (depth == 0 && (after == "," || after == ";")) return elements;
    if (after == "{" || after == "(") {
      if (depth == 1) is_element_begun = true;
      ++depth;
    } else if (after == "}" || after == ")") {
      if (--depth < 0) return unexpected(after);
      if (depth == 0 && is_element_begun) ++elements;
    } else if (depth == 1 && after == ",") {
      ++elements;
      is_element_begun = false;
    } else if (depth == 1) {
      is_element_begun = true;
    }
  }
}

Result<void> Scan::read_variables(bool is_constant, bool is_extern) {
  REMORA_TRY(TypeSpecifier type, read_type());
  for (;;) {
    bool is_open = false;
    std::string_view token;
    REMORA_TRY(std::uint64_t count, read_dimensions(token, is_open));
    if (token == "=") {
      REMORA_TRY(const std::uint64_t elements, skip_initializer(token));
      const auto product = checked_product(count, elements);
      if (is_open && !product) return unexpected(type.name);
      if (is_open) count = *product;
      is_open = false;
    }
    const auto size = checked_product(type.element_size, count);
    if (!size || (is_open && !is_extern)) return unexpected(type.name);
    if (!is_extern && type.element_size != 0)
      contents_.globals.push_back({std::string(type.name), *size, is_constant, type.is_managed});
    if (token == ";") return {};
    if (token != ",") return unexpected(token);
    type.name = tokens_.next();
    if (!is_ptx_name(type.name)) return unexpected(type.name);
  }
}

Result<void> Scan::skip_function() {
  for (;;) {
    const std::string_view token = tokens_.next();
    if (token == ";") return {};
    if (token.empty() || token == "}") return unexpected(token);
    if (token == "{") {
      if (!tokens_.skip_block()) return unexpected("");
      return {};
    }
  }
}

}  // namespace

Result<ModuleContents> scan_ptx(std::string_view text) { return Scan(text).run(); }

bool looks_like_ptx(std::string_view text) { return PtxTokens(text).next() == ".version"; }

Result<std::uint32_t> ptx_target(std::string_view text) {
  PtxTokens tokens(text);
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token != ".target") continue;
    std::string_view target = tokens.next();
    std::uint32_t arch = 0;
    if (target.starts_with("sm_")) {
      target.remove_prefix(3);
      std::from_chars(target.data(), target.data() + target.size(), arch);
    }
    if (arch != 0) return arch;
    break;
  }
  return Error{ErrorKind::invalid_input, 0, "The PTX text does not say which .target it is for."};
}

}  // namespace remora::image
