// SPDX-License-Identifier: Apache-2.0
// The client's view of a module (summarize) and the driver's choice of code in it (select_ptx):
// both walk the containers of image.h down to one PTX text or cubin per fat binary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/image/image.h"
#include "protocol/image/module_contents.h"

namespace remora::image {

/// Kernels and globals of a whole image. An error means "could not be read": the client then asks
/// the server, whose driver may know better. All variants in a fat binary come from one source and
/// have the same kernels, so the one that is cheapest to read is read.
Result<ModuleContents> summarize(const ImageView& image);

struct PtxText {
  std::uint32_t arch = 0;  // 75 for compute_75; 0 when the image is a text that names no target
  std::string text;        // without the trailing NUL
};

/// The PTX that a device of the given compute capability (ten times it: 121 for 12.1) would run:
/// of each fat binary the text with the highest architecture that it can run, decompressed. A
/// linked image yields one text for each fat binary that went into the link; all others yield one.
/// An image that has no such text is ErrorKind::not_found.
Result<std::vector<PtxText>> select_ptx(const ImageView& image, std::uint32_t compute_capability);

}  // namespace remora::image
