// SPDX-License-Identifier: Apache-2.0
// The parent on a GPU host: listens, reads a client's hello under a length limit and a deadline,
// and hands the socket to a session process that is already warm. It never speaks to a device and
// never sees a call; what it owns is the listening socket and its children.
//
//   client --TCP, ClientHello--> Supervisor --socket and hello--> remora-session (one per client)
//
// Threads: one. run() is a poll loop in which nothing blocks, so a slow or hostile connection
// holds up nobody. request_stop() may be called from any thread and from a signal handler.
// Errors: create() refuses an address that is not loopback, a port that is taken and a session
// program that is not there; a session's death is logged and replaced, never an error of run().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace remora::server {

struct ServeOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 lets the system choose
  std::string driver_path;             // empty: the host's NVIDIA driver, else the software GPU
  unsigned prewarmed = 1;              // session processes kept ready; the first is made in any case
  std::filesystem::path session_program;  // bin/remora-session
  /// Gets "HOST:PORT\n" and a line that describes the devices once a first session is warm, and is
  /// closed then; closed without them when no session could be made ready. The Supervisor owns it.
  int announce_fd = -1;
  /// The server ends when this descriptor reaches end of file: a private server dies with its
  /// `remora run`. The Supervisor owns it.
  int lifetime_fd = -1;
};

class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> create(ServeOptions options);
  virtual ~Supervisor() = default;

  virtual std::uint16_t port() const = 0;

  /// Serves until request_stop(), SIGTERM or SIGINT (which it takes over while it runs), or the
  /// end of lifetime_fd; then ends its children and returns. An error when the first session
  /// cannot be made ready (no driver, no device).
  virtual Result<> run() = 0;

  virtual void request_stop() = 0;
};

}  // namespace remora::server
