// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace remora::image {

Bytes mapped_prefix(const void* start, std::uint64_t most_bytes) {
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const auto end = checked_sum(first, most_bytes).value_or(UINT64_MAX - page_bytes);
  std::array<unsigned char, 1024> residency;
  std::uint64_t page = align_down(first, page_bytes);
  // mincore() fails with ENOMEM when any page of a range is unmapped, and then says nothing about
  // where; halving the range finds the place.
  std::uint64_t pages_at_once = residency.size();
  while (page < end && pages_at_once > 0) {
    const std::uint64_t pages =
        std::min(pages_at_once, (align_up(end, page_bytes) - page) / page_bytes);
    if (mincore(reinterpret_cast<void*>(page), pages * page_bytes, residency.data()) == 0)
      page += pages * page_bytes;
    else
      pages_at_once = pages / 2;
  }
  const std::uint64_t mapped_end = std::min<std::uint64_t>(page, end);
  return bytes_of(start, mapped_end > first ? mapped_end - first : 0);
}

}  // namespace remora::image
