// SPDX-License-Identifier: Apache-2.0
// Monotonic time, and deadlines: every wait has an end.
#pragma once

#include <algorithm>
#include <cstdint>

namespace remora {

/// Monotonic nanoseconds, comparable within one host since boot.
std::uint64_t now_ns();

/// A point in monotonic time by which something must have happened.
class Deadline {
 public:
  static Deadline in_ms(std::uint64_t ms) { return Deadline(now_ns() + ms * 1'000'000); }
  static Deadline in_us(std::uint64_t us) { return Deadline(now_ns() + us * 1'000); }
  /// For waits whose end is another event (the peer's death) that is watched elsewhere.
  static Deadline never() { return Deadline(UINT64_MAX); }

  bool passed() const { return at_ns_ != UINT64_MAX && now_ns() >= at_ns_; }
  std::uint64_t remaining_ns() const {
    if (at_ns_ == UINT64_MAX) return UINT64_MAX;
    const std::uint64_t now = now_ns();
    return now >= at_ns_ ? 0 : at_ns_ - now;
  }
  /// As poll(2) takes it: rounded up, -1 for never.
  int poll_timeout_ms() const;
  Deadline sooner(Deadline other) const { return Deadline(std::min(at_ns_, other.at_ns_)); }

 private:
  explicit Deadline(std::uint64_t at_ns) : at_ns_(at_ns) {}
  std::uint64_t at_ns_;
};

}  // namespace remora
