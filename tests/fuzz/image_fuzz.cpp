// SPDX-License-Identifier: Apache-2.0
// Device code images from a peer or a program: whatever the bytes, the readers end with an answer
// or an error and stay inside them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/image/elf.h"
#include "protocol/image/fatbin.h"
#include "protocol/image/image.h"
#include "protocol/image/module_summary.h"
#include "protocol/image/ptx_header.h"

namespace image = remora::image;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const remora::Bytes bytes = remora::bytes_of(data, size);
  if (auto view = image::read_flat(bytes)) {
    (void)image::summarize(*view);
    (void)image::select_ptx(*view, 121);
    // A view that was read flattens to the same bytes, or to the same view where padding differs.
    const image::FlatImage flat = image::flatten(*view);
    auto again = image::read_flat(flat.bytes);
    if (!again || again->pre_link.size() != view->pre_link.size()) std::abort();
  }
  // The same bytes without the checks of the outer layers.
  (void)image::read_fat_binary(bytes);
  (void)image::read_cubin(bytes);
  (void)image::elf_file_size(bytes);
  (void)image::scan_ptx({reinterpret_cast<const char*>(data), size});
  return 0;
}
