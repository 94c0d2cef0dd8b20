// SPDX-License-Identifier: Apache-2.0
#include "server/session/window_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"

namespace remora::server {
namespace {

Error driver_error(const char* doing, CUresult result) {
  return {ErrorKind::exhausted, static_cast<int>(result),
          fmt::format("The driver refuses to {} (CUDA error {}).", doing, static_cast<int>(result))};
}

}  // namespace

CUmemAllocationProp WindowMemory::properties() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  return properties;
}

Result<WindowMemory> WindowMemory::reserve(const DriverTable& driver, CUdevice device,
                                           std::uint64_t base, std::uint64_t size) {
  if (driver.cuMemAddressReserve == nullptr || driver.cuMemCreate == nullptr ||
      driver.cuMemMap == nullptr || driver.cuMemSetAccess == nullptr) {
    return Error{ErrorKind::unsupported, 0, "The driver cannot reserve device addresses."};
  }
  WindowMemory memory(driver, device);
  const CUmemAllocationProp properties = memory.properties();
  std::size_t granularity = 0;
  const CUresult result = driver.cuMemGetAllocationGranularity(
      &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (result != CUDA_SUCCESS) return driver_error("tell its granularity", result);
  memory.window_.granularity = std::max<std::uint64_t>(granularity, 2 << 20);
  memory.window_.size = align_up(size, memory.window_.granularity);
  REMORA_TRY_DO(memory.take_addresses(base));
  return memory;
}

Result<> WindowMemory::take_addresses(std::uint64_t base) {
  CUdeviceptr got = 0;
  const CUresult result =
      driver_->cuMemAddressReserve(&got, window_.size, window_.granularity, base, 0);
  if (result != CUDA_SUCCESS) return driver_error("reserve device addresses", result);
  window_.base = got;
  return {};
}

Result<> WindowMemory::move_to(std::uint64_t base) {
  const std::uint64_t committed = window_.committed_bytes;
  if (committed != 0) unmap(0);
  window_.committed_bytes = 0;
  driver_->cuMemAddressFree(window_.base, window_.size);
  REMORA_TRY_DO(take_addresses(base));
  return commit_prefix(committed);
}

Result<> WindowMemory::commit_prefix(std::uint64_t bytes) {
  bytes = align_down(std::min(bytes, window_.size), window_.granularity);
  if (bytes == 0) return {};
  const CUresult result = map(0, bytes / window_.granularity);
  if (result != CUDA_SUCCESS) return driver_error("commit device memory", result);
  window_.committed_bytes = bytes;
  return {};
}

CUresult WindowMemory::map(std::uint64_t chunk, std::uint64_t count) {
  const CUmemAllocationProp properties = this->properties();
  Piece piece;
  piece.size = count * window_.granularity;
  const CUdeviceptr address = window_.base + chunk * window_.granularity;
  CUresult result = driver_->cuMemCreate(&piece.handle, piece.size, &properties, 0);
  if (result != CUDA_SUCCESS) return result;
  result = driver_->cuMemMap(address, piece.size, 0, piece.handle, 0);
  if (result == CUDA_SUCCESS) {
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = driver_->cuMemSetAccess(address, piece.size, &access, 1);
    if (result != CUDA_SUCCESS) driver_->cuMemUnmap(address, piece.size);
  }
  if (result != CUDA_SUCCESS) {
    driver_->cuMemRelease(piece.handle);
    return result;
  }
  piece.users = 1;
  pieces_[chunk] = piece;
  return CUDA_SUCCESS;
}

void WindowMemory::unmap(std::uint64_t chunk) {
  const auto found = pieces_.find(chunk);
  if (--found->second.users != 0) return;
  driver_->cuMemUnmap(window_.base + chunk * window_.granularity, found->second.size);
  driver_->cuMemRelease(found->second.handle);
  pieces_.erase(found);
}

/// {first chunk, count} of what an allocation needs beyond the prefix: its first and its last chunk,
/// which it may share, each alone, and what lies between, which is its own, in one.
std::vector<std::pair<std::uint64_t, std::uint64_t>> WindowMemory::pieces_of(
    std::uint64_t address, std::uint64_t size) const {
  const std::uint64_t first = (address - window_.base) / window_.granularity;
  const std::uint64_t last = (address + size - 1 - window_.base) / window_.granularity;
  const std::uint64_t prefix = window_.committed_bytes / window_.granularity;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  if (!is_in_prefix(first)) pieces.push_back({first, 1});
  if (const std::uint64_t inner = std::max(first + 1, prefix); inner < last) {
    pieces.push_back({inner, last - inner});
  }
  if (last != first && !is_in_prefix(last)) pieces.push_back({last, 1});
  return pieces;
}

CUresult WindowMemory::allocate(std::uint64_t address, std::uint64_t size) {
  if (size == 0 || address < window_.base || size > window_.size ||
      address - window_.base > window_.size - size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto after = allocations_.lower_bound(address);
  if (after != allocations_.end() && after->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  if (after != allocations_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second > address) return CUDA_ERROR_INVALID_VALUE;
  }
  const auto pieces = pieces_of(address, size);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [chunk, count] = pieces[i];
    if (const auto found = pieces_.find(chunk); found != pieces_.end()) {
      ++found->second.users;
      continue;
    }
    const CUresult result = map(chunk, count);
    if (result != CUDA_SUCCESS) {
      while (i-- > 0) unmap(pieces[i].first);
      return result;
    }
  }
  allocations_.emplace(address, size);
  return CUDA_SUCCESS;
}

CUresult WindowMemory::free(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [chunk, count] : pieces_of(address, found->second)) unmap(chunk);
  allocations_.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace remora::server
