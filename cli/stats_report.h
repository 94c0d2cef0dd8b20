// SPDX-License-Identifier: Apache-2.0
// What a program's calls cost: the pages of counters that its processes left in a folder, added up,
// as a table for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"

namespace remora::cli {

struct CallCosts {
  std::uint64_t local = 0, posted = 0, awaited = 0, round_trips = 0, waited_ns = 0;
};

struct StatsReport {
  unsigned processes = 0;  // that used CUDA
  CallCosts calls;         // in all
  std::uint64_t round_trips = 0, stalls = 0, messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0, waited_ns = 0;
  std::map<std::string, CallCosts> by_call;  // those that were called

  void print_table(std::FILE* to) const;
  /// {"processes", "calls": {"local", "posted", "awaited"}, "round_trips", …, "by_call": {name: …}};
  /// times are `waited_us`.
  Result<> write_json(const std::string& path) const;
};

/// A temporary folder for the pages; goes with its contents.
class StatsFolder {
 public:
  static Result<StatsFolder> make();
  StatsFolder(StatsFolder&& other) noexcept;
  StatsFolder& operator=(StatsFolder&&) = delete;
  ~StatsFolder();

  std::string path() const { return path_.string(); }
  /// Pages that cannot be read are said on stderr and left out.
  StatsReport read() const;

 private:
  explicit StatsFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace remora::cli
