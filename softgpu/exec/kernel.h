// SPDX-License-Identifier: Apache-2.0
// Kernels made ready for execution. KernelCache belongs to one loaded module and translates each
// kernel once, at its first use: the body is parsed, checked and turned into a program of handler
// calls. An instruction that this engine does not know is an error of kind `unsupported` whose text
// names the instruction, the kernel and the line; text that is wrong PTX is `invalid_input`. Either
// answer is kept, so asking again is cheap.
//
// Threads: prepare() may be called from several at once. A Kernel is immutable; it holds nothing of
// the module but addresses of its variables, so keep those allocated while it can run.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace remora::softgpu {

class Module;
struct Program;  // exec/program.h

/// The numbers behind CUfunction attributes and occupancy.
struct KernelResources {
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;     // per thread
  std::uint32_t constant_bytes = 0;  // user .const variables of the module
  std::uint32_t registers = 0;       // estimate of 32-bit registers per thread, 16..255
  std::uint32_t parameter_bytes = 0;
  std::uint32_t max_threads_per_block = 1024;  // from .maxntid/.reqntid
  bool uses_dynamic_shared = false;
  std::uint32_t ptx_version = 0;  // 90 for 9.0
  std::uint32_t target = 0;       // 75 for sm_75
};

class Kernel {
 public:
  explicit Kernel(std::unique_ptr<const Program> program);
  ~Kernel();

  const std::string& name() const;
  const KernelResources& resources() const;
  const Program& program() const { return *program_; }

 private:
  std::unique_ptr<const Program> program_;
};

class KernelCache {
 public:
  /// `module` outlives the cache.
  explicit KernelCache(const Module& module) : module_(module) {}

  Result<std::shared_ptr<const Kernel>> prepare(std::string_view name);

 private:
  const Module& module_;
  std::mutex mutex_;  // guards prepared_; held while translating, so a kernel is translated once
  std::unordered_map<std::string, Result<std::shared_ptr<const Kernel>>> prepared_;
};

}  // namespace remora::softgpu
