// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <fmt/core.h>

#include <cerrno>
#include <system_error>

namespace remora {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_input: return "invalid input";
    case ErrorKind::not_found: return "not found";
    case ErrorKind::refused: return "refused";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::timed_out: return "timed out";
    case ErrorKind::exhausted: return "exhausted";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::system: return "system error";
    case ErrorKind::internal: return "internal error";
  }
  return "unknown";
}

Error Error::within(std::string_view context) && {
  text = fmt::format("{}: {}", context, text);
  return std::move(*this);
}

Error Error::within(std::string_view context) const& {
  return Error{kind, code, fmt::format("{}: {}", context, text)};
}

Error system_error(std::string_view doing) { return system_error(doing, errno); }

Error system_error(std::string_view doing, int errno_value) {
  return Error{ErrorKind::system, errno_value,
               fmt::format("{}: {}.", doing, std::generic_category().message(errno_value))};
}

}  // namespace remora
