// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/content_hash.h"

#include <gtest/gtest.h>

namespace remora::image {
namespace {

TEST(ContentHash, IsSha256) {
  // FIPS 180-2, appendix B.1, and the empty message.
  EXPECT_EQ(hash_of(bytes_of("abc", 3)).to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of({}).to_hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(ContentHash, ComparesByBytes) {
  EXPECT_EQ(hash_of(bytes_of("abc", 3)), hash_of(bytes_of("abcd", 3)));
  EXPECT_NE(hash_of(bytes_of("abc", 3)), hash_of(bytes_of("abd", 3)));
}

}  // namespace
}  // namespace remora::image
