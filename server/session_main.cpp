// SPDX-License-Identifier: Apache-2.0
// remora-session: one client's session, a process of its own. Started by the supervisor ahead of time;
// it makes driver and transport ready, says so, waits for a client's socket, and serves until that
// client is gone.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/unique_fd.h"
#include "protocol/wire/control.h"
#include "server/driver/driver.h"
#include "server/session/handshake.h"
#include "server/session/session.h"
#include "server/supervisor/handover.h"
#include "transport/control_connection.h"
#include "transport/endpoint.h"

namespace remora::server {
namespace {

constexpr std::uint64_t kHandshakeMs = 5000;
constexpr std::uint64_t kReportMs = 1000;
constexpr std::uint32_t kRunSpinUs = 20;

struct Warm {
  Driver driver;
  std::vector<Device> devices;
  std::unique_ptr<transport::Endpoint> endpoint;
};

Result<Warm> warm_up(const std::string& driver_path) {
  REMORA_TRY(Driver driver, Driver::open(driver_path));
  REMORA_TRY(std::vector<Device> devices, prepare_devices(driver));
  // Servers listen on loopback only, so far.
  REMORA_TRY(auto endpoint,
             transport::Endpoint::create({.run_spin_us = kRunSpinUs, .same_host = true}));
  return Warm{std::move(driver), std::move(devices), std::move(endpoint)};
}

Result<> serve(Warm& warm, const transport::ReceivedDescriptor& client) {
  REMORA_TRY(const protocol::ClientHello hello,
             protocol::decode_control<protocol::ClientHello>(client.bytes));
  const int socket = client.descriptor.get();
  const Deadline deadline = Deadline::in_ms(kHandshakeMs);
  REMORA_TRY_DO(offer_session(socket, warm.driver, warm.devices, warm.endpoint->address(), deadline));

  // Never destroyed: work of the driver may still point into it when the process ends.
  auto& session = *new Session(warm.driver, std::move(warm.devices), *warm.endpoint);
  (void)session;
  REMORA_TRY_DO(warm.endpoint->connect(hello.worker_address));
  REMORA_TRY_DO(send_ready(socket, deadline));
  log::info("serving {} (pid {}) over {}", hello.program_name, hello.client_pid,
            warm.endpoint->description());
  warm.endpoint->watch_control(socket);
  warm.endpoint->run();
  return warm.endpoint->has_failed() ? Result<>(warm.endpoint->failure()) : Result<>();
}

int run(int supervisor_fd, const std::string& driver_path) {
  log::set_name(fmt::format("remora-session {}", getpid()));
  UniqueFd supervisor(supervisor_fd);
  auto warm = warm_up(driver_path);
  const std::string report =
      warm.ok() ? describe_devices(warm->driver) : warm.error().text;
  const HandoverKind kind = warm.ok() ? HandoverKind::warm : HandoverKind::failed;
  const auto told =
      transport::send_frame(supervisor.get(), kHandoverVersion, static_cast<std::uint16_t>(kind),
                            bytes_of(report.data(), report.size()), Deadline::in_ms(kReportMs));
  if (!told.ok() || !warm.ok()) return 1;

  const auto client = transport::receive_descriptor(supervisor.get(), Deadline::never());
  if (!client.ok()) return 0;  // the supervisor has ended
  supervisor.reset();
  const auto served = serve(*warm, *client);
  if (!served.ok()) {
    const bool gone = served.error().kind == ErrorKind::unavailable;
    if (gone) {
      log::debug("{}", served.error().text);
    } else {
      log::warn("{}", served.error().text);
    }
  }
  return 0;
}

}  // namespace
}  // namespace remora::server

int main(int argc, char** argv) {
  CLI::App app("One session of a Remora server. Started by `remora serve`.");
  int supervisor_fd = -1;
  std::string driver_path;
  app.add_option("--supervisor-fd", supervisor_fd, "Inherited socket to the supervisor")->required();
  app.add_option("--driver", driver_path, "CUDA driver library to execute on");
  CLI11_PARSE(app, argc, argv);
  const int code = remora::server::run(supervisor_fd, driver_path);
  // Destructors of a driver that still works would only delay the end.
  _exit(code);
}
