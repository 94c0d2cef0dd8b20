// SPDX-License-Identifier: Apache-2.0
// Each kind of field against bytes written down by hand from docs/wire-format.md.
#include "protocol/wire/field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace remora::protocol {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

template <typename T>
std::vector<std::byte> encoded(const T& value) {
  std::vector<std::byte> out(field_size(value));
  Writer writer(out);
  write_field(writer, value);
  EXPECT_FALSE(writer.overflowed());
  EXPECT_EQ(writer.written(), out.size());
  return out;
}

/// The value, when `from` is exactly one field of type T.
template <typename T>
std::optional<T> decoded(const std::vector<std::byte>& from) {
  Reader reader(from);
  T value{};
  read_field(reader, value);
  if (reader.finish() != Verdict::ok) return std::nullopt;
  return value;
}

TEST(Field, ScalarsAreOneLittleEndianWord) {
  EXPECT_EQ(encoded(std::uint32_t{0x01020304}), bytes({4, 3, 2, 1, 0, 0, 0, 0}));
  EXPECT_EQ(encoded(std::uint64_t{0x0102030405060708}), bytes({8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(encoded(std::int32_t{-2}), bytes({254, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(encoded(true), bytes({1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded(1.0), bytes({0, 0, 0, 0, 0, 0, 0xF0, 0x3F}));
  EXPECT_EQ(encoded(1.0f), bytes({0, 0, 0x80, 0x3F, 0, 0, 0, 0}));
}

TEST(Field, ScalarsComeBack) {
  for (std::int32_t value : {0, 1, -1, std::numeric_limits<std::int32_t>::min(),
                             std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_EQ(decoded<std::int32_t>(encoded(value)), value);
  }
  EXPECT_EQ(decoded<std::uint8_t>(encoded(std::uint8_t{255})), 255);
  EXPECT_TRUE(std::isnan(*decoded<double>(encoded(std::nan("")))));
}

TEST(Field, AValueOutsideItsTypeIsAViolation) {
  EXPECT_EQ(decoded<std::uint8_t>(encoded(std::uint64_t{256})), std::nullopt);
  EXPECT_EQ(decoded<std::uint32_t>(encoded(std::uint64_t{1} << 32)), std::nullopt);
  EXPECT_EQ(decoded<std::int32_t>(encoded(std::uint64_t{1} << 31)), std::nullopt);
  EXPECT_EQ(decoded<std::int32_t>(encoded(std::int64_t{-1} << 32)), std::nullopt);
  EXPECT_EQ(decoded<bool>(encoded(std::uint64_t{2})), std::nullopt);
  EXPECT_EQ(decoded<float>(encoded(std::uint64_t{1} << 32)), std::nullopt);
}

TEST(Field, ObjectIds) {
  EXPECT_EQ(encoded(ObjectId{5, 9}), bytes({5, 0, 0, 0, 9, 0, 0, 0}));
  EXPECT_EQ(decoded<ObjectId>(bytes({5, 0, 0, 0, 9, 0, 0, 0})), (ObjectId{5, 9}));
  EXPECT_EQ(decoded<ObjectId>(bytes({0, 0, 0, 0, 0, 0, 0, 0})), ObjectId{});
  EXPECT_EQ(decoded<ObjectId>(bytes({0, 0, 0, 0, 1, 0, 0, 0})), std::nullopt)
      << "no object has one spelling";
}

TEST(Field, TextIsCountedAndPadded) {
  EXPECT_EQ(encoded(std::string_view("abc")),
            bytes({3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded(std::string_view("")), bytes({0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(decoded<std::string_view>(encoded(std::string_view("12345678"))), "12345678");
}

TEST(Field, PaddingIsZeroAndTextHasNoZero) {
  EXPECT_EQ(decoded<std::string_view>(bytes({1, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 1})),
            std::nullopt);
  EXPECT_EQ(decoded<std::string_view>(bytes({3, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 'b', 0, 0, 0, 0, 0})),
            std::nullopt);
}

TEST(Field, ALengthBeyondTheBytesIsAViolation) {
  EXPECT_FALSE(decoded<Bytes>(bytes({1, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(decoded<Bytes>(bytes({255, 255, 255, 255, 255, 255, 255, 255})));
  EXPECT_FALSE(
      decoded<Bytes>(bytes({249, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0})));
}

TEST(Field, NullAndEmptyAreDifferent) {
  using Text = std::optional<std::string_view>;
  EXPECT_EQ(encoded(Text{}), bytes({0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded(Text{""}), bytes({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(*decoded<Text>(encoded(Text{})), std::nullopt);
  EXPECT_EQ(*decoded<Text>(encoded(Text{""})), "");
  EXPECT_FALSE(decoded<Text>(bytes({2, 0, 0, 0, 0, 0, 0, 0})));
}

TEST(Field, ArraysAreTheirBytes) {
  const std::uint32_t values[] = {1, 2, 3};
  const auto wire = encoded(ArrayView<std::uint32_t>(values, 3));
  EXPECT_EQ(wire, bytes({12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}));
  const auto array = decoded<ArrayView<std::uint32_t>>(wire);
  ASSERT_TRUE(array);
  ASSERT_EQ(array->size(), 3u);
  EXPECT_EQ((*array)[2], 3u);
  EXPECT_FALSE(
      decoded<ArrayView<std::uint32_t>>(bytes({3, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0})))
      << "no whole number of elements";
}

TEST(Field, BulkBytesAreHereOrThereAndNotBoth) {
  const auto payload = bytes({7, 8});
  BulkIn inline_bulk{payload, 0};
  EXPECT_EQ(encoded(inline_bulk), bytes({0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,  //
                                         7, 8, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(decoded<BulkIn>(encoded(BulkIn{{}, 42}))->transfer, 42u);
  EXPECT_FALSE(decoded<BulkIn>(encoded(BulkIn{payload, 42})));
}

TEST(Field, AfterAFaultEverythingIsZero) {
  const auto wire = bytes({1, 0, 0, 0});
  Reader reader(wire);
  std::uint64_t number = 99;
  read_field(reader, number);
  EXPECT_EQ(number, 0u);
  Bytes rest;
  read_field(reader, rest);
  EXPECT_TRUE(rest.empty());
  EXPECT_TRUE(reader.faulted());
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(reader.finish(), Verdict::violation);
}

TEST(Field, BytesLeftOverAreAViolation) {
  EXPECT_FALSE(decoded<bool>(bytes({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})));
}

TEST(Writer, WhatDoesNotFitIsNotWritten) {
  std::vector<std::byte> out(12, std::byte{0xEE});
  Writer writer(out);
  writer.word(1);
  writer.word(2);
  EXPECT_TRUE(writer.overflowed());
  EXPECT_EQ(writer.written(), 8u);
  EXPECT_EQ(out[8], std::byte{0xEE});
}

}  // namespace
}  // namespace remora::protocol
