// SPDX-License-Identifier: Apache-2.0
// The MD2 message digest of RFC 1319. Long unfit for security; the validity handshake of the CUDA
// runtime is made of it (handshake.h), and no current crypto library carries it.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace remora::cudart {

class Md2 {
 public:
  static constexpr std::size_t kBlockSize = 16;
  using Digest = std::array<std::uint8_t, 16>;

  void update(Bytes bytes);
  /// Pads and gives the digest; the object is used up.
  Digest finish();

 private:
  void absorb(const std::uint8_t* block);

  std::array<std::uint8_t, 48> state_{};
  std::array<std::uint8_t, kBlockSize> checksum_{};
  std::array<std::uint8_t, kBlockSize> pending_{};
  std::size_t pending_size_ = 0;
};

}  // namespace remora::cudart
