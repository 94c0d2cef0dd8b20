// SPDX-License-Identifier: Apache-2.0
// The execution engine: grids in, completions out. A pool of workers shared by all grids of the
// process runs blocks; each warp is data (registers, pcs, masks), not a C stack, so a warp that
// waits or has used its time slice is simply left for later. Several grids run at once; every block
// that was started makes progress, also when it spins on another that has not started yet.
//
// Threads: launch() from any thread; it never waits for the grid. `on_done` runs on a worker, once;
// it must not block and may launch again. No thread exists before the first launch, and idle
// workers sleep.
//
// Errors: the first fault of a grid ends it (its remaining blocks are dropped) and is given to
// on_done. Launch shapes are checked by the caller against the device's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "softgpu/exec/access.h"
#include "softgpu/exec/kernel.h"

namespace remora::softgpu {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  // all blocks are started before any is asked to wait for another
};

struct Fault {
  enum class Kind {
    none,
    illegal_address,
    misaligned_address,
    illegal_instruction,
    assert_failed,
    trapped,
    invalid_ptx,
    stack_overflow,
    internal,
  };
  Kind kind = Kind::none;
  std::string text;  // a sentence: kernel, block, thread, address, PTX line
};

/// What a running kernel needs of the driver. All may be called from several workers at once; an
/// empty one makes the kernel fault when it needs it (print: the text is dropped).
struct LaunchHooks {
  std::function<void(std::string_view text)> print;           // device printf, already formatted
  std::function<void(std::string_view line)> report_assert;   // "file:line: function: block: ..."
  std::function<std::uint64_t(std::uint64_t size)> allocate;  // device malloc; 0 = none left
  std::function<bool(std::uint64_t address)> release;         // device free; false = not allocated
};

struct EngineOptions {
  unsigned workers = 0;  // 0 = one per hardware thread
};

class Engine {
 public:
  explicit Engine(EngineOptions options = {});
  /// Waits until no grid is left.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Copies `parameters` (laid out as KernelSignature says; missing tail bytes are zeros) and
  /// starts the grid. `memory` lives until on_done has been called.
  void launch(std::shared_ptr<const Kernel> kernel, const LaunchShape& shape,
              std::span<const std::byte> parameters, const MemoryMap& memory, LaunchHooks hooks,
              std::function<void(const Fault&)> on_done);

  unsigned workers() const;

 private:
  class Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace remora::softgpu
