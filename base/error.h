// SPDX-License-Identifier: Apache-2.0
// What went wrong in our world: a kind that code decides by, and a sentence that people read.
// CUDA's own answers are not errors in this sense; they travel as CUresult data.
#pragma once

#include <string>
#include <string_view>

namespace remora {

enum class ErrorKind {
  invalid_input,  // bytes or arguments from outside that make no sense
  not_found,      // a file, symbol, kernel or object that is not there
  refused,        // the other side said no (version, credential, address policy)
  unavailable,    // nobody there, or gone
  timed_out,      // no answer within the time allowed
  exhausted,      // memory, handles, address space
  unsupported,    // understood, and not something we do
  system,         // a system call failed; `code` is errno
  internal,       // our own mistake, caught
};

std::string_view name_of(ErrorKind kind);

/// A value: copies, compares, moves between threads. `text` is a full sentence in the present tense
/// with the value given and the limit; callers add context from the inside out with within().
struct Error {
  ErrorKind kind = ErrorKind::internal;
  int code = 0;  // errno for `system`, a CUresult where a driver answered, otherwise 0
  std::string text;

  /// "While loading module 3f2a…: <text>"
  Error within(std::string_view context) &&;
  Error within(std::string_view context) const&;
};

/// An Error of kind `system` for the current errno: "<doing>: <strerror>."
Error system_error(std::string_view doing);
Error system_error(std::string_view doing, int errno_value);

}  // namespace remora
