// SPDX-License-Identifier: Apache-2.0
// Reader: takes fields from bytes that the peer wrote. The bytes must be private to the reader by
// now (copied out of memory that the peer can still write), and outlive what is read: byte fields
// are views into them.
//
// The fault flag is sticky: after the first fault every read yields zero or nothing, so a decoder
// is a straight line with one finish() at its end. Faults are: too few bytes, padding that is not
// zero, a value outside its type, and (by finish) bytes left over. Nothing is ever allocated by a
// length that the peer claims.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "protocol/wire/verdict.h"
#include "protocol/wire/writer.h"

namespace remora::protocol {

class Reader {
 public:
  explicit Reader(Bytes from) : from_(from) {}

  std::uint64_t word() {
    if (!available(kWordBytes)) return 0;
    const auto value = load_unaligned<std::uint64_t>(from_.data() + used_);
    used_ += kWordBytes;
    return value;
  }

  Bytes fixed(std::uint64_t size) {
    // Compared before rounding up: a claimed size near 2^64 must not wrap.
    if (size > remaining() || !available(padded(size))) {
      faulted_ = true;
      return {};
    }
    const Bytes bytes = from_.subspan(used_, size);
    used_ += size;
    for (std::size_t i = size; i < padded(size); ++i) require(from_[used_++] == std::byte{0});
    return faulted_ ? Bytes{} : bytes;
  }

  Bytes counted() { return fixed(word()); }

  /// For conditions on values: false is a fault.
  void require(bool condition) {
    if (!condition) faulted_ = true;
  }

  std::size_t remaining() const { return faulted_ ? 0 : from_.size() - used_; }
  bool faulted() const { return faulted_; }

  /// The verdict on a message that ends here: trailing bytes are a violation.
  Verdict finish() const {
    return faulted_ || used_ != from_.size() ? Verdict::violation : Verdict::ok;
  }

 private:
  bool available(std::size_t size) {
    if (faulted_ || from_.size() - used_ < size) faulted_ = true;
    return !faulted_;
  }

  Bytes from_;
  std::size_t used_ = 0;
  bool faulted_ = false;
};

}  // namespace remora::protocol
