// SPDX-License-Identifier: Apache-2.0
// What a module offers by name: kernels with the layout of their parameters, and global variables.
// The common answer of the cubin reader (elf.h) and the PTX scan (ptx_header.h), and what the
// client needs to lay out a launch without asking the server. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace remora::image {

struct Parameter {
  std::uint32_t offset = 0;  // in the packed parameter block
  std::uint32_t size = 0;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;  // in order of declaration
  std::uint32_t parameter_bytes = 0;  // end of the last parameter

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

struct Global {
  std::string name;
  std::uint64_t size = 0;
  bool is_constant = false;  // lives in constant memory
  bool is_managed = false;   // known from PTX only; a cubin does not say

  friend bool operator==(const Global&, const Global&) = default;
};

struct ModuleContents {
  std::vector<Kernel> kernels;
  std::vector<Global> globals;
};

}  // namespace remora::image
