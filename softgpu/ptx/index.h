// SPDX-License-Identifier: Apache-2.0
// What the index of a module keeps of each function and variable: its header, and where its body or
// initializer stands in the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "softgpu/ptx/declaration.h"
#include "softgpu/ptx/module.h"

namespace remora::softgpu {

struct IndexedFunction {
  std::string_view name;
  bool is_kernel = false;
  bool has_body = false;
  Linkage linkage = Linkage::internal;
  std::vector<Declaration> parameters;  // .param or .reg
  std::vector<Declaration> returns;
  std::string_view body;
  std::uint32_t body_line = 0;
  KernelSignature signature;  // kernels only
};

struct IndexedVariable {
  Declaration declaration;
  Linkage linkage = Linkage::internal;
  std::int64_t global_index = -1;  // in Module::globals(), for .global and .const
};

/// Offsets of parameters laid out one after the other, each at its alignment; returns the end.
std::uint32_t lay_out_parameters(const std::vector<Declaration>& parameters,
                                 std::vector<ParameterInfo>& out);

}  // namespace remora::softgpu
