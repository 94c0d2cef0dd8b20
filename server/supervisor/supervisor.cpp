// SPDX-License-Identifier: Apache-2.0
#include "server/supervisor/supervisor.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "protocol/wire/control.h"
#include "protocol/wire/version.h"
#include "server/supervisor/handover.h"
#include "transport/control_connection.h"

namespace remora::server {
namespace {

using protocol::ClientHello;
using protocol::ControlKind;
using protocol::Refusal;
using protocol::RefusalReason;

constexpr std::size_t kMaxConnections = 256;     // whose hello is not read yet
constexpr std::size_t kMaxSessions = 256;        // processes, serving or not
constexpr std::size_t kHelloLimit = 64 << 10;    // bytes
constexpr std::uint64_t kHelloMs = 3000;         // for a client to say its hello
constexpr std::uint64_t kWaitForSessionMs = 4000;  // for a client that found none ready
constexpr std::uint64_t kRefusalMs = 100;        // a fresh socket takes these few bytes at once
constexpr std::uint64_t kRestMs = 1000;          // after a session that could not start

/// A client whose hello is being read.
struct Connection {
  UniqueFd socket;
  transport::FrameReader reader{protocol::kProtocolVersion, kHelloLimit};
  Deadline deadline = Deadline::in_ms(kHelloMs);
};

/// A client that said its hello and has no session yet.
struct Waiting {
  UniqueFd socket;
  std::vector<std::byte> hello;
  Deadline deadline = Deadline::in_ms(kWaitForSessionMs);
};

struct Session {
  enum class State { starting, warm, serving };
  pid_t pid = -1;
  UniqueFd channel;  // closed once it serves
  State state = State::starting;
  transport::FrameReader reader{kHandoverVersion};
};

void refuse(int socket, RefusalReason reason, std::string text) {
  log::info("refused a client: {}", text);
  const auto body = protocol::encode_control(Refusal{reason, std::move(text)});
  (void)transport::send_frame(socket, protocol::kProtocolVersion,
                              static_cast<std::uint16_t>(ControlKind::refusal), body,
                              Deadline::in_ms(kRefusalMs));
  // An orderly end: what the client still sends must not turn into a reset that eats the refusal.
  shutdown(socket, SHUT_WR);
  std::byte rest[4096];
  while (recv(socket, rest, sizeof rest, MSG_DONTWAIT) > 0) {
  }
}

/// Blocks signals in this thread while it lives and gives them as a descriptor.
class SignalScope {
 public:
  SignalScope() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&taken, signal);
    pthread_sigmask(SIG_BLOCK, &taken, &before_);
    descriptor_.reset(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalScope() {
    // Pending ones were meant for us; with the old mask they would end the process.
    signalfd_siginfo info;
    while (read(descriptor_.get(), &info, sizeof info) == sizeof info) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  int descriptor() const { return descriptor_.get(); }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
  UniqueFd descriptor_;
};

class Process final : public Supervisor {
 public:
  explicit Process(ServeOptions options, UniqueFd listener, std::uint16_t port, std::string host)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        announce_(options_.announce_fd),
        lifetime_(options_.lifetime_fd),
        port_(port),
        host_(std::move(host)) {}

  ~Process() override { end_sessions(); }

  std::uint16_t port() const override { return port_; }

  void request_stop() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
  }

  Result<> run() override;

 private:
  Result<> start_session(const SignalScope& signals);
  void keep_ready(const SignalScope& signals);
  void accept_clients();
  bool read_hello(Connection& connection);  // true when the connection is done with
  void read_session(Session& session);
  void hand_over();
  void expire();
  void reap();
  void end_sessions();
  void announce(std::string_view text);
  int next_timeout_ms() const;
  std::size_t count(Session::State state) const;

  const ServeOptions options_;
  UniqueFd listener_, stop_, announce_, lifetime_;
  const std::uint16_t port_;
  const std::string host_;
  std::list<Connection> connections_;
  std::deque<Waiting> waiting_;
  std::list<Session> sessions_;
  bool was_ready_ = false;      // some session was warm once
  std::string start_failure_;   // of the last session that could not start
  Deadline rest_until_ = Deadline::in_ms(0);
};

std::size_t Process::count(Session::State state) const {
  std::size_t n = 0;
  for (const Session& session : sessions_) n += session.state == state;
  return n;
}

Result<> Process::start_session(const SignalScope& signals) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("making a session's socket");
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = {options_.session_program.string(), "--supervisor-fd", "3"};
  if (!options_.driver_path.empty()) words.insert(words.end(), {"--driver", options_.driver_path});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("starting a session process");
  if (pid == 0) {
    // Only calls that are safe between fork and exec.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    pthread_sigmask(SIG_SETMASK, &signals.before(), nullptr);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    if (theirs.get() == 3) {
      fcntl(3, F_SETFD, 0);
    } else {
      dup2(theirs.get(), 3);
    }
    close_range(4, ~0u, 0);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Session& session = sessions_.emplace_back();
  session.pid = pid;
  session.channel = std::move(ours);
  log::debug("session process {} is starting", pid);
  return {};
}

/// As many sessions as clients wait for, and the prewarmed ones.
void Process::keep_ready(const SignalScope& signals) {
  if (!start_failure_.empty() && !rest_until_.passed()) return;
  const std::size_t least = was_ready_ ? options_.prewarmed : std::max(options_.prewarmed, 1u);
  std::size_t ready = count(Session::State::starting) + count(Session::State::warm);
  while (ready < least + waiting_.size() && sessions_.size() < kMaxSessions) {
    if (const auto started = start_session(signals); !started.ok()) {
      log::error("{}", started.error().text);
      start_failure_ = started.error().text;
      rest_until_ = Deadline::in_ms(kRestMs);
      return;
    }
    ++ready;
  }
}

void Process::accept_clients() {
  while (true) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (connections_.size() + waiting_.size() >= kMaxConnections) {
      refuse(socket.get(), RefusalReason::busy, "The server has too many connections.");
      continue;
    }
    connections_.emplace_back().socket = std::move(socket);
  }
}

bool Process::read_hello(Connection& connection) {
  const int socket = connection.socket.get();
  const auto complete = connection.reader.read_some(socket);
  if (!complete.ok()) {
    const Error& error = complete.error();
    if (error.kind == ErrorKind::refused) {
      refuse(socket, RefusalReason::version,
             fmt::format("The server speaks protocol version {}, the client {}.",
                         protocol::kProtocolVersion, error.code));
    } else if (error.kind == ErrorKind::invalid_input) {
      refuse(socket, RefusalReason::malformed, "That was not a Remora client: " + error.text);
    }
    return true;
  }
  if (!*complete) return false;
  transport::Frame frame = connection.reader.take();
  if (frame.type != static_cast<std::uint16_t>(ControlKind::client_hello)) {
    refuse(socket, RefusalReason::malformed, "The first message was not a hello.");
    return true;
  }
  const auto hello = protocol::decode_control<ClientHello>(frame.payload);
  if (!hello.ok()) {
    refuse(socket, RefusalReason::malformed, hello.error().text);
    return true;
  }
  log::info("client {} (pid {}, Remora {})", hello->program_name, hello->client_pid,
            hello->build_version);
  waiting_.push_back({std::move(connection.socket), std::move(frame.payload)});
  return true;
}

void Process::announce(std::string_view text) {
  if (!announce_) return;
  const std::string lines = fmt::format("{}:{}\n{}\n", host_, port_, text);
  [[maybe_unused]] const ssize_t written = write(announce_.get(), lines.data(), lines.size());
  announce_.reset();
}

void Process::read_session(Session& session) {
  const auto complete = session.reader.read_some(session.channel.get());
  if (complete.ok() && !*complete) return;
  if (!complete.ok()) {
    if (session.state == Session::State::starting && start_failure_.empty()) {
      start_failure_ = "A session process ended before it was ready.";
      rest_until_ = Deadline::in_ms(kRestMs);
    }
    session.channel.reset();
    kill(session.pid, SIGKILL);  // reaped by its SIGCHLD
    session.state = Session::State::serving;
    return;
  }
  const transport::Frame frame = session.reader.take();
  const std::string text(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
  if (frame.type == static_cast<std::uint16_t>(HandoverKind::warm)) {
    session.state = Session::State::warm;
    was_ready_ = true;
    start_failure_.clear();
    announce(text);
    return;
  }
  start_failure_ = text;
  rest_until_ = Deadline::in_ms(kRestMs);
  log::error("a session could not start: {}", text);
  session.channel.reset();
  session.state = Session::State::serving;
}

void Process::hand_over() {
  for (auto session = sessions_.begin(); session != sessions_.end() && !waiting_.empty(); ++session) {
    if (session->state != Session::State::warm) continue;
    Waiting client = std::move(waiting_.front());
    waiting_.pop_front();
    const auto given = transport::send_descriptor(session->channel.get(), client.socket.get(),
                                                  client.hello, Deadline::in_ms(kRefusalMs));
    session->state = Session::State::serving;
    session->channel.reset();
    if (!given.ok()) {
      kill(session->pid, SIGKILL);
      waiting_.push_front(std::move(client));
    } else {
      log::debug("session process {} serves a client", session->pid);
    }
  }
  if (!waiting_.empty() && !start_failure_.empty()) {
    for (Waiting& client : waiting_) {
      refuse(client.socket.get(), RefusalReason::driver, start_failure_);
    }
    waiting_.clear();
  }
}

void Process::expire() {
  connections_.remove_if([](const Connection& connection) { return connection.deadline.passed(); });
  while (!waiting_.empty() && waiting_.front().deadline.passed()) {
    refuse(waiting_.front().socket.get(), RefusalReason::busy,
           "The server has no session process free.");
    waiting_.pop_front();
  }
}

void Process::reap() {
  sessions_.remove_if([](const Session& session) {
    int status = 0;
    if (waitpid(session.pid, &status, WNOHANG) != session.pid) return false;
    if (WIFSIGNALED(status)) {
      log::warn("session process {} ended by signal {} ({})", session.pid, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    } else {
      log::debug("session process {} ended with {}", session.pid, WEXITSTATUS(status));
    }
    return true;
  });
}

void Process::end_sessions() {
  for (const Session& session : sessions_) kill(session.pid, SIGKILL);
  for (const Session& session : sessions_) waitpid(session.pid, nullptr, 0);
  sessions_.clear();
}

int Process::next_timeout_ms() const {
  Deadline next = Deadline::never();
  for (const Connection& connection : connections_) next = next.sooner(connection.deadline);
  if (!waiting_.empty()) next = next.sooner(waiting_.front().deadline);
  if (!start_failure_.empty() && !rest_until_.passed()) next = next.sooner(rest_until_);
  return next.poll_timeout_ms();
}

Result<> Process::run() {
  const SignalScope signals;
  while (true) {
    keep_ready(signals);
    if (!was_ready_ && !start_failure_.empty()) {
      announce_.reset();
      end_sessions();
      return Error{ErrorKind::unavailable, 0, start_failure_};
    }

    std::vector<pollfd> watched = {{listener_.get(), POLLIN, 0},
                                   {stop_.get(), POLLIN, 0},
                                   {signals.descriptor(), POLLIN, 0},
                                   {lifetime_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      watched.push_back({connection.socket.get(), POLLIN, 0});
    }
    for (const Session& session : sessions_) {
      watched.push_back({session.channel.get(), POLLIN, 0});  // negative ones are not looked at
    }
    if (poll(watched.data(), watched.size(), next_timeout_ms()) < 0 && errno != EINTR) {
      return system_error("waiting for clients");
    }

    bool stop = watched[1].revents != 0 || watched[3].revents != 0;
    signalfd_siginfo signal;
    while (read(signals.descriptor(), &signal, sizeof signal) == sizeof signal) {
      stop |= signal.ssi_signo != SIGCHLD;
    }
    if (stop) {
      end_sessions();
      return {};
    }
    auto at = watched.begin() + 4;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++at) {
      const bool done = at->revents != 0 && read_hello(*connection);
      connection = done ? connections_.erase(connection) : std::next(connection);
    }
    for (Session& session : sessions_) {
      if (at++->revents != 0 && session.channel) read_session(session);
    }
    if (watched[0].revents != 0) accept_clients();
    reap();
    hand_over();
    expire();
  }
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::create(ServeOptions options) {
  // Owned from here on, also on failure.
  UniqueFd announce(options.announce_fd), lifetime(options.lifetime_fd);
  REMORA_TRY(const transport::HostPort address, transport::parse_host_port(options.listen));
  REMORA_TRY(const bool loopback, transport::is_loopback(address));
  if (!loopback) {
    return Error{ErrorKind::refused, 0,
                 fmt::format("{} is not a loopback address: other hosts could use this server, and "
                             "Remora has no credentials yet to tell them apart.",
                             options.listen)};
  }
  if (access(options.session_program.c_str(), X_OK) != 0) {
    return system_error(fmt::format("Looking for {}", options.session_program.string()));
  }
  REMORA_TRY(UniqueFd listener, transport::listen_tcp(address));
  REMORA_TRY(const std::uint16_t port, transport::local_port(listener.get()));
  (void)announce.release();
  (void)lifetime.release();
  const bool v6 = address.host.find(':') != std::string::npos;
  return std::unique_ptr<Supervisor>(std::make_unique<Process>(
      std::move(options), std::move(listener), port, v6 ? "[" + address.host + "]" : address.host));
}

}  // namespace remora::server
