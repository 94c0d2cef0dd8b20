// SPDX-License-Identifier: Apache-2.0
#include "cli/program_environment.h"

#include <fmt/core.h>

#include <algorithm>

namespace remora::cli {

ProgramEnvironment::ProgramEnvironment(const char* const* variables) {
  for (; variables != nullptr && *variables != nullptr; ++variables) entries_.emplace_back(*variables);
}

std::string* ProgramEnvironment::find(std::string_view name) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const std::string& entry) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  });
  return found == entries_.end() ? nullptr : &*found;
}

void ProgramEnvironment::set(std::string_view name, std::string value) {
  std::string entry = fmt::format("{}={}", name, value);
  if (std::string* present = find(name)) {
    *present = std::move(entry);
  } else {
    entries_.push_back(std::move(entry));
  }
}

void ProgramEnvironment::prepend(std::string_view name, std::string_view value) {
  const std::string* present = find(name);
  const std::string_view rest =
      present == nullptr ? std::string_view() : std::string_view(*present).substr(name.size() + 1);
  // An empty element would mean the current folder to the dynamic linker.
  set(name, rest.empty() ? std::string(value) : fmt::format("{}:{}", value, rest));
}

char* const* ProgramEnvironment::data() {
  pointers_.clear();
  for (std::string& entry : entries_) pointers_.push_back(entry.data());
  pointers_.push_back(nullptr);
  return pointers_.data();
}

}  // namespace remora::cli
