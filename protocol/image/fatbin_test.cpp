// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/fatbin.h"

#include <gtest/gtest.h>

#include "protocol/image/elf.h"
#include "protocol/image/test_images.h"

namespace remora::image {
namespace {

struct Mode {
  const char* name;
  Compression ptx_compression;
};

class FatBinaryModes : public testing::TestWithParam<Mode> {};

TEST_P(FatBinaryModes, EntriesDecompressToTheUncompressedBuild) {
  const auto plain_file = read_test_image("sample.none.fatbin");
  const auto file = read_test_image(std::string("sample.") + GetParam().name + ".fatbin");
  auto plain = read_fat_binary(plain_file);
  auto entries = read_fat_binary(file);
  ASSERT_TRUE(plain) << plain.error().text;
  ASSERT_TRUE(entries) << entries.error().text;
  ASSERT_EQ(entries->size(), 4u);  // two architectures, PTX and cubin each
  ASSERT_EQ(plain->size(), 4u);
  for (const FatBinaryEntry& entry : *entries) {
    const auto twin = std::ranges::find_if(*plain, [&](const FatBinaryEntry& other) {
      return other.kind == entry.kind && other.arch == entry.arch;
    });
    ASSERT_NE(twin, plain->end());
    auto content = decompress(entry);
    auto expected = decompress(*twin);
    ASSERT_TRUE(content) << content.error().text;
    ASSERT_TRUE(expected) << expected.error().text;
    if (entry.kind == EntryKind::ptx) {
      EXPECT_EQ(entry.compression, GetParam().ptx_compression);
      const std::string_view text = text_of(*content);
      EXPECT_NE(text.find(".entry scalars"), std::string_view::npos);
      EXPECT_EQ(text.substr(0, text.find('\0')),
                text_of(*expected).substr(0, text_of(*expected).find('\0')));
    } else {
      // The machine code is not the same in every build (it holds tool options), its size is known.
      auto size = elf_file_size(*content);
      ASSERT_TRUE(size) << size.error().text;
      EXPECT_LE(*size, content->size());
      EXPECT_GT(*size + 8, content->size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CompressModes, FatBinaryModes,
                         testing::Values(Mode{"none", Compression::none},
                                         Mode{"speed", Compression::lz4},
                                         Mode{"size", Compression::zstd},
                                         Mode{"default", Compression::zstd}),
                         [](const auto& info) { return std::string(info.param.name); });

std::string without_blanks(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("//")) at = std::min(text.find('\n', at), text.size() - 1);
    if (std::string_view(" \t\r\n").find(text[at]) == std::string_view::npos) result += text[at];
  }
  return result;
}

TEST(FatBinary, PtxIsTheTextThatNvccWrites) {
  const auto file = read_test_image("sample.default.fatbin");
  const auto ptx = read_test_image("sample.ptx");
  auto entries = read_fat_binary(file);
  ASSERT_TRUE(entries) << entries.error().text;
  const auto entry = std::ranges::find_if(
      *entries, [](const FatBinaryEntry& e) { return e.kind == EntryKind::ptx && e.arch == 90; });
  ASSERT_NE(entry, entries->end());
  auto content = decompress(*entry);
  ASSERT_TRUE(content) << content.error().text;
  // nvcc leaves out comments and some blanks on the way into a fat binary.
  const std::string_view text = text_of(*content);
  EXPECT_EQ(without_blanks(text.substr(0, text.find('\0'))), without_blanks(text_of(ptx)));
}

TEST(FatBinary, ClaimOfTooManyBytesIsRefused) {
  const auto file = read_test_image("sample.default.fatbin");
  auto entries = read_fat_binary(file);
  ASSERT_TRUE(entries) << entries.error().text;
  const auto entry = std::ranges::find(*entries, EntryKind::ptx, &FatBinaryEntry::kind);
  ASSERT_NE(entry, entries->end());
  EXPECT_FALSE(decompress(*entry, 100));
  entry->uncompressed_size += 1;
  EXPECT_FALSE(decompress(*entry));
}

TEST(FatBinary, OtherBytesAreRefused) {
  EXPECT_FALSE(read_fat_binary({}));
  EXPECT_FALSE(read_fat_binary(bytes_of("this is no fat binary", 21)));
}

}  // namespace
}  // namespace remora::image
