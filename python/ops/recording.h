// Autograd inside an operator's kernel.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace settrain {

/// Lets operations be recorded though this code runs below autograd.
class Recording {
 public:
  Recording() : keys_(included(), excluded()), mode_(true) {}

 private:
  static c10::DispatchKeySet included() { return c10::impl::tls_local_dispatch_key_set().included_; }
  static c10::DispatchKeySet excluded() {
    return c10::impl::tls_local_dispatch_key_set().excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  }

  c10::impl::ForceDispatchKeyGuard keys_;
  c10::AutoGradMode mode_;
};

}  // namespace settrain
