// SPDX-License-Identifier: Apache-2.0
#include "client_shim/state/object_arena.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace remora::client_shim {
namespace {

struct Thing {
  Thing(std::uint32_t index, std::uint32_t generation, std::string name)
      : index(index), generation(generation), name(std::move(name)) {}
  std::uint32_t index;
  std::uint32_t generation;
  std::string name;
};

TEST(ObjectArena, FindsLiveObjectsByHandleAndById) {
  ObjectArena<Thing, 16> arena;
  Thing* thing = arena.create("a");
  ASSERT_NE(thing, nullptr);
  EXPECT_EQ(arena.find(thing), thing);
  EXPECT_EQ(arena.find(thing->index, thing->generation), thing);
  EXPECT_EQ(arena.find(thing->index, thing->generation + 1), nullptr);
  EXPECT_EQ(arena.find(thing->index + 1, 0u), nullptr);
  EXPECT_EQ(arena.find(0u, 0u), nullptr);
}

TEST(ObjectArena, AnyOtherAddressIsNoHandle) {
  ObjectArena<Thing, 16> arena;
  Thing* thing = arena.create("a");
  for (int offset = -512; offset <= 512; ++offset) {
    if (offset != 0) {
      EXPECT_EQ(arena.find(reinterpret_cast<char*>(thing) + offset), nullptr);
    }
  }
  for (std::uintptr_t value : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{2}, UINTPTR_MAX,
                               std::uintptr_t{0xDEADBEEF}}) {
    EXPECT_EQ(arena.find(reinterpret_cast<void*>(value)), nullptr);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    EXPECT_EQ(arena.find(reinterpret_cast<void*>(random())), nullptr);
  }
}

TEST(ObjectArena, DestroyedHandlesAreUnknownAndIdsNeverComeBack) {
  ObjectArena<Thing, 4> arena;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (int i = 0; i < 40; ++i) {
    Thing* thing = arena.create("x");
    ASSERT_NE(thing, nullptr);
    EXPECT_TRUE(seen.emplace(thing->index, thing->generation).second);
    arena.destroy(thing);
    EXPECT_EQ(arena.find(thing), nullptr);
  }
}

TEST(ObjectArena, FullMeansNull) {
  ObjectArena<Thing, 2> arena;
  Thing* first = arena.create("a");
  ASSERT_NE(arena.create("b"), nullptr);
  EXPECT_EQ(arena.create("c"), nullptr);
  arena.destroy(first);
  EXPECT_NE(arena.create("d"), nullptr);
}

}  // namespace
}  // namespace remora::client_shim
