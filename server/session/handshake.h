// SPDX-License-Identifier: Apache-2.0
// What a session does once, before it serves: it makes its devices ready, offers them to the client,
// and agrees with it on where their address windows lie.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "protocol/wire/control.h"
#include "server/driver/driver.h"
#include "server/session/session.h"

namespace remora::server {

/// Retains each device's primary context and reserves its window.
Result<std::vector<Device>> prepare_devices(const Driver& driver);

/// "NVIDIA H200, 139 GiB" for people, one device or "4 × …".
std::string describe_devices(const Driver& driver);

/// The part of the handshake between the client's hello and Ready. Moves windows to where the client
/// can hold them, too. The client is told of a failure, as far as it listens.
Result<> offer_session(int socket, const Driver& driver, std::vector<Device>& devices,
                       Bytes worker_address, Deadline deadline);

/// Commands may flow.
Result<> send_ready(int socket, Deadline deadline);

}  // namespace remora::server
