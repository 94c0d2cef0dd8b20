// SPDX-License-Identifier: Apache-2.0
// The log: lines on stderr, never stdout. error: cannot go on; warn: unexpected, goes on; info: once
// a session or lease; debug: once an object; trace: once a call. The level comes from REMORA_LOG
// (error, warn, info, debug, trace, off); the default is warn, so a program's stderr stays its own.
//
// Thread-safe. Formatting happens only when the level is on. spdlog does the writing, behind this
// header, so that no other file pays for its templates.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <string_view>

namespace remora::log {

enum class Level : int { trace, debug, info, warn, error, off };

namespace detail {
extern std::atomic<int> threshold;
void write(Level level, fmt::string_view format, fmt::format_args args);
}  // namespace detail

inline bool enabled(Level level) {
  return static_cast<int>(level) >= detail::threshold.load(std::memory_order_relaxed);
}

/// Replaces the level that REMORA_LOG gave.
void set_level(Level level);

/// The name before each line ("remora", "remora-session 4711"); set once at start.
void set_name(std::string_view name);

/// How many lines of level warn and above were written so far. A test that expects none says so.
unsigned long long warnings_written();

#define REMORA_LOG_FUNCTION(level)                                           \
  template <typename... Args>                                                \
  void level(fmt::format_string<Args...> format, Args&&... args) {           \
    if (enabled(Level::level)) [[unlikely]]                                  \
      detail::write(Level::level, format, fmt::make_format_args(args...));   \
  }
REMORA_LOG_FUNCTION(trace)
REMORA_LOG_FUNCTION(debug)
REMORA_LOG_FUNCTION(info)
REMORA_LOG_FUNCTION(warn)
REMORA_LOG_FUNCTION(error)
#undef REMORA_LOG_FUNCTION

}  // namespace remora::log
