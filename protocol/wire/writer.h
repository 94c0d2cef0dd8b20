// SPDX-License-Identifier: Apache-2.0
// Writer: puts fields as little-endian 8-byte words into memory that the caller provides, usually a
// piece of the channel's current batch, so that a record is encoded in place and nothing allocates.
//
// Bytes are a length word, the bytes, and zeros up to the next multiple of 8. A write that does not
// fit sets a sticky flag and writes nothing; encoders check it once at the end. Whoever encodes
// asks encoded_size() first, so the flag means a bug of ours, not of the peer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace remora::protocol {

inline constexpr std::size_t kWordBytes = 8;

constexpr std::size_t padded(std::size_t size) { return align_up(size, kWordBytes); }

class Writer {
 public:
  explicit Writer(MutableBytes into) : into_(into) {}

  void word(std::uint64_t value) {
    if (!room_for(kWordBytes)) return;
    store_unaligned(into_.data() + used_, value);
    used_ += kWordBytes;
  }

  /// Without a length word; for contents whose size both ends know.
  void fixed(Bytes bytes) {
    if (!room_for(padded(bytes.size()))) return;
    if (!bytes.empty()) std::memcpy(into_.data() + used_, bytes.data(), bytes.size());
    std::memset(into_.data() + used_ + bytes.size(), 0, padded(bytes.size()) - bytes.size());
    used_ += padded(bytes.size());
  }

  void counted(Bytes bytes) {
    word(bytes.size());
    fixed(bytes);
  }

  std::size_t written() const { return used_; }
  bool overflowed() const { return overflowed_; }

 private:
  bool room_for(std::size_t size) {
    if (overflowed_ || into_.size() - used_ < size) overflowed_ = true;
    return !overflowed_;
  }

  MutableBytes into_;
  std::size_t used_ = 0;
  bool overflowed_ = false;
};

}  // namespace remora::protocol
