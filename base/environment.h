// SPDX-License-Identifier: Apache-2.0
// Settings from environment variables. Every REMORA_* variable is listed in the README.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace remora::environment {

/// The value of `name`, or nothing when it is unset or empty.
std::optional<std::string> text(const char* name);

/// A byte count: digits with an optional suffix K, M, G or T (powers of 1024). An unreadable value
/// is an error that names the variable.
Result<std::uint64_t> size_bytes(const char* name, std::uint64_t otherwise);

/// A whole number within [least, most].
Result<std::uint64_t> number(const char* name, std::uint64_t otherwise, std::uint64_t least,
                             std::uint64_t most);

/// Parses "64M" and the like.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace remora::environment
