// SPDX-License-Identifier: Apache-2.0
// What a session keeps behind the ids that its client chose. Objects are made and found by the thread
// that consumes the command stream; their driver handles are filled in by the work that was queued
// for it, and read only by work that comes after that (see `ready`).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/handle/object_id.h"
#include "server/session/event_clock.h"
#include "server/session/scheduler.h"
#include "server/session/stream.h"

namespace remora::server {

struct Context {
  protocol::ObjectId id;
  CUdevice device = 0;
  bool primary = false;
  After ready;
  std::vector<Stream*> streams;  // of the consuming thread
  Stream* legacy = nullptr;      // of the consuming thread

  CUcontext handle = nullptr;
  /// The sticky error that ended the context. In the issuing role.
  CUresult failed = CUDA_SUCCESS;
  EventClock clock;
};

struct Event {
  protocol::ObjectId id;
  Context* context = nullptr;
  unsigned flags = 0;
  After ready;
  After last_record;        // of the consuming thread
  std::vector<After> uses;  // work that names it; of the consuming thread

  CUevent handle = nullptr;
};

/// A module, a library, or the module that a library becomes in a context.
struct Module {
  protocol::ObjectId id;
  Context* context = nullptr;  // null for a library, which belongs to none

  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  /// Why it could not be loaded.
  CUresult load_result = CUDA_SUCCESS;

  CUmodule module_handle() const { return module; }
  CUlibrary library_handle() const { return library; }
};

/// A CUkernel of a library or a CUfunction of a module. Touched in the blocking lane; a launch reads
/// what the lane stored before the client, which waits for the facts, could ask for the launch.
struct Kernel {
  protocol::ObjectId id;
  Module* module = nullptr;
  std::string name;

  CUkernel kernel = nullptr;                    // of a library
  std::map<const Context*, CUfunction> functions;  // by the context that it was loaded in

  CUkernel kernel_handle() const { return kernel; }
  /// Null when it was never loaded there.
  CUfunction function_in(const Context& context) const {
    const auto found = functions.find(&context);
    return found == functions.end() ? nullptr : found->second;
  }
};

}  // namespace remora::server
