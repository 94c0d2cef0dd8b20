// SPDX-License-Identifier: Apache-2.0
#include "cli/installation.h"

#include <fmt/core.h>

#include <system_error>

namespace remora::cli {

Result<Installation> Installation::find() {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return system_error("Reading /proc/self/exe", failure.value());
  const auto bin = self.parent_path();
  const auto lib = bin.parent_path() / "lib";
  return Installation{.session_program = bin / "remora-session",
                      .preload = lib / "libremora.so",
                      .preload_folder = lib / "remora",
                      .local_folder = lib / "local"};
}

Result<std::filesystem::path> existing(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::exists(path, failure)) return path;
  return Error{ErrorKind::not_found, 0,
               fmt::format("{} is not there; this installation of Remora is not complete.",
                           path.string())};
}

}  // namespace remora::cli
