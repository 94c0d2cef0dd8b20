// SPDX-License-Identifier: Apache-2.0
// The page of counters that a program leaves behind: the client maps <dir>/<pid>.stats and counts
// in it while the program runs, `remora run` reads it afterwards, so the numbers survive any exit.
//
// Threads: any, with relaxed atomics; numbers of a running program are each right but not of one
// moment. Ownership: a StatsPage owns its mapping; the file stays until someone removes it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "protocol/call_id.h"

namespace remora::protocol {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free && sizeof(Counter) == 8);

inline void count(Counter& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}
inline std::uint64_t read(const Counter& counter) {
  return counter.load(std::memory_order_relaxed);
}

/// Of one entry point.
struct CallCounters {
  Counter local;        // answered in the client
  Counter posted;       // sent, not waited for
  Counter awaited;      // sent, and the caller waited for the reply
  Counter round_trips;  // times a thread waited for the server inside this call
  Counter waited_ns;    // for how long
};

/// Of the whole program. Sums over calls are not kept: sum_of_calls() makes them.
struct TotalCounters {
  Counter round_trips;  // times a thread waited for the server, connecting not counted
  Counter stalls;       // waits for flow control
  Counter messages_sent;
  Counter messages_received;
  Counter bytes_sent;
  Counter bytes_received;
  Counter waited_ns;
};

struct StatsLayout {
  static constexpr std::uint64_t kMagic = 0x3174'6174'7361'6d72;  // "rmastat1"
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t call_end;  // kCallIdEnd of the writer
  TotalCounters totals;
  std::array<CallCounters, kCallIdEnd> calls;

  CallCounters& of(CallId id) { return calls[static_cast<std::size_t>(id)]; }
  const CallCounters& of(CallId id) const { return calls[static_cast<std::size_t>(id)]; }
};
static_assert(sizeof(StatsLayout) ==
              16 + sizeof(TotalCounters) + kCallIdEnd * sizeof(CallCounters));

/// A mapped page.
class StatsPage {
 public:
  /// For the client: makes the file, or starts an existing one anew (a pid used twice).
  static Result<StatsPage> create(const std::string& path);

  /// For the client without a directory to write to: counts that nobody reads but the process.
  static Result<StatsPage> create_anonymous();

  /// For the reader: a page that another process made. Refuses one of another version or size.
  static Result<StatsPage> open(const std::string& path);

  StatsPage(StatsPage&& other) noexcept;
  StatsPage& operator=(StatsPage&& other) noexcept;
  ~StatsPage();

  StatsLayout* operator->() { return layout_; }
  const StatsLayout* operator->() const { return layout_; }
  StatsLayout& operator*() { return *layout_; }
  const StatsLayout& operator*() const { return *layout_; }

 private:
  explicit StatsPage(StatsLayout* layout) : layout_(layout) {}

  StatsLayout* layout_ = nullptr;
};

/// All calls together.
struct CallSums {
  std::uint64_t local = 0;
  std::uint64_t posted = 0;
  std::uint64_t awaited = 0;
};
CallSums sum_of_calls(const StatsLayout& layout);

/// <directory>/<pid>.stats
std::string stats_path(const std::string& directory, int pid);

}  // namespace remora::protocol
