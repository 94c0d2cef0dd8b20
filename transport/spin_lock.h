// SPDX-License-Identifier: Apache-2.0
// A lock for sections of well under a microsecond on the path of a posted call. Yields when the
// holder seems not to be running. Posters have precedence: a driver that polls the wire in a loop
// takes it with try_lock_politely(), which gives way to threads that want to post.
#pragma once

#include <sched.h>

#include <atomic>

namespace remora::transport {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class SpinLock {
 public:
  void lock() {
    if (!held_.exchange(true, std::memory_order_acquire)) return;
    wanted_.fetch_add(1, std::memory_order_relaxed);
    for (int spins = 0;; ++spins) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++spins < 200) {
          cpu_relax();
        } else {
          sched_yield();
        }
      }
      if (!held_.exchange(true, std::memory_order_acquire)) break;
    }
    wanted_.fetch_sub(1, std::memory_order_relaxed);
  }

  bool try_lock_politely() {
    if (wanted_.load(std::memory_order_relaxed) != 0) return false;
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }

  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
  std::atomic<int> wanted_{0};
};

}  // namespace remora::transport
