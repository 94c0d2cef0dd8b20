// SPDX-License-Identifier: Apache-2.0
// Where the parts of Remora lie, seen from the program that runs: bin/ and lib/ side by side, the
// same in a build folder and in an installation.
//
// Errors: a part that is not there is named with the path at which it was looked for.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace remora::cli {

struct Installation {
  std::filesystem::path session_program;  // bin/remora-session
  std::filesystem::path preload;          // lib/libremora.so
  std::filesystem::path preload_folder;   // lib/remora: the preload library as libcuda.so.1
  std::filesystem::path local_folder;     // lib/local: the software GPU as libcuda.so.1

  /// Relative to /proc/self/exe. Does not look whether the parts exist.
  static Result<Installation> find();
};

/// `path` when it is there, else an error that names it.
Result<std::filesystem::path> existing(const std::filesystem::path& path);

}  // namespace remora::cli
