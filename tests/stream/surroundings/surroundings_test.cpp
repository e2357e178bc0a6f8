// SPDX-License-Identifier: BSL-1.0
// Streams among files that are not theirs, and processes that write, recover, export and read one of them at
// the same time and are killed: random worlds, whose files are compared before and after.
#include "actors.hpp"
#include "objects.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <cctype>
#include <chrono>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

namespace {

using namespace surroundings;

/// What must have happened in the end.
struct {
  std::uint64_t rounds, kills, kills_in_the_middle, busy, foreign_refused, replaced_in_sight, looks,
      recovered, links, fifos, exported, left_behind;
} seen;

constexpr mode_t permissions = 0777;

bool is_hexadecimal(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}
/// What stands behind `beginning` in a name; nothing if it does not begin like that.
std::optional<std::string> behind(const std::string& name, const std::string& beginning) {
  if (!name.starts_with(beginning)) return std::nullopt;
  return name.substr(beginning.size());
}
/// The salt in the name of a data file of near/s; empty if it is none.
std::string salt_in(const std::string& name) {
  const std::optional<std::string> rest = behind(name, "near/s.weft-");
  if (!rest || rest->size() < 18 || (*rest)[16] != '-' || !is_hexadecimal(rest->substr(0, 16))) return {};
  return rest->find_first_not_of("0123456789", 17) == std::string::npos ? rest->substr(0, 16) : std::string();
}
/// The name that a file without a name has where there are none, and while it replaces another.
bool is_temporary(const std::string& name, const std::string& of) {
  const std::optional<std::string> rest = behind(name, of + ".weft-");
  return rest && is_hexadecimal(*rest);
}
/// The salt that an index names; empty if it is none.
std::string salt_of(const object& index) {
  if (!index.regular() || index.content.size() < 32 || !index.content.starts_with("\x89weftIX\n")) return {};
  char digits[17];
  std::uint64_t salt;
  std::memcpy(&salt, &index.content[8], sizeof salt);
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(salt));
  return digits;
}

/// One round.
class world {
 public:
  world(std::uint64_t seed, const std::string& root) : draw_(seed), root_(root + '/') {
    settings_.has_unnamed_files = !draw_.one_in(4);
    settings_.has_exclusive_renames = !draw_.one_in(6);
    static constexpr mode_t masks[] = {022, 027, 077, 002};
    mask_ = masks[draw_.below(4)];
  }

  /// *Returns*: what is wrong; nothing if all is well.
  std::string play() {
    ::umask(mask_);
    ::mkdir((root_ + "near").c_str(), 0777);
    ::mkdir((root_ + "far").c_str(), 0777);
    for (const char* const name : {"far/victim", "far/another", "near/thesis"})
      make(kind::text, root_ + name, "", draw_);
    std::string problem = give_history_();
    if (!problem.empty()) return problem;
    plant_();
    before_ = scan_();
    expect_();
    problem = act_together_();
    after_ = between_ = scan_();
    if (problem.empty()) problem = compare_(true);
    if (problem.empty()) problem = look_at_the_end_();
    if (problem.empty()) problem = put_in_order_();
    return problem;
  }
  std::string text() const {
    std::ostringstream all;
    all << "umask " << std::oct << mask_ << std::dec << ", unnamed files " << settings_.has_unnamed_files
        << ", exclusive renames " << settings_.has_exclusive_renames << "\n"
        << told_.str();
    all << "before:\n";
    for (const auto& [name, o] : before_)
      all << "  " << name << (own_.contains(name) ? " (weft's)" : "")
          << (loose_.contains(name) ? " (loose)" : "") << ": " << o.text() << '\n';
    const auto changes = [&](const objects& from, const objects& to) {
      for (const auto& [name, o] : from)
        if (!to.contains(name)) all << "  " << name << " is gone\n";
      for (const auto& [name, o] : to)
        if (!from.contains(name) || !from.at(name).same_as(o))
          all << "  " << name << ": " << o.text() << '\n';
    };
    all << "after that, changed:\n";
    changes(before_, between_);
    if (after_.empty()) return all.str();
    all << "in the end, changed:\n";
    changes(between_, after_);
    return all.str();
  }

 private:
  objects scan_() const {
    objects all;
    scan(root_, "", all);
    all.erase("near");  // its time changes
    return all;
  }
  std::string path_() const { return root_ + "near/s"; }
  std::string other_() const { return root_ + "near/e"; }
  static bool is_root() { return ::geteuid() == 0; }

  order draw_order_(verb what) {
    order o;
    o.what = what;
    o.overwrite = !draw_.one_in(3);
    o.segmented = draw_.one_in(2);
    o.in_tasks = draw_.one_in(16);
    o.abandoned = draw_.one_in(12);
    o.parts = static_cast<unsigned>(1 + draw_.below(8));
    static constexpr std::uint64_t steps[] = {0, 1, 1000, 4096, 20000};
    o.commit_every = steps[draw_.below(5)];
    o.settings = settings_;
    o.settings.seed = draw_();
    if (what == verb::write) {
      o.written = {.number = static_cast<std::uint32_t>(1000 + versions_.size()), .size = draw_size(draw_)};
      versions_.push_back(o.written);
    }
    return o;
  }
  void tell_(const order& o, const report& r, const std::string& end) {
    static const char* const verbs[] = {"write", "recover", "export", "ask", "look"};
    told_ << "  " << verbs[int(o.what)] << (o.overwrite ? ", overwrite" : "")
          << (o.segmented ? ", segmented" : "") << (o.in_tasks ? ", tasks" : "")
          << (o.abandoned ? ", abandoned" : "");
    if (o.what == verb::write)
      told_ << ", version " << o.written.number << " of " << o.written.size << " bytes, commit_every "
            << o.commit_every;
    told_ << ", times " << o.times << ", stall_at " << o.settings.stall_at << ", die_at " << o.settings.die_at
          << ", kill_after " << o.kill_after << ": stage " << int(r.reached.load()) << ", "
          << (end.empty() ? "" : end + ' ') << r.text << '\n';
  }

  /// Does one thing, alone and at once.
  std::string do_(const order& o, const std::string& path, const expectation& expected = {}) {
    report& r = shared_reports()[most_actors - 1];
    actor one(r, [&](report& mine) {
      mine.stop = true;
      act(path, other_(), o, expected, mine);
    });
    one.wait();
    tell_(o, r, one.killed() ? "killed" : "");
    return one.problem();
  }

  /// What earlier processes have left: a finished stream, an unfinished one, and those of another name.
  std::string give_history_() {
    std::string problem;
    const auto write = [&](const std::string& path, bool killed) {
      order o = draw_order_(verb::write);
      o.overwrite = true;
      if (!killed) {
        o.abandoned = false;
      } else if (!o.abandoned) {
        o.settings.die_at = 8 + static_cast<long>(draw_.below(40));
      }
      if (problem.empty()) problem = do_(o, path);
      if (!killed) versions_.back().complete = true;
    };
    if (draw_.one_in(2)) {
      write(path_(), false);
      static constexpr mode_t modes[] = {0640, 0600, 0664, 0755, 0644};
      if (draw_.one_in(2)) ::chmod(path_().c_str(), modes[draw_.below(5)]);
      if (draw_.one_in(4) && is_root() && ::chown(path_().c_str(), 12345, 54321) != 0) return "chown fails";
    }
    if (draw_.one_in(3)) {
      write(path_(), true);
      has_leftovers_ = true;
      ++seen.left_behind;
    }
    has_others_ = draw_.one_in(6);
    if (has_others_) write(root_ + "far/t", !draw_.one_in(3));
    return problem;
  }

  /// Puts things that are not weft's at names near the stream's.
  void plant_() {
    for (const auto& [name, o] : scan_())
      if (name == "near/s" || name == "near/s.weft-part" || name == "near/s.weft-log" ||
          !salt_in(name).empty() || is_temporary(name, "near/s"))
        own_.insert(name);
    if (has_leftovers_ && draw_.one_in(5)) tamper_();
    std::vector<std::string> names = {"near/s.part",
                                      "near/s.log",
                                      "near/s.0",
                                      "near/s.1",
                                      "near/s.60",
                                      "near/s.recovered",
                                      "near/s.weft-",
                                      "near/s.weft-tmp",
                                      "near/s.weft-0123456789abcdef",
                                      "near/s.weft-part.weft-log",
                                      "near/s.weft-log~",
                                      "near/s~",
                                      "near/.s",
                                      "near/e",
                                      "near/s.weft-0123456789abcdef-0",
                                      "near/s.weft-0123456789abcdef-1"};
    for (const auto& [name, o] : scan_())
      if (const std::string salt = salt_in(name); !salt.empty())
        for (const char* number : {"0", "1", "2", "x", "01"})
          names.push_back("near/s.weft-" + salt + '-' + number);
    if (has_others_ && draw_.one_in(2)) copy_others_();
    for (std::uint64_t i = draw_.below(10); i > 0; --i) plant_one_(names[draw_.below(names.size())]);
    if (draw_.one_in(5)) plant_one_("near/s.weft-part");
    if (draw_.one_in(5)) plant_one_("near/s.weft-log");
    if (draw_.one_in(3)) plant_one_("near/s");
    if (draw_.one_in(12) && own_.contains("near/s.weft-part") &&
        ::link((root_ + "near/s.weft-part").c_str(), (root_ + "near/same").c_str()) == 0)
      obstructed_ = true;  // recovery would change it
  }
  void plant_one_(const std::string& name) {
    // A file that gets the inode number of one that a killed writer has left without a name, within a tick of
    // the file system's clock, cannot be told from that one.
    if (name == "near/s.weft-part" && has_leftovers_)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const kind what = static_cast<kind>(draw_.below(11));
    const std::string victim = root_ + (draw_.one_in(2) ? "far/victim" : "near/thesis");
    if (!make(what, root_ + name, victim, draw_)) return;
    seen.links += what == kind::link || what == kind::link_to_directory || what == kind::dangling_link;
    seen.fifos += what == kind::fifo;
    if (name == "near/s") obstructed_ |= what >= kind::magic;
    if (struct stat about; name == "near/s" && !is_root() && ::lstat((root_ + name).c_str(), &about) == 0 &&
                           S_ISREG(about.st_mode) &&
                           ::chmod((root_ + name).c_str(), about.st_mode | 0400) != 0)
      std::abort();  // what its owner may not read cannot be looked at
    if (name == "near/s.weft-part" || name == "near/s.weft-log") obstructed_ = true;
    if (what == kind::magic && name == "near/s") confusing_ = true;
    if (is_root() && draw_.one_in(8) && ::lchown((root_ + name).c_str(), 1111, 2222) != 0) std::abort();
  }
  /// Something else stands where a writer has left its file.
  void tamper_() {
    obstructed_ = true;
    const std::string name = draw_.one_in(2) ? "near/s.weft-part" : "near/s.weft-log";
    if (own_.erase(name) == 0) return;
    // The inode number stays taken: a file that gets the same one within a tick of the file system's clock
    // cannot be told from that of the writer.
    const int held = ::open((root_ + name).c_str(), O_PATH);
    ::unlink((root_ + name).c_str());
    if (!draw_.one_in(3)) plant_one_(name);
    ::close(held);
    if (name == "near/s.weft-part") return;
    // Nothing vouches for what is left.
    log_lost_ = true;
    std::set<std::string> kept;
    for (const std::string& own : own_)
      if (own != "near/s") loose_.insert(own);
    confusing_ = true;
  }
  /// Files of another stream that was copied, or renamed by hand. weft may take them for its own.
  void copy_others_() {
    for (const auto& [name, o] : scan_()) {
      const std::optional<std::string> rest = behind(name, "far/t");
      if (!rest || rest->empty() || !o.regular() || draw_.one_in(3) || look_at(root_ + "near/s" + *rest))
        continue;
      weft_test::spill(root_ + "near/s" + *rest, o.content);
      loose_.insert("near/s" + *rest);
      obstructed_ = confusing_ = true;
    }
  }

  /// What may be found under the final name from now on.
  void expect_() {
    const auto found = before_.find("near/s");
    expected_.may_be_absent = found == before_.end();
    if (found == before_.end()) return;
    object target = found->second;
    if (S_ISLNK(target.about.st_mode)) {
      if (::stat(path_().c_str(), &target.about) != 0) {
        expected_.may_be_absent = true;
      } else if (target.regular()) {
        target.content = look_at(target.content)->content;
      }
    }
    if (target.regular() && !own_.contains("near/s")) expected_.foreign.push_back(target.content);
    const bool readable = is_root() || (target.about.st_mode & 0400) != 0;
    if (!target.regular() || !readable) expected_.may_be_refused = true;
    replaceable_ = found->second.regular() || S_ISLNK(found->second.about.st_mode);
  }

  std::string act_together_() {
    std::vector<order> orders;
    const std::size_t count = 1 + draw_.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      static constexpr verb verbs[] = {verb::write,   verb::write,     verb::write,
                                       verb::write,   verb::recover,   verb::recover,
                                       verb::recover, verb::export_to, verb::ask};
      order o = draw_order_(verbs[draw_.below(9)]);
      o.delay = static_cast<unsigned>(draw_.below(4) * draw_.below(300));
      o.settings.slow = static_cast<unsigned>(draw_.below(3) * draw_.below(10));
      if (draw_.one_in(5))
        o.settings.die_at = static_cast<long>(draw_.below(90));
      else if (draw_.one_in(6))
        o.kill_after = static_cast<long>(draw_.below(4000));
      const bool may_die = o.settings.die_at >= 0 || o.kill_after >= 0;
      const bool brief = o.what != verb::write;  // a recovery decides on all at its beginning
      if (draw_.one_in(2)) o.settings.stall_at = static_cast<long>(draw_.below(brief ? 15 : 45));
      if (o.overwrite && !o.abandoned && draw_.one_in(2)) o.times = static_cast<unsigned>(1 + draw_.below(6));
      if (o.what == verb::write) {
        versions_.back().complete = o.overwrite && !may_die && !o.abandoned && replaceable_;
        may_replace_ |= o.overwrite;
      }
      writers_ += o.what == verb::write || o.what == verb::recover;
      may_replace_ |= o.what == verb::recover && o.overwrite;
      may_export_over_ |= o.what == verb::export_to && o.overwrite;
      exports_ |= o.what == verb::export_to;
      may_die_ |= may_die;
      unfinished_ |= may_die || (o.what == verb::write && (o.abandoned || !o.overwrite));
      expected_.beginnings |= o.what == verb::recover;
      orders.push_back(o);
    }
    expected_.versions = versions_;
    expected_.may_be_refused |= confusing_;
    order looking;
    looking.what = verb::look;
    looking.settings = settings_;
    looking.settings.seed = draw_();
    looking.settings.slow = static_cast<unsigned>(draw_.below(2) * (1 + draw_.below(10)));
    orders.push_back(looking);

    std::vector<actor> actors;
    actors.reserve(orders.size());
    for (std::size_t i = orders.size(); i-- > 0;)  // who looks begins
      actors.emplace_back(shared_reports()[i],
                          [&](report& r) { act(path_(), other_(), orders[i], expected_, r); });
    for (std::size_t i = 1; i < actors.size(); ++i) actors[i].wait();
    actors[0].told().stop = true;
    actors[0].wait();
    std::string problem;
    for (std::size_t i = orders.size(); i-- > 0;) {
      const actor& a = actors[orders.size() - 1 - i];
      tell_(orders[i], a.told(), a.killed() ? "killed" : "");
      std::string wrong = a.problem();
      if (wrong.empty()) wrong = judge_(orders[i], a);
      if (problem.empty()) problem = wrong;
    }
    return problem;
  }
  /// Whether a process has ended in a way that is documented. Counts.
  std::string judge_(const order& o, const actor& a) const {
    const report& r = a.told();
    const std::string text = r.text;
    const auto says = [&](const char* part) { return text.find(part) != std::string::npos; };
    if (o.what == verb::look) {
      seen.looks += r.looks;
      seen.replaced_in_sight += r.replaced;
      return a.killed() ? "was killed" : "";
    }
    if (a.killed()) {
      ++seen.kills;
      seen.kills_in_the_middle +=
          o.what == verb::write && r.reached >= stage::opened && r.reached < stage::over;
      return {};
    }
    if (o.what == verb::write) seen.busy += r.busy;
    seen.recovered += o.what == verb::recover && r.how == ending::well;
    seen.exported += o.what == verb::export_to && r.how == ending::well;
    if (r.how == ending::well) return {};
    if (!says("near/s") && !says("near/e")) return "an error without a path: " + text;
    const int code = r.code;
    if (r.how == ending::system_error) {
      seen.foreign_refused += says("weft has not made it");
      const bool closed_out = code == EACCES && !is_root();
      const bool usual =
          code == EEXIST || (code == EBUSY && o.what == verb::write) ||
          ((code == ENOENT || code == ENXIO) && (o.what == verb::export_to || o.what == verb::ask));
      if (!usual && !closed_out) return "an error that is not documented: " + text;
      if (code == EBUSY && writers_ < 2) return "busy, but nobody else writes: " + text;
    } else {
      seen.foreign_refused += says("is a symbolic link") || says("is not an ordinary file");
    }
    if (obstructed_ || confusing_) return {};
    if (o.what == verb::write && o.overwrite && code != EBUSY) return "a writer without reason: " + text;
    if (o.what == verb::write && !o.overwrite && code != EBUSY && code != EEXIST)
      return "a writer without reason: " + text;
    if (o.what == verb::recover && !has_leftovers_ && !unfinished_) {
      const bool usual = (says("still being written") && writers_ > 1) ||
                         (says("there is no stream") && expected_.may_be_absent) || code == EEXIST;
      if (!usual) return "a recovery without reason: " + text;
    }
    return {};
  }

  /// Whether a name that was not there may be there now.
  bool may_appear_(const std::string& name) const {
    if (name == "near/s" || name == "near/s.weft-part" || name == "near/s.weft-log" || !salt_in(name).empty())
      return true;
    if (name == "near/e") return exports_;
    if (!may_die_) return false;
    return is_temporary(name, "near/s") || (exports_ && is_temporary(name, "near/e"));
  }
  std::string compare_(bool with_final_name) const {
    for (const auto& [name, was] : before_) {
      const auto now = after_.find(name);
      if (name == "near/s" && with_final_name) {
        if (now == after_.end()) return "what had the final name is gone";
        if (!(may_replace_ && replaceable_) && !now->second.same_as(was))
          return "what had the final name has changed, and should not be replaced";
        continue;
      }
      if (name == "near/s" || name == "far" || own_.contains(name) || loose_.contains(name)) continue;
      if (removed_.contains(name) || removed_.contains(name.substr(0, name.rfind('/')))) continue;
      if (name == "near/e" && may_export_over_ && (was.regular() || S_ISLNK(was.about.st_mode))) {
        if (now == after_.end() || !(now->second.regular() || now->second.same_as(was)))
          return "what was to be replaced by an export is gone";
        continue;
      }
      if (now == after_.end()) return name + ", which weft has not made, is gone";
      if (!now->second.same_as(was)) return name + ", which weft has not made, has changed";
    }
    for (const auto& [name, now] : after_)
      if (!before_.contains(name) && !may_appear_(name)) return "somebody has made " + name;
    return {};
  }
  /// The final name, when all have ended.
  std::string look_at_the_end_() {
    order o;
    o.what = verb::look;
    o.settings = settings_;
    const std::string problem = do_(o, path_(), expected_);
    if (!problem.empty()) return "in the end: " + problem;
    return check_access_();
  }
  std::string check_access_() const {
    const auto was = before_.find("near/s"), now = after_.find("near/s");
    if (now == after_.end() ||
        (was != before_.end() && (!was->second.regular() || now->second.same_as(was->second))))
      return {};
    const mode_t mode = was != before_.end() ? was->second.about.st_mode & permissions : 0666 & ~mask_;
    const auto wrong = [&](const object& o) {
      if ((o.about.st_mode & permissions) != mode) return true;
      return was != before_.end() && is_root() &&
             (o.about.st_uid != was->second.about.st_uid || o.about.st_gid != was->second.about.st_gid);
    };
    if (wrong(now->second)) return "the stream has not the access rights of the one that it replaced";
    const std::string salt = salt_of(now->second);
    for (const auto& [name, o] : after_)
      if (!salt.empty() && salt_in(name) == salt && !before_.contains(name) && wrong(o))
        return "a data file has not the access rights of its stream";
    return {};
  }

  /// Without what was in the way, all can be put in order.
  std::string put_in_order_() {
    for (const char* name : {"near/s", "near/s.weft-part", "near/s.weft-log"}) {
      const auto was = before_.find(name);
      if (was == before_.end() ||
          (own_.contains(name) && !(log_lost_ && name == std::string("near/s.weft-part"))))
        continue;
      const auto now = after_.find(name);
      const bool stays = name == std::string("near/s") && was->second.regular();
      if (stays || now == after_.end()) continue;
      // A recovery may have cut off a part that it took for weft's.
      const bool same = name == std::string("near/s.weft-part")
                            ? now->second.about.st_ino == was->second.about.st_ino
                            : now->second.same_as(was->second);
      if (!same) continue;
      remove_all(root_ + name);
      removed_.insert(name);
    }
    order o;
    o.what = draw_.one_in(2) ? verb::recover : verb::write;
    if (o.what == verb::recover) {
      o.overwrite = true;
      o.settings = settings_;
      const std::string problem = do_(o, path_());
      if (!problem.empty()) return "afterwards: " + problem;
    }
    o = draw_order_(verb::write);
    o.overwrite = true;
    o.abandoned = false;
    const std::string problem = do_(o, path_());
    if (!problem.empty()) return "afterwards: " + problem;
    if (const report& r = shared_reports()[most_actors - 1]; r.how != ending::well)
      return std::string("afterwards a new writer fails: ") + r.text;
    versions_.back().complete = true;
    after_ = scan_();
    const auto now = after_.find("near/s");
    if (now == after_.end()) return "afterwards there is no stream";
    const std::string salt = salt_of(now->second);
    for (const auto& [name, made] : after_) {
      if (name == "near/s" || (before_.contains(name) && !own_.contains(name)) || loose_.contains(name))
        continue;
      if (loose_.contains("near/s.weft-log") || loose_.contains("near/s.weft-part"))
        continue;  // who knows its past
      if (name == "near/s.weft-part" || name == "near/s.weft-log") return name + " is left for ever";
      if (const std::string its = salt_in(name); !its.empty() && its != salt)
        return name + " is left for ever";
    }
    o.what = verb::look;
    expectation now_expected;
    now_expected.versions = {versions_.back()};
    now_expected.may_be_absent = false;
    now_expected.may_be_refused = confusing_;
    const std::string found = do_(o, path_(), now_expected);
    return found.empty() ? compare_(false) : "afterwards: " + found;
  }

  weft_test::random draw_;
  const std::string root_;
  mode_t mask_;
  kernel_settings settings_;
  std::vector<version> versions_;
  objects before_, between_, after_;
  std::set<std::string> own_;      // made by weft before
  std::set<std::string> loose_;    // that may be taken for weft's
  std::set<std::string> removed_;  // by the test
  expectation expected_;
  bool has_leftovers_ = false, has_others_ = false, log_lost_ = false;
  bool obstructed_ = false;  // somebody may be refused
  bool confusing_ = false;   // and readers
  bool replaceable_ = true;
  bool may_replace_ = false, may_export_over_ = false, exports_ = false, may_die_ = false,
       unfinished_ = false;
  unsigned writers_ = 0;
  std::ostringstream told_;
};

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace

// WEFT_TEST_ROUND=<number> plays one round again, WEFT_TEST_ROUNDS times: what its processes do at the same
// time differs.
TEST_CASE("What stands beside a stream stays as it is, and what has its name is a whole version",
          "[surroundings]") {
  const weft_test::scratch in_memory(weft_test::medium::memory), on_disk;
  const bool one = std::getenv("WEFT_TEST_ROUND") != nullptr;
  const std::uint64_t first = number("WEFT_TEST_ROUND", 0);
  const std::uint64_t count = number("WEFT_TEST_ROUNDS", one ? 200 : weft_test::long_run() ? 10'000 : 700);
  const mode_t mask = ::umask(022);
  std::string failure;
  for (std::uint64_t i = 0; i < count && failure.empty(); ++i) {
    const std::uint64_t round = one ? first : i;
    const std::string root = (round % 4 == 3 ? on_disk : in_memory) / ("round-" + std::to_string(i));
    ::mkdir(root.c_str(), 0777);
    world w(weft_test::random(weft_test::seed())() + round, root);
    failure = w.play();
    if (!failure.empty())
      failure = "seed " + std::to_string(weft_test::seed()) + ", round " + std::to_string(round) +
                " (after " + std::to_string(i) + "): " + failure + '\n' + w.text();
    remove_all(root);
    ++seen.rounds;
  }
  ::umask(mask);
  std::fputs(failure.c_str(), stderr);
  REQUIRE(failure.empty());
  std::printf(
      "kills %llu, in the middle of writing %llu; busy %llu; refusals of what is foreign %llu; looks %llu, "
      "of which the "
      "next one found another version %llu; recovered %llu; exported %llu; leftovers %llu; links %llu, pipes "
      "%llu\n",
      (unsigned long long)seen.kills, (unsigned long long)seen.kills_in_the_middle,
      (unsigned long long)seen.busy, (unsigned long long)seen.foreign_refused, (unsigned long long)seen.looks,
      (unsigned long long)seen.replaced_in_sight, (unsigned long long)seen.recovered,
      (unsigned long long)seen.exported, (unsigned long long)seen.left_behind, (unsigned long long)seen.links,
      (unsigned long long)seen.fifos);
  weft_test::figure("stream_surroundings", seen.rounds);
  if (one) return;
  CHECK(seen.kills_in_the_middle > 0);
  CHECK(seen.busy > 0);
  CHECK(seen.foreign_refused > 0);
  CHECK(seen.replaced_in_sight > 0);
  CHECK(seen.recovered > 0);
  CHECK(seen.exported > 0);
  CHECK(seen.left_behind > 0);
  CHECK(seen.links > 0);
  CHECK(seen.fifos > 0);
}
