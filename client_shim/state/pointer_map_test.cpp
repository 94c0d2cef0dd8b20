// SPDX-License-Identifier: Apache-2.0
#include "client_shim/state/pointer_map.h"

#include <gtest/gtest.h>

namespace remora::client_shim {
namespace {

PointerRange range(std::uint64_t base, std::uint64_t size,
                   PointerRange::Kind kind = PointerRange::Kind::device) {
  PointerRange result;
  result.base = base;
  result.size = size;
  result.kind = kind;
  return result;
}

TEST(PointerMap, FindsEveryByteOfARangeAndNoneBesideIt) {
  PointerMap map;
  ASSERT_TRUE(map.add(range(1000, 24)));
  EXPECT_FALSE(map.find(999));
  EXPECT_EQ(map.find(1000)->base, 1000u);
  EXPECT_EQ(map.find(1023)->base, 1000u);
  EXPECT_FALSE(map.find(1024));
  EXPECT_FALSE(map.find(0));
  EXPECT_FALSE(map.find(UINT64_MAX));
}

TEST(PointerMap, RefusesOverlapEmptinessAndWrapping) {
  PointerMap map;
  ASSERT_TRUE(map.add(range(1000, 100)));
  EXPECT_FALSE(map.add(range(1000, 100)));
  EXPECT_FALSE(map.add(range(1099, 1)));
  EXPECT_FALSE(map.add(range(900, 101)));
  EXPECT_FALSE(map.add(range(900, 1000)));
  EXPECT_FALSE(map.add(range(5000, 0)));
  EXPECT_FALSE(map.add(range(UINT64_MAX - 1, 4)));
  EXPECT_TRUE(map.add(range(900, 100)));
  EXPECT_TRUE(map.add(range(1100, 1)));
}

TEST(PointerMap, BufferIdsAreNeverReused) {
  PointerMap map;
  ASSERT_TRUE(map.add(range(1000, 8)));
  const auto first = map.remove(1000);
  ASSERT_TRUE(first);
  EXPECT_FALSE(map.find(1000));
  EXPECT_FALSE(map.remove(1000));
  ASSERT_TRUE(map.add(range(1000, 8)));
  EXPECT_NE(map.find(1000)->buffer_id, first->buffer_id);
}

TEST(PointerMap, HoldsChecksTheWholeCopy) {
  const PointerRange r = range(1000, 100);
  EXPECT_TRUE(r.holds(1000, 100));
  EXPECT_TRUE(r.holds(1100, 0));
  EXPECT_TRUE(r.holds(1050, 50));
  EXPECT_FALSE(r.holds(1050, 51));
  EXPECT_FALSE(r.holds(999, 1));
  EXPECT_FALSE(r.holds(1050, UINT64_MAX));
}

}  // namespace
}  // namespace remora::client_shim
