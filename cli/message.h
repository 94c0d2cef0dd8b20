// SPDX-License-Identifier: Apache-2.0
// What `remora` itself says to the person: one line on stderr, never stdout, which belongs to the
// program. And the exit status for when Remora, not the program, is what failed.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>

namespace remora::cli {

/// As env(1), timeout(1) and nohup(1) have it.
inline constexpr int kRemoraFailed = 125;
inline constexpr int kProgramNotExecutable = 126;
inline constexpr int kProgramNotFound = 127;

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  // One write for one line, so that it stays whole beside the program's own output.
  const std::string line = "remora: " + fmt::format(format, std::forward<Args>(args)...) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace remora::cli
