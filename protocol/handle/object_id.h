// SPDX-License-Identifier: Apache-2.0
// ObjectId: how the two ends name an object (context, stream, event, module, kernel). The client
// chooses it when it posts the creation, so nobody waits for a handle. A program never sees one;
// what the program holds is a handle, a pointer to a client object.
//
// `index` is a slot, reused after destruction; `generation` rises with each reuse, so that a late
// record about the previous tenant of a slot is recognised. Index 0 is "no object".
#pragma once

#include <compare>
#include <cstdint>

namespace remora::protocol {

struct ObjectId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  bool is_null() const { return index == 0; }
  explicit operator bool() const { return index != 0; }
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

}  // namespace remora::protocol
