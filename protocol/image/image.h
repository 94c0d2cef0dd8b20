// SPDX-License-Identifier: Apache-2.0
// Device code as a program hands it to cuModuleLoadData or cuLibraryLoadData: a pointer without a
// length. find_extent() says what it is and where it ends; flatten() makes one position-independent
// byte string of it that can be hashed and sent; read_flat() reads such a string at the other end,
// and LoadableImage makes of it again what a CUDA driver's load functions accept.
//
//   program's pointer -> find_extent -> ImageView -> flatten -> FlatImage -> hash_of / wire
//   wire -> read_flat -> ImageView -> LoadableImage -> a driver's cuLibraryLoadData
//
// A view owns nothing: it is valid as long as the memory it was made from. All functions are pure
// and may be called from any thread. Bytes that make no sense are ErrorKind::invalid_input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace remora::image {

enum class Kind {
  fat_binary,         // bare, or behind a version 1 wrapper
  linked_fat_binary,  // version 2 wrapper: relocatable code (-rdc=true) after nvcc's device link
  cubin,              // an ELF file
  ptx_text,           // ends with its one NUL
};

struct ImageView {
  Kind kind = Kind::fat_binary;
  Bytes main;                   // the whole image; of a linked one the result of the device link
  std::vector<Bytes> pre_link;  // of a linked one: the fat binaries that went into the link
};

/// Images beyond this are taken for garbage.
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{4} << 30;

/// Finds kind and end of an image in this process's memory. Trusts the sizes written in the image
/// only as far as memory is mapped, so garbage gives an error and not a crash.
Result<ImageView> find_extent(const void* image);

/// One contiguous byte string. Where the image already is one, `bytes` is the image itself and
/// nothing is copied; otherwise `bytes` lies in `storage`.
struct FlatImage {
  FlatImage() = default;
  FlatImage(FlatImage&&) = default;
  FlatImage& operator=(FlatImage&&) = default;

  Bytes bytes;
  std::vector<std::byte> storage;
};
FlatImage flatten(const ImageView& image);

/// The view of a flattened image that came from elsewhere; every size is checked against `bytes`.
Result<ImageView> read_flat(Bytes bytes);

/// What a driver's load functions take for a view: a pointer to the image, or for a linked image a
/// wrapper rebuilt around its parts. Keeps the view's memory rule; does not move, since the wrapper
/// points into it.
class LoadableImage {
 public:
  explicit LoadableImage(const ImageView& image);
  LoadableImage(const LoadableImage&) = delete;
  LoadableImage& operator=(const LoadableImage&) = delete;

  const void* pointer() const { return pointer_; }

 private:
  struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const void* data;
    const void* const* fat_binaries;
  };
  Wrapper wrapper_{};
  std::vector<const void*> parts_;  // ends with a null pointer
  const void* pointer_ = nullptr;
};

}  // namespace remora::image
