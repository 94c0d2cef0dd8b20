// SPDX-License-Identifier: Apache-2.0
// A session: one client's contexts, streams, events and code, the lanes in which its calls wait for
// their turn, and what is told to the client. Doers (server/session/doers/) say what each call does.
//
//   Channel → consume() → dispatch → doer → lanes (scheduler.h) → driver
//                                             flights (stream.h) → answer, push → Channel
//
// Threads: consume() and doers in the thread that consumes the channel; what they queue runs in the
// issuing role or in the blocking lane; answer(), push() and settle() from any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "protocol/handle/object_table.h"
#include "protocol/records.h"
#include "protocol/wire/reply.h"
#include "server/driver/driver.h"
#include "server/session/command.h"
#include "server/session/image_store.h"
#include "server/session/objects.h"
#include "server/session/scheduler.h"
#include "server/session/staging.h"
#include "server/session/stream.h"
#include "server/session/window_memory.h"
#include "transport/bulk.h"
#include "transport/channel.h"

namespace remora::server {

/// One device of the session, ready before a client comes: its primary context made, its window reserved.
struct Device {
  CUdevice device = 0;
  CUcontext primary = nullptr;
  WindowMemory memory;
};

class Session final : private transport::Receiver {
 public:
  Session(const Driver& driver, std::vector<Device> devices, transport::Endpoint& endpoint);

  const DriverTable& driver() const { return driver_.table(); }
  std::string name_of(CUresult result) const { return driver_.name_of(result); }
  Scheduler& scheduler() { return scheduler_; }
  transport::Bulk& bulk() { return bulk_; }
  StagingPool& staging() { return staging_; }
  ImageStore& images() { return images_; }
  std::vector<Device>& devices() { return devices_; }

  // ---- Objects; in the consuming thread.

  Context* context_of(const Command& command) const { return contexts_.find_index(command.header.context); }
  Stream* find_stream(protocol::ObjectId id) const { return streams_.find(id); }
  Event* find_event(protocol::ObjectId id) const { return events_.find(id); }
  Module* find_module(protocol::ObjectId id) const { return modules_.find(id); }
  Kernel* find_kernel(protocol::ObjectId id) const { return kernels_.find(id); }

  protocol::ObjectTable<Context>& contexts() { return contexts_; }
  protocol::ObjectTable<Stream>& streams() { return streams_; }
  protocol::ObjectTable<Event>& events() { return events_; }
  protocol::ObjectTable<Module>& modules() { return modules_; }
  protocol::ObjectTable<Kernel>& kernels() { return kernels_; }

  /// All that was posted so far on any stream of the context and on none, for work that follows it.
  std::vector<After> all_before(const Context& context) const;

  // ---- Queueing; in the consuming thread. Each takes call(const Command&) → CUresult, which runs
  // with the context current, unless the context was lost: then the result is that error. The result
  // goes to whom it concerns (settle). The answering forms take call(const Command&), which answers.

  template <typename Call>
  void queue(Command command, Context* context, Call call) {
    const std::uint64_t sequence = command.sequence;
    scheduler_.add(general_, sequence, settling(std::move(command), context, std::move(call)),
                   {context->ready});
  }
  template <typename Call>
  void queue_answering(Command command, Context* context, Call call) {
    const std::uint64_t sequence = command.sequence;
    scheduler_.add(general_, sequence, answering(std::move(command), context, std::move(call)),
                   {context->ready});
  }
  template <typename Call>
  void queue_blocking(Command command, Context* context, Call call, std::vector<After> after = {}) {
    const std::uint64_t sequence = command.sequence;
    after.push_back(context->ready);
    scheduler_.add_blocking(sequence, settling(std::move(command), context, std::move(call)),
                            std::move(after));
  }
  template <typename Call>
  void queue_blocking_answering(Command command, Context* context, Call call) {
    const std::uint64_t sequence = command.sequence;
    scheduler_.add_blocking(sequence, answering(std::move(command), context, std::move(call)),
                            {context->ready});
  }
  /// In the order of the stream. The command's bytes live until the driver is done with the work.
  template <typename Call>
  void queue_on_stream(Command command, Stream& stream, Call call, std::vector<After> after = {}) {
    queue_in_lane(stream, command.sequence,
                  work_of([this, &stream, command = std::move(command), call = std::move(call)]() mutable {
                    CUresult result = before_call(stream);
                    if (result == CUDA_SUCCESS) result = call(command);
                    settle(command, result);
                    const std::uint64_t sequence = command.sequence;
                    stream.launch(sequence, {}, std::move(command));
                    return Step::done;
                  }),
                  std::move(after));
  }
  /// As it is, behind what the stream must follow.
  void queue_in_lane(Stream& stream, std::uint64_t sequence, std::unique_ptr<Work> work,
                     std::vector<After> after = {});

  // ---- Telling the client; any thread.

  template <typename Reply>
  void answer(const Command& command, CUresult result, const Reply& reply) {
    const std::size_t size = protocol::reply_size(reply);
    auto posting = channel_.begin(size);
    if (!posting) return;
    if (protocol::write_reply({posting.data(), size}, command.sequence, result, reply)) {
      posting.commit(size);
    }
  }
  /// An answer without outputs.
  void answer(const Command& command, CUresult result);
  template <typename Call>
  void push(const Call& call, std::uint32_t context = 0) {
    const std::size_t size = protocol::record_size(call);
    auto posting = channel_.begin(size);
    if (posting && protocol::write_record({posting.data(), size}, call, context)) posting.commit(size);
  }
  /// The result of a call without outputs: the reply, if one is wanted; else an error is pushed.
  void settle(const Command& command, CUresult result);
  /// The same for a call that was not queued.
  void reject(const Command& command, CUresult result) { settle(command, result); }

  /// Ends the session: the client broke a rule without which it cannot go on. Any thread.
  void fail(std::string_view why);

  // ---- In the issuing role.

  /// Makes the context current in the calling thread (any thread that calls the driver).
  void make_current(const Context& context);
  /// INVALID_HANDLE or the context's error, or SUCCESS with the context current.
  CUresult before_call(const Stream& stream);
  /// Notes a sticky error and tells the client, once. Other results change nothing. Any thread.
  void context_failed(Context& context, CUresult result);
  /// A stream whose end was asked for and that has nothing in flight.
  void bury(Stream& stream);

  // ---- The end of things; in the consuming thread.

  /// Out of its table; destroyed in the driver when all of it has completed, and then `on_buried` is
  /// called.
  void retire(Stream& stream, std::uint64_t sequence, std::function<void()> on_buried = {});

  struct Forgotten {
    std::vector<std::unique_ptr<Event>> events;
    std::vector<std::unique_ptr<Module>> modules;
    std::vector<std::shared_ptr<void>> kernels;
  };
  /// Takes events, modules and kernels of a context out of their tables. To be kept until the driver
  /// has let go of them.
  std::shared_ptr<Forgotten> forget_objects(Context& context);
  std::shared_ptr<void> forget_kernels(const Module& module);

 private:
  struct NoOutputs {
    std::size_t encoded_size() const { return 0; }
    void encode(protocol::Writer&) const {}
  };

  transport::Consumed consume(std::uint64_t sequence, Bytes record) override;

  CUresult before_call(const Context& context);

  template <typename Call>
  std::unique_ptr<Work> settling(Command command, Context* context, Call call) {
    return work_of([this, context, command = std::move(command), call = std::move(call)] {
      CUresult result = before_call(*context);
      if (result == CUDA_SUCCESS) result = call(command);
      context_failed(*context, result);
      settle(command, result);
      return Step::done;
    });
  }
  template <typename Call>
  std::unique_ptr<Work> answering(Command command, Context* context, Call call) {
    return work_of([this, context, command = std::move(command), call = std::move(call)] {
      if (const CUresult result = before_call(*context); result != CUDA_SUCCESS) {
        answer(command, result);
      } else {
        call(command);
      }
      return Step::done;
    });
  }

  const Driver& driver_;
  std::vector<Device> devices_;
  StagingPool staging_;
  ImageStore images_;

  protocol::ObjectTable<Context> contexts_;
  protocol::ObjectTable<Stream> streams_;
  protocol::ObjectTable<Event> events_;
  protocol::ObjectTable<Module> modules_;
  protocol::ObjectTable<Kernel> kernels_;
  std::vector<std::unique_ptr<Stream>> dying_;  // under dying_mutex_
  std::mutex dying_mutex_;

  Lane general_;  // calls on no stream that do not block
  transport::Endpoint& endpoint_;
  transport::Channel channel_;
  transport::Bulk bulk_;
  Scheduler scheduler_;  // last: its threads use all of the above
};

}  // namespace remora::server
