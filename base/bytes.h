// SPDX-License-Identifier: Apache-2.0
// Bytes without ownership, and arithmetic on sizes that cannot wrap.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

namespace remora {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

static_assert(std::endian::native == std::endian::little, "formats are little-endian as the host");

/// Reads a T from possibly unaligned memory.
template <typename T>
  requires std::is_trivially_copyable_v<T>
T load_unaligned(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
  requires std::is_trivially_copyable_v<T>
void store_unaligned(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

/// Reads a T at `offset`, or nothing when it would pass the end.
template <typename T>
std::optional<T> load_at(Bytes bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  return load_unaligned<T>(bytes.data() + offset);
}

/// The part [offset, offset + size), or nothing when it would pass the end.
inline std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

inline Bytes bytes_of(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

/// `alignment` is a power of two.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
constexpr std::uint64_t align_down(std::uint64_t value, std::uint64_t alignment) {
  return value & ~(alignment - 1);
}

/// a * b, or nothing when it does not fit 64 bits.
inline std::optional<std::uint64_t> checked_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}
inline std::optional<std::uint64_t> checked_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace remora
