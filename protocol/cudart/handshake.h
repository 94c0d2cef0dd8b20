// SPDX-License-Identifier: Apache-2.0
// The validity handshake of the CUDA runtime (slot 1 of the INTEGRITY table): a question with
// values of the calling process, answered with 16 bytes. Without the right answer the runtime ends
// with error 103. The build option REMORA_CUDART_HANDSHAKE leaves it out; the table is then refused
// and only programs that call the driver API themselves run.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/cudart/export_tables.h"
#include "protocol/cudart/md2.h"

namespace remora::cudart {

/// The fields in the order in which they are hashed, little-endian and without padding.
struct HandshakeQuestion {
  std::uint32_t driver_version;
  std::uint32_t asked_version;
  std::uint32_t process;
  std::uint32_t thread;  // low half of pthread_self()
  std::uint64_t cudart_interface_table;
  std::uint64_t integrity_table;
  std::uint64_t integrity_function;
  std::uint64_t unix_seconds;
};
static_assert(sizeof(HandshakeQuestion) == 48);

/// False when the build leaves the handshake out.
bool handshake_built();

Md2::Digest handshake_answer(const HandshakeQuestion& question,
                             std::span<const DeviceIdentity> devices);

}  // namespace remora::cudart
