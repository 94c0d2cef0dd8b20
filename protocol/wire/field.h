// SPDX-License-Identifier: Apache-2.0
// How each type of field lies on the wire (docs/wire-format.md): one overload set of field_size,
// write_field and read_field. The generated records and the control messages are lists of fields;
// everything they do goes through here.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "protocol/handle/object_id.h"
#include "protocol/wire/reader.h"
#include "protocol/wire/writer.h"

namespace remora::protocol {

/// SHA-256 of a module image as the client flattened it.
using ContentHash = std::array<std::uint8_t, 32>;

/// Bytes towards the device: in the record (`transfer` is 0), or beside it as bulk transfer
/// `transfer`, and then `inline_bytes` is empty.
struct BulkIn {
  Bytes inline_bytes;
  std::uint64_t transfer = 0;
};

/// Bytes from the device: in the reply (`transfer` is 0), or beside it as bulk transfer `transfer`.
struct BulkOut {
  std::uint64_t transfer = 0;
};

/// A struct may travel as its bytes only if it has no padding: padding would leak memory.
template <typename T>
concept WireStruct = std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
    std::has_unique_object_representations_v<T>;

template <typename T>
concept WireElement = std::is_arithmetic_v<T> || WireStruct<T>;

/// An array inside a record. Its elements may be unaligned there, hence a view that loads.
template <WireElement T>
class ArrayView {
 public:
  ArrayView() = default;
  explicit ArrayView(Bytes bytes) : bytes_(bytes) {}
  ArrayView(const T* data, std::size_t count) : bytes_(bytes_of(data, count * sizeof(T))) {}

  std::size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](std::size_t i) const { return load_unaligned<T>(bytes_.data() + i * sizeof(T)); }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Scalars: one word. Unsigned integers are zero-extended, signed ones sign-extended.
template <typename T>
requires std::is_arithmetic_v<T>
constexpr std::size_t field_size(T) { return kWordBytes; }
template <typename T>
requires std::is_arithmetic_v<T>
void write_field(Writer& writer, T value) {
  if constexpr (std::same_as<T, double>) {
    writer.word(std::bit_cast<std::uint64_t>(value));
  } else if constexpr (std::same_as<T, float>) {
    writer.word(std::bit_cast<std::uint32_t>(value));
  } else if constexpr (std::signed_integral<T>) {
    writer.word(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  } else {
    writer.word(value);
  }
}
template <typename T>
requires std::is_arithmetic_v<T>
void read_field(Reader& reader, T& value) {
  const std::uint64_t word = reader.word();
  if constexpr (std::same_as<T, double>) {
    value = std::bit_cast<double>(word);
  } else if constexpr (std::same_as<T, float>) {
    reader.require(word <= UINT32_MAX);
    value = std::bit_cast<float>(static_cast<std::uint32_t>(word));
  } else if constexpr (std::same_as<T, bool>) {
    reader.require(word <= 1);
    value = word == 1;
  } else if constexpr (std::signed_integral<T>) {
    value = static_cast<T>(word);
    reader.require(static_cast<std::int64_t>(value) == static_cast<std::int64_t>(word));
  } else {
    value = static_cast<T>(word);
    reader.require(value == word);
  }
  if (reader.faulted()) value = T{};
}

// ObjectId: one word, the index in the low half. "No object" has one spelling, all zero.
constexpr std::size_t field_size(const ObjectId&) { return kWordBytes; }
inline void write_field(Writer& writer, const ObjectId& id) {
  writer.word(std::uint64_t{id.generation} << 32 | id.index);
}
inline void read_field(Reader& reader, ObjectId& id) {
  const std::uint64_t word = reader.word();
  reader.require(word == 0 || static_cast<std::uint32_t>(word) != 0);
  if (reader.faulted()) return;
  id = {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

// Bytes and text: length word, contents, zeros to the next word.
inline std::size_t field_size(Bytes bytes) { return kWordBytes + padded(bytes.size()); }
inline void write_field(Writer& writer, Bytes bytes) { writer.counted(bytes); }
inline void read_field(Reader& reader, Bytes& bytes) { bytes = reader.counted(); }

inline std::size_t field_size(std::string_view text) { return kWordBytes + padded(text.size()); }
inline void write_field(Writer& writer, std::string_view text) {
  writer.counted(bytes_of(text.data(), text.size()));
}
inline void read_field(Reader& reader, std::string_view& text) {
  const Bytes bytes = reader.counted();
  text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  // It becomes a C string again on the other side.
  reader.require(text.find('\0') == std::string_view::npos);
  if (reader.faulted()) text = {};
}

template <typename T>
std::size_t field_size(const ArrayView<T>& array) {
  return field_size(array.bytes());
}
template <typename T>
void write_field(Writer& writer, const ArrayView<T>& array) {
  writer.counted(array.bytes());
}
template <typename T>
void read_field(Reader& reader, ArrayView<T>& array) {
  const Bytes bytes = reader.counted();
  reader.require(bytes.size() % sizeof(T) == 0);
  array = ArrayView<T>(reader.faulted() ? Bytes{} : bytes);
}

template <WireStruct T>
constexpr std::size_t field_size(const T&) {
  return padded(sizeof(T));
}
template <WireStruct T>
void write_field(Writer& writer, const T& value) {
  writer.fixed(bytes_of(&value, sizeof value));
}
template <WireStruct T>
void read_field(Reader& reader, T& value) {
  const Bytes bytes = reader.fixed(sizeof(T));
  value = bytes.empty() ? T{} : load_unaligned<T>(bytes.data());
}

inline std::size_t field_size(const BulkIn& bulk) {
  return kWordBytes + field_size(bulk.inline_bytes);
}
inline void write_field(Writer& writer, const BulkIn& bulk) {
  writer.word(bulk.transfer);
  writer.counted(bulk.inline_bytes);
}
inline void read_field(Reader& reader, BulkIn& bulk) {
  bulk.transfer = reader.word();
  bulk.inline_bytes = reader.counted();
  reader.require(bulk.transfer == 0 || bulk.inline_bytes.empty());
}

constexpr std::size_t field_size(const BulkOut&) { return kWordBytes; }
inline void write_field(Writer& writer, const BulkOut& bulk) { writer.word(bulk.transfer); }
inline void read_field(Reader& reader, BulkOut& bulk) { bulk.transfer = reader.word(); }

// Nullable: a word that says whether the value follows. Null and empty are different things.
template <typename T>
std::size_t field_size(const std::optional<T>& value) {
  return kWordBytes + (value ? field_size(*value) : 0);
}
template <typename T>
void write_field(Writer& writer, const std::optional<T>& value) {
  writer.word(value.has_value());
  if (value) write_field(writer, *value);
}
template <typename T>
void read_field(Reader& reader, std::optional<T>& value) {
  bool present = false;
  read_field(reader, present);
  if (present) read_field(reader, value.emplace());
}

// Whole records and messages: T::each_field(value, visit) calls visit(name, field) in wire order.
template <typename T>
std::size_t fields_size(const T& value) {
  std::size_t size = 0;
  T::each_field(value, [&](const char*, const auto& field) { size += field_size(field); });
  return size;
}
template <typename T>
void write_fields(Writer& writer, const T& value) {
  T::each_field(value, [&](const char*, const auto& field) { write_field(writer, field); });
}
template <typename T>
void read_fields(Reader& reader, T& value) {
  T::each_field(value, [&](const char*, auto& field) { read_field(reader, field); });
}

}  // namespace remora::protocol
