#include "src/parallel/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenQuestions{100};
constexpr const char *kVerdict = "verdict", *kReady = "ready", *kAllReady = "all_ready";

std::string key_of(const char* what, int64_t rank) {
  return fmt::format("{}/{}", what, rank);
}

// It ends, though it may still ask why; it needs the store no more.
std::string end_of(int64_t rank) {
  return key_of("ends", rank);
}
std::string left_by(int64_t rank) {
  return key_of("left", rank);
}

c10::intrusive_ptr<c10d::Store> part_of(const Launch& launch, const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::PrefixStore>("settrain/" + launch.attempt, store);
}

}  // namespace

Membership::Membership(const Launch& launch, std::chrono::milliseconds timeout)
    : rank_(launch.rank),
      world_size_(launch.world_size),
      keeps_store_(launch.rank == 0 && !launch.launcher_keeps_store),
      keeper_(launch.launcher_keeps_store ? "the launcher, which keeps the store,"
                                          : fmt::format("process 0 of {}, which keeps the store,", launch.world_size)),
      timeout_(timeout),
      store_(part_of(launch, connect_to_store(launch, timeout))),
      client_(store_, timeout),
      heartbeat_(store_->clone(), launch.rank) {
  ask("coming to the others", [&] {
    if (client_.add(key_of("here", rank_), 1) == 1) return;
    throw ParallelError(
        fmt::format("process {} of {} is at the store at {}:{} already: another training has this address; give each "
                    "its own MASTER_PORT",
                    rank_, world_size_, launch.host, launch.port));
  });
}

void Membership::ask(const char* what, const std::function<void()>& questions) {
  try {
    questions();
  } catch (const ParallelError&) {
    throw;
  } catch (const StoreSilent&) {
    throw ParallelError(fmt::format("{} does not answer ({})", keeper_, what));
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("{} has ended ({}: {})", keeper_, what, cause(error)));
  }
}

void Membership::meet() {
  const auto deadline = Clock::now() + timeout_;
  ask("waiting for the others", [&] {
    client_.set(key_of(kReady, rank_), "1");
    if (client_.add(kReady, 1) == world_size_) client_.set(kAllReady, "1");
    while (!client_.has({kAllReady})) {
      if (client_.has({kVerdict})) throw ParallelError(verdict());
      if (Clock::now() > deadline) {
        std::vector<int64_t> missing;
        for (int64_t other = 0; other < world_size_; ++other) {
          if (!client_.has({key_of(kReady, other)})) missing.push_back(other);
        }
        throw ParallelError(judge(fmt::format("process {} of {} has not come within {} s (parallel.timeout)",
                                              fmt::join(missing, ", "), world_size_, timeout_.count() / 1000),
                                  missing));
      }
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    client_.set_patience(kPatience);
  });
}

std::string Membership::reason_for(const std::string& error, bool is_overdue) {
  try {
    client_.set(end_of(rank_), "1");  // whoever looks for the culprit need not look here
    const Counts before = counts();
    for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
      if (client_.has({kVerdict})) return verdict();
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    std::vector<int64_t> gone;
    const std::string accused = accuse(before, counts(), is_overdue, gone);
    if (!accused.empty()) return judge(fmt::format("{} ({})", accused, error), gone);
    return judge(error, gone);
  } catch (const StoreSilent&) {
    return fmt::format("{} does not answer ({})", keeper_, error);
  } catch (const std::exception&) {
    return fmt::format("{} has ended ({})", keeper_, error);
  }
}

std::string Membership::accuse(const Counts& before, const Counts& after, bool is_overdue, std::vector<int64_t>& gone) {
  const int64_t most_calls = std::ranges::max(after.calls);
  std::vector<int64_t> late;
  for (int64_t other = 0; other < world_size_; ++other) {
    const auto i = static_cast<size_t>(other);
    const bool beats_on = after.beats[i] != before.beats[i], is_behind = after.calls[i] < most_calls;
    if ((beats_on && !is_behind) || client_.has({end_of(other)})) continue;
    (beats_on ? late : gone).push_back(other);
  }
  if (!gone.empty()) return fmt::format("process {} of {} was killed or hangs", fmt::join(gone, ", "), world_size_);
  if (late.empty() || !is_overdue) return "";
  gone = late;
  return fmt::format("process {} of {} hangs, or takes longer than parallel.timeout over what the others have done",
                     fmt::join(late, ", "), world_size_);
}

Membership::Counts Membership::counts() {
  Counts counts;
  for (int64_t other = 0; other < world_size_; ++other) {
    counts.beats.push_back(client_.add(beats_of(other), 0));
    counts.calls.push_back(client_.add(calls_of(other), 0));
  }
  return counts;
}

std::string Membership::judge(const std::string& message, const std::vector<int64_t>& gone) {
  const nlohmann::json mine{{"message", message}, {"gone", gone}};
  const std::string text = mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(client_.set_once(kVerdict, text)).at("message").get<std::string>();
}

std::string Membership::verdict() {
  return nlohmann::json::parse(client_.get(kVerdict)).at("message").get<std::string>();
}

void Membership::report_failure(const std::string& message) {
  judge(fmt::format("process {}: {}", rank_, first_line(message)), {});
}

void Membership::leave() {
  client_.set_patience(kPatience);
  client_.set(end_of(rank_), "1");
  client_.set(left_by(rank_), "1");
  if (!keeps_store_) return;
  std::vector<int64_t> gone;
  if (client_.has({kVerdict})) nlohmann::json::parse(client_.get(kVerdict)).at("gone").get_to(gone);
  std::vector<std::string> readers;
  for (int64_t other = 0; other < world_size_; ++other) {
    if (std::ranges::count(gone, other) == 0) readers.push_back(left_by(other));
  }
  for (const auto end = Clock::now() + 2 * kPatience; !client_.has(readers) && Clock::now() < end;) {
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

}  // namespace settrain
