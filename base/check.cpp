// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace remora {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "remora: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace remora
