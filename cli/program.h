// SPDX-License-Identifier: Apache-2.0
// The user's program as a process: replaced by it, or beside it as its parent.
#pragma once

#include <string>
#include <vector>

#include "cli/program_environment.h"

namespace remora::cli {

using CommandLine = std::vector<std::string>;

/// Replaces this process. Returns only when that fails: having said why, the exit status for it (126
/// not executable, 127 not found), as the shell has them.
int become(const CommandLine& command, ProgramEnvironment& environment);

/// Starts the program as a child and waits for its end. Signals that somebody sends to this process
/// go to the program; those of the terminal reach it anyway. Returns the wait status of wait(2).
int run_to_end(const CommandLine& command, ProgramEnvironment& environment);

/// Ends as the program did: the exit status to return, or, after a signal, death by that signal.
int end_like(int wait_status);

}  // namespace remora::cli
