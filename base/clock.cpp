// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>
#include <limits>

namespace remora {

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

int Deadline::poll_timeout_ms() const {
  const std::uint64_t remaining = remaining_ns();
  if (remaining == UINT64_MAX) return -1;
  const std::uint64_t ms = (remaining + 999'999) / 1'000'000;
  return static_cast<int>(std::min<std::uint64_t>(ms, std::numeric_limits<int>::max()));
}

}  // namespace remora
