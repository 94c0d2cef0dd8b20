// SPDX-License-Identifier: Apache-2.0
// Pinned host buffers of one chunk each, between the wire and device memory: copies to and from them
// are asynchronous in the driver. Bounded; whoever finds none tries again after one came back.
//
// In the issuing role, with any context current.
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "server/driver_table.h"

namespace remora::server {

class StagingPool {
 public:
  static constexpr std::size_t kBufferBytes = 1 << 20;

  explicit StagingPool(const DriverTable& driver) : driver_(driver) {}

  /// Null when none is free, or when the driver gives no more. `result` says why not.
  std::byte* take(CUresult& result) {
    result = CUDA_SUCCESS;
    if (!free_.empty()) {
      std::byte* const buffer = free_.back();
      free_.pop_back();
      return buffer;
    }
    if (made_ == kMost) return nullptr;
    void* buffer = nullptr;
    result = driver_.cuMemHostAlloc(&buffer, kBufferBytes, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
      if (made_ > 0) result = CUDA_SUCCESS;  // one will come back
      return nullptr;
    }
    ++made_;
    return static_cast<std::byte*>(buffer);
  }
  void give_back(std::byte* buffer) { free_.push_back(buffer); }

 private:
  static constexpr std::size_t kMost = 64;

  const DriverTable& driver_;
  std::vector<std::byte*> free_;
  std::size_t made_ = 0;
};

}  // namespace remora::server
