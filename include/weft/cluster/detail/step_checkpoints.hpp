// SPDX-License-Identifier: BSL-1.0
// The checkpoints of a step as files: each process writes a part while its tasks go on, process 0 names the
// parts when all are there, and any number of processes read them.
#pragma once

#include <weft/cluster/detail/checkpoint_file.hpp>
#include <weft/cluster/detail/message.hpp>
#include <weft/cluster/detail/step_record.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/io/directory.hpp>

#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// A part of a checkpoint, as it was written.
struct checkpoint_part {
  std::uint64_t size = 0;  // in bytes
  std::uint32_t checksum = 0;
};

/// The same, as a process reports it. `number`: of the checkpoint.
struct written_part {
  std::uint64_t number = 0;
  checkpoint_part part;
};

/// A whole checkpoint: what is in the file that names its parts.
struct checkpoint {
  std::uint64_t number = 0;  ///< drawn by lot; a part of the names of its files
  std::uint64_t done = 0;    ///< so many iterations
  std::vector<checkpoint_part> parts;
};

/// Whether an outcome is there.
template <class T>
bool is_ready(const std::future<T>& f) {
  return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// Those of one process. The file `path` names the last whole one, and is replaced at once; parts are files
/// "<path>.part-<number>-<which>". *Thread safety*: one thread, which is not kept waiting by files.
/// *Throws*: std::system_error; what a thread of its own has thrown, when its outcome is asked for.
class step_checkpoints {
 public:
  step_checkpoints(const step_record& step, const std::string& path)
      : in_(path), name_(io::directory::name_in(path)) {
    for (std::uint32_t o = 0; o < step.objects().size(); ++o)
      if (step.objects()[o].written) objects_.push_back({o, &step.objects()[o]});
  }

  /// Begins to write a part: the values of the objects for which `here` is true. *Requires*: none is being
  /// written. *Throws*: what packing throws.
  template <class Here>
  void write(std::uint64_t number, std::size_t which, const Here& here) {
    writer w;
    w.bytes().reserve(last_size_);
    for (std::uint32_t i = 0; i < objects_.size(); ++i) {
      if (!here(objects_[i].number)) continue;
      w(i);
      const item_frame value(w);
      objects_[i].of->kind->pack(objects_[i].of->at, w);
      value.close(w);
    }
    last_size_ = w.bytes().size();
    part_ = std::async(std::launch::async, [this, number, which, all = std::move(w.bytes())] {
      const std::string name = part_name_(number, which);
      io::file f = in_.create(name, 0666);
      try {
        f.write_at(all.data(), all.size(), 0);
        f.sync_data();
        f.close();
      } catch (...) {
        in_.remove(name);
        throw;
      }
      return written_part{number, {all.size(), io::crc32c(all.data(), all.size())}};
    });
  }
  /// *Returns*: the part, once, when it is written; nothing before. `wait`: not before it is.
  std::optional<written_part> take_written(bool wait) {
    if (!is_ready_(part_, wait)) return std::nullopt;
    return part_.get();
  }
  /// Whether no part is being written.
  bool is_written() const { return !part_.valid() || is_ready(part_); }
  /// Waits for a part that nobody needs.
  void forget() noexcept {
    try {
      take_written(true);
    } catch (...) {  // nor its exception
    }
  }
  /// Begins to make it the last whole one. *Requires*: all parts are written; none is being named.
  void publish(checkpoint c) {
    published_ = std::async(std::launch::async, [this, c = std::move(c)] {
      writer w;
      w.put(magic_.data(), magic_.size());
      w(identity_(), c.number, c.done, c.parts);
      w(io::crc32c(w.bytes().data(), w.bytes().size()));
      in_.sync();  // the names of the parts
      publish_file(in_, name_, true,
                   [&w](io::file& f) { f.write_at(w.bytes().data(), w.bytes().size(), 0); });
      tidy(c.number);
    });
  }
  /// Whether what was published is. `wait`: not before it is.
  bool take_published(bool wait) {
    if (!is_ready_(published_, wait)) return false;
    published_.get();
    return true;
  }

  /// Removes what other checkpoints have left, whole or not. *Requires*: none is being written.
  void tidy(std::uint64_t kept) const {
    const std::string part = part_name_(kept, 0);
    const std::string_view own = std::string_view(part).substr(0, part.rfind('-') + 1);
    for (const char* const others : {".part-", ".weft-"})  // the second: of io::unnamed_file
      for (const std::string& name : in_.names_with(name_ + others))
        if (!name.starts_with(own)) in_.remove(name);
  }

  /// *Returns*: the last whole one; nothing if there is none. *Throws*: weft::error for a file that is no
  /// checkpoint, is damaged, or one of another step.
  std::optional<checkpoint> last() const {
    const std::optional<io::file> f = in_.open_if_exists(name_, O_RDONLY);
    if (!f) return std::nullopt;
    const bytes all = read_file(*f);
    std::uint32_t sum = 0;
    if (all.size() < magic_.size() + sizeof sum || std::memcmp(all.data(), magic_.data(), magic_.size()) != 0)
      throw error("weft: '" + f->path() + "' is not a checkpoint of a partitioned step");
    std::memcpy(&sum, all.data() + all.size() - sizeof sum, sizeof sum);
    if (sum != io::crc32c(all.data(), all.size() - sizeof sum)) refuse_damaged_file(f->path());
    reader r(std::span<const std::byte>(all).subspan(magic_.size()));
    if (r.get<std::uint64_t>() != identity_())
      throw error("weft: '" + f->path() +
                  "' is a checkpoint of another step: it writes other objects, or of other types");
    checkpoint c;
    r(c.number, c.done, c.parts);
    return c;
  }
  /// Puts all values of a checkpoint into the objects. *Throws*: weft::error for a part that is damaged; what
  /// unpacking throws.
  void load(const checkpoint& c) const {
    for (std::size_t which = 0; which < c.parts.size(); ++which) {
      const io::file f = in_.open(part_name_(c.number, which), O_RDONLY);
      const checkpoint_part& p = c.parts[which];
      if (f.size() != p.size) refuse_damaged_file(f.path());
      const bytes all = read_file(f);
      if (all.size() != p.size || io::crc32c(all.data(), all.size()) != p.checksum)
        refuse_damaged_file(f.path());
      reader r{std::span(all)};
      while (r.left() != 0) {
        const auto& o = *objects_.at(r.get<std::uint32_t>()).of;
        reader value = r.part(r.get<std::uint64_t>());
        o.kind->unpack(o.at, value);
        if (value.left() != 0) reader::refuse();
      }
    }
  }

 private:
  static constexpr std::string_view magic_ = "weft step checkpoint 1\n";

  template <class T>
  static bool is_ready_(const std::future<T>& f, bool wait) {
    if (!f.valid()) return false;
    if (wait) f.wait();
    return is_ready(f);
  }
  std::string part_name_(std::uint64_t number, std::size_t which) const {
    return name_ + ".part-" + io::hexadecimal(number) + "-" + std::to_string(which);
  }
  /// Differs where the objects that are written do, or their types. Tasks may change.
  std::uint64_t identity_() const {
    std::uint64_t sum = objects_.size();
    for (const auto& o : objects_) {
      const std::string_view type = o.of->type->name();
      sum = sum * 1099511628211ull + io::crc32c(type.data(), type.size());
    }
    return sum;
  }

  struct object {
    std::uint32_t number;  // in the step
    const step_record::object* of;
  };
  const io::directory in_;
  const std::string name_;
  std::vector<object> objects_;  // that are written; files number these
  std::size_t last_size_ = 0;    // of a part, in bytes
  std::future<written_part> part_;
  std::future<void> published_;
};

}  // namespace weft::inline WEFT_ABI::remote
