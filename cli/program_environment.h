// SPDX-License-Identifier: Apache-2.0
// The environment of the program: the caller's, and the few variables that make the program find
// Remora. Every variable that is touched here is listed in the README.
//
// A value. Nothing of the own process's environment is changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remora::cli {

class ProgramEnvironment {
 public:
  /// Starts from `variables` ("NAME=value", ended by a null pointer).
  explicit ProgramEnvironment(const char* const* variables);

  void set(std::string_view name, std::string value);
  /// Puts `value` before what `name` holds, with a colon between.
  void prepend(std::string_view name, std::string_view value);

  /// What an exec function takes. Valid until the next change.
  char* const* data();

 private:
  // Kept as a list, since a caller may pass entries that have no "=" or come twice.
  std::string* find(std::string_view name);

  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

}  // namespace remora::cli
