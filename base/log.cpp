// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#define SPDLOG_FMT_EXTERNAL
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
// The header-only form, in this file alone.
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace remora::log {
namespace {

int threshold_from_environment() {
  static constexpr std::string_view kNames[] = {"trace", "debug", "info", "warn", "error", "off"};
  const char* wanted = std::getenv("REMORA_LOG");
  if (wanted != nullptr) {
    for (int i = 0; i < 6; ++i)
      if (kNames[i] == wanted) return i;
  }
  return static_cast<int>(Level::warn);
}

std::atomic<unsigned long long> warnings{0};

// Never destroyed: other threads may log while the process exits.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("remora", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->set_pattern("%n: %l: %v");
    return made;
  }();
  return *instance;
}

std::string& name() {
  static auto* const instance = new std::string("remora");
  return *instance;
}

}  // namespace

namespace detail {

std::atomic<int> threshold{threshold_from_environment()};

void write(Level level, fmt::string_view format, fmt::format_args args) {
  static constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
      spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  const int saved_errno = errno;  // the preload library logs inside other people's calls
  if (level >= Level::warn) warnings.fetch_add(1, std::memory_order_relaxed);
  try {
    logger().log(kLevels[static_cast<int>(level)], fmt::vformat(format, args));
  } catch (...) {  // a log line that cannot be written is not worth a crash
  }
  errno = saved_errno;
}

}  // namespace detail

void set_level(Level level) {
  detail::threshold.store(static_cast<int>(level), std::memory_order_relaxed);
}

void set_name(std::string_view new_name) {
  name() = new_name;
  logger().set_pattern(fmt::format("{}: %l: %v", name()));
}

unsigned long long warnings_written() { return warnings.load(std::memory_order_relaxed); }

}  // namespace remora::log
