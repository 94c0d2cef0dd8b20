// SPDX-License-Identifier: Apache-2.0
// The allocator against a model that is too simple to be wrong: a byte map in units of 512, and the
// commit rule of the server recomputed from the list of live allocations.
#include "client_shim/state/window_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace remora::client_shim {
namespace {

constexpr std::uint64_t kBase = 0x1200'0000'0000;
constexpr std::uint64_t kKiB = 1024;

TEST(WindowAllocator, GivesAlignedAddressesFromTheBaseUp) {
  WindowAllocator allocator({kBase, 1 << 20, 64 * kKiB, 128 * kKiB});
  const auto first = allocator.carve(1);
  const auto second = allocator.carve(513);
  const auto third = allocator.carve(512);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->address, kBase);
  EXPECT_EQ(second->address, kBase + 512);
  EXPECT_EQ(third->address, kBase + 512 + 1024);
  EXPECT_EQ(allocator.allocated_bytes(), 2048u);
}

TEST(WindowAllocator, TakesTheSmallestHoleThatFits) {
  WindowAllocator allocator({kBase, 64 * kKiB, 4 * kKiB, 64 * kKiB});
  const auto a = allocator.carve(8 * kKiB);
  const auto wall = allocator.carve(512);
  const auto b = allocator.carve(2 * kKiB);
  const auto wall2 = allocator.carve(512);
  ASSERT_TRUE(a && wall && b && wall2);
  EXPECT_TRUE(allocator.release(a->address));
  EXPECT_TRUE(allocator.release(b->address));
  EXPECT_EQ(allocator.carve(2 * kKiB)->address, b->address);
  EXPECT_EQ(allocator.carve(2 * kKiB)->address, a->address);
}

TEST(WindowAllocator, RefusesWhatDoesNotFit) {
  WindowAllocator allocator({kBase, 64 * kKiB, 4 * kKiB, 0});
  EXPECT_FALSE(allocator.carve(0));
  EXPECT_FALSE(allocator.carve(64 * kKiB + 1));
  EXPECT_FALSE(allocator.carve(UINT64_MAX));
  EXPECT_TRUE(allocator.carve(64 * kKiB));
  EXPECT_FALSE(allocator.carve(1));
}

TEST(WindowAllocator, ReleasesOnlyWhatItGave) {
  WindowAllocator allocator({kBase, 64 * kKiB, 4 * kKiB, 0});
  const auto range = allocator.carve(1024);
  ASSERT_TRUE(range);
  EXPECT_FALSE(allocator.release(range->address + 512));
  EXPECT_TRUE(allocator.release(range->address));
  EXPECT_FALSE(allocator.release(range->address));
}

TEST(WindowAllocator, CreditCoversThePrefixAndChunksThatAreInUse) {
  WindowAllocator allocator({kBase, 1 << 20, 64 * kKiB, 64 * kKiB});
  EXPECT_TRUE(allocator.carve(64 * kKiB)->has_credit);

  const auto beyond = allocator.carve(kKiB);
  EXPECT_FALSE(beyond->has_credit);
  // Not answered yet: its chunk may still be refused, so a neighbour must ask as well.
  EXPECT_FALSE(allocator.carve(kKiB)->has_credit);
  allocator.confirm(beyond->address);
  EXPECT_TRUE(allocator.carve(kKiB)->has_credit);
  // Reaches into the next chunk, which nobody holds.
  EXPECT_FALSE(allocator.carve(64 * kKiB)->has_credit);
}

TEST(WindowAllocator, AgreesWithASimpleModel) {
  constexpr std::uint64_t kWindow = 512 * kKiB;
  constexpr std::uint64_t kGranularity = 16 * kKiB;
  for (std::uint64_t committed : {std::uint64_t{0}, 3 * kGranularity, kWindow}) {
    WindowAllocator allocator({kBase, kWindow, kGranularity, committed});
    std::vector<bool> taken(kWindow / 512);
    std::map<std::uint64_t, std::pair<std::uint64_t, bool>> live;  // address: size, confirmed
    std::mt19937_64 random(committed + 7);

    const auto smallest_fit = [&](std::uint64_t units) -> std::uint64_t {
      std::uint64_t best_at = UINT64_MAX, best_length = UINT64_MAX;
      for (std::size_t i = 0; i < taken.size();) {
        if (taken[i]) {
          ++i;
          continue;
        }
        std::size_t end = i;
        while (end < taken.size() && !taken[end]) ++end;
        if (end - i >= units && end - i < best_length) best_at = i, best_length = end - i;
        i = end;
      }
      return best_at;
    };
    const auto server_has = [&](std::uint64_t address, std::uint64_t size) {
      for (std::uint64_t byte = address; byte < address + size; byte += 512) {
        const std::uint64_t chunk = (byte - kBase) / kGranularity;
        if ((chunk + 1) * kGranularity <= committed) continue;
        bool held = false;
        for (const auto& [other, entry] : live) {
          if (!entry.second) continue;
          held |= (other - kBase) / kGranularity <= chunk &&
                  (other + entry.first - 1 - kBase) / kGranularity >= chunk;
        }
        if (!held) return false;
      }
      return true;
    };

    for (int step = 0; step < 3000; ++step) {
      if (random() % 5 < 3 || live.empty()) {
        const std::uint64_t size = 1 + random() % (random() % 4 == 0 ? 80 * kKiB : 4 * kKiB);
        const std::uint64_t units = (size + 511) / 512;
        const std::uint64_t expected = smallest_fit(units);
        const auto carved = allocator.carve(size);
        ASSERT_EQ(carved.has_value(), expected != UINT64_MAX);
        if (!carved) continue;
        ASSERT_EQ(carved->address, kBase + expected * 512);
        ASSERT_EQ(carved->has_credit, server_has(carved->address, units * 512));
        for (std::uint64_t i = 0; i < units; ++i) taken[expected + i] = true;
        const bool confirmed = random() % 8 != 0;
        if (confirmed) allocator.confirm(carved->address);
        live[carved->address] = {units * 512, confirmed};
      } else {
        auto victim = std::next(live.begin(), random() % live.size());
        ASSERT_TRUE(allocator.release(victim->first));
        for (std::uint64_t i = 0; i < victim->second.first / 512; ++i) {
          taken[(victim->first - kBase) / 512 + i] = false;
        }
        live.erase(victim);
      }
    }
  }
}

}  // namespace
}  // namespace remora::client_shim
