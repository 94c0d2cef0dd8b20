// SPDX-License-Identifier: Apache-2.0
// The name of an image by its bytes (SHA-256 of the flattened form): what the client offers and the
// server's cache looks up. A value.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"

namespace remora::image {

struct ContentHash {
  std::array<std::uint8_t, 32> bytes{};

  std::string to_hex() const;

  friend auto operator<=>(const ContentHash&, const ContentHash&) = default;
};

ContentHash hash_of(Bytes bytes);

}  // namespace remora::image

template <>
struct std::hash<remora::image::ContentHash> {
  std::size_t operator()(const remora::image::ContentHash& hash) const noexcept {
    return remora::load_unaligned<std::size_t>(hash.bytes.data());
  }
};
