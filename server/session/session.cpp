// SPDX-License-Identifier: Apache-2.0
#include "server/session/session.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "server/doers.h"

namespace remora::server {
namespace {

// Records copied and not yet issued: beyond, the rest waits in the channel, which has its own bound.
constexpr std::size_t kMostBacklog = 16384;

thread_local CUcontext current_context = nullptr;

/// Errors after which CUDA gives every later call of the context the same error.
bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Session::Session(const Driver& driver, std::vector<Device> devices, transport::Endpoint& endpoint)
    : driver_(driver),
      devices_(std::move(devices)),
      staging_(driver.table()),
      endpoint_(endpoint),
      channel_(endpoint, *this),
      bulk_(endpoint, {.chunk_bytes = StagingPool::kBufferBytes}) {}

transport::Consumed Session::consume(std::uint64_t sequence, Bytes record) {
  if (scheduler_.backlog() > kMostBacklog) {
    scheduler_.when_backlog_below(kMostBacklog / 2, [this] { endpoint_.consume_all(); });
    return transport::Consumed::later;
  }
  protocol::RecordHeader header;
  Bytes body;
  if (protocol::open_record(record, header, body) == protocol::Verdict::violation ||
      dispatch(*this, Command::copy_of(sequence, header, body)) == protocol::Verdict::violation) {
    fail(fmt::format("record {} of the client makes no sense", sequence));
  }
  return transport::Consumed::yes;
}

void Session::fail(std::string_view why) {
  endpoint_.fail({ErrorKind::invalid_input, 0, fmt::format("The session ends: {}.", why)});
}

std::vector<After> Session::all_before(const Context& context) const {
  std::vector<After> after = {context.ready, general_.here()};
  for (const Stream* stream : context.streams) after.push_back(stream->here());
  return after;
}

/// The legacy default stream and the context's blocking streams wait for each other. The driver sees
/// to that for what was issued; here it is only about issuing in the right order.
void Session::queue_in_lane(Stream& stream, std::uint64_t sequence, std::unique_ptr<Work> work,
                            std::vector<After> after) {
  Context& context = stream.context;
  after.push_back(context.ready);
  if (stream.legacy) {
    for (const Stream* other : context.streams) {
      if (other->joins_legacy()) after.push_back(other->here());
    }
  } else if (stream.joins_legacy() && context.legacy != nullptr) {
    after.push_back(context.legacy->here());
  }
  std::erase_if(after, [](const After& one) { return one.holds(); });
  scheduler_.add(stream, sequence, std::move(work), std::move(after));
}

void Session::answer(const Command& command, CUresult result) { answer(command, result, NoOutputs{}); }

void Session::settle(const Command& command, CUresult result) {
  if (result != CUDA_SUCCESS) {
    log::debug("{} (record {}): {}", protocol::call_info(command.header.call).name, command.sequence,
               name_of(result));
  }
  if (command.header.reply_wanted()) return answer(command, result);
  if (result == CUDA_SUCCESS) return;
  push(protocol::remora_async_error_call{command.sequence, static_cast<std::int32_t>(result),
                                         is_sticky(result) ? 1u : 0u},
       command.header.context);
}

void Session::make_current(const Context& context) {
  if (current_context == context.handle) return;
  if (driver().cuCtxSetCurrent(context.handle) == CUDA_SUCCESS) current_context = context.handle;
}

CUresult Session::before_call(const Context& context) {
  if (context.failed != CUDA_SUCCESS) return context.failed;
  if (context.handle == nullptr) return context.create_result;
  make_current(context);
  return CUDA_SUCCESS;
}

CUresult Session::before_call(const Stream& stream) {
  const CUresult result = before_call(stream.context);
  return result == CUDA_SUCCESS && stream.handle == nullptr ? CUDA_ERROR_INVALID_HANDLE : result;
}

void Session::context_failed(Context& context, CUresult result) {
  if (!is_sticky(result) || context.failed.exchange(result) != CUDA_SUCCESS) return;
  log::info("context {} is lost: {}", context.id.index, name_of(result));
  push(protocol::remora_async_error_call{0, static_cast<std::int32_t>(result), 1}, context.id.index);
}

void Session::retire(Stream& stream, std::uint64_t sequence, std::function<void()> on_buried) {
  Context& context = stream.context;
  stream.on_buried = std::move(on_buried);
  std::erase(context.streams, &stream);
  if (context.legacy == &stream) context.legacy = nullptr;
  {
    const std::lock_guard hold(dying_mutex_);
    dying_.push_back(streams_.erase(stream.id));
  }
  queue_in_lane(stream, sequence, work_of([&stream] {
                  stream.dying = true;
                  stream.launch(0);
                  stream.mark();
                  return Step::done;
                }));
}

void Session::bury(Stream& stream) {
  if (!stream.legacy && stream.handle != nullptr && stream.context.failed == CUDA_SUCCESS) {
    make_current(stream.context);
    driver().cuStreamDestroy_v2(stream.handle);
  }
  // Not from under its own feet: it still stands on the stack.
  scheduler_.defer([this, &stream] {
    std::unique_ptr<Stream> owned;
    {
      const std::lock_guard hold(dying_mutex_);
      const auto found = std::find_if(dying_.begin(), dying_.end(),
                                      [&](const auto& one) { return one.get() == &stream; });
      owned = std::move(*found);
      dying_.erase(found);
    }
    if (owned->on_buried) owned->on_buried();
  });
}

std::shared_ptr<void> Session::forget_kernels(const Module& module) {
  auto forgotten = std::make_shared<std::vector<std::unique_ptr<Kernel>>>();
  std::vector<protocol::ObjectId> ids;
  kernels_.for_each([&](protocol::ObjectId id, const Kernel& kernel) {
    if (kernel.module == &module) ids.push_back(id);
  });
  for (const protocol::ObjectId id : ids) forgotten->push_back(kernels_.erase(id));
  return forgotten;
}

std::shared_ptr<Session::Forgotten> Session::forget_objects(Context& context) {
  auto forgotten = std::make_shared<Forgotten>();
  std::vector<protocol::ObjectId> events, modules;
  events_.for_each([&](protocol::ObjectId id, const Event& event) {
    if (event.context == &context) events.push_back(id);
  });
  modules_.for_each([&](protocol::ObjectId id, const Module& module) {
    if (module.context == &context) modules.push_back(id);
  });
  for (const protocol::ObjectId id : events) forgotten->events.push_back(events_.erase(id));
  for (const protocol::ObjectId id : modules) {
    forgotten->kernels.push_back(forget_kernels(*modules_.find(id)));
    forgotten->modules.push_back(modules_.erase(id));
  }
  return forgotten;
}

}  // namespace remora::server
