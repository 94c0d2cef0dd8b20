// SPDX-License-Identifier: Apache-2.0
// The host's pages under device memory: thin, stateless forms of mmap. Addresses are numbers, since
// device addresses are; 0 means that the host has none. Any thread.
#pragma once

#include <cstdint>

namespace remora::softgpu::host_pages {

/// Private, zero, readable and writable; a page costs memory only once it is touched.
std::uint64_t take(std::uint64_t size);
void give_back(std::uint64_t address, std::uint64_t size);

/// Address space that nothing can be read from. `wanted` is a wish: another address may come back.
std::uint64_t reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted);

/// Puts the first bytes of a memory file into a reservation, and takes them out again.
bool map_file(std::uint64_t address, std::uint64_t size, int descriptor);
void close_up(std::uint64_t address, std::uint64_t size);

}  // namespace remora::softgpu::host_pages
