// SPDX-License-Identifier: Apache-2.0
// The verbs of `remora`. Each adds its subcommand to the command line; when it is chosen, its
// callback does the work and leaves the process's exit status in `status`.
#pragma once

#include <CLI/CLI.hpp>

namespace remora::cli {

void add_run(CLI::App& app, int& status);
void add_serve(CLI::App& app, int& status);

}  // namespace remora::cli
