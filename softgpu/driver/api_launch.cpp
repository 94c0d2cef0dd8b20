// SPDX-License-Identifier: Apache-2.0
// Launches and occupancy.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "softgpu/driver/entry.h"

using namespace remora::softgpu;

namespace {

constexpr unsigned kMaxThreads = 1024;

struct Launch {
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  bool cooperative = false;
};

/// The parameter block, from one pointer per parameter or from a packed buffer in `extra`.
CUresult pack_parameters(const KernelSignature& signature, void** parameters, void** extra,
                         std::vector<std::byte>& block) {
  block.assign(signature.parameter_bytes, std::byte{0});
  if (extra != nullptr) {
    REMORA_REQUIRE(parameters == nullptr);
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = extra[i + 1];
      } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        size = *static_cast<const std::size_t*>(extra[i + 1]);
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    REMORA_REQUIRE(size == 0 || buffer != nullptr);
    if (size != 0) std::memcpy(block.data(), buffer, std::min(size, block.size()));
    return CUDA_SUCCESS;
  }
  REMORA_REQUIRE(parameters != nullptr || signature.parameters.empty());
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    REMORA_REQUIRE(parameters[i] != nullptr);
    std::memcpy(block.data() + signature.parameters[i].offset, parameters[i],
                signature.parameters[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult check_shape(Function& function, const KernelResources& resources, const Launch& launch) {
  const auto& a = function.module->context->device->attributes;
  const auto within = [&](unsigned value, CUdevice_attribute limit) {
    return value >= 1 && value <= static_cast<unsigned>(a.at(limit));
  };
  REMORA_REQUIRE(within(launch.grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
                 within(launch.grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
                 within(launch.grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) &&
                 within(launch.block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
                 within(launch.block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) &&
                 within(launch.block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  REMORA_REQUIRE(threads <= kMaxThreads);
  const auto& required = function.signature->required_threads;
  if (required[0] != 0) {
    REMORA_REQUIRE(launch.block.x == required[0] && launch.block.y == required[1] &&
                   launch.block.z == required[2]);
  }
  if (threads > resources.max_threads_per_block) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const auto most = static_cast<unsigned>(function.max_dynamic_shared_bytes.load());
  const unsigned usable = most == 48u << 10 ? most - std::min(most, resources.static_shared_bytes) : most;
  REMORA_REQUIRE(launch.shared_bytes <= usable);
  return CUDA_SUCCESS;
}

/// What a kernel prints appears when it ends, unmixed with what another prints.
LaunchHooks make_hooks(Context& context, const std::shared_ptr<std::string>& printed) {
  const auto mutex = std::make_shared<std::mutex>();
  LaunchHooks hooks;
  hooks.print = [printed, mutex](std::string_view text) {
    const std::lock_guard hold(*mutex);
    *printed += text;
  };
  hooks.report_assert = [](std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  hooks.allocate = [&context](std::uint64_t size) {
    return context.heap.allocate(*Driver::get()->memory, context.device->ordinal,
                                 context.limits[CU_LIMIT_MALLOC_HEAP_SIZE], size);
  };
  hooks.release = [&context](std::uint64_t address) { return context.heap.release(address); };
  return hooks;
}

void run_to_end(Context& context, const std::shared_ptr<const Kernel>& kernel,
                const LaunchShape& shape, const std::vector<std::byte>& block) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Fault fault;
  const auto printed = std::make_shared<std::string>();
  Driver::get()->engine.launch(kernel, shape, block, 
                               Driver::get()->memory->view(context.device->ordinal), make_hooks(context, printed),
                               [&](const Fault& given) {
                                 const std::lock_guard hold(mutex);
                                 fault = given;
                                 done = true;
                                 ended.notify_one();
                               });
  std::unique_lock hold(mutex);
  ended.wait(hold, [&] { return done; });
  if (!printed->empty()) {
    std::fwrite(printed->data(), 1, printed->size(), stdout);
    std::fflush(stdout);
  }
  if (fault.kind == Fault::Kind::none) return;
  remora::log::error("software GPU: {}", fault.text);
  context.failed = result_of(fault.kind);
}

CUresult launch_kernel(CUfunction handle, const Launch& launch, CUstream stream_handle,
                       void** parameters, void** extra, bool per_thread) {
  REMORA_USE_STREAM(stream, stream_handle, per_thread);
  CUresult result;
  Function* function = find_function(*stream.context, handle, result);
  if (function == nullptr) return result;
  std::shared_ptr<const Kernel> kernel;
  if ((result = prepare(*function, kernel)) != CUDA_SUCCESS) return result;
  if ((result = check_shape(*function, kernel->resources(), launch)) != CUDA_SUCCESS) return result;
  std::vector<std::byte> block;
  if ((result = pack_parameters(*function->signature, parameters, extra, block)) != CUDA_SUCCESS) {
    return result;
  }
  const LaunchShape shape{launch.grid, launch.block, launch.shared_bytes, launch.cooperative};
  stream.context->submit(stream.stream, [context = stream.context, kernel = std::move(kernel), shape, block = std::move(block)] {
    run_to_end(*context, kernel, shape, block);
  });
  return CUDA_SUCCESS;
}

CUresult launch_with_attributes(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                void** extra, bool per_thread) {
  REMORA_REQUIRE(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr));
  Launch launch{{config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z > 1) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:  // later work just starts later
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return launch_kernel(function, launch, config->hStream, parameters, extra, per_thread);
}

CUresult occupancy(int* blocks, CUfunction handle, int block_size, std::size_t dynamic_bytes) {
  REMORA_REQUIRE(blocks != nullptr && block_size > 0);
  REMORA_USE_CONTEXT(context);
  CUresult result;
  Function* function = find_function(*context, handle, result);
  if (function == nullptr) return result;
  std::shared_ptr<const Kernel> kernel;
  if ((result = prepare(*function, kernel)) != CUDA_SUCCESS) return result;
  const auto& a = context->device->attributes;
  const KernelResources& r = kernel->resources();
  if (static_cast<unsigned>(block_size) > r.max_threads_per_block) {
    *blocks = 0;
    return CUDA_SUCCESS;
  }
  // What each resource of a multiprocessor has room for; whole warps are allocated.
  const int threads = (block_size + 31) / 32 * 32;
  int most = a.at(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  most = std::min(most, a.at(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threads);
  most = std::min(most, a.at(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) /
                            (static_cast<int>(r.registers) * threads));
  const std::size_t shared = r.static_shared_bytes + dynamic_bytes +
                             static_cast<std::size_t>(a.at(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  const auto available = static_cast<std::size_t>(a.at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  most = std::min(most, static_cast<int>(available / shared));
  *blocks = most;
  return CUDA_SUCCESS;
}

}  // namespace

#define REMORA_LAUNCH_SHAPE                                                                        \
  unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, \
      unsigned int shared, CUstream stream
REMORA_API(cuLaunchKernel)(CUfunction f, REMORA_LAUNCH_SHAPE, void** parameters, void** extra) {
  return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, parameters, extra, false);
}
REMORA_API(cuLaunchKernel_ptsz)(CUfunction f, REMORA_LAUNCH_SHAPE, void** parameters, void** extra) {
  return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, parameters, extra, true);
}
REMORA_API(cuLaunchCooperativeKernel)(CUfunction f, REMORA_LAUNCH_SHAPE, void** parameters) {
  return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr, false);
}
REMORA_API(cuLaunchCooperativeKernel_ptsz)(CUfunction f, REMORA_LAUNCH_SHAPE, void** parameters) {
  return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr, true);
}
REMORA_API(cuLaunchKernelEx)(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return launch_with_attributes(config, f, parameters, extra, false);
}
REMORA_API(cuLaunchKernelEx_ptsz)(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return launch_with_attributes(config, f, parameters, extra, true);
}

REMORA_API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CUfunction f, int size, std::size_t dynamic) {
  return occupancy(blocks, f, size, dynamic);
}
REMORA_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int* blocks, CUfunction f, int size,
                                                                 std::size_t dynamic, unsigned int flags) {
  REMORA_REQUIRE((flags & ~1u) == 0);
  return occupancy(blocks, f, size, dynamic);
}
REMORA_API(cuOccupancyAvailableDynamicSMemPerBlock)(std::size_t* bytes, CUfunction f, int blocks, int size) {
  REMORA_REQUIRE(bytes != nullptr && blocks > 0 && size > 0);
  REMORA_USE_CONTEXT(context);
  CUresult result;
  Function* function = find_function(*context, f, result);
  if (function == nullptr) return result;
  std::shared_ptr<const Kernel> kernel;
  if ((result = prepare(*function, kernel)) != CUDA_SUCCESS) return result;
  const auto& a = context->device->attributes;
  const int each = a.at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / blocks -
                   a.at(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) -
                   static_cast<int>(kernel->resources().static_shared_bytes);
  *bytes = static_cast<std::size_t>(std::max(each, 0));
  return CUDA_SUCCESS;
}
