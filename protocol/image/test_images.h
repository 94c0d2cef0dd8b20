// SPDX-License-Identifier: Apache-2.0
// The files that nvcc made for the tests (CMakeLists.txt), and what the tests know about them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/image/module_contents.h"

namespace remora::image {

inline std::vector<std::byte> read_test_image(const std::string& name) {
  std::ifstream file(std::string(REMORA_TEST_IMAGES "/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(chars.size());
  std::ranges::transform(chars, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline const Kernel* find_kernel(const ModuleContents& contents, std::string_view name) {
  const auto found = std::ranges::find(contents.kernels, name, &Kernel::name);
  return found == contents.kernels.end() ? nullptr : &*found;
}
inline const Global* find_global(const ModuleContents& contents, std::string_view name) {
  const auto found = std::ranges::find(contents.globals, name, &Global::name);
  return found == contents.globals.end() ? nullptr : &*found;
}

/// What test_modules/sample.cu declares, by the layout rules of C++ and not by any reader of ours.
inline void expect_sample_contents(const ModuleContents& contents) {
  const std::vector<Kernel> expected = {
      {"no_parameters", {}, 0},
      {"scalars", {{0, 8}, {8, 4}, {12, 1}, {16, 8}}, 24},
      {"structs", {{0, 24}, {24, 2}, {32, 16}, {48, 8}}, 56},
      {"large", {{0, 8}, {8, 6000}, {6008, 2}}, 6010},
      {"_Z5sizedIxEvT_", {{0, 8}}, 8},
  };
  EXPECT_EQ(contents.kernels.size(), expected.size());
  for (const Kernel& kernel : expected) {
    const Kernel* found = find_kernel(contents, kernel.name);
    ASSERT_NE(found, nullptr) << kernel.name;
    EXPECT_EQ(found->parameters, kernel.parameters) << kernel.name;
    EXPECT_EQ(found->parameter_bytes, kernel.parameter_bytes) << kernel.name;
  }
  for (const Global& global : std::vector<Global>{{"counter", 4, false, false},
                                                  {"weights", 28, true, false},
                                                  {"shared_flag", 4, false, true},
                                                  {"table", 24, false, false}}) {
    const Global* found = find_global(contents, global.name);
    ASSERT_NE(found, nullptr) << global.name;
    EXPECT_EQ(*found, global) << global.name;
  }
}

}  // namespace remora::image
