// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/kernel.h"

#include "softgpu/exec/program.h"

namespace remora::softgpu {

Kernel::Kernel(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Kernel::~Kernel() = default;

const std::string& Kernel::name() const { return program_->name; }
const KernelResources& Kernel::resources() const { return program_->resources; }

Result<std::shared_ptr<const Kernel>> KernelCache::prepare(std::string_view name) {
  const std::lock_guard hold(mutex_);
  const auto known = prepared_.find(std::string(name));
  if (known != prepared_.end()) return known->second;
  auto program = translate(module_, name);
  Result<std::shared_ptr<const Kernel>> answer =
      program.ok() ? Result<std::shared_ptr<const Kernel>>(
                         std::make_shared<const Kernel>(std::move(*program)))
                   : Result<std::shared_ptr<const Kernel>>(std::move(program).error());
  return prepared_.emplace(std::string(name), std::move(answer)).first->second;
}

}  // namespace remora::softgpu
