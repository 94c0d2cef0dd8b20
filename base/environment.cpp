// SPDX-License-Identifier: Apache-2.0
#include "base/environment.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

#include "base/bytes.h"

namespace remora::environment {

std::optional<std::string> text(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix.empty()) return value;
  if (suffix.size() > 1) return std::nullopt;
  switch (suffix[0]) {
    case 'k': case 'K': return checked_product(value, 1ULL << 10);
    case 'm': case 'M': return checked_product(value, 1ULL << 20);
    case 'g': case 'G': return checked_product(value, 1ULL << 30);
    case 't': case 'T': return checked_product(value, 1ULL << 40);
    default: return std::nullopt;
  }
}

Result<std::uint64_t> size_bytes(const char* name, std::uint64_t otherwise) {
  const auto value = text(name);
  if (!value) return otherwise;
  if (const auto size = parse_size(*value)) return *size;
  return Error{ErrorKind::invalid_input, 0,
               fmt::format("{} is '{}', which is not a size such as 64M or 2G.", name, *value)};
}

Result<std::uint64_t> number(const char* name, std::uint64_t otherwise, std::uint64_t least,
                             std::uint64_t most) {
  const auto value = text(name);
  if (!value) return otherwise;
  std::uint64_t parsed = 0;
  const char* const last = value->data() + value->size();
  const auto [end, failure] = std::from_chars(value->data(), last, parsed);
  if (failure == std::errc() && end == last && parsed >= least && parsed <= most) return parsed;
  return Error{ErrorKind::invalid_input, 0,
               fmt::format("{} is '{}', which is not a whole number from {} to {}.", name, *value,
                           least, most)};
}

}  // namespace remora::environment
