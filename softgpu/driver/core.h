// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of the driver API. A handle is the address of its object; every
// call checks that it is one that lives (Handles), so a wrong handle is an error and not a crash.
//
// Threads: objects guard themselves; what is not guarded is immutable after creation. The driver is
// made by cuInit and never destroyed, since programs call from destructors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "softgpu/driver/cuda_api.h"
#include "softgpu/driver/stream.h"
#include "softgpu/exec/engine.h"
#include "softgpu/exec/kernel.h"
#include "softgpu/driver/device_heap.h"
#include "softgpu/memory/address_space.h"
#include "softgpu/ptx/module.h"

namespace remora::softgpu {

struct Context;
struct LoadedModule;
struct Library;

struct Device {
  int ordinal = 0;
  std::string name;
  CUuuid uuid{};
  std::uint32_t capability = 121;
  std::map<int, int> attributes;  // by CUdevice_attribute

  std::mutex mutex;  // guards what follows
  std::shared_ptr<Context> primary;
  unsigned primary_retains = 0;
  unsigned primary_flags = 0;
};

struct Event {
  /// One record of it: a point in a stream, and when that was reached.
  struct Record {
    Mark mark;
    std::shared_ptr<std::atomic<std::uint64_t>> time_ns;
  };

  unsigned flags = 0;
  Context* context = nullptr;
  std::mutex mutex;
  std::optional<Record> last;  // guarded by the mutex

  std::optional<Record> last_record() {
    const std::lock_guard hold(mutex);
    return last;
  }
};

/// A kernel in a module that is loaded into a context: CUfunction.
struct Function {
  LoadedModule* module = nullptr;
  std::string name;
  const KernelSignature* signature = nullptr;
  std::atomic<int> max_dynamic_shared_bytes{48 << 10};
  std::atomic<int> preferred_carveout{-1};
  std::atomic<bool> loaded{false};
};

/// A module in a context: its variables are allocated in the device's memory.
struct LoadedModule {
  Context* context = nullptr;
  std::unique_ptr<Module> ptx;
  std::unique_ptr<KernelCache> cache;
  std::vector<std::uint64_t> addresses;  // of globals()
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  ~LoadedModule();
};

/// A kernel of a library, context-free: CUkernel.
struct LibraryKernel {
  Library* library = nullptr;
  std::string name;
  std::atomic<int> max_dynamic_shared_bytes{-1};  // set before any module was loaded
};

/// An image that is loaded into a context when something of it is first used there: CUlibrary.
struct Library {
  std::string text;  // PTX
  std::mutex mutex;  // guards what follows
  std::unique_ptr<Module> index;
  std::map<std::string, std::unique_ptr<LibraryKernel>, std::less<>> kernels;
  std::map<Context*, std::unique_ptr<LoadedModule>> modules;
};

struct Context {
  Device* device = nullptr;
  unsigned flags = 0;
  std::uint64_t id = 0;
  bool primary = false;
  unsigned api_version = 13000;
  std::atomic<CUresult> failed{CUDA_SUCCESS};  // sticky
  std::atomic<bool> active{false};             // a primary one: retained
  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  DeviceHeap heap;

  std::mutex ordering;  // guards what follows, and is held over a submission
  std::shared_ptr<Stream> legacy;
  std::map<Stream*, std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Stream>> retired;  // destroyed, with work left
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<LoadedModule*, std::unique_ptr<LoadedModule>> modules;

  /// Submits in the order that CUDA gives the legacy default stream among blocking ones. A context
  /// that has failed runs nothing more: `work` is dropped, its mark is reached all the same.
  Mark submit(const std::shared_ptr<Stream>& stream, std::function<void()> work,
              std::vector<Mark> after = {});
  /// The same for what must be told even then; it looks at `failed` itself.
  Mark submit_always(const std::shared_ptr<Stream>& stream, std::function<void()> work,
                     std::vector<Mark> after = {});
  /// The point where all work given to a stream so far is done; for the legacy stream that covers
  /// the blocking streams as well.
  std::vector<Mark> marks_of(const std::shared_ptr<Stream>& stream);
  std::vector<Mark> marks_of_all();
  /// Waits for all streams; the context's error, if any.
  CUresult synchronize();
  void retire(Stream* stream);
};

/// Which addresses are handles, and of what.
class Handles {
 public:
  enum class Kind { context, stream, event, module, function, library, kernel };
  void add(const void* handle, Kind kind);
  void remove(const void* handle);
  bool is(const void* handle, Kind kind) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, Kind> kinds_;
};

class Driver {
 public:
  static constexpr int kVersion = 13000;

  /// Made by cuInit; null before.
  static Driver* get();
  /// Errors of the environment variables are said in the log and refuse cuInit.
  static CUresult initialize();

  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<AddressSpace> memory;
  Handles handles;
  Engine engine;
  std::mutex mutex;  // guards what follows
  std::map<Context*, std::shared_ptr<Context>> contexts;
  std::vector<std::shared_ptr<Context>> ended;  // kept: a thread may still have one on its stack
  std::map<Library*, std::unique_ptr<Library>> libraries;
  std::atomic<std::uint64_t> next_id{1};

 private:
  explicit Driver(EngineOptions options) : engine(options) {}
};

// --- What entry points begin with --------------------------------------------------------------

/// The calling thread's contexts, the current one last.
std::vector<Context*>& context_stack();
Context* current_context();

/// Null with `result` set: not initialised, no current context, or one that has failed.
Context* usable_context(CUresult& result);
Device* device_at(CUdevice ordinal);

std::shared_ptr<Context> make_context(Device& device, unsigned flags, bool primary);
void end_context(Context& context);
/// A device's primary context, existing from the start, retained or not.
Context& primary_context(Device& device);

/// A stream and the context that it belongs to.
struct StreamRef {
  Context* context = nullptr;
  std::shared_ptr<Stream> stream;
  explicit operator bool() const { return stream != nullptr; }
};
/// A stream handle; 0 means the current context's legacy stream, or the thread's own. Empty: no
/// stream of any context.
StreamRef find_stream(Context& current, CUstream handle, bool per_thread);

/// Waits for everything on every context, before memory is taken away from kernels.
void quiesce();

/// Any image that CUDA loads, to PTX for this device.
Result<std::string> ptx_of(const void* image, std::uint32_t capability);
/// Says in the log what is wrong with an image.
CUresult image_to_ptx(const void* image, std::uint32_t capability, std::string& text);
CUresult load_module(Context& context, std::string_view text, std::unique_ptr<LoadedModule>& module);
CUresult library_module(Library& library, Context& context, LoadedModule*& module);
/// A CUfunction, or a CUkernel in its place; null when it is neither.
Function* find_function(Context& context, CUfunction handle, CUresult& result);
/// Translates at first use; what is not understood is said in the log, once.
CUresult prepare(Function& function, std::shared_ptr<const Kernel>& kernel);

CUresult result_of(Fault::Kind kind);

}  // namespace remora::softgpu
