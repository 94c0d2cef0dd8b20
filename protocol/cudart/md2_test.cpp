// SPDX-License-Identifier: Apache-2.0
// The test suite of RFC 1319, appendix A.5.
#include "protocol/cudart/md2.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace remora::cudart {
namespace {

std::string hex_of(std::string_view text, std::size_t piece) {
  Md2 md2;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    md2.update(bytes_of(part.data(), part.size()));
  }
  std::string hex;
  for (std::uint8_t byte : md2.finish()) hex += fmt::format("{:02x}", byte);
  return hex;
}

TEST(Md2, GivesTheDigestsOfTheStandard) {
  const struct {
    const char* text;
    const char* digest;
  } kCases[] = {
      {"", "8350e5a3e24c153df2275c9f80692773"},
      {"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
      {"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
      {"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
      {"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
      {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
       "da33def2a42df13975352846c30338cd"},
      {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
       "d5976f79d83d3a0dc9806c3c66f3efd8"},
  };
  for (const auto& each : kCases) {
    EXPECT_EQ(hex_of(each.text, 1000), each.digest) << each.text;
    EXPECT_EQ(hex_of(each.text, 1), each.digest) << each.text << ", byte by byte";
    EXPECT_EQ(hex_of(each.text, 7), each.digest) << each.text << ", in pieces of 7";
  }
}

}  // namespace
}  // namespace remora::cudart
