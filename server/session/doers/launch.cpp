// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "server/doers.h"
#include "server/session/session.h"

namespace remora::server::doers {
namespace {

/// The packed parameters, as a driver takes them.
class Packed {
 public:
  explicit Packed(Bytes parameters)
      : size_(parameters.size()),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(parameters.data()),
               CU_LAUNCH_PARAM_BUFFER_SIZE, &size_, CU_LAUNCH_PARAM_END} {}
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  void** extra() { return extra_; }

 private:
  std::size_t size_;
  void* extra_[5];
};

/// Attributes whose values are numbers. Others hold pointers or handles of the client's process.
constexpr std::array kAttributes = {
    CU_LAUNCH_ATTRIBUTE_IGNORE,
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
};

struct Launch {
  protocol::ObjectId kernel, stream;
  CUlaunchConfig config{};
  std::vector<CUlaunchAttribute> attributes;
  Bytes parameters;  // in the command's bytes
};

/// launch(driver, config, function, extra) → CUresult
template <typename Call>
void queue_launch(Session& session, Command command, Launch launch, Call call) {
  const Kernel* const kernel = session.find_kernel(launch.kernel);
  Stream* const stream = session.find_stream(launch.stream);
  if (kernel == nullptr || stream == nullptr) return session.reject(command, CUDA_ERROR_INVALID_HANDLE);
  session.queue_on_stream(
      std::move(command), *stream,
      [&session, kernel, stream, call, launch = std::move(launch)](const Command&) mutable {
        const CUfunction function = kernel->function_in(stream->context);
        if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        launch.config.hStream = stream->handle;
        launch.config.attrs = launch.attributes.data();
        launch.config.numAttrs = static_cast<unsigned>(launch.attributes.size());
        Packed packed(launch.parameters);
        return call(session.driver(), launch.config, function, packed.extra());
      });
}

template <typename Call>
Launch launch_of(const Call& call) {
  Launch launch{call.f, call.hStream};
  launch.config.gridDimX = call.gridDimX;
  launch.config.gridDimY = call.gridDimY;
  launch.config.gridDimZ = call.gridDimZ;
  launch.config.blockDimX = call.blockDimX;
  launch.config.blockDimY = call.blockDimY;
  launch.config.blockDimZ = call.blockDimZ;
  launch.config.sharedMemBytes = call.sharedMemBytes;
  launch.parameters = call.kernelParams;
  return launch;
}

CUresult launch_with_attributes(const DriverTable& driver, const CUlaunchConfig& config,
                                CUfunction function, void** extra) {
  if (driver.cuLaunchKernelEx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return driver.cuLaunchKernelEx(&config, function, nullptr, extra);
}

}  // namespace

void cuLaunchKernel(Session& session, Command command, const protocol::cuLaunchKernel_call& call) {
  queue_launch(session, std::move(command), launch_of(call),
               [](const DriverTable& driver, const CUlaunchConfig& c, CUfunction function, void** extra) {
                 return driver.cuLaunchKernel(function, c.gridDimX, c.gridDimY, c.gridDimZ, c.blockDimX,
                                              c.blockDimY, c.blockDimZ, c.sharedMemBytes, c.hStream,
                                              nullptr, extra);
               });
}

// By its attribute: the call itself takes no packed parameters.
void cuLaunchCooperativeKernel(Session& session, Command command,
                               const protocol::cuLaunchCooperativeKernel_call& call) {
  Launch launch = launch_of(call);
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  launch.attributes.push_back(cooperative);
  queue_launch(session, std::move(command), std::move(launch), launch_with_attributes);
}

void remora_launch(Session& session, Command command, const protocol::remora_launch_call& call) {
  Launch launch = launch_of(call);
  for (std::size_t i = 0; i < call.attributes.size(); ++i) {
    const remora_launch_attribute given = call.attributes[i];
    CUlaunchAttribute attribute{};
    attribute.id = static_cast<CUlaunchAttributeID>(given.id);
    if (std::find(kAttributes.begin(), kAttributes.end(), attribute.id) == kAttributes.end()) {
      return session.reject(command, CUDA_ERROR_NOT_SUPPORTED);
    }
    static_assert(sizeof attribute.value == sizeof given.value);
    std::memcpy(&attribute.value, given.value, sizeof attribute.value);
    launch.attributes.push_back(attribute);
  }
  queue_launch(session, std::move(command), std::move(launch), launch_with_attributes);
}

}  // namespace remora::server::doers
