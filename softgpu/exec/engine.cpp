// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "softgpu/exec/warp.h"

namespace remora::softgpu {
namespace {

// Instructions of a block before its worker turns to another one.
constexpr std::int64_t kBlockSlice = 400'000;
// Blocks that were started and set aside, of all grids: beyond, only those go on. A grid whose
// blocks wait for more than so many others does not end (no GPU runs it either).
constexpr std::size_t kMaxSuspended = 8192;

struct Grid {
  GridContext context;
  std::function<void(const Fault&)> on_done;
  std::uint64_t blocks = 0;
  std::uint64_t next_block = 0;  // under the pool's lock
  std::uint64_t unfinished = 0;  // under the pool's lock
  Fault fault;                   // under the pool's lock
  std::atomic<bool> faulted{false};
};

/// A block to run. It is made by the worker that runs it first, outside of the lock.
struct Task {
  Grid* grid = nullptr;
  std::unique_ptr<Block> block;
  std::uint64_t index = 0;
  Block::State state = Block::State::runnable;
};

}  // namespace

class Engine::Pool {
 public:
  explicit Pool(unsigned workers)
      : worker_count_(workers != 0 ? workers : std::max(1u, std::thread::hardware_concurrency())) {}

  ~Pool() {
    {
      std::unique_lock hold(mutex_);
      idle_.wait(hold, [&] { return grids_.empty(); });
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  unsigned workers() const { return worker_count_; }

  void launch(std::unique_ptr<Grid> grid) {
    {
      const std::lock_guard hold(mutex_);
      if (threads_.empty()) start_threads();
      grid->context.id = ++launches_;
      grids_.push_back(std::move(grid));
    }
    work_.notify_all();
  }

 private:
  void start_threads() {
    for (unsigned i = 0; i < worker_count_; ++i) threads_.emplace_back([this] { work(); });
  }

  void work() {
    std::unique_lock hold(mutex_);
    while (true) {
      Task task = take();
      if (task.grid == nullptr) {
        if (stopping_) return;
        work_.wait(hold);
        continue;
      }
      hold.unlock();
      run(task);
      hold.lock();
      settle(std::move(task));
    }
  }

  /// A block to run: alternately one that was set aside and a new one.
  Task take() {
    const bool old_first = !suspended_.empty() && (turn_++ % 2 == 0 || suspended_.size() >= kMaxSuspended);
    if (old_first) return take_suspended();
    for (const auto& grid : grids_) {
      if (grid->next_block == grid->blocks) continue;
      return {grid.get(), nullptr, grid->next_block++};
    }
    return suspended_.empty() ? Task{} : take_suspended();
  }
  Task take_suspended() {
    Task task = std::move(suspended_.front());
    suspended_.pop_front();
    return task;
  }

  static void run(Task& task) {
    if (task.grid->faulted.load(std::memory_order_relaxed)) return;
    if (!task.block) task.block = std::make_unique<Block>(task.grid->context, task.index);
    task.state = task.block->run(kBlockSlice);
  }

  void settle(Task task) {
    Grid& grid = *task.grid;
    if (!grid.faulted.load(std::memory_order_relaxed)) {
      if (task.state == Block::State::runnable) {
        suspended_.push_back(std::move(task));
        return;
      }
      if (task.state == Block::State::faulted) {
        grid.fault = task.block->fault();
        grid.faulted.store(true, std::memory_order_relaxed);
        // Blocks that never started will not.
        grid.unfinished -= grid.blocks - grid.next_block;
        grid.next_block = grid.blocks;
      }
    }
    task.block.reset();
    if (--grid.unfinished == 0) finish(grid);
  }

  void finish(Grid& grid) {
    const auto at = std::find_if(grids_.begin(), grids_.end(),
                                 [&](const auto& candidate) { return candidate.get() == &grid; });
    const std::unique_ptr<Grid> done = std::move(*at);
    grids_.erase(at);
    // on_done may launch again, so it runs without the lock; the pool may not end meanwhile.
    ++finishing_;
    mutex_.unlock();
    done->on_done(done->fault);
    mutex_.lock();
    --finishing_;
    if (grids_.empty() && finishing_ == 0) idle_.notify_all();
  }

  const unsigned worker_count_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::vector<std::thread> threads_;
  std::deque<std::unique_ptr<Grid>> grids_;
  std::deque<Task> suspended_;
  std::uint64_t launches_ = 0;
  std::uint64_t turn_ = 0;
  unsigned finishing_ = 0;
  bool stopping_ = false;
};

Engine::Engine(EngineOptions options) : pool_(std::make_unique<Pool>(options.workers)) {}
Engine::~Engine() = default;

unsigned Engine::workers() const { return pool_->workers(); }

void Engine::launch(std::shared_ptr<const Kernel> kernel, const LaunchShape& shape,
                    std::span<const std::byte> parameters, const MemoryMap& memory,
                    LaunchHooks hooks, std::function<void(const Fault&)> on_done) {
  auto grid = std::make_unique<Grid>();
  grid->context.shape = shape;
  grid->context.parameters.assign(parameters.begin(), parameters.end());
  grid->context.parameters.resize(kernel->resources().parameter_bytes);
  grid->context.kernel = std::move(kernel);
  grid->context.memory = &memory;
  grid->context.hooks = std::move(hooks);
  grid->on_done = std::move(on_done);
  grid->blocks = grid->unfinished =
      std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  pool_->launch(std::move(grid));
}

}  // namespace remora::softgpu
