// SPDX-License-Identifier: Apache-2.0
// `remora serve`: lets programs use this host's devices.
#include <unistd.h>

#include "cli/installation.h"
#include "cli/message.h"
#include "cli/verbs.h"
#include "server/supervisor/supervisor.h"

namespace remora::cli {
namespace {

struct Options {
  std::string listen = "127.0.0.1:7733";
  std::string driver;
  unsigned prewarm = 1;
};

Result<> serve(const Options& options) {
  REMORA_TRY(const Installation installation, Installation::find());
  REMORA_TRY(auto session_program, existing(installation.session_program));
  REMORA_TRY(const auto supervisor, server::Supervisor::create({
                                        .listen = options.listen,
                                        .driver_path = options.driver,
                                        .prewarmed = options.prewarm,
                                        .session_program = session_program,
                                        // "HOST:PORT" and a line about the devices, when ready.
                                        .announce_fd = dup(STDOUT_FILENO),
                                    }));
  return supervisor->run();
}

}  // namespace

void add_serve(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand("serve", "Let programs use this host's devices");
  auto options = std::make_shared<Options>();
  verb->add_option("--listen", options->listen, "HOST:PORT to listen at; loopback only, port 0 chooses")
      ->capture_default_str();
  verb->add_option("--driver", options->driver,
                   "CUDA driver library (default: the host's NVIDIA driver, else the software GPU)")
      ->envname("REMORA_DRIVER");
  verb->add_option("--prewarm", options->prewarm, "Session processes to keep ready")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  verb->callback([options, &status] {
    if (const auto served = serve(*options); !served.ok()) {
      say("{}", served.error().text);
      status = kRemoraFailed;
    }
  });
}

}  // namespace remora::cli
