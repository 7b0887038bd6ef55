// Every network with every loss.
#include <ATen/ATen.h>

#include <algorithm>

#include "models/cost.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "tests/losses/build_loss.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"

namespace settrain {

TEST_CASE("every network has finite gradients by every loss") {
  constexpr int64_t kClasses = 12, kMostParameters = 12'000'000;  // families of larger networks have smaller ones
  const Registries& registries = test::builtin_registries();
  int networks = 0;
  for (const ModelEntry& entry : registries.models.entries()) {
    CAPTURE(entry.name);
    int64_t most = entry.name.find("14") == std::string::npos ? 64 : 56;  // multiples of the patches
    if (entry.name.starts_with("inception")) most = 107;
    const int64_t channels = entry.usual.channels;
    const ModelContext context{kClasses, channels, std::min(entry.usual.height, most),
                               std::min(entry.usual.width, most)};
    const config::Config config =
        config::load({{model_section(registries.models)}, {}}, {}, {"model.name=" + entry.name, "model.head=two_head"});
    const bool is_alone = entry.name == "alexnet" || entry.name == "inception_v3";
    if (!is_alone && network_cost(entry, config, context).parameters > kMostParameters) continue;
    ++networks;
    at::manual_seed(1);
    const auto model = entry.make(config, context);
    const at::Tensor images = at::randn({2, channels, context.height, context.width});
    LossInput input = test::input_of({}, at::tensor({3, 7}, at::kLong));
    input.output = model->forward(images);
    at::Tensor sum = at::zeros({});
    for (const LossEntry& loss : registries.losses.entries()) {
      CAPTURE(loss.name);
      const at::Tensor value = (*test::build_loss(loss.name, test::context_of(kClasses)))(input).sum;
      REQUIRE(at::isfinite(value).item<bool>());
      sum = sum + value;
    }
    sum.backward();
    for (const auto& parameter : model->named_parameters()) {
      CAPTURE(parameter.key());
      REQUIRE(parameter.value().grad().defined());
      REQUIRE(at::isfinite(parameter.value().grad()).all().item<bool>());
    }
  }
  CHECK(networks > 15);
}

}  // namespace settrain
