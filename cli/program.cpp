// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/message.h"

namespace remora::cli {
namespace {

constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

}  // namespace

int become(const CommandLine& command, ProgramEnvironment& environment) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvpe(arguments[0], arguments.data(), environment.data());
  const int why = errno;
  say("{}: {}", command[0], std::strerror(why));
  return why == ENOENT ? kProgramNotFound : kProgramNotExecutable;
}

int run_to_end(const CommandLine& command, ProgramEnvironment& environment) {
  sigset_t taken, before;
  sigemptyset(&taken);
  for (const int signal : kForwarded) sigaddset(&taken, signal);
  sigaddset(&taken, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &taken, &before);

  const pid_t child = fork();
  if (child == 0) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    _exit(become(command, environment));
  }
  int status = kRemoraFailed << 8;
  if (child < 0) {
    say("starting the program: {}", std::strerror(errno));
  } else {
    while (waitpid(child, &status, WNOHANG) == 0) {
      siginfo_t info;
      if (sigwaitinfo(&taken, &info) < 0) continue;
      // What the terminal sends goes to the whole foreground group, the program included.
      if (info.si_signo != SIGCHLD && info.si_code <= 0) kill(child, info.si_signo);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

int end_like(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return WEXITSTATUS(wait_status);
  // The program has dumped its core if it wanted to; ours would overwrite it.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int signal_number = WTERMSIG(wait_status);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
  return 128 + signal_number;  // one that cannot be raised here
}

}  // namespace remora::cli
