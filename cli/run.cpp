// SPDX-License-Identifier: Apache-2.0
// `remora run`: starts a program with its GPUs elsewhere.
#include <unistd.h>

#include <optional>

#include "cli/host_driver.h"
#include "cli/installation.h"
#include "cli/message.h"
#include "cli/private_server.h"
#include "cli/program.h"
#include "cli/stats_report.h"
#include "cli/verbs.h"
#include "transport/control_connection.h"

namespace remora::cli {
namespace {

struct Options {
  std::string server;
  std::string driver;
  std::string stats_json;
  bool local = false;
  bool stats = false;
  CommandLine command;

  bool wants_stats() const { return stats || !stats_json.empty(); }
};

Result<> check_servers(std::string_view list) {
  while (true) {
    const std::size_t comma = list.find(',');
    REMORA_TRY(const auto address, transport::parse_host_port(list.substr(0, comma)));
    if (address.port == 0) {
      return Error{ErrorKind::invalid_input, 0, "Nobody listens at port 0."};
    }
    if (comma == std::string_view::npos) return {};
    list.remove_prefix(comma + 1);
  }
}

/// The driver itself in the program's process: on a host with a GPU its own, and then nothing of ours.
Result<int> run_local(const Options& options, const Installation& installation) {
  ProgramEnvironment environment(environ);
  if (!host_has_gpu()) {
    REMORA_TRY(const auto folder, existing(installation.local_folder));
    environment.prepend("LD_LIBRARY_PATH", folder.string());
  }
  return become(options.command, environment);
}

Result<int> run_remote(const Options& options, const Installation& installation) {
  REMORA_TRY(const auto preload, existing(installation.preload));
  ProgramEnvironment environment(environ);
  environment.prepend("LD_PRELOAD", preload.string());

  std::optional<PrivateServer> server;
  if (options.server.empty()) {
    REMORA_TRY(auto started, PrivateServer::start(installation, options.driver));
    server.emplace(std::move(started));
    say("private server at {} with {}", server->address(), server->devices());
    environment.set("REMORA_SERVER", server->address());
  } else {
    REMORA_TRY_DO(check_servers(options.server));
    environment.set("REMORA_SERVER", options.server);
  }
  if (!server && !options.wants_stats()) return become(options.command, environment);

  std::optional<StatsFolder> stats;
  if (options.wants_stats()) {
    REMORA_TRY(auto folder, StatsFolder::make());
    stats.emplace(std::move(folder));
    environment.set("REMORA_STATS_DIR", stats->path());
  }
  const int status = run_to_end(options.command, environment);
  server.reset();
  if (stats) {
    const StatsReport report = stats->read();
    if (options.stats) report.print_table(stderr);
    if (!options.stats_json.empty()) REMORA_TRY_DO(report.write_json(options.stats_json));
  }
  return end_like(status);
}

Result<int> run(const Options& options) {
  REMORA_TRY(const Installation installation, Installation::find());
  if (!options.local) return run_remote(options, installation);
  if (options.wants_stats()) {
    return Error{ErrorKind::unsupported, 0,
                 "--stats counts what goes over the wire; with --local there is none."};
  }
  return run_local(options, installation);
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand("run", "Run a program with its GPUs elsewhere");
  auto options = std::make_shared<Options>();
  auto* local = verb->add_flag("--local", options->local,
                               "No server: the driver itself in the program's process");
  auto* server = verb->add_option("--server", options->server,
                   "HOST:PORT of a running `remora serve` (default: a private server for this program)")
      ->envname("REMORA_SERVER");
  (void)server;
  verb->add_option("--driver", options->driver,
                   "CUDA driver library of the private server (default: the host's NVIDIA driver, "
                   "else the software GPU)")
      ->envname("REMORA_DRIVER")
      ->excludes(local);
  verb->add_flag("--stats", options->stats, "Print on stderr what the calls cost");
  verb->add_option("--stats-json", options->stats_json, "Write the same as JSON to FILE");
  verb->add_option("program", options->command, "The program and its arguments, after --")->required();
  verb->positionals_at_end();
  verb->callback([options, &status] {
    const auto ran = run(*options);
    if (!ran.ok()) say("{}", ran.error().text);
    status = ran.ok() ? *ran : kRemoraFailed;
  });
}

}  // namespace remora::cli
