// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/module_summary.h"

#include <gtest/gtest.h>

#include "protocol/image/fatbin.h"
#include "protocol/image/test_images.h"

namespace remora::image {
namespace {

TEST(Summary, IsTheSameForEveryFormOfOneSource) {
  for (const char* name : {"sample.none.fatbin", "sample.speed.fatbin", "sample.size.fatbin",
                           "sample.default.fatbin", "sample.cubin", "sample.ptx"}) {
    SCOPED_TRACE(name);
    auto file = read_test_image(name);
    if (std::string(name) == "sample.ptx") file.push_back(std::byte{0});
    auto view = read_flat(file);
    ASSERT_TRUE(view) << view.error().text;
    auto contents = summarize(*view);
    ASSERT_TRUE(contents) << contents.error().text;
    expect_sample_contents(*contents);
  }
}

TEST(SelectPtx, TakesTheHighestThatTheDeviceCanRun) {
  const auto file = read_test_image("sample.default.fatbin");
  auto view = read_flat(file);
  ASSERT_TRUE(view) << view.error().text;
  struct Case {
    std::uint32_t capability;
    std::uint32_t arch;
  };
  for (const Case& c : {Case{121, 90}, Case{90, 90}, Case{89, 75}, Case{75, 75}}) {
    auto texts = select_ptx(*view, c.capability);
    ASSERT_TRUE(texts) << texts.error().text;
    ASSERT_EQ(texts->size(), 1u);
    EXPECT_EQ((*texts)[0].arch, c.arch) << c.capability;
    EXPECT_NE((*texts)[0].text.find(".target sm_" + std::to_string(c.arch)), std::string::npos);
    EXPECT_EQ((*texts)[0].text.find('\0'), std::string::npos);
  }
}

TEST(SelectPtx, SaysWhatIsThereInstead) {
  const auto file = read_test_image("sample.default.fatbin");
  auto view = read_flat(file);
  ASSERT_TRUE(view) << view.error().text;
  auto texts = select_ptx(*view, 70);
  ASSERT_FALSE(texts);
  EXPECT_EQ(texts.error().kind, ErrorKind::not_found);
  EXPECT_NE(texts.error().text.find("7.0"), std::string::npos) << texts.error().text;
  EXPECT_NE(texts.error().text.find("PTX 75"), std::string::npos) << texts.error().text;

  const auto cubin = read_test_image("sample.cubin");
  texts = select_ptx({Kind::cubin, cubin, {}}, 121);
  ASSERT_FALSE(texts);
  EXPECT_EQ(texts.error().kind, ErrorKind::not_found);
}

TEST(SelectPtx, SpecificEntriesRunOnTheirOwnDevicesOnly) {
  auto file = read_test_image("sample.none.fatbin");
  // Mark the sm_90 PTX as nvcc marks compute_90a: a bit in the flags of its header.
  auto entries = read_fat_binary(file);
  ASSERT_TRUE(entries) << entries.error().text;
  std::size_t header = kFatBinaryHeaderBytes;
  while (load_unaligned<std::uint16_t>(&file[header]) != 1 ||
         load_unaligned<std::uint32_t>(&file[header + 28]) != 90)
    header += load_unaligned<std::uint32_t>(&file[header + 4]) +
              load_unaligned<std::uint64_t>(&file[header + 8]);
  const auto flags = load_unaligned<std::uint64_t>(&file[header + 40]);
  const auto selected = [&](std::uint64_t extra_flags, std::uint32_t capability) {
    store_unaligned(&file[header + 40], flags | extra_flags);
    auto texts = select_ptx({Kind::fat_binary, file, {}}, capability);
    return texts ? (*texts)[0].arch : 0;
  };
  EXPECT_EQ(selected(kFlagArchSpecific, 90), 90u);
  EXPECT_EQ(selected(kFlagArchSpecific, 121), 75u);
  EXPECT_EQ(selected(kFlagFamilySpecific, 93), 90u);
  EXPECT_EQ(selected(kFlagFamilySpecific, 121), 75u);
  EXPECT_EQ(selected(0, 121), 90u);
}

}  // namespace
}  // namespace remora::image
