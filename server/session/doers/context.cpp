// SPDX-License-Identifier: Apache-2.0
// Contexts. A device's primary context exists in the driver before the client comes and as long as the
// session; retaining it gives it a name.
#include <atomic>
#include <future>
#include <utility>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

/// Calls `then` when it was told `count` times. Any thread.
class Countdown {
 public:
  Countdown(std::size_t count, std::function<void()> then) : left_(count), then_(std::move(then)) {}
  void one_less() {
    if (left_.fetch_sub(1) == 1) then_();
  }

 private:
  std::atomic<std::size_t> left_;
  std::function<void()> then_;
};

/// Ends all that lives in a context, and then, in the blocking lane, the context itself by `end`.
template <typename End>
void end_context(Session& session, Command command, Context& context, End end) {
  const std::uint64_t sequence = command.sequence;
  auto gone = std::make_shared<std::promise<void>>();
  // One for ourselves, so that a context without streams is no special case.
  auto streams = std::make_shared<Countdown>(context.streams.size() + 1, [gone] { gone->set_value(); });
  const std::vector<Stream*> alive = context.streams;
  std::vector<After> after = session.all_before(context);
  for (Stream* stream : alive) session.retire(*stream, sequence, [streams] { streams->one_less(); });
  streams->one_less();

  auto objects = session.forget_objects(context);
  std::shared_ptr<Context> owned = session.contexts().erase(context.id);
  session.scheduler().add_blocking(
      sequence,
      work_of([&session, command = std::move(command), owned, objects, gone, end] {
        // As in CUDA: until the last kernel has ended.
        gone->get_future().wait();
        session.make_current(*owned);
        for (const auto& module : objects->modules) {
          if (module->module != nullptr && !module->of_library) {
            session.driver().cuModuleUnload(module->module);
          }
        }
        session.settle(command, end(*owned));
        return Step::done;
      }),
      std::move(after));
}

}  // namespace

void cuDevicePrimaryCtxRetain(Session& session, Command command,
                              const protocol::cuDevicePrimaryCtxRetain_call& call) {
  auto& devices = session.devices();
  if (call.dev < 0 || static_cast<std::size_t>(call.dev) >= devices.size()) {
    return session.reject(command, CUDA_ERROR_INVALID_DEVICE);
  }
  auto context = std::make_unique<Context>();
  context->id = call.pctx;
  context->device = call.dev;
  context->primary = true;
  context->handle = devices[static_cast<std::size_t>(call.dev)].primary;
  const bool fresh = session.contexts().insert(call.pctx, std::move(context)) != nullptr;
  session.settle(command, fresh ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

void cuDevicePrimaryCtxRelease_v2(Session& session, Command command,
                                  const protocol::cuDevicePrimaryCtxRelease_v2_call& call) {
  Context* primary = nullptr;
  session.contexts().for_each([&](protocol::ObjectId, Context& context) {
    if (context.primary && context.device == call.dev) primary = &context;
  });
  if (primary == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  end_context(session, std::move(command), *primary, [](Context&) { return CUDA_SUCCESS; });
}

void cuDevicePrimaryCtxReset_v2(Session& session, Command command,
                                const protocol::cuDevicePrimaryCtxReset_v2_call& call) {
  Context* primary = nullptr;
  session.contexts().for_each([&](protocol::ObjectId, Context& context) {
    if (context.primary && context.device == call.dev) primary = &context;
  });
  if (primary == nullptr) return session.settle(command, CUDA_SUCCESS);
  end_context(session, std::move(command), *primary, [](Context&) { return CUDA_SUCCESS; });
}

void cuCtxCreate_v2(Session& session, Command command, const protocol::cuCtxCreate_v2_call& call) {
  if (call.dev < 0 || static_cast<std::size_t>(call.dev) >= session.devices().size()) {
    return session.reject(command, CUDA_ERROR_INVALID_DEVICE);
  }
  auto made = std::make_unique<Context>();
  made->id = call.pctx;
  made->device = call.dev;
  Context* const context = session.contexts().insert(call.pctx, std::move(made));
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  const std::uint64_t sequence = command.sequence;
  session.scheduler().add_blocking(
      sequence, work_of([&session, context, flags = call.flags, command = std::move(command)] {
        const CUdevice device = session.devices()[static_cast<std::size_t>(context->device)].device;
        context->create_result = session.driver().cuCtxCreate_v2(&context->handle, flags, device);
        if (context->create_result != CUDA_SUCCESS) context->handle = nullptr;
        session.settle(command, context->create_result);
        return Step::done;
      }));
  context->ready = session.scheduler().blocking_here();
}

void cuCtxDestroy_v2(Session& session, Command command, const protocol::cuCtxDestroy_v2_call& call) {
  Context* const context = session.contexts().find(call.ctx);
  if (context == nullptr || context->primary) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  end_context(session, std::move(command), *context, [&session](Context& context) {
    return context.handle == nullptr ? CUDA_SUCCESS : session.driver().cuCtxDestroy_v2(context.handle);
  });
}

void cuCtxSynchronize(Session& session, Command command, const protocol::cuCtxSynchronize_call&) {
  Context* const context = session.context_of(command);
  if (context == nullptr) return session.reject(command, CUDA_ERROR_INVALID_CONTEXT);
  const std::uint64_t sequence = command.sequence;
  auto kept = std::make_shared<Command>(std::move(command));
  auto all = std::make_shared<Countdown>(context->streams.size() + 1, [&session, context, kept] {
    session.settle(*kept, context->failed);
  });
  for (Stream* stream : context->streams) {
    session.queue_in_lane(*stream, sequence, work_of([stream, all] {
                            stream->launch(0, [all](CUresult) { all->one_less(); });
                            stream->mark();
                            return Step::done;
                          }));
  }
  all->one_less();
}

}  // namespace remora::server::doers
