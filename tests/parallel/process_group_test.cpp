#include "src/parallel/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "src/core/error.h"
#include "src/parallel/gradient_sum.h"
#include "src/parallel/membership.h"
#include "tests/support/catch2.h"
#include "tests/support/threads_as_processes.h"

namespace settrain {
namespace {

using Catch::Contains;
using namespace test;

TEST_CASE("NCCL waits until Gloo has failed and the failed process is named") {
  for (const double seconds : {1.0, 300.0, 86400.0}) {
    const ParallelOptions options{.backend = "auto", .timeout = seconds};
    CHECK(options.gloo_timeout() == std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds)));
    CHECK(options.nccl_timeout() >= options.gloo_timeout() + 4 * kPatience);
  }
}

TEST_CASE("processes tell each other tensors and texts, in the order of their ranks") {
  std::vector<at::Tensor> gathered(3), exchanged(3), taken(3);
  std::vector<std::vector<std::string>> texts(3);
  in_processes(3, [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const double mine = static_cast<double>(group.rank());
    gathered[rank] = group.all_gather(at::full({2}, mine, at::kDouble));
    exchanged[rank] = group.all_to_all(at::arange(6, at::kDouble) + 10 * mine);
    taken[rank] = at::full({4}, mine);
    group.broadcast({taken[rank]});
    texts[rank] = group.all_gather(std::string(rank, 'x'));
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    CHECK(gathered[rank].equal(at::arange(3, at::kDouble).unsqueeze(1).expand({3, 2})));
    const double at = 2.0 * static_cast<double>(rank);
    CHECK(
        exchanged[rank].equal(at::tensor({at, at + 1, at + 10, at + 11, at + 20, at + 21}, at::kDouble).view({3, 2})));
    CHECK(taken[rank].equal(at::zeros({4})));
    CHECK(texts[rank] == std::vector<std::string>{"", "x", "xx"});
  }
}

TEST_CASE("gradients are added in the order of the micro-batches, whoever holds them") {
  constexpr int64_t kMicroBatches = 5;
  const auto gradient = [](int64_t batch, const at::Tensor& parameter) {
    at::manual_seed(static_cast<uint64_t>(100 * batch + parameter.numel()));
    return at::randn(parameter.sizes()) * std::pow(10.0, static_cast<double>(batch % 3) - 1);
  };
  const std::vector<at::Tensor> shapes{at::zeros({3, 5}), at::zeros({7}), at::zeros({2, 2, 3, 3})};
  std::vector<at::Tensor> expected;
  for (const at::Tensor& shape : shapes) {
    at::Tensor sum = gradient(0, shape);
    for (int64_t batch = 1; batch < kMicroBatches; ++batch) sum = sum + gradient(batch, shape);
    expected.push_back(sum);
  }
  std::vector<std::vector<at::Tensor>> drawn;
  for (int64_t batch = 0; batch < kMicroBatches; ++batch) {
    drawn.emplace_back();
    for (const at::Tensor& shape : shapes) drawn.back().push_back(gradient(batch, shape));
  }
  for (const int64_t world : {1, 2, 3, 4}) {
    CAPTURE(world);
    in_processes(world, [&](ProcessGroup& group) {
      std::vector<at::Tensor> parameters;
      for (const at::Tensor& shape : shapes) parameters.push_back(shape.clone().requires_grad_());
      parameters[2] = parameters[2].detach().contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
      const auto sum = make_gradient_sum(group, parameters, std::nullopt);
      sum->start();
      for (int64_t first = 0; first < kMicroBatches; first += world) {
        const int64_t own = first + group.rank();
        for (size_t p = 0; p < parameters.size() && own < kMicroBatches; ++p) {
          parameters[p].mutable_grad() = drawn[static_cast<size_t>(own)][p].clone();
        }
        std::vector<int64_t> contributors;
        for (int64_t rank = 0; rank < world && first + rank < kMicroBatches; ++rank) contributors.push_back(rank);
        sum->end_round(contributors);
      }
      sum->finish();
      for (size_t p = 0; p < parameters.size(); ++p) {
        if (!parameters[p].grad().equal(expected[p])) throw Error("another sum");
      }
    });
  }
}

TEST_CASE("gradients are added in buckets while the backward pass goes on") {
  const auto loss_of = [](const std::vector<at::Tensor>& parameters, double factor) {
    // The last parameter has no gradient.
    return factor * ((parameters[0] * parameters[0]).sum() + (parameters[1] * parameters[0].sum()).sum());
  };
  const auto fresh = [] {
    std::vector<at::Tensor> parameters{at::arange(6, at::kFloat).view({2, 3}), at::full({4}, 2.0), at::ones({3})};
    for (at::Tensor& parameter : parameters) parameter.requires_grad_();
    return parameters;
  };
  std::vector<at::Tensor> expected = fresh();
  loss_of(expected, 1 + 2 + 3).backward();  // of both rounds
  for (const int64_t bytes : {1, 20, 1000}) {
    CAPTURE(bytes);
    in_processes(2, [&](ProcessGroup& group) {
      const std::vector<at::Tensor> parameters = fresh();
      const auto sum = make_gradient_sum(group, parameters, bytes);
      for (int step = 0; step < 2; ++step) {
        for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
        sum->start();
        sum->begin_round(/*is_last=*/false);
        loss_of(parameters, 1 + static_cast<double>(group.rank())).backward();
        sum->end_round({0, 1});
        sum->begin_round(/*is_last=*/true);
        if (group.is_first()) loss_of(parameters, 3).backward();  // the other one has no part in it
        sum->end_round({0});
        sum->finish();
        for (size_t p = 0; p < 2; ++p) {
          if (!at::allclose(parameters[p].grad(), expected[p].grad())) throw Error("another sum");
        }
        if (parameters[2].grad().count_nonzero().item<int64_t>() != 0) throw Error("a gradient from nowhere");
      }
    });
  }
}

TEST_CASE("what fails in the first process fails in all") {
  std::vector<std::string> told(2);
  in_processes(2, [&](ProcessGroup& group) {
    bool is_done = false;
    group.first_does([&] { is_done = true; });
    if (is_done != group.is_first()) throw Error("done elsewhere");
    try {
      group.first_does([] { throw RunError("the disk is full"); });
    } catch (const RunError& error) {
      told[0] = error.what();
    } catch (const AgreedError& error) {
      told[1] = error.what();
    }
    group.all_gather(at::zeros({1}));  // all go on
  });
  CHECK(told == std::vector<std::string>{"the disk is full", "process 0: the disk is full"});
}

TEST_CASE("a process that does not come is named") {
  CHECK_THROWS_WITH(ProcessGroup(launch_of(0, 2, free_port()), gloo(1), at::kCPU),
                    Contains("process 1 of 2 has not come within 1 s (parallel.timeout)"));
}

TEST_CASE("a second process that comes as one that is there is refused, and disturbs nobody") {
  const uint16_t port = free_port();
  std::atomic<int> refused = 0, met = 0;
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      try {
        ProcessGroup group(launch_of(i == 0 ? 0 : 1, 2, port), gloo(), at::kCPU);
        ++met;
        while (refused == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        group.all_gather(at::zeros({1}));
      } catch (const std::exception& error) {
        errors[i] = error.what();
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(met == 2);
  CHECK(errors[0].empty());
  CHECK_THAT(errors[1] + errors[2],
             Contains(fmt::format("process 1 of 2 is at the store at 127.0.0.1:{} already", port)));
}

TEST_CASE("a process whose own thread hangs is named, though its heart beats") {
  const uint16_t port = free_port();
  std::promise<void> done;
  std::string told;
  std::thread hanging([&] {
    ProcessGroup group(launch_of(1, 2, port), gloo(1), at::kCPU);
    done.get_future().wait();
  });
  std::thread waiting([&] {
    ProcessGroup group(launch_of(0, 2, port), gloo(1), at::kCPU);
    try {
      group.all_gather(at::zeros({1}));
    } catch (const ParallelError& error) {
      told = error.what();
    }
    done.set_value();
  });
  waiting.join();
  hanging.join();
  CHECK_THAT(told, Contains("process 1 of 2 hangs, or takes longer than parallel.timeout") && Contains("gathering"));
}

TEST_CASE("a store that is not there is named") {
  CHECK_THROWS_WITH(ProcessGroup(launch_of(1, 2, free_port()), gloo(1), at::kCPU),
                    Contains("process 1 of 2 cannot reach the store at 127.0.0.1:"));
}

TEST_CASE("a process that ends before it came is reported to those that wait for it") {
  const uint16_t port = free_port();
  std::string told;
  const auto start = std::chrono::steady_clock::now();
  std::thread absent([&] { ProcessGroup::report_absence(launch_of(1, 2, port), "no such file"); });
  std::thread waiting([&] {
    try {
      ProcessGroup group(launch_of(0, 2, port), gloo(300), at::kCPU);
    } catch (const ParallelError& error) {
      told = error.what();
    }
  });
  absent.join();
  waiting.join();
  CHECK(told == "process 1: no such file");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("a process that ends by an error is named with it to the others") {
  const uint16_t port = free_port();
  std::string told;
  std::thread failing([&] {
    ProcessGroup group(launch_of(1, 2, port), gloo(3), at::kCPU);
    group.report_failure("the disk is full\nand more");
  });
  std::thread waiting([&] {
    ProcessGroup group(launch_of(0, 2, port), gloo(3), at::kCPU);
    failing.join();
    try {
      group.all_gather(at::zeros({1}));
    } catch (const ParallelError& error) {
      told = error.what();
    }
  });
  waiting.join();
  CHECK_THAT(told, Contains("process 1: the disk is full") && !Contains("and more"));
}

}  // namespace
}  // namespace settrain
