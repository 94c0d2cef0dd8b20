// SPDX-License-Identifier: Apache-2.0
#include "cli/stats_report.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/message.h"
#include "protocol/stats/stats_page.h"

namespace remora::cli {
namespace {

namespace stats = remora::protocol;

void add_page(StatsReport& report, const stats::StatsLayout& page) {
  ++report.processes;
  const stats::TotalCounters& totals = page.totals;
  report.round_trips += stats::read(totals.round_trips);
  report.stalls += stats::read(totals.stalls);
  report.messages_sent += stats::read(totals.messages_sent);
  report.messages_received += stats::read(totals.messages_received);
  report.bytes_sent += stats::read(totals.bytes_sent);
  report.bytes_received += stats::read(totals.bytes_received);
  report.waited_ns += stats::read(totals.waited_ns);
  for (std::size_t number = 0; number < stats::kCallIdEnd; ++number) {
    const stats::CallCounters& from = page.calls[number];
    const CallCosts costs{stats::read(from.local), stats::read(from.posted),
                          stats::read(from.awaited), stats::read(from.round_trips),
                          stats::read(from.waited_ns)};
    if (costs.local + costs.posted + costs.awaited + costs.round_trips == 0) continue;
    CallCosts& of_call =
        report.by_call[std::string(stats::name_of(static_cast<stats::CallId>(number)))];
    for (CallCosts* to : {&of_call, &report.calls}) {
      to->local += costs.local;
      to->posted += costs.posted;
      to->awaited += costs.awaited;
      to->round_trips += costs.round_trips;
      to->waited_ns += costs.waited_ns;
    }
  }
}

std::uint64_t in_us(std::uint64_t ns) { return (ns + 500) / 1000; }

nlohmann::ordered_json kinds(const CallCosts& costs) {
  return {{"local", costs.local}, {"posted", costs.posted}, {"awaited", costs.awaited}};
}

}  // namespace

void StatsReport::print_table(std::FILE* to) const {
  constexpr const char* kRow = "{:<44} {:>10} {:>10} {:>10} {:>11} {:>11}\n";
  fmt::print(to, fmt::runtime(kRow), "remora: calls", "local", "posted", "awaited", "round trips",
             "waited us");
  std::vector<std::pair<std::string, CallCosts>> rows(by_call.begin(), by_call.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.waited_ns > b.second.waited_ns;
  });
  for (const auto& [name, costs] : rows) {
    fmt::print(to, fmt::runtime(kRow), name, costs.local, costs.posted, costs.awaited,
               costs.round_trips, in_us(costs.waited_ns));
  }
  fmt::print(to, fmt::runtime(kRow), "in all", calls.local, calls.posted, calls.awaited, round_trips,
             in_us(waited_ns));
  fmt::print(to, "messages sent {}, received {}; bytes sent {}, received {}; stalls {}\n",
             messages_sent, messages_received, bytes_sent, bytes_received, stalls);
}

Result<> StatsReport::write_json(const std::string& path) const {
  nlohmann::ordered_json all = {{"processes", processes},
                                {"calls", kinds(calls)},
                                {"round_trips", round_trips},
                                {"stalls", stalls},
                                {"messages_sent", messages_sent},
                                {"messages_received", messages_received},
                                {"bytes_sent", bytes_sent},
                                {"bytes_received", bytes_received},
                                {"waited_us", in_us(waited_ns)}};
  auto& named = all["by_call"] = nlohmann::ordered_json::object();
  for (const auto& [name, costs] : by_call) {
    named[name] = {{"calls", kinds(costs)},
                   {"round_trips", costs.round_trips},
                   {"waited_us", in_us(costs.waited_ns)}};
  }
  std::ofstream file(path);
  file << all.dump(2) << '\n';
  file.close();
  if (!file) return system_error(fmt::format("Writing {}", path));
  return {};
}

Result<StatsFolder> StatsFolder::make() {
  std::error_code failure;
  const auto folder = std::filesystem::temp_directory_path(failure);
  std::string name = ((failure ? std::filesystem::path("/tmp") : folder) / "remora-stats-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return system_error(fmt::format("Making {}", name));
  return StatsFolder(name);
}

StatsFolder::StatsFolder(StatsFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

StatsFolder::~StatsFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

StatsReport StatsFolder::read() const {
  StatsReport report;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(path_, failure)) {
    if (entry.path().extension() != ".stats") continue;
    const auto page = stats::StatsPage::open(entry.path().string());
    if (page.ok()) {
      add_page(report, **page);
    } else {
      say("{}", page.error().text);
    }
  }
  return report;
}

}  // namespace remora::cli
