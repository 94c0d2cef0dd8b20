// SPDX-License-Identifier: Apache-2.0
// Copies and fills. Device memory is host memory here, so every copy is a memmove in stream order;
// what differs is which side is checked against the device's allocations, and when a call returns
// (CUDA driver API, "API synchronization behavior").
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

namespace {

enum class Side { device, host, any };

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

bool covered(std::uint64_t address, std::size_t size, bool write) {
  return address_space().covers(address, size, write);
}

bool known(std::uint64_t address) {
  return address_space().range_of(address).has_value();
}

struct Copy {
  std::uint64_t destination;
  Side destination_side;
  std::uint64_t source;
  Side source_side;
  std::size_t size;
};

CUresult submit_copy(const Copy& copy, CUstream handle, bool per_thread, bool synchronous) {
  REMORA_USE_STREAM(stream, handle, per_thread);
  if (copy.size == 0) return CUDA_SUCCESS;
  REMORA_REQUIRE(copy.destination != 0 && copy.source != 0);
  REMORA_REQUIRE(copy.destination_side != Side::device ||
                 covered(copy.destination, copy.size, true));
  REMORA_REQUIRE(copy.source_side != Side::device || covered(copy.source, copy.size, false));
  const bool pageable_source = copy.source_side != Side::device && !known(copy.source);
  const bool pageable_destination =
      copy.destination_side != Side::device && !known(copy.destination);
  constexpr std::size_t kStaged = 64 << 10;
  if (pageable_source && !synchronous && copy.size <= kStaged) {
    // The caller may reuse its memory when this returns.
    std::vector<std::byte> staged(at(copy.source), at(copy.source) + copy.size);
    stream.context->submit(stream.stream, [to = copy.destination, staged = std::move(staged)] {
      std::memmove(at(to), staged.data(), staged.size());
    });
    return CUDA_SUCCESS;
  }
  const Mark mark = stream.context->submit(
      stream.stream, [copy] { std::memmove(at(copy.destination), at(copy.source), copy.size); });
  if (synchronous || pageable_source || pageable_destination) {
    mark.wait();
    return stream.context->failed.load();
  }
  return CUDA_SUCCESS;
}

template <typename T>
CUresult submit_fill(std::uint64_t destination, std::size_t pitch, T value, std::size_t width,
                     std::size_t height, CUstream handle, bool per_thread, bool synchronous) {
  REMORA_USE_STREAM(stream, handle, per_thread);
  REMORA_REQUIRE(destination % sizeof(T) == 0 && (height <= 1 || pitch % sizeof(T) == 0));
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  const auto row = remora::checked_product(width, sizeof(T));
  REMORA_REQUIRE(row && (height == 1 || pitch >= *row));
  for (std::size_t y = 0; y < height; ++y) {
    REMORA_REQUIRE(covered(destination + y * pitch, *row, true));
  }
  const Mark mark = stream.context->submit(stream.stream, [=] {
    for (std::size_t y = 0; y < height; ++y) {
      auto* to = reinterpret_cast<T*>(destination + y * pitch);
      std::fill_n(to, width, value);
    }
  });
  if (!synchronous) return CUDA_SUCCESS;
  mark.wait();
  return stream.context->failed.load();
}

std::uint64_t host(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult h2d(CUdeviceptr d, const void* s, std::size_t n, CUstream st, bool pt, bool sync) {
  return submit_copy({d, Side::device, host(s), Side::host, n}, st, pt, sync);
}
CUresult d2h(void* d, CUdeviceptr s, std::size_t n, CUstream st, bool pt, bool sync) {
  return submit_copy({host(d), Side::host, s, Side::device, n}, st, pt, sync);
}
CUresult d2d(CUdeviceptr d, CUdeviceptr s, std::size_t n, CUstream st, bool pt, bool sync) {
  return submit_copy({d, Side::device, s, Side::device, n}, st, pt, sync);
}
CUresult any(CUdeviceptr d, CUdeviceptr s, std::size_t n, CUstream st, bool pt, bool sync) {
  return submit_copy({d, Side::any, s, Side::any, n}, st, pt, sync);
}

// --- Two and three dimensions ------------------------------------------------------------------

/// One side of a pitched copy: the address of row y of plane z.
struct Pitched {
  Side side;
  std::uint64_t base;
  std::size_t pitch;
  std::size_t plane;
  std::uint64_t row(std::size_t y, std::size_t z) const { return base + z * plane + y * pitch; }
};

bool make_pitched(CUmemorytype type, const void* host_pointer, CUdeviceptr device, std::size_t x,
                  std::size_t y, std::size_t z, std::size_t pitch, std::size_t rows, std::size_t width,
                  Pitched& out) {
  if (pitch == 0) pitch = width;
  out.pitch = pitch;
  out.plane = pitch * rows;
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      out.side = Side::host;
      out.base = host(host_pointer);
      break;
    case CU_MEMORYTYPE_DEVICE:
      out.side = Side::device;
      out.base = device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      out.side = Side::any;
      out.base = device;
      break;
    default:
      return false;  // arrays
  }
  out.base += x + y * out.pitch + z * out.plane;
  return true;
}

CUresult submit_pitched(const Pitched& destination, const Pitched& source, std::size_t width,
                        std::size_t height, std::size_t depth, CUstream handle, bool per_thread,
                        bool synchronous) {
  REMORA_USE_STREAM(stream, handle, per_thread);
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  REMORA_REQUIRE(height == 1 || (destination.pitch >= width && source.pitch >= width));
  for (std::size_t z = 0; z < depth; ++z) {
    for (std::size_t y = 0; y < height; ++y) {
      REMORA_REQUIRE(destination.side != Side::device ||
                     covered(destination.row(y, z), width, true));
      REMORA_REQUIRE(source.side != Side::device || covered(source.row(y, z), width, false));
    }
  }
  const bool pageable = (source.side != Side::device && !known(source.base)) ||
                        (destination.side != Side::device && !known(destination.base));
  const Mark mark = stream.context->submit(stream.stream, [=] {
    for (std::size_t z = 0; z < depth; ++z) {
      for (std::size_t y = 0; y < height; ++y) {
        std::memmove(at(destination.row(y, z)), at(source.row(y, z)), width);
      }
    }
  });
  if (!synchronous && !pageable) return CUDA_SUCCESS;
  mark.wait();
  return stream.context->failed.load();
}

CUresult copy_2d(const CUDA_MEMCPY2D* c, CUstream handle, bool per_thread, bool synchronous) {
  REMORA_REQUIRE(c != nullptr);
  Pitched to{}, from{};
  if (!make_pitched(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, 0,
                    c->dstPitch, 0, c->WidthInBytes, to) ||
      !make_pitched(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, 0,
                    c->srcPitch, 0, c->WidthInBytes, from)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return submit_pitched(to, from, c->WidthInBytes, c->Height, 1, handle, per_thread, synchronous);
}

CUresult copy_3d(const CUDA_MEMCPY3D* c, CUstream handle, bool per_thread, bool synchronous) {
  REMORA_REQUIRE(c != nullptr);
  Pitched to{}, from{};
  if (!make_pitched(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ,
                    c->dstPitch, c->dstHeight, c->WidthInBytes, to) ||
      !make_pitched(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ,
                    c->srcPitch, c->srcHeight, c->WidthInBytes, from)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return submit_pitched(to, from, c->WidthInBytes, c->Height, c->Depth, handle, per_thread, synchronous);
}

}  // namespace

#define REMORA_SYNC(name, type1, type2, function)                                        \
  REMORA_API(name)(type1 d, type2 s, std::size_t n) { return function(d, s, n, nullptr, false, true); } \
  REMORA_API(name##_ptds)(type1 d, type2 s, std::size_t n) { return function(d, s, n, nullptr, true, true); }
#define REMORA_ASYNC(name, type1, type2, function)                                       \
  REMORA_API(name)(type1 d, type2 s, std::size_t n, CUstream st) { return function(d, s, n, st, false, false); } \
  REMORA_API(name##_ptsz)(type1 d, type2 s, std::size_t n, CUstream st) { return function(d, s, n, st, true, false); }

REMORA_SYNC(cuMemcpyHtoD_v2, CUdeviceptr, const void*, h2d)
REMORA_SYNC(cuMemcpyDtoH_v2, void*, CUdeviceptr, d2h)
REMORA_SYNC(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, d2d)
REMORA_SYNC(cuMemcpy, CUdeviceptr, CUdeviceptr, any)
REMORA_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, h2d)
REMORA_ASYNC(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, d2h)
REMORA_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, d2d)
REMORA_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, any)

REMORA_API(cuMemcpy2D_v2)(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, false, true); }
REMORA_API(cuMemcpy2D_v2_ptds)(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, true, true); }
REMORA_API(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, false, true); }
REMORA_API(cuMemcpy2DUnaligned_v2_ptds)(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, true, true); }
REMORA_API(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D* c, CUstream s) { return copy_2d(c, s, false, false); }
REMORA_API(cuMemcpy2DAsync_v2_ptsz)(const CUDA_MEMCPY2D* c, CUstream s) { return copy_2d(c, s, true, false); }
REMORA_API(cuMemcpy3D_v2)(const CUDA_MEMCPY3D* c) { return copy_3d(c, nullptr, false, true); }
REMORA_API(cuMemcpy3D_v2_ptds)(const CUDA_MEMCPY3D* c) { return copy_3d(c, nullptr, true, true); }
REMORA_API(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D* c, CUstream s) { return copy_3d(c, s, false, false); }
REMORA_API(cuMemcpy3DAsync_v2_ptsz)(const CUDA_MEMCPY3D* c, CUstream s) { return copy_3d(c, s, true, false); }

// A fill of device memory is asynchronous also in the forms without a stream, except that these end
// before work of other threads that comes later; waiting is simpler and allowed.
#define REMORA_FILL(bits, type)                                                                    \
  REMORA_API(cuMemsetD##bits##_v2)(CUdeviceptr d, type v, std::size_t n) { return submit_fill<type>(d, 0, v, n, 1, nullptr, false, true); } \
  REMORA_API(cuMemsetD##bits##_v2_ptds)(CUdeviceptr d, type v, std::size_t n) { return submit_fill<type>(d, 0, v, n, 1, nullptr, true, true); } \
  REMORA_API(cuMemsetD##bits##Async)(CUdeviceptr d, type v, std::size_t n, CUstream s) { return submit_fill<type>(d, 0, v, n, 1, s, false, false); } \
  REMORA_API(cuMemsetD##bits##Async_ptsz)(CUdeviceptr d, type v, std::size_t n, CUstream s) { return submit_fill<type>(d, 0, v, n, 1, s, true, false); } \
  REMORA_API(cuMemsetD2D##bits##_v2)(CUdeviceptr d, std::size_t p, type v, std::size_t w, std::size_t h) { return submit_fill<type>(d, p, v, w, h, nullptr, false, true); } \
  REMORA_API(cuMemsetD2D##bits##_v2_ptds)(CUdeviceptr d, std::size_t p, type v, std::size_t w, std::size_t h) { return submit_fill<type>(d, p, v, w, h, nullptr, true, true); } \
  REMORA_API(cuMemsetD2D##bits##Async)(CUdeviceptr d, std::size_t p, type v, std::size_t w, std::size_t h, CUstream s) { return submit_fill<type>(d, p, v, w, h, s, false, false); } \
  REMORA_API(cuMemsetD2D##bits##Async_ptsz)(CUdeviceptr d, std::size_t p, type v, std::size_t w, std::size_t h, CUstream s) { return submit_fill<type>(d, p, v, w, h, s, true, false); }
REMORA_FILL(8, unsigned char)
REMORA_FILL(16, unsigned short)
REMORA_FILL(32, unsigned int)
