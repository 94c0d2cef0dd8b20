// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/elf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "protocol/image/test_images.h"

namespace remora::image {
namespace {

TEST(Cubin, NamesKernelsAndGlobals) {
  const auto cubin = read_test_image("sample.cubin");
  auto contents = read_cubin(cubin);
  ASSERT_TRUE(contents) << contents.error().text;
  expect_sample_contents(*contents);
}

TEST(Cubin, SizeIsThatOfTheFile) {
  auto cubin = read_test_image("sample.cubin");
  const std::size_t size = cubin.size();
  auto found = elf_file_size(cubin);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(*found, size);
  cubin.resize(size + 1000);
  found = elf_file_size(cubin);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(*found, size);
}

TEST(Cubin, HostProgramIsRefused) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> self(1 << 16);
  file.read(self.data(), static_cast<std::streamsize>(self.size()));
  auto contents = read_cubin(bytes_of(self.data(), self.size()));
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().kind, ErrorKind::invalid_input);
  EXPECT_NE(contents.error().text.find("machine 62"), std::string::npos) << contents.error().text;
}

}  // namespace
}  // namespace remora::image
