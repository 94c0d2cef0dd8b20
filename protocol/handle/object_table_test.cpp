// SPDX-License-Identifier: Apache-2.0
#include "protocol/handle/object_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace remora::protocol {
namespace {

std::unique_ptr<int> number(int value) { return std::make_unique<int>(value); }

TEST(ObjectTable, FindsWhatWasInserted) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({3, 1}, number(30)), nullptr);
  ASSERT_NE(table.insert({500, 7}, number(5000)), nullptr);
  EXPECT_EQ(*table.find({3, 1}), 30);
  EXPECT_EQ(*table.find({500, 7}), 5000);
  EXPECT_EQ(*table.find_index(500), 5000);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find({4, 1}), nullptr);
  EXPECT_EQ(table.find({501, 7}), nullptr);
  EXPECT_EQ(table.find_index(501), nullptr);
}

TEST(ObjectTable, NoObjectIsNeverThere) {
  ObjectTable<int> table;
  EXPECT_EQ(table.insert({0, 1}, number(1)), nullptr);
  EXPECT_EQ(table.find({}), nullptr);
  EXPECT_EQ(table.find_index(0), nullptr);
  EXPECT_EQ(table.erase({}), nullptr);
}

TEST(ObjectTable, ATakenSlotIsRefusedAndKeepsItsObject) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({3, 1}, number(30)), nullptr);
  EXPECT_EQ(table.insert({3, 2}, number(31)), nullptr);
  EXPECT_EQ(*table.find({3, 1}), 30);
  EXPECT_EQ(table.size(), 1u);
}

TEST(ObjectTable, TheGenerationOfASlotRises) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({3, 5}, number(1)), nullptr);
  ASSERT_EQ(*table.erase({3, 5}), 1);
  EXPECT_EQ(table.insert({3, 5}, number(2)), nullptr);
  EXPECT_EQ(table.insert({3, 4}, number(2)), nullptr);
  ASSERT_NE(table.insert({3, 6}, number(2)), nullptr);
  EXPECT_EQ(table.find({3, 5}), nullptr) << "a late record about the previous tenant";
  EXPECT_EQ(*table.find({3, 6}), 2);
}

TEST(ObjectTable, GenerationZeroIsAGeneration) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({1, 0}, number(1)), nullptr);
  ASSERT_NE(table.erase({1, 0}), nullptr);
  EXPECT_EQ(table.insert({1, 0}, number(1)), nullptr);
}

TEST(ObjectTable, EraseNeedsTheRightGeneration) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({3, 5}, number(1)), nullptr);
  EXPECT_EQ(table.erase({3, 4}), nullptr);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_NE(table.erase({3, 5}), nullptr);
  EXPECT_EQ(table.erase({3, 5}), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(ObjectTable, TheNumberOfSlotsIsBounded) {
  ObjectTable<int> table(10);
  EXPECT_NE(table.insert({10, 1}, number(1)), nullptr);
  EXPECT_EQ(table.insert({11, 1}, number(1)), nullptr);
  EXPECT_EQ(table.insert({UINT32_MAX, 1}, number(1)), nullptr);
}

TEST(ObjectTable, VisitsEveryObjectWithItsId) {
  ObjectTable<int> table;
  ASSERT_NE(table.insert({9, 2}, number(90)), nullptr);
  ASSERT_NE(table.insert({4, 1}, number(40)), nullptr);
  ASSERT_NE(table.insert({5, 1}, number(50)), nullptr);
  ASSERT_NE(table.erase({5, 1}), nullptr);
  std::vector<std::pair<ObjectId, int>> seen;
  table.for_each([&](ObjectId id, int value) { seen.emplace_back(id, value); });
  const std::vector<std::pair<ObjectId, int>> expected{{{4, 1}, 40}, {{9, 2}, 90}};
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace remora::protocol
