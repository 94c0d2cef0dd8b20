// SPDX-License-Identifier: Apache-2.0
// What makes the software GPU a libcuda.so.1 for programs: the private tables that a CUDA runtime
// asks a driver for.
#include "softgpu/driver/entry.h"

#include "protocol/cudart/context_local_storage.h"
#include "protocol/cudart/export_tables.h"
#include "softgpu/driver/context_end.h"

namespace remora::softgpu {
namespace {

class Host final : public cudart::CudartHost {
 public:
  int driver_version() override { return Driver::kVersion; }

  std::vector<cudart::DeviceIdentity> device_identities() override {
    std::vector<cudart::DeviceIdentity> identities;
    for (const auto& device : Driver::get()->devices) {
      cudart::DeviceIdentity identity{};
      std::memcpy(identity.uuid.data(), device->uuid.bytes, identity.uuid.size());
      identity.pci_domain = 0;
      identity.pci_bus = device->attributes.at(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
      identity.pci_device = 0;
      identities.push_back(identity);
    }
    return identities;
  }

  CUresult primary_context(CUdevice ordinal, CUcontext* context) override {
    Device* device = device_at(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *context = reinterpret_cast<CUcontext>(&softgpu::primary_context(*device));
    return CUDA_SUCCESS;
  }

  CUcontext current_context() override {
    return reinterpret_cast<CUcontext>(softgpu::current_context());
  }

  CUresult context_id(CUcontext context, unsigned long long* id) override {
    return cuCtxGetId(context, id);
  }

  bool is_context(CUcontext context) override {
    return Driver::get()->handles.is(context, Handles::Kind::context);
  }

  CUresult load_module(CUmodule* module, const void* image) override {
    return cuModuleLoadData(module, image);
  }

  CUresult module_functions(CUmodule module, std::vector<CUfunction>* functions) override {
    unsigned int count = 0;
    if (const CUresult result = cuModuleGetFunctionCount(&count, module)) return result;
    functions->resize(count);
    return count == 0 ? CUDA_SUCCESS : cuModuleEnumerateFunctions(functions->data(), count, module);
  }
};

}  // namespace

void tell_context_ends(CUcontext context) { cudart::context_local_storage().destroy(context); }

}  // namespace remora::softgpu

REMORA_API(cuGetExportTable)(const void** table, const CUuuid* id) {
  // Never destroyed: the runtime calls from destructors.
  static auto* const host = new remora::softgpu::Host();
  remora::cudart::install_cudart_host(host);
  return remora::cudart::export_table(table, id);
}
