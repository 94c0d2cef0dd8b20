// SPDX-License-Identifier: Apache-2.0
// A server for one program, on this host, for the program's life: what `remora run` starts when it is
// told no server. It runs in a process of its own, in a session of its own, so that a terminal's
// Ctrl-C reaches the program alone; it ends when its owner does, however that ends.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/installation.h"

namespace remora::cli {

class PrivateServer {
 public:
  /// Returns once a session is ready. Call it while the process has one thread.
  static Result<PrivateServer> start(const Installation& installation, const std::string& driver);

  PrivateServer(PrivateServer&& other) noexcept;
  PrivateServer& operator=(PrivateServer&&) = delete;
  /// Ends the server and its sessions, and waits for that.
  ~PrivateServer();

  const std::string& address() const { return address_; }  // HOST:PORT
  const std::string& devices() const { return devices_; }  // a line for the user

 private:
  PrivateServer() = default;

  pid_t pid_ = -1;
  UniqueFd lifetime_;  // the server ends when this closes
  std::string address_, devices_;
};

}  // namespace remora::cli
