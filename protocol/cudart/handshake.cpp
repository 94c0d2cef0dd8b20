// SPDX-License-Identifier: Apache-2.0
#include "protocol/cudart/handshake.h"

namespace remora::cudart {

#if REMORA_CUDART_HANDSHAKE

namespace {

// A published constant of the interface (public project ZLUDA, dark_api, integrity_check).
constexpr std::uint8_t kKey[16] = {0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52,
                                   0xAA, 0x08, 0x41, 0x36, 0x0B, 0xF5, 0x5A, 0x9F};
static_assert(sizeof kKey == Md2::kBlockSize, "a key of one block needs no hashing (RFC 2104)");

Md2 keyed(std::uint8_t pad) {
  std::array<std::uint8_t, sizeof kKey> block;
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = kKey[i] ^ pad;
  Md2 hash;
  hash.update(bytes_of(block.data(), block.size()));
  return hash;
}

}  // namespace

bool handshake_built() { return true; }

// HMAC (RFC 2104) over MD2, whose block is 16 bytes.
Md2::Digest handshake_answer(const HandshakeQuestion& question,
                             std::span<const DeviceIdentity> devices) {
  static_assert(sizeof(DeviceIdentity) == 28);
  Md2 inner = keyed(0x36);
  inner.update(bytes_of(&question, sizeof question));
  inner.update(std::as_bytes(devices));
  const Md2::Digest inner_digest = inner.finish();
  Md2 outer = keyed(0x5C);
  outer.update(bytes_of(inner_digest.data(), inner_digest.size()));
  return outer.finish();
}

#else

bool handshake_built() { return false; }

Md2::Digest handshake_answer(const HandshakeQuestion&, std::span<const DeviceIdentity>) {
  return {};
}

#endif

}  // namespace remora::cudart
