// SPDX-License-Identifier: Apache-2.0
// A PTX module as it is loaded: an index of its kernels, functions and variables over its own copy
// of the text. Bodies are skipped here (real modules hold thousands of kernels) and parsed when a
// kernel is first prepared for execution (exec/kernel.h). What stands outside of bodies is checked
// at load: text that is no PTX is an error of kind invalid_input.
//
// The module's variables live in memory that the driver provides: it reads globals(), allocates,
// tells the addresses by bind_globals(), then writes each initial image (build_global_image) there.
//
// Threads: immutable after bind_globals(), which comes before the first kernel is prepared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace remora::softgpu {

struct ModuleOptions {
  std::string name = "module";  // for messages
};

struct ParameterInfo {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t alignment = 1;
};

/// What a kernel's header says. Sizes that need its body are in KernelResources (exec/kernel.h).
struct KernelSignature {
  std::string name;
  std::vector<ParameterInfo> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t max_threads[3] = {0, 0, 0};       // .maxntid; 0 = not given
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid; 0 = not given
  std::uint32_t min_blocks_per_multiprocessor = 0;
  std::uint32_t max_registers = 0;
};

enum class Linkage { internal, visible, weak, external };
enum class GlobalSpace { global, constant };

struct GlobalInfo {
  std::string name;
  std::uint64_t size = 0;  // 0 for an external array without bound
  std::uint32_t alignment = 1;
  GlobalSpace space = GlobalSpace::global;
  Linkage linkage = Linkage::internal;
  bool managed = false;
  bool initialized = false;  // otherwise its image is zeros
};

struct IndexedFunction;  // ptx/index.h
struct IndexedVariable;

class Module {
 public:
  /// Copies and indexes the text. A trailing NUL padding is ignored.
  static Result<std::unique_ptr<Module>> parse(std::string_view ptx, ModuleOptions options = {});
  ~Module();

  std::uint32_t version() const { return version_; }  // 90 for `.version 9.0`
  std::uint32_t target() const { return target_; }    // 75 for `.target sm_75`
  std::string_view name() const { return name_; }

  /// Kernels with a body, in order of appearance.
  const std::vector<const KernelSignature*>& kernels() const { return kernels_; }
  const KernelSignature* find_kernel(std::string_view name) const;

  /// Variables in the .global and .const spaces, in order of appearance. External ones are listed
  /// too: their address is that of the defining module's variable.
  const std::vector<GlobalInfo>& globals() const { return globals_; }
  std::optional<std::size_t> find_global(std::string_view name) const;

  /// One address for every entry of globals(), 0 for an external one that nobody defines (a kernel
  /// that uses it is refused when it is prepared).
  void bind_globals(std::span<const std::uint64_t> addresses);
  std::span<const std::uint64_t> global_addresses() const { return addresses_; }

  /// The initial bytes of globals()[index] with addresses of variables and functions filled in;
  /// `image` has exactly its size. Needs bind_globals().
  Result<void> build_global_image(std::size_t index, MutableBytes image) const;

  // What the preparation of kernels reads (ptx/index.h).
  const std::vector<IndexedFunction>& functions() const { return functions_; }
  const std::vector<IndexedVariable>& variables() const { return variables_; }
  const IndexedFunction* find_function(std::string_view name) const;
  const IndexedVariable* find_variable(std::string_view name) const;
  /// The value of `mov.u64 %rd, function`.
  static std::uint64_t function_address(std::size_t index);

 private:
  friend class Indexer;
  Module();

  std::string text_;
  std::string name_;
  std::uint32_t version_ = 0;
  std::uint32_t target_ = 0;
  std::vector<IndexedFunction> functions_;
  std::vector<IndexedVariable> variables_;
  std::unordered_map<std::string_view, std::size_t> function_by_name_;
  std::unordered_map<std::string_view, std::size_t> variable_by_name_;
  std::vector<const KernelSignature*> kernels_;
  std::vector<GlobalInfo> globals_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace remora::softgpu
