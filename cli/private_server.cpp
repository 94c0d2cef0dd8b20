// SPDX-License-Identifier: Apache-2.0
#include "cli/private_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "cli/message.h"
#include "server/supervisor/supervisor.h"

namespace remora::cli {
namespace {

constexpr std::uint64_t kStartMs = 30'000;  // a driver on a busy host needs seconds
constexpr std::uint64_t kEndMs = 5'000;

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("making a pipe");
  return std::pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void serve(server::ServeOptions options) {
  setsid();
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  const auto supervisor = server::Supervisor::create(std::move(options));
  const auto served = supervisor.ok() ? (*supervisor)->run() : Result<>(supervisor.error());
  if (!served.ok()) say("{}", served.error().text);
  std::fflush(nullptr);
  _exit(served.ok() ? 0 : 1);
}

/// The two lines that the server announces itself with.
Result<std::string> read_announcement(int from) {
  const Deadline deadline = Deadline::in_ms(kStartMs);
  std::string text;
  while (true) {
    pollfd wait{from, POLLIN, 0};
    const int ready = poll(&wait, 1, deadline.poll_timeout_ms());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Error{ErrorKind::timed_out, 0, "The private server is not ready after 30 s."};
    }
    char part[512];
    const ssize_t got = read(from, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  if (text.empty()) return Error{ErrorKind::unavailable, 0, "The private server did not start."};
  return text;
}

}  // namespace

Result<PrivateServer> PrivateServer::start(const Installation& installation,
                                           const std::string& driver) {
  REMORA_TRY(auto session_program, existing(installation.session_program));
  REMORA_TRY(auto lifetime, make_pipe());
  REMORA_TRY(auto announcement, make_pipe());
  PrivateServer server;
  server.pid_ = fork();
  if (server.pid_ < 0) return system_error("starting the private server");
  if (server.pid_ == 0) {
    lifetime.second.reset();
    announcement.first.reset();
    serve({.listen = "127.0.0.1:0",
           .driver_path = driver,
           .prewarmed = 0,  // one is made at the start; a program rarely wants another
           .session_program = session_program,
           .announce_fd = announcement.second.release(),
           .lifetime_fd = lifetime.first.release()});
  }
  server.lifetime_ = std::move(lifetime.second);
  announcement.second.reset();
  REMORA_TRY(const std::string text, read_announcement(announcement.first.get()));
  const std::size_t line_end = text.find('\n');
  server.address_ = text.substr(0, line_end);
  server.devices_ = text.substr(line_end + 1, text.find('\n', line_end + 1) - line_end - 1);
  return server;
}

PrivateServer::PrivateServer(PrivateServer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      lifetime_(std::move(other.lifetime_)),
      address_(std::move(other.address_)),
      devices_(std::move(other.devices_)) {}

PrivateServer::~PrivateServer() {
  if (pid_ <= 0) return;
  lifetime_.reset();
  for (const Deadline deadline = Deadline::in_ms(kEndMs); !deadline.passed(); usleep(500)) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
  }
  kill(pid_, SIGKILL);  // its sessions die with it
  waitpid(pid_, nullptr, 0);
}

}  // namespace remora::cli
