// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace remora {
namespace {

TEST(Bytes, ReadsStayInside) {
  const std::array<std::uint8_t, 6> raw{1, 0, 0, 0, 2, 0};
  const Bytes bytes = bytes_of(raw.data(), raw.size());
  EXPECT_EQ(load_at<std::uint32_t>(bytes, 0), 1u);
  EXPECT_EQ(load_at<std::uint16_t>(bytes, 4), 2u);
  EXPECT_FALSE(load_at<std::uint32_t>(bytes, 3));
  EXPECT_FALSE(load_at<std::uint8_t>(bytes, SIZE_MAX));
  EXPECT_EQ(slice(bytes, 6, 0)->size(), 0u);
  EXPECT_FALSE(slice(bytes, 1, UINT64_MAX));
}

TEST(Bytes, SizesDoNotWrap) {
  EXPECT_FALSE(checked_product(1ULL << 33, 1ULL << 31));
  EXPECT_EQ(checked_product(1ULL << 32, 1ULL << 31), 1ULL << 63);
  EXPECT_FALSE(checked_sum(UINT64_MAX, 1));
  EXPECT_EQ(align_up(257, 256), 512u);
}

}  // namespace
}  // namespace remora
