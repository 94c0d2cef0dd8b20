// SPDX-License-Identifier: Apache-2.0
// The module images that this session's client has sent, by content hash. An entry exists from the
// moment its bytes are announced, and can be waited for.
//
// Threads: announce() and has() in the consuming thread; Image from any.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "protocol/wire/field.h"

namespace remora::server {

class Image {
 public:
  explicit Image(std::size_t size) : bytes_(size) {}

  MutableBytes destination() { return bytes_; }
  /// All bytes are there, or never will be. Once.
  void arrived(bool ok) { arrival_.set_value(ok); }

  /// Waits for the bytes and compares their hash, once. Empty when they are not what was announced.
  /// Ends with the transfer, which ends with the connection at the latest.
  Bytes wait(const protocol::ContentHash& hash);

 private:
  std::vector<std::byte> bytes_;
  std::promise<bool> arrival_;
  std::shared_future<bool> is_there_ = arrival_.get_future().share();
  std::once_flag checked_;
  bool is_right_ = false;
};

class ImageStore {
 public:
  /// Null when it was announced before, or when the session holds too many bytes.
  std::shared_ptr<Image> announce(const protocol::ContentHash& hash, std::size_t size);
  /// Null when nothing was announced.
  std::shared_ptr<Image> find(const protocol::ContentHash& hash) const;

 private:
  std::map<protocol::ContentHash, std::shared_ptr<Image>> images_;
  std::size_t bytes_ = 0;
};

}  // namespace remora::server
