// SPDX-License-Identifier: Apache-2.0
// What a supervisor and its session processes say to each other, over a socket pair that the session
// inherits: frames of transport/control_connection.h from the session, one descriptor to it.
//
//   session    → supervisor   warm: ready for a client; the text describes its devices
//                             failed: cannot serve; the text says why; the process ends
//   supervisor → session      the client's socket with the bytes of its ClientHello
//
// Both ends come from one build, so the version only guards against a mixed installation.
#pragma once

#include <cstdint>

namespace remora::server {

inline constexpr std::uint16_t kHandoverVersion = 1;

enum class HandoverKind : std::uint16_t { warm = 1, failed = 2 };

}  // namespace remora::server
