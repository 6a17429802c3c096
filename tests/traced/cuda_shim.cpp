// Makes a CPU build of torch accept tensors that say they live on `cuda`.
//
// Autocast, autograd and the attention dispatcher ask the CUDA hooks and the CUDA device guard whether a device exists.
// Without a CUDA build there are none, so backward stops with "Cannot access accelerator device". This file registers
// one imaginary device that does nothing: no kernel ever runs, because every tensor of a trace is a FakeTensor.

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

struct CUDAHooks : public at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};

struct ImaginaryCUDAGuard : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device getDevice() const override { return c10::Device(c10::DeviceType::CUDA, 0); }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return getStream(getDevice()); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};

} // namespace

namespace at {

REGISTER_CUDA_HOOKS(CUDAHooks)

// Takes the place of libtorch_cpu's own answer, which is "none" in a CPU build (the library is loaded first).
std::optional<c10::DeviceType> accelerator::getAccelerator(bool) { return c10::DeviceType::CUDA; }

} // namespace at

C10_REGISTER_GUARD_IMPL(CUDA, ImaginaryCUDAGuard)
