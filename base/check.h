// SPDX-License-Identifier: Apache-2.0
// REMORA_CHECK: a claim about our own code. It stays in release builds. In a server the process
// dies and others live; nothing in the preload library may use it on a path that a program can
// reach (there a broken claim becomes a sticky CUDA error, never an abort of the program).
#pragma once

namespace remora {

[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace remora

#define REMORA_CHECK(condition)                                              \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::remora::check_failed(#condition, __FILE__, __LINE__);                \
  } while (false)
