// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/content_hash.h"

// The low-level functions pull in one object of libcrypto; the EVP ones pull in the whole provider
// machinery, which has no place in a preload library.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace remora::image {

ContentHash hash_of(Bytes bytes) {
  ContentHash hash;
  static_assert(sizeof hash.bytes == SHA256_DIGEST_LENGTH);
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(hash.bytes.data(), &context);
  return hash;
}

std::string ContentHash::to_hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace remora::image
