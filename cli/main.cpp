// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "cli/message.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  remora::log::set_name("remora");
  CLI::App app("Runs CUDA programs on GPUs that are elsewhere.", "remora");
  app.set_version_flag("--version", REMORA_VERSION);
  app.require_subcommand(1);
  int status = 0;
  remora::cli::add_run(app, status);
  remora::cli::add_serve(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version; a mistake on our command line is Remora's failure, not the program's.
    return app.exit(error) == 0 ? 0 : remora::cli::kRemoraFailed;
  }
  return status;
}
