// SPDX-License-Identifier: Apache-2.0
// Copies between host and device. Small ones ride in records. Others move in chunks beside the command
// stream, through pinned staging buffers, several at a time; a transfer begins when its stream's lane
// reaches it, and is always moved whole, also when it failed, since the client's side waits for it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

constexpr std::size_t kChunk = StagingPool::kBufferBytes;
constexpr std::size_t kChunksInFlight = 8;  // of one copy

std::size_t chunk_size(std::uint64_t offset, std::uint64_t size) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size - offset));
}

/// Chunks are accepted from the client, and issued in order as they land.
class HostToDevice final : public Work {
 public:
  HostToDevice(Session& session, Stream& stream, Command command,
               const protocol::cuMemcpyHtoDAsync_v2_call& call)
      : session_(session),
        stream_(stream),
        command_(std::move(command)),
        transfer_(call.srcHost.transfer),
        destination_(call.dstDevice),
        size_(call.ByteCount) {}

  Step run() override {
    while (accepted_ < size_ && chunks_.size() < kChunksInFlight && accept_next()) {
    }
    while (!chunks_.empty() && chunks_.front().landed) issue_first();
    if (issued_ < size_) return Step::again;
    session_.settle(command_, result_);
    return Step::done;
  }

 private:
  struct Chunk {
    std::byte* buffer;
    std::uint64_t offset;
    bool landed = false;
  };

  bool accept_next() {
    CUresult result;
    std::byte* const buffer = session_.staging().take(result);
    if (buffer == nullptr) {
      if (result != CUDA_SUCCESS) session_.fail("pinned memory for a copy is not to be had");
      return false;
    }
    const std::uint64_t offset = accepted_;
    const std::size_t size = chunk_size(offset, size_);
    chunks_.push_back({buffer, offset});
    accepted_ += size;
    session_.bulk().accept(transfer_, offset, {buffer, size}, [this, offset](Result<> result) {
      // Without the bytes the connection is over, and so is the session.
      if (result.ok()) session_.scheduler().defer([this, offset] { landed(offset); });
    });
    return true;
  }

  void landed(std::uint64_t offset) {
    for (Chunk& chunk : chunks_) {
      if (chunk.offset == offset) chunk.landed = true;
    }
  }

  void issue_first() {
    const Chunk chunk = chunks_.front();
    chunks_.pop_front();
    const std::size_t size = chunk_size(chunk.offset, size_);
    if (result_ == CUDA_SUCCESS) result_ = session_.before_call(stream_);
    if (result_ == CUDA_SUCCESS) {
      result_ = session_.driver().cuMemcpyHtoDAsync_v2(destination_ + chunk.offset, chunk.buffer, size,
                                                       stream_.handle);
    }
    issued_ += size;
    const bool last = issued_ == size_;
    stream_.launch(last ? command_.sequence : 0, [session = &session_, buffer = chunk.buffer](CUresult) {
      session->staging().give_back(buffer);
    });
    stream_.mark();  // the buffers are wanted again
  }

  Session& session_;
  Stream& stream_;
  const Command command_;
  const std::uint64_t transfer_;
  const CUdeviceptr destination_;
  const std::uint64_t size_;
  std::uint64_t accepted_ = 0, issued_ = 0;
  std::deque<Chunk> chunks_;
  CUresult result_ = CUDA_SUCCESS;
};

/// Chunks are copied into staging buffers as those are free, and announced to the client as they
/// complete.
class DeviceToHost final : public Work {
 public:
  DeviceToHost(Session& session, Stream& stream, Command command,
               const protocol::cuMemcpyDtoHAsync_v2_call& call)
      : state_(std::make_shared<State>(session, std::move(command), call.dstHost.transfer)),
        stream_(stream),
        source_(call.srcDevice),
        size_(call.ByteCount) {}

  Step run() override {
    Session& session = state_->session;
    while (issued_ < size_) {
      if (state_->out == kChunksInFlight) return Step::again;
      CUresult result;
      std::byte* const buffer = session.staging().take(result);
      if (buffer == nullptr) {
        if (result != CUDA_SUCCESS) session.fail("pinned memory for a copy is not to be had");
        return Step::again;
      }
      issue(buffer);
    }
    return Step::done;
  }

 private:
  struct State {  // outlives the work: the last chunks are still on their way when all were issued
    State(Session& session, Command command, std::uint64_t transfer)
        : session(session), command(std::move(command)), transfer(transfer) {}
    Session& session;
    const Command command;
    const std::uint64_t transfer;
    std::size_t out = 0;  // chunks copied or being sent; in the role
    CUresult result = CUDA_SUCCESS;
  };

  void issue(std::byte* buffer) {
    Session& session = state_->session;
    const std::uint64_t offset = issued_;
    const std::size_t size = chunk_size(offset, size_);
    if (state_->result == CUDA_SUCCESS) state_->result = session.before_call(stream_);
    if (state_->result == CUDA_SUCCESS) {
      state_->result =
          session.driver().cuMemcpyDtoHAsync_v2(buffer, source_ + offset, size, stream_.handle);
    }
    if (state_->result != CUDA_SUCCESS) std::memset(buffer, 0, size);  // nobody else's old bytes
    issued_ += size;
    ++state_->out;
    const bool last = issued_ == size_;
    stream_.launch(last ? state_->command.sequence : 0,
                   [state = state_, buffer, offset, size, last](CUresult context_result) {
                     send(state, buffer, offset, size, last, context_result);
                   });
    stream_.mark();
  }

  static void send(const std::shared_ptr<State>& state, std::byte* buffer, std::uint64_t offset,
                   std::size_t size, bool last, CUresult context_result) {
    Session& session = state->session;
    session.bulk().send_chunk(state->transfer, offset, {buffer, size}, [state, buffer](Result<> sent) {
      if (!sent.ok()) return;  // the connection is over
      state->session.scheduler().defer([state, buffer] {
        --state->out;
        state->session.staging().give_back(buffer);
      });
    });
    if (!last) return;
    // The client holds back what follows until all bytes have landed with it.
    session.push(protocol::remora_transfer_done_call{state->transfer});
    session.settle(state->command, state->result != CUDA_SUCCESS ? state->result : context_result);
  }

  const std::shared_ptr<State> state_;
  Stream& stream_;
  const CUdeviceptr source_;
  const std::uint64_t size_;
  std::uint64_t issued_ = 0;
};

/// Into the reply.
Step copy_inline(Session& session, Stream& stream, Command& command, CUdeviceptr source,
                 std::size_t size) {
  CUresult result;
  std::byte* const buffer = session.staging().take(result);
  if (buffer == nullptr) {
    if (result == CUDA_SUCCESS) return Step::again;
  } else {
    result = session.before_call(stream);
    if (result == CUDA_SUCCESS) {
      result = session.driver().cuMemcpyDtoHAsync_v2(buffer, source, size, stream.handle);
    }
  }
  const std::uint64_t sequence = command.sequence;
  auto kept = std::make_shared<Command>(std::move(command));
  stream.launch(sequence, [&session, kept, buffer, size, result](CUresult context_result) {
    const CUresult outcome = result != CUDA_SUCCESS ? result : context_result;
    protocol::cuMemcpyDtoHAsync_v2_reply reply;
    if (outcome == CUDA_SUCCESS) reply.dstHost = {buffer, size};
    session.answer(*kept, outcome, reply);
    if (buffer != nullptr) session.staging().give_back(buffer);
  });
  stream.mark();
  return Step::done;
}

}  // namespace

void cuMemcpyHtoDAsync_v2(Session& session, Command command,
                          const protocol::cuMemcpyHtoDAsync_v2_call& call) {
  Stream* const stream = session.find_stream(call.hStream);
  const std::uint64_t sequence = command.sequence;
  if (call.srcHost.transfer == 0) {
    if (stream == nullptr || call.srcHost.inline_bytes.size() != call.ByteCount) {
      return session.reject(command, CUDA_ERROR_INVALID_VALUE);
    }
    return session.queue_on_stream(
        std::move(command), *stream,
        [&session, stream, destination = call.dstDevice, bytes = call.srcHost.inline_bytes](const Command&) {
          return session.driver().cuMemcpyHtoDAsync_v2(destination, bytes.data(), bytes.size(),
                                                       stream->handle);
        });
  }
  // A transfer that nobody accepts would leave the client waiting.
  if (stream == nullptr || call.ByteCount == 0) return session.fail("a bulk copy names no stream or no bytes");
  auto work = std::make_unique<HostToDevice>(session, *stream, std::move(command), call);
  session.queue_in_lane(*stream, sequence, std::move(work));
}

void cuMemcpyDtoHAsync_v2(Session& session, Command command,
                          const protocol::cuMemcpyDtoHAsync_v2_call& call) {
  Stream* const stream = session.find_stream(call.hStream);
  const std::uint64_t sequence = command.sequence;
  if (call.dstHost.transfer == 0) {
    if (stream == nullptr || call.ByteCount > kChunk || !command.header.reply_wanted()) {
      return session.reject(command, CUDA_ERROR_INVALID_VALUE);
    }
    return session.queue_in_lane(
        *stream, sequence,
        work_of([&session, stream, source = call.srcDevice, size = static_cast<std::size_t>(call.ByteCount),
                 command = std::move(command)]() mutable {
          return copy_inline(session, *stream, command, source, size);
        }));
  }
  if (stream == nullptr || call.ByteCount == 0) return session.fail("a bulk copy names no stream or no bytes");
  auto work = std::make_unique<DeviceToHost>(session, *stream, std::move(command), call);
  session.queue_in_lane(*stream, sequence, std::move(work));
}

}  // namespace remora::server::doers
