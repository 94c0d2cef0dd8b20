// SPDX-License-Identifier: Apache-2.0
#include "server/session/image_store.h"

#include "protocol/image/content_hash.h"

namespace remora::server {
namespace {

constexpr std::size_t kLimit = std::size_t{8} << 30;  // of one session

}  // namespace

Bytes Image::wait(const protocol::ContentHash& hash) {
  if (!is_there_.get()) return {};
  std::call_once(checked_, [&] { is_right_ = image::hash_of(bytes_).bytes == hash; });
  return is_right_ ? Bytes(bytes_) : Bytes{};
}

std::shared_ptr<Image> ImageStore::announce(const protocol::ContentHash& hash, std::size_t size) {
  if (size > kLimit - bytes_ || images_.contains(hash)) return nullptr;
  bytes_ += size;
  return images_.emplace(hash, std::make_shared<Image>(size)).first->second;
}

std::shared_ptr<Image> ImageStore::find(const protocol::ContentHash& hash) const {
  const auto found = images_.find(hash);
  return found == images_.end() ? nullptr : found->second;
}

}  // namespace remora::server
