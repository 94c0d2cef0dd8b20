// SPDX-License-Identifier: Apache-2.0
// What a session keeps behind the ids that its client chose. Objects are made, found and forgotten by
// the thread that consumes the command stream; their driver handles are filled in by the work that
// was queued for it, and read only by work that comes after that.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "protocol/handle/object_id.h"
#include "server/session/event_clock.h"
#include "server/session/scheduler.h"
#include "server/session/stream.h"

namespace remora::server {

/// Driver events of one context, used again and again: each record of a program's event takes a fresh
/// one, so that a time belongs to the record that it was asked for. Any thread.
class EventPool {
 public:
  CUevent take(const DriverTable& driver, bool timed, CUresult& result) {
    {
      const std::lock_guard hold(mutex_);
      auto& free = free_[timed];
      if (!free.empty()) {
        const CUevent event = free.back();
        free.pop_back();
        return event;
      }
    }
    CUevent event = nullptr;
    result = driver.cuEventCreate(&event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    return result == CUDA_SUCCESS ? event : nullptr;
  }
  void give_back(bool timed, CUevent event) {
    const std::lock_guard hold(mutex_);
    free_[timed].push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<CUevent> free_[2];  // by `timed`
};

struct Context {
  protocol::ObjectId id;
  CUdevice device = 0;
  bool primary = false;
  After ready;
  std::vector<Stream*> streams;  // alive; of the consuming thread
  Stream* legacy = nullptr;      // of the consuming thread

  CUcontext handle = nullptr;
  CUresult create_result = CUDA_SUCCESS;
  /// The sticky error that ended the context.
  std::atomic<CUresult> failed{CUDA_SUCCESS};
  EventClock clock;
  std::shared_ptr<EventPool> events = std::make_shared<EventPool>();
};

/// One record of an event. Waits that were posted after it hold on to it.
struct Recording {
  Recording(After issued, bool timed, std::shared_ptr<EventPool> pool)
      : issued(std::move(issued)), timed(timed), pool(std::move(pool)) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (handle != nullptr) pool->give_back(timed, handle);
  }

  const After issued;
  const bool timed;
  const std::shared_ptr<EventPool> pool;
  CUevent handle = nullptr;  // in the issuing role; null when the record failed
};

struct Event {
  protocol::ObjectId id;
  Context* context = nullptr;
  bool timed = true;
  std::shared_ptr<Recording> latest;  // of the consuming thread; null: never recorded
};

/// A module, a library, or the module that a library becomes in a context.
struct Module {
  protocol::ObjectId id;
  Context* context = nullptr;  // null for a library, which belongs to none
  bool of_library = false;     // the driver unloads it with its library

  // In the blocking lane.
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUresult load_result = CUDA_SUCCESS;  // why there is no handle

  CUmodule module_handle() const { return module; }
  CUlibrary library_handle() const { return library; }
};

/// A CUkernel of a library or a CUfunction of a module.
class Kernel {
 public:
  Kernel(protocol::ObjectId id, Module* module, std::string name)
      : id(id), module(module), name(std::move(name)) {}

  const protocol::ObjectId id;
  Module* const module;
  const std::string name;

  CUkernel kernel = nullptr;             // of a library; in the blocking lane
  CUresult find_result = CUDA_SUCCESS;  // why there is neither; in the blocking lane

  CUkernel kernel_handle() const { return kernel; }

  /// Null when it was never loaded in that context (remora_kernel_facts). Any thread.
  CUfunction function_in(const Context& context) const {
    const std::lock_guard hold(mutex_);
    const auto found = functions_.find(context.id);
    return found == functions_.end() ? nullptr : found->second;
  }
  void set_function(const Context& context, CUfunction function) {
    const std::lock_guard hold(mutex_);
    functions_[context.id] = function;
  }

 private:
  mutable std::mutex mutex_;  // launches look while another context's first use is being loaded
  std::map<protocol::ObjectId, CUfunction> functions_;  // an id names one context only, for ever
};

}  // namespace remora::server
