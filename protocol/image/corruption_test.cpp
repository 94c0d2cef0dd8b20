// SPDX-License-Identifier: Apache-2.0
// Real images, cut short at every byte and with every kind of damage in their tables. What counts
// is that a cut is always noticed and that damage never leads outside the bytes (the sanitizer
// presets see that); damage that still makes sense may be read.
#include <gtest/gtest.h>

#include <random>

#include "protocol/image/elf.h"
#include "protocol/image/fatbin.h"
#include "protocol/image/image.h"
#include "protocol/image/module_summary.h"
#include "protocol/image/test_images.h"

namespace remora::image {
namespace {

/// In a buffer of exactly its size, so that a sanitizer sees a read past the end.
std::vector<std::byte> exact_copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

void read_everything(Bytes bytes) {
  auto view = read_flat(bytes);
  if (!view) return;
  (void)summarize(*view);
  (void)select_ptx(*view, 121);
}

TEST(Corruption, EveryCutOfAFatBinaryIsNoticed) {
  const auto file = read_test_image("sample.default.fatbin");
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto cut = exact_copy(Bytes(file).first(size));
    ASSERT_FALSE(read_fat_binary(cut)) << size;
    ASSERT_FALSE(read_flat(cut)) << size;
  }
}

TEST(Corruption, EveryCutOfACubinIsNoticed) {
  const auto file = read_test_image("sample.cubin");
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto cut = exact_copy(Bytes(file).first(size));
    ASSERT_FALSE(read_flat(cut)) << size;
    (void)read_cubin(cut);
  }
}

TEST(Corruption, EveryCutOfACompressedEntryIsNoticed) {
  for (const char* name : {"sample.speed.fatbin", "sample.size.fatbin"}) {
    const auto file = read_test_image(name);
    auto entries = read_fat_binary(file);
    ASSERT_TRUE(entries) << entries.error().text;
    const auto entry = std::ranges::find(*entries, EntryKind::ptx, &FatBinaryEntry::kind);
    ASSERT_NE(entry, entries->end());
    const Bytes stored = entry->stored;
    for (std::size_t size = 0; size < stored.size(); ++size) {
      const auto cut = exact_copy(stored.first(size));
      FatBinaryEntry shorter = *entry;
      shorter.stored = cut;
      ASSERT_FALSE(decompress(shorter)) << name << ' ' << size;
    }
  }
}

TEST(Corruption, FlippedBitsNeverLeadOutside) {
  std::mt19937 random(2);
  for (const char* name : {"sample.default.fatbin", "sample.speed.fatbin", "sample.cubin"}) {
    const auto file = read_test_image(name);
    for (int round = 0; round < 400; ++round) {
      auto damaged = file;
      // The tables of a cubin stand at its end, the headers of a fat binary are spread over it.
      for (int flips = 0; flips < 3; ++flips) {
        const std::size_t reach = round % 2 == 0 ? 256 : damaged.size();
        const std::size_t from_start = random() % reach;
        const std::size_t at = random() % 2 == 0 ? from_start : damaged.size() - 1 - from_start;
        damaged[at] ^= std::byte{1} << random() % 8;
      }
      read_everything(damaged);
    }
  }
}

}  // namespace
}  // namespace remora::image
