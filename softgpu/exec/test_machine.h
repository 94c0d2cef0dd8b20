// SPDX-License-Identifier: Apache-2.0
// A device for tests of the engine: a memory map over host vectors, and launches that wait.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/exec/engine.h"
#include "softgpu/exec/kernel.h"
#include "softgpu/ptx/module.h"

namespace remora::softgpu::test {

class HostMemory final : public MemoryMap {
 public:
  bool find(std::uint64_t address, MemoryRange& range) const override {
    auto at = ranges_.upper_bound(address);
    if (at == ranges_.begin()) return false;
    --at;
    range = at->second;
    return address < range.end;
  }
  /// Memory that lives as long as the map.
  template <typename T>
  T* allocate(std::size_t count, T fill = {}) {
    storage_.emplace_back(new std::byte[count * sizeof(T) + 256]);
    const auto raw = reinterpret_cast<std::uint64_t>(storage_.back().get());
    const std::uint64_t begin = (raw + 255) / 256 * 256;
    auto* data = reinterpret_cast<T*>(begin);
    std::fill_n(data, count, fill);
    ranges_[begin] = {begin, begin + count * sizeof(T), true};
    return data;
  }

 private:
  std::map<std::uint64_t, MemoryRange> ranges_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

/// Parameters as a caller packs them: each at its own alignment.
class Parameters {
 public:
  template <typename T>
  Parameters& operator<<(T value) {
    bytes.resize((bytes.size() + sizeof value - 1) / sizeof value * sizeof value);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
    return *this;
  }
  std::vector<std::byte> bytes;
};

class Machine {
 public:
  /// Fails the test when the text is no module.
  void load(const std::string& ptx) {
    auto parsed = Module::parse(ptx);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text;
    module = std::move(*parsed);
    std::vector<std::uint64_t> addresses;
    for (const GlobalInfo& global : module->globals()) {
      addresses.push_back(reinterpret_cast<std::uint64_t>(memory.allocate<std::byte>(global.size)));
    }
    module->bind_globals(addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const auto& global = module->globals()[i];
      if (!global.initialized) continue;
      auto image = MutableBytes(reinterpret_cast<std::byte*>(addresses[i]), global.size);
      ASSERT_TRUE(module->build_global_image(i, image).ok());
    }
    cache = std::make_unique<KernelCache>(*module);
  }

  Result<std::shared_ptr<const Kernel>> prepare(std::string_view name) { return cache->prepare(name); }

  Fault launch(std::string_view name, Dim3 grid, Dim3 block, const Parameters& parameters = {},
               std::uint32_t dynamic_shared_bytes = 0) {
    auto kernel = cache->prepare(name);
    EXPECT_TRUE(kernel.ok()) << kernel.error().text;
    if (!kernel.ok()) return {Fault::Kind::invalid_ptx, kernel.error().text};
    std::promise<Fault> done;
    LaunchHooks hooks;
    hooks.print = [this](std::string_view text) {
      const std::lock_guard hold(mutex);
      printed += text;
    };
    engine.launch(*kernel, {grid, block, dynamic_shared_bytes}, parameters.bytes, memory, hooks,
                  [&](const Fault& fault) { done.set_value(fault); });
    auto future = done.get_future();
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      ADD_FAILURE() << "the kernel " << name << " does not end";
      std::abort();  // its memory is in use
    }
    return future.get();
  }

  HostMemory memory;
  std::unique_ptr<Module> module;
  std::unique_ptr<KernelCache> cache;
  std::mutex mutex;
  std::string printed;
  Engine engine{{4}};
};

/// A module of one kernel whose body is given.
inline std::string module_of(const std::string& parameters, const std::string& body,
                             const std::string& before = "") {
  return ".version 9.0\n.target sm_120\n.address_size 64\n" + before + "\n.visible .entry k(" +
         parameters + ")\n{\n.reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<64>;\n.reg .b64 %d<64>;\n" +
         ".reg .f32 %f<32>;\n.reg .f64 %g<32>;\n" + body + "\n}\n";
}

}  // namespace remora::softgpu::test
